//! Gaussian mixtures [004 sec. 4.5.2]: with q_c the responsibilities of a point and sums over points,
//!
//! ```text
//! mu_c = sum q_c y / sum q_c         pi_c = mean q_c
//! Sigma = 1/N sum_c sum q_c (y - mu_c)(y - mu_c)^T                        shared by all components, as much of it as the noise has
//! sigma_dc^2 = sum q_c (y_d - mu_dc)^2 / sum q_c                          of components with variances of their own
//! ```
//!
//! The M-step of all linear models ([`super::linear`]) with latents that are never on together, so that `sum <s s^T>` is a diagonal.

use super::super::m_step::{Update, Warning, floored};
use super::super::points::Points;
use super::super::statistics::Statistics;
use super::linear::lift_eigenvalues;
use crate::Result;
use crate::linalg::transposed;
use crate::parameters::{NoiseCov, Parameters};
use spikelet::math::Real;
use spikelet::rng::Rng;

/// Points that first means are chosen from: so many for each, and this many at least.
const POINTS_PER_MEAN: usize = 50;
const LEAST_POINTS: usize = 2000;

/// Candidates for every first mean, of which the one that leaves the least distance is taken.
const CANDIDATES: usize = 4;
/// Steps of k-means from there.
const LLOYD: usize = 20;

/// First means, drawn from the data with probabilities that grow with the squared distance from those drawn already (k-means++), then a few steps
/// of k-means; and the mean squared distance of a number from the nearest of them, which noise starts at.
pub fn seeds(points: &mut Points, h: usize, rng: &mut Rng) -> Result<(Vec<f64>, f64)> {
    let (d, n) = (points.dims(), points.len());
    let most = (POINTS_PER_MEAN * h).max(LEAST_POINTS);
    let mut drawn = Vec::new();
    if n <= most {
        points.read(0, n, &mut drawn)?;
    } else {
        let mut point = Vec::new();
        for _ in 0..most {
            points.read(((rng.uniform::<f64>() * n as f64) as usize).min(n - 1), 1, &mut point)?;
            drawn.extend_from_slice(&point);
        }
    }
    let mut means = plus_plus(&drawn, d, h, rng);
    for _ in 0..LLOYD {
        if !lloyd(&drawn, d, &mut means) {
            break;
        }
    }
    let near = |y: &[f64]| means.chunks_exact(d).map(|mean| apart(y, mean)).fold(f64::INFINITY, f64::min);
    let variance = drawn.chunks_exact(d).map(near).sum::<f64>() / drawn.len() as f64;
    // With a mean for every point there is no distance left.
    let floor = f64::MIN_POSITIVE.max(1e-3 * drawn.iter().map(|y| y * y).sum::<f64>() / drawn.len() as f64);
    Ok((transposed(&means, d), variance.max(floor)))
}

/// |a - b|^2.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Means far from each other. (H x D)
fn plus_plus(drawn: &[f64], d: usize, h: usize, rng: &mut Rng) -> Vec<f64> {
    let count = drawn.len() / d;
    let mut nearest = vec![f64::INFINITY; count];
    let mut means = Vec::with_capacity(h * d);
    for k in 0..h {
        let total: f64 = nearest.iter().sum();
        let mut best = (f64::INFINITY, Vec::new(), 0);
        for _ in 0..if k > 0 { CANDIDATES } else { 1 } {
            let mut left = rng.uniform::<f64>() * total;
            let past = |distance: &f64| {
                left -= distance;
                left < 0.0
            };
            let at = match k > 0 && total > 0.0 {
                true => nearest.iter().position(past).unwrap_or(count - 1),
                false => ((rng.uniform::<f64>() * count as f64) as usize).min(count - 1),
            };
            let mean = &drawn[at * d..][..d];
            let closer: Vec<f64> =
                nearest.iter().zip(drawn.chunks_exact(d)).map(|(near, y)| near.min(apart(y, mean))).collect();
            let sum: f64 = closer.iter().sum();
            if best.1.is_empty() || sum < best.0 {
                best = (sum, closer, at);
            }
        }
        nearest = best.1;
        means.extend_from_slice(&drawn[best.2 * d..][..d]);
    }
    means
}

/// A step of k-means; false where nothing moves. A mean without points stays.
fn lloyd(drawn: &[f64], d: usize, means: &mut [f64]) -> bool {
    let h = means.len() / d;
    let (mut sums, mut counts) = (vec![0.0; h * d], vec![0.0; h]);
    for y in drawn.chunks_exact(d) {
        let mut best = (f64::INFINITY, 0);
        for (k, mean) in means.chunks_exact(d).enumerate() {
            let distance = apart(y, mean);
            if distance < best.0 {
                best = (distance, k);
            }
        }
        sums[best.1 * d..][..d].iter_mut().zip(y).for_each(|(sum, y)| *sum += y);
        counts[best.1] += 1.0;
    }
    let mut moved = false;
    for (e, mean) in means.iter_mut().enumerate().filter(|(e, _)| counts[e / d] > 0.0) {
        let new = sums[e] / counts[e / d];
        moved |= new != *mean;
        *mean = new;
    }
    moved
}

/// Adds q_c y^2, where components have variances of their own. (H x D)
pub(in super::super) fn add_squares<T: Real>(y: &[f64], responsibility: &[T], squares: &mut [f64]) {
    for (q, row) in responsibility.iter().zip(squares.chunks_exact_mut(y.len())) {
        let q = q.to_f64();
        if q != 0.0 {
            row.iter_mut().zip(y).for_each(|(sum, y)| *sum += q * y * y);
        }
    }
}

/// mu; dead components keep theirs.
pub fn means(
    parameters: &Parameters,
    sums: &Statistics,
    dead: &[bool],
    _: &Update,
    _: &mut Vec<Warning>,
) -> Vec<f64> {
    let h = parameters.latents;
    let entry = |(e, sum): (usize, &f64)| match dead[e % h] {
        true => parameters.dictionary[e],
        false => sum / sums.activity[e % h],
    };
    sums.cross.iter().enumerate().map(entry).collect()
}

/// Sigma with the given (new) means, as much of it as the noise model has.
pub fn noise(new: &Parameters, sums: &Statistics, floor: f64, warnings: &mut Vec<Warning>) -> NoiseCov {
    let (d, h, n) = (new.dims, new.latents, sums.points as f64);
    let mu = |i: usize| &new.dictionary[i * h..][..h];
    let cross = |i: usize| &sums.cross[i * h..][..h];
    let entry = |i: usize, k: usize, power: f64| {
        let of = |c: usize| {
            let explained = sums.activity[c] * mu(i)[c] * mu(k)[c];
            mu(i)[c] * cross(k)[c] + mu(k)[c] * cross(i)[c] - explained
        };
        (power - (0..h).map(of).sum::<f64>()) / n
    };
    match &new.noise {
        NoiseCov::Shared(_) => {
            let sum: f64 = (0..d).map(|i| entry(i, i, sums.power[i])).sum();
            NoiseCov::Shared(floored(sum / d as f64, floor, warnings))
        }
        NoiseCov::Diagonal(_) => {
            let variance = |i: usize| floored(entry(i, i, sums.power[i]), floor, warnings);
            NoiseCov::Diagonal((0..d).map(variance).collect())
        }
        NoiseCov::Full(_) => {
            let sigma: Vec<f64> = (0..d * d).map(|e| entry(e / d, e % d, sums.power[e])).collect();
            let (sigma, lifted) = lift_eigenvalues(&sigma, d, floor);
            if lifted {
                warnings.push(Warning::NoiseFloor);
            }
            NoiseCov::Full(sigma)
        }
        NoiseCov::Components(old) => {
            let variance = |(e, old): (usize, &f64)| {
                let (i, c) = (e / h, e % h);
                let (on, mu) = (sums.activity[c], mu(i)[c]);
                // A component without points keeps its variances.
                match on < 1e-3 {
                    true => *old,
                    false => {
                        floored((sums.share[e] - 2.0 * mu * cross(i)[c]) / on + mu * mu, floor, warnings)
                    }
                }
            };
            NoiseCov::Components(old.iter().enumerate().map(variance).collect())
        }
    }
}
