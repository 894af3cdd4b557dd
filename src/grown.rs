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
//! up the tree the sums over subtrees come back by back-substitution ([`branch`]). Most states are among the last three
//! latents of their path; they are summed where they are met ([`twigs`]). The deepest call has
//! gamma - 3 others below it on the stack.
//!
//! Work per state: about 10 multiply-adds, a division, and unless it is negligible 16 more, a square root and an
//! exponential; for every state that more than two latents may be added to n^2 more, with n the latents that may follow.

mod branch;
mod twigs;

use crate::block::Block;
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, row, span};
use crate::states::Path;
use branch::{Branch, Step};

pub(crate) use branch::{BranchMemory, Pair, Total, branch_len};

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
    /// members see the same residual. The members must be the block's first positions; those in `always` are in every subset.
    pub fn walk_all(
        block: &'x Block<'b, T>,
        always: u32,
        max_active: usize,
        mut memory: BranchMemory<'_, T>,
        sums: &'x mut Sums<'s, 'b, T>,
    ) {
        let mut walk = Self { block, sums, max_active, path: Path::new() };
        // All members on first: that is the state the reference was found as.
        let free = ((1 << block.members.len()) - 1) & !always;
        let mut chosen = free;
        loop {
            if (chosen | always).count_ones() as usize <= max_active {
                let mut members = Path::new();
                for member in block.members_in(chosen | always) {
                    let _ = members.push(member as u16); // no more than max_active
                }
                walk.walk_from(&members, &mut memory);
            }
            if chosen == 0 {
                return;
            }
            chosen = (chosen - 1) & free; // the next smaller subset
        }
    }

    /// All states of the reference's members `members` and other latents.
    fn walk_from(&mut self, members: &[u16], memory: &mut BranchMemory<'_, T>) {
        let (s, zero) = (self.block.len(), T::ZERO);
        let missing = self.block.missing(members);
        let Some((mut root, memory)) = memory.carve(s) else { return };
        root.totals.fill([zero; 3]);
        let mut pairs = &mut *root.pairs;
        let mut row = &*self.block.gram;
        for (p, (latent, &seen)) in root.given.iter_mut().zip(self.block.b.iter()).enumerate() {
            let Some((&own, later)) = row.split_first() else { break };
            *latent = [own, seen, zero, zero];
            let Some((own, rest)) = pairs.split_at_mut_checked(s - p - 1) else { break };
            for (pair, &g) in own.iter_mut().zip(later) {
                *pair = [g, zero];
            }
            pairs = rest;
            row = later.get(s..).unwrap_or(&[]);
        }
        // What the missing members leave in the residual.
        for member in self.block.members_in(missing) {
            let share = at(self.block.reference, member);
            for (latent, &g) in root.given.iter_mut().zip(self.block.gram_row(member)) {
                latent[1] += g * share;
            }
        }
        let empty = Joint::new(self.block.energy_without(missing));
        let mass = self.subtree(&mut root, memory, empty, members);
        self.sums.collect(members, mass, root.totals, root.pairs);
    }

    /// Sums over the state it is at and all that add latents of `branch` to it: first all of `members`, then any
    /// that are not the reference's. Returns the sum of their weights.
    fn subtree(
        &mut self,
        branch: &mut Branch<'_, T>,
        mut memory: BranchMemory<'_, T>,
        joint: Joint<T>,
        members: &[u16],
    ) -> T {
        if let Some((&member, members)) = members.split_first() {
            let step = self.step_to_member(branch, member, joint);
            return self.visit(branch, usize::from(member), step, &mut memory, members);
        }
        let mut mass = self.weigh(joint);
        let mut branch = branch.last(self.block.len() - self.block.members.len());
        match self.max_active - self.path.len() {
            0 => return mass,
            1 => return self.twigs(&mut branch, joint, mass, false),
            2 => return self.twigs(&mut branch, joint, mass, true),
            3 => return self.thirds(&mut branch, memory.given, joint, mass),
            _ => {}
        }
        let first = self.block.len() - branch.len();
        // The most promising latents stand last.
        for (i, slab) in span(self.block.slab, first, branch.len()).iter().enumerate().rev() {
            let step = Step::new(&row(branch.given, i), slab, joint);
            let anchor = self.sums.anchor();
            let weights = self.visit(&mut branch, first + i, step, &mut memory, &[]);
            if self.sums.anchor() != anchor {
                mass *= self.sums.since(anchor);
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
        memory: &mut BranchMemory<'_, T>,
        members: &[u16],
    ) -> T {
        let anchor = self.sums.anchor();
        let after = self.block.len().wrapping_sub(new + 1);
        let _ = self.path.push(new as u16); // max_active is within the capacity
        let child = if after > 0 && self.path.len() < self.max_active { memory.carve(after) } else { None };
        let Some((mut child, memory)) = child else {
            // Nothing can be added to this one.
            let mass = self.weigh(step.joint);
            self.path.pop();
            self.keep_up(anchor, branch);
            if let Some((own, _)) = branch.split(after) {
                step.add_moments(own.total, mass, T::ZERO, T::ZERO);
            }
            return mass;
        };
        if let Some((own, rest)) = branch.split(after) {
            rest.eliminate(own, &step, &mut child);
        }
        let mass = self.subtree(&mut child, memory, step.joint, members);
        self.path.pop();
        self.keep_up(anchor, branch);
        if !(mass <= T::ZERO)
            && let Some((own, mut rest)) = branch.split(after)
        {
            rest.substitute_back(&step, mass, child, own);
        }
        mass
    }

    /// Makes a branch whose sums are relative to an earlier anchor relative to the present one.
    fn keep_up(&self, anchor: T, branch: &mut Branch<'_, T>) {
        if self.sums.anchor() != anchor {
            branch.rescale(self.sums.since(anchor));
        }
    }

    /// The step to a member of the reference, whose coefficient is about x0.
    fn step_to_member(&self, branch: &Branch<'_, T>, member: u16, joint: Joint<T>) -> Step<T> {
        let p = usize::from(member);
        let [left, seen, ..] = row(branch.given, (p + branch.len()).wrapping_sub(self.block.len()));
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
