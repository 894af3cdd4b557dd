//! What time buys (paper 000, section 5.5 and figure 7): separation of voices (A) and denoising (B, C), factored posteriors
//! against truncated ones, exact ones and adaptive states.
//!
//! The paper runs MTMKL for 50 to 1000 iterations and truncated EM with H' = gamma of 2 to 10 on Speech20; on the picture house
//! with noise of 25, MTMKL with H = 64 for up to 12 000 iterations and truncated EM with H = 400; against H, MTMKL loses a little
//! and truncated EM gains. Here are ten voices through an oblique W (noise 1 on the rotation, as in figure 5), and house256.png:
//! learned from every ninth patch, all patches cleaned. A factored model is also inferred by its own posterior; all pixels are
//! plain means over patches there, and weighted by the posterior variance with the others.

use crate::common::mixtures::add_noise;
use crate::common::pieces::denoised;
use crate::common::table::{Table, mean_and_spread, spread};
use crate::common::{self, Arguments, cpu_seconds};
use crate::{EXACT_UP_TO, Set, run, sets};
use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet_trainer::data::{Mosaic, Pieces, Sheet};
use spikelet_trainer::metrics::psnr_db;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, InitForm, StatesForm};
use spikelet_trainer::train::{Next, Points, Settings, State, factored};
use spikelet_trainer::{Error, Result};

const SIGMA: f64 = 25.0;
const SIDE: u32 = 8;
/// From one patch that is learned from to the next.
const STEP: usize = 3;

fn truncated(settings: &Settings, selected: usize, max_active: usize) -> Settings {
    let h = settings.latents;
    let (selected, max_active) = (selected.min(h), max_active.min(h));
    Settings { engine: Engine::Truncated, selected, max_active, ..settings.clone() }
}

/// Figure 9: index and time as H' = gamma grow, through a rotation.
pub fn truncation(arguments: &Arguments) -> Result<()> {
    let trials = if arguments.quick { 2 } else { 8 };
    println!(
        "{trials} trials; Amari index, mean (standard deviation), CPU seconds of a trial, and these over those of the last row of the set\n"
    );
    let table = Table::new(&["sources        ", "H' = gamma", "Amari        ", "seconds", "relative"]);
    let sizes = if arguments.quick { &[1, 3, 4][..] } else { &[1, 2, 3, 5, 7, 10] };
    for set in sets(arguments.given_path())?.into_iter().skip(arguments.skip).take(arguments.rows) {
        let sizes: Vec<usize> = sizes.iter().copied().filter(|size| *size <= set.sources).collect();
        let mut rows = Vec::new();
        for &size in &sizes {
            let all = Settings { iterations: 100, ..Settings::new(ModelKind::Gsc, set.sources) };
            rows.push(timed(&set, 0.0, &truncated(&all, size, size), (trials, arguments))?);
        }
        let longest = rows.last().map_or(1.0, |row| row.1);
        for (size, (indices, seconds)) in sizes.iter().zip(&rows) {
            table.row(&[
                set.name.to_owned(),
                size.to_string(),
                spread(indices),
                format!("{seconds:.2}"),
                format!("{:.3}", seconds / longest),
            ]);
        }
    }
    Ok(())
}

/// The indices of so many trials, and the CPU seconds of one.
fn timed(
    set: &Set,
    oblique: f64,
    settings: &Settings,
    (trials, arguments): (usize, &Arguments),
) -> Result<(Vec<f64>, f64)> {
    let runs = arguments.trials(trials, |trial: usize| {
        let begun = cpu_seconds();
        Ok([run(set, (oblique, 0.0), settings, trial)?[0], cpu_seconds() - begun])
    })?;
    let column = |k: usize| runs.iter().map(|run| run[k]).collect::<Vec<f64>>();
    Ok((column(0), mean_and_spread(&column(1)).0))
}

/// Figure 7A.
pub fn separation(arguments: &Arguments) -> Result<()> {
    let trials = if arguments.quick { 2 } else { 8 };
    println!("{trials} trials; Amari index, mean (standard deviation), and CPU seconds of a trial\n");
    let table = Table::new(&["sources        ", "engine       ", "iterations", "Amari        ", "seconds"]);
    // Voices, or what stands for them.
    for set in sets(arguments.given_path())?.into_iter().skip(1).take(1) {
        let all = |iterations: usize| Settings { iterations, ..Settings::new(ModelKind::Gsc, set.sources) };
        let factored = |iterations| Settings { engine: Engine::Factored, ..all(iterations) };
        let mut rows: Vec<(String, Settings)> =
            [50, 100, 1000].map(|iterations| ("factored".to_owned(), factored(iterations))).to_vec();
        for few in [2, 3, 5, 7] {
            rows.push((format!("H' = gamma = {few}"), truncated(&all(100), few, few)));
        }
        let adaptive = Settings { states: StatesForm::Adaptive, ..truncated(&all(100), 10, 10) };
        rows.push(("adaptive".to_owned(), adaptive));
        if set.sources <= EXACT_UP_TO {
            rows.push(("exact".to_owned(), all(100)));
        }
        for (name, settings) in rows.into_iter().skip(arguments.skip).take(arguments.rows) {
            let (indices, seconds) = timed(&set, 1.0, &settings, (trials, arguments))?;
            table.row(&[
                set.name.to_owned(),
                name,
                settings.iterations.to_string(),
                spread(&indices),
                format!("{seconds:.2}"),
            ]);
        }
    }
    Ok(())
}

/// Figures 7B and 7C.
pub fn denoising(arguments: &Arguments) -> Result<()> {
    let frame =
        Frame { form: Form::Patches { width: SIDE, height: SIDE, colours: 1 }, rate: 0, centred: true };
    let folder = arguments.path("name a folder that has images/house256.png")?;
    let clean = Sheet::read(folder.join("images/house256.png"), frame.form)?;
    let mut noisy = clean.clone();
    let mut rng = Rng::new(common::seed(45, 0));
    noisy.planes.iter_mut().for_each(|plane| add_noise(&mut rng, plane, SIGMA));
    let too_small = |what| Error::input(what, "the picture", "give a larger one");
    let all = Pieces::new(noisy.clone(), &frame, 1).map_err(too_small)?;
    let few = Pieces::new(noisy, &frame, if arguments.quick { 4 * STEP } else { STEP }).map_err(too_small)?;
    let psnr = |sheet: &Sheet| psnr_db(255.0, sheet.mean_square_error(&clean)).unwrap_or(f64::INFINITY);
    println!("noise {SIGMA}, {} patches learned from; PSNR in dB, CPU seconds of training\n", few.len());
    let table = Table::new(&["H", "engine   ", "iterations", "PSNR", "PSNR, factored", "on", "seconds"]);
    let (sizes, counts): (&[usize], &[usize]) =
        if arguments.quick { (&[64], &[2]) } else { (&[64, 128, 256], &[10, 40]) };
    let (mut values, dims) = (Vec::new(), few.dims());
    few.read(0, few.len(), &mut values);
    let rows = sizes.iter().flat_map(|&h| {
        let base = Settings { init: InitForm::Data, ..Settings::new(ModelKind::Gsc, h) };
        let papers = truncated(&base, 10, 5);
        let engines = [
            ("factored", Settings { engine: Engine::Factored, ..papers.clone() }),
            ("truncated", papers.clone()),
            ("adaptive", Settings { states: StatesForm::Adaptive, ..papers }),
        ];
        engines.into_iter().flat_map(|(name, settings)| {
            counts.iter().map(move |&iterations| (name, Settings { iterations, ..settings.clone() }))
        })
    });
    for (name, settings) in rows.skip(arguments.skip).take(arguments.rows) {
        let (h, iterations) = (settings.latents, settings.iterations);
        let mut points = Points::new(values.clone(), dims);
        let begun = cpu_seconds();
        let mut state = State::new(settings, &mut points)?;
        state.run(&mut points, 1, |_| Ok(Next::Continue))?;
        let seconds = cpu_seconds() - begun;
        let (picture, on) = denoised(&state, &all)?;
        let own = match state.settings.engine == Engine::Factored {
            true => format!("{:.2}", psnr(&by_factors(&state, &all)?)),
            false => "-".to_owned(),
        };
        table.row(&[
            h.to_string(),
            name.to_owned(),
            iterations.to_string(),
            format!("{:.2}", psnr(&picture)),
            own,
            format!("{on:.2}"),
            format!("{seconds:.1}"),
        ]);
    }
    Ok(())
}

/// Every pixel as the mean over the factored posterior means of the patches it lies in.
fn by_factors(state: &State, pieces: &Pieces) -> Result<Sheet> {
    let model = state.model();
    let (mut values, mut means) = (Vec::new(), Vec::new());
    pieces.read(0, pieces.len(), &mut values);
    factored::e_step(&model, &mut means, &mut Points::new(values, model.dims), 1)?;
    let mut mosaic = Mosaic::new(pieces);
    for (number, m) in means.chunks_exact(model.latents).enumerate() {
        let pixel = |row: &[f64]| row.iter().zip(m).map(|(w, m)| w * m).sum::<f64>() as f32;
        let piece: Vec<f32> = model.dictionary.chunks_exact(model.latents).map(pixel).collect();
        mosaic.add(number, &piece, &[1.0]);
    }
    Ok(mosaic.finish())
}
