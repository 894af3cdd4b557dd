//! Log joints to probabilities and moments, in one pass and constant memory.
//!
//! The log-sum-exp is anchored at a log joint seen early and rescaled only when a state rises far
//! above the anchor; states that cannot change the result get no exponential.

use crate::arena::SumMemory;
use crate::block::Block;
use crate::math::Real;
use crate::slices::{at, lower_row, set};
use crate::states::{Path, StateModel};

/// The continuous part of one state.
pub(crate) struct Moments<'a, T> {
    /// Posterior mean of each active latent.
    pub mean: &'a [T],
    /// Posterior variance of each active latent.
    pub variance: &'a [T],
    /// Posterior covariance, lower triangle packed by rows; empty unless second moments are asked for.
    pub covariance: &'a [T],
}

/// Sums over the states so far, all relative to e^anchor.
pub(crate) struct Sums<'x, 'b, T> {
    block: &'x Block<'b, T>,
    anchor: T,
    total: T,
    /// Largest log joint so far.
    best: T,
    /// Log joints this far below the largest do not show in any sum.
    negligible: T,
    memory: SumMemory<'x, T>,
    best_path: &'x mut Path,
}

/// What the states say about one selected latent.
pub(crate) struct Marginal<T> {
    pub activity: T,
    pub mean: T,
    pub variance: T,
}

impl<'x, 'b, T: Real> Sums<'x, 'b, T> {
    /// `anchor`: a log joint that some state is known to reach.
    pub fn new(
        block: &'x Block<'b, T>,
        anchor: T,
        memory: SumMemory<'x, T>,
        best_path: &'x mut Path,
    ) -> Self {
        for sums in [&mut *memory.on, memory.off, memory.first, memory.square, memory.second] {
            sums.fill(T::ZERO);
        }
        best_path.clear();
        Self { block, anchor, total: T::ZERO, best: anchor, negligible: T::NEGLIGIBLE, memory, best_path }
    }

    /// Whether a state with this log joint can change the result. Written so that NaN can: it must
    /// reach the total and be reported.
    fn matters(&self, log_joint: T) -> bool {
        !(log_joint < self.best - self.negligible)
    }

    /// The weight of a state; zero when it does not matter.
    pub fn weight(&mut self, path: &[u16], log_joint: T, states: &mut impl StateModel<T>) -> T {
        if log_joint - self.anchor > T::HEADROOM {
            self.rescale(log_joint, states);
        }
        if log_joint >= self.best {
            self.best = log_joint;
            self.best_path.clear();
            let _ = self.best_path.extend_from_slice(path); // a path is never longer than the capacity
        }
        if self.matters(log_joint) { (log_joint - self.anchor).exp() } else { T::ZERO }
    }

    /// Turns the log joints of the states that add a position from `first` on to `path` into weights;
    /// false when none of them matters.
    pub fn weigh(
        &mut self,
        path: &[u16],
        first: usize,
        log_joints: &mut [T],
        states: &mut impl StateModel<T>,
    ) -> bool {
        let log_joints = log_joints.get_mut(first..).unwrap_or(&mut []);
        let mut any = false;
        let mut better = None;
        for (i, &log_joint) in (first..).zip(log_joints.iter()) {
            any |= self.matters(log_joint);
            if log_joint >= self.best {
                self.best = log_joint;
                better = Some(i);
            }
        }
        if !any {
            log_joints.fill(T::ZERO);
            return false;
        }
        if let Some(position) = better {
            self.best_path.clear();
            let _ = self.best_path.extend_from_slice(path);
            let _ = self.best_path.push(position as u16); // no longer than the capacity
        }
        if self.best - self.anchor > T::HEADROOM {
            self.rescale(self.best, states);
        }
        let floor = self.best - self.negligible;
        for weight in log_joints.iter_mut() {
            *weight = if *weight < floor { T::ZERO } else { (*weight - self.anchor).exp() };
        }
        true
    }

    /// Takes the sums over all states with exactly `members` of the reference on: by position, with the
    /// members' coefficients about x0, second moments as rows of an upper triangle.
    pub fn collect(&mut self, members: &[u16], mass: T, on: &[T], first: &[T], second: &[T]) {
        let s = self.block.len();
        self.total += mass;
        self.add_off(self.block.missing(members), mass);
        for p in 0..s {
            let add = |sums: &mut [T], value: T| set(sums, p, at(sums, p) + value);
            add(self.memory.on, at(on, p));
            add(self.memory.first, at(first, p));
            add(self.memory.square, at(second, p * (s + 1)));
        }
        if self.memory.second.is_empty() {
            return;
        }
        // About zero again: <x x'> = <d d'> + x0 <d'> + x0' <d> + x0 x0' with d = x - x0.
        let x0 = |p: usize| if members.contains(&(p as u16)) { at(self.block.reference, p) } else { T::ZERO };
        for p in 0..s {
            for q in p..s {
                let both_on = if x0(p) != T::ZERO && x0(q) != T::ZERO { mass } else { T::ZERO };
                let value = at(second, p * s + q)
                    + x0(p) * at(first, q)
                    + x0(q) * at(first, p)
                    + x0(p) * x0(q) * both_on;
                for place in [p * s + q, q * s + p].into_iter().take(if p == q { 1 } else { 2 }) {
                    set(self.memory.second, place, at(self.memory.second, place) + value);
                }
            }
        }
    }

    /// Adds one state with its moments.
    pub fn add_state(&mut self, path: &[u16], weight: T, moments: Moments<'_, T>) {
        self.total += weight;
        for ((&p, &kappa), &lambda) in path.iter().zip(moments.mean).zip(moments.variance) {
            let p = usize::from(p);
            let away = kappa - at(self.block.reference, p);
            let add = |sums: &mut [T], value: T| set(sums, p, at(sums, p) + weight * value);
            add(self.memory.on, T::ONE);
            add(self.memory.first, away);
            add(self.memory.square, lambda + away * away);
        }
        self.add_off(self.block.missing(path), weight);
        if !self.memory.second.is_empty() {
            self.add_second(path, weight, moments.mean, moments.covariance);
        }
    }

    /// Adds a state outside the walk (a singleton of a latent that was not selected) to the total;
    /// returns its weight and whether it is the best state so far. Its log joint is at most the
    /// anchor: such states are known before the walk.
    pub fn add_outside(&mut self, log_joint: T) -> (T, bool) {
        if !self.matters(log_joint) {
            return (T::ZERO, false);
        }
        let weight = (log_joint - self.anchor).exp();
        self.total += weight;
        self.add_off(u32::MAX, weight);
        (weight, log_joint >= self.best)
    }

    /// The best state so far.
    pub fn best_path(&self) -> &[u16] {
        self.best_path
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

    fn rescale(&mut self, log_joint: T, states: &mut impl StateModel<T>) {
        let factor = (self.anchor - log_joint).exp();
        self.anchor = log_joint;
        self.total *= factor;
        let SumMemory { on, off, first, square, second } = &mut self.memory;
        for sums in [on, off, first, square, second] {
            sums.iter_mut().for_each(|sum| *sum *= factor);
        }
        states.rescale(factor);
    }

    /// q (Lambda + kappa kappa^T), both triangles.
    fn add_second(&mut self, path: &[u16], weight: T, mean: &[T], covariance: &[T]) {
        let s = self.block.len();
        for (i, (&p, &kappa)) in path.iter().zip(mean).enumerate() {
            for ((&q, &other), &lambda) in path.iter().zip(mean).zip(lower_row(covariance, i)) {
                let (p, q) = (usize::from(p), usize::from(q));
                let value = weight * (lambda + kappa * other);
                for place in [p * s + q, q * s + p].into_iter().take(if p == q { 1 } else { 2 }) {
                    set(self.memory.second, place, at(self.memory.second, place) + value);
                }
            }
        }
    }
}
