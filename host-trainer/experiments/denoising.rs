//! Removing noise from a picture, as papers 000 (GSC, truncated) and 003 (S5C, sampled) do with "house".
//!
//! White noise of standard deviation 15, 25 or 50 is added to the pixels (not rounded, not cut off). All overlapping
//! 8 x 8 patches of the noisy picture are the training data; dictionary, prior, slab and noise are learned from them
//! alone. Every pixel of the result is the mean of the posterior means of the 64 patches it lies in.
//!
//! Unlike the papers, the mean is taken off every patch and put back at the end, and EM is stepwise, with ten passes in
//! place of 65. S5C has one noise variance per pixel, as in 003.
//!
//! `--figure 8` is figure 8 of 000 instead: how many of 256 latents are used at a noise of 25 (paper: about 107), by stepwise EM
//! and by plain EM in 65 iterations, as in the paper. The paper does not say what counts as used; here a latent is if it is on in
//! one patch of a thousand, and two other limits are beside it. The picture has the fields of the last row that are used, the
//! most frequent first.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example denoising -- PICTURE.png [--quick] [--skip ROWS] [--figure 8] [--picture FILE]
//! ```

mod common;

use common::mixtures::add_noise;
use common::pieces::denoised;
use common::svg::images;
use common::table::Table;
use common::{Arguments, cpu_seconds};
use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet_trainer::data::{Pieces, Sheet};
use spikelet_trainer::metrics::psnr_db;
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::train::settings::{Engine, InitForm, NoiseForm, Precision, Settings};
use spikelet_trainer::train::{Next, Points, State};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;
use std::time::Instant;

const FRAME: Frame =
    Frame { form: Form::Patches { width: 8, height: 8, colours: 1 }, rate: 0, centred: true };

/// Noise, in grey levels.
const SIGMAS: [f64; 3] = [15.0, 25.0, 50.0];
/// Points per step of stepwise EM.
const BATCH: usize = 1200;
/// In what part of the patches a latent is on that counts as used; the middle one decides about the picture.
const LIMITS: [f64; 3] = [0.01, 0.001, 0.0001];

/// A way to do it, and the papers' figures for the three noise levels; those of 003 are in a picture only, and its text
/// says that S5C is above GSC at 25.
struct Method {
    name: &'static str,
    latents: usize,
    engine: Engine,
    selected: usize,
    max_active: usize,
    papers: [&'static str; 3],
}

const METHODS: [Method; 3] = [
    Method {
        name: "GSC, H = 64",
        latents: 64,
        engine: Engine::Truncated,
        selected: 10,
        max_active: 5,
        papers: ["32.68", "31.10", "28.02"],
    },
    Method {
        name: "GSC, H = 256",
        latents: 256,
        engine: Engine::Truncated,
        selected: 10,
        max_active: 5,
        papers: ["33.78", "32.01", "28.35"],
    },
    Method {
        name: "S5C, H = 256",
        latents: 256,
        engine: Engine::Gibbs,
        selected: 40,
        max_active: 4,
        papers: ["-", "> 32.01", "-"],
    },
];

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let path = arguments.path("name a picture, for instance house256.png")?;
    let clean = Sheet::read(path, FRAME.form)?;
    match arguments.figure.as_deref() {
        None => {}
        Some("8") => return used(arguments, &clean),
        Some(other) => {
            let what = format!("there is no figure {other}");
            return Err(Error::input(what, "--figure", "use 8, or leave it out for the table"));
        }
    }
    println!("PSNR in dB; passes over the patches, latents on at a time, seconds to train and to infer\n");
    let columns =
        ["sigma", "noisy", "method      ", "PSNR", "papers", "passes", "on", "train (s)", "infer (s)"];
    let table = Table::new(&columns);
    let (sigmas, passes): (&[usize], usize) = if arguments.quick { (&[1], 2) } else { (&[0, 1, 2], 10) };
    let rows = sigmas.iter().flat_map(|&sigma| METHODS.iter().map(move |method| (sigma, method)));
    for (level, method) in rows.skip(arguments.skip) {
        if arguments.quick && method.latents > 64 {
            continue;
        }
        let sigma = SIGMAS[level];
        let noisy = noisy(&clean, level);
        let psnr = |sheet: &Sheet| psnr_db(255.0, sheet.mean_square_error(&clean)).unwrap_or(f64::INFINITY);
        let noisy_psnr = psnr(&noisy);
        let done = run(method, noisy, (passes, BATCH), arguments.threads())?;
        table.row(&[
            format!("{sigma}"),
            format!("{noisy_psnr:.2}"),
            method.name.into(),
            format!("{:.2}", psnr(&done.picture)),
            method.papers[level].into(),
            done.passes.to_string(),
            format!("{:.2}", done.on),
            format!("{:.0}", done.training),
            format!("{:.0}", done.inference),
        ]);
    }
    Ok(())
}

/// With the noise of the table's row.
fn noisy(clean: &Sheet, level: usize) -> Sheet {
    let mut noisy = clean.clone();
    let mut rng = Rng::new(common::seed(60, level));
    noisy.planes.iter_mut().for_each(|plane| add_noise(&mut rng, plane, SIGMAS[level]));
    noisy
}

/// Figure 8 of 000.
fn used(arguments: &Arguments, clean: &Sheet) -> Result<()> {
    let method = &METHODS[1];
    let mut columns = vec!["EM         ".to_owned(), "passes".to_owned(), "PSNR".to_owned(), "on".to_owned()];
    columns.extend(LIMITS.map(|limit| format!("pi > {limit}")));
    columns.push("CPU seconds".to_owned());
    let table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    let rows = match arguments.quick {
        true => [("stepwise", 1, BATCH), ("plain", 1, 0)],
        false => [("stepwise", 10, BATCH), ("plain", 65, 0)],
    };
    for (name, passes, batch) in rows.into_iter().skip(arguments.skip) {
        let begun = cpu_seconds();
        let done = run(method, noisy(clean, 1), (passes, batch), 1)?;
        let seconds = cpu_seconds() - begun;
        let h = done.model.latents;
        let mut order: Vec<usize> = (0..h).collect();
        order.sort_by(|a, b| done.model.prior[*b].total_cmp(&done.model.prior[*a]).then(a.cmp(b)));
        let count = |limit: f64| done.model.prior.iter().filter(|pi| **pi > limit).count();
        let psnr = psnr_db(255.0, done.picture.mean_square_error(clean)).unwrap_or(f64::INFINITY);
        let mut row =
            vec![name.to_owned(), done.passes.to_string(), format!("{psnr:.2}"), format!("{:.2}", done.on)];
        row.extend(LIMITS.map(|limit| count(limit).to_string()));
        row.push(format!("{seconds:.0}"));
        table.row(&row);
        if let Some(path) = &arguments.picture {
            let field = |k: &usize| done.model.dictionary.iter().skip(*k).step_by(h).copied().collect();
            let fields: Vec<Vec<f64>> = order[..count(LIMITS[1])].iter().map(field).collect();
            std::fs::write(path, images(&fields, 8, 32)).map_err(|cause| Error::writing(path, &cause))?;
        }
    }
    Ok(())
}

/// What became of a picture, and what it took.
struct Done {
    picture: Sheet,
    model: Parameters,
    passes: usize,
    on: f64,
    training: f64,
    inference: f64,
}

/// With so many passes, and so many points per step (0: plain EM).
fn run(method: &Method, noisy: Sheet, (passes, batch): (usize, usize), threads: usize) -> Result<Done> {
    let too_small = |what| Error::input(what, "the picture", "give a larger one");
    let pieces = Pieces::new(noisy, &FRAME, 1).map_err(too_small)?;
    let (mut values, dims) = (Vec::new(), pieces.dims());
    pieces.read(0, pieces.len(), &mut values);
    let settings = Settings {
        engine: method.engine,
        selected: method.selected,
        max_active: method.max_active,
        sweeps: 100,
        noise: if method.engine == Engine::Gibbs { NoiseForm::Diagonal } else { NoiseForm::Shared },
        precision: Precision::F32,
        init: InitForm::Data,
        batch: batch.min(pieces.len() / 5),
        iterations: passes,
        tolerance: 0.0,
        ..Settings::new(ModelKind::Gsc, method.latents)
    };
    let mut points = Points::new(values, dims);
    let begun = Instant::now();
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, threads, |_| Ok(Next::Continue))?;
    let training = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let (picture, on) = denoised(&state, &pieces)?;
    let passes = state.result().history.len() - 1;
    let inference = begun.elapsed().as_secs_f64();
    Ok(Done { picture, model: state.model(), passes, on, training, inference })
}
