//! Correlations and factors of all states of some latents.

use super::numbers::{Scaled, inverse_root, mul_high};
use super::{MAX_SELECTED, scale};
use crate::counts::Count;
use crate::model::{FixedLatent, Model};
use crate::numeric::math::Real;
use crate::numeric::slices::pairs;
use crate::project::gram_entry;

/// One in pivots.
const ONE: i32 = 1 << 30;

/// e and d of a state of three latents.
pub(super) type Link = [i32; 2];

/// d of a pivot, Q30: its mantissa, but that the last digits are x + 2.
#[inline(always)]
fn inverse_root_of(pivot: i32) -> i32 {
    let n = pivot.leading_zeros() >> 1;
    inverse_root((pivot as u32) << (2 * n)) & !15 | (n as i32 + 1)
}

/// x + 2.
#[inline(always)]
pub(super) fn shift_of(d: i32) -> u32 {
    d as u32 & 15
}

/// A product with d.
#[inline(always)]
pub(super) fn times_d(a: i32, d: i32) -> i32 {
    mul_high(a, d) << shift_of(d)
}

/// A product with a correlation.
#[inline(always)]
pub(super) fn times_c(a: i32, c: i32) -> i32 {
    mul_high(a, c) << 1
}

/// Factors of all states, in the order of the walk: i before j before k.
pub(super) struct Factors<'a> {
    /// A latent's part of exponents. (S)
    pub offsets: &'a [i32],
    /// c_ij, then d_j given i.
    pub pairs: [&'a [i32]; 2],
    /// e and d_k given i and j.
    pub triples: &'a [Link],
    pub max_active: usize,
}

/// The same while they are made.
struct Memory<'a> {
    offsets: &'a mut [i32],
    pairs: [&'a mut [i32]; 2],
    triples: &'a mut [Link],
    /// One number of each pair.
    tops: &'a mut [i32],
}

/// As much of the memory for the walk in floats as is needed; there is more.
fn cut(memory: &mut [i32], selected: usize, max_active: usize) -> Memory<'_> {
    let pairs = if max_active > 1 { pairs(selected) } else { 0 };
    let triples = if max_active > 2 { pairs * selected.saturating_sub(2) / 3 } else { 0 };
    let (offsets, rest) = memory.split_at_mut_checked(selected).unwrap_or_default();
    let (c, rest) = rest.split_at_mut_checked(pairs).unwrap_or_default();
    let (d, rest) = rest.split_at_mut_checked(pairs).unwrap_or_default();
    let (triples, rest) = rest.split_at_mut_checked(2 * triples).unwrap_or_default();
    let tops = rest.get_mut(..pairs).unwrap_or(&mut []);
    Memory { offsets, pairs: [c, d], triples: triples.as_chunks_mut().0, tops }
}

impl<'a> Factors<'a> {
    /// What is in memory, and a place for one number of each pair.
    pub fn new(memory: &'a mut [i32], selected: usize, max_active: usize) -> (Self, &'a mut [i32]) {
        let Memory { offsets, pairs: [c, d], triples, tops } = cut(memory, selected, max_active);
        (Self { offsets, pairs: [c, d], triples, max_active }, tops)
    }
}

/// c of all pairs of the latents of `order`, whose scales are given.
fn correlate<T: Real>(model: &Model<'_, T>, order: &[u16], scales: &[Scaled], c: &mut [i32]) {
    let mut entries = c.iter_mut();
    for (i, (&latent, &of_latent)) in order.iter().zip(scales).enumerate() {
        let later = order.iter().zip(scales).skip(i + 1);
        for ((&later, &of_later), entry) in later.zip(&mut entries) {
            let gram = Scaled::new(gram_entry(model, usize::from(later), usize::from(latent)));
            *entry = gram.times(of_latent).times(of_later).to_fixed(31);
        }
    }
}

/// Factors of all states of the latents of `order`, into memory, which has room for them.
#[inline(never)]
pub(super) fn factorize<T: Real>(
    model: &Model<'_, T>,
    latents: &[FixedLatent],
    order: &[u16],
    memory: &mut [i32],
    max_active: usize,
) -> Option<()> {
    let s = order.len();
    let Memory { offsets, pairs: [c, d], triples, .. } = cut(memory, s, max_active);
    let (mut d, mut triples) = (d.iter_mut(), triples.iter_mut());
    let (mut least, mut scales) = ([0; MAX_SELECTED], [Scaled { mantissa: 0, exponent: 0 }; MAX_SELECTED]);
    let slots = offsets.iter_mut().zip(&mut least).zip(&mut scales);
    for (((offset, least), of_latent), &latent) in slots.zip(order) {
        let latent = latents.get(usize::from(latent))?;
        (*offset, *least, *of_latent) = (latent.offset + latent.logit, latent.least, scale(latent));
    }
    if max_active < 2 {
        return Some(());
    }
    correlate(model, order, &scales, c);

    let (mut rest, mut least) = (&*c, least.get(..s)?);
    let mut pivots = [0; MAX_SELECTED];
    while let Some((_, least_after)) = least.split_first() {
        least = least_after;
        let (with_i, after) = rest.split_at_checked(least.len())?;
        rest = after;
        for ((pivot, &least), &c_ij) in pivots.iter_mut().zip(least).zip(with_i) {
            *pivot = (ONE - mul_high(c_ij, c_ij)).max(least);
        }
        let (mut later, mut c_i, mut given) = (after, with_i, pivots.get(..least.len())?);
        let mut least_k = least;
        while let Some((&c_ij, c_after)) = c_i.split_first()
            && let Some((&pivot, given_after)) = given.split_first()
            && let Some((_, least_after)) = least_k.split_first()
            && let Some(slot) = d.next()
        {
            (c_i, given, least_k) = (c_after, given_after, least_after);
            Count::FixedFactors.add(1);
            let d_j = inverse_root_of(pivot);
            *slot = d_j;
            if max_active < 3 {
                continue;
            }
            let (with_j, after) = later.split_at_checked(c_i.len())?;
            later = after;
            let (shift, most) = (shift_of(d_j), (ONE - 1) >> shift_of(d_j));
            for (((&c_jk, &c_ik), &pivot), &least) in with_j.iter().zip(c_i).zip(given).zip(least_k) {
                Count::FixedFactors.add(1);
                let cross = (c_jk >> 1) - mul_high(c_ij, c_ik);
                // At most one, but for rounding.
                let e = mul_high(cross, d_j).clamp(-most, most) << (shift + 1);
                let d_k = inverse_root_of((pivot - mul_high(e, e)).max(least));
                *triples.next()? = [e, d_k];
            }
        }
    }
    Some(())
}
