//! Spike-and-slab states, grown: each state is its parent with one latent eliminated (diagonal slab).
//!
//! For the active latents A, with K = diag(1/psi^2), M = G_AA + K, v = b_A + K (mu_A - x0_A):
//!
//! ```text
//! ln p(y, s) = ... + sum l_h - 1/2 ln det M - 1/2 ln det Psi + 1/2 v^T M^-1 v - 1/2 (x0-mu)^T K (x0-mu)
//! kappa = x0_A + M^-1 v        posterior mean          Lambda = M^-1        posterior covariance
//! ```
//!
//! x0 is the reference state's coefficients (zero without one). A state keeps, for every latent p that
//! may still be added, what its active latents leave of it:
//!
//! ```text
//! left_p  = G_pp - G_pA M^-1 G_Ap       cross_pq = G_pq - G_pA M^-1 G_Aq
//! seen_p  = b_p  - G_pA M^-1 v          share_jp = (M^-1 G_Ap)_j
//! ```
//!
//! so that adding p needs no matrix: its pivot is left_p + K_p, its coefficient tau = (seen_p + K mu) /
//! pivot, kappa_j changes by -tau share_jp and Lambda by a rank-one term. Eliminating a latent updates
//! these arrays like a step of Gaussian elimination.
//!
//! Work: about 10 multiply-adds, a division and a logarithm per state, 4 k more for its moments, and
//! for each state that has children n^2 / 2 + (k + 3) n with n the latents that may follow.

use crate::arena::PathMemory;
use crate::block::Block;
use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::select::gain;
use crate::slices::{at, copy, lower_row, lower_row_mut, set, span, span_mut, split, triangle};
use crate::states::{Leaves, Moments, StateModel, Visitor, visit_each};
use heapless::Vec;

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

    /// A state of reference members only: the residual it sees differs from its parent's (one member
    /// fewer is missing), so everything that depends on the sample starts afresh: v, t = L^-1 v, and
    /// the quadratic terms, which are returned.
    fn restart(&mut self, path: &[u16]) -> T {
        let missing = self.block.missing(path);
        let s = self.block.len();
        let mut quadratic = self.block.energy_without(missing);
        for (i, &p) in path.iter().enumerate() {
            let p = usize::from(p);
            let pull = self.slab_pull(p);
            quadratic -= T::HALF * pull * (at(self.block.mean, p) - at(self.block.reference, p));
            let v = self.block.b_without(p, missing) + pull;
            set(self.memory.v, i, v);
            // What the members before p leave of it; their shares of p are still at depth i.
            let mut t = v;
            for j in 0..i {
                t -= at(self.memory.share, (triangle(i) - i + j) * s + p) * at(self.memory.v, j);
            }
            let pivot = at(self.memory.left, i * s + p) + at(self.block.precision, p);
            set(self.memory.step, i, t / pivot);
            quadratic += T::HALF * t * (t / pivot);
        }
        quadratic
    }

    fn is_reference(&self, position: u16) -> bool {
        usize::from(position) < self.block.members.len()
    }

    /// Coefficients of a state of reference members only, after [`Grown::restart`].
    fn restart_mean(&mut self, path: &[u16]) {
        let s = self.block.len();
        for (i, &p) in path.iter().enumerate() {
            let step = at(self.memory.step, i);
            for j in 0..i {
                let share = at(self.memory.share, (triangle(i) - i + j) * s + usize::from(p));
                set(self.memory.mean, j, at(self.memory.mean, j) - step * share);
            }
            set(self.memory.mean, i, at(self.block.reference, usize::from(p)) + step);
        }
    }

    /// The empty state leaves everything.
    fn start(&mut self) {
        let missing = self.block.missing(&[]);
        for p in 0..self.block.len() {
            set(self.memory.left, p, at(self.block.gram_row(p), p));
            set(self.memory.seen, p, self.block.b_without(p, missing));
        }
    }

    /// Log joints of the states that add one more member of the reference to a state of members only.
    fn extend_by_members(&mut self, path: &[u16], first: usize, children: &mut [T]) {
        let mut child: Vec<u16, MAX_ACTIVE> = Vec::new();
        let _ = child.extend_from_slice(path); // shorter than max_active
        for new in first..self.block.members.len() {
            let _ = child.push(new as u16);
            let mut log_joint = self.restart(&child);
            for (i, &p) in child.iter().enumerate() {
                let p = usize::from(p);
                let pivot = at(self.memory.left, i * self.block.len() + p) + at(self.block.precision, p);
                log_joint += at(self.block.onset, p) - T::HALF * pivot.ln();
            }
            set(children, new, log_joint);
            child.pop();
        }
    }

    /// What a state of reference members only sees: the residual without the members it lacks.
    fn see_again(&mut self, path: &[u16]) {
        self.restart(path);
        let (s, k) = (self.block.len(), path.len());
        let missing = self.block.missing(path);
        let first = path.last().map_or(0, |&last| usize::from(last) + 1);
        for p in first..s {
            let mut seen = self.block.b_without(p, missing);
            for j in 0..k {
                seen -= at(self.memory.share, (triangle(k) - k + j) * s + p) * at(self.memory.v, j);
            }
            set(self.memory.seen, k * s + p, seen);
        }
    }

    /// The moments looked at last, kept for the children of that state.
    fn keep_moments(&mut self, k: usize) {
        copy(lower_row_mut(self.memory.means, k), self.memory.mean);
        copy(lower_row_mut(self.memory.variances, k), self.memory.variance);
        let kept = span_mut(self.memory.covariances, covariance_start(k + 1), triangle(k + 1));
        copy(kept, self.memory.covariance);
    }

    /// What the state that adds `new` to its `k` parents leaves of every latent after `new`.
    fn eliminate(&mut self, k: usize, new: usize) {
        let s = self.block.len();
        let t = at(self.memory.seen, k * s + new) + self.slab_pull(new);
        let pivot_inv = T::ONE / (at(self.memory.left, k * s + new) + at(self.block.precision, new));
        let from = new + 1;
        let rest = s.wrapping_sub(from);
        // Entries of the latents that may follow in row `row` of an array with `s` per row.
        let place = |row: usize| row * s + from;

        // The coupling of `new` with the others: from the Gram matrix at the top, from `cross` below.
        let coupling_at = k.checked_sub(1).map(|depth| depth * s * s + place(new));
        let (cross_above, cross_below) = split(self.memory.cross, k * s * s);
        let coupling = match coupling_at {
            None => span(self.block.gram, place(new), rest),
            Some(start) => span(cross_above, start, rest),
        };
        let (above, below) = split(self.memory.left, (k + 1) * s);
        let left = span_mut(below, from, rest).iter_mut().zip(span(above, place(k), rest));
        let (above, below) = split(self.memory.seen, (k + 1) * s);
        let seen = span_mut(below, from, rest).iter_mut().zip(span(above, place(k), rest));
        let (above, below) = split(self.memory.share, triangle(k) * s);
        let own_share = span_mut(below, place(k), rest).iter_mut();
        for ((((left, &left_above), (seen, &seen_above)), share), &g) in
            left.zip(seen).zip(own_share).zip(coupling)
        {
            let c = g * pivot_inv;
            *share = c;
            *left = (left_above - g * c).max(T::ZERO);
            *seen = seen_above - c * t;
        }
        // share_jp of the earlier members
        for j in 0..k {
            let parent_row = triangle(k) - k + j;
            let share_of_new = at(above, parent_row * s + new);
            let (rows, own) = split(below, place(k));
            let parents = span(above, place(parent_row), rest);
            let children = span_mut(rows, place(j), rest).iter_mut();
            for ((share, &parent), &c) in children.zip(parents).zip(own.iter()) {
                *share = parent - share_of_new * c;
            }
        }
        // cross_pq, only for states whose children have children
        if k + 2 < self.max_active {
            for p in from..s {
                let g = at(coupling, p - from) * pivot_inv;
                let parent = match coupling_at {
                    None => span(self.block.gram, place(p), rest),
                    Some(_) => span(cross_above, (k.wrapping_sub(1)) * s * s + place(p), rest),
                };
                let row = span_mut(cross_below, place(p), rest).iter_mut();
                for ((cross, &parent), &other) in row.zip(parent).zip(coupling) {
                    *cross = parent - g * other;
                }
            }
        }
    }
}

impl<T: Real> StateModel<T> for Grown<'_, '_, '_, T> {
    fn empty(&mut self) -> T {
        self.block.energy_without(self.block.missing(&[]))
    }

    fn extend(&mut self, path: &[u16], log_joint: T, children: &mut [T]) {
        match path.split_last() {
            None => self.start(),
            Some((&last, parents)) => {
                self.keep_moments(parents.len());
                self.eliminate(parents.len(), usize::from(last));
                if self.is_reference(last) {
                    self.see_again(path);
                }
            }
        }
        let (s, k) = (self.block.len(), path.len());
        let first = path.last().map_or(0, |&last| usize::from(last) + 1);
        let rest = s.wrapping_sub(first);
        let block = self.block;
        let data = span(self.memory.left, k * s + first, rest).iter().zip(span(
            self.memory.seen,
            k * s + first,
            rest,
        ));
        let slab = span(block.mean, first, rest).iter().zip(span(block.precision, first, rest));
        let out = span_mut(children, first, rest).iter_mut().zip(span(block.onset, first, rest));
        let steps = span_mut(self.memory.child_step, first, rest).iter_mut();
        let steps = steps.zip(span_mut(self.memory.child_variance, first, rest));
        let inputs = data.zip(slab).zip(out.zip(steps));
        for (((&left, &seen), (&mean, &precision)), ((child, &onset), (step, variance))) in inputs {
            let (pivot, pull) = (left + precision, precision * mean);
            *variance = T::ONE / pivot;
            *step = (seen + pull) * *variance;
            *child = log_joint + (onset - T::HALF * pivot.ln() + gain(seen, mean, pull, left, *variance));
        }
        if !block.members.is_empty() && path.iter().all(|&p| self.is_reference(p)) {
            self.extend_by_members(path, first, children);
        }
    }

    fn leaves(&mut self, path: &[u16], children: &mut [T], visitor: &mut impl Visitor<T>) {
        let (s, k) = (self.block.len(), path.len());
        let mut first = path.last().map_or(0, |&last| usize::from(last) + 1);
        let members = self.block.members.len();
        if first < members {
            visit_each(path, first..members, children, self, visitor);
            first = members;
        }
        let mut best = (first, visitor.is_best(at(children, first)), at(children, first));
        for (p, &log_joint) in children.iter().enumerate().skip(first) {
            if log_joint > best.2 {
                best = (p, visitor.is_best(log_joint), log_joint);
            }
        }
        if !visitor.wants(best.2) || first >= s {
            return; // none of them can change the result
        }
        let above = k.wrapping_sub(1);
        let parent = Moments {
            mean: if k > 0 { lower_row(self.memory.means, above) } else { &[] },
            variance: if k > 0 { lower_row(self.memory.variances, above) } else { &[] },
            covariance: span(self.memory.covariances, covariance_start(k), triangle(k)),
        };
        let leaves = Leaves {
            parent,
            first,
            log_joint: children,
            step: self.memory.child_step,
            variance: self.memory.child_variance,
            share: span(self.memory.share, (triangle(k) - k) * s, k * s),
        };
        visitor.take(path, leaves);
        if best.1 {
            let mut child: Vec<u16, MAX_ACTIVE> = Vec::new();
            let _ = child.extend_from_slice(path);
            let _ = child.push(best.0 as u16); // no longer than max_active
            visitor.consider(&child, best.2, self.moments(&child));
        }
    }

    fn moments(&mut self, path: &[u16]) -> Moments<'_, T> {
        let Some((&last, parents)) = path.split_last() else {
            return Moments { mean: &[], variance: &[], covariance: &[] };
        };
        let (s, k, new) = (self.block.len(), parents.len(), usize::from(last));
        let pivot_inv = T::ONE / (at(self.memory.left, k * s + new) + at(self.block.precision, new));
        if self.is_reference(last) {
            self.restart(path);
            self.restart_mean(path);
        } else {
            let step = (at(self.memory.seen, k * s + new) + self.slab_pull(new)) * pivot_inv;
            let parent = span(self.memory.means, triangle(k) - k, k);
            for (j, (mean, &parent)) in self.memory.mean.iter_mut().zip(parent).enumerate() {
                *mean = parent - step * at(self.memory.share, (triangle(k) - k + j) * s + new);
            }
            set(self.memory.mean, k, step);
        }
        let parent = span(self.memory.variances, triangle(k) - k, k);
        for (j, (variance, &parent)) in self.memory.variance.iter_mut().zip(parent).enumerate() {
            let share = at(self.memory.share, (triangle(k) - k + j) * s + new);
            *variance = parent + share * share * pivot_inv;
        }
        set(self.memory.variance, k, pivot_inv);
        if !self.memory.covariance.is_empty() {
            self.grow_covariance(k, new, pivot_inv);
        }
        Moments {
            mean: span(self.memory.mean, 0, k + 1),
            variance: span(self.memory.variance, 0, k + 1),
            covariance: span(self.memory.covariance, 0, triangle(k + 1)),
        }
    }
}

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Lambda of the child: its parent's plus u u^T / pivot, u = (-share, 1).
    fn grow_covariance(&mut self, k: usize, new: usize, pivot_inv: T) {
        let s = self.block.len();
        let parent = span(self.memory.covariances, covariance_start(k), triangle(k));
        let shares =
            self.memory.share.get((triangle(k) - k) * s + new..).unwrap_or(&[]).iter().step_by(s.max(1));
        for (i, &share) in shares.clone().take(k).enumerate() {
            let scaled = share * pivot_inv;
            let row = lower_row_mut(self.memory.covariance, i).iter_mut().zip(lower_row(parent, i));
            for ((entry, &parent), &other) in row.zip(shares.clone()) {
                *entry = parent + scaled * other;
            }
        }
        let last = lower_row_mut(self.memory.covariance, k);
        for (entry, &share) in last.iter_mut().zip(shares) {
            *entry = -(share * pivot_inv);
        }
        set(last, k, pivot_inv);
    }
}

/// Where the packed covariance of a state with `k` latents on starts.
fn covariance_start(k: usize) -> usize {
    // 1 + 3 + 6 + ... of the k - 1 smaller states
    triangle(k) * k.saturating_sub(1) / 3
}
