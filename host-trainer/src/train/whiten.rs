//! Whitening: training on V y instead of y, and the model of y that follows.
//!
//! ```text
//! V = C^(-1/2)      W = V^-1 W~      Sigma = V^-1 Sigma~ V^-T      ln p(y) = ln p(V y) + ln |det V|
//! ```
//!
//! with C the covariance of the data about their mean. The mean stays where it is, so that undoing is exact
//! and the model works on raw samples. Directions in which the data hardly vary are stretched by at most
//! 1000 times the least stretched one: beyond that 32-bit samples hold nothing but rounding.

use crate::parameters::{NoiseCov, Parameters};
use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

/// Smallest eigenvalue of C that is believed, as a fraction of the largest.
const FLOOR: f64 = 1e-6;

/// A whitening matrix and what undoes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whitening {
    /// V. (D x D, symmetric)
    pub matrix: Vec<f64>,
    /// V^-1. (D x D, symmetric)
    pub inverse: Vec<f64>,
    /// ln |det V|.
    pub log_det: f64,
}

impl Whitening {
    /// For data with this covariance (D x D).
    ///
    /// ```
    /// use spikelet_trainer::train::whiten::Whitening;
    /// let mut points = [4.0, 1.0];
    /// Whitening::new(&[4.0, 0.0, 0.0, 0.25], 2).apply(&mut points);
    /// assert!((points[0] - 2.0).abs() < 1e-12 && (points[1] - 2.0).abs() < 1e-12);
    /// ```
    pub fn new(covariance: &[f64], d: usize) -> Self {
        let spectrum = Spectrum::new(covariance, d);
        let largest = spectrum.largest();
        // Constant data has no scale: it stays as it is.
        let floor = if largest > 0.0 { FLOOR * largest } else { 1.0 };
        let lifted = |v: f64| v.max(floor);
        Self {
            matrix: spectrum.map(|v| 1.0 / lifted(v).sqrt()),
            inverse: spectrum.map(|v| lifted(v).sqrt()),
            log_det: spectrum.values.iter().map(|&v| -0.5 * lifted(v).ln()).sum(),
        }
    }

    /// y to V y, for points one after the other. A point's bits do not depend on its neighbours.
    pub fn apply(&self, points: &mut [f64]) {
        let d = (self.matrix.len() as f64).sqrt() as usize;
        let mut y = vec![0.0; d];
        for point in points.chunks_exact_mut(d) {
            y.copy_from_slice(point);
            for (out, row) in point.iter_mut().zip(self.matrix.chunks_exact(d)) {
                *out = row.iter().zip(&y).map(|(v, y)| v * y).sum();
            }
        }
    }

    /// The model of y from that of V y. Its noise is full, whatever it was.
    pub fn undo(&self, whitened: &Parameters) -> Parameters {
        let (d, h) = (whitened.dims, whitened.latents);
        let inverse = Mat::from_fn(d, d, |i, j| self.inverse[i * d + j]);
        let dictionary = &inverse * Mat::from_fn(d, h, |i, j| whitened.dictionary[i * h + j]);
        let sigma = Mat::from_fn(d, d, |i, j| whitened.noise_covariance(i, j));
        let noise = &inverse * sigma * &inverse;
        // Symmetric to the last bit, as a covariance is.
        let entry = |i: usize, j: usize| 0.5 * (noise[(i, j)] + noise[(j, i)]);
        Parameters {
            dictionary: (0..d * h).map(|e| dictionary[(e / h, e % h)]).collect(),
            noise: NoiseCov::Full((0..d * d).map(|e| entry(e / d, e % d)).collect()),
            ..whitened.clone()
        }
    }
}

/// U diag(values) U^T of a covariance.
pub(super) struct Spectrum {
    /// Eigenvalues, of which rounding may have left some below 0.
    pub values: Vec<f64>,
    vectors: Mat<f64>,
}

impl Spectrum {
    pub fn new(covariance: &[f64], d: usize) -> Self {
        let matrix = Mat::from_fn(d, d, |i, j| covariance[i * d + j]);
        match matrix.self_adjoint_eigen(Side::Lower) {
            Ok(eigen) => {
                let values = (0..d).map(|k| eigen.S().column_vector()[k]).collect();
                Self { values, vectors: eigen.U().to_owned() }
            }
            // The iteration did not end: the axes are the next best directions.
            Err(_) => {
                let values = (0..d).map(|i| covariance[i * d + i]).collect();
                Self { values, vectors: Mat::identity(d, d) }
            }
        }
    }

    /// The largest eigenvalue.
    pub fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |m, &v| m.max(v))
    }

    /// The direction of the largest eigenvalue, of length 1.
    pub fn first(&self) -> Vec<f64> {
        let d = self.values.len();
        let best = (0..d).fold(0, |best, k| if self.values[k] > self.values[best] { k } else { best });
        (0..d).map(|i| self.vectors[(i, best)]).collect()
    }

    /// U diag(f(values)) U^T, row-major.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Vec<f64> {
        let (d, u) = (self.values.len(), &self.vectors);
        let values: Vec<f64> = self.values.iter().map(|&v| f(v)).collect();
        let entry = |i: usize, j: usize| (0..d).map(|k| u[(i, k)] * values[k] * u[(j, k)]).sum();
        // From one triangle, so that it is symmetric to the last bit.
        (0..d * d).map(|e| entry((e / d).max(e % d), (e / d).min(e % d))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ModelKind, SlabCov};

    #[test]
    fn undoing_gives_back_the_covariance_of_the_model() {
        let covariance = [2.0, 0.6, 0.1, 0.6, 1.0, -0.2, 0.1, -0.2, 0.5];
        let whitening = Whitening::new(&covariance, 3);
        // W~ = 0 and Sigma~ = I: the raw model's noise is the data's covariance.
        let white = Parameters {
            kind: ModelKind::Gsc,
            dims: 3,
            latents: 1,
            dictionary: vec![0.0; 3],
            prior: vec![0.5],
            slab_mean: vec![0.0],
            slab_cov: SlabCov::Unit,
            noise: NoiseCov::Shared(1.0),
        };
        let NoiseCov::Full(sigma) = whitening.undo(&white).noise else { panic!("full noise") };
        for (a, b) in sigma.iter().zip(covariance) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        let mut column = whitening.undo(&Parameters { dictionary: vec![1.0, 2.0, 3.0], ..white }).dictionary;
        whitening.apply(&mut column);
        column.iter().zip([1.0, 2.0, 3.0]).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
        let determinant: f64 = 2.0 * (0.5 - 0.04) - 0.6 * (0.3 + 0.02) + 0.1 * (-0.12 - 0.1);
        assert!((whitening.log_det + 0.5 * determinant.ln()).abs() < 1e-12);
    }

    #[test]
    fn directions_without_variance_stay_finite() {
        for covariance in [[1.0, 1.0, 1.0, 1.0], [0.0; 4]] {
            let whitening = Whitening::new(&covariance, 2);
            let all = whitening.matrix.iter().chain(&whitening.inverse);
            assert!(all.chain([&whitening.log_det]).all(|v| v.is_finite()), "{whitening:?}");
        }
    }
}
