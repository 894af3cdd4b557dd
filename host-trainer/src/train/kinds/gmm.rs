//! Gaussian mixtures [004 sec. 4.5.2]: with q_c the responsibilities of a point and sums over points,
//!
//! ```text
//! mu_c = sum q_c y / sum q_c         pi_c = mean q_c
//! Sigma = 1/N sum_c sum q_c (y - mu_c)(y - mu_c)^T                        shared by all components, as much of it as the noise has
//! sigma_dc^2 = sum q_c (y_d - mu_dc)^2 / sum q_c                          of components with variances of their own
//! ```
//!
//! The M-step of all linear models ([`super::linear`]) with latents that are never on together, so that `sum <s s^T>` is a diagonal.

mod clusters;
mod far;
mod seeds;

pub use seeds::{Seeds, seeds};

use super::super::m_step::{Update, Warning, floored};
use super::super::statistics::Statistics;
use super::linear::lift_eigenvalues;
use crate::parameters::{NoiseCov, Parameters};
use spikelet::math::Real;

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
