//! Points that are held out: some blocks of neighbours for one purpose, the others for another.
//!
//! Neighbours of a recording are alike. So whole blocks are held out, drawn at random, as long as there are enough of them to
//! stand for the rest.

use super::{Held, Points};
use crate::{Error, Result};
use spikelet::rng::Rng;
use std::sync::Arc;

/// Neighbours in a block, at most.
const LONGEST: usize = 256;

/// Blocks there are at least, as far as there are so many points.
const FEWEST: usize = 200;

/// Some of the points, by blocks.
#[derive(Clone, Debug)]
pub(super) struct Subset {
    /// Points in a block; only the last of all may be shorter.
    length: usize,
    /// Ascending.
    blocks: Vec<usize>,
}

impl Subset {
    /// Where `count` of these points from number `start` on are among all points: first and count of each stretch.
    pub fn ranges(&self, start: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
        let (mut next, end) = (start, start + count);
        std::iter::from_fn(move || {
            let (block, within) = (next / self.length, next % self.length);
            let first = self.blocks.get(block).filter(|_| next < end)? * self.length + within;
            let stretch = (self.length - within).min(end - next);
            next += stretch;
            Some((first, stretch))
        })
    }

    fn len(&self, points: usize) -> usize {
        self.blocks.iter().map(|block| self.length.min(points - block * self.length)).sum()
    }
}

impl Points {
    /// Takes a part of the points away, to be had from [`Points::held_out`]. Done once only; 0 takes none.
    pub fn hold_out(&mut self, part: f64, seed: u64) -> Result<()> {
        if part == 0.0 || self.held_out.is_some() {
            return Ok(());
        }
        let n = self.len();
        let (held_out, kept) = split(n, part, seed);
        if held_out.blocks.is_empty() || kept.blocks.is_empty() {
            let what =
                format!("{n} points cannot be divided so that some are held out and some are learned from");
            return Err(Error::input(what, "--holdout", "give more data, or leave it out"));
        }
        let mut others = match &mut self.held {
            Held::Memory(values) => {
                let d = self.dims;
                let pick = |subset: &Subset| -> Vec<f64> {
                    let ranges = subset.ranges(0, subset.len(n));
                    ranges.flat_map(|(first, count)| &values[first * d..][..count * d]).copied().collect()
                };
                let others = Points::new(pick(&held_out), d);
                *values = pick(&kept);
                others
            }
            Held::Files(sources) => {
                let held = Held::Files(Arc::clone(sources));
                let others = Points::held_in(held, self.dims, held_out.len(n));
                self.subset = Some(Arc::new(kept.clone()));
                Points { subset: Some(Arc::new(held_out)), whitening: self.whitening.clone(), ..others }
            }
        };
        others.rate = self.rate;
        others.share(&self.cluster);
        self.points = kept.len(n);
        self.moments = None;
        self.held_out = Some(Box::new(others));
        Ok(())
    }

    /// The points that are held out, if any are.
    pub fn held_out(&mut self) -> Option<&mut Points> {
        self.held_out.as_deref_mut()
    }
}

/// Blocks that are held out, and the others.
fn split(points: usize, part: f64, seed: u64) -> (Subset, Subset) {
    let length = (points / FEWEST).clamp(1, LONGEST);
    let mut blocks: Vec<usize> = (0..points.div_ceil(length)).collect();
    let mut rng = Rng::new(seed ^ 0x6865_6c64_206f_7574);
    for i in (1..blocks.len()).rev() {
        let j = (rng.uniform::<f64>() * (i + 1) as f64) as usize;
        blocks.swap(i, j.min(i));
    }
    let mut kept = blocks.split_off((part * blocks.len() as f64).round() as usize);
    blocks.sort_unstable();
    kept.sort_unstable();
    (Subset { length, blocks }, Subset { length, blocks: kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_on_one_side_in_memory_and_in_files() {
        let folder = tempfile::tempdir().unwrap();
        for count in [2, 7, 999, 5003] {
            let values: Vec<f64> = (0..2 * count).map(|i| i as f64).collect();
            let path = folder.path().join("y.npy");
            crate::data::write_npy_f64(&path, &[count, 2], &values).unwrap();
            let mut memory = Points::new(values.clone(), 2);
            let mut files = Points::open_within(&[path], 0).unwrap();
            let mut read = Vec::new();
            for points in [&mut memory, &mut files] {
                points.hold_out(0.3, 5).unwrap();
                points.hold_out(0.3, 5).unwrap();
                let mut all = Vec::new();
                let mut others = Vec::new();
                let n = points.len();
                assert_eq!(points.read(0, count, &mut all).unwrap(), n);
                let held_out = points.held_out().unwrap();
                let held = held_out.len();
                assert_eq!(held_out.read(0, count, &mut others).unwrap(), held);
                assert_eq!(n + held, count);
                assert!((held as f64 / count as f64 - 0.3).abs() < 0.21, "{held} of {count}");
                // Piece by piece the same.
                let (mut pieces, mut piece) = (Vec::new(), Vec::new());
                let mut at = 0;
                while points.read(at, 3, &mut piece).unwrap() > 0 {
                    pieces.extend_from_slice(&piece);
                    at += 3;
                }
                assert_eq!(pieces, all);
                let mut together = [all.clone(), others.clone()].concat();
                together.sort_by(f64::total_cmp);
                assert_eq!(together, values);
                read.push((all, others));
            }
            assert_eq!(read[0], read[1]);
        }
    }

    #[test]
    fn too_few_points_cannot_be_divided() {
        assert!(Points::new(vec![1.0; 3], 1).hold_out(0.01, 1).is_err());
        assert!(Points::new(vec![1.0], 1).hold_out(0.5, 1).is_err());
        assert!(Points::new(vec![1.0], 1).hold_out(0.0, 1).is_ok());
    }
}
