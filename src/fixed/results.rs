//! Results as floats, from the sums in integers.

use super::numbers::{Scaled, log2};
use super::tableau::Candidate;
use super::{AWAY_DIGITS, LOG_DIGITS, ROOT_BITS, SQUARE_DIGITS, VALUE_DIGITS, scale};
use crate::counts::Count;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::slices::{exchange, set};
use crate::numeric::words::integers_mut;
use crate::posterior::Results;
use crate::state::State;

/// 1 / sqrt(log2 e): coefficients of the model are those here times this and s.
pub(super) const UNIT: Scaled =
    Scaled { mantissa: ((1 << 30) as f64 / ROOT_BITS * 2.0) as i32, exponent: -1 };

/// ln 2, a bit in nats.
const LN_2: Scaled =
    Scaled { mantissa: (core::f64::consts::LN_2 * (1u32 << 31) as f64) as i32, exponent: -1 };

/// Half of a nat in bits.
const HALF_NAT: Scaled =
    Scaled { mantissa: (core::f64::consts::LOG2_E * (1 << 30) as f64) as i32, exponent: -1 };

/// All states of a search.
pub(super) struct Summary {
    /// The log joint of the reference, in bits more than that of the empty state.
    pub reference: i64,
    /// Bits above the reference that weights are relative to, the sum of weights, and their digits.
    pub anchor: i32,
    pub total: u32,
    pub digits: i32,
    /// Digits that coefficients have less.
    pub block: u32,
}

/// Reports what the states of a search say about every latent.
#[inline(never)]
pub(super) fn conclude<T: Real>(
    model: &Model<'_, T>,
    summary: Summary,
    energy: Scaled,
    candidates: &[Candidate],
    results: Results<'_, T>,
    map_values: &mut [T],
    state: &mut State<T>,
) {
    let latents = model.fixed.unwrap_or(&[]);
    let Results { activity, mean, variance } = results;
    for values in [&mut *activity, mean, variance] {
        values.fill(T::ZERO);
    }
    let total = Scaled::of_wide(i64::from(summary.total), summary.digits);
    let inverse = total.inverse();
    let of = |i: usize| state.latents.get(i).and_then(|&h| latents.get(usize::from(h)));
    for (i, (&h, candidate)) in state.latents.iter().zip(candidates).enumerate() {
        if let Some(latent) = of(i)
            && candidate.on > 0
        {
            Count::FixedReported.add(1);
            let (h, found) = (usize::from(h), report(&summary, inverse, candidate));
            let unit = scale(latent).times(UNIT);
            set(activity, h, found.activity.to_real());
            set(mean, h, found.mean.times(unit).to_real());
            set(variance, h, found.variance.times(unit.times(unit)).to_real());
        }
    }
    // From the last on: a number may take the place of two integers.
    for (n, &i) in state.map.iter().enumerate().rev() {
        let value = integers_mut(map_values).get(n).copied().unwrap_or_default();
        let value = Scaled::of(value, VALUE_DIGITS - summary.block as i32);
        let value = of(usize::from(i)).map(|latent| value.times(scale(latent)).times(UNIT).to_real());
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
    // Relative to the reference first: of a loud sample its log joint and the energy are large and cancel.
    let relative = i64::from(summary.anchor + log2(total.mantissa) + (total.exponent << LOG_DIGITS));
    let nats = |bits: i64| Scaled::of_wide(bits, LOG_DIGITS as i32).times(LN_2).to_real::<T>();
    let below = energy.times(HALF_NAT).to_wide(LOG_DIGITS as i32);
    state.log_total = nats(relative);
    state.evidence = model.log_norm + nats(summary.reference + relative - below);
}

/// What is found about a latent, in the units of [`super`].
struct Found {
    activity: Scaled,
    mean: Scaled,
    variance: Scaled,
}

/// With a = `<s>`, m = `<s (x - c)>` and q = `<s (x - c)^2>` for its coefficient c in the reference, `<s x>` is a c + m, and its
/// variance q - m^2 + (1 - a) c (a c + 2 m).
#[inline(never)]
fn report(summary: &Summary, inverse: Scaled, candidate: &Candidate) -> Found {
    let part = |sum: i64, digits: i32| Scaled::of_wide(sum, digits + summary.digits).times(inverse);
    let activity = part(i64::from(candidate.on as u32), 0);
    let first = part(candidate.first(), AWAY_DIGITS);
    let square = part(candidate.square().max(0), SQUARE_DIGITS);
    let variance = square.less(first.times(first));
    if candidate.reference == 0 {
        return Found { activity, mean: first, variance };
    }
    let off = part(i64::from(summary.total.wrapping_sub(candidate.on as u32)), 0);
    let reference = Scaled::of(candidate.reference, VALUE_DIGITS - summary.block as i32);
    let known = activity.times(reference);
    let twice = Scaled { exponent: first.exponent + 1, ..first };
    let spread = off.times(reference).times(known.plus(twice));
    Found { activity, mean: known.plus(first), variance: variance.plus(spread) }
}
