//! Log joints to probabilities and moments, in one pass and constant memory.
//!
//! The log-sum-exp is anchored at a log joint seen early and rescaled only when a state rises far
//! above the anchor; states that cannot change the result are not even completed.

use crate::arena::SumMemory;
use crate::block::Block;
use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::slices::{at, copy, dot, lower_row, set, span, span_mut};
use crate::states::{Leaves, Moments, Visitor};
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
    /// about its reference coefficient c so that nothing large cancels: with a = `<s>`, m and q the
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

    /// Turns the sums of second moments into `<(s.z)(s.z)^T>`, by position.
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
        self.consider(path, log_joint, Moments { mean, variance, covariance });
    }

    fn take(&mut self, path: &[u16], leaves: Leaves<'_, T>) {
        let Leaves { parent, first, log_joint: weights, step, variance, share } = leaves;
        let s = self.block.len();
        let rest = s.wrapping_sub(first);
        let weights = span_mut(weights, first, rest);
        let (step, variance) = (span_mut(step, first, rest), span_mut(variance, first, rest));
        let largest = weights.iter().fold(self.anchor, |largest, &log_joint| largest.max(log_joint));
        if largest - self.anchor > T::HEADROOM {
            self.rescale(largest);
        }
        // Log joints to weights; steps to w tau; variances to w (1 / pivot + tau^2).
        let mut sum = T::ZERO;
        let sums =
            span_mut(self.memory.on, first, rest).iter_mut().zip(span_mut(self.memory.first, first, rest));
        let sums = sums.zip(span_mut(self.memory.square, first, rest));
        let states = weights.iter_mut().zip(step.iter_mut().zip(variance.iter_mut()));
        let floor = largest.max(self.best) - T::NEGLIGIBLE;
        for ((weight, (step, variance)), ((on, first), square)) in states.zip(sums) {
            // Written so that NaN passes: it must reach the total and be reported.
            let w = if *weight < floor { T::ZERO } else { (*weight - self.anchor).exp() };
            *variance = w * (*variance + *step * *step);
            *step *= w;
            sum += w;
            *on += w;
            *first += *step;
            *square += *variance;
        }
        self.total += sum;
        self.add_off(self.block.missing(path), sum);
        // The parent's latents: kappa_j - tau share_j, Lambda_jj + share_j^2 / pivot, weighted and summed.
        let active = path.iter().zip(parent.mean.iter().zip(parent.variance)).enumerate();
        for (j, (&p, (&kappa, &lambda))) in active {
            let shares = span(share, j * s + first, rest);
            let (mut moved, mut spread) = (T::ZERO, T::ZERO);
            for ((&share, &step), &variance) in shares.iter().zip(step.iter()).zip(variance.iter()) {
                moved += step * share;
                spread += variance * share * share;
            }
            let p = usize::from(p);
            let away = kappa - at(self.block.reference, p);
            let add = |sums: &mut [T], value: T| set(sums, p, at(sums, p) + value);
            add(self.memory.on, sum);
            add(self.memory.first, sum * away - moved);
            add(self.memory.square, sum * (lambda + away * away) - (away + away) * moved + spread);
        }
        if !self.memory.second.is_empty() {
            self.add_second_of_leaves(path, &parent, first, share, step, variance, sum);
        }
    }

    fn consider(&mut self, path: &[u16], log_joint: T, moments: Moments<'_, T>) {
        if self.is_best(log_joint) {
            self.best = log_joint;
            self.map.clear();
            let _ = self.map.extend_from_slice(path); // a path is never longer than the capacity
            copy(self.map_values, moments.mean);
        }
    }

    fn is_best(&self, log_joint: T) -> bool {
        log_joint >= self.best
    }
}

impl<T: Real> Sums<'_, '_, T> {
    /// q (Lambda + kappa kappa^T), both triangles.
    fn add_second(&mut self, path: &[u16], weight: T, mean: &[T], covariance: &[T]) {
        for (i, (&p, &kappa)) in path.iter().zip(mean).enumerate() {
            let others = path.iter().zip(mean).zip(lower_row(covariance, i));
            for ((&q, &other), &lambda) in others {
                self.add_pair(usize::from(p), usize::from(q), weight * (lambda + kappa * other));
            }
        }
    }

    /// The same for all children of `path`: see `take`, where `step` and `variance` became
    /// w tau and w (1 / pivot + tau^2).
    #[allow(clippy::too_many_arguments)] // the arrays of one loop
    fn add_second_of_leaves(
        &mut self,
        path: &[u16],
        parent: &Moments<'_, T>,
        first: usize,
        share: &[T],
        step: &[T],
        variance: &[T],
        sum: T,
    ) {
        let s = self.block.len();
        let shares = |j: usize| span(share, j * s + first, s.wrapping_sub(first));
        for (i, (&p, &kappa)) in path.iter().zip(parent.mean).enumerate() {
            let p = usize::from(p);
            let moved = dot(shares(i), step);
            // Pairs of active latents.
            let others = path.iter().zip(parent.mean).zip(lower_row(parent.covariance, i)).enumerate();
            for (j, ((&q, &other), &lambda)) in others {
                let moved_other = dot(shares(j), step);
                let mut spread = T::ZERO;
                for ((&a, &b), &variance) in shares(i).iter().zip(shares(j)).zip(variance) {
                    spread += variance * a * b;
                }
                let value = sum * (lambda + kappa * other) - kappa * moved_other - other * moved + spread;
                self.add_pair(p, usize::from(q), value);
            }
            // Each with the latent that was added.
            for (new, ((&share, &step), &variance)) in (first..).zip(shares(i).iter().zip(step).zip(variance))
            {
                self.add_pair(p, new, kappa * step - share * variance);
            }
        }
        for (new, &variance) in (first..).zip(variance) {
            self.add_pair(new, new, variance);
        }
    }

    /// Adds to both triangles.
    fn add_pair(&mut self, p: usize, q: usize, value: T) {
        let s = self.block.len();
        set(self.memory.second, p * s + q, at(self.memory.second, p * s + q) + value);
        if p != q {
            set(self.memory.second, q * s + p, at(self.memory.second, q * s + p) + value);
        }
    }
}
