//! The same in integers, for dictionaries of integers: a Cortex-M0 has no floats, and makes each from fifty to a hundred
//! instructions.
//!
//! **Units.** Latents are scaled by s = 1 / sqrt(G + K), so that M becomes a matrix of correlations c with ones on its
//! diagonal, and exponents are in bits. With u = sqrt(log2 e) s v, the factor L of {i, j, k} is
//!
//! ```text
//! 1                    t_i = u_i
//! c_ij  1/d_j          t_j = (u_j - c_ij t_i) d_j                1/d_j^2 = 1 - c_ij^2
//! c_ik  e      1/d_k   t_k = (u_k - c_ik t_i - e t_j) d_k        e = (c_jk - c_ij c_ik) d_j,  1/d_k^2 = 1 - c_ik^2 - e^2
//! ```
//!
//! Whatever is not d or t is at most one, and t.t / 2 is at most what there is to be explained. So everything has its
//! place in 32 bits, and errors are absolute: a loud sample loses no more digits than a quiet one and needs no reference,
//! up to [`MAX_NATS`]. d is a float, 2^x times a mantissa from 1 to 2; the mantissa goes into the weight of a state, x
//! into its exponent: no logarithms.
//!
//! **Twice.** States are walked for the best one, then for the sums: weights are integers below it, 2^21 for one as good, and
//! coefficients are about those of the best state, for sums of squares to keep their digits.
//!
//! | number | digits behind the point |
//! |---|--:|
//! | exponents | 13 |
//! | u, t | 22 |
//! | c, e | 31 |
//! | mantissas of d | 30 |
//! | weights | 21 |
//! | coefficients, deviations | 16 |
//! | squares, in sums | 14 |
//!
//! What results is as near to the posterior as floats come to it but for about 1e-4 nats of every state, and 1e-3 near
//! [`MAX_NATS`].

mod factors;
mod state;
mod walk;

use super::{MAX_ACTIVE, MAX_SELECTED};
use crate::arena::Arena;
use crate::block::Block;
use crate::conclude::{Results, conclude};
use crate::fixed::{LOG_DIGITS, Scaled, to_real};
use crate::found::Found;
use crate::kernel::integer::integers_mut;
use crate::math::Real;
use crate::model::{Dictionary, Model, Shape};
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::slices::{at, set};
use factors::{Factors, factorize, see, unit};
use walk::{WEIGHT_DIGITS, Walk};

/// Half of the energy of the loudest sample.
const MAX_NATS: f64 = 32_768.0;
/// Digits of coefficients behind the point.
const VALUE_DIGITS: i32 = 16;
/// Digits of their squares, and of variances, in sums.
const SQUARE_DIGITS: i32 = 14;

/// Whether a sample of a model is inferred here, unless its latents are out of proportion.
pub(super) fn serves<T: Real>(model: &Model<'_, T>, energy: T) -> bool {
    matches!(model.dictionary.known(), Dictionary::Integer(_)) && T::HALF * energy <= T::from_f64(MAX_NATS)
}

/// The posterior of the sample in `arena`, whose selected latents are in order; false if latents or coefficients are out of
/// proportion.
pub(super) fn posterior<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    largest_outside: T,
) -> bool {
    let Shape { selected, max_active, latents, .. } = model.shape;
    let Found { order, kept, are_integers, .. } = found;
    let memory = integers_mut(arena.walk);
    if !*are_integers || !(kept.len() == latents || order == kept) {
        kept.clear();
        if factorize(model, order, memory, max_active).is_none() {
            return false;
        }
        kept.clone_from(order);
        *are_integers = true;
    }
    let factors = Factors::new(memory, selected, max_active);

    let (mut u, mut units) = ([0; MAX_SELECTED], [T::ZERO; MAX_SELECTED]);
    for (((u, unit_of), &latent), head) in u.iter_mut().zip(&mut units).zip(&*order).zip(factors.heads) {
        (*u, *unit_of) = (see(head, at(arena.projection, usize::from(latent))), unit(head));
    }
    let largest_outside = Scaled::new(largest_outside * T::from_f64(core::f64::consts::LOG2_E));
    let mut walk = Walk::default();
    walk.search(&u, &factors, largest_outside.to_fixed(LOG_DIGITS as i32));

    let mut block = Block::restore(order, arena.block.reborrow());
    block.reference.fill(T::ZERO);
    let value = |p: usize, value: i32| to_real::<T>(i64::from(value), -VALUE_DIGITS) * at(&units, p);
    for (&p, &found) in walk.best.positions().iter().zip(&walk.best_values) {
        let _ = block.members.push(u16::from(p)); // there is room for as many as are on
        set(block.reference, usize::from(p), value(usize::from(p), found));
    }
    walk.sum(&u, &factors);
    if walk.is_lost {
        return false;
    }

    let anchor = to_real::<T>(i64::from(walk.anchor), -(LOG_DIGITS as i32)) * T::nats(1);
    let state_bits = model.shape.state_bits();
    let mut sums = Sums::to_be_taken(&block, anchor, state_bits, arena.sums.reborrow(), &mut found.map);
    let weight = |weight: u32| to_real::<T>(i64::from(weight), -WEIGHT_DIGITS);
    let mut path = [0; MAX_ACTIVE];
    let best = walk.best.positions().iter().zip(&walk.best_values);
    for ((slot, map_value), (&p, &found)) in path.iter_mut().zip(arena.map_values.iter_mut()).zip(best) {
        (*slot, *map_value) = (u16::from(p), value(usize::from(p), found));
    }
    let path = path.get(..walk.best.count).unwrap_or(&[]);
    let totals = walk.latents.iter().zip(&units).take(selected).map(|(latent, &unit)| {
        let first = to_real::<T>(latent.first, -WEIGHT_DIGITS - VALUE_DIGITS) * unit;
        let square = to_real::<T>(latent.square as i64, -WEIGHT_DIGITS - SQUARE_DIGITS) * (unit * unit);
        [weight(latent.on), first, square]
    });
    sums.take_walk(totals, weight(walk.total), weight(walk.best_weight), path);
    sums.take_off(|number| {
        let member = block.members.get(number).copied().unwrap_or_default();
        let on = walk.latents.get(usize::from(member)).map_or(0, |latent| latent.on);
        weight(walk.total.wrapping_sub(on))
    });
    let Arena { projection, activity, mean, variance, .. } = arena;
    let outside = Outside { model, selected: &found.selected };
    let results = Results { projection, activity, mean, variance };
    let conclusion = conclude(&outside, T::ZERO, &block, &mut sums, results);
    found.rounds = [0; 2];
    found.settle(model, arena.projection, arena.map_values, found.energy, conclusion);
    true
}
