//! The states with a single latent on, of the latents that were not selected: too many to walk, and in
//! no need of it.

use crate::features::has_slab;
use crate::math::Real;
use crate::model::Model;
use crate::posterior::Sums;
use crate::select::given;
use crate::slices::set;

/// The singleton states of the latents that were not selected.
pub(crate) struct Outside<'x, T> {
    pub model: &'x Model<'x, T>,
    /// The selected latents, which the walk takes care of.
    pub selected: &'x [u16],
}

impl<T: Real> Outside<'_, T> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.model.shape.singletons || self.selected.len() == self.model.shape.latents
    }

    /// Scores to log joints relative to the empty state (or what the scores are relative to), in place; returns the
    /// largest of them and of `known`.
    pub fn log_joints(&self, scores: &mut [T], known: T) -> T {
        if self.is_empty() {
            return known;
        }
        // As if they could not be: no loop has to ask which latents were selected.
        for &latent in self.selected {
            set(scores, usize::from(latent), T::IMPOSSIBLE);
        }
        let mut largest = known;
        for (score, &logit) in scores.iter_mut().zip(self.model.prior_logit) {
            *score += logit;
            largest = largest.max(*score);
        }
        largest
    }

    /// Log joints to weights, in place, added to the sums; `base` is what they are relative to.
    /// Returns the latent whose singleton is the most probable state of all, if one is.
    pub fn add(&self, activity: &mut [T], base: T, sums: &mut Sums<'_, '_, T>) -> Option<u16> {
        let (base, floor) = (base - sums.anchor(), sums.floor() - sums.anchor());
        let (mut mass, mut largest, mut best) = (T::ZERO, sums.best_weight(), None);
        for (latent, activity) in (0u16..).zip(activity.iter_mut()) {
            let exponent = base + *activity;
            *activity = T::ZERO;
            // NaN goes on: it must reach the total and be reported.
            if exponent < floor {
                continue;
            }
            let weight = exponent.exp_in_range();
            *activity = weight;
            mass += weight;
            if weight > largest {
                (largest, best) = (weight, Some(latent));
            }
        }
        sums.take_outside(mass, largest);
        best
    }

    /// Weights to moments.
    pub fn moments(
        &self,
        projection: &[T],
        activity: &mut [T],
        mean: &mut [T],
        variance: &mut [T],
        scale: T,
    ) {
        let outputs = activity.iter_mut().zip(mean).zip(variance);
        if !has_slab(self.model.shape.kind) {
            for ((activity, mean), variance) in outputs {
                let a = *activity * scale;
                (*activity, *mean, *variance) = (a, a, a * (T::ONE - a));
            }
            return;
        }
        for (((activity, mean), variance), given) in outputs.zip(given(self.model, projection)) {
            (*mean, *variance) = (T::ZERO, T::ZERO);
            // Most latents are as good as off.
            if *activity != T::ZERO {
                let state = given.singleton();
                let a = *activity * scale;
                *activity = a;
                *mean = a * state.mean;
                *variance = a * state.variance + a * (T::ONE - a) * state.mean * state.mean;
            }
        }
    }
}
