//! New directions for latents that do nothing.
//!
//! Large dictionaries get stuck with latents that add next to nothing, or that share a direction with another,
//! while the data has directions that no latent explains. Between the first passes of stepwise EM such a latent
//! takes a direction that badly explained points have in common in what the model leaves of them, y - W `<x>`,
//! with the scale and the activity that latents have on average. A latent that is weak by nature is found again that
//! way. Plain EM never does this: it would no longer be EM.

use super::e_step::Poor;
use super::m_step::Warning;
use super::statistics::Statistics;
use crate::linalg::{dot, squares, unit};
use crate::parameters::{Parameters, SlabCov};

/// When a latent is unused, and how it is reinitialised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revival {
    /// Adds less than this fraction of what the average latent adds to the data: unused.
    unused: f64,
    /// Columns with a cosine beyond this are one direction.
    same: f64,
    /// How much its new direction counts at first, in the points that the average latent is on for.
    weight: f64,
}

/// After a whole pass; and after a few batches, when the next ones soon tell whether a direction is one.
pub(super) const AT_LENGTH: Revival = Revival { unused: 0.2, same: 0.95, weight: 1.0 };
pub(super) const BRIEFLY: Revival = Revival { unused: 0.3, same: 0.9, weight: 0.2 };

/// Residuals with a cosine beyond this speak for one direction, and the more so the closer they are.
const KIN: f64 = 0.5;

/// Residuals that are compared, at most.
const MOST: usize = 400;

/// Moves the latents that do nothing to what the poorly explained points lack; a warning each.
pub(super) fn revive(
    parameters: &mut Parameters,
    sums: &mut Statistics,
    poor: Vec<Poor>,
    how: Revival,
) -> Vec<Warning> {
    let (d, h) = (parameters.dims, parameters.latents);
    let idle = idle(parameters, sums, how);
    if idle.is_empty() || idle.len() == h {
        return Vec::new();
    }
    let busy = |k: &usize| idle.binary_search(k).is_err();
    let kept = (h - idle.len()) as f64;
    let psi2 = parameters.slab_variances();
    let column = |w: &[f64], k: usize| -> Vec<f64> { (0..d).map(|i| w[i * h + k]).collect() };
    let power =
        |k: usize| psi2[k] * dot(&column(&parameters.dictionary, k), &column(&parameters.dictionary, k));
    let scale = ((0..h).filter(busy).map(power).sum::<f64>() / kept).sqrt();
    let prior = (0..h).filter(busy).map(|k| parameters.prior[k]).sum::<f64>() / kept;
    let mut directions = directions(poor, idle.len()).into_iter();
    let mut warnings = Vec::new();
    for &k in &idle {
        let Some(direction) = directions.next() else { break };
        let new: Vec<f64> = direction.iter().map(|u| scale * u).collect();
        parameters.prior[k] = prior;
        place(parameters, sums, k, &new, how.weight * prior);
        warnings.push(Warning::Revived(k));
    }
    warnings
}

/// Up to `count` directions that the residuals of the worst explained points have in common, the most common first.
///
/// Of a point that is badly explained because a direction lacks, the residual is about that direction; of one
/// that is an outlier, it is like no other. So the residual with the most kin is a good first guess, and the
/// mean of it and its kin a better one.
fn directions(mut poor: Vec<Poor>, count: usize) -> Vec<Vec<f64>> {
    poor.sort_by(|a, b| a.evidence.total_cmp(&b.evidence));
    poor.truncate(MOST);
    let all: Vec<Vec<f64>> = poor.iter().filter_map(|point| unit(&point.residual)).collect();
    let mut found = Vec::new();
    let cosines: Vec<Vec<f64>> = all.iter().map(|a| all.iter().map(|b| dot(a, b)).collect()).collect();
    let mut left: Vec<usize> = (0..all.len()).collect();
    while found.len() < count && !left.is_empty() {
        let support = |&a: &usize| left.iter().map(|&b| kinship(cosines[a][b])).sum::<f64>();
        let supports: Vec<f64> = left.iter().map(support).collect();
        let best = (0..left.len()).fold(0, |best, i| if supports[i] > supports[best] { i } else { best });
        let guess = left[best];
        let mut mean = vec![0.0; all[guess].len()];
        for &other in &left {
            let cosine = cosines[guess][other];
            let weight = kinship(cosine) * cosine.signum();
            mean.iter_mut().zip(&all[other]).for_each(|(m, r)| *m += weight * r);
        }
        // The guess itself is among them, so the mean is not zero.
        found.extend(unit(&mean));
        left.retain(|&other| cosines[guess][other].abs() < KIN);
    }
    found
}

/// From 0 at a cosine of [`KIN`] or less to 1.
fn kinship(cosine: f64) -> f64 {
    ((cosine.abs() - KIN) / (1.0 - KIN)).max(0.0)
}

/// Latents that add next to nothing, and of every pair with one direction the rarer; ascending.
fn idle(parameters: &Parameters, sums: &Statistics, how: Revival) -> Vec<usize> {
    let (d, h) = (parameters.dims, parameters.latents);
    let products = squares(&parameters.dictionary, d, h);
    // sum <x^2> |W|^2: what a latent adds to the data
    let power: Vec<f64> = (0..h).map(|k| sums.second_moment(k, k) * products[k * h + k]).collect();
    let mean = power.iter().sum::<f64>() / h as f64;
    let mut idle: Vec<bool> = power.iter().map(|&power| power < how.unused * mean).collect();
    for a in 0..h {
        for b in 0..a {
            let norms = (products[a * h + a] * products[b * h + b]).sqrt();
            if !idle[a] && !idle[b] && products[a * h + b].abs() > how.same * norms {
                idle[if sums.activity[a] < sums.activity[b] { a } else { b }] = true;
            }
        }
    }
    (0..h).filter(|&k| idle[k]).collect()
}

/// Puts a latent on a column of its own, and into the sums what a model with it expects when it is on with probability `prior`.
fn place(parameters: &mut Parameters, sums: &mut Statistics, k: usize, column: &[f64], prior: f64) {
    let (h, n) = (parameters.latents, sums.points as f64);
    parameters.slab_mean[k] = 0.0;
    match &mut parameters.slab_cov {
        SlabCov::Unit => {}
        SlabCov::Diagonal(psi2) => psi2[k] = 1.0,
        SlabCov::Full(psi) => {
            sums.slab[k] = 0.0;
            for j in 0..h {
                for place in [k * h + j, j * h + k] {
                    let variance = f64::from(u8::from(j == k));
                    (psi[place], sums.slab_second[place]) = (variance, n * variance);
                }
            }
        }
    }
    sums.activity[k] = n * prior;
    sums.mean[k] = 0.0;
    sums.square[k] = n * prior;
    for j in 0..h {
        sums.second[Statistics::place(k, j)] = 0.0;
    }
    sums.second[Statistics::place(k, k)] = n * prior;
    for (i, w) in column.iter().enumerate() {
        parameters.dictionary[i * h + k] = *w;
        sums.cross[i * h + k] = w * n * prior;
    }
    // What it explains must be there to be explained, or the noise falls below zero.
    let d = column.len();
    let is_full = sums.power.len() > d;
    for (e, power) in sums.power.iter_mut().enumerate() {
        let (i, j) = if is_full { (e / d, e % d) } else { (e, e) };
        *power += column[i] * column[j] * n * prior;
    }
}

#[cfg(test)]
mod tests {
    use super::super::m_step::{Guard, Learned, Update, m_step};
    use super::super::stepwise::expected;
    use super::*;
    use crate::parameters::{ModelKind, NoiseCov};

    #[test]
    fn a_new_column_leaves_the_noise_as_it_was() {
        for noise in [NoiseCov::Shared(0.2), NoiseCov::Full(vec![0.3, 0.1, 0.1, 0.2])] {
            // The second latent adds nothing.
            let mut model = Parameters {
                kind: ModelKind::Gsc,
                dims: 2,
                latents: 2,
                dictionary: vec![1.0, 0.0, 0.5, 0.0],
                prior: vec![0.2, 0.1],
                slab_mean: vec![0.0; 2],
                slab_cov: SlabCov::Diagonal(vec![1.0; 2]),
                noise,
            };
            let mut sums = expected(&model, 1000);
            let poor = Poor { evidence: -10.0, residual: vec![-3.0, 4.0] };
            assert_eq!(revive(&mut model, &mut sums, vec![poor], AT_LENGTH), [Warning::Revived(1)]);
            assert!(model.dictionary[1] < 0.0 && model.dictionary[3] > 0.0);

            let all = Learned { dictionary: true, prior: true, slab: true, noise: true };
            let free = Guard { noise_floor: 0.0, prior_margin: 0.0, slab_floor: 0.0 };
            let (new, warnings) = m_step(&model, &sums, &Update::new(all, free)).unwrap();
            assert_eq!(warnings, []);
            for (a, b) in new.noise_variances().iter().zip(model.noise_variances()) {
                assert!((a - b).abs() < 1e-12, "{a} {b}");
            }
        }
    }
}
