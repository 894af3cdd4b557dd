//! Spike-and-slab states, grown: each state is its parent with one latent eliminated (diagonal slab).
//!
//! For the active latents A, with K = diag(1/psi^2), M = G_AA + K and v = b_A + K (mu_A - x0_A), where x0
//! are the reference state's coefficients (zero without one) and b sees what these leave of the sample:
//!
//! ```text
//! ln p(y, s) = ... + sum l_h - 1/2 ln det M - 1/2 ln det Psi + 1/2 v^T M^-1 v - 1/2 (x0-mu)^T K (x0-mu)
//! ```
//!
//! [`down`]: a state keeps, for every latent p that may still be added, what its active latents leave of
//! it: `left` = G_pp - G_pA M^-1 G_Ap, `seen` = b_p - G_pA M^-1 v, `cross` = G_pq - G_pA M^-1 G_Aq. Adding p
//! then needs no matrix: its pivot is left + K, its coefficient tau = (seen + K (mu - x0)) / pivot.
//! Eliminating it updates these arrays like a step of Gaussian elimination, with ratio_p = cross / pivot.
//!
//! [`up`]: given the latents added after it, the coefficient of an eliminated latent is normal with mean
//! tau - sum_p ratio_p x_p and variance 1 / pivot. So the sums over a subtree, mass W, first E_p = sum w <x_p>
//! and second F_pq = sum w <x_p x_q> of the latents added below, give those of the latent itself:
//!
//! ```text
//! E = W tau - ratio.E      F_p = tau E_p - (F ratio)_p      F = W (tau^2 + 1/pivot) - 2 tau ratio.E + ratio.F ratio
//! ```
//!
//! Work per state: about 20 multiply-adds, a division, and unless it is negligible 20 more, a square root and an
//! exponential; for every state whose children have children n^2 more, with n the latents that may follow.

mod down;
mod up;

use crate::arena::PathMemory;
use crate::block::Block;
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, pairs, row, set, span};
use crate::states::{Path, Room, StateModel, walk};

pub(crate) struct Grown<'x, 'b, 'm, T> {
    block: &'x Block<'b, T>,
    max_active: usize,
    /// Whether `<x x'>` of different latents is asked for, not only needed on the way.
    second_moments: bool,
    memory: &'x mut PathMemory<'m, T>,
}

impl<'x, 'b, 'm, T: Real> Grown<'x, 'b, 'm, T> {
    /// The block's reference members must be its first positions.
    pub fn new(
        block: &'x Block<'b, T>,
        max_active: usize,
        second_moments: bool,
        memory: &'x mut PathMemory<'m, T>,
    ) -> Self {
        Self { block, max_active, second_moments, memory }
    }

    /// All states, one subset of the reference's members after the other: their sums go to `sums`.
    pub fn walk_all(&mut self, sums: &mut Sums<'_, '_, T>) {
        // All members on first: that is the state the reference was found as.
        for subset in (0..1u32 << self.block.members.len()).rev() {
            if subset.count_ones() as usize <= self.max_active {
                let mut members = Path::new();
                for member in self.block.members_in(subset) {
                    let _ = members.push(member as u16); // no more than max_active
                }
                self.walk_from(&members, sums);
            }
        }
    }

    /// All states of the reference's members `members` and other latents: their sums go to `sums`.
    fn walk_from(&mut self, members: &[u16], sums: &mut Sums<'_, '_, T>) {
        let joint = self.enter(members);
        let weight = self.weigh(joint, members, &[], sums);
        self.open_at(members.len(), 0, weight);
        let room =
            Room { first: self.block.members.len(), positions: self.block.len(), max_active: self.max_active };
        let mut path = Path::new();
        let _ = path.extend_from_slice(members); // no more than max_active
        walk(room, &mut path, self, sums);
        for (k, &member) in members.iter().enumerate().rev() {
            self.open_at(k, 0, T::ZERO);
            self.ascend(k, usize::from(member));
        }
        let s = self.block.len();
        let memory = &self.memory;
        sums.collect(members, at(memory.mass, 0), span(memory.sums, 0, s), span(memory.second, 0, pairs(s)));
    }

    /// Goes to the state that has exactly these members of the reference on (ascending). All states
    /// that add other latents to it see the same residual.
    fn enter(&mut self, members: &[u16]) -> Joint<T> {
        let (s, missing) = (self.block.len(), self.block.missing(members));
        for p in 0..s {
            let entry = [at(self.block.gram_row(p), p), self.block.b_without(p, missing)];
            set(self.memory.candidates, p, entry);
        }
        let above = (0..s).flat_map(|p| span(self.block.gram, p * s + p + 1, s - p - 1));
        self.memory.cross.iter_mut().zip(above).for_each(|(cross, &g)| *cross = g);
        let mut joint = Joint::new(self.block.energy_without(missing));
        for (k, &member) in members.iter().enumerate() {
            let p = usize::from(member);
            let [left, seen] = row(self.memory.candidates, k * s + p);
            let [mean, precision, logit, _, root] = row(self.block.slab, p);
            let away = mean - at(self.block.reference, p);
            let variance = T::ONE / (left + precision);
            let tau = (seen + precision * away) * variance;
            joint.exponent += logit + T::HALF * ((seen + precision * away) * tau - precision * away * away);
            joint.scale *= root * variance.sqrt();
            joint = joint.settled();
            set(self.memory.steps, k, [tau, variance]);
            self.descend(k, p);
        }
        set(self.memory.joints, members.len(), [joint.exponent, joint.scale]);
        joint
    }
}

impl<T: Real> StateModel<T> for Grown<'_, '_, '_, T> {
    fn step(&mut self, k: usize, new: usize) -> Joint<T> {
        self.evaluate(k, new)
    }

    fn descend(&mut self, k: usize, new: usize) {
        self.eliminate(k, new);
    }

    fn open(&mut self, path: &[u16], weight: T, _: &mut Sums<'_, '_, T>) {
        let from = path.last().map_or(0, |&last| usize::from(last) + 1);
        self.open_at(path.len(), from, weight);
    }

    fn add_twigs(&mut self, path: &[u16], first: usize, sums: &mut Sums<'_, '_, T>) {
        while let Some(too_high) = self.twigs(path, first, sums) {
            let factor = sums.lift(too_high);
            self.rescale(factor);
            self.clear(path.len(), first);
        }
    }

    fn add_leaves(&mut self, path: &[u16], first: usize, sums: &mut Sums<'_, '_, T>) {
        for new in first..self.block.len() {
            let joint = self.evaluate(path.len(), new);
            let weight = self.weigh(joint, path, &[new], sums);
            self.leaf(path.len(), new, weight);
        }
    }

    fn ascend(&mut self, k: usize, new: usize) {
        self.substitute_back(k, new);
    }

    fn rescale(&mut self, factor: T) {
        let memory = &mut self.memory;
        memory.sums.as_flattened_mut().iter_mut().for_each(|sum| *sum *= factor);
        for sums in [&mut *memory.mass, memory.second] {
            sums.iter_mut().for_each(|sum| *sum *= factor);
        }
    }
}
