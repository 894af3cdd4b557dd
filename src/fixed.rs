//! Inference in integers, from the sample to the results: for processors without a float unit, where every float operation takes
//! a hundred instructions or two.
//!
//! A model says by its [`FixedLatent`]s that it wants this (`spikelet quantize --fixed-point`). It has a dictionary of integers, a
//! diagonal slab, at most three latents on of ten, and is selected by singletons. All cores do the same, those with a
//! float unit too, so that results have the same bits everywhere.
//!
//! **Units.** Latents are scaled by s = 1 / sqrt(G + K), so that M = G + diag(K) becomes a matrix of correlations c with ones on
//! its diagonal, and exponents are in bits. With v = b + K mu and u = sqrt(log2 e) s v, the factor L of {i, j, k} is
//!
//! ```text
//! 1                    t_i = u_i
//! c_ij  1/d_j          t_j = (u_j - c_ij t_i) d_j                1/d_j^2 = 1 - c_ij^2
//! c_ik  e      1/d_k   t_k = (u_k - c_ik t_i - e t_j) d_k        e = (c_jk - c_ij c_ik) d_j,  1/d_k^2 = 1 - c_ik^2 - e^2
//! ```
//!
//! Whatever is not d or t is at most one, and t.t / 2 is at most what there is to be explained. So everything has its
//! place in 32 bits, and errors are absolute: a loud sample loses no more digits than a quiet one and needs no reference.
//! Samples above [`MAX_NATS`] are inferred in floats. d is a float, 2^x times a mantissa from 1 to 2; the mantissa goes into the
//! weight of a state, x into its exponent: no logarithms.
//!
//! **Passes.** States are walked for the largest exponent; those near it once more, for the best state and for the sums. Weights are
//! integers, 2^21 for a state as good as the best, and coefficients are about those of the best state, for sums of squares to
//! keep their digits.
//!
//! | number | digits behind the point |
//! |---|--:|
//! | exponents, scores | 13 |
//! | u, t | 22 |
//! | c, e | 31 |
//! | mantissas of d | 30 |
//! | weights | 21 |
//! | coefficients, deviations | 16 |
//! | squares, in sums | 14 |
//!
//! `tests/fixed_point.rs` says how close that is to floats of twice the digits.
//!
//! | module | |
//! |---|---|
//! | `numbers` | products, roots, powers |
//! | `sample` | a sample to u and scores |
//! | `factors` | c, e and d of all states, kept as in [`crate::kept`] |
//! | `walk`, `state` | states to sums |
//! | `results` | sums to what is reported |

mod factors;
mod numbers;
mod results;
mod sample;
mod state;
mod walk;

pub(crate) use sample::{project, select};

use crate::arena::Arena;
use crate::found::Found;
use crate::kept::{MAX_ACTIVE, MAX_SELECTED, kept_len};
use crate::kernel::integer::integers_mut;
use crate::math::Real;
use crate::model::{FixedLatent, Model, Shape};
use factors::{Factors, factorize};
use numbers::Scaled;
use results::{Others, conclude};
use walk::{Walk, measure};

/// Most latents: those that were not selected have 2^-21 of the weight each when they are left out.
const MAX_LATENTS: usize = 4096;
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
/// Least K / (G + K), Q30: what is left of a latent beside others.
const LEAST_PIVOT: i32 = 1 << 4;
/// Most that a latent's parts of exponents are away from zero: there is room for three latents.
const MAX_OFFSET: u32 = 1 << 27;

/// The latents of a model that is inferred in integers.
fn latents<'a, T: Real>(model: &Model<'a, T>) -> &'a [FixedLatent] {
    model.fixed.unwrap_or(&[])
}

/// Whether a shape can be.
pub(crate) const fn fits(shape: &Shape) -> bool {
    let is_linear = shape.kind.has_slab() && !shape.kind.is_maximal();
    is_linear && shape.latents <= MAX_LATENTS && kept_len(shape.selected, shape.max_active) > 0
}

/// Whether the numbers of a latent are in range.
pub(crate) fn is_possible(&[scale, exponent, offset, logit, rest, least]: &FixedLatent) -> bool {
    scale >= 1 << 30
        && exponent.unsigned_abs() <= 100
        && offset.unsigned_abs() <= MAX_OFFSET
        && logit.unsigned_abs() <= MAX_OFFSET
        && rest.unsigned_abs() <= 1 << 30
        && (LEAST_PIVOT..=1 << 30).contains(&least)
}

/// s of a latent.
fn scale(&[mantissa, exponent, ..]: &FixedLatent) -> Scaled {
    Scaled { mantissa, exponent }
}

/// u or scores in the memory of numbers.
fn integer_at<T: Real>(numbers: &mut [T], index: usize) -> i32 {
    integers_mut(numbers).get(index).copied().unwrap_or_default()
}

/// The posterior of the sample in `arena`, from its u and scores on; false if coefficients are out of proportion.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
) -> bool {
    let Shape { selected, max_active, .. } = model.shape;
    let latents = latents(model);
    found.order_ascending(model.shape.latents);
    let Found { order, kept, are_fixed, .. } = found;
    if order.len() != selected {
        return false;
    }
    let memory = integers_mut(arena.walk);
    if !*are_fixed || !(kept.len() == latents.len() || order == kept) {
        kept.clear();
        if factorize(model, latents, order, memory, max_active).is_none() {
            return false;
        }
        kept.clone_from(order);
        *are_fixed = true;
    }
    let (factors, tops) = Factors::new(memory, selected, max_active);
    let mut u = [0; MAX_SELECTED];
    for (u, &latent) in u.iter_mut().zip(&*order) {
        *u = integer_at(arena.projection, usize::from(latent));
    }
    let largest = measure(&u, &factors, tops);
    let others = Others::new(model, latents, order, arena.activity);
    let mut walk = Walk::default();
    walk.seek(&u, &factors, tops, largest);
    walk.sum(&u, &factors, tops, largest.max(others.largest));
    if walk.is_lost {
        return false;
    }
    conclude(model, latents, &walk, &others, arena, found);
    true
}
