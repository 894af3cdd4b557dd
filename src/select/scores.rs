//! Scores that each latent gets alone, for the papers' sets of states.
//!
//! Work per latent: about five multiply-adds and a division ([`Selection::Singleton`]; one without a slab), one
//! ([`Selection::Cosine`]), D ([`Selection::Learned`]), 2 D ([`Selection::Bound`]) or 3 D ([`Selection::Independent`]).

use crate::counts::Count;
use crate::features::{BOUND, COSINE, INDEPENDENT};
use crate::kinds::{Family, gsc, mca};
use crate::model::{Dictionary, Integers, Model, Noise, PANEL, Selection, float_column, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::at;
use crate::project::kernel::{panels, project};

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
            Count::Scores.add(scores.len());
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
        Selection::Learned { weights } => {
            Count::Floats.add(sample.len() * scores.len().next_multiple_of(PANEL));
            Count::Panels.add(scores.len().div_ceil(PANEL));
            project(weights, sample, scores);
        }
        // The singletons'; the model's checks let no other come here.
        _ => singleton_scores(model, sample, projection, scores),
    }
}

/// ln p(y | only h on) - ln p(y | nothing on) of all latents [000 eq. 25].
pub(crate) fn singleton_scores<T: Real>(
    model: &Model<'_, T>,
    sample: &[T],
    projection: &[T],
    scores: &mut [T],
) {
    match model.shape.kind.family() {
        Family::Slab => Count::SlabScores.add(scores.len()),
        Family::Binary => Count::Scores.add(scores.len()),
        Family::Maximal => Count::ScoreDims.add(sample.len() * scores.len()),
    }
    for (h, (score, &b)) in scores.iter_mut().zip(projection).enumerate() {
        let gram = at(model.gram_diagonal, h);
        *score = match model.shape.kind.family() {
            Family::Slab => {
                let (mean, precision) = (at(model.slab_mean, h), at(model.slab_precision, h));
                let variance = T::ONE / (gram + precision);
                gsc::gain(b, gram, mean, precision * mean, variance) + at(model.score_offset, h)
            }
            Family::Binary => b - T::HALF * gram,
            // b - G / 2 would be a small difference of large numbers for a loud sample.
            Family::Maximal => {
                let mut sum = T::ZERO;
                with_column!(model, h, |column| {
                    for (d, (&y, w)) in sample.iter().zip(column).enumerate() {
                        sum += model.precision(d) * mca::gain(y, T::ZERO, w);
                    }
                });
                sum
            }
        };
    }
}

/// -1/2 sum_d max(W_dh - y_d, 0)^2 a_d, panel by panel, from y_d and a_d [002, the upper bound for W >= 0].
#[inline(always)]
fn bound<T: Real>(model: &Model<'_, T>, dims: impl Iterator<Item = (T, T)> + Clone, scores: &mut [T]) {
    Count::BoundDims.add(model.shape.dims * scores.len());
    let packed = match model.dictionary.known() {
        Dictionary::Float(packed) => packed,
        Dictionary::Integer(integers) => return bound_of_integers(integers, dims, scores),
    };
    for (w, scores) in panels(packed, model.shape.dims).zip(scores.chunks_mut(PANEL)) {
        let mut sums = [T::ZERO; PANEL];
        for (w, (y, a)) in w.as_chunks::<PANEL>().0.iter().zip(dims.clone()) {
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

/// -1/2 sum_d (y_d - W_dh mu_h)^2 a_dh, panel by panel [003 eq. 10, corrected factor]; mu is 1 where there is no slab.
fn independent<T: Real>(model: &Model<'_, T>, sample: &[T], precision: &[T], scores: &mut [T]) {
    let dims = sample.len();
    Count::IndependentDims.add(dims * scores.len());
    let packed = match model.dictionary.known() {
        Dictionary::Float(packed) => packed,
        Dictionary::Integer(_) => return independent_of_integers(model, sample, precision, scores),
    };
    let panels = panels(packed, dims).zip(panels(precision, dims));
    for (panel, ((w, a), scores)) in panels.zip(scores.chunks_mut(PANEL)).enumerate() {
        let mut means = [T::ONE; PANEL];
        means.iter_mut().zip(model.slab_mean.iter().skip(panel * PANEL)).for_each(|(to, &mean)| *to = mean);
        let mut sums = [T::ZERO; PANEL];
        for ((w, a), &y) in w.as_chunks::<PANEL>().0.iter().zip(a.as_chunks::<PANEL>().0).zip(sample) {
            for (((sum, &w), &a), &mean) in sums.iter_mut().zip(w).zip(a).zip(&means) {
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
    for (latent, score) in scores.iter_mut().enumerate() {
        let mean = model.slab_mean.get(latent).copied().unwrap_or(T::ONE);
        let mut sum = T::ZERO;
        for ((w, a), &y) in model.column(latent).zip(precisions(latent)).zip(sample) {
            let miss = y - w * mean;
            sum += miss * miss * a;
        }
        *score = -(T::HALF * sum);
    }
}
