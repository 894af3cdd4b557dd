//! Log joints to probabilities and moments, in one pass and constant memory.
//!
//! The log-sum-exp is anchored at a log joint seen early and lifted only when a state rises far
//! above the anchor; states that cannot change the result get no exponential.

mod moments;

use crate::arena::SumMemory;
use crate::block::Block;
use crate::math::Real;
use crate::slices::set;
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

/// Nats below the best state at which states do not show, even if there are 2 to the power `state_bits` of them.
pub(crate) fn negligible<T: Real>(state_bits: u32) -> T {
    T::nats(state_bits + T::WEIGHT_BITS)
}

/// The continuous part of one state.
#[derive(Clone, Copy)]
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

impl<'x, 'b, T: Real> Sums<'x, 'b, T> {
    /// `anchor`: a log joint that some state is known to reach; `state_bits`: see [`negligible`].
    pub fn new(
        block: &'x Block<'b, T>,
        anchor: T,
        state_bits: u32,
        mut memory: SumMemory<'x, T>,
        best_path: &'x mut Path,
    ) -> Self {
        memory.each(|sums| {
            if !sums.is_empty() {
                sums.fill(T::ZERO);
            }
        });
        Self::to_be_taken(block, anchor, state_bits, memory, best_path)
    }

    /// The same for a walk that brings all sums at its end ([`Sums::take_walk`]): nothing is cleared.
    pub fn to_be_taken(
        block: &'x Block<'b, T>,
        anchor: T,
        state_bits: u32,
        memory: SumMemory<'x, T>,
        best_path: &'x mut Path,
    ) -> Self {
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

    /// Makes `known`, which some state is known to reach, the measure of what is negligible instead of the anchor.
    pub fn know(&mut self, known: T) {
        self.floor = known - self.negligible;
    }

    /// The exponent below which states do not show.
    pub fn floor(&self) -> T {
        self.floor
    }

    /// How far below the best state that is, in nats.
    pub fn negligible(&self) -> T {
        self.negligible
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
        if self.is_negligible(joint.exponent) { T::ZERO } else { self.weight_apart(joint) }
    }

    /// [`Sums::weight_in_range`], once for all that are not in an inner loop.
    #[inline(never)]
    fn weight_apart(&self, joint: Joint<T>) -> T {
        self.weight_in_range(joint)
    }

    /// [`Sums::weight`] of a state that is not negligible either.
    #[inline(always)]
    pub fn weight_in_range(&self, joint: Joint<T>) -> T {
        (joint.exponent - self.anchor).exp_in_range() * joint.scale
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
        self.memory.each(|sums| sums.iter_mut().for_each(|sum| *sum *= factor));
        factor
    }

    /// The largest weight so far.
    pub fn best_weight(&self) -> T {
        self.best_weight
    }

    /// Takes the weights of the states outside the walk (singletons of latents that were not selected): their sum, and the
    /// largest so far. Their log joints are at most the anchor: such states are known before the walk.
    pub fn take_outside(&mut self, mass: T, best_weight: T) {
        self.best_weight = best_weight;
        self.total += mass;
        self.add_off(u32::MAX, mass);
    }

    /// Takes what a walk of its own found: by position the sums of s, x and x^2, that of all weights, the largest of them and
    /// its state.
    pub fn take_walk(&mut self, totals: impl Iterator<Item = [T; 3]>, mass: T, best_weight: T, best: &[u16]) {
        let SumMemory { on, first, square, .. } = &mut self.memory;
        for (total, ((on, first), square)) in
            totals.zip(on.iter_mut().zip(first.iter_mut()).zip(square.iter_mut()))
        {
            [*on, *first, *square] = total;
        }
        (self.total, self.best_weight) = (mass, best_weight);
        let _ = self.best_path.extend_from_slice(best); // within the capacity, like every path
    }

    /// Takes the sums over the states that lack a member of the reference, by its number.
    pub fn take_off(&mut self, lacking: impl Fn(usize) -> T) {
        for (number, &member) in self.block.members.iter().enumerate() {
            set(self.memory.off, usize::from(member), lacking(number));
        }
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
}
