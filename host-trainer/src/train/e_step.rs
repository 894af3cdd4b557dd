//! The E-step: points to statistics, through the core.
//!
//! Points go through in chunks of [`CHUNK`]: one matrix product projects a chunk, the core selects and
//! walks each point, a second product sums y <x>^T. Chunks are spread over [`LANES`] lanes, each of which
//! sums its own in order; lanes are merged in order. So the bits do not depend on the number of threads.

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

/// Statistics of all points (`data`, D numbers each) under the parameters.
pub fn e_step(
    parameters: &Parameters,
    options: &Options,
    data: &[f64],
    threads: usize,
) -> Result<Statistics> {
    let prepared = Prepared::<f64>::new(parameters, options)?;
    let weigh = Weigh::new(parameters)?;
    let full_noise = matches!(parameters.noise, NoiseCov::Full(_));
    let (d, h) = (parameters.dims, parameters.latents);
    let chunks: Vec<&[f64]> = data.chunks(CHUNK * d).collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<Statistics>>>> = Mutex::new(vec![None; LANES]);
    let work = || {
        loop {
            let lane = next.fetch_add(1, Ordering::Relaxed);
            if lane >= LANES {
                return;
            }
            let mut sums = Statistics::new(d, h, full_noise);
            let own = chunks.iter().enumerate().skip(lane).step_by(LANES);
            let result = run_lane(parameters, &prepared, &weigh, own, &mut sums).map(|()| sums);
            done.lock().unwrap_or_else(|broken| broken.into_inner())[lane] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, LANES) {
            scope.spawn(work);
        }
        work();
    });
    let mut total = Statistics::new(d, h, full_noise);
    for lane in done.into_inner().unwrap_or_else(|broken| broken.into_inner()).into_iter().flatten() {
        total.merge(&lane?);
    }
    Ok(total)
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

fn run_lane<'a>(
    parameters: &Parameters,
    prepared: &Prepared<f64>,
    weigh: &Weigh,
    chunks: impl Iterator<Item = (usize, &'a &'a [f64])>,
    sums: &mut Statistics,
) -> Result<()> {
    let model = prepared.model()?;
    let (d, h) = (parameters.dims, parameters.latents);
    let dictionary = MatRef::from_row_major_slice(&parameters.dictionary, d, h);
    let mut memory = vec![0.0; arena_len(model.shape, Detail::SecondMoments)];
    let mut inference =
        Inference::with_detail(model, &mut memory, Detail::SecondMoments).map_err(|error| {
            Error::run(error, "the E-step", "report this: the memory was sized for the model")
        })?;
    let [mut weighted, mut projection, mut means] = [d, h, h].map(|width| vec![0.0; CHUNK * width]);
    for (index, chunk) in chunks {
        let n = chunk.len() / d;
        weigh.apply(chunk, d, &mut weighted[..n * d]);
        let product = MatMut::from_row_major_slice_mut(&mut projection[..n * h], n, h);
        let u = MatRef::from_row_major_slice(&weighted[..n * d], n, d);
        matmul(product, Accum::Replace, u, dictionary, 1.0, Par::Seq);
        for (i, (y, u)) in chunk.chunks_exact(d).zip(weighted.chunks_exact(d)).enumerate() {
            let energy = y.iter().zip(u).map(|(y, u)| y * u).sum();
            let place = || format!("point {}", index * CHUNK + i);
            let refused = |error| Error::input(error, place(), "remove the point or rescale the data");
            inference.projected(y, &projection[i * h..][..h], energy).map_err(refused)?;
            inference.select();
            let estimate = inference.posterior().map_err(refused)?;
            means[i * h..][..h].copy_from_slice(estimate.mean);
            sums.add(&estimate);
        }
        sums.add_power(chunk, d);
        let cross = MatMut::from_row_major_slice_mut(&mut sums.cross, d, h);
        let y = MatRef::from_row_major_slice(chunk, n, d);
        let x = MatRef::from_row_major_slice(&means[..n * h], n, h);
        matmul(cross, Accum::Add, y.transpose(), x, 1.0, Par::Seq);
    }
    Ok(())
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
