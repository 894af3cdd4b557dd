//! Spike-and-slab models whose latents overlap, points drawn from them, and what a Cortex-M4F makes of them by the core's code.

use spikelet::rng::Rng;
use spikelet::{Detail, Inference};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::predict::{Core, count, dot};
use spikelet_trainer::prepare::{Options, Prepared};
use spikelet_trainer::train::Settings;
use spikelet_trainer::train::settings::{Engine, StatesForm};
use spikelet_trainer::{Error, Result};

/// A model, points that may be learned from, and new ones with their states.
pub struct Problem {
    pub name: &'static str,
    pub model: Parameters,
    pub seen: Vec<f64>,
    pub new: Vec<f64>,
    /// x of the new points. (N x H)
    pub truth: Vec<f64>,
}

/// Name, D, H, latents that are on on average, mean and variance of the slab, variance of the noise. Columns have random
/// directions and length sqrt(D).
type Case = (&'static str, usize, usize, f64, f64, f64, f64);
const CASES: [Case; 6] = [
    ("few of many, both signs", 64, 256, 3.0, 0.0, 1.0, 0.1),
    ("few of many, one sign", 64, 256, 3.0, 1.0, 0.09, 0.1),
    ("many on, both signs", 32, 64, 6.0, 0.0, 1.0, 1.0),
    ("many on, one sign", 32, 64, 6.0, 1.0, 0.09, 1.0),
    ("small, both signs", 12, 16, 2.0, 0.0, 1.0, 0.1),
    ("small, one sign", 12, 16, 2.0, 1.0, 0.09, 0.1),
];

/// All cases, with so many points each.
pub fn problems(seen: usize, new: usize, seed: u64) -> Vec<Problem> {
    CASES
        .iter()
        .enumerate()
        .map(|(at, case)| problem(*case, seen, new, &mut Rng::new(seed + at as u64)))
        .collect()
}

fn problem((name, d, h, on, mean, variance, noise): Case, seen: usize, new: usize, rng: &mut Rng) -> Problem {
    let mut dictionary: Vec<f64> = (0..d * h).map(|_| rng.normal()).collect();
    for k in 0..h {
        let length: f64 = (0..d).map(|i| dictionary[i * h + k].powi(2)).sum::<f64>().sqrt();
        (0..d).for_each(|i| dictionary[i * h + k] *= (d as f64).sqrt() / length);
    }
    let pi = on / h as f64;
    let mut draw = |count: usize| {
        let (mut values, mut truth) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let x: Vec<f64> = (0..h)
                .map(|_| match rng.uniform::<f64>() < pi {
                    true => mean + variance.sqrt() * rng.normal::<f64>(),
                    false => 0.0,
                })
                .collect();
            for row in dictionary.chunks_exact(h) {
                let sum: f64 = row.iter().zip(&x).map(|(w, x)| w * x).sum();
                values.push(sum + noise.sqrt() * rng.normal::<f64>());
            }
            truth.extend(x);
        }
        (values, truth)
    };
    let ((seen, _), (new, truth)) = (draw(seen), draw(new));
    let model = Parameters {
        kind: ModelKind::Gsc,
        dims: d,
        latents: h,
        dictionary,
        prior: vec![pi; h],
        slab_mean: vec![mean; h],
        slab_cov: SlabCov::Diagonal(vec![variance; h]),
        noise: NoiseCov::Shared(noise),
    };
    Problem { name, model, seen, new, truth }
}

/// Means over the new points.
#[derive(Default)]
pub struct Figures {
    /// ln p over the kept states, or a lower bound of it.
    pub evidence: f64,
    /// Latents that are on and have a probability above one half.
    pub recall: f64,
    /// Of what W x makes without noise, in dB.
    pub snr: f64,
    /// Instructions of a Cortex-M4F.
    pub instructions: f64,
}

impl Problem {
    /// Figures of posteriors: evidence, `<s>` and `<x>` of every new point.
    pub fn figures(&self, found: &[(f64, Vec<f64>, Vec<f64>)], instructions: f64) -> Figures {
        let h = self.model.latents;
        let (mut on, mut recalled, mut power, mut miss) = (0.0, 0.0, 0.0, 0.0);
        for ((_, activity, mean), truth) in found.iter().zip(self.truth.chunks_exact(h)) {
            for (_, activity) in truth.iter().zip(activity).filter(|(x, _)| **x != 0.0) {
                on += 1.0;
                recalled += f64::from(u8::from(*activity > 0.5));
            }
            for row in self.model.dictionary.chunks_exact(h) {
                let image = |x: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
                let (real, seen) = (image(truth), image(mean));
                power += real * real;
                miss += (real - seen) * (real - seen);
            }
        }
        Figures {
            evidence: found.iter().map(|(evidence, ..)| evidence).sum::<f64>() / found.len() as f64,
            recall: recalled / on,
            snr: 10.0 * (power / miss).log10(),
            instructions,
        }
    }

    /// States of this form, within sizes that a device has.
    pub fn options(&self, states: StatesForm) -> Options {
        let latents = self.model.latents;
        let (selected, max_active) = match states {
            StatesForm::Subsets => (10, 3),
            StatesForm::Adaptive => (latents.min(Options::CANDIDATES), latents.min(Options::ACTIVE)),
        };
        let engine = Engine::Truncated;
        let all = Settings::new(self.model.kind, latents);
        Settings { engine, states, selected, max_active, singletons: false, ..all }.options()
    }

    /// `<s>` of the points to learn from, by adaptive states.
    pub fn activities(&self) -> Result<Vec<f64>> {
        let prepared = Prepared::<f64>::new(&self.model, &self.options(StatesForm::Adaptive))?;
        let refused = |error| Error::run(error, self.name, "change the problem");
        let model = prepared.model()?;
        let mut memory = vec![0.0; spikelet::arena_len(model.shape, Detail::Marginals)];
        let refuse = |error| Error::run(error, self.name, "change the problem");
        let mut inference = Inference::with_detail(model, &mut memory, Detail::Marginals).map_err(refuse)?;
        let mut found = Vec::new();
        for y in self.seen.chunks_exact(self.model.dims) {
            found.extend_from_slice(inference.infer(y).map_err(refused)?.activity);
        }
        Ok(found)
    }

    /// The model's own score of every latent alone [000 eq. 25].
    pub fn own_scores(&self, y: &[f64]) -> Vec<f64> {
        let h = self.model.latents;
        let variances = self.model.slab_variances();
        let score = |k: usize| {
            let noise = self.model.noise_covariance(0, 0);
            let column = || self.model.dictionary.chunks_exact(h).map(|row| row[k]);
            let (b, g) =
                column().zip(y).fold((0.0, 0.0), |(b, g), (w, y)| (b + w * y / noise, g + w * w / noise));
            let (mean, precision) = (self.model.slab_mean[k], 1.0 / variances[k]);
            let (m, v) = (g + precision, b + precision * mean);
            0.5 * (v * v / m - precision * mean * mean - (m / precision).ln())
        };
        (0..h).map(score).collect()
    }

    /// Latents of new points that are on and among the `count` of best score.
    pub fn share_selected(&self, count: usize, scores: &dyn Fn(&[f64]) -> Vec<f64>) -> f64 {
        let (mut all, mut kept) = (0.0, 0.0);
        for (y, x) in self.new.chunks_exact(self.model.dims).zip(self.truth.chunks_exact(self.model.latents))
        {
            let scores = scores(y);
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
            all += x.iter().filter(|x| **x != 0.0).count() as f64;
            kept += order.iter().take(count).filter(|k| x[**k] != 0.0).count() as f64;
        }
        kept / all
    }

    /// What the core finds, in `f32`, and what it takes.
    pub fn infer(&self, prepared: &Prepared<f32>) -> Result<Figures> {
        let refused = |error| Error::run(error, self.name, "change the problem");
        let model = prepared.model()?;
        let mut memory = vec![0.0; spikelet::arena_len(model.shape, Detail::Marginals)];
        let mut inference = Inference::with_detail(model, &mut memory, Detail::Marginals)
            .map_err(|e| Error::run(e, self.name, ""))?;
        let weights = Core::find("m4f").map(|core| core.weights()).unwrap_or_default();
        let (mut found, mut instructions) = (Vec::new(), 0.0);
        for y in self.new.chunks_exact(self.model.dims) {
            let y: Vec<f32> = y.iter().map(|y| *y as f32).collect();
            for stage in count(&mut inference, &y)? {
                instructions += dot(&weights, stage.iter().map(|count| *count as f64));
            }
            let estimate = inference.infer(&y).map_err(refused)?;
            let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect();
            found.push((f64::from(estimate.evidence), wide(estimate.activity), wide(estimate.mean)));
        }
        Ok(self.figures(&found, instructions / found.len() as f64))
    }
}
