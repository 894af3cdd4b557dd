//! Runs of training through the library: whatever the way, it repeats, resumes and fits in memory.

use spikelet::rng::Rng;
use spikelet_trainer::data::write_npy_f32;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet_trainer::train::choose::Prefer;
use spikelet_trainer::train::settings::{Engine, InitForm, NoiseForm, Precision, Rule, StatesForm};
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
        ("adaptive", Settings { max_active: 3, selected: 5, restarts: 2, ..adaptive(7, 100) }),
        ("adaptive, plain, f32", Settings { batch: 0, precision: Precision::F32, ..adaptive(7, 100) }),
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

/// Stepwise EM with adaptive states.
fn adaptive(latents: usize, batch: usize) -> Settings {
    Settings {
        latents,
        selected: latents.min(20),
        max_active: latents.min(12),
        engine: Engine::Truncated,
        states: StatesForm::Adaptive,
        batch,
        init: InitForm::Data,
        restarts: 1,
        ..plain()
    }
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

/// Points of forty directions of 16 dimensions, two at a time on average, and the directions.
fn directions(points: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
    let (d, h) = (16, 40);
    let mut rng = Rng::new(4);
    let mut truth: Vec<Vec<f64>> = (0..h).map(|_| (0..d).map(|_| rng.normal()).collect()).collect();
    for column in &mut truth {
        let norm = column.iter().map(|w| w * w).sum::<f64>().sqrt();
        column.iter_mut().for_each(|w| *w /= norm);
    }
    let mut data = Vec::new();
    for _ in 0..points {
        let mut y: Vec<f64> = (0..d).map(|_| 0.03 * rng.normal::<f64>()).collect();
        for column in &truth {
            if rng.uniform::<f64>() < 2.0 / h as f64 {
                let x: f64 = rng.normal();
                y.iter_mut().zip(column).for_each(|(y, w)| *y += x * w);
            }
        }
        data.extend(y);
    }
    (data, truth)
}

/// How many of the directions some column has, up to a cosine of 0.95.
fn found(model: &Parameters, truth: &[Vec<f64>]) -> usize {
    let (d, h) = (model.dims, model.latents);
    let is_found = |direction: &&Vec<f64>| {
        (0..h).any(|k| {
            let w: Vec<f64> = (0..d).map(|i| model.dictionary[i * h + k]).collect();
            let product: f64 = w.iter().zip(*direction).map(|(w, t)| w * t).sum();
            product.abs() > 0.95 * w.iter().map(|w| w * w).sum::<f64>().sqrt()
        })
    };
    truth.iter().filter(is_found).count()
}

/// Plain EM leaves latents idle, stepwise EM does not.
#[test]
fn stepwise_em_finds_a_whole_dictionary() {
    let (data, truth) = directions(4000);
    let settings = Settings {
        latents: truth.len(),
        selected: 8,
        max_active: 4,
        engine: Engine::Truncated,
        batch: 200,
        init: InitForm::Data,
        iterations: 15,
        restarts: 1,
        ..plain()
    };
    let model = train(&settings, &mut Points::new(data, 16), 2).model();
    assert!(found(&model, &truth) >= truth.len() - 1);
}

/// A search finds it in fewer passes, with the noise as it is; the papers' states take what they miss for noise.
#[test]
fn adaptive_states_find_a_whole_dictionary_and_its_noise() {
    let (data, truth) = directions(4000);
    let settings = Settings { iterations: 8, ..adaptive(truth.len(), 400) };
    let state = train(&settings, &mut Points::new(data, 16), 2);
    let model = state.model();
    assert!(state.result().anneals);
    assert!(found(&model, &truth) >= truth.len() - 1, "{}", found(&model, &truth));
    // 640 numbers of W fitted to 64 000: noise of 0.99 times the truth is to be expected, and a latent that is so weak that it
    // is taken for noise adds to it.
    let NoiseCov::Shared(sigma2) = model.noise else { panic!("one variance was asked for") };
    assert!((sigma2 / 0.0009 - 1.0).abs() < 0.1, "{sigma2}");
    // Passes tell F of a smaller search, under parameters that are still improved: less than the last E-step finds.
    let history = &state.result().history;
    assert_eq!(history.len(), 9);
    assert!(history[8].free_energy > history[6].free_energy);
}

/// Data with most of its variance in few directions, as patches of pictures have, does not anneal.
#[test]
fn a_steep_spectrum_does_not_anneal() {
    let (mut data, _) = directions(500);
    data.iter_mut().enumerate().for_each(|(e, y)| *y *= 0.5f64.powi((e % 16) as i32));
    let state = State::new(adaptive(40, 100), &mut Points::new(data, 16)).unwrap();
    assert!(!state.current.anneals);
}

/// EM over a search that looks around all states is EM: the free energy never falls, and is that of all states.
#[test]
fn a_search_of_everything_is_monotone() {
    let exact = Settings { iterations: 20, restarts: 1, ..plain() };
    let searched = Settings {
        engine: Engine::Truncated,
        states: StatesForm::Adaptive,
        expansions: 1 << D,
        ..exact.clone()
    };
    let [exact, searched] = [exact, searched].map(|settings| {
        let state = train(&settings, &mut Points::new(data(500), D), 1);
        state.result().history.iter().map(|step| step.free_energy).collect::<Vec<f64>>()
    });
    // A search with so many expansions leaves out what is more than 20 nats below the best: 2e-9 of a posterior.
    let near = 500.0 * 1e-6;
    for (at, (a, b)) in searched.iter().zip(&exact).enumerate() {
        assert!((a - b).abs() < near, "{at}: {a} {b}");
        assert!(at == 0 || *a > searched[at - 1] - near, "{at}: {a}");
    }
}
