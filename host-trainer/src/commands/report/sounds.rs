//! The mixture and what the model makes of it, to listen to: players with the sound in the page itself.
//!
//! Sources come from the stream that a device runs. Sounds are 16-bit WAV in base64, the beginning of the recording only, so that
//! the page stays small enough for a mail; figures against a reference are of all of it.

use super::digits::fixed;
use super::page::{escaped, hint, paragraph, section, table};
use crate::Result;
use crate::commands::model_file::{Separator, names};
use crate::commands::separate::{Matched, Truth, check_truths, file_names};
use crate::commands::streaming::{self, Separated};
use crate::data::{Points, Source};
use spikelet::Blob;
use spikelet::frame::Form;
use spikelet::groups::Groups;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds of sound that a player has, and numbers of it at most: 0.5 MB of text each.
const SECONDS: usize = 10;
const MOST: usize = 200_000;

/// Whether this data is a recording that the model takes apart.
pub(super) fn apply(blob: &Blob<'_>, data: &Path) -> bool {
    let is_stream = !matches!(blob.frame().map(|frame| frame.form), None | Some(Form::Patches { .. }));
    is_stream && Source::open(data).is_ok_and(|source| source.rate().is_some())
}

/// A recording, and what a model made of it.
#[derive(Debug)]
pub(super) struct Heard {
    mixture: Points,
    pub separated: Separated,
    names: Vec<String>,
}

impl Heard {
    /// `truths` are the true sources, if they are known.
    pub fn new(model: Separator<'_>, name: &Path, data: &Path, truths: &[Truth]) -> Result<Self> {
        let mixture = Points::read(data)?;
        check_truths(truths, mixture.points, mixture.rate)?;
        let separated = streaming::separate(model, name, data, None)?;
        Ok(Self { mixture, separated, names: names(&model.groups()) })
    }

    /// Whether a recording has one channel.
    pub fn is_mono(data: &Path) -> bool {
        Source::open(data).is_ok_and(|source| source.dims() == 1)
    }

    /// The first channel of the recording.
    pub fn recording(&self) -> Vec<f32> {
        self.mixture.values.iter().step_by(self.mixture.dims).map(|&y| y as f32).collect()
    }

    /// The section.
    pub fn html(&self, data: &Path, truths: &[Truth]) -> String {
        let Self { mixture, separated, names } = self;
        let rate = separated.rate;
        let length = mixture.points.min(SECONDS * rate as usize).min(MOST / mixture.dims.clamp(1, 2));
        // All on one scale, so that what is quiet stays quiet.
        let heard: Vec<f32> = first_channels(mixture, length);
        let signals =
            separated.signals.iter().map(|signal| &signal[..(length * separated.channels).min(signal.len())]);
        let signals: Vec<&[f32]> = signals.collect();
        let loudest =
            signals.iter().copied().flatten().chain(&heard).fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = if loudest > 0.0 { 0.9 / loudest } else { 1.0 };
        let mut body = paragraph(format_args!(
            "{} and its sources, by the stream that runs on the device, all on one scale{}.",
            escaped(&data.display().to_string()),
            match length < mixture.points {
                true => format!("; the first {} s", fixed(length as f64 / f64::from(rate), 1)),
                false => String::new(),
            }
        ));
        body += "<ul class=\"sounds\">\n";
        body += &player("mixture", &heard, mixture.dims.min(2), rate, scale);
        for (name, signal) in names.iter().zip(&signals) {
            body += &player(name, signal, separated.channels, rate, scale);
        }
        body += "</ul>\n";
        body += &quality(mixture, &separated.signals, separated.channels, names, truths);
        section("sounds", "Sounds", &body)
    }
}

/// What sources are called, here and as files.
pub(super) fn names(groups: &Groups<'_>) -> Vec<String> {
    let files = file_names(groups).into_iter().map(|file| file.trim_end_matches(".wav").to_owned()).collect();
    let named = names::groups(groups);
    if named.len() == groups.len() { named.into_iter().map(str::to_owned).collect() } else { files }
}

/// Up to two channels of the recording, interleaved.
fn first_channels(mixture: &Points, length: usize) -> Vec<f32> {
    let shown = mixture.dims.min(2);
    let samples = mixture.values.chunks_exact(mixture.dims).take(length);
    samples.flat_map(|sample| sample[..shown].iter().map(|&y| y as f32)).collect()
}

fn player(name: &str, signal: &[f32], channels: usize, rate: u32, scale: f32) -> String {
    let scaled: Vec<f32> = signal.iter().map(|x| x * scale).collect();
    let name = escaped(name);
    format!(
        "<li><span>{name}</span><audio controls=\"controls\" preload=\"metadata\" aria-label=\"{name}\" \
         src=\"data:audio/wav;base64,{}\"></audio></li>\n",
        base64(&wav_bytes(&scaled, channels, rate))
    )
}

/// A WAV file of 16-bit integers, in memory.
fn wav_bytes(samples: &[f32], channels: usize, rate: u32) -> Vec<u8> {
    let (length, frame) = (2 * samples.len() as u32, 2 * channels as u32);
    let mut bytes = Vec::with_capacity(44 + length as usize);
    bytes.extend(b"RIFF");
    bytes.extend((36 + length).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    // 16 bytes follow: coding 1 (integers), channels, rate, bytes a second, bytes a sample of all channels, bits.
    bytes.extend(16u32.to_le_bytes());
    bytes.extend([1, channels as u16].map(u16::to_le_bytes).concat());
    bytes.extend([rate, rate * frame].map(u32::to_le_bytes).concat());
    bytes.extend([frame as u16, 16].map(u16::to_le_bytes).concat());
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    bytes.extend(samples.iter().flat_map(|x| ((x * 32767.0).round() as i16).to_le_bytes()));
    bytes
}

/// How close sources come to the true ones.
fn quality(
    mixture: &Points,
    signals: &[Vec<f32>],
    channels: usize,
    names: &[String],
    truths: &[Truth],
) -> String {
    if truths.is_empty() {
        return hint(
            "How close they come shows with <code>--reference</code>, the true sources as WAV files.",
        );
    }
    let matched = Matched::new(truths, signals, channels);
    let mut gains = Vec::new();
    let rows: Vec<Vec<String>> = truths
        .iter()
        .enumerate()
        .map(|(k, truth)| {
            let before = truth.closest_channel_db(mixture);
            let (name, after) = match matched.of[k] {
                Some(signal) => {
                    gains.push(matched.score(k, signal) - before);
                    (escaped(&names[signal]), format!("{} dB", fixed(matched.score(k, signal), 1)))
                }
                None => ("none".into(), "—".into()),
            };
            vec![escaped(&truth.name), name, format!("{} dB", fixed(before, 1)), after]
        })
        .collect();
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let mut text = table(&["true source", "separated as", "#mixture", "#separated"], &rows);
    let _ = write!(
        text,
        "{}",
        hint(format_args!(
            "SI-SDR, higher is better; of the mixture that of the channel that comes closest. Mean gain {} dB.",
            fixed(mean, 1)
        ))
    );
    text
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().enumerate().fold(0u32, |word, (at, &byte)| word | u32::from(byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, wav_bytes};

    #[test]
    fn a_wav_in_memory_is_one_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sound.wav");
        std::fs::write(&path, wav_bytes(&[0.5, -0.5, 1.0, 0.0], 2, 8000)).unwrap();
        let read = crate::data::Points::read(&path).unwrap();
        assert_eq!((read.points, read.dims, read.rate), (2, 2, Some(8000)));
        assert!((read.values[1] + 0.5).abs() < 1e-4 && (read.values[2] - 1.0).abs() < 1e-4);
    }

    /// The examples of RFC 4648.
    #[test]
    fn base64_is_that_of_the_standard() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, encoded) in pairs {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
