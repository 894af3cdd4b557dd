//! Consistency: with more and more points, do the learned directions approach the true ones?
//!
//! Paper 000, section 5.2 and figure 3: H = D = 10, W an orthogonal matrix plus normal noise of variance 2, every source
//! on with probability 1/H, slab N(0, 1), noise of standard deviation 1, 100 iterations from random parameters,
//! everything learned, N from 1000 to 512 000, 15 repetitions. Exact EM and truncated EM (H' = gamma = 5) on
//! spike-and-slab data, truncated EM on data with Laplace sources. The Amari indices of both engines fall below 0.006
//! from N = 128 000 on; those of Laplace sources fall too, but stay higher.
//!
//! Here the repetitions become fewer with N (the table says how many), down to one of exact EM and five of truncated EM, because
//! exact EM on 512 000 points takes as long as on all smaller numbers together. Single starts end in local optima too often to
//! see how the global one depends on N, so a repetition begins with four short starts on at most 4000 of its points, of which the
//! best goes on for 100 iterations; then come 30 on four times as many points each, up to all.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example consistency -- [--quick] [--skip ROWS]
//! ```

mod common;

use common::Arguments;
use common::gsc;
use common::mixtures::{Source, add_noise, mix, normal_matrix, orthogonal_matrix};
use common::table::{Table, mean_and_spread};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::train::settings::SlabForm;
use spikelet_trainer::train::{Points, Settings};
use std::process::ExitCode;

/// H = D.
const SOURCES: usize = 10;
const ITERATIONS: usize = 100;
/// Short starts of a repetition, their iterations, and the most points they see.
const STARTS: usize = 4;
const START_ITERATIONS: usize = 40;
const START_POINTS: usize = 4000;
/// Iterations on more points, and how many times as many.
const MORE_ITERATIONS: usize = 30;
const MORE: usize = 4;
/// H' = gamma of truncated EM.
const SELECTED: usize = 5;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let doublings = if arguments.quick { 2 } else { 10 };
    println!(
        "Amari index, repetitions: mean (standard deviation) smallest, H = D = {SOURCES}, {ITERATIONS} iterations\n"
    );
    let figures = "15: 0.0000 (0.0000) 0.0000";
    let columns =
        ["exact", "truncated", "truncated, Laplace"].map(|name| format!("{name:<0$}", figures.len()));
    let table = Table::new(&["N", &columns[0], &columns[1], &columns[2]]);
    for n in (0..doublings).map(|k| 1000 << k).skip(arguments.skip) {
        let exact = gsc::exact(SOURCES, ITERATIONS, 0);
        let truncated = gsc::truncated(SOURCES, SELECTED, SELECTED, ITERATIONS, 0);
        let spikes = Source::SpikeAndSlab(1.0 / SOURCES as f64);
        let mut row = vec![n.to_string()];
        for (source, settings, fewest) in
            [(spikes, &exact, 1), (spikes, &truncated, 5), (Source::Laplace, &truncated, 5)]
        {
            let repetitions = if arguments.quick { 1 } else { (15 * 2000 / n).clamp(fewest, 15) };
            let indices = arguments.trials(repetitions, |trial| index(n, source, settings, trial))?;
            let (mean, spread) = mean_and_spread(&indices);
            let smallest = indices.iter().copied().fold(f64::INFINITY, f64::min);
            row.push(format!("{repetitions:>2}: {mean:.4} ({spread:.4}) {smallest:.4}"));
        }
        table.row(&row);
    }
    Ok(())
}

/// Amari index of one repetition.
fn index(n: usize, source: Source, settings: &Settings, trial: usize) -> Result<f64> {
    let mut rng = Rng::new(common::seed(3, trial));
    let mut mixing = orthogonal_matrix(&mut rng, SOURCES);
    let perturbation = normal_matrix(&mut rng, SOURCES, SOURCES);
    mixing.iter_mut().zip(perturbation).for_each(|(w, e)| *w += 2f64.sqrt() * e);
    let mut data = mix(&source.points(&mut rng, n, SOURCES), &mixing, SOURCES);
    add_noise(&mut rng, &mut data, 1.0);
    let settings = Settings { slab: SlabForm::Diagonal, seed: common::seed(4, trial), ..settings.clone() };
    let first = |count: usize| Points::new(data[..count * SOURCES].to_vec(), SOURCES);
    let mut count = n;
    while count > START_POINTS {
        count /= MORE;
    }
    let short = Settings { restarts: STARTS, iterations: START_ITERATIONS, ..settings.clone() };
    let begin = gsc::train(&short, &mut first(count))?.model();
    let mut model = gsc::train_from(begin, &settings, &mut first(count))?.parameters;
    let more = Settings { iterations: MORE_ITERATIONS, ..settings };
    while count < n {
        count = n.min(MORE * count);
        model = gsc::train_from(model, &more, &mut first(count))?.parameters;
    }
    // Without an index (columns that depend on each other) nothing was found.
    Ok(amari(&model.dictionary, &mixing, SOURCES, SOURCES).unwrap_or(1.0))
}
