//! What dictionaries of integers cost on real data.
//!
//! **Sound.** PATH is a folder of recordings (.wav, one channel, one rate). Four at a time, in the order of their names, are
//! scaled to the same power, mixed by a random rotation, with noise of the given level below the mixtures; GSC learns the
//! mixture (exact EM, one start), the posterior means of the whole mixture are the separated voices. The figure is
//! SI-SDR, the mean over the voices; every voice is matched with the latent that is closest to it by the model in f32.
//!
//! **Pictures.** PATH is a picture (.png). White noise is added; GSC with 64 latents learns 8 x 8 patches of
//! the noisy picture less their mean (stepwise EM, H' = 8, gamma = 4), and the posterior means of all patches (every second
//! place in both directions), put together and averaged, are the denoised one. The figure is the PSNR.
//!
//! Both models are the same but for the encoding: `f32`, then `i16` and `i8` with the noise that rounding adds. KL (nats per
//! point) and agreement of the best state are as `spikelet quantize --data` prints them.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example quantization -- [--quick] PATH
//! ```

mod common;

use common::mixtures::{add_noise, mean_square, mix, orthogonal_matrix};
use common::table::Table;
use common::{Arguments, gsc, seed};
use spikelet::frame::{Form, Frame};
use spikelet::model::{Model, Width};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference};
use spikelet_trainer::compare::Comparison;
use spikelet_trainer::data::{self, Mosaic, Pieces, Sheet};
use spikelet_trainer::metrics::{assign, psnr_db, si_sdr_db};
use spikelet_trainer::parameters::{NoiseCov, Parameters};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::settings::{InitForm, SlabForm};
use spikelet_trainer::train::{Points, Settings};
use spikelet_trainer::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const VOICES: usize = 4;
const FRAME: Frame = Frame { form: Form::Patches { width: 8, height: 8 }, rate: 0, centred: true };
/// Pixels from one patch to the next.
const STEP: usize = 2;
const PATCH_LATENTS: usize = 64;
const PEAK: f64 = 255.0;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let path = arguments.path("name a folder of recordings (.wav), or a picture (.png)")?;
    if path.is_dir() { sound(arguments, path) } else { picture(arguments, path) }
}

/// The model in f32, in i16 and in i8.
fn encodings(parameters: &Parameters, settings: &Settings) -> Result<[(&'static str, Prepared<f32>); 3]> {
    let options = settings.options();
    Ok([
        ("f32", Prepared::new(parameters, &options)?),
        ("i16", Prepared::quantized(parameters, &options, Width::I16)?),
        ("i8", Prepared::quantized(parameters, &options, Width::I8)?),
    ])
}

/// Posterior means (N x H) and reconstructions (N x D).
fn infer(model: Model<'_, f32>, points: &[f64]) -> (Vec<f64>, Vec<f32>) {
    let d = model.shape.dims;
    let mut memory = vec![0.0; model.arena_len()];
    let mut inference =
        Inference::with_detail(model, &mut memory, Detail::Marginals).expect("memory as asked for");
    let (mut means, mut clean, mut out) = (Vec::new(), Vec::new(), vec![0.0; d]);
    for point in points.chunks_exact(d) {
        let sample: Vec<f32> = point.iter().map(|&y| y as f32).collect();
        let found = inference.infer(&sample).expect("finite samples of ordinary size");
        means.extend(found.mean.iter().map(|&x| f64::from(x)));
        inference.reconstruct(&mut out).expect("D entries");
        clean.extend_from_slice(&out);
    }
    (means, clean)
}

const COLUMNS: [&str; 8] = [
    "data                 ",
    "noise",
    "encoding",
    "quality, dB",
    "loss, dB",
    "KL",
    "same best state",
    "noise / f32",
];

/// One row; `quality` is that of f32 and of this encoding.
fn row(
    table: &Table,
    data: &str,
    noise: &str,
    name: &str,
    quality: [f64; 2],
    points: &[f64],
    models: [&Prepared<f32>; 2],
) -> Result<()> {
    let mut comparison = Comparison::default();
    let [float, other] = models;
    comparison.add([float.model()?, other.model()?], points, None, data, 0)?;
    let variance = |model: Model<'_, f32>| match model.noise {
        spikelet::model::Noise::Shared(precision) => 1.0 / f64::from(precision),
        _ => f64::NAN,
    };
    table.row(&[
        data.to_string(),
        noise.to_string(),
        name.to_string(),
        format!("{:.3}", quality[1]),
        format!("{:+.4}", quality[0] - quality[1]),
        format!("{:.1e}", comparison.kl()),
        format!("{:.3} %", 100.0 * comparison.map_agreement()),
        format!("{:.6}", variance(other.model()?) / variance(float.model()?)),
    ]);
    Ok(())
}

fn sound(arguments: &Arguments, folder: &Path) -> Result<()> {
    let voices = recordings(folder)?;
    let length = voices.iter().map(Vec::len).min().unwrap_or(0);
    let (levels, trained) =
        if arguments.quick { (&[30.0][..], 3000) } else { (&[20.0, 40.0, 60.0][..], 10_000) };
    let table = Table::new(&COLUMNS);
    for (group, voices) in voices.chunks_exact(VOICES).enumerate() {
        for &level in levels {
            let mut rng = Rng::new(seed(70, group));
            let sources: Vec<f64> = (0..length * VOICES).map(|at| voices[at % VOICES][at / VOICES]).collect();
            let mixing = orthogonal_matrix(&mut rng, VOICES);
            let mut points = mix(&sources, &mixing, VOICES);
            let sigma = (mean_square(&points) * 10f64.powf(-level / 10.0)).sqrt();
            points.iter_mut().for_each(|y| *y += sigma * rng.normal::<f64>());
            // Points spread evenly over the recording.
            let every = (length / trained).max(1);
            let some = points.chunks_exact(VOICES).step_by(every).flatten().copied().collect();
            let settings = Settings { slab: SlabForm::Diagonal, ..gsc::exact(VOICES, 100, seed(71, group)) };
            let parameters = gsc::train(&settings, &mut Points::new(some, VOICES))?.model();
            let models = encodings(&parameters, &settings)?;
            let mut pairs: Vec<Option<usize>> = Vec::new();
            let mut first = 0.0;
            for (name, prepared) in &models {
                let (means, _) = infer(prepared.model()?, &points);
                let column = |values: &[f64], k: usize| -> Vec<f64> {
                    values.iter().skip(k).step_by(VOICES).copied().collect()
                };
                let score = |voice: usize, latent: usize| {
                    si_sdr_db(&column(&means, latent), &column(&sources, voice)).unwrap_or(f64::NEG_INFINITY)
                };
                if pairs.is_empty() {
                    let scores: Vec<f64> =
                        (0..VOICES * VOICES).map(|at| score(at / VOICES, at % VOICES)).collect();
                    pairs = assign(&scores, VOICES);
                }
                let each =
                    pairs.iter().enumerate().filter_map(|(voice, latent)| Some(score(voice, (*latent)?)));
                let mean = each.sum::<f64>() / VOICES as f64;
                first = if *name == "f32" { mean } else { first };
                let (data, noise) = (
                    format!("voices {} to {}", group * VOICES + 1, group * VOICES + VOICES),
                    format!("-{level} dB"),
                );
                row(&table, &data, &noise, name, [first, mean], &points, [&models[0].1, prepared])?;
            }
        }
    }
    Ok(())
}

/// All recordings of a folder, each with a mean square of 1.
fn recordings(folder: &Path) -> Result<Vec<Vec<f64>>> {
    let listing = std::fs::read_dir(folder).map_err(|cause| Error::reading(folder, &cause))?;
    let mut files: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "wav"));
    files.sort();
    if files.len() < VOICES {
        let what = format!("{} recordings where at least {VOICES} are needed", files.len());
        return Err(Error::input(what, folder.display(), "name a folder of recordings (.wav)"));
    }
    let read = |file: &PathBuf| {
        let points = data::Points::read(file)?;
        let voice: Vec<f64> = points.values.iter().step_by(points.dims).copied().collect();
        let scale = 1.0 / mean_square(&voice).sqrt();
        Ok(voice.into_iter().map(|y| scale * y).collect())
    };
    files.iter().map(read).collect()
}

fn picture(arguments: &Arguments, path: &Path) -> Result<()> {
    let clean = Sheet::read(path, FRAME.form)?;
    let (levels, passes) = if arguments.quick { (&[25.0][..], 5) } else { (&[5.0, 25.0, 50.0][..], 20) };
    let table = Table::new(&COLUMNS);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    for (trial, &sigma) in levels.iter().enumerate() {
        let mut rng = Rng::new(seed(72, trial));
        let mut noisy = clean.clone();
        noisy.planes.iter_mut().for_each(|plane| add_noise(&mut rng, plane, sigma));
        let too_small = |what| Error::input(what, path.display(), "give a larger one");
        let pieces = Pieces::new(noisy, &FRAME, STEP).map_err(too_small)?;
        let mut points = Vec::new();
        pieces.read(0, pieces.len(), &mut points);
        let settings = Settings {
            slab: SlabForm::Diagonal,
            batch: 500,
            init: InitForm::Data,
            ..gsc::truncated(PATCH_LATENTS, 8, 4, passes, seed(73, trial))
        };
        let mut parameters = gsc::train(&settings, &mut Points::new(points.clone(), pieces.dims()))?.model();
        // It was added here, and is not to be explained by latents.
        parameters.noise = NoiseCov::Shared(sigma * sigma);
        let models = encodings(&parameters, &settings)?;
        let mut first = 0.0;
        for (encoding, prepared) in &models {
            let mut mosaic = Mosaic::new(&pieces);
            mosaic.add(0, &infer(prepared.model()?, &points).1);
            let psnr = psnr_db(PEAK, mosaic.finish().mean_square_error(&clean)).unwrap_or(f64::INFINITY);
            first = if *encoding == "f32" { psnr } else { first };
            let noise = format!("sigma {sigma}");
            row(&table, &name, &noise, encoding, [first, psnr], &points, [&models[0].1, prepared])?;
        }
    }
    Ok(())
}
