//! What a run shall do; the part of it that decides the result is written beside every model.

use super::choose::Prefer;
use super::gp_select::GpSelect;
use super::kinds;
use super::m_step::{Guard, Learned, Update};
use super::weak::Weak;
use crate::parameters::ModelKind;
use crate::prepare::{GramName, Options, SelectionName, StatesName};
use serde::{Deserialize, Serialize};
use spikelet::{Gibbs, rng};

/// Of more latents than this, the E-step computes the part of the Gram matrix that a point needs.
const STORED_UP_TO: usize = 2048;

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
    /// One variance per dimension and component (gmm)
    Components,
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
    /// Draws of the --selected most promising latents, any number of them on
    Gibbs,
    /// None: latents are taken as independent, a baseline that is fast and biased (gsc only)
    Factored,
}

/// Which states of a point the truncated E-step keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatesForm {
    /// Found by search around a greedy reference: --selected candidates at most (gsc with a diagonal slab)
    Adaptive,
    /// The papers': at most --max-active of the --selected most promising latents on
    #[default]
    Subsets,
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
    /// Lines along which strong points lie: for mixtures of sources that are seldom on together
    Lines,
}

/// Whether latents have the same prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriorForm {
    /// One for all latents
    Shared,
    /// One per latent
    Each,
}

/// How a dictionary is kept at or above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The best one of any sign, negative entries set to 0
    Clamp,
    /// Entries multiplied by positive factors
    Multiply,
}

/// A parameter that can be left as it was at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixed {
    /// How often latents are on
    Pi,
    /// The noise variance
    Sigma2,
    /// Mean and variance of the slab
    Slab,
}

/// Everything that decides the result, apart from the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Model kind.
    pub model: ModelKind,
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
    /// Which states the truncated engine keeps.
    #[serde(default)]
    pub states: StatesForm,
    /// X of adaptive states: how many of them the last E-step and the model look around.
    #[serde(default = "expansions")]
    pub expansions: usize,
    /// Sweeps of every chain, where draws are made.
    pub sweeps: u32,
    /// Chains per point, likewise.
    pub chains: u32,
    /// How many of the selected latents are chosen at random, likewise.
    pub extra: u16,
    /// How selection is learned, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gp: Option<GpSelect>,
    /// Form of the noise.
    pub noise: NoiseForm,
    /// Form of the slab.
    pub slab: SlabForm,
    /// Whether latents share a prior.
    pub prior: PriorForm,
    /// pi at first, where not two latents are to be on at a time.
    pub first_prior: Option<f64>,
    /// Noise variance at first, where not that of the data.
    pub first_noise: Option<f64>,
    /// mu at first, where not 0 (gsc) or the mean of the data.
    pub first_mean: Option<f64>,
    /// Psi_hh at first, where not 1 (gsc) or the variance of the data.
    pub first_spread: Option<f64>,
    /// Means that were taken off every point, so many dimensions without noise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub means_off: usize,
    /// What is not learned.
    pub fixed: Vec<Fixed>,
    /// How a dictionary is kept at or above zero, where it must be.
    pub rule: Rule,
    /// First and last temperature.
    pub temperature: (f64, f64),
    /// Noise on the dictionary after each M-step, as a fraction of the data's standard deviation.
    pub parameter_noise: f64,
    /// Whether points that need more than gamma latents are left out in the end.
    pub cut: bool,
    /// Train on whitened data; the model is one of the raw data all the same.
    pub whiten: bool,
    /// Who has what is too weak to be told from noise.
    #[serde(default)]
    pub weak: Weak,
    /// Numbers of the E-step.
    pub precision: Precision,
    /// Points per M-step in stepwise EM; 0 for plain EM, all of them.
    pub batch: usize,
    /// Where a start begins.
    pub init: InitForm,
    /// Most iterations of one start.
    pub iterations: usize,
    /// Iterations that the schedule is laid out for, where a run that was resumed goes on beyond them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<usize>,
    /// The description of the model whose parameters a start begins with, where they are not random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Starts from different random parameters; one is kept.
    pub restarts: usize,
    /// Which one.
    pub prefer: Prefer,
    /// A start ends when an iteration gains less than this, relative to the free energy.
    pub tolerance: f64,
    /// Smallest noise variance, as a fraction of the mean variance of the data.
    pub noise_floor: f64,
    /// Part of the points that is not learned from but tells which iterate to keep and when to stop; 0 for none.
    #[serde(default)]
    pub holdout: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn expansions() -> usize {
    Options::EXPANSIONS
}

impl Settings {
    /// One start of exact EM that learns everything, 100 iterations, with what the kind of model has by default; callers
    /// change what they must.
    pub fn new(model: ModelKind, latents: usize) -> Self {
        let (training, has_slab) = (kinds::of(model), model.kind().has_slab());
        // Latents that are on or off are many at once, but for mixtures.
        let is_switched = !has_slab && !model.kind().is_mixture();
        Self {
            model,
            latents,
            selected: latents,
            max_active: if model.kind().is_mixture() { 1 } else { latents },
            singletons: true,
            engine: if model.kind().is_sampled() { Engine::Gibbs } else { Engine::Exact },
            states: StatesForm::Subsets,
            expansions: expansions(),
            sweeps: 50,
            chains: 1,
            extra: 0,
            gp: None,
            noise: NoiseForm::Shared,
            slab: if has_slab { SlabForm::Diagonal } else { SlabForm::Unit },
            prior: training.prior,
            first_prior: None,
            first_noise: None,
            first_mean: None,
            first_spread: None,
            means_off: 0,
            fixed: Vec::new(),
            rule: Rule::Clamp,
            temperature: training.temperature,
            parameter_noise: if is_switched { 0.01 } else { 0.0 },
            cut: is_switched,
            whiten: false,
            weak: Weak::Noise,
            precision: Precision::F64,
            batch: 0,
            init: training.init,
            iterations: 100,
            schedule: None,
            from: None,
            restarts: 1,
            prefer: Prefer::FreeEnergy,
            tolerance: 0.0,
            noise_floor: 1e-5,
            holdout: 0.0,
            seed: 1,
        }
    }

    /// Whether states are found by search.
    pub fn is_adaptive(&self) -> bool {
        self.engine == Engine::Truncated && self.states == StatesForm::Adaptive
    }

    /// Whether a point of a mixture keeps some of its components, and the model's own scores choose them.
    pub fn keeps_some_components(&self) -> bool {
        let is_part = !self.singletons && self.selected < self.latents;
        self.model.kind().is_mixture() && is_part && self.gp.is_none() && self.batch == 0
    }

    /// How the core runs the E-step.
    pub fn options(&self) -> Options {
        Options {
            selected: self.selected,
            max_active: self.max_active,
            singletons: self.singletons,
            selection: SelectionName::of_kind(self.model),
            states: self.is_adaptive().then_some(StatesName::Adaptive),
            expansions: self.expansions,
            // A block of it costs less than the whole once latents are many.
            gram: match self.latents > STORED_UP_TO && self.noise != NoiseForm::Full {
                true => GramName::Computed,
                false => GramName::Stored,
            },
        }
    }

    /// What the core's engine is in the E-step number `step` of a start.
    pub fn engine_at(&self, start: usize, step: usize) -> spikelet::Engine {
        let kind = self.model.kind();
        let seed = rng::mix(rng::mix(self.seed, start as u64), step as u64);
        match self.engine {
            Engine::Gibbs => spikelet::Engine::Gibbs(Gibbs {
                chains: self.chains,
                extra: self.extra,
                seed,
                ..Gibbs::new(kind, self.sweeps)
            }),
            _ => spikelet::Engine::Truncated,
        }
    }

    /// What an M-step shall do, within these limits.
    pub fn update(&self, guard: Guard) -> Update {
        let is_learned = |parameter| !self.fixed.contains(&parameter);
        let learned = Learned {
            dictionary: true,
            prior: is_learned(Fixed::Pi),
            slab: self.slab != SlabForm::Unit && is_learned(Fixed::Slab),
            noise: is_learned(Fixed::Sigma2),
        };
        // Paper 000 leaves the correction out for spike-and-slab models, and draws are not truncated.
        let kind = self.model.kind();
        let is_truncated = !kind.has_slab() && !kind.is_mixture() && self.engine != Engine::Gibbs;
        let truncated_at = is_truncated.then_some(self.max_active);
        Update {
            prior: self.prior,
            truncated_at,
            rule: self.rule,
            means_off: self.means_off,
            ..Update::new(learned, guard)
        }
    }
}
