//! Reads recordings (`.wav`) sample by sample.
//!
//! Integers of 8, 16, 24 and 32 bits become `[-1, 1)`; floats of 32 and 64 bits stay as they are. Where a sample has
//! fewer valid bits than it takes, the format puts them at the top, so the scale is that of the whole.
//!
//! The walk to the samples is our own, while writing is left to `hound`: its reader refuses files that are in order
//! (chunks of odd length, 32-bit integers with an extended header, 64-bit floats).
//!
//! A header that was written before the length was known is taken to mean all that follows.
//!
//! Fails when this is not a WAV file, the coding is compressed, or the header promises more than the file holds.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::open_file;
use super::scalar::Scalar;
use super::section::{Bytes, Section};
use crate::error::{Error, Result};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
/// The coding stands in an extension, where its first two bytes are one of the above.
const EXTENSIBLE: u16 = 0xfffe;

/// Lengths that recorders write where they do not know better: those of ffmpeg and arecord.
const UNKNOWN: [u64; 2] = [0xffff_ffff, 0x8000_0000];

/// A recording whose header is checked against its length.
#[derive(Debug)]
pub(super) struct Wav {
    /// Samples of every channel, at least 1.
    pub points: usize,
    /// At least 1.
    pub channels: usize,
    /// Samples per second.
    pub rate: u32,
    section: Section,
    /// A stored number `x` means `(x - zero) * scale`.
    zero: f64,
    scale: f64,
}

impl Wav {
    pub fn open(path: &Path) -> Result<Self> {
        let (mut file, len) = open_file(path)?;
        let damaged = |what: &str| Error::input(what, path.display(), "record or convert it again");
        let cut = |cause: io::Error| match cause.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the recording ends within its header"),
            _ => Error::reading(path, &cause),
        };
        let riff: [u8; 12] = read_array(&mut file).map_err(cut)?;
        if riff[..4] != *b"RIFF" || riff[8..] != *b"WAVE" {
            let Some(kind) = other_kind(&riff) else { return Err(damaged("this is not a WAV file")) };
            let what = format!("this is {kind}, not WAV");
            return Err(Error::input(what, path.display(), "convert it to 16-bit or 32-bit float WAV"));
        }
        let mut format = None;
        let data_bytes = loop {
            let [i0, i1, i2, i3, l0, l1, l2, l3] = read_array(&mut file).map_err(cut)?;
            let chunk_bytes = u32::from_le_bytes([l0, l1, l2, l3]);
            let mut skip = u64::from(chunk_bytes) + u64::from(chunk_bytes % 2); // chunks are padded to even length
            match &[i0, i1, i2, i3] {
                b"data" => break u64::from(chunk_bytes),
                b"fmt " => {
                    if chunk_bytes < 16 {
                        return Err(damaged("the format of the recording is damaged"));
                    }
                    let mut bytes = [0; 40];
                    let known = &mut bytes[..chunk_bytes.min(40) as usize];
                    file.read_exact(known).map_err(cut)?;
                    skip -= known.len() as u64;
                    format = Some(Format::parse(&bytes).map_err(|what| {
                        Error::input(what, path.display(), "convert it to 16-bit or 32-bit float WAV")
                    })?);
                }
                _ => {}
            }
            // Never past the end: seeking there succeeds, and the next read reports it.
            file.seek(SeekFrom::Current(skip as i64)).map_err(cut)?;
        };
        let Some(Format { scalar, zero, scale, channels, rate }) = format else {
            return Err(damaged("the recording does not say its format"));
        };
        let offset = file.stream_position().map_err(cut)?;
        let held = len.saturating_sub(offset);
        // Written to a pipe, a recorder does not know yet how long it will be.
        let data_bytes = if UNKNOWN.contains(&data_bytes) && held > 0 { held } else { data_bytes };
        if data_bytes > held {
            return Err(damaged(&format!(
                "the header promises {data_bytes} bytes of samples but the file holds {held}"
            )));
        }
        let frame_bytes = (channels * scalar.size()) as u64;
        if !data_bytes.is_multiple_of(frame_bytes) {
            return Err(damaged("the recording ends within a sample"));
        }
        let points = usize::try_from(data_bytes / frame_bytes).unwrap_or(usize::MAX);
        if points == 0 {
            return Err(Error::input(
                "the recording holds no samples",
                path.display(),
                "check how it was made",
            ));
        }
        let section = Section { bytes: Bytes::File(file), offset, scalar, big_endian: false };
        Ok(Self { points, channels, rate, section, zero, scale })
    }

    /// Appends `count` samples of every channel from sample `start` on, channels interleaved.
    pub fn read_samples(&mut self, start: usize, count: usize, out: &mut Vec<f64>) -> io::Result<()> {
        let (zero, scale) = (self.zero, self.scale);
        let first = (start * self.channels) as u64;
        self.section.read(first, count * self.channels, |value| out.push((value - zero) * scale))
    }
}

struct Format {
    scalar: Scalar,
    zero: f64,
    scale: f64,
    channels: usize,
    rate: u32,
}

impl Format {
    /// From the first 40 bytes of the chunk, zeros where it is shorter.
    fn parse(bytes: &[u8; 40]) -> Result<Self, String> {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (channels, bits) = (word(2), word(14));
        let rate = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let coding = if word(0) == EXTENSIBLE { word(24) } else { word(0) };
        // A power of two: scaling rounds nothing.
        let half_range = |bits: i32| 2f64.powi(1 - bits);
        let (scalar, zero, scale) = match (coding, bits) {
            (PCM, 8) => (Scalar::U8, 128.0, half_range(8)), // the one unsigned width of the format
            (PCM, 16) => (Scalar::I16, 0.0, half_range(16)),
            (PCM, 24) => (Scalar::I24, 0.0, half_range(24)),
            (PCM, 32) => (Scalar::I32, 0.0, half_range(32)),
            (FLOAT, 32) => (Scalar::F32, 0.0, 1.0),
            (FLOAT, 64) => (Scalar::F64, 0.0, 1.0),
            (PCM, _) => return Err(format!("{bits}-bit integer samples are not supported")),
            (FLOAT, _) => return Err(format!("{bits}-bit float samples are not supported")),
            _ => return Err(format!("the samples are compressed (coding {coding:#06x})")),
        };
        if channels == 0 {
            return Err("the recording has no channels".into());
        }
        let channels = usize::from(channels);
        if usize::from(word(12)) != channels * scalar.size() {
            return Err(format!("{channels} channels of {bits} bits do not take {} bytes", word(12)));
        }
        if rate == 0 {
            return Err("the sample rate is 0".into());
        }
        Ok(Self { scalar, zero, scale, channels, rate })
    }
}

/// What else a recording may be, by its first bytes.
fn other_kind(start: &[u8; 12]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 6] = [
        (b"RF64", "RF64"),
        (b"fLaC", "FLAC"),
        (b"OggS", "Ogg"),
        (b"ID3", "MP3"),
        (b"FORM", "AIFF"),
        (b"RIFX", "RIFX, which is big-endian"),
    ];
    kinds.into_iter().find(|(first, _)| start.starts_with(first)).map(|(_, name)| name)
}

fn read_array<const N: usize>(file: &mut File) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
