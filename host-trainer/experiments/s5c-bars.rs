//! Select and sample on bars: does preselection help, or only save time?
//!
//! Paper 003, section 4: H = 10 bars on 5 x 5 pixels, each positive or negative at random with value 5, on with
//! probability 2 / H and then with a strength from the slab N(0, 1); N = 5000 points, noise of variance 1, 40 sweeps. Gibbs
//! sampling of all latents (150 iterations) finds all bars in 2 of 10 runs, of H' = 5 preselected ones (50 iterations) in 9
//! of 10. Here all parameters are learned from the library's own random starts, on the same data in all runs; exact EM is
//! beside it.
//!
//! A bar is found when a column has a cosine beyond 0.9 with it, and no other bar has the same one.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example s5c-bars -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::bars::{Signs, Test};
use common::mixtures::{Source, add_noise, mix};
use common::table::{Table, median};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::Engine;
use spikelet_trainer::train::{Next, Points, Settings, State, e_step};
use std::process::ExitCode;

const BARS: usize = 10;
const DIMS: usize = 25;
/// N, and N of the quick run.
const POINTS: usize = 5000;
const FEW: usize = 500;
const SWEEPS: u32 = 40;
const FOUND: f64 = 0.9;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (runs, n) = if arguments.quick { (3, FEW) } else { (10, POINTS) };
    println!("{runs} runs on {n} points; L is the exact log-likelihood per point, median over runs\n");
    let table =
        Table::new(&["setting               ", "iterations", "all found", "mean found", "L", "paper"]);
    let gibbs = Settings {
        engine: Engine::Gibbs,
        sweeps: SWEEPS,
        max_active: 5,
        ..Settings::new(ModelKind::Gsc, BARS)
    };
    for (name, settings, paper) in [
        ("exact", Settings { iterations: 50, ..Settings::new(ModelKind::Gsc, BARS) }, ""),
        ("Gibbs, H' = H = 10", Settings { selected: BARS, iterations: 150, ..gibbs.clone() }, "2 of 10"),
        ("Gibbs, H' = 5", Settings { selected: 5, iterations: 50, ..gibbs.clone() }, "9 of 10"),
        ("Gibbs, H' = 4", Settings { selected: 4, max_active: 4, iterations: 50, ..gibbs }, ""),
    ] {
        let found = arguments.trials(runs, |run| found(&settings, n, run))?;
        let all = found.iter().filter(|(bars, _)| *bars == BARS).count();
        let mean = found.iter().map(|(bars, _)| *bars as f64).sum::<f64>() / runs as f64;
        let likelihoods: Vec<f64> = found.iter().map(|(_, likelihood)| *likelihood).collect();
        table.row(&[
            name.to_owned(),
            settings.iterations.to_string(),
            format!("{all} of {runs}"),
            format!("{mean:.1}"),
            format!("{:.3}", median(&likelihoods)),
            paper.to_owned(),
        ]);
    }
    Ok(())
}

/// Bars found by a run, and L of what it came to.
fn found(settings: &Settings, n: usize, run: usize) -> Result<(usize, f64)> {
    let (truth, data) = data(n);
    let mut points = Points::new(data, DIMS);
    let settings = Settings { seed: common::seed(41, run), ..settings.clone() };
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    let model = state.model();
    let likelihood =
        e_step(&model, &Settings::new(ModelKind::Gsc, BARS).options(), &mut points, 1)?.free_energy;
    let cosine = |bar: usize, latent: usize| {
        let entry = |d: usize| (truth[d * BARS + bar], model.dictionary[d * BARS + latent]);
        let sum = |f: fn((f64, f64)) -> f64| (0..DIMS).map(|d| f(entry(d))).sum::<f64>();
        (sum(|(t, w)| t * w) / (sum(|(t, _)| t * t) * sum(|(_, w)| w * w)).sqrt()).abs()
    };
    let mut shown = [false; BARS];
    for bar in 0..BARS {
        let best = (0..BARS).fold(0, |best, k| if cosine(bar, k) > cosine(bar, best) { k } else { best });
        shown[best] |= cosine(bar, best) > FOUND;
    }
    Ok((shown.iter().filter(|shown| **shown).count(), likelihood / n as f64))
}

/// Bars of either sign as columns, and points of them: the same in all runs.
fn data(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(common::seed(40, 0));
    let signs = Signs::Given((rng.uniform::<f64>() * f64::from(1 << BARS)) as u64);
    let test = Test { kind: ModelKind::Gsc, side: 5, width: 1, signs, points: n, noise: 1.0 };
    // Of value 5.
    let truth: Vec<f64> = test.dictionary().iter().map(|w| 0.5 * w).collect();
    let sources = Source::SpikeAndSlab(2.0 / BARS as f64).points(&mut rng, n, BARS);
    let mut data = mix(&sources, &truth, BARS);
    add_noise(&mut rng, &mut data, test.noise);
    (truth, data)
}
