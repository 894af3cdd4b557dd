//! Gaussian mixtures with C' = 2 of C = 3 components selected (thesis 004, section 4.5.2 and figure 4.3), and with few of many.
//!
//! Three clusters in the plane, their means at random or roughly on a line; means of the model begin at points drawn from the
//! data, 40 EM steps. The thesis shows pictures: with a linear kernel points are not assigned to their clusters, with an RBF
//! kernel they are; beginning at the solution a linear kernel wanders off, an RBF kernel stays even with C' = 1. Here: the share
//! of points that are assigned to their cluster by the final model over all components (mean over runs, best matching of
//! components and clusters), with all components, selection by score, and both kernels. The second table is a mixture of 64
//! components in 8 dimensions: the likelihood per point over all components, less that of EM over all.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example mixtures -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::table::{Table, mean_and_spread, spread};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::gmm::{Covariances, Mixture, Select, Settings, fit};
use spikelet_trainer::gp::KernelName;
use std::process::ExitCode;

const RANK: usize = 100;

fn main() -> ExitCode {
    common::main(experiment)
}

fn gp(count: usize, kernel: KernelName) -> Select {
    Select::Gp { count, kernel, rank: RANK, every: 5 }
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let runs = if arguments.quick { 2 } else { 10 };
    three(arguments, runs)?;
    println!();
    many(arguments, runs)
}

/// Figure 4.3.
fn three(arguments: &Arguments, runs: usize) -> Result<()> {
    println!("Three clusters, {runs} runs: share of points in their cluster, mean (standard deviation)\n");
    let table = Table::new(&["means    ", "start      ", "selection", "C' = 2       ", "C' = 1       "]);
    for line in [false, true] {
        for at_solution in [false, true] {
            for (name, select) in [
                ("all", (|_| Select::All) as fn(usize) -> Select),
                ("score", Select::Score),
                ("linear", |count| gp(count, KernelName::Linear)),
                ("RBF", |count| gp(count, KernelName::Rbf)),
            ] {
                let shares = |count: usize| {
                    arguments.trials(runs, |trial| share(line, at_solution, select(count), trial))
                };
                table.row(&[
                    if line { "on a line" } else { "at random" }.to_owned(),
                    if at_solution { "the solution" } else { "points" }.to_owned(),
                    name.to_owned(),
                    spread(&shares(2)?),
                    spread(&shares(1)?),
                ]);
            }
        }
    }
    Ok(())
}

fn share(line: bool, at_solution: bool, select: Select, trial: usize) -> Result<f64> {
    let mut rng = Rng::new(common::seed(60, trial));
    let mut place = |k: usize| match line {
        true => [4.0 * k as f64 - 4.0, 0.3 * rng.normal::<f64>()],
        false => [3.0 * rng.normal::<f64>(), 3.0 * rng.normal::<f64>()],
    };
    let truth: Vec<[f64; 2]> = (0..3).map(&mut place).collect();
    let n = 300;
    let points: Vec<f64> =
        (0..n).flat_map(|n| truth[n % 3].map(|mean| mean + 0.7 * rng.normal::<f64>())).collect();
    let drawn = |rng: &mut Rng| {
        let at = (rng.uniform::<f64>() * n as f64) as usize;
        [points[2 * at], points[2 * at + 1]]
    };
    let means: Vec<f64> = match at_solution {
        true => truth.concat(),
        false => (0..3).flat_map(|_| drawn(&mut rng)).collect(),
    };
    let mut start = Mixture::around(means, Covariances::Full, &points, 2);
    if at_solution {
        start.covariances = [0.49, 0.0, 0.0, 0.49].repeat(3);
    }
    let settings = Settings { select, iterations: 40, floor: 1e-3, seed: common::seed(61, trial) };
    let (mixture, _) = fit(start, &points, &settings)?;
    let (found, _) = mixture.responsibilities(&points, None)?;
    let mut counts = [[0usize; 3]; 3];
    for (n, q) in found.chunks_exact(3).enumerate() {
        let most = (0..3).fold(0, |best, k| if q[k] > q[best] { k } else { best });
        counts[n % 3][most] += 1;
    }
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let right = orders.iter().map(|order| (0..3).map(|k| counts[k][order[k]]).sum::<usize>()).max();
    Ok(right.unwrap_or(0) as f64 / n as f64)
}

/// Few of 64.
fn many(arguments: &Arguments, runs: usize) -> Result<()> {
    let points = if arguments.quick { 1000 } else { 4000 };
    println!(
        "64 components in 8 dimensions, N = {points}, {runs} runs: likelihood per point less that of all components\n"
    );
    let table = Table::new(&["selection", "C'", "covariances", "difference"]);
    for form in [Covariances::Full, Covariances::Diagonal] {
        for (name, count, select) in [
            ("score", 4, Select::Score(4)),
            ("score", 8, Select::Score(8)),
            ("score", 16, Select::Score(16)),
            ("RBF", 8, gp(8, KernelName::Rbf)),
        ] {
            let lost = arguments.trials(runs, |trial| difference(form, select, points, trial))?;
            let form = format!("{form:?}").to_lowercase();
            table.row(&[
                name.to_owned(),
                count.to_string(),
                form,
                format!("{:+.4}", mean_and_spread(&lost).0),
            ]);
        }
    }
    Ok(())
}

fn difference(form: Covariances, select: Select, n: usize, trial: usize) -> Result<f64> {
    const D: usize = 8;
    let mut rng = Rng::new(common::seed(62, trial));
    let truth: Vec<f64> = (0..64 * D).map(|_| 2.0 * rng.normal::<f64>()).collect();
    let scales: Vec<f64> = (0..64 * D).map(|_| 0.3 + rng.uniform::<f64>()).collect();
    let points: Vec<f64> = (0..n)
        .flat_map(|n| (0..D).map(move |d| n % 64 * D + d))
        .map(|e| truth[e] + scales[e] * rng.normal::<f64>())
        .collect();
    let start = Mixture::around(points[..64 * D].to_vec(), form, &points, D);
    let settings =
        Settings { select: Select::All, iterations: 20, floor: 1e-3, seed: common::seed(63, trial) };
    let exact = fit(start.clone(), &points, &settings)?.0.responsibilities(&points, None)?.1;
    let (few, _) = fit(start, &points, &Settings { select, ..settings })?;
    Ok((few.responsibilities(&points, None)?.1 - exact) / n as f64)
}
