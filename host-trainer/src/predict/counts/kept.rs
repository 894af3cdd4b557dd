//! Counts of a walk over few states, whose factors are kept for the next sample.
//!
//! A loud sample is searched for its best state, without exponentials, and walked around the loud latents of that.

use super::Facts;
use super::grown::{Seen, states};

/// What a sample takes beside its sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// Whether other latents are selected than before.
    pub is_new: bool,
    /// How often the best state is searched, and a reference found.
    pub rounds: [u8; 2],
}

/// Of a sample.
pub(super) fn counts(facts: &Facts, seen: Seen, made: Made) -> Vec<f64> {
    let [d, _, s, _] = facts.sizes();
    let ([leaves, inner, _], [singletons, zeros]) = (states(facts, 0), facts.outside());
    let [searches, references] = made.rounds.map(f64::from);
    let new = if made.is_new { 1.0 } else { 0.0 };
    let around = if references > 0.0 { 1.0 } else { 0.0 };
    // Every set of the reference's members sees another sample.
    let (members, sets) = (seen.on as f64, (seen.on as f64).exp2());
    let mut counts = vec![1.0, singletons, zeros, s, s * s, leaves, inner, seen.weighty];
    counts.extend([1.0, s * s, leaves, inner, facts.gram[0], facts.gram[1]].map(|count| new * count));
    counts.extend([1.0, leaves, inner].map(|count| searches * count));
    counts.extend([1.0, d, d * members, d * s, sets * s].map(|count| references * count));
    counts.extend([leaves + inner, seen.weighty].map(|count| around * count));
    counts
}

/// Of a loud sample with new latents, all of whose states have weight.
pub(super) fn most(facts: &Facts) -> Vec<f64> {
    let shape = facts.shape;
    let seen = Seen { weighty: shape.states() as f64, on: shape.max_active, surely: 0 };
    counts(facts, seen, Made { is_new: true, rounds: [3, 2] })
}
