//! Up the tree: sums over subtrees, by back-substitution.

use super::Grown;
use super::down::{add, coefficient, shrink};
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, pairs, row, set, span, span_mut, split};

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Empty sums, but for its own weight, for the subtree of a state with `k` on that adds latents from `from` on.
    pub(super) fn open_at(&mut self, k: usize, from: usize, weight: T) {
        set(self.memory.mass, k, weight);
        self.clear(k, from);
    }

    /// Sums of zero for the latents from `from` on.
    pub(super) fn clear(&mut self, k: usize, from: usize) {
        let s = self.block.len();
        let rest = s.wrapping_sub(from);
        span_mut(self.memory.sums, k * s + from, rest).fill([T::ZERO; 3]);
        span_mut(self.memory.second, self.triangle_tail(k, rest), pairs(rest)).fill(T::ZERO);
    }

    /// A state without children: adds `new` to one with `k` on.
    pub(super) fn leaf(&mut self, k: usize, new: usize, weight: T) {
        self.add_own(k, new, [weight, T::ZERO, T::ZERO]);
    }

    /// All states that add one or two latents from `from` on to `path`. Stops at one that is too high and
    /// returns it: the anchor must then be lifted and all be done again.
    pub(super) fn twigs(
        &mut self,
        path: &[u16],
        from: usize,
        sums: &mut Sums<'_, '_, T>,
    ) -> Option<Joint<T>> {
        let (s, k) = (self.block.len(), path.len());
        let rest = s.wrapping_sub(from);
        let tail = self.triangle_tail(k, rest);
        let [exponent, scale] = row(self.memory.joints, k);
        let mut candidates = span(self.memory.candidates, k * s + from, rest);
        let mut slabs = span(self.block.slab, from, rest);
        let mut totals = span_mut(self.memory.sums, k * s + from, rest);
        let mut cross = span(self.memory.cross, tail, pairs(rest));
        let mut second = span_mut(self.memory.second, tail, pairs(rest));
        let mut mass = at(self.memory.mass, k);
        // Latent by latent: what belongs to it, what belongs to those after it, and its rows of the triangles.
        while let Some((&[left, seen], candidates_after)) = candidates.split_first()
            && let Some((slab, slabs_after)) = slabs.split_first()
            && let Some((total, totals_after)) = totals.split_first_mut()
            && let Some((coupling, cross_after)) = cross.split_at_checked(candidates_after.len())
            && let Some((own, second_after)) = second.split_at_mut_checked(candidates_after.len())
        {
            let new = s - 1 - candidates_after.len();
            let twig = add([left, seen], slab);
            let variance = twig.variance;
            let tau = coefficient(seen, slab, variance);
            let joint =
                Joint { exponent: exponent + twig.gain, scale: scale * shrink(slab, variance) }.settled();
            if sums.is_too_high(joint.exponent) {
                return Some(joint);
            }
            let weight = sums.weight(joint);
            if sums.is_best(weight) {
                sums.note_best(weight, joint, path, &[new]);
            }
            // The weights of this state and its leaves; ratio.E and ratio.F ratio of the leaves.
            let mut subtree = [weight, T::ZERO, T::ZERO];
            let leaves = coupling.iter().zip(candidates_after).zip(slabs_after);
            for (i, (((&g, &[left, seen]), slab), (total, own))) in
                leaves.zip(totals_after.iter_mut().zip(own)).enumerate()
            {
                let ratio = g * variance;
                let seen = seen - g * tau;
                let leaf = add([(left - g * ratio).max(T::ZERO), seen], slab);
                let exponent = joint.exponent + leaf.gain;
                if sums.is_negligible(exponent) {
                    continue;
                }
                let joint = Joint { exponent, scale: joint.scale * shrink(slab, leaf.variance) };
                if sums.is_too_high(exponent) {
                    return Some(joint);
                }
                let weight = sums.weight(joint);
                if sums.is_best(weight) {
                    sums.note_best(weight, joint, path, &[new, new + 1 + i]);
                }
                let step = coefficient(seen, slab, leaf.variance);
                let first = weight * step;
                let square = weight * leaf.variance + first * step;
                let pulled = ratio * square;
                *total = [total[0] + weight, total[1] + first, total[2] + square];
                *own += tau * first - pulled;
                subtree = [subtree[0] + weight, subtree[1] + ratio * first, subtree[2] + ratio * pulled];
            }
            if !(subtree[0] <= T::ZERO) {
                mass += subtree[0];
                let sums = moments([tau, variance], subtree);
                *total = [total[0] + sums[0], total[1] + sums[1], total[2] + sums[2]];
            }
            (candidates, slabs, totals, cross, second) =
                (candidates_after, slabs_after, totals_after, cross_after, second_after);
        }
        set(self.memory.mass, k, mass);
        None
    }

    /// Comes back from the child that added `new` to a state with `k` on.
    pub(super) fn substitute_back(&mut self, k: usize, new: usize) {
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let (tau, mass) = (row(self.memory.steps, k)[0], at(self.memory.mass, k + 1));
        if mass <= T::ZERO {
            return; // nothing below matters
        }
        let tail = self.triangle_tail(k, rest);
        let ratio = span(self.memory.ratio, k * s + from, rest);
        let (sums, sums_below) = split(self.memory.sums, (k + 1) * s);
        let (second, second_below) = split(self.memory.second, (k + 1) * pairs(s));
        let sums_below = span(sums_below, from, rest);
        let second_below = span(second_below, tail.wrapping_sub(k * pairs(s)), pairs(rest));
        let moved = span_mut(self.memory.moved, from, rest);
        multiply(sums_below, second_below, ratio, moved);
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let totals = span_mut(sums, k * s + from, rest).iter_mut().zip(sums_below);
        for ((total, below), (&moved, &r)) in totals.zip(moved.iter().zip(ratio)) {
            *total = [total[0] + below[0], total[1] + below[1], total[2] + below[2]];
            ratio_first += r * below[1];
            ratio_second += r * moved;
        }
        // Without second moments nobody asks for the products that are over when the walk is.
        if k > 0 || self.second_moments {
            let (own, totals) = split(span_mut(second, tail.wrapping_sub(rest), rest + pairs(rest)), rest);
            for ((own, below), &moved) in own.iter_mut().zip(sums_below).zip(moved.iter()) {
                *own += tau * below[1] - moved;
            }
            totals.iter_mut().zip(second_below).for_each(|(total, &below)| *total += below);
        }
        self.add_own(k, new, [mass, ratio_first, ratio_second]);
    }

    /// Adds the sums of a subtree (mass, ratio.E, ratio.F ratio) to those of the latent `new` it starts with.
    fn add_own(&mut self, k: usize, new: usize, subtree: [T; 3]) {
        let place = k * self.block.len() + new;
        let [on, first, square] = row(self.memory.sums, place);
        let sums = moments(row(self.memory.steps, k), subtree);
        set(self.memory.sums, place, [on + sums[0], first + sums[1], square + sums[2]]);
        set(self.memory.mass, k, at(self.memory.mass, k) + subtree[0]);
    }
}

/// Sums of s, x and x^2 of an eliminated latent: W, E and F.
#[inline(always)]
fn moments<T: Real>([tau, variance]: [T; 2], [mass, ratio_first, ratio_second]: [T; 3]) -> [T; 3] {
    let square = mass * (tau * tau + variance) - (tau + tau) * ratio_first + ratio_second;
    [mass, mass * tau - ratio_first, square]
}

/// F ratio, where F has its diagonal in `sums` and the rest as a triangle.
#[inline(always)]
fn multiply<T: Real>(sums: &[[T; 3]], triangle: &[T], ratio: &[T], out: &mut [T]) {
    for ((out, &r), &[_, _, square]) in out.iter_mut().zip(ratio).zip(sums) {
        *out = square * r;
    }
    let (mut triangle, mut ratio, mut out) = (triangle, ratio, out);
    while let Some((&r, ratios)) = ratio.split_first()
        && let Some((own, outs)) = out.split_first_mut()
        && let Some((row, rows)) = triangle.split_at_checked(ratios.len())
    {
        for ((&entry, &other), out) in row.iter().zip(ratios).zip(outs.iter_mut()) {
            *own += entry * other;
            *out += entry * r;
        }
        (triangle, ratio, out) = (rows, ratios, outs);
    }
}
