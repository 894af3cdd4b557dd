//! Fields of natural pictures: how many look like Gabor functions, how many are globular (003, section 4 and figure 2; thesis 004, section 3.4.3 and
//! figure 3.10).
//!
//! 003 learns H = 10 000 fields from 10^6 patches of 16 x 16 pixels of the van Hateren pictures by select and sample (H' = 20, 50 samples, 50 iterations) on 1000 cores; 12 % of them do not specialise, most
//! others look like Gabor functions, then come globular ones. The thesis learns H = 500 of a nonlinear model from 50 000 patches, of which about as many are globular as in
//! recordings of V1. Here the pictures are those of a folder, the model is the linear spike-and-slab one with adaptive states and stepwise EM. `--latents 10000` is 003's size, with
//! ten patches for each field.
//!
//! Preprocessing, by `--preprocessing`: `pseudo` is the pseudo-whitening of both papers, each picture filtered by f exp(-(f / f0)^4) with f0 = 0.4
//! cycles a pixel (200 of 512); `dog` a difference of Gaussians (thesis, section 2.4); `whiten` takes the covariance of patches to 1; `none`. Patches lose their mean and are scaled to one variance, flat ones are left out.
//!
//! Each field is fitted by Gabor functions and by differences of Gaussians over a grid of sizes, widths, directions and frequencies around the middle of its energy, amplitudes by least squares;
//! what neither explains to a half has not specialised; else it is what fits better. `crisp` is the part of the energy that the better fit explains, `kurtosis` that of the field's pixels, both medians.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example natural-images -- [--quick] [--latents H] [--preprocessing NAME] [--picture FILE] FOLDER
//! ```
//!
//! FOLDER holds pictures (.png); its subfolder `images` will do. At the default sizes this takes a few minutes of one core.

mod common;

use common::fields::{Shape, shape};
use common::table::{Table, median};
use common::{Arguments, cpu_seconds, svg};
use spikelet::frame::Form;
use spikelet::rng::Rng;
use spikelet_trainer::data::Sheet;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, InitForm, Precision, StatesForm};
use spikelet_trainer::train::whiten::Whitening;
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result};
use std::f64::consts::TAU;
use std::path::Path;
use std::process::ExitCode;

const SIDE: usize = 16;
const DIMS: usize = SIDE * SIDE;
/// Reach of a filter, in pixels.
const REACH: usize = 7;
/// Fields in the picture.
const SHOWN: usize = 72;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder of pictures (.png)")?;
    let latents = arguments.latents.map_or(if arguments.quick { 64 } else { 400 }, usize::from);
    // Of many fields each needs some patches, and a pass over them takes minutes.
    let (count, passes) = match (arguments.quick, latents) {
        (true, _) => (2000, 2),
        (_, ..=2000) => (20_000, 8),
        _ => (10 * latents, 4),
    };
    let all = ["pseudo", "dog", "whiten", "none"];
    let names: Vec<&str> = match arguments.preprocessing.as_deref() {
        None => all[..if arguments.quick { 1 } else { 3 }].to_vec(),
        Some(name) if all.contains(&name) => vec![name],
        Some(other) => {
            let what = format!("there is no preprocessing {other}");
            return Err(Error::input(what, "--preprocessing", "use pseudo, dog, whiten or none"));
        }
    };
    println!("{count} patches of {SIDE} x {SIDE} pixels, H = {latents}, {passes} passes\n");
    let table = Table::new(&[
        "preprocessing",
        "used",
        "Gabor",
        "globular",
        "neither",
        "crisp",
        "kurtosis",
        "on at a time",
        "CPU seconds",
    ]);
    for name in names {
        let values = patches(folder, name, count)?;
        let begun = cpu_seconds();
        let settings = Settings {
            engine: Engine::Truncated,
            states: StatesForm::Adaptive,
            selected: 20,
            max_active: 12,
            precision: Precision::F32,
            init: InitForm::Data,
            batch: (count / 40).max(latents).min(count / 5),
            iterations: passes,
            tolerance: 0.0,
            seed: common::seed(80, 0),
            ..Settings::new(ModelKind::Gsc, latents)
        };
        let mut points = Points::new(values, DIMS);
        let mut state = State::new(settings, &mut points)?;
        state.run(&mut points, 1, |_| Ok(Next::Continue))?;
        let model = state.model();
        let seconds = cpu_seconds() - begun;
        let mut order: Vec<usize> = (0..latents).collect();
        order.sort_by(|a, b| model.prior[*b].total_cmp(&model.prior[*a]).then(a.cmp(b)));
        // On less often than once in all patches: not used.
        order.retain(|&k| model.prior[k] * count as f64 > 1.0);
        let field = |k: usize| -> Vec<f64> { (0..DIMS).map(|i| model.dictionary[i * latents + k]).collect() };
        let shapes: Vec<(Shape, f64)> = order.iter().map(|&k| shape(&field(k), SIDE)).collect();
        let share = |wanted: Shape| {
            let found = shapes.iter().filter(|(shape, _)| *shape == wanted).count();
            format!("{:.1} %", 100.0 * found as f64 / shapes.len() as f64)
        };
        let crisp: Vec<f64> = shapes.iter().map(|(_, fit)| *fit).collect();
        let tails: Vec<f64> = order.iter().map(|&k| kurtosis(&field(k))).collect();
        table.row(&[
            name.to_owned(),
            order.len().to_string(),
            share(Shape::Gabor),
            share(Shape::Globular),
            share(Shape::Neither),
            format!("{:.2}", median(&crisp)),
            format!("{:.1}", median(&tails)),
            format!("{:.1}", model.prior.iter().sum::<f64>()),
            format!("{seconds:.0}"),
        ]);
        if let Some(path) = &arguments.picture {
            let shown: Vec<Vec<f64>> = order.iter().take(SHOWN).map(|&k| field(k)).collect();
            let written = std::fs::write(path, svg::images(&shown, SIDE, 24));
            written.map_err(|error| Error::input(error, path.display(), "choose another place"))?;
        }
    }
    Ok(())
}

/// Patches drawn at random from all pictures of a folder. (N x DIMS)
fn patches(folder: &Path, preprocessing: &str, count: usize) -> Result<Vec<f64>> {
    let inner = folder.join("images");
    let folder = if inner.is_dir() { inner.as_path() } else { folder };
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .map_err(|error| Error::input(error, folder.display(), "name a folder of pictures"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .collect();
    names.sort();
    let filter = match preprocessing {
        "pseudo" => Some(pseudo_whitening()),
        "dog" => Some(difference_of_gaussians()),
        _ => None,
    };
    let mut pictures = Vec::new();
    for name in names {
        let sheet = Sheet::read(&name, Form::Patches { width: 1, height: 1, colours: 1 })?;
        let planes = sheet.planes.len() as f64;
        let grey: Vec<f64> = (0..sheet.width * sheet.height)
            .map(|i| sheet.planes.iter().map(|plane| plane[i]).sum::<f64>() / planes)
            .collect();
        let picture = match &filter {
            Some(filter) => filtered(&grey, sheet.width, filter),
            None => (grey, sheet.width),
        };
        if picture.1 >= SIDE && picture.0.len() / picture.1 >= SIDE {
            pictures.push(picture);
        }
    }
    if pictures.is_empty() {
        return Err(Error::input("there is no picture", folder.display(), "name a folder with .png files"));
    }
    let mut rng = Rng::new(common::seed(81, 0));
    let mut values = Vec::with_capacity(count * DIMS);
    let mut any = |n: usize| ((rng.uniform::<f64>() * n as f64) as usize).min(n - 1);
    let mut tried = 0;
    while values.len() < count * DIMS && tried < 20 * count {
        tried += 1;
        let (picture, width) = &pictures[any(pictures.len())];
        let (left, top) = (any(width + 1 - SIDE), any(picture.len() / width + 1 - SIDE));
        let pixel = |i: usize| picture[(top + i / SIDE) * width + left + i % SIDE];
        let mean = (0..DIMS).map(pixel).sum::<f64>() / DIMS as f64;
        let deviation = ((0..DIMS).map(|i| (pixel(i) - mean).powi(2)).sum::<f64>() / DIMS as f64).sqrt();
        // Flat ones are noise of the camera.
        if deviation > 2.0 {
            values.extend((0..DIMS).map(|i| (pixel(i) - mean) / deviation));
        }
    }
    if preprocessing == "whiten" {
        let n = (values.len() / DIMS) as f64;
        let mut covariance = vec![0.0; DIMS * DIMS];
        for y in values.chunks_exact(DIMS) {
            for (row, a) in covariance.chunks_exact_mut(DIMS).zip(y) {
                row.iter_mut().zip(y).for_each(|(sum, b)| *sum += a * b / n);
            }
        }
        // Directions with a thousandth of the mean variance are noise: they shall not be blown up.
        (0..DIMS).for_each(|i| covariance[i * DIMS + i] += 1e-3);
        Whitening::new(&covariance, DIMS).apply(&mut values);
    }
    Ok(values)
}

/// f exp(-(f / 0.4)^4) at pixels around the middle, f in cycles a pixel.
fn pseudo_whitening() -> Vec<f64> {
    const STEPS: i32 = 32;
    let reach = REACH as i32;
    let at = |x: i32, y: i32| {
        let mut sum = 0.0;
        for (u, v) in (-STEPS..STEPS).flat_map(|u| (-STEPS..STEPS).map(move |v| (u, v))) {
            let (u, v) = ((f64::from(u) + 0.5) / 64.0, (f64::from(v) + 0.5) / 64.0);
            let f = u.hypot(v);
            sum += f * (-(f / 0.4).powi(4)).exp() * (TAU * (u * f64::from(x) + v * f64::from(y))).cos();
        }
        sum / f64::from(4 * STEPS * STEPS)
    };
    (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y))).map(|(x, y)| at(x, y)).collect()
}

/// A narrow Gaussian less one three times as wide, both of sum 1.
fn difference_of_gaussians() -> Vec<f64> {
    let reach = REACH as i32;
    let around = |width: f64| -> Vec<f64> {
        let value = |x: i32, y: i32| (-0.5 * f64::from(x * x + y * y) / (width * width)).exp();
        let all: Vec<f64> = (-reach..=reach)
            .flat_map(|y| (-reach..=reach).map(move |x| (x, y)))
            .map(|(x, y)| value(x, y))
            .collect();
        let sum: f64 = all.iter().sum();
        all.iter().map(|v| v / sum).collect()
    };
    around(1.0).iter().zip(around(3.0)).map(|(narrow, wide)| narrow - wide).collect()
}

/// A picture through a filter, without its margin, and its new width.
fn filtered(picture: &[f64], width: usize, filter: &[f64]) -> (Vec<f64>, usize) {
    let (height, size) = (picture.len() / width, 2 * REACH + 1);
    if width < size || height < size {
        return (Vec::new(), 1);
    }
    let (across, down) = (width - 2 * REACH, height - 2 * REACH);
    let mut out = vec![0.0; across * down];
    for (y, row) in out.chunks_exact_mut(across).enumerate() {
        for (k, weight) in filter.iter().enumerate() {
            let seen = &picture[(y + k / size) * width + k % size..][..across];
            row.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += weight * seen);
        }
    }
    (out, across)
}

/// Fourth moment over the square of the second.
fn kurtosis(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let moment = |power: i32| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>() / n;
    moment(4) / moment(2).powi(2).max(f64::MIN_POSITIVE)
}
