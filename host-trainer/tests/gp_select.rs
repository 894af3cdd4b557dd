//! Learned selection: the E-step on given latents against the ordinary one, runs, and the command.

mod common;

use spikelet::rng::Rng;
use spikelet::{Engine, Gibbs, Kind};
use spikelet_trainer::gp::KernelName;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};
use spikelet_trainer::train::e_step::{Sets, Task};
use spikelet_trainer::train::gp_select::GpSelect;
use spikelet_trainer::train::settings::{self, Precision};
use spikelet_trainer::train::{Next, Points, Settings, State, Statistics};

const DIMS: usize = 9;
const LATENTS: usize = 8;

fn model(kind: ModelKind, rng: &mut Rng) -> Parameters {
    let noise = NoiseCov::Diagonal((0..DIMS).map(|d| 0.1 + 0.05 * d as f64).collect());
    let mut dictionary: Vec<f64> = (0..DIMS * LATENTS).map(|_| rng.normal()).collect();
    let prior = (0..LATENTS).map(|h| 0.1 + 0.05 * h as f64).collect();
    if !kind.kind().has_slab() {
        return Parameters::binary(kind, dictionary, DIMS, prior, noise);
    }
    if kind == ModelKind::Ssmca {
        dictionary.iter_mut().for_each(|w| *w = w.abs());
    }
    Parameters {
        kind,
        dims: DIMS,
        latents: LATENTS,
        dictionary,
        prior,
        slab_mean: (0..LATENTS).map(|_| 1.0 + rng.normal::<f64>()).collect(),
        slab_cov: SlabCov::Diagonal(vec![0.5; LATENTS]),
        noise,
    }
}

fn options(kind: ModelKind, selected: usize) -> Options {
    Options {
        selected,
        max_active: selected.min(3),
        singletons: false,
        selection: SelectionName::of_kind(kind),
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Stored,
    }
}

/// The latents that the core selects itself.
fn own_sets(model: &Parameters, options: &Options, points: &[f64]) -> Vec<u16> {
    let prepared = Prepared::<f64>::new(model, options).unwrap();
    let view = prepared.model().unwrap();
    let engine = Engine::of_kind(model.kind.kind());
    let mut memory = vec![0.0; engine.arena_len(view.shape, spikelet::Detail::Marginals)];
    let mut inference =
        spikelet::Inference::with_engine(view, &mut memory, spikelet::Detail::Marginals, engine).unwrap();
    points.chunks_exact(DIMS).flat_map(|y| inference.infer(y).unwrap().selected.to_vec()).collect()
}

fn close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * scale, "{what}: {a} instead of {b}");
    }
}

fn compare(found: &Statistics, expected: &Statistics, tolerance: f64) {
    assert_eq!(found.points, expected.points);
    close("F", &[found.free_energy], &[expected.free_energy], tolerance);
    close("<s>", &found.activity, &expected.activity, tolerance);
    close("<x>", &found.mean, &expected.mean, tolerance);
    close("<x^2>", &found.square, &expected.square, tolerance);
    close("<x x^T>", &found.second, &expected.second, tolerance);
    close("y <x>^T", &found.cross, &expected.cross, tolerance);
    close("share", &found.share, &expected.share, tolerance);
    close("power", &found.power, &expected.power, tolerance);
}

#[test]
fn given_latents_are_as_good_as_selected_ones() {
    for kind in [ModelKind::Gsc, ModelKind::Bsc] {
        let mut rng = Rng::new(11);
        let model = model(kind, &mut rng);
        let points: Vec<f64> = (0..700 * DIMS).map(|_| 1.5 * rng.normal::<f64>()).collect();
        let options = options(kind, 5);
        let latents = own_sets(&model, &options, &points);
        let plain = Task::new(&model, &options);
        let given = Task { sets: Some(Sets { latents: &latents, each: 5 }), ..plain };
        let mut points = Points::new(points, DIMS);
        let (expected, _) = plain.run(&mut points, 2, Precision::F64).unwrap();
        let (found, activities) = given.run_with_activities(&mut points, 2, Precision::F64).unwrap();
        // The same operations in another order at most.
        compare(&found, &expected, 1e-11);
        for h in 0..LATENTS {
            let sum: f64 = activities.iter().skip(h).step_by(LATENTS).sum();
            assert!((sum - expected.activity[h]).abs() < 1e-9);
        }
        for (on, set) in activities.chunks_exact(LATENTS).zip(latents.chunks_exact(5)) {
            assert!((0..LATENTS).all(|h| on[h] == 0.0 || set.contains(&(h as u16))));
        }
    }
}

#[test]
fn draws_of_given_latents_are_those_of_selected_ones() {
    let mut rng = Rng::new(12);
    let model = model(ModelKind::Ssmca, &mut rng);
    let points: Vec<f64> = (0..60 * DIMS).map(|_| 1.0 + rng.normal::<f64>()).collect();
    // All latents selected: the same bits. Fewer: one more latent is drawn, which is never seen, so that draws differ.
    for (selected, sweeps, tolerance) in [(LATENTS, 30, 1e-12), (4, 4000, 0.05)] {
        let options = options(ModelKind::Ssmca, selected);
        let latents = own_sets(&model, &options, &points);
        let engine = Engine::Gibbs(Gibbs { seed: 5, ..Gibbs::new(Kind::Ssmca, sweeps) });
        let plain = Task { engine, ..Task::new(&model, &options) };
        let given = Task { sets: Some(Sets { latents: &latents, each: selected }), ..plain };
        let mut points = Points::new(points.clone(), DIMS);
        let (expected, _) = plain.run(&mut points, 2, Precision::F64).unwrap();
        let (found, _) = given.run(&mut points, 2, Precision::F64).unwrap();
        // 4000 sweeps, two thirds of which count, over 60 points: sums have a standard error below 1 %, of correlated draws.
        compare(&found, &expected, tolerance);
    }
}

/// Bars of value 10 on 4 x 4 pixels, two on average, noise of standard deviation 1; and which are on. (N x 16, N x 8)
fn bars(points: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let (mut data, mut states) = (Vec::new(), Vec::new());
    for _ in 0..points {
        let on: Vec<f64> = (0..8).map(|_| f64::from(u8::from(rng.uniform::<f64>() < 0.25))).collect();
        for pixel in 0..16 {
            data.push(10.0 * (on[pixel / 4] + on[4 + pixel % 4]) + rng.normal::<f64>());
        }
        states.extend(on);
    }
    (data, states)
}

fn learning(kernel: KernelName) -> Settings {
    Settings {
        engine: settings::Engine::Truncated,
        selected: 5,
        max_active: 4,
        singletons: false,
        gp: Some(GpSelect { every: 5, ..GpSelect::new(kernel) }),
        iterations: 40,
        ..Settings::new(ModelKind::Bsc, 8)
    }
}

/// W of the bars.
fn dictionary() -> Vec<f64> {
    let bar = |pixel: usize, h: usize| if h < 4 { pixel / 4 == h } else { pixel % 4 == h - 4 };
    (0..16 * 8).map(|e| if bar(e / 8, e % 8) { 10.0 } else { 0.0 }).collect()
}

#[test]
fn latents_that_are_on_come_to_be_selected() {
    for kernel in [KernelName::Linear, KernelName::Rbf, KernelName::Sum] {
        let (values, on) = bars(300, 1);
        let mut points = Points::new(values, 16);
        let truth =
            Parameters::binary(ModelKind::Bsc, dictionary(), 16, vec![0.25; 8], NoiseCov::Shared(1.0));
        let settings = Settings { iterations: 10, temperature: (1.0, 1.0), ..learning(kernel) };
        let mut state = State::from(settings, &mut points, Some(truth)).unwrap();
        let share = |state: &State| {
            let sets = state.current.selector.as_ref().unwrap().sets();
            let (mut all, mut selected) = (0, 0);
            for (on, set) in on.chunks_exact(8).zip(sets.chunks_exact(5)) {
                // More than 4 have no place beside the one that is random.
                if on.iter().sum::<f64>() <= 4.0 {
                    all += on.iter().filter(|on| **on > 0.0).count();
                    selected += set.iter().filter(|h| on[usize::from(**h)] > 0.0).count();
                }
            }
            f64::from(selected as u32) / f64::from(all as u32)
        };
        state.run(&mut points, 2, |_| Ok(Next::Continue)).unwrap();
        // At random it would be 5/8.
        assert!(share(&state) > 0.95, "{kernel:?}: {}", share(&state));
        let kernel = state.current.selector.as_ref().unwrap().kernel().unwrap();
        assert!(kernel.white > 0.0);
    }
}

#[test]
fn threads_and_interruptions_do_not_show() {
    let settings = Settings { iterations: 12, ..learning(KernelName::Sum) };
    common::threads_and_interruptions_do_not_show(&settings, &bars(300, 2).0, 16, 7);
}
