//! Selection quality: how much of the posterior do the selected latents hold?
//!
//! Paper 000, section 5.1: bars data, H = 10 and 12 horizontal and vertical bars of height +10 or -10 on a grid of
//! H/2 x H/2 pixels, two on at a time on average, slab means drawn from N(0, 5), slab variance 1, noise variance 2,
//! N = 1000. After 50 iterations of truncated EM with (H', gamma) = (4, 4), (5, 4) and (5, 3), the part Q of the
//! posterior that lies in the states kept, averaged over the points, is above 0.99 in all experiments.
//!
//! Q is shown for the true parameters too: that is selection alone, without what learning does to it. The Amari index
//! tells whether what was learned are the bars.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example selection-quality -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::gsc;
use common::mixtures::{add_noise, mix};
use common::table::{Table, mean_and_spread, median};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::metrics::{amari, quality};
use spikelet_trainer::parameters::{NoiseCov, Parameters, SlabCov};
use spikelet_trainer::train::settings::SlabForm;
use spikelet_trainer::train::{Points, Settings, e_step};
use std::process::ExitCode;

const POINTS: usize = 1000;
const ITERATIONS: usize = 50;
/// (H', gamma).
const TRUNCATIONS: [(usize, usize); 3] = [(4, 4), (5, 4), (5, 3)];

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let trials = if arguments.quick { 2 } else { 20 };
    println!("Q after {ITERATIONS} iterations on {POINTS} points of bars, {trials} data sets\n");
    let table = Table::new(&["H", "H'", "gamma", "Q, true W", "Q, mean", "Q, worst run", "Amari, median"]);
    for latents in [10, 12] {
        for (selected, max_active) in TRUNCATIONS {
            let settings = gsc::truncated(latents, selected, max_active, ITERATIONS, 0);
            let results = arguments.trials(trials, |trial| run(&settings, trial))?;
            let column = |k: usize| results.iter().map(|row| row[k]).collect::<Vec<f64>>();
            let worst = column(1).into_iter().fold(1.0, f64::min);
            let mut row = [latents, selected, max_active].map(|size| size.to_string()).to_vec();
            row.extend(
                [mean_and_spread(&column(0)).0, mean_and_spread(&column(1)).0, worst].map(four_digits),
            );
            row.push(four_digits(median(&column(2))));
            table.row(&row);
        }
    }
    Ok(())
}

fn four_digits(value: f64) -> String {
    format!("{value:.4}")
}

/// Mean Q under the true parameters, mean Q after training, Amari index after training.
fn run(settings: &Settings, trial: usize) -> Result<[f64; 3]> {
    let mut rng = Rng::new(common::seed(1, trial));
    let truth = bars(settings.latents, &mut rng);
    let data = generate(&truth, &mut rng);
    let settings = Settings { slab: SlabForm::Diagonal, seed: common::seed(2, trial), ..settings.clone() };
    let model = gsc::train(&settings, &mut Points::new(data.clone(), truth.dims))?.model();
    let index = amari(&model.dictionary, &truth.dictionary, truth.dims, truth.latents).unwrap_or(1.0);
    Ok([mean_quality(&truth, &settings, &data)?, mean_quality(&model, &settings, &data)?, index])
}

/// The true model: bars with random signs.
fn bars(latents: usize, rng: &mut Rng) -> Parameters {
    let side = latents / 2;
    let signs: Vec<f64> = (0..latents).map(|_| 10f64.copysign(rng.uniform::<f64>() - 0.5)).collect();
    let covers = |pixel: usize, bar: usize| {
        if bar < side { pixel / side == bar } else { pixel % side == bar - side }
    };
    let entry = |(pixel, bar): (usize, usize)| if covers(pixel, bar) { signs[bar] } else { 0.0 };
    let entries = (0..side * side).flat_map(|pixel| (0..latents).map(move |bar| (pixel, bar)));
    Parameters {
        dims: side * side,
        latents,
        dictionary: entries.map(entry).collect(),
        prior: vec![2.0 / latents as f64; latents],
        slab_mean: (0..latents).map(|_| 5f64.sqrt() * rng.normal::<f64>()).collect(),
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(2.0),
    }
}

/// Points of the true model.
fn generate(truth: &Parameters, rng: &mut Rng) -> Vec<f64> {
    let mut sources = Vec::new();
    for at in 0..POINTS * truth.latents {
        let bar = at % truth.latents;
        let on = rng.uniform::<f64>() < truth.prior[bar];
        sources.push(if on { truth.slab_mean[bar] + rng.normal::<f64>() } else { 0.0 });
    }
    let mut data = mix(&sources, &truth.dictionary, truth.latents);
    add_noise(rng, &mut data, truth.noise_variances()[0].sqrt());
    data
}

/// Q of the truncation, averaged over the points.
fn mean_quality(model: &Parameters, truncated: &Settings, data: &[f64]) -> Result<f64> {
    let exact = gsc::exact(model.latents, 0, 0);
    let mut sum = 0.0;
    for point in data.chunks_exact(model.dims) {
        let evidence = |settings: &Settings| {
            let mut point = Points::new(point.to_vec(), model.dims);
            e_step(model, &settings.options(), &mut point, 1).map(|statistics| statistics.free_energy)
        };
        sum += quality(evidence(truncated)?, evidence(&exact)?);
    }
    Ok(sum / POINTS as f64)
}
