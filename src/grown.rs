//! Spike-and-slab states, grown: the factor of M gains one row per latent (diagonal slab).
//!
//! For the active latents A, with K = diag(1/psi^2), M = G_AA + K, v = b_A + K (mu_A - x0_A):
//!
//! ```text
//! ln p(y, s) = ... + sum l_h - 1/2 ln det M - 1/2 ln det Psi + 1/2 v^T M^-1 v - 1/2 (x0-mu)^T K (x0-mu)
//! kappa = x0_A + M^-1 v        posterior mean          Lambda = M^-1        posterior covariance
//! ```
//!
//! x0 is the reference state's coefficients (zero without one). A child adds to its parent: a pivot,
//! one entry t of U v, a rank-one term to kappa (t/pivot times the new row of U) and one to Lambda.
//! Work per state with k latents on: k^2 + 6 k multiply-adds, one division, one logarithm.

use crate::arena::PathMemory;
use crate::block::Block;
use crate::factor::Factor;
use crate::math::Real;
use crate::select::gain;
use crate::slices::{at, lower_row, lower_row_mut, set, span, span_mut, strict_row, triangle};
use crate::states::StateModel;

pub(crate) struct Grown<'x, 'm, T> {
    block: &'x Block<'m, T>,
    factor: Factor<'x, T>,
    /// U v. (A)
    forward: &'x mut [T],
    /// Per depth: sum of l_h + 1/2 ln K - 1/2 ln pivot. (A + 1)
    log_factor: &'x mut [T],
    /// Per depth: the quadratic terms of the log joint. (A + 1)
    quadratic: &'x mut [T],
    /// kappa per depth, packed.
    mean: &'x mut [T],
    /// Diagonal of Lambda per depth, packed.
    variance: &'x mut [T],
    /// Lambda per depth, packed; empty unless second moments are asked for.
    covariance: &'x mut [T],
}

impl<'x, 'm, T: Real> Grown<'x, 'm, T> {
    /// The block's reference members must be its first positions.
    pub fn new(block: &'x Block<'m, T>, memory: &'x mut PathMemory<'_, T>) -> Self {
        Self {
            block,
            factor: Factor {
                rows: memory.rows,
                pivot_inv: memory.pivot_inv,
                coupling: memory.coupling,
            },
            forward: memory.forward,
            log_factor: memory.log_factor,
            quadratic: memory.quadratic,
            mean: memory.mean,
            variance: memory.variance,
            covariance: memory.covariance,
        }
    }

    /// K (mu - x0) at position `p`: the slab's pull.
    fn slab_pull(&self, p: usize) -> T {
        at(self.block.precision, p) * (at(self.block.mean, p) - at(self.block.reference, p))
    }

    /// A state of reference members only: the residual it sees differs from its parent's (one member
    /// fewer is missing), so t and the quadratic terms start afresh. All states below it that add
    /// other latents share them.
    fn restart(&mut self, path: &[u16]) -> T {
        let missing = self.block.missing(path);
        let mut quadratic = self.block.energy_without(missing);
        for (i, &p) in path.iter().enumerate() {
            let p = usize::from(p);
            let pull = self.slab_pull(p);
            quadratic -= T::HALF * pull * (at(self.block.mean, p) - at(self.block.reference, p));
            set(self.forward, i, self.block.b_without(p, missing) + pull);
        }
        if let Some(k) = path.len().checked_sub(1) {
            // The last row of U is not settled yet; its coupling gives the same.
            self.factor.forward(span_mut(self.forward, 0, k));
            let t = at(self.forward, k) - self.factor.explained(k, self.forward);
            set(self.forward, k, t);
        }
        for (&t, &pivot_inv) in self.forward.iter().zip(self.factor.pivot_inv.iter()).take(path.len()) {
            quadratic += T::HALF * t * t * pivot_inv;
        }
        quadratic
    }

    fn is_reference(&self, position: u16) -> bool {
        usize::from(position) < self.block.members.len()
    }
}

impl<T: Real> StateModel<T> for Grown<'_, '_, T> {
    fn extend(&mut self, path: &[u16]) -> T {
        let Some((&last, parents)) = path.split_last() else {
            set(self.log_factor, 0, T::ZERO);
            let quadratic = self.restart(path);
            set(self.quadratic, 0, quadratic);
            return quadratic;
        };
        let (k, new) = (parents.len(), usize::from(last));
        let row = self.block.gram_row(new);
        let precision = at(self.block.precision, new);
        let g = parents.iter().map(|&p| at(row, usize::from(p)));
        let left = self.factor.couple(k, g, at(row, new), precision);
        let log_factor = at(self.log_factor, k) + (at(self.block.onset, new) - T::HALF * (left + precision).ln());
        let quadratic = if self.is_reference(last) {
            self.restart(path)
        } else {
            let b = if self.block.members.is_empty() {
                at(self.block.b, new)
            } else {
                self.block.b_without(new, self.block.missing(parents))
            };
            // Not in the reference: x0 = 0, and b is what the parents leave of it.
            let (mean, pull) = (at(self.block.mean, new), self.slab_pull(new));
            let b = b - self.factor.explained(k, self.forward);
            set(self.forward, k, b + pull);
            at(self.quadratic, k) + gain(b, mean, pull, left, at(self.factor.pivot_inv, k))
        };
        set(self.log_factor, k + 1, log_factor);
        set(self.quadratic, k + 1, quadratic);
        log_factor + quadratic
    }

    fn settle(&mut self, path: &[u16]) {
        let Some((&last, parents)) = path.split_last() else { return };
        let k = parents.len();
        let is_reference = self.is_reference(last);
        self.factor.settle(k);
        let row = strict_row(self.factor.rows, k);
        let pivot_inv = at(self.factor.pivot_inv, k);

        let Some((before, rest)) = self.mean.split_at_mut_checked(triangle(k)) else { return };
        let mean = span_mut(rest, 0, k + 1);
        if is_reference {
            for (mean, &p) in mean.iter_mut().zip(path) {
                *mean = at(self.block.reference, usize::from(p));
            }
            self.factor.add_solution(span(self.forward, 0, k + 1), mean);
        } else {
            let step = at(self.forward, k) * pivot_inv;
            let parent = span(before, triangle(k) - k, k);
            for ((mean, &parent), &u) in mean.iter_mut().zip(parent).zip(row) {
                *mean = parent + step * u;
            }
            set(mean, k, step);
        }

        let Some((before, rest)) = self.variance.split_at_mut_checked(triangle(k)) else { return };
        let variance = span_mut(rest, 0, k + 1);
        let parent = span(before, triangle(k) - k, k);
        for ((variance, &parent), &u) in variance.iter_mut().zip(parent).zip(row) {
            *variance = parent + u * u * pivot_inv;
        }
        set(variance, k, pivot_inv);

        if !self.covariance.is_empty() {
            grow_covariance(self.covariance, k, row, pivot_inv);
        }
    }

    fn coefficients(&self, path: &[u16]) -> (&[T], &[T]) {
        match path.len().checked_sub(1) {
            Some(k) => (lower_row(self.mean, k), lower_row(self.variance, k)),
            None => (&[], &[]),
        }
    }

    fn covariance(&self, path: &[u16]) -> &[T] {
        span(self.covariance, covariance_start(path.len()), triangle(path.len()))
    }
}

/// Where the packed covariance of a state with `k` latents on starts.
fn covariance_start(k: usize) -> usize {
    // 1 + 3 + 6 + ... of the k - 1 smaller states
    triangle(k) * k.saturating_sub(1) / 3
}

/// Lambda of the child: its parent's plus u u^T / pivot with u the new row of U, itself included.
fn grow_covariance<T: Real>(covariance: &mut [T], k: usize, row: &[T], pivot_inv: T) {
    let Some((before, rest)) = covariance.split_at_mut_checked(covariance_start(k + 1)) else { return };
    let parent = span(before, covariance_start(k), triangle(k));
    for (i, &u) in row.iter().enumerate() {
        let scaled = u * pivot_inv;
        let entries = lower_row_mut(rest, i).iter_mut().zip(lower_row(parent, i)).zip(row);
        for ((entry, &parent), &other) in entries {
            *entry = parent + scaled * other;
        }
    }
    let last = lower_row_mut(rest, k);
    for (entry, &u) in last.iter_mut().zip(row) {
        *entry = u * pivot_inv;
    }
    set(last, k, pivot_inv);
}
