//! Selection quality: how much of the posterior do the selected latents hold?
//!
//! Paper 000, section 5.1: bars data, H = 10 and 12 horizontal and vertical bars of height +10 or -10 on a grid of
//! H/2 x H/2 pixels, two on at a time on average, slab means drawn from N(0, 5), slab variance 1, noise variance 2,
//! N = 1000. After 50 iterations of truncated EM with (H', gamma) = (4, 4), (5, 4) and (5, 3), the part Q of the
//! posterior that lies in the states kept, averaged over the points, is above 0.99 in all experiments.
//!
//! With these numbers that cannot be at the true parameters. The noise is so weak that the posterior of a point is all
//! but one state, the true one, and Q averages to at most the share of points with no more than gamma bars on, which
//! the table has beside Q. `few` is Q averaged over the points with no more than gamma bars on: what it lacks to
//! 1 is lost by selection. The Amari index tells whether what was learned are the bars.
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
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
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
    let trials = if arguments.quick { 1 } else { 10 };
    println!("Q after {ITERATIONS} iterations on {POINTS} points of bars, {trials} data sets\n");
    let names = [
        "H",
        "H'",
        "gamma",
        "<= gamma on",
        "Q, truth",
        "Q, truth, few",
        "Q, learned",
        "Q, learned, few",
        "Amari",
    ];
    let table = Table::new(&names);
    for latents in [10, 12] {
        for (selected, max_active) in TRUNCATIONS {
            let settings = gsc::truncated(latents, selected, max_active, ITERATIONS, 0);
            let results = arguments.trials(trials, |trial| run(&settings, trial))?;
            let mut row = [latents, selected, max_active].map(|size| size.to_string()).to_vec();
            let column = |k: usize| results.iter().map(|row| row[k]).collect::<Vec<f64>>();
            row.extend((0..5).map(|k| format!("{:.3}", mean_and_spread(&column(k)).0)));
            row.push(format!("{:.3}", median(&column(5))));
            table.row(&row);
        }
    }
    Ok(())
}

/// Share of points with few bars on, Q under the truth (of all points, of those), Q after training (likewise), Amari index.
fn run(settings: &Settings, trial: usize) -> Result<[f64; 6]> {
    let mut rng = Rng::new(common::seed(1, trial));
    let truth = bars(settings.latents, &mut rng);
    let sources = draw(&truth, &mut rng);
    let mut data = mix(&sources, &truth.dictionary, truth.latents);
    add_noise(&mut rng, &mut data, truth.noise_variances()[0].sqrt());

    let settings = Settings { slab: SlabForm::Diagonal, seed: common::seed(2, trial), ..settings.clone() };
    let model = gsc::train(&settings, &mut Points::new(data.clone(), truth.dims))?.model();
    let index = amari(&model.dictionary, &truth.dictionary, truth.dims, truth.latents).unwrap_or(1.0);

    let on = |x: &[f64]| x.iter().filter(|x| **x != 0.0).count();
    let few: Vec<bool> = sources.chunks_exact(truth.latents).map(|x| on(x) <= settings.max_active).collect();
    let count = few.iter().filter(|few| **few).count() as f64;
    let means = |parameters: &Parameters| -> Result<[f64; 2]> {
        let all = qualities(parameters, &settings, &data)?;
        let of_few = all.iter().zip(&few).filter(|(_, few)| **few).map(|(q, _)| q);
        Ok([all.iter().sum::<f64>() / POINTS as f64, of_few.sum::<f64>() / count])
    };
    let ([truth_all, truth_few], [learned_all, learned_few]) = (means(&truth)?, means(&model)?);
    Ok([count / POINTS as f64, truth_all, truth_few, learned_all, learned_few, index])
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
        kind: ModelKind::Gsc,
        dims: side * side,
        latents,
        dictionary: entries.map(entry).collect(),
        prior: vec![2.0 / latents as f64; latents],
        slab_mean: (0..latents).map(|_| 5f64.sqrt() * rng.normal::<f64>()).collect(),
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(2.0),
    }
}

/// How strongly each bar is on in each point.
fn draw(truth: &Parameters, rng: &mut Rng) -> Vec<f64> {
    let mut sources = Vec::new();
    for at in 0..POINTS * truth.latents {
        let bar = at % truth.latents;
        let on = rng.uniform::<f64>() < truth.prior[bar];
        sources.push(if on { truth.slab_mean[bar] + rng.normal::<f64>() } else { 0.0 });
    }
    sources
}

/// Q of every point.
fn qualities(model: &Parameters, truncated: &Settings, data: &[f64]) -> Result<Vec<f64>> {
    let exact = gsc::exact(model.latents, 0, 0);
    let of_point = |point: &[f64]| {
        let evidence = |settings: &Settings| {
            let mut point = Points::new(point.to_vec(), model.dims);
            e_step(model, &settings.options(), &mut point, 1).map(|statistics| statistics.free_energy)
        };
        Ok(quality(evidence(truncated)?, evidence(&exact)?))
    };
    data.chunks_exact(model.dims).map(of_point).collect()
}
