//! Heart beats in a signal: where they are, how regular, how strong.

use super::table::{mean_and_spread, median};

/// Samples on either side of a beat that belong to it.
const AROUND: usize = 5;
/// Beats nearer than this to one of the other heart are not counted for either.
const APART: usize = 12;
/// Beats have at least this part of the height of strong ones.
const HEIGHT: f64 = 0.5;

/// The places of beats, at least `distance` samples apart: the highest first, as long as they have half the median height of the
/// eight highest. Of either sign.
pub fn beats(signal: &[f64], distance: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..signal.len()).collect();
    order.sort_by(|&a, &b| signal[b].abs().total_cmp(&signal[a].abs()));
    let mut found: Vec<usize> = Vec::new();
    let mut least = 0.0;
    for at in order {
        if signal[at].abs() < least {
            break;
        }
        if found.iter().all(|&other| other.abs_diff(at) >= distance) {
            found.push(at);
        }
        if found.len() == 8 {
            let heights: Vec<f64> = found.iter().map(|&at| signal[at].abs()).collect();
            least = HEIGHT * median(&heights);
        }
    }
    found.sort_unstable();
    found
}

/// Mean interval in samples, and the standard deviation of intervals over it.
pub fn rhythm(beats: &[usize]) -> (f64, f64) {
    let intervals: Vec<f64> = beats.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let (mean, spread) = mean_and_spread(&intervals);
    (mean, spread / mean)
}

/// How much stronger a signal is at the beats of one heart than at those of another, in dB: medians of the energy around
/// beats that are apart.
pub fn contrast_db(signal: &[f64], own: &[usize], others: &[usize]) -> f64 {
    let energy = |at: usize| {
        let part = &signal[at.saturating_sub(AROUND)..(at + AROUND + 1).min(signal.len())];
        part.iter().map(|x| x * x).sum::<f64>() / part.len() as f64
    };
    let middle = |beats: &[usize], rest: &[usize]| {
        let alone = |at: &&usize| rest.iter().all(|other| other.abs_diff(**at) > APART);
        median(&beats.iter().filter(alone).map(|&at| energy(at)).collect::<Vec<f64>>())
    };
    10.0 * (middle(own, others) / middle(others, own)).log10()
}

/// Without what is slower than about `length` samples: the mean around every sample is taken off.
pub fn without_drift(signal: &[f64], length: usize) -> Vec<f64> {
    let half = length / 2;
    let mean = |at: usize| {
        let part = &signal[at.saturating_sub(half)..(at + half + 1).min(signal.len())];
        part.iter().sum::<f64>() / part.len() as f64
    };
    signal.iter().enumerate().map(|(at, x)| x - mean(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_are_found() {
        let mut signal = vec![0.01; 1000];
        (0..10).for_each(|k| signal[50 + 100 * k] = -1.0 - 0.1 * k as f64);
        (0..7).for_each(|k| signal[85 + 140 * k] = 0.2);
        let found = beats(&signal, 40);
        assert_eq!(found, (0..10).map(|k| 50 + 100 * k).collect::<Vec<_>>());
        assert_eq!(rhythm(&found), (100.0, 0.0));
        let weak: Vec<usize> = (0..7).map(|k| 85 + 140 * k).collect();
        assert!(contrast_db(&signal, &found, &weak) > 10.0);
    }
}
