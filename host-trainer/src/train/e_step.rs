//! The E-step: points to statistics, through the core.
//!
//! Points go through in chunks of at most [`CHUNK`]: one matrix product projects a chunk, the core selects and
//! walks each point, and what it finds is scattered. Chunks are dealt to up to [`LANES`] lanes, each of which
//! sums its own in order; lanes are merged in order. So the bits do not depend on the number of threads, and
//! no more than one chunk per lane is in memory at a time.
//!
//! Inference runs in `f64` or `f32`; sums over chunks are always `f64`.

mod job;
mod lane;
mod restricted;
mod scatter;

use super::points::Points;
use super::settings::Precision;
use super::statistics::Statistics;
use crate::parameters::Parameters;
use crate::prepare::{Options, StatesName};
use crate::{Error, Result};
use job::{Job, Scalar, Wanted};
use lane::Lane;
use spikelet::Engine;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use lane::Poor;
pub use restricted::Sets;

/// Points per matrix product, at most.
pub const CHUNK: usize = 256;
/// Points per matrix product, at least, as far as there are so many.
const LEAST_CHUNK: usize = 32;
/// Sums kept apart, at most, whatever the number of threads: enough for any desktop, little memory.
pub const LANES: usize = 16;
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
        Self { parameters, options, engine, temperature: 1.0, least_evidence, sets: None }
    }

    /// Statistics of the points, and of every chunk the point explained worst.
    pub fn run(
        &self,
        points: &mut Points,
        threads: usize,
        precision: Precision,
    ) -> Result<(Statistics, Vec<Poor>)> {
        Ok(match precision {
            Precision::F64 => {
                self.run_in::<f64>(points, threads, Wanted::Statistics)?.finish(self.parameters)
            }
            Precision::F32 => {
                self.run_in::<f32>(points, threads, Wanted::Statistics)?.finish(self.parameters)
            }
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

    /// ln p(y) of the points over the kept states, in no particular order.
    pub fn evidences(&self, points: &mut Points, threads: usize, precision: Precision) -> Result<Vec<f64>> {
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
        let mut lanes = Lanes::new(&job, points.len().div_ceil(size));
        let (mut start, mut block) = (0, Vec::new());
        while points.read(start, lanes.0.len() * size, &mut block)? > 0 {
            lanes.run(&job, &block, start, size, threads)?;
            start += block.len() / self.parameters.dims;
        }
        Ok(lanes)
    }
}

/// Sums kept apart, by the model only.
fn lanes(parameters: &Parameters) -> usize {
    let moments = parameters.latents * (parameters.latents + 1) / 2;
    (MOST_MOMENTS / moments).clamp(1, LANES)
}

/// Points per chunk: few enough that all lanes get some, by the number of points only.
fn chunk_len(points: usize, least: usize) -> usize {
    points.div_ceil(LANES).clamp(least, CHUNK)
}

/// Sums that are kept apart, each with the memory that computing it needs.
struct Lanes<T>(Vec<Mutex<Lane<T>>>);

impl<T: Scalar> Lanes<T> {
    fn new(job: &Job<'_, T>, chunks: usize) -> Self {
        Self((0..chunks.clamp(1, lanes(job.parameters))).map(|_| Mutex::new(Lane::new(job))).collect())
    }

    /// Adds a block of points, the first of which is number `start`: a chunk of `size` for every lane.
    fn run(
        &mut self,
        job: &Job<'_, T>,
        block: &[f64],
        start: usize,
        size: usize,
        threads: usize,
    ) -> Result<()> {
        let chunks: Vec<&[f64]> = block.chunks(size * job.parameters.dims).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            loop {
                let lane = next.fetch_add(1, Ordering::Relaxed);
                let Some(chunk) = chunks.get(lane) else { return Ok(()) };
                let mut own = self.0[lane].lock().unwrap_or_else(|broken| broken.into_inner());
                own.run(job, chunk, start + lane * size)?;
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.clamp(1, chunks.len())).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken())));
            joined.fold(own, |result, other| result.and(other))
        })
    }

    fn evidences(self) -> Vec<f64> {
        let lanes = self.0.into_iter().map(|lane| lane.into_inner().unwrap_or_else(|l| l.into_inner()));
        lanes.flat_map(|lane| lane.evidences).collect()
    }

    fn finish_with_activities(mut self, parameters: &Parameters, points: usize) -> (Statistics, Vec<f64>) {
        let h = parameters.latents;
        let mut all = vec![0.0; points * h];
        for lane in &mut self.0 {
            let lane = lane.get_mut().unwrap_or_else(|broken| broken.into_inner());
            for (first, rows) in &lane.activities {
                all[first * h..][..rows.len()].copy_from_slice(rows);
            }
        }
        (self.finish(parameters).0, all)
    }

    fn finish(self, parameters: &Parameters) -> (Statistics, Vec<Poor>) {
        let mut lanes = self.0.into_iter().map(|lane| lane.into_inner().unwrap_or_else(|l| l.into_inner()));
        // There is always at least one.
        let first = lanes.next().map(Lane::finish);
        let (mut sums, mut poor) = first.unwrap_or_else(|| (Statistics::default(), Vec::new()));
        for lane in lanes {
            let (others, more) = lane.finish();
            sums.merge(&others);
            poor.extend(more);
        }
        sums.pulls_to_slab(parameters);
        (sums, poor)
    }
}

fn broken() -> Error {
    Error::run("a thread stopped", "the E-step", "try again with --threads 1 and report what it says")
}
