//! Recorded voices on a few microphones, without echoes: more microphones than voices are not needed.
//!
//! Voices of different speakers, all equally loud, are mixed with random gains. A lapped transform (MDCT, 32 ms, gains learned)
//! makes points of them; exact EM with a unit slab learns the directions from the mixture alone, and the stream that a device
//! would run takes it apart. Beside it: FastICA on the samples, which finds as many sources as there are microphones; and masks,
//! as in DUET, by the directions that EM found: each coefficient goes whole to the voice whose direction is nearest.
//!
//! SI-SDR in dB, mean and standard deviation over mixtures of the mean over voices. `mixture` is the channel that comes closest to a
//! voice. Of FastICA and masks every voice gets the output that is closest to it, also if another has the same; the streams are
//! assigned one to one.
//!
//! The last row is the second with the same recordings resampled to 44.1 kHz: the band above 4 kHz is empty, and is not learned from. All
//! rows take five to six minutes of one core, the last one a minute.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example voices -- FOLDER [--quick] [--skip ROWS]
//! ```
//!
//! FOLDER has one WAV of the same rate per voice; of several whose names end alike after the last `_`, one speaks in a mixture.

mod common;

use common::Arguments;
use common::fast_ica::fast_ica;
use common::lapped::{signal, spectra};
use common::mixtures::{directions, mix, unit_columns, unmixed};
use common::recordings::{self, Learned, Recording, bins, loud, separated};
use common::table::{Table, mean_and_spread};
use spikelet::rng::Rng;
use spikelet_trainer::blob::About;
use spikelet_trainer::metrics::{MAX_DB, assign, si_sdr_db};
use spikelet_trainer::spectral::resampled;
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let voices = recordings::read(arguments.path("name a folder of recorded voices")?)?;
    let (mixtures, seconds) = if arguments.quick { (2, 4) } else { (5, 10) };
    println!("SI-SDR in dB over {mixtures} mixtures of {seconds} s, mean (standard deviation)\n");
    let columns = ["mixture    ", "FastICA    ", "masks      ", "spikelet   "];
    let table =
        Table::new(&["voices", "microphones", "rate", columns[0], columns[1], columns[2], columns[3]]);
    let faster: Vec<Recording> = voices.iter().map(at_44100).collect();
    let rows = [(4, 4, &voices), (3, 2, &voices), (4, 3, &voices), (3, 2, &faster)];
    for (count, microphones, voices) in rows.into_iter().skip(arguments.skip) {
        let figures =
            arguments.trials(mixtures, |trial| compare(voices, count, microphones, seconds, trial))?;
        let rate = voices.first().map_or(0, |voice| voice.rate);
        let mut row = vec![count.to_string(), microphones.to_string(), rate.to_string()];
        for method in 0..4 {
            let (mean, spread) =
                mean_and_spread(&figures.iter().map(|row| row[method]).collect::<Vec<f64>>());
            row.push(format!("{mean:.1} ({spread:.1})"));
        }
        table.row(&row);
    }
    Ok(())
}

/// The same sound at 44.1 kHz, with nothing above its band.
fn at_44100(recording: &Recording) -> Recording {
    let (up, down) = (44_100, recording.rate as usize);
    let common = (1..=down).rev().find(|&n| up % n == 0 && down % n == 0).unwrap_or(1);
    let samples = resampled(&recording.samples, up / common, down / common);
    Recording { speaker: recording.speaker.clone(), samples, rate: up as u32 }
}

/// Mean SI-SDR of mixture, FastICA, masks and our own stream.
fn compare(
    voices: &[Recording],
    count: usize,
    microphones: usize,
    seconds: usize,
    trial: usize,
) -> Result<[f64; 4]> {
    let mut rng = Rng::new(common::seed(80, trial));
    let chosen = choose(voices, count, &mut rng)?;
    let rate = chosen[0].rate;
    let samples =
        chosen.iter().map(|voice| voice.samples.len()).min().unwrap_or(0).min(seconds * rate as usize);
    let truths: Vec<Vec<f64>> = chosen.iter().map(|voice| loud(&voice.samples[..samples])).collect();
    let mixing = directions(&mut rng, microphones, count);
    let sources: Vec<f64> = (0..samples * count).map(|e| truths[e % count][e / count]).collect();
    let heard = mix(&sources, &mixing, count);

    let channel = |d: usize| heard.iter().skip(d).step_by(microphones).copied().collect::<Vec<f64>>();
    let single: Vec<Vec<f64>> = (0..microphones).map(channel).collect();
    let ica = unmixed(&heard, &fast_ica(&heard, microphones, 4, common::seed(81, trial))?, microphones);
    let (parts, directions) = learned(&heard, microphones, count, rate, trial)?;
    let masked = masked(&single, &directions, count, bins(rate));
    Ok([best(&truths, &single), best(&truths, &ica), best(&truths, &masked), matched(&truths, &parts)])
}

/// Different speakers.
fn choose<'v>(voices: &'v [Recording], count: usize, rng: &mut Rng) -> Result<Vec<&'v Recording>> {
    let mut left: Vec<&Recording> = voices.iter().collect();
    let mut chosen: Vec<&Recording> = Vec::new();
    while chosen.len() < count && !left.is_empty() {
        let at = (rng.uniform::<f64>() * left.len() as f64) as usize;
        let voice = left.remove(at.min(left.len() - 1));
        if chosen.iter().all(|other| other.speaker != voice.speaker) {
            chosen.push(voice);
        }
    }
    match chosen.len() == count {
        true => Ok(chosen),
        false => Err(Error::input("there are not enough speakers", "FOLDER", "add recordings")),
    }
}

/// The parts that a stream with a model learned from the mixture puts out, and its directions. (D x H)
fn learned(heard: &[f64], d: usize, h: usize, rate: u32, trial: usize) -> Result<(Vec<Vec<f64>>, Vec<f64>)> {
    let input: Vec<f32> = heard.iter().map(|&y| y as f32).collect();
    let Learned { parameters, settings, frame, gains, .. } =
        recordings::learn(&input, d, h, rate, common::seed(82, trial))?;
    let about = About { frame: Some(frame), gains: &gains, ..About::default() };
    Ok((separated(&parameters, &settings.options(), about, &input, d)?, parameters.dictionary))
}

/// Every coefficient to the nearest direction.
fn masked(channels: &[Vec<f64>], directions: &[f64], h: usize, bins: usize) -> Vec<Vec<f64>> {
    let (d, directions) = (channels.len(), unit_columns(directions, h));
    let spectra: Vec<Vec<Vec<f32>>> = channels.iter().map(|samples| spectra(samples, bins)).collect();
    let mut parts = vec![vec![vec![0.0f32; bins]; spectra[0].len()]; h];
    for (number, bin) in (0..spectra[0].len()).flat_map(|number| (0..bins).map(move |bin| (number, bin))) {
        let along = |k: usize| {
            (0..d).map(|i| directions[i * h + k] * f64::from(spectra[i][number][bin])).sum::<f64>()
        };
        let nearest = (0..h).fold(0, |best, k| if along(k).abs() > along(best).abs() { k } else { best });
        parts[nearest][number][bin] = along(nearest) as f32;
    }
    parts.iter().map(|part| signal(part, bins, channels[0].len())).collect()
}

fn scores(truths: &[Vec<f64>], outputs: &[Vec<f64>]) -> Vec<f64> {
    let pairs = truths.iter().flat_map(|truth| outputs.iter().map(move |output| (truth, output)));
    pairs.map(|(truth, output)| si_sdr_db(output, truth).unwrap_or(-MAX_DB)).collect()
}

/// Mean over voices of the closest output.
fn best(truths: &[Vec<f64>], outputs: &[Vec<f64>]) -> f64 {
    let best = |row: &[f64]| row.iter().copied().fold(-MAX_DB, f64::max);
    scores(truths, outputs).chunks_exact(outputs.len()).map(best).sum::<f64>() / truths.len() as f64
}

/// Mean over voices of the output that is assigned to each.
fn matched(truths: &[Vec<f64>], outputs: &[Vec<f64>]) -> f64 {
    let scores = scores(truths, outputs);
    let assigned = assign(&scores, outputs.len());
    let score =
        |(k, output): (usize, &Option<usize>)| output.map_or(-MAX_DB, |o| scores[k * outputs.len() + o]);
    assigned.iter().enumerate().map(score).sum::<f64>() / truths.len() as f64
}
