//! The E-step: points to statistics, through the core.
//!
//! Points go through in chunks of [`CHUNK`]: one matrix product projects a chunk, the core selects and
//! walks each point, a second product sums `y <x>^T`. Chunks are dealt to [`LANES`] lanes, each of which sums
//! its own in order; lanes are merged in order. So the bits do not depend on the number of threads, and
//! no more than one chunk per lane is in memory at a time.

use super::points::Points;
use super::statistics::Statistics;
use crate::parameters::{NoiseCov, Parameters};
use crate::prepare::{Options, Prepared};
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use spikelet::{Detail, Estimate, Inference, arena_len};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points per matrix product.
pub const CHUNK: usize = 256;
/// Sums kept apart, whatever the number of threads: enough for any desktop, little memory.
pub const LANES: usize = 16;

/// Statistics of all points under the parameters.
pub fn e_step(
    parameters: &Parameters,
    options: &Options,
    points: &mut Points,
    threads: usize,
) -> Result<Statistics> {
    let prepared = Prepared::<f64>::new(parameters, options)?;
    let weigh = Weigh::new(parameters)?;
    let lanes: Vec<Mutex<Lane>> = (0..LANES).map(|_| Mutex::new(Lane::new(parameters))).collect();
    let (d, mut start, mut block) = (parameters.dims, 0, Vec::new());
    while points.read(start, LANES * CHUNK, &mut block)? > 0 {
        let chunks: Vec<&[f64]> = block.chunks(CHUNK * d).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            loop {
                let lane = next.fetch_add(1, Ordering::Relaxed);
                let Some(chunk) = chunks.get(lane) else { return Ok(()) };
                let mut own = lanes[lane].lock().unwrap_or_else(|broken| broken.into_inner());
                own.run(parameters, &prepared, &weigh, chunk, start + lane * CHUNK)?;
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.clamp(1, chunks.len())).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken())));
            joined.fold(own, |result, other| result.and(other))
        })?;
        start += block.len() / d;
    }
    let mut total =
        lanes.into_iter().map(|lane| lane.into_inner().unwrap_or_else(|broken| broken.into_inner()).sums);
    let mut sums = total.next().unwrap_or_else(|| Lane::new(parameters).sums);
    total.for_each(|lane| sums.merge(&lane));
    Ok(sums)
}

fn broken() -> Error {
    Error::run("a thread stopped", "the E-step", "try again with --threads 1 and report what it says")
}

/// Sigma^-1, applied to a chunk at once.
enum Weigh {
    Each(Vec<f64>),
    Full(Mat<f64>),
}

impl Weigh {
    fn new(parameters: &Parameters) -> Result<Self> {
        let d = parameters.dims;
        Ok(match &parameters.noise {
            NoiseCov::Full(sigma) => {
                let factor = crate::linalg::cholesky_inverse(sigma, d)
                    .ok_or_else(|| crate::prepare::not_definite("sigma2"))?;
                let entry = |i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
                Self::Full(Mat::from_fn(d, d, |i, j| (i.max(j)..d).map(|k| entry(k, i) * entry(k, j)).sum()))
            }
            _ => Self::Each(parameters.noise_variances().iter().map(|v| 1.0 / v).collect()),
        })
    }

    fn apply(&self, chunk: &[f64], d: usize, weighted: &mut [f64]) {
        match self {
            Self::Each(precision) => {
                for (u, y) in weighted.chunks_exact_mut(d).zip(chunk.chunks_exact(d)) {
                    u.iter_mut().zip(y).zip(precision).for_each(|((u, y), p)| *u = y * p);
                }
            }
            Self::Full(precision) => {
                let n = chunk.len() / d;
                let out = MatMut::from_row_major_slice_mut(weighted, n, d);
                let y = MatRef::from_row_major_slice(chunk, n, d);
                matmul(out, Accum::Replace, y, precision.as_ref(), 1.0, Par::Seq);
            }
        }
    }
}

/// One of the sums that are kept apart, and what computing it needs.
struct Lane {
    sums: Statistics,
    memory: Vec<f64>,
    weighted: Vec<f64>,
    projection: Vec<f64>,
    means: Vec<f64>,
}

impl Lane {
    fn new(parameters: &Parameters) -> Self {
        let full_noise = matches!(parameters.noise, NoiseCov::Full(_));
        let sums = Statistics::new(parameters.dims, parameters.latents, full_noise);
        let [memory, weighted, projection, means] = [(); 4].map(|()| Vec::new());
        Self { sums, memory, weighted, projection, means }
    }

    /// Adds a chunk of points, the first of which is number `first`.
    fn run(
        &mut self,
        parameters: &Parameters,
        prepared: &Prepared<f64>,
        weigh: &Weigh,
        chunk: &[f64],
        first: usize,
    ) -> Result<()> {
        let model = prepared.model()?;
        let (d, h) = (parameters.dims, parameters.latents);
        let n = chunk.len() / d;
        self.memory.resize(arena_len(model.shape, Detail::SecondMoments), 0.0);
        self.weighted.resize(n * d, 0.0);
        self.projection.resize(n * h, 0.0);
        self.means.resize(n * h, 0.0);
        let mut inference =
            Inference::with_detail(model, &mut self.memory, Detail::SecondMoments).map_err(|error| {
                Error::run(error, "the E-step", "report this: the memory was sized for the model")
            })?;

        weigh.apply(chunk, d, &mut self.weighted);
        let dictionary = MatRef::from_row_major_slice(&parameters.dictionary, d, h);
        let product = MatMut::from_row_major_slice_mut(&mut self.projection, n, h);
        let u = MatRef::from_row_major_slice(&self.weighted, n, d);
        matmul(product, Accum::Replace, u, dictionary, 1.0, Par::Seq);

        for (i, (y, u)) in chunk.chunks_exact(d).zip(self.weighted.chunks_exact(d)).enumerate() {
            let energy = y.iter().zip(u).map(|(y, u)| y * u).sum();
            let place = || format!("point {}", first + i);
            let refused = |error| Error::input(error, place(), "remove the point or rescale the data");
            inference.projected(y, &self.projection[i * h..][..h], energy).map_err(refused)?;
            inference.select();
            let estimate = inference.posterior().map_err(refused)?;
            self.means[i * h..][..h].copy_from_slice(estimate.mean);
            self.sums.add(&estimate);
        }

        self.sums.add_power(chunk, d);
        let cross = MatMut::from_row_major_slice_mut(&mut self.sums.cross, d, h);
        let y = MatRef::from_row_major_slice(chunk, n, d);
        let x = MatRef::from_row_major_slice(&self.means, n, h);
        matmul(cross, Accum::Add, y.transpose(), x, 1.0, Par::Seq);
        Ok(())
    }
}

impl Statistics {
    /// Scatters the moments of one point: H'^2 for the selected latents, one each for the others.
    fn add(&mut self, estimate: &Estimate<'_, f64>) {
        let h = self.mean.len();
        self.points += 1;
        self.free_energy += estimate.evidence;
        let means = estimate.activity.iter().zip(estimate.mean).zip(estimate.variance);
        for (i, ((activity, mean), variance)) in means.enumerate() {
            self.activity[i] += activity;
            self.mean[i] += mean;
            // Of a latent that was not selected this is all there is; the selected ones follow below.
            self.second[i * h + i] += variance + mean * mean;
        }
        let s = estimate.order.len();
        for (p, &i) in estimate.order.iter().enumerate() {
            let i = usize::from(i);
            let mean = estimate.mean[i];
            self.second[i * h + i] += estimate.second[p * s + p] - (estimate.variance[i] + mean * mean);
            for (q, &j) in estimate.order.iter().enumerate().take(p) {
                let j = usize::from(j);
                self.second[i.max(j) * h + i.min(j)] += estimate.second[p * s + q];
            }
        }
    }

    fn add_power(&mut self, chunk: &[f64], d: usize) {
        let n = chunk.len() / d;
        if self.power.len() == d * d && d > 1 {
            let power = MatMut::from_row_major_slice_mut(&mut self.power, d, d);
            let y = MatRef::from_row_major_slice(chunk, n, d);
            matmul(power, Accum::Add, y.transpose(), y, 1.0, Par::Seq);
        } else {
            for y in chunk.chunks_exact(d) {
                self.power.iter_mut().zip(y).for_each(|(sum, y)| *sum += y * y);
            }
        }
    }
}
