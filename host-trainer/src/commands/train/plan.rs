//! The flags that decide what comes out, and the settings that follow from them.

mod adopt;
mod checks;
mod masked;
mod recordings;
mod spatial;

use crate::commands::framing::Switch;
use crate::gp::KernelName;
use crate::parameters::ModelKind;
use crate::prepare::{Options, check_truncation};
use crate::train::Prefer;
use crate::train::gp_select::{GpSelect, SelectionForm};
use crate::train::kinds::{self, Sums};
use crate::train::settings::{
    Engine, Fixed, InitForm, NoiseForm, Precision, PriorForm, Rule, Settings, SlabForm, StatesForm,
};
use crate::train::weak::Weak;
use crate::{Error, Result};
use checks::{finite, not_negative, part, positive, probability, temperatures};
pub(super) use spatial::{Latents, SpatialFlags};
use spatial::{Trained, latents};
use spikelet::Shape;
use spikelet::capacity::MAX_ACTIVE;
use spikelet::model::States;
use std::path::PathBuf;

/// Up to this many latents all states are looked at unless --engine says otherwise; where a state costs D, fewer.
const EXACT_UP_TO: usize = 10;
const EXACT_SHARES_UP_TO: usize = 6;

/// Components of a mixture that a model lists for each point unless --selected says otherwise.
const MIXTURE_SELECTED: usize = 8;

/// Up to this many latents, and on fewer points than this, plain EM gets there as fast.
const PLAIN_UP_TO: usize = 32;
const PLAIN_BELOW: usize = 1000;

#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// Kind of model [default for pictures: gsc]
    #[arg(long = "model", value_enum, value_name = "KIND")]
    given_model: Option<Trained>,
    /// H, how many latents (sources, dictionary elements) to learn; `auto` for spatial: as many as the data suggest, 1 to 4
    /// [default for pictures: one for 30 to 120 patches, by the noise, up to 2048]
    #[arg(long = "latents", value_name = "COUNT", allow_negative_numbers = true,
          value_parser = latents)]
    given_latents: Option<Latents>,
    /// Go on from the parameters of a model that was trained before, with its settings where no flag says otherwise, on the
    /// same or on other data; starts at temperature 1
    #[arg(long, value_name = "MODEL.json", conflicts_with_all = ["pi", "sigma2", "mu", "psi2", "init", "whiten"])]
    pub from: Option<PathBuf>,
    #[arg(skip)]
    pub model: ModelKind,
    #[arg(skip)]
    latents: u16,
    /// Means taken off every point.
    #[arg(skip)]
    pub means_off: usize,
    /// Which states are looked at [default: exact up to 10 latents (mca: 6), else truncated]
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Which states --engine truncated keeps [default: adaptive for gsc where latents are more than dimensions and more than 32,
    /// else subsets]
    #[arg(long, value_enum)]
    states: Option<StatesForm>,
    /// H', latents kept per point [default: 20 with adaptive states, else 10 (mca: 6), at most --latents; gmm: all]
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: 12 with adaptive states, else 4 (mca: 3), at most --selected]
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// How many of the best states the search looks around, for --states adaptive, in training's last iteration and in the model
    /// [default: 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    expansions: Option<u16>,
    /// Sweeps of a chain over the selected latents, for --engine gibbs [default: 50]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..))]
    sweeps: Option<u32>,
    /// Chains per point, for --engine gibbs [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    chains: Option<u32>,
    /// How many of the selected latents are chosen at random, for --engine gibbs [default: 0]
    #[arg(long, value_name = "COUNT")]
    extra: Option<u16>,
    /// How the latents of a point are selected [default: score]
    #[arg(long, value_enum)]
    selection: Option<SelectionForm>,
    /// What selection is learned with, for --selection gp [default: sum]
    #[arg(long, value_enum)]
    kernel: Option<KernelName>,
    /// Iterations between two fits of the kernel, for --selection gp [default: 10]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    kernel_every: Option<u32>,
    /// Rank of the kernel matrix, for --selection gp: memory and time grow with N times this [default: 200]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    kernel_rank: Option<u32>,
    /// Do not keep the states with one latent on for latents that were not selected
    #[arg(long)]
    no_singletons: bool,
    /// Form of the noise covariance [default: shared; full with --transform where there are as many channels as latents]
    #[arg(long, value_enum)]
    noise: Option<NoiseForm>,
    /// Form of the slab, for gsc [default: diagonal, with --transform unit]
    #[arg(long, value_enum)]
    slab: Option<SlabForm>,
    /// Whether latents share a prior [default: each for gsc, else shared]
    #[arg(long, value_enum)]
    prior: Option<PriorForm>,
    /// How often each latent is on, at first [default: two are on at a time, or half of them]
    #[arg(long, value_name = "PROBABILITY", allow_negative_numbers = true)]
    pi: Option<f64>,
    /// Noise variance at first [default: the variance of the data; of pictures whose sizes are chosen, what is found in them]
    #[arg(long, value_name = "VARIANCE", allow_negative_numbers = true)]
    sigma2: Option<f64>,
    /// Mean of the slab at first [default: 0 for gsc, the mean of the data for ssmca]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    mu: Option<f64>,
    /// Variance of the slab at first [default: 1 for gsc, the variance of the data for ssmca]
    #[arg(long, value_name = "VARIANCE", allow_negative_numbers = true)]
    psi2: Option<f64>,
    /// Leave the slab as it is at first; with a small --psi2, latents are about as strong whenever they are on
    #[arg(long)]
    fix_slab: bool,
    /// Parameters to leave as they are at first: pi, sigma2, slab or several, with commas between
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    fix: Vec<Fixed>,
    /// How the dictionary of nmf is kept at or above zero [default: clamp]
    #[arg(long, value_enum)]
    rule: Option<Rule>,
    /// First and last temperature: above 1, posteriors are flatter, and a run finds its way around poor optima
    /// [default: 1 for gsc, else 3:1]
    #[arg(long, value_name = "FIRST[:LAST]", value_parser = temperatures)]
    temperature: Option<(f64, f64)>,
    /// Noise put on the dictionary after each step while the temperature falls, as a fraction of the data's standard
    /// deviation [default: 0 for gsc, else 0.01]
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    parameter_noise: Option<f64>,
    /// Whether points that need more than --max-active latents are left out towards the end [default: off for gsc,
    /// else on]
    #[arg(long, value_enum)]
    cut: Option<Switch>,
    /// Train on whitened data, best for mixtures; the model is for raw data, with full noise covariance
    #[arg(long)]
    whiten: bool,
    /// Who has what is too weak to be told from noise in the model that is written; sources need as many channels as latents and
    /// full noise [default: sources with --transform where that is so, else noise]
    #[arg(long, value_enum, value_name = "WHOSE")]
    weak: Option<Weak>,
    /// Numbers that inference computes in while training [default: f64; f32 for pictures whose sizes are chosen]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Points per M-step: stepwise EM, many small steps per pass over the data; 0 for plain EM, one step per pass [default: 0 for
    /// up to 32 latents or few points, else a 50th of the points (a tenth with adaptive states, a 40th of pictures whose sizes
    /// are chosen), up to 4000]
    #[arg(long, value_name = "COUNT")]
    batch: Option<usize>,
    /// Where the columns of a first dictionary come from [default: random for gsc in plain EM, lines with --transform, else data]
    #[arg(long, value_enum)]
    init: Option<InitForm>,
    /// Most iterations (passes over the data) per start [default: 100; spatial: 30]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    iterations: Option<usize>,
    /// Starts from different random parameters, of which one is kept [default: 4 in plain EM, which may end in a poor
    /// local optimum, 1 in stepwise EM]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    restarts: Option<u32>,
    /// Which start is kept
    #[arg(long, value_enum, default_value = "free-energy")]
    prefer: Prefer,
    /// A start ends when an iteration changes the free energy by less than this fraction [default: 1e-7, in stepwise
    /// EM 1e-3]
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Part of the points, such as 0.1, that is not learned from: a start ends when they are explained no better for ten
    /// iterations (three passes of stepwise EM), and the iterate that explains them best is kept
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    holdout: Option<f64>,
    /// Smallest noise variance, as a fraction of the data's mean variance
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, default_value_t = 1e-5)]
    noise_floor: f64,
    /// Seed of the random starts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

impl Plan {
    /// H.
    pub fn latents(&self) -> usize {
        self.latents.into()
    }

    /// Whether the data is whitened first.
    pub fn is_whitened(&self) -> bool {
        self.whiten
    }

    /// Most passes over the data per start.
    pub fn iterations(&self) -> usize {
        self.iterations.unwrap_or(100)
    }

    /// How selection is learned, where it is asked for.
    fn gp(&self) -> Option<GpSelect> {
        let by_default = GpSelect::new(self.kernel.unwrap_or(KernelName::Sum));
        (self.selection == Some(SelectionForm::Gp)).then(|| GpSelect {
            every: self.kernel_every.map_or(by_default.every, |every| every as usize),
            rank: self.kernel_rank.map_or(by_default.rank, |rank| rank as usize),
            ..by_default
        })
    }

    /// What to do with this many points of so many dimensions, 0 where that is not known yet; those of a transform, of so many
    /// channels, are a mixture that is sparse.
    pub fn settings(&self, points: usize, dims: usize, transform: Option<usize>) -> Result<Settings> {
        self.check_kind()?;
        let is_transform = transform.is_some();
        let kind = self.model.kind();
        let has_slab = kind.has_slab();
        let latents = usize::from(self.latents);
        let by_default = Settings::new(self.model, latents);
        // With as many channels as sources there is one way to explain a point, and weak sounds are the sources' too.
        let is_determined = self.model == ModelKind::Gsc
            && transform.is_some_and(|channels| (2..=channels).contains(&usize::from(self.latents)));
        let asks_for_full = is_determined || self.weak == Some(Weak::Sources);
        let noise = self.noise.unwrap_or(if asks_for_full { NoiseForm::Full } else { by_default.noise });
        let exact_up_to = match kinds::of(self.model).sums {
            Sums::Moments => EXACT_UP_TO,
            Sums::Shares => EXACT_SHARES_UP_TO,
            Sums::Draws | Sums::Components => 0,
        };
        let is_open = self.selected.is_none() && self.max_active.is_none();
        let by_size = if latents <= exact_up_to && is_open { Engine::Exact } else { Engine::Truncated };
        let sampled = self.model.kind().is_sampled();
        let engine = self.engine.unwrap_or(if sampled { Engine::Gibbs } else { by_size });
        self.check_engine(engine)?;
        self.check_selection(engine)?;
        let slab = self.slab.unwrap_or(if is_transform { SlabForm::Unit } else { by_default.slab });
        // Where latents are more than dimensions, their scores alone tell little.
        let wants_search = engine == Engine::Truncated
            && self.model == ModelKind::Gsc
            && slab != SlabForm::Full
            && self.gp().is_none()
            && is_open
            && !self.no_singletons
            && latents > dims.max(PLAIN_UP_TO)
            && dims > 0;
        let states =
            self.states.unwrap_or(if wants_search { StatesForm::Adaptive } else { StatesForm::Subsets });
        self.check_states(states, engine, slab)?;
        let expansions = self.expansions.map_or(by_default.expansions, usize::from);
        let (selected, max_active) = match engine {
            // All components count; these are told first and most precisely.
            _ if kind.is_mixture() => {
                (self.selected.unwrap_or(latents.min(MIXTURE_SELECTED)), self.max_active.unwrap_or(1))
            }
            Engine::Truncated | Engine::Gibbs | Engine::Factored => {
                // Where a state costs D, fewer of them.
                let (few, least) = match states {
                    StatesForm::Adaptive => (Options::CANDIDATES, Options::ACTIVE),
                    StatesForm::Subsets if kinds::of(self.model).sums == Sums::Shares => (6, 3),
                    StatesForm::Subsets => (10, 4),
                };
                let selected = self.selected.unwrap_or(latents.min(few));
                (selected, self.max_active.unwrap_or(selected.min(least)))
            }
            Engine::Exact if self.selected.is_some() || self.max_active.is_some() => {
                let advice = "leave them out, or use --engine truncated";
                return Err(Error::input("all states are looked at", "--selected and --max-active", advice));
            }
            Engine::Exact if latents > MAX_ACTIVE.min(24) => {
                let what = format!("2^{latents} states for every point are too many");
                return Err(Error::input(what, "--engine exact", "use --engine truncated"));
            }
            Engine::Exact => (latents, latents),
        };
        // Cooling down is done on all points.
        let stepwise = has_slab && (self.gp().is_none() || states == StatesForm::Adaptive);
        let automatic = || if stepwise { automatic_batch(engine, states, latents, points) } else { 0 };
        let batch = self.batch.unwrap_or_else(automatic);
        // Of a mixture the selected components are all that count, where fewer than all are asked for.
        let is_part = kind.is_mixture() && self.selected.is_some_and(|selected| selected < latents);
        let mut fixed = self.fix.clone();
        if self.fix_slab && !fixed.contains(&Fixed::Slab) {
            fixed.push(Fixed::Slab);
        }
        let settings = Settings {
            selected,
            max_active,
            singletons: !self.no_singletons && self.gp().is_none() && !is_part,
            engine,
            states,
            expansions,
            sweeps: self.sweeps.unwrap_or(by_default.sweeps),
            chains: self.chains.unwrap_or(by_default.chains),
            extra: self.extra.unwrap_or(by_default.extra),
            gp: self.gp(),
            noise,
            // Coefficients have no mean, and W takes the scale.
            slab,
            prior: self.prior.unwrap_or(by_default.prior),
            first_prior: self.pi.map(|pi| probability(pi, "--pi")).transpose()?,
            first_noise: self.sigma2.map(|sigma2| positive(sigma2, "--sigma2")).transpose()?,
            first_mean: self.mu.map(|mu| finite(mu, "--mu")).transpose()?,
            first_spread: self.psi2.map(|psi2| positive(psi2, "--psi2")).transpose()?,
            means_off: self.means_off,
            fixed,
            rule: self.rule.unwrap_or(by_default.rule),
            temperature: self.temperature.unwrap_or(by_default.temperature),
            parameter_noise: match self.parameter_noise {
                Some(fraction) => not_negative(fraction, "--parameter-noise")?,
                None => by_default.parameter_noise,
            },
            cut: self.cut.map_or(by_default.cut, |cut| cut == Switch::On),
            whiten: self.whiten,
            weak: self.weak.unwrap_or(match is_determined && noise == NoiseForm::Full {
                true => Weak::Sources,
                false => Weak::Noise,
            }),
            precision: self.precision.unwrap_or(by_default.precision),
            batch,
            init: self.init.unwrap_or(match batch > 0 {
                _ if is_transform => InitForm::Lines,
                true => InitForm::Data,
                false => by_default.init,
            }),
            iterations: self.iterations(),
            restarts: self.restarts.map_or(if batch > 0 { 1 } else { 4 }, |starts| starts as usize),
            prefer: self.prefer,
            tolerance: match self.tolerance {
                Some(tolerance) => not_negative(tolerance, "--tolerance")?,
                // A pass sees every batch under other parameters, so its free energy wavers.
                None if batch > 0 => 1e-3,
                None => 1e-7,
            },
            noise_floor: positive(self.noise_floor, "--noise-floor")?,
            holdout: self.holdout.map(part).transpose()?.unwrap_or(0.0),
            seed: self.seed,
            from: self.from.as_ref().map(|path| path.display().to_string()),
            ..by_default
        };
        let singletons = settings.singletons;
        // D does not matter here.
        check_truncation(Shape {
            kind,
            dims: 1,
            latents,
            selected,
            max_active,
            singletons,
            states: match states {
                StatesForm::Adaptive => States::Adaptive { expansions: expansions as u16 },
                StatesForm::Subsets => States::Subsets,
            },
        })?;
        Ok(settings)
    }
}

/// Points per step of stepwise EM where the user leaves it open, 0 for plain EM: 50 steps per pass, each of enough
/// points that the M-step, H^2 (H + D) operations, does not cost more than they do; 5 steps at least. With adaptive states ten steps
/// are enough, and the M-step has H^2 D operations.
fn automatic_batch(engine: Engine, states: StatesForm, latents: usize, points: usize) -> usize {
    if matches!(engine, Engine::Exact | Engine::Factored) || latents <= PLAIN_UP_TO || points < PLAIN_BELOW {
        return 0;
    }
    if states == StatesForm::Adaptive {
        return (points / 10).min(4000).max(2 * latents).min(points / 5);
    }
    let least = (latents * latents / 600).max(100);
    (points / 50).min(4000).max(least).min(points / 5)
}
