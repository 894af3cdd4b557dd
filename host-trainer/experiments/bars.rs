//! The bars tests of paper 002: does training find all causes, and how reliably?
//!
//! Bars of value 10 on a square of pixels, two of them on average in every point. They add up (NMF; LinCA with every
//! other bar negative) or the larger pixel wins (MCA). Noise of standard deviation 2, or none. H' = 5 and gamma = 3. Bars
//! that overlap are two pixels wide on 9 x 9 pixels, and twice as many latents as bars look for them.
//!
//! The paper gives the noise (2 also where there is none) and a prior of two latents on at a time to training, learns the
//! dictionary only, from random values near the mean of the data, and cools down from a temperature of 13, or 23 where bars
//! overlap: the first column of figures. The others are what training does by default: all learned from the data alone,
//! columns begin as points of the data, a temperature of 3 at first. Where bars overlap it is 8 here. A trial has new data
//! and new random parameters.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example bars -- [--quick] [--skip ROWS]
//! ```

mod common;

use common::Arguments;
use common::bars::{Signs, Test};
use common::table::Table;
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Fixed, InitForm};
use spikelet_trainer::train::{Next, Settings, State};
use std::process::ExitCode;

/// A row: what is tested, with how many latents, how often, and what the paper has.
struct Row {
    name: &'static str,
    test: Test,
    latents: usize,
    iterations: usize,
    trials: usize,
    /// First temperature, the paper's and ours.
    temperatures: [f64; 2],
    paper: &'static str,
}

fn rows() -> Vec<Row> {
    let linear =
        Test { kind: ModelKind::Nmf, side: 5, width: 1, signs: Signs::Positive, points: 500, noise: 2.0 };
    let signed = Test { kind: ModelKind::Bsc, signs: Signs::Alternating, ..linear };
    let maximal = Test { kind: ModelKind::Mca, ..linear };
    let overlapping = Test { side: 9, width: 2, points: 400, noise: 0.0, ..maximal };
    let row = |name, test, paper| {
        let temperatures = [13.0, 3.0];
        Row { name, test, latents: 10, iterations: 100, trials: 50, temperatures, paper }
    };
    let wide = |test, trials, paper| Row {
        latents: 32,
        iterations: 400,
        trials,
        temperatures: [23.0, 8.0],
        ..row("MCA, overlapping", test, paper)
    };
    vec![
        row("NMF", linear, "50 of 50, 0.20"),
        row("NMF, no noise", Test { noise: 0.0, ..linear }, "46 of 50, 0.05"),
        row("LinCA, +-", signed, "50 of 50, 0.21"),
        row("LinCA, +-, no noise", Test { noise: 0.0, ..signed }, "49 of 50, 0.04"),
        row("MCA", maximal, "46 of 50, 0.29"),
        Row { trials: 20, ..row("MCA", Test { points: 2000, ..maximal }, "all") },
        row("MCA, no noise", Test { noise: 0.0, ..maximal }, "41 of 50, 0.05"),
        wide(overlapping, 25, "21 of 25, 0.04"),
        wide(Test { points: 800, ..overlapping }, 25, "50 of 50"),
    ]
}

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    println!(
        "trials in which all bars are found, mean number of bars, mean absolute error of their pixels\n"
    );
    let methods = ["given noise and prior", "all learned          ", "best of 4 starts     "];
    let columns = ["test               ", "N", "bars"];
    let table = Table::new(&[&columns[..], &methods[..], &["paper         "]].concat());
    for row in rows().into_iter().skip(arguments.skip) {
        // Overlapping bars take minutes.
        if arguments.quick && row.latents > 10 {
            continue;
        }
        let trials = if arguments.quick { 3 } else { row.trials };
        let mut cells = vec![row.name.to_owned(), row.test.points.to_string(), row.test.bars().to_string()];
        for method in 0..methods.len() {
            if row.latents > 10 && method == 2 {
                cells.push("-".into());
                continue;
            }
            let found = arguments.trials(trials, |trial| run(&row, method, trial))?;
            let all = found.iter().filter(|(bars, _)| *bars == row.test.bars()).count();
            let mean =
                |figure: fn(&(usize, f64)) -> f64| found.iter().map(figure).sum::<f64>() / trials as f64;
            cells.push(format!("{all} of {trials}, {:.1}, {:.2}", mean(|f| f.0 as f64), mean(|f| f.1)));
        }
        cells.push(row.paper.to_owned());
        table.row(&cells);
    }
    Ok(())
}

/// Bars found in one trial, and their error.
fn run(row: &Row, method: usize, trial: usize) -> Result<(usize, f64)> {
    let test = &row.test;
    let mut points = test.data(&mut Rng::new(common::seed(20, trial)));
    let all_learned = Settings {
        iterations: row.iterations,
        temperature: (row.temperatures[1], 1.0),
        ..test.settings(row.latents, common::seed(21, trial))
    };
    let settings = match method {
        0 => Settings {
            first_prior: Some(2.0 / row.latents as f64),
            first_noise: Some(4.0),
            fixed: vec![Fixed::Pi, Fixed::Sigma2],
            temperature: (row.temperatures[0], 1.0),
            init: InitForm::Random,
            ..all_learned
        },
        1 => all_learned,
        _ => Settings { restarts: 4, ..all_learned },
    };
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    Ok(test.found(&state.model()))
}
