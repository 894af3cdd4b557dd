//! Which scores usual sound has: thresholds for rates of false alarms.

/// Rates that thresholds are stored for.
const RATES: [f64; 10] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];
/// A threshold needs so many frames above it: neighbouring frames are alike, so these are some three events.
const LEAST_ABOVE: f64 = 16.0;

/// Pairs of a rate and the score that this part of the frames exceeds, as far as there are frames enough; nothing where there are not
/// for one in ten. Sorts the scores.
pub fn usual_scores(scores: &mut [f32]) -> Option<Vec<[f32; 2]>> {
    scores.sort_by(|a, b| b.total_cmp(a));
    let count = scores.len() as f64;
    let known = RATES.iter().filter(|&&rate| rate * count >= LEAST_ABOVE);
    let pairs: Vec<[f32; 2]> = known.map(|&rate| [rate as f32, scores[(rate * count) as usize]]).collect();
    (pairs.len() >= 3).then_some(pairs)
}
