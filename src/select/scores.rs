//! Scores that each latent gets alone, for the papers' sets of states.
//!
//! Work per latent: about five multiply-adds and a division ([`Selection::Singleton`]; one without a slab), one
//! ([`Selection::Cosine`]), D ([`Selection::Learned`]), 2 D ([`Selection::Bound`]) or 3 D ([`Selection::Independent`]).

use crate::counts::Count;
use crate::features::{BOUND, COSINE, INDEPENDENT};
use crate::kinds::{Family, gsc, mca};
use crate::model::{Model, Noise, PANEL, Selection, float_column, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::at;
use crate::project::kernel::project;

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
        Selection::Bound if BOUND => bound(model, sample, scores),
        Selection::Learned { weights } => learned(weights, sample, scores),
        // The singletons'; the model's checks let no other come here.
        _ => singleton_scores(model, sample, projection, scores),
    }
}

/// M_h . y of all latents.
pub(crate) fn learned<T: Real>(weights: &[T], sample: &[T], scores: &mut [T]) {
    Count::Floats.add(sample.len() * scores.len().next_multiple_of(PANEL));
    Count::Panels.add(scores.len().div_ceil(PANEL));
    project(weights, sample, scores);
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

/// -1/2 sum_d max(W_dh - y_d, 0)^2 a_d [002, the upper bound for W >= 0].
fn bound<T: Real>(model: &Model<'_, T>, sample: &[T], scores: &mut [T]) {
    Count::BoundDims.add(model.shape.dims * scores.len());
    // Full noise does not go with this score, which the model's checks ensure.
    let (shared, precisions) = match model.noise {
        Noise::Shared(precision) => (precision, [].as_slice()),
        Noise::Diagonal(precisions) | Noise::Full(precisions) => (T::ONE, precisions),
    };
    for (latent, score) in scores.iter_mut().enumerate() {
        let mut sum = T::ZERO;
        for (d, (w, &y)) in model.column(latent).zip(sample).enumerate() {
            let above = T::ZERO.max(w - y);
            sum += above * above * precisions.get(d).copied().unwrap_or(T::ONE);
        }
        *score = -(T::HALF * sum) * shared;
    }
}

/// -1/2 sum_d (y_d - W_dh mu_h)^2 a_dh [003 eq. 10, corrected factor]; mu is 1 where there is no slab.
fn independent<T: Real>(model: &Model<'_, T>, sample: &[T], precision: &[T], scores: &mut [T]) {
    Count::IndependentDims.add(sample.len() * scores.len());
    for (latent, score) in scores.iter_mut().enumerate() {
        let mean = model.slab_mean.get(latent).copied().unwrap_or(T::ONE);
        let precisions = float_column(precision, sample.len(), latent);
        let mut sum = T::ZERO;
        with_column!(model, latent, |column| {
            for ((w, a), &y) in column.zip(precisions).zip(sample) {
                let miss = y - w * mean;
                sum += miss * miss * a;
            }
        });
        *score = -(T::HALF * sum);
    }
}
