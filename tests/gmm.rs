//! Mixtures and learned scores: against the definition, scikit-learn's likelihoods, and the device's code against the desktop's.

mod common;

use spikelet::blob::BlobError;
use spikelet::math::Real;
use spikelet::model::Selection;
use spikelet::rng::Rng;
use spikelet::{Blob, Detail, Engine, Error, Gibbs, Inference, Kind, ModelError, arena_len};
use spikelet_trainer::blob;
use spikelet_trainer::gp::KernelName;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};
use spikelet_trainer::train::gp_select::GpSelect;
use spikelet_trainer::train::settings::{Engine as Training, NoiseForm, Settings};
use spikelet_trainer::train::{Next, Points, State};

const D: usize = 4;
const C: usize = 7;

/// The forms that the noise of a mixture has.
fn noises(rng: &mut Rng) -> [NoiseCov; 4] {
    let mut variance = || 0.2 + f64::from(rng.uniform::<f32>());
    let each: Vec<f64> = (0..D).map(|_| variance()).collect();
    let components = (0..D * C).map(|_| variance()).collect();
    let full = (0..D * D).map(|e| if e / D == e % D { each[e / D] + 0.3 } else { 0.1 }).collect();
    [
        NoiseCov::Shared(variance()),
        NoiseCov::Diagonal(each),
        NoiseCov::Full(full),
        NoiseCov::Components(components),
    ]
}

fn mixture(noise: NoiseCov, rng: &mut Rng) -> Parameters {
    let means = (0..D * C).map(|_| f64::from(2.0 * rng.normal::<f32>())).collect();
    let prior = (0..C).map(|_| 0.05 + 0.1 * rng.uniform::<f64>()).collect();
    Parameters::binary(ModelKind::Gmm, means, D, prior, noise)
}

fn options(selected: usize, singletons: bool) -> Options {
    Options {
        selected,
        max_active: 1,
        singletons,
        selection: SelectionName::Singleton,
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Auto,
    }
}

/// The squared distance from a component, and ln p(y, c), from the definition.
fn definition(model: &Parameters, y: &[f64], c: usize) -> (f64, f64) {
    let off: Vec<f64> = (0..D).map(|i| y[i] - model.dictionary[i * C + c]).collect();
    let entry = |i: usize, j: usize| match &model.noise {
        NoiseCov::Components(sigma2) if i == j => sigma2[i * C + c],
        NoiseCov::Components(_) => 0.0,
        _ => model.noise_covariance(i, j),
    };
    // Gauss's elimination: |Sigma| and Sigma^-1 (y - mu).
    let mut rows: Vec<Vec<f64>> =
        (0..D).map(|i| (0..D).map(|j| entry(i, j)).chain([off[i]]).collect()).collect();
    let mut log_det = 0.0;
    for k in 0..D {
        log_det += rows[k][k].ln();
        let pivot = rows[k].clone();
        for (i, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            assert_ne!(i, k);
        }
    }
    let distance: f64 = (0..D).map(|i| off[i] * rows[i][D] / rows[i][i]).sum();
    let prior = model.prior[c] / model.prior.iter().sum::<f64>();
    (distance, prior.ln() - 0.5 * (distance + log_det + D as f64 * std::f64::consts::TAU.ln()))
}

/// Against the definition, over `kept` components or all.
fn check<T: Real>(model: &Parameters, options: &Options, y: &[f64], tolerance: f64) {
    let prepared = Prepared::<T>::new(model, options).unwrap();
    let shape = prepared.model().unwrap().shape;
    let mut memory = vec![T::from_f64(f64::NAN); arena_len(shape, Detail::SecondMoments)];
    let mut inference =
        Inference::with_detail(prepared.model().unwrap(), &mut memory, Detail::SecondMoments).unwrap();
    let sample: Vec<T> = y.iter().map(|&y| T::from_f64(y)).collect();
    let found = inference.infer(&sample).unwrap();
    let exact: Vec<(f64, f64)> = (0..C).map(|c| definition(model, y, c)).collect();
    let counts = |c: usize| options.singletons || found.selected.contains(&(c as u16));
    let most = (0..C).filter(|&c| counts(c)).map(|c| exact[c].1).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = (0..C).filter(|&c| counts(c)).map(|c| (exact[c].1 - most).exp()).sum();
    let evidence = most + sum.ln();
    let scale = 1.0 + evidence.abs();
    let what = format!("{:?}, {} of {C}", model.noise, options.selected);
    assert!(
        (found.evidence.to_f64() - evidence).abs() < tolerance * scale,
        "{what}: {:?} {evidence}",
        found.evidence
    );
    for (c, (distance, joint)) in exact.iter().enumerate() {
        let q = if counts(c) { (joint - evidence).exp() } else { 0.0 };
        assert!(
            (found.activity[c].to_f64() - q).abs() < tolerance * scale,
            "{what}: {:?} {q}",
            found.activity[c]
        );
        let far = (found.distance[c].to_f64() - distance).abs();
        assert!(far < tolerance * (1.0 + 10.0 * distance), "{what}: {:?} {distance}", found.distance[c]);
        assert_eq!(found.mean[c], found.activity[c]);
    }
    // <s s^T> has nothing off its diagonal.
    for (i, &a) in found.selected.iter().enumerate() {
        for j in 0..found.selected.len() {
            let expected = if i == j { found.activity[usize::from(a)] } else { T::ZERO };
            assert_eq!(found.second[i * found.selected.len() + j], expected);
        }
    }
    let best = usize::from(found.map_latents[0]);
    assert!(exact[best].1 > most - tolerance * scale && found.map_values == [T::ONE], "{what}");
    let activity = found.activity.to_vec();
    let mut total = T::ZERO;
    inference.for_each_state(|latents, probability| {
        assert_eq!(probability, activity[usize::from(latents[0])]);
        total += probability;
    });
    assert!((total.to_f64() - 1.0).abs() < 1e-5);
}

#[test]
fn posteriors_are_their_definition() {
    let mut rng = Rng::new(1);
    for case in 0..40 {
        for noise in noises(&mut rng) {
            let model = mixture(noise, &mut rng);
            let y: Vec<f64> = (0..D).map(|_| f64::from(3.0 * rng.normal::<f32>())).collect();
            for (selected, singletons) in [(C, false), (C, true), (3, true), (3, false), (1, false)] {
                check::<f64>(&model, &options(selected, singletons), &y, 1e-12);
                check::<f32>(&model, &options(selected, singletons), &y, 3e-6);
            }
            // Loud: where distances are differences of large numbers, those of the selected components are not.
            if case < 5 {
                let loud: Vec<f64> = y.iter().map(|y| 1e3 * y).collect();
                check::<f64>(&model, &options(C, true), &loud, 1e-10);
                check::<f32>(&model, &options(C, true), &loud, 1e-5);
            }
        }
    }
}

#[test]
fn the_selected_components_are_the_best() {
    let mut rng = Rng::new(2);
    for noise in noises(&mut rng).into_iter().take(3) {
        let model = mixture(noise, &mut rng);
        let prepared = Prepared::<f64>::new(&model, &options(3, false)).unwrap();
        let mut memory = vec![0.0; prepared.model().unwrap().arena_len()];
        let mut inference = Inference::new(prepared.model().unwrap(), &mut memory).unwrap();
        for _ in 0..50 {
            let y: Vec<f64> = (0..D).map(|_| 3.0 * rng.normal::<f64>()).collect();
            let mut order: Vec<u16> = (0..C as u16).collect();
            let joint = |c: &u16| definition(&model, &y, usize::from(*c)).1;
            order.sort_by(|a, b| joint(b).total_cmp(&joint(a)));
            assert_eq!(inference.infer(&y).unwrap().selected, &order[..3]);
        }
    }
}

#[test]
fn blobs_have_all_of_it_and_what_is_no_mixture_is_refused() {
    let mut rng = Rng::new(3);
    for noise in noises(&mut rng) {
        let model = mixture(noise, &mut rng);
        let prepared = Prepared::<f32>::new(&model, &options(3, true)).unwrap();
        let bytes = blob::write(&prepared, &SlabCov::Unit, "a mixture").unwrap();
        let parsed = common::streams::parse(&bytes).unwrap();
        let mut memory = [vec![0.0; prepared.model().unwrap().arena_len()], Vec::new()];
        memory[1] = memory[0].clone();
        let [first, second] = &mut memory;
        let mut one = Inference::new(parsed.model(), first).unwrap();
        let mut two = Inference::new(prepared.model().unwrap(), second).unwrap();
        let y = [0.5, -1.0, 2.0, 0.1];
        let (one, two) = (one.infer(&y).unwrap(), two.infer(&y).unwrap());
        assert_eq!((one.activity, one.evidence), (two.activity, two.evidence));

        // No sampling, no search, one component on.
        let mut memory = vec![0.0; 10_000];
        let gibbs = Engine::Gibbs(Gibbs::new(Kind::Gmm, 10));
        let sampled = Inference::with_engine(parsed.model(), &mut memory, Detail::Marginals, gibbs);
        assert_eq!(sampled.err(), Some(Error::Setting { field: "engine" }));
        let changed = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let crc = spikelet::blob::crc32(&bytes[16..]).to_le_bytes();
            bytes[12..16].copy_from_slice(&crc);
            common::streams::parse(&bytes).err()
        };
        let refused = |error: ModelError| Some(BlobError::Model(error));
        assert_eq!(changed(34, 2), refused(ModelError::Size { field: "max_active" }));
        assert_eq!(changed(21, 1), Some(BlobError::MissingSection { tag: *b"STAT" }));
        assert!(changed(18, 3).is_some(), "a bound");
        assert!(changed(20, 1).is_some(), "a slab");
    }
}

/// As scikit-learn starts from the first four points: see host-trainer/tests/mixtures.rs, where these likelihoods are from.
#[test]
fn training_follows_scikit_learn_and_never_falls() {
    let text = include_str!("../host-trainer/tests/mixtures/points.csv");
    let points: Vec<f64> =
        text.split(['\n', ',']).filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect();
    let (d, c, n) = (3, 4, points.len() / 3);
    let mean = |i: usize| points.iter().skip(i).step_by(d).sum::<f64>() / n as f64;
    let covariance = |i: usize, j: usize| {
        points.chunks_exact(d).map(|y| (y[i] - mean(i)) * (y[j] - mean(j))).sum::<f64>() / n as f64
    };
    let full: Vec<f64> = (0..d * d).map(|e| covariance(e / d, e % d)).collect();
    let components = (0..d).flat_map(|i| vec![covariance(i, i); c]).collect();
    let dictionary: Vec<f64> = (0..d * c).map(|e| points[e % c * d + e / c]).collect();
    for (form, noise, expected) in [
        (
            NoiseForm::Components,
            NoiseCov::Components(components),
            Some([-721.9900520933869, -644.8599981932665, -636.3260025671452]),
        ),
        (
            NoiseForm::Full,
            NoiseCov::Full(full),
            Some([-748.6219949679562, -696.7172411618606, -649.2012117749377]),
        ),
        (NoiseForm::Diagonal, NoiseCov::Diagonal((0..d).map(|i| covariance(i, i)).collect()), None),
        (NoiseForm::Shared, NoiseCov::Shared(1.0), None),
    ] {
        let first = Parameters::binary(ModelKind::Gmm, dictionary.clone(), d, vec![1.0 / c as f64; c], noise);
        let settings =
            Settings { noise: form, iterations: 60, noise_floor: 1e-12, ..Settings::new(ModelKind::Gmm, c) };
        let mut points = Points::new(points.clone(), d);
        let mut state = State::from(settings, &mut points, Some(first)).unwrap();
        assert!(state.run(&mut points, 1, |_| Ok(Next::Continue)).unwrap());
        let history: Vec<f64> = state.current.history.iter().map(|step| step.free_energy).collect();
        for (at, expected) in [1, 10, 60].into_iter().zip(expected.into_iter().flatten()) {
            assert!((history[at] - expected).abs() < 1e-6, "{form:?}, {at}: {} {expected}", history[at]);
        }
        for pair in history.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-9, "{form:?}: {pair:?}");
        }
    }
}

/// Scores that a linear kernel learned: the device selects as the desktop does, of any kind.
#[test]
fn learned_scores_select_on_the_device_as_on_the_desktop() {
    const H: usize = 10;
    for kind in [ModelKind::Bsc, ModelKind::Gsc, ModelKind::Gmm] {
        let mut rng = Rng::new(4);
        let truth: Vec<f64> = (0..D * H).map(|_| 2.0 * rng.normal::<f64>()).collect();
        let values: Vec<f64> = (0..400)
            .flat_map(|n| (0..D).map(move |i| (i, n % H)))
            .map(|(i, h)| truth[i * H + h] + 0.3 * rng.normal::<f64>())
            .collect();
        let max_active = if kind == ModelKind::Gmm { 1 } else { 2 };
        let settings = Settings {
            engine: Training::Truncated,
            selected: 4,
            max_active,
            singletons: false,
            gp: Some(GpSelect::new(KernelName::Linear)),
            iterations: 12,
            ..Settings::new(kind, H)
        };
        let options = settings.options();
        let mut points = Points::new(values.clone(), D);
        let mut state = State::new(settings, &mut points).unwrap();
        assert!(state.run(&mut points, 1, |_| Ok(Next::Continue)).unwrap());
        let scores = state.learned_scores().unwrap().to_vec();
        assert_eq!(scores.len(), D * H);

        let model = state.model();
        let prepared = Prepared::<f32>::new(&model, &options).unwrap().with_scores(&scores).unwrap();
        let bytes = blob::write(&prepared, &model.slab_cov, "learned").unwrap();
        let parsed = common::streams::parse(&bytes).unwrap();
        assert!(matches!(parsed.model().selection, Selection::Learned { .. }));
        let mut memory = vec![0.0; parsed.model().arena_len()];
        let mut inference = Inference::new(parsed.model(), &mut memory).unwrap();
        let mut equal = 0;
        for y in values.chunks_exact(D).take(200) {
            let score = |h: usize| (0..D).map(|i| scores[i * H + h] * y[i]).sum::<f64>();
            let mut order: Vec<u16> = (0..H as u16).collect();
            order.sort_by(|a, b| score(usize::from(*b)).total_cmp(&score(usize::from(*a))));
            let y: Vec<f32> = y.iter().map(|&y| y as f32).collect();
            let found = inference.infer(&y).unwrap();
            equal += usize::from(found.selected == &order[..4]);
            // The others are off.
            assert!((0..H).all(|h| found.activity[h] == 0.0 || found.selected.contains(&(h as u16))));
        }
        // But for ties that f32 decides.
        assert!(equal >= 199, "{kind:?}: {equal} of 200");
        assert!(Prepared::<f32>::new(&model, &options).unwrap().with_scores(&scores[1..]).is_err());
    }
}

#[test]
fn a_mixture_is_read_from_any_bytes_without_panic() {
    let model = mixture(NoiseCov::Shared(0.5), &mut Rng::new(5));
    let prepared = Prepared::<f32>::new(&model, &options(3, true)).unwrap();
    let bytes = blob::write(&prepared, &SlabCov::Unit, "a mixture").unwrap();
    let mut aligned = vec![0u64; bytes.len() / 8];
    for at in 16..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        let crc = spikelet::blob::crc32(&changed[16..]).to_le_bytes();
        changed[12..16].copy_from_slice(&crc);
        for (word, eight) in aligned.iter_mut().zip(changed.chunks_exact(8)) {
            *word = u64::from_le_bytes(eight.try_into().unwrap());
        }
        let view: Vec<u8> = aligned.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Ok(blob) = common::streams::parse(&view) {
            let model = blob.model();
            if model.shape.dims > 64 {
                continue;
            }
            let mut memory = vec![0.0; model.arena_len()];
            let mut inference = Inference::with_detail(model, &mut memory, Detail::Marginals).unwrap();
            let _ = inference.infer(&vec![0.3; model.shape.dims]);
        }
    }
    let _ = Blob::parse(&[]);
}
