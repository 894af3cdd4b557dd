//! Factors of all states of a block: what no sample shows in.

use super::MAX_ACTIVE;
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

/// The rows of all states of a block, in the order of the walk; there is room for them.
pub(super) fn factorize<T: Real>(block: &Block<'_, T>, mut rows: &mut [T], max_active: usize) -> Option<()> {
    // G from the diagonal on: what stands right of it belongs to later latents.
    let (mut slab_i, mut from_i) = (&*block.slab, &*block.gram);
    let below = block.len() + 1;
    while let Some((&[_, precision, ..], after_i)) = slab_i.split_first()
        && let Some((&gram, mut with_i)) = from_i.split_first()
    {
        from_i = from_i.get(below..).unwrap_or(&[]);
        let variance_i = T::ONE / (gram + precision);
        let alone;
        (alone, rows) = rows.split_first_mut()?;
        *alone = variance_i.sqrt();
        let (mut slab_j, mut from_j) = (after_i, from_i);
        while max_active > 1
            && let Some((&[_, precision, ..], after_j)) = slab_j.split_first()
            && let Some((&gram, with_j)) = from_j.split_first()
        {
            let (&cross_ij, with_ik) = with_i.split_first()?;
            let mut with = with_ik.iter().zip(with_j);
            from_j = from_j.get(below..).unwrap_or(&[]);
            let ratio_ij = cross_ij * variance_i;
            let left = (gram - cross_ij * ratio_ij).max(T::ZERO);
            let variance_j = T::ONE / (left + precision);
            let deviation = variance_j.sqrt();
            let pair;
            (pair, rows) = rows.split_first_chunk_mut()?;
            *pair = [-(ratio_ij * deviation), deviation];
            let mut from_k = from_j;
            for &[_, precision, ..] in if max_active > 2 { after_j } else { &[] } {
                let (&cross_ik, &gram_jk) = with.next()?;
                let &gram = from_k.first()?;
                from_k = from_k.get(below..).unwrap_or(&[]);
                let cross = gram_jk - ratio_ij * cross_ik;
                let (ratio_ik, ratio_jk) = (cross_ik * variance_i, cross * variance_j);
                let left = (gram - cross_ik * ratio_ik - cross * ratio_jk).max(T::ZERO);
                let deviation = (T::ONE / (left + precision)).sqrt();
                let triple;
                (triple, rows) = rows.split_first_chunk_mut()?;
                *triple = [(ratio_ij * ratio_jk - ratio_ik) * deviation, -(ratio_jk * deviation), deviation];
            }
            (slab_j, with_i) = (after_j, with_ik);
        }
        slab_i = after_i;
    }
    Some(())
}
