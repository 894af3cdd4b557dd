//! Voices in rooms, on spaced microphones: how well blind training of a spatial model takes them apart, and where it stops.
//!
//! With a folder of voices (WAV, 8 kHz), simulated rooms of several kinds, ten of each; with a folder of rooms (each with mixture.wav and
//! sources.wav), these. `--peers` adds AuxIVA and ILRMA, in the same rooms, by `python/rooms_peers.py`.

mod common;

use common::recordings::{self, Recording};
use common::table::{Table, mean_and_spread};
use common::{Arguments, seed};
use serde_json::Value;
use spikelet::SpatialModel;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Points, write_wav};
use spikelet_trainer::metrics::{MAX_DB, si_sdr_db};
use spikelet_trainer::spatial::simulate::Shoebox;
use spikelet_trainer::spatial::{Settings, Spectra, Training};
use spikelet_trainer::{Error, Result, streaming};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Seconds of each room, and those that the models of the last column are trained on.
const SECONDS: usize = 14;
const SEEN: usize = 8;

/// Sources, microphones, RT60 in seconds, spacing in metres, noise in dB below the mixture.
const ROOMS: [(usize, usize, f64, f64, Option<f64>); 14] = [
    (2, 2, 0.0, 0.05, None),
    (2, 2, 0.15, 0.05, None),
    (2, 2, 0.3, 0.05, None),
    (2, 2, 0.5, 0.05, None),
    (2, 2, 0.15, 0.02, None),
    (2, 2, 0.15, 0.1, None),
    (2, 2, 0.15, 0.2, None),
    (2, 2, 0.15, 0.05, Some(30.0)),
    (2, 2, 0.15, 0.05, Some(20.0)),
    (3, 2, 0.15, 0.05, None),
    (3, 2, 0.3, 0.05, None),
    (3, 3, 0.15, 0.05, None),
    (4, 2, 0.15, 0.05, None),
    (4, 4, 0.15, 0.05, None),
];

/// A mixture and the images of its sources at the first microphone.
struct Case {
    mixture: Vec<f32>,
    microphones: usize,
    images: Vec<Vec<f64>>,
    rate: u32,
}

/// SI-SDR of each source, in dB.
struct Figures {
    mixture: Vec<f64>,
    separated: Vec<f64>,
    /// By a model of the first seconds, on the rest.
    unseen: Vec<f64>,
}

fn main() -> ExitCode {
    common::main(run)
}

fn run(arguments: &Arguments) -> Result<()> {
    let path =
        arguments.path("give a folder of voices, or of rooms with mixture.wav and sources.wav each")?;
    let mut folders: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(|cause| Error::reading(path, &cause))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|folder| folder.join("mixture.wav").is_file())
        .collect();
    folders.sort();
    let mut columns = vec!["room", "mixture", "spikelet", "worst", "unseen"];
    if arguments.peers {
        columns.extend(["AuxIVA", "ILRMA"]);
    }
    let table = Table::new(&columns);
    if !folders.is_empty() {
        for folder in &folders[arguments.skip.min(folders.len())..] {
            let case = Case::read(folder)?;
            let peers = if arguments.peers { peers(std::slice::from_ref(folder))? } else { Vec::new() };
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            row(&table, name, &[case.figures(arguments.threads())?], &peers, arguments.peers);
        }
        return Ok(());
    }
    let voices = recordings::read(path)?;
    for (number, &(sources, microphones, rt60, spacing, noise)) in
        ROOMS.iter().enumerate().skip(arguments.skip)
    {
        let scratch =
            tempfile::tempdir().map_err(|cause| Error::run(cause, "a temporary folder", "make room"))?;
        let trials = if arguments.quick { 2 } else { 10 };
        let figures = arguments.trials(trials, |trial| {
            let mut rng = Rng::new(seed(120 + number as u64, trial));
            let mut room = Shoebox::random(microphones, sources, spacing, rt60, &mut rng);
            room.noise = noise;
            let case = Case::simulated(&room, &voices, &mut rng)?;
            if arguments.peers {
                case.write(&scratch.path().join(trial.to_string()))?;
            }
            case.figures(1)
        })?;
        let written: Vec<PathBuf> = (0..trials).map(|trial| scratch.path().join(trial.to_string())).collect();
        let peers = if arguments.peers { peers(&written)? } else { Vec::new() };
        let noise = noise.map_or(String::new(), |db| format!(", noise {db} dB below"));
        let name = format!("{sources} on {microphones}, {rt60} s, {:.0} cm{noise}", 100.0 * spacing);
        row(&table, name, &figures, &peers, arguments.peers);
    }
    Ok(())
}

/// Means over the sources of each room, then mean and spread over rooms; the worst of all sources.
fn row(table: &Table, name: String, figures: &[Figures], peers: &[Value], with_peers: bool) {
    let column = |of: &dyn Fn(&Figures) -> &Vec<f64>| {
        let means: Vec<f64> = figures.iter().map(|figures| mean_and_spread(of(figures)).0).collect();
        shown(&means)
    };
    let all = figures.iter().flat_map(|figures| &figures.separated);
    let worst = all.fold(MAX_DB, |worst, db| worst.min(*db));
    let mut cells = vec![
        name,
        column(&|figures| &figures.mixture),
        column(&|figures| &figures.separated),
        format!("{worst:.1}"),
        column(&|figures| &figures.unseen),
    ];
    for method in ["auxiva", "ilrma"] {
        let numbers = |room: &Value| -> Option<f64> {
            let all: Vec<f64> = room[method].as_array()?.iter().filter_map(Value::as_f64).collect();
            Some(mean_and_spread(&all).0)
        };
        let means: Vec<f64> = peers.iter().filter_map(numbers).collect();
        if with_peers {
            cells.push(if means.is_empty() { "-".into() } else { shown(&means) });
        }
    }
    table.row(&cells);
}

fn shown(means: &[f64]) -> String {
    let (mean, spread) = mean_and_spread(means);
    if means.len() == 1 { format!("{mean:.1}") } else { format!("{mean:.1} ({spread:.1})") }
}

impl Case {
    /// A folder with mixture.wav and sources.wav.
    fn read(folder: &Path) -> Result<Self> {
        let (mixture, sources) =
            (Points::read(folder.join("mixture.wav"))?, Points::read(folder.join("sources.wav"))?);
        let channel = |c: usize| sources.values.iter().skip(c).step_by(sources.dims).copied().collect();
        Ok(Self {
            mixture: mixture.values.iter().map(|&x| x as f32).collect(),
            microphones: mixture.dims,
            images: (0..sources.dims).map(channel).collect(),
            rate: mixture.rate.unwrap_or(8000),
        })
    }

    /// Different voices for each seed, of different speakers as far as there are some.
    fn simulated(room: &Shoebox, voices: &[Recording], rng: &mut Rng) -> Result<Self> {
        let sources = room.sources.len();
        let mut left: Vec<&Recording> = voices.iter().collect();
        let mut chosen: Vec<&Recording> = Vec::new();
        while chosen.len() < sources {
            if left.is_empty() {
                return Err(Error::input("too few voices", "the folder", "give four speakers or more"));
            }
            let voice = left.swap_remove((rng.uniform::<f64>() * left.len() as f64) as usize);
            // Those of the one-word recordings are several speakers under one name.
            if voice.speaker == "kt" || chosen.iter().all(|other| other.speaker != voice.speaker) {
                chosen.push(voice);
            }
        }
        let rate = chosen[0].rate;
        let samples = SECONDS * rate as usize;
        let sounds: Vec<&[f64]> =
            chosen.iter().map(|voice| &voice.samples[..samples.min(voice.samples.len())]).collect();
        let heard = room.record(&sounds, rate, rng);
        Ok(Self { mixture: heard.mixture, microphones: room.microphones.len(), images: heard.images, rate })
    }

    fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|cause| Error::writing(folder, &cause))?;
        write_wav(folder.join("mixture.wav"), self.rate, self.microphones, &self.mixture)?;
        let samples = self.images[0].len();
        let interleaved: Vec<f32> =
            (0..samples).flat_map(|n| self.images.iter().map(move |image| image[n] as f32)).collect();
        write_wav(folder.join("sources.wav"), self.rate, self.images.len(), &interleaved)
    }

    fn figures(&self, threads: usize) -> Result<Figures> {
        let first: Vec<f64> = self.mixture.iter().step_by(self.microphones).map(|&x| f64::from(x)).collect();
        let seen = SEEN * self.rate as usize;
        let of_all = self.separated(self.mixture.len(), threads)?;
        let of_some = self.separated((seen * self.microphones).min(self.mixture.len() / 2), threads)?;
        Ok(Figures {
            mixture: self.images.iter().map(|image| db(&first, image)).collect(),
            separated: best_pairs(&of_all, &self.images, 0),
            unseen: best_pairs(&of_some, &self.images, seen.min(first.len() / 2)),
        })
    }

    /// Trains on the first numbers of the mixture and runs all of it through the stream of a device.
    fn separated(&self, numbers: usize, threads: usize) -> Result<Vec<Vec<f64>>> {
        let settings = Settings::new(self.images.len(), self.rate);
        let mixture = &self.mixture[..numbers];
        let spectra = Spectra::new(mixture, self.microphones, settings.length, settings.hop);
        let mut training = Training::new(settings, &spectra, self.rate, threads);
        while !training.is_finished() {
            training.step(&spectra, threads);
        }
        let bytes = training.room("").floats();
        // On the boundary that a blob needs.
        let mut memory = vec![0u8; bytes.len() + 8];
        let offset = memory.as_ptr().align_offset(8);
        memory[offset..][..bytes.len()].copy_from_slice(&bytes);
        let refused = |what: &dyn std::fmt::Display| Error::run(what, "the model of a room", "report this");
        let model = SpatialModel::parse(&memory[offset..]).map_err(|error| refused(&error))?;
        let parts =
            streaming::separate_room(model, &self.mixture, |_| {}).map_err(|error| refused(&error))?;
        Ok(parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect())
    }
}

fn db(estimate: &[f64], truth: &[f64]) -> f64 {
    si_sdr_db(estimate, truth).unwrap_or(-MAX_DB)
}

/// SI-SDR from a sample on, in the order of sources that gives the largest sum.
fn best_pairs(parts: &[Vec<f64>], images: &[Vec<f64>], from: usize) -> Vec<f64> {
    let table: Vec<Vec<f64>> = images
        .iter()
        .map(|image| parts.iter().map(|part| db(&part[from..], &image[from..])).collect())
        .collect();
    let mut best = Vec::new();
    let mut orders = vec![Vec::new()];
    for _ in images {
        let longer = |order: &Vec<usize>| {
            let free = (0..parts.len()).filter(|part| !order.contains(part)).collect::<Vec<_>>();
            free.into_iter().map(|part| [order.as_slice(), &[part]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    for order in &orders {
        let figures: Vec<f64> = order.iter().enumerate().map(|(k, &part)| table[k][part]).collect();
        if best.is_empty() || figures.iter().sum::<f64>() > best.iter().sum() {
            best = figures;
        }
    }
    best
}

/// What the Python side makes of rooms in folders.
fn peers(folders: &[PathBuf]) -> Result<Vec<Value>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/python/rooms_peers.py");
    let fail = |what: String| Error::run(what, script.display(), "install Python with numpy, scipy and pip");
    let output = Command::new("python3").arg(&script).args(folders).output();
    let output = output.map_err(|cause| fail(format!("python3 does not run ({cause})")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(fail(said.lines().last().unwrap_or("python3 failed").to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| fail(format!("no figures ({cause})")))
}
