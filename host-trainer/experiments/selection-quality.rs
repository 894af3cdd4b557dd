//! Selection quality: how much of the posterior do the selected latents hold?
//!
//! Paper 000, section 5.1: bars data, H = 10 and 12 horizontal and vertical bars of height +10 or -10 on a grid of
//! H/2 x H/2 pixels, two on at a time on average, slab means drawn from N(0, 5), slab variance 1, noise variance 2,
//! N = 1000. "Each run consists of 50 EM iterations and after each run we compute the Q-value over all the data points",
//! with (H', gamma) = (4, 4), (5, 4) and (5, 3); "for all the experiments we find the average Q-values to be above 0.99".
//! Starts as in its footnote 2: W and slab means standard normal, pi uniform, noise as large as the data.
//!
//! Q^(n) of eq. 26 belongs to a point, and its mean cannot be that high: the noise is so weak that the posterior of a
//! point is all but one state, and 3 to 13 % of the points have more than gamma bars on. The table has Q averaged over all
//! points, over those with `few` bars on (no more than gamma; what that lacks to 1 is lost by selection), and `pooled`:
//! both sums of eq. 26 taken over all points before the division. That counts points by their density, so those with no
//! bar or one, which selection cannot miss, outweigh all others. N(0, 5) is read both ways, 5 as variance and as
//! deviation.
//!
//! The second table has adaptive states instead: `states` is how many of them a point has on average, `papers` how many the
//! papers' set of the row has, which adaptive states never exceed: as many are expanded as that allows, two or three. Around a
//! random dictionary a search finds dense states and keeps them, so the first half of the iterations, from the same starts, has
//! the papers' sets, and the second half adaptive states. Of four such starts the one with the largest free energy is taken, as
//! `spikelet train` does; the papers' sets have one, as in the paper.
//!
//! `bars` counts those that some column of W agrees with (cosine of 0.9 or more). The Amari index does not apply: the
//! horizontal bars, each with its sign, add up to the same as the vertical ones, so the true W has no inverse.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example selection-quality -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::gsc;
use common::mixtures::{add_noise, mix, unit_columns};
use common::table::{Table, mean_and_spread};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference, arena_len};
use spikelet_trainer::metrics::quality;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::settings::{SlabForm, StatesForm};
use spikelet_trainer::train::{Points, Settings, e_step};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

const POINTS: usize = 1000;
const ITERATIONS: usize = 50;
/// Data sets.
const TRIALS: usize = 10;
/// With adaptive states.
const STARTS: usize = 4;
/// (H', gamma).
const TRUNCATIONS: [(usize, usize); 3] = [(4, 4), (5, 4), (5, 3)];

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let trials = if arguments.quick { 1 } else { TRIALS };
    println!("Q after {ITERATIONS} iterations on {POINTS} points of bars, mean of {trials} data sets\n");
    for states in [StatesForm::Subsets, StatesForm::Adaptive] {
        table(arguments, trials, states)?;
    }
    Ok(())
}

fn table(arguments: &Arguments, trials: usize, states: StatesForm) -> Result<()> {
    println!("{}", if states == StatesForm::Adaptive { "\nadaptive states\n" } else { "papers' states\n" });
    let sizes = ["mean", "H", "H'", "gamma", "papers", "states", "<= gamma on"];
    let truth = ["Q, truth", "few, truth", "pooled, truth"];
    let learned = ["Q, learned", "few, learned", "pooled, learned", "bars"];
    let table = Table::new(&[&sizes[..], &truth[..], &learned[..]].concat());
    for (name, deviation) in [("var. 5", 5f64.sqrt()), ("dev. 5", 5.0)] {
        for latents in [10, 12] {
            for (selected, max_active) in TRUNCATIONS {
                let papers = gsc::truncated(latents, selected, max_active, ITERATIONS, 0);
                let settings = match states {
                    StatesForm::Subsets => papers.clone(),
                    StatesForm::Adaptive => Settings {
                        states,
                        selected: latents,
                        max_active: latents,
                        expansions: expansions(papers_states(&papers), latents),
                        ..papers.clone()
                    },
                };
                let phases: Vec<Settings> = match states {
                    StatesForm::Subsets => vec![settings],
                    StatesForm::Adaptive => [papers.clone(), settings]
                        .map(|phase| Settings { iterations: ITERATIONS / 2, ..phase })
                        .into(),
                };
                let results = arguments.trials(trials, |trial| run(&phases, max_active, deviation, trial))?;
                let mut row = vec![name.to_string()];
                row.extend([latents, selected, max_active].map(|size| size.to_string()));
                row.push(format!("{}", papers_states(&papers)));
                let mean =
                    |k: usize| mean_and_spread(&results.iter().map(|row| row[k]).collect::<Vec<f64>>()).0;
                row.push(format!("{:.1}", mean(8)));
                row.extend((0..7).map(|k| format!("{:.3}", mean(k))));
                row.push(format!("{:.1}", mean(7)));
                table.row(&row);
            }
        }
    }
    Ok(())
}

/// How many states may be looked around without keeping more than `most`: the first has H neighbours, others one less, from which
/// they were found.
fn expansions(most: usize, latents: usize) -> usize {
    1 + most.saturating_sub(1 + latents) / (latents - 1)
}

/// At most gamma of H' latents on, and one of the others.
fn papers_states(settings: &Settings) -> usize {
    let choose = |k: usize| (0..k).fold(1, |product, i| product * (settings.selected - i) / (i + 1));
    (0..=settings.max_active).map(choose).sum::<usize>() + settings.latents - settings.selected
}

/// Trains in these phases, one after the other. Share of points with few bars on, the three figures under the truth, the same
/// after training, bars found, states under the learned model.
fn run(phases: &[Settings], few: usize, deviation: f64, trial: usize) -> Result<[f64; 9]> {
    let settings = phases.last().expect("a phase");
    let mut rng = Rng::new(common::seed(1, trial));
    let truth = bars(settings.latents, deviation, &mut rng);
    let sources = draw(&truth, &mut rng);
    let mut data = mix(&sources, &truth.dictionary, truth.latents);
    add_noise(&mut rng, &mut data, truth.noise_variances()[0].sqrt());

    let starts = if phases.len() > 1 { STARTS } else { 1 };
    let mut best: Option<(f64, Parameters)> = None;
    for start in 0..starts {
        let mut rng = Rng::new(common::seed(2, trial + start * TRIALS));
        let mut model = gsc::learned_slab_start(&data, truth.dims, truth.latents, &mut rng);
        let mut free_energy = f64::NEG_INFINITY;
        for phase in phases {
            let phase = Settings { slab: SlabForm::Diagonal, ..phase.clone() };
            let end = gsc::train_from(model, &phase, &mut Points::new(data.clone(), truth.dims))?;
            free_energy = end.history.last().map_or(free_energy, |step| step.free_energy);
            model = end.parameters;
        }
        if best.as_ref().is_none_or(|best| free_energy > best.0) {
            best = Some((free_energy, model));
        }
    }
    let (_, model) = best.expect("a start");

    let on = |x: &[f64]| x.iter().filter(|x| **x != 0.0).count();
    let few: Vec<bool> = sources.chunks_exact(truth.latents).map(|x| on(x) <= few).collect();
    let share = few.iter().filter(|few| **few).count() as f64 / POINTS as f64;
    let [all, of_few, pooled] = figures(&evidences(&truth, settings, &data)?, &few);
    let [all_learned, few_learned, pooled_learned] = figures(&evidences(&model, settings, &data)?, &few);
    let (found, states) = (found(&model, &truth) as f64, states(&model, settings, &data)?);
    Ok([share, all, of_few, pooled, all_learned, few_learned, pooled_learned, found, states])
}

/// States that are kept of a point, on average.
fn states(model: &Parameters, settings: &Settings, data: &[f64]) -> Result<f64> {
    let prepared = Prepared::<f64>::new(model, &settings.options())?;
    let model = prepared.model()?;
    let mut memory = vec![0.0; arena_len(model.shape, Detail::Marginals)];
    let failed = |error| Error::run(error, "a point", "choose other data");
    let mut inference = Inference::new(model, &mut memory).map_err(failed)?;
    let mut states = 0;
    for point in data.chunks_exact(model.shape.dims) {
        inference.infer(point).map_err(failed)?;
        inference.for_each_state(|_, _| states += 1);
    }
    Ok(states as f64 / POINTS as f64)
}

/// Mean Q, mean Q of points with few bars on, and Q of the sums over all points, from ln p(y) over the states kept and
/// over all.
fn figures(evidences: &[(f64, f64)], few: &[bool]) -> [f64; 3] {
    let mean = |qualities: Vec<f64>| mean_and_spread(&qualities).0;
    let of_point = |&(kept, all): &(f64, f64)| quality(kept, all);
    let of_few = evidences.iter().zip(few).filter(|(_, few)| **few).map(|(point, _)| of_point(point));
    let top = evidences.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let sum = |part: fn(&(f64, f64)) -> f64| evidences.iter().map(|p| (part(p) - top).exp()).sum::<f64>();
    let pooled = sum(|point| point.0) / sum(|point| point.1);
    [mean(evidences.iter().map(of_point).collect()), mean(of_few.collect()), pooled]
}

/// Bars that some column agrees with.
fn found(model: &Parameters, truth: &Parameters) -> usize {
    let h = truth.latents;
    let (learned, bars) = (unit_columns(&model.dictionary, h), unit_columns(&truth.dictionary, h));
    let cosine =
        |j: usize, k: usize| (0..truth.dims).map(|i| learned[i * h + j] * bars[i * h + k]).sum::<f64>();
    (0..h).filter(|&k| (0..h).any(|j| cosine(j, k).abs() >= 0.9)).count()
}

/// The true model: bars with random signs.
fn bars(latents: usize, deviation: f64, rng: &mut Rng) -> Parameters {
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
        slab_mean: (0..latents).map(|_| deviation * rng.normal::<f64>()).collect(),
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

/// ln p(y) of every point over the states kept and over all.
fn evidences(model: &Parameters, truncated: &Settings, data: &[f64]) -> Result<Vec<(f64, f64)>> {
    let exact = gsc::exact(model.latents, 0, 0);
    let of_point = |point: &[f64]| {
        let evidence = |settings: &Settings| {
            let mut point = Points::new(point.to_vec(), model.dims);
            e_step(model, &settings.options(), &mut point, 1).map(|statistics| statistics.free_energy)
        };
        Ok((evidence(truncated)?, evidence(&exact)?))
    };
    data.chunks_exact(model.dims).map(of_point).collect()
}
