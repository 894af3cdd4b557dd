//! Posteriors in integers against the same model's in floats of twice the digits, from whispers to what is too loud for them.

mod common;

use common::the_same_cases_every_time;
use proptest::prelude::*;
use spikelet::model::{Model, Width};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference, arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};

/// A model, with columns as alike as `alike` says, and a sample that several latents have a part in.
fn problem(
    [dims, latents, selected, max_active]: [usize; 4],
    alike: f64,
    sigma: f64,
    seed: u64,
) -> (Parameters, Options, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let common: Vec<f64> = (0..dims).map(|_| rng.normal()).collect();
    let rest = (1.0 - alike * alike).sqrt();
    let dictionary: Vec<f64> =
        (0..dims * latents).map(|at| alike * common[at / latents] + rest * rng.normal::<f64>()).collect();
    let mut x = vec![0.0; latents];
    for _ in 0..1 + rng.below(3) {
        x[usize::from(rng.below(latents as u16))] = rng.normal::<f64>() + 0.3;
    }
    let rows = dictionary.chunks_exact(latents);
    let sample = rows.map(|row| {
        let clean: f64 = row.iter().zip(&x).map(|(w, x)| w * x).sum();
        clean + sigma * rng.normal::<f64>()
    });
    let sample: Vec<f64> = sample.collect();
    // Twelve digits, which the packed sample has room for: all that differs is what comes after it.
    let most = sample.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
    let step = (most.log2().ceil() - 12.0).exp2();
    let sample = sample.iter().map(|y| (y / step).round() * step).collect();
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary,
        prior: (0..latents).map(|_| 0.02 + 0.4 * rng.uniform::<f64>()).collect(),
        slab_mean: (0..latents).map(|_| 0.5 * rng.normal::<f64>()).collect(),
        slab_cov: SlabCov::Diagonal((0..latents).map(|_| rng.normal::<f64>().exp()).collect()),
        noise: NoiseCov::Shared(sigma * sigma),
    };
    let selection = SelectionName::Singleton;
    let gram = if seed.is_multiple_of(2) { GramName::Stored } else { GramName::Auto };
    (parameters, Options { selected, max_active, singletons: true, selection, states: None, gram }, sample)
}

/// What is found about a sample; floats of the general way with second moments, which integers do not find.
struct Seen {
    activity: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    evidence: f64,
    kept: usize,
}

fn infer(model: Model<'_, f64>, detail: Detail, sample: &[f64]) -> Seen {
    let mut memory = vec![0.0; arena_len(model.shape, detail)];
    let mut inference = Inference::with_detail(model, &mut memory, detail).unwrap();
    let found = inference.infer(sample).unwrap();
    let (activity, mean, variance) = (found.activity.to_vec(), found.mean.to_vec(), found.variance.to_vec());
    Seen { activity, mean, variance, evidence: found.evidence, kept: inference.kept().len() }
}

/// Largest differences of activities, of means in deviations, of variances in part, and of the evidence.
fn differences(a: &Seen, b: &Seen) -> [f64; 4] {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let both = || a.activity.iter().zip(&b.activity);
    let means = a.mean.iter().zip(&b.mean).zip(&b.variance);
    let variances = a.variance.iter().zip(&b.variance);
    [
        largest(&mut both().map(|(a, b)| (a - b).abs())),
        largest(&mut means.map(|((a, b), v)| (a - b).abs() / (v.sqrt() + 1e-3))),
        largest(&mut variances.map(|(a, b)| (a - b).abs() / (b + 1e-3))),
        (a.evidence - b.evidence).abs(),
    ]
}

proptest! {
    #![proptest_config(the_same_cases_every_time(600))]

    #[test]
    fn integers_walk_as_floats_do(
        shape in (1..6usize, 1..12usize, 1..11usize, 1..4usize),
        alike in 0.0..0.95f64,
        log_sigma in -2.5..0.5f64,
        seed in any::<u64>(),
        eight in any::<bool>(),
    ) {
        let (dims, latents, selected, max_active) = (shape.0 + 1, shape.1, shape.2.min(shape.1), shape.3);
        let max_active = max_active.min(selected);
        let (parameters, options, sample) =
            problem([dims, latents, selected, max_active], alike, 10f64.powf(log_sigma), seed);
        let width = if eight { Width::I8 } else { Width::I16 };
        let prepared = Prepared::<f64>::quantized(&parameters, &options, width).unwrap().in_fixed_point().unwrap();
        let model = prepared.model().unwrap();
        let integers = infer(model, Detail::Marginals, &sample);
        let floats = infer(model, Detail::SecondMoments, &sample);
        let found = differences(&integers, &floats);
        println!("{found:?} {}", integers.kept);
    }
}
