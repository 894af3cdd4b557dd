//! Preselection: one score per latent, and the H' best of them.
//!
//! Work per latent: about five multiply-adds and a division ([`Selection::Singleton`]; one without a slab), one
//! ([`Selection::Cosine`]), 2 D ([`Selection::Bound`]) or 3 D ([`Selection::Independent`]). Equal scores go to the lower
//! latent.

use crate::capacity::MAX_SELECTED;
use crate::features::{BOUND, COSINE, INDEPENDENT, has_slab};
use crate::kernel::panels;
use crate::math::Real;
use crate::model::{Dictionary, Integers, Model, Noise, PANEL, Selection, float_column};
use crate::slices::at;
use heapless::Vec;

/// The singleton state of latent h: all that one latent alone can say about the sample.
#[derive(Clone, Copy)]
pub(crate) struct Singleton<T> {
    /// Coefficient: posterior mean of z_h.
    pub mean: T,
    /// Posterior variance of z_h.
    pub variance: T,
    /// ln p(y | only h on) - ln p(y | nothing on) [000 eq. 25, b instead of a D x D Gaussian].
    pub score: T,
}

/// The state with this latent alone on; `offset` is -1/2 ln(M_hh psi_h^2).
pub(crate) fn singleton<T: Real>(b: T, mean: T, precision: T, gram: T, offset: T) -> Singleton<T> {
    let variance = T::ONE / (gram + precision);
    let pull = mean * precision;
    Singleton { mean: (b + pull) * variance, variance, score: gain(b, mean, pull, gram, variance) + offset }
}

/// Nats gained by switching on a latent that sees b in the residual, before the cost of doing so:
/// 1/2 v^2 / M - 1/2 K mu^2 with v = b + K mu and M = `gram` + K = 1 / `variance`, arranged so that
/// the large K mu^2 of a narrow slab never appears.
#[inline(always)]
pub(crate) fn gain<T: Real>(b: T, mean: T, pull: T, gram: T, variance: T) -> T {
    T::HALF * (b * b + pull * (b + b - gram * mean)) * variance
}

/// What the singleton state of a latent is made of.
#[derive(Clone, Copy)]
pub(crate) struct Given<T> {
    b: T,
    mean: T,
    precision: T,
    gram: T,
    offset: T,
}

impl<T: Real> Given<T> {
    #[inline(always)]
    pub fn singleton(self) -> Singleton<T> {
        singleton(self.b, self.mean, self.precision, self.gram, self.offset)
    }
}

/// The singleton states of all latents, in order, before they are computed.
#[inline(always)]
pub(crate) fn given<'x, T: Real>(
    model: &Model<'x, T>,
    projection: &'x [T],
) -> impl Iterator<Item = Given<T>> + use<'x, T> {
    let slab = model.slab_mean.iter().zip(model.slab_precision);
    let rest = model.gram_diagonal.iter().zip(model.score_offset);
    projection.iter().zip(slab).zip(rest).map(|((&b, (&mean, &precision)), (&gram, &offset))| Given {
        b,
        mean,
        precision,
        gram,
        offset,
    })
}

/// The singleton state of one latent.
pub(crate) fn singleton_of<T: Real>(model: &Model<'_, T>, projection: &[T], h: usize) -> Singleton<T> {
    let (b, mean, precision) = (at(projection, h), at(model.slab_mean, h), at(model.slab_precision, h));
    singleton(b, mean, precision, at(model.gram_diagonal, h), at(model.score_offset, h))
}

/// Scores of all latents into `scores`.
pub(crate) fn score<T: Real>(model: &Model<'_, T>, sample: &[T], projection: &[T], scores: &mut [T]) {
    match model.selection {
        Selection::Independent { precision, offset } if INDEPENDENT => {
            independent(model, sample, precision, scores);
            for (score, &offset) in scores.iter_mut().zip(offset) {
                *score += offset;
            }
        }
        Selection::Cosine { scale } if COSINE => {
            for ((score, &b), &scale) in scores.iter_mut().zip(projection).zip(scale) {
                *score = b * scale;
            }
        }
        Selection::Bound if BOUND => match model.noise {
            Noise::Shared(precision) => {
                bound(model, sample.iter().map(|&y| (y, T::ONE)), scores);
                scores.iter_mut().for_each(|score| *score *= precision);
            }
            // Full noise does not go with this score, which the model's checks ensure.
            Noise::Diagonal(precisions) | Noise::Full(precisions) => {
                bound(model, sample.iter().copied().zip(precisions.iter().copied()), scores);
            }
        },
        // The singletons'; the model's checks let no other come here.
        _ => singleton_scores(model, projection, scores),
    }
}

/// ln p(y | only h on) - ln p(y | nothing on) of all latents: b_h - G_hh / 2 without a slab.
pub(crate) fn singleton_scores<T: Real>(model: &Model<'_, T>, projection: &[T], scores: &mut [T]) {
    if has_slab(model.shape.kind) {
        for (score, given) in scores.iter_mut().zip(given(model, projection)) {
            *score = given.singleton().score;
        }
    } else {
        for ((score, &b), &gram) in scores.iter_mut().zip(projection).zip(model.gram_diagonal) {
            *score = b - T::HALF * gram;
        }
    }
}

/// -1/2 sum_d max(W_dh - y_d, 0)^2 a_d, panel by panel, from y_d and a_d [002, the upper bound for W >= 0].
#[inline(always)]
fn bound<T: Real>(model: &Model<'_, T>, dims: impl Iterator<Item = (T, T)> + Clone, scores: &mut [T]) {
    let packed = match model.dictionary.known() {
        Dictionary::Float(packed) => packed,
        Dictionary::Integer(integers) => return bound_of_integers(integers, dims, scores),
    };
    for (w, scores) in panels(packed, model.shape.dims).zip(scores.chunks_mut(PANEL)) {
        let mut sums = [T::ZERO; PANEL];
        for (w, (y, a)) in w.chunks_exact(PANEL).zip(dims.clone()) {
            for (sum, &w) in sums.iter_mut().zip(w) {
                let above = T::ZERO.max(w - y);
                *sum += above * above * a;
            }
        }
        for (score, sum) in scores.iter_mut().zip(sums) {
            *score = -(T::HALF * sum);
        }
    }
}

/// The same, latent by latent.
#[inline(never)]
fn bound_of_integers<T: Real>(
    integers: Integers<'_, T>,
    dims: impl Iterator<Item = (T, T)> + Clone,
    scores: &mut [T],
) {
    let count = dims.clone().count();
    for (latent, score) in scores.iter_mut().enumerate() {
        let mut sum = T::ZERO;
        for (w, (y, a)) in integers.column(count, latent).zip(dims.clone()) {
            let above = T::ZERO.max(w - y);
            sum += above * above * a;
        }
        *score = -(T::HALF * sum);
    }
}

/// -1/2 sum_d (y_d - W_dh mu_h)^2 a_dh, panel by panel [003 eq. 10, corrected factor].
fn independent<T: Real>(model: &Model<'_, T>, sample: &[T], precision: &[T], scores: &mut [T]) {
    let dims = sample.len();
    let packed = match model.dictionary.known() {
        Dictionary::Float(packed) => packed,
        Dictionary::Integer(_) => return independent_of_integers(model, sample, precision, scores),
    };
    let panels = panels(packed, dims).zip(panels(precision, dims));
    let outputs = scores.chunks_mut(PANEL).zip(model.slab_mean.chunks(PANEL));
    for ((w, a), (scores, mean)) in panels.zip(outputs) {
        let mut sums = [T::ZERO; PANEL];
        for ((w, a), &y) in w.chunks_exact(PANEL).zip(a.chunks_exact(PANEL)).zip(sample) {
            for (((sum, &w), &a), &mean) in sums.iter_mut().zip(w).zip(a).zip(mean) {
                let miss = y - w * mean;
                *sum += miss * miss * a;
            }
        }
        for (score, sum) in scores.iter_mut().zip(sums) {
            *score = -(T::HALF * sum);
        }
    }
}

/// The same, latent by latent.
#[inline(never)]
fn independent_of_integers<T: Real>(model: &Model<'_, T>, sample: &[T], precision: &[T], scores: &mut [T]) {
    let precisions = |latent| float_column(precision, sample.len(), latent);
    for (latent, (score, &mean)) in scores.iter_mut().zip(model.slab_mean).enumerate() {
        let mut sum = T::ZERO;
        for ((w, a), &y) in model.column(latent).zip(precisions(latent)).zip(sample) {
            let miss = y - w * mean;
            sum += miss * miss * a;
        }
        *score = -(T::HALF * sum);
    }
}

/// The `count` best latents, best first. `best` is scratch for their scores (`count` long).
pub(crate) fn top<T: Copy + Default + PartialOrd>(
    scores: &[T],
    count: usize,
    best: &mut [T],
    selected: &mut Vec<u16, MAX_SELECTED>,
) {
    selected.clear();
    let _ = selected.resize_default(count); // within the capacity: the model was checked
    let (mut found, mut least) = (0, T::default());
    for (latent, &score) in (0u16..).zip(scores) {
        if found < count {
            found += 1;
        } else if !(score > least) {
            continue;
        }
        let (Some(best), Some(selected)) = (best.get_mut(..found), selected.get_mut(..found)) else { return };
        // The newcomer takes the last place, and goes up past those that are lower.
        let mut places = best.iter_mut().zip(selected).rev();
        let Some(mut place) = places.next() else { return };
        for higher in places {
            if !(score > *higher.0) {
                break;
            }
            (*place.0, *place.1) = (*higher.0, *higher.1);
            place = higher;
        }
        (*place.0, *place.1) = (score, latent);
        least = best.last().copied().unwrap_or(score);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_keeps_order_and_gives_ties_to_the_lower_latent() {
        let scores = [1.0, 5.0, 5.0, -2.0, 7.0, 5.0];
        let mut selected = Vec::new();
        top(&scores, 3, &mut [0.0; 3], &mut selected);
        assert_eq!(selected, [4, 1, 2]);
        top(&scores, 6, &mut [0.0; 6], &mut selected);
        assert_eq!(selected, [4, 1, 2, 5, 0, 3]);
    }
}
