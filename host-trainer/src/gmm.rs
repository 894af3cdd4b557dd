//! Gaussian mixtures [004 sec. 4.5.2]: exactly one latent is on,
//!
//! ```text
//! p(y) = sum_c pi_c N(y; mu_c, Sigma_c)
//! ```
//!
//! learned by EM over all C components, or over C' of them per point. With q_c the responsibilities of the kept components and sums
//! over points,
//!
//! ```text
//! pi_c = mean q_c,   mu_c = sum q_c y / sum q_c,   Sigma_c = sum q_c (y - mu_c)(y - mu_c)^T / sum q_c
//! ```
//!
//! (shared: summed over c, divided by N; diagonal: its diagonal). Over all components the likelihood never falls. Selection by
//! score ranks components by ln pi_c + ln N(y; mu_c, S) with S the covariance averaged over components, whose projections
//! S^-1 mu_c are made once: C D operations a point where the densities of all components would take C D^2. Learned selection
//! is that of [`crate::train::gp_select`]: responsibilities regressed on the data; of ten or more that are kept
//! a tenth is drawn at random, and the first E-step keeps all.

use crate::gp::{Factor, Kernel, KernelName, fit as fit_kernel};
use crate::linalg::{cholesky_inverse, dot};
use crate::train::gp_select::complete;
use crate::{Error, Result};
use spikelet::rng::{self, Rng};

/// Form of the covariances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariances {
    /// Any, one per component.
    Full,
    /// A variance per dimension and component.
    Diagonal,
    /// Any, the same for all components.
    Shared,
}

/// A mixture of Gaussians.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    /// D.
    pub dims: usize,
    /// Form of `covariances`.
    pub form: Covariances,
    /// pi_c. (C)
    pub weights: Vec<f64>,
    /// mu_c. (C x D)
    pub means: Vec<f64>,
    /// Sigma_c. (C x D x D, C x D or D x D)
    pub covariances: Vec<f64>,
}

/// Which components a point is looked at with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// All.
    All,
    /// So many of the best by score.
    Score(usize),
    /// So many, learned: see [`crate::gp`].
    Gp {
        /// C'.
        count: usize,
        /// Parts of the kernel.
        kernel: KernelName,
        /// Pivots of its factor, at most.
        rank: usize,
        /// Iterations between two fits.
        every: usize,
    },
}

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which components are kept.
    pub select: Select,
    /// EM steps.
    pub iterations: usize,
    /// Smallest eigenvalue of a covariance.
    pub floor: f64,
    /// Of what is random.
    pub seed: u64,
}

/// Density of one component, ready to be evaluated.
struct Component {
    /// ln pi_c - D/2 ln(2 pi) - 1/2 ln det Sigma_c.
    offset: f64,
    /// L^-1 with L L^T = Sigma_c, packed by rows, or 1 / sigma per dimension.
    factor: Vec<f64>,
}

impl Mixture {
    /// C components with these means (C x D) and, each, the covariance of the data.
    pub fn around(means: Vec<f64>, form: Covariances, points: &[f64], dims: usize) -> Self {
        let c = means.len() / dims;
        let n = (points.len() / dims) as f64;
        let mut mean = vec![0.0; dims];
        points.chunks_exact(dims).for_each(|y| add(&mut mean, y, 1.0 / n));
        let mut covariance = vec![0.0; dims * dims];
        points.chunks_exact(dims).for_each(|y| add_outer(&mut covariance, y, &mean, 1.0 / n));
        let diagonal: Vec<f64> = (0..dims).map(|d| covariance[d * dims + d]).collect();
        let covariances = match form {
            Covariances::Full => covariance.repeat(c),
            Covariances::Diagonal => diagonal.repeat(c),
            Covariances::Shared => covariance,
        };
        Self { dims, form, weights: vec![1.0 / c as f64; c], means, covariances }
    }

    /// C.
    pub fn components(&self) -> usize {
        self.weights.len()
    }

    /// `ln pi_c + ln N(y; mu_c, Sigma_c)` of these components.
    fn log_joints(&self, components: &[Component], y: &[f64], kept: &[u16], out: &mut Vec<f64>) {
        let d = self.dims;
        out.clear();
        for c in kept.iter().map(|&c| usize::from(c)) {
            let mu = &self.means[c * d..][..d];
            let component = &components[if components.len() == 1 { 0 } else { c }];
            let off: Vec<f64> = y.iter().zip(mu).map(|(y, mu)| y - mu).collect();
            let square: f64 = match self.form {
                Covariances::Diagonal => {
                    off.iter().zip(&component.factor).map(|(off, scale)| (off * scale).powi(2)).sum()
                }
                _ => {
                    (0..d).map(|i| dot(&component.factor[i * (i + 1) / 2..][..=i], &off[..=i]).powi(2)).sum()
                }
            };
            out.push(component.offset + self.weights[c].ln() - 0.5 * square);
        }
    }

    fn prepare(&self) -> Result<Vec<Component>> {
        let d = self.dims;
        let constant = -0.5 * d as f64 * std::f64::consts::TAU.ln();
        let singular = || {
            Error::run("a covariance is singular", "the mixture", "use fewer components, or a larger floor")
        };
        let full = |sigma: &[f64]| {
            let factor = cholesky_inverse(sigma, d).ok_or_else(singular)?;
            let log_det: f64 = (0..d).map(|i| factor[i * (i + 1) / 2 + i].ln()).sum();
            Ok(Component { offset: constant + log_det, factor })
        };
        match self.form {
            Covariances::Full => self.covariances.chunks_exact(d * d).map(full).collect(),
            Covariances::Shared => Ok(vec![full(&self.covariances)?]),
            Covariances::Diagonal => self
                .covariances
                .chunks_exact(d)
                .map(|variances| {
                    let factor: Vec<f64> = variances.iter().map(|v| 1.0 / v.sqrt()).collect();
                    let log_det: f64 = factor.iter().map(|f| f.ln()).sum();
                    if log_det.is_finite() {
                        Ok(Component { offset: constant + log_det, factor })
                    } else {
                        Err(singular())
                    }
                })
                .collect(),
        }
    }

    /// Responsibilities (N x C) and ln p(y) summed over points, over the kept components of each.
    pub fn responsibilities(&self, points: &[f64], kept: Option<(&[u16], usize)>) -> Result<(Vec<f64>, f64)> {
        let (c, components) = (self.components(), self.prepare()?);
        let all: Vec<u16> = (0..c).map(|c| c as u16).collect();
        let mut found = vec![0.0; points.len() / self.dims * c];
        let (mut sum, mut joints) = (0.0, Vec::new());
        for (n, y) in points.chunks_exact(self.dims).enumerate() {
            let kept = kept.map_or(all.as_slice(), |(sets, each)| &sets[n * each..][..each]);
            self.log_joints(&components, y, kept, &mut joints);
            let most = joints.iter().fold(f64::NEG_INFINITY, |most, joint| most.max(*joint));
            let evidence = most + joints.iter().map(|joint| (joint - most).exp()).sum::<f64>().ln();
            sum += evidence;
            for (&kept, joint) in kept.iter().zip(&joints) {
                found[n * c + usize::from(kept)] = (joint - evidence).exp();
            }
        }
        Ok((found, sum))
    }

    /// The C' components of every point with the best scores. (N x C')
    fn by_score(&self, points: &[f64], each: usize) -> Result<Vec<u16>> {
        let (d, c) = (self.dims, self.components());
        let mut average = vec![0.0; d * d];
        match self.form {
            Covariances::Shared => average.copy_from_slice(&self.covariances),
            Covariances::Full => {
                let parts = self.covariances.chunks_exact(d * d).zip(&self.weights);
                parts.for_each(|(sigma, weight)| add(&mut average, sigma, *weight));
            }
            Covariances::Diagonal => {
                for (variances, weight) in self.covariances.chunks_exact(d).zip(&self.weights) {
                    (0..d).for_each(|i| average[i * d + i] += weight * variances[i]);
                }
            }
        }
        let shared = Self { form: Covariances::Shared, covariances: average, ..self.clone() };
        let factor = shared.prepare()?.swap_remove(0).factor;
        // S^-1 mu = F^T F mu with F = L^-1.
        let row = |i: usize| &factor[i * (i + 1) / 2..][..=i];
        let mut projections = vec![0.0; c * d];
        let mut offsets = Vec::with_capacity(c);
        for (mu, out) in self.means.chunks_exact(d).zip(projections.chunks_exact_mut(d)) {
            (0..d).for_each(|i| {
                let white = dot(row(i), &mu[..=i]);
                out.iter_mut().zip(row(i)).for_each(|(out, f)| *out += f * white);
            });
            offsets.push(-0.5 * dot(out, mu));
        }
        offsets.iter_mut().zip(&self.weights).for_each(|(offset, weight)| *offset += weight.ln());
        let mut sets = Vec::with_capacity(points.len() / d * each);
        for y in points.chunks_exact(d) {
            let scores: Vec<f64> =
                projections.chunks_exact(d).zip(&offsets).map(|(p, offset)| dot(p, y) + offset).collect();
            best(&scores, each, &mut sets);
        }
        Ok(sets)
    }

    /// The M-step from responsibilities (N x C). Components without points stay as they are.
    fn learn(&mut self, points: &[f64], found: &[f64], floor: f64) {
        let (d, c) = (self.dims, self.components());
        let n = (points.len() / d) as f64;
        let mut counts = vec![0.0; c];
        found.chunks_exact(c).for_each(|q| add(&mut counts, q, 1.0));
        let alive: Vec<bool> = counts.iter().map(|count| *count > 1e-3).collect();
        let mut means = vec![0.0; c * d];
        for (y, q) in points.chunks_exact(d).zip(found.chunks_exact(c)) {
            for k in (0..c).filter(|&k| q[k] > 0.0 && alive[k]) {
                add(&mut means[k * d..][..d], y, q[k] / counts[k]);
            }
        }
        for k in (0..c).filter(|&k| alive[k]) {
            self.means[k * d..][..d].copy_from_slice(&means[k * d..][..d]);
        }
        let mut sums =
            vec![0.0; if self.form == Covariances::Diagonal { c * d } else { self.covariances.len() }];
        for (y, q) in points.chunks_exact(d).zip(found.chunks_exact(c)) {
            for k in (0..c).filter(|&k| q[k] > 0.0) {
                let mu = &self.means[k * d..][..d];
                match self.form {
                    Covariances::Full if alive[k] => {
                        add_outer(&mut sums[k * d * d..][..d * d], y, mu, q[k] / counts[k]);
                    }
                    Covariances::Shared => add_outer(&mut sums, y, mu, q[k] / n),
                    Covariances::Diagonal if alive[k] => {
                        let sums = &mut sums[k * d..][..d];
                        (0..d).for_each(|i| sums[i] += q[k] / counts[k] * (y[i] - mu[i]).powi(2));
                    }
                    _ => {}
                }
            }
        }
        let size = self.covariances.len() / if self.form == Covariances::Shared { 1 } else { c };
        for (k, (own, sum)) in
            self.covariances.chunks_exact_mut(size).zip(sums.chunks_exact(size)).enumerate()
        {
            match self.form {
                Covariances::Shared => {
                    own.copy_from_slice(&crate::train::kinds::linear::lifted(sum, d, floor))
                }
                _ if !alive[k] => {}
                Covariances::Full => own.copy_from_slice(&crate::train::kinds::linear::lifted(sum, d, floor)),
                Covariances::Diagonal => own.iter_mut().zip(sum).for_each(|(own, sum)| *own = sum.max(floor)),
            }
        }
        self.weights = counts.iter().map(|count| (count / n).max(1e-12)).collect();
    }
}

/// EM from this mixture: the last one, and ln p(y) of the kept components, summed over points, before every step and at the end.
pub fn fit(mut mixture: Mixture, points: &[f64], settings: &Settings) -> Result<(Mixture, Vec<f64>)> {
    let (d, c) = (mixture.dims, mixture.components());
    let mut history = Vec::new();
    let mut learned = Learned::default();
    for iteration in 0..=settings.iterations {
        let sets = match settings.select {
            Select::All => None,
            Select::Score(count) => Some((mixture.by_score(points, count.clamp(1, c))?, count.clamp(1, c))),
            // At first there is nothing to learn from: all are kept.
            Select::Gp { .. } if iteration == 0 => None,
            Select::Gp { count, .. } => Some((learned.sets.clone(), count.clamp(1, c))),
        };
        let kept = sets.as_ref().map(|(sets, each)| (sets.as_slice(), *each));
        let (found, likelihood) = mixture.responsibilities(points, kept)?;
        history.push(likelihood);
        if iteration == settings.iterations {
            break;
        }
        mixture.learn(points, &found, settings.floor);
        learned.select(settings, iteration, points, d, &found, c)?;
    }
    Ok((mixture, history))
}

/// What learned selection keeps between iterations.
#[derive(Default)]
struct Learned {
    sets: Vec<u16>,
    kernels: Option<(Kernel, Kernel)>,
    factor: Option<Factor>,
}

impl Learned {
    fn select(
        &mut self,
        settings: &Settings,
        iteration: usize,
        points: &[f64],
        d: usize,
        found: &[f64],
        c: usize,
    ) -> Result<()> {
        let Select::Gp { count, kernel, rank, every } = settings.select else { return Ok(()) };
        let each = count.clamp(1, c);
        if self.kernels.is_none() || iteration.is_multiple_of(every.max(1)) {
            let power = found.iter().map(|q| q * q).sum::<f64>() / found.len() as f64;
            let (first, now) = self.kernels.unwrap_or_else(|| {
                let first = Kernel::new(kernel, points, d, power);
                (first, first)
            });
            let now = fit_kernel(now, &first, points, d, found, c);
            self.kernels = Some((first, now));
            self.factor = Factor::new(now, points, d, rank);
        }
        let Some(factor) = &self.factor else {
            let what = "the kernel matrix of the selection is not positive definite";
            return Err(Error::run(what, "the mixture", "rescale the data, or use another kernel"));
        };
        // Of two or three selected components none can be spared for chance.
        let sure = if each < c { each - each / 10 } else { each };
        self.sets.clear();
        for (n, affinities) in factor.affinities(found, c).chunks_exact(c).enumerate() {
            best(affinities, sure, &mut self.sets);
            complete(&mut self.sets, n * each, each, c, &mut random(settings.seed, iteration + 1, n));
        }
        Ok(())
    }
}

/// Appends the `count` best; of equals the first.
fn best(scores: &[f64], count: usize, sets: &mut Vec<u16>) {
    let mut order: Vec<u16> = (0..scores.len()).map(|c| c as u16).collect();
    order.sort_by(|a, b| scores[usize::from(*b)].total_cmp(&scores[usize::from(*a)]).then(a.cmp(b)));
    sets.extend_from_slice(&order[..count]);
}

/// Random numbers of one point in one iteration.
fn random(seed: u64, iteration: usize, point: usize) -> Rng {
    Rng::new(rng::mix(rng::mix(seed, iteration as u64), point as u64))
}

fn add(sums: &mut [f64], values: &[f64], weight: f64) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
}

/// weight (y - mu)(y - mu)^T.
fn add_outer(sums: &mut [f64], y: &[f64], mu: &[f64], weight: f64) {
    let d = y.len();
    for i in 0..d {
        let off = weight * (y[i] - mu[i]);
        for j in 0..d {
            sums[i * d + j] += off * (y[j] - mu[j]);
        }
    }
}
