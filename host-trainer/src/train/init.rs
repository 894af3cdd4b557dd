//! Where a start begins.
//!
//! Latents of any sign: columns are random directions coloured by the covariance C of the data, W = C^(1/2) X with
//! X standard normal, scaled so that the model's covariance equals the data's on average: H pi W W^T. Against
//! white random columns this spends no iterations on learning second-order statistics. Where a latent that is on is just
//! that, columns also share the mean of the data, since only they can explain it.
//!
//! Latents at or above zero: the mean of the data, each entry off by a third of it (002).
//!
//! Or points drawn from the data, the default where latents are on or off: columns differ from the beginning. The experiment
//! `bars` has both.
//!
//! Or lines along which strong points lie, for mixtures (`lines`). There most of a point is one source: pi starts at 0.2
//! and noise at a tenth of the data's variance.
//!
//! Mixtures: points drawn from the data, far ones more often (`kinds::gmm`), and the noise that is left of it.
//!
//! Where states are searched for and a first code is roughly right (`search`): of every few points drawn the strongest, as long
//! as it is, nearly. Most patches of a picture are flat and noise, and say nothing.
//!
//! Otherwise pi starts at two latents on at a time, at most one half. Noise starts at the data's variance: everything is noise
//! until the dictionary explains it; where it anneals (`search`), at three tenths of it. Where a temperature does that, noise
//! starts so low that at the first temperature it has half the largest variance of the data in any direction: about there columns
//! begin to differ.

mod lines;

use super::kinds;
use super::points::Points;
use super::settings::{InitForm, NoiseForm, PriorForm, Settings, SlabForm};
use super::whiten::Spectrum;
use crate::Result;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use spikelet::rng::Rng;

/// What a start must know of the data.
pub struct Scene {
    /// Mean of every dimension. (D)
    pub mean: Vec<f64>,
    /// C, about the mean. (D x D)
    pub covariance: Vec<f64>,
    /// Mean of the variances.
    pub variance: f64,
    /// Whether latents have a slab, which may have any sign.
    pub has_slab: bool,
}

impl Scene {
    fn mean_of_all(&self) -> f64 {
        self.mean.iter().sum::<f64>() / self.mean.len() as f64
    }
}

/// Random parameters for start number `restart`.
pub fn init(settings: &Settings, scene: &Scene, points: &mut Points, restart: usize) -> Result<Parameters> {
    let (dims, h) = (points.dims(), settings.latents);
    let d = dims;
    let mut rng = Rng::new(stream(settings.seed, restart));
    let along_lines = settings.init == InitForm::Lines;
    let most = if along_lines { 0.2 } else { 0.5 };
    let kind = settings.model;
    let prior = match kind.kind().is_mixture() {
        // Exactly one is on. Of a single one the margin keeps it below 1.
        true => (1.0 / h as f64).min(1.0 - 1e-9),
        false => settings.first_prior.unwrap_or((2.0 / h as f64).min(most)),
    };
    let norm = (d as f64 * scene.variance / (h as f64 * prior)).sqrt();
    let mut seeds = None;
    let mut dictionary = match settings.init {
        InitForm::Data if kind.kind().is_mixture() => {
            let mut found = kinds::gmm::seeds(points, h, &mut rng)?;
            let means = std::mem::take(&mut found.means);
            seeds = Some(found);
            means
        }
        InitForm::Random => (kinds::of(kind).first)(scene, h, prior, &mut rng),
        InitForm::Data if settings.is_adaptive() && settings.batch > 0 && !settings.anneals(scene) => {
            strong(points, h, &mut rng)?
        }
        InitForm::Data => drawn(points, h, norm, &mut rng)?,
        InitForm::Lines => lines::lines(points, h, norm, restart == 0, &mut rng)?,
    };
    if kind.kind().is_non_negative() {
        dictionary.iter_mut().for_each(|w| *w = w.max(0.0));
    }
    let variance =
        settings.first_noise.or(seeds.as_ref().map(|seeds| seeds.variance)).unwrap_or_else(|| match settings
            .temperature
            .0
        {
            first if first > 1.0 => {
                Spectrum::new(&scene.covariance, d).largest().max(scene.variance) / (2.0 * first)
            }
            _ if along_lines => 0.1 * scene.variance,
            _ if settings.anneals(scene) => 0.3 * scene.variance,
            _ => scene.variance,
        });
    // Of maximal causes columns have mean 1, and the slab has the scale of the data.
    let sampled = kind.kind().is_sampled();
    let (mean, spread) = if sampled { (scene.mean_of_all().abs(), scene.variance) } else { (0.0, 1.0) };
    let square = |n: usize, on: f64| (0..n * n).map(|e| if e / n == e % n { on } else { 0.0 }).collect();
    let mut parameters = Parameters {
        kind,
        dims,
        latents: h,
        dictionary,
        prior: vec![prior; h],
        slab_mean: vec![settings.first_mean.unwrap_or(mean); if scene.has_slab { h } else { 0 }],
        slab_cov: match (settings.slab, settings.first_spread) {
            _ if !scene.has_slab => SlabCov::Unit,
            (SlabForm::Full, psi2) => SlabCov::Full(square(h, psi2.unwrap_or(spread))),
            (SlabForm::Unit, None) => SlabCov::Unit,
            (_, psi2) => SlabCov::Diagonal(vec![psi2.unwrap_or(spread); h]),
        },
        noise: match settings.noise {
            NoiseForm::Shared => NoiseCov::Shared(variance),
            NoiseForm::Diagonal => NoiseCov::Diagonal(vec![variance; d]),
            NoiseForm::Full => NoiseCov::Full(square(d, variance)),
            NoiseForm::Components => NoiseCov::Components(vec![variance; d * h]),
        },
    };
    if let Some(seeds) = seeds {
        if settings.prior == PriorForm::Each {
            parameters.prior = seeds.weights.iter().map(|weight| weight.min(1.0 - 1e-9)).collect();
        }
        if settings.first_noise.is_none() {
            parameters.noise = match parameters.noise {
                NoiseCov::Shared(variance) => NoiseCov::Shared(variance),
                NoiseCov::Diagonal(_) => {
                    NoiseCov::Diagonal((0..d).map(|i| seeds.covariance[i * d + i]).collect())
                }
                NoiseCov::Full(_) => {
                    // Away from singular.
                    let own = |e: usize| if e / d == e % d { 1.0 } else { 0.99 };
                    NoiseCov::Full((0..d * d).map(|e| own(e) * seeds.covariance[e]).collect())
                }
                NoiseCov::Components(_) => NoiseCov::Components(seeds.variances),
            };
        }
    }
    if let (Some(settle), None) = (kinds::of(kind).settle, settings.first_mean) {
        let slab = (parameters.slab_mean.clone(), parameters.slab_cov.clone());
        settle(&mut parameters);
        (parameters.slab_mean, parameters.slab_cov) = slab;
    }
    Ok(parameters)
}

/// Starts have streams of their own, so that start 3 is the same whether or not 1 and 2 ran.
pub(super) fn stream(seed: u64, restart: usize) -> u64 {
    seed.wrapping_add((restart as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Random directions with the covariance of the data.
pub fn coloured(scene: &Scene, h: usize, prior: f64, rng: &mut Rng) -> Vec<f64> {
    let (d, scale) = (scene.mean.len(), 1.0 / (h as f64 * prior).sqrt());
    // Directions without variance get a thousandth of the mean one.
    let floor = 1e-6 * scene.variance;
    let root = Spectrum::new(&scene.covariance, d).map(|v| v.max(floor).sqrt());
    let white: Vec<f64> = (0..d * h).map(|_| scale * rng.normal::<f64>()).collect();
    let entry = |i: usize, j: usize| (0..d).map(|k| root[i * d + k] * white[k * h + j]).sum::<f64>();
    let common = |i: usize| if scene.has_slab { 0.0 } else { scene.mean[i] / (h as f64 * prior) };
    (0..d * h).map(|e| common(e / h) + entry(e / h, e % h)).collect()
}

/// The mean of the data, each entry off by a third of it, and nowhere zero: from there it would not move.
pub fn around_the_mean(scene: &Scene, h: usize, _prior: f64, rng: &mut Rng) -> Vec<f64> {
    let overall = scene.mean.iter().map(|m| m.abs()).sum::<f64>() / scene.mean.len() as f64;
    let overall = if overall > 0.0 { overall } else { scene.variance.sqrt() };
    let mut entry = |mean: f64| (mean * (1.0 + rng.normal::<f64>() / 3.0)).max(0.01 * mean);
    let means = scene.mean.iter().map(|m| m.abs().max(0.05 * overall));
    means.flat_map(|mean| vec![mean; h]).map(&mut entry).collect()
}

/// Points drawn at random as columns, all of the same norm. (D x H)
fn drawn(points: &mut Points, h: usize, norm: f64, rng: &mut Rng) -> Result<Vec<f64>> {
    let (d, n, mut point) = (points.dims(), points.len(), Vec::new());
    let mut dictionary = vec![0.0; d * h];
    for k in 0..h {
        let drawn = (rng.uniform::<f64>() * n as f64) as usize;
        points.read(drawn.min(n - 1), 1, &mut point)?;
        // A little noise: the same point may be drawn twice, and a point of zeros has no direction.
        let length = point.iter().map(|y| y * y).sum::<f64>().sqrt();
        for (i, y) in point.iter().enumerate() {
            let direction = if length > 0.0 { y / length } else { 0.0 };
            dictionary[i * h + k] = norm * (direction + 0.1 * rng.normal::<f64>() / (d as f64).sqrt());
        }
    }
    Ok(dictionary)
}

/// Of how many points drawn the strongest becomes a column, and what is left of its length: part of it is noise.
const DRAWN: usize = 8;
const LEFT: f64 = 0.7;

/// The strongest of [`DRAWN`] points at random as columns. (D x H)
fn strong(points: &mut Points, h: usize, rng: &mut Rng) -> Result<Vec<f64>> {
    let (d, n) = (points.dims(), points.len());
    let mut dictionary = vec![0.0; d * h];
    let (mut point, mut best) = (Vec::new(), Vec::new());
    for k in 0..h {
        let mut most = -1.0;
        for _ in 0..DRAWN {
            let drawn = (rng.uniform::<f64>() * n as f64) as usize;
            points.read(drawn.min(n - 1), 1, &mut point)?;
            let power = point.iter().map(|y| y * y).sum::<f64>();
            if power > most {
                most = power;
                std::mem::swap(&mut point, &mut best);
            }
        }
        // A little noise: the same point may be drawn twice.
        let deviation = 0.1 * (most / d as f64).sqrt();
        for (i, y) in best.iter().enumerate() {
            dictionary[i * h + k] = LEFT * (y + deviation * rng.normal::<f64>());
        }
    }
    Ok(dictionary)
}

/// Noise at or above the floor.
pub(super) fn raise(parameters: &mut Parameters, floor: f64) {
    let d = parameters.dims;
    match &mut parameters.noise {
        NoiseCov::Shared(sigma2) => *sigma2 = sigma2.max(floor),
        NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => {
            sigma2.iter_mut().for_each(|v| *v = v.max(floor))
        }
        NoiseCov::Full(sigma) => (0..d).for_each(|i| sigma[i * d + i] = sigma[i * d + i].max(floor)),
    }
}
