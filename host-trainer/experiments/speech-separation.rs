//! Separation of recorded sources: four signals, mixed by a random rotation, without noise.
//!
//! Both papers use ICALAB's Speech4 with N = 200 and 500 consecutive samples and random orthogonal mixing. Amari indices,
//! mean (standard deviation):
//!
//! | N | GSC, paper 000 | GSC, paper 001 | GSC-ortho, paper 001 | FastICA, cited in 001 |
//! |---|---|---|---|---|
//! | 200 | 0.13 (0.04) | 0.25 (0.05) | 0.17 (0.04) | 0.20 (0.03) |
//! | 500 | 0.10 (0.04) | 0.11 (0.04) | 0.05 (0.01) | 0.10 (0.04) |
//!
//! They always took the same samples, after an offset that is not given, so their spread is that of starts and rotations
//! and their mean is that of one place. Here the trials are spread evenly over the whole recording, so the spread is
//! mostly that of places, and a comparison with FastICA on the same samples says more than one with the papers.
//!
//! Sparse coding cannot tell two sources apart that are flatter than a normal distribution (negative kurtosis) [001].
//! The rows `flat <= 1` are the trials with at most one such source.
//!
//! GSC is exact EM as in the papers (slab N(0, 1), one noise variance, up to 350 iterations), one start per trial;
//! `best` is the highest free energy of several starts, truncated keeps states with up to three of three selected
//! sources on. GSC-ortho whitens the data and takes, among the starts whose columns are closest to right angles, the one
//! with the highest free energy.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example speech-separation -- [--quick] PATH
//! ```
//!
//! PATH is an array (.npy) with one source per row.

mod common;

use common::Arguments;
use common::fast_ica::fast_ica;
use common::gsc;
use common::mixtures::{mix, orthogonal_matrix};
use common::table::{Table, spread};
use spikelet::rng::Rng;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::train::choose::Prefer;
use spikelet_trainer::train::{Points, Settings};
use spikelet_trainer::{Error, Result, data};
use std::process::ExitCode;

const ITERATIONS: usize = 350;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let path = arguments.path()?;
    let recording = data::Points::read(path)?;
    let (sources, length) = (recording.points, recording.dims);
    let (trials, starts) = if arguments.quick { (10, 4) } else { (50, 8) };
    if !(2..=10).contains(&sources) || length < 1000 {
        let what = format!("{sources} sources of {length} samples");
        return Err(Error::input(
            what,
            path.display(),
            "give 2 to 10 sources, one per row, of 1000 samples or more",
        ));
    }
    println!(
        "Amari index, mean (standard deviation) of {trials} trials; best and ortho of {starts} starts\n"
    );
    let names = ["FastICA      ", "GSC          ", "GSC, best    ", "GSC, truncated", "GSC-ortho    "];
    let table = Table::new(&[&["N", "windows", "trials"][..], &names[..], &["ortho < FastICA"][..]].concat());
    for n in [200, 500] {
        let rows = arguments.trials(trials, |trial| {
            let offset = trial * (length - n) / (trials - 1);
            let source = |k: usize| &recording.point(k)[offset..][..n];
            let samples: Vec<f64> = (0..n * sources).map(|at| source(at % sources)[at / sources]).collect();
            let flat = (0..sources).filter(|&k| kurtosis(source(k)) < 0.0).count();
            Ok((flat, compare(&samples, sources, starts, trial)?))
        })?;
        for (which, most) in [("all", sources), ("flat <= 1", 1)] {
            let rows: Vec<_> = rows.iter().filter(|(flat, _)| *flat <= most).map(|(_, row)| row).collect();
            let column = |k: usize| spread(&rows.iter().map(|row| row[k]).collect::<Vec<f64>>());
            let mut cells = vec![n.to_string(), which.to_string(), rows.len().to_string()];
            cells.extend((0..names.len()).map(column));
            cells.push(rows.iter().filter(|row| row[4] < row[0]).count().to_string());
            table.row(&cells);
        }
    }
    Ok(())
}

/// Excess kurtosis: negative for sources flatter than a normal distribution.
fn kurtosis(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let moment = |power: i32| samples.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    moment(4) / moment(2).powi(2) - 3.0
}

/// Amari indices of all methods on one rotation of some samples (N x H).
fn compare(samples: &[f64], sources: usize, starts: usize, trial: usize) -> Result<[f64; 5]> {
    let mut rng = Rng::new(common::seed(12, trial));
    let mixing = orthogonal_matrix(&mut rng, sources);
    let mixture = mix(samples, &mixing, sources);
    // Without an index (columns that depend on each other) nothing was found.
    let index = |w: &[f64]| amari(w, &mixing, sources, sources).unwrap_or(1.0);
    let ica = fast_ica(&mixture, sources, 1, common::seed(13, trial))?;

    let seed = common::seed(14, trial);
    let once = Settings { tolerance: 1e-7, ..gsc::exact(sources, ITERATIONS, seed) };
    let few = gsc::truncated(sources, sources.min(3), sources.min(3), ITERATIONS, seed);
    let few = Settings { tolerance: 1e-7, ..few };
    let best = Settings { restarts: starts, ..once.clone() };
    let ortho = Settings { whiten: true, prefer: Prefer::Orthogonal, ..best.clone() };
    let gsc = |settings: &Settings| -> Result<f64> {
        let state = gsc::train(settings, &mut Points::new(mixture.clone(), sources))?;
        Ok(index(&state.model().dictionary))
    };
    Ok([index(&ica), gsc(&once)?, gsc(&best)?, gsc(&few)?, gsc(&ortho)?])
}
