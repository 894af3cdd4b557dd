//! Up the tree: sums over subtrees, by back-substitution.

use super::Grown;
use super::down::{add, coefficient, shrink};
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, row, set, span, span_mut, split};
use crate::states::StateModel;

/// What the leaves of a twig add to the sums of its own latent.
struct Foliage<T> {
    mass: T,
    /// ratio.E
    ratio_first: T,
    /// ratio.F ratio
    ratio_second: T,
}

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Empty sums, but for its own weight, for the subtree of a state with `k` on that adds latents from `from` on.
    pub(super) fn open_at(&mut self, k: usize, from: usize, weight: T) {
        let s = self.block.len();
        let rest = s.wrapping_sub(from);
        set(self.memory.mass, k, weight);
        span_mut(self.memory.sums, k * s + from, rest).fill([T::ZERO; 3]);
        span_mut(self.memory.second, (k * s + from) * s, rest * s).fill(T::ZERO);
    }

    /// Adds the sums of a subtree to those of the latent `new` that was added last, the state having had `k` on.
    fn add_own(&mut self, k: usize, new: usize, mass: T, ratio_first: T, ratio_second: T) {
        let [tau, variance] = row(self.memory.steps, k);
        let place = k * self.block.len() + new;
        let [on, first, square] = row(self.memory.sums, place);
        let second = mass * (tau * tau + variance) - (tau + tau) * ratio_first + ratio_second;
        set(self.memory.sums, place, [on + mass, first + (mass * tau - ratio_first), square + second]);
        set(self.memory.mass, k, at(self.memory.mass, k) + mass);
    }

    /// A state without children.
    pub(super) fn leaf(&mut self, k: usize, new: usize, weight: T) {
        self.add_own(k, new, weight, T::ZERO, T::ZERO);
    }

    /// The state that adds `new` to `path`, and all that add one more.
    pub(super) fn twig(&mut self, path: &[u16], new: usize, joint: Joint<T>, sums: &mut Sums<'_, '_, T>) {
        let mass = self.weigh(joint, path, &[new], sums);
        let mut foliage = Foliage { mass, ratio_first: T::ZERO, ratio_second: T::ZERO };
        let mut from = new + 1;
        while let Some((leaf, too_high)) = self.foliage(path, [new, from], joint, &mut foliage, sums) {
            let factor = sums.lift(too_high);
            self.rescale(factor);
            for sum in [&mut foliage.mass, &mut foliage.ratio_first, &mut foliage.ratio_second] {
                *sum *= factor;
            }
            from = leaf;
        }
        let Foliage { mass, ratio_first, ratio_second } = foliage;
        if !(mass <= T::ZERO) {
            self.add_own(path.len(), new, mass, ratio_first, ratio_second);
        }
    }

    /// Adds the leaves from `from` on, until one is too high: that one is returned.
    fn foliage(
        &mut self,
        path: &[u16],
        [new, from]: [usize; 2],
        twig: Joint<T>,
        foliage: &mut Foliage<T>,
        sums: &mut Sums<'_, '_, T>,
    ) -> Option<(usize, Joint<T>)> {
        let (s, k) = (self.block.len(), path.len());
        let rest = s.wrapping_sub(from);
        let [tau, pivot_inv] = row(self.memory.steps, k);
        let coupling = match k.checked_sub(1) {
            None => span(self.block.gram, new * s + from, rest),
            Some(depth) => span(self.memory.cross, (depth * s + new) * s + from, rest),
        };
        let candidates = span(self.memory.candidates, k * s + from, rest);
        let slabs = span(self.block.slab, from, rest);
        let totals = span_mut(self.memory.sums, k * s + from, rest);
        let own = span_mut(self.memory.second, (k * s + new) * s + from, rest);
        let inputs = coupling.iter().zip(candidates).zip(slabs);
        for (leaf, (((&g, &[left, seen]), slab), (total, own))) in
            (from..).zip(inputs.zip(totals.iter_mut().zip(own)))
        {
            let ratio = g * pivot_inv;
            let seen = seen - g * tau;
            let added = add([(left - g * ratio).max(T::ZERO), seen], slab);
            let exponent = twig.exponent + added.gain;
            if sums.is_negligible(exponent) {
                continue;
            }
            let joint = Joint { exponent, scale: twig.scale * shrink(slab, added.variance) };
            if sums.is_too_high(exponent) {
                return Some((leaf, joint));
            }
            let weight = sums.weight(joint);
            if sums.is_best(weight) {
                sums.note_best(weight, joint, path, &[new, leaf]);
            }
            let step = coefficient(seen, slab, added.variance);
            let first = weight * step;
            let square = weight * added.variance + first * step;
            let pulled = ratio * square;
            *total = [total[0] + weight, total[1] + first, total[2] + square];
            *own += tau * first - pulled;
            foliage.mass += weight;
            foliage.ratio_first += ratio * first;
            foliage.ratio_second += ratio * pulled;
        }
        None
    }

    /// Comes back from the child that added `new` to a state with `k` on.
    pub(super) fn substitute_back(&mut self, k: usize, new: usize) {
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let (tau, mass) = (row(self.memory.steps, k)[0], at(self.memory.mass, k + 1));
        let ratio = span(self.memory.ratio, k * s + from, rest);
        let (sums, sums_below) = split(self.memory.sums, (k + 1) * s);
        let (second, second_below) = split(self.memory.second, (k + 1) * s * s);
        let sums_below = span(sums_below, from, rest);
        // F ratio, by rows of the upper triangle.
        let moved = span_mut(self.memory.moved, from, rest);
        for ((moved, &r), &[_, _, square]) in moved.iter_mut().zip(ratio).zip(sums_below) {
            *moved = square * r;
        }
        for (i, &r) in ratio.iter().enumerate() {
            let row = span(second_below, (from + i) * s + from + i + 1, rest.wrapping_sub(i + 1));
            let Some((own, others)) = moved.get_mut(i..).and_then(|rest| rest.split_first_mut()) else { break };
            let mut sum = *own;
            let columns = others.iter_mut().zip(ratio.get(i + 1..).unwrap_or(&[]));
            for (&below, (moved, &other)) in row.iter().zip(columns) {
                sum += below * other;
                *moved += below * r;
            }
            *own = sum;
        }
        let totals = span_mut(sums, k * s + from, rest);
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        for (((total, below), &moved), &r) in totals.iter_mut().zip(sums_below).zip(moved.iter()).zip(ratio) {
            for (total, &below) in total.iter_mut().zip(below) {
                *total += below;
            }
            ratio_first += r * below[1];
            ratio_second += r * moved;
        }
        // The empty state's own products are results, not steps on the way.
        if k > 0 || self.second_moments {
            let own = span_mut(second, (k * s + new) * s + from, rest).iter_mut();
            for ((own, &[_, first, _]), &moved) in own.zip(sums_below).zip(moved.iter()) {
                *own += tau * first - moved;
            }
            for i in 0..rest {
                let (start, len) = ((from + i) * s + from + i + 1, rest.wrapping_sub(i + 1));
                let rows = span_mut(second, k * s * s + start, len).iter_mut();
                rows.zip(span(second_below, start, len)).for_each(|(total, &below)| *total += below);
            }
        }
        self.add_own(k, new, mass, ratio_first, ratio_second);
    }
}
