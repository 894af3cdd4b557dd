//! Random models and samples, hard in the ways that are set.

use proptest::prelude::*;
use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, SelectionName, StatesName};

/// Kinds that have adaptive states.
pub const KINDS: [ModelKind; 4] = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];

/// A model and a sample, hard in the ways that are set.
#[derive(Clone, Debug)]
pub struct Problem {
    pub parameters: Parameters,
    pub options: Options,
    pub sample: Vec<f64>,
    pub is_hard: bool,
}

/// What is hard about a problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hard {
    /// Noise 100 dB below the signal.
    pub quiet_noise: bool,
    /// Columns that differ by a thousandth.
    pub parallel: bool,
    /// Slabs far narrower than their means.
    pub narrow: bool,
    /// Priors of 1e-12 and 1 - 1e-12.
    pub certain: bool,
    /// A sample 1000 times louder than the model's, in no direction of its own.
    pub outlier: bool,
    /// Nothing at all.
    pub silent: bool,
}

impl Hard {
    pub fn any(self) -> bool {
        let Self { quiet_noise, parallel, narrow, certain, outlier, silent } = self;
        quiet_noise || parallel || narrow || certain || outlier || silent
    }
}

pub fn problem(kind: ModelKind, d: usize, h: usize, seed: u64, hard: Hard) -> Problem {
    let mut rng = Rng::new(seed);
    let is_positive = kind.kind().is_non_negative();
    let mut dictionary: Vec<f64> =
        (0..d * h).map(|_| rng.normal::<f64>()).map(|w| if is_positive { w.abs() } else { w }).collect();
    if hard.parallel {
        for column in (1..h).step_by(2) {
            for row in dictionary.chunks_exact_mut(h) {
                row[column] = row[column - 1] * (1.0 + 1e-3 * rng.uniform::<f64>());
            }
        }
    }
    let uniform = |rng: &mut Rng, low: f64, high: f64| low + (high - low) * rng.uniform::<f64>();
    let sigma2 = if hard.quiet_noise { 1e-10 } else { 10f64.powf(uniform(&mut rng, -1.5, 0.0)) };
    let noise = match seed % 3 {
        0 => NoiseCov::Shared(sigma2),
        2 if !kind.kind().is_maximal() => {
            let a: Vec<f64> = (0..d * d).map(|_| rng.normal()).collect();
            let entry =
                |i: usize, j: usize| (0..d).map(|k| a[i * d + k] * a[j * d + k]).sum::<f64>() / d as f64;
            let entries = (0..d * d).map(|at| (at / d, at % d));
            NoiseCov::Full(
                entries.map(|(i, j)| sigma2 * (0.3 * entry(i, j) + f64::from(u8::from(i == j)))).collect(),
            )
        }
        _ => NoiseCov::Diagonal((0..d).map(|_| sigma2 * uniform(&mut rng, 0.5, 2.0)).collect()),
    };
    let prior: Vec<f64> = (0..h)
        .map(|i| match (hard.certain, i % 3) {
            (true, 0) => 1e-12,
            (true, 1) => 1.0 - 1e-12,
            _ => uniform(&mut rng, 0.05, 0.4),
        })
        .collect();
    let has_mean = hard.narrow || seed % 5 > 1;
    let slab_mean: Vec<f64> = (0..h)
        .map(|_| {
            if hard.narrow {
                10.0 * rng.normal::<f64>()
            } else if has_mean {
                rng.normal()
            } else {
                0.0
            }
        })
        .collect();
    let slab: Vec<f64> =
        (0..h).map(|_| uniform(&mut rng, 0.3, 3.0) * if hard.narrow { 1e-8 } else { 1.0 }).collect();
    let x: Vec<f64> = (0..h)
        .map(|i| match (rng.uniform::<f64>() < 0.35, kind.kind().has_slab()) {
            (true, true) => slab_mean[i] + slab[i].sqrt() * rng.normal::<f64>(),
            (on, _) => f64::from(u8::from(on)),
        })
        .collect();
    let sample = dictionary.chunks_exact(h).map(|row| {
        let parts = row.iter().zip(&x).map(|(w, x)| w * x);
        let clean = if kind.kind().is_maximal() { parts.fold(0.0, f64::max) } else { parts.sum() };
        let outlier = if hard.outlier { 1e3 * rng.normal::<f64>() } else { 0.0 };
        let noisy = clean + outlier + sigma2.sqrt() * rng.normal::<f64>();
        if hard.silent { 0.0 } else { noisy }
    });
    let sample = sample.collect();
    let parameters = if kind.kind().has_slab() {
        let (dims, latents, slab_cov) = (d, h, SlabCov::Diagonal(slab));
        Parameters { kind, dims, latents, dictionary, prior, slab_mean, slab_cov, noise }
    } else {
        Parameters::binary(kind, dictionary, d, prior, noise)
    };
    let selected = 1 + (seed / 7 % h as u64) as usize;
    let max_active = 1 + (seed / 91 % selected as u64) as usize;
    let is_full = matches!(parameters.noise, NoiseCov::Full(_));
    let options = Options {
        selected,
        max_active,
        singletons: false,
        selection: if is_full { SelectionName::Singleton } else { SelectionName::of_kind(kind) },
        states: Some(StatesName::Adaptive),
        expansions: [1, 2, 4, 8, 64][(seed / 13 % 5) as usize],
        gram: if seed.is_multiple_of(2) || is_full { GramName::Stored } else { GramName::Computed },
    };
    let options = if is_full && kind == ModelKind::Gsc {
        options
    } else if is_full {
        Options { selection: SelectionName::Cosine, ..options }
    } else {
        options
    };
    Problem { parameters, options, sample, is_hard: hard.any() }
}

pub fn problems(hard: bool) -> impl Strategy<Value = Problem> {
    let hardness = prop::collection::vec(prop::bool::weighted(0.3), 6);
    (0..4usize, 2..9usize, 1..11usize, any::<u64>(), hardness).prop_map(move |(kind, d, h, seed, bits)| {
        let [quiet_noise, parallel, narrow, certain, outlier, silent] = bits[..] else { unreachable!() };
        let silent = silent && seed.is_multiple_of(2);
        let chosen = Hard { quiet_noise, parallel, narrow, certain, outlier, silent };
        problem(KINDS[kind], d, h, seed, if hard { chosen } else { Hard::default() })
    })
}
