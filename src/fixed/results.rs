//! Sums of integers to what is reported.

use super::numbers::Scaled;
use super::state::State;
use super::walk::{Latent, Walk};
use super::{
    LOG_DIGITS, NEGLIGIBLE, ROOT_BITS, SQUARE_DIGITS, T_DIGITS, VALUE_DIGITS, WEIGHT_DIGITS, integer_at,
    scale,
};
use crate::arena::Arena;
use crate::found::Found;
use crate::kernel::integer::integers_mut;
use crate::map::to_latents;
use crate::math::Real;
use crate::model::{FixedLatent, Model};
use crate::slices::{set, span_mut};

/// 1 / sqrt(log2 e): coefficients of the model are those here times this and s.
const UNIT: Scaled = Scaled { mantissa: ((1 << 30) as f64 / ROOT_BITS * 2.0) as i32, exponent: -1 };

/// The singleton states of the latents that were not selected, their log joints in the memory of activities.
pub(super) struct Others {
    is_empty: bool,
    /// The largest of them, and of that of the empty state.
    pub largest: i32,
}

/// As good as impossible.
const NEVER: i32 = i32::MIN / 2;

impl Others {
    /// From scores.
    pub fn new<T: Real>(
        model: &Model<'_, T>,
        latents: &[FixedLatent],
        selected: &[u16],
        scores: &mut [T],
    ) -> Self {
        let is_empty = !model.shape.singletons || selected.len() == latents.len();
        let scores = span_mut(integers_mut(scores), 0, latents.len());
        for &latent in selected {
            set(scores, usize::from(latent), NEVER);
        }
        let mut largest = 0;
        for (score, latent) in scores.iter_mut().zip(latents) {
            *score = if is_empty { NEVER } else { score.wrapping_add(latent[3]) };
            largest = largest.max(*score);
        }
        Self { is_empty, largest }
    }
}

/// x of a latent that is on, in the units of the model.
struct Value {
    mean: Scaled,
    variance: Scaled,
}

/// Writes what the states say about a latent that is on with this weight, of all.
#[inline(never)]
fn report<T: Real>(arena: &mut Arena<'_, T>, h: usize, weight: u32, total: &Total, x: Value) {
    let on = Scaled::of_wide(i64::from(weight), WEIGHT_DIGITS).times(total.inverse);
    let off = Scaled::of_wide(total.sum - i64::from(weight), WEIGHT_DIGITS).times(total.inverse);
    let spread = off.times(x.mean.times(x.mean));
    set(arena.activity, h, on.to_real());
    set(arena.mean, h, on.times(x.mean).to_real());
    set(arena.variance, h, on.times(x.variance.plus(spread)).to_real());
}

/// The weight of all states.
struct Total {
    sum: i64,
    inverse: Scaled,
}

/// Adds the states outside the walk, and tells what all say about every latent.
#[inline(never)]
pub(super) fn conclude<T: Real>(
    model: &Model<'_, T>,
    latents: &[FixedLatent],
    walk: &Walk,
    others: &Others,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
) {
    let (mut sum, mut best_weight, mut best_outside) = (i64::from(walk.total), walk.best_weight, None);
    if !others.is_empty {
        let joints = span_mut(integers_mut(arena.activity), 0, latents.len());
        for (latent, slot) in (0u16..).zip(joints) {
            let below = walk.anchor.wrapping_sub(*slot);
            // As that of a state without d.
            let weight = if below > NEGLIGIBLE { 0 } else { State::default().weight(below) };
            *slot = weight as i32;
            sum += i64::from(weight);
            if weight > best_weight {
                (best_weight, best_outside) = (weight, Some(latent));
            }
        }
    }
    let total = Total { sum, inverse: Scaled::of_wide(sum, WEIGHT_DIGITS).inverse() };

    // From the last on: a number may take the place of two integers.
    for (h, latent) in latents.iter().enumerate().rev() {
        let weight = if others.is_empty { 0 } else { integer_at(arena.activity, h) as u32 };
        if weight == 0 {
            for values in [&mut *arena.activity, arena.mean, arena.variance] {
                set(values, h, T::ZERO);
            }
            continue;
        }
        let s = scale(latent);
        let mean = alone(latent, integer_at(arena.projection, h));
        report(arena, h, weight, &total, Value { mean, variance: s.times(s) });
    }
    for (&latent, sums) in found.order.iter().zip(&walk.latents) {
        let h = usize::from(latent);
        if let Some(latent) = latents.get(h)
            && sums.on > 0
        {
            report(arena, h, sums.on, &total, value(latent, sums));
        }
    }

    note_best(latents, walk, best_outside, arena, found);
    let bits = Scaled::of(walk.anchor, LOG_DIGITS as i32).to_real::<T>();
    let sum: T = Scaled::of_wide(sum, WEIGHT_DIGITS).to_real();
    found.rounds = [0; 2];
    found.log_sum = bits * T::nats(1) + sum.ln();
    found.evidence = model.log_norm - T::HALF * found.energy + found.log_sum;
}

/// Reports the best state: that of the walk, or that of a latent which was not selected.
fn note_best<T: Real>(
    latents: &[FixedLatent],
    walk: &Walk,
    outside: Option<u16>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
) {
    found.map.clear();
    if let Some(latent) = outside {
        let h = usize::from(latent);
        let _ = found.map.push(latent); // room for one: max_active is at least 1
        let value = latents.get(h).map(|latent| alone(latent, integer_at(arena.projection, h)).to_real());
        set(arena.map_values, 0, value.unwrap_or(T::ZERO));
        return;
    }
    for (n, (&p, &value)) in walk.best.positions().iter().zip(&walk.best_values).enumerate() {
        let _ = found.map.push(u16::from(p)); // no more than max_active
        let latent = found.order.get(usize::from(p)).and_then(|&latent| latents.get(usize::from(latent)));
        let value = latent.map(|latent| coefficient(latent, value, VALUE_DIGITS).to_real());
        set(arena.map_values, n, value.unwrap_or(T::ZERO));
    }
    to_latents(&mut found.map, arena.map_values, &found.order);
}

/// A coefficient, in the units of the model.
fn coefficient(latent: &FixedLatent, value: i32, digits: i32) -> Scaled {
    Scaled::of(value, digits).times(scale(latent)).times(UNIT)
}

/// That of a latent which is on alone.
fn alone(latent: &FixedLatent, u: i32) -> Scaled {
    coefficient(latent, u, T_DIGITS)
}

/// From sums over the states that have a latent on.
fn value(latent: &FixedLatent, sums: &Latent) -> Value {
    let inverse = Scaled::of_wide(i64::from(sums.on), WEIGHT_DIGITS).inverse();
    let away = Scaled::of_wide(sums.first, VALUE_DIGITS + WEIGHT_DIGITS).times(inverse);
    let square = Scaled::of_wide(sums.square as i64, SQUARE_DIGITS + WEIGHT_DIGITS).times(inverse);
    let unit = scale(latent).times(UNIT);
    let mean = sums.reference.saturating_add(away.to_fixed(VALUE_DIGITS));
    let mean = Scaled::of(mean, VALUE_DIGITS).times(unit);
    Value { mean, variance: square.less(away.times(away)).times(unit.times(unit)) }
}
