//! Down the tree: elimination.

use super::Grown;
use crate::math::Real;
use crate::posterior::Joint;
use crate::select::gain;
use crate::slices::{row, set, span, span_mut, split};

/// One latent added to a state, evaluated: a function of what the state leaves of it alone.
pub(super) struct Added<T> {
    /// ln of the factor by which the joint grows, without its determinants.
    pub gain: T,
    /// 1 / pivot: the variance of its coefficient.
    pub variance: T,
}

/// Adds a latent of which `left` and `seen` remain.
#[inline(always)]
pub(super) fn add<T: Real>([left, seen]: [T; 2], slab: &[T; 5]) -> Added<T> {
    let &[mean, precision, logit, pull, _] = slab;
    let variance = T::ONE / (left + precision);
    Added { gain: logit + gain(seen, mean, pull, left, variance), variance }
}

/// sqrt(K / pivot), at most 1: the factor of the determinants.
#[inline(always)]
pub(super) fn shrink<T: Real>(slab: &[T; 5], variance: T) -> T {
    slab[4] * variance.sqrt()
}

/// Coefficient of a latent added where it sees `seen`.
#[inline(always)]
pub(super) fn coefficient<T: Real>(seen: T, slab: &[T; 5], variance: T) -> T {
    (seen + slab[3]) * variance
}

impl<T: Real> Grown<'_, '_, '_, T> {
    /// The state that adds `new` to the current one with `k` on; keeps it, its coefficient and variance.
    pub(super) fn evaluate(&mut self, k: usize, new: usize) -> Joint<T> {
        let candidate = row(self.memory.candidates, k * self.block.len() + new);
        let slab = row(self.block.slab, new);
        let [exponent, scale] = row(self.memory.joints, k);
        let added = add(candidate, &slab);
        set(self.memory.steps, k, [coefficient(candidate[1], &slab, added.variance), added.variance]);
        let scale = scale * shrink(&slab, added.variance);
        let joint = Joint { exponent: exponent + added.gain, scale }.settled();
        set(self.memory.joints, k + 1, [joint.exponent, joint.scale]);
        joint
    }

    /// What adding `new`, already evaluated, to the current state with `k` on leaves of the latents after it.
    pub(super) fn eliminate(&mut self, k: usize, new: usize) {
        if k + 1 >= self.max_active {
            return; // nothing can be added to it
        }
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let [tau, variance] = row(self.memory.steps, k);
        let (cross_above, cross_below) = split(self.memory.cross, k * s * s);
        let above = match k.checked_sub(1) {
            None => &*self.block.gram,
            Some(depth) => span(cross_above, depth * s * s, s * s),
        };
        let coupling = span(above, new * s + from, rest);
        let ratio = span_mut(self.memory.ratio, k * s + from, rest);
        let (now, next) = split(self.memory.candidates, (k + 1) * s);
        let rows = span(now, k * s + from, rest).iter().zip(span_mut(next, from, rest));
        for ((&g, ratio), (&[left, seen], next)) in coupling.iter().zip(ratio.iter_mut()).zip(rows) {
            *ratio = g * variance;
            *next = [(left - g * *ratio).max(T::ZERO), seen - g * tau];
        }
        if k + 2 < self.max_active {
            for (i, &r) in ratio.iter().enumerate() {
                let start = (from + i) * s + from + i + 1;
                let rest = rest.wrapping_sub(i + 1);
                let rows = span_mut(cross_below, start, rest).iter_mut().zip(span(above, start, rest));
                for ((cross, &above), &g) in rows.zip(coupling.get(i + 1..).unwrap_or(&[])) {
                    *cross = above - r * g;
                }
            }
        }
    }
}
