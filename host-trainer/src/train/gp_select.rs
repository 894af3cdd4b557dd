//! Learned selection, GP-select [004 ch. 4]: which latents a point is looked at with follows from regression of the posterior
//! probabilities of the last iteration on the data ([`crate::gp`]), not from a score of the model.
//!
//! A point keeps the H' - ceil(H' / 10) latents of largest affinity and a few at random, so that no latent is lost for good. In
//! the first iteration all are drawn at random. Hyperparameters are fitted every T* iterations. States have no latents but the
//! selected ones on (no singletons): with singletons the model's own score would decide after all.
//!
//! A search for states needs no sets; there the last E-step alone is regressed, with a linear kernel, for the scores that
//! searches of the model begin with.

use super::e_step::{Sets, Task};
use super::points::Points;
use super::run::How;
use super::schedule::threshold;
use super::settings::Settings;
use super::statistics::Statistics;
use crate::gp::{Factor, Kernel, KernelName, fit};
use crate::parameters::Parameters;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use spikelet::rng::{self, Rng};

/// One latent in so many is selected at random.
const AT_RANDOM: usize = 10;

/// Where the latents that a point is looked at with come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SelectionForm {
    /// The model's own score of each latent
    Score,
    /// Gaussian process regression of their probabilities on the data, learned along the way (bsc, gsc, ssmca, gmm)
    Gp,
}

/// How selection is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpSelect {
    /// Parts of the kernel.
    pub kernel: KernelName,
    /// T*: iterations between two fits of its hyperparameters.
    pub every: usize,
    /// Q: pivots of the incomplete Cholesky factor, at most.
    pub rank: usize,
    /// For comparisons, nothing is learned: latents are ranked by the cosine W_h . y / |W_h|, and a few are drawn at random all the same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_cosine: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl GpSelect {
    /// With the interval of the thesis.
    pub fn new(kernel: KernelName) -> Self {
        Self { kernel, every: 10, rank: 200, by_cosine: false }
    }
}

/// What a start has learned of selection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Selector {
    /// The latents of every point. (N x H')
    sets: Vec<u16>,
    /// Where fits began, and where they are.
    kernels: Option<(Kernel, Kernel)>,
    /// Of a linear kernel: what the affinities of a point that was not seen are a product of it with. (D x H; else empty)
    #[serde(default)]
    scores: Vec<f64>,
    /// The factor of the present kernel, made again where it is missing.
    #[serde(skip)]
    factor: Option<Factor>,
}

impl PartialEq for Selector {
    /// The factor follows from the rest.
    fn eq(&self, other: &Self) -> bool {
        self.sets == other.sets && self.kernels == other.kernels && self.scores == other.scores
    }
}

impl Selector {
    /// All at random.
    pub fn new(settings: &Settings, start: usize, points: usize) -> Self {
        let mut sets = Vec::with_capacity(points * settings.selected);
        for n in 0..points {
            let mut rng = random(settings, start, 0, n);
            complete(&mut sets, n * settings.selected, settings.selected, settings.latents, &mut rng);
        }
        Self { sets, kernels: None, scores: Vec::new(), factor: None }
    }

    /// Scores that searches for states begin with, of the last E-step's probabilities (N x H).
    pub(super) fn of_search(
        settings: &Settings,
        activities: &[f64],
        points: &mut Points,
    ) -> Result<Option<Self>> {
        let mut selector = Self { sets: Vec::new(), kernels: None, scores: Vec::new(), factor: None };
        let mut values = Vec::new();
        points.read(0, points.len(), &mut values)?;
        selector.fit(settings, &values, activities, 0)?;
        if let Some(factor) = &selector.factor {
            selector.scores = factor.linear_scores(&values, activities, settings.latents);
        }
        Ok(Some(selector))
    }

    /// The latents of every point. (N x H')
    pub fn sets(&self) -> &[u16] {
        &self.sets
    }

    /// M = linear Y^T K^-1 `<S>` of a linear kernel, by which new points are selected as M^T y. (D x H)
    pub fn scores(&self) -> Option<&[f64]> {
        (!self.scores.is_empty()).then_some(&self.scores)
    }

    /// The kernel as fitted last, once there is one.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.kernels.as_ref().map(|(_, now)| now)
    }

    /// Statistics of all points over states of their selected latents, and the selection for the next iteration.
    pub(super) fn e_step(
        &mut self,
        settings: &Settings,
        parameters: &Parameters,
        how: &How,
        (start, iteration): (usize, usize),
        points: &mut Points,
        threads: usize,
    ) -> Result<Statistics> {
        let sets = Sets { latents: &self.sets, each: settings.selected };
        let How { engine, temperature, kept, options, .. } = *how;
        let mut task = Task { engine, temperature, sets: Some(sets), ..Task::new(parameters, &options) };
        if kept < 1.0 {
            let evidences = task.evidences(points, threads, settings.precision)?;
            task.least_evidence = threshold(evidences, kept, points.cluster());
        }
        let (statistics, activities) = task.run_with_activities(points, threads, settings.precision)?;
        match settings.gp {
            Some(GpSelect { by_cosine: true, .. }) => {
                let mut values = Vec::new();
                points.read(0, points.len(), &mut values)?;
                self.select(settings, &cosines(parameters, &values), (start, iteration));
            }
            _ => self.learn(settings, &activities, (start, iteration), points)?,
        }
        Ok(statistics)
    }

    /// Regresses these probabilities (N x H) on the points, and selects.
    fn learn(
        &mut self,
        settings: &Settings,
        activities: &[f64],
        (start, iteration): (usize, usize),
        points: &mut Points,
    ) -> Result<()> {
        let Some(learned) = settings.gp else { return Ok(()) };
        let (n, h) = (points.len(), settings.latents);
        let mut values = Vec::new();
        points.read(0, n, &mut values)?;
        self.fit(settings, &values, activities, iteration)?;
        let Some(factor) = &self.factor else { return Ok(()) };
        if learned.kernel == KernelName::Linear {
            self.scores = factor.linear_scores(&values, activities, h);
        }
        let affinities = factor.affinities(activities, h);
        self.select(settings, &affinities, (start, iteration));
        Ok(())
    }

    /// The factor of the kernel at these points (N x D), with hyperparameters fitted to the targets (N x H) where that is due.
    fn fit(&mut self, settings: &Settings, values: &[f64], targets: &[f64], iteration: usize) -> Result<()> {
        let Some(learned) = settings.gp else { return Ok(()) };
        let h = settings.latents;
        let d = values.len() * h / targets.len();
        let is_due = self.kernels.is_none() || iteration.is_multiple_of(learned.every);
        if is_due || self.factor.is_none() {
            if is_due {
                let power = targets.iter().map(|s| s * s).sum::<f64>() / targets.len() as f64;
                let begin = || Kernel::new(learned.kernel, values, d, power);
                let (first, now) = self.kernels.unwrap_or_else(|| (begin(), begin()));
                self.kernels = Some((first, fit(now, &first, values, d, targets, h)));
            }
            self.factor =
                self.kernels.and_then(|(_, kernel)| Factor::new(kernel, values, d, learned.rank.max(1)));
        }
        if self.factor.is_none() {
            let what = "the kernel matrix of the selection is not positive definite";
            return Err(Error::run(what, "--selection gp", "rescale the data, or use another --kernel"));
        }
        Ok(())
    }

    /// The latents of largest affinity (N x H), and some at random.
    fn select(&mut self, settings: &Settings, affinities: &[f64], (start, iteration): (usize, usize)) {
        let (h, each) = (settings.latents, settings.selected);
        let sure = if each < h { each - each.div_ceil(AT_RANDOM) } else { each };
        self.sets.clear();
        let mut order: Vec<u16> = Vec::with_capacity(h);
        for (n, affinity) in affinities.chunks_exact(h).enumerate() {
            order.clear();
            order.extend((0..h).map(|latent| latent as u16));
            let affinity = |latent: &u16| affinity[usize::from(*latent)];
            order.sort_by(|a, b| affinity(b).total_cmp(&affinity(a)).then(a.cmp(b)));
            self.sets.extend_from_slice(&order[..sure]);
            let mut rng = random(settings, start, iteration + 1, n);
            complete(&mut self.sets, n * each, each, h, &mut rng);
        }
    }
}

/// W_h . y / |W_h| of points. (N x H)
fn cosines(parameters: &Parameters, points: &[f64]) -> Vec<f64> {
    let h = parameters.latents;
    let mut lengths = vec![f64::MIN_POSITIVE; h];
    for row in parameters.dictionary.chunks_exact(h) {
        lengths.iter_mut().zip(row).for_each(|(length, w)| *length += w * w);
    }
    let mut found = vec![0.0; points.len() / parameters.dims * h];
    for (y, found) in points.chunks_exact(parameters.dims).zip(found.chunks_exact_mut(h)) {
        for (y, row) in y.iter().zip(parameters.dictionary.chunks_exact(h)) {
            found.iter_mut().zip(row).for_each(|(sum, w)| *sum += y * w);
        }
        found.iter_mut().zip(&lengths).for_each(|(sum, length)| *sum /= length.sqrt());
    }
    found
}

/// Random numbers of one point in one iteration.
fn random(settings: &Settings, start: usize, iteration: usize, point: usize) -> Rng {
    let run = rng::mix(rng::mix(settings.seed, start as u64), !(iteration as u64));
    Rng::new(rng::mix(run, point as u64))
}

/// Fills the last set, which begins at `first`, up to `each` latents with others at random.
pub(crate) fn complete(sets: &mut Vec<u16>, first: usize, each: usize, latents: usize, rng: &mut Rng) {
    let mut others: Vec<u16> =
        (0..latents).map(|h| h as u16).filter(|latent| !sets[first..].contains(latent)).collect();
    while sets.len() < first + each && !others.is_empty() {
        let at = (rng.uniform::<f64>() * others.len() as f64) as usize;
        sets.push(others.swap_remove(at.min(others.len() - 1)));
    }
}
