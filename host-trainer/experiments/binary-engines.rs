//! Binary sparse coding with four E-steps (thesis 004, section 2.4.1): all states, selected states, draws of all latents,
//! draws of selected latents.
//!
//! Bars of value 10 or -10, at random, on 6 x 6 pixels: H = 12, two on average, noise of standard deviation 2, N = 2000,
//! 50 EM steps. Selected are H' = 6 latents (70 states instead of 4096). Samplers visit 200 latents per latent that is
//! looked at, in 20 chains, a third of it burn-in: 20 chains of 10 sweeps. Two of the H' latents that are drawn are
//! chosen at random. In the thesis all algorithms find all bars in more than half of the trials, and pi and the
//! noise are recovered; it shows curves of the exact likelihood of a few runs, without figures.
//!
//! The start is that of the thesis: columns are the mean of the data plus normal noise (how much it does not say: here as much
//! as the data has), pi = 1 / H, noise variance that of the data, no annealing. The second start is what the library
//! has by default: points as columns, a temperature that falls from 3 to 1 and lets only the dictionary be learned until
//! it is down, a little noise on the dictionary.
//! The thesis samples with an inverse temperature of T / sigma^2 and T = 50 throughout, which the library does not have;
//! its chains start at random states, ours at a state that no single latent can improve. A trial has new data, new
//! signs and new random parameters; engines share them.
//!
//! The likelihood is exact, per point, less that of the true parameters.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example binary-engines -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::bars::{Signs, Test};
use common::mixtures::normal_matrix;
use common::table::{Table, mean_and_spread, median};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet_trainer::train::settings::Engine;
use spikelet_trainer::train::{Next, Points, Settings, State, e_step};
use std::process::ExitCode;
use std::time::Instant;

const ITERATIONS: usize = 50;
/// EM steps after which the likelihood is printed.
const AT: [usize; 4] = [5, 10, 20, 50];
const NOISE: f64 = 2.0;

fn main() -> ExitCode {
    common::main(experiment)
}

/// The four E-steps.
fn engines(latents: usize) -> [(&'static str, Settings); 4] {
    let exact = Settings { iterations: ITERATIONS, cut: false, ..Settings::new(ModelKind::Bsc, latents) };
    let selected = latents / 2;
    let select = Settings { selected, max_active: selected, engine: Engine::Truncated, ..exact.clone() };
    let sample = Settings { engine: Engine::Gibbs, chains: 20, sweeps: 10, ..exact.clone() };
    let both = Settings { selected, max_active: selected, extra: 2, ..sample.clone() };
    [("exact", exact), ("select", select), ("sample", sample), ("select + sample", both)]
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (trials, points) = if arguments.quick { (1, 500) } else { (6, 2000) };
    println!(
        "{trials} trials each, N = {points}; median likelihood per point less the truth's after so many steps, bars found,\n\
         mean absolute error of pi H (truth 2) and sigma (truth 2) over the trials that find all bars\n"
    );
    let heads = AT.map(|at| format!("{at} steps"));
    let mut names = vec!["start  ", "E-step         "];
    names.extend(heads.iter().map(String::as_str));
    names.extend(["best, worst   ", "all bars", "bars", "pi H off", "sigma off", "seconds"]);
    let table = Table::new(&names);
    for start in ["thesis", "library"] {
        for (name, settings) in engines(12) {
            let runs = arguments.trials(trials, |trial| run(&settings, start == "thesis", points, trial))?;
            let mut row = vec![start.to_owned(), name.to_owned()];
            let likelihoods = |at: usize| runs.iter().map(|run| run.curve[at]).collect::<Vec<f64>>();
            row.extend((0..AT.len()).map(|at| format!("{:+.3}", median(&likelihoods(at)))));
            let last = likelihoods(AT.len() - 1);
            let (best, worst) =
                (last.iter().fold(f64::MIN, |a, &b| a.max(b)), last.iter().fold(f64::MAX, |a, &b| a.min(b)));
            row.push(format!("{best:+.3}, {worst:+.3}"));
            let full: Vec<&Run> = runs.iter().filter(|run| run.bars == settings.latents).collect();
            row.push(format!("{} of {trials}", full.len()));
            let mean = |figure: fn(&Run) -> f64, runs: &[&Run]| {
                mean_and_spread(&runs.iter().map(|run| figure(run)).collect::<Vec<f64>>()).0
            };
            let all: Vec<&Run> = runs.iter().collect();
            row.push(format!("{:.1}", mean(|run| run.bars as f64, &all)));
            let off =
                |figure| if full.is_empty() { "-".into() } else { format!("{:.3}", mean(figure, &full)) };
            row.extend([off(|run| run.prior_off), off(|run| run.noise_off)]);
            row.push(format!("{:.1}", mean(|run| run.seconds, &all)));
            table.row(&row);
        }
    }
    Ok(())
}

/// What one trial comes to.
struct Run {
    /// ln p(y) per point less the truth's, at [`AT`].
    curve: Vec<f64>,
    bars: usize,
    prior_off: f64,
    noise_off: f64,
    /// Of training alone.
    seconds: f64,
}

fn run(settings: &Settings, as_thesis: bool, points: usize, trial: usize) -> Result<Run> {
    let mut rng = Rng::new(common::seed(30, trial));
    let bits = (rng.uniform::<f64>() * f64::from(1u32 << settings.latents)) as u64;
    let test =
        Test { kind: ModelKind::Bsc, side: 6, width: 1, signs: Signs::Given(bits), points, noise: NOISE };
    let (dims, h) = (test.side * test.side, test.bars());
    let mut points = test.data(&mut rng);
    let prior = 2.0 / h as f64;
    let truth = Parameters::binary(
        ModelKind::Bsc,
        test.dictionary(),
        dims,
        vec![prior; h],
        NoiseCov::Shared(NOISE * NOISE),
    );
    let true_likelihood = likelihood(&truth, &mut points)?;

    let mut settings = Settings { seed: common::seed(31, trial), ..settings.clone() };
    if as_thesis {
        settings.temperature = (1.0, 1.0);
        settings.parameter_noise = 0.0;
    }
    let mut state = State::new(settings, &mut points)?;
    if as_thesis {
        let mut rng = Rng::new(common::seed(32, trial));
        state.current.parameters = thesis_start(&mut points, h, &mut rng)?;
    }
    // The same numbers again: the loop holds the points.
    let mut copy = copied(&mut points)?;
    let (mut curve, mut seconds, mut begun) = (Vec::new(), 0.0, Instant::now());
    state.run(&mut points, 1, |state| {
        let (now, steps) = (&state.current, state.current.history.len());
        if !now.finished {
            seconds += begun.elapsed().as_secs_f64();
            if AT.contains(&steps) {
                curve.push(likelihood(&now.parameters, &mut copy)? - true_likelihood);
            }
            begun = Instant::now();
        }
        Ok(Next::Continue)
    })?;
    let model = state.model();
    // Nothing changed any more.
    while curve.len() < AT.len() {
        curve.push(likelihood(&model, &mut copy)? - true_likelihood);
    }
    Ok(Run {
        curve,
        bars: test.found(&model).0,
        prior_off: (model.prior.iter().sum::<f64>() - 2.0).abs(),
        noise_off: (model.noise_variances()[0].sqrt() - NOISE).abs(),
        seconds,
    })
}

/// The mean of the data plus noise, pi = 1 / H, all variance is noise.
fn thesis_start(points: &mut Points, h: usize, rng: &mut Rng) -> Result<Parameters> {
    let d = points.dims();
    let (mean, covariance) = points.covariance()?;
    let variance = (0..d).map(|i| covariance[i * d + i]).sum::<f64>() / d as f64;
    let mut dictionary = normal_matrix(rng, d, h);
    dictionary.iter_mut().enumerate().for_each(|(e, w)| *w = mean[e / h] + variance.sqrt() * *w);
    let (prior, noise) = (vec![1.0 / h as f64; h], NoiseCov::Shared(variance));
    Ok(Parameters::binary(ModelKind::Bsc, dictionary, d, prior, noise))
}

fn copied(points: &mut Points) -> Result<Points> {
    let mut values = Vec::new();
    points.read(0, points.len(), &mut values)?;
    Ok(Points::new(values, points.dims()))
}

/// ln p(y) per point over all states.
fn likelihood(model: &Parameters, points: &mut Points) -> Result<f64> {
    let exact = Settings::new(model.kind, model.latents);
    Ok(e_step(model, &exact.options(), points, 1)?.free_energy / points.len() as f64)
}
