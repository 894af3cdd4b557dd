//! Points in an order of their own, by runs of neighbours, so that files are read in pieces.

use super::{Held, Points};
use crate::prepare::Holes;
use std::sync::Arc;

/// Neighbours in a run of few points, and of many; points from which on runs grow. A batch of some thousand points still is of many runs.
const SHORTEST: usize = 8;
const LONGEST: usize = 64;
const MANY: usize = 1 << 21;

/// Some runs of points, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Points in a run.
    length: usize,
    /// How many points the runs are of: the last of all runs may be shorter.
    points: usize,
    runs: Vec<usize>,
}

impl Runs {
    /// Where `count` of these points from number `start` on are: first and count of each stretch.
    pub fn ranges(&self, start: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
        // As if the last of all runs were as long as the others, wherever among these it stands.
        let missing = self.points.next_multiple_of(self.length) - self.points;
        let last = self.points.div_ceil(self.length).wrapping_sub(1);
        let gap = self.runs.iter().position(|&run| run == last).map(|at| (at + 1) * self.length - missing);
        let (mut next, end) = (start, start + count);
        std::iter::from_fn(move || {
            let place = next + gap.map_or(0, |gap| if next >= gap { missing } else { 0 });
            let (run, within) = (place / self.length, place % self.length);
            let number = *self.runs.get(run).filter(|_| next < end)?;
            let first = number * self.length + within;
            let stretch = (self.length - within).min(end - next).min(self.points - first);
            next += stretch;
            Some((first, stretch))
        })
    }

    fn len(&self) -> usize {
        let length = |run: &usize| self.length.min(self.points.saturating_sub(run * self.length));
        self.runs.iter().map(length).sum()
    }
}

impl Points {
    /// How many neighbours stay together when points are drawn at random, by the number of points.
    pub fn run_len(&self) -> usize {
        (SHORTEST * (self.len() / MANY).max(1)).min(LONGEST)
    }

    /// How many such runs there are; the last may be shorter.
    pub fn runs(&self) -> usize {
        self.len().div_ceil(self.run_len())
    }

    /// The points of these runs, in this order. Points in files are read only when they are asked for.
    pub fn batch(&self, runs: &[usize]) -> Points {
        let chosen = Runs { length: self.run_len(), points: self.len(), runs: runs.to_vec() };
        let count = chosen.len();
        let whole = chosen.clone();
        let (held, batch) = match &self.held {
            Held::Memory(values) => {
                let d = self.dims;
                let part = |(first, count): (usize, usize)| &values[first * d..][..count * d];
                (Held::Memory(chosen.ranges(0, count).flat_map(part).copied().collect()), None)
            }
            Held::Files(sources) => (Held::Files(Arc::clone(sources)), Some(chosen)),
        };
        let holes = self.holes.as_ref().map(|holes| {
            let d = self.dims;
            let part = |(first, count): (usize, usize)| &holes.missing[first * d..][..count * d];
            let missing = whole.ranges(0, count).flat_map(part).copied().collect();
            Holes { missing, planes: holes.planes }
        });
        Points {
            holes,
            whitening: self.whitening.clone(),
            subset: self.subset.clone(),
            batch,
            cluster: self.cluster.clone(),
            read: Arc::clone(&self.read),
            ..Points::held_in(held, self.dims, count)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_the_same_in_memory_and_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let values: Vec<f64> = (0..2 * 83).map(f64::from).collect();
        let path = folder.path().join("y.npy");
        crate::data::write_npy_f64(&path, &[83, 2], &values).unwrap();
        // The last run, number 10, has three points.
        for runs in [&[4, 10, 0, 7][..], &[10], &[3, 10], &[10, 3], &[2, 1], &[]] {
            let expected: Vec<f64> =
                runs.iter().flat_map(|run| &values[run * 16..(run * 16 + 16).min(166)]).copied().collect();
            for points in
                [Points::new(values.clone(), 2), Points::open_within(std::slice::from_ref(&path), 0).unwrap()]
            {
                let mut batch = points.batch(runs);
                let (mut all, mut piece) = (Vec::new(), Vec::new());
                assert_eq!(batch.read(0, 100, &mut all).unwrap(), batch.len());
                assert_eq!(all, expected);
                // From anywhere on.
                for start in 0..batch.len() {
                    batch.read(start, 9, &mut piece).unwrap();
                    let end = (start + 9).min(batch.len());
                    assert_eq!(piece, expected[start * 2..end * 2], "{runs:?} {start}");
                }
            }
        }
    }
}
