//! Model verification: does EM find the parameters that made the data, from wherever it starts?
//!
//! Paper 001, section 4: N = 500 points of a model with H = D = 2, W of entries from N(0, 9), pi uniform between 0.05 and
//! 1, noise variance uniform between 0.05 and 10. On these, 250 starts of exact EM (slab N(0, 1), one noise variance)
//! of 300 iterations, with W of standard normal entries, pi uniform between 0.05 and 1, and the variance of the data
//! as noise. In all runs the likelihood ended close to that of the true parameters or slightly above, and the true
//! parameters were recovered with high accuracy; other true parameters gave essentially the same.
//!
//! Here a row is one set of true parameters. L is the log-likelihood per point; `at the top` counts the starts that end
//! within 0.001 of the best one, `above truth` those that end above the true parameters. Where a direction is hidden
//! (noise as strong as a column, pi near 1), the likelihood hardly depends on it, and the Amari index says so.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example model-verification -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::gsc;
use common::mixtures::{add_noise, mix, normal_matrix};
use common::table::{Table, quantile};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::train::{Points, e_step};
use std::process::ExitCode;

/// H = D.
const SOURCES: usize = 2;
const POINTS: usize = 500;
const ITERATIONS: usize = 300;
/// Starts whose log-likelihoods per point differ by less have found the same optimum.
const SAME: f64 = 1e-3;

/// What a start came to.
struct Run {
    likelihood: f64,
    index: f64,
    noise: f64,
}

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (truths, starts) = if arguments.quick { (2, 40) } else { (5, 250) };
    println!("{starts} starts of {ITERATIONS} iterations on {POINTS} points, H = D = {SOURCES}\n");
    let columns = ["pi       ", "noise", "L(truth)", "best - truth", "above truth", "at the top"];
    let more = ["Amari at the top", "Amari 5, 50, 95 %  ", "noise at the top"];
    let table = Table::new(&[&columns[..], &more[..]].concat());
    for number in 0..truths {
        let mut rng = Rng::new(common::seed(8, number));
        let truth = random_truth(&mut rng);
        let data = generate(&truth, &mut rng);
        let options = gsc::exact(SOURCES, 0, 0).options();
        let likelihood = e_step(&truth, &options, &mut Points::new(data.clone(), SOURCES), 1)?.free_energy;
        let runs = arguments.trials(starts, |start| run(&truth, &data, start))?;
        table.row(&row(&truth, likelihood / POINTS as f64, &runs));
    }
    Ok(())
}

/// The parameters of footnote 1.
fn random_truth(rng: &mut Rng) -> Parameters {
    let mut between = |low: f64, high: f64| low + (high - low) * rng.uniform::<f64>();
    let prior = vec![between(0.05, 1.0), between(0.05, 1.0)];
    let noise = NoiseCov::Shared(between(0.05, 10.0));
    Parameters {
        kind: ModelKind::Gsc,
        dims: SOURCES,
        latents: SOURCES,
        dictionary: normal_matrix(rng, SOURCES, SOURCES).iter().map(|w| 3.0 * w).collect(),
        prior,
        slab_mean: vec![0.0; SOURCES],
        slab_cov: SlabCov::Unit,
        noise,
    }
}

fn generate(truth: &Parameters, rng: &mut Rng) -> Vec<f64> {
    let mut sources = Vec::new();
    for at in 0..POINTS * SOURCES {
        let on = rng.uniform::<f64>() < truth.prior[at % SOURCES];
        sources.push(if on { rng.normal() } else { 0.0 });
    }
    let mut data = mix(&sources, &truth.dictionary, SOURCES);
    add_noise(rng, &mut data, truth.noise_variances()[0].sqrt());
    data
}

fn run(truth: &Parameters, data: &[f64], start: usize) -> Result<Run> {
    let begin = gsc::paper_start(data, SOURCES, SOURCES, &mut Rng::new(common::seed(9, start)));
    let settings = gsc::exact(SOURCES, ITERATIONS, 0);
    let end = gsc::train_from(begin, &settings, &mut Points::new(data.to_vec(), SOURCES))?;
    let index = amari(&end.parameters.dictionary, &truth.dictionary, SOURCES, SOURCES);
    Ok(Run {
        likelihood: end.free_energy() / POINTS as f64,
        // Without an index (columns that depend on each other) nothing was found.
        index: index.unwrap_or(1.0),
        noise: end.parameters.noise_variances()[0],
    })
}

fn row(truth: &Parameters, likelihood: f64, runs: &[Run]) -> Vec<String> {
    let best = runs.iter().map(|run| run.likelihood).fold(f64::NEG_INFINITY, f64::max);
    let above = runs.iter().filter(|run| run.likelihood >= likelihood).count();
    let top: Vec<&Run> = runs.iter().filter(|run| run.likelihood >= best - SAME).collect();
    let all: Vec<f64> = runs.iter().map(|run| run.index).collect();
    let median =
        |figure: fn(&Run) -> f64| quantile(&top.iter().map(|run| figure(run)).collect::<Vec<_>>(), 0.5);
    let [low, middle, high] = [0.05, 0.5, 0.95].map(|fraction| quantile(&all, fraction));
    vec![
        format!("{:.2} {:.2}", truth.prior[0], truth.prior[1]),
        format!("{:.2}", truth.noise_variances()[0]),
        format!("{likelihood:.4}"),
        format!("{:+.4}", best - likelihood),
        format!("{above} of {}", runs.len()),
        format!("{} of {}", top.len(), runs.len()),
        format!("{:.3}", median(|run| run.index)),
        format!("{low:.3} {middle:.3} {high:.3}"),
        format!("{:.2}", median(|run| run.noise)),
    ]
}
