//! Going back to a state: copies of the tableau, and rebuilding it for the same candidates.

use super::Tableau;
use crate::counts::Count;
use crate::memory::{Candidate, Kept};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, span, span_mut};
use crate::numeric::words::{Record, records_mut};

impl<T: Real> Tableau<'_, T> {
    /// Rebuilds the tableau of the same candidates, all off, and keeps their sums; `projection` is b.
    pub fn rebuild(&mut self, base: T, projection: &[T]) {
        let latents = self.latents.clone();
        self.clear(base);
        for (i, &latent) in latents.iter().enumerate() {
            let kept = self.candidates.get(i).copied().unwrap_or(Candidate::ZERO);
            self.append(latent, at(projection, usize::from(latent)));
            if let Some(candidate) = self.candidates.get_mut(i) {
                let Candidate { reference, on, off, first, square, .. } = kept;
                *candidate = Candidate { reference, on, off, first, square, ..*candidate };
            }
        }
    }

    /// The memory of level `level`: candidates, square, maxima.
    #[allow(clippy::type_complexity)]
    pub(super) fn level<'l>(
        &self,
        levels: &'l mut [T],
        level: usize,
    ) -> Option<(&'l mut [Kept<T>], &'l mut [T], &'l mut [T])> {
        let kept_len = self.candidates.len() * <Kept<T> as Record<T>>::LEN;
        let len = kept_len + self.square.len() + self.maxima.len();
        Count::Copied.add(4 * self.len() + self.used() + self.maxima.len());
        let (kept, rest) = levels.get_mut(level * len..(level + 1) * len)?.split_at_mut_checked(kept_len)?;
        let (square, maxima) = rest.split_at_mut_checked(self.square.len())?;
        Some((records_mut(kept), square, maxima))
    }

    /// Copies the state, to come back to it. The caller keeps its joint and which latents are on.
    pub fn keep(&self, levels: &mut [T], level: usize) {
        let Some((kept, square, maxima)) = self.level(levels, level) else { return };
        for (kept, candidate) in kept.iter_mut().zip(span(self.candidates, 0, self.len())) {
            let &Candidate { sign, diagonal, shrunk, seen, .. } = candidate;
            *kept = Kept { sign, diagonal, shrunk, seen };
        }
        copy(square, span(self.square, 0, self.used()));
        copy(maxima, self.maxima);
    }

    /// Goes back to a copied state.
    pub fn restore(&mut self, levels: &mut [T], level: usize) {
        let n = self.len();
        let Some((kept, square, maxima)) = self.level(levels, level) else { return };
        for (candidate, kept) in span_mut(self.candidates, 0, n).iter_mut().zip(kept) {
            let &mut Kept { sign, diagonal, shrunk, seen } = kept;
            (candidate.sign, candidate.diagonal) = (sign, diagonal);
            (candidate.shrunk, candidate.seen) = (shrunk, seen);
        }
        let used = self.used();
        copy(span_mut(self.square, 0, used), square);
        copy(self.maxima, maxima);
    }
}
