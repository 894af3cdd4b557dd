//! Fields of natural pictures: how many look like Gabor functions, how many are globular (003, section 4 and figure 2; thesis
//! 004, sections 2.4.2, 2.4.3 and 3.4.3, figures 2.3 to 2.5 and 3.10 to 3.12).
//!
//! | `--figure` | model | the paper | here |
//! |---|---|---|---|
//! | 2 (default) | spike-and-slab (gsc) | 003: H = 10 000, 10^6 patches of 16 x 16 pixels, H' = 20, 50 samples, 50 iterations, 1000 cores; 12 % do not specialise, most others look like Gabor functions, then come globular ones; 6.2 are on | adaptive states, stepwise EM, H = 400 |
//! | 2.3 | on or off (bsc) | 004: DoG, 40 000 patches of 26 x 26, H = 800, H' = 20; 500 000 of 40 x 40, H = 1600, H' = 34; 200 H' samples, 100 iterations; Gabor-like fields | select and sample, H = 400, 10 000 patches of 26 x 26, 50 iterations |
//! | 3.10 | maximal causes with slabs (ssmca) | 004: 50 000 patches of 16 x 16 in two channels, H = 500, 100 samples, 50 iterations; about as many globular fields as in recordings of V1; pi H = 6.2, sigma = 1.4 | select and sample, stepwise EM, H = 100, 1000 patches (10 ms of a core for each in a pass) |
//!
//! The papers have the van Hateren pictures; here they are those of a folder. `--latents`, `--patches` and `--iterations` have
//! the papers' sizes or others; 003's are `--latents 10000`, with ten patches for each field. What `--preprocessing` does is in
//! `common/natural.rs`; `--write FILE` writes the prepared patches, for `spikelet train FILE`.
//!
//! Each field is fitted by Gabor functions and by differences of Gaussians over a grid of sizes, widths, directions and
//! frequencies around the middle of its energy, amplitudes by least squares; what neither explains to a half has not specialised;
//! else it is what fits better. `crisp` is the part of the energy that the better fit explains, `kurtosis` that of the field's
//! pixels, both medians. A field of two channels is what is above zero less what is below.
//!
//! Figure 3.10 also says whether what is inferred from 1000 other patches agrees with the prior that was learned (figure 3.12).
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example natural-images -- [--quick] [--figure 2|2.3|3.10] [--latents H] [--patches N] [--iterations COUNT]
//!     [--preprocessing pseudo|dog|whiten|none] [--picture FILE] [--write FILE] FOLDER
//! ```
//!
//! FOLDER holds pictures (.png); its subfolder `images` will do.

mod common;

use common::fields::{Shape, shape};
use common::natural::{PREPROCESSINGS, patches, split};
use common::table::{Table, mean_and_spread, median};
use common::{Arguments, cpu_seconds, svg};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference};
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::settings::{Engine, InitForm, Precision, PriorForm, StatesForm};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result, data};
use std::path::Path;
use std::process::ExitCode;

/// Pixels in the picture, at most: 72 fields of 16 x 16.
const DRAWN: usize = 72 * 256;
/// Fields in a row of it.
const ACROSS: usize = 24;
/// Patches that were not learned from.
const UNSEEN: usize = 1000;
/// Patches that are inferred to see which fields are used, where no prior tells.
const SOME: usize = 2000;

fn main() -> ExitCode {
    common::main(experiment)
}

/// What is learned from what.
struct Plan {
    kind: ModelKind,
    side: usize,
    /// What is done to pictures where no flag says otherwise.
    preprocessings: &'static [&'static str],
    count: usize,
    settings: Settings,
}

impl Plan {
    fn new(arguments: &Arguments) -> Result<Self> {
        let (kind, side, latents) = match arguments.figure.as_deref() {
            None | Some("2") => (ModelKind::Gsc, 16, 400),
            Some("2.3") => (ModelKind::Bsc, 26, 400),
            Some("3.10") => (ModelKind::Ssmca, 16, 100),
            Some(other) => {
                let what = format!("there is no figure {other}");
                return Err(Error::input(what, "--figure", "use 2, 2.3 or 3.10"));
            }
        };
        let is_quick = arguments.quick;
        let latents = arguments.latents.map_or(if is_quick { 64 } else { latents }, usize::from);
        let preprocessings: &[&str] = match kind {
            ModelKind::Gsc if !is_quick => &PREPROCESSINGS[..3],
            ModelKind::Bsc => &["dog"],
            _ => &["pseudo"],
        };
        // Of many fields each needs some patches, and a pass over them takes minutes.
        let (count, passes) = match kind {
            ModelKind::Bsc if is_quick => (500, 5),
            ModelKind::Ssmca if is_quick => (300, 2),
            _ if is_quick => (2000, 2),
            ModelKind::Bsc => (10_000, 50),
            ModelKind::Ssmca => (1000, 5),
            _ if latents <= 2000 => (20_000, 8),
            _ => (10 * latents, 4),
        };
        let count = arguments.patches.map_or(count, |count| count as usize);
        let settings = Settings {
            iterations: arguments.iterations.map_or(passes, |count| count as usize),
            precision: Precision::F32,
            init: InitForm::Data,
            seed: common::seed(80, 0),
            ..Settings::new(kind, latents)
        };
        let settings = match kind {
            ModelKind::Gsc => Settings {
                engine: Engine::Truncated,
                states: StatesForm::Adaptive,
                selected: 20,
                max_active: 12,
                batch: (count / 40).max(latents).min(count / 5),
                ..settings
            },
            // Plain EM, because it cools down on all points; a tenth of the selected latents is drawn at random, as in the thesis.
            ModelKind::Bsc => Settings {
                engine: Engine::Gibbs,
                selected: 20,
                max_active: 20,
                extra: 2,
                sweeps: 30,
                ..settings
            },
            _ => Settings { selected: 10, max_active: 10, extra: 1, sweeps: 20, batch: 100, ..settings },
        };
        Ok(Self { kind, side, preprocessings, count, settings })
    }

    /// Patches as the model sees them. (N x D)
    fn points(&self, folder: &Path, preprocessing: &str, count: usize, seed: usize) -> Result<Vec<f64>> {
        let mut rng = Rng::new(common::seed(81, seed));
        let values = patches(folder, preprocessing, (self.side, count), &mut rng)?;
        let pixels = self.side * self.side;
        Ok(if self.kind == ModelKind::Ssmca { split(&values, pixels) } else { values })
    }
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder of pictures (.png)")?;
    let plan = Plan::new(arguments)?;
    let names: Vec<&str> = match arguments.preprocessing.as_deref() {
        None => plan.preprocessings.to_vec(),
        Some(name) if PREPROCESSINGS.contains(&name) => vec![name],
        Some(other) => {
            let what = format!("there is no preprocessing {other}");
            return Err(Error::input(what, "--preprocessing", "use pseudo, dog, whiten or none"));
        }
    };
    let (side, latents) = (plan.side, plan.settings.latents);
    let passes = plan.settings.iterations;
    println!("{} patches of {side} x {side} pixels, H = {latents}, {passes} passes\n", plan.count);
    let table = Table::new(&[
        "preprocessing",
        "used",
        "Gabor",
        "globular",
        "neither",
        "crisp",
        "kurtosis",
        "on at a time",
        "learned                        ",
        "CPU seconds",
    ]);
    for name in names {
        let values = plan.points(folder, name, plan.count, 0)?;
        let dims = side * side * if plan.kind == ModelKind::Ssmca { 2 } else { 1 };
        if let Some(path) = &arguments.write {
            data::write_npy_f64(path, &[values.len() / dims, dims], &values)?;
        }
        let begun = cpu_seconds();
        let mut points = Points::new(values, dims);
        let mut state = State::new(plan.settings.clone(), &mut points)?;
        state.run(&mut points, 1, |_| Ok(Next::Continue))?;
        let model = state.model();
        let seconds = cpu_seconds() - begun;
        let mut order: Vec<usize> = (0..latents).collect();
        let uses = uses(&state, &model, &mut points)?;
        order.sort_by(|a, b| uses[*b].total_cmp(&uses[*a]).then(a.cmp(b)));
        // On less often than once in all patches: not used.
        order.retain(|&k| uses[k] > 1.0);
        let fields: Vec<Vec<f64>> = order.iter().map(|&k| field(&model, k, side * side)).collect();
        let shapes: Vec<(Shape, f64)> = fields.iter().map(|field| shape(field, side)).collect();
        let share = |wanted: Shape| {
            let found = shapes.iter().filter(|(shape, _)| *shape == wanted).count();
            format!("{:.1} %", 100.0 * found as f64 / shapes.len() as f64)
        };
        let crisp: Vec<f64> = shapes.iter().map(|(_, fit)| *fit).collect();
        let tails: Vec<f64> = fields.iter().map(|field| kurtosis(field)).collect();
        table.row(&[
            name.to_owned(),
            order.len().to_string(),
            share(Shape::Gabor),
            share(Shape::Globular),
            share(Shape::Neither),
            format!("{:.2}", median(&crisp)),
            format!("{:.1}", median(&tails)),
            format!("{:.1}", uses.iter().sum::<f64>() / points.len() as f64),
            learned(&model),
            format!("{seconds:.0}"),
        ]);
        if let Some(path) = &arguments.picture {
            let shown = &fields[..fields.len().min(DRAWN / (side * side))];
            let written = std::fs::write(path, svg::images(shown, side, ACROSS));
            written.map_err(|error| Error::input(error, path.display(), "choose another place"))?;
        }
        if plan.kind == ModelKind::Ssmca {
            println!("\n{}", agreement(&state, &model, &plan.points(folder, name, UNSEEN, 1)?)?);
        }
    }
    Ok(())
}

/// In how many patches each latent is on: by its prior, or where all share one by what is inferred from some of them.
fn uses(state: &State, model: &Parameters, points: &mut Points) -> Result<Vec<f64>> {
    let n = points.len();
    if state.settings.prior == PriorForm::Each {
        return Ok(model.prior.iter().map(|pi| pi * n as f64).collect());
    }
    let mut some = Vec::new();
    points.read(0, n.min(SOME), &mut some)?;
    let (mut activity, _) = inferred(state, model, &some)?;
    activity.iter_mut().for_each(|sum| *sum *= n as f64 / n.min(SOME) as f64);
    Ok(activity)
}

/// Activities, summed over points (H), and the strengths of what is more probably on than off.
fn inferred(state: &State, model: &Parameters, values: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let prepared = Prepared::<f32>::new(model, &state.settings.options())?;
    let (view, engine) = (prepared.model()?, state.settings.engine_at(0, 0));
    let refused = |error| Error::input(error, "the patches", "check their range");
    let mut memory = vec![0.0; engine.arena_len(view.shape, Detail::Marginals)];
    let mut inference =
        Inference::with_engine(view, &mut memory, Detail::Marginals, engine).map_err(refused)?;
    let (mut activity, mut strengths) = (vec![0.0; model.latents], Vec::new());
    for point in values.chunks_exact(model.dims) {
        let y: Vec<f32> = point.iter().map(|y| *y as f32).collect();
        let found = inference.infer(&y).map_err(refused)?;
        for ((sum, on), mean) in activity.iter_mut().zip(found.activity).zip(found.mean) {
            *sum += f64::from(*on);
            if *on > 0.5 {
                strengths.push(f64::from(mean / on));
            }
        }
    }
    Ok((activity, strengths))
}

/// What is inferred from other patches, beside the prior (thesis, equation 3.26).
fn agreement(state: &State, model: &Parameters, unseen: &[f64]) -> Result<String> {
    let (activity, strengths) = inferred(state, model, unseen)?;
    let n = (unseen.len() / model.dims) as f64;
    let (mean, deviation) = mean_and_spread(&strengths);
    Ok(format!(
        "prior: {:.2} on, {}; inferred from {n} other patches: {:.2} on, strengths {mean:.2} with deviation {deviation:.2}",
        model.prior.iter().sum::<f64>(),
        learned(model),
        activity.iter().sum::<f64>() / n,
    ))
}

/// Noise, and the slab where it is part of the model's scale.
fn learned(model: &Parameters) -> String {
    let sigma = (model.noise_variances().iter().sum::<f64>() / model.dims as f64).sqrt();
    if model.kind != ModelKind::Ssmca {
        return format!("sigma {sigma:.2}");
    }
    // Of the latents that are on, not of all.
    let all: f64 = model.prior.iter().sum();
    let mean = |values: &[f64]| values.iter().zip(&model.prior).map(|(v, pi)| v * pi).sum::<f64>() / all;
    let psi = mean(&model.slab_variances()).sqrt();
    format!("sigma {sigma:.2}, mu {:.2}, psi {psi:.2}", mean(&model.slab_mean))
}

/// Column k; of two channels what is above zero less what is below.
fn field(model: &Parameters, k: usize, pixels: usize) -> Vec<f64> {
    let at = |i: usize| model.dictionary[i * model.latents + k];
    let below = |i: usize| if model.dims > pixels { at(pixels + i) } else { 0.0 };
    (0..pixels).map(|i| at(i) - below(i)).collect()
}

/// Fourth moment over the square of the second.
fn kurtosis(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let moment = |power: i32| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>() / n;
    moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE)
}
