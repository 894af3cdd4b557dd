//! Inference in integers, from the sample to the results, for processors without a float unit, where a float operation takes 100 to
//! 200 instructions.
//!
//! A model asks for it by its [`FixedLatent`]s (`spikelet quantize --fixed-point`): any spike-and-slab model with a dictionary of
//! integers, a diagonal slab and adaptive states. All cores do the same, those with a float unit too, so that results have the
//! same bits everywhere. Whether a sample is inferred in integers or in floats is decided once, from its energy ([`MOST_BLOCK`]).
//!
//! **Units.** Latents are scaled by s = 1 / sqrt(G + K), so that M = G + diag(K) becomes a matrix of correlations c with ones on
//! its diagonal, and exponents are in bits: u = sqrt(log2 e) s (b + K mu), and a latent alone gains u^2 / 2, plus its prior's part.
//! So all numbers fit 32 bits with a fixed point, and errors are absolute. Roots are stored as 2^x times a mantissa from 1 to 2.
//!
//! **Loud samples.** u, t and tau of a loud sample share a block exponent k: they lose their k lowest bits, with k chosen so that
//! the energy times 4^-k is at most 2^16. Relative to its size a loud sample keeps as many bits as a quiet one, and the
//! dictionary's products have no more. While the reference is climbed, gains have 2 k bits less (`coarse`); after that they have
//! full precision, and gains beyond the range, of flips that would remove a loud latent, saturate. Log joints are sums of 64
//! bits, relative to the reference in 32.
//!
//! **Stages.** [`tableau`] is that of [`crate::states::tableau`] in these units, [`reference`] and [`search`] are those of
//! [`crate::states`], [`sums`] that of [`crate::posterior`]. Weights are integers, 2^21 for a state as good as the best, and
//! coefficients are relative to those of the reference, so that sums of squares keep their digits.
//!
//! | number | digits behind the point |
//! |---|--:|
//! | exponents, scores | 13 |
//! | u, tau | 22 - k |
//! | t | 21 - k |
//! | S | 28 |
//! | w of a flip | 30 |
//! | c | 31 |
//! | mantissas of roots | 30 |
//! | weights | 21 |
//! | coefficients | 13 - k |
//! | coefficients relative to the reference, deviations | 16 |
//! | squares, in sums | 14 |
//!
//! The tests here and `tests/fixed_point.rs` compare all of it with double precision.

mod numbers;
mod reference;
mod results;
mod sample;
mod search;
mod sums;
mod tableau;
#[cfg(all(test, feature = "gsc"))]
mod tests;

use crate::counts::Count;
use crate::memory::{self, Memory};
use crate::model::{FixedLatent, Model, States};
use crate::numeric::math::Real;
use crate::numeric::slices::span_mut;
use crate::numeric::words::{Record, integers_mut, records_mut, words_mut};
use crate::state::State;
use crate::states;
use numbers::Scaled;
use reference::{Scratch, refer, refine};
use sample::Projected;
use search::{Room, search};
use sums::Sums;
use tableau::Tableau;

/// Energies up to two to this power need no block exponent.
const QUIET_ENERGY: i32 = 16;
/// Most that a block exponent can be: samples may be 96 dB above the noise.
const MOST_BLOCK: u32 = 8;
/// K / (G + K), with 30 digits, of a latent 48 dB above the noise: loud samples of models with louder ones are for floats, since a
/// flip that other latents leave so little of takes more digits than a loud sample has.
const NARROW: i32 = 1 << 14;
/// Digits of exponents.
const LOG_DIGITS: u32 = 13;
/// One bit in exponents.
const ONE_BIT: i32 = 1 << LOG_DIGITS;
/// Digits of u and tau.
const T_DIGITS: i32 = 22;
/// Digits of weights: those of all states together have 32 at most.
const WEIGHT_DIGITS: i32 = 21;
/// Digits of coefficients.
const VALUE_DIGITS: i32 = 13;
/// Digits of their differences, and of deviations.
const AWAY_DIGITS: i32 = 16;
/// Digits of their squares, and of variances, in sums.
const SQUARE_DIGITS: i32 = 14;
/// States this far below the best are left out: their weights are 4 at most, of 2^21.
const NEGLIGIBLE: i32 = 21 * ONE_BIT;
/// sqrt(log2 e): with it, half of a square is bits.
const ROOT_BITS: f64 = 1.201_122_408_786_449_8;

/// States this far below the best are not expanded, of many expansions so much for each.
const TAU: i32 = bits(states::search::TAU);
const TAU_PER_EXPANSION: i32 = bits(states::search::TAU_PER_EXPANSION);
/// Flips that gain less than this are not taken.
const MARGIN: i32 = bits(states::tableau::MARGIN);

/// Nats as an exponent.
const fn bits(nats: f64) -> i32 {
    (nats * core::f64::consts::LOG2_E * ONE_BIT as f64) as i32
}

/// s of a latent.
fn scale(latent: &FixedLatent) -> Scaled {
    Scaled { mantissa: latent.scale, exponent: latent.exponent }
}

// Records of integers lie in the memory of those of floats.
const _: () = assert!(
    <tableau::Cell as Record<i32>>::LEN + <tableau::Candidate as Record<i32>>::LEN
        <= <memory::Candidate<f32> as Record<f32>>::LEN
);

/// Infers the sample in memory, which was `given` as integers and their step, if it was. False, with nothing done, if it is too
/// loud for integers.
#[inline(never)]
pub(crate) fn infer<T: Real>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    given: Option<(&[i16], T)>,
) -> bool {
    Count::FixedSamples.add(1);
    let (Some(fixed), States::Adaptive { expansions }) = (model.fixed, model.shape.states) else {
        return false;
    };
    let Some(Projected { energy, block }) = sample::project(model, fixed, memory, given) else {
        return false;
    };
    state.energy = energy.to_real();
    state.latents.clear();
    let split = model.shape.selected * <tableau::Cell as Record<i32>>::LEN;
    let (cells, candidates) = integers_mut(memory.candidates).split_at_mut_checked(split).unwrap_or_default();
    let mut tableau = Tableau {
        latents: &mut state.latents,
        candidates: records_mut(candidates),
        cells: records_mut(cells),
        pairs: integers_mut(memory.square),
        column: integers_mut(memory.column),
        block,
        coarse: 2 * block,
        joint: 0,
        count: 0,
    };
    let max_active = model.shape.max_active;
    let mut scratch = Scratch {
        sample: memory.sample,
        weighted: memory.weighted,
        projection: span_mut(integers_mut(memory.projection), 0, fixed.len()),
        seen: memory.mean,
        gains: memory.activity,
        best: states::tableau::Latents::new(),
        best_gains: integers_mut(memory.variance),
    };
    refer(&mut tableau, model, fixed, &mut scratch);
    if block > 0 {
        tableau.coarse = 0;
        for _ in 0..states::tableau::PASSES {
            let before = tableau.mask();
            refine(&mut tableau, model, fixed, &mut scratch);
            tableau.climb(max_active);
            if tableau.mask() == before {
                break;
            }
        }
    }
    let map_values = integers_mut(memory.map_values);
    let states = 1 + model.shape.selected as u32 * u32::from(expansions);
    let mut sums = Sums::new(&mut tableau, states, &mut state.map, map_values);
    let room = Room {
        expanded: words_mut(memory.expanded),
        waiting: words_mut(memory.waiting),
        joints: integers_mut(memory.waiting_weights),
    };
    state.expanded = search(&mut tableau, room, usize::from(expansions), &mut sums, max_active) as u16;
    let summary = sums.summary(block);
    let results =
        crate::posterior::Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    let (_, candidates) = integers_mut(memory.candidates).split_at_mut_checked(split).unwrap_or_default();
    results::conclude(model, summary, energy, records_mut(candidates), results, memory.map_values, state);
    true
}
