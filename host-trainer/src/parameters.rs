//! A model as its user knows it: W, pi, mu, Psi, Sigma in `f64`, before anything is precomputed.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Psi, the covariance of the slab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SlabCov {
    /// The identity.
    Unit,
    /// One variance per latent. (H)
    Diagonal(Vec<f64>),
    /// Any covariance. (H x H)
    Full(Vec<f64>),
}

/// Sigma, the covariance of the observation noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NoiseCov {
    /// One variance for all dimensions.
    Shared(f64),
    /// One variance per dimension. (D)
    Diagonal(Vec<f64>),
    /// Any covariance. (D x D)
    Full(Vec<f64>),
}

/// The parameters of a spike-and-slab model. Matrices are row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// D.
    pub dims: usize,
    /// H.
    pub latents: usize,
    /// W. (D x H)
    pub dictionary: Vec<f64>,
    /// pi. (H)
    pub prior: Vec<f64>,
    /// mu. (H)
    pub slab_mean: Vec<f64>,
    /// Psi.
    pub slab_cov: SlabCov,
    /// Sigma.
    pub noise: NoiseCov,
}

impl Parameters {
    /// Refuses parameters that are no model, naming the first number that is wrong.
    pub fn check(&self) -> Result<()> {
        let (d, h) = (self.dims, self.latents);
        if d == 0 || h == 0 {
            return Err(Error::input("no dimensions or no latents", "W", "give a D x H matrix"));
        }
        length("W", &self.dictionary, d * h)?;
        length("pi", &self.prior, h)?;
        length("mu", &self.slab_mean, h)?;
        each("W", &self.dictionary, f64::is_finite, "must be finite")?;
        each("pi", &self.prior, |p| p > 0.0 && p < 1.0, "must lie between 0 and 1, both excluded")?;
        each("mu", &self.slab_mean, f64::is_finite, "must be finite")?;
        match &self.slab_cov {
            SlabCov::Unit => {}
            SlabCov::Diagonal(psi2) => {
                length("psi2", psi2, h)?;
                each("psi2", psi2, |v| v.is_finite() && v > 0.0, "must be positive (it is a variance)")?;
            }
            SlabCov::Full(psi) => covariance("psi2", psi, h)?,
        }
        match &self.noise {
            NoiseCov::Shared(sigma2) => each(
                "sigma2",
                &[*sigma2],
                |v| v.is_finite() && v > 0.0,
                "must be positive (it is a variance)",
            ),
            NoiseCov::Diagonal(sigma2) => {
                length("sigma2", sigma2, d)?;
                each("sigma2", sigma2, |v| v.is_finite() && v > 0.0, "must be positive (it is a variance)")
            }
            NoiseCov::Full(sigma) => covariance("sigma2", sigma, d),
        }
    }

    /// Psi_hh of every latent.
    pub fn slab_variances(&self) -> Vec<f64> {
        match &self.slab_cov {
            SlabCov::Unit => vec![1.0; self.latents],
            SlabCov::Diagonal(psi2) => psi2.clone(),
            SlabCov::Full(psi) => (0..self.latents).map(|h| psi[h * self.latents + h]).collect(),
        }
    }

    /// Psi_ij.
    pub fn slab_covariance(&self, i: usize, j: usize) -> f64 {
        match &self.slab_cov {
            SlabCov::Full(psi) => psi[i * self.latents + j],
            SlabCov::Diagonal(psi2) if i == j => psi2[i],
            SlabCov::Unit if i == j => 1.0,
            _ => 0.0,
        }
    }

    /// Sigma_dd of every dimension.
    pub fn noise_variances(&self) -> Vec<f64> {
        match &self.noise {
            NoiseCov::Shared(sigma2) => vec![*sigma2; self.dims],
            NoiseCov::Diagonal(sigma2) => sigma2.clone(),
            NoiseCov::Full(sigma) => (0..self.dims).map(|d| sigma[d * self.dims + d]).collect(),
        }
    }
}

fn length(name: &str, values: &[f64], expected: usize) -> Result<()> {
    if values.len() == expected {
        return Ok(());
    }
    let what = format_args!("{} numbers where {expected} are needed", values.len()).to_string();
    Err(Error::input(what, name, "its size must agree with W, which is D x H"))
}

fn each(name: &str, values: &[f64], good: impl Fn(f64) -> bool, rule: &str) -> Result<()> {
    match values.iter().position(|&v| !good(v)) {
        Some(i) => {
            Err(Error::input(format_args!("{} {rule}", values[i]), format_args!("{name}[{i}]"), "correct it"))
        }
        None => Ok(()),
    }
}

/// Finite and symmetric; whether it is positive definite shows when it is factored.
fn covariance(name: &str, values: &[f64], n: usize) -> Result<()> {
    length(name, values, n * n)?;
    each(name, values, f64::is_finite, "must be finite")?;
    let scale = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for i in 0..n {
        for j in 0..i {
            if (values[i * n + j] - values[j * n + i]).abs() > 1e-8 * scale {
                let place = format!("{name}[{i}, {j}]");
                return Err(Error::input(
                    "the covariance is not symmetric",
                    place,
                    "give a symmetric matrix",
                ));
            }
        }
    }
    Ok(())
}
