//! A voice and music in one channel, taken apart by merged dictionaries.
//!
//! A model learns windows of a voice, another those of a piece of music, from the first two thirds of each recording. `merge`
//! makes one of them, and the stream that a device would run takes apart the last third of their sum, which neither has
//! seen. All voices with all music; both are equally loud over the whole recording.
//!
//! Beside it: a Wiener filter of the same knowledge, whose gain in each of 256 bins follows from the mean spectra of voice and music
//! in the training part; and what an ideal mask could do that gives each coefficient whole to whichever is stronger there, which
//! needs the truth.
//!
//! SI-SDR in dB, mean and standard deviation over pairs.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example one-channel -- FOLDER [--quick]
//! ```
//!
//! FOLDER has the folders `speech` and `music` with WAV files of one rate; of several voices whose names end alike after the
//! last `_` the first counts.

mod common;

use common::Arguments;
use common::lapped::{filtered, power, signal, spectra};
use common::recordings::{self, Recording, loud, separated};
use common::table::{Table, mean_and_spread};
use spikelet::frame::{Form, Frame};
use spikelet_trainer::blob::About;
use spikelet_trainer::data::{Pieces, Sheet, SheetKind};
use spikelet_trainer::groups::Grouping;
use spikelet_trainer::merge::join;
use spikelet_trainer::metrics::{MAX_DB, si_sdr_db};
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::prepare::Options;
use spikelet_trainer::train::settings::{Engine, InitForm, Precision};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

/// Samples of a window, and from one to the next.
const LENGTH: u32 = 128;
const HOP: u32 = 16;
/// Of each dictionary.
const LATENTS: usize = 256;
/// Of filter and mask.
const BINS: usize = 256;
/// Part of a recording that is learned from.
const SEEN: f64 = 2.0 / 3.0;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder with the folders speech and music")?;
    let mut voices = recordings::read(&folder.join("speech"))?;
    let mut seen: Vec<String> = Vec::new();
    voices.retain(|voice| {
        let is_new = !seen.contains(&voice.speaker);
        seen.push(voice.speaker.clone());
        is_new
    });
    let mut music = recordings::read(&folder.join("music"))?;
    if arguments.quick {
        voices.truncate(2);
        music.truncate(1);
    }
    let count = voices.len() * music.len();
    if count == 0 {
        return Err(Error::input("there is no voice or no music", folder.display(), "add recordings"));
    }
    let passes = if arguments.quick { 5 } else { 20 };
    let train = |recording: &Recording, number: usize| learned(recording, passes, number);
    let both: Vec<&Recording> = voices.iter().chain(&music).collect();
    let models = arguments.trials(both.len(), |number| train(both[number], number))?;
    let (voice_models, music_models) = models.split_at(voices.len());
    let figures = arguments.trials(count, |pair| {
        let (v, m) = (pair % voices.len(), pair / voices.len());
        compare([&voices[v], &music[m]], [&voice_models[v], &music_models[m]])
    })?;
    println!(
        "SI-SDR in dB over {} voices x {} pieces of music, mean (standard deviation)\n",
        voices.len(),
        music.len()
    );
    let table =
        Table::new(&["source", "mixture    ", "Wiener filter", "spikelet   ", "gain       ", "ideal mask "]);
    for (source, name) in ["voice", "music"].into_iter().enumerate() {
        let column = |of: &dyn Fn(&[f64; 4]) -> f64| {
            let (mean, spread) =
                mean_and_spread(&figures.iter().map(|pair| of(&pair[source])).collect::<Vec<f64>>());
            format!("{mean:.1} ({spread:.1})")
        };
        table.row(&[
            name.to_owned(),
            column(&|row| row[0]),
            column(&|row| row[1]),
            column(&|row| row[2]),
            column(&|row| row[2] - row[0]),
            column(&|row| row[3]),
        ]);
    }
    Ok(())
}

/// What is learned from, and what is not.
fn cut(recording: &Recording) -> (Vec<f64>, Vec<f64>) {
    let samples = loud(&recording.samples);
    let (seen, unseen) = samples.split_at((SEEN * samples.len() as f64) as usize);
    (seen.to_vec(), unseen.to_vec())
}

fn frame(rate: u32) -> Frame {
    Frame { form: Form::Windows { length: LENGTH, hop: HOP }, rate, centred: false }
}

/// A dictionary of the windows of one recording, as `train --frame` learns it.
fn learned(recording: &Recording, passes: usize, number: usize) -> Result<Parameters> {
    let (samples, rate) = (cut(recording).0, recording.rate);
    let sheet =
        Sheet { kind: SheetKind::Recording(rate), width: samples.len(), height: 1, planes: vec![samples] };
    let short = |what| Error::input(what, "a recording", "give longer ones");
    let pieces = Pieces::new(sheet, &frame(rate), 1).map_err(short)?;
    let mut values = Vec::new();
    pieces.read(0, pieces.len(), &mut values);
    let settings = Settings {
        engine: Engine::Truncated,
        selected: 10,
        max_active: 5,
        precision: Precision::F32,
        init: InitForm::Data,
        batch: (pieces.len() / 20).max(1),
        iterations: passes,
        seed: common::seed(90, number),
        ..Settings::new(ModelKind::Gsc, LATENTS)
    };
    let mut points = Points::new(values, pieces.dims());
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    Ok(state.model())
}

/// SI-SDR of mixture, filter, stream and ideal mask, for voice and music.
fn compare(sources: [&Recording; 2], models: [&Parameters; 2]) -> Result<[[f64; 4]; 2]> {
    let parts = sources.map(cut);
    let samples = parts[0].1.len().min(parts[1].1.len());
    let truths = [&parts[0].1[..samples], &parts[1].1[..samples]];
    let mixture: Vec<f64> = truths[0].iter().zip(truths[1]).map(|(a, b)| a + b).collect();

    let means = [power(&parts[0].0, BINS), power(&parts[1].0, BINS)];
    let gains = |k: usize| -> Vec<f64> {
        let all = means[0].iter().zip(&means[1]).map(|(a, b)| (a + b).max(f64::MIN_POSITIVE));
        means[k].iter().zip(all).map(|(own, all)| own / all).collect()
    };
    let numbers = [0, 1].iter().flat_map(|&k| vec![k as u16; LATENTS]).collect();
    let groups = Grouping { names: vec!["voice".into(), "music".into()], numbers };
    let options = Options { selected: 14, max_active: 7, ..Settings::new(ModelKind::Gsc, LATENTS).options() };
    let about = About { frame: Some(frame(sources[0].rate)), groups: Some(&groups), ..About::default() };
    let input: Vec<f32> = mixture.iter().map(|&x| x as f32).collect();
    let separated = separated(&join(&models), &options, about, &input, 1)?;

    let db = |estimate: &[f64], k: usize| si_sdr_db(estimate, truths[k]).unwrap_or(-MAX_DB);
    let figures = |k: usize| {
        let masked = masked(truths[k], truths[1 - k]);
        [db(&mixture, k), db(&filtered(&mixture, &gains(k)), k), db(&separated[k], k), db(&masked, k)]
    };
    Ok([figures(0), figures(1)])
}

/// The coefficients of the sum in which the first is stronger.
fn masked(own: &[f64], other: &[f64]) -> Vec<f64> {
    let mut both = spectra(own, BINS);
    for (own, other) in both.iter_mut().zip(spectra(other, BINS)) {
        for (x, y) in own.iter_mut().zip(other) {
            *x = if x.abs() > y.abs() { *x + y } else { 0.0 };
        }
    }
    signal(&both, BINS, own.len())
}
