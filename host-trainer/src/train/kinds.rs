//! What training must know of each kind of model: a line in [`of`], and a file with what is special to it.
//!
//! | file | has |
//! |---|---|
//! | [`linear`] | dictionary and noise of all models that add up their latents |
//! | `neighbours` | dictionaries of so many latents that most are never on together |
//! | [`slab`] | mean and covariance of the slab |
//! | [`nmf`] | dictionaries that stay at or above zero |
//! | [`mca`] | maximal causes: sums over states, dictionary, noise |
//! | [`ssmca`] | maximal causes with slabs: sums over draws, scale |
//! | [`gmm`] | mixtures: first means, sums by component, means, covariances |
//!
//! All else (data, chunks, threads, starts, schedules, checkpoints) is the same for all kinds.

pub mod gmm;
pub mod linear;
pub mod mca;
mod neighbours;
pub mod nmf;
pub mod slab;
pub mod ssmca;

use super::init::{Scene, around_the_mean, coloured};
use super::m_step::{Update, Warning};
use super::settings::{InitForm, PriorForm};
use super::statistics::Statistics;
use crate::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet::rng::Rng;

/// From old parameters, statistics, and which latents are dead.
pub type DictionaryRule = fn(&Parameters, &Statistics, dead: &[bool], &Update, &mut Vec<Warning>) -> Vec<f64>;

/// How a kind of model is trained.
pub struct Training {
    /// What the E-step sums up.
    pub sums: Sums,
    /// A first dictionary of H latents that are on with this probability.
    pub first: fn(&Scene, latents: usize, prior: f64, &mut Rng) -> Vec<f64>,
    /// The dictionary that fits statistics best, with `dead` latents left as they are.
    pub dictionary: DictionaryRule,
    /// The noise that fits statistics best, given the new dictionary.
    pub noise: fn(&Parameters, &Statistics, floor: f64, &mut Vec<Warning>) -> NoiseCov,
    /// What is done to parameters after all have been learned.
    pub settle: Option<fn(&mut Parameters)>,
    /// Whether latents have a prior each, unless asked otherwise.
    pub prior: PriorForm,
    /// Where a first dictionary comes from in plain EM, unless asked otherwise.
    pub init: InitForm,
    /// First and last temperature, unless asked otherwise. The papers begin at 13, with the true noise given; here the first
    /// noise follows from the first temperature (see [`super::init`]), and 3 was chosen by trial on bars.
    pub temperature: (f64, f64),
}

/// What the E-step sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Moments: y and x, x and x.
    Moments,
    /// The same where no two latents are on together: y and s, and y^2 and s where components have variances of their own.
    Components,
    /// Of which latent how much is seen in which dimension: [`mca`].
    Shares,
    /// The same over draws: [`ssmca`].
    Draws,
}

impl Training {
    /// Whether latents add up.
    pub fn is_linear(&self) -> bool {
        matches!(self.sums, Sums::Moments | Sums::Components)
    }
}

const LINEAR: Training = Training {
    sums: Sums::Moments,
    first: coloured,
    dictionary: linear::dictionary,
    noise: linear::noise,
    settle: None,
    prior: PriorForm::Each,
    init: InitForm::Random,
    temperature: (1.0, 1.0),
};

/// How this kind is trained.
pub fn of(kind: ModelKind) -> Training {
    let switched =
        Training { prior: PriorForm::Shared, init: InitForm::Data, temperature: (3.0, 1.0), ..LINEAR };
    match kind {
        ModelKind::Gsc => LINEAR,
        ModelKind::Bsc => switched,
        ModelKind::Nmf => Training { first: around_the_mean, dictionary: nmf::dictionary, ..switched },
        ModelKind::Mca => Training {
            sums: Sums::Shares,
            first: around_the_mean,
            dictionary: mca::dictionary,
            noise: mca::noise,
            ..switched
        },
        ModelKind::Ssmca => Training {
            sums: Sums::Draws,
            first: around_the_mean,
            dictionary: mca::dictionary,
            noise: mca::noise,
            settle: Some(ssmca::rescale),
            ..LINEAR
        },
        ModelKind::Gmm => Training {
            sums: Sums::Components,
            dictionary: gmm::means,
            noise: gmm::noise,
            init: InitForm::Data,
            ..LINEAR
        },
    }
}
