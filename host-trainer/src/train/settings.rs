//! What a run shall do; the part of it that decides the result is written beside every model.

use super::choose::Prefer;
use super::m_step::Learned;
use crate::prepare::{GramName, Options, SelectionName};
use serde::{Deserialize, Serialize};

/// Form of the noise covariance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseForm {
    /// One variance for all dimensions
    Shared,
    /// One variance per dimension
    Diagonal,
    /// Any covariance
    Full,
}

/// Form of the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlabForm {
    /// Mean 0, variance 1; the dictionary takes the scale
    Unit,
    /// A mean and a variance per latent, learned
    Diagonal,
    /// A mean per latent and any covariance between them, learned; for few latents or few on at once
    Full,
}

/// Which states the E-step looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// All 2^H
    Exact,
    /// At most --max-active of the --selected most promising latents on
    Truncated,
}

/// What the E-step computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 64-bit numbers
    F64,
    /// 32-bit numbers, as on the device; sums over points are in 64 bits all the same
    F32,
}

/// Where the columns of a first dictionary come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InitForm {
    /// Random directions with the covariance of the data
    Random,
    /// Points drawn from the data
    Data,
}

/// Everything that decides the result, apart from the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Model kind.
    pub model: String,
    /// H.
    pub latents: usize,
    /// H'.
    pub selected: usize,
    /// gamma.
    pub max_active: usize,
    /// Keep the singleton states of all latents.
    pub singletons: bool,
    /// How states are chosen.
    pub engine: Engine,
    /// Form of the noise.
    pub noise: NoiseForm,
    /// Form of the slab.
    pub slab: SlabForm,
    /// Train on whitened data; the model is one of the raw data all the same.
    pub whiten: bool,
    /// Numbers of the E-step.
    pub precision: Precision,
    /// Points per M-step in stepwise EM; 0 for plain EM, all of them.
    pub batch: usize,
    /// Where a start begins.
    pub init: InitForm,
    /// Most iterations of one start.
    pub iterations: usize,
    /// Starts from different random parameters; one is kept.
    pub restarts: usize,
    /// Which one.
    pub prefer: Prefer,
    /// A start ends when an iteration gains less than this, relative to the free energy.
    pub tolerance: f64,
    /// Smallest noise variance, as a fraction of the mean variance of the data.
    pub noise_floor: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Settings {
    /// How the core runs the E-step.
    pub fn options(&self) -> Options {
        Options {
            selected: self.selected,
            max_active: self.max_active,
            singletons: self.singletons,
            selection: SelectionName::Singleton,
            states: None,
            gram: GramName::Stored,
        }
    }

    /// What the M-step changes.
    pub fn learned(&self) -> Learned {
        Learned { dictionary: true, prior: true, slab: self.slab != SlabForm::Unit, noise: true }
    }
}
