//! What inference finds of a point, added to sums over points.

use super::super::statistics::Statistics;
use crate::parameters::{Parameters, SlabCov};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use spikelet::math::Real;
use spikelet::{Estimate, Model};

/// [`add_products`] where only the selected latents have a mean.
pub(super) fn add_selected_products<T: Real>(y: &[f64], estimate: &Estimate<'_, T>, cross: &mut [f64]) {
    for i in estimate.selected.iter().map(|&i| usize::from(i)) {
        let mean = estimate.mean[i].to_f64();
        if mean != 0.0 {
            cross[i * y.len()..][..y.len()].iter_mut().zip(y).for_each(|(sum, y)| *sum += mean * y);
        }
    }
}

/// Adds y <x>^T: D multiply-adds for every latent that has a mean, which few have.
pub(super) fn add_products<T: Real>(y: &[f64], mean: &[T], cross: &mut [f64]) {
    for (mean, row) in mean.iter().zip(cross.chunks_exact_mut(y.len())) {
        let mean = mean.to_f64();
        if mean != 0.0 {
            row.iter_mut().zip(y).for_each(|(sum, y)| *sum += mean * y);
        }
    }
}

impl Statistics {
    /// Scatters the moments of one point: H'^2 for the selected latents, one each for the others.
    pub(super) fn add<T: Real>(&mut self, estimate: &Estimate<'_, T>) {
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
        let s = estimate.selected.len();
        for (p, &i) in estimate.selected.iter().enumerate() {
            let i = usize::from(i);
            let mean = estimate.mean[i].to_f64();
            let already = estimate.variance[i].to_f64() + mean * mean;
            self.second[Self::place(i, i)] += estimate.second[p * s + p].to_f64() - already;
            for (q, &j) in estimate.selected.iter().enumerate().take(p) {
                let j = usize::from(j);
                self.second[Self::place(i, j)] += estimate.second[p * s + q].to_f64();
            }
        }
    }

    /// [`Statistics::add`] where the other latents are off.
    pub(super) fn add_selected<T: Real>(&mut self, estimate: &Estimate<'_, T>) {
        self.points += 1;
        let s = estimate.selected.len();
        for (p, &i) in estimate.selected.iter().enumerate() {
            let i = usize::from(i);
            let activity = estimate.activity[i].to_f64();
            if activity == 0.0 {
                continue;
            }
            self.activity[i] += activity;
            self.mean[i] += estimate.mean[i].to_f64();
            self.square[i] += estimate.second[p * s + p].to_f64();
            for (&j, second) in estimate.selected.iter().zip(&estimate.second[p * s..][..=p]) {
                self.second[Self::place(i, usize::from(j))] += second.to_f64();
            }
        }
    }

    /// Scatters the slab's pull g of one point and its products, which [`Statistics::pulls_to_slab`] turns into
    /// moments of the slab; of a latent that was not selected, from its singleton state.
    pub(super) fn add_pull<T: Real>(
        &mut self,
        estimate: &Estimate<'_, T>,
        projection: &[T],
        model: &Model<'_, T>,
    ) {
        let (h, s) = (self.mean.len(), estimate.selected.len());
        for (i, activity) in estimate.activity.iter().map(|a| a.to_f64()).enumerate() {
            if activity > 0.0 && !estimate.selected.contains(&(i as u16)) {
                let (gram, precision) = (model.gram_diagonal[i].to_f64(), model.slab_precision[i].to_f64());
                let pull = projection[i].to_f64() - gram * estimate.mean[i].to_f64() / activity;
                self.slab[i] += activity * pull;
                self.slab_second[i * h + i] +=
                    activity * (pull * pull - gram * precision / (gram + precision));
            }
        }
        for (p, &i) in estimate.selected.iter().enumerate() {
            self.slab[usize::from(i)] += estimate.pull[p].to_f64();
            for (q, &j) in estimate.selected.iter().enumerate() {
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

    /// Adds y y^T of these points, or as much of it as the noise needs.
    pub(in super::super) fn add_power(&mut self, chunk: &[f64], d: usize) {
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
