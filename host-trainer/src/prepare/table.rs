//! Matrices of all states, made once for the blob instead of along the walk: what [`StateTable`] holds.
//!
//! For every set A of latents the inverse Cholesky factor of M = G_AA + Psi_AA^-1, and the constant of its log joint,
//! sum of logits - 1/2 ln det M - 1/2 ln det Psi_AA; with a full slab Psi_AA^-1 too.

use super::not_definite;
use crate::linalg::cholesky_inverse;
use crate::parameters::{Parameters, SlabCov};
use crate::{Error, Result};
use spikelet::math::binomial;
use spikelet::model::StateTable;

/// The records of [`StateTable`], all subsets of size 1 to `max_active` in its order.
pub(super) fn state_table(
    parameters: &Parameters,
    gram: &[f64],
    max_active: usize,
    beta: f64,
) -> Result<Vec<f64>> {
    let h = parameters.latents;
    let full = matches!(parameters.slab_cov, SlabCov::Full(_));
    let Some(len) = StateTable::<f64>::len(h, max_active, full) else {
        let states = binomial(h as u64, max_active as u64);
        let what =
            format_args!("{states} states of {max_active} latents are too many for a table").to_string();
        return Err(Error::input(what, "--max-active", "lower it, use fewer latents, or a diagonal slab"));
    };
    let mut records = Vec::with_capacity(len);
    for k in 1..=max_active {
        let mut subset: Vec<usize> = (0..k).collect();
        loop {
            record(parameters, gram, &subset, beta, &mut records)?;
            if !next_colex(&mut subset, h) {
                break;
            }
        }
    }
    Ok(records)
}

fn record(
    parameters: &Parameters,
    gram: &[f64],
    subset: &[usize],
    beta: f64,
    records: &mut Vec<f64>,
) -> Result<()> {
    let (h, k) = (parameters.latents, subset.len());
    let psi = |i: usize, j: usize| parameters.slab_covariance(i, j);
    let block = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        subset.iter().flat_map(|&i| subset.iter().map(move |&j| f(i, j))).collect()
    };
    // Psi_AA = L L^T; K = L^-T L^-1; ln det Psi_AA = -2 sum ln (L^-1)_ii
    let psi_factor = cholesky_inverse(&block(&psi), k).ok_or_else(|| not_definite("psi2"))?;
    let entry = |factor: &[f64], i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
    let precision = |i: usize, j: usize| -> f64 {
        (i.max(j)..k).map(|m| entry(&psi_factor, m, i) * entry(&psi_factor, m, j)).sum()
    };
    let mut m = block(&|i, j| gram[i * h + j]);
    for i in 0..k {
        for j in 0..k {
            m[i * k + j] += precision(i, j);
        }
    }
    let factor = cholesky_inverse(&m, k).ok_or_else(|| not_definite("W^T Sigma^-1 W + Psi^-1"))?;
    let log_odds: f64 =
        subset.iter().map(|&i| parameters.prior[i].ln() - (-parameters.prior[i]).ln_1p()).sum();
    let log_dets: f64 = (0..k).map(|i| entry(&factor, i, i).ln() + entry(&psi_factor, i, i).ln()).sum();
    records.push(beta * log_odds + log_dets);
    records.extend_from_slice(&factor);
    if matches!(parameters.slab_cov, SlabCov::Full(_)) {
        records.extend((0..k).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| precision(i, j)));
    }
    Ok(())
}

/// The next subset of 0..n in colexicographic order; false after the last.
fn next_colex(subset: &mut [usize], n: usize) -> bool {
    for i in 0..subset.len() {
        let limit = subset.get(i + 1).copied().unwrap_or(n);
        if subset[i] + 1 < limit {
            subset[i] += 1;
            for (j, slot) in subset[..i].iter_mut().enumerate() {
                *slot = j;
            }
            return true;
        }
    }
    false
}
