//! Points from files: recordings and tables come in, rows of `f64` go out.
//!
//! A point is one observation, a dimension one of its numbers: N x D in an array file, rows and columns of a table,
//! samples and channels of a recording. The ending of the name says which reader is used:
//!
//! | ending | accepted | one point |
//! |---|---|---|
//! | `.npy` | floats, integers and truth values of any width and byte order, C or Fortran order, 1 or 2 axes | a row |
//! | `.npz` | one such array, or `FILE.npz:NAME` where there are several | a row |
//! | `.csv` | comma, semicolon or tab; with or without a header | a row |
//! | `.wav` | 8, 16, 24, 32-bit integers, 32 and 64-bit floats | a sample of every channel, a window of one, or a bin of all |
//! | `.png` | grey or colour, 1 to 16 bits | a patch of one colour |
//!
//! Windows and patches are [`Pieces`] of a [`Sheet`], cut as a [`Frame`] says; pixels may also come as `.npy`. Bins are those
//! of a lapped transform ([`Spectra`]).
//!
//! [`Source`] reads a piece at a time, so an array or recording may be larger than memory (tables, pictures
//! and recordings cut into windows or transformed are held whole);
//! [`Points`] is the whole of it. Beside the numbers that are asked for, memory holds one block of 96 KiB.
//!
//! Everything a file can have wrong ends here, as an [`Error`] with exit status 2 that names the place: sizes are
//! compared with the length of the file before anything is allocated, and NaN and infinity are refused.

mod npy;
mod npz;
mod picture;
mod pieces;
mod scalar;
mod section;
mod sheet;
mod spectra;
mod table;
mod wav;
mod write;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub use npy::{Array, read_array};
pub use pieces::{Mosaic, Pieces};
pub use sheet::{Kind as SheetKind, Sheet};
pub use spectra::{Spectra, gains, used_bins};
pub use write::{
    WavForm, check_wav, npy_f32, npy_f64, npy_i64, wav, write_npy_f32, write_npy_f64, write_npy_i64,
    write_wav,
};

use crate::error::{Error, Result};
use crate::files::ending;
use npy::Npy;
use spikelet::Blob;
use spikelet::frame::{Form, Frame};
use wav::Wav;

/// All points of a file, in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// `points * dims` finite numbers, one point after the other.
    pub values: Vec<f64>,
    /// How many points there are, at least 1.
    pub points: usize,
    /// How many numbers a point has, at least 1.
    pub dims: usize,
    /// Samples per second, where the file says so.
    pub rate: Option<u32>,
}

impl Points {
    /// Reads a whole file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("points.csv");
    /// std::fs::write(&path, "left,right\n1,2\n3,4.5\n").unwrap();
    /// let data = spikelet_trainer::data::Points::read(&path).unwrap();
    /// assert_eq!((data.points, data.dims), (2, 2));
    /// assert_eq!(data.point(1), [3.0, 4.5]);
    /// ```
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut source = Source::open(path)?;
        let mut values = Vec::new();
        source.read_chunk(0, source.points, &mut values)?;
        Ok(Self { values, points: source.points, dims: source.dims, rate: source.rate })
    }

    /// The numbers of one point. Panics where `index` is not below `points`, like a slice.
    pub fn point(&self, index: usize) -> &[f64] {
        &self.values[index * self.dims..][..self.dims]
    }
}

/// A file of points, open and checked, read a piece at a time.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    points: usize,
    dims: usize,
    rate: Option<u32>,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Npy(Npy),
    Table(Vec<f64>),
    Wav(Wav),
    Pieces(Box<Pieces>),
    Spectra(Box<Spectra>),
}

impl Source {
    /// Opens a file and checks everything but the numbers themselves (a table is read and checked whole).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (points, dims, rate, reader) = match ending_of_data(path).as_deref() {
            Some("npy") => {
                let npy = Npy::open(path)?;
                let (points, dims) = npy.points_and_dims(path)?;
                (points, dims, None, Reader::Npy(npy))
            }
            Some("csv" | "tsv") => {
                let (values, dims) = table::read(path)?;
                (values.len() / dims, dims, None, Reader::Table(values))
            }
            Some("wav" | "wave") => {
                let wav = Wav::open(path)?;
                (wav.points, wav.channels, Some(wav.rate), Reader::Wav(wav))
            }
            Some("png") => {
                open_file(path)?;
                let advice = "use a model of patches: train on a picture, or say --patch 8x8 when it is made";
                return Err(Error::input(
                    "a picture is cut into patches of no known size",
                    path.display(),
                    advice,
                ));
            }
            _ => {
                // A wrong name is the likelier slip than a wrong ending, so it is told first.
                open_file(path)?;
                return Err(Error::input(
                    "the ending of the name is not one of .npy, .npz, .csv, .wav, .png",
                    path.display(),
                    "convert or rename the file",
                ));
            }
        };
        Ok(Self { path: path.to_path_buf(), points, dims, rate, reader })
    }

    /// Opens a file for a model that says how points are made; patches every `step` pixels.
    pub fn for_model(path: impl AsRef<Path>, blob: &Blob<'_>, step: usize) -> Result<Self> {
        let mut source = Self::open_framed(path, blob.frame().as_ref(), step)?;
        source.even_out(blob.gains());
        Ok(source)
    }

    /// Opens a file whose points are made as `frame` says: single samples as by [`Source::open`], pieces of a picture
    /// or recording, patches every `step` pixels, or bins of a transform, not evened out.
    pub fn open_framed(path: impl AsRef<Path>, frame: Option<&Frame>, step: usize) -> Result<Self> {
        let path = path.as_ref();
        let Some(frame) = frame.filter(|frame| frame.form != Form::Samples) else {
            return Self::open(path);
        };
        if let Form::Transform { bins, channels } = frame.form {
            let spectra = Box::new(Spectra::open(path, bins as usize, channels as usize)?);
            let (points, dims, rate) = (spectra.len(), spectra.channels(), Some(spectra.rate()));
            return Ok(Self {
                path: path.to_path_buf(),
                points,
                dims,
                rate,
                reader: Reader::Spectra(spectra),
            });
        }
        let pieces = Box::new(Pieces::open(path, frame, step)?);
        let rate = match pieces.sheet().kind {
            SheetKind::Recording(rate) => Some(rate),
            _ => None,
        };
        let (points, dims) = (pieces.len(), pieces.dims());
        Ok(Self { path: path.to_path_buf(), points, dims, rate, reader: Reader::Pieces(pieces) })
    }

    /// The picture or recording that the points are pieces of, if they are.
    pub fn pieces(&self) -> Option<&Pieces> {
        match &self.reader {
            Reader::Pieces(pieces) => Some(pieces),
            _ => None,
        }
    }

    /// The transform that the points are bins of, if they are.
    pub fn spectra(&self) -> Option<&Spectra> {
        match &self.reader {
            Reader::Spectra(spectra) => Some(spectra),
            _ => None,
        }
    }

    /// Gains for the bins of a transform; nothing changes for other points.
    pub fn even_out(&mut self, gains: &[f32]) {
        if let Reader::Spectra(spectra) = &mut self.reader {
            spectra.even_out(gains);
        }
    }

    /// Only coefficients of the lowest `used` bins of a transform are points; nothing changes for others.
    pub fn leave_out(&mut self, used: usize) {
        if let Reader::Spectra(spectra) = &mut self.reader {
            spectra.leave_out(used);
            self.points = spectra.len();
        }
    }

    /// How many points the file holds, at least 1.
    pub fn points(&self) -> usize {
        self.points
    }

    /// How many numbers a point has, at least 1.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Samples per second, where the file says so.
    pub fn rate(&self) -> Option<u32> {
        self.rate
    }

    /// The file this reads.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content of `chunk` by up to `count` points from point `start` on, one after the other, and says how
    /// many there were: fewer than `count` only at the end, 0 past it. The numbers do not depend on how the file is cut
    /// into chunks.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("points.npy");
    /// use spikelet_trainer::data::{Source, write_npy_f32};
    /// write_npy_f32(&path, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    /// let mut source = Source::open(&path).unwrap();
    /// let mut chunk = Vec::new();
    /// assert_eq!(source.read_chunk(1, 100, &mut chunk).unwrap(), 2);
    /// assert_eq!(chunk, [3.0, 4.0, 5.0, 6.0]);
    /// ```
    pub fn read_chunk(&mut self, start: usize, count: usize, chunk: &mut Vec<f64>) -> Result<usize> {
        chunk.clear();
        let count = count.min(self.points.saturating_sub(start));
        if count == 0 {
            return Ok(0);
        }
        reserve(chunk, count * self.dims, &self.path)?;
        match &mut self.reader {
            Reader::Npy(npy) => npy.read_rows(start, count, self.points, self.dims, chunk),
            Reader::Table(values) => {
                chunk.extend_from_slice(&values[start * self.dims..][..count * self.dims]);
                Ok(())
            }
            Reader::Wav(wav) => wav.read_samples(start, count, chunk),
            Reader::Pieces(pieces) => {
                pieces.read(start, count, chunk);
                Ok(())
            }
            Reader::Spectra(spectra) => {
                spectra.read(start, count, chunk);
                Ok(())
            }
        }
        .map_err(|cause| Error::reading(&self.path, &cause))?;
        match chunk.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let (point, dim, path) = (start + at / self.dims, at % self.dims, self.path.display());
                let place = match self.reader {
                    Reader::Wav(_) => format!("{path}, sample {point} (counted from 0), channel {}", dim + 1),
                    _ => format!("{path}, point {point}, dimension {dim} (counted from 0)"),
                };
                let what = format!("{} is not a finite number", chunk[at]);
                Err(Error::input(what, place, "remove or replace it"))
            }
            None => Ok(count),
        }
    }
}

/// The file that holds an array: that of `FILE.npz:NAME` is FILE.npz.
pub fn file_of(path: &Path) -> PathBuf {
    npz::split(path).map_or_else(|| path.to_path_buf(), |(archive, _)| archive)
}

/// Whether this is an archive of arrays, or an array in one.
pub fn is_archive(path: &Path) -> bool {
    npz::split(path).is_some()
}

/// The ending that says how a file is read: an archive is read like the array in it.
fn ending_of_data(path: &Path) -> Option<String> {
    if is_archive(path) { Some("npy".into()) } else { ending(path) }
}

/// A file to read from and its length in bytes. Folders, devices and pipes are refused: they have no length to check
/// sizes against, and opening a pipe may wait for ever.
fn open_file(path: &Path) -> Result<(File, u64)> {
    let fail = |cause| Error::reading(path, &cause);
    let metadata = fs::metadata(path).map_err(fail)?;
    if metadata.is_dir() {
        return Err(Error::input("this is a folder, not a file", path.display(), "name a file in it"));
    }
    if !metadata.is_file() {
        return Err(Error::input(
            "this is not a regular file",
            path.display(),
            "write the data to a file first",
        ));
    }
    if metadata.len() == 0 {
        return Err(Error::input("the file is empty", path.display(), "check how it was made"));
    }
    Ok((File::open(path).map_err(fail)?, metadata.len()))
}

/// Room for `count` more numbers, or an error instead of the end of the process.
fn reserve<T>(values: &mut Vec<T>, count: usize, path: &Path) -> Result<()> {
    values.try_reserve_exact(count).map_err(|_| {
        Error::run(
            format_args!("there is not enough memory for {count} numbers"),
            path.display(),
            "split the file or use a machine with more memory",
        )
    })
}
