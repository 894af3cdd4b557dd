//! Runs of training through the library: whatever the way, it repeats, resumes and fits in memory.

use spikelet::rng::Rng;
use spikelet_trainer::data::write_npy_f32;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::parameters::{ModelKind, NoiseCov};
use spikelet_trainer::train::choose::Prefer;
use spikelet_trainer::train::settings::{Engine, InitForm, NoiseForm, Precision, Rule};
use spikelet_trainer::train::weak::Weak;
use spikelet_trainer::train::{Next, Points, Settings, State};

const D: usize = 4;

/// Mixing of four sources, far from orthogonal.
const MIXING: [f64; D * D] =
    [1.0, 0.4, -0.3, 0.2, -0.2, 1.0, 0.5, 0.1, 0.3, -0.4, 1.0, 0.5, 0.6, 0.1, 0.2, -1.0];

/// Rounded to `f32`, as in the files of these tests.
fn data(points: usize) -> Vec<f64> {
    let mut rng = Rng::new(21);
    let mut data = Vec::new();
    for _ in 0..points {
        let x = [(); D].map(|()| if rng.uniform::<f64>() < 0.25 { rng.normal::<f64>() } else { 0.0 });
        for row in MIXING.chunks_exact(D) {
            let clean: f64 = row.iter().zip(x).map(|(w, x)| w * x).sum();
            data.push(f64::from((clean + 0.05 * rng.normal::<f64>()) as f32));
        }
    }
    data
}

fn plain() -> Settings {
    Settings { iterations: 6, restarts: 2, seed: 3, ..Settings::new(ModelKind::Gsc, D) }
}

/// All ways to train that these tests go.
fn ways() -> Vec<(&'static str, Settings)> {
    let stepwise = Settings { batch: 100, init: InitForm::Data, ..plain() };
    vec![
        ("plain", plain()),
        ("orthogonal", Settings { prefer: Prefer::Orthogonal, whiten: true, restarts: 4, ..plain() }),
        ("white", Settings { whiten: true, ..plain() }),
        ("weak", Settings { weak: Weak::Sources, noise: NoiseForm::Full, ..plain() }),
        ("f32", Settings { precision: Precision::F32, ..plain() }),
        ("stepwise", stepwise.clone()),
        ("stepwise, white, f32", Settings { whiten: true, precision: Precision::F32, ..stepwise.clone() }),
        (
            "stepwise, full noise",
            Settings { noise: NoiseForm::Full, latents: 7, selected: 5, max_active: 2, ..stepwise },
        ),
        (
            "gsc, cooled and cut",
            Settings { temperature: (5.0, 1.0), parameter_noise: 0.1, ..cut(ModelKind::Gsc) },
        ),
        ("bsc", cut(ModelKind::Bsc)),
        ("bsc, stepwise", Settings { batch: 100, ..cut(ModelKind::Bsc) }),
        ("nmf", Settings { rule: Rule::Multiply, ..cut(ModelKind::Nmf) }),
        ("mca", Settings { noise: NoiseForm::Diagonal, ..cut(ModelKind::Mca) }),
        ("gsc, gibbs", Settings { engine: Engine::Gibbs, sweeps: 6, extra: 1, ..cut(ModelKind::Gsc) }),
        ("ssmca", Settings { sweeps: 6, chains: 2, ..cut(ModelKind::Ssmca) }),
        ("ssmca, stepwise", Settings { sweeps: 6, batch: 100, ..cut(ModelKind::Ssmca) }),
        ("mca, stepwise, f32", Settings { batch: 100, precision: Precision::F32, ..cut(ModelKind::Mca) }),
    ]
}

/// Truncated, with points left out towards the end.
fn cut(model: ModelKind) -> Settings {
    let by_default = Settings::new(model, 5);
    Settings { selected: 4, max_active: 2, cut: true, iterations: 8, restarts: 2, ..by_default }
}

fn train(settings: &Settings, points: &mut Points, threads: usize) -> State {
    let mut state = State::new(settings.clone(), points).unwrap();
    assert!(state.run(points, threads, |_| Ok(Next::Continue)).unwrap());
    state
}

/// Without the times, which differ.
fn figures(state: &State) -> (Vec<f64>, Vec<f64>, String) {
    let model = state.model();
    let history = state.result().history.iter().map(|step| step.free_energy).collect();
    (history, model.dictionary.clone(), format!("{model:?}"))
}

#[test]
fn stopped_after_every_iteration_it_ends_in_the_same_bits() {
    for (name, settings) in ways() {
        let data = data(900);
        let whole = figures(&train(&settings, &mut Points::new(data.clone(), D), 2));
        let mut state = State::new(settings, &mut Points::new(data.clone(), D)).unwrap();
        // As after a kill: the state from its file, the points from theirs.
        while !state.run(&mut Points::new(data.clone(), D), 1, |_| Ok(Next::Stop)).unwrap() {
            state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        }
        assert_eq!(figures(&state), whole, "{name}");
    }
}

#[test]
fn threads_do_not_show() {
    for (name, settings) in ways() {
        let run = |threads| figures(&train(&settings, &mut Points::new(data(700), D), threads));
        let one = run(1);
        for threads in [2, 5] {
            assert_eq!(run(threads), one, "{name}");
        }
    }
}

/// Two files, eight times as many numbers as may be in memory.
#[test]
fn files_larger_than_memory_train_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let data = data(3000);
    let single: Vec<f32> = data.iter().map(|&y| y as f32).collect();
    let paths = ["a.npy", "b.npy"].map(|name| folder.path().join(name)).to_vec();
    let cut = 1001 * D;
    write_npy_f32(&paths[0], &[1001, D], &single[..cut]).unwrap();
    write_npy_f32(&paths[1], &[1999, D], &single[cut..]).unwrap();
    for (name, settings) in ways() {
        let mut from_files = Points::open_within(&paths, data.len() / 8).unwrap();
        let mut in_memory = Points::new(data.clone(), D);
        let expected = figures(&train(&settings, &mut in_memory, 2));
        assert_eq!(figures(&train(&settings, &mut from_files, 2)), expected, "{name}");
    }
}

#[test]
fn every_way_finds_the_mixing() {
    for (name, settings) in ways().into_iter().filter(|(_, settings)| settings.latents == D) {
        let settings = Settings { iterations: 40, restarts: 4, ..settings };
        let state = train(&settings, &mut Points::new(data(4000), D), 2);
        let model = state.model();
        let index = amari(&model.dictionary, &MIXING, D, D).unwrap();
        assert!(index < 0.03, "{name}: {index}");
        assert!(model.noise_variances().iter().all(|v| (0.5..2.0).contains(&(v / 0.0025))), "{name}");
    }
}

/// 32-bit inference: F within what 24 bits of its terms (some hundreds) can tell, per point.
#[test]
fn f32_is_near_f64() {
    let run = |precision| train(&Settings { precision, ..plain() }, &mut Points::new(data(2000), D), 2);
    let (double, single) = (run(Precision::F64), run(Precision::F32));
    for (a, b) in double.result().history.iter().zip(&single.result().history) {
        assert!((a.free_energy - b.free_energy).abs() < 2000.0 * 1e-3, "{a:?} {b:?}");
    }
    assert_ne!(double.model(), single.model());
    let index = amari(&single.model().dictionary, &double.model().dictionary, D, D).unwrap();
    assert!(index < 1e-3, "{index}");
}

/// Any linear change of the data is undone: the free energy is that of the raw data, and the model expects it.
#[test]
fn whitening_is_undone() {
    let settings = Settings { whiten: true, noise: NoiseForm::Full, iterations: 60, restarts: 3, ..plain() };
    let white = train(&settings, &mut Points::new(data(3000), D), 2);
    let raw = train(&Settings { whiten: false, ..settings }, &mut Points::new(data(3000), D), 2);
    // The same likelihood, climbed from other places: the tops agree.
    let difference = (white.result().free_energy() - raw.result().free_energy()) / 3000.0;
    assert!(difference.abs() < 0.02, "{difference}");
    let model = white.model();
    assert!(matches!(model.noise, NoiseCov::Full(_)));
    let options = white.settings.options();
    let again =
        spikelet_trainer::train::e_step(&model, &options, &mut Points::new(data(3000), D), 1).unwrap();
    let expected = white.result().free_energy();
    assert!((again.free_energy - expected).abs() < 1e-8 * expected.abs(), "{expected}");
}

/// Forty directions of 16 dimensions, two or three at a time: plain EM leaves latents idle, stepwise EM does not.
#[test]
fn stepwise_em_finds_a_whole_dictionary() {
    let (d, h, n) = (16, 40, 4000);
    let mut rng = Rng::new(4);
    let mut truth: Vec<Vec<f64>> = (0..h).map(|_| (0..d).map(|_| rng.normal()).collect()).collect();
    for column in &mut truth {
        let norm = column.iter().map(|w| w * w).sum::<f64>().sqrt();
        column.iter_mut().for_each(|w| *w /= norm);
    }
    let mut data = Vec::new();
    for _ in 0..n {
        let mut y: Vec<f64> = (0..d).map(|_| 0.03 * rng.normal::<f64>()).collect();
        for column in &truth {
            if rng.uniform::<f64>() < 2.0 / h as f64 {
                let x: f64 = rng.normal();
                y.iter_mut().zip(column).for_each(|(y, w)| *y += x * w);
            }
        }
        data.extend(y);
    }
    let settings = Settings {
        latents: h,
        selected: 8,
        max_active: 4,
        engine: Engine::Truncated,
        batch: 200,
        init: InitForm::Data,
        iterations: 15,
        restarts: 1,
        ..plain()
    };
    let model = train(&settings, &mut Points::new(data, d), 2).model();
    let found = truth.iter().filter(|column| {
        (0..h).any(|k| {
            let w: Vec<f64> = (0..d).map(|i| model.dictionary[i * h + k]).collect();
            let product: f64 = w.iter().zip(*column).map(|(w, t)| w * t).sum();
            product.abs() > 0.95 * w.iter().map(|w| w * w).sum::<f64>().sqrt()
        })
    });
    assert!(found.count() >= h - 1);
}
