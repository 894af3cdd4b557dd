//! How recordings become points where no flag says so, and what recordings a model cannot explain.
//!
//! | channels | points | why |
//! |---|---|---|
//! | several | bins of a lapped transform, 32 ms each | sound is sparse in frequency, so sources come apart by how strong they are in each channel |
//! | one | windows of 8 ms, every 2 ms | there is nothing to compare with, so a dictionary of short waveforms is learned |

use super::plan::Plan;
use crate::commands::framing::Framing;
use crate::commands::output::{counted, note};
use crate::data::Source;
use crate::delays::{bins_of, delays};
use crate::parameters::ModelKind;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use std::path::{Path, PathBuf};

/// Length of a block of the transform, that is half of its window, and of windows and the way between them.
const BLOCK_SECONDS: f64 = 0.032;
const WINDOW_SECONDS: f64 = 0.008;
const HOP_SECONDS: f64 = 0.002;

/// Seconds of every recording that are searched for delays.
const LOOKED_AT: usize = 120;

/// Amplitudes from which a sample counts as cut off, and the part of such samples from which a recording does.
const FULL_SCALE: f64 = 0.9999;
const BEYOND: f64 = 1.001;
const CLIPPED: f64 = 0.001;

/// Channels as alike as this, squared correlation, are one.
const ALIKE: f64 = 0.999_999;

/// Bins of a transform for this rate: 256 at 8 kHz, 512 at 16 kHz, 1024 at 44.1 kHz.
pub(in crate::commands) fn bins(rate: u32) -> u32 {
    bins_of(f64::from(rate) * BLOCK_SECONDS) as u32
}

/// What is known of the first recording; nothing where it is another kind of file.
#[derive(Clone, Copy, Debug)]
struct Recording {
    rate: u32,
    channels: usize,
}

impl Recording {
    fn open(paths: &[PathBuf]) -> Result<Option<Self>> {
        // Pictures and what cannot be read are refused where they are needed, with the advice that fits.
        let Some(first) = paths.first().and_then(|path| Source::open(path).ok()) else { return Ok(None) };
        Ok(first.rate().map(|rate| Self { rate, channels: first.dims() }))
    }
}

/// The frame that flags ask for, or one that suits recordings. What was chosen is told.
pub(super) fn frame(framing: &Framing, plan: &Plan, paths: &[PathBuf]) -> Result<Option<Frame>> {
    let recording = Recording::open(paths)?;
    // All files must have as many channels as the first, which is checked when they are read.
    let channels = || Source::open(&paths[0]).map(|first| first.dims());
    let bins = recording.map_or(256, |recording| bins(recording.rate));
    if framing.is_given() {
        return framing.frame(plan.model, bins, channels);
    }
    let signed = matches!(plan.model, ModelKind::Gsc | ModelKind::Bsc);
    let Some(Recording { rate, channels }) = recording.filter(|_| signed) else { return Ok(None) };
    let form = if channels > 1 {
        note(format_args!(
            "--transform mdct --bins {bins} was chosen, because this is a recording of {channels} channels: sound is sparse \
             in frequency; for every sample a point, as for sensors, say --transform none"
        ));
        Form::Transform { bins, channels: channels as u32 }
    } else {
        let samples = |seconds: f64| (f64::from(rate) * seconds).round() as u32;
        let (length, hop) = (samples(WINDOW_SECONDS).max(8), samples(HOP_SECONDS).max(2));
        note(format_args!(
            "--frame {length} --hop {hop} was chosen, because this is a recording of one channel: single samples say nothing \
             of sources; train on one source at a time, and put the models together with `spikelet merge`; for voice, music or \
             noise --model mca --transform spectrum comes much further"
        ));
        Form::Windows { length, hop }
    };
    Ok(Some(Frame { form, rate: 0, centred: false }))
}

/// Refuses a recording that is shorter than a block of the transform.
pub(in crate::commands) fn long_enough(source: &Source, bins: u32) -> Result<()> {
    if source.points() >= bins as usize {
        return Ok(());
    }
    let what = format!("{} are less than a block of {bins}", counted(source.points(), "sample"));
    Err(Error::input(what, source.path().display(), "give a longer recording"))
}

/// Refuses recordings of microphones that are apart from each other, unless that is asked for; says what else is odd about
/// channels and rates.
pub(super) fn check(paths: &[PathBuf], frame: Option<&Frame>, ignore_delays: bool) -> Result<Vec<String>> {
    let by_channel =
        matches!(frame.map(|frame| frame.form), Some(Form::Windows { .. } | Form::Patches { .. }));
    let (mut said, mut first) = (Vec::new(), None);
    for path in paths {
        let Ok(mut source) = Source::open(path) else { continue };
        let Some(rate) = source.rate() else { continue };
        let (first_rate, first_path) = *first.get_or_insert((rate, path));
        if rate != first_rate {
            said.push(format!(
                "{} has {rate} samples per second, {} has {first_rate}: resample one of them, or what is learned fits \
                 neither",
                path.display(),
                first_path.display()
            ));
        }
        let channels = source.dims();
        if let Some(Form::Transform { bins, .. }) = frame.map(|frame| frame.form) {
            long_enough(&source, bins)?;
            if channels == 1 {
                said.push(format!(
                    "{}: one channel, and a transform tells sources apart by how strong they are in several: train a model \
                     of each source by itself with --model mca --transform spectrum instead",
                    path.display()
                ));
            }
        }
        if by_channel || channels < 2 {
            continue;
        }
        let mut samples = Vec::new();
        source.read_chunk(0, LOOKED_AT * rate as usize, &mut samples)?;
        said.extend(clipped(&samples).map(|what| format!("{}: {what}", path.display())));
        if matches!(frame.map(|frame| frame.form), Some(Form::Transform { .. })) {
            refuse_copies(&samples, channels, path)?;
        }
        said.extend(copies(&samples, channels).map(|what| format!("{}: {what}", path.display())));
        let delays = delays(&samples, channels, rate);
        if !delays.found() {
            continue;
        }
        let share = format!("{:.0} %", 100.0 * delays.part());
        if !ignore_delays {
            let what = format!(
                "sounds reach the microphones at different times (in {share} of the places where one is alone, its phase \
                 differs between channels), which this model cannot explain"
            );
            let advice = "use --model spatial, which is for microphones that are apart, or --ignore-delays to go on anyway";
            return Err(Error::input(what, path.display(), advice));
        }
        said.push(format!(
            "{}: sounds reach the microphones at different times ({share} of clear sounds are turned in phase): expect \
             several dB less than from --model spatial",
            path.display()
        ));
    }
    Ok(said)
}

/// What to say of sound that was too loud for its recorder.
pub(super) fn clipped(samples: &[f64]) -> Option<String> {
    // Floats that go beyond full scale were not cut off there.
    if samples.iter().any(|y| y.abs() > BEYOND) {
        return None;
    }
    let part = samples.iter().filter(|y| y.abs() >= FULL_SCALE).count() as f64 / samples.len().max(1) as f64;
    (part > CLIPPED).then(|| {
        format!(
            "{:.1} % of the samples are at full scale: what is cut off there is in no source; record it at a lower level",
            100.0 * part
        )
    })
}

/// What to say of channels that carry nothing of their own.
fn copies(samples: &[f64], channels: usize) -> Option<String> {
    let silent = (0..channels).find(|&c| samples.iter().skip(c).step_by(channels).all(|&y| y == 0.0));
    if let Some(silent) = silent {
        return Some(format!("channel {} is silent: leave it out", silent + 1));
    }
    are_copies(samples, channels)
        .then(|| format!("all {channels} channels carry the same: one of them is enough"))
}

/// Whether all channels are the first one, as loud or scaled.
fn are_copies(samples: &[f64], channels: usize) -> bool {
    let product = |a: usize, b: usize| samples.chunks_exact(channels).map(|y| y[a] * y[b]).sum::<f64>();
    let first = product(0, 0);
    let is_copy = |c: usize| product(0, c).powi(2) > ALIKE * first * product(c, c);
    channels > 1 && first > 0.0 && (1..channels).all(is_copy)
}

/// Refuses sound whose sources no channel tells apart.
pub(in crate::commands) fn refuse_copies(samples: &[f64], channels: usize, path: &Path) -> Result<()> {
    if !are_copies(samples, channels) {
        return Ok(());
    }
    let what =
        format!("all {channels} channels carry the same sound, so sources cannot be told apart by them");
    let advice = "give a recording of different microphones, or one channel by itself";
    Err(Error::input(what, path.display(), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_the_rate() {
        assert_eq!(
            [8000, 11_025, 16_000, 44_100, 48_000, 192_000, 250].map(bins),
            [256, 256, 512, 1024, 2048, 2048, 16]
        );
    }

    #[test]
    fn clipping_is_told() {
        let tone = |level: f64| {
            (0..1000).map(|n| (level * (0.1 * f64::from(n)).sin()).clamp(-1.0, 1.0)).collect::<Vec<_>>()
        };
        assert_eq!(clipped(&tone(0.9)), None);
        assert!(clipped(&tone(1.5)).unwrap().contains("% of the samples are at full scale"));
        let float: Vec<f64> = tone(0.9).iter().map(|y| 30.0 * y).collect();
        assert_eq!(clipped(&float), None);
    }

    #[test]
    fn copies_are_told() {
        let same: Vec<f64> = (0..100).flat_map(|n| [f64::from(n), -2.0 * f64::from(n)]).collect();
        assert!(copies(&same, 2).unwrap().contains("carry the same"));
        let silent: Vec<f64> = (0..100).flat_map(|n| [f64::from(n), 0.0]).collect();
        assert!(copies(&silent, 2).unwrap().contains("channel 2 is silent"));
        let other: Vec<f64> = (0..100).flat_map(|n| [f64::from(n), f64::from(n * n)]).collect();
        assert_eq!(copies(&other, 2), None);
    }
}
