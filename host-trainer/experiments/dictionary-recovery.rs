//! How long it takes to find all elements of a large dictionary: 256 random directions in 64 dimensions, 5000 points
//! with three to five of them on, little noise. Plain EM against stepwise EM on mini-batches, with the papers' states and with
//! adaptive ones. `experiments/versus-peers` has the programs of others on similar data.
//!
//! ```sh
//! cargo run --release -p spikelet-trainer --example dictionary-recovery [-- --quick]
//! ```

mod common;

use common::gsc::truncated;
use common::mixtures::{normal_matrix, unit_columns};
use common::table::Table;
use common::{Arguments, seed};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::prepare::Options;
use spikelet_trainer::train::settings::{InitForm, SlabForm, StatesForm};
use spikelet_trainer::train::{Next, Points, Settings, State};
use std::process::ExitCode;

const DIMS: usize = 64;
const LATENTS: usize = 256;
const POINTS: usize = 5000;
const NOISE: f64 = 0.03;
/// A direction is found when a column has a cosine beyond this with it.
const FOUND: f64 = 0.95;
/// Passes over the data after which it is counted.
const PASSES: [usize; 5] = [2, 4, 10, 20, 40];

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (sets, passes) = if arguments.quick { (1, 10) } else { (3, 40) };
    println!(
        "directions found of {LATENTS} (seconds), D = {DIMS}, N = {POINTS}; papers' states with H' = 10, gamma = 5\n"
    );
    let heads: Vec<String> = PASSES.iter().map(|passes| format!("{passes} passes   ")).collect();
    let mut names = vec!["set", "method                    "];
    names.extend(heads.iter().map(String::as_str));
    let table = Table::new(&names);
    let plain = Settings { slab: SlabForm::Diagonal, ..truncated(LATENTS, 10, 5, passes, 1) };
    let stepwise = Settings { batch: POINTS / 50, ..plain.clone() };
    let methods = [
        ("plain EM, random start", plain.clone()),
        ("plain EM, start from data", Settings { init: InitForm::Data, ..plain }),
        ("stepwise, random start", stepwise.clone()),
        ("stepwise, start from data", Settings { init: InitForm::Data, ..stepwise.clone() }),
        (
            "adaptive, start from data",
            Settings {
                states: StatesForm::Adaptive,
                selected: Options::CANDIDATES,
                max_active: Options::ACTIVE,
                batch: POINTS / 10,
                init: InitForm::Data,
                ..stepwise
            },
        ),
    ];
    let trials = arguments.trials(sets * methods.len(), |trial| {
        let (set, method) = (trial / methods.len(), trial % methods.len());
        Ok((set, methods[method].0, run(&methods[method].1, set)?))
    })?;
    for (set, name, counts) in trials {
        let mut row = vec![set.to_string(), name.to_string()];
        row.extend(PASSES.iter().map(|passes| {
            let count = counts.get(*passes);
            count.map_or(String::new(), |(found, seconds)| format!("{found} ({seconds:.1})"))
        }));
        table.row(&row);
    }
    Ok(())
}

/// Directions found, and seconds, after every pass.
fn run(settings: &Settings, set: usize) -> Result<Vec<(usize, f64)>> {
    let mut rng = Rng::new(seed(7, set));
    let truth = unit_columns(&normal_matrix(&mut rng, DIMS, LATENTS), LATENTS);
    let mut points = Points::new(sample(&mut rng, &truth), DIMS);
    let mut state = State::new(settings.clone(), &mut points)?;
    let mut counts = Vec::new();
    state.run(&mut points, 1, |state| {
        let seconds = state.current.history.last().map_or(0.0, |step| step.seconds);
        counts.push((found(&state.current.parameters.dictionary, &truth), seconds));
        Ok(Next::Continue)
    })?;
    Ok(counts)
}

/// Points with three to five directions on, each normally distributed.
fn sample(rng: &mut Rng, truth: &[f64]) -> Vec<f64> {
    let mut data = Vec::with_capacity(POINTS * DIMS);
    for _ in 0..POINTS {
        let on = 3 + (3.0 * rng.uniform::<f64>()) as usize;
        let mut point: Vec<f64> = (0..DIMS).map(|_| NOISE * rng.normal::<f64>()).collect();
        for _ in 0..on {
            let direction = ((LATENTS as f64 * rng.uniform::<f64>()) as usize).min(LATENTS - 1);
            let strength: f64 = rng.normal();
            for (y, w) in point.iter_mut().zip(truth.chunks_exact(LATENTS)) {
                *y += strength * w[direction];
            }
        }
        data.extend(point);
    }
    data
}

/// How many columns of `truth` (of length 1) have one of `learned` in their direction.
fn found(learned: &[f64], truth: &[f64]) -> usize {
    let column =
        |matrix: &[f64], k: usize| -> Vec<f64> { matrix.iter().skip(k).step_by(LATENTS).copied().collect() };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let learned: Vec<Vec<f64>> = (0..LATENTS).map(|k| column(learned, k)).collect();
    let norms: Vec<f64> = learned.iter().map(|w| dot(w, w).sqrt()).collect();
    let is_found = |k: usize| {
        let direction = column(truth, k);
        learned.iter().zip(&norms).any(|(w, norm)| dot(w, &direction).abs() > FOUND * norm)
    };
    (0..LATENTS).filter(|&k| is_found(k)).count()
}
