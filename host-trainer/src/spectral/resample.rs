//! Copies at slightly other rates: pitch and resonances move together.

use std::f64::consts::PI;

/// Zero crossings of the sinc on either side.
const CROSSINGS: f64 = 16.0;

/// As many samples times `up` / `down`, by a windowed sinc below the lower of the two band limits.
///
/// ```
/// use spikelet_trainer::spectral::resampled;
/// let tone = |rate: f64, n: usize| (0..n).map(|t| (t as f64 * 0.3 / rate).sin()).collect::<Vec<f64>>();
/// let (faster, expected) = (resampled(&tone(1.0, 800), 9, 8), tone(9.0 / 8.0, 900));
/// assert_eq!(faster.len(), 900);
/// assert!((50..850).all(|t| (faster[t] - expected[t]).abs() < 1e-3));
/// ```
pub fn resampled(samples: &[f64], up: usize, down: usize) -> Vec<f64> {
    if up == down {
        return samples.to_vec();
    }
    let cutoff = (up as f64 / down as f64).min(1.0);
    let reach = CROSSINGS / cutoff;
    // One filter for each of `up` phases.
    let taps = 2 * reach as usize + 1;
    let kernels: Vec<Vec<f64>> = (0..up)
        .map(|phase| {
            let offset = phase as f64 / up as f64;
            (0..taps).map(|i| kernel(i as f64 - reach.floor() - offset, cutoff, reach)).collect()
        })
        .collect();
    let len = samples.len() * up / down;
    (0..len)
        .map(|n| {
            let (whole, phase) = (n * down / up, n * down % up);
            let first = whole as isize - reach as isize;
            let terms = kernels[phase].iter().enumerate().filter_map(|(i, weight)| {
                let at = usize::try_from(first + i as isize).ok()?;
                samples.get(at).map(|x| weight * x)
            });
            terms.sum()
        })
        .collect()
}

/// A sinc under a Hann window.
fn kernel(t: f64, cutoff: f64, reach: f64) -> f64 {
    if t.abs() >= reach {
        return 0.0;
    }
    let sinc = if t == 0.0 { 1.0 } else { (PI * cutoff * t).sin() / (PI * cutoff * t) };
    cutoff * sinc * 0.5 * (1.0 + (PI * t / reach).cos())
}
