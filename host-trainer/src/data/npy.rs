//! Reads NumPy array files (`.npy`, versions 1 to 3) row by row.
//!
//! Own code, because the crates for it neither read a part of an array nor convert between number formats. The file is:
//! `\x93NUMPY`, two version bytes, the length of the header (2 bytes in version 1, else 4, little-endian), the header
//! (a Python dictionary, see [`header`]), the numbers. Bytes after the numbers are ignored, as NumPy does.
//!
//! Fails when the header is not one, promises more than the file holds, or describes numbers that are not real numbers
//! (complex, text, objects, records).

mod header;

use std::io::{self, Read};
use std::path::Path;

use super::scalar::Scalar;
use super::section::{Bytes, Section};
use super::sheet::{Kind, Sheet};
use super::{npz, open_file, reserve};
use crate::error::{Error, Result};
use header::Header;

/// NumPy itself refuses longer headers than 10 000 bytes, and those of plain arrays have 118.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// Parameters: an array of 0 (one number), 1 or 2 axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Length of every axis; empty for one number.
    pub shape: Vec<usize>,
    /// The numbers, all finite, last axis fastest.
    pub values: Vec<f64>,
}

/// Reads an array of parameters whole.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("w.npy");
/// use spikelet_trainer::data::{read_array, write_npy_f64};
/// write_npy_f64(&path, &[2, 1], &[0.5, -2.0]).unwrap();
/// let w = read_array(&path).unwrap();
/// assert_eq!((w.shape, w.values), (vec![2, 1], vec![0.5, -2.0]));
/// ```
pub fn read_array(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    let mut npy = Npy::open(path)?;
    // A vector is one row here, whose order does not matter.
    let (rows, columns) = match npy.shape[..] {
        [] => (1, 1),
        [columns] => (1, columns),
        [rows, columns] => (rows, columns),
        _ => return Err(too_many_axes(path, &npy.shape, "0 to 2")),
    };
    let mut values = Vec::new();
    if rows > 0 && columns > 0 {
        reserve(&mut values, rows * columns, path)?;
        npy.read_rows(0, rows, rows, columns, &mut values).map_err(|cause| Error::reading(path, &cause))?;
    }
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let place = match npy.shape[..] {
            [] => path.display().to_string(),
            [_] => format!("{}, entry {at} (counted from 0)", path.display()),
            _ => {
                format!("{}, row {}, column {} (counted from 0)", path.display(), at / columns, at % columns)
            }
        };
        return Err(Error::input(
            format_args!("{} is not a finite number", values[at]),
            place,
            "remove or replace it",
        ));
    }
    Ok(Array { shape: npy.shape, values })
}

/// Reads pixels whole: rows x columns, or rows x columns x colours.
pub(super) fn read_picture(path: &Path) -> Result<Sheet> {
    let mut npy = Npy::open(path)?;
    let (height, width, colours) = match npy.shape[..] {
        [height, width] => (height, width, 1),
        [height, width, colours] if !npy.fortran_order => (height, width, colours),
        [_, _, _] => {
            let advice = "save numpy.ascontiguousarray of it";
            return Err(Error::input("a picture with colours must be in C order", path.display(), advice));
        }
        _ => return Err(too_many_axes(path, &npy.shape, "2 or 3")),
    };
    if height == 0 || width == 0 || colours == 0 {
        let place = format!("{}, shape {}", path.display(), shape_text(&npy.shape));
        return Err(Error::input("the array holds no pixels", place, "check how it was made"));
    }
    let mut values = Vec::new();
    reserve(&mut values, height * width * colours, path)?;
    npy.read_rows(0, height, height, width * colours, &mut values)
        .map_err(|cause| Error::reading(path, &cause))?;
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let (row, column) = (at / (width * colours), at / colours % width);
        let place = format!("{}, row {row}, column {column} (counted from 0)", path.display());
        let what = format!("{} is not a finite number", values[at]);
        return Err(Error::input(what, place, "remove or replace it"));
    }
    let plane = |colour: usize| values.iter().skip(colour).step_by(colours).copied().collect();
    let kind = Kind::Array { colours: npy.shape.len() == 3 };
    Ok(Sheet { kind, width, height, planes: (0..colours).map(plane).collect() })
}

/// An array file whose header is checked against its length.
#[derive(Debug)]
pub(super) struct Npy {
    shape: Vec<usize>,
    fortran_order: bool,
    section: Section,
}

impl Npy {
    pub fn open(path: &Path) -> Result<Self> {
        let (mut file, base, len) = match npz::split(path) {
            Some((archive, name)) => npz::open(&archive, name.as_deref())?,
            None => open_file(path).map(|(file, len)| (Bytes::File(file), 0, len))?,
        };
        let damaged = |what: &str| Error::input(what, path.display(), "save it again with numpy.save");
        let cut = |cause: io::Error| match cause.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the array file ends within its header"),
            _ => Error::reading(path, &cause),
        };
        let mut start = [0; 8];
        file.read_exact(&mut start).map_err(cut)?;
        if start[..6] != *b"\x93NUMPY" {
            return Err(damaged("this is not a NumPy array file"));
        }
        let (text_len, text_at) = match start[6] {
            1 => {
                let mut bytes = [0; 2];
                file.read_exact(&mut bytes).map_err(cut)?;
                (usize::from(u16::from_le_bytes(bytes)), 10)
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                file.read_exact(&mut bytes).map_err(cut)?;
                (usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX), 12)
            }
            _ => return Err(damaged(&format!("version {} of NumPy array files is not known", start[6]))),
        };
        if text_len > MAX_HEADER_BYTES {
            return Err(damaged("the header of the array file is too long"));
        }
        let mut text = vec![0; text_len];
        file.read_exact(&mut text).map_err(cut)?;
        let Header { descr, fortran_order, shape } = header::parse(&text)
            .map_err(|what| damaged(&format!("the header of the array file is damaged ({what})")))?;
        let (scalar, big_endian) = number_format(&descr).map_err(|what| {
            Error::input(what, path.display(), "save real numbers, for example with .astype('float32')")
        })?;

        let numbers_at = text_at + text_len as u64;
        let held = len.saturating_sub(numbers_at);
        // An axis of length 0 must not hide a product that overflows.
        let promised = shape.iter().try_fold(scalar.size(), |bytes, &axis| bytes.checked_mul(axis.max(1)));
        match promised {
            _ if shape.contains(&0) => {}
            Some(bytes) if bytes as u64 <= held => {}
            _ => {
                return Err(damaged(&format!(
                    "the header promises an array of shape {} but the file holds {held} bytes of numbers",
                    shape_text(&shape)
                )));
            }
        }
        if promised.is_none() {
            return Err(damaged("the shape of the array is too large"));
        }
        Ok(Self {
            shape,
            fortran_order,
            section: Section { bytes: file, offset: base + numbers_at, scalar, big_endian },
        })
    }

    /// The shape as points: a vector holds points of one dimension.
    pub fn points_and_dims(&self, path: &Path) -> Result<(usize, usize)> {
        let (points, dims) = match self.shape[..] {
            [points] => (points, 1),
            [points, dims] => (points, dims),
            [] => {
                return Err(Error::input(
                    "the array is a single number",
                    path.display(),
                    "save it as points x dimensions",
                ));
            }
            _ => return Err(too_many_axes(path, &self.shape, "1 or 2")),
        };
        if points == 0 || dims == 0 {
            let what =
                if points == 0 { "the array holds no points" } else { "the points have no dimensions" };
            let place = format!("{}, shape {}", path.display(), shape_text(&self.shape));
            return Err(Error::input(what, place, "check how it was made"));
        }
        Ok((points, dims))
    }

    /// Appends rows `start..start + count` of the `rows` x `columns` numbers to `out`.
    pub fn read_rows(
        &mut self,
        start: usize,
        count: usize,
        rows: usize,
        columns: usize,
        out: &mut Vec<f64>,
    ) -> io::Result<()> {
        if !self.fortran_order || rows == 1 || columns == 1 {
            return self.section.read((start * columns) as u64, count * columns, |value| out.push(value));
        }
        // Column after column in the file: gather the piece of each that belongs to the rows.
        let base = out.len();
        out.resize(base + count * columns, 0.0);
        for column in 0..columns {
            let mut at = base + column;
            self.section.read((column * rows + start) as u64, count, |value| {
                out[at] = value;
                at += columns;
            })?;
        }
        Ok(())
    }
}

/// NumPy's name of a number format, such as `<f4`: byte order, kind, bytes.
fn number_format(descr: &str) -> Result<(Scalar, bool), String> {
    let (order, name) = match descr.as_bytes().first() {
        Some(b'<' | b'>' | b'|' | b'=') => descr.split_at(1),
        _ => ("=", descr),
    };
    let big_endian = order == ">" || (order == "=" && cfg!(target_endian = "big"));
    let scalar = match name {
        "b1" | "?" => Scalar::Bool,
        "i1" => Scalar::I8,
        "i2" => Scalar::I16,
        "i4" => Scalar::I32,
        "i8" => Scalar::I64,
        "u1" => Scalar::U8,
        "u2" => Scalar::U16,
        "u4" => Scalar::U32,
        "u8" => Scalar::U64,
        "f2" => Scalar::F16,
        "f4" => Scalar::F32,
        "f8" => Scalar::F64,
        _ => {
            let kind = match name.as_bytes().first() {
                Some(b'c') => "complex numbers",
                Some(b'O') => "Python objects",
                Some(b'S' | b'U' | b'a') => "text",
                Some(b'V') => "records",
                Some(b'M' | b'm') => "dates or times",
                Some(b'f') => "floats of an unusual width",
                _ => "something else than numbers",
            };
            let short: String = descr.chars().take(20).collect();
            return Err(format!("the array holds {kind} ('{short}')"));
        }
    };
    Ok((scalar, big_endian))
}

fn too_many_axes(path: &Path, shape: &[usize], allowed: &str) -> Error {
    let what = format!("the array has {} axes instead of {allowed}", shape.len());
    let place = format!("{}, shape {}", path.display(), shape_text(shape));
    Error::input(what, place, "reshape it and save it again")
}

/// As Python writes it, for messages; a hostile header may have thousands of axes.
fn shape_text(shape: &[usize]) -> String {
    let mut axes: Vec<_> = shape.iter().take(8).map(usize::to_string).collect();
    if shape.len() > 8 {
        axes.push("...".into());
    }
    let comma = if shape.len() == 1 { "," } else { "" };
    format!("({}{comma})", axes.join(", "))
}
