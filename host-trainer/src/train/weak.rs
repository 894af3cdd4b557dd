//! What sources do while they are off, told from the noise of sensors.
//!
//! A spike at 0 has no room for the many small values that real sources have between the large ones: learning calls them
//! noise, and inference takes them away. But they come along the columns, as noise of sensors does not. So the full covariance
//! that was learned is taken apart, by least squares with no part below 0,
//!
//! ```text
//! Sigma  ~  sum over h of tau_h W_h W_h^T  +  sigma^2 I        sigma^2 <= the smallest eigenvalue of Sigma
//! ```
//!
//! and a model with sigma^2 I + Sigma / 1000 gives nearly all that is weak to the sources. This needs at least as many
//! sensors as latents: with fewer, a weak point is explained by any few of them, and leaving it out is better
//! (experiment `voices` has the figures). Directions are learned with the whole Sigma: with less they go astray.

use super::whiten::Spectrum;
use crate::linalg::dot;
use crate::parameters::{NoiseCov, Parameters};
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

/// Part of what was learned as noise that stays noise: 30 dB less, and no state is ever impossible.
const KEPT: f64 = 1e-3;

/// Who has what is too weak to be told from noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weak {
    /// Noise, as it was learned
    #[default]
    Noise,
    /// Sources: noise is what comes along none of their directions
    Sources,
}

/// Leaves a model with the noise of its sensors.
pub(super) fn give_to_sources(model: &mut Parameters) {
    let d = model.dims;
    let learned: Vec<f64> = (0..d * d).map(|e| model.noise_covariance(e / d, e % d)).collect();
    let sigma2 = sensor_noise(model, &learned);
    let sensors = |e: usize| if e / d == e % d { sigma2 } else { 0.0 };
    let noise = learned.iter().enumerate().map(|(e, sigma)| sensors(e) + KEPT * sigma);
    model.noise = NoiseCov::Full(noise.collect());
}

/// sigma^2 of the sensors, from the covariance of all noise (D x D).
fn sensor_noise(model: &Parameters, learned: &[f64]) -> f64 {
    let (d, h) = (model.dims, model.latents);
    let least = Spectrum::new(learned, d).values.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
    let w = |i: usize, k: usize| model.dictionary[i * h + k];
    // Every part as a D x D matrix; that of the sensors last.
    let along = |k: usize| -> Vec<f64> { (0..d * d).map(|e| w(e / d, k) * w(e % d, k)).collect() };
    let mut parts: Vec<Vec<f64>> = (0..h).map(along).collect();
    parts.push((0..d * d).map(|e| f64::from(u8::from(e / d == e % d))).collect());
    loop {
        let n = parts.len();
        let system = Mat::from_fn(n, n, |i, j| dot(&parts[i], &parts[j]));
        let right = Mat::from_fn(n, 1, |i, _| dot(&parts[i], learned));
        // One sensor, or columns that are alike: there is nothing to tell by, and noise is all that it can be.
        let Ok(factor) = system.llt(Side::Lower) else { return least };
        let solution = factor.solve(&right);
        let worst =
            (0..n).fold(0, |worst, i| if solution[(i, 0)] < solution[(worst, 0)] { i } else { worst });
        match solution[(worst, 0)] < 0.0 {
            true if worst + 1 == n => return 0.0,
            true => drop(parts.remove(worst)),
            false => return solution[(n - 1, 0)].min(least),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ModelKind, SlabCov};

    fn model(dims: usize, dictionary: &[f64], noise: Vec<f64>) -> Parameters {
        let latents = dictionary.len() / dims;
        Parameters {
            kind: ModelKind::Gsc,
            dims,
            latents,
            dictionary: dictionary.to_vec(),
            prior: vec![0.3; latents],
            slab_mean: vec![0.0; latents],
            slab_cov: SlabCov::Unit,
            noise: NoiseCov::Full(noise),
        }
    }

    #[test]
    fn the_noise_of_sensors_is_found() {
        let columns = [1.0, 0.5, 0.2, -0.3, 1.0, 0.7, 0.1, -0.4, 1.0];
        for (tau, sigma2) in [([0.1, 0.02, 0.05], 0.01), ([0.1, 0.0, 0.0], 0.3), ([0.2; 3], 0.0)] {
            let entry = |i: usize, j: usize| {
                let weak: f64 = (0..3).map(|k| tau[k] * columns[i * 3 + k] * columns[j * 3 + k]).sum();
                weak + if i == j { sigma2 } else { 0.0 }
            };
            let learned: Vec<f64> = (0..9).map(|e| entry(e / 3, e % 3)).collect();
            let mut model = model(3, &columns, learned.clone());
            give_to_sources(&mut model);
            for (e, learned) in learned.iter().enumerate() {
                let expected = KEPT * learned + if e / 3 == e % 3 { sigma2 } else { 0.0 };
                let found = model.noise_covariance(e / 3, e % 3);
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        }
    }

    #[test]
    fn where_nothing_tells_it_stays_noise() {
        let mut one = model(1, &[1.0], vec![0.2]);
        give_to_sources(&mut one);
        assert!((one.noise_covariance(0, 0) - 0.2 * (1.0 + KEPT)).abs() < 1e-15);
        // Twice the same direction.
        let mut two = model(2, &[1.0, 1.0, 0.0, 0.0], vec![0.2, 0.0, 0.0, 0.1]);
        give_to_sources(&mut two);
        assert!((two.noise_covariance(0, 0) - 0.1 - KEPT * 0.2).abs() < 1e-15);
    }
}
