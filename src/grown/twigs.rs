//! The ends of the tree, where most states are: those with as many latents on as there may be, or one less.

use super::Grown;
use super::branch::{Added, Branch, Latent, Pair, Step};
use crate::math::Real;
use crate::posterior::{Joint, Sums};

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Adds the states with one more latent on to `branch`, whose state has this joint and weight. Returns the
    /// sum of all their weights.
    pub(super) fn leaves(&mut self, branch: &mut Branch<'_, T>, joint: Joint<T>, weight: T) -> T {
        let first = self.block.len() - branch.len();
        let mut mass = weight;
        for i in 0..branch.len() {
            let (Some(latent), Some(slab)) = (branch.latents.get_mut(i), self.block.slab.get(first + i))
            else {
                break;
            };
            let step = Step::new(latent, slab, joint);
            if self.sums.is_too_high(step.joint.exponent) {
                let factor = self.sums.lift(step.joint);
                branch.rescale(factor);
                mass *= factor;
            }
            let weight = self.sums.weight(step.joint);
            if self.sums.is_best(weight) {
                self.sums.note_best(weight, step.joint, &self.path, &[first + i]);
            }
            mass += weight;
            if let Some(latent) = branch.latents.get_mut(i) {
                step.add_moments(latent, weight, T::ZERO, T::ZERO);
            }
        }
        mass
    }

    /// Adds the states with one or two more latents on to `branch`, whose state has this joint and weight. Returns
    /// the sum of all their weights.
    pub(super) fn twigs(&mut self, branch: &mut Branch<'_, T>, joint: Joint<T>, weight: T) -> T {
        let mut own = weight;
        loop {
            match self.try_twigs(branch, joint) {
                Ok(mass) => return own + mass,
                Err(too_high) => {
                    // The sums of this branch are few: from the beginning, with the anchor where it must be.
                    self.sums.lift(too_high);
                    own = self.sums.weight(joint);
                    branch.clear();
                }
            }
        }
    }

    /// The sum of weights of [`Grown::twigs`], or the first state whose joint is too high for the anchor.
    fn try_twigs(&mut self, branch: &mut Branch<'_, T>, joint: Joint<T>) -> Result<T, Joint<T>> {
        let mut new = self.block.len() - branch.len();
        let mut slabs = self.block.slab.get(new..).unwrap_or(&[]);
        let (mut latents, mut pairs) = (&mut *branch.latents, &mut *branch.pairs);
        let mut mass = T::ZERO;
        while let Some((own, after)) = latents.split_first_mut()
            && let Some((slab, slabs_after)) = slabs.split_first()
            && let Some((own_pairs, pairs_after)) = pairs.split_at_mut_checked(after.len())
        {
            let twig = Twig { path: &self.path, new, step: Step::new(own, slab, joint) };
            mass += twig.add(own, own_pairs, after, slabs_after, self.sums)?;
            (latents, slabs, pairs, new) = (after, slabs_after, pairs_after, new + 1);
        }
        Ok(mass)
    }
}

/// A state and those with one more latent on.
struct Twig<'a, T> {
    path: &'a [u16],
    /// The position that leads to it from `path`.
    new: usize,
    step: Step<T>,
}

impl<T: Real> Twig<'_, T> {
    /// Adds them to the sums of its latent, of those after it and of its pairs with them.
    #[inline(always)]
    fn add(
        &self,
        own: &mut Latent<T>,
        own_pairs: &mut [Pair<T>],
        after: &mut [Latent<T>],
        slabs_after: &[[T; 5]],
        sums: &mut Sums<'_, '_, T>,
    ) -> Result<T, Joint<T>> {
        let Self { path, new, step } = *self;
        if sums.is_too_high(step.joint.exponent) {
            return Err(step.joint);
        }
        let mut mass = sums.weight(step.joint);
        if sums.is_best(mass) {
            sums.note_best(mass, step.joint, path, &[new]);
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        for (i, (([cross, second], latent), slab)) in
            own_pairs.iter_mut().zip(after).zip(slabs_after).enumerate()
        {
            let (left, seen, ratio) = step.leaves_of(latent, *cross);
            let leaf = Added::new(left, seen, slab);
            let exponent = step.joint.exponent + leaf.gain;
            if sums.is_negligible(exponent) {
                continue;
            }
            let joint = Joint { exponent, scale: step.joint.scale * leaf.shrink(slab) };
            if sums.is_too_high(exponent) {
                return Err(joint);
            }
            let weight = sums.weight(joint);
            if sums.is_best(weight) {
                sums.note_best(weight, joint, path, &[new, new + 1 + i]);
            }
            let value = leaf.coefficient(seen, slab);
            let first = weight * value;
            let square = weight * leaf.variance + first * value;
            let pulled = ratio * square;
            latent[3] += weight;
            latent[4] += first;
            latent[5] += square;
            *second += step.tau * first - pulled;
            mass += weight;
            ratio_first += ratio * first;
            ratio_second += ratio * pulled;
        }
        if !(mass <= T::ZERO) {
            step.add_moments(own, mass, ratio_first, ratio_second);
        }
        Ok(mass)
    }
}
