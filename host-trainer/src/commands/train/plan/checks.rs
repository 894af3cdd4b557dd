//! What is wrong with flags, before any data is read.

use super::{Plan, Switch};
use crate::gp::KernelName;
use crate::parameters::ModelKind;
use crate::train::Prefer;
use crate::train::kinds::{self, Sums};
use crate::train::settings::{Engine, InitForm, NoiseForm, Precision, PriorForm, SlabForm, StatesForm};
use crate::train::weak::Weak;
use crate::{Error, Result};

impl Plan {
    /// Refuses what an engine does not have.
    pub(super) fn check_engine(&self, engine: Engine) -> Result<()> {
        let sampling = [
            (self.sweeps.is_some(), "--sweeps"),
            (self.chains.is_some(), "--chains"),
            (self.extra.is_some(), "--extra"),
        ];
        let given = sampling.iter().find(|(given, _)| *given);
        let (what, place, advice) = match (engine, given) {
            (Engine::Gibbs | Engine::Factored, _) if self.model == ModelKind::Gmm => (
                "the components of a mixture are looked at one by one, which is exact",
                "--engine",
                "leave it out; --selected keeps fewer components per point",
            ),
            (Engine::Gibbs, _) if self.slab == Some(SlabForm::Full) => (
                "a full slab cannot be sampled",
                "--engine gibbs",
                "use --engine truncated, or a diagonal slab",
            ),
            (Engine::Gibbs, _) if kinds::of(self.model).sums == Sums::Shares => (
                "mca learns from states, not from draws",
                "--engine gibbs",
                "use --engine truncated, or --model ssmca",
            ),
            (Engine::Gibbs, _) => return Ok(()),
            (Engine::Factored, _) if self.model != ModelKind::Gsc => (
                "only spike-and-slab latents that add up have a factored posterior here",
                "--engine factored",
                "use --model gsc, or --engine truncated",
            ),
            (Engine::Factored, _) if self.slab == Some(SlabForm::Full) => (
                "a factored posterior has no place for slabs that depend on each other",
                "--slab full",
                "use a diagonal slab, or --engine truncated",
            ),
            (Engine::Factored, _) if self.batch.is_some_and(|batch| batch > 0) => (
                "the factored posterior of every point goes on from the iteration before, so all points are seen in each",
                "--batch",
                "leave it out, or use --engine truncated",
            ),
            (Engine::Factored, _) if self.temperature.is_some_and(|ends| ends != (1.0, 1.0)) => (
                "factored posteriors are not tempered",
                "--temperature",
                "leave it out, or use --engine truncated",
            ),
            (Engine::Factored, _) if self.cut == Some(Switch::On) => (
                "factored posteriors have any number of latents on",
                "--cut on",
                "leave it out, or use --engine truncated",
            ),
            (Engine::Factored, _) if self.precision == Some(Precision::F32) => (
                "factored posteriors are computed in 64-bit numbers",
                "--precision f32",
                "leave it out, or use --engine truncated",
            ),
            _ if self.model.kind().is_sampled() => {
                ("the states of this kind of model cannot be listed", "--engine", "use --engine gibbs")
            }
            (_, Some((_, flag))) => {
                ("there is nothing to draw", *flag, "add --engine gibbs, or leave it out")
            }
            _ => return Ok(()),
        };
        Err(Error::input(what, place, advice))
    }

    /// Refuses a search where there is none.
    pub(super) fn check_states(&self, states: StatesForm, engine: Engine, slab: SlabForm) -> Result<()> {
        if self.expansions.is_some() && (states, engine) != (StatesForm::Adaptive, Engine::Truncated) {
            let advice = "leave it out, or add --engine truncated --states adaptive";
            return Err(Error::input("only adaptive states are expanded", "--expansions", advice));
        }
        let (what, advice) = match states {
            StatesForm::Subsets => return Ok(()),
            StatesForm::Adaptive if self.model != ModelKind::Gsc => {
                ("this kind of model learns from the papers' states", "leave it out, or use --model gsc")
            }
            StatesForm::Adaptive if engine != Engine::Truncated => {
                ("only a truncated engine searches for states", "add --engine truncated, or leave it out")
            }
            StatesForm::Adaptive if self.gp().is_some_and(|gp| gp.kernel != KernelName::Linear) => {
                ("a search for states begins with linear scores or none", "add --kernel linear")
            }
            StatesForm::Adaptive if slab == SlabForm::Full => {
                ("a slab with correlations has no search", "use --slab diagonal, or leave it out")
            }
            StatesForm::Adaptive => return Ok(()),
        };
        Err(Error::input(what, "--states adaptive", advice))
    }

    /// Refuses learned selection where there is nothing to select or no way to learn it.
    pub(super) fn check_selection(&self, engine: Engine) -> Result<()> {
        let of_kernel = [
            (self.kernel.is_some(), "--kernel"),
            (self.kernel_every.is_some(), "--kernel-every"),
            (self.kernel_rank.is_some(), "--kernel-rank"),
        ];
        let given = of_kernel.iter().find(|(given, _)| *given);
        let (what, place, advice) = match (self.gp(), given) {
            (None, Some((_, flag))) => {
                ("there is no kernel without learned selection", *flag, "add --selection gp, or leave it out")
            }
            (None, None) => return Ok(()),
            _ if !matches!(
                self.model,
                ModelKind::Bsc | ModelKind::Gsc | ModelKind::Ssmca | ModelKind::Gmm
            ) =>
            {
                ("selection is learned for bsc, gsc, ssmca and gmm only", "--selection gp", "leave it out")
            }
            _ if self.model == ModelKind::Gmm && self.noise == Some(NoiseForm::Components) => (
                "selection is learned for components that share their noise",
                "--noise components",
                "use another --noise, or leave --selection away",
            ),
            _ if self.model == ModelKind::Gmm && self.selected.is_none() => (
                "there is nothing to select: all components are looked at",
                "--selection gp",
                "say how many of them a point keeps with --selected",
            ),
            _ if !matches!(engine, Engine::Truncated | Engine::Gibbs) => (
                "there is nothing to select: all latents are looked at",
                "--selection gp",
                "use --engine truncated with --selected and --max-active",
            ),
            _ if self.extra.is_some_and(|extra| extra > 0) => {
                ("a tenth of the selected latents is random already", "--extra", "leave it out")
            }
            _ if self.slab == Some(SlabForm::Full) => {
                ("selection is learned for diagonal slabs only", "--slab full", "use --slab diagonal")
            }
            _ if self.states == Some(StatesForm::Adaptive) => return Ok(()),
            _ if self.batch.is_some_and(|batch| batch > 0) => {
                ("selection is learned from all points at once", "--batch", "leave it out")
            }
            _ if self.holdout.is_some() => {
                ("points that are held out have no learned selection", "--holdout", "leave it out")
            }
            _ => return Ok(()),
        };
        Err(Error::input(what, place, advice))
    }

    /// Refuses what this kind of model does not have.
    pub(super) fn check_kind(&self) -> Result<()> {
        let kind = self.model.kind();
        let (what, place) = match () {
            () if !kind.has_slab() && self.has_slab_flag() => {
                ("latents are on or off and have no slab", "--slab")
            }
            () if self.noise == Some(NoiseForm::Components) && self.model != ModelKind::Gmm => {
                ("only the components of a mixture have variances of their own", "--noise components")
            }
            () if self.model == ModelKind::Gmm && self.is_about_many() => (
                "exactly one component of a mixture is on",
                "--whiten, --batch, --cut, --pi, --prior shared and --init lines",
            ),
            () if self.rule.is_some() && self.model != ModelKind::Nmf => ("only nmf has two rules", "--rule"),
            () if self.whiten && kind.is_non_negative() => ("whitened data is negative in part", "--whiten"),
            () if self.weak == Some(Weak::Sources) && self.model != ModelKind::Gsc => {
                ("only latents with a slab that add up can be weak", "--weak sources")
            }
            () if kind.is_sampled() && matches!(self.slab, Some(SlabForm::Full | SlabForm::Unit)) => {
                ("its slab has a mean and a variance per latent", "--slab")
            }
            () if self.noise == Some(NoiseForm::Full) && !kinds::of(self.model).is_linear() => {
                ("maximal causes cannot have noise that depends on other dimensions", "--noise full")
            }
            () => return Ok(()),
        };
        Err(Error::input(what, place, format_args!("leave it out for a model of kind {}", self.model.name())))
    }

    /// With fewer sensors than latents a weak point has many explanations.
    pub(in super::super) fn check_weak(&self, dims: usize) -> Result<()> {
        let (what, advice) = match self.weak {
            Some(Weak::Sources) if usize::from(self.latents) > dims => {
                let what = format!("{} latents are more than {dims} channels", self.latents);
                (what, format!("ask for {dims} latents or fewer, or leave it out"))
            }
            Some(Weak::Sources) if matches!(self.noise, Some(NoiseForm::Shared | NoiseForm::Diagonal)) => (
                "noise that is the same in all directions tells nothing".into(),
                "use --noise full".to_owned(),
            ),
            _ => return Ok(()),
        };
        Err(Error::input(what, "--weak sources", advice))
    }

    /// Flags about latents that are on together, or that are learned as such.
    fn is_about_many(&self) -> bool {
        self.whiten
            || self.batch.is_some_and(|batch| batch > 0)
            || self.cut == Some(Switch::On)
            || self.pi.is_some()
            || self.prior == Some(PriorForm::Shared)
            || self.init == Some(InitForm::Lines)
    }

    fn has_slab_flag(&self) -> bool {
        self.slab.is_some() || self.mu.is_some() || self.psi2.is_some() || self.fix_slab
    }

    /// Only starts that differ can be compared, and no more than D columns can be at right angles.
    pub(in super::super) fn check_angles(&self, dims: usize) -> Result<()> {
        let place = "--prefer orthogonal";
        let (what, advice) = match self.prefer {
            Prefer::Orthogonal if self.restarts.unwrap_or(1) == 1 => {
                ("there is one start only".into(), "ask for more, such as --restarts 20".to_owned())
            }
            Prefer::Orthogonal if self.latents == 1 => {
                ("one latent has no angles".into(), "leave it out".to_owned())
            }
            Prefer::Orthogonal if usize::from(self.latents) > dims => {
                let what = format!("{} columns of {dims} numbers cannot be orthogonal", self.latents);
                (what, format!("ask for {dims} latents or fewer, or leave it out"))
            }
            _ => return Ok(()),
        };
        Err(Error::input(what, place, advice))
    }
}

pub(super) fn positive(value: f64, flag: &str) -> Result<f64> {
    match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(Error::input(format_args!("{value} is not a positive number"), flag, "give one")),
    }
}

pub(super) fn not_negative(value: f64, flag: &str) -> Result<f64> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => {
            Err(Error::input(format_args!("{value} is neither 0 nor a positive number"), flag, "give one"))
        }
    }
}

/// Of the points: more than a half held out leaves too few to learn from.
pub(super) fn part(value: f64) -> Result<f64> {
    match value > 0.0 && value <= 0.5 {
        true => Ok(value),
        false => {
            let what = format!("{value} is not a part of the points above 0 and up to 0.5");
            Err(Error::input(what, "--holdout", "give one, such as 0.1, or leave it out"))
        }
    }
}

pub(super) fn finite(value: f64, flag: &str) -> Result<f64> {
    match value.is_finite() {
        true => Ok(value),
        false => Err(Error::input(format_args!("{value} is not a number"), flag, "give one")),
    }
}

pub(super) fn probability(value: f64, flag: &str) -> Result<f64> {
    match value > 0.0 && value < 1.0 {
        true => Ok(value),
        false => {
            let what = format!("{value} is not a probability between 0 and 1, both excluded");
            Err(Error::input(what, flag, "give one"))
        }
    }
}

/// `13:1`, or `13` for the same.
pub(super) fn temperatures(text: &str) -> std::result::Result<(f64, f64), String> {
    let (first, last) = text.split_once(':').unwrap_or((text, "1"));
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("give one positive number or two, such as 3:1".to_owned()),
    };
    match (number(first)?, number(last)?) {
        // A rise would end in posteriors that are flatter than those of the model.
        (first, last) if last > first.max(1.0) => {
            Err(format!("the temperature would rise: begin with the higher one, as in {last}:{first}"))
        }
        ends => Ok(ends),
    }
}
