//! Waveforms of speech (paper 002, section 4.3.2): binary sparse coding (LinCA there) of short windows, unprocessed.
//!
//! The paper has ten male voices that speak the same sentence, at 16 kHz: all N = 389 510 windows of 12.5 ms, D = 200. Every
//! recording is scaled to a peak of 5. H = 200, H' = 10, gamma = 4 and the singletons of all latents, pi = 0.01 and
//! sigma = 0.5, both given; temperature from 5 to 1 in 200 iterations, then 200 more. It has no figures, but a picture:
//! many fields are localised in time and frequency, others in frequency only.
//!
//! Here PATH is a folder of recordings (.wav, one channel). Windows have 200 samples whatever the rate, so that the model has
//! the size of the paper's; at 8 kHz they last 25 ms, twice as long. N = 20 000 are drawn at random from the first nine
//! tenths of every recording, and 2000 to test from the last tenth. Windows with less than a tenth of the recording's root
//! mean square are silence and left out. There are 100 iterations in all, a few minutes each way. Two ways: sigma and pi
//! given as in the paper, and both learned under the library's own schedule (temperature from 3 to 1).
//!
//! Of every field, the shortest stretch of time and the narrowest band of frequencies that have 80 % of its energy are looked
//! for. It is localised in time when that is at most half of the window, in frequency when it is at most an eighth of all
//! frequencies. White noise is neither; a tone is localised in frequency, a click in time. A field is dead when
//! it is on less than a twentieth as often as fields are on average, or has less than a twentieth of their mean energy.
//!
//! The picture has the fields of the second way (of the first, until that is done), the most often used first.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example acoustic -- [--quick] [--picture acoustic.svg] PATH
//! ```

mod common;

use common::Arguments;
use common::mixtures::mean_square;
use common::reconstruct::explained;
use common::svg::curves;
use common::table::{Table, median};
use spikelet::rng::Rng;
use spikelet_trainer::metrics::snr_db;
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::train::settings::{Engine, Fixed};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result, data};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DIMS: usize = 200;
const LATENTS: usize = 200;
const PRIOR: f64 = 0.01;
const SIGMA: f64 = 0.5;
/// Largest value of a scaled recording.
const PEAK: f64 = 5.0;
/// Windows with less of the recording's root mean square are silence.
const SILENCE: f64 = 0.1;
/// Part of a field's energy that makes its length and band.
const MOST: f64 = 0.8;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (count, iterations) = if arguments.quick { (2000, 30) } else { (20_000, 100) };
    let recordings = read(arguments.path("name a folder of recordings (.wav)")?)?;
    let mut rng = Rng::new(common::seed(50, 0));
    let trained = windows(&recordings, (0.0, 0.9), count, &mut rng);
    let unseen = windows(&recordings, (0.9, 1.0), count / 10, &mut rng);
    let power = mean_square(&unseen);
    println!(
        "{} recordings, N = {count} windows of {DIMS} samples (mean square {:.3}), {} unseen ones ({power:.3}), \
         H = {LATENTS}, H' = 10, gamma = 4, {iterations} iterations\n",
        recordings.len(),
        mean_square(&trained),
        count / 10
    );
    let learned = Settings {
        selected: 10,
        max_active: 4,
        engine: Engine::Truncated,
        first_prior: Some(PRIOR),
        iterations,
        seed: common::seed(51, 0),
        ..Settings::new(ModelKind::Bsc, LATENTS)
    };
    let paper = Settings {
        first_noise: Some(SIGMA * SIGMA),
        fixed: vec![Fixed::Pi, Fixed::Sigma2],
        temperature: (5.0, 1.0),
        ..learned.clone()
    };
    let figures = ["explained, trained", "unseen", "SNR (dB)", "one state, unseen", "on", "pi H", "sigma"];
    let fields = ["time and frequency", "frequency only", "time only", "neither", "dead", "median band", "s"];
    let table = Table::new(&[&["method               "], &figures[..], &fields[..]].concat());
    for (name, settings) in [("sigma and pi given", paper), ("sigma and pi learned", learned)] {
        let mut points = Points::new(trained.clone(), DIMS);
        let options = settings.options();
        let mut state = State::new(settings, &mut points)?;
        state.run(&mut points, 1, |_| Ok(Next::Continue))?;
        let seconds = state.current.history.last().map_or(0.0, |step| step.seconds);
        let model = state.model();
        let [seen, new] = [&trained, &unseen].map(|part| explained(&model, &options, part));
        let (seen, new) = (seen?, new?);
        let part = |error: f64, power: f64| format!("{:.1} %", 100.0 * (1.0 - error / power));
        let shapes = Shapes::new(&model, &seen.activity);
        let mut row = vec![
            name.to_owned(),
            part(seen.error, mean_square(&trained)),
            part(new.error, power),
            snr_db(power, new.error).map_or("-".into(), |snr| format!("{snr:.2}")),
            part(new.map_error, power),
            format!("{:.2}", new.on),
            format!("{:.2}", model.prior.iter().sum::<f64>()),
            format!("{:.3}", model.noise_variances()[0].sqrt()),
        ];
        row.extend(
            [(true, true), (false, true), (true, false), (false, false)].map(|kind| shapes.count(kind)),
        );
        row.push(shapes.dead.to_string());
        row.push(format!("{:.3}", median(&shapes.bands)));
        row.push(format!("{seconds:.0}"));
        table.row(&row);
        draw(arguments, &model, &seen.activity)?;
    }
    Ok(())
}

/// All recordings of a folder in the order of their names, each scaled to the same peak.
fn read(folder: &Path) -> Result<Vec<Vec<f64>>> {
    let entries = std::fs::read_dir(folder).map_err(|cause| Error::reading(folder, &cause))?;
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "wav");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_recording).collect();
    paths.sort();
    let mut recordings = Vec::new();
    for path in paths {
        let recording = data::Points::read(&path)?;
        let peak = recording.values.iter().fold(0.0, |peak: f64, y| peak.max(y.abs()));
        if recording.dims != 1 || recording.points < 20 * DIMS || peak == 0.0 {
            let what = "this is not a recording of one channel, long enough and not silent";
            return Err(Error::input(what, path.display(), "leave it out"));
        }
        recordings.push(recording.values.iter().map(|y| PEAK / peak * y).collect());
    }
    match recordings.is_empty() {
        true => Err(Error::input("there are no recordings", folder.display(), "name a folder of .wav files")),
        false => Ok(recordings),
    }
}

/// Windows at random places of a part of the recordings, none of them silent. (count x D)
fn windows(recordings: &[Vec<f64>], part: (f64, f64), count: usize, rng: &mut Rng) -> Vec<f64> {
    let mut all = Vec::with_capacity(count * DIMS);
    while all.len() < count * DIMS {
        let chosen = (rng.uniform::<f64>() * recordings.len() as f64) as usize;
        let recording = &recordings[chosen.min(recordings.len() - 1)];
        let end = |part: f64| (part * recording.len() as f64) as usize;
        let (first, last) = (end(part.0), end(part.1) - DIMS);
        let window = &recording[first + (rng.uniform::<f64>() * (last - first) as f64) as usize..][..DIMS];
        if mean_square(window) > SILENCE * SILENCE * mean_square(recording) {
            all.extend_from_slice(window);
        }
    }
    all
}

/// What the fields look like.
struct Shapes {
    /// Whether each that is not dead is localised in time, and in frequency.
    localised: Vec<(bool, bool)>,
    /// Part of all frequencies that each takes.
    bands: Vec<f64>,
    dead: usize,
}

impl Shapes {
    fn new(model: &Parameters, activity: &[f64]) -> Self {
        let fields: Vec<Vec<f64>> = (0..LATENTS).map(|k| column(model, k)).collect();
        let energy: Vec<f64> = fields.iter().map(|field| mean_square(field)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (often, strong) = (mean(activity) / 20.0, mean(&energy) / 20.0);
        let mut shapes = Self { localised: Vec::new(), bands: Vec::new(), dead: 0 };
        for (k, field) in fields.iter().enumerate() {
            if activity[k] < often || energy[k] < strong {
                shapes.dead += 1;
                continue;
            }
            let length = stretch(&field.iter().map(|w| w * w).collect::<Vec<f64>>());
            let band = stretch(&spectrum(field));
            shapes.localised.push((length <= 0.5, band <= 0.125));
            shapes.bands.push(band);
        }
        shapes
    }

    fn count(&self, kind: (bool, bool)) -> String {
        self.localised.iter().filter(|shape| **shape == kind).count().to_string()
    }
}

fn column(model: &Parameters, k: usize) -> Vec<f64> {
    model.dictionary.iter().skip(k).step_by(model.latents).copied().collect()
}

/// The part of all places that the shortest stretch with most of the energy takes.
fn stretch(energy: &[f64]) -> f64 {
    let wanted = MOST * energy.iter().sum::<f64>();
    let enough = |length: &usize| energy.windows(*length).any(|part| part.iter().sum::<f64>() >= wanted);
    (1..=energy.len()).find(enough).unwrap_or(energy.len()) as f64 / energy.len() as f64
}

/// Energy at the frequencies 0, 1, ... D / 2 per window.
fn spectrum(field: &[f64]) -> Vec<f64> {
    let turn = std::f64::consts::TAU / field.len() as f64;
    let energy = |k: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (t, w) in field.iter().enumerate() {
            let (sin, cos) = (turn * (k * t % field.len()) as f64).sin_cos();
            (re, im) = (re + w * cos, im + w * sin);
        }
        re * re + im * im
    };
    (0..=field.len() / 2).map(energy).collect()
}

/// The picture of all fields, most used first.
fn draw(arguments: &Arguments, model: &Parameters, activity: &[f64]) -> Result<()> {
    let mut order: Vec<usize> = (0..LATENTS).collect();
    order.sort_by(|a, b| activity[*b].total_cmp(&activity[*a]));
    let fields: Vec<Vec<f64>> = order.into_iter().map(|k| column(model, k)).collect();
    let path = arguments.picture.clone().unwrap_or_else(|| "acoustic.svg".into());
    std::fs::write(&path, curves(&fields, 20)).map_err(|cause| Error::writing(&path, &cause))
}
