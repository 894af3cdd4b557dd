//! Counts of a walk over all states whose matrices are in a table. Nothing is shared between them, so k latents on take k^2 for
//! the probability and, if it has weight, as much again for the moments.

use super::{Facts, NO_WEIGHT};
use spikelet::Inference;

/// States, their latents, and pairs of these.
type Sizes = [f64; 3];

fn add(sizes: &mut Sizes, k: usize, times: f64) {
    let k = k as f64;
    *sizes = [sizes[0] + times, sizes[1] + times * k, sizes[2] + times * k * k];
}

/// Of all states.
fn states(facts: &Facts) -> Sizes {
    let mut sizes = Sizes::default();
    (0..=facts.shape.max_active).for_each(|k| add(&mut sizes, k, facts.of_size(k, 0)));
    sizes
}

/// Of a sample that was just inferred.
pub(super) fn of_sample(facts: &Facts, inference: &mut Inference<'_, f32>, is_loud: bool) -> Vec<f64> {
    let mut weighty = Sizes::default();
    let order = inference.estimate().order.to_vec();
    inference.for_each_state(|latents, probability| {
        // Singletons of latents that were not selected have no record.
        if probability > NO_WEIGHT && latents.iter().all(|latent| order.contains(latent)) {
            add(&mut weighty, latents.len(), 1.0);
        }
    });
    counts(facts, weighty, is_loud)
}

/// Of a loud sample all of whose states have weight.
pub(super) fn most(facts: &Facts) -> Vec<f64> {
    counts(facts, states(facts), true)
}

fn counts(facts: &Facts, weighty: Sizes, is_loud: bool) -> Vec<f64> {
    let [d, _, s, a] = facts.sizes();
    let [singletons, zeros] = facts.outside();
    let (all, loud) = (states(facts), |count: f64| if is_loud { count } else { 0.0 });
    // Where slabs depend on each other, the precision is a matrix.
    let full = |count: f64| if facts.full_slab { count } else { 0.0 };
    // Products with zero take less than others where there is no float unit.
    let mean = |count: f64| if facts.has_mean { count } else { 0.0 };
    vec![
        1.0,
        singletons,
        zeros,
        s * s,
        facts.gram[0],
        facts.gram[1],
        all[0],
        all[1],
        all[2],
        full(all[2]),
        mean(all[1]),
        mean(all[2]),
        weighty[0],
        weighty[1],
        weighty[2],
        full(weighty[2]),
        loud(1.0),
        loud(d * a),
        loud(d * s),
        loud(a * s * (a + 8.0)),
        // What the reference has more than a state.
        loud(a * all[1]),
    ]
}
