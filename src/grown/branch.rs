//! One state's branch of the tree: the latents that may be added to the state, what it leaves of them, and the sums
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
//! Pairs are the rows of a triangle without its diagonal, so what belongs to the latents after one is always the end
//! of what belongs to it. All that belongs to a latent, or to a pair, lies together: branches are short, and cutting
//! slices for them costs more than the arithmetic.

use crate::math::Real;
use crate::posterior::Joint;
use crate::select::gain;
use crate::slices::pairs;

/// What a branch leaves of a latent: left, seen; ratio with the latent whose elimination made this branch; a number that
/// comes and goes: what `ratio` is made of on the way down, a sum on the way up.
pub(crate) type Given<T> = [T; 4];
/// Sums over the states that have a latent on: of s, x and x^2.
pub(crate) type Total<T> = [T; 3];
/// What belongs to two latents: cross, the sum of x x'.
pub(crate) type Pair<T> = [T; 2];

/// Memory for the branches of one path: the root's has all latents, each next one fewer.
#[derive(Debug)]
pub(crate) struct BranchMemory<'m, T> {
    pub given: &'m mut [Given<T>],
    pub totals: &'m mut [Total<T>],
    pub pairs: &'m mut [Pair<T>],
}

/// Latents and pairs that [`BranchMemory`] has to have.
pub(crate) const fn branch_len(selected: usize, max_active: usize) -> (usize, usize) {
    let (mut latents, mut couples, mut depth) = (0, 0, 0);
    while depth == 0 || depth < max_active {
        latents += selected - depth;
        couples += pairs(selected - depth);
        depth += 1;
    }
    (latents, couples)
}

impl<'m, T: Real> BranchMemory<'m, T> {
    /// Memory for all branches of so many latents, from as many numbers as [`branch_len`] leads to.
    pub fn cut(memory: &'m mut [T], selected: usize, max_active: usize) -> Self {
        let latents = branch_len(selected, max_active).0;
        let (given, rest) = memory.split_at_mut_checked(4 * latents).unwrap_or_default();
        let (totals, pairs) = rest.split_at_mut_checked(3 * latents).unwrap_or_default();
        Self {
            given: given.as_chunks_mut().0,
            totals: totals.as_chunks_mut().0,
            pairs: pairs.as_chunks_mut().0,
        }
    }

    pub fn reborrow(&mut self) -> BranchMemory<'_, T> {
        let BranchMemory { given, totals, pairs } = self;
        BranchMemory { given, totals, pairs }
    }

    /// Memory for a branch of `n` latents; the rest is for those below it.
    #[inline(always)]
    pub(super) fn carve(&mut self, n: usize) -> Option<(Branch<'_, T>, BranchMemory<'_, T>)> {
        let (given, given_left) = self.given.split_at_mut_checked(n)?;
        let (totals, totals_left) = self.totals.split_at_mut_checked(n)?;
        let (pairs, pairs_left) = self.pairs.split_at_mut_checked(pairs(n))?;
        let left = BranchMemory { given: given_left, totals: totals_left, pairs: pairs_left };
        Some((Branch { given, totals, pairs }, left))
    }
}

/// One latent, and its pairs with those after it.
pub(super) struct Own<'a, T> {
    pub given: &'a Given<T>,
    pub total: &'a mut Total<T>,
    pub pairs: &'a mut [Pair<T>],
}

/// The latents that may be added to a state, in order.
pub(super) struct Branch<'a, T> {
    pub given: &'a mut [Given<T>],
    pub totals: &'a mut [Total<T>],
    pub pairs: &'a mut [Pair<T>],
}

impl<T: Real> Branch<'_, T> {
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Makes all sums relative to another anchor.
    pub fn rescale(&mut self, factor: T) {
        self.totals.as_flattened_mut().iter_mut().for_each(|sum| *sum *= factor);
        self.pairs.iter_mut().for_each(|[_, second]| *second *= factor);
    }

    /// The last `n` latents only.
    pub fn last(&mut self, n: usize) -> Branch<'_, T> {
        let first = self.len().saturating_sub(n);
        let couples = self.pairs.len().saturating_sub(pairs(n));
        Branch {
            given: self.given.get_mut(first..).unwrap_or(&mut []),
            totals: self.totals.get_mut(first..).unwrap_or(&mut []),
            pairs: self.pairs.get_mut(couples..).unwrap_or(&mut []),
        }
    }

    /// The latent with `after` others behind it, and their branch.
    #[inline(always)]
    pub fn split(&mut self, after: usize) -> Option<(Own<'_, T>, Branch<'_, T>)> {
        let at = self.len().checked_sub(after)?;
        let (before, given) = self.given.split_at_mut_checked(at)?;
        let (totals_before, totals) = self.totals.split_at_mut_checked(at)?;
        let (own, pairs) = self.pairs.split_at_mut_checked(self.pairs.len().checked_sub(pairs(after))?)?;
        let start = own.len().checked_sub(after)?;
        let (given_own, total) = (before.last()?, totals_before.last_mut()?);
        let own = Own { given: given_own, total, pairs: own.get_mut(start..)? };
        Some((own, Branch { given, totals, pairs }))
    }

    /// The branch of the state that `step` leads to from this one's, adding the latent `own`.
    pub fn eliminate(&self, own: Own<'_, T>, step: &Step<T>, child: &mut Branch<'_, T>) {
        let (zero, own) = (T::ZERO, &*own.pairs);
        step.leave(self.given, own, child.given);
        child.totals.fill([zero; 3]);
        let mut entries = child.pairs.iter_mut().zip(self.pairs.iter());
        let (mut own, mut given) = (own, &*child.given);
        while let Some((_, own_after)) = own.split_first()
            && let Some((latent, given_after)) = given.split_first()
        {
            let ratio = latent[2];
            for (&[cross, _], (below, &[above, _])) in own_after.iter().zip(&mut entries) {
                *below = [above - ratio * cross, zero];
            }
            (own, given) = (own_after, given_after);
        }
    }

    /// Adds the sums of a child's branch, whose weights sum to `mass`, to this branch and the latent before it.
    pub fn substitute_back(&mut self, step: &Step<T>, mass: T, child: Branch<'_, T>, own: Own<'_, T>) {
        // F ratio
        for ([_, _, ratio, moved], [_, _, square]) in child.given.iter_mut().zip(child.totals.iter()) {
            *moved = *square * *ratio;
        }
        let (mut given, mut entries) = (&mut *child.given, child.pairs.iter().zip(self.pairs.iter_mut()));
        while let Some((latent, after)) = given.split_first_mut() {
            for (other, (&[_, below], [_, total])) in after.iter_mut().zip(&mut entries) {
                latent[3] += below * other[2];
                other[3] += below * latent[2];
                *total += below;
            }
            given = after;
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let totals = self.totals.iter_mut().zip(own.pairs.iter_mut());
        for ((&[_, _, ratio, moved], &[on, first, square]), (total, [_, second])) in
            child.given.iter().zip(child.totals.iter()).zip(totals)
        {
            total[0] += on;
            total[1] += first;
            total[2] += square;
            *second += step.tau * first - moved;
            ratio_first += ratio * first;
            ratio_second += ratio * moved;
        }
        step.add_moments(own.total, mass, ratio_first, ratio_second);
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
    /// Adds a latent with this slab to a state with this joint.
    #[inline(always)]
    pub fn new(given: &Given<T>, slab: &[T; 5], joint: Joint<T>) -> Self {
        let &[left, seen, ..] = given;
        let added = Added::new(left, seen, slab);
        let exponent = joint.exponent + added.gain;
        let scale = joint.scale * added.shrink(slab);
        Self {
            tau: added.coefficient(seen, slab),
            variance: added.variance,
            joint: Joint { exponent, scale }.settled(),
        }
    }

    /// left and seen of a later latent after this step, and their ratio.
    #[inline(always)]
    pub fn leaves_of(&self, left: T, seen: T, cross: T) -> (T, T, T) {
        let ratio = cross * self.variance;
        ((left - cross * ratio).max(T::ZERO), seen - cross * self.tau, ratio)
    }

    /// The same of all later latents; `own` are their pairs with the one that is added.
    #[inline(always)]
    pub fn leave(&self, given: &[Given<T>], own: &[Pair<T>], child: &mut [Given<T>]) {
        for ((&[cross, _], &[left, seen, ..]), below) in own.iter().zip(given).zip(child) {
            let (left, seen, ratio) = self.leaves_of(left, seen, cross);
            *below = [left, seen, ratio, cross];
        }
    }

    /// Adds the sums over the subtree of this step to those of its latent: W, E and F.
    #[inline(always)]
    pub fn add_moments(&self, own: &mut Total<T>, mass: T, ratio_first: T, ratio_second: T) {
        let Self { tau, variance, .. } = *self;
        own[0] += mass;
        own[1] += mass * tau - ratio_first;
        own[2] += mass * (tau * tau + variance) - (tau + tau) * ratio_first + ratio_second;
    }
}

/// What adding a latent to a state does to the joint; the determinants only where they are needed.
pub(super) struct Added<T> {
    pub gain: T,
    pub variance: T,
}

impl<T: Real> Added<T> {
    #[inline(always)]
    pub fn new(left: T, seen: T, slab: &[T; 5]) -> Self {
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
