//! The projection of a sample on every latent, u.

use super::numbers::Scaled;
use super::{MOST_BLOCK, NARROW, QUIET_ENERGY, ROOT_BITS, T_DIGITS, scale};
use crate::counts::Count;
use crate::memory::Memory;
use crate::model::{Dictionary, FixedLatent, Integers, Model, Noise, QUAD};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::numeric::words::{integers_mut, words, words_mut};
use crate::project::integer::{sample_words, sums};
use crate::project::{count_integers, weigh, weigh_in_place};

/// sqrt(log2 e).
const ROOT: Scaled = Scaled { mantissa: (ROOT_BITS * (1 << 30) as f64) as i32, exponent: 0 };
/// Numbers below two to minus this power need not keep all of their digits.
const QUIET: i32 = 100;

/// What is known of a sample when it is projected.
pub(super) struct Projected {
    /// y^T Sigma^-1 y.
    pub energy: Scaled,
    /// Digits that its u and t have less.
    pub block: u32,
}

/// u of all latents into the memory of the projection, from the sample in memory, which was `given` as integers and their
/// step, if it was; nothing if it is too loud.
#[inline(never)]
pub(super) fn project<T: Real>(
    model: &Model<'_, T>,
    latents: &[FixedLatent],
    memory: &mut Memory<'_, T>,
    given: Option<(&[i16], T)>,
) -> Option<Projected> {
    let Dictionary::Integer(integers) = model.dictionary.known() else { return None };
    let Memory { sample, weighted, projection, activity, .. } = memory;
    let precision = match model.noise {
        Noise::Shared(precision) => Scaled::new(precision),
        Noise::Diagonal(_) | Noise::Full(_) => Scaled::ONE,
    };
    let taken = given.filter(|(values, _)| {
        matches!(model.noise, Noise::Shared(_)) && take(values, integers.peak, weighted)
    });
    let (known, step) = match taken {
        Some((_, step)) => (None, Scaled::new(step)),
        None => {
            let known = weigh_all(model, sample, weighted);
            (known, pack(weighted, integers.peak, Half::High))
        }
    };
    let mut energy = known.unwrap_or_else(|| {
        let squares = sum_of_squares(span(words(weighted), 0, sample_words(sample.len())));
        Scaled::of_wide(squares, 0).times(step).times(step).times(precision).normal()
    });
    let block = ((energy.exponent + 1 - QUIET_ENERGY).max(0) as u32).div_ceil(2);
    let factor = precision.times(step).normal();
    let is_narrow = || latents.iter().any(|latent| latent.least < NARROW);
    // Precisions that are subnormal in f32 have no mantissa.
    if factor.mantissa == 0 || block > MOST_BLOCK || block > 0 && is_narrow() {
        return None;
    }
    let digits = T_DIGITS - block as i32;
    multiply(integers, latents, weighted, factor, digits, projection);
    let u = span_mut(integers_mut(projection), 0, latents.len());
    if block > 0 {
        if known.is_none() {
            energy = dot(sample, sample).times(precision).normal();
        }
        // What rounding took off the sample is no longer small beside the noise.
        if taken.is_none() {
            weigh_all(model, sample, weighted);
            let step = pack(weighted, integers.peak, Half::Low);
            multiply(integers, latents, weighted, precision.times(step).normal(), digits, activity);
            add(u, integers_mut(activity));
        }
    }
    for (u, latent) in u.iter_mut().zip(latents) {
        *u = u.saturating_add(latent.pull >> block);
    }
    Some(Projected { energy, block })
}

/// u of all latents without the slab's pull, with so many digits, from a packed sample, `factor` times these integers.
#[inline(never)]
fn multiply<T: Real>(
    integers: Integers<'_, T>,
    latents: &[FixedLatent],
    weighted: &[T],
    factor: Scaled,
    digits: i32,
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
        *slot = sum.times(Scaled::new(c).times(scale(latent))).times(factor).to_fixed(digits);
    }
}

#[inline(never)]
fn add(sums: &mut [i32], others: &[i32]) {
    for (sum, &other) in sums.iter_mut().zip(others) {
        *sum = sum.saturating_add(other);
    }
}

/// Digits behind the point with which the loudest entry of a sample has 28.
pub(super) fn grid<T: Real>(sample: &[T]) -> i32 {
    27 - sample.iter().fold(-QUIET, |most, y| most.max(y.parts().1))
}

/// A latent that is on, and its coefficient in steps of the dictionary's column, on the grid of the sample.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub latent: usize,
    pub steps: i32,
}

/// t of all latents, with so many digits, from what `parts` leave of the sample: of its first digits, or of twice as many, which
/// needs scratch. (H)
#[inline(never)]
pub(super) fn project_rest<T: Real>(
    model: &Model<'_, T>,
    sample: &[T],
    weighted: &mut [T],
    parts: impl Iterator<Item = Part> + Clone,
    digits: i32,
    found: &mut [T],
    mut scratch: Option<&mut [T]>,
) {
    let (Dictionary::Integer(integers), Some(latents)) = (model.dictionary.known(), model.fixed) else {
        return;
    };
    let precision = match model.noise {
        Noise::Shared(precision) => Scaled::new(precision),
        Noise::Diagonal(_) | Noise::Full(_) => Scaled::ONE,
    };
    let grid = grid(sample);
    for half in [Half::High, Half::Low] {
        let to = match half {
            Half::High => &mut *found,
            Half::Low => match &mut scratch {
                Some(scratch) => scratch,
                None => break,
            },
        };
        for (d, (slot, &y)) in weighted.iter_mut().zip(sample).enumerate() {
            // Terms may be larger than there is room for, their sum is not.
            let mut rest = Scaled::new(y).to_fixed(grid);
            for Part { latent, steps } in parts.clone() {
                Count::FixedColumns.add(1);
                rest = rest.wrapping_sub(integers.integer(sample.len(), d, latent).wrapping_mul(steps));
            }
            let mut rest = Scaled::of(rest, grid);
            if let Noise::Diagonal(precisions) = model.noise {
                rest = rest.times(Scaled::new(at(precisions, d)));
            }
            *slot = rest.to_real();
        }
        if let Noise::Full(_) = model.noise {
            weigh_in_place(&model.noise, weighted);
        }
        let step = pack(weighted, integers.peak, half);
        multiply(integers, latents, weighted, precision.times(step).normal(), digits, to);
    }
    let t = span_mut(integers_mut(found), 0, latents.len());
    if let Some(scratch) = scratch {
        add(t, integers_mut(scratch));
    }
    for (t, latent) in t.iter_mut().zip(latents) {
        *t = t.saturating_add(latent.pull >> (T_DIGITS - digits));
    }
}

/// What is packed: the sample, where its noise is the same everywhere, else Sigma^-1 times it; returns its energy if it is
/// known then.
fn weigh_all<T: Real>(model: &Model<'_, T>, sample: &[T], weighted: &mut [T]) -> Option<Scaled> {
    match model.noise {
        Noise::Shared(_) => {
            copy(weighted, sample);
            None
        }
        Noise::Diagonal(precisions) => {
            for ((slot, &y), &precision) in weighted.iter_mut().zip(sample).zip(precisions) {
                *slot = Scaled::new(y).times(Scaled::new(precision)).to_real();
            }
            Some(dot(weighted, sample))
        }
        Noise::Full(_) => Some(Scaled::new(weigh(&model.noise, sample, weighted))),
    }
}

/// The product of two vectors.
fn dot<T: Real>(a: &[T], b: &[T]) -> Scaled {
    let products = || a.iter().zip(b).map(|(&a, &b)| Scaled::new(a).times(Scaled::new(b)));
    // Zeros are as small as any.
    let most = products().filter(|product| product.mantissa != 0).map(|product| product.exponent);
    let most = most.fold(-4 * QUIET, i32::max);
    let mut sum = 0i64;
    for product in products() {
        sum += i64::from(product.mantissa >> (most - product.exponent).clamp(0, 31));
    }
    Scaled::of_wide(sum, 30 - most)
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

/// Which digits of a sample are packed: the first, or those that rounding to them takes off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Numbers to integers, in place, the nearest, halves up; returns their step, a power of two. As in [`crate::project::integer`], but
/// without floats.
fn pack<T: Real>(numbers: &mut [T], peak: u16, half: Half) -> Scaled {
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
            let shift = 30 - p + exponent - of_number;
            let high = nearest(mantissa, shift);
            match half {
                Half::High => high as u32,
                Half::Low => {
                    let taken = if shift < 32 { high << shift } else { 0 };
                    nearest(mantissa.wrapping_sub(taken), shift - p) as u32
                }
            }
        });
        let words = words_mut(numbers);
        set(words, 2 * group, a & 0xffff | b << 16);
        set(words, 2 * group + 1, c & 0xffff | d << 16);
    }
    let digits = if half == Half::High { p } else { 2 * p };
    Scaled { mantissa: 1 << 30, exponent: exponent - digits }
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
