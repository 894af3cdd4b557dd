//! Hyperparameters by marginal likelihood.
//!
//! All H sets of targets share K, so with A = K^-1 S
//!
//! ```text
//! ln p = -1/2 tr(S^T A) - H/2 ln det K - H N/2 ln(2 pi)
//! d ln p / d theta = 1/2 tr((A A^T - H K^-1) dK/d theta)
//! ```
//!
//! climbed in the logarithms of the hyperparameters, with a step of its own for each that grows as long as the slope keeps its sign
//! and shrinks when it turns (Rprop), within bounds. Selection needs an order of latents only, so a rough fit is enough: at most
//! [`SUBSET`] points are looked at, spread over all, which bounds the cost at [`STEPS`] times SUBSET^3 whatever N is.

use super::kernel::{Kernel, PARTS};
use crate::linalg::dot;
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, MatRef, Side};

/// Points that the likelihood is computed of, at most.
pub const SUBSET: usize = 160;
/// Evaluations of the likelihood, at most.
pub const STEPS: usize = 15;
/// First and largest step of a logarithm.
const FIRST_STEP: f64 = 0.3;
const LONGEST_STEP: f64 = 1.5;
/// A hyperparameter stays within this factor of where it began: a part at its lower end does nothing.
const RANGE: f64 = 1e6;
/// The white part stays above this fraction of the others, so that K can be factored.
const LEAST_WHITE: f64 = 1e-4;

/// The marginal likelihood of targets (N x H) at points (N x D), and its derivatives by the logarithms of the
/// hyperparameters; `None` where K is not positive definite. Costs N^3 operations.
pub fn likelihood(
    kernel: &Kernel,
    points: &[f64],
    dims: usize,
    targets: &[f64],
    latents: usize,
) -> Option<(f64, [f64; PARTS])> {
    let n = points.len() / dims;
    let point = |i: usize| &points[i * dims..][..dims];
    let slopes: Vec<(f64, [f64; PARTS])> = (0..n)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .map(|(i, j)| kernel.slopes(point(i), point(j), i == j))
        .collect();
    let place = |i: usize, j: usize| i.max(j) * (i.max(j) + 1) / 2 + i.min(j);
    let factor = Mat::from_fn(n, n, |i, j| slopes[place(i, j)].0).llt(Side::Lower).ok()?;
    let inverse = factor.inverse();
    let weights = &inverse * MatRef::from_row_major_slice(targets, n, latents);
    let log_det: f64 = (0..n).map(|i| 2.0 * factor.L()[(i, i)].ln()).sum();
    let fit: f64 = (0..n * latents).map(|e| targets[e] * weights[(e / latents, e % latents)]).sum();
    let h = latents as f64;
    let value = -0.5 * (fit + h * log_det + h * n as f64 * std::f64::consts::TAU.ln());
    let outer = &weights * weights.transpose();
    let mut gradient = [0.0; PARTS];
    for i in 0..n {
        for j in 0..=i {
            // Both triangles; the diagonal once.
            let weight = (outer[(i, j)] - h * inverse[(i, j)]) * if i == j { 0.5 } else { 1.0 };
            let slope = &slopes[place(i, j)].1;
            gradient.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += weight * slope);
        }
    }
    (value.is_finite() && gradient.iter().all(|g| g.is_finite())).then_some((value, gradient))
}

/// A kernel that explains the targets better, or the same. `first` is where the fits of a run began, from which the bounds follow.
pub fn fit(
    kernel: Kernel,
    first: &Kernel,
    points: &[f64],
    dims: usize,
    targets: &[f64],
    latents: usize,
) -> Kernel {
    let n = points.len() / dims;
    let count = n.min(SUBSET);
    let chosen = || (0..count).map(|k| k * n / count.max(1));
    let points: Vec<f64> = chosen().flat_map(|i| points[i * dims..][..dims].iter().copied()).collect();
    let targets: Vec<f64> =
        chosen().flat_map(|i| targets[i * latents..][..latents].iter().copied()).collect();
    let first = first.values();
    let energy = dot(&points, &points) / count.max(1) as f64;
    let (mut at, mut steps, mut before) = (kernel.values(), [FIRST_STEP; PARTS], [0.0; PARTS]);
    let mut best = (f64::NEG_INFINITY, kernel);
    for _ in 0..STEPS {
        let now = kernel.with_values(at);
        let Some((value, mut gradient)) = likelihood(&now, &points, dims, &targets, latents) else { break };
        if value > best.0 {
            best = (value, now);
        }
        for part in 0..PARTS {
            if first[part] == 0.0 {
                continue;
            }
            let turned = gradient[part] * before[part];
            if turned > 0.0 {
                steps[part] = (1.2 * steps[part]).min(LONGEST_STEP);
            } else if turned < 0.0 {
                steps[part] *= 0.5;
                gradient[part] = 0.0;
            }
            let step = steps[part] * if gradient[part] == 0.0 { 0.0 } else { gradient[part].signum() };
            at[part] = (at[part].ln() + step).exp().clamp(first[part] / RANGE, first[part] * RANGE);
        }
        let [linear, radial, _, bias, white] = &mut at;
        *white = white.max(LEAST_WHITE * (*linear * energy + *radial + *bias));
        before = gradient;
    }
    best.1
}
