//! Writes arrays and recordings, whole or not at all.
//!
//! In come numbers and their shape, out come files that NumPy and audio programs read. The `npy_*` functions write to
//! any writer, for commands that stage several files with [`Staged`](crate::files::Staged). Fails when the shape
//! does not fit the numbers, and as [`write_atomically`] does.

use std::io::{self, Write};
use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};

use crate::error::{Error, Result};
use crate::files::{Writer, write_atomically};

/// Writes a NumPy array of float32 (C order).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("mean.npy");
/// spikelet_trainer::data::write_npy_f32(&path, &[2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
/// assert_eq!(std::fs::metadata(&path).unwrap().len(), 128 + 4 * 4);
/// ```
pub fn write_npy_f32(path: impl AsRef<Path>, shape: &[usize], values: &[f32]) -> Result<()> {
    write_atomically(path, |writer| npy_f32(writer, shape, values))
}

/// Writes a NumPy array of float64 (C order).
pub fn write_npy_f64(path: impl AsRef<Path>, shape: &[usize], values: &[f64]) -> Result<()> {
    write_atomically(path, |writer| npy_f64(writer, shape, values))
}

/// Writes a NumPy array of int64 (C order).
pub fn write_npy_i64(path: impl AsRef<Path>, shape: &[usize], values: &[i64]) -> Result<()> {
    write_atomically(path, |writer| npy_i64(writer, shape, values))
}

/// A NumPy array of float32 to any writer.
pub fn npy_f32(writer: &mut impl Write, shape: &[usize], values: &[f32]) -> io::Result<()> {
    npy(writer, "<f4", shape, values, |value| value.to_le_bytes())
}

/// A NumPy array of float64 to any writer.
pub fn npy_f64(writer: &mut impl Write, shape: &[usize], values: &[f64]) -> io::Result<()> {
    npy(writer, "<f8", shape, values, |value| value.to_le_bytes())
}

/// A NumPy array of int64 to any writer.
pub fn npy_i64(writer: &mut impl Write, shape: &[usize], values: &[i64]) -> io::Result<()> {
    npy(writer, "<i8", shape, values, |value| value.to_le_bytes())
}

fn npy<T: Copy, const N: usize>(
    writer: &mut impl Write,
    descr: &str,
    shape: &[usize],
    values: &[T],
    encode: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    if shape.iter().try_fold(1, |product: usize, &axis| product.checked_mul(axis)) != Some(values.len()) {
        let what = format!("{} numbers do not fill an array of shape {shape:?}", values.len());
        return Err(Error::run(what, "writing an array", "report this as a bug").into());
    }
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    // One axis keeps its comma, more do without the last: both are Python tuples.
    let axes = if shape.len() == 1 { axes.trim_end() } else { axes.trim_end_matches(", ") };
    let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    // Spaces and a line end bring the numbers to a multiple of 64 bytes, as NumPy does.
    let text_len = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    let length = u16::try_from(text_len)
        .map_err(|_| Error::run("the array has too many axes", "writing an array", "report this as a bug"))?;
    writer.write_all(b"\x93NUMPY\x01\x00")?;
    writer.write_all(&length.to_le_bytes())?;
    writeln!(writer, "{dictionary:<width$}", width = text_len - 1)?;
    values.iter().try_for_each(|&value| writer.write_all(&encode(value)))
}

/// How the samples of a recording are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WavForm {
    /// 16-bit integers
    I16,
    /// 24-bit integers
    I24,
    /// 32-bit floats
    #[default]
    F32,
}

impl WavForm {
    fn bits(self) -> u16 {
        match self {
            Self::I16 => 16,
            Self::I24 => 24,
            Self::F32 => 32,
        }
    }

    /// How many of these samples are beyond the largest number, and are cut to it.
    pub fn clipped(self, samples: &[f32]) -> usize {
        match self {
            Self::F32 => 0,
            _ => samples.iter().filter(|sample| sample.abs() > 1.0).count(),
        }
    }
}

/// Writes a recording of 32-bit floats, `samples` interleaved by channel.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("tone.wav");
/// use spikelet_trainer::data::{Points, write_wav};
/// write_wav(&path, 8000, 2, &[0.5, -0.5, 0.25, -0.25]).unwrap();
/// let data = Points::read(&path).unwrap();
/// assert_eq!((data.points, data.dims, data.rate), (2, 2, Some(8000)));
/// assert_eq!(data.values, [0.5, -0.5, 0.25, -0.25]);
/// ```
pub fn write_wav(path: impl AsRef<Path>, rate: u32, channels: usize, samples: &[f32]) -> Result<()> {
    let path = path.as_ref();
    check_wav(path, rate, channels, samples.len())?;
    write_atomically(path, |writer| wav(writer, rate, channels, samples, WavForm::F32))
}

/// Refuses what a recording cannot be.
pub fn check_wav(path: &Path, rate: u32, channels: usize, samples: usize) -> Result<()> {
    let refuse =
        |what: &str| Err(Error::run(what, path.display(), "write fewer channels or a shorter recording"));
    // The format counts in 16 and 32 bits; 100 bytes are more than any header takes.
    let frame = channels.checked_mul(4).and_then(|bytes| u16::try_from(bytes).ok());
    if !frame.is_some_and(|bytes| bytes > 0 && u32::from(bytes).checked_mul(rate).is_some()) {
        return refuse(&format!("a recording cannot have {channels} channels at {rate} Hz"));
    }
    if rate == 0 || !samples.is_multiple_of(channels) {
        return refuse(&format!("{samples} samples are no recording of {channels} channels at {rate} Hz"));
    }
    if samples as u64 * 4 > u64::from(u32::MAX) - 100 {
        return refuse("the recording is longer than a WAV file can be (4 GiB)");
    }
    Ok(())
}

/// The recording itself, checked before. Integers are rounded, and cut at both ends of their range.
pub fn wav(
    writer: &mut Writer,
    rate: u32,
    channels: usize,
    samples: &[f32],
    form: WavForm,
) -> io::Result<()> {
    if form != WavForm::F32 {
        return integers(writer, rate, channels, samples, form);
    }
    let spec = WavSpec {
        channels: channels as u16,
        sample_rate: rate,
        bits_per_sample: 32,
        sample_format: SampleFormat::Float,
    };
    let fail = |error| match error {
        hound::Error::IoError(cause) => cause,
        other => io::Error::other(other),
    };
    let mut wav = WavWriter::new(writer, spec).map_err(fail)?;
    for &sample in samples {
        wav.write_sample(sample).map_err(fail)?;
    }
    wav.finalize().map_err(fail)
}

/// With the plain header of 44 bytes that every program reads, also those on devices; `hound` writes a longer one for more
/// than two channels.
fn integers(
    writer: &mut Writer,
    rate: u32,
    channels: usize,
    samples: &[f32],
    form: WavForm,
) -> io::Result<()> {
    let bytes = form.bits() / 8;
    let frame = channels as u16 * bytes;
    let data = samples.len() as u32 * u32::from(bytes);
    let padding = data % 2;
    writer.write_all(b"RIFF")?;
    writer.write_all(&(36 + data + padding).to_le_bytes())?;
    writer.write_all(b"WAVEfmt \x10\0\0\0\x01\0")?;
    writer.write_all(&(channels as u16).to_le_bytes())?;
    writer.write_all(&rate.to_le_bytes())?;
    writer.write_all(&(rate * u32::from(frame)).to_le_bytes())?;
    writer.write_all(&frame.to_le_bytes())?;
    writer.write_all(&form.bits().to_le_bytes())?;
    writer.write_all(b"data")?;
    writer.write_all(&data.to_le_bytes())?;
    let full = f64::from(1u32 << (form.bits() - 1));
    for &sample in samples {
        let integer = (f64::from(sample) * full).round().clamp(-full, full - 1.0) as i32;
        writer.write_all(&integer.to_le_bytes()[..usize::from(bytes)])?;
    }
    writer.write_all(&[0][..padding as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_numpy() {
        for (shape, count, text) in [
            (&[][..], 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"),
            (&[2], 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
            (&[1, 2], 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }"),
            (&[0, 3], 0, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }"),
        ] {
            let mut bytes = Vec::new();
            npy_f64(&mut bytes, shape, &vec![1.0; count]).unwrap();
            assert_eq!(bytes.len(), 128 + 8 * count);
            assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
            assert_eq!(std::str::from_utf8(&bytes[10..127]).unwrap().trim_end(), text);
            assert_eq!(bytes[127], b'\n');
        }
    }

    #[test]
    fn a_shape_that_does_not_fit_is_refused() {
        for shape in [&[3][..], &[], &[2, 2], &[usize::MAX, usize::MAX]] {
            assert!(npy_i64(&mut Vec::new(), shape, &[1, 2]).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn recordings_of_integers_come_back_rounded() {
        let folder = tempfile::tempdir().unwrap();
        let samples = [0.0, 0.5, -0.25, 1.0, -1.0, 2.0, -2.0, 1e-6];
        for (form, step, channels) in [(WavForm::I16, 2f64.powi(-15), 4), (WavForm::I24, 2f64.powi(-23), 1)] {
            let path = folder.path().join("x.wav");
            write_atomically(&path, |writer| wav(writer, 8000, channels, &samples, form)).unwrap();
            let back = crate::data::Points::read(&path).unwrap();
            assert_eq!((back.points, back.dims), (8 / channels, channels));
            // Others read it too.
            assert_eq!(hound::WavReader::open(&path).unwrap().spec().bits_per_sample, form.bits());
            for (found, sample) in back.values.iter().zip(samples) {
                let cut = f64::from(sample).clamp(-1.0, 1.0 - step);
                assert!((found - cut).abs() <= 0.5 * step, "{form:?}: {found} {sample}");
            }
            assert_eq!((form.clipped(&samples), WavForm::F32.clipped(&samples)), (2, 0));
        }
    }

    #[test]
    fn impossible_recordings_are_refused() {
        let path = Path::new("never-written.wav");
        for (rate, channels, count) in
            [(0, 1, 1), (8000, 0, 0), (8000, 2, 3), (8000, usize::MAX, 0), (u32::MAX, 16, 0), (1, 16384, 0)]
        {
            let error = write_wav(path, rate, channels, &vec![0.0; count]).unwrap_err();
            assert_eq!(error.exit_code(), 1, "{error}");
        }
        assert!(!path.exists());
    }
}
