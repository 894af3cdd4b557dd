//! Counts of a posterior in integers.
//!
//! All states are walked once for their exponents; then those that show are visited, and of the pairs of latents that one of them
//! begins with, all states. A sample that is too loud is inferred in floats, from its projection on.

use super::Facts;
use super::grown::states;
use super::kept;
use spikelet::Inference;

/// A state shows that is no less probable beside the best: 2^-21.
const SHOWS: f32 = 4.8e-7;

/// What a sample adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// States of the walk that show.
    visited: f64,
    /// States that begin with a pair that one of them begins with.
    beside: f64,
    /// Latents that were not selected and show alone.
    outside: f64,
}

impl Seen {
    /// Of the last sample.
    pub fn new(inference: &mut Inference<'_, f32>) -> Self {
        let order = inference.estimate().order.to_vec();
        let max_active = inference.model().shape.max_active;
        let mut best = 0.0f32;
        inference.for_each_state(|_, probability| best = best.max(probability));
        let (mut seen, mut pairs) = (Self { visited: 0.0, beside: 0.0, outside: 0.0 }, Vec::new());
        inference.for_each_state(|latents, probability| {
            if probability < SHOWS * best {
                return;
            }
            let mut positions: Vec<_> =
                latents.iter().filter_map(|latent| order.iter().position(|other| other == latent)).collect();
            positions.sort_unstable();
            match positions[..] {
                [] if !latents.is_empty() => seen.outside += 1.0,
                [i, j, ..] if !pairs.contains(&[i, j]) => {
                    pairs.push([i, j]);
                    seen.visited += 1.0;
                    seen.beside += if max_active > 2 { (order.len() - j) as f64 } else { 1.0 };
                }
                _ => seen.visited += 1.0,
            }
        });
        seen
    }
}

/// Of a sample in integers.
pub(super) fn counts(facts: &Facts, seen: Seen, is_new: bool) -> Vec<f64> {
    let [_, h, s, _] = facts.sizes();
    let [leaves, inner, _] = states(facts, 0);
    let new = if is_new { 1.0 } else { 0.0 };
    let mut counts = vec![1.0, h, s, leaves, inner, seen.visited, seen.beside, seen.outside];
    counts.extend([1.0, s * s, leaves, inner, facts.gram[0], facts.gram[1]].map(|count| new * count));
    counts
}

/// Of one in floats: its projection and selection as well.
pub(super) fn loud(facts: &Facts, of_floats: Vec<f64>) -> Vec<f64> {
    let [d, h, ..] = facts.sizes();
    [vec![d, h, d * h], of_floats].concat()
}

/// Of a sample in floats, the dearest.
pub(super) fn most(facts: &Facts) -> Vec<f64> {
    loud(facts, kept::most(facts))
}
