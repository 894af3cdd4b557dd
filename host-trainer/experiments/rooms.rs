//! Voices in rooms, on spaced microphones: how well blind training of a spatial model takes them apart, and where it stops.
//!
//! With a folder of voices (WAV files of one rate), simulated rooms of several kinds, ten of each; with a folder of rooms (each
//! with mixture.wav and sources.wav), these; without a folder, simulated rooms with made-up sounds. `--peers` adds AuxIVA and
//! ILRMA, in the same rooms, by `python/rooms_peers.py`. All rooms take about eight minutes of one core, and twice that with
//! `--peers`. `--quick` takes one room of two kinds, and 6 s of it. `--frame` takes frames of another length, for long echoes.

mod common;

use common::recordings;
use common::rooms::{Case, best_pairs, db, made_up};
use common::table::{Table, mean_and_spread};
use common::{Arguments, seed};
use serde_json::Value;
use spikelet::rng::Rng;
use spikelet_trainer::metrics::MAX_DB;
use spikelet_trainer::spatial::simulate::Shoebox;
use spikelet_trainer::spatial::{Settings, Spectra, Suggestion};
use spikelet_trainer::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Seconds that the models of the column `unseen` are trained on.
const SEEN: usize = 8;

/// Rooms of each kind.
const TRIALS: usize = 10;

/// Kinds and seconds of `--quick`.
const QUICK: [usize; 2] = [1, 9];
const QUICK_SECONDS: usize = 6;

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

/// SI-SDR of each source, in dB.
struct Figures {
    mixture: Vec<f64>,
    separated: Vec<f64>,
    /// On what follows the first seconds: by this model, and by one of the first seconds alone.
    rest: Vec<f64>,
    unseen: Vec<f64>,
    /// The number of sources that the recording suggests.
    suggested: usize,
}

fn main() -> ExitCode {
    common::main(run)
}

fn run(arguments: &Arguments) -> Result<()> {
    let folders = arguments.given_path().map_or(Ok(Vec::new()), rooms_in)?;
    let mut columns = vec!["room", "mixture", "spikelet", "worst", "unseen", "suggested"];
    if arguments.peers {
        columns.extend(["AuxIVA", "worst", "ILRMA", "worst"]);
    }
    let table = Table::new(&columns);
    if !folders.is_empty() {
        for folder in &folders[arguments.skip.min(folders.len())..] {
            let case = Case::read(folder)?;
            let peers = if arguments.peers { peers(std::slice::from_ref(folder))? } else { Vec::new() };
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            row(
                &table,
                name,
                &[figures(&case, arguments.frame, arguments.threads())?],
                &peers,
                arguments.peers,
            );
        }
        return Ok(());
    }
    let mut voices = arguments.given_path().map_or_else(|| Ok(made_up()), recordings::read)?;
    if arguments.quick {
        voices.iter_mut().for_each(|voice| voice.samples.truncate(QUICK_SECONDS * voice.rate as usize));
    }
    let is_run = |number: &usize| !arguments.quick || QUICK.contains(number);
    for number in (0..ROOMS.len()).filter(is_run).skip(arguments.skip) {
        let (sources, microphones, rt60, spacing, noise) = ROOMS[number];
        let scratch =
            tempfile::tempdir().map_err(|cause| Error::run(cause, "a temporary folder", "make room"))?;
        let trials = if arguments.quick { 1 } else { TRIALS };
        let figures = arguments.trials(trials, |trial| {
            let mut rng = Rng::new(seed(120 + number as u64, trial));
            let mut room = Shoebox::random(microphones, sources, spacing, rt60, &mut rng);
            room.noise = noise;
            let case = Case::simulated(&room, &voices, &mut rng)?;
            if arguments.peers {
                case.write(&scratch.path().join(trial.to_string()))?;
            }
            figures(&case, arguments.frame, 1)
        })?;
        let written: Vec<PathBuf> = (0..trials).map(|trial| scratch.path().join(trial.to_string())).collect();
        let peers = if arguments.peers { peers(&written)? } else { Vec::new() };
        let noise = noise.map_or(String::new(), |db| format!(", noise {db} dB below"));
        let name = format!("{sources} on {microphones}, {rt60} s, {:.0} cm{noise}", 100.0 * spacing);
        row(&table, name, &figures, &peers, arguments.peers);
    }
    Ok(())
}

/// Folders with a mixture and its sources.
fn rooms_in(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).map_err(|cause| Error::reading(path, &cause))?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|folder| folder.join("mixture.wav").is_file())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Means over the sources of each room, then mean and spread over rooms; the worst of all sources.
fn row(table: &Table, name: String, figures: &[Figures], peers: &[Value], with_peers: bool) {
    let all =
        |of: &dyn Fn(&Figures) -> &Vec<f64>| figures.iter().map(|room| of(room).clone()).collect::<Vec<_>>();
    let [separated, worst] = mean_and_worst(&all(&|room| &room.separated));
    let loss = figures.iter().map(|room| mean_and_spread(&room.rest).0 - mean_and_spread(&room.unseen).0);
    let loss: Vec<f64> = loss.collect();
    let hits = figures.iter().filter(|room| room.suggested == room.separated.len()).count();
    let [mixture, _] = mean_and_worst(&all(&|room| &room.mixture));
    let unseen = format!("-{}", shown(&loss)).replace("--", "+");
    let mut cells = vec![name, mixture, separated, worst, unseen, format!("{hits} of {}", figures.len())];
    for method in ["auxiva", "ilrma"] {
        let numbers = |room: &Value| -> Option<Vec<f64>> {
            Some(room[method].as_array()?.iter().filter_map(Value::as_f64).collect())
        };
        let rooms: Vec<Vec<f64>> = peers.iter().filter_map(numbers).collect();
        if with_peers {
            cells.extend(if rooms.is_empty() {
                ["-", "-"].map(String::from)
            } else {
                mean_and_worst(&rooms)
            });
        }
    }
    table.row(&cells);
}

/// Of the sources of several rooms.
fn mean_and_worst(rooms: &[Vec<f64>]) -> [String; 2] {
    let means: Vec<f64> = rooms.iter().map(|room| mean_and_spread(room).0).collect();
    let worst = rooms.iter().flatten().fold(MAX_DB, |worst, db| worst.min(*db));
    [shown(&means), format!("{worst:.1}")]
}

fn shown(means: &[f64]) -> String {
    let (mean, spread) = mean_and_spread(means);
    if means.len() == 1 { format!("{mean:.1}") } else { format!("{mean:.1} ({spread:.1})") }
}

/// What becomes of a room.
fn figures(case: &Case, frame: Option<usize>, threads: usize) -> Result<Figures> {
    let first: Vec<f64> = case.mixture.iter().step_by(case.microphones).map(|&x| f64::from(x)).collect();
    let count = first.len();
    let from = (SEEN * case.rate as usize).min(count * 2 / 3);
    let mut settings = Settings::new(case.images.len(), case.rate);
    settings.length = frame.unwrap_or(settings.length);
    settings.hop = settings.length / 4;
    let trained = |samples| case.separated(&case.trained_with(settings.clone(), samples, threads));
    let (of_all, of_some) = (trained(0..count)?, trained(0..from)?);
    Ok(Figures {
        mixture: case.images.iter().map(|image| db(&first, image)).collect(),
        separated: best_pairs(&of_all, &case.images, 0..count),
        rest: best_pairs(&of_all, &case.images, from..count),
        unseen: best_pairs(&of_some, &case.images, from..count),
        suggested: suggested(case, &settings, threads),
    })
}

/// The number of sources that `--latents auto` takes.
fn suggested(case: &Case, settings: &Settings, threads: usize) -> usize {
    let spectra = Spectra::new(&case.mixture, case.microphones, settings.length, settings.hop);
    Suggestion::new(settings, &spectra, case.rate, threads).sources
}

/// What the Python side makes of rooms in folders.
fn peers(folders: &[PathBuf]) -> Result<Vec<Value>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/python/rooms_peers.py");
    let fail = |what: String| Error::run(what, script.display(), "install Python 3 with venv and pip");
    let output = Command::new("python3").arg(&script).args(folders).output();
    let output = output.map_err(|cause| fail(format!("python3 does not run ({cause})")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(fail(said.lines().last().unwrap_or("python3 failed").to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| fail(format!("no figures ({cause})")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_quick_run() {
        run(&Arguments::parse_from(["rooms", "--quick", "--threads", "1"])).unwrap();
    }

    #[test]
    fn pairs_are_those_with_the_largest_sum() {
        let images = vec![vec![1.0, -1.0, 1.0, -1.0], vec![1.0, 1.0, -1.0, -1.0]];
        let parts = vec![vec![1.0, 1.1, -1.0, -1.0], vec![1.0, -1.0, 1.0, -1.2]];
        let found = best_pairs(&parts, &images, 0..4);
        assert!(found[0] == db(&parts[1], &images[0]) && found[1] == db(&parts[0], &images[1]));
    }
}
