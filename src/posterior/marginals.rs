//! What is reported: activity, mean and variance of each candidate, and the best state.

use super::Sums;
use crate::counts::Count;
use crate::features::DETAIL;
use crate::kinds::Family;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::{exchange, span};
use crate::states::tableau::Latents;

/// Where results go. (H each)
pub(crate) struct Results<'x, T> {
    pub activity: &'x mut [T],
    pub mean: &'x mut [T],
    pub variance: &'x mut [T],
}

impl<T: Real> Sums<'_, T> {
    /// Reports the candidates, and sorts the latents of the best state. Returns zero, or NaN if a result is not finite.
    pub fn conclude(
        &mut self,
        latents: &Latents,
        candidates: &[Candidate<T>],
        family: Family,
        results: Results<'_, T>,
    ) -> T {
        Count::Reported.add(latents.len());
        let Results { activity, mean, variance } = results;
        let scale = self.scale();
        // Zero times infinity or NaN is NaN.
        let mut sound = scale * T::ZERO;
        let mut reference = self.reference;
        for (&latent, candidate) in latents.iter().zip(candidates) {
            let h = usize::from(latent);
            let (apart, others) = (candidate.apart, self.total - candidate.apart);
            let (on, off) = if reference & 1 != 0 { (others, apart) } else { (apart, others) };
            reference >>= 1;
            let marginal = marginal(candidate, (on, off), family == Family::Slab, scale);
            if let (Some(activity), Some(mean), Some(variance)) =
                (activity.get_mut(h), mean.get_mut(h), variance.get_mut(h))
            {
                (*activity, *mean, *variance) = (marginal.activity, marginal.mean, marginal.variance);
            }
            sound += (marginal.mean + marginal.variance) * T::ZERO;
        }
        if DETAIL {
            self.second.iter_mut().for_each(|sum| *sum *= scale);
        }
        for end in (1..self.map.len()).rev() {
            for i in 0..end {
                if self.map.get(i) > self.map.get(i + 1) {
                    exchange(self.map, i, i + 1);
                    exchange(self.map_values, i, i + 1);
                }
            }
        }
        for &value in span(self.map_values, 0, self.map.len()) {
            sound += value * T::ZERO;
        }
        sound
    }
}

/// What the states say about one latent.
pub(crate) struct Marginal<T> {
    pub activity: T,
    pub mean: T,
    pub variance: T,
}

/// From sums, and those of the states that have it on and off; `scale` is one over that of all weights.
#[inline(always)]
pub(crate) fn marginal<T: Real>(
    candidate: &Candidate<T>,
    (on, off): (T, T),
    has_slab: bool,
    scale: T,
) -> Marginal<T> {
    let (activity, off) = (on * scale, off * scale);
    if !has_slab {
        return Marginal { activity, mean: activity, variance: activity * off };
    }
    let (first, square) = (candidate.first * scale, candidate.square * scale);
    let mean = activity * candidate.reference + first;
    if !(activity > T::ZERO) {
        return Marginal { activity, mean, variance: T::ZERO };
    }
    let within = T::ZERO.max(square - first * (first / activity));
    Marginal { activity, mean, variance: within + mean * (mean / activity) * off }
}
