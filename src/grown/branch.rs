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

/// What belongs to one latent: left, seen; ratio with the latent whose elimination made this branch; sums of s, x and
/// x^2; a scratch number.
pub(crate) type Latent<T> = [T; 7];
/// What belongs to two: cross, the sum of x x'.
pub(crate) type Pair<T> = [T; 2];

/// Memory for the branches of one path: the root's has all latents, each next one fewer.
#[derive(Debug)]
pub(crate) struct BranchMemory<'m, T> {
    pub latents: &'m mut [Latent<T>],
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

impl<T: Real> BranchMemory<'_, T> {
    /// Memory for a branch of `n` latents; the rest is for those below it.
    #[inline(always)]
    pub(super) fn carve(&mut self, n: usize) -> Option<(Branch<'_, T>, BranchMemory<'_, T>)> {
        let (latents, latents_left) = self.latents.split_at_mut_checked(n)?;
        let (pairs, pairs_left) = self.pairs.split_at_mut_checked(pairs(n))?;
        Some((Branch { latents, pairs }, BranchMemory { latents: latents_left, pairs: pairs_left }))
    }
}

/// One latent, and its pairs with those after it.
pub(super) struct Own<'a, T> {
    pub latent: &'a mut Latent<T>,
    pub pairs: &'a mut [Pair<T>],
}

/// The latents that may be added to a state, in order.
pub(super) struct Branch<'a, T> {
    pub latents: &'a mut [Latent<T>],
    pub pairs: &'a mut [Pair<T>],
}

impl<T: Real> Branch<'_, T> {
    pub fn len(&self) -> usize {
        self.latents.len()
    }

    /// Sums of zero.
    pub fn clear(&mut self) {
        for [_, _, _, on, first, square, _] in self.latents.iter_mut() {
            [*on, *first, *square] = [T::ZERO; 3];
        }
        self.pairs.iter_mut().for_each(|[_, second]| *second = T::ZERO);
    }

    pub fn rescale(&mut self, factor: T) {
        for [_, _, _, on, first, square, _] in self.latents.iter_mut() {
            for sum in [on, first, square] {
                *sum *= factor;
            }
        }
        self.pairs.iter_mut().for_each(|[_, second]| *second *= factor);
    }

    /// The last `n` latents only.
    pub fn last(&mut self, n: usize) -> Branch<'_, T> {
        let latents = self.latents.len().saturating_sub(n);
        let couples = self.pairs.len().saturating_sub(pairs(n));
        Branch {
            latents: self.latents.get_mut(latents..).unwrap_or(&mut []),
            pairs: self.pairs.get_mut(couples..).unwrap_or(&mut []),
        }
    }

    /// The latent with `after` others behind it, and their branch.
    #[inline(always)]
    pub fn split(&mut self, after: usize) -> Option<(Own<'_, T>, Branch<'_, T>)> {
        let (before, latents) = self.latents.split_at_mut_checked(self.latents.len().checked_sub(after)?)?;
        let (own, pairs) = self.pairs.split_at_mut_checked(self.pairs.len().checked_sub(pairs(after))?)?;
        let start = own.len().checked_sub(after)?;
        let own = Own { latent: before.last_mut()?, pairs: own.get_mut(start..)? };
        Some((own, Branch { latents, pairs }))
    }

    /// The branch of the state that `step` leads to from this one's, adding the latent `own`.
    #[inline(always)]
    pub fn eliminate(&self, own: Own<'_, T>, step: &Step<T>, child: &mut Branch<'_, T>) {
        let (zero, own) = (T::ZERO, &*own.pairs);
        for ((&[cross, _], latent), below) in
            own.iter().zip(self.latents.iter()).zip(child.latents.iter_mut())
        {
            let (left, seen, ratio) = step.leaves_of(latent, cross);
            *below = [left, seen, ratio, zero, zero, zero, zero];
        }
        let mut entries = child.pairs.iter_mut().zip(self.pairs.iter());
        let (mut own, mut latents) = (own, &*child.latents);
        while let Some((_, own_after)) = own.split_first()
            && let Some((latent, latents_after)) = latents.split_first()
        {
            let ratio = latent[2];
            for (&[cross, _], (below, &[above, _])) in own_after.iter().zip(&mut entries) {
                *below = [above - ratio * cross, zero];
            }
            (own, latents) = (own_after, latents_after);
        }
    }

    /// Adds the sums of a child's branch, whose weights sum to `mass`, to this branch and the latent before it.
    #[inline(always)]
    pub fn substitute_back(&mut self, step: &Step<T>, mass: T, child: Branch<'_, T>, own: Own<'_, T>) {
        // F ratio
        for [_, _, ratio, _, _, square, moved] in child.latents.iter_mut() {
            *moved = *square * *ratio;
        }
        let (mut latents, mut entries) = (&mut *child.latents, child.pairs.iter().zip(self.pairs.iter_mut()));
        while let Some((latent, after)) = latents.split_first_mut() {
            for (other, (&[_, below], [_, total])) in after.iter_mut().zip(&mut entries) {
                latent[6] += below * other[2];
                other[6] += below * latent[2];
                *total += below;
            }
            latents = after;
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let totals = self.latents.iter_mut().zip(own.pairs.iter_mut());
        for (&[_, _, ratio, on, first, square, moved], (total, [_, second])) in
            child.latents.iter().zip(totals)
        {
            total[3] += on;
            total[4] += first;
            total[5] += square;
            *second += step.tau * first - moved;
            ratio_first += ratio * first;
            ratio_second += ratio * moved;
        }
        step.add_moments(own.latent, mass, ratio_first, ratio_second);
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
    pub fn new(latent: &Latent<T>, slab: &[T; 5], joint: Joint<T>) -> Self {
        let &[left, seen, ..] = latent;
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
    pub fn leaves_of(&self, latent: &Latent<T>, cross: T) -> (T, T, T) {
        let ratio = cross * self.variance;
        ((latent[0] - cross * ratio).max(T::ZERO), latent[1] - cross * self.tau, ratio)
    }

    /// Adds the sums over the subtree of this step to those of its latent: W, E and F.
    #[inline(always)]
    pub fn add_moments(&self, own: &mut Latent<T>, mass: T, ratio_first: T, ratio_second: T) {
        let Self { tau, variance, .. } = *self;
        own[3] += mass;
        own[4] += mass * tau - ratio_first;
        own[5] += mass * (tau * tau + variance) - (tau + tau) * ratio_first + ratio_second;
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
