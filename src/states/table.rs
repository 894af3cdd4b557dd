//! The papers' sets with matrices that were computed beforehand ([`StateTable`]): any slab, no square root, division or logarithm.
//!
//! Each state is computed from its own record, relative to an expansion point a: the coefficient x0 in the reference for its
//! members, the resting coefficient for the others. With r_A the residual at z = a, v = W_A^T Sigma^-1 r_A + K (mu - a) and
//! t = L^-1 v:
//!
//! ```text
//! ln p(y, s) = ... + constant - 1/2 r_A^T Sigma^-1 r_A - 1/2 (a - mu)^T K (a - mu) + 1/2 |t|^2
//! kappa = a + L^-T t          Lambda = L^-T L^-1
//! ```
//!
//! Positions in a path are candidates, in ascending order of their latents, as the records are.
//!
//! Work per state with k latents on: 2 k^2 + 4 k multiply-adds (3 k^2 with a full slab).

use super::tableau::{Latents, Path, pair};
use crate::counts::Count;
use crate::memory::Candidate;
use crate::model::{Model, StateTable};
use crate::numeric::math::{Real, binomial};
use crate::numeric::slices::{
    at, copy, dot, exchange, lower_row, lower_row_mut, set, span, span_mut, triangle,
};

/// What states are made of.
pub(crate) struct Tabled<'x, T> {
    pub model: &'x Model<'x, T>,
    pub table: StateTable<'x, T>,
    pub latents: &'x Latents,
    /// Prior, and x0 of the members of the reference. (n)
    pub candidates: &'x mut [Candidate<T>],
    /// G off its diagonal. (H' x H')
    pub gram: &'x [T],
    /// W^T Sigma^-1 (y - W x0). (n)
    pub seen: &'x [T],
    /// Of one state: L^-1 v, the expansion point, moments. (A)
    pub right: &'x mut [T],
    pub point: &'x mut [T],
    pub mean: &'x mut [T],
    pub variance: &'x mut [T],
    /// Lower triangle, or empty.
    pub covariance: &'x mut [T],
}

impl<'x, T: Real> Tabled<'x, T> {
    /// G_ij.
    pub fn gram(&self, i: usize, j: usize) -> T {
        if i == j {
            at(self.model.gram_diagonal, self.latent(i))
        } else {
            pair(self.gram, self.candidates.len(), i, j)
        }
    }

    fn latent(&self, i: usize) -> usize {
        usize::from(self.latents.get(i).copied().unwrap_or_default())
    }

    fn candidate(&self, i: usize) -> Candidate<T> {
        self.candidates.get(i).copied().unwrap_or(Candidate::ZERO)
    }

    /// x0.
    pub fn reference(&self, i: usize) -> T {
        self.candidate(i).reference
    }

    /// Members of the reference that a state leaves out.
    fn missing<'s>(&'s self, path: &'s [u16]) -> impl Iterator<Item = (usize, T)> + Clone + 's {
        let members = self.candidates.iter().enumerate().take(self.latents.len());
        members.filter_map(move |(m, candidate)| {
            let is_missing = candidate.reference != T::ZERO && !path.contains(&(m as u16));
            is_missing.then_some((m, candidate.reference))
        })
    }

    /// What the residual has of a candidate once the missing members are taken out of the reference.
    pub fn seen_without(&self, i: usize, path: &[u16]) -> T {
        let mut seen = at(self.seen, i);
        for (m, x0) in self.missing(path) {
            seen += self.gram(i, m) * x0;
        }
        seen
    }

    /// The record of a state: colexicographic rank among those of its size.
    fn record(&self, path: &[u16]) -> &'x [T] {
        let (latents, k) = (self.model.shape.latents as u64, path.len());
        let mut start = 0;
        for size in 1..k {
            start += binomial(latents, size as u64) as usize
                * StateTable::<T>::record_len(size, self.table.full_slab);
        }
        let len = StateTable::<T>::record_len(k, self.table.full_slab);
        for (i, &p) in path.iter().enumerate() {
            start += binomial(self.latent(usize::from(p)) as u64, i as u64 + 1) as usize * len;
        }
        span(self.table.records, start, len)
    }

    /// K (mu - a) for member `i` of a state, from the record's K or the diagonal.
    fn slab_pull(&self, i: usize, path: &[u16], precisions: &[T]) -> T {
        let away = |j: usize| {
            let p = usize::from(path.get(j).copied().unwrap_or_default());
            self.candidate(p).mean - at(self.point, j)
        };
        if !self.table.full_slab {
            let p = usize::from(path.get(i).copied().unwrap_or_default());
            return self.candidate(p).precision * away(i);
        }
        let mut pull = T::ZERO;
        for j in 0..path.len() {
            let (row, column) = if i >= j { (i, j) } else { (j, i) };
            pull += at(lower_row(precisions, row), column) * away(j);
        }
        pull
    }

    /// mu K / (G + K): near mu for a narrow slab, near zero for a wide one, so that no large terms cancel.
    fn resting(&self, i: usize) -> T {
        let Candidate { mean, precision, .. } = self.candidate(i);
        mean * (precision / (self.gram(i, i) + precision))
    }

    /// By how much a candidate is moved from where the residual has it.
    fn moved(&self, i: usize) -> T {
        if self.reference(i) != T::ZERO { T::ZERO } else { self.resting(i) }
    }

    /// Log joint of a state, relative to that of the reference's residual; leaves the expansion point and t behind.
    pub fn evaluate(&mut self, path: &[u16]) -> T {
        Count::TableStates.add(1);
        Count::TableMacs.add(path.len() * path.len());
        Count::TableSteps.add((path.len() + 1) * self.latents.len());
        let mut log_joint = T::ZERO;
        for (m, x0) in self.missing(path) {
            let mut pull = at(self.seen, m);
            for (other, x0) in self.missing(path) {
                pull += T::HALF * self.gram(m, other) * x0;
            }
            log_joint -= x0 * pull;
        }
        let k = path.len();
        if k == 0 {
            return log_joint;
        }
        let record = self.record(path);
        log_joint += at(record, 0);
        let factor = span(record, 1, triangle(k));
        let precisions = span(record, 1 + triangle(k), triangle(k));
        // Members sit at x0, which the residual lacks already; the others are moved from zero to where they rest.
        for (i, &p) in path.iter().enumerate() {
            let p = usize::from(p);
            let (seen, own, x0) = (self.seen_without(p, path), self.moved(p), self.reference(p));
            let mut sum = T::ZERO;
            for &other in path {
                sum += self.gram(p, usize::from(other)) * self.moved(usize::from(other));
            }
            log_joint += own * (seen - T::HALF * sum);
            set(self.right, i, seen - sum);
            set(self.point, i, if x0 != T::ZERO { x0 } else { own });
        }
        for (i, &p) in path.iter().enumerate() {
            let pull = self.slab_pull(i, path, precisions);
            log_joint -= T::HALF * pull * (self.candidate(usize::from(p)).mean - at(self.point, i));
            set(self.right, i, at(self.right, i) + pull);
        }
        for i in (0..k).rev() {
            let t = dot(lower_row(factor, i), self.right);
            set(self.right, i, t);
            log_joint += T::HALF * t * t;
        }
        log_joint
    }

    /// Means, variances and covariances of the state that was evaluated last.
    pub fn moments(&mut self, path: &[u16]) {
        let k = path.len();
        let factor = span(self.record(path), 1, triangle(k));
        let (mean, variance) = (span_mut(self.mean, 0, k), span_mut(self.variance, 0, k));
        copy(mean, self.point);
        variance.fill(T::ZERO);
        for (i, &t) in self.right.iter().enumerate().take(k) {
            for ((mean, variance), &l) in mean.iter_mut().zip(variance.iter_mut()).zip(lower_row(factor, i)) {
                *mean += l * t;
                *variance += l * l;
            }
        }
        if self.covariance.is_empty() {
            return;
        }
        for i in 0..k {
            for (j, entry) in lower_row_mut(self.covariance, i).iter_mut().enumerate() {
                *entry = T::ZERO;
                for row in (i..k).map(|row| lower_row(factor, row)) {
                    *entry += at(row, i) * at(row, j);
                }
            }
        }
    }
}

/// Puts the candidates of a state in the order of their latents.
pub(crate) fn sort(path: &mut [u16], latents: &Latents) {
    let latent = |p: Option<&u16>| p.and_then(|&p| latents.get(usize::from(p))).copied();
    for end in (1..path.len()).rev() {
        for i in 0..end {
            if latent(path.get(i)) > latent(path.get(i + 1)) {
                exchange(path, i, i + 1);
            }
        }
    }
}

/// Visits every set of at most `max_active` of so many positions, parents before their children, which add a later one.
pub(crate) fn each_path(positions: usize, max_active: usize, visit: &mut dyn FnMut(&[u16])) {
    let mut path = Path::new();
    loop {
        visit(&path);
        let next = path.last().map_or(0, |&last| usize::from(last) + 1);
        if path.len() < max_active && next < positions {
            let _ = path.push(next as u16); // within the capacity, like max_active
            continue;
        }
        // Up until there is a later sibling.
        loop {
            let Some(last) = path.pop() else { return };
            if usize::from(last) + 1 < positions {
                let _ = path.push(last + 1);
                break;
            }
        }
    }
}
