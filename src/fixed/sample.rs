//! A sample to what every latent sees of it, u, and to scores.

use super::numbers::{Scaled, mul_high};
use super::{MAX_NATS, ROOT_BITS, T_DIGITS, latents, scale};
use crate::counts::Count;
use crate::memory::Memory;
use crate::model::{Dictionary, FixedLatent, Integers, Model, Noise, QUAD};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::numeric::words::{integers_mut, words, words_mut};
use crate::project::integer::{sample_words, sums};
use crate::project::{count_integers, weigh};
use crate::select::top;
use crate::states::tableau::Latents;

/// sqrt(log2 e).
const ROOT: Scaled = Scaled { mantissa: (ROOT_BITS * (1 << 30) as f64) as i32, exponent: 0 };
/// Numbers below two to minus this power need not keep all of their digits.
const QUIET: i32 = 100;

/// u of all latents into the memory of the projection, from the sample in memory, which was `given` as integers and their
/// step, if it was; returns its energy, or nothing if it is too loud.
#[inline(never)]
pub(crate) fn project<T: Real>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    given: Option<(&[i16], T)>,
) -> Option<T> {
    let latents = latents(model);
    let Dictionary::Integer(integers) = model.dictionary.known() else { return None };
    let Memory { sample, weighted, projection, .. } = memory;
    let (factor, energy) = match model.noise {
        Noise::Shared(precision) => {
            let precision = Scaled::new(precision);
            let step = match given {
                Some((values, step)) if take(values, integers.peak, weighted) => Scaled::new(step),
                _ => {
                    copy(weighted, sample);
                    pack(weighted, integers.peak)
                }
            };
            let squares = sum_of_squares(span(words(weighted), 0, sample_words(sample.len())));
            let factor = precision.times(step);
            (factor, Scaled::of_wide(squares, 0).times(factor).times(step).to_real())
        }
        Noise::Diagonal(precisions) => {
            let energy = weigh_each(precisions, sample, weighted);
            (pack(weighted, integers.peak), energy)
        }
        Noise::Full(_) => {
            let energy = weigh(&model.noise, sample, weighted);
            (pack(weighted, integers.peak), energy)
        }
    };
    // Precisions that are subnormal in f32 have no mantissa.
    if factor.mantissa == 0 || !(T::HALF * energy <= T::from_f64(MAX_NATS)) {
        return None;
    }
    multiply(integers, latents, weighted, factor, projection);
    Some(energy)
}

/// u of all latents from a packed sample, `factor` times these integers.
#[inline(never)]
fn multiply<T: Real>(
    integers: Integers<'_, T>,
    latents: &[FixedLatent],
    weighted: &[T],
    factor: Scaled,
    found: &mut [T],
) {
    Count::FixedPacked.add(weighted.len());
    count_integers(integers.width, weighted.len(), latents.len());
    let factor = factor.times(ROOT).normal();
    let sample = span(words(weighted), 0, sample_words(weighted.len()));
    sums(integers.width, integers.words, sample, span_mut(words_mut(found), 0, latents.len()));
    let found = span_mut(integers_mut(found), 0, latents.len());
    // One unit for all sums: so they have as many digits as the largest has room for.
    let most = found.iter().fold(1, |most, sum| sum.unsigned_abs().max(most)).min(i32::MAX as u32);
    let unit = Scaled::of(most as i32, 0);
    let shift = (30 - unit.exponent) as u32;
    for ((slot, latent), &c) in found.iter_mut().zip(latents).zip(integers.scales) {
        let sum = Scaled { mantissa: *slot << shift, exponent: unit.exponent };
        let u = sum.times(Scaled::new(c).times(scale(latent))).times(factor);
        *slot = u.to_fixed(T_DIGITS).saturating_add(latent.pull);
    }
}

/// A latent that is on: which, and its coefficient.
pub(super) struct Part {
    pub latent: usize,
    pub value: Scaled,
}

/// t of all latents in a state, from what it leaves of the sample: roughly, since it only orders candidates. Noise without
/// correlations.
#[inline(never)]
pub(super) fn project_rest<T: Real>(
    model: &Model<'_, T>,
    sample: &[T],
    weighted: &mut [T],
    parts: impl Iterator<Item = Part> + Clone,
    found: &mut [T],
) {
    let Dictionary::Integer(integers) = model.dictionary.known() else { return };
    let exponent = sample.iter().fold(-QUIET, |most, y| most.max(y.parts().1));
    // With so many digits behind the point the loudest entry has 28.
    let digits = 27 - exponent;
    for (d, (slot, &y)) in weighted.iter_mut().zip(sample).enumerate() {
        // Terms may be larger than there is room for, their sum is not.
        let mut rest = Scaled::new(y).to_fixed(digits);
        for Part { latent, value } in parts.clone() {
            Count::FixedColumns.add(1);
            let q = integers.integer(sample.len(), d, latent);
            rest = rest.wrapping_sub(q.wrapping_mul(value.to_fixed(digits)));
        }
        let mut rest = Scaled::of(rest, digits);
        if let Noise::Diagonal(precisions) = model.noise {
            rest = rest.times(Scaled::new(at(precisions, d)));
        }
        *slot = rest.to_real();
    }
    let step = pack(weighted, integers.peak);
    let factor = match model.noise {
        Noise::Shared(precision) => Scaled::new(precision).times(step),
        Noise::Diagonal(_) | Noise::Full(_) => step,
    };
    multiply(integers, latents(model), weighted, factor, found);
}

/// [`weigh`] without floats.
fn weigh_each<T: Real>(precisions: &[T], sample: &[T], weighted: &mut [T]) -> T {
    let mut most = -2 * QUIET;
    for ((slot, &y), &precision) in weighted.iter_mut().zip(sample).zip(precisions) {
        let mut u = Scaled::new(y).times(Scaled::new(precision));
        // Two factors from 1 to 2: at most two digits are missing.
        for _ in 0..2 {
            if u.mantissa.unsigned_abs() < 1 << 30 {
                u = Scaled { mantissa: u.mantissa << 1, exponent: u.exponent - 1 };
            }
        }
        *slot = T::of_parts(u.mantissa, u.exponent);
        if u.mantissa != 0 {
            most = most.max(Scaled::new(y).exponent + u.exponent);
        }
    }
    let mut sum = 0i64;
    for (&u, &y) in weighted.iter().zip(sample) {
        let product = Scaled::new(y).times(Scaled::new(u));
        // No product is larger than the largest.
        sum += i64::from(product.mantissa >> (most + 2 - product.exponent).max(0).unsigned_abs().min(31));
    }
    Scaled::of_wide(sum, 30 - most - 2).to_real()
}

/// Integers as they are, into memory for packed ones; false if they do not fit.
fn take<T: Real>(values: &[i16], peak: u16, packed: &mut [T]) -> bool {
    if values.iter().any(|v| v.unsigned_abs() > peak) || words(packed).len() < sample_words(values.len()) {
        return false;
    }
    let mut words = words_mut(packed).iter_mut();
    for quad in values.chunks(QUAD) {
        let v = |i: usize| u32::from(quad.get(i).copied().unwrap_or_default() as u16);
        for (word, i) in words.by_ref().take(2).zip([0, 2]) {
            *word = v(i) | v(i + 1) << 16;
        }
    }
    true
}

/// Numbers to integers, in place, the nearest, halves up; returns their step, a power of two. As in [`crate::project::integer`], but
/// without floats.
fn pack<T: Real>(numbers: &mut [T], peak: u16) -> Scaled {
    let (mut most, mut exponent) = (0, -QUIET);
    for &number in numbers.iter() {
        let (mantissa, of_number) = number.parts();
        if of_number > exponent {
            (most, exponent) = (0, of_number);
        }
        if of_number == exponent {
            most = mantissa.abs().max(most);
        }
    }
    // The nearest of m 2^-shift.
    let nearest = |mantissa: i32, shift: i32| ((mantissa >> (shift - 1).min(31)) + 1) >> 1;
    // 2^p <= peak: with it the loudest number is below 2^(p + 1), and half of it surely is below the peak.
    let mut p = 15 - peak.leading_zeros() as i32;
    if nearest(most, 30 - p) > i32::from(peak) {
        p -= 1;
    }
    for group in 0..numbers.len().div_ceil(QUAD) {
        // Words never lie behind the numbers they come from.
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| {
            let (mantissa, of_number) = at(numbers, QUAD * group + i).parts();
            nearest(mantissa, 30 - p + exponent - of_number) as u32
        });
        let words = words_mut(numbers);
        set(words, 2 * group, a & 0xffff | b << 16);
        set(words, 2 * group + 1, c & 0xffff | d << 16);
    }
    Scaled { mantissa: 1 << 30, exponent: exponent - p }
}

/// Of packed integers.
fn sum_of_squares(words: &[u32]) -> i64 {
    let mut sum = 0;
    for &word in words {
        let (a, b) = (i32::from(word as i16), word as i32 >> 16);
        // Each is 2^30 at most, so that both fit as they are.
        sum += i64::from((a * a) as u32 + (b * b) as u32);
    }
    sum
}

/// Scores of all latents into the memory of activities, and the best of them: see [`crate::select`].
#[inline(never)]
pub(crate) fn select<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, selected: &mut Latents) {
    let latents = latents(model);
    Count::FixedScores.add(latents.len());
    let scores = span_mut(integers_mut(memory.activity), 0, latents.len());
    for ((score, &u), latent) in scores.iter_mut().zip(integers_mut(memory.projection).iter()).zip(latents) {
        *score = latent.offset.wrapping_add(mul_high(u, u));
    }
    top(scores, model.shape.selected, integers_mut(memory.column), selected);
}
