//! Refinement: for a loud sample, t is a difference of large numbers, and is recomputed from the residual.

use super::{Joint, Tableau, ones};
use crate::counts::Count;
use crate::kinds::Family;
use crate::memory::Candidate;
use crate::model::with_column;
use crate::numeric::math::{Accurate, Real};
use crate::numeric::slices::{copy, span, span_mut};
use crate::project::{project_some, weigh_in_place};

/// Times a loud sample is refined before its states are looked at, at most.
pub(crate) const PASSES: usize = 3;

/// Flips by this much more than [`Real::REFINE_ABOVE`] lose digits that matter: rounding is relative to the flip, not to the
/// whole sample.
const FLIP_ABOVE: f64 = 16.0;

/// Above so many times [`Real::REFINE_ABOVE`] residuals are computed in double words. In single words each has an error of about u |y|,
/// u the rounding unit; with 1/2 |y|^2 = 4096 nats (f32) that is 90 u = 5e-6 of the noise, and half of it in nats for each
/// standard deviation that is left.
const WORDS_ABOVE: f64 = 16.0;

/// Dimensions of a residual in double words that are computed at a time.
const AT_ONCE: usize = 8;

/// Whether residuals of a sample of this energy need double words.
#[inline(always)]
pub(crate) fn needs_words<T: Real>(energy: T) -> bool {
    T::HALF * energy > T::from_f64(WORDS_ABOVE) * T::REFINE_ABOVE
}

/// Whether a sample of this energy is so far above the noise that log joints lose digits that matter.
#[inline(always)]
pub(crate) fn is_loud<T: Real>(energy: T) -> bool {
    T::HALF * energy > T::REFINE_ABOVE
}

impl<T: Real> Tableau<'_, T> {
    /// Whether t loses digits when candidate `i` is flipped.
    pub fn is_loud_flip(&self, i: usize) -> bool {
        self.is_loud && {
            let x = if self.is_on(i) { self.coefficient(i) } else { self.flip_at(i).value };
            self.is_loud_at(i, x)
        }
    }

    /// Whether a coefficient x is worth so many nats that those of states with it and of states without it cannot be compared.
    pub(super) fn is_loud_at(&self, i: usize, x: T) -> bool {
        let Some(candidate) = self.candidates.get(i) else { return false };
        let worth = match self.family() {
            Family::Slab => T::HALF * x * x / candidate.least,
            Family::Binary => T::HALF * candidate.diagonal,
            Family::Maximal => T::ZERO,
        };
        !(worth <= T::from_f64(FLIP_ABOVE) * T::REFINE_ABOVE)
    }

    /// Makes t exact for a loud sample: with x0 the coefficients as they are, rounded, b0 the projection of y - W x0 and
    /// v = b0 + K (mu - x0) of the latents that are on, kappa = x0 + Lambda v, and r = b0 - S_:A v of those that are off.
    /// The log joint is then that of this state, computed from the residual.
    pub fn refine(&mut self) {
        self.joint = match self.family() {
            Family::Slab | Family::Binary => self.refine_seen(),
            Family::Maximal => self.maximal_joint(),
        };
    }

    /// The same, without replacing the log joint: flips have updated it from a neighbour's, so it lacks the large residual that all
    /// states share. Returns the log joint from the residual.
    #[inline(never)]
    pub fn refine_seen(&mut self) -> Joint<T> {
        let n = self.len();
        Count::Refined.add(1);
        Count::RefinedMacs.add(n * self.count);
        let energy = self.leave();
        project_some(self.model, self.latents, self.weighted, span_mut(self.column, 0, n));
        let (has_slab, mut exponent) = (self.family() == Family::Slab, T::ZERO);
        // v where latents are on, in `weight`; b0 in `seen` of those that are off.
        for (candidate, &b) in span_mut(self.candidates, 0, n).iter_mut().zip(&*self.column) {
            if candidate.sign < T::ZERO {
                exponent += candidate.logit;
            }
            if candidate.sign > T::ZERO || !has_slab {
                candidate.seen = b;
                continue;
            }
            let away = (candidate.mean + candidate.seen) - candidate.mean;
            candidate.weight = b - candidate.precision * away;
            candidate.seen = away;
            exponent -= T::HALF * candidate.precision * away * away;
        }
        let mut joint = Joint { base: -(T::HALF * energy), exponent, ..self.joint };
        if !has_slab {
            return joint;
        }
        for k in 0..n {
            let Some(&Candidate { sign, weight, diagonal, .. }) = self.candidates.get(k) else { break };
            if sign > T::ZERO {
                continue;
            }
            let row = span(self.square, k * self.candidates.len(), n);
            let mut moved = diagonal * weight;
            for (candidate, &s) in self.candidates.iter_mut().zip(row) {
                candidate.seen -= s * weight;
                if candidate.sign < T::ZERO {
                    moved -= s * candidate.weight;
                }
            }
            joint.exponent += T::HALF * moved * weight;
            if let Some(candidate) = self.candidates.get_mut(k) {
                candidate.seen += diagonal * weight;
            }
        }
        joint
    }

    /// Sigma^-1 (y - W x) in `weighted`; returns the energy. The difference of large numbers in double words, where their rounding
    /// errors would show.
    pub fn leave(&mut self) -> T {
        if !self.needs_words {
            return self.leave_roughly();
        }
        Count::DoubleWords.add(self.sample.len() * self.count);
        Count::LeftSteps.add(self.sample.len());
        let mut start = 0;
        while start < self.sample.len() {
            let mut rests = [Accurate::new(T::ZERO); AT_ONCE];
            for (rest, &y) in rests.iter_mut().zip(self.sample.iter().skip(start)) {
                *rest = Accurate::new(y);
            }
            for i in ones(self.on) {
                let x = self.coefficient(i);
                with_column!(self.model, self.latent(i), |column| {
                    for (rest, w) in rests.iter_mut().zip(column.skip(start)) {
                        rest.subtract_product(w, x);
                    }
                });
            }
            for (slot, rest) in self.weighted.iter_mut().skip(start).zip(rests) {
                *slot = rest.value();
            }
            start += AT_ONCE;
        }
        weigh_in_place(&self.model.noise, self.weighted)
    }

    /// The same in single words.
    pub fn leave_roughly(&mut self) -> T {
        copy(self.weighted, self.sample);
        for i in ones(self.on) {
            Count::Columns.add(self.sample.len());
            let x = self.coefficient(i);
            with_column!(self.model, self.latent(i), |column| {
                for (r, w) in self.weighted.iter_mut().zip(column) {
                    *r -= w * x;
                }
            });
        }
        weigh_in_place(&self.model.noise, self.weighted)
    }

    /// Whether another reference may make results more exact: maximal causes form every residual anyhow.
    pub fn may_refine(&self) -> bool {
        self.is_loud && self.family() != Family::Maximal
    }

    /// Goes to a state, turning latents on first: on the way no loud one is missing. Those of which the others leave no digits
    /// wait until these are off.
    pub fn go_to(&mut self, to: u64) {
        let mut is_loud = false;
        for (turns_on, is_last) in [(true, false), (false, false), (true, true)] {
            for i in ones(if turns_on { to & !self.on } else { self.on & !to }) {
                if turns_on && !is_last && !self.may_flip(i) {
                    continue;
                }
                is_loud |= self.is_loud_flip(i);
                self.flip(i);
            }
        }
        if is_loud {
            self.refine_seen();
        }
    }

    /// Looks at a state: makes all flips that lead there except the last, which is only looked at unless it is a loud one.
    pub fn visit(&mut self, to: u64) {
        self.look_back();
        // Latents that turn off come last.
        let (on, off) = (to & !self.on, self.on & !to);
        let last = if off != 0 { off } else { on };
        let i = last.trailing_zeros() as usize;
        let may_glance =
            last != 0 && self.family() != Family::Maximal && (off == 0 || ones(on).all(|i| self.may_flip(i)));
        if may_glance {
            let beside = to ^ 1 << (i % 64);
            if beside != self.on {
                self.go_to(beside);
            }
            if !(self.is_loud && self.is_loud_flip(i)) {
                return self.glance(i);
            }
        }
        self.go_to(to);
        self.evaluate();
    }

    /// Whether a loud latent is on in the present state but off in the reference, or the other way round: then they are not known
    /// equally well.
    pub fn is_apart(&self, reference: u64) -> bool {
        ones(self.on ^ reference).any(|i| {
            let coefficient = match self.is_on(i) {
                true => self.coefficient(i),
                false => self.candidates.get(i).map_or(T::ZERO, |candidate| candidate.reference),
            };
            self.is_loud_at(i, coefficient)
        })
    }

    /// Climbs with exact numbers, at a state that was climbed to with others.
    pub fn settle_loud(&mut self, max_active: usize) {
        for _ in 0..PASSES {
            self.refine();
            let refined = self.joint.exponent;
            self.climb(max_active);
            if self.joint.exponent == refined {
                return;
            }
        }
    }
}
