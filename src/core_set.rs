//! The latents that every state of weight has on. A sample that a latent explains by far leaves nothing to states
//! without it: they need not be walked.
//!
//! With the slabs as a ridge, M = G + diag(K), no state's exponent exceeds that of the best coefficients for all
//! latents together, Q = 1/2 v^T M^-1 v at x = M^-1 v, and none without latent j exceeds Q - x_j^2 / (2 (M^-1)_jj), for
//! leaving a latent out is setting its coefficient to zero. (A slab with a mean has less ridge: of
//! (x - mu)^2 >= x^2 / 2 - mu^2 only half is certain, and mu^2 is added to Q.) Latents whose loss puts that bound
//! below what a known state reaches, by more than states may matter, are the core set. Work: S^3 / 2 multiply-adds.

use crate::block::Block;
use crate::factor::Factor;
use crate::grown::BranchMemory;
use crate::math::Real;
use crate::model::Shape;
use crate::posterior::negligible;
use crate::single::joint;
use crate::slices::{at, row, set, span_mut};
use crate::states::Path;

/// Nats that rounding may cost the bound, and its share of Q.
const MARGIN: f64 = 1.0;
const RELATIVE_MARGIN: f64 = 1e-4;

/// The latents that no state of weight leaves out.
pub(crate) struct CoreSet<T> {
    /// Positions.
    pub positions: Path,
    /// The log joint of a state that explains the sample well, or a little less.
    pub known: T,
}

impl<T: Real> CoreSet<T> {
    /// No latent is certain; the empty state is known.
    fn none(block: &Block<'_, T>) -> Self {
        Self { positions: Path::new(), known: block.energy_without(u32::MAX) }
    }

    /// The core set, where finding it costs less than it may save. `memory` and `solution` (S) are scratch.
    pub fn find(
        block: &Block<'_, T>,
        shape: &Shape,
        memory: &mut BranchMemory<'_, T>,
        solution: &mut [T],
    ) -> Self {
        let (s, max_active) = (block.len(), shape.max_active);
        if block.members.is_empty() && are_few(s as u32, max_active as u32) {
            return Self::none(block);
        }
        // A branch of S latents has room for a factor and more.
        let scratch = memory.given.as_flattened_mut();
        let (pivot_inv, scratch) = scratch.split_at_mut_checked(s).unwrap_or_default();
        let (coupling, forward) = scratch.split_at_mut_checked(s).unwrap_or_default();
        let forward = span_mut(forward, 0, s);
        let mut factor = Factor { rows: memory.pairs.as_flattened_mut(), pivot_inv, coupling };
        let negligible = negligible::<T>(shape.state_bits());
        let most = bound(block, &mut factor, forward, solution, max_active);
        // Losses, in place of the solution.
        for j in 0..block.len() {
            let x = at(block.reference, j) + at(solution, j);
            set(solution, j, T::HALF * x * x / factor.inverse_diagonal(j, block.len()));
        }
        // Those that lose enough, worst losses first, as a state.
        let mut positions = Path::new();
        while positions.len() < max_active {
            let mut next = (0, negligible);
            for (p, &loss) in solution.iter().enumerate().take(block.len()) {
                if loss > next.1 && !positions.contains(&(p as u16)) {
                    next = (p, loss);
                }
            }
            if !(next.1 > negligible) {
                break;
            }
            let _ = positions.push(next.0 as u16); // max_active is within the capacity
        }
        let known = joint(block, &positions, &mut factor, forward).ln_below();
        // The walk computes the same state in another order: far from zero that costs more than a nat.
        let known =
            known - T::from_f64(MARGIN) - most.max(-known).max(T::ZERO) * T::from_f64(RELATIVE_MARGIN);
        let floor = known - negligible;
        positions.retain(|&p| most - at(solution, usize::from(p)) < floor);
        Self { positions, known }
    }
}

/// Whether walking all states costs less than finding out which need no walk: some 20 multiply-adds a state, of which a
/// core set saves a part, against S^3 / 2 and more.
fn are_few(selected: u32, max_active: u32) -> bool {
    let (mut states, mut of_size) = (1u32, 1u32);
    for k in 0..max_active.min(selected) {
        of_size = of_size.saturating_mul(selected - k) / (k + 1);
        states = states.saturating_add(of_size);
    }
    states < selected * selected * selected
}

/// The bound Q on all exponents; leaves the coefficients, less the reference's, in `solution`.
fn bound<T: Real>(
    block: &Block<'_, T>,
    factor: &mut Factor<'_, T>,
    forward: &mut [T],
    solution: &mut [T],
    max_active: usize,
) -> T {
    let (mut most, mut prior) = (T::ZERO, T::ZERO);
    for p in 0..block.len() {
        let [mean, precision, logit, pull, _] = row(block.slab, p);
        let (ridge, offset) = match mean == T::ZERO {
            true => (precision, T::ZERO),
            false => (T::HALF * precision, T::HALF * pull * mean),
        };
        prior = prior.max(logit + offset);
        let gram = block.gram_row(p);
        factor.couple(p, gram.iter().copied(), at(gram, p), ridge);
        let x0 = at(block.reference, p);
        let t = at(block.b, p) - ridge * x0 - factor.explained(p, forward);
        set(forward, p, t);
        factor.settle(p);
        most += T::HALF * (t * t * at(factor.pivot_inv, p) - ridge * x0 * x0);
    }
    solution.fill(T::ZERO);
    factor.add_solution(forward, solution);
    most + prior * T::from_f64(max_active as f64)
}
