//! A voice and another source in one channel, told apart by which is louder where.
//!
//! Sources are learned from the first two thirds of their recordings; the last third of sums of a voice and another source is
//! taken apart by the stream that a device would run. Others are music, or three noises: a fan, knocks of a machine, six people
//! who talk at once. A voice is learned from its own recording (64 latents), or from those of all other speakers (128). Settings
//! were chosen with every other voice, the first half of the last column; the second half is of voices that no setting has seen.
//!
//! Beside it, with `--peers`: KL-NMF of magnitude spectra, learned from the same recordings. How many spectra a source has, and
//! whether resampled copies are learned from as here, is chosen by the same half of the voices, for music and for noises. It
//! takes most of the time.
//!
//! A second table has one of both sources alone: how loud the other one comes out all the same, beside the input.
//!
//! `--skip N` leaves out the first N rows; with 16 the second table is all there is.
//!
//! Gains in SI-SDR in dB, voice / other, mean over pairs. *told*: the stream knows how loud both are. *tracked*: five levels from
//! -10 to 10 dB side by side.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example one-channel -- FOLDER [--quick]
//! ```
//!
//! FOLDER has the folders `speech`, `speech_digits` and `music` with WAV files of 8000 samples per second; voices whose names end
//! alike after the last `_`, beside single words (`kt`), are one speaker.

mod common;

use common::nmf::Setting;
use common::noises::{babble, fan, impacts, unit};
use common::recordings::{self, Recording};
use common::table::{Table, mean_and_spread};
use common::{Arguments, nmf};
use spikelet::SpectralModel;
use spikelet_trainer::metrics::{MAX_DB, si_sdr_db};
use spikelet_trainer::spectral::{Encoding, Geometry, Parts, Settings, gains, learn};
use spikelet_trainer::{Error, Result, streaming};
use std::process::ExitCode;

/// Of a source from its own recording, and of a voice from others.
const LATENTS: usize = 64;
const MANY_LATENTS: usize = 128;
/// Half a frame is as good for music and 0.3 dB less for noises.
const IS_HALF_HOP: bool = false;

/// Rows of the first table.
const ROWS: usize = 16;

/// NMF, which takes most of the time, runs up to this level, in dB.
const MOST_NMF: f64 = 6.0;

fn main() -> ExitCode {
    common::main(experiment)
}

/// What NMF is tried with.
const SETTINGS: [Setting; 3] = [
    Setting { spectra: 48, copies: false },
    Setting { spectra: 48, copies: true },
    Setting { spectra: 96, copies: false },
];

/// A source in all its forms.
struct Source {
    parts: Parts,
    /// With each of the settings that are tried.
    nmf: Vec<Vec<Vec<f32>>>,
}

/// What is learned from, and what is taken apart.
struct Sound {
    seen: Vec<f64>,
    unseen: Vec<f64>,
}

impl Sound {
    fn of(recording: &Recording) -> Self {
        let samples = unit(recording.samples.clone());
        let (seen, unseen) = samples.split_at(samples.len() * 2 / 3);
        Self { seen: seen.to_vec(), unseen: unseen.to_vec() }
    }
}

fn learned(recordings: &[Vec<f64>], latents: usize, copies: bool, settings: &[Setting]) -> Result<Source> {
    let geometry = Geometry::new(8000, IS_HALF_HOP);
    let choice = Settings { latents, iterations: 100, copies: Some(copies), seed: 1, threads: 1 };
    let source = learn(recordings, &geometry, &choice, |_, _| {})?;
    let nmf = settings.iter().map(|&setting| nmf::learn(recordings, setting, 1)).collect();
    Ok(Source { parts: Parts::of(&source, &geometry), nmf })
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder with the folders speech, speech_digits and music")?;
    let voices = recordings::read(&folder.join("speech"))?;
    let people = recordings::read(&folder.join("speech_digits"))?;
    let music = recordings::read(&folder.join("music"))?;
    if [voices.len(), people.len(), music.len()].contains(&0) || voices.iter().any(|voice| voice.rate != 8000)
    {
        let what = "there are no voices, people or music of 8000 samples per second";
        return Err(Error::input(what, folder.display(), "add recordings"));
    }
    let is_same = |a: &Recording, b: &Recording| a.speaker == b.speaker && a.speaker != "kt";
    let voice_sounds: Vec<Sound> = voices.iter().map(Sound::of).collect();
    let len = voice_sounds[0].unseen.len();
    let mut others: Vec<(Sound, bool)> = music.iter().map(|music| (Sound::of(music), true)).collect();
    let songs = others.len();
    let seen = voice_sounds[0].seen.len();
    others.push((Sound { seen: fan(seen, 11), unseen: fan(len, 12) }, false));
    others.push((Sound { seen: impacts(seen, 11), unseen: impacts(len, 12) }, false));
    let people: Vec<Sound> = people.iter().map(Sound::of).collect();
    let part =
        |of: fn(&Sound) -> &Vec<f64>| people.iter().map(|person| of(person).clone()).collect::<Vec<_>>();
    let talk = babble(&part(|person| &person.unseen), 12);
    let talk = unit(talk.iter().cycle().take(len).copied().collect());
    others.push((Sound { seen: babble(&part(|person| &person.seen), 11), unseen: talk }, false));

    let count = if arguments.quick { 2 } else { voices.len() };
    let settings = if arguments.peers { &SETTINGS[..] } else { &[] };
    let own =
        arguments.trials(count, |v| learned(&[voice_sounds[v].seen.clone()], LATENTS, true, settings))?;
    let other_sources = arguments
        .trials(others.len(), |o| learned(&[others[o].0.seen.clone()], LATENTS, others[o].1, settings))?;
    if arguments.skip >= ROWS {
        return absent(arguments, &voice_sounds[..count], &others, [&own, &other_sources]);
    }
    // The setting of NMF with the largest mean gain of both sources, for every other voice.
    let best = |range: std::ops::Range<usize>| -> Result<usize> {
        let mut found = (0, f64::NEG_INFINITY);
        for (number, setting) in SETTINGS.iter().enumerate() {
            let pairs = count.div_ceil(2) * range.len();
            let gains = arguments.trials(pairs, |pair| {
                let (v, o) = (2 * (pair / range.len()), range.start + pair % range.len());
                let mixed = Mixed::of([&voice_sounds[v].unseen, &others[o].0.unseen], 0.0, o < songs);
                let spectra = [&own[v], &other_sources[o]].map(|source| source.nmf[number].as_slice());
                let [voice, other] = mixed.gains(&nmf::separate(&mixed.sum, spectra, 1));
                Ok(voice + other)
            })?;
            let mean = gains.iter().sum::<f64>() / pairs as f64;
            println!(
                "KL-NMF of {:?}: {:.2} dB for {}",
                setting,
                mean / 2.0,
                if range.start < songs { "music" } else { "noises" }
            );
            if mean > found.1 {
                found = (number, mean);
            }
        }
        Ok(found.0)
    };
    let chosen = match arguments.peers {
        true => Some([best(0..songs)?, best(songs..others.len())?]),
        false => None,
    };

    println!("Gain in SI-SDR in dB, voice / other, mean over pairs\n");
    let table = Table::new(&[
        "other   ",
        "voice model   ",
        "voice at",
        "KL-NMF     ",
        "told       ",
        "tracked    ",
        "tracked, i8",
        "halves of tracked        ",
    ]);
    let (all, speakers) = (others.len(), "other speakers");
    let kinds = [("music", 0..songs), ("noises", songs..all)];
    let rows =
        [(speakers, 0.0f64), ("own", 0.0), ("own", 6.0), ("own", -6.0), (speakers, 10.0), (speakers, -10.0)]
            .into_iter()
            .chain([("own", 10.0), ("own", -10.0)])
            .flat_map(|(model, level)| kinds.clone().map(|(name, range)| (name, range, model, level)));
    let mut general = Vec::new();
    for (name, range, model, level) in rows.skip(arguments.skip) {
        if model == speakers && general.is_empty() {
            general = arguments.trials(count, |v| {
                let all = voice_sounds.iter().zip(&voices).filter(|(_, other)| !is_same(other, &voices[v]));
                let seen: Vec<Vec<f64>> = all.map(|(sound, _)| sound.seen.clone()).collect();
                let settings = chosen.iter().flatten().map(|&number| SETTINGS[number]);
                learned(&seen, MANY_LATENTS, true, &settings.collect::<Vec<_>>())
            })?;
        }
        let sources = if model == speakers { &general } else { &own };
        let (start, width) = (range.start, range.len());
        let figures = arguments.trials(count * width, |pair| {
            let (v, o) = (pair / width, start + pair % width);
            let truths = [&voice_sounds[v].unseen, &others[o].0.unseen];
            let kind = usize::from(o >= songs);
            let spectra = chosen.filter(|_| level.abs() <= MOST_NMF).map(|chosen| {
                // Of other speakers only the two that were chosen are learned.
                let voice = if model == speakers { kind } else { chosen[kind] };
                [&sources[v].nmf[voice], &other_sources[o].nmf[chosen[kind]]]
            });
            let mixed = Mixed::of(truths, level, kind == 0);
            compare(&mixed, [&sources[v].parts, &other_sources[o].parts], spectra, level)
        })?;
        let column = |method: usize, half: Option<usize>| {
            let chosen = figures.iter().enumerate();
            let chosen = chosen.filter(|(pair, _)| half.is_none_or(|half| pair / width % 2 == half));
            let chosen: Vec<&[[f64; 2]; 4]> = chosen.map(|(_, row)| row).collect();
            let mean = |source: usize| {
                mean_and_spread(&chosen.iter().map(|row| row[method][source]).collect::<Vec<f64>>()).0
            };
            format!("{:.1} / {:.1}", mean(0), mean(1))
        };
        table.row(&[
            name.to_owned(),
            model.to_owned(),
            format!("{level:+.0} dB"),
            if chosen.is_some() && level.abs() <= MOST_NMF { column(0, None) } else { "-".into() },
            column(1, None),
            column(2, None),
            column(3, None),
            format!("{}, {}", column(2, Some(0)), column(2, Some(1))),
        ]);
    }
    println!();
    absent(arguments, &voice_sounds[..count], &others, [&own, &other_sources])
}

/// What comes of a source that is not there, in dB beside the input: mean over pairs, and the loudest.
fn absent(
    arguments: &Arguments,
    voices: &[Sound],
    others: &[(Sound, bool)],
    [own, learned]: [&[Source]; 2],
) -> Result<()> {
    println!("One source alone; level of the output of the other, in dB beside the input\n");
    let table = Table::new(&["to be heard", "beside it", "mean  ", "loudest"]);
    for (name, is_song) in [("music", true), ("noises", false)] {
        let chosen: Vec<usize> = (0..others.len()).filter(|&o| others[o].1 == is_song).collect();
        for (heard, is_voice) in [("voice", true), (name, false)] {
            let ghosts = arguments.trials(voices.len() * chosen.len(), |pair| {
                let (v, o) = (pair / chosen.len(), chosen[pair % chosen.len()]);
                let parts = [own[v].parts.clone(), learned[o].parts.clone()];
                let merged = Parts::merge(&parts, vec!["voice".into(), "other".into()])?;
                let alone = if is_voice { &voices[v].unseen } else { &others[o].0.unseen };
                let input: Vec<f32> = alone.iter().map(|&x| x as f32).collect();
                let outputs = separated(&merged.bytes(Encoding::I8, "experiment")?, &input)?;
                let energy = |signal: &[f64]| signal.iter().map(|x| x * x).sum::<f64>();
                Ok(10.0 * (energy(&outputs[usize::from(is_voice)]) / energy(alone)).max(1e-12).log10())
            })?;
            let beside = if is_voice { name } else { "voice" };
            let loudest = ghosts.iter().copied().fold(f64::MIN, f64::max);
            table.row(&[
                heard.into(),
                beside.into(),
                format!("{:.1}", mean_and_spread(&ghosts).0),
                format!("{loudest:.1}"),
            ]);
        }
    }
    Ok(())
}

/// A voice and another source, and their sum. Music is as loud as in its recording, noises as loud as the voice.
struct Mixed {
    truths: [Vec<f64>; 2],
    sum: Vec<f64>,
}

impl Mixed {
    fn of(truths: [&Vec<f64>; 2], level: f64, is_music: bool) -> Self {
        let [mut voice, other] =
            truths.map(|truth| if is_music { truth.clone() } else { unit(truth.clone()) });
        voice.iter_mut().for_each(|x| *x *= 10f64.powf(level / 20.0));
        let sum = voice.iter().zip(&other).map(|(a, b)| a + b).collect();
        Self { truths: [voice, other], sum }
    }

    /// By how many dB estimates are better than the sum.
    fn gains(&self, estimates: &[Vec<f64>]) -> [f64; 2] {
        [0, 1].map(|k| {
            let db = |estimate: &[f64]| si_sdr_db(estimate, &self.truths[k]).unwrap_or(-MAX_DB);
            db(&estimates[k]) - db(&self.sum)
        })
    }
}

/// Gains of NMF, and of the stream when levels are told, tracked, and tracked with spectra in bytes; for voice and other.
fn compare(
    mixed: &Mixed,
    parts: [&Parts; 2],
    spectra: Option<[&Vec<Vec<f32>>; 2]>,
    level: f64,
) -> Result<[[f64; 2]; 4]> {
    let merged = Parts::merge(&parts.map(Parts::clone), vec!["voice".into(), "other".into()])?;
    let told = Parts { gains: gains(2, &[level]), ..merged.clone() };
    let factored = spectra.map(|spectra| nmf::separate(&mixed.sum, spectra.map(Vec::as_slice), 1));
    let input: Vec<f32> = mixed.sum.iter().map(|&x| x as f32).collect();
    let mut figures =
        [factored.map_or([0.0; 2], |factored| mixed.gains(&factored)), [0.0; 2], [0.0; 2], [0.0; 2]];
    for (figure, (parts, encoding)) in figures[1..].iter_mut().zip([
        (&told, Encoding::F32),
        (&merged, Encoding::F32),
        (&merged, Encoding::I8),
    ]) {
        *figure = mixed.gains(&separated(&parts.bytes(encoding, "experiment")?, &input)?);
    }
    Ok(figures)
}

fn separated(bytes: &[u8], input: &[f32]) -> Result<Vec<Vec<f64>>> {
    // On the boundary that a blob needs.
    let mut memory = vec![0u8; bytes.len() + 8];
    let offset = memory.as_ptr().align_offset(8);
    memory[offset..][..bytes.len()].copy_from_slice(bytes);
    let refused = |what: &dyn std::fmt::Display| Error::run(what, "the model of a recording", "report this");
    let model = SpectralModel::parse(&memory[offset..]).map_err(|error| refused(&error))?;
    let parts = streaming::separate_channel(model, input, None, |_| {}).map_err(|error| refused(&error))?;
    Ok(parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect())
}
