//! Spike-and-slab states from precomputed factors: any slab, no square root, division or logarithm.
//!
//! Each state is computed from its own record ([`StateTable`]), relative to an expansion point a:
//! the reference's coefficient for its members, the resting coefficient for the others. With r_A what A's
//! residual is at z = a, v = W_A^T Sigma^-1 r_A + K (mu - a) and t = L^-1 v:
//!
//! ```text
//! ln p(y, s) = ... + constant - 1/2 r_A^T Sigma^-1 r_A - 1/2 (a - mu)^T K (a - mu) + 1/2 |t|^2
//! kappa = a + L^-T t          Lambda = L^-T L^-1
//! ```
//!
//! Work per state with k latents on: 2 k^2 + 4 k multiply-adds (3 k^2 with a full slab).

use crate::arena::WorkMemory;
use crate::block::Block;
use crate::capacity::MAX_ACTIVE;
use crate::math::{Real, binomial};
use crate::model::StateTable;
use crate::posterior::{Joint, Moments, Sums};
use crate::slices::{at, copy, dot, lower_row, lower_row_mut, set, span, span_mut, triangle};
use crate::states::each_path;
use heapless::Vec;

pub(crate) struct Tabled<'x, 'b, 'm, T> {
    block: &'x Block<'b, T>,
    table: StateTable<'x, T>,
    /// Where the records of states with k latents on start.
    starts: Vec<usize, MAX_ACTIVE>,
    /// Colexicographic rank of each prefix of the path.
    ranks: Vec<usize, MAX_ACTIVE>,
    memory: &'x mut WorkMemory<'m, T>,
}

impl<'x, 'b, 'm, T: Real> Tabled<'x, 'b, 'm, T> {
    /// The block's positions must be in the order of their latents, as the records are.
    pub fn new(
        block: &'x Block<'b, T>,
        table: StateTable<'x, T>,
        latents: usize,
        max_active: usize,
        memory: &'x mut WorkMemory<'m, T>,
    ) -> Self {
        let mut starts = Vec::new();
        let mut start = 0;
        for k in 1..=max_active {
            let _ = starts.push(start); // max_active is within the capacity
            let records = binomial(latents as u64, k as u64) as usize;
            start += records * StateTable::<T>::record_len(k, table.full_slab);
        }
        Self { block, table, starts, ranks: Vec::new(), memory }
    }

    /// The record of the state whose prefixes' ranks are up to date.
    fn record(&self, k: usize) -> &'x [T] {
        let index = k.wrapping_sub(1);
        let (start, rank) = (self.starts.get(index), self.ranks.get(index));
        let len = StateTable::<T>::record_len(k, self.table.full_slab);
        match (start, rank) {
            (Some(&start), Some(&rank)) => span(self.table.records, start + rank * len, len),
            _ => &[],
        }
    }

    /// Brings the rank up to date with the path's last latent: sum_i C(latent_i, i + 1).
    fn rank(&mut self, path: &[u16]) {
        let Some((&last, parents)) = path.split_last() else { return };
        let k = parents.len();
        self.ranks.truncate(k);
        let latent = self.block.order.get(usize::from(last)).copied().unwrap_or_default();
        let before = self.ranks.last().copied().unwrap_or_default();
        let _ = self.ranks.push(before + binomial(u64::from(latent), k as u64 + 1) as usize);
    }

    /// K (mu - a) for active latent `i`, from the record's K or the diagonal.
    fn slab_pull(&self, i: usize, path: &[u16], precisions: &[T]) -> T {
        let away = |j: usize| {
            let p = usize::from(path.get(j).copied().unwrap_or_default());
            self.block.mean(p) - at(self.memory.coupling, j)
        };
        if !self.table.full_slab {
            let p = usize::from(path.get(i).copied().unwrap_or_default());
            return self.block.precision(p) * away(i);
        }
        let mut pull = T::ZERO;
        for j in 0..path.len() {
            let (row, column) = if i >= j { (i, j) } else { (j, i) };
            pull += at(lower_row(precisions, row), column) * away(j);
        }
        pull
    }

    /// Log joint of the state `path`, whose parents' ranks are up to date; leaves the expansion point
    /// in `coupling` and t in `v`.
    pub fn evaluate(&mut self, path: &[u16]) -> T {
        self.rank(path);
        let missing = self.block.missing(path);
        let mut log_joint = self.block.energy_without(missing);
        let k = path.len();
        if k == 0 {
            return log_joint;
        }
        let record = self.record(k);
        log_joint += at(record, 0);
        let factor = span(record, 1, triangle(k));
        let precisions = span(record, 1 + triangle(k), triangle(k));

        // Members sit at their reference coefficient, which the residual already lacks; the others
        // are moved from zero to their resting coefficient (close to mu for a narrow slab, to zero
        // for a wide one, so that no large terms cancel): `shift` is by how much.
        let shift = |p: usize, is_member: bool| if is_member { T::ZERO } else { at(self.block.resting, p) };
        for (i, &p) in path.iter().enumerate() {
            let is_member = self.block.members.contains(&p);
            let p = usize::from(p);
            let row = self.block.gram_row(p);
            let b = self.block.b_without(p, missing);
            let mut moved = T::ZERO;
            for &other in path {
                let shift = shift(usize::from(other), self.block.members.contains(&other));
                moved += at(row, usize::from(other)) * shift;
            }
            log_joint += shift(p, is_member) * (b - T::HALF * moved);
            set(self.memory.v, i, b - moved);
            set(
                self.memory.coupling,
                i,
                if is_member { at(self.block.reference, p) } else { at(self.block.resting, p) },
            );
        }
        for (i, &p) in path.iter().enumerate() {
            let pull = self.slab_pull(i, path, precisions);
            log_joint -= T::HALF * pull * (self.block.mean(usize::from(p)) - at(self.memory.coupling, i));
            set(self.memory.v, i, at(self.memory.v, i) + pull);
        }
        for i in (0..k).rev() {
            let t = dot(lower_row(factor, i), self.memory.v);
            set(self.memory.v, i, t);
            log_joint += T::HALF * t * t;
        }
        log_joint
    }

    /// Posterior mean and variance of each active latent of `path`, whose parents' ranks are up to date.
    fn moments(&mut self, path: &[u16]) -> Moments<'_, T> {
        self.evaluate(path);
        let k = path.len();
        let factor = span(self.record(k), 1, triangle(k));
        let (mean, variance) = (span_mut(self.memory.mean, 0, k), span_mut(self.memory.variance, 0, k));
        copy(mean, self.memory.coupling);
        variance.fill(T::ZERO);
        for (i, &t) in self.memory.v.iter().enumerate().take(k) {
            let columns = mean.iter_mut().zip(variance.iter_mut()).zip(lower_row(factor, i));
            for ((mean, variance), &l) in columns {
                *mean += l * t;
                *variance += l * l;
            }
        }
        if !self.memory.covariance.is_empty() {
            for i in 0..k {
                for (j, entry) in lower_row_mut(self.memory.covariance, i).iter_mut().enumerate() {
                    *entry = T::ZERO;
                    for row in (i..k).map(|row| lower_row(factor, row)) {
                        *entry += at(row, i) * at(row, j);
                    }
                }
            }
        }
        Moments {
            mean: span(self.memory.mean, 0, k),
            variance: span(self.memory.variance, 0, k),
            covariance: span(self.memory.covariance, 0, triangle(k)),
        }
    }

    /// Posterior means of one state, outside a walk.
    pub fn moments_of(&mut self, path: &[u16]) -> &[T] {
        for k in 1..path.len() {
            self.rank(path.get(..k).unwrap_or(&[]));
        }
        self.moments(path).mean
    }

    /// All states: their sums go to `sums`. Nothing is shared between states, so each is added as it comes, parents before
    /// their children, which add a later position.
    pub fn walk_all(&mut self, max_active: usize, sums: &mut Sums<'_, '_, T>) {
        each_path(self.block.len(), max_active, |path| self.add(path, sums));
    }

    fn add(&mut self, path: &[u16], sums: &mut Sums<'_, '_, T>) {
        let joint = Joint::new(self.evaluate(path));
        if sums.is_too_high(joint.exponent) {
            sums.lift(joint);
        }
        let weight = sums.weight(joint);
        if sums.is_best(weight) {
            sums.note_best(weight, joint, path, &[]);
        }
        if !(weight <= T::ZERO) {
            sums.add_state(path, weight, self.moments(path));
        }
    }
}
