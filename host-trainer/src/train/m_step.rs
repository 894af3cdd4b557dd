//! The M-step of Gaussian sparse coding: statistics to parameters, in closed form.
//!
//! ```text
//! W     = (sum y <x>^T) (sum <x x^T>)^-1          pi_h = mean <s_h>        mu_h = sum <x_h> / sum <s_h>
//! psi_h^2 = sum <x_h^2> / sum <s_h> - mu_h^2      Sigma = 1/N sum <(y - W x)(y - W x)^T>
//! ```
//!
//! with the new mu in psi^2 and the new W in Sigma (000 eq. 6-10, corrected: `<x x^T>` in the noise). A full slab is
//! learned from all of z, also where s is 0 (000 eq. 8-9 hold for a diagonal one only):
//!
//! ```text
//! mu = mean <z>        Psi = mean <z z^T> - mu mu^T
//! ```
//!
//! Updates that the data cannot support are guarded, and every guard that acted is named once.

use super::statistics::Statistics;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::{Error, Result};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

/// Which parameters the M-step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// W.
    pub dictionary: bool,
    /// pi.
    pub prior: bool,
    /// mu and psi^2; false for a unit slab.
    pub slab: bool,
    /// Sigma.
    pub noise: bool,
}

/// Limits that keep parameters where inference is sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Smallest noise variance.
    pub noise_floor: f64,
    /// pi stays this far away from 0 and 1.
    pub prior_margin: f64,
    /// Smallest slab variance.
    pub slab_floor: f64,
}

/// A guard that acted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// A latent is hardly ever on: its column, mean and variance were left as they were.
    Dead(usize),
    /// Latents cannot be told apart by the data: a ridge was added to their moments.
    Singular,
    /// The noise reached its floor.
    NoiseFloor,
    /// A latent did nothing and began anew from a badly explained point (stepwise EM only).
    Revived(usize),
}

/// New parameters, and which guards acted.
pub fn m_step(
    parameters: &Parameters,
    statistics: &Statistics,
    learned: &Learned,
    guard: &Guard,
) -> Result<(Parameters, Vec<Warning>)> {
    if statistics.points == 0 {
        return Err(Error::input("no points", "the data", "give at least one"));
    }
    let mut warnings = Vec::new();
    let mut new = parameters.clone();
    let n = statistics.points as f64;
    // A latent that is on for less than a thousandth of one point has nothing to say.
    let dead: Vec<bool> = statistics.activity.iter().map(|&on| on < 1e-3).collect();
    warnings.extend(dead.iter().enumerate().filter(|(_, dead)| **dead).map(|(h, _)| Warning::Dead(h)));
    if learned.dictionary {
        new.dictionary = dictionary(parameters, statistics, &dead, &mut warnings);
    }
    if learned.prior {
        let margin = guard.prior_margin;
        new.prior = statistics.activity.iter().map(|on| (on / n).clamp(margin, 1.0 - margin)).collect();
    }
    if let (true, SlabCov::Full(_)) = (learned.slab, &parameters.slab_cov) {
        let h = parameters.latents;
        new.slab_mean = statistics.slab.iter().map(|sum| sum / n).collect();
        let (mu, second) = (&new.slab_mean, &statistics.slab_second);
        let psi: Vec<f64> = (0..h * h).map(|e| second[e] / n - mu[e / h] * mu[e % h]).collect();
        new.slab_cov = SlabCov::Full(lift_eigenvalues(&psi, h, guard.slab_floor).0);
    } else if learned.slab {
        let mut variances = parameters.slab_variances();
        for h in (0..parameters.latents).filter(|&h| !dead[h]) {
            let on = statistics.activity[h];
            let mean = statistics.mean[h] / on;
            new.slab_mean[h] = mean;
            variances[h] = (statistics.second_moment(h, h) / on - mean * mean).max(guard.slab_floor);
        }
        new.slab_cov = SlabCov::Diagonal(variances);
    }
    if learned.noise {
        new.noise = noise(&new, statistics, guard.noise_floor, &mut warnings);
    }
    Ok((new, warnings))
}

/// Solves W (sum <x x^T>) = sum y <x>^T.
fn dictionary(
    parameters: &Parameters,
    sums: &Statistics,
    dead: &[bool],
    warnings: &mut Vec<Warning>,
) -> Vec<f64> {
    let (d, h) = (parameters.dims, parameters.latents);
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
fn noise(new: &Parameters, sums: &Statistics, floor: f64, warnings: &mut Vec<Warning>) -> NoiseCov {
    let (d, h, n) = (new.dims, new.latents, sums.points as f64);
    let w = |i: usize, j: usize| new.dictionary[i * h + j];
    // W (sum <x x^T>), one row per dimension
    let moments = Mat::from_fn(h, h, |i, j| sums.second_moment(i, j));
    let spread = MatRef::from_row_major_slice(&new.dictionary, d, h) * moments;
    let entry = |i: usize, k: usize, power: f64| {
        let crossed: f64 =
            (0..h).map(|j| w(i, j) * sums.cross[k * h + j] + w(k, j) * sums.cross[i * h + j]).sum();
        let explained: f64 = (0..h).map(|j| spread[(i, j)] * w(k, j)).sum();
        (power - crossed + explained) / n
    };
    let mut floored = |variance: f64| {
        if variance > floor {
            return variance;
        }
        warnings.push(Warning::NoiseFloor);
        floor
    };
    match &new.noise {
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

/// The covariance with no eigenvalue below `floor`, and whether any was.
fn lift_eigenvalues(sigma: &[f64], d: usize, floor: f64) -> (Vec<f64>, bool) {
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
