//! Inference in integers: against the same model in double precision, on samples that are too loud, and with numbers that
//! no exporter writes.

mod common;

use common::the_same_cases_every_time;
use proptest::prelude::*;
use spikelet::blob::BlobError;
use spikelet::math::Real;
use spikelet::model::{FixedLatent, Model, ModelError, Noise, States, Width};
use spikelet::rng::Rng;
use spikelet::{Blob, Detail, Inference, arena_len};
use spikelet_trainer::blob;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};

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
    (
        parameters,
        Options {
            selected,
            max_active,
            singletons: false,
            selection,
            states: Some(StatesName::Adaptive),
            expansions: Options::EXPANSIONS,
            gram,
        },
        sample,
    )
}

/// A model in integers, of any shape that there can be, and a sample.
fn in_integers<T: Real>(
    (dims, latents, selected, max_active): (usize, usize, usize, usize),
    alike: f64,
    log_sigma: f64,
    seed: u64,
) -> (Prepared<T>, Vec<f64>) {
    let selected = selected.min(latents);
    let shape = [dims, latents, selected, max_active.min(selected)];
    let (parameters, options, sample) = problem(shape, alike, 10f64.powf(log_sigma), seed);
    let width = if seed.is_multiple_of(3) { Width::I8 } else { Width::I16 };
    let prepared = Prepared::quantized(&parameters, &options, width).unwrap();
    (prepared.in_fixed_point().unwrap(), sample)
}

/// What is found about a sample; the general way, in floats, where that is with second moments.
struct Seen {
    activity: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    evidence: f64,
    is_fixed: bool,
}

fn infer<T: Real>(model: Model<'_, T>, detail: Detail, sample: &[f64]) -> Seen {
    let mut memory = vec![T::ZERO; arena_len(model.shape, detail)];
    let mut inference = Inference::with_detail(model, &mut memory, detail).unwrap();
    let sample: Vec<T> = sample.iter().map(|&y| T::from_f64(y)).collect();
    let found = inference.infer(&sample).unwrap();
    let wide = |values: &[T]| values.iter().map(|value| value.to_f64()).collect();
    let (activity, mean, variance) = (wide(found.activity), wide(found.mean), wide(found.variance));
    Seen { activity, mean, variance, evidence: found.evidence.to_f64(), is_fixed: inference.is_fixed() }
}

/// Largest differences of activities, of means in deviations, of variances in part, and of the evidence.
fn differences(a: &Seen, b: &Seen) -> [f64; 4] {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let means = a.mean.iter().zip(&b.mean).zip(&b.variance);
    let variances = a.variance.iter().zip(&b.variance);
    [
        largest(&mut a.activity.iter().zip(&b.activity).map(|(a, b)| (a - b).abs())),
        largest(&mut means.map(|((a, b), v)| (a - b).abs() / (v.sqrt() + 1e-3))),
        largest(&mut variances.map(|(a, b)| (a - b).abs() / (b + 1e-3))),
        (a.evidence - b.evidence).abs(),
    ]
}

fn shapes() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    (2..7usize, 1..12usize, 1..12usize, 1..12usize)
}

/// y^T Sigma^-1 y of a model whose noise is the same everywhere.
fn energy<T: Real>(model: &Model<'_, T>, sample: &[f64]) -> f64 {
    let Noise::Shared(precision) = model.noise else { panic!("other noise") };
    precision.to_f64() * sample.iter().map(|y| y * y).sum::<f64>()
}

/// All that is found about a sample, digit by digit.
fn text(inference: &mut Inference<'_, f32>, sample: &[f32]) -> String {
    format!("{:?}", inference.infer(sample))
}

/// Numbers of a latent that pass the checks.
fn possible() -> impl Strategy<Value = FixedLatent> {
    let most = 1 << 27;
    (1 << 30..=i32::MAX, -100..=100, -most..=most, -most..=most, -1 << 30..=1 << 30, 16..=1 << 30).prop_map(
        |(scale, exponent, offset, logit, pull, least)| FixedLatent {
            scale,
            exponent,
            offset,
            logit,
            pull,
            least,
        },
    )
}

proptest! {
    #![proptest_config(the_same_cases_every_time(600))]

    /// The Gram matrix and the scales have the 24 digits of a float: exponents, at most 32768 nats, are off by up to
    /// 2^15 x 2^-23 = 0.004 nats. An activity moves by a quarter of that, a mean by as much of the distance of two states, which
    /// is a few deviations; a variance by twice. The evidence has as much of
    /// the energy and of each of three latents.
    #[test]
    fn integers_search_as_floats_do(
        shape in shapes(),
        alike in 0.0..0.95f64,
        log_sigma in -2.5..0.5f64,
        seed in any::<u64>(),
    ) {
        let (prepared, sample) = in_integers::<f64>(shape, alike, log_sigma, seed);
        let model = prepared.model().unwrap();
        let (fixed, floats) =
            (infer(model, Detail::Marginals, &sample), infer(model, Detail::SecondMoments, &sample));
        prop_assert!(!floats.is_fixed);
        // What is louder is tested beside the code.
        if energy(&model, &sample) > 65_000.0 {
            return Ok(());
        }
        prop_assert!(fixed.is_fixed);
        let found = differences(&fixed, &floats);
        for (found, allowed) in found.into_iter().zip([1e-3, 4e-3, 8e-3, 0.02]) {
            prop_assert!(found < allowed, "{found} is not below {allowed}");
        }
        // What device and desktop have: the same integers, results with fewer digits.
        let (prepared, _) = in_integers::<f32>(shape, alike, log_sigma, seed);
        let single = infer(prepared.model().unwrap(), Detail::Marginals, &sample);
        let found = differences(&single, &fixed);
        prop_assert!(single.is_fixed && found[0] < 1e-3 && found[1] < 4e-3, "{found:?}");
    }

    /// Beyond what integers hold, bits are those of floats; and a sample says nothing about the next.
    #[test]
    fn samples_say_nothing_about_the_next(shape in shapes(), seed in any::<u64>(), scales in prop::collection::vec(-1..8i32, 2..8)) {
        let (prepared, sample) = in_integers::<f32>(shape, 0.3, -1.0, seed);
        let model = prepared.model().unwrap();
        let mut memory = [(); 3].map(|()| vec![0.0; model.arena_len()]);
        let [first, second, third] = &mut memory;
        let mut inference = Inference::new(model, first).unwrap();
        let mut floats = Inference::new(Model { fixed: None, ..model }, second).unwrap();
        for scale in scales {
            let scale = 10f64.powi(scale);
            let sample: Vec<f32> = sample.iter().map(|y| (scale * y) as f32).collect();
            let wide: Vec<f64> = sample.iter().map(|&y| y.into()).collect();
            let found = text(&mut inference, &sample);
            prop_assert_eq!(&found, &text(&mut Inference::new(model, third).unwrap(), &sample));
            prop_assert!(inference.is_fixed() || energy(&model, &wide) > 4e9);
            if !inference.is_fixed() {
                prop_assert_eq!(found, text(&mut floats, &sample));
            }
        }
    }

    /// Whatever a blob says that passes the checks: results, or an error.
    #[test]
    fn any_possible_numbers_give_results(
        shape in shapes(),
        seed in any::<u64>(),
        wild in prop::collection::vec(possible(), 12),
        scale in -3..8i32,
    ) {
        let (prepared, sample) = in_integers::<f32>(shape, 0.5, -1.0, seed);
        let model = prepared.model().unwrap();
        let model = Model::new(Model { fixed: Some(&wild[..model.shape.latents]), ..model }).unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let sample: Vec<f32> = sample.iter().map(|y| (y * 10f64.powi(scale)) as f32).collect();
        if let Ok(found) = inference.infer(&sample) {
            prop_assert!(found.activity.iter().all(|a| (-1e-6..=1.0 + 1e-6).contains(a)), "{:?}", found.activity);
            prop_assert!(found.mean.iter().chain(found.variance).all(|x| x.is_finite()));
        }
    }
}

/// Integers from an ADC are what the same numbers as floats are, bit for bit, when the step is a power of two.
#[test]
fn samples_of_integers() {
    let (prepared, _) = in_integers::<f32>((6, 11, 8, 3), 0.3, -1.0, 4);
    let model = prepared.model().unwrap();
    let mut memory = [vec![0.0; model.arena_len()], vec![0.0; model.arena_len()]];
    let [first, second] = &mut memory;
    let (mut a, mut b) = (Inference::new(model, first).unwrap(), Inference::new(model, second).unwrap());
    let mut rng = Rng::new(1);
    for n in 0..200 {
        // Some do not fit the packed sample and are rounded.
        let loudness = [300.0, 3000.0, 20_000.0][n % 3];
        let y: Vec<i16> = (0..6).map(|_| (loudness * rng.normal::<f32>()) as i16).collect();
        let step = [1.0 / 8192.0, 1.0 / 2048.0, 1.0 / 65_536.0][n % 3];
        let floats: Vec<f32> = y.iter().map(|&y| f32::from(y) * step).collect();
        let of_integers = format!("{:?}", a.infer_i16(&y, step));
        assert!(a.is_fixed());
        assert_eq!(of_integers, text(&mut b, &floats));
    }
}

/// States are visited in floats: their probabilities add up to the same activities.
#[test]
fn states_agree_with_activities() {
    for seed in 0..40 {
        let (prepared, sample) = in_integers::<f32>((5, 9, 6, 3), 0.3, -0.7, seed);
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let sample: Vec<f32> = sample.iter().map(|&y| y as f32).collect();
        let activity = inference.infer(&sample).unwrap().activity.to_vec();
        let (mut all, mut sums) = (0.0, vec![0.0; activity.len()]);
        inference.for_each_state(|latents, probability| {
            all += probability;
            latents.iter().for_each(|&latent| sums[usize::from(latent)] += probability);
        });
        assert!((all - 1.0).abs() < 2e-3, "{all}");
        for (sum, activity) in sums.iter().zip(activity) {
            assert!((sum - activity).abs() < 2e-3, "{sum} {activity}");
        }
    }
}

/// Coefficients of latents that are nearly the same are far larger than the sample: right, or in floats.
#[test]
fn coefficients_out_of_proportion() {
    let dictionary = vec![-1.0, 1.0, 1.0, 0.0, 0.01, -0.01, 0.0041, 0.0041, 0.0041];
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims: 3,
        latents: 3,
        dictionary,
        prior: vec![0.3; 3],
        slab_mean: vec![0.0; 3],
        slab_cov: SlabCov::Diagonal(vec![16_777_216.0; 3]),
        noise: NoiseCov::Shared(1.0),
    };
    let (selection, gram) = (SelectionName::Singleton, GramName::Auto);
    let options = Options {
        selected: 3,
        max_active: 3,
        singletons: false,
        selection,
        states: Some(StatesName::Adaptive),
        expansions: Options::EXPANSIONS,
        gram,
    };
    let prepared = Prepared::<f64>::quantized(&parameters, &options, Width::I16).unwrap();
    let prepared = prepared.in_fixed_point().unwrap();
    let model = prepared.model().unwrap();
    for scale in [0.01, 0.1, 0.3, 1.0] {
        let sample = [-100.0 * scale, 0.0, 224.0 * scale];
        let [fixed, floats] =
            [Detail::Marginals, Detail::SecondMoments].map(|detail| infer(model, detail, &sample));
        for (a, b) in fixed.mean.iter().zip(&floats.mean) {
            assert!((a - b).abs() < 0.01 * b.abs() + 1.0, "{scale}: {a} {b}");
        }
    }
}

/// Stages again, after states were visited; and without a selection.
#[test]
fn stages_in_other_orders() {
    let (prepared, sample) = in_integers::<f32>((5, 9, 6, 3), 0.3, -0.7, 2);
    let model = prepared.model().unwrap();
    let sample: Vec<f32> = sample.iter().map(|&y| y as f32).collect();
    let mut memory = [vec![0.0; model.arena_len()], vec![f32::NAN; model.arena_len()]];
    let [first, second] = &mut memory;
    let mut inference = Inference::new(model, first).unwrap();
    let before = text(&mut inference, &sample);
    inference.for_each_state(|_, _| {});
    inference.select();
    assert_eq!(format!("{:?}", inference.posterior()), before);
    let mut inference = Inference::new(model, second).unwrap();
    inference.project(&sample).unwrap();
    assert!(inference.posterior().is_ok());
}

/// With other adaptive states it stays in integers; the papers' sets are for floats.
#[test]
fn other_truncations() {
    let (prepared, _) = in_integers::<f32>((5, 11, 6, 3), 0.3, -0.7, 1);
    let model = prepared.model().unwrap();
    let fixed = |states| model.with_states(4, 2, states).unwrap().fixed.is_some();
    assert!(fixed(States::Adaptive { expansions: 2 }) && !fixed(States::Subsets));

    let (parameters, options, _) = problem([5, 11, 6, 3], 0.3, 0.2, 1);
    let options = Options { states: Some(StatesName::Subsets), ..options };
    let prepared = Prepared::<f32>::quantized(&parameters, &options, Width::I16).unwrap();
    let refused = prepared.in_fixed_point().err().unwrap().to_string();
    assert!(refused.contains("--states adaptive"), "{refused}");
}

#[test]
fn hostile_numbers_are_refused() {
    let (prepared, _) = in_integers::<f32>((4, 5, 5, 2), 0.3, -0.7, 1);
    let model = prepared.model().unwrap();
    let good = model.fixed.unwrap().to_vec();
    let with = |fixed: &[FixedLatent]| Model::new(Model { fixed: Some(fixed), ..model }).map(|_| ());
    assert_eq!(with(&good), Ok(()));
    let (field, expected, found) = ("fixed", 5, 4);
    assert_eq!(with(&good[..4]), Err(ModelError::Length { field, expected, found }));
    let kept = good[3];
    for hostile in [
        FixedLatent { scale: (1 << 30) - 1, ..kept },
        FixedLatent { scale: -1, ..kept },
        FixedLatent { exponent: 101, ..kept },
        FixedLatent { offset: i32::MIN, ..kept },
        FixedLatent { logit: 1 << 28, ..kept },
        FixedLatent { pull: i32::MIN, ..kept },
        FixedLatent { least: 15, ..kept },
        FixedLatent { least: -1, ..kept },
    ] {
        let mut latents = good.clone();
        latents[3] = hostile;
        assert_eq!(with(&latents), Err(ModelError::Range { field, index: 3 }), "{hostile:?}");
    }
    let floats = spikelet::model::Dictionary::Float(&[0.5; 32]);
    let of_floats = Model::new(Model { dictionary: floats, fixed: Some(&good), ..model });
    assert_eq!(of_floats.err(), Some(ModelError::Unfit { field }));

    // A section that is no whole number of latents.
    let bytes = blob::write(&prepared, &SlabCov::Unit, "").unwrap();
    let entry = (48..).step_by(16).find(|&at| bytes[at..].starts_with(b"FIXD")).unwrap();
    let mut short = bytes.clone();
    short[entry + 8..entry + 12].copy_from_slice(&116u32.to_le_bytes());
    let crc = spikelet::blob::crc32(&short[16..]).to_le_bytes();
    short[12..16].copy_from_slice(&crc);
    for (bytes, expected) in [(bytes, None), (short, Some(BlobError::SectionLength { tag: *b"FIXD" }))] {
        let mut memory = vec![0; bytes.len() + 8];
        let start = memory.as_ptr().align_offset(8);
        memory[start..start + bytes.len()].copy_from_slice(&bytes);
        assert_eq!(Blob::parse(&memory[start..start + bytes.len()]).err(), expected);
    }
}
