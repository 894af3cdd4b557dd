//! Products of integers: a sample as 16-bit words, and its exact sums with a dictionary of integers.
//!
//! **The sample.** Its D numbers share one power of two: v_d = y_d / t rounded to the nearest integer (ties to even), t the
//! smallest power of two with |v_d| <= `peak` for all d. The error of y_d is at most t / 2, that is 2^-13 of the loudest
//! entry where `peak` is above 2^13; samples that were integers of 14 bits to begin with have none. Numbers below
//! 2^-`QUIET` have fewer digits.
//!
//! **The sums.** sum_d q_dh v_d is exact in 32 bits ([`crate::model::Dictionary`] says why), and is rounded once, when it
//! becomes a number: b_h = sum (c_h f), with f what is common to all latents.

use crate::model::{QUAD, Width};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::numeric::words::words;
pub use crate::numeric::words::words_mut;

/// Numbers below two to minus this power need not keep all of their digits.
const QUIET: i32 = 100;

/// Words that a sample takes in the memory of its D numbers, for which D = 1 is too small.
pub const fn sample_words(dims: usize) -> usize {
    2 * dims.div_ceil(QUAD)
}

/// Numbers to integers, in place; returns t.
pub fn pack<T: Real>(numbers: &mut [T], peak: u16) -> T {
    let mut most = T::ZERO;
    for &y in numbers.iter() {
        most = most.max(y).max(-y);
    }
    // 2^p <= peak: with it the loudest number is below 2^(p + 1), and half of it surely is below the peak.
    let p = 15 - peak.leading_zeros() as i32;
    let exponent = most.exponent().max(-QUIET);
    let mut scale = T::power_of_two(p - exponent);
    let mut step = T::power_of_two(exponent - p);
    if most * scale > T::from_i32(i32::from(peak)) {
        scale *= T::HALF;
        step += step;
    }
    for group in 0..numbers.len().div_ceil(QUAD) {
        // Words never lie behind the numbers they come from.
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| (at(numbers, QUAD * group + i) * scale).nearest() as u16);
        let words = words_mut(numbers);
        set(words, 2 * group, u32::from(a) | u32::from(b) << 16);
        set(words, 2 * group + 1, u32::from(c) | u32::from(d) << 16);
    }
    step
}

/// sum_d q_dh v_d of latent `lane` of a quad.
pub fn sum_of_one(width: Width, quad: &[u32], sample: &[u32], lane: usize) -> i32 {
    let mut sum = 0;
    for (g, pair) in (0..).zip(sample.as_chunks::<2>().0) {
        let [first, second] = width.pairs(span(quad, g * width.group(), width.group()), lane);
        for ([q0, q1], v) in [(first, pair[0]), (second, pair[1])] {
            sum += q0 * i32::from(v as i16) + q1 * (v as i32 >> 16);
        }
    }
    sum
}

/// sum_d q_dh v_d of all latents into `sums`.
pub fn sums(width: Width, packed: &[u32], sample: &[u32], sums: &mut [u32]) {
    #[cfg(spikelet_dsp)]
    super::dsp::sums(width, packed, sample, sums);
    #[cfg(not(spikelet_dsp))]
    portable(width, packed, sample, sums);
}

/// The reference of [`sums()`].
pub fn portable(width: Width, packed: &[u32], sample: &[u32], sums: &mut [u32]) {
    match width {
        Width::I16 => quads::<8>(packed, sample, sums, |group, [v0, v1, v2, v3], sums| {
            let &[a, b, c, d, e, f, g, h] = group;
            let [s0, s1, s2, s3] = sums;
            let pair = |w: u32, v: i32, u: i32| i32::from(w as i16) * v + (w as i32 >> 16) * u;
            *s0 += pair(a, v0, v1) + pair(e, v2, v3);
            *s1 += pair(b, v0, v1) + pair(f, v2, v3);
            *s2 += pair(c, v0, v1) + pair(g, v2, v3);
            *s3 += pair(d, v0, v1) + pair(h, v2, v3);
        }),
        Width::I8 => quads::<4>(packed, sample, sums, |group, [v0, v1, v2, v3], sums| {
            let &[a, b, c, d] = group;
            let [s0, s1, s2, s3] = sums;
            // Upper halves first: what is left of a word can be shifted on in its register.
            let four = |w: u32, sum: &mut i32| {
                let mut w = w as i32;
                *sum += i32::from(w as i8) * v0;
                *sum += (w >> 24) * v3;
                w <<= 8;
                *sum += (w >> 24) * v1;
                w <<= 8;
                *sum += (w >> 24) * v2;
            };
            four(a, s0);
            four(b, s1);
            four(c, s2);
            four(d, s3);
        }),
    }
}

/// Quad by quad, group by group.
#[inline(always)]
fn quads<const N: usize>(
    packed: &[u32],
    sample: &[u32],
    sums: &mut [u32],
    add: impl Fn(&[u32; N], [i32; 4], &mut [i32; QUAD]),
) {
    let sample = sample.as_chunks::<2>().0;
    let mut groups = packed.as_chunks::<N>().0.iter();
    let mut quad = |sums: &mut [u32; QUAD]| {
        let mut found = [0; QUAD];
        for (&[v, u], group) in sample.iter().zip(&mut groups) {
            let v = [i32::from(v as i16), v as i32 >> 16, i32::from(u as i16), u as i32 >> 16];
            add(group, v, &mut found);
        }
        *sums = found.map(|sum| sum as u32);
    };
    let (whole, last) = sums.as_chunks_mut::<QUAD>();
    whole.iter_mut().for_each(&mut quad);
    if !last.is_empty() {
        let mut sums = [0; QUAD];
        quad(&mut sums);
        copy(last, &sums);
    }
}

/// b_h = c_h f sum_d q_dh v_d for all latents.
pub fn project<T: Real>(
    width: Width,
    packed: &[u32],
    sample: &[u32],
    scales: &[T],
    factor: T,
    projection: &mut [T],
) {
    let latents = projection.len();
    sums(width, packed, sample, span_mut(words_mut(projection), 0, latents));
    // A sum and its number take the same place in single precision.
    if let (Some(scales), Some(&[factor])) = (T::single(scales), T::single(core::slice::from_ref(&factor)))
        && let Some(projection) = T::single_mut(projection)
    {
        for (b, &scale) in projection.iter_mut().zip(scales) {
            *b = b.to_bits() as i32 as f32 * (scale * factor);
        }
        return;
    }
    // From the last on, since a number may take the place of two sums.
    for (latent, &scale) in scales.iter().enumerate().rev() {
        let sum = words(projection).get(latent).copied().unwrap_or_default();
        set(projection, latent, T::from_i32(sum as i32) * (scale * factor));
    }
}
