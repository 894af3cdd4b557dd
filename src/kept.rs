//! Quiet samples of models with few states: factors are kept as long as the same latents are selected, as in streams, which
//! repeat themselves, and always where all latents are.
//!
//! With M = G_AA + diag(K) for the latents A that are on, a state's factor is its parent's and one more row, the last of
//! L^-1 (L L^T = M). No sample shows in it. So a sample only needs, with v = b + K mu and t = row . v_A,
//!
//! ```text
//! ln p(y, s) = ln p(y, parent) + l_h - 1/2 K mu^2 + ln(sqrt(K) row_h) + t^2 / 2
//! kappa = kappa(parent) + t row        Lambda = Lambda(parent) + row row^T
//! ```
//!
//! On the way up, sums over a subtree are about the coefficients of its root: of weights W, of x's difference f and of
//! its square f2. With p = w t and q = w (1 + t^2), a state that nothing is added to gives p row and q row^2; seen from the
//! parent of a root, differences d = t row larger, these become f + d W and f2 + 2 d f + (d^2 + row^2) W.
//!
//! Work per state of k latents: 6 k + 8 multiply-adds and an exponential; the factors about 10 more and a division when
//! other latents are selected. Up to three latents on, [`MAX_ACTIVE`]. Loud samples ([`crate::reference`]) and narrow slabs,
//! whose 1/2 K mu^2 would drown everything else, go the general way ([`crate::grown`]); so do states too many for the
//! memory that the general way has anyway.

mod walk;

use crate::arena::Arena;
use crate::block::Block;
use crate::conclude::{Results, conclude};
use crate::features::DETAIL;
use crate::found::Found;
use crate::map::best_values;
use crate::math::Real;
use crate::model::{Model, Shape, States};
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::select::singleton_of;
use crate::slices::at;
use walk::walk;

/// Most latents on at once.
const MAX_ACTIVE: usize = 3;
/// Nats that a slab's mean may be worth, 1/2 K mu^2: a rounding error of 64 is still far from a change.
const MAX_PULL: f64 = 64.0;
/// Nats that being on may be worth.
const MAX_LOGIT: f64 = 5.0;
/// Nats that states may exceed the anchor by, their priors aside: no product with their weights overflows.
const ROOM: f64 = 50.0;
/// Nats that the best state known may fall short of it: no sum underflows.
const DEPTH: f64 = 40.0;

/// A latent: v, l - 1/2 K mu^2, sqrt(K), and the sums of s, x and x^2 over the states that have it on.
type Latent<T> = [T; 6];

/// Numbers kept for a shape, its latents and the rows of its states; zero if its factors are not kept.
pub(crate) const fn kept_len(selected: usize, max_active: usize) -> usize {
    let s = selected;
    let pairs = s * s.saturating_sub(1) / 2;
    let triples = pairs * s.saturating_sub(2) / 3;
    match max_active {
        1 => 7 * s,
        2 => 7 * s + 2 * pairs,
        3 => 7 * s + 2 * pairs + 3 * triples,
        _ => 0,
    }
}

/// The posterior of the sample in `arena`, whose largest log joint outside the block is known; false, and nothing done
/// but to kept factors, where only the general way leads to it.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    largest_outside: T,
) -> bool {
    let Shape { selected, max_active, .. } = model.shape;
    // No state explains more than there is.
    let most = T::HALF * found.energy;
    let has_detail = DETAIL && !arena.sums.second.is_empty();
    if has_detail
        || max_active > MAX_ACTIVE
        || !(most <= T::REFINE_ABOVE)
        || !matches!(model.states, States::Grown)
    {
        return false;
    }
    let Some(kept) = arena.walk.get_mut(..kept_len(selected, max_active)) else { return false };
    let Some((latents, rows)) = kept.split_at_mut_checked(6 * selected) else { return false };
    let latents = latents.as_chunks_mut().0;

    // The latent that was selected first is the best by itself, or nearly.
    let first = usize::from(found.selected.first().copied().unwrap_or_default());
    let alone = singleton_of(model, arena.projection, first).score + at(model.prior_logit, first);
    let known = largest_outside.max(alone).max(T::ZERO);
    let anchor = known.max(most - T::from_f64(ROOM));
    if !(anchor - known <= T::from_f64(DEPTH)) {
        return false;
    }

    found.order_ascending();
    let mut block;
    if found.order == found.kept {
        block = Block::restore(&mut found.order, arena.block.reborrow());
        block.see(arena.projection);
    } else {
        found.kept.clear();
        if !found.order.iter().all(|&latent| is_tame(model, usize::from(latent))) {
            return false;
        }
        block = Block::gather(model, &mut found.order, arena.projection, arena.block.reborrow());
        if factorize(&block, latents, rows, max_active).is_none() {
            return false; // there is room: the memory was cut for this shape
        }
        found.kept.clone_from(block.order);
    }
    for ((latent, &[_, _, _, pull, _]), &b) in latents.iter_mut().zip(&*block.slab).zip(&*block.b) {
        let [_, offset, root, ..] = *latent;
        *latent = [b + pull, offset, root, T::ZERO, T::ZERO, T::ZERO];
    }
    let (state_bits, memory) = (model.shape.state_bits(), arena.sums.reborrow());
    let mut sums = Sums::to_be_taken(&block, anchor, state_bits, memory, &mut found.map);
    sums.know(known);
    walk(latents, rows, max_active, &mut sums);
    best_values(model, &block, sums.best_path(), &mut arena.work, arena.map_values);
    if !block.is_well_referred(sums.best_path(), arena.map_values) {
        return false;
    }
    let Arena { projection, activity, mean, variance, .. } = arena;
    let outside = Outside { model, selected: &found.selected };
    let results = Results { projection, activity, mean, variance };
    let conclusion = conclude(&outside, T::ZERO, &block, &mut sums, results);
    found.settle(model, arena.projection, arena.map_values, found.energy, conclusion);
    true
}

/// Whether nothing about a latent is out of proportion: its slab is wide enough for its mean, and it is no more often on
/// than off by far.
fn is_tame<T: Real>(model: &Model<'_, T>, latent: usize) -> bool {
    let (mean, logit) = (at(model.slab_mean, latent), at(model.prior_logit, latent));
    T::HALF * mean * mean * at(model.slab_precision, latent) <= T::from_f64(MAX_PULL)
        && logit <= T::from_f64(MAX_LOGIT)
}

/// The factors of all states of a block, in the order of the walk.
fn factorize<T: Real>(
    block: &Block<'_, T>,
    latents: &mut [Latent<T>],
    mut rows: &mut [T],
    max_active: usize,
) -> Option<()> {
    let diagonal = block.diagonal();
    for ((latent, &[mean, precision, logit, pull, root]), &gram) in
        latents.iter_mut().zip(&*block.slab).zip(diagonal)
    {
        // The first and the fourth are not needed yet: what the factors are made of stands there.
        *latent = [gram, logit - T::HALF * pull * mean, root, precision, T::ZERO, T::ZERO];
    }
    // G from the diagonal on: what stands right of it belongs to later latents.
    let (mut rest_i, mut from_i) = (&*latents, &*block.gram);
    let below = block.len() + 1;
    while let Some((&[gram, _, _, precision, ..], after_i)) = rest_i.split_first() {
        let mut with_i = from_i.get(1..)?;
        from_i = from_i.get(below..).unwrap_or(&[]);
        let variance_i = T::ONE / (gram + precision);
        let alone;
        (alone, rows) = rows.split_first_mut()?;
        *alone = variance_i.sqrt();
        let (mut rest_j, mut from_j) = (after_i, from_i);
        while max_active > 1
            && let Some((&[gram, _, _, precision, ..], after_j)) = rest_j.split_first()
        {
            let (&cross_ij, with_ik) = with_i.split_first()?;
            let mut with = with_ik.iter().zip(from_j.get(1..)?);
            from_j = from_j.get(below..).unwrap_or(&[]);
            let ratio_ij = cross_ij * variance_i;
            let left = (gram - cross_ij * ratio_ij).max(T::ZERO);
            let variance_j = T::ONE / (left + precision);
            let deviation = variance_j.sqrt();
            let pair;
            (pair, rows) = rows.split_first_chunk_mut()?;
            *pair = [-(ratio_ij * deviation), deviation];
            for &[gram, _, _, precision, ..] in if max_active > 2 { after_j } else { &[] } {
                let (&cross_ik, &gram_jk) = with.next()?;
                let cross = gram_jk - ratio_ij * cross_ik;
                let (ratio_ik, ratio_jk) = (cross_ik * variance_i, cross * variance_j);
                let left = (gram - cross_ik * ratio_ik - cross * ratio_jk).max(T::ZERO);
                let deviation = (T::ONE / (left + precision)).sqrt();
                let triple;
                (triple, rows) = rows.split_first_chunk_mut()?;
                *triple = [(ratio_ij * ratio_jk - ratio_ik) * deviation, -(ratio_jk * deviation), deviation];
            }
            (rest_j, with_i) = (after_j, with_ik);
        }
        rest_i = after_i;
    }
    Some(())
}
