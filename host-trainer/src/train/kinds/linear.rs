//! Models that add up their latents: y = W x + noise.
//!
//! ```text
//! W = (sum y <x>^T) (sum <x x^T>)^-1        Sigma = 1/N sum <(y - W x)(y - W x)^T>
//! ```
//!
//! with the new W in Sigma (000 eq. 6 and 10, corrected: `<x x^T>` in the noise; 002 eq. 26 with x = s).

use super::super::m_step::{Columns, Update, Warning, floored};
use super::super::statistics::Statistics;
use super::neighbours::Neighbours;
use crate::linalg::transposed;
use crate::parameters::{NoiseCov, Parameters};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

/// Of more latents than this, W is not solved for but improved, and moments are taken as sparse.
const MANY: usize = 2048;

/// How often every column of so many is improved in an M-step.
const SWEEPS: usize = 5;

/// Latents that are on together less than this, relative to what they could be, are not corrected for each other where
/// columns are improved once: less than what the next batch moves them by.
const LEAST: f64 = 1e-4;

/// Solves `W (sum <x x^T>) = sum y <x>^T`.
pub fn dictionary(
    parameters: &Parameters,
    sums: &Statistics,
    dead: &[bool],
    update: &Update,
    warnings: &mut Vec<Warning>,
) -> Vec<f64> {
    let (d, h) = (parameters.dims, parameters.latents);
    let (sweeps, least) = if h > MANY { (SWEEPS, 0.0) } else { (1, LEAST) };
    if h > MANY || update.columns == Columns::Improved {
        let mut by_latents = transposed(&parameters.dictionary, h);
        let cross = transposed(&sums.cross, h);
        Neighbours::new(sums, least).improve(&mut by_latents, &cross, dead, sweeps);
        return transposed(&by_latents, d);
    }
    let scale = (0..h).map(|i| sums.second_moment(i, i)).fold(0.0, f64::max);
    // A dead latent keeps its column: its row of the system says W_h = W_h.
    let entry = |i: usize, j: usize| match (dead[i] || dead[j], i == j) {
        (false, _) => sums.second_moment(i, j),
        (true, true) => scale.max(f64::MIN_POSITIVE),
        (true, false) => 0.0,
    };
    let right = Mat::from_fn(h, d, |i, j| match dead[i] {
        false => sums.cross[j * h + i],
        true => scale.max(f64::MIN_POSITIVE) * parameters.dictionary[j * h + i],
    });
    // The smallest ridge that makes the system definite; none in the ordinary case.
    for ridge in [0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3] {
        let system = Mat::from_fn(h, h, |i, j| entry(i, j) + if i == j { ridge * scale } else { 0.0 });
        if let Ok(factor) = system.llt(Side::Lower) {
            let solution = factor.solve(&right);
            if (0..h * d).all(|e| solution[(e % h, e / h)].is_finite()) {
                if ridge > 0.0 {
                    warnings.push(Warning::Singular);
                }
                return (0..d * h).map(|e| solution[(e % h, e / h)]).collect();
            }
        }
    }
    warnings.push(Warning::Singular);
    parameters.dictionary.clone()
}

/// 1/N sum <(y - W x)(y - W x)^T> with the given (new) W, as much of it as the noise model has.
pub fn noise(new: &Parameters, sums: &Statistics, floor: f64, warnings: &mut Vec<Warning>) -> NoiseCov {
    let (d, h, n) = (new.dims, new.latents, sums.points as f64);
    let w = |i: usize, j: usize| new.dictionary[i * h + j];
    // W (sum <x x^T>), one row per dimension
    let spread = match h > MANY {
        true => transposed(&Neighbours::new(sums, 0.0).product(&transposed(&new.dictionary, h), d), d),
        false => {
            let moments = Mat::from_fn(h, h, |i, j| sums.second_moment(i, j));
            let product = MatRef::from_row_major_slice(&new.dictionary, d, h) * moments;
            (0..d * h).map(|e| product[(e / h, e % h)]).collect()
        }
    };
    let entry = |i: usize, k: usize, power: f64| {
        let crossed: f64 =
            (0..h).map(|j| w(i, j) * sums.cross[k * h + j] + w(k, j) * sums.cross[i * h + j]).sum();
        let explained: f64 = (0..h).map(|j| spread[i * h + j] * w(k, j)).sum();
        (power - crossed + explained) / n
    };
    let mut floored = |variance| floored(variance, floor, warnings);
    match &new.noise {
        // Of mixtures, which have their own.
        NoiseCov::Components(sigma2) => NoiseCov::Components(sigma2.clone()),
        NoiseCov::Shared(_) => {
            let sum: f64 = (0..d).map(|i| entry(i, i, sums.power[i])).sum();
            NoiseCov::Shared(floored(sum / d as f64))
        }
        NoiseCov::Diagonal(_) => {
            NoiseCov::Diagonal((0..d).map(|i| floored(entry(i, i, sums.power[i]))).collect())
        }
        NoiseCov::Full(_) => {
            let sigma: Vec<f64> = (0..d * d).map(|e| entry(e / d, e % d, sums.power[e])).collect();
            let (sigma, lifted) = lift_eigenvalues(&sigma, d, floor);
            if lifted {
                warnings.push(Warning::NoiseFloor);
            }
            NoiseCov::Full(sigma)
        }
    }
}

/// The covariance with no eigenvalue below `floor`.
pub(crate) fn lifted(sigma: &[f64], d: usize, floor: f64) -> Vec<f64> {
    lift_eigenvalues(sigma, d, floor).0
}

/// The covariance with no eigenvalue below `floor`, and whether any was.
pub(super) fn lift_eigenvalues(sigma: &[f64], d: usize, floor: f64) -> (Vec<f64>, bool) {
    let symmetric = Mat::from_fn(d, d, |i, j| 0.5 * (sigma[i * d + j] + sigma[j * d + i]));
    let Ok(eigen) = symmetric.self_adjoint_eigen(Side::Lower) else {
        let diagonal = |e: usize| if e / d == e % d { sigma[e].max(floor) } else { 0.0 };
        return ((0..d * d).map(diagonal).collect(), true);
    };
    let (u, values) = (eigen.U(), eigen.S().column_vector());
    if (0..d).all(|k| values[k] > floor) {
        return ((0..d * d).map(|e| symmetric[(e / d, e % d)]).collect(), false);
    }
    let entry = |i: usize, j: usize| (0..d).map(|k| u[(i, k)] * values[k].max(floor) * u[(j, k)]).sum();
    ((0..d * d).map(|e| entry(e / d, e % d)).collect(), true)
}
