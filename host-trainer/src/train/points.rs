//! Where an E-step gets its points from: memory, or files that may be larger than it.

mod runs;
mod subset;

use super::whiten::Whitening;
use crate::cluster::Cluster;
use crate::data::{Source, gains, used_bins};
use crate::prepare::Holes;
use crate::{Error, Result};
use runs::Runs;
use spikelet::frame::{Form, Frame};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use subset::Subset;

/// Numbers that are kept in memory at once, at most (64 MiB); more is read again in every iteration, which
/// costs little against inference.
pub const IN_MEMORY: usize = 1 << 23;

/// Points in a section of a sum over all of them, at least, and sections, at most.
const SECTION: usize = 1 << 16;
const SECTIONS: usize = 64;

/// Numbers in the sums of all sections, at most (256 MiB), unless there is one only.
const MOST_NUMBERS: usize = 1 << 25;

/// Points to learn from, read a piece at a time.
#[derive(Debug)]
pub struct Points {
    dims: usize,
    points: usize,
    /// Samples per second, where all files agree on it.
    rate: Option<u32>,
    /// Of the bins of a transform; else empty.
    gains: Vec<f32>,
    /// Bins of a transform that points are of; the others are empty.
    used: usize,
    held: Held,
    whitening: Option<Arc<Whitening>>,
    /// Which of the points in files these are; `None` for all of them.
    subset: Option<Arc<Subset>>,
    /// Which runs of these, in an order of their own; `None` for all.
    batch: Option<Runs>,
    /// Mean and covariance, once computed.
    moments: Option<(Vec<f64>, Vec<f64>)>,
    /// Who else has these points, and computes on other parts of them.
    cluster: Cluster,
    /// Which numbers are missing, of points in memory; the others have guesses in their place.
    holes: Option<Holes>,
    /// Points that are not learned from.
    held_out: Option<Box<Points>>,
    /// How many have been read, again and again.
    read: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum Held {
    Memory(Vec<f64>),
    /// Shared with the points that are held out.
    Files(Arc<Mutex<Vec<Source>>>),
}

impl Points {
    /// Points that are in memory, `dims` numbers each.
    pub fn new(values: Vec<f64>, dims: usize) -> Self {
        let points = values.len() / dims.max(1);
        Self::held_in(Held::Memory(values), dims, points)
    }

    /// The same with numbers that are missing, for which there are guesses in `values`: only a first dictionary depends on them.
    pub fn with_holes(values: Vec<f64>, dims: usize, holes: Holes) -> Self {
        Self { holes: Some(holes), ..Self::new(values, dims) }
    }

    fn held_in(held: Held, dims: usize, points: usize) -> Self {
        Self {
            dims,
            points,
            rate: None,
            gains: Vec::new(),
            used: 0,
            held,
            whitening: None,
            subset: None,
            batch: None,
            moments: None,
            cluster: Cluster::alone(),
            holes: None,
            held_out: None,
            read: Arc::default(),
        }
    }

    /// All points of all files, which must have as many dimensions as each other.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        Self::open_within(paths, IN_MEMORY)
    }

    /// All points of all files, made as `frame` says; patches every `step` pixels. The bins of a transform are evened out.
    pub fn open_framed(paths: &[PathBuf], frame: Option<&Frame>, step: usize) -> Result<Self> {
        Self::open_evened(paths, frame, step, &[])
    }

    /// [`Points::open_framed`] with these gains for the bins of a transform, unless there are none.
    pub fn open_evened(paths: &[PathBuf], frame: Option<&Frame>, step: usize, given: &[f32]) -> Result<Self> {
        let open = |path: &PathBuf| Source::open_framed(path, frame, step);
        let mut sources = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
        let spectra: Vec<_> = sources.iter().filter_map(Source::spectra).collect();
        let gains = if given.is_empty() { gains(&spectra) } else { given.to_vec() };
        let used = used_bins(&spectra);
        for source in &mut sources {
            source.even_out(&gains);
            source.leave_out(used);
        }
        Ok(Self { gains, used, ..Self::join(sources, IN_MEMORY)? })
    }

    /// [`Points::open`] with another limit to the numbers kept in memory. What is read is the same.
    pub fn open_within(paths: &[PathBuf], in_memory: usize) -> Result<Self> {
        Self::join(paths.iter().map(Source::open).collect::<Result<_>>()?, in_memory)
    }

    fn join(sources: Vec<Source>, in_memory: usize) -> Result<Self> {
        let Some(first) = sources.first() else {
            return Err(Error::input("there is no data", "the list of files", "name at least one"));
        };
        let dims = first.dims();
        if let Some(other) = sources.iter().find(|source| source.dims() != dims) {
            let plural = if other.dims() == 1 { "" } else { "s" };
            let what =
                format!("{} dimension{plural} here, {dims} in {}", other.dims(), first.path().display());
            let advice = "train on files that have the same dimensions";
            return Err(Error::input(what, other.path().display(), advice));
        }
        let points = sources.iter().map(Source::points).sum();
        let rate = first.rate().filter(|_| sources.iter().all(|source| source.rate() == first.rate()));
        let held = Held::Files(Arc::new(Mutex::new(sources)));
        let mut all = Self { rate, ..Self::held_in(held, dims, points) };
        if points.saturating_mul(dims) <= in_memory {
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

    /// Samples per second, where all files agree on it.
    pub fn rate(&self) -> Option<u32> {
        self.rate
    }

    /// How such points are made, if that is known: `frame` with the rate of the recordings.
    pub fn frame(&self, frame: Option<Frame>) -> Option<Frame> {
        let samples = Frame { form: Form::Samples, rate: 0, centred: false };
        match self.rate {
            Some(rate) => Some(Frame { rate, ..frame.unwrap_or(samples) }),
            None => frame,
        }
    }

    /// What the bins of a transform were multiplied with; empty for other points.
    pub fn gains(&self) -> &[f32] {
        &self.gains
    }

    /// How many of the lowest bins of a transform are learned from: the band above is empty. 0 for other points.
    pub fn used_bins(&self) -> usize {
        self.used
    }

    /// N.
    pub fn len(&self) -> usize {
        self.points
    }

    /// Whether there is nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// From now on sums over the points are those of all ranks, each of which reads its own part.
    pub fn share(&mut self, cluster: &Cluster) {
        self.cluster = cluster.clone();
        if let Some(held_out) = &mut self.held_out {
            held_out.share(cluster);
        }
    }

    /// Who computes sums over the points.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// From now on all points are read as V y. Done once only.
    pub fn whiten(&mut self, whitening: &Whitening) {
        if self.whitening.is_some() {
            return;
        }
        if let Held::Memory(values) = &mut self.held {
            whitening.apply(values);
        }
        self.moments = None;
        self.whitening = Some(Arc::new(whitening.clone()));
        if let Some(held_out) = &mut self.held_out {
            held_out.whiten(whitening);
        }
    }

    /// Replaces `piece` by up to `count` points from `start` on; says how many there were.
    pub fn read(&mut self, start: usize, count: usize, piece: &mut Vec<f64>) -> Result<usize> {
        piece.clear();
        let start = start.min(self.points);
        let count = count.min(self.points - start);
        match (&self.held, &self.subset) {
            (Held::Memory(values), _) => {
                piece.extend_from_slice(&values[start * self.dims..][..count * self.dims]);
            }
            (Held::Files(sources), subset) => {
                let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
                let mut read = |start: usize, count: usize| match subset {
                    None => read_files(&mut sources, start, count, piece),
                    Some(subset) => subset
                        .ranges(start, count)
                        .try_for_each(|(start, count)| read_files(&mut sources, start, count, piece)),
                };
                match &self.batch {
                    None => read(start, count)?,
                    Some(runs) => {
                        runs.ranges(start, count).try_for_each(|(start, count)| read(start, count))?;
                    }
                }
                if let Some(whitening) = &self.whitening {
                    whitening.apply(piece);
                }
            }
        }
        self.read.fetch_add(count, Ordering::Relaxed);
        Ok(piece.len() / self.dims)
    }

    /// Replaces `holes` by those of up to `count` points from `start` on; nothing where none have any.
    pub fn read_holes(&self, start: usize, count: usize, holes: &mut Holes) {
        holes.missing.clear();
        let Some(all) = &self.holes else { return };
        holes.planes = all.planes;
        let start = start.min(self.points);
        let count = count.min(self.points - start);
        holes.missing.extend_from_slice(&all.missing[start * self.dims..][..count * self.dims]);
    }

    /// How many points have been read so far, all readings counted: how far an E-step is shows by it.
    pub fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.read)
    }

    /// Mean and covariance (D x D) of all points, in one pass over pieces. Sums are about the first point, so that
    /// an offset costs no digits.
    pub fn covariance(&mut self) -> Result<(Vec<f64>, Vec<f64>)> {
        if let Some(known) = &self.moments {
            return Ok(known.clone());
        }
        let d = self.dims;
        let mut origin = Vec::new();
        self.read(0, 1, &mut origin)?;
        let mut sums = self.sum(d + d * d, |piece, sums| {
            let (mean, second) = sums.split_at_mut(d);
            for y in piece.chunks_exact_mut(d) {
                y.iter_mut().zip(&origin).for_each(|(y, origin)| *y -= origin);
                for (i, a) in y.iter().enumerate() {
                    mean[i] += a;
                    second[i * d..][..=i].iter_mut().zip(&*y).for_each(|(sum, b)| *sum += a * b);
                }
            }
        })?;
        let (mean, second) = sums.split_at_mut(d);
        let n = self.points as f64;
        mean.iter_mut().for_each(|m| *m /= n);
        let entry = |i: usize, j: usize| second[i.max(j) * d + i.min(j)] / n - mean[i] * mean[j];
        let covariance = (0..d * d).map(|e| entry(e / d, e % d)).collect();
        mean.iter_mut().zip(&origin).for_each(|(mean, origin)| *mean += origin);
        Ok(self.moments.insert((mean.to_vec(), covariance)).clone())
    }

    /// `length` sums over all points, of all ranks: `add` adds those of a piece, which it may change. Sections of many points are
    /// summed apart, by the number of points only, and then in order.
    pub fn sum(&mut self, length: usize, add: impl Fn(&mut [f64], &mut [f64])) -> Result<Vec<f64>> {
        let most = (MOST_NUMBERS / length.max(1)).clamp(1, SECTIONS);
        let sections = self.points.div_ceil(SECTION).clamp(1, most);
        let border = |section: usize| (section as u128 * self.points as u128 / sections as u128) as usize;
        let cluster = self.cluster.clone();
        let borders: Vec<_> = cluster.share(sections).map(|s| border(s)..border(s + 1)).collect();
        let mut sums = vec![vec![0.0; length]; borders.len().max(1)];
        let mut all = || -> Result<()> {
            let mut piece = Vec::new();
            for (section, sums) in borders.iter().zip(&mut sums) {
                for start in section.clone().step_by(4096) {
                    self.read(start, 4096.min(section.end - start), &mut piece)?;
                    add(&mut piece, sums);
                }
            }
            Ok(())
        };
        let done = all();
        cluster.agree(done)?;
        let mut total = sums.remove(0);
        let others: Vec<&[f64]> = sums.iter().map(Vec::as_slice).collect();
        cluster.fold(sections, &mut total, &others);
        Ok(total)
    }
}

/// Appends `count` points from `start` on, counted over all files.
fn read_files(sources: &mut [Source], start: usize, count: usize, piece: &mut Vec<f64>) -> Result<()> {
    let (mut skip, mut missing, mut part) = (start, count, Vec::new());
    for source in sources {
        if missing == 0 {
            break;
        }
        if skip < source.points() {
            missing -= source.read_chunk(skip, missing, &mut part)?;
            piece.extend_from_slice(&part);
        }
        skip = skip.saturating_sub(source.points());
    }
    Ok(())
}
