//! The climb: the best flip, again and again, until no flip gains.

use super::Tableau;
use crate::capacity::MAX_SELECTED;
use crate::counts::Count;
use crate::kinds::Family;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::span;

/// Nats that a flip must gain for a climb to take it, more than the error of the rough logarithm.
pub(crate) const MARGIN: f64 = 0.03;

impl<T: Real> Tableau<'_, T> {
    /// [`Tableau::climb`]; for a loud sample once more with refined numbers.
    pub fn settle(&mut self, max_active: usize) {
        self.climb(max_active);
        if self.is_loud {
            self.settle_loud(max_active);
        }
    }

    /// Flips whatever gains most until nothing does, with at most `max_active` on.
    pub fn climb(&mut self, max_active: usize) {
        // Every step gains more than rounding errors, so the climb ends; the bound is for NaN.
        for _ in 0..4 * MAX_SELECTED {
            match self.best_flip(self.count < max_active) {
                Some(best) => self.flip(best),
                None => {
                    let Some((off, on)) = self.best_swap() else { return };
                    self.flip(on);
                    self.flip(off);
                }
            }
        }
    }

    /// The flip that gains most, if any does; latents turn on only where there is room.
    #[inline(never)]
    fn best_flip(&mut self, has_room: bool) -> Option<usize> {
        let family = self.family();
        match family {
            Family::Maximal => self.evaluate(),
            Family::Slab | Family::Binary => self.count_flips(self.len()),
        }
        let candidates = span(self.candidates, 0, self.len()).iter().enumerate();
        let (mut best, mut most) = (None, T::from_f64(MARGIN));
        if family == Family::Slab {
            for (i, candidate) in candidates {
                let is_on = candidate.sign < T::ZERO;
                let flip = match is_on {
                    true => candidate.turn_off(candidate.place()),
                    false => candidate.turn_on(candidate.place()),
                };
                // Determinants only take from what turning on gains.
                if is_on || has_room && flip.exponent > most && self.may_flip(i) {
                    let gain = flip.exponent + T::HALF * flip.ratio.ln_rough();
                    if gain > most {
                        (best, most) = (Some(i), gain);
                    }
                }
            }
            return best;
        }
        for (i, candidate) in candidates {
            let gain = candidate.flip(candidate.place(), family).exponent;
            if gain > most && (has_room || candidate.sign < T::ZERO) {
                (best, most) = (Some(i), gain);
            }
        }
        best
    }

    /// The latent to turn off and the one to turn on that together gain most, if any do: where no single flip gains, one latent may
    /// stand in for another. Only where coefficients cannot share what there is to explain: without a slab.
    pub(super) fn best_swap(&mut self) -> Option<(usize, usize)> {
        if self.family() != Family::Binary {
            return None;
        }
        let (n, mut best, mut most) = (self.len(), None, T::from_f64(MARGIN));
        for i in 0..n {
            let Some(&own) = self.candidates.get(i) else { break };
            if own.sign > T::ZERO {
                continue;
            }
            let exponent =
                |candidate: &Candidate<T>| candidate.flip(candidate.place(), Family::Binary).exponent;
            let gained = exponent(&own);
            Count::Swaps.add(n);
            let candidates = span(self.candidates, 0, n).iter().zip(self.row(i));
            for (j, (other, &g)) in candidates.enumerate() {
                // With i off, j sees G_ij more.
                let gain = gained + exponent(other) + g;
                if other.sign > T::ZERO && gain > most {
                    (best, most) = (Some((i, j)), gain);
                }
            }
        }
        best
    }
}
