//! Sums over draws.

use crate::features::DETAIL;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::set;
use crate::posterior::{Results, marginal};
use crate::states::tableau::Latents;

/// Sums over the draws that count; by candidate they are in [`Candidate`].
pub(super) struct Tally<'x, T> {
    total: T,
    /// (n x n, or empty)
    second: &'x mut [T],
}

impl<'x, T: Real> Tally<'x, T> {
    /// No draws yet.
    pub fn new(second: &'x mut [T]) -> Self {
        if DETAIL {
            second.fill(T::ZERO);
        }
        Self { total: T::ZERO, second }
    }

    /// Whether products of latents are asked for.
    pub fn has_second(&self) -> bool {
        DETAIL && !self.second.is_empty()
    }

    /// A draw counts.
    pub fn count_draw(&mut self) {
        self.total += T::ONE;
    }

    /// Adds one latent of a draw, or its conditional: the probabilities that it is on and off, its value about the
    /// reference where it is on, and the square of that.
    pub fn add_latent(candidate: Option<&mut Candidate<T>>, [on, off]: [T; 2], first: T, square: T) {
        if let Some(candidate) = candidate {
            candidate.on += on;
            candidate.off += off;
            candidate.first += first;
            candidate.square += square;
        }
    }

    /// Adds the products of a draw's values, most of which are zero.
    pub fn add_products(&mut self, values: &[T]) {
        let rows = self.second.chunks_exact_mut(values.len().max(1));
        for (row, &x) in rows.zip(values) {
            if x != T::ZERO {
                row.iter_mut().zip(values).for_each(|(sum, &other)| *sum += x * other);
            }
        }
    }

    /// What the draws say about every latent; returns the weight of one, and zero unless a result is not finite.
    pub fn conclude(
        self,
        latents: &Latents,
        candidates: &[Candidate<T>],
        has_slab: bool,
        results: Results<'_, T>,
    ) -> (T, T) {
        let Results { activity, mean, variance } = results;
        let scale = T::ONE / self.total;
        // Zero times what is not finite is not zero.
        let mut sound = scale * T::ZERO;
        for values in [&mut *activity, &mut *mean, &mut *variance] {
            values.fill(T::ZERO);
        }
        for (&latent, candidate) in latents.iter().zip(candidates) {
            let (h, found) =
                (usize::from(latent), marginal(candidate, (candidate.on, candidate.off), has_slab, scale));
            set(activity, h, found.activity);
            set(mean, h, found.mean);
            set(variance, h, found.variance);
            sound += (found.mean + found.variance) * T::ZERO;
        }
        if DETAIL {
            self.second.iter_mut().for_each(|sum| *sum *= scale);
        }
        (scale, sound)
    }
}
