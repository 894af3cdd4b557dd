//! Factors of all states of a block: what no sample shows in.

use super::{Latent, MAX_ACTIVE};
use crate::block::Block;
use crate::math::Real;
use crate::model::Model;
use crate::slices::at;

/// Nats that a slab's mean may be worth, 1/2 K mu^2: a rounding error of 64 is still far from a change.
const MAX_PULL: f64 = 64.0;
/// Nats that being on may be worth.
const MAX_LOGIT: f64 = 5.0;

/// Numbers of the rows of all states.
pub(super) const fn rows_len(selected: usize, max_active: usize) -> usize {
    let s = selected;
    let pairs = s * s.saturating_sub(1) / 2;
    let triples = pairs * s.saturating_sub(2) / 3;
    match max_active {
        1 => s,
        2 => s + 2 * pairs,
        MAX_ACTIVE => s + 2 * pairs + 3 * triples,
        _ => 0,
    }
}

/// Whether nothing about a latent is out of proportion: its slab is wide enough for its mean, and it is no more often on
/// than off by far.
pub(super) fn is_tame<T: Real>(model: &Model<'_, T>, latent: usize) -> bool {
    let (mean, logit) = (at(model.slab_mean, latent), at(model.prior_logit, latent));
    T::HALF * mean * mean * at(model.slab_precision, latent) <= T::from_f64(MAX_PULL)
        && logit <= T::from_f64(MAX_LOGIT)
}

/// The rows of all states of a block, in the order of the walk; there is room for them. What is in the latents is lost.
#[inline(never)]
pub(super) fn factorize<T: Real>(
    block: &Block<'_, T>,
    latents: &mut [Latent<T>],
    mut rows: &mut [T],
    max_active: usize,
) -> Option<()> {
    for (latent, &[_, precision, ..]) in latents.iter_mut().zip(&*block.slab) {
        latent[0] = precision;
    }
    // G from the diagonal on: what stands right of it belongs to later latents.
    let (mut rest_i, mut from_i) = (latents, &*block.gram);
    let below = block.len() + 1;
    while let Some((&mut [precision, ..], after_i)) = rest_i.split_first_mut()
        && let Some((&gram, mut with_i)) = from_i.split_first()
    {
        from_i = from_i.get(below..).unwrap_or(&[]);
        let variance_i = T::ONE / (gram + precision);
        let alone;
        (alone, rows) = rows.split_first_mut()?;
        *alone = variance_i.sqrt();
        // What i leaves of the later latents: the cross with i, its ratio to i's pivot, G + K.
        let (mut given, mut diagonal) = (&mut *after_i, from_i);
        while let Some((latent, after)) = given.split_first_mut()
            && let Some((&cross, with_after)) = with_i.split_first()
            && let Some(&gram) = diagonal.first()
        {
            let [precision, cross_i, ratio_i, pivot, ..] = latent;
            (*cross_i, *ratio_i) = (cross, cross * variance_i);
            *pivot = gram + *precision - cross * *ratio_i;
            (given, with_i) = (after, with_after);
            diagonal = diagonal.get(below..).unwrap_or(&[]);
        }
        let (mut rest_j, mut from_j) = (&*after_i, from_i);
        while max_active > 1
            && let Some((&[precision, _, ratio_ij, pivot, ..], after_j)) = rest_j.split_first()
            && let Some((_, with_j)) = from_j.split_first()
        {
            from_j = from_j.get(below..).unwrap_or(&[]);
            // G is positive semidefinite, so that a pivot is never below K; rounding may not make it so.
            let variance_j = T::ONE / pivot.max(precision);
            let deviation = variance_j.sqrt();
            let pair;
            (pair, rows) = rows.split_first_chunk_mut()?;
            *pair = [-(ratio_ij * deviation), deviation];
            let (mut rest_k, mut with_j) = (if max_active > 2 { after_j } else { &[] }, with_j.iter());
            while let Some((&[precision, cross_ik, ratio_ik, pivot, ..], after_k)) = rest_k.split_first() {
                let cross = *with_j.next()? - ratio_ij * cross_ik;
                let ratio_jk = cross * variance_j;
                let deviation = (T::ONE / (pivot - cross * ratio_jk).max(precision)).sqrt();
                let triple;
                (triple, rows) = rows.split_first_chunk_mut()?;
                *triple = [(ratio_ij * ratio_jk - ratio_ik) * deviation, -(ratio_jk * deviation), deviation];
                rest_k = after_k;
            }
            rest_j = after_j;
        }
        rest_i = after_i;
    }
    Some(())
}
