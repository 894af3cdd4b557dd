//! What dictionaries of integers cost on real data.
//!
//! **Sound.** PATH is a folder of recordings (.wav, one channel, one rate). Four at a time, in the order of their names, are
//! scaled to the same power, mixed by a random rotation, with noise of the given level below the mixtures; GSC learns the
//! mixture (exact EM, one start), the posterior means of the whole mixture are the separated sources. The figure is
//! SI-SDR, the mean over the sources; every source is matched with the latent that is closest to it by the model in f32.
//! A folder with the folders `speech` and `music` is taken as two voices with two pieces of music, as often as there are.
//! Then the same recordings in random directions (of 4 and of 3 microphones, 10 s) by a lapped transform, learned as
//! in `voices`, and taken apart by the stream that a device runs.
//!
//! **Pictures.** PATH is a picture (.png). White noise is added; GSC with 64 latents learns 8 x 8 patches of
//! the noisy picture less their mean (stepwise EM, H' = 8, gamma = 4), and the posterior means of all patches (every second
//! place in both directions), put together and averaged, are the denoised one. The figure is the PSNR.
//!
//! The models differ in their encoding only: `f32`, then `i16` and `i8` with the noise that rounding adds. KL (nats per
//! point) and agreement of the best state are as `spikelet quantize --data` prints them. "Most" is what the source that
//! loses most loses. Bytes are those of the whole model, as a device holds it. Where there are two figures they are of i16
//! and i8. With `--fixed-point` these are inferred in integers from end to end, and all models have at most three latents on.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example quantization -- [--quick] [--fixed-point] PATH
//! ```

mod common;

use common::mixtures::{add_noise, directions, mean_square, mix, orthogonal_matrix};
use common::recordings::{self, Learned, loud, streamed};
use common::table::Table;
use common::{Arguments, gsc, seed};
use spikelet::frame::{Form, Frame};
use spikelet::model::{Model, Noise, Width};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference};
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::compare::Comparison;
use spikelet_trainer::data::{Mosaic, Pieces, Sheet};
use spikelet_trainer::metrics::{assign, psnr_db, si_sdr_db};
use spikelet_trainer::parameters::{NoiseCov, Parameters};
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::settings::{InitForm, SlabForm};
use spikelet_trainer::train::{Points, Settings};
use spikelet_trainer::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

const SOURCES: usize = 4;
const FRAME: Frame =
    Frame { form: Form::Patches { width: 8, height: 8, colours: 1 }, rate: 0, centred: true };
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

/// The model in f32, in i16 and in i8, these in fixed point if so wanted.
fn encodings(parameters: &Parameters, settings: &Settings, fixed_point: bool) -> Result<[Prepared<f32>; 3]> {
    let mut options = settings.options();
    if fixed_point {
        (options.selected, options.max_active) = (options.selected.min(10), options.max_active.min(3));
    }
    let integers = |width| {
        let prepared = Prepared::quantized(parameters, &options, width)?;
        if fixed_point { prepared.in_fixed_point() } else { Ok(prepared) }
    };
    Ok([Prepared::new(parameters, &options)?, integers(Width::I16)?, integers(Width::I8)?])
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

/// The quality of an encoding: of each source, or of the one picture.
type Quality = Vec<f64>;

fn mean(quality: &[f64]) -> f64 {
    quality.iter().sum::<f64>() / quality.len() as f64
}

const COLUMNS: [&str; 11] = [
    "data                ",
    "points   ",
    "noise   ",
    "f32, dB",
    "loss, dB         ",
    "most, dB         ",
    "KL, nats       ",
    "same best state, %",
    "noise / f32  ",
    "bytes          ",
    "in integers, %", // with --fixed-point
];

/// A table of them.
fn table(arguments: &Arguments) -> Table {
    Table::new(if arguments.fixed_point { &COLUMNS } else { &COLUMNS[..10] })
}

/// How many points of a hundred are inferred in integers.
fn in_integers(model: Model<'_, f32>, points: &[f64]) -> f64 {
    let d = model.shape.dims;
    let mut memory = vec![0.0; model.arena_len()];
    let mut inference =
        Inference::with_detail(model, &mut memory, Detail::Marginals).expect("memory as asked for");
    let count = points.chunks_exact(d).filter(|point| {
        let sample: Vec<f32> = point.iter().map(|&y| y as f32).collect();
        inference.infer(&sample).expect("finite samples of ordinary size");
        inference.is_fixed()
    });
    100.0 * count.count() as f64 * d as f64 / points.len() as f64
}

/// One row: i16 and i8 beside f32. `quality` says how good a model is, and the bytes of it.
fn row(
    (table, fixed_point): (&Table, bool),
    names: [&str; 3],
    points: &[f64],
    (parameters, settings, about): (&Parameters, &Settings, About<'_>),
    mut quality: impl FnMut(Model<'_, f32>, &[u8]) -> Result<Quality>,
) -> Result<()> {
    let [float, others @ ..] = encodings(parameters, settings, fixed_point)?;
    let bytes = |model: &Prepared<f32>| blob::write(model, &parameters.slab_cov, about);
    let before = bytes(&float)?;
    let best = quality(float.model()?, &before)?;
    // Without a sign of zero.
    let signed = |db: f64| format!("{:+.4}", (1e4 * db).round() / 1e4 + 0.0);
    let mut cells: [Vec<String>; 7] = Default::default();
    for other in &others {
        let mut comparison = Comparison::default();
        comparison.add([float.model()?, other.model()?], points, None, names[0], 0)?;
        let after = bytes(other)?;
        let found = quality(other.model()?, &after)?;
        let losses = best.iter().zip(&found).map(|(best, found)| best - found);
        let figures = [
            signed(mean(&best) - mean(&found)),
            signed(losses.fold(f64::NEG_INFINITY, f64::max)),
            format!("{:.1e}", comparison.kl()),
            format!("{:.3}", 100.0 * comparison.map_agreement()),
            format!("{:.4}", variance(other.model()?) / variance(float.model()?)),
            after.len().to_string(),
            if fixed_point { format!("{:.1}", in_integers(other.model()?, points)) } else { String::new() },
        ];
        cells.iter_mut().zip(figures).for_each(|(cell, figure)| cell.push(figure));
    }
    let mut row: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    row.push(format!("{:.3}", mean(&best)));
    row.extend(cells.iter().map(|figures| figures.join(", ")));
    row[9] += &format!(" of {}", before.len());
    row.truncate(if fixed_point { 11 } else { 10 });
    table.row(&row);
    Ok(())
}

/// Of full noise the geometric mean of its axes.
fn variance(model: Model<'_, f32>) -> f64 {
    let mean = |logs: &mut dyn ExactSizeIterator<Item = f64>| {
        let count = logs.len() as f64;
        (logs.sum::<f64>() / count).exp()
    };
    match model.noise {
        Noise::Shared(precision) => 1.0 / f64::from(precision),
        Noise::Diagonal(precisions) => mean(&mut precisions.iter().map(|&p| -f64::from(p).ln())),
        Noise::Full(factor) => {
            mean(&mut (0..model.shape.dims).map(|i| -2.0 * f64::from(factor[i * (i + 1) / 2 + i]).ln()))
        }
    }
}

/// Recordings to mix, each with a mean square of 1.
struct Group {
    name: String,
    rate: u32,
    sources: Vec<Vec<f64>>,
}

fn sound(arguments: &Arguments, folder: &Path) -> Result<()> {
    let (levels, trained) =
        if arguments.quick { (&[30.0][..], 3000) } else { (&[20.0, 40.0, 60.0][..], 10_000) };
    let groups = groups(folder)?;
    let table = table(arguments);
    for (number, group) in groups.iter().enumerate() {
        let length = group.sources.iter().map(Vec::len).min().unwrap_or(0);
        let sources: Vec<f64> =
            (0..length * SOURCES).map(|at| group.sources[at % SOURCES][at / SOURCES]).collect();
        for &level in levels {
            let mut rng = Rng::new(seed(70, number));
            let mixing = orthogonal_matrix(&mut rng, SOURCES);
            let mut points = mix(&sources, &mixing, SOURCES);
            let sigma = (mean_square(&points) * 10f64.powf(-level / 10.0)).sqrt();
            points.iter_mut().for_each(|y| *y += sigma * rng.normal::<f64>());
            // Points spread evenly over the recording.
            let every = (length / trained).max(1);
            let some = points.chunks_exact(SOURCES).step_by(every).flatten().copied().collect();
            let settings =
                Settings { slab: SlabForm::Diagonal, ..gsc::exact(SOURCES, 100, seed(71, number)) };
            let parameters = gsc::train(&settings, &mut Points::new(some, SOURCES))?.model();
            let mut pairs: Vec<Option<usize>> = Vec::new();
            let quality = |model: Model<'_, f32>, _: &[u8]| {
                let (means, _) = infer(model, &points);
                let column = |values: &[f64], k: usize| -> Vec<f64> {
                    values.iter().skip(k).step_by(SOURCES).copied().collect()
                };
                let score = |source: usize, latent: usize| {
                    si_sdr_db(&column(&means, latent), &column(&sources, source)).unwrap_or(f64::NEG_INFINITY)
                };
                Ok(matched(&mut pairs, score))
            };
            let noise = format!("-{level} dB");
            let trained = (&parameters, &settings, About::default());
            row(
                (&table, arguments.fixed_point),
                [&group.name, "4 samples", &noise],
                &points,
                trained,
                quality,
            )?;
        }
    }
    for (number, group) in groups.iter().enumerate() {
        transformed(arguments, &table, number, group)?;
    }
    Ok(())
}

/// By a lapped transform.
fn transformed(arguments: &Arguments, table: &Table, number: usize, group: &Group) -> Result<()> {
    let (seconds, levels) = if arguments.quick { (4, &[None][..]) } else { (10, &[Some(40.0), None][..]) };
    let length = group.sources.iter().map(Vec::len).min().unwrap_or(0).min(seconds * group.rate as usize);
    let truths: Vec<Vec<f64>> = group.sources.iter().map(|source| loud(&source[..length])).collect();
    let sources: Vec<f64> = (0..length * SOURCES).map(|at| truths[at % SOURCES][at / SOURCES]).collect();
    for microphones in [4, 3] {
        for level in levels {
            let mut rng = Rng::new(seed(74, number));
            let mut heard = mix(&sources, &directions(&mut rng, microphones, SOURCES), SOURCES);
            if let Some(level) = level {
                let sigma = (mean_square(&heard) * 10f64.powf(-level / 10.0)).sqrt();
                add_noise(&mut rng, &mut heard, sigma);
            }
            let input: Vec<f32> = heard.iter().map(|&y| y as f32).collect();
            let Learned { parameters, settings, frame, gains, points } =
                recordings::learn(&input, microphones, SOURCES, group.rate, seed(75, number))?;
            let mut pairs: Vec<Option<usize>> = Vec::new();
            let quality = |_: Model<'_, f32>, bytes: &[u8]| {
                let parts = streamed(bytes, &input, microphones)?;
                let score = |source: usize, part: usize| {
                    si_sdr_db(&parts[part], &truths[source]).unwrap_or(f64::NEG_INFINITY)
                };
                Ok(matched(&mut pairs, score))
            };
            let about = About { frame: Some(frame), gains: &gains, ..About::default() };
            let noise = level.map_or("none".into(), |level| format!("-{level} dB"));
            let names = [&group.name, &format!("{microphones} MDCT"), &noise[..]];
            row((table, arguments.fixed_point), names, &points, (&parameters, &settings, about), quality)?;
        }
    }
    Ok(())
}

/// The score of each source with its latent; which that is, the first model says.
fn matched(pairs: &mut Vec<Option<usize>>, score: impl Fn(usize, usize) -> f64) -> Quality {
    if pairs.is_empty() {
        let scores: Vec<f64> = (0..SOURCES * SOURCES).map(|at| score(at / SOURCES, at % SOURCES)).collect();
        *pairs = assign(&scores, SOURCES);
    }
    pairs.iter().enumerate().filter_map(|(source, latent)| Some(score(source, (*latent)?))).collect()
}

/// What is mixed of the recordings of a folder.
fn groups(folder: &Path) -> Result<Vec<Group>> {
    let [speech, music] = ["speech", "music"].map(|name| folder.join(name));
    let groups: Vec<Group> = if speech.is_dir() && music.is_dir() {
        let ((voices, rate), (pieces, _)) = (read(&speech)?, read(&music)?);
        let pairs = voices.chunks_exact(SOURCES / 2).zip(pieces.chunks_exact(SOURCES / 2));
        let group = |(at, sources)| Group { name: format!("speech and music {}", at + 1), rate, sources };
        pairs.map(|(voices, pieces)| [voices, pieces].concat()).enumerate().map(group).collect()
    } else {
        let (recordings, rate) = read(folder)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let group = |(at, sources): (usize, &[Vec<f64>])| Group {
            name: format!("{name} {} to {}", at * SOURCES + 1, at * SOURCES + SOURCES),
            rate,
            sources: sources.to_vec(),
        };
        recordings.chunks_exact(SOURCES).enumerate().map(group).collect()
    };
    if groups.is_empty() {
        let what = format!("too few recordings where {SOURCES} are mixed");
        let advice = "name a folder of recordings (.wav), or one with the folders speech and music";
        return Err(Error::input(what, folder.display(), advice));
    }
    Ok(groups)
}

/// All recordings of a folder, by name, each with a mean square of 1; and their rate.
fn read(folder: &Path) -> Result<(Vec<Vec<f64>>, u32)> {
    let unit = |samples: &[f64]| {
        let scale = 1.0 / mean_square(samples).sqrt();
        samples.iter().map(|y| scale * y).collect()
    };
    let recordings = recordings::read(folder)?;
    let rate = recordings.first().map_or(8000, |recording| recording.rate);
    Ok((recordings.iter().map(|recording| unit(&recording.samples)).collect(), rate))
}

fn picture(arguments: &Arguments, path: &Path) -> Result<()> {
    let clean = Sheet::read(path, FRAME.form)?;
    let (levels, passes) = if arguments.quick { (&[25.0][..], 5) } else { (&[5.0, 25.0, 50.0][..], 20) };
    let table = table(arguments);
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
        let quality = |model: Model<'_, f32>, _: &[u8]| {
            let mut mosaic = Mosaic::new(&pieces);
            mosaic.add(0, &infer(model, &points).1, &vec![1.0; pieces.len()]);
            let error = mosaic.finish().mean_square_error(&clean);
            Ok(vec![psnr_db(PEAK, error).unwrap_or(f64::INFINITY)])
        };
        let noise = format!("sigma {sigma}");
        let trained = (&parameters, &settings, About { frame: Some(FRAME), ..About::default() });
        row((&table, arguments.fixed_point), [&name, "patches", &noise], &points, trained, quality)?;
    }
    Ok(())
}
