//! Problems for samplers, and posteriors to compare them with.

use super::exact;
use spikelet::math::Real;
use spikelet::rng::Rng;
use spikelet::{Detail, Engine, Gibbs, Inference, Model, arena_len, gibbs_arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{Options, Prepared, SelectionName};

/// Kinds whose states can be listed.
pub const ENUMERABLE: [ModelKind; 4] = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];

/// A random model with moderate noise, where chains mix.
pub fn model(kind: ModelKind, d: usize, h: usize, seed: u64) -> Parameters {
    let mut rng = Rng::new(seed);
    let mut normal = || rng.standard::<f64>();
    let is_positive = kind.kind().is_non_negative();
    let dictionary = (0..d * h).map(|_| normal()).map(|w| if is_positive { w.abs() } else { w }).collect();
    let prior = (0..h).map(|i| 0.15 + 0.1 * i as f64 / h as f64).collect();
    let noise = match seed % 2 {
        0 => NoiseCov::Shared(0.6),
        _ => NoiseCov::Diagonal((0..d).map(|i| 0.4 + 0.1 * i as f64).collect()),
    };
    if !kind.kind().has_slab() {
        return Parameters::binary(kind, dictionary, d, prior, noise);
    }
    let (slab_mean, variances) = ((0..h).map(|i| 0.3 * i as f64).collect(), vec![1.3; h]);
    let slab_cov = SlabCov::Diagonal(variances);
    Parameters { kind, dims: d, latents: h, dictionary, prior, slab_mean, slab_cov, noise }
}

pub fn sample(d: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed ^ 0xabcd);
    (0..d).map(|_| 1.5 * rng.standard::<f64>()).collect()
}

/// How often a problem is sampled.
pub const RUNS: usize = 40;

/// All latents selected, any number on, no states beside.
pub fn options(kind: ModelKind, h: usize) -> Options {
    Options { singletons: false, selection: SelectionName::of_kind(kind), ..exact(h) }
}

pub fn convert<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&v| T::from_f64(v)).collect()
}

/// activity, mean and variance of each latent, then second moments if asked for.
pub type Numbers = Vec<f64>;

pub fn numbers<T: Real>(estimate: &spikelet::Estimate<'_, T>) -> Numbers {
    let h = estimate.activity.len();
    let mut second = vec![0.0; if estimate.second.is_empty() { 0 } else { h * h }];
    let width = estimate.selected.len();
    for (at, value) in estimate.second.iter().enumerate() {
        let [i, j] = [at / width, at % width].map(|p| usize::from(estimate.selected[p]));
        second[i * h + j] = value.to_f64();
    }
    let marginals = estimate.activity.iter().chain(estimate.mean).chain(estimate.variance);
    marginals.map(|v| v.to_f64()).chain(second).collect()
}

/// By enumeration.
pub fn enumerated(parameters: &Parameters, y: &[f64], detail: Detail) -> Numbers {
    let prepared = Prepared::<f64>::new(parameters, &options(parameters.kind, parameters.latents)).unwrap();
    let model = prepared.model().unwrap();
    let mut memory = vec![0.0; arena_len(model.shape, detail)];
    let mut inference = Inference::with_detail(model, &mut memory, detail).unwrap();
    numbers(&inference.infer(y).unwrap())
}

/// What a sampler says, run after run.
pub struct Sampled {
    pub runs: Vec<Numbers>,
    /// Draws in each of them.
    pub draws: f64,
    /// H.
    pub latents: usize,
}

/// By sampling.
pub fn sampled<T: Real>(model: Model<'_, T>, settings: Gibbs, y: &[f64], detail: Detail) -> Sampled {
    let mut memory = vec![T::ZERO; gibbs_arena_len(model.shape, detail)];
    let engine = Engine::Gibbs(settings);
    let mut inference = Inference::with_engine(model, &mut memory, detail, engine).unwrap();
    let y: Vec<T> = convert(y);
    let runs = (0..RUNS).map(|_| numbers(&inference.infer(&y).unwrap())).collect();
    Sampled { runs, draws: settings.draws() as f64, latents: model.shape.latents }
}
