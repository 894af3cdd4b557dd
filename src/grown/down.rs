//! Down the tree: elimination.

use super::Grown;
use crate::math::Real;
use crate::posterior::Joint;
use crate::select::gain;
use crate::slices::{pairs, row, set, span, span_mut, split};

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
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        if k + 1 >= self.max_active || rest == 0 {
            return; // nothing can be added to it
        }
        let [tau, variance] = row(self.memory.steps, k);
        let tail = self.triangle_tail(k, rest);
        let (cross, cross_below) = split(self.memory.cross, (k + 1) * pairs(s));
        let (coupling, cross) = split(span_mut(cross, tail.wrapping_sub(rest), rest + pairs(rest)), rest);
        let ratio = span_mut(self.memory.ratio, k * s + from, rest);
        let (now, next) = split(self.memory.candidates, (k + 1) * s);
        let rows = span(now, k * s + from, rest).iter().zip(span_mut(next, from, rest));
        for ((&g, ratio), (&[left, seen], next)) in coupling.iter().zip(ratio.iter_mut()).zip(rows) {
            *ratio = g * variance;
            *next = [(left - g * *ratio).max(T::ZERO), seen - g * tau];
        }
        // Row by row of the triangle; missing where no pair can be added any more.
        let below = span_mut(cross_below, tail.wrapping_sub(k * pairs(s)), pairs(rest));
        let (mut coupling, mut ratio, mut cross, mut below) = (&*coupling, &*ratio, &*cross, below);
        while let Some((_, couplings)) = coupling.split_first()
            && let Some((&r, ratios)) = ratio.split_first()
            && let Some((row, rows)) = cross.split_at_checked(couplings.len())
            && let Some((out, outs)) = below.split_at_mut_checked(couplings.len())
        {
            for ((out, &above), &g) in out.iter_mut().zip(row).zip(couplings) {
                *out = above - r * g;
            }
            (coupling, ratio, cross, below) = (couplings, ratios, rows, outs);
        }
    }

    /// Where, in the triangle of a state with `k` on, the rows of its last `rest` latents begin: what belongs to
    /// the latents after one is always the end of what belongs to it.
    pub(super) fn triangle_tail(&self, k: usize, rest: usize) -> usize {
        ((k + 1) * pairs(self.block.len())).wrapping_sub(pairs(rest))
    }
}
