//! Counts of a walk over all states that makes their matrices on its way.
//!
//! Most follow from the shape. Some depend on the sample: the way it goes; how many states have weight, for the others get no
//! exponential; of a loud one, how many latents are on in the best state and surely on in all that matter.

use super::Facts;

/// What a sample adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// States with weight.
    pub weighty: f64,
    /// Latents on in the best state.
    pub on: usize,
    /// Latents that are on in all states with weight.
    pub surely: usize,
}

/// States with as many latents on as can be, with fewer, and pairs of later latents in those that have branches of their own, for
/// three more are to come. `surely` latents are on in all of them.
pub(super) fn states(facts: &Facts, surely: usize) -> [f64; 3] {
    let most = facts.shape.max_active.saturating_sub(surely);
    let of_size = |k: usize| facts.of_size(k, surely);
    let pairs = (1..most.saturating_sub(2)).map(|k| of_size(k + 2)).sum();
    [of_size(most), (0..most).map(of_size).sum(), pairs]
}

/// Of a spike-and-slab sample.
pub(super) fn walked(facts: &Facts, seen: Seen, is_loud: bool) -> Vec<f64> {
    let [d, _, s, _] = facts.sizes();
    let [singletons, zeros] = facts.outside();
    let [all, more, _] = states(facts, 0);
    // What is surely on is looked for in a loud sample, and where there are many states.
    let is_searched = is_loud || all + more >= s * s * s;
    let [leaves, inner, pairs] = states(facts, if is_loud { seen.surely } else { 0 });
    let mut counts = vec![
        1.0,
        singletons,
        zeros,
        s * s,
        facts.gram[0],
        facts.gram[1],
        leaves,
        inner,
        seen.weighty,
        pairs,
        if is_searched { s * s * s } else { 0.0 },
    ];
    // Members of the reference are searched, and every subset of those that may be off is a walk of its own.
    let (m, doubtful) = (seen.on as f64, seen.on.saturating_sub(seen.surely) as f64);
    let loud = [d * m, d * s, m * s * (m + 8.0), doubtful.exp2() * s * s];
    counts.extend(loud.map(|count| if is_loud { count } else { 0.0 }));
    counts
}

/// Of a sample whose latents are on or off, and add up.
pub(super) fn switched(facts: &Facts, seen: Seen, is_loud: bool) -> Vec<f64> {
    let [d, _, s, _] = facts.sizes();
    let ([leaves, inner, _], [singletons, zeros]) = (states(facts, 0), facts.outside());
    let most = facts.shape.max_active;
    // States that others are reached from, and the positions behind their last one.
    let parents: f64 = (1..most).map(|k| facts.of_size(k, 1)).sum();
    let later: f64 = (1..most).map(|k| facts.of_size(k + 1, 0)).sum();
    let m = seen.on as f64;
    let mut counts = vec![
        1.0,
        singletons,
        zeros,
        s,
        s * s,
        facts.gram[0],
        facts.gram[1],
        leaves + inner,
        seen.weighty,
        parents,
        parents * s,
        later,
        // The best state is climbed to first.
        (m + 1.0) * s,
    ];
    let loud = [1.0, d * m, d * s, m * s, m.exp2() * s];
    counts.extend(loud.map(|count| if is_loud { count } else { 0.0 }));
    counts
}

/// Of a sample whose strongest latents count. It needs no reference, but one far from zero has the singletons of all latents
/// computed like other states.
pub(super) fn maximal(facts: &Facts, seen: Seen, is_far: bool) -> Vec<f64> {
    let [d, _, s, _] = facts.sizes();
    let ([leaves, inner, _], [singletons, zeros]) = (states(facts, 0), facts.outside());
    let alone = if is_far { d * (s + singletons) } else { 0.0 };
    let each = d * (leaves + inner) + alone;
    let diagonal = if facts.diagonal_noise { each } else { 0.0 };
    vec![1.0, singletons, zeros, s, leaves, inner, seen.weighty, d * leaves, d * inner, alone, diagonal]
}

/// Of a loud sample all of whose states have weight.
pub(super) fn most(facts: &Facts) -> Vec<f64> {
    let shape = facts.shape;
    let seen = Seen { weighty: shape.states() as f64, on: shape.max_active, surely: 0 };
    match (shape.kind.has_slab(), shape.kind.is_maximal()) {
        (true, _) => walked(facts, seen, true),
        (_, false) => switched(facts, seen, true),
        (_, true) => maximal(facts, seen, true),
    }
}
