//! The states with a single latent on, of the latents that are no candidates: too many to walk, and in no need of it.

use super::{Results, Sums};
use crate::counts::Count;
use crate::features::SUBSETS;
use crate::kinds::{Family, gsc};
use crate::memory::Candidate;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set};

/// The singleton states of all latents that are no candidates.
pub(crate) struct Outside<'x, T> {
    pub model: &'x Model<'x, T>,
    /// b. (H)
    pub projection: &'x [T],
    pub candidates: &'x [u16],
}

impl<T: Real> Outside<'_, T> {
    /// Adds them; `scores` are their log joints relative to `base`, without the prior. Leaves what is reported about them in
    /// the results, and zeros for the candidates.
    pub fn add(
        &self,
        base: T,
        sums: &mut Sums<'_, T>,
        candidates: &mut [Candidate<T>],
        results: &mut Results<'_, T>,
    ) {
        let shape = &self.model.shape;
        if !SUBSETS || !shape.singletons || self.candidates.len() == shape.latents {
            for values in [&mut *results.activity, results.mean, results.variance] {
                values.fill(T::ZERO);
            }
            return;
        }
        Count::Outside.add(shape.latents);
        for &latent in self.candidates {
            set(results.activity, usize::from(latent), T::IMPOSSIBLE);
        }
        let mut base = base - sums.anchor();
        let logits = self.model.prior_logit;
        let scores = results.activity.iter().zip(logits).map(|(&score, &logit)| base + score + logit);
        let highest = scores.fold(T::ZERO, T::max);
        if highest > T::HEADROOM {
            sums.lift(candidates, highest);
            base -= highest;
        }
        let (mut mass, mut largest, mut best) = (T::ZERO, sums.best_weight, None);
        for (h, score) in results.activity.iter_mut().enumerate() {
            let log_joint = base + *score + at(logits, h);
            let weight = if log_joint < T::NEGLIGIBLE { T::ZERO } else { log_joint.exp() };
            *score = weight;
            mass += weight;
            if weight > largest {
                (largest, best) = (weight, Some(h));
            }
        }
        let best = best.map(|h| (h as u16, self.moments(h).0, largest));
        sums.take_outside(candidates, mass, best);
        let scale = sums.scale();
        for h in 0..shape.latents {
            let a = at(results.activity, h) * scale;
            // Most latents are as good as off.
            Count::OutsideWeights.add(usize::from(a != T::ZERO));
            let (mean, variance) = if a != T::ZERO { self.moments(h) } else { (T::ZERO, T::ZERO) };
            set(results.activity, h, a);
            set(results.mean, h, a * mean);
            set(results.variance, h, a * variance + a * (T::ONE - a) * mean * mean);
        }
    }

    /// Mean and variance of a latent that is on alone.
    fn moments(&self, h: usize) -> (T, T) {
        match self.model.shape.kind.family() {
            Family::Slab => {
                let (mean, precision) = (at(self.model.slab_mean, h), at(self.model.slab_precision, h));
                let prior = gsc::Prior { logit: T::ZERO, mean, precision };
                let gram = at(self.model.gram_diagonal, h);
                let flip = gsc::turn_on(prior, gram, at(self.projection, h));
                (flip.value, T::ONE / (gram + precision))
            }
            Family::Binary | Family::Maximal => (T::ONE, T::ZERO),
        }
    }
}
