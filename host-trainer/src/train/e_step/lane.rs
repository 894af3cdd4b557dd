//! A chunk of points to statistics, on one thread.

use super::super::kinds::mca::{Shares, Strengths, by_latents};
use super::super::kinds::ssmca::Drawn;
use super::super::kinds::{self, Sums};
use super::super::statistics::Statistics;
use super::Task;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::prepare::Prepared;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use spikelet::gibbs::Draw;
use spikelet::math::Real;
use spikelet::{Detail, Engine, Estimate, Inference, Model};

const ADVICE: &str = "remove the point, subtract the mean of the data, or use --precision f64";

/// A number that inference and matrix products run in: `f32` or `f64`.
pub trait Scalar: Real + faer::traits::ComplexField {}
impl Scalar for f32 {}
impl Scalar for f64 {}

/// A point that the model explains badly.
#[derive(Clone, Debug, PartialEq)]
pub struct Poor {
    /// ln p(y) over the kept states.
    pub evidence: f64,
    /// `y - W <x>`. (D)
    pub residual: Vec<f64>,
}

/// What comes of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Statistics,
    Evidences,
}

/// What is added up besides activities and means.
enum Seen {
    Moments,
    Shares(Strengths),
    /// With W by latents. (H x D)
    Draws(Vec<f64>),
}

/// What all lanes share: the model, as inference and as matrix products want it.
pub(super) struct Job<'a, T> {
    pub parameters: &'a Parameters,
    wanted: Wanted,
    engine: Engine,
    least_evidence: f64,
    prepared: Prepared<T>,
    /// W. (D x H)
    dictionary: Vec<T>,
    weigh: Weigh<T>,
    /// What models other than linear ones add up.
    seen: Seen,
}

impl<'a, T: Scalar> Job<'a, T> {
    pub fn new(task: &Task<'a>, wanted: Wanted) -> Result<Self> {
        let Task { parameters, options, engine, temperature, least_evidence } = *task;
        Ok(Self {
            parameters,
            wanted,
            engine,
            least_evidence,
            prepared: Prepared::tempered(parameters, options, temperature)?,
            dictionary: parameters.dictionary.iter().map(|&w| T::from_f64(w)).collect(),
            weigh: Weigh::new(&parameters.noise.scaled(temperature), parameters.dims)?,
            seen: match kinds::of(parameters.kind).sums {
                Sums::Moments => Seen::Moments,
                Sums::Shares => Seen::Shares(Strengths::new(parameters, temperature)),
                Sums::Draws => Seen::Draws(by_latents(parameters)),
            },
        })
    }

    fn detail(&self) -> Detail {
        match (&self.parameters.slab_cov, self.wanted) {
            _ if !matches!(self.seen, Seen::Moments) => Detail::Marginals,
            (_, Wanted::Evidences) => Detail::Marginals,
            (SlabCov::Full(_), _) => Detail::SlabPull,
            _ => Detail::SecondMoments,
        }
    }
}

/// Sigma^-1, applied to a chunk at once.
enum Weigh<T> {
    Each(Vec<T>),
    Full(Mat<T>),
}

impl<T: Scalar> Weigh<T> {
    fn new(noise: &NoiseCov, d: usize) -> Result<Self> {
        let inverse = |v: &f64| T::from_f64(1.0 / v);
        Ok(match noise {
            NoiseCov::Full(sigma) => {
                let factor = crate::linalg::cholesky_inverse(sigma, d)
                    .ok_or_else(|| crate::prepare::not_definite("sigma2"))?;
                let entry = |i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
                let sum = |i: usize, j: usize| (i.max(j)..d).map(|k| entry(k, i) * entry(k, j)).sum();
                Self::Full(Mat::from_fn(d, d, |i, j| T::from_f64(sum(i, j))))
            }
            NoiseCov::Diagonal(sigma2) => Self::Each(sigma2.iter().map(inverse).collect()),
            NoiseCov::Shared(sigma2) => Self::Each(vec![inverse(sigma2); d]),
        })
    }

    fn apply(&self, chunk: &[T], d: usize, weighted: &mut [T]) {
        match self {
            Self::Each(precision) => {
                for (u, y) in weighted.chunks_exact_mut(d).zip(chunk.chunks_exact(d)) {
                    u.iter_mut().zip(y).zip(precision).for_each(|((u, y), p)| *u = *y * *p);
                }
            }
            Self::Full(precision) => {
                let n = chunk.len() / d;
                let out = MatMut::from_row_major_slice_mut(weighted, n, d);
                let y = MatRef::from_row_major_slice(chunk, n, d);
                matmul(out, Accum::Replace, y, precision.as_ref(), T::from_f64(1.0), Par::Seq);
            }
        }
    }
}

/// One of the sums that are kept apart, and what computing it needs.
pub(super) struct Lane<T> {
    pub sums: Statistics,
    /// One of every chunk.
    pub poor: Vec<Poor>,
    /// Of every point, where these are wanted.
    pub evidences: Vec<f64>,
    memory: Vec<T>,
    sample: Vec<T>,
    weighted: Vec<T>,
    projection: Vec<T>,
    /// Points of the chunk that count.
    counted: Vec<f64>,
    /// Draws of a point.
    drawn: Drawn,
    /// `sum <x> y^T`, or what models have in its place; grows by whole rows. (H x D)
    cross: Shares,
    /// `<x>` of the point explained worst. (H)
    worst: Vec<T>,
}

impl<T: Scalar> Lane<T> {
    pub fn new(job: &Job<'_, T>) -> Self {
        let sums = Statistics::new(job.parameters);
        let [memory, sample, weighted, projection, worst] = [(); 5].map(|()| Vec::new());
        let cross = Shares { seen: vec![0.0; sums.cross.len()], share: vec![0.0; sums.share.len()] };
        let [evidences, counted] = [(); 2].map(|()| Vec::new());
        let poor = Vec::new();
        let drawn = Drawn::default();
        Self { sums, poor, evidences, memory, sample, weighted, projection, counted, drawn, cross, worst }
    }

    /// Adds a chunk of points, the first of which is number `first`.
    pub fn run(&mut self, job: &Job<'_, T>, chunk: &[f64], first: usize) -> Result<()> {
        let model = job.prepared.model()?;
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let detail = job.detail();
        self.project(job, chunk);
        self.memory.resize(job.engine.arena_len(model.shape, detail), T::from_f64(0.0));
        let mut inference = Inference::with_engine(model, &mut self.memory, detail, job.engine)
            .map_err(|error| Error::input(error, "the E-step", "change --engine or its settings"))?;
        inference.seek(first as u64);

        let mut worst = (f64::INFINITY, 0);
        self.counted.clear();
        for (i, (sample, u)) in self.sample.chunks_exact(d).zip(self.weighted.chunks_exact(d)).enumerate() {
            let energy: f64 = sample.iter().zip(u).map(|(y, u)| y.to_f64() * u.to_f64()).sum();
            let refused = |error| Error::input(error, format_args!("point {}", first + i), ADVICE);
            let (y, b) = (&chunk[i * d..][..d], &self.projection[i * h..][..h]);
            inference.projected(sample, b, T::from_f64(energy)).map_err(refused)?;
            inference.select();
            self.drawn.clear();
            let keep = |draw: Draw<'_, T>| {
                if let Seen::Draws(w) = &job.seen {
                    self.drawn.add(w, &draw, y);
                }
            };
            let estimate = inference.draw(keep).map_err(refused)?;
            let evidence = estimate.evidence.to_f64();
            if job.wanted == Wanted::Evidences {
                self.evidences.push(evidence);
                continue;
            }
            self.sums.free_energy += evidence;
            if evidence < job.least_evidence {
                continue;
            }
            self.sums.counted += evidence;
            if evidence < worst.0 {
                worst = (evidence, i);
                self.worst.clear();
                self.worst.extend_from_slice(estimate.mean);
            }
            self.sums.add(&estimate);
            match &job.seen {
                Seen::Moments => {}
                Seen::Shares(strengths) => {
                    self.cross.add(strengths, &mut inference, y, &mut self.sums.power);
                    continue;
                }
                Seen::Draws(_) => {
                    self.drawn.add_to(&mut self.cross, &mut self.sums.power);
                    continue;
                }
            }
            self.counted.extend_from_slice(y);
            add_products(y, estimate.mean, &mut self.cross.seen);
            if detail == Detail::SlabPull {
                self.sums.add_pull(&estimate, b, &model);
            }
        }

        if !self.counted.is_empty() {
            self.sums.add_power(&self.counted, d);
            self.poor
                .push(Poor { evidence: worst.0, residual: self.residual(job.parameters, chunk, worst.1) });
        }
        Ok(())
    }

    /// Sigma^-1 y and b = W^T Sigma^-1 y of all points of a chunk.
    fn project(&mut self, job: &Job<'_, T>, chunk: &[f64]) {
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let n = chunk.len() / d;
        let (zero, one) = (T::from_f64(0.0), T::from_f64(1.0));
        self.weighted.resize(n * d, zero);
        self.projection.resize(n * h, zero);
        self.sample.clear();
        self.sample.extend(chunk.iter().map(|&y| T::from_f64(y)));
        job.weigh.apply(&self.sample, d, &mut self.weighted);
        let dictionary = MatRef::from_row_major_slice(&job.dictionary, d, h);
        let product = MatMut::from_row_major_slice_mut(&mut self.projection, n, h);
        let u = MatRef::from_row_major_slice(&self.weighted, n, d);
        matmul(product, Accum::Replace, u, dictionary, one, Par::Seq);
    }

    /// The sums of all chunks.
    pub fn finish(mut self) -> (Statistics, Vec<Poor>) {
        let h = self.sums.mean.len();
        let by_dimensions = |rows: &[f64]| -> Vec<f64> {
            let d = rows.len() / h.max(1);
            (0..d * h).map(|e| rows[e % h * d + e / h]).collect()
        };
        self.sums.cross = by_dimensions(&self.cross.seen);
        self.sums.share = by_dimensions(&self.cross.share);
        (self.sums, self.poor)
    }

    /// What the model leaves of a point of the chunk.
    fn residual(&self, parameters: &Parameters, chunk: &[f64], point: usize) -> Vec<f64> {
        let (d, h) = (parameters.dims, parameters.latents);
        let (y, x) = (&chunk[point * d..][..d], &self.worst);
        let explained = |row: &[f64]| row.iter().zip(x).map(|(w, x)| w * x.to_f64()).sum::<f64>();
        y.iter().zip(parameters.dictionary.chunks_exact(h)).map(|(y, row)| y - explained(row)).collect()
    }
}

/// Adds y <x>^T: D multiply-adds for every latent that has a mean, which few have.
fn add_products<T: Real>(y: &[f64], mean: &[T], cross: &mut [f64]) {
    for (mean, row) in mean.iter().zip(cross.chunks_exact_mut(y.len())) {
        let mean = mean.to_f64();
        if mean != 0.0 {
            row.iter_mut().zip(y).for_each(|(sum, y)| *sum += mean * y);
        }
    }
}

impl Statistics {
    /// Scatters the moments of one point: H'^2 for the selected latents, one each for the others.
    fn add<T: Real>(&mut self, estimate: &Estimate<'_, T>) {
        self.points += 1;
        let means = estimate.activity.iter().zip(estimate.mean).zip(estimate.variance);
        for (i, ((activity, mean), variance)) in means.enumerate() {
            let activity = activity.to_f64();
            if activity == 0.0 {
                continue;
            }
            let mean = mean.to_f64();
            self.activity[i] += activity;
            self.mean[i] += mean;
            let square = variance.to_f64() + mean * mean;
            self.square[i] += square;
            if self.second.is_empty() {
                continue;
            }
            // Of a latent that was not selected this is all there is; the selected ones follow below.
            self.second[Self::place(i, i)] += square;
        }
        if self.second.is_empty() {
            return;
        }
        let s = estimate.order.len();
        for (p, &i) in estimate.order.iter().enumerate() {
            let i = usize::from(i);
            let mean = estimate.mean[i].to_f64();
            let already = estimate.variance[i].to_f64() + mean * mean;
            self.second[Self::place(i, i)] += estimate.second[p * s + p].to_f64() - already;
            for (q, &j) in estimate.order.iter().enumerate().take(p) {
                let j = usize::from(j);
                self.second[Self::place(i, j)] += estimate.second[p * s + q].to_f64();
            }
        }
    }

    /// Scatters the slab's pull g of one point and its products, which [`Statistics::pulls_to_slab`] turns into
    /// moments of the slab; of a latent that was not selected, from its singleton state.
    fn add_pull<T: Real>(&mut self, estimate: &Estimate<'_, T>, projection: &[T], model: &Model<'_, T>) {
        let (h, s) = (self.mean.len(), estimate.order.len());
        for (i, activity) in estimate.activity.iter().map(|a| a.to_f64()).enumerate() {
            if activity > 0.0 && !estimate.order.contains(&(i as u16)) {
                let (gram, precision) = (model.gram_diagonal[i].to_f64(), model.slab_precision[i].to_f64());
                let pull = projection[i].to_f64() - gram * estimate.mean[i].to_f64() / activity;
                self.slab[i] += activity * pull;
                self.slab_second[i * h + i] +=
                    activity * (pull * pull - gram * precision / (gram + precision));
            }
        }
        for (p, &i) in estimate.order.iter().enumerate() {
            self.slab[usize::from(i)] += estimate.pull[p].to_f64();
            for (q, &j) in estimate.order.iter().enumerate() {
                self.slab_second[usize::from(i) * h + usize::from(j)] +=
                    estimate.pull_second[p * s + q].to_f64();
            }
        }
    }

    /// From sums of pulls, g = K (kappa - mu_A) and R = g g^T - W_A^T C^-1 W_A (zeros where s is 0), to the moments of
    /// all of z: in one state z has mean mu + Psi g and covariance Psi + Psi (R - g g^T) Psi. Sums of these can
    /// be blended over parameters that change; sums of pulls, which are relative to them, cannot.
    pub(super) fn pulls_to_slab(&mut self, parameters: &Parameters) {
        let SlabCov::Full(psi) = &parameters.slab_cov else { return };
        let (h, n) = (parameters.latents, self.points as f64);
        let psi = MatRef::from_row_major_slice(psi, h, h);
        let pull = Mat::from_fn(h, 1, |i, _| self.slab[i]);
        let moved = psi * &pull;
        let spread = psi * MatRef::from_row_major_slice(&self.slab_second, h, h) * psi;
        let mu = &parameters.slab_mean;
        for i in 0..h {
            self.slab[i] = n * mu[i] + moved[(i, 0)];
            for j in 0..h {
                let mean = n * mu[i] * mu[j] + mu[i] * moved[(j, 0)] + moved[(i, 0)] * mu[j];
                self.slab_second[i * h + j] = mean + n * psi[(i, j)] + spread[(i, j)];
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
