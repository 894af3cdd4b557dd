//! New directions for latents that do nothing.
//!
//! Large dictionaries get stuck with latents that are hardly ever on, or that share a direction with
//! another while the data has directions that no latent explains. Between passes of stepwise EM such a latent
//! takes the direction of what the model leaves of a badly explained point, y - W `<x>`, with the scale
//! and the activity that latents have on average. Plain EM never does this: it would no longer be EM.

use super::e_step::Poor;
use super::m_step::Warning;
use super::statistics::Statistics;
use crate::parameters::{Parameters, SlabCov};

/// On more rarely than this fraction of the average latent: unused.
const UNUSED: f64 = 0.02;

/// Columns with a cosine beyond this are one direction.
const SAME: f64 = 0.98;

/// New directions may not be closer to each other than this.
const NEW: f64 = 0.8;

/// Moves the latents that do nothing to what the poorly explained points lack; a warning each.
pub(super) fn revive(
    parameters: &mut Parameters,
    sums: &mut Statistics,
    mut poor: Vec<Poor>,
) -> Vec<Warning> {
    let (d, h) = (parameters.dims, parameters.latents);
    let idle = idle(parameters, sums);
    if idle.is_empty() || idle.len() == h {
        return Vec::new();
    }
    poor.sort_by(|a, b| a.evidence.total_cmp(&b.evidence));
    let busy = |k: &usize| idle.binary_search(k).is_err();
    let kept = (h - idle.len()) as f64;
    let psi2 = parameters.slab_variances();
    let column = |w: &[f64], k: usize| -> Vec<f64> { (0..d).map(|i| w[i * h + k]).collect() };
    let power =
        |k: usize| psi2[k] * dot(&column(&parameters.dictionary, k), &column(&parameters.dictionary, k));
    let scale = ((0..h).filter(busy).map(power).sum::<f64>() / kept).sqrt();
    let prior = (0..h).filter(busy).map(|k| parameters.prior[k]).sum::<f64>() / kept;
    let mut taken: Vec<Vec<f64>> = Vec::new();
    let mut directions = poor.into_iter().filter_map(|point| {
        let norm = dot(&point.residual, &point.residual).sqrt();
        let direction: Vec<f64> = point.residual.iter().map(|r| r / norm).collect();
        let fresh = norm > 0.0 && norm.is_finite() && taken.iter().all(|t| dot(t, &direction).abs() < NEW);
        fresh.then(|| {
            taken.push(direction.clone());
            direction
        })
    });
    let mut warnings = Vec::new();
    for &k in &idle {
        let Some(direction) = directions.next() else { break };
        let new: Vec<f64> = direction.iter().map(|u| scale * u).collect();
        place(parameters, sums, k, &new, prior);
        warnings.push(Warning::Revived(k));
    }
    warnings
}

/// Latents that are hardly ever on, and of every pair with one direction the rarer; ascending.
fn idle(parameters: &Parameters, sums: &Statistics) -> Vec<usize> {
    let (d, h) = (parameters.dims, parameters.latents);
    let mean = sums.activity.iter().sum::<f64>() / h as f64;
    let mut idle: Vec<bool> = sums.activity.iter().map(|&on| on < UNUSED * mean).collect();
    let unit: Vec<Vec<f64>> = (0..h)
        .map(|k| {
            let column: Vec<f64> = (0..d).map(|i| parameters.dictionary[i * h + k]).collect();
            let norm = dot(&column, &column).sqrt();
            column.iter().map(|w| if norm > 0.0 { w / norm } else { 0.0 }).collect()
        })
        .collect();
    for a in 0..h {
        for b in 0..a {
            if !idle[a] && !idle[b] && dot(&unit[a], &unit[b]).abs() > SAME {
                idle[if sums.activity[a] < sums.activity[b] { a } else { b }] = true;
            }
        }
    }
    (0..h).filter(|&k| idle[k]).collect()
}

/// Puts a latent on a column of its own, and into the sums what a model with it expects.
fn place(parameters: &mut Parameters, sums: &mut Statistics, k: usize, column: &[f64], prior: f64) {
    let (h, n) = (parameters.latents, sums.points as f64);
    parameters.prior[k] = prior;
    parameters.slab_mean[k] = 0.0;
    if let SlabCov::Diagonal(psi2) = &mut parameters.slab_cov {
        psi2[k] = 1.0;
    }
    sums.activity[k] = n * prior;
    sums.mean[k] = 0.0;
    for j in 0..h {
        sums.second[k.max(j) * h + k.min(j)] = 0.0;
    }
    sums.second[k * h + k] = n * prior;
    for (i, w) in column.iter().enumerate() {
        parameters.dictionary[i * h + k] = *w;
        sums.cross[i * h + k] = w * n * prior;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
