//! The E-step: points to statistics, through the core.
//!
//! Points go through in chunks of at most [`CHUNK`]: one matrix product projects a chunk, the core selects and walks each point,
//! and what it finds is scattered. Chunks are dealt to lanes, 16 or with many points more, each of which sums its own in order;
//! lanes are added up in order. Threads take lanes, and so do the ranks of a [cluster](crate::cluster), which read the chunks of
//! their own lanes only. So the bits depend neither on the number of threads nor on that of ranks, and no more than a few chunks
//! are in memory at a time.
//!
//! Inference runs in `f64` or `f32`; sums over chunks are always `f64`.

mod holes;
mod job;
mod lane;
mod mixture;
mod restricted;
mod scatter;

use super::points::Points;
use super::settings::Precision;
use super::statistics::Statistics;
use crate::cluster::Cluster;
use crate::linalg::transposed;
use crate::parameters::{Parameters, SlabCov};
use crate::prepare::{Holes, Options, StatesName};
use crate::{Error, Result};
use job::{Job, Scalar, Wanted};
use lane::{Desk, Lane};
use spikelet::Engine;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub use lane::Poor;
pub use restricted::Sets;

/// Points per matrix product, at most.
pub const CHUNK: usize = 256;
/// Points per matrix product, at least, as far as there are so many.
const LEAST_CHUNK: usize = 32;
/// Sums kept apart, at most, whatever the number of threads: enough for any desktop, little memory.
pub const LANES: usize = 16;
/// The same of many points, for clusters: one for so many points each, as long as all sums do not take more numbers than this (256 MiB).
const MOST_LANES: usize = 1024;
const POINTS_PER_LANE: usize = 1 << 14;
const MOST_NUMBERS: usize = 1 << 25;
/// Of many latents fewer sums are kept apart: their H (H + 1) / 2 moments shall not take more numbers than this (1 GiB).
const MOST_MOMENTS: usize = 1 << 27;

/// What an E-step shall do.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The model.
    pub parameters: &'a Parameters,
    /// How inference runs.
    pub options: &'a Options,
    /// All kept states, or draws.
    pub engine: Engine,
    /// T, 1 for the posterior itself.
    pub temperature: f64,
    /// Points with less evidence count in the free energy only.
    pub least_evidence: f64,
    /// The latents of every point, where the model's own scores do not choose them.
    pub sets: Option<Sets<'a>>,
    /// The components that every point of a mixture kept last, from which a search for those it keeps now begins.
    pub around: Option<Sets<'a>>,
    /// Whether the points that are explained worst are told.
    pub names_worst: bool,
}

/// Statistics of all points under the parameters, in `f64`.
pub fn e_step(
    parameters: &Parameters,
    options: &Options,
    points: &mut Points,
    threads: usize,
) -> Result<Statistics> {
    Ok(Task::new(parameters, options).run(points, threads, Precision::F64)?.0)
}

impl<'a> Task<'a> {
    /// The posterior itself, of all points.
    pub fn new(parameters: &'a Parameters, options: &'a Options) -> Self {
        let engine = Engine::of_kind(parameters.kind.kind());
        let least_evidence = f64::NEG_INFINITY;
        let (sets, around) = (None, None);
        Self {
            parameters,
            options,
            engine,
            temperature: 1.0,
            least_evidence,
            sets,
            around,
            names_worst: false,
        }
    }

    /// Statistics of the points, and the points of every chunk that are explained worst, where these are wanted.
    pub fn run(
        &self,
        points: &mut Points,
        threads: usize,
        precision: Precision,
    ) -> Result<(Statistics, Vec<Poor>)> {
        Ok(match precision {
            Precision::F64 => self
                .run_in::<f64>(points, threads, Wanted::Statistics)?
                .finish(self.parameters, self.names_worst),
            Precision::F32 => self
                .run_in::<f32>(points, threads, Wanted::Statistics)?
                .finish(self.parameters, self.names_worst),
        })
    }

    /// Statistics of the points, and `<s>` of all of them. (N x H)
    pub fn run_with_activities(
        &self,
        points: &mut Points,
        threads: usize,
        precision: Precision,
    ) -> Result<(Statistics, Vec<f64>)> {
        let wanted = Wanted::Activities;
        let count = points.len();
        Ok(match precision {
            Precision::F64 => {
                self.run_in::<f64>(points, threads, wanted)?.finish_with_activities(self.parameters, count)
            }
            Precision::F32 => {
                self.run_in::<f32>(points, threads, wanted)?.finish_with_activities(self.parameters, count)
            }
        })
    }

    /// Statistics of the points of a mixture of which each keeps C' components, and these. (N x C')
    pub fn run_with_kept(
        &self,
        points: &mut Points,
        threads: usize,
        precision: Precision,
    ) -> Result<(Statistics, Vec<u16>)> {
        let count = points.len();
        Ok(match precision {
            Precision::F64 => {
                self.run_in::<f64>(points, threads, Wanted::Kept)?.finish_with_kept(self, count)
            }
            Precision::F32 => {
                self.run_in::<f32>(points, threads, Wanted::Kept)?.finish_with_kept(self, count)
            }
        })
    }

    /// ln p(y) of the points over the kept states, in no particular order; of the points of this rank.
    pub fn evidences(&self, points: &mut Points, threads: usize, precision: Precision) -> Result<Vec<f64>> {
        Ok(self.evidences_by_lane(points, threads, precision)?.concat())
    }

    /// The sum of ln p(y) over all points.
    pub fn evidence(&self, points: &mut Points, threads: usize, precision: Precision) -> Result<f64> {
        let lanes = self.evidences_by_lane(points, threads, precision)?;
        let sums: Vec<f64> = lanes.iter().map(|lane| lane.iter().sum()).collect();
        Ok(points.cluster().gather(&sums).iter().sum())
    }

    fn evidences_by_lane(
        &self,
        points: &mut Points,
        threads: usize,
        precision: Precision,
    ) -> Result<Vec<Vec<f64>>> {
        Ok(match precision {
            Precision::F64 => self.run_in::<f64>(points, threads, Wanted::Evidences)?.evidences(),
            Precision::F32 => self.run_in::<f32>(points, threads, Wanted::Evidences)?.evidences(),
        })
    }

    /// Of a search the sums of a lane, H (H + 1) / 2 numbers, would cost more than the states of few points.
    fn least_chunk(&self) -> usize {
        match self.options.states {
            Some(StatesName::Adaptive) => (self.parameters.latents / 2).clamp(LEAST_CHUNK, CHUNK),
            _ => LEAST_CHUNK,
        }
    }

    fn run_in<T: Scalar>(&self, points: &mut Points, threads: usize, wanted: Wanted) -> Result<Lanes<T>> {
        let job = Job::<T>::new(self, wanted)?;
        let size = chunk_len(points.len(), self.least_chunk());
        let count = lanes(self.parameters, points.len(), size);
        let cluster = points.cluster().clone();
        let own = cluster.share(count);
        let mut lanes = Lanes::new(&job, count, own.len(), threads, &cluster);
        let at_once = LANES.max(threads);
        let mut all = || -> Result<()> {
            let (mut block, mut holes) = (Vec::new(), Holes::default());
            // A chunk for every lane, then the next for every lane.
            for row in (0..points.len()).step_by(count * size) {
                for first in own.clone().step_by(at_once) {
                    let (start, chunks) = (row + first * size, at_once.min(own.end - first));
                    points.read(start, chunks * size, &mut block)?;
                    points.read_holes(start, chunks * size, &mut holes);
                    lanes.run(&job, (&block, &holes), (start, first - own.start), size)?;
                }
            }
            Ok(())
        };
        let done = all();
        cluster.agree(done)?;
        Ok(lanes)
    }
}

/// Sums kept apart, by the model and the number of points only.
fn lanes(parameters: &Parameters, points: usize, chunk: usize) -> usize {
    let (d, h) = (parameters.dims, parameters.latents);
    let moments = h * (h + 1) / 2;
    let few = (MOST_MOMENTS / moments).clamp(1, LANES);
    let full = if matches!(parameters.slab_cov, SlabCov::Full(_)) { h * h } else { 0 };
    let numbers = moments + 2 * d * h + d * d + full;
    let many = (points / POINTS_PER_LANE).min(MOST_NUMBERS / numbers).clamp(few, MOST_LANES);
    points.div_ceil(chunk).clamp(1, many)
}

/// Points per chunk: few enough that all lanes get some, by the number of points only.
fn chunk_len(points: usize, least: usize) -> usize {
    points.div_ceil(LANES).clamp(least, CHUNK)
}

/// The sums of this rank that are kept apart, and the memory of every thread.
struct Lanes<T> {
    own: Vec<Mutex<Lane>>,
    desks: Vec<Mutex<Desk<T>>>,
    /// How many there are, those of other ranks included.
    all: usize,
    cluster: Cluster,
}

impl<T: Scalar> Lanes<T> {
    fn new(job: &Job<'_, T>, all: usize, own: usize, threads: usize, cluster: &Cluster) -> Self {
        let own = (0..own).map(|_| Mutex::new(Lane::new(job.parameters))).collect();
        let desks = (0..threads.max(1)).map(|_| Mutex::default()).collect();
        Self { own, desks, all, cluster: cluster.clone() }
    }

    /// Adds a block of points, the first of which is number `start`: a chunk of `size` for every lane from `first` on.
    fn run(
        &mut self,
        job: &Job<'_, T>,
        (block, holes): (&[f64], &Holes),
        (start, first): (usize, usize),
        size: usize,
    ) -> Result<()> {
        let chunks: Vec<&[f64]> = block.chunks(size * job.parameters.dims).collect();
        let next = AtomicUsize::new(0);
        let work = |desk: &Mutex<Desk<T>>| -> Result<()> {
            let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(chunk) = chunks.get(number) else { return Ok(()) };
                let missing = holes.missing.chunks(size * job.parameters.dims).nth(number);
                let missing = missing.map(|missing| (missing, holes.planes));
                let mut lane = self.own[first + number].lock().unwrap_or_else(PoisonError::into_inner);
                lane.run(job, &mut desk, (chunk, missing), start + number * size)?;
            }
        };
        let (own, others) = self.desks.split_at(1);
        std::thread::scope(|scope| {
            let others = others.iter().take(chunks.len().saturating_sub(1));
            let others: Vec<_> = others.map(|desk| scope.spawn(|| work(desk))).collect();
            let done = own.iter().try_for_each(work);
            let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken())));
            joined.fold(done, |result, other| result.and(other))
        })
    }

    fn into_own(self) -> impl Iterator<Item = Lane> {
        self.own.into_iter().map(|lane| lane.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn evidences(self) -> Vec<Vec<f64>> {
        self.into_own().map(|lane| lane.evidences).collect()
    }

    fn finish_with_kept(mut self, task: &Task<'_>, points: usize) -> (Statistics, Vec<u16>) {
        let each = task.options.selected;
        let mut all = vec![0; points * each];
        for lane in &mut self.own {
            let lane = lane.get_mut().unwrap_or_else(PoisonError::into_inner);
            for (first, kept) in &lane.kept {
                all[first * each..][..kept.len()].copy_from_slice(kept);
            }
        }
        (self.finish(task.parameters, false).0, all)
    }

    fn finish_with_activities(mut self, parameters: &Parameters, points: usize) -> (Statistics, Vec<f64>) {
        let h = parameters.latents;
        let mut all = vec![0.0; points * h];
        for lane in &mut self.own {
            let lane = lane.get_mut().unwrap_or_else(PoisonError::into_inner);
            for (first, rows) in &lane.activities {
                all[first * h..][..rows.len()].copy_from_slice(rows);
            }
        }
        (self.finish(parameters, false).0, all)
    }

    /// The sums of all ranks; and, where these are wanted, the points that are explained worst.
    fn finish(self, parameters: &Parameters, names_worst: bool) -> (Statistics, Vec<Poor>) {
        let (all, cluster) = (self.all, self.cluster.clone());
        let (own, poor): (Vec<Statistics>, Vec<Vec<Poor>>) = self.into_own().map(Lane::finish).unzip();
        let mut sums = Statistics::add_up(own, all, parameters, &cluster);
        sums.cross = transposed(&sums.cross, parameters.dims);
        sums.share = transposed(&sums.share, parameters.dims);
        sums.pulls_to_slab(parameters);
        let poor = if names_worst { gather(poor.concat(), parameters.dims, &cluster) } else { Vec::new() };
        (sums, poor)
    }
}

/// Those of all ranks, in the order of lanes.
fn gather(own: Vec<Poor>, d: usize, cluster: &Cluster) -> Vec<Poor> {
    if cluster.size() == 1 {
        return own;
    }
    let flat: Vec<f64> =
        own.into_iter().flat_map(|p| std::iter::once(p.evidence).chain(p.residual)).collect();
    let one = |row: &[f64]| Poor { evidence: row[0], residual: row[1..].to_vec() };
    cluster.gather(&flat).chunks_exact(1 + d).map(one).collect()
}

fn broken() -> Error {
    Error::run("a thread stopped", "the E-step", "try again with --threads 1 and report what it says")
}
