//! Log joints to probabilities and moments, in one pass and constant memory.
//!
//! The log-sum-exp is anchored at a log joint seen early and lifted only when a state rises far
//! above the anchor; states that cannot change the result get no exponential.

use crate::arena::SumMemory;
use crate::block::Block;
use crate::grown::{Latent, Pair};
use crate::math::Real;
use crate::slices::{at, lower_row, set};
use crate::states::Path;

/// p(y, s) of a state as e^exponent x scale, relative to the empty state. Determinants go into the scale, so no
/// state needs a logarithm; it never exceeds 1, so the exponent bounds the log joint from above.
#[derive(Clone, Copy)]
pub(crate) struct Joint<T> {
    pub exponent: T,
    pub scale: T,
}

impl<T: Real> Joint<T> {
    pub fn new(log_joint: T) -> Self {
        Self { exponent: log_joint, scale: T::ONE }
    }

    /// The same with a scale that leaves room for more factors.
    pub fn settled(self) -> Self {
        if self.scale < T::SMALL_SCALE { Self::new(self.exponent + self.scale.ln()) } else { self }
    }

    /// At most the log joint, by less than ln 2.
    pub fn ln_below(self) -> T {
        self.exponent + self.scale.ln_below()
    }
}

/// Nats below the best state at which states do not show: there are at most 2 to the power `state_bits` of them, so
/// together they stay below half a rounding unit of the total.
pub(crate) fn negligible<T: Real>(state_bits: u32) -> T {
    T::from_bits_of_information(state_bits + T::DIGITS + 1)
}

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
    /// Exponents above this overflow sooner or later: the anchor must be lifted first.
    ceiling: T,
    /// Exponents below this do not show in any sum.
    floor: T,
    /// How far below the best state the floor is.
    negligible: T,
    total: T,
    best_weight: T,
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
    /// `anchor`: a log joint that some state is known to reach; `state_bits`: see [`negligible`].
    pub fn new(
        block: &'x Block<'b, T>,
        anchor: T,
        state_bits: u32,
        memory: SumMemory<'x, T>,
        best_path: &'x mut Path,
    ) -> Self {
        for sums in [&mut *memory.on, memory.off, memory.first, memory.square, memory.second] {
            sums.fill(T::ZERO);
        }
        best_path.clear();
        let negligible = negligible(state_bits);
        Self {
            block,
            anchor,
            ceiling: anchor + T::HEADROOM,
            floor: anchor - negligible,
            negligible,
            total: T::ZERO,
            best_weight: T::ZERO,
            memory,
            best_path,
        }
    }

    /// The log joint that weights are relative to.
    pub fn anchor(&self) -> T {
        self.anchor
    }

    /// What weights relative to an earlier anchor have to be multiplied with.
    #[cold]
    pub fn since(&self, anchor: T) -> T {
        (anchor - self.anchor).exp()
    }

    /// Whether no state with this exponent can change the result. NaN can: it must reach the total and be
    /// reported.
    #[inline(always)]
    pub fn is_negligible(&self, exponent: T) -> bool {
        exponent < self.floor
    }

    /// Whether [`Sums::lift`] must come before [`Sums::weight`].
    #[inline(always)]
    pub fn is_too_high(&self, exponent: T) -> bool {
        exponent > self.ceiling
    }

    /// The weight of a state that is not too high.
    #[inline(always)]
    pub fn weight(&self, joint: Joint<T>) -> T {
        if self.is_negligible(joint.exponent) {
            return T::ZERO;
        }
        (joint.exponent - self.anchor).exp() * joint.scale
    }

    /// Whether this is the largest weight so far.
    #[inline(always)]
    pub fn is_best(&self, weight: T) -> bool {
        weight > self.best_weight
    }

    /// Takes note of the best state so far: `path` and the positions of `tail`.
    #[cold]
    #[inline(never)]
    pub fn note_best(&mut self, weight: T, joint: Joint<T>, path: &[u16], tail: &[usize]) {
        self.best_weight = weight;
        self.floor = self.floor.max(joint.ln_below() - self.negligible);
        self.best_path.clear();
        let _ = self.best_path.extend_from_slice(path); // a path is never longer than the capacity
        for &position in tail {
            let _ = self.best_path.push(position as u16);
        }
    }

    /// Raises the anchor to a state that is too high. Returns the factor that all weights so far have
    /// to be multiplied with; these sums have been.
    #[cold]
    #[inline(never)]
    pub fn lift(&mut self, joint: Joint<T>) -> T {
        let anchor = joint.ln_below().max(joint.exponent - T::HALF * T::HEADROOM);
        let factor = (self.anchor - anchor).exp();
        self.anchor = anchor;
        self.ceiling = anchor + T::HEADROOM;
        self.total *= factor;
        self.best_weight *= factor;
        let SumMemory { on, off, first, square, second } = &mut self.memory;
        for sums in [on, off, first, square, second] {
            sums.iter_mut().for_each(|sum| *sum *= factor);
        }
        factor
    }

    /// Takes the sums over all states with exactly `members` of the reference on: by position, with the
    /// members' coefficients about x0; see [`crate::grown`] for the sums of `latents` and of
    /// their `pairs`.
    pub fn collect(&mut self, members: &[u16], mass: T, latents: &[Latent<T>], pairs: &[Pair<T>]) {
        let s = self.block.len();
        self.total += mass;
        self.add_off(self.block.missing(members), mass);
        let memory = &mut self.memory;
        let totals = memory.on.iter_mut().zip(memory.first.iter_mut()).zip(memory.square.iter_mut());
        for (((on, first), square), latent) in totals.zip(latents) {
            *on += latent[3];
            *first += latent[4];
            *square += latent[5];
        }
        if self.memory.second.is_empty() {
            return;
        }
        // About zero again: <x x'> = <d d'> + x0 <d'> + x0' <d> + x0 x0' with d = x - x0.
        let x0 = |p: usize| if members.contains(&(p as u16)) { at(self.block.reference, p) } else { T::ZERO };
        let mut pairs = pairs.iter();
        for (p, latent_p) in latents.iter().enumerate() {
            let x0_p = x0(p);
            for (q, latent_q) in latents.iter().enumerate().skip(p) {
                let x0_q = x0(q);
                let both_on = if x0_p != T::ZERO && x0_q != T::ZERO { mass } else { T::ZERO };
                let about = if p == q { latent_p[5] } else { pairs.next().map_or(T::ZERO, |pair| pair[1]) };
                let value = about + x0_p * latent_q[4] + x0_q * latent_p[4] + x0_p * x0_q * both_on;
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
        let weight = self.weight(Joint::new(log_joint));
        let is_best = self.is_best(weight);
        if is_best {
            self.best_weight = weight;
        }
        self.total += weight;
        self.add_off(u32::MAX, weight);
        (weight, is_best)
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
