//! Stepwise EM: an M-step after every batch of points instead of after all of them.
//!
//! ```text
//! s <- (1 - eta_t) s + eta_t N / |batch| s_batch      eta_t = (t + 2)^-alpha,  t = 0, 1, ...
//! ```
//!
//! (Cappe and Moulines 2009; Liang and Klein 2009), with the same E-step and M-step as plain EM. s begins as what
//! the first parameters expect of N points, so that an M-step on it gives just these back and a first batch
//! that hardly uses a latent does not lose it. Batches are runs of [neighbours](Points::run_len) in an order
//! that depends on the seed, the start and the pass only, the same for points in memory and in files.
//!
//! What it buys: 256 random directions of length 1 in 64 dimensions, three to five on at a time, 5000 points, noise of
//! 0.03 per dimension. Ten passes with batches of 100 find all 256 (a cosine beyond 0.95) on three such data sets, from points
//! or from random columns; plain EM has 230 to 245 after ten passes and 246 to 252 after forty (experiment `dictionary-recovery`).
//!
//! With adaptive states (`search`) the M-step improves every column once instead of solving for all, the noise is estimated after every few
//! batches, and latents are revived several times a pass, so that the M-step costs less than the E-step. The last step of all is one
//! of plain EM.
//!
//! The free energy of a pass is the sum over its batches, each under the parameters it met: a lower figure
//! than that of the parameters at the end of the pass, as long as they improve.

use super::e_step::Poor;
use super::kinds;
use super::m_step::{Columns, Update, Warning, m_step};
use super::points::Points;
use super::revive::{AT_LENGTH, BRIEFLY, revive};
use super::run::{How, Start, e_step};
use super::settings::Settings;
use super::statistics::Statistics;
use crate::Result;
use crate::parameters::{NoiseCov, Parameters};
use spikelet::rng::Rng;

/// alpha: between 0.5 (forgets fast) and 1 (weighs all batches alike). Values from 0.6 to 0.7 differ little.
const ALPHA: f64 = 0.6;

/// Passes that statistics remember with adaptive states, whose last step is one of all points.
const MEMORY: f64 = 0.5;

/// Part of the passes, and passes, after which latents are left alone, so that the rest only converges.
const REVIVE_UNTIL: f64 = 0.75;
const REVIVE_PASSES: usize = 8;
const REVIVE_PASSES_OF_SEARCH: usize = 5;

/// Batches between revivals, and between estimates of the noise, with adaptive states: steps are cheap there, and the first pass already
/// has most directions.
const REVIVE_EVERY: usize = 5;
const NOISE_EVERY: usize = 4;

/// M-steps, and passes at most, before which a start that anneals does not end because little changed: a latent that came to its direction
/// late is not there yet, and hardly shows in the free energy.
const SETTLING: (usize, usize) = (150, 15);

impl Settings {
    /// Passes in which latents are revived.
    fn revives(&self) -> usize {
        if self.is_adaptive() { REVIVE_PASSES_OF_SEARCH } else { REVIVE_PASSES }
    }

    /// Passes before which a run does not end by itself.
    pub(super) fn least_passes(&self) -> usize {
        self.revives() + if self.is_adaptive() { 1 } else { 2 }
    }

    /// Passes before which a start does not end because little changed.
    pub(super) fn passes_to_settle(&self, anneals: bool, points: usize) -> usize {
        let (steps, passes) = SETTLING;
        let settling = if anneals { steps.div_ceil(self.batches(points)).min(passes) } else { 0 };
        self.least_passes().max(settling)
    }

    /// Batches of a pass.
    fn batches(&self, points: usize) -> usize {
        (points as f64 / self.batch as f64).round().max(1.0) as usize
    }
}

/// One pass over the points; F as seen, and which guards acted.
pub(super) fn pass(
    settings: &Settings,
    start: &mut Start,
    points: &Points,
    threads: usize,
    update: &Update,
) -> Result<(f64, Vec<Warning>)> {
    let n = points.len();
    let number = start.history.len();
    let mut sums = start.sums.take().unwrap_or_else(|| expected(&start.parameters, n));
    let order = shuffled(points.runs(), settings.seed, start.number, number);
    // With few points there may be fewer runs than batches.
    let batches = settings.batches(n).min(order.len());
    let (mut free_energy, mut warnings) = (0.0, Vec::new());
    let mut poor: Vec<Poor> = Vec::new();
    let temperature = settings.temperature_at(number);
    let is_adaptive = settings.is_adaptive();
    // What a sum of latents leaves has directions that lack; what a maximum leaves has none.
    let training = kinds::of(settings.model);
    let all = settings.schedule.unwrap_or(settings.iterations) as f64;
    let revives = training.is_linear()
        && (start.anneals || !is_adaptive)
        && settings.model.kind().has_slab()
        && number < settings.revives()
        && ((number + 1) as f64) < REVIVE_UNTIL * all;
    for batch in 0..batches {
        let runs = &order[batch * order.len() / batches..(batch + 1) * order.len() / batches];
        let mut few = points.batch(runs);
        let kept = settings.kept_at(number, &start.parameters.prior);
        let t = number * batches + batch;
        let stage = settings.stage(start.anneals, number as f64 + batch as f64 / batches as f64);
        let engine = settings.engine_at(start.number, t);
        let how = How { engine, temperature, kept, options: stage.options, names_worst: revives };
        let (found, worst) = match stage.noise == 1.0 {
            true => e_step(settings, &start.parameters, &how, &mut few, threads)?,
            false => {
                let noise = start.parameters.noise.scaled(stage.noise);
                let noisy = Parameters { noise, ..start.parameters.clone() };
                e_step(settings, &noisy, &how, &mut few, threads)?
            }
        };
        free_energy += found.free_energy;
        poor.extend(worst);
        let eta = (t as f64 + 2.0).powf(-ALPHA);
        sums.blend(&found, if is_adaptive { eta.max(1.0 / (MEMORY * batches as f64)).min(1.0) } else { eta });
        let mut update = *update;
        if is_adaptive {
            update.columns = Columns::Improved;
            update.learned.prior &= !stage.holds_prior;
            // As much work as all columns are, and it changes slowly.
            update.learned.noise &= batch % NOISE_EVERY == NOISE_EVERY - 1 || batch + 1 == batches;
        }
        let (new, said) = m_step(&start.parameters, &sums, &update)?;
        start.parameters = new;
        warnings.extend(said);
        if is_adaptive && revives && (batch % REVIVE_EVERY == REVIVE_EVERY - 1 || batch + 1 == batches) {
            warnings.extend(revive(&mut start.parameters, &mut sums, std::mem::take(&mut poor), BRIEFLY));
        }
    }
    if revives && !is_adaptive {
        warnings.extend(revive(&mut start.parameters, &mut sums, poor, AT_LENGTH));
    }
    start.sums = Some(sums);
    Ok((free_energy, warnings))
}

/// 0..count in an order of its own for every pass of every start.
fn shuffled(count: usize, seed: u64, start: usize, pass: usize) -> Vec<usize> {
    let stream = (start as u64) << 32 | (pass as u64 + 1);
    let mut rng = Rng::new(seed.wrapping_add(stream.wrapping_mul(0xd134_2543_de82_ef95)));
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        let j = (rng.uniform::<f64>() * (i + 1) as f64) as usize;
        order.swap(i, j.min(i));
    }
    order
}

/// What a model expects of `points` points of its own: an M-step on it gives the model back.
pub(super) fn expected(parameters: &Parameters, points: usize) -> Statistics {
    let (d, h, n) = (parameters.dims, parameters.latents, points as f64);
    let (w, pi) = (&parameters.dictionary, &parameters.prior);
    // Without a slab, x = s: always 1 where it is on.
    let (mu, psi2) = match parameters.kind.kind().has_slab() {
        true => (parameters.slab_mean.clone(), parameters.slab_variances()),
        false => (vec![1.0; h], vec![0.0; h]),
    };
    let mut sums = Statistics::new(parameters);
    sums.points = points;
    for i in 0..h {
        sums.activity[i] = n * pi[i];
        sums.mean[i] = n * pi[i] * mu[i];
        sums.square[i] = n * pi[i] * (psi2[i] + mu[i] * mu[i]);
    }
    if !sums.share.is_empty() {
        // Whichever is on is seen in full.
        sums.share = (0..d * h).map(|e| sums.square[e % h]).collect();
        sums.cross = (0..d * h).map(|e| sums.square[e % h] * w[e]).collect();
        sums.power = parameters.noise_variances().iter().map(|v| n * v).collect();
        return sums;
    }
    for i in 0..h {
        for j in 0..i {
            sums.second[Statistics::place(i, j)] =
                n * pi[i] * pi[j] * (mu[i] * mu[j] + parameters.slab_covariance(i, j));
        }
        sums.second[Statistics::place(i, i)] = sums.square[i];
    }
    for i in 0..sums.slab.len() {
        sums.slab[i] = n * mu[i];
        for j in 0..h {
            sums.slab_second[i * h + j] = n * (mu[i] * mu[j] + parameters.slab_covariance(i, j));
        }
    }
    for i in 0..d {
        for j in 0..h {
            sums.cross[i * h + j] = (0..h).map(|k| w[i * h + k] * sums.second_moment(k, j)).sum();
        }
    }
    let explained =
        |i: usize, k: usize| -> f64 { (0..h).map(|j| sums.cross[i * h + j] * w[k * h + j]).sum() };
    sums.power = match &parameters.noise {
        NoiseCov::Full(sigma) => (0..d * d).map(|e| explained(e / d, e % d) + n * sigma[e]).collect(),
        _ => parameters.noise_variances().iter().enumerate().map(|(i, v)| explained(i, i) + n * v).collect(),
    };
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ModelKind, SlabCov};
    use crate::train::{Guard, Learned};

    #[test]
    fn an_m_step_on_what_a_model_expects_gives_it_back() {
        let mut rng = Rng::new(3);
        let sigma = vec![0.4, 0.1, 0.1, 0.3];
        let psi2 = vec![1.0, 2.0, 0.5];
        let psi = vec![1.0, 0.2, 0.1, 0.2, 2.0, -0.3, 0.1, -0.3, 0.5];
        for (noise, slab_cov) in [
            (NoiseCov::Shared(0.3), SlabCov::Diagonal(psi2.clone())),
            (NoiseCov::Diagonal(vec![0.1, 0.4]), SlabCov::Diagonal(psi2)),
            (NoiseCov::Full(sigma), SlabCov::Full(psi)),
        ] {
            let model = Parameters {
                kind: ModelKind::Gsc,
                dims: 2,
                latents: 3,
                dictionary: (0..6).map(|_| rng.normal()).collect(),
                prior: vec![0.1, 0.3, 0.6],
                slab_mean: vec![0.5, -1.0, 0.0],
                slab_cov,
                noise,
            };
            let all = Learned { dictionary: true, prior: true, slab: true, noise: true };
            let free = Guard { noise_floor: 0.0, prior_margin: 0.0, slab_floor: 0.0 };
            let (new, warnings) = m_step(&model, &expected(&model, 1000), &Update::new(all, free)).unwrap();
            assert_eq!(warnings, []);
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-11);
            assert!(close(&new.dictionary, &model.dictionary) && close(&new.prior, &model.prior));
            assert!(close(&new.slab_mean, &model.slab_mean));
            let covariance =
                |p: &Parameters| -> Vec<f64> { (0..9).map(|e| p.slab_covariance(e / 3, e % 3)).collect() };
            assert!(close(&covariance(&new), &covariance(&model)));
            assert!(close(&new.noise_variances(), &model.noise_variances()));
        }
    }

    #[test]
    fn orders_are_permutations_and_differ() {
        let order = shuffled(100, 1, 0, 0);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(order, shuffled(100, 1, 0, 1));
        assert_ne!(order, shuffled(100, 1, 1, 0));
        assert_eq!(order, shuffled(100, 1, 0, 0));
        assert_eq!(shuffled(0, 1, 0, 0), [] as [usize; 0]);
    }
}
