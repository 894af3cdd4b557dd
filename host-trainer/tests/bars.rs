//! Bars tests, small: every kind of model that is on or off finds all causes of its own data, with what it has by default.

#[path = "../experiments/common/bars.rs"]
#[allow(dead_code)]
mod bars;

use bars::Test;
use spikelet::rng::Rng;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::Engine;
use spikelet_trainer::train::{Next, Settings, State};

const LINEAR: Test = Test { kind: ModelKind::Nmf, side: 4, width: 1, signed: false, points: 300, noise: 1.5 };

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
    let signed = Test { kind: ModelKind::Bsc, signed: true, ..LINEAR };
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
