//! Bars tests, small: every kind of model that is on or off finds all causes of its own data, with what it has by default.

#[path = "../experiments/common/bars.rs"]
#[allow(dead_code)]
mod bars;

use bars::{Signs, Test};
use spikelet::rng::Rng;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::Engine;
use spikelet_trainer::train::{Next, Points, Settings, State};

const LINEAR: Test =
    Test { kind: ModelKind::Nmf, side: 4, width: 1, signs: Signs::Positive, points: 300, noise: 1.5 };

/// All bars, none off by more than `most` on average, and noise and prior as they were.
fn shown(test: Test, seed: u64, settings: impl FnOnce(Settings) -> Settings, most: f64) {
    let mut points = test.data(&mut Rng::new(seed));
    let settings = settings(Settings { restarts: 4, ..test.settings(test.bars(), seed) });
    let mut state = State::new(settings, &mut points).unwrap();
    assert!(state.run(&mut points, 2, |_| Ok(Next::Continue)).unwrap());
    let model = state.model();
    let (found, off) = test.found(&model);
    assert_eq!(found, test.bars(), "{:?}, seed {seed}, {:?}", test.kind, state.settings.engine);
    assert!(off < most, "{:?}: {off}", test.kind);
    // Two bars of 2 (side) on average: 600 bars in 300 points, give or take 25 of them; a tenth for the correction.
    let on: f64 = model.prior.iter().sum();
    assert!((on - 2.0).abs() < 0.35, "{:?}: {on} on", test.kind);
    if test.noise > 0.0 {
        // 4800 pixels, less one for every number learned from them, and less the points that are left out.
        let noise = model.noise_variances()[0].sqrt();
        assert!((0.85..1.05).contains(&(noise / test.noise)), "{:?}: noise {noise}", test.kind);
    }
}

#[test]
fn bars_that_add_up() {
    for seed in 1..4 {
        // A pixel's standard error: 1.5 / sqrt(75 points with the bar on), and more where bars go together.
        shown(LINEAR, seed, |settings| settings, 0.3);
        shown(Test { noise: 0.0, ..LINEAR }, seed, |settings| settings, 0.01);
    }
}

#[test]
fn positive_and_negative_bars() {
    let signed = Test { kind: ModelKind::Bsc, signs: Signs::Alternating, ..LINEAR };
    let exact = |settings: Settings| Settings {
        engine: Engine::Exact,
        selected: signed.bars(),
        max_active: signed.bars(),
        ..settings
    };
    for seed in 1..4 {
        shown(signed, seed, |settings| settings, 0.35);
        shown(signed, seed, exact, 0.3);
    }
}

#[test]
fn bars_that_mask_each_other() {
    let maximal = Test { kind: ModelKind::Mca, ..LINEAR };
    for seed in 1..4 {
        shown(maximal, seed, |settings| settings, 0.3);
        shown(Test { noise: 0.0, ..maximal }, seed, |settings| settings, 0.01);
    }
}

/// 004 sec. 3.4.1, small: bars of varying intensity that mask each other. All parameters are found, by sampling.
#[test]
fn bars_of_varying_intensity_that_mask_each_other() {
    let test = Test { kind: ModelKind::Mca, points: 600, ..LINEAR };
    let (bars, dims) = (test.bars(), test.side * test.side);
    let (mu, psi, noise) = (10.0, 2.0, 1.5);
    let mut rng = Rng::new(5);
    let dictionary = test.dictionary();
    let mut data = Vec::new();
    for _ in 0..test.points {
        let strengths: Vec<f64> = (0..bars)
            .map(|_| if rng.uniform::<f64>() < 0.25 { mu + psi * rng.normal::<f64>() } else { 0.0 })
            .collect();
        for row in dictionary.chunks_exact(bars) {
            let clean = row.iter().zip(&strengths).map(|(w, x)| w / bars::VALUE * x).fold(0.0, f64::max);
            data.push(clean + noise * rng.normal::<f64>());
        }
    }
    let mut points = Points::new(data, dims);
    let settings = Settings {
        selected: 5,
        max_active: 3,
        sweeps: 30,
        iterations: 30,
        restarts: 2,
        seed: 1,
        ..Settings::new(ModelKind::Ssmca, bars)
    };
    let mut state = State::new(settings, &mut points).unwrap();
    state.run(&mut points, 2, |_| Ok(Next::Continue)).unwrap();
    let mut model = state.model();
    // Columns have mean 1: a bar of a quarter of the pixels has the value 4, and strengths are a quarter of what they were.
    let spread = model.slab_variances().iter().map(|v| v.sqrt()).sum::<f64>() / bars as f64;
    let mean = model.slab_mean.iter().sum::<f64>() / bars as f64;
    assert!((mean - mu / 4.0).abs() < 0.15 && (spread - psi / 4.0).abs() < 0.1, "{mean} {spread}");
    let (on, left) = (model.prior.iter().sum::<f64>(), model.noise_variances()[0].sqrt());
    assert!((on - 2.0).abs() < 0.2 && (left - noise).abs() < 0.1, "{on} {left}");
    model.dictionary.iter_mut().for_each(|w| *w *= bars::VALUE / 4.0);
    let (found, off) = test.found(&model);
    assert!(found == bars && off < 0.3, "{found} {off}");
}
