//! Sums of integers to what is reported.

use super::numbers::{Scaled, log2};
use super::state::State;
use super::sums::Found;
use super::tableau::Candidate;
use super::walk::{Latent, Walk};
use super::{
    LOG_DIGITS, NEGLIGIBLE, ROOT_BITS, SQUARE_DIGITS, T_DIGITS, VALUE_DIGITS, WEIGHT_DIGITS, integer_at,
    scale,
};
use crate::counts::Count;
use crate::memory::Memory;
use crate::model::{FixedLatent, Model};
use crate::numeric::math::Real;
use crate::numeric::slices::{exchange, set, span_mut};
use crate::numeric::words::integers_mut;
use crate::posterior::Results;
use crate::states::tableau::Joint;

/// 1 / sqrt(log2 e): coefficients of the model are those here times this and s.
pub(super) const UNIT: Scaled =
    Scaled { mantissa: ((1 << 30) as f64 / ROOT_BITS * 2.0) as i32, exponent: -1 };

/// ln 2, a bit in nats.
const LN_2: Scaled =
    Scaled { mantissa: (core::f64::consts::LN_2 * (1u32 << 31) as f64) as i32, exponent: -1 };

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
            *score = if is_empty { NEVER } else { score.wrapping_add(latent.logit) };
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
fn report<T: Real>(to: Results<'_, T>, h: usize, weight: u32, total: &Total, x: Value) {
    Count::FixedReported.add(1);
    let on = Scaled::of_wide(i64::from(weight), total.digits).times(total.inverse);
    let off = Scaled::of_wide(total.sum - i64::from(weight), total.digits).times(total.inverse);
    let spread = off.times(x.mean.times(x.mean));
    set(to.activity, h, on.to_real());
    set(to.mean, h, on.times(x.mean).to_real());
    set(to.variance, h, on.times(x.variance.plus(spread)).to_real());
}

/// The weight of all states.
struct Total {
    sum: i64,
    /// Digits of weights.
    digits: i32,
    inverse: Scaled,
}

impl Total {
    fn new(sum: i64, digits: i32) -> Self {
        Self { sum, digits, inverse: Scaled::of_wide(sum, digits).inverse() }
    }
}

/// Adds the states outside the walk, and tells what all say about every latent.
#[inline(never)]
pub(super) fn conclude<T: Real>(
    model: &Model<'_, T>,
    latents: &[FixedLatent],
    walk: &Walk,
    others: &Others,
    memory: &mut Memory<'_, T>,
    order: &[u16],
    state: &mut crate::state::State<T>,
) {
    let (mut sum, mut best_weight, mut best_outside) = (i64::from(walk.total), walk.best_weight, None);
    if !others.is_empty {
        let joints = span_mut(integers_mut(memory.activity), 0, latents.len());
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
    let total = Total::new(sum, WEIGHT_DIGITS);

    // From the last on: a number may take the place of two integers.
    for (h, latent) in latents.iter().enumerate().rev() {
        let weight = if others.is_empty { 0 } else { integer_at(memory.activity, h) as u32 };
        if weight == 0 {
            for values in [&mut *memory.activity, memory.mean, memory.variance] {
                set(values, h, T::ZERO);
            }
            continue;
        }
        let s = scale(latent);
        let mean = alone(latent, integer_at(memory.projection, h));
        report(results(memory), h, weight, &total, Value { mean, variance: s.times(s) });
    }
    for (&latent, sums) in order.iter().zip(&walk.latents) {
        let h = usize::from(latent);
        if let Some(latent) = latents.get(h)
            && sums.on > 0
        {
            report(results(memory), h, sums.on, &total, value(latent, sums, WEIGHT_DIGITS));
        }
    }

    note_best(latents, walk, best_outside, memory, order, state);
    let bits = Scaled::of(walk.anchor, LOG_DIGITS as i32).to_real::<T>();
    let sum: T = Scaled::of_wide(sum, WEIGHT_DIGITS).to_real();
    tell(model, bits * T::nats(1) + sum.ln(), state);
}

/// Takes ln of the sum over all states, relative to the empty one.
fn tell<T: Real>(model: &Model<'_, T>, log_total: T, state: &mut crate::state::State<T>) {
    // States are visited relative to the same.
    state.anchor = Joint::new(-(T::HALF * state.energy));
    state.log_total = log_total;
    state.evidence = model.log_norm + (state.anchor.base + log_total);
}

/// Reports the best state: that of the walk, or that of a latent which was not selected.
fn note_best<T: Real>(
    latents: &[FixedLatent],
    walk: &Walk,
    outside: Option<u16>,
    memory: &mut Memory<'_, T>,
    order: &[u16],
    state: &mut crate::state::State<T>,
) {
    state.map.clear();
    if let Some(latent) = outside {
        let h = usize::from(latent);
        let _ = state.map.push(latent); // room for one: max_active is at least 1
        let value = latents.get(h).map(|latent| alone(latent, integer_at(memory.projection, h)).to_real());
        set(memory.map_values, 0, value.unwrap_or(T::ZERO));
        return;
    }
    for (n, (&p, &value)) in walk.best.positions().iter().zip(&walk.best_values).enumerate() {
        let h = order.get(usize::from(p)).copied().unwrap_or_default();
        let _ = state.map.push(h); // no more than max_active, and ascending as the walk is
        let value =
            latents.get(usize::from(h)).map(|latent| coefficient(latent, value, VALUE_DIGITS).to_real());
        set(memory.map_values, n, value.unwrap_or(T::ZERO));
    }
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
fn value(latent: &FixedLatent, sums: &Latent, digits: i32) -> Value {
    let inverse = Scaled::of_wide(i64::from(sums.on), digits).inverse();
    let away = Scaled::of_wide(sums.first, VALUE_DIGITS + digits).times(inverse);
    let square = Scaled::of_wide(sums.square as i64, SQUARE_DIGITS + digits).times(inverse);
    let unit = scale(latent).times(UNIT);
    let mean = sums.reference.saturating_add(away.to_fixed(VALUE_DIGITS));
    let mean = Scaled::of(mean, VALUE_DIGITS).times(unit);
    Value { mean, variance: square.less(away.times(away)).times(unit.times(unit)) }
}

fn results<'a, T>(memory: &'a mut Memory<'_, T>) -> Results<'a, T> {
    Results { activity: memory.activity, mean: memory.mean, variance: memory.variance }
}

/// Of all states of a search: the sum of weights, what they are relative to, and their digits.
pub(super) struct Summary {
    pub total: u32,
    pub anchor: i32,
    pub digits: i32,
}

/// Tells what the states of a search say about every latent.
#[inline(never)]
pub(super) fn conclude_search<T: Real>(
    model: &Model<'_, T>,
    latents: &[FixedLatent],
    summary: Summary,
    candidates: &[Candidate],
    results: Results<'_, T>,
    map_values: &mut [T],
    state: &mut crate::state::State<T>,
) {
    let Results { activity, mean, variance } = results;
    for ((activity, mean), variance) in activity.iter_mut().zip(&mut *mean).zip(&mut *variance) {
        (*activity, *mean, *variance) = (T::ZERO, T::ZERO, T::ZERO);
    }
    let total = Total::new(i64::from(summary.total), summary.digits);
    let of = |i: usize| state.latents.get(i).and_then(|&h| latents.get(usize::from(h)));
    for (i, (&h, candidate)) in state.latents.iter().zip(candidates).enumerate() {
        let sums = candidate.sums();
        if let Some(latent) = of(i)
            && sums.on > 0
        {
            let to = Results { activity, mean, variance };
            report_sums(to, usize::from(h), &total, latent, candidate.reference, sums);
        }
    }
    // From the last on: a number may take the place of two integers.
    for (n, &i) in state.map.iter().enumerate().rev() {
        let value = integer_at(map_values, n);
        let value = of(usize::from(i)).map(|latent| coefficient(latent, value, VALUE_DIGITS).to_real());
        set(map_values, n, value.unwrap_or(T::ZERO));
    }
    for slot in state.map.iter_mut() {
        *slot = state.latents.get(usize::from(*slot)).copied().unwrap_or_default();
    }
    for end in (1..state.map.len()).rev() {
        for i in 0..end {
            if state.map.get(i) > state.map.get(i + 1) {
                exchange(&mut state.map, i, i + 1);
                exchange(map_values, i, i + 1);
            }
        }
    }
    let sum = Scaled::of_wide(total.sum, total.digits).normal();
    let bits = summary.anchor.wrapping_add(log2(sum.mantissa)).wrapping_add(sum.exponent << LOG_DIGITS);
    let nats: T = Scaled::of(bits, LOG_DIGITS as i32).times(LN_2).to_real();
    tell(model, nats, state);
}

/// Writes what the states of a search say about a latent: with a = `<s>`, m = `<s (x - c)>` and q = `<s (x - c)^2>` for its
/// coefficient c in the reference, `<s x>` is a c + m, and its variance q - m^2 + (1 - a) c (a c + 2 m).
#[inline(never)]
fn report_sums<T: Real>(
    to: Results<'_, T>,
    h: usize,
    total: &Total,
    latent: &FixedLatent,
    reference: i32,
    sums: Found,
) {
    let part = |sum: i64, digits: i32| Scaled::of_wide(sum, digits).times(total.inverse);
    let on = part(i64::from(sums.on), total.digits);
    let first = part(sums.first, VALUE_DIGITS + total.digits);
    let square = part((sums.square as i64).max(0), SQUARE_DIGITS + total.digits);
    let unit = scale(latent).times(UNIT);
    let (mut mean, mut variance) = (first, square.less(first.times(first)));
    if reference != 0 {
        let off = part(total.sum - i64::from(sums.on), total.digits);
        let reference = Scaled::of(reference, VALUE_DIGITS);
        let known = on.times(reference);
        let twice = Scaled { exponent: first.exponent + 1, ..first };
        mean = known.plus(first);
        variance = variance.plus(off.times(reference).times(known.plus(twice)));
    }
    set(to.activity, h, on.to_real());
    set(to.mean, h, mean.times(unit).to_real());
    set(to.variance, h, variance.times(unit.times(unit)).to_real());
}
