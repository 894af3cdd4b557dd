//! Symmetric FastICA (Hyvarinen 1999) with the contrast ln cosh, as most toolboxes run it by default.
//!
//! The data is whitened; then all rows of a rotation B are improved at once by b <- E[z tanh(b z)] - E[1 - tanh^2(b z)] b
//! and made orthogonal again, until they stay where they are. There is no noise in its model.

use super::mixtures::{nearest_rotation, orthogonal_matrix, product, transposed};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::train::Points;
use spikelet_trainer::train::whiten::Whitening;

/// Most iterations of one start.
const ITERATIONS: usize = 500;
/// A start ends when no row turns by more than this (1 - cosine).
const TOLERANCE: f64 = 1e-8;
/// E[ln cosh x] of a standard normal x.
const NORMAL_LOG_COSH: f64 = 0.374_567_207;

/// The mixing matrix (D x D) of the best of several starts: the one whose sources are least normal.
pub fn fast_ica(points: &[f64], dims: usize, starts: usize, seed: u64) -> Result<Vec<f64>> {
    let (mean, covariance) = Points::new(points.to_vec(), dims).covariance()?;
    let whitening = Whitening::new(&covariance, dims);
    let mut white: Vec<f64> = points.iter().enumerate().map(|(at, y)| y - mean[at % dims]).collect();
    whitening.apply(&mut white);
    let mut rng = Rng::new(seed);
    let mut best = (f64::NEG_INFINITY, Vec::new());
    for _ in 0..starts {
        let mut rotation = orthogonal_matrix(&mut rng, dims);
        for _ in 0..ITERATIONS {
            // Twice: a row that stands for nothing but normal noise comes out so small that once leaves it short, and it
            // would shrink to nothing.
            let new = nearest_rotation(&improved(&white, &rotation, dims), dims);
            let new = nearest_rotation(&new, dims);
            let turned = turned(&rotation, &new, dims);
            rotation = new;
            if turned < TOLERANCE {
                break;
            }
        }
        let contrast = contrast(&white, &rotation, dims);
        if contrast > best.0 {
            best = (contrast, rotation);
        }
    }
    // y = C^(1/2) z and z = B^T s.
    Ok(product(&whitening.inverse, &transposed(&best.1, dims), dims))
}

/// One fixed-point step of every row of `rotation`.
fn improved(points: &[f64], rotation: &[f64], d: usize) -> Vec<f64> {
    let n = (points.len() / d) as f64;
    let mut sums = vec![0.0; d * d];
    let mut slopes = vec![0.0; d];
    for z in points.chunks_exact(d) {
        for (k, b) in rotation.chunks_exact(d).enumerate() {
            let g = source(b, z).tanh();
            slopes[k] += 1.0 - g * g;
            sums[k * d..][..d].iter_mut().zip(z).for_each(|(sum, z)| *sum += g * z);
        }
    }
    sums.iter().enumerate().map(|(at, sum)| (sum - slopes[at / d] * rotation[at]) / n).collect()
}

/// The largest 1 - |cosine| between a row and what it was.
fn turned(old: &[f64], new: &[f64], d: usize) -> f64 {
    let rows = old.chunks_exact(d).zip(new.chunks_exact(d));
    rows.map(|(a, b)| 1.0 - source(a, b).abs()).fold(0.0, f64::max)
}

/// How far the sources are from normal: sum of (E[ln cosh s] - E[ln cosh normal])^2.
fn contrast(points: &[f64], rotation: &[f64], d: usize) -> f64 {
    let n = (points.len() / d) as f64;
    let mean = |b: &[f64]| points.chunks_exact(d).map(|z| source(b, z).cosh().ln()).sum::<f64>() / n;
    rotation.chunks_exact(d).map(|b| (mean(b) - NORMAL_LOG_COSH).powi(2)).sum()
}

fn source(b: &[f64], z: &[f64]) -> f64 {
    b.iter().zip(z).map(|(b, z)| b * z).sum()
}

#[cfg(test)]
mod tests {
    use super::super::mixtures::{Source, mix, normal_matrix};
    use super::*;
    use spikelet_trainer::metrics::amari;

    #[test]
    fn sources_without_noise_are_found() {
        let mut rng = Rng::new(1);
        let mixing = normal_matrix(&mut rng, 3, 3);
        let data = mix(&Source::Laplace.points(&mut rng, 5000, 3), &mixing, 3);
        let index = amari(&fast_ica(&data, 3, 1, 2).unwrap(), &mixing, 3, 3).unwrap();
        // Asymptotically each angle is off by about 1 / sqrt(N); 0.05 is three times what that makes of the index.
        assert!(index < 0.05, "{index}");
    }
}
