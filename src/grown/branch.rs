//! One state's branch of the tree: what the state leaves of the latents that may be added to it, and the sums
//! over all states that add some of them.
//!
//! **Down.** With A the latents that are on, a branch has for every latent p after them
//! `left` = G_pp - G_pA M^-1 G_Ap and `seen` = b_p - G_pA M^-1 v, and for every pair `cross` = G_pq - G_pA M^-1 G_Aq.
//! Adding p then needs no matrix: its pivot is left + K, its coefficient tau = (seen + K (mu - x0)) / pivot.
//! Eliminating it updates these numbers like a step of Gaussian elimination, with ratio_p = cross / pivot.
//!
//! **Up.** Given the latents added after it, the coefficient of an eliminated latent is normal with mean
//! tau - sum_p ratio_p x_p and variance 1 / pivot. So the sums over a subtree, mass W, first E_p = sum w <x_p>
//! and second F_pq = sum w <x_p x_q> of the latents added below, give those of the latent itself:
//!
//! ```text
//! E = W tau - ratio.E      F_p = tau E_p - (F ratio)_p      F = W (tau^2 + 1/pivot) - 2 tau ratio.E + ratio.F ratio
//! ```
//!
//! Pairs are kept as the rows of a triangle without its diagonal, so what belongs to the latents after one is always
//! the end of what belongs to it.

use crate::math::Real;
use crate::posterior::Joint;
use crate::select::gain;
use crate::slices::{pairs, row};

/// Numbers that the branches of one path take: the root's has `selected` latents, each next one fewer.
pub(crate) const fn grown_len(selected: usize, max_active: usize) -> usize {
    let (mut len, mut depth) = (0, 0);
    while depth == 0 || depth < max_active {
        len += branch_len(selected - depth);
        depth += 1;
    }
    len
}

/// Candidates, ratio, sums, scratch; two triangles.
const fn branch_len(n: usize) -> usize {
    7 * n + 2 * pairs(n)
}

/// Memory of one branch.
pub(super) struct Room<'a, T> {
    pub candidates: &'a mut [[T; 2]],
    pub cross: &'a mut [T],
    /// cross / pivot of the latent whose elimination made this branch.
    pub ratio: &'a mut [T],
    pub sums: &'a mut [[T; 3]],
    pub second: &'a mut [T],
    pub scratch: &'a mut [T],
    slabs: &'a [[T; 5]],
}

/// Takes memory for a branch of the latents with these slabs; the rest is for those below it.
pub(super) fn carve<'a, T>(memory: &'a mut [T], slabs: &'a [[T; 5]]) -> Option<(Room<'a, T>, &'a mut [T])> {
    let n = slabs.len();
    let (candidates, memory) = memory.split_at_mut_checked(2 * n)?;
    let (cross, memory) = memory.split_at_mut_checked(pairs(n))?;
    let (ratio, memory) = memory.split_at_mut_checked(n)?;
    let (sums, memory) = memory.split_at_mut_checked(3 * n)?;
    let (second, memory) = memory.split_at_mut_checked(pairs(n))?;
    let (scratch, memory) = memory.split_at_mut_checked(n)?;
    let (candidates, sums) = (candidates.as_chunks_mut().0, sums.as_chunks_mut().0);
    Some((Room { candidates, cross, ratio, sums, second, scratch, slabs }, memory))
}

impl<T: Real> Room<'_, T> {
    pub fn branch(&mut self) -> Branch<'_, T> {
        let Self { candidates, cross, sums, second, slabs, .. } = self;
        Branch { candidates, slabs, cross, sums, second }
    }
}

/// The latents that may be added to a state, in order.
pub(super) struct Branch<'a, T> {
    /// left, seen
    pub candidates: &'a [[T; 2]],
    /// As in [`crate::block::Block`].
    pub slabs: &'a [[T; 5]],
    pub cross: &'a [T],
    /// Sums of s, x and x^2.
    pub sums: &'a mut [[T; 3]],
    /// Sums of x x'.
    pub second: &'a mut [T],
}

impl<'a, T: Real> Branch<'a, T> {
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    pub fn clear(&mut self) {
        self.sums.fill([T::ZERO; 3]);
        self.second.fill(T::ZERO);
    }

    pub fn rescale(&mut self, factor: T) {
        self.sums.as_flattened_mut().iter_mut().for_each(|sum| *sum *= factor);
        self.second.iter_mut().for_each(|sum| *sum *= factor);
    }

    /// The last `n` latents only.
    pub fn last(self, n: usize) -> Self {
        let without = self.len().saturating_sub(n);
        let pairs_without = pairs(self.len()).saturating_sub(pairs(n));
        Self {
            candidates: self.candidates.get(without..).unwrap_or(&[]),
            slabs: self.slabs.get(without..).unwrap_or(&[]),
            cross: self.cross.get(pairs_without..).unwrap_or(&[]),
            sums: self.sums.get_mut(without..).unwrap_or(&mut []),
            second: self.second.get_mut(pairs_without..).unwrap_or(&mut []),
        }
    }

    /// The latent with `after` others behind it, and those.
    #[inline(always)]
    pub fn split(&mut self, after: usize) -> Option<Split<'_, T>> {
        let before = self.len().checked_sub(after)?;
        let start = pairs(self.len()).checked_sub(pairs(after) + after)?;
        let (coupling, cross_after) = self.cross.get(start..)?.split_at_checked(after)?;
        let (own_second, second_after) = self.second.get_mut(start..)?.split_at_mut_checked(after)?;
        let (before, sums_after) = self.sums.split_at_mut_checked(before)?;
        Some(Split {
            coupling,
            own_second,
            own_sums: before.last_mut()?,
            candidates_after: self.candidates.get(self.candidates.len() - after..)?,
            slabs_after: self.slabs.get(self.slabs.len() - after..)?,
            cross_after,
            sums_after,
            second_after,
        })
    }
}

/// A latent of a branch, and those after it.
pub(super) struct Split<'a, T> {
    /// Its cross with those after it, and the sums of its products with them.
    pub coupling: &'a [T],
    pub own_second: &'a mut [T],
    pub own_sums: &'a mut [T; 3],
    pub candidates_after: &'a [[T; 2]],
    pub slabs_after: &'a [[T; 5]],
    pub cross_after: &'a [T],
    pub sums_after: &'a mut [[T; 3]],
    pub second_after: &'a mut [T],
}

impl<T: Real> Split<'_, T> {
    /// What adding the latent leaves of those after it.
    pub fn eliminate(self, step: &Step<T>, child: &mut Room<'_, T>) {
        let outputs = child.candidates.iter_mut().zip(child.ratio.iter_mut());
        for ((&g, &candidate), (next, ratio)) in self.coupling.iter().zip(self.candidates_after).zip(outputs) {
            (*next, *ratio) = step.left_of(candidate, g);
        }
        let (mut coupling, mut ratio) = (self.coupling, &*child.ratio);
        let mut pairs = child.cross.iter_mut().zip(self.cross_after);
        while let Some((_, couplings)) = coupling.split_first()
            && let Some((&r, ratios)) = ratio.split_first()
        {
            for (&g, (out, &above)) in couplings.iter().zip(&mut pairs) {
                *out = above - r * g;
            }
            (coupling, ratio) = (couplings, ratios);
        }
    }

    /// Adds the sums of the subtree that starts with the latent, whose weights sum to `mass`.
    pub fn substitute_back(self, step: &Step<T>, child: &mut Room<'_, T>, mass: T) {
        let Room { sums, second, ratio, scratch, .. } = child;
        // F ratio, where F has its diagonal in `sums` and the rest in `second`
        for ((moved, &r), &[_, _, square]) in scratch.iter_mut().zip(ratio.iter()).zip(sums.iter()) {
            *moved = square * r;
        }
        let (mut ratios, mut moved, mut entries) = (&**ratio, &mut **scratch, second.iter());
        while let Some((&r, after)) = ratios.split_first()
            && let Some((own, moved_after)) = moved.split_first_mut()
        {
            for ((&other, moved), &entry) in after.iter().zip(moved_after.iter_mut()).zip(&mut entries) {
                *own += entry * other;
                *moved += entry * r;
            }
            (ratios, moved) = (after, moved_after);
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let below = sums.iter().zip(ratio.iter()).zip(scratch.iter());
        let totals = self.sums_after.iter_mut().zip(self.own_second.iter_mut());
        for ((total, own), ((below, &r), &moved)) in totals.zip(below) {
            *total = sum(*total, *below);
            *own += step.tau * below[1] - moved;
            ratio_first += r * below[1];
            ratio_second += r * moved;
        }
        self.second_after.iter_mut().zip(second.iter()).for_each(|(total, &below)| *total += below);
        *self.own_sums = sum(*self.own_sums, step.moments(mass, ratio_first, ratio_second));
    }
}

impl<T: Real> Split<'_, T> {
    /// Adds the latent's own sums, with nothing added to it.
    pub fn add_alone(self, step: &Step<T>, weight: T) {
        *self.own_sums = sum(*self.own_sums, step.moments(weight, T::ZERO, T::ZERO));
    }
}

/// One latent added to a state.
#[derive(Clone, Copy)]
pub(super) struct Step<T> {
    /// Its coefficient, if no other is added.
    pub tau: T,
    /// 1 / pivot: the variance of that.
    pub variance: T,
    /// The state it leads to.
    pub joint: Joint<T>,
}

impl<T: Real> Step<T> {
    /// The step that adds the latent at position `new` of `positions` to the branch's state.
    pub fn to(branch: &Branch<'_, T>, new: usize, positions: usize, joint: Joint<T>) -> Self {
        let index = (new + branch.len()).wrapping_sub(positions);
        Self::add(row(branch.candidates, index), &row(branch.slabs, index), joint)
    }

    #[inline(always)]
    pub fn add([left, seen]: [T; 2], slab: &[T; 5], joint: Joint<T>) -> Self {
        let added = Added::new([left, seen], slab);
        let exponent = joint.exponent + added.gain;
        let scale = joint.scale * added.shrink(slab);
        Self {
            tau: added.coefficient(seen, slab),
            variance: added.variance,
            joint: Joint { exponent, scale }.settled(),
        }
    }

    /// What this step leaves of a candidate that it has `cross` with, and their ratio.
    #[inline(always)]
    pub fn left_of(&self, [left, seen]: [T; 2], cross: T) -> ([T; 2], T) {
        let ratio = cross * self.variance;
        ([(left - cross * ratio).max(T::ZERO), seen - cross * self.tau], ratio)
    }

    /// Sums of s, x and x^2 of this step's latent over its subtree: W, E and F.
    #[inline(always)]
    pub fn moments(&self, mass: T, ratio_first: T, ratio_second: T) -> [T; 3] {
        let Self { tau, variance, .. } = *self;
        let square = mass * (tau * tau + variance) - (tau + tau) * ratio_first + ratio_second;
        [mass, mass * tau - ratio_first, square]
    }
}

/// What adding a latent to a state does to the joint; the determinants only where they are needed.
pub(super) struct Added<T> {
    pub gain: T,
    pub variance: T,
}

impl<T: Real> Added<T> {
    #[inline(always)]
    pub fn new([left, seen]: [T; 2], slab: &[T; 5]) -> Self {
        let &[mean, precision, logit, pull, _] = slab;
        let variance = T::ONE / (left + precision);
        Self { gain: logit + gain(seen, mean, pull, left, variance), variance }
    }

    /// sqrt(K / pivot), at most 1: the factor of the determinants.
    #[inline(always)]
    pub fn shrink(&self, slab: &[T; 5]) -> T {
        slab[4] * self.variance.sqrt()
    }

    #[inline(always)]
    pub fn coefficient(&self, seen: T, slab: &[T; 5]) -> T {
        (seen + slab[3]) * self.variance
    }
}

#[inline(always)]
pub(super) fn sum<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}
