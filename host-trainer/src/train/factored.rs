//! The factored E-step, the baseline of paper 000 (after Titsias and Lazaro-Gredilla, 2011).
//!
//! Latents are taken as independent given the point, q(s, z) = prod_h q(s_h) q(z_h | s_h), with q(s_h = 1) = g_h,
//! q(z_h | s_h = 1) = N(eta_h, 1 / lambda_h), and q(z_h | s_h = 0) the slab itself. With G = W^T Sigma^-1 W,
//! b = W^T Sigma^-1 y, K_h = 1 / psi_h^2 and m_h = g_h eta_h, the best q of one latent given the others is
//!
//! ```text
//! lambda_h  = G_hh + K_h
//! eta_h     = (b_h - sum_{j != h} G_hj m_j + K_h mu_h) / lambda_h
//! logit g_h = logit pi_h + 1/2 ln(K_h / lambda_h) + 1/2 lambda_h eta_h^2 - 1/2 K_h mu_h^2
//! ```
//!
//! and the free energy of a point, a lower bound on ln p(y), is with v_h = g_h (eta_h^2 + 1 / lambda_h)
//!
//! ```text
//! F = ln N(y; 0, Sigma) + b . m - 1/2 sum_{h != j} G_hj m_h m_j - 1/2 sum_h G_hh v_h
//!     + sum_h ( H(g_h) + g_h ln pi_h + (1 - g_h) ln(1 - pi_h)
//!               + g_h/2 [ln(K_h / lambda_h) + 1 - K_h ((eta_h - mu_h)^2 + 1 / lambda_h)] )
//! ```
//!
//! Each update raises F or leaves it. The others enter an update through m only, so N x H numbers kept from one
//! iteration to the next are enough for F to rise over the whole run. A sweep costs H^2 multiply-adds a point, whatever
//! D is; no states are enumerated.

use super::points::Points;
use super::statistics::Statistics;
use crate::linalg::{dot, gram, pack, product, whitened};
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points per matrix product.
const CHUNK: usize = 256;
/// Chunks in memory at once.
const BLOCK: usize = 16;
/// Sweeps over all latents in one E-step, at most.
const SWEEPS: usize = 30;
/// A point is done when no mean moves its data by more than this many standard deviations of the noise.
const SETTLED: f64 = 1e-5;

/// The model, as coordinate ascent needs it.
struct Job<'a> {
    parameters: &'a Parameters,
    whitener: Whitener,
    /// L^-1 W with L L^T = Sigma, in panels. (D x H)
    whitened: Vec<f64>,
    /// G. (H x H)
    gram: Vec<f64>,
    latents: Vec<Latent>,
    /// sum_h ln(1 - pi_h) - D/2 ln(2 pi) - 1/2 ln det Sigma.
    log_norm: f64,
}

/// What does not depend on the point.
struct Latent {
    /// G_hh.
    gram: f64,
    /// K_h.
    slab: f64,
    /// mu_h.
    mean: f64,
    /// lambda_h.
    precision: f64,
    /// logit pi_h.
    logit: f64,
    /// 1/2 ln(K_h / lambda_h).
    log_ratio: f64,
}

/// q of one latent.
#[derive(Clone, Copy, Default)]
struct Factor {
    /// g_h.
    on: f64,
    /// logit g_h.
    logit: f64,
    /// eta_h.
    mean: f64,
}

/// Statistics of all points, with the bound F as their free energy. `means` holds m of every point (N x H) from the E-step
/// before, and that of this one afterwards; where it is empty, all latents begin at zero.
pub fn e_step(
    parameters: &Parameters,
    means: &mut Vec<f64>,
    points: &mut Points,
    threads: usize,
) -> Result<Statistics> {
    let job = Job::new(parameters)?;
    let (d, h) = (parameters.dims, parameters.latents);
    let is_first = means.is_empty();
    means.resize(points.len() * h, 0.0);
    let mut sums = Statistics::new(parameters);
    let (mut start, mut block) = (0, Vec::new());
    while points.read(start, BLOCK * CHUNK, &mut block)? > 0 {
        let count = block.len() / d;
        let pieces: Vec<_> = block
            .chunks(CHUNK * d)
            .zip(means[start * h..][..count * h].chunks_mut(CHUNK * h))
            .map(|piece| Mutex::new((piece, None)))
            .collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ((chunk, means), found) = &mut *piece.lock().unwrap_or_else(|broken| broken.into_inner());
                *found = Some(job.chunk(chunk, means, is_first, ((SWEEPS, 0.0), &mut Point::new(h))));
            }
        };
        std::thread::scope(|scope| {
            (1..threads.min(pieces.len())).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        // In the order of the points, whatever the number of threads.
        for piece in pieces {
            let (_, found) = piece.into_inner().unwrap_or_else(|broken| broken.into_inner());
            found.into_iter().for_each(|found| sums.merge(&found));
        }
        start += count;
    }
    if !sums.free_energy.is_finite() {
        let what = "the numbers of a point are so large that its posterior overflows";
        return Err(Error::input(what, "the E-step", "rescale the data, or remove the point"));
    }
    Ok(sums)
}

/// What a bounded number of sweeps makes of a point, from nothing, and what they take.
#[derive(Clone, Debug)]
pub struct Found {
    /// F.
    pub free_energy: f64,
    /// g. (H)
    pub activity: Vec<f64>,
    /// m. (H)
    pub mean: Vec<f64>,
    /// How many times a latent was updated.
    pub updated: usize,
    /// How many times that moved its mean, each for H multiply-adds.
    pub moved: usize,
}

/// The factored posteriors of points (N x D), after so many sweeps at most. A mean stays where moving it would move its data by
/// `least` standard deviations of the noise or less.
pub fn infer(parameters: &Parameters, points: &[f64], sweeps: usize, least: f64) -> Result<Vec<Found>> {
    let job = Job::new(parameters)?;
    let mut found = Vec::with_capacity(points.len() / parameters.dims);
    for y in points.chunks_exact(parameters.dims) {
        let mut mean = vec![0.0; parameters.latents];
        let mut point = Point::new(parameters.latents);
        let sums = job.chunk(y, &mut mean, true, ((sweeps, least), &mut point));
        let (activity, free_energy) = (sums.activity, sums.free_energy);
        found.push(Found { free_energy, activity, mean, updated: point.updated, moved: point.moved });
    }
    Ok(found)
}

/// F of points that nothing is learned from, summed.
pub fn free_energy(parameters: &Parameters, points: &mut Points, threads: usize) -> Result<f64> {
    Ok(e_step(parameters, &mut Vec::new(), points, threads)?.free_energy)
}

impl<'a> Job<'a> {
    fn new(parameters: &'a Parameters) -> Result<Self> {
        if matches!(parameters.slab_cov, SlabCov::Full(_)) {
            let what = "a factored posterior has no place for slabs that depend on each other";
            return Err(Error::input(what, "--slab full", "use a diagonal slab, or --engine truncated"));
        }
        let (d, h) = (parameters.dims, parameters.latents);
        let gram = gram(parameters)?;
        let variances = parameters.slab_variances();
        let latents = (0..h).map(|i| {
            let (diagonal, slab, pi) = (gram[i * h + i], 1.0 / variances[i], parameters.prior[i]);
            let precision = diagonal + slab;
            Latent {
                gram: diagonal,
                slab,
                mean: parameters.slab_mean[i],
                precision,
                logit: pi.ln() - (-pi).ln_1p(),
                log_ratio: 0.5 * (slab / precision).ln(),
            }
        });
        let log_off: f64 = parameters.prior.iter().map(|&pi| (-pi).ln_1p()).sum();
        let whitener = Whitener::new(&parameters.noise, d)?;
        Ok(Self {
            parameters,
            whitened: pack(&whitened(parameters)?, d, parameters.latents),
            latents: latents.collect(),
            gram,
            log_norm: log_off - 0.5 * d as f64 * std::f64::consts::TAU.ln() + whitener.log_det(),
            whitener,
        })
    }

    /// Coordinate ascent on every point of a chunk.
    fn chunk(
        &self,
        chunk: &[f64],
        means: &mut [f64],
        is_first: bool,
        (sweeps, point): ((usize, f64), &mut Point),
    ) -> Statistics {
        let (d, h) = (self.parameters.dims, self.parameters.latents);
        let n = chunk.len() / d;
        let mut sums = Statistics::new(self.parameters);
        let mut white = chunk.to_vec();
        white.chunks_exact_mut(d).for_each(|y| self.whitener.apply(y));
        let mut projection = vec![0.0; n * h];
        product(&white, &self.whitened, d, h, &mut projection);

        let mut order: Vec<usize> = (0..h).collect();
        let each = white.chunks_exact(d).zip(projection.chunks_exact(h)).zip(means.chunks_exact_mut(h));
        for ((y, b), m) in each {
            if is_first {
                // The first latent that is looked at gets all that it can explain, so the best one comes first.
                let scores: Vec<f64> = (0..h).map(|i| self.update(i, b[i]).logit).collect();
                order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]).then(i.cmp(&j)));
            }
            let free_energy = self.ascend(b, m, (&order, sweeps), point) - 0.5 * dot(y, y);
            sums.points += 1;
            sums.free_energy += free_energy;
            sums.counted += free_energy;
            for (i, (factor, latent)) in point.factors.iter().zip(&self.latents).enumerate() {
                let square = factor.square(latent);
                sums.activity[i] += factor.on;
                sums.mean[i] += m[i];
                sums.square[i] += square;
                // What is missing beside m m^T, which follows below.
                sums.second[Statistics::place(i, i)] += square - m[i] * m[i];
            }
        }

        let (y, m) = (MatRef::from_row_major_slice(chunk, n, d), MatRef::from_row_major_slice(&*means, n, h));
        let products = m.transpose() * m;
        for i in 0..h {
            (0..=i).for_each(|j| sums.second[Statistics::place(i, j)] += products[(i, j)]);
        }
        let cross = MatMut::from_row_major_slice_mut(&mut sums.cross, d, h);
        matmul(cross, Accum::Add, y.transpose(), m, 1.0, Par::Seq);
        sums.add_power(chunk, d);
        sums
    }

    /// So many sweeps over the latents at most, until nothing moves by more than `least`, from the means m. Returns F less -1/2
    /// y^T Sigma^-1 y.
    fn ascend(
        &self,
        b: &[f64],
        m: &mut [f64],
        (order, (sweeps, least)): (&[usize], (usize, f64)),
        point: &mut Point,
    ) -> f64 {
        let h = b.len();
        let Point { factors, residual, updated, moved: changed } = point;
        // b - G m
        for (i, residual) in residual.iter_mut().enumerate() {
            *residual = b[i] - dot(&self.gram[i * h..][..h], m);
        }
        for _ in 0..sweeps {
            let mut moved: f64 = 0.0;
            *updated += h;
            for &i in order {
                let latent = &self.latents[i];
                let factor = self.update(i, residual[i] + latent.gram * m[i]);
                let change = factor.on * factor.mean - m[i];
                if change * change * latent.gram > least * least {
                    *changed += 1;
                    let row = &self.gram[i * h..][..h];
                    residual.iter_mut().zip(row).for_each(|(residual, g)| *residual -= change * g);
                    m[i] += change;
                    moved = moved.max(change * change * latent.gram);
                }
                factors[i] = factor;
            }
            if moved <= SETTLED * SETTLED {
                break;
            }
        }
        self.free_energy(b, m, point)
    }

    /// The best q of a latent, of which the others leave `seen` to explain.
    fn update(&self, i: usize, seen: f64) -> Factor {
        let Latent { slab, mean: mu, precision, logit, log_ratio, .. } = self.latents[i];
        let mean = (seen + slab * mu) / precision;
        let logit = logit + log_ratio + 0.5 * (precision * mean * mean - slab * mu * mu);
        Factor { on: 1.0 / (1.0 + (-logit).exp()), logit, mean }
    }

    fn free_energy(&self, b: &[f64], m: &[f64], point: &Point) -> f64 {
        let mut sum = self.log_norm;
        for (i, (factor, latent)) in point.factors.iter().zip(&self.latents).enumerate() {
            // (b - G m)_h is the residual, so b . m - 1/2 m^T G m = 1/2 (b + residual) . m.
            sum += 0.5 * (b[i] + point.residual[i]) * m[i];
            sum -= 0.5 * latent.gram * (factor.square(latent) - m[i] * m[i]);
            let off = factor.mean - latent.mean;
            let slab = latent.log_ratio + 0.5 - 0.5 * latent.slab * (off * off + 1.0 / latent.precision);
            // H(g) + g logit pi, with H(g) = ln(1 + e^a) - g a of the logit a of g.
            let a = factor.logit;
            let entropy = a.max(0.0) + (-a.abs()).exp().ln_1p() - factor.on * a;
            sum += entropy + factor.on * (latent.logit + slab);
        }
        sum
    }
}

/// Memory for one point.
struct Point {
    factors: Vec<Factor>,
    /// b - G m.
    residual: Vec<f64>,
    /// Latents that were updated, and those that moved.
    updated: usize,
    moved: usize,
}

impl Point {
    fn new(latents: usize) -> Self {
        Self { factors: vec![Factor::default(); latents], residual: vec![0.0; latents], updated: 0, moved: 0 }
    }
}

impl Factor {
    /// v_h = <(s z)^2>.
    fn square(&self, latent: &Latent) -> f64 {
        self.on * (self.mean * self.mean + 1.0 / latent.precision)
    }
}

/// L^-1 with L L^T = Sigma.
enum Whitener {
    Each(Vec<f64>),
    /// Packed by rows.
    Full(Vec<f64>),
}

impl Whitener {
    fn new(noise: &NoiseCov, d: usize) -> Result<Self> {
        Ok(match noise {
            NoiseCov::Shared(sigma2) => Self::Each(vec![1.0 / sigma2.sqrt(); d]),
            // Of a mixture, which has no factored posterior, the last.
            NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => {
                Self::Each(sigma2.iter().map(|v| 1.0 / v.sqrt()).collect())
            }
            NoiseCov::Full(sigma) => Self::Full(
                crate::linalg::cholesky_inverse(sigma, d)
                    .ok_or_else(|| crate::prepare::not_definite("sigma2"))?,
            ),
        })
    }

    /// -1/2 ln det Sigma.
    fn log_det(&self) -> f64 {
        match self {
            Self::Each(scale) => scale.iter().map(|s| s.ln()).sum(),
            Self::Full(packed) => {
                let diagonal = (0..).map(|i: usize| i * (i + 1) / 2 + i).take_while(|&at| at < packed.len());
                diagonal.map(|at| packed[at].ln()).sum()
            }
        }
    }

    fn apply(&self, y: &mut [f64]) {
        match self {
            Self::Each(scale) => y.iter_mut().zip(scale).for_each(|(y, s)| *y *= s),
            Self::Full(packed) => {
                // From the last row up, which needs those before it as they were.
                for i in (0..y.len()).rev() {
                    y[i] = dot(&packed[i * (i + 1) / 2..][..=i], &y[..=i]);
                }
            }
        }
    }
}
