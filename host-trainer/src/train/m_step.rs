//! The M-step: statistics to parameters, in closed form.
//!
//! Dictionary and noise are the business of each kind of model ([`kinds`]), the slab has a file of its own, and the
//! prior is the same for all:
//!
//! ```text
//! pi_h = mean <s_h>                      or their mean over all latents, where they share one
//! pi_h = mean <s_h> A / B_h              A = p(|s| <= gamma),  B_h = p(|s| <= gamma given s_h = 1)
//! ```
//!
//! The second line is for truncated models (002, there for a shared pi): of points with at most gamma latents on,
//! fewer are on than the prior says.
//!
//! Updates that the data cannot support are guarded, and every guard that acted is named once.

use super::kinds::{self, slab};
use super::settings::{PriorForm, Rule};
use super::statistics::Statistics;
use crate::parameters::Parameters;
use crate::{Error, Result};

/// What an M-step shall do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// Which parameters change.
    pub learned: Learned,
    /// Limits.
    pub guard: Guard,
    /// One pi for all latents, or one each.
    pub prior: PriorForm,
    /// gamma, where pi is that of a truncated model.
    pub truncated_at: Option<usize>,
    /// How a dictionary stays at or above zero.
    pub rule: Rule,
    /// How the columns of a linear model's dictionary are found.
    pub columns: Columns,
    /// Dimensions without noise, because so many means were taken off every point.
    pub means_off: usize,
}

/// How the columns of a dictionary follow from statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All at once, the optimum: H^2 (H / 3 + D) operations.
    Solved,
    /// One after the other, each to its best given the others, once: H^2 D operations at most. From where a step before
    /// left them that is nearly the optimum.
    Improved,
}

impl Update {
    /// Of Gaussian sparse coding.
    pub fn new(learned: Learned, guard: Guard) -> Self {
        Self {
            learned,
            guard,
            prior: PriorForm::Each,
            truncated_at: None,
            rule: Rule::Clamp,
            columns: Columns::Solved,
            means_off: 0,
        }
    }
}

/// Which parameters the M-step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// W.
    pub dictionary: bool,
    /// pi.
    pub prior: bool,
    /// mu and psi^2; false for a unit slab, and without meaning where there is none.
    pub slab: bool,
    /// Sigma.
    pub noise: bool,
}

impl Learned {
    /// All stays as it is.
    pub const NOTHING: Self = Self { dictionary: false, prior: false, slab: false, noise: false };
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
    /// A latent was unused and was reinitialised from a badly explained point (stepwise EM only).
    Revived(usize),
}

impl Warning {
    /// What happened and what to do about it.
    pub fn words(&self) -> String {
        match self {
        Self::Dead(latent) => {
            format!(
                "latent {latent} is hardly ever on and was left as it was: use fewer latents or more restarts"
            )
        }
        Self::Singular => {
            "latents cannot be told apart by this data, a ridge was added: use fewer latents or more data"
                .into()
        }
        Self::Revived(_) => {
            "latents that did nothing restarted from badly explained points: if this goes on, use fewer latents".into()
        }
        Self::NoiseFloor => {
            "the noise reached its floor: lower --noise-floor if the data really has less noise".into()
        }
    }
    }
}

/// New parameters, and which guards acted.
pub fn m_step(
    parameters: &Parameters,
    statistics: &Statistics,
    update: &Update,
) -> Result<(Parameters, Vec<Warning>)> {
    if statistics.points == 0 {
        return Err(Error::input("no points", "the data", "give at least one"));
    }
    let Update { learned, guard, .. } = update;
    let training = kinds::of(parameters.kind);
    let mut warnings = Vec::new();
    let mut new = parameters.clone();
    // A latent that is on for less than a thousandth of one point has nothing to say.
    let dead: Vec<bool> = statistics.activity.iter().map(|&on| on < 1e-3).collect();
    warnings.extend(dead.iter().enumerate().filter(|(_, dead)| **dead).map(|(h, _)| Warning::Dead(h)));
    if learned.dictionary {
        new.dictionary = (training.dictionary)(parameters, statistics, &dead, update, &mut warnings);
    }
    if learned.prior {
        new.prior = prior(parameters, statistics, update);
    }
    if learned.slab && parameters.kind.kind().has_slab() {
        slab::learn(&mut new, statistics, &dead, guard.slab_floor);
    }
    if let (Some(settle), true, true) = (training.settle, learned.slab, learned.dictionary) {
        settle(&mut new);
    }
    if learned.noise {
        new.noise = (training.noise)(&new, statistics, guard.noise_floor, &mut warnings);
        // What is left over has D - k directions, and the noise of each of them is asked for.
        if update.means_off > 0 && update.means_off < new.dims {
            let d = new.dims as f64;
            new.noise = new.noise.scaled(d / (d - update.means_off as f64));
        }
    }
    Ok((new, warnings))
}

/// pi, inside its margins.
fn prior(parameters: &Parameters, sums: &Statistics, update: &Update) -> Vec<f64> {
    let (h, n, margin) = (parameters.latents, sums.points as f64, update.guard.prior_margin);
    let mut prior: Vec<f64> = sums.activity.iter().map(|on| on / n).collect();
    if update.prior == PriorForm::Shared {
        prior = vec![prior.iter().sum::<f64>() / h as f64; h];
    }
    if let Some(most) = update.truncated_at.filter(|&most| most < h) {
        let kept = at_most(&parameters.prior, None, most);
        let correction = |i: usize| kept / at_most(&parameters.prior, Some(i), most - 1);
        let first = correction(0);
        for (i, pi) in prior.iter_mut().enumerate() {
            *pi *= if update.prior == PriorForm::Shared { first } else { correction(i) };
        }
    }
    prior.iter().map(|pi| pi.clamp(margin, 1.0 - margin)).collect()
}

/// p(|s| <= most), with one latent left out where told so.
pub(super) fn at_most(prior: &[f64], without: Option<usize>, most: usize) -> f64 {
    // p(|s| = k) of the latents so far
    let mut counts = vec![0.0; most + 1];
    counts[0] = 1.0;
    for (_, pi) in prior.iter().enumerate().filter(|(h, _)| Some(*h) != without) {
        for k in (0..=most).rev() {
            counts[k] = (1.0 - pi) * counts[k] + if k > 0 { pi * counts[k - 1] } else { 0.0 };
        }
    }
    counts.iter().sum()
}

/// The variance, or the floor and a warning.
pub(super) fn floored(variance: f64, floor: f64, warnings: &mut Vec<Warning>) -> f64 {
    if variance > floor {
        return variance;
    }
    warnings.push(Warning::NoiseFloor);
    floor
}
