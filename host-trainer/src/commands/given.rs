//! Parameters from the command line: a number, or an array file whose shape says what it is.
//!
//! In comes `0.1` or `sigma2.npy`, out goes a vector or covariance of the size that W asks for. Axes of length 1 do
//! not count, so that the rows and columns of other programs are vectors too. Fails on any other shape, naming those
//! that would do.

use crate::data::{is_archive, read_array};
use crate::{Error, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The value of a flag such as `--sigma2`.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Number(f64),
    File(PathBuf),
}

impl From<OsString> for Given {
    fn from(text: OsString) -> Self {
        match text.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => Self::Number(number),
            None => Self::File(text.into()),
        }
    }
}

/// A covariance matrix, as far as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Covariance {
    /// One variance for all.
    Shared(f64),
    /// One variance for each.
    Diagonal(Vec<f64>),
    /// Row-major.
    Full(Vec<f64>),
}

/// Whether the name is that of an array file.
fn is_array(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "npy") || is_archive(path)
}

/// A matrix of two axes, neither of them empty: rows, columns, numbers.
pub(super) fn matrix(path: &Path) -> Result<(usize, usize, Vec<f64>)> {
    let array = read_array(path)?;
    match array.shape[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns, array.values)),
        _ => {
            let what = format!("an array of shape {} is no dictionary", text(&array.shape));
            let advice = "save W as dimensions x latents, one column per latent, at least one of each";
            Err(Error::input(what, path.display(), advice))
        }
    }
}

impl Given {
    /// One number for all, or one for each of `len`.
    pub fn vector(&self, len: usize) -> Result<Vec<f64>> {
        match self.numbers()? {
            (shape, values) if shape.is_empty() => Ok(vec![values[0]; len]),
            (shape, values) if shape == [len] => Ok(values),
            (shape, _) => Err(self.misfit(&shape, &format!("one number, or {len} (one per latent)"))),
        }
    }

    /// One variance for each dimension and component; `None` for other shapes, also for D x D, which is a covariance.
    pub fn components(&self, dims: usize, latents: usize) -> Option<Vec<f64>> {
        let (shape, values) = self.numbers().ok()?;
        (shape == [dims, latents] && dims != latents).then_some(values)
    }

    /// One variance for all, one for each of the `len` dimensions or latents (`each`), or a whole matrix.
    pub fn covariance(&self, len: usize, each: &str) -> Result<Covariance> {
        match self.numbers()? {
            (shape, values) if shape.is_empty() => Ok(Covariance::Shared(values[0])),
            (shape, values) if shape == [len] => Ok(Covariance::Diagonal(values)),
            (shape, values) if shape == [len, len] => Ok(Covariance::Full(values)),
            (shape, _) => {
                let wanted = format!("one number, {len} (one per {each}), or a {len} x {len} matrix");
                Err(self.misfit(&shape, &wanted))
            }
        }
    }

    /// Shape without axes of length 1, and the numbers.
    fn numbers(&self) -> Result<(Vec<usize>, Vec<f64>)> {
        match self {
            Self::Number(number) => Ok((Vec::new(), vec![*number])),
            Self::File(path) if !path.exists() && !is_array(path) => {
                let advice = "give a number such as 0.1, or the name of a .npy file";
                Err(Error::input("this is neither a number nor a file", path.display(), advice))
            }
            Self::File(path) => {
                let array = read_array(path)?;
                Ok((array.shape.into_iter().filter(|&axis| axis != 1).collect(), array.values))
            }
        }
    }

    fn misfit(&self, shape: &[usize], wanted: &str) -> Error {
        let place = match self {
            Self::Number(number) => number.to_string(),
            Self::File(path) => path.display().to_string(),
        };
        Error::input(
            format_args!("the shape {} does not fit W", text(shape)),
            place,
            format_args!("give {wanted}"),
        )
    }
}

fn text(shape: &[usize]) -> String {
    let axes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("({})", axes.join(" x "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::write_npy_f64;

    #[test]
    fn the_shape_decides() {
        let folder = tempfile::tempdir().unwrap();
        let given = |shape: &[usize]| {
            let path = folder.path().join("a.npy");
            write_npy_f64(&path, shape, &vec![2.0; shape.iter().product()]).unwrap();
            Given::from(path.into_os_string())
        };
        for shape in [&[][..], &[1], &[1, 1]] {
            assert_eq!(given(shape).covariance(3, "latent").unwrap(), Covariance::Shared(2.0));
            assert_eq!(given(shape).covariance(1, "latent").unwrap(), Covariance::Shared(2.0));
            assert_eq!(given(shape).vector(2).unwrap(), [2.0; 2]);
        }
        for shape in [&[3][..], &[1, 3], &[3, 1]] {
            assert_eq!(given(shape).covariance(3, "latent").unwrap(), Covariance::Diagonal(vec![2.0; 3]));
            assert_eq!(given(shape).vector(3).unwrap(), [2.0; 3]);
        }
        assert_eq!(given(&[2, 2]).covariance(2, "latent").unwrap(), Covariance::Full(vec![2.0; 4]));
        for shape in [&[0][..], &[2], &[4], &[2, 3], &[3, 2], &[9]] {
            let error = given(shape).covariance(3, "latent").unwrap_err().to_string();
            assert!(error.contains("give one number, 3 (one per latent), or a 3 x 3 matrix"), "{error}");
            assert!(given(shape).vector(3).is_err());
        }
        assert!(given(&[3, 3]).vector(3).is_err());
    }
}
