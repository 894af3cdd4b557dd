//! Adaptive states: best first, from a reference that no single flip improves.
//!
//! Expanding a state evaluates all states that differ from it in one candidate; those that were not met before join the kept
//! states. The search then goes on to the best state that is not expanded yet, X times at most, and stops early when the next expansion
//! is expected to add less than e^-[`TAU`], 2 %, of the weight of the best state. So at most 1 + X n states are kept.
//!
//! **When it stops.** With w the weight of a state, w_best the largest so far and X the most expansions,
//!
//! ```text
//! reach  = max(TAU, TAU_PER_EXPANSION X)                      (at most Real::FARTHEST)
//! beside = max(sum of the reference's counted neighbours / w of the reference, e^-TAU)
//! close  = e^-reach / min(beside, 1)                          (set once, after the first expansion)
//! ```
//!
//! a state waits to be expanded only if w > close w_best, and the best of those that wait is expanded only if that still holds then.
//! No more states wait than can still be expanded. Of equal weights the one that was met first goes first.
//!
//! A state was met before if it is at most one flip from a state that was expanded earlier. For the neighbour of the present state by
//! candidate i that means: the two expanded states differ in i and in at most one more. No list of states is needed.
//!
//! **Work** per expansion: n flips of about 20 operations, up to n exponentials and square roots, each computed where its weight
//! is added; 4 n |A| multiply-adds for moments. Logarithms are not needed: a weight is e^exponent times the root of a ratio of
//! determinants, and weights have the order of the states. A neighbour of the tableau's own state takes 3 n multiply-adds more,
//! any other state also a sweep, n^2, for all but one of the latents that differ. With all latents candidates, D = 4 and n = 6,
//! that is 24 multiply-adds for the projection and about 150 for each expansion.

use super::tableau::{Joint, Tableau};
use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set, span, span_mut};
use crate::numeric::words::words_mut;
use crate::select::rise;

/// Nats below the best state at which an expansion is expected to add too little: 2 %. With many expansions more, so that with enough
/// of them no state is left.
pub(crate) const TAU: f64 = 4.0;
pub(crate) const TAU_PER_EXPANSION: f64 = 1.0;
/// e^-TAU.
const E_TAU: f64 = 0.018_315_638_888_734_18;

/// Memory of a search: X entries each.
pub(crate) struct Room<'x, T> {
    /// Masks of the states that were expanded.
    pub expanded: &'x mut [T],
    /// Masks and weights of the best states that are not, best first.
    pub waiting: &'x mut [T],
    pub waiting_weights: &'x mut [T],
}

/// Neighbours of `state` that were met before, as flips, given the states that were expanded.
pub(crate) fn met(state: u32, expanded: &[u32]) -> u32 {
    let mut met = 0;
    for &other in expanded {
        let flips = state ^ other;
        // At most two bits.
        let rest = flips & flips.wrapping_sub(1);
        if rest & rest.wrapping_sub(1) == 0 {
            met |= flips;
        }
    }
    met
}

/// What an expansion tells about all weights so far.
#[derive(Default)]
pub(crate) struct Found<T> {
    /// What weights of before have to be multiplied with: 1 unless a state was far above all.
    pub scale: T,
    /// The largest, their sum, and that of the reference.
    pub best: T,
    pub total: T,
    pub reference: T,
}

/// Nats below the best at which a search with so many expansions ends.
pub(crate) fn reach<T: Real>(expansions: usize) -> T {
    let tau = T::from_f64(TAU).max(T::from_f64(TAU_PER_EXPANSION) * T::from_i32(expansions as i32));
    if tau > T::FARTHEST { T::FARTHEST } else { tau }
}

/// The search, from a tableau at a state that no flip improves. `expand` adds the tableau's state, if it is
/// the first, and its neighbours by some flips, one bit each, and leaves their weights with the candidates. Returns how many states were
/// expanded.
pub(crate) fn search<T: Real>(
    tableau: &mut Tableau<'_, T>,
    room: Room<'_, T>,
    max_active: usize,
    mut expand: impl FnMut(&mut Tableau<'_, T>, bool, u64) -> Found<T>,
) -> usize {
    let Room { expanded, waiting, waiting_weights } = room;
    let (expanded, waiting) = (words_mut(expanded), words_mut(waiting));
    let most = waiting_weights.len();
    waiting_weights.fill(T::ZERO);
    let (mut close, mut count) = (T::ZERO, 0);
    loop {
        let state = tableau.on as u32;
        let known = met(state, span(expanded, 0, count));
        // No more may turn on than there is room for.
        let off = if tableau.count < max_active { u32::MAX } else { state };
        let found = expand(tableau, count == 0, u64::from(!known & off));
        set(expanded, count, state);
        count += 1;
        // As many wait as can still be expanded: the queue loses its first place to the state that is.
        let left = most - count;
        let (weights, waiting) = (span_mut(waiting_weights, count, left), span_mut(waiting, count, left));
        if found.scale != T::ONE {
            weights.iter_mut().for_each(|weight| *weight *= found.scale);
        }
        // Neighbours of the next state will weigh about as much, relative to it, as those of the reference did: where that is
        // little, a state must weigh more to be worth its expansion. (Up to e^TAU more: beside two latents that only
        // together replace a third, the reference has hardly any neighbours, but the states beyond have.)
        if count == 1 {
            let beside = (found.total - found.reference) / found.reference;
            let beside = if beside < T::ONE { beside.max(T::from_f64(E_TAU)) } else { T::ONE };
            close = (-reach::<T>(most)).exp() / beside;
        }
        let worth = found.best * close;
        let mut least = worth.max(at(weights, left.wrapping_sub(1)));
        for (i, candidate) in span(tableau.candidates, 0, tableau.len()).iter().enumerate() {
            if candidate.weight > least {
                Count::Queued.add(1);
                rise(weights, waiting, candidate.weight, state ^ 1 << (i % 32));
                least = worth.max(at(weights, left.wrapping_sub(1)));
            }
        }
        match (weights.first(), waiting.first()) {
            (Some(&weight), Some(&next)) if weight > worth => tableau.visit(u64::from(next)),
            _ => return count,
        }
    }
}

/// Visits the states that a search kept, from the tableau it left behind: the mask of each, and nats above an anchor.
pub(crate) fn revisit<T: Real>(
    tableau: &mut Tableau<'_, T>,
    expanded: &mut [T],
    count: usize,
    max_active: usize,
    anchor: &Joint<T>,
    mut visit: impl FnMut(&Tableau<'_, T>, u32, T),
) {
    let expanded = words_mut(expanded);
    for done in 0..count {
        let (earlier, next) = expanded.split_at_checked(done).unwrap_or_default();
        let Some(&state) = next.first() else { return };
        tableau.visit(u64::from(state));
        let (known, is_full) = (met(state, earlier), tableau.count >= max_active);
        let here = tableau.joint.above(anchor);
        if done == 0 {
            visit(tableau, state, here);
        }
        for i in 0..tableau.len() {
            if known >> (i % 32) & 1 == 0 && (!is_full || tableau.is_on(i)) && tableau.may_flip(i) {
                visit(tableau, state ^ 1 << (i % 32), here + tableau.change(i));
            }
        }
    }
    tableau.look_back();
}
