//! The factored E-step against its definition, and against exact inference where latents are independent.

mod common;

use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, SelectionName};
use spikelet_trainer::train::settings::{Engine, NoiseForm};
use spikelet_trainer::train::{Next, Points, Settings, State, e_step, factored};

fn model(rng: &mut Rng, dims: usize, latents: usize, noise: NoiseCov) -> Parameters {
    Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary: (0..dims * latents).map(|_| rng.normal()).collect(),
        prior: (0..latents).map(|h| 0.15 + 0.1 * h as f64).collect(),
        slab_mean: (0..latents).map(|_| rng.normal()).collect(),
        slab_cov: SlabCov::Diagonal((0..latents).map(|h| 0.5 + 0.3 * h as f64).collect()),
        noise,
    }
}

/// Points of a model with noise of variance 0.04.
fn data(rng: &mut Rng, truth: &Parameters, points: usize) -> Vec<f64> {
    let (h, psi2) = (truth.latents, truth.slab_variances());
    let mut data = Vec::new();
    for _ in 0..points {
        let x: Vec<f64> = (0..h)
            .map(|i| {
                let z = truth.slab_mean[i] + psi2[i].sqrt() * rng.normal::<f64>();
                if rng.uniform::<f64>() < truth.prior[i] { z } else { 0.0 }
            })
            .collect();
        for row in truth.dictionary.chunks_exact(h) {
            data.push(row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + 0.2 * rng.normal::<f64>());
        }
    }
    data
}

fn exact(latents: usize) -> Options {
    Options {
        selected: latents,
        max_active: latents,
        singletons: true,
        selection: SelectionName::Singleton,
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Stored,
    }
}

/// ln N(x; mean, variance).
fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * ((std::f64::consts::TAU * variance).ln() + (x - mean).powi(2) / variance)
}

/// E_q[ln p(y, s, z) - ln q(s, z)], state by state; the noise has one variance per dimension.
fn bound(model: &Parameters, y: &[f64], on: &[f64], eta: &[f64]) -> f64 {
    let (h, psi2, sigma2) = (model.latents, model.slab_variances(), model.noise_variances());
    let w = |d: usize, i: usize| model.dictionary[d * h + i];
    let lambda = |i: usize| (0..model.dims).map(|d| w(d, i).powi(2) / sigma2[d]).sum::<f64>() + 1.0 / psi2[i];
    let mut sum = 0.0;
    for state in 0..1usize << h {
        let is_on = |i: usize| state >> i & 1 == 1;
        let (mut q, mut log_prior, mut slabs) = (1.0f64, 0.0, 0.0);
        for i in 0..h {
            let variance = 1.0 / lambda(i);
            if is_on(i) {
                (q, log_prior) = (q * on[i], log_prior + model.prior[i].ln());
                let entropy = 0.5 * (std::f64::consts::TAU * variance).ln() + 0.5;
                slabs += log_normal(eta[i], model.slab_mean[i], psi2[i]) - 0.5 * variance / psi2[i] + entropy;
            } else {
                (q, log_prior) = (q * (1.0 - on[i]), log_prior + (1.0 - model.prior[i]).ln());
            }
        }
        let mut likelihood = 0.0;
        for d in 0..model.dims {
            let mean: f64 = (0..h).filter(|&i| is_on(i)).map(|i| w(d, i) * eta[i]).sum();
            let spread: f64 = (0..h).filter(|&i| is_on(i)).map(|i| w(d, i).powi(2) / lambda(i)).sum();
            likelihood += log_normal(y[d], mean, sigma2[d]) - 0.5 * spread / sigma2[d];
        }
        if q > 0.0 {
            sum += q * (log_prior + likelihood + slabs - q.ln());
        }
    }
    sum
}

#[test]
fn the_free_energy_is_its_definition_and_a_local_maximum() {
    let mut rng = Rng::new(3);
    let truth = model(&mut rng, 3, 4, NoiseCov::Diagonal(vec![0.04, 0.3, 0.1]));
    for y in data(&mut rng, &truth, 20).chunks_exact(3) {
        let mut points = Points::new(y.to_vec(), 3);
        // One E-step may end before all has settled; the next goes on from its means.
        let mut means = Vec::new();
        let mut found = factored::e_step(&truth, &mut means, &mut points, 1).unwrap();
        for _ in 0..100 {
            let before = found.free_energy;
            found = factored::e_step(&truth, &mut means, &mut points, 1).unwrap();
            assert!(found.free_energy >= before - 1e-10);
        }
        let eta: Vec<f64> = found.mean.iter().zip(&found.activity).map(|(m, g)| m / g).collect();
        let expected = bound(&truth, y, &found.activity, &eta);
        // Rounding only: both are sums of less than 1000 numbers below 1000.
        assert!((found.free_energy - expected).abs() < 1e-9, "{} {expected}", found.free_energy);
        let likelihood = e_step(&truth, &exact(4), &mut points, 1).unwrap().free_energy;
        assert!(found.free_energy <= likelihood + 1e-9);
        for i in 0..4 {
            for (shift, step) in [(1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3)] {
                let (mut on, mut mean) = (found.activity.clone(), eta.clone());
                mean[i] += shift;
                on[i] = (on[i] + step).clamp(1e-12, 1.0 - 1e-12);
                // The last sweep moved means by up to 1e-5 deviations of the noise: F is flat to the square of it.
                assert!(bound(&truth, y, &on, &mean) <= expected + 1e-8, "latent {i}");
            }
        }
    }
}

#[test]
fn orthogonal_latents_are_independent_and_factors_exact() {
    let mut rng = Rng::new(4);
    let mut truth = model(&mut rng, 4, 3, NoiseCov::Shared(0.04));
    truth.dictionary = vec![1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0];
    let points = data(&mut rng, &truth, 700);
    let mut points = Points::new(points, 4);
    let found = factored::e_step(&truth, &mut Vec::new(), &mut points, 2).unwrap();
    let expected = e_step(&truth, &exact(3), &mut points, 1).unwrap();
    let close = |what: &str, a: &[f64], b: &[f64]| {
        let scale = b.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= 1e-10 * scale, "{what}: {a} {b}"));
    };
    assert_eq!(found.points, expected.points);
    close("F", &[found.free_energy], &[expected.free_energy]);
    close("<s>", &found.activity, &expected.activity);
    close("<x>", &found.mean, &expected.mean);
    close("<x^2>", &found.square, &expected.square);
    close("<x x^T>", &found.second, &expected.second);
    close("y <x>^T", &found.cross, &expected.cross);
    close("y^2", &found.power, &expected.power);
}

fn settings(noise: NoiseForm) -> Settings {
    Settings { engine: Engine::Factored, noise, iterations: 40, ..Settings::new(ModelKind::Gsc, 6) }
}

#[test]
fn the_free_energy_never_falls() {
    let mut rng = Rng::new(5);
    let truth = model(&mut rng, 5, 6, NoiseCov::Shared(0.04));
    let points = data(&mut rng, &truth, 1000);
    for noise in [NoiseForm::Shared, NoiseForm::Diagonal, NoiseForm::Full] {
        for seed in 1..4 {
            let mut points = Points::new(points.clone(), 5);
            let mut state = State::new(Settings { seed, ..settings(noise) }, &mut points).unwrap();
            state.run(&mut points, 2, |_| Ok(Next::Continue)).unwrap();
            let history = &state.current.history;
            assert_eq!(history.len(), 41);
            for pair in history.windows(2) {
                let (before, after) = (pair[0].free_energy, pair[1].free_energy);
                assert!(after >= before - 1e-9 * before.abs(), "{noise:?}: {before} to {after}");
            }
            assert!(history[40].free_energy > history[0].free_energy + 100.0);
        }
    }
}

#[test]
fn threads_and_interruptions_do_not_show() {
    let mut rng = Rng::new(6);
    let truth = model(&mut rng, 5, 6, NoiseCov::Shared(0.04));
    let points = data(&mut rng, &truth, 5000);
    let settings = Settings { iterations: 8, ..settings(NoiseForm::Shared) };
    common::threads_and_interruptions_do_not_show(&settings, &points, 5, 5);
}
