//! Spike-and-slab states, grown: each state is its parent with one latent eliminated (diagonal slab).
//!
//! For the active latents A, with K = diag(1/psi^2), M = G_AA + K and v = b_A + K (mu_A - x0_A), where x0
//! are the reference state's coefficients (zero without one) and b sees what these leave of the sample:
//!
//! ```text
//! ln p(y, s) = ... + sum l_h - 1/2 ln det M - 1/2 ln det Psi + 1/2 v^T M^-1 v - 1/2 (x0-mu)^T K (x0-mu)
//! ```
//!
//! **Down.** A state keeps, for every latent p that may still be added, what its active latents leave of
//! it: `left` = G_pp - G_pA M^-1 G_Ap, `seen` = b_p - G_pA M^-1 v, `cross` = G_pq - G_pA M^-1 G_Aq. Adding p
//! then needs no matrix: its pivot is left + K, its coefficient tau = (seen + K (mu - x0)) / pivot.
//! Eliminating it updates these arrays like a step of Gaussian elimination, with ratio_p = cross / pivot.
//!
//! **Up.** Given the latents added after it, the coefficient of an eliminated latent is normal with mean
//! tau - sum_p ratio_p x_p and variance 1 / pivot. So the sums over a subtree, mass W, first E_p = sum w <x_p>
//! and second F_pq = sum w <x_p x_q> of the latents added below, give those of the latent itself:
//!
//! ```text
//! E = W tau - ratio.E      F_p = tau E_p - (F ratio)_p      F = W (tau^2 + 1/pivot) - 2 tau ratio.E + ratio.F ratio
//! ```
//!
//! Work: about 20 multiply-adds, a division, a logarithm and an exponential per state, and n^2 more for
//! every state whose children have children, with n the latents that may follow.

use crate::arena::PathMemory;
use crate::block::Block;
use crate::math::Real;
use crate::posterior::Sums;
use crate::select::gain;
use crate::slices::{at, set, span, span_mut, split};
use crate::states::{Path, Room, StateModel, walk};

pub(crate) struct Grown<'x, 'b, 'm, T> {
    block: &'x Block<'b, T>,
    max_active: usize,
    memory: &'x mut PathMemory<'m, T>,
}

impl<'x, 'b, 'm, T: Real> Grown<'x, 'b, 'm, T> {
    /// The block's reference members must be its first positions.
    pub fn new(block: &'x Block<'b, T>, max_active: usize, memory: &'x mut PathMemory<'m, T>) -> Self {
        Self { block, max_active, memory }
    }

    /// K (mu - x0) at position `p`: the slab's pull.
    fn slab_pull(&self, p: usize) -> T {
        at(self.block.precision, p) * (at(self.block.mean, p) - at(self.block.reference, p))
    }

    /// Goes to the state that has exactly these members of the reference on (ascending), and returns
    /// its log joint. All states that add other latents to it see the same residual.
    fn enter(&mut self, members: &[u16]) -> T {
        let missing = self.block.missing(members);
        for p in 0..self.block.len() {
            set(self.memory.left, p, at(self.block.gram_row(p), p));
            set(self.memory.seen, p, self.block.b_without(p, missing));
        }
        let mut log_joint = self.block.energy_without(missing);
        for (k, &member) in members.iter().enumerate() {
            let p = usize::from(member);
            self.descend(k, p);
            let tau = at(self.memory.tau, k);
            let pull = self.slab_pull(p);
            let t = at(self.memory.seen, k * self.block.len() + p) + pull;
            let pivot = at(self.memory.left, k * self.block.len() + p) + at(self.block.precision, p);
            log_joint += at(self.block.onset, p) - T::HALF * pivot.ln() + T::HALF * t * tau
                - T::HALF * pull * (at(self.block.mean, p) - at(self.block.reference, p));
        }
        log_joint
    }

    /// All states, one subset of the reference's members after the other: their sums go to `sums`.
    pub fn walk_all(&mut self, log_joints: &mut [T], sums: &mut Sums<'_, '_, T>) {
        // All members on first: that is the state the reference was found as.
        for subset in (0..1u32 << self.block.members.len()).rev() {
            if subset.count_ones() as usize <= self.max_active {
                let mut members = Path::new();
                for member in self.block.members_in(subset) {
                    let _ = members.push(member as u16); // no more than max_active
                }
                self.walk_from(&members, log_joints, sums);
            }
        }
    }

    /// All states of the reference's members `members` and other latents: their sums go to `sums`.
    fn walk_from(&mut self, members: &[u16], log_joints: &mut [T], sums: &mut Sums<'_, '_, T>) {
        let log_joint = self.enter(members);
        let mut path = Path::new();
        let _ = path.extend_from_slice(members); // no more than max_active
        let weight = sums.weight(&path, log_joint, self);
        self.open_at(members.len(), weight);
        let room = Room {
            first: self.block.members.len(),
            positions: self.block.len(),
            max_active: self.max_active,
        };
        walk(room, &mut path, log_joint, log_joints, self, sums);
        for (k, &member) in members.iter().enumerate().rev() {
            self.open_at(k, T::ZERO);
            self.ascend(k, usize::from(member));
        }
        let s = self.block.len();
        let memory = &self.memory;
        let first = span(memory.first, 0, s);
        sums.collect(
            members,
            at(memory.mass, 0),
            span(memory.on, 0, s),
            first,
            span(memory.second, 0, s * s),
        );
    }

    fn open_at(&mut self, k: usize, weight: T) {
        let s = self.block.len();
        set(self.memory.mass, k, weight);
        span_mut(self.memory.on, k * s, s).fill(T::ZERO);
        span_mut(self.memory.first, k * s, s).fill(T::ZERO);
        span_mut(self.memory.second, k * s * s, s * s).fill(T::ZERO);
    }
}

impl<T: Real> StateModel<T> for Grown<'_, '_, '_, T> {
    fn descend(&mut self, k: usize, new: usize) {
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let t = at(self.memory.seen, k * s + new) + self.slab_pull(new);
        let pivot_inv = T::ONE / (at(self.memory.left, k * s + new) + at(self.block.precision, new));
        set(self.memory.pivot_inv, k, pivot_inv);
        set(self.memory.tau, k, t * pivot_inv);
        if k + 1 >= self.max_active {
            return; // nothing can be added to it
        }
        let (cross_above, cross_below) = split(self.memory.cross, k * s * s);
        let above = match k.checked_sub(1) {
            None => &*self.block.gram,
            Some(depth) => span(cross_above, depth * s * s, s * s),
        };
        let coupling = span(above, new * s + from, rest);
        let ratio = span_mut(self.memory.ratio, k * s + from, rest);
        let (left_above, left_below) = split(self.memory.left, (k + 1) * s);
        let (seen_above, seen_below) = split(self.memory.seen, (k + 1) * s);
        let left = span_mut(left_below, from, rest).iter_mut().zip(span(left_above, k * s + from, rest));
        let seen = span_mut(seen_below, from, rest).iter_mut().zip(span(seen_above, k * s + from, rest));
        for ((&g, ratio), ((left, &left_above), (seen, &seen_above))) in
            coupling.iter().zip(ratio.iter_mut()).zip(left.zip(seen))
        {
            let r = g * pivot_inv;
            *ratio = r;
            *left = (left_above - g * r).max(T::ZERO);
            *seen = seen_above - r * t;
        }
        if k + 2 < self.max_active {
            for (i, &r) in ratio.iter().enumerate() {
                let start = (from + i) * s + from + i + 1;
                let rest = rest.wrapping_sub(i + 1);
                let rows = span_mut(cross_below, start, rest).iter_mut().zip(span(above, start, rest));
                for ((cross, &above), &g) in rows.zip(coupling.get(i + 1..).unwrap_or(&[])) {
                    *cross = above - r * g;
                }
            }
        }
    }

    fn children(&mut self, k: usize, first: usize, log_joint: T, children: &mut [T]) {
        let s = self.block.len();
        let rest = s.wrapping_sub(first);
        let data = span(self.memory.left, k * s + first, rest).iter().zip(span(
            self.memory.seen,
            k * s + first,
            rest,
        ));
        let slab = span(self.block.mean, first, rest).iter().zip(span(self.block.precision, first, rest));
        let out = span_mut(children, first, rest).iter_mut().zip(span(self.block.onset, first, rest));
        let steps = span_mut(self.memory.child_step, first, rest).iter_mut();
        let steps = steps.zip(span_mut(self.memory.child_variance, first, rest));
        let inputs = data.zip(slab).zip(out.zip(steps));
        for (((&left, &seen), (&mean, &precision)), ((child, &onset), (step, variance))) in inputs {
            let (pivot, pull) = (left + precision, precision * mean);
            *variance = T::ONE / pivot;
            *step = (seen + pull) * *variance;
            *child = log_joint + (onset - T::HALF * pivot.ln() + gain(seen, mean, pull, left, *variance));
        }
    }

    fn open(&mut self, path: &[u16], weight: T, _: &mut Sums<'_, '_, T>) {
        self.open_at(path.len(), weight);
    }

    fn add_leaves(&mut self, path: &[u16], first: usize, weights: &[T], _: &mut Sums<'_, '_, T>) {
        let (s, k) = (self.block.len(), path.len());
        let rest = s.wrapping_sub(first);
        let mut sum = at(self.memory.mass, k);
        let on = span_mut(self.memory.on, k * s + first, rest).iter_mut();
        let sums = on.zip(span_mut(self.memory.first, k * s + first, rest));
        let states = span(self.memory.child_step, first, rest).iter().zip(span(
            self.memory.child_variance,
            first,
            rest,
        ));
        let inputs = weights.get(first..).unwrap_or(&[]).iter().zip(states).zip(sums);
        for (i, ((&w, (&tau, &variance)), (on, mean))) in inputs.enumerate() {
            sum += w;
            *on += w;
            *mean += w * tau;
            let diagonal = k * s * s + (first + i) * (s + 1);
            let square = at(self.memory.second, diagonal) + w * (variance + tau * tau);
            set(self.memory.second, diagonal, square);
        }
        set(self.memory.mass, k, sum);
    }

    fn ascend(&mut self, k: usize, new: usize) {
        let s = self.block.len();
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let (tau, pivot_inv, mass) =
            (at(self.memory.tau, k), at(self.memory.pivot_inv, k), at(self.memory.mass, k + 1));
        let ratio = span(self.memory.ratio, k * s + from, rest);
        let (on, on_below) = split(self.memory.on, (k + 1) * s);
        let (first, first_below) = split(self.memory.first, (k + 1) * s);
        let (second, second_below) = split(self.memory.second, (k + 1) * s * s);
        let (on, first) = (span_mut(on, k * s, s), span_mut(first, k * s, s));
        let second = span_mut(second, k * s * s, s * s);
        let first_below = span(first_below, from, rest);
        // F ratio, by rows of the upper triangle, which go up as they are on the way.
        let moved = span_mut(self.memory.child_step, from, rest);
        moved.fill(T::ZERO);
        for (i, &r) in ratio.iter().enumerate() {
            let start = (from + i) * (s + 1);
            let len = rest.wrapping_sub(i);
            let mut sum = T::ZERO;
            let rows = span_mut(second, start, len).iter_mut().zip(span(second_below, start, len));
            let columns = moved.get_mut(i..).unwrap_or(&mut []).iter_mut().zip(ratio.get(i..).unwrap_or(&[]));
            for (j, ((total, &below), (moved, &other))) in rows.zip(columns).enumerate() {
                *total += below;
                sum += below * other;
                if j > 0 {
                    *moved += below * r;
                }
            }
            if let Some(moved) = moved.get_mut(i) {
                *moved += sum;
            }
        }
        let (mut ratio_first, mut ratio_second) = (T::ZERO, T::ZERO);
        let own = span_mut(second, new * s + from, rest).iter_mut();
        for (((own, &mean), &moved), &r) in own.zip(first_below).zip(moved.iter()).zip(ratio) {
            *own += tau * mean - moved;
            ratio_first += r * mean;
            ratio_second += r * moved;
        }
        let below = span(on_below, from, rest).iter().zip(first_below);
        let above = span_mut(on, from, rest).iter_mut().zip(span_mut(first, from, rest));
        for ((on, first), (&on_below, &first_below)) in above.zip(below) {
            *on += on_below;
            *first += first_below;
        }
        let add = |sums: &mut [T], place: usize, value: T| set(sums, place, at(sums, place) + value);
        add(on, new, mass);
        add(first, new, mass * tau - ratio_first);
        let square = mass * (tau * tau + pivot_inv) - (tau + tau) * ratio_first + ratio_second;
        add(second, new * (s + 1), square);
        add(self.memory.mass, k, mass);
    }

    fn ascend_leaves(&mut self, path: &[u16], weight: T, weights: &[T], _: &mut Sums<'_, '_, T>) {
        let Some((&last, parents)) = path.split_last() else { return };
        let (s, k, new) = (self.block.len(), parents.len(), usize::from(last));
        let (from, rest) = (new + 1, s.wrapping_sub(new + 1));
        let (tau, pivot_inv) = (at(self.memory.tau, k), at(self.memory.pivot_inv, k));
        let (mut mass, mut ratio_first, mut ratio_second) = (weight, T::ZERO, T::ZERO);
        let own = span_mut(self.memory.second, k * s * s + new * s + from, rest).iter_mut();
        let on = span_mut(self.memory.on, k * s + from, rest).iter_mut();
        let sums = on.zip(span_mut(self.memory.first, k * s + from, rest)).zip(own);
        let squares = span_mut(self.memory.child_variance, from, rest);
        let steps = span(self.memory.child_step, from, rest).iter().zip(squares.iter_mut());
        let steps = steps.zip(span(self.memory.ratio, k * s + from, rest));
        let weights = weights.get(from..).unwrap_or(&[]).iter();
        for ((&w, ((&step, square), &r)), ((on, first), own)) in weights.zip(steps).zip(sums) {
            let mean = w * step;
            *square = w * (*square + step * step);
            mass += w;
            *on += w;
            *first += mean;
            *own += tau * mean - r * *square;
            ratio_first += r * mean;
            ratio_second += r * r * *square;
        }
        for (i, &square) in squares.iter().enumerate() {
            let diagonal = k * s * s + (from + i) * (s + 1);
            set(self.memory.second, diagonal, at(self.memory.second, diagonal) + square);
        }
        let add = |sums: &mut [T], place: usize, value: T| set(sums, place, at(sums, place) + value);
        add(self.memory.on, k * s + new, mass);
        add(self.memory.first, k * s + new, mass * tau - ratio_first);
        let square = mass * (tau * tau + pivot_inv) - (tau + tau) * ratio_first + ratio_second;
        add(self.memory.second, k * s * s + new * (s + 1), square);
        add(self.memory.mass, k, mass);
    }

    fn rescale(&mut self, factor: T) {
        let memory = &mut self.memory;
        for sums in [&mut *memory.mass, memory.on, memory.first, memory.second] {
            sums.iter_mut().for_each(|sum| *sum *= factor);
        }
    }
}
