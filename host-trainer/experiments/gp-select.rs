//! Learned selection against hand-made scores (thesis 004, section 4.5.1 and figure 4.2).
//!
//! Bars on 5 x 5 pixels, H = 10, two on average, noise variance 2, N = 2000, H' = 5 selected; models A (bsc: bars add up), B
//! (gsc: bars of varying strength add up) and C (ssmca: bars of varying strength, the strongest counts, sampled). Selection by
//! the model's own score (cosine, or the likelihood of one latent alone), or learned with a linear, an RBF or the sum
//! kernel, fitted every ten iterations. The thesis has ten runs each: all selections recover the bars of A and C about as often as the
//! hand-made score; in B that does so in 8 of 10 runs, RBF in 7, the other kernels in none.
//!
//! Learned selection alone draws one of the five latents at random, which by itself may help a start out of a poor optimum: in
//! model A the cosine with one at random is beside it. The second table (`--figure B`) has model B from other starts: the
//! library's (random directions with the covariance of the data), points of the data, the mean of the data with noise on it
//! (thesis, section 2.4) and that with a temperature falling from 5 to 1, normal entries with random slab means (003); and with
//! strengths of mean 0, as in 003.
//!
//! The thesis does not say how strong bars are: here 10, times a slab of mean 1 and standard deviation 0.3 in B and C. States
//! have at most the five selected latents on, without singletons, for all selections alike, so that these are the only
//! difference, but for the one random latent of the learned ones. Starts are those of the library, one per run; kernel matrices
//! have rank 100. C is run with 500 points and 10 sweeps. A bar is found if a column of the model has a cosine above 0.95 with
//! it. `selected` is how many of the bars that are on in the data are among the five of their point at the end, where the model
//! found all bars.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example gp-select -- [--quick] [--figure B|device]
//! ```
//!
//! `--figure device` has what linear scores give on a device, in spike-and-slab models with overlapping latents whose parameters
//! are known: for the papers' sets of states, selected by the model's own score or by learned ones, and for adaptive states,
//! which begin with the latents of largest gain or of best learned scores. Evidence, recall and SNR are those of the core in 32
//! bits on new points; scores are learned from the posteriors of adaptive states; instructions are counted operations times the
//! weights of a Cortex-M4F ([`spikelet_trainer::predict`]). A second table has the scores alone, RBF scores from Q landmark
//! points among them, and what they would cost.

mod common;

use common::Arguments;
use common::bars::{Signs, Test};
use common::overlaps::{Figures, Problem, problems};
use common::table::{Table, mean_and_spread};
use spikelet::rng::Rng;
use spikelet_trainer::gp::{Factor, Kernel, KernelName, fit};
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::gp_select::GpSelect;
use spikelet_trainer::train::settings::{Engine, InitForm, StatesForm};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

const LATENTS: usize = 10;
const SELECTED: usize = 5;
const NOISE: f64 = std::f64::consts::SQRT_2;
/// Deviation of a bar's strength, of 1.
const SPREAD: f64 = 0.3;
const RANK: usize = 100;

fn main() -> ExitCode {
    common::main(experiment)
}

/// How latents are selected.
#[derive(Clone, Copy, PartialEq)]
enum Selection {
    Score,
    /// And one at random.
    Cosine,
    Gp(KernelName),
}

impl Selection {
    fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Cosine => "cosine and one at random",
            Self::Gp(KernelName::Linear) => "linear",
            Self::Gp(KernelName::Rbf) => "RBF",
            Self::Gp(KernelName::Sum) => "sum",
        }
    }

    fn learned(self) -> Option<GpSelect> {
        let gp = |kernel| GpSelect { rank: RANK, ..GpSelect::new(kernel) };
        match self {
            Self::Score => None,
            Self::Cosine => Some(GpSelect { by_cosine: true, ..gp(KernelName::Linear) }),
            Self::Gp(kernel) => Some(gp(kernel)),
        }
    }
}

/// Where a run begins.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    Library,
    Points,
    Mean,
    Annealed,
    Normal,
}

/// One cell of a table.
#[derive(Clone, Copy)]
struct Case {
    kind: ModelKind,
    selection: Selection,
    begin: Begin,
    /// Mean and deviation of a bar's strength.
    strength: (f64, f64),
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (runs, points) = if arguments.quick { (1, 300) } else { (10, 2000) };
    let table =
        || Table::new(&["model             ", "selection", "all bars", "bars", "selected", "F per point"]);
    let gp = [KernelName::Linear, KernelName::Rbf, KernelName::Sum].map(Selection::Gp);
    let case = |kind, selection| Case { kind, selection, begin: Begin::Library, strength: (1.0, SPREAD) };
    let mut rows: Vec<(&str, Case)> = Vec::new();
    match arguments.figure.as_deref() {
        None => {
            let selections = [Selection::Score, Selection::Cosine].into_iter().chain(gp);
            for (name, kind) in
                [("A, bsc", ModelKind::Bsc), ("B, gsc", ModelKind::Gsc), ("C, ssmca", ModelKind::Ssmca)]
            {
                let here = |selection: &Selection| *selection != Selection::Cosine || kind == ModelKind::Bsc;
                rows.extend(selections.clone().filter(here).map(|selection| (name, case(kind, selection))));
            }
        }
        Some("B") => {
            for (name, begin, strength) in [
                ("points", Begin::Points, (1.0, SPREAD)),
                ("mean", Begin::Mean, (1.0, SPREAD)),
                ("mean, annealed", Begin::Annealed, (1.0, SPREAD)),
                ("normal", Begin::Normal, (1.0, SPREAD)),
                ("library, N(0, 1)", Begin::Library, (0.0, 1.0)),
                ("normal, N(0, 1)", Begin::Normal, (0.0, 1.0)),
            ] {
                for selection in [Selection::Score, gp[0], gp[1]] {
                    rows.push((name, Case { begin, strength, ..case(ModelKind::Gsc, selection) }));
                }
            }
        }
        Some("device") => return device(arguments),
        Some(other) => {
            let what = format!("there is no figure {other}");
            return Err(Error::input(what, "--figure", "use B or device, or leave it out for all models"));
        }
    }
    println!("{runs} runs each, N = {points}\n");
    let table = table();
    for (name, case) in rows.into_iter().skip(arguments.skip) {
        let points = if case.kind == ModelKind::Ssmca { points.min(500) } else { points };
        let found = arguments.trials(runs, |trial| run(case, points, trial))?;
        let mean = |figure: fn(&Run) -> Option<f64>| {
            let values: Vec<f64> = found.iter().filter_map(figure).collect();
            if values.is_empty() { "-".into() } else { format!("{:.3}", mean_and_spread(&values).0) }
        };
        let full = found.iter().filter(|run| run.bars == LATENTS).count();
        table.row(&[
            name.to_owned(),
            case.selection.name().to_owned(),
            format!("{full} of {runs}"),
            mean(|run| Some(run.bars as f64)),
            mean(|run| run.selected),
            mean(|run| Some(run.free_energy)),
        ]);
    }
    Ok(())
}

/// Learned scores on a device.
fn device(arguments: &Arguments) -> Result<()> {
    let (seen, new) = if arguments.quick { (500, 50) } else { (5000, 500) };
    println!("{seen} points to learn from, {new} new ones\n");
    let problems = problems(seen, new, common::seed(52, 0));
    let table = Table::new(&[
        "model                  ",
        "states  ",
        "scores ",
        "evidence",
        "recall",
        "SNR, dB",
        "instructions",
    ]);
    let mut targets = Vec::new();
    for problem in &problems {
        let activities = problem.activities()?;
        let (factor, _) = regressed(problem, &activities, KernelName::Linear, problem.model.dims)?;
        let scores = factor.linear_scores(&problem.seen, &activities, problem.model.latents);
        for states in [StatesForm::Subsets, StatesForm::Adaptive] {
            let options = problem.options(states);
            let own = Prepared::<f32>::new(&problem.model, &options)?;
            let learned = Prepared::<f32>::new(&problem.model, &options)?.with_scores(&scores)?;
            for (name, prepared) in [("own", own), ("learned", learned)] {
                let Figures { evidence, recall, snr, instructions } = problem.infer(&prepared)?;
                table.row(&[
                    problem.name.to_owned(),
                    format!("{states:?}").to_lowercase(),
                    name.to_owned(),
                    format!("{evidence:.3}"),
                    format!("{recall:.3}"),
                    format!("{snr:.2}"),
                    format!("{instructions:.0}"),
                ]);
            }
        }
        targets.push((activities, scores));
    }
    println!(
        "\nScores alone: latents that are on and among the ten of best score; what scores add to a model and to a sample\n"
    );
    let table = Table::new(&[
        "model                  ",
        "scores     ",
        "selected",
        "length",
        "bytes",
        "multiply-adds",
        "exponentials",
    ]);
    for (problem, (activities, linear)) in problems.iter().zip(&targets) {
        let (d, h) = (problem.model.dims, problem.model.latents);
        let row = |name: String, scores: &dyn Fn(&[f64]) -> Vec<f64>, kernel: String, cost: [usize; 3]| {
            let [bytes, products, exponentials] = cost.map(|cost| cost.to_string());
            let share = format!("{:.3}", problem.share_selected(10, scores));
            table.row(&[problem.name.to_owned(), name, share, kernel, bytes, products, exponentials]);
        };
        row("own".into(), &|y| problem.own_scores(y), "-".into(), [0; 3]);
        let product = |y: &[f64]| (0..h).map(|k| (0..d).map(|i| linear[i * h + k] * y[i]).sum()).collect();
        row("linear".into(), &product, "-".into(), [4 * d * h, d * h, 0]);
        for pivots in [50, 200] {
            let (factor, kernel) = regressed(problem, activities, KernelName::Rbf, pivots)?;
            let weights = factor.pivot_weights(activities, h);
            let rbf = |y: &[f64]| -> Vec<f64> {
                let near: Vec<f64> =
                    factor.pivots().iter().map(|&q| kernel.between(y, &problem.seen[q * d..][..d])).collect();
                (0..h)
                    .map(|k| near.iter().enumerate().map(|(q, near)| near * weights[(q, k)]).sum())
                    .collect()
            };
            let q = factor.rank();
            let name = format!("RBF, Q = {q}");
            row(name, &rbf, format!("{:.1}", kernel.length), [4 * q * (d + h), q * (d + h), q]);
        }
    }
    Ok(())
}

/// The factor of a kernel that is fitted to these probabilities of the points to learn from.
fn regressed(
    problem: &Problem,
    activities: &[f64],
    name: KernelName,
    rank: usize,
) -> Result<(Factor, Kernel)> {
    let (d, h) = (problem.model.dims, problem.model.latents);
    let power = activities.iter().map(|s| s * s).sum::<f64>() / activities.len() as f64;
    let first = Kernel::new(name, &problem.seen, d, power);
    let kernel = fit(first, &first, &problem.seen, d, activities, h);
    let singular =
        || Error::run("the kernel matrix is not positive definite", problem.name, "change the problem");
    Ok((Factor::new(kernel, &problem.seen, d, rank).ok_or_else(singular)?, kernel))
}

/// What one run comes to.
struct Run {
    bars: usize,
    /// Where all bars are found and selection is learned.
    selected: Option<f64>,
    free_energy: f64,
}

fn run(case: Case, points: usize, trial: usize) -> Result<Run> {
    let Case { kind, begin, .. } = case;
    let mut rng = Rng::new(common::seed(50, trial));
    let additive = if kind == ModelKind::Ssmca { ModelKind::Mca } else { kind };
    let test = Test { kind: additive, side: 5, width: 1, signs: Signs::Positive, points, noise: NOISE };
    let truth = test.dictionary();
    let (values, on) = data(&mut rng, case, &truth, points);
    let mut settings = Settings {
        engine: if kind == ModelKind::Ssmca { Engine::Gibbs } else { Engine::Truncated },
        selected: SELECTED,
        max_active: SELECTED,
        singletons: false,
        cut: false,
        sweeps: 10,
        iterations: if kind == ModelKind::Ssmca { 60 } else { 100 },
        gp: case.selection.learned(),
        seed: common::seed(51, trial),
        ..Settings::new(kind, LATENTS)
    };
    if kind != ModelKind::Bsc && case.strength.0 > 0.0 {
        // Columns are bars, so that the slab's mean is 1.
        settings.first_mean = Some(1.0);
    }
    if begin == Begin::Points {
        settings.init = InitForm::Data;
    }
    if begin == Begin::Annealed {
        settings.temperature = (5.0, 1.0);
    }
    let mut points = Points::new(values.clone(), 25);
    let mut state = State::new(settings, &mut points)?;
    let first = &mut state.current.parameters;
    let power = values.iter().map(|y| y * y).sum::<f64>() / values.len() as f64;
    match begin {
        Begin::Mean | Begin::Annealed => {
            let deviation = power.sqrt();
            for (e, w) in first.dictionary.iter_mut().enumerate() {
                let mean = values.iter().skip(e / LATENTS).step_by(25).sum::<f64>() / points.len() as f64;
                *w = mean + deviation * rng.normal::<f64>();
            }
        }
        Begin::Normal => {
            first.dictionary.iter_mut().for_each(|w| *w = power.sqrt() * rng.normal::<f64>());
            first.slab_mean.iter_mut().for_each(|mu| *mu = rng.normal());
        }
        Begin::Library | Begin::Points => {}
    }
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    let model = state.model();
    let shown: Vec<Option<usize>> = (0..LATENTS).map(|bar| shows(&model, &truth, bar)).collect();
    let bars = shown.iter().flatten().count();
    let sets = state.current.selector.as_ref().map(|selector| selector.sets());
    let selected = sets.filter(|_| bars == LATENTS).map(|sets| {
        let (mut all, mut kept) = (0.0, 0.0);
        for (on, set) in on.chunks_exact(LATENTS).zip(sets.chunks_exact(SELECTED)) {
            for (_, latent) in on.iter().zip(&shown).filter(|(on, _)| **on) {
                all += 1.0;
                kept += f64::from(u8::from(set.iter().any(|&h| Some(usize::from(h)) == *latent)));
            }
        }
        kept / all
    });
    let free_energy = state.current.free_energy() / points.len() as f64;
    Ok(Run { bars, selected, free_energy })
}

/// Points, and which bars are on. (N x 25, N x 10)
fn data(
    rng: &mut Rng,
    Case { kind, strength, .. }: Case,
    truth: &[f64],
    points: usize,
) -> (Vec<f64>, Vec<bool>) {
    let (mut values, mut states) = (Vec::new(), Vec::new());
    for _ in 0..points {
        let drawn = |rng: &mut Rng| match kind {
            _ if rng.uniform::<f64>() >= 2.0 / LATENTS as f64 => 0.0,
            ModelKind::Bsc => 1.0,
            _ => strength.0 + strength.1 * rng.normal::<f64>(),
        };
        let x: Vec<f64> = (0..LATENTS).map(|_| drawn(rng)).collect();
        for row in truth.chunks_exact(LATENTS) {
            let seen = row.iter().zip(&x).map(|(w, x)| w * x);
            let clean = if kind == ModelKind::Ssmca { seen.fold(0.0, f64::max) } else { seen.sum() };
            values.push(clean + NOISE * rng.normal::<f64>());
        }
        states.extend(x.iter().map(|&x| x != 0.0));
    }
    (values, states)
}

/// The latent that shows a bar, if one does.
fn shows(model: &Parameters, truth: &[f64], bar: usize) -> Option<usize> {
    let cosine = |latent: usize| {
        let pairs = || model.dictionary.chunks_exact(LATENTS).zip(truth.chunks_exact(LATENTS));
        let sum =
            |product: fn(f64, f64) -> f64| pairs().map(|(w, t)| product(w[latent], t[bar])).sum::<f64>();
        sum(|w, t| w * t) / (sum(|w, _| w * w) * sum(|_, t| t * t)).sqrt().max(f64::MIN_POSITIVE)
    };
    (0..LATENTS).find(|&latent| cosine(latent).abs() > 0.95)
}
