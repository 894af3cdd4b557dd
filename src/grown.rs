//! Spike-and-slab states, grown: each state is its parent with one latent eliminated (diagonal slab).
//!
//! For the active latents A, with K = diag(1/psi^2), M = G_AA + K and v = b_A + K (mu_A - x0_A), where x0
//! are the reference state's coefficients (zero without one) and b sees what these leave of the sample:
//!
//! ```text
//! ln p(y, s) = ... + sum l_h - 1/2 ln det M - 1/2 ln det Psi + 1/2 v^T M^-1 v - 1/2 (x0-mu)^T K (x0-mu)
//! ```
//!
//! The states are a tree: a latent is added after those before it in the block. Down the tree latents are eliminated,
//! up the tree the sums over subtrees come back by back-substitution ([`branch`]). Most states are the last or
//! last but one of their branch; they are summed where they are met ([`twigs`]). The deepest call has
//! gamma - 2 others below it on the stack.
//!
//! Work per state: about 20 multiply-adds, a division, and unless it is negligible 20 more, a square root and an
//! exponential; for every state whose children have children n^2 more, with n the latents that may follow.

mod branch;
mod twigs;

use crate::block::Block;
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, row, set, span};
use crate::states::Path;
use branch::{Branch, Step};

pub(crate) use branch::grown_len;

/// The walk over all states of a block.
pub(crate) struct Grown<'x, 'b, 's, T> {
    block: &'x Block<'b, T>,
    sums: &'x mut Sums<'s, 'b, T>,
    max_active: usize,
    /// The state the walk is at, by position.
    path: Path,
}

impl<'x, 'b, 's, T: Real> Grown<'x, 'b, 's, T> {
    /// Adds all states to `sums`, one subset of the reference's members after the other: all states with the same
    /// members see the same residual. The members must be the block's first positions. `memory` is [`grown_len`]
    /// long.
    pub fn walk_all(
        block: &'x Block<'b, T>,
        max_active: usize,
        memory: &mut [T],
        sums: &'x mut Sums<'s, 'b, T>,
    ) {
        let mut walk = Self { block, sums, max_active, path: Path::new() };
        // All members on first: that is the state the reference was found as.
        for subset in (0..1u32 << block.members.len()).rev() {
            if subset.count_ones() as usize <= max_active {
                let mut members = Path::new();
                for member in block.members_in(subset) {
                    let _ = members.push(member as u16); // no more than max_active
                }
                walk.walk_from(&members, memory);
            }
        }
    }

    /// All states of the reference's members `members` and other latents.
    fn walk_from(&mut self, members: &[u16], memory: &mut [T]) {
        let s = self.block.len();
        let missing = self.block.missing(members);
        let Some((mut root, memory)) = branch::carve(memory, self.block.slab) else { return };
        for p in 0..s {
            let entry = [at(self.block.gram_row(p), p), self.block.b_without(p, missing)];
            set(root.candidates, p, entry);
        }
        let above = (0..s).flat_map(|p| span(self.block.gram, p * s + p + 1, s - p - 1));
        root.cross.iter_mut().zip(above).for_each(|(cross, &g)| *cross = g);
        let empty = Joint::new(self.block.energy_without(missing));
        let mass = self.subtree(root.branch(), memory, empty, members);
        self.sums.collect(members, mass, root.sums, root.second);
    }

    /// Sums over the state it is at and all that add latents of `branch` to it: first all of `members`, then any
    /// that are not the reference's. Returns the sum of their weights.
    fn subtree(
        &mut self,
        mut branch: Branch<'_, T>,
        memory: &mut [T],
        joint: Joint<T>,
        members: &[u16],
    ) -> T {
        branch.clear();
        if let Some((&member, members)) = members.split_first() {
            let step = self.step_to_member(&branch, member, joint);
            return self.visit(&mut branch, usize::from(member), step, memory, members);
        }
        let mut mass = self.weigh(joint);
        let mut anchor = self.sums.anchor();
        let mut branch = branch.last(self.block.len() - self.block.members.len());
        match self.max_active - self.path.len() {
            0 => return mass,
            1 => return self.leaves(&mut branch, joint, mass),
            2 => return self.twigs(&mut branch, joint, mass),
            _ => {}
        }
        // The most promising latents stand last.
        for new in (self.block.len() - branch.len()..self.block.len()).rev() {
            let step = Step::to(&branch, new, self.block.len(), joint);
            let weights = self.visit(&mut branch, new, step, memory, &[]);
            if self.sums.anchor() != anchor {
                mass *= self.sums.since(anchor);
                anchor = self.sums.anchor();
            }
            mass += weights;
        }
        mass
    }

    /// Goes to the state that `step`, to position `new`, leads to, and comes back with the sums of its subtree.
    fn visit(
        &mut self,
        branch: &mut Branch<'_, T>,
        new: usize,
        step: Step<T>,
        memory: &mut [T],
        members: &[u16],
    ) -> T {
        let anchor = self.sums.anchor();
        let _ = self.path.push(new as u16); // max_active is within the capacity
        let after = self.block.len().wrapping_sub(new + 1);
        // A state to which nothing can be added has no branch.
        let child = match self.path.len() < self.max_active {
            true => branch::carve(memory, span(self.block.slab, new + 1, after)),
            false => None,
        };
        let (mass, child) = match child {
            Some((mut child, memory)) => {
                if let Some(split) = branch.split(after) {
                    split.eliminate(&step, &mut child);
                }
                (self.subtree(child.branch(), memory, step.joint, members), Some(child))
            }
            None => (self.weigh(step.joint), None),
        };
        self.path.pop();
        if self.sums.anchor() != anchor {
            branch.rescale(self.sums.since(anchor));
        }
        if !(mass <= T::ZERO)
            && let Some(split) = branch.split(after)
        {
            match child {
                Some(mut child) => split.substitute_back(&step, &mut child, mass),
                None => split.add_alone(&step, mass),
            }
        }
        mass
    }

    /// The step to a member of the reference, whose coefficient is about x0.
    fn step_to_member(&self, branch: &Branch<'_, T>, member: u16, joint: Joint<T>) -> Step<T> {
        let p = usize::from(member);
        let [left, seen] = row(branch.candidates, p.wrapping_sub(self.block.len() - branch.len()));
        let [mean, precision, logit, _, root] = row(self.block.slab, p);
        let away = mean - at(self.block.reference, p);
        let variance = T::ONE / (left + precision);
        let v = seen + precision * away;
        let tau = v * variance;
        let exponent = joint.exponent + logit + T::HALF * (v * tau - precision * away * away);
        let scale = joint.scale * (root * variance.sqrt());
        Step { tau, variance, joint: Joint { exponent, scale }.settled() }
    }

    /// The weight of the state it is at.
    fn weigh(&mut self, joint: Joint<T>) -> T {
        if self.sums.is_too_high(joint.exponent) {
            self.sums.lift(joint);
        }
        let weight = self.sums.weight(joint);
        if self.sums.is_best(weight) {
            self.sums.note_best(weight, joint, &self.path, &[]);
        }
        weight
    }
}
