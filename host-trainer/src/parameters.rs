//! A model as its user knows it: W, pi, mu, Psi, Sigma in `f64`, before anything is precomputed.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use spikelet::Kind;

/// Kinds of model, as users and files call them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Spike-and-slab sources, added up by W, Gaussian noise
    #[default]
    Gsc,
    /// Sources that are on or off, added up by W (LinCA)
    #[value(alias = "linca")]
    Bsc,
    /// The same with W >= 0
    Nmf,
    /// Sources that are on or off, the strongest of which makes each dimension; W >= 0
    Mca,
    /// Spike-and-slab sources, the strongest of which makes each dimension; W >= 0
    Ssmca,
    /// A Gaussian mixture: exactly one component is on, W has their means
    Gmm,
}

impl ModelKind {
    /// What the core calls it.
    pub fn kind(self) -> Kind {
        match self {
            Self::Gsc => Kind::Gsc,
            Self::Bsc => Kind::Bsc,
            Self::Nmf => Kind::Nmf,
            Self::Mca => Kind::Mca,
            Self::Ssmca => Kind::Ssmca,
            Self::Gmm => Kind::Gmm,
        }
    }

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        self.kind().spec().name
    }
}

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
    /// Of a mixture: one variance per dimension and component. (D x H)
    Components(Vec<f64>),
}

impl NoiseCov {
    /// `factor` times as much variance.
    pub fn scaled(&self, factor: f64) -> Self {
        let all = |values: &[f64]| values.iter().map(|v| factor * v).collect();
        match self {
            Self::Shared(sigma2) => Self::Shared(factor * sigma2),
            Self::Diagonal(sigma2) => Self::Diagonal(all(sigma2)),
            Self::Full(sigma) => Self::Full(all(sigma)),
            Self::Components(sigma2) => Self::Components(all(sigma2)),
        }
    }
}

/// The parameters of a model. Matrices are row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// What they are the parameters of.
    #[serde(default)]
    pub kind: ModelKind,
    /// D.
    pub dims: usize,
    /// H.
    pub latents: usize,
    /// W. (D x H)
    pub dictionary: Vec<f64>,
    /// pi. (H)
    pub prior: Vec<f64>,
    /// mu. (H; empty where a latent that is on is just that: all kinds but GSC and SSMCA)
    pub slab_mean: Vec<f64>,
    /// Psi; has no meaning without a slab.
    pub slab_cov: SlabCov,
    /// Sigma.
    pub noise: NoiseCov,
}

impl Parameters {
    /// Parameters of latents that are on or off, of any kind but GSC and SSMCA. `dictionary` is D x H.
    pub fn binary(
        kind: ModelKind,
        dictionary: Vec<f64>,
        dims: usize,
        prior: Vec<f64>,
        noise: NoiseCov,
    ) -> Self {
        let (latents, slab_mean, slab_cov) = (prior.len(), Vec::new(), SlabCov::Unit);
        Self { kind, dims, latents, dictionary, prior, slab_mean, slab_cov, noise }
    }

    /// Refuses parameters that are no model, naming the first number that is wrong.
    pub fn check(&self) -> Result<()> {
        let (d, h) = (self.dims, self.latents);
        if d == 0 || h == 0 {
            return Err(Error::input("no dimensions or no latents", "W", "give a D x H matrix"));
        }
        length("W", &self.dictionary, d * h)?;
        length("pi", &self.prior, h)?;
        each("W", &self.dictionary, f64::is_finite, "must be finite")?;
        let is_non_negative = self.kind.kind().is_non_negative();
        if let Some(i) = self.dictionary.iter().position(|&w| w < 0.0).filter(|_| is_non_negative) {
            let what = format!(
                "{} must not be negative in a model of kind {}",
                self.dictionary[i],
                self.kind.name()
            );
            let place = format!("W[{}, {}]", i / h, i % h);
            let other = if self.kind == ModelKind::Ssmca { "gsc" } else { "bsc" };
            return Err(Error::input(
                what,
                place,
                format_args!("correct it, or use {other}, whose W has any sign"),
            ));
        }
        each("pi", &self.prior, |p| p > 0.0 && p < 1.0, "must lie between 0 and 1, both excluded")?;
        if self.kind.kind().has_slab() {
            self.check_slab()?;
        } else {
            length("mu", &self.slab_mean, 0)?;
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
            NoiseCov::Full(_) if self.kind.kind().is_maximal() => {
                let what = "maximal causes cannot have noise that depends on other dimensions";
                Err(Error::input(what, "sigma2", "give one variance, or one per dimension"))
            }
            NoiseCov::Full(sigma) => covariance("sigma2", sigma, d),
            NoiseCov::Components(_) if !self.kind.kind().is_mixture() => {
                let what = "only the components of a mixture have variances of their own";
                Err(Error::input(what, "sigma2", "give one variance, or one per dimension"))
            }
            NoiseCov::Components(sigma2) => {
                length("sigma2", sigma2, d * h)?;
                each("sigma2", sigma2, |v| v.is_finite() && v > 0.0, "must be positive (it is a variance)")
            }
        }
    }

    fn check_slab(&self) -> Result<()> {
        let h = self.latents;
        length("mu", &self.slab_mean, h)?;
        each("mu", &self.slab_mean, f64::is_finite, "must be finite")?;
        match &self.slab_cov {
            SlabCov::Unit => {}
            SlabCov::Diagonal(psi2) => {
                length("psi2", psi2, h)?;
                each("psi2", psi2, |v| v.is_finite() && v > 0.0, "must be positive (it is a variance)")?;
            }
            SlabCov::Full(_) if self.kind == ModelKind::Ssmca => {
                let what = "slabs of which the strongest counts cannot depend on each other";
                return Err(Error::input(what, "psi2", "give one variance, or one per latent"));
            }
            SlabCov::Full(psi) => covariance("psi2", psi, h)?,
        }
        Ok(())
    }

    /// Psi_hh of every latent that has a slab.
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

    /// Sigma_ij.
    pub fn noise_covariance(&self, i: usize, j: usize) -> f64 {
        match &self.noise {
            NoiseCov::Full(sigma) => sigma[i * self.dims + j],
            NoiseCov::Diagonal(sigma2) if i == j => sigma2[i],
            NoiseCov::Shared(sigma2) if i == j => *sigma2,
            NoiseCov::Components(_) if i == j => self.noise_variances()[i],
            _ => 0.0,
        }
    }

    /// Sigma; of components of their own the mean over these, which scores and projections go by.
    pub fn pooled_noise(&self) -> NoiseCov {
        match &self.noise {
            NoiseCov::Components(_) => NoiseCov::Diagonal(self.noise_variances()),
            shared => shared.clone(),
        }
    }

    /// Sigma_dd of every dimension; of components of their own the mean over these.
    pub fn noise_variances(&self) -> Vec<f64> {
        match &self.noise {
            NoiseCov::Shared(sigma2) => vec![*sigma2; self.dims],
            NoiseCov::Diagonal(sigma2) => sigma2.clone(),
            NoiseCov::Full(sigma) => (0..self.dims).map(|d| sigma[d * self.dims + d]).collect(),
            NoiseCov::Components(sigma2) => {
                let weighted = |row: &[f64]| row.iter().zip(&self.prior).map(|(v, pi)| v * pi).sum::<f64>();
                let total: f64 = self.prior.iter().sum();
                sigma2.chunks_exact(self.latents).map(|row| weighted(row) / total).collect()
            }
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
    // Nearly always all are, which is quicker to see without looking for the first.
    if values.iter().fold(true, |all, &v| all & good(v)) {
        return Ok(());
    }
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
