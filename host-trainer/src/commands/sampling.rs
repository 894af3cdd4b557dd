//! The engine and the settings of sampling, as flags.

use crate::{Error, Result};
use spikelet::capacity::MAX_ACTIVE;
use spikelet::model::{Model, Shape};
use spikelet::{Engine, Gibbs, Start};
use std::io::Write as _;

/// So many states take a millisecond or more on a desktop.
const MANY_STATES: u64 = 50_000;

/// Ways to compute a posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EngineName {
    /// All states kept, in closed form
    Truncated,
    /// Draws from their posterior, any number of the latents kept being on
    Gibbs,
}

/// Where chains begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StartName {
    /// At a state that no latent alone can improve
    Greedy,
    /// At a draw from the prior
    Random,
    /// At the best of all states that the truncated engine would look at; not for ssmca
    Best,
}

#[derive(Debug, Default, PartialEq, clap::Args)]
pub(super) struct Sampling {
    /// How the posterior is computed [default: truncated; gibbs for ssmca]
    #[arg(long, value_enum, value_name = "NAME")]
    engine: Option<EngineName>,
    /// gibbs: sweeps of a chain, in each of which every latent kept is drawn once [default: 100]
    #[arg(long, value_name = "COUNT")]
    sweeps: Option<u32>,
    /// gibbs: part of the sweeps that are left out at first, 0 to 1 [default: 1/2 for gsc, 1/3 for others]
    #[arg(long, value_name = "PART")]
    burn_in: Option<f64>,
    /// gibbs: of the sweeps after that every so-many-th counts [default: 1]
    #[arg(long, value_name = "COUNT")]
    thinning: Option<u32>,
    /// gibbs: chains per point [default: 1]
    #[arg(long, value_name = "COUNT")]
    chains: Option<u32>,
    /// gibbs: where a chain begins [default: greedy]
    #[arg(long, value_enum, value_name = "WHERE")]
    start: Option<StartName>,
    /// gibbs: how many of the H' latents are chosen at random instead of by their scores [default: 0]
    #[arg(long, value_name = "COUNT")]
    extra: Option<u16>,
    /// gibbs: seed of the random numbers, which depend on it and on the number of the point only [default: 0]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl Sampling {
    /// Refuses all flags, for models that run in one way only.
    pub fn refuse(&self) -> Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        let what = "models of whole recordings run in one way only";
        Err(Error::input(what, "--engine and what belongs to it", "leave it out"))
    }

    /// Whether posteriors are sampled.
    pub fn is_chosen(&self, model: &Model<'_, f32>) -> bool {
        match self.engine {
            Some(engine) => engine == EngineName::Gibbs,
            None => model.shape.kind.is_sampled(),
        }
    }

    /// Whether chains start at the best of all states.
    pub fn lists_states(&self) -> bool {
        self.start == Some(StartName::Best)
    }

    /// The engine, for a model as it was truncated; with sampling, `max_active` is what the user said about it. Points out
    /// that sampling may be the better choice.
    pub fn engine(&self, model: &Model<'_, f32>, max_active: Option<usize>) -> Result<Engine> {
        let engine = self.checked(model, max_active)?;
        let states = model.shape.states();
        if engine == Engine::Truncated && self.engine.is_none() && states > MANY_STATES {
            // Such models were learned by sampling, or imported without a thought of what they take.
            let _ = writeln!(
                std::io::stderr(),
                "note: every point has {states} states; --engine gibbs draws from them, or choose a smaller --max-active"
            );
        }
        Ok(engine)
    }

    /// [`Sampling::engine`] without a word.
    pub fn checked(&self, model: &Model<'_, f32>, max_active: Option<usize>) -> Result<Engine> {
        let kind = model.shape.kind;
        if !self.is_chosen(model) {
            if kind.is_sampled() {
                let what = "the states of a model of kind ssmca have no closed form";
                return Err(Error::input(what, "--engine", "leave it out, or choose gibbs"));
            }
            self.refuse_flags()?;
            return Ok(Engine::Truncated);
        }
        if kind.is_mixture() {
            let what = "the posterior of a mixture is exact, so nothing is drawn";
            return Err(Error::input(what, "--engine gibbs", "leave it out for a model of kind gmm"));
        }
        if model.has_full_slab() {
            let what = "slabs that depend on each other cannot be sampled one by one";
            return Err(Error::input(
                what,
                "--engine gibbs",
                "choose truncated, or import a diagonal --psi2",
            ));
        }
        let default = Gibbs::new(kind, self.sweeps.unwrap_or(Gibbs::SWEEPS));
        let settings = Gibbs {
            burn_in: match self.burn_in {
                Some(part) if (0.0..1.0).contains(&part) => (part * f64::from(default.sweeps)) as u32,
                Some(part) => {
                    let what = format!("{part} is no part of the sweeps that leaves any");
                    return Err(Error::input(what, "--burn-in", "choose a number from 0 to below 1"));
                }
                None => default.burn_in,
            },
            thinning: self.thinning.unwrap_or(default.thinning),
            chains: self.chains.unwrap_or(default.chains),
            start: match self.start {
                Some(StartName::Random) => Start::Random,
                Some(StartName::Best) => listed(&model.shape)?,
                Some(StartName::Greedy) | None => Start::Greedy,
            },
            extra: self.extra.unwrap_or(default.extra),
            max_active: most(max_active, default.max_active)?,
            seed: self.seed.unwrap_or(default.seed),
            ..default
        };
        for (flag, value) in
            [("--sweeps", settings.sweeps), ("--thinning", settings.thinning), ("--chains", settings.chains)]
        {
            if value == 0 {
                return Err(Error::input("0 leaves nothing to average", flag, "choose 1 or more"));
            }
        }
        if usize::from(settings.extra) >= model.shape.selected {
            let (extra, selected) = (settings.extra, model.shape.selected);
            let what = format!("{extra} of {selected} latents at random leave none to the scores");
            return Err(Error::input(what, "--extra", "choose fewer, or more with --selected"));
        }
        Ok(Engine::Gibbs(settings))
    }

    /// Flags that say nothing to this engine are mistakes.
    fn refuse_flags(&self) -> Result<()> {
        for (flag, is_given) in [
            ("--sweeps", self.sweeps.is_some()),
            ("--burn-in", self.burn_in.is_some()),
            ("--thinning", self.thinning.is_some()),
            ("--chains", self.chains.is_some()),
            ("--start", self.start.is_some()),
            ("--extra", self.extra.is_some()),
        ] {
            if is_given {
                let what = "this is for sampling, and the engine truncated does not sample";
                return Err(Error::input(what, flag, "leave the flag out, or add --engine gibbs"));
            }
        }
        Ok(())
    }
}

/// A start for models whose states can be listed.
fn listed(shape: &Shape) -> Result<Start> {
    if shape.kind.is_sampled() {
        let what = "the states of a model of kind ssmca cannot be listed";
        return Err(Error::input(what, "--start best", "choose greedy or random"));
    }
    if shape.states() > Start::MOST_STATES {
        let (states, most) = (shape.states(), Start::MOST_STATES);
        let what = format!("the model has {states} states, of which at most {most} can be looked at");
        return Err(Error::input(what, "--start best", "choose greedy, or import with a lower --max-active"));
    }
    Ok(Start::Best)
}

/// Most latents on at once.
fn most(max_active: Option<usize>, capacity: u16) -> Result<u16> {
    match max_active.map_or(Ok(capacity), u16::try_from) {
        Ok(most) if most > 0 && most <= capacity => Ok(most),
        _ => {
            let advice = format!("choose 1 to {MAX_ACTIVE}");
            Err(Error::input("a chain cannot have so many latents on", "--max-active", advice))
        }
    }
}
