//! Pictures and recordings as planes of numbers, from which overlapping pieces are cut.
//!
//! A plane is one colour of a picture or one channel of a recording, which is a picture of one row.

use super::{Source, picture, write_npy_f32, write_wav};
use crate::error::{Error, Result};
use crate::files::{ending, write_atomically};
use spikelet::frame::Form;
use std::path::Path;

/// What a sheet was read from, as far as writing needs it.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A picture file.
    Picture {
        /// 16 bits a pixel, else 8.
        fine: bool,
        /// How opaque each pixel is.
        opacity: Option<Vec<f64>>,
    },
    /// A recording, so many samples per second.
    Recording(u32),
    /// An array of pixels, of any range: rows x columns, or rows x columns x colours if this is set.
    Array {
        /// Whether there is an axis of colours.
        colours: bool,
    },
}

/// Planes of numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What it was read from.
    pub kind: Kind,
    /// Columns: pixels of a row, or samples.
    pub width: usize,
    /// Rows; 1 for a recording.
    pub height: usize,
    /// Colours or channels.
    pub planes: Vec<Vec<f64>>,
}

impl Sheet {
    /// Reads a picture or a recording whole, as this form of points needs it.
    pub fn read(path: impl AsRef<Path>, form: Form) -> Result<Self> {
        let path = path.as_ref();
        match (form, super::ending_of_data(path).as_deref()) {
            (Form::Patches { .. }, Some("png")) => picture::read(path),
            (Form::Patches { .. }, Some("npy")) => super::npy::read_picture(path),
            (Form::Windows { .. }, Some("wav" | "wave")) => Self::recording(path),
            (Form::Patches { .. }, _) => {
                Err(Error::input("this is no picture", path.display(), "give a .png, or pixels as .npy"))
            }
            _ => Err(Error::input("this is no recording", path.display(), "give a .wav")),
        }
    }

    /// Rows, columns and planes.
    pub fn size(&self) -> Vec<usize> {
        vec![self.height, self.width, self.planes.len()]
    }

    /// Mean of the squares of all numbers.
    pub fn mean_square(&self) -> f64 {
        mean(self.planes.iter().flatten().map(|value| value * value))
    }

    /// Mean square of the difference to a sheet of the same size.
    pub fn mean_square_error(&self, truth: &Self) -> f64 {
        let pairs = self.planes.iter().flatten().zip(truth.planes.iter().flatten());
        mean(pairs.map(|(a, b)| (a - b).powi(2)))
    }

    fn recording(path: &Path) -> Result<Self> {
        let mut source = Source::open(path)?;
        let (mut values, width) = (Vec::new(), source.points());
        source.read_chunk(0, width, &mut values)?;
        let channels = source.dims();
        let plane = |channel: usize| values.iter().skip(channel).step_by(channels).copied().collect();
        let kind = Kind::Recording(source.rate().unwrap_or(0));
        Ok(Self { kind, width, height: 1, planes: (0..channels).map(plane).collect() })
    }

    /// Refuses a name whose ending says a format that this cannot be written in.
    pub fn check_writable(&self, path: &Path) -> Result<()> {
        let (fits, can) = match (&self.kind, ending(path).as_deref()) {
            (Kind::Recording(_), ending) => {
                (matches!(ending, Some("wav" | "wave")), "a recording can be written as .wav")
            }
            (_, Some("npy")) => (true, ""),
            (_, ending) => (
                ending == Some("png") && matches!(self.planes.len(), 1 | 3),
                "a picture can be written as .npy or, in grey or three colours, as .png",
            ),
        };
        if fits {
            return Ok(());
        }
        Err(Error::input("the result does not fit this kind of file", path.display(), can))
    }

    /// Writes it in the format that the ending of the name says.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check_writable(path)?;
        let mixed = || -> Vec<f32> {
            let at = |i: usize| self.planes[i % self.planes.len()][i / self.planes.len()] as f32;
            (0..self.width * self.height * self.planes.len()).map(at).collect()
        };
        match &self.kind {
            Kind::Recording(rate) => write_wav(path, *rate, self.planes.len(), &mixed()),
            kind if ending(path).as_deref() == Some("npy") => {
                let colours = self.planes.len() > 1 || *kind == Kind::Array { colours: true };
                let shape = [self.height, self.width, self.planes.len()];
                write_npy_f32(path, &shape[..2 + usize::from(colours)], &mixed())
            }
            kind => {
                let (fine, opacity) = match kind {
                    Kind::Picture { fine, opacity } => (*fine, opacity.as_deref()),
                    _ => (false, None),
                };
                write_atomically(path, |writer| picture::write(writer, self, fine, opacity))
            }
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}
