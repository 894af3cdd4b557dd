//! The ends of the tree, where most states are: those with as many latents on as there may be, or one less.

use super::Grown;
use super::branch::{Added, Branch, Split, Step, sum};
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::row;

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Adds the states with one more latent on to `branch`, whose state has this joint and weight. Returns the
    /// sum of all their weights.
    pub(super) fn leaves(&mut self, branch: &mut Branch<'_, T>, joint: Joint<T>, weight: T) -> T {
        let (positions, n) = (self.block.len(), branch.len());
        let mut mass = weight;
        for new in (positions - n..positions).rev() {
            let step = Step::to(branch, new, positions, joint);
            if self.sums.is_too_high(step.joint.exponent) {
                let factor = self.sums.lift(step.joint);
                branch.rescale(factor);
                mass *= factor;
            }
            let weight = self.sums.weight(step.joint);
            if self.sums.is_best(weight) {
                self.sums.note_best(weight, step.joint, &self.path, &[new]);
            }
            mass += weight;
            if let Some(total) = branch.sums.get_mut((new + n).wrapping_sub(positions)) {
                *total = sum(*total, step.moments(weight, T::ZERO, T::ZERO));
            }
        }
        mass
    }

    /// Adds the states with one or two more latents on to `branch`, whose state has this joint and weight. Returns
    /// the sum of all their weights.
    pub(super) fn twigs(&mut self, branch: &mut Branch<'_, T>, joint: Joint<T>, weight: T) -> T {
        let (positions, n) = (self.block.len(), branch.len());
        let mut own = weight;
        'again: loop {
            let mut mass = own;
            for after in 0..n {
                let step = {
                    let index = n - 1 - after;
                    Step::add(row(branch.candidates, index), &row(branch.slabs, index), joint)
                };
                let Some(split) = branch.split(after) else { return mass };
                let twig = Twig { path: &self.path, new: positions - 1 - after, step };
                match twig.add(split, self.sums) {
                    Ok(weights) => mass += weights,
                    Err(too_high) => {
                        // The sums of this branch are few: from the beginning, with the anchor where it must be.
                        self.sums.lift(too_high);
                        own = self.sums.weight(joint);
                        branch.clear();
                        continue 'again;
                    }
                }
            }
            return mass;
        }
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
    /// Adds them to the sums; returns the sum of their weights, or the first whose joint is too high for the anchor.
    #[inline(always)]
    fn add(&self, split: Split<'_, T>, sums: &mut Sums<'_, '_, T>) -> Result<T, Joint<T>> {
        let Self { path, new, step } = *self;
        if sums.is_too_high(step.joint.exponent) {
            return Err(step.joint);
        }
        let mut mass = sums.weight(step.joint);
        if sums.is_best(mass) {
            sums.note_best(mass, step.joint, path, &[new]);
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let leaves = split.coupling.iter().zip(split.candidates_after).zip(split.slabs_after);
        let totals = split.sums_after.iter_mut().zip(split.own_second);
        for (i, (((&cross, &candidate), slab), (total, own))) in leaves.zip(totals).enumerate() {
            let ([left, seen], ratio) = step.left_of(candidate, cross);
            let leaf = Added::new([left, seen], slab);
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
            *total = sum(*total, [weight, first, square]);
            *own += step.tau * first - pulled;
            mass += weight;
            ratio_first += ratio * first;
            ratio_second += ratio * pulled;
        }
        if !(mass <= T::ZERO) {
            *split.own_sums = sum(*split.own_sums, step.moments(mass, ratio_first, ratio_second));
        }
        Ok(mass)
    }
}
