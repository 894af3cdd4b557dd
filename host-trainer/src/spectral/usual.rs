//! Which scores usual sound has: thresholds for rates of false alarms.

/// Rates that thresholds are stored for.
const RATES: [f64; 10] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];
/// A threshold needs so many frames above it: neighbouring frames are alike, so these are some three events.
const LEAST_ABOVE: f64 = 16.0;
/// Pieces of the recordings, whose rates tell how much the rate of all of them may be off.
const BLOCKS: usize = 20;
/// Student's t for them: the rate is below the bound with a probability of 0.95.
const T: f64 = 1.729;

/// Pairs of a rate and a score that usual sound exceeds at most so often, as far as there are frames enough; nothing where there
/// are not for one in ten. Scores are in the order of time. Frames near each other are alike, so that a rate is known less well
/// than by as many independent ones: a threshold is the lowest at which the mean rate of `BLOCKS` pieces, plus T of its standard
/// errors, is not above the one that is promised.
///
/// ```
/// use spikelet_trainer::spectral::usual_scores;
/// let steady: Vec<f32> = (0..4000).map(|n| (n * 37 % 4000) as f32).collect();
/// let pairs = usual_scores(&steady).unwrap();
/// assert!(pairs[2][0] == 0.1 && (3600.0..3640.0).contains(&pairs[2][1])); // every piece is like the others
/// let rising: Vec<f32> = (0..4000).map(|n| n as f32).collect();
/// assert!(usual_scores(&rising).unwrap()[2][1] > 3800.0); // the last pieces are not
/// ```
pub fn usual_scores(scores: &[f32]) -> Option<Vec<[f32; 2]>> {
    let count = scores.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut above = [0usize; BLOCKS];
    let (mut pairs, mut next) = (Vec::new(), 0);
    // From the most frequent rate on a threshold can only rise, so one pass from the highest score down finds them in reverse.
    for &rate in RATES.iter().filter(|&&rate| rate * count as f64 >= LEAST_ABOVE).rev() {
        while next < count {
            above[order[next] * BLOCKS / count] += 1;
            if bound(&above, count) > rate {
                above[order[next] * BLOCKS / count] -= 1;
                break;
            }
            next += 1;
        }
        // Frames before `next` are above this score.
        pairs.push([rate as f32, scores[order[next.min(count - 1)]]]);
    }
    pairs.reverse();
    (pairs.len() >= 3).then_some(pairs)
}

/// An upper bound of the rate that so many frames above in each block stand for.
fn bound(above: &[usize; BLOCKS], count: usize) -> f64 {
    let (blocks, len) = (BLOCKS as f64, count as f64 / BLOCKS as f64);
    let rates = above.map(|above| above as f64 / len);
    let mean = rates.iter().sum::<f64>() / blocks;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (blocks - 1.0);
    mean + T * (variance / blocks).sqrt()
}
