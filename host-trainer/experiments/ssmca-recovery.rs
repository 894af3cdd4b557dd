//! Are the parameters of maximal causes with slabs (SSMCA) found again? (Thesis 004, section 3.4.1.)
//!
//! N = 2000 points of the model itself: ten bars on 5 x 5 pixels, two on average, each with a strength from the slab, the
//! stronger one where two cross, noise with a standard deviation of 2. (The thesis calls it a variance, and its symbol a
//! deviation.) Columns of the dictionary have mean 1, so that a bar's pixels are 5. Five runs (thesis: ten) of 30 EM steps on the
//! same points, 30 sweeps a point of which 10 are burn-in, H' = 10, 5 and 4. The thesis says in words that all runs recover all
//! parameters; its curves have no figures, and the slab it drew from is not in the text. Here mu = 2, which makes bars of 10 as
//! elsewhere in the thesis, and psi = 0.5.
//!
//! The thesis has one pi, mu and psi for all latents; the library learns one for each, and the table has their means. Its start:
//! columns are the mean of the data plus normal noise of the data's deviation (cut off at zero: W is not negative), mu and psi
//! are mean and deviation of the data, noise is the data's. It does not say where pi starts; here at 1 / H, as in its section
//! 2.4.1. `points` has points of the data as first columns (`train --init data`), and pi = 2 / H. `mca` learns the first columns
//! by maximal causes without slabs, which cools down on the way and finds bars reliably; then comes what the thesis does. `truth`
//! starts at the true parameters, and shows what the best start could come to.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example ssmca-recovery -- [--quick] [--skip ROWS]
//! ```

mod common;

use common::Arguments;
use common::bars::{Signs, Test, VALUE};
use common::gsc::{self, train_from};
use common::mixtures::normal_matrix;
use common::table::{Table, mean_and_spread};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::train::kinds::ssmca::rescale;
use spikelet_trainer::train::settings::{Engine, InitForm};
use spikelet_trainer::train::{Points, Settings, State};
use std::process::ExitCode;

const BARS: usize = 10;
const DIMS: usize = 25;
const NOISE: f64 = 2.0;
const MEAN: f64 = 2.0;
const DEVIATION: f64 = 0.5;
const PRIOR: f64 = 0.2;
/// Of a bar's pixels: the mean of a column is 1.
const PIXEL: f64 = 5.0;

const TEST: Test =
    Test { kind: ModelKind::Ssmca, side: 5, width: 1, signs: Signs::Positive, points: 2000, noise: NOISE };

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (runs, n, iterations) = if arguments.quick { (2, 500, 20) } else { (5, TEST.points, 30) };
    let truth = truth();
    let (points, on) = points(&truth, n);
    println!(
        "{runs} runs on {n} points, {iterations} EM steps of 30 sweeps; truth: pi H = {}, {on:.3} in these points, mu = {MEAN}, \
         psi = {DEVIATION}, sigma = {NOISE}; means over the runs that find all bars\n",
        PRIOR * BARS as f64
    );
    let table = Table::new(&[
        "start  ",
        "H'",
        "all bars",
        "bars",
        "W off",
        "pi H",
        "mu",
        "psi",
        "sigma",
        "sigma, others",
    ]);
    let selections = if arguments.quick { &[5][..] } else { &[10, 5, 4] };
    let starts = [Start::Mca, Start::Points, Start::Thesis];
    let rows = starts.into_iter().flat_map(|start| selections.iter().map(move |&selected| (start, selected)));
    let rows = rows.chain([(Start::Truth, 5)]);
    for (start, selected) in rows.skip(arguments.skip) {
        let settings = Settings {
            selected,
            max_active: selected,
            sweeps: 30,
            iterations,
            ..Settings::new(ModelKind::Ssmca, BARS)
        };
        let found = arguments.trials(runs, |trial| run(&settings, start, &truth, &points, trial))?;
        let (full, others): (Vec<&Run>, Vec<&Run>) = found.iter().partition(|run| run.bars == BARS);
        let mean = found.iter().map(|run| run.bars as f64).sum::<f64>() / runs as f64;
        let mut row = vec![
            format!("{start:?}").to_lowercase(),
            selected.to_string(),
            format!("{} of {runs}", full.len()),
            format!("{mean:.1}"),
        ];
        let cell =
            |runs: &[&Run], k: usize| cell(&runs.iter().map(|run| run.figures[k]).collect::<Vec<f64>>());
        row.extend((0..5).map(|k| cell(&full, k)));
        row.push(cell(&others, 4));
        table.row(&row);
    }
    Ok(())
}

/// Mean and spread.
fn cell(values: &[f64]) -> String {
    let (mean, spread) = mean_and_spread(values);
    if values.is_empty() { "-".into() } else { format!("{mean:.2} ({spread:.2})") }
}

/// Where runs start.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    Mca,
    Points,
    Thesis,
    Truth,
}

struct Run {
    bars: usize,
    /// Mean absolute error of W, pi H, mu, psi, sigma.
    figures: [f64; 5],
}

fn run(settings: &Settings, start: Start, truth: &Parameters, data: &[f64], trial: usize) -> Result<Run> {
    let mut points = Points::new(data.to_vec(), DIMS);
    let settings = Settings { seed: common::seed(61, trial), ..settings.clone() };
    let first = match start {
        Start::Thesis => thesis_start(&mut points, &mut Rng::new(common::seed(62, trial)))?,
        Start::Points => {
            let settings = Settings { init: InitForm::Data, ..settings.clone() };
            State::new(settings, &mut points)?.current.parameters
        }
        Start::Mca => mca_start(&mut points, settings.seed)?,
        Start::Truth => truth.clone(),
    };
    let model = train_from(first, &settings, &mut points)?.parameters;
    // The test's own bars are brighter.
    let scale = VALUE / PIXEL;
    let bright = model.dictionary.iter().map(|w| scale * w).collect();
    let (bars, off) = TEST.found(&Parameters { dictionary: bright, ..model.clone() });
    let h = BARS as f64;
    let deviations = model.slab_variances().into_iter().map(f64::sqrt);
    let figures = [
        off / scale,
        model.prior.iter().sum::<f64>(),
        model.slab_mean.iter().sum::<f64>() / h,
        deviations.sum::<f64>() / h,
        model.noise_variances()[0].sqrt(),
    ];
    Ok(Run { bars, figures })
}

fn truth() -> Parameters {
    Parameters {
        kind: ModelKind::Ssmca,
        dims: DIMS,
        latents: BARS,
        dictionary: TEST.dictionary().iter().map(|w| w * PIXEL / VALUE).collect(),
        prior: vec![PRIOR; BARS],
        slab_mean: vec![MEAN; BARS],
        slab_cov: SlabCov::Diagonal(vec![DEVIATION * DEVIATION; BARS]),
        noise: NoiseCov::Shared(NOISE * NOISE),
    }
}

/// Points of the model, the same in all runs (N x D), and how many bars they have on average.
fn points(truth: &Parameters, n: usize) -> (Vec<f64>, f64) {
    let mut rng = Rng::new(common::seed(60, 0));
    let deviations: Vec<f64> = truth.slab_variances().into_iter().map(f64::sqrt).collect();
    let (mut points, mut on) = (Vec::with_capacity(n * DIMS), 0);
    for _ in 0..n {
        let mut strength = |h: usize| match rng.uniform::<f64>() < truth.prior[h] {
            true => truth.slab_mean[h] + deviations[h] * rng.normal::<f64>(),
            false => 0.0,
        };
        let x: Vec<f64> = (0..BARS).map(&mut strength).collect();
        on += x.iter().filter(|&&x| x != 0.0).count();
        for row in truth.dictionary.chunks_exact(BARS) {
            let strongest = row.iter().zip(&x).map(|(w, x)| w * x).fold(f64::NEG_INFINITY, f64::max);
            points.push(strongest + NOISE * rng.normal::<f64>());
        }
    }
    (points, on as f64 / n as f64)
}

/// Columns as maximal causes without slabs find them: a latent that is on has strength 1, give or take a third.
fn mca_start(points: &mut Points, seed: u64) -> Result<Parameters> {
    let settings = Settings {
        selected: 5,
        max_active: 3,
        engine: Engine::Truncated,
        seed,
        ..Settings::new(ModelKind::Mca, BARS)
    };
    let mut start = gsc::train(&settings, points)?.model();
    start.kind = ModelKind::Ssmca;
    start.slab_mean = vec![1.0; BARS];
    start.slab_cov = SlabCov::Diagonal(vec![0.1; BARS]);
    rescale(&mut start);
    Ok(start)
}

/// As the thesis has it.
fn thesis_start(points: &mut Points, rng: &mut Rng) -> Result<Parameters> {
    let (mean, covariance) = points.covariance()?;
    let variance = (0..DIMS).map(|i| covariance[i * DIMS + i]).sum::<f64>() / DIMS as f64;
    let overall = mean.iter().sum::<f64>() / DIMS as f64;
    let mut dictionary = normal_matrix(rng, DIMS, BARS);
    for (e, w) in dictionary.iter_mut().enumerate() {
        *w = (mean[e / BARS] + variance.sqrt() * *w).max(0.0);
    }
    let mut start = Parameters {
        kind: ModelKind::Ssmca,
        dims: DIMS,
        latents: BARS,
        dictionary,
        prior: vec![1.0 / BARS as f64; BARS],
        slab_mean: vec![0.0; BARS],
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(variance),
    };
    rescale(&mut start);
    start.slab_mean = vec![overall; BARS];
    start.slab_cov = SlabCov::Diagonal(vec![variance; BARS]);
    Ok(start)
}
