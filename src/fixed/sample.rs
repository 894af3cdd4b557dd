//! A sample to what every latent sees of it, u, and to scores.

use super::numbers::{Scaled, mul_high};
use super::{MAX_NATS, ROOT_BITS, T_DIGITS, latents, scale};
use crate::arena::Arena;
use crate::found::Found;
use crate::kernel::integer::{integers_mut, sample_words, sums, words, words_mut};
use crate::math::Real;
use crate::model::{Dictionary, Model, Noise, QUAD};
use crate::project::weigh;
use crate::select::top;
use crate::slices::{at, copy, set, span, span_mut};

/// sqrt(log2 e).
const ROOT: Scaled = Scaled { mantissa: (ROOT_BITS * (1 << 30) as f64) as i32, exponent: 0 };
/// Numbers below two to minus this power need not keep all of their digits.
const QUIET: i32 = 100;

/// u of all latents into the memory of the projection, from the sample in `arena`, which was `given` as integers and their
/// step, if it was; returns its energy, or nothing if it is too loud.
#[inline(never)]
pub(crate) fn project<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    given: Option<(&[i16], T)>,
) -> Option<T> {
    let latents = latents(model);
    let Dictionary::Integer(integers) = model.dictionary.known() else { return None };
    let Arena { sample, weighted, projection, .. } = arena;
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
        _ => {
            let energy = weigh(&model.noise, sample, weighted);
            (pack(weighted, integers.peak), energy)
        }
    };
    // Precisions that are subnormal in f32 have no mantissa.
    if factor.mantissa == 0 || !(T::HALF * energy <= T::from_f64(MAX_NATS)) {
        return None;
    }
    let factor = factor.times(ROOT).normal();
    let sample = span(words(weighted), 0, sample_words(sample.len()));
    let found = span_mut(words_mut(projection), 0, latents.len());
    sums(integers.width, integers.words, sample, found);
    for ((slot, latent), &c) in found.iter_mut().zip(latents).zip(integers.scales) {
        let u = Scaled::of(*slot as i32, 0).times(Scaled::new(c).times(scale(latent))).times(factor);
        *slot = u.to_fixed(T_DIGITS).saturating_add(latent[4]) as u32;
    }
    Some(energy)
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

/// Numbers to integers, in place, the nearest, halves up; returns their step, a power of two. As in [`crate::kernel::integer`], but
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
pub(crate) fn select<T: Real>(model: &Model<'_, T>, arena: &mut Arena<'_, T>, found: &mut Found<T>) {
    let latents = latents(model);
    let scores = span_mut(integers_mut(arena.activity), 0, latents.len());
    for ((score, &u), latent) in scores.iter_mut().zip(integers_mut(arena.projection).iter()).zip(latents) {
        *score = latent[2].wrapping_add(mul_high(u, u));
    }
    top(scores, model.shape.selected, integers_mut(arena.block.b), &mut found.selected);
    found.order.clear();
}
