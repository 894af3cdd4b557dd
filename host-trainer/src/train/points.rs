//! Where an E-step gets its points from: memory, or files that may be larger than it.

use crate::data::Source;
use crate::{Error, Result};
use std::path::PathBuf;

/// Numbers that are kept in memory at once, at most (512 MiB); more is read anew in every iteration.
const IN_MEMORY: usize = 1 << 26;

/// Points to learn from, read a piece at a time.
#[derive(Debug)]
pub struct Points {
    dims: usize,
    points: usize,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Memory(Vec<f64>),
    Files(Vec<Source>),
}

impl Points {
    /// Points that are in memory, `dims` numbers each.
    pub fn new(values: Vec<f64>, dims: usize) -> Self {
        Self { dims, points: values.len() / dims.max(1), held: Held::Memory(values) }
    }

    /// All points of all files, which must have as many dimensions as each other.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let sources = paths.iter().map(Source::open).collect::<Result<Vec<_>>>()?;
        let Some(first) = sources.first() else {
            return Err(Error::input("no data", "DATA", "name at least one file"));
        };
        let dims = first.dims();
        if let Some(other) = sources.iter().find(|source| source.dims() != dims) {
            let what = format!("{} dimensions here, {dims} in {}", other.dims(), first.path().display());
            let advice = "train on files that have the same dimensions";
            return Err(Error::input(what, other.path().display(), advice));
        }
        let points = sources.iter().map(Source::points).sum();
        let mut all = Self { dims, points, held: Held::Files(sources) };
        if points.saturating_mul(dims) <= IN_MEMORY {
            let mut values = Vec::new();
            all.read(0, points, &mut values)?;
            all.held = Held::Memory(values);
        }
        Ok(all)
    }

    /// D.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// N.
    pub fn len(&self) -> usize {
        self.points
    }

    /// Whether there is nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// Replaces `piece` by up to `count` points from `start` on; says how many there were.
    pub fn read(&mut self, start: usize, count: usize, piece: &mut Vec<f64>) -> Result<usize> {
        piece.clear();
        let count = count.min(self.points.saturating_sub(start));
        match &mut self.held {
            Held::Memory(values) => {
                piece.extend_from_slice(&values[start * self.dims..][..count * self.dims]);
            }
            Held::Files(sources) => {
                let (mut skip, mut part) = (start, Vec::new());
                for source in sources {
                    let missing = count - piece.len() / self.dims;
                    if missing == 0 {
                        break;
                    }
                    if skip < source.points() {
                        source.read_chunk(skip, missing, &mut part)?;
                        piece.extend_from_slice(&part);
                    }
                    skip = skip.saturating_sub(source.points());
                }
            }
        }
        Ok(piece.len() / self.dims)
    }

    /// Mean and covariance (D x D) of all points, in one pass over pieces.
    pub fn covariance(&mut self) -> Result<(Vec<f64>, Vec<f64>)> {
        let d = self.dims;
        let (mut mean, mut second) = (vec![0.0; d], vec![0.0; d * d]);
        let (mut start, mut piece) = (0, Vec::new());
        while self.read(start, 4096, &mut piece)? > 0 {
            for y in piece.chunks_exact(d) {
                for (i, a) in y.iter().enumerate() {
                    mean[i] += a;
                    second[i * d..][..=i].iter_mut().zip(y).for_each(|(sum, b)| *sum += a * b);
                }
            }
            start += piece.len() / d;
        }
        let n = self.points as f64;
        mean.iter_mut().for_each(|m| *m /= n);
        let entry = |i: usize, j: usize| second[i.max(j) * d + i.min(j)] / n - mean[i] * mean[j];
        let covariance = (0..d * d).map(|e| entry(e / d, e % d)).collect();
        Ok((mean, covariance))
    }
}
