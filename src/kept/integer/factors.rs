//! Correlations and factors of all states of some latents, as integers.

use crate::block::gram_entry;
use crate::fixed::{LOG_DIGITS, Scaled, inverse_root, mul_high};
use crate::kept::MAX_SELECTED;
use crate::kept::factors::is_tame;
use crate::math::Real;
use crate::model::Model;
use crate::slices::{at, pairs};

/// Digits of u and t behind the point.
pub(super) const T_DIGITS: i32 = 22;
/// sqrt(log2 e): with it, half of a square is bits.
pub(super) const ROOT_BITS: f64 = 1.201_122_408_786_449_8;

/// One in pivots, and the least that leaves d its room.
const ONE: i32 = 1 << 30;
const LEAST_PIVOT: i32 = 1 << 4;
/// The part in exponents of a latent that is as good as impossible: there is room for three of them.
const IMPOSSIBLE: i32 = -1 << 28;

/// A latent: its scale s, mantissa and exponent, its part of exponents, K mu in units of u.
pub(super) type Head = [i32; 4];

/// e and d of a state of three latents.
pub(super) type Link = [i32; 2];

/// The head of a latent, and K / (G + K), which is the least that others leave of it; nothing if that is too little.
fn head<T: Real>(model: &Model<'_, T>, latent: usize) -> Option<(Head, i32)> {
    if !is_tame(model, latent) {
        return None;
    }
    let (mean, precision) = (at(model.slab_mean, latent), at(model.slab_precision, latent));
    let scale = Scaled::new(at(model.gram_diagonal, latent) + precision).inverse_root();
    let least = Scaled::new(precision).times(scale).times(scale).to_fixed(30);
    let pull = precision * mean;
    let logit = at(model.prior_logit, latent) + at(model.score_offset, latent) - T::HALF * pull * mean;
    let offset = Scaled::new(logit * T::from_f64(core::f64::consts::LOG2_E)).to_fixed(LOG_DIGITS as i32);
    let rest = Scaled::new(pull * T::from_f64(ROOT_BITS)).times(scale).to_fixed(T_DIGITS);
    (least >= LEAST_PIVOT).then_some(([scale.mantissa, scale.exponent, offset.max(IMPOSSIBLE), rest], least))
}

/// s.
fn scale(&[mantissa, exponent, ..]: &Head) -> Scaled {
    Scaled { mantissa, exponent }
}

/// u of a latent that sees b.
pub(super) fn see<T: Real>(head: &Head, b: T) -> i32 {
    const UNIT: Scaled = Scaled { mantissa: (ROOT_BITS * (1 << 30) as f64) as i32, exponent: 0 };
    let u = Scaled::new(b).times(scale(head)).times(UNIT).to_fixed(T_DIGITS);
    u.saturating_add(head[3])
}

/// What a coefficient of a latent is multiplied with to be the model's, without its digits.
pub(super) fn unit<T: Real>(head: &Head) -> T {
    scale(head).to_real::<T>() * T::from_f64(1.0 / ROOT_BITS)
}

/// d of a pivot: its mantissa, Q30, but that the last digits are x + 2.
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
    pub heads: &'a [Head],
    /// c_ij, then d_j given i.
    pub pairs: [&'a [i32]; 2],
    /// e and d_k given i and j.
    pub triples: &'a [Link],
    pub max_active: usize,
}

impl<'a> Factors<'a> {
    /// What is in memory.
    pub fn new(memory: &'a [i32], selected: usize, max_active: usize) -> Self {
        let (heads, rest) = memory.split_at_checked(4 * selected).unwrap_or_default();
        let (c, rest) = rest.split_at_checked(pairs(selected)).unwrap_or_default();
        let (d, rest) = rest.split_at_checked(pairs(selected)).unwrap_or_default();
        Self { heads: heads.as_chunks().0, pairs: [c, d], triples: rest.as_chunks().0, max_active }
    }
}

/// Factors of all states of the latents of `order`, into memory; nothing if one of them is out of proportion.
#[inline(never)]
pub(super) fn factorize<T: Real>(
    model: &Model<'_, T>,
    order: &[u16],
    memory: &mut [i32],
    max_active: usize,
) -> Option<()> {
    let (s, count) = (order.len(), if max_active > 1 { pairs(order.len()) } else { 0 });
    let (heads, rest) = memory.split_at_mut_checked(4 * s)?;
    let (c, rest) = rest.split_at_mut_checked(count)?;
    let (mut d, rest) = rest.split_at_mut_checked(count)?;
    let mut triples = if max_active > 2 { rest.as_chunks_mut().0 } else { &mut [] }.iter_mut();

    let mut least = [0; MAX_SELECTED];
    for ((slot, least), &latent) in heads.as_chunks_mut().0.iter_mut().zip(&mut least).zip(order) {
        (*slot, *least) = head(model, usize::from(latent))?;
    }
    let heads = &*heads.as_chunks().0;
    let mut entries = c.iter_mut();
    for ((i, &latent), head) in order.iter().enumerate().zip(heads) {
        for (&later, other) in order.iter().zip(heads).skip(i + 1) {
            let gram = Scaled::new(gram_entry(model, usize::from(later), usize::from(latent)));
            *entries.next()? = gram.times(scale(head)).times(scale(other)).to_fixed(31);
        }
    }

    let mut rest = &*c;
    let mut pivots = [0; MAX_SELECTED];
    for i in 1..=s {
        let Some((with_i, after)) = rest.split_at_checked(s - i) else { break };
        rest = after;
        for ((pivot, least), &c_ij) in pivots.iter_mut().zip(least.iter().skip(i)).zip(with_i) {
            *pivot = (ONE - mul_high(c_ij, c_ij)).max(*least);
        }
        let mut later = after;
        for (j, (&c_ij, &pivot)) in with_i.iter().zip(&pivots).enumerate() {
            let slot;
            (slot, d) = d.split_first_mut()?;
            let d_j = inverse_root_of(pivot);
            *slot = d_j;
            let (with_j, after) = later.split_at_checked(s - i - j - 1).unwrap_or_default();
            later = after;
            if max_active < 3 {
                continue;
            }
            let given = with_i.iter().zip(&pivots).skip(j + 1).zip(least.iter().skip(i + j + 1));
            for (&c_jk, ((&c_ik, &pivot), &least)) in with_j.iter().zip(given) {
                let cross = (c_jk >> 1) - mul_high(c_ij, c_ik);
                // At most one, but for rounding.
                let most = (ONE - 1) >> shift_of(d_j);
                let e = mul_high(cross, d_j).clamp(-most, most) << (shift_of(d_j) + 1);
                let d_k = inverse_root_of((pivot - mul_high(e, e)).max(least));
                *triples.next()? = [e, d_k];
            }
        }
    }
    Some(())
}
