//! What a factored posterior would give on a device, after a fixed number of sweeps, beside adaptive states: spike-and-slab
//! models with overlapping latents whose parameters are known.
//!
//! Adaptive states run through the core, which counts its operations. A factored engine is not in the core: its sweeps are the
//! trainer's, and its instructions are estimated from below, so that it is rather flattered: projection and set-up as the core's;
//! an update for each latent in each sweep (what the core's gain of a latent takes, which is the same arithmetic, and one
//! exponential and division for the probability), and [`MOVE`] for each multiply-add of `b - G m` (two loads, multiply-add,
//! store) when a latent moves. G is taken as stored.

use crate::common::overlaps::{Figures, Problem, problems};
use crate::common::table::Table;
use crate::common::{self, Arguments};
use spikelet_trainer::Result;
use spikelet_trainer::predict::Core;
use spikelet_trainer::prepare::{Options, Prepared};
use spikelet_trainer::train::factored;
use spikelet_trainer::train::settings::StatesForm;

/// Instructions of a logistic function in single precision.
const LOGISTIC: f64 = 70.0;
/// Of a multiply-add on the residual.
const MOVE: f64 = 4.0;
/// Means that would move their data by fewer standard deviations of the noise stay.
const LEAST: f64 = 1e-3;
const EXPANSIONS: [usize; 3] = [1, 4, 8];
const SWEEPS: [usize; 5] = [1, 2, 4, 8, 30];

pub fn experiment(arguments: &Arguments) -> Result<()> {
    let new = if arguments.quick { 50 } else { 500 };
    println!("{new} points each\n");
    let table = Table::new(&[
        "model                  ",
        "engine      ",
        "evidence",
        "recall",
        "SNR, dB",
        "instructions",
    ]);
    for problem in problems(0, new, common::seed(52, 0)) {
        let row = |engine: String, figures: Figures| {
            table.row(&[
                problem.name.to_owned(),
                engine,
                format!("{:.3}", figures.evidence),
                format!("{:.3}", figures.recall),
                format!("{:.2}", figures.snr),
                format!("{:.0}", figures.instructions),
            ]);
        };
        for expansions in EXPANSIONS {
            row(format!("adaptive, X = {expansions}"), adaptive(&problem, expansions)?);
        }
        for sweeps in SWEEPS {
            let sweep = if sweeps == 1 { "sweep" } else { "sweeps" };
            row(format!("factored, {sweeps} {sweep}"), factored(&problem, sweeps)?);
        }
    }
    Ok(())
}

fn adaptive(problem: &Problem, expansions: usize) -> Result<Figures> {
    let options = Options { expansions, ..problem.options(StatesForm::Adaptive) };
    problem.infer(&Prepared::<f32>::new(&problem.model, &options)?)
}

fn factored(problem: &Problem, sweeps: usize) -> Result<Figures> {
    let (d, h) = (problem.model.dims, problem.model.latents);
    let found = factored::infer(&problem.model, &problem.new, sweeps, LEAST)?;
    let weights = |name: &str| {
        let core = Core::find("m4f")?;
        let at = spikelet::counts::Count::ALL.iter().position(|count| count.name() == name)?;
        core.weights()[at]
    };
    let weight = |name: &str| weights(name).unwrap_or(0.0);
    let padded = h.next_multiple_of(spikelet::model::PANEL);
    let panels = (padded / spikelet::model::PANEL) as f64;
    let fixed = weight("samples")
        + (d * padded) as f64 * weight("product-f32")
        + panels * weight("panels")
        + d as f64 * weight("weighed")
        + h as f64 * (weight("cleared") + weight("copied"));
    let update = weight("slab-gains") + weight("mean-gains") + LOGISTIC;
    let counted: f64 =
        found.iter().map(|found| found.updated as f64 * update + (found.moved * h) as f64 * MOVE).sum();
    let instructions = fixed + counted / found.len() as f64;
    let posteriors: Vec<_> =
        found.into_iter().map(|found| (found.free_energy, found.activity, found.mean)).collect();
    Ok(problem.figures(&posteriors, instructions))
}
