//! Log joints to probabilities and moments, in one pass and constant memory.
//!
//! The log-sum-exp is anchored at a log joint seen early and rescaled only when a state rises far
//! above the anchor; states that cannot change the result are not even completed.

use crate::arena::SumMemory;
use crate::block::Block;
use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::slices::{at, copy, lower_row, set};
use crate::states::{Moments, Visitor};
use heapless::Vec;

/// Sums over the states visited so far, all relative to e^anchor.
pub(crate) struct Sums<'x, 'm, T> {
    block: &'x Block<'m, T>,
    anchor: T,
    total: T,
    /// Largest log joint so far.
    best: T,
    memory: SumMemory<'x, T>,
    map: &'x mut Vec<u16, MAX_ACTIVE>,
    map_values: &'x mut [T],
}

/// What the states say about one selected latent.
pub(crate) struct Marginal<T> {
    pub activity: T,
    pub mean: T,
    pub variance: T,
}

impl<'x, 'm, T: Real> Sums<'x, 'm, T> {
    /// `anchor`: a log joint that some state is known to reach.
    pub fn new(
        block: &'x Block<'m, T>,
        anchor: T,
        memory: SumMemory<'x, T>,
        map: &'x mut Vec<u16, MAX_ACTIVE>,
        map_values: &'x mut [T],
    ) -> Self {
        for sums in [&mut *memory.on, memory.off, memory.first, memory.square, memory.second] {
            sums.fill(T::ZERO);
        }
        map.clear();
        Self { block, anchor, total: T::ZERO, best: anchor, memory, map, map_values }
    }

    /// Adds a state outside the walk (a singleton of a latent that was not selected) to the total;
    /// returns its weight and whether it is the best state so far. Its log joint is at most the
    /// anchor: such states are known before the walk.
    pub fn add_outside(&mut self, log_joint: T) -> (T, bool) {
        if !self.wants(log_joint) {
            return (T::ZERO, false);
        }
        let weight = (log_joint - self.anchor).exp();
        self.total += weight;
        self.add_off(u32::MAX, weight);
        (weight, log_joint >= self.best)
    }

    /// ln of the sum over all states added.
    pub fn log_sum(&self) -> T {
        self.anchor + self.total.ln()
    }

    /// 1 / sum of weights.
    pub fn scale(&self) -> T {
        T::ONE / self.total
    }

    /// Moments of the latent at position `p`, from sums over the states in which it is on, taken
    /// about its reference coefficient c so that nothing large cancels: with a = <s>, m and q the
    /// mean of x - c and of its square given on, var = a (q - m^2) + a (1 - a) (c + m)^2.
    pub fn marginal(&self, p: usize) -> Marginal<T> {
        let scale = self.scale();
        let activity = at(self.memory.on, p) * scale;
        let (first, square) = (at(self.memory.first, p) * scale, at(self.memory.square, p) * scale);
        let reference = at(self.block.reference, p);
        let mean = activity * reference + first;
        // With a loud latent 1 - a must be summed, not subtracted: c^2 may be 1e8 times the variance.
        let is_member = self.block.members.iter().any(|&m| usize::from(m) == p);
        let off = if is_member { at(self.memory.off, p) * scale } else { T::ONE - activity };
        if !(activity > T::ZERO) {
            return Marginal { activity, mean, variance: T::ZERO };
        }
        let given_on = mean / activity;
        let within = (square - first * (first / activity)).max(T::ZERO);
        Marginal { activity, mean, variance: within + given_on * mean * off.max(T::ZERO) }
    }

    /// Turns the sums of second moments into <(s.z)(s.z)^T>, by position.
    pub fn finish_second(&mut self) {
        let scale = self.scale();
        for sum in self.memory.second.iter_mut() {
            *sum *= scale;
        }
    }

    /// The reference's members in `mask` are off in a state of this weight.
    fn add_off(&mut self, mask: u32, weight: T) {
        for m in self.block.members_in(mask) {
            set(self.memory.off, m, at(self.memory.off, m) + weight);
        }
    }

    fn rescale(&mut self, log_joint: T) {
        let factor = (self.anchor - log_joint).exp();
        self.anchor = log_joint;
        self.total *= factor;
        let SumMemory { on, off, first, square, second } = &mut self.memory;
        for sums in [on, off, first, square, second] {
            for sum in sums.iter_mut() {
                *sum *= factor;
            }
        }
    }
}

impl<T: Real> Visitor<T> for Sums<'_, '_, T> {
    fn wants(&self, log_joint: T) -> bool {
        // Written so that NaN is wanted: it must reach the total and be reported.
        !(log_joint < self.best - T::NEGLIGIBLE)
    }

    fn visit(&mut self, path: &[u16], log_joint: T, moments: Moments<'_, T>) {
        if log_joint - self.anchor > T::HEADROOM {
            self.rescale(log_joint);
        }
        let weight = (log_joint - self.anchor).exp();
        self.total += weight;
        let Moments { mean, variance, covariance } = moments;
        for ((&p, &kappa), &lambda) in path.iter().zip(mean).zip(variance) {
            let p = usize::from(p);
            let away = kappa - at(self.block.reference, p);
            let add = |sums: &mut [T], value: T| set(sums, p, at(sums, p) + weight * value);
            add(self.memory.on, T::ONE);
            add(self.memory.first, away);
            add(self.memory.square, lambda + away * away);
        }
        self.add_off(self.block.missing(path), weight);
        if !self.memory.second.is_empty() {
            self.add_second(path, weight, mean, covariance);
        }
        if log_joint >= self.best {
            self.best = log_joint;
            self.map.clear();
            let _ = self.map.extend_from_slice(path); // a path is never longer than the capacity
            copy(self.map_values, mean);
        }
    }
}

impl<T: Real> Sums<'_, '_, T> {
    /// q (Lambda + kappa kappa^T), both triangles.
    fn add_second(&mut self, path: &[u16], weight: T, mean: &[T], covariance: &[T]) {
        let s = self.block.len();
        for (i, (&p, &kappa)) in path.iter().zip(mean).enumerate() {
            let others = path.iter().zip(mean).zip(lower_row(covariance, i));
            for ((&q, &other), &lambda) in others {
                let value = weight * (lambda + kappa * other);
                let (p, q) = (usize::from(p), usize::from(q));
                set(self.memory.second, p * s + q, at(self.memory.second, p * s + q) + value);
                if p != q {
                    set(self.memory.second, q * s + p, at(self.memory.second, q * s + p) + value);
                }
            }
        }
    }
}
