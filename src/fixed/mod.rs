//! Inference in integers, from the sample to the results: for processors without a float unit, where every float operation takes
//! a hundred instructions or two.
//!
//! A model says by its [`FixedLatent`]s that it wants this (`spikelet quantize --fixed-point`). It has a dictionary of integers and
//! a diagonal slab, and adaptive states; or the papers' sets with at most three latents on of ten, selected by singletons. All cores
//! do the same, those with a float unit too, so that results have the same bits everywhere. A sample goes all of its way in integers,
//! or all of it in floats: those above [`MAX_NATS`], and those whose coefficients are far larger than themselves.
//!
//! **Units.** Latents are scaled by s = 1 / sqrt(G + K), so that M = G + diag(K) becomes a matrix of correlations c with ones on
//! its diagonal, and exponents are in bits: u = sqrt(log2 e) s (b + K mu), and a latent gains u^2 / 2 by itself, but for its prior.
//! So everything has its place in 32 bits, and errors are absolute: a loud sample loses no more digits than a quiet one and
//! needs no refinement. Roots are floats, 2^x times a mantissa from 1 to 2.
//!
//! **Adaptive states.** [`tableau`] is that of [`crate::states::tableau`] in these units, [`reference`] and [`search`] are those of
//! [`crate::states`], [`sums`] that of [`crate::posterior`]. Weights are integers, 2^21 for a state as good as the best, and
//! coefficients are about those of the reference, for sums of squares to keep their digits.
//!
//! **The papers' sets.** With t = L^-1 u, L the factor of M, the factor of {i, j, k} is
//!
//! ```text
//! 1                    t_i = u_i
//! c_ij  1/d_j          t_j = (u_j - c_ij t_i) d_j                1/d_j^2 = 1 - c_ij^2
//! c_ik  e      1/d_k   t_k = (u_k - c_ik t_i - e t_j) d_k        e = (c_jk - c_ij c_ik) d_j,  1/d_k^2 = 1 - c_ik^2 - e^2
//! ```
//!
//! Whatever is not d or t is at most one, and t.t / 2 is at most what there is to be explained. States are walked for the largest
//! exponent; those near it once more, for the best state and for the sums.
//!
//! | number | digits behind the point |
//! |---|--:|
//! | exponents, scores | 13 |
//! | u, tau, t of factors | 22 |
//! | t of the tableau | 21 |
//! | S of the tableau | 28 |
//! | w of a flip | 30 |
//! | c, e of factors | 31 |
//! | mantissas of roots | 30 |
//! | weights | 21 |
//! | coefficients, deviations | 16 |
//! | squares, in sums | 14 |
//!
//! The tests here and `tests/fixed_point.rs` say how close that is to floats of twice the digits.
//!
//! | module | |
//! |---|---|
//! | `numbers` | products, roots, powers, logarithms |
//! | `sample` | a sample to u and scores |
//! | `tableau`, `reference`, `search`, `sums` | adaptive states |
//! | `factors` | c, e and d of all states, kept as long as the same latents are selected |
//! | `walk`, `state` | states to sums |
//! | `results` | sums to what is reported |

mod factors;
mod numbers;
mod reference;
mod results;
mod sample;
mod search;
mod state;
mod sums;
mod tableau;
#[cfg(all(test, feature = "gsc"))]
mod tests;
mod walk;

use crate::counts::Count;
use crate::memory::Memory;
use crate::model::{
    FixedLatent, MAX_FIXED_ACTIVE as MAX_ACTIVE, MAX_FIXED_SELECTED as MAX_SELECTED, Model, Shape, States,
};
use crate::numeric::math::Real;
use crate::numeric::slices::span_mut;
use crate::numeric::words::{Record, integers_mut, records_mut, words_mut};
use crate::state::State;
use crate::{memory, states};
use factors::{Factors, factorize};
use heapless::Vec;
use numbers::Scaled;
use reference::{Scratch, refer};
use results::{Others, conclude, conclude_search};
use sample::{project, select};
use search::{Room, search};
use sums::Sums;
use tableau::Tableau;
use walk::{Walk, measure};

/// Half of the energy of the loudest sample.
const MAX_NATS: f64 = 32_768.0;
/// Digits of exponents.
const LOG_DIGITS: u32 = 13;
/// One bit in exponents.
const ONE_BIT: i32 = 1 << LOG_DIGITS;
/// Digits of u and t.
const T_DIGITS: i32 = 22;
/// Digits of weights: those of all states together have 32 at most.
const WEIGHT_DIGITS: i32 = 21;
/// Digits of coefficients.
const VALUE_DIGITS: i32 = 16;
/// Digits of their squares, and of variances, in sums.
const SQUARE_DIGITS: i32 = 14;
/// States this far below the best are left out: their weights are 4 at most, of 2^21, mantissas included.
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

/// The latents of a model that is inferred in integers.
fn latents<'a, T: Real>(model: &Model<'a, T>) -> &'a [FixedLatent] {
    model.fixed.unwrap_or(&[])
}

/// s of a latent.
fn scale(latent: &FixedLatent) -> Scaled {
    Scaled { mantissa: latent.scale, exponent: latent.exponent }
}

/// u or scores in the memory of numbers.
fn integer_at<T: Real>(numbers: &mut [T], index: usize) -> i32 {
    integers_mut(numbers).get(index).copied().unwrap_or_default()
}

/// The whole way of the sample in memory, which was `given` as integers and their step, if it was. False if it is nothing for
/// integers, too loud or with coefficients that are out of proportion: it then has to go the whole way in floats.
#[inline(never)]
pub(crate) fn infer<T: Real>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    given: Option<(&[i16], T)>,
) -> bool {
    Count::FixedSamples.add(1);
    let Some(energy) = project(model, memory, given) else { return false };
    state.energy = energy;
    if let States::Adaptive { expansions } = model.shape.states {
        return adaptive(model, memory, state, usize::from(expansions));
    }
    select(model, memory, &mut state.latents);
    posterior(model, memory, state)
}

/// Latents, ascending.
type Order = Vec<u16, MAX_SELECTED>;

fn ascending(selected: &[u16]) -> Order {
    let mut order = Order::new();
    for &latent in selected {
        let mut carried = latent;
        for slot in order.iter_mut() {
            if carried < *slot {
                core::mem::swap(slot, &mut carried);
            }
        }
        let _ = order.push(carried); // H' is no more
    }
    order
}

/// The posterior, from u and scores on; false if coefficients are out of proportion.
fn posterior<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) -> bool {
    let Shape { selected, max_active, .. } = model.shape;
    let (latents, order) = (latents(model), ascending(&state.latents));
    // Whose factors are in memory, then these.
    let Some((kept, factors)) = integers_mut(memory.levels).split_at_mut_checked(selected) else {
        return false;
    };
    if order.len() != selected {
        return false;
    }
    let is_kept = state.has_factors && order.iter().zip(kept.iter()).all(|(&h, &kept)| i32::from(h) == kept);
    if !is_kept {
        state.has_factors = factorize(model, latents, &order, factors, max_active).is_some();
        if !state.has_factors {
            return false;
        }
        for (slot, &h) in kept.iter_mut().zip(&order) {
            *slot = i32::from(h);
        }
    }
    let (factors, tops) = Factors::new(factors, selected, max_active);
    let mut u = [0; MAX_SELECTED];
    for (u, &latent) in u.iter_mut().zip(&order) {
        *u = integer_at(memory.projection, usize::from(latent));
    }
    let largest = measure(&u, &factors, tops);
    let others = Others::new(model, latents, &order, memory.activity);
    let mut walk = Walk::default();
    walk.seek(&u, &factors, tops, largest);
    walk.sum(&u, &factors, tops, largest.max(others.largest));
    if walk.is_lost {
        return false;
    }
    conclude(model, latents, &walk, &others, memory, &order, state);
    true
}

// Records of integers lie in the memory of those of floats.
const _: () = assert!(
    <tableau::Cell as Record<i32>>::LEN + <tableau::Candidate as Record<i32>>::LEN
        <= <memory::Candidate<f32> as Record<f32>>::LEN
);

/// The posterior over the states that a search finds, from u on; false if coefficients are out of proportion.
fn adaptive<T: Real>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    expansions: usize,
) -> bool {
    let Shape { latents: h, max_active, .. } = model.shape;
    let fixed = latents(model);
    state.latents.clear();
    let split = model.shape.selected * <tableau::Cell as Record<i32>>::LEN;
    let (cells, candidates) = integers_mut(memory.candidates).split_at_mut_checked(split).unwrap_or_default();
    let mut tableau = Tableau {
        latents: &mut state.latents,
        candidates: records_mut(candidates),
        cells: records_mut(cells),
        pairs: integers_mut(memory.pairs),
        column: integers_mut(memory.column),
        joint: 0,
        count: 0,
        glance: None,
    };
    let scratch = Scratch {
        projection: span_mut(integers_mut(memory.projection), 0, h),
        seen: memory.mean,
        sample: memory.sample,
        weighted: memory.weighted,
        gains: span_mut(integers_mut(memory.activity), 0, h),
        best: integers_mut(memory.variance),
    };
    refer(&mut tableau, model, fixed, scratch);
    let mut sums =
        Sums::new(&mut tableau, model.shape.states(), &mut state.map, integers_mut(memory.map_values));
    let room = Room {
        expanded: words_mut(memory.expanded),
        waiting: words_mut(memory.waiting),
        joints: integers_mut(memory.waiting_weights),
    };
    state.expanded = search(&mut tableau, room, expansions, &mut sums, max_active) as u16;
    if sums.is_lost {
        return false;
    }
    let summary = results::Summary { total: sums.total, anchor: sums.anchor().0, digits: sums.anchor().1 };
    let results =
        crate::posterior::Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    let (_, candidates) = integers_mut(memory.candidates).split_at_mut_checked(split).unwrap_or_default();
    let candidates = records_mut(candidates);
    conclude_search(model, fixed, summary, candidates, results, memory.map_values, state);
    true
}
