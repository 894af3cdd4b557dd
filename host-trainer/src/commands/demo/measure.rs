//! How well sounds were separated, and what a linear filter would have made of the same recording.

use crate::Result;
use crate::linalg::cholesky_inverse;
use crate::parameters::Parameters;
use crate::prepare::not_definite;

/// Scale-invariant signal-to-distortion ratio in dB: the part of `estimate` along `truth` over the rest of it.
pub(super) fn si_sdr(estimate: &[f64], truth: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scale = dot(estimate, truth) / dot(truth, truth);
    let target = scale * scale * dot(truth, truth);
    let rest: f64 = estimate.iter().zip(truth).map(|(e, x)| (e - scale * x).powi(2)).sum();
    10.0 * (target / rest).log10()
}

/// The best linear estimate, P W^T (W P W^T + Sigma)^-1 y, with P the mean power of each source.
#[derive(Debug)]
pub(super) struct Wiener {
    /// H x D, row-major.
    filter: Vec<f64>,
    dims: usize,
}

impl Wiener {
    pub fn new(parameters: &Parameters) -> Result<Self> {
        let (d, h) = (parameters.dims, parameters.latents);
        let w = |i: usize, k: usize| parameters.dictionary[i * h + k];
        let noise = parameters.noise_variances();
        let power: Vec<f64> =
            parameters.prior.iter().zip(parameters.slab_variances()).map(|(pi, psi2)| pi * psi2).collect();
        let mut cov = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                cov[i * d + j] = (0..h).map(|k| w(i, k) * power[k] * w(j, k)).sum();
            }
            cov[i * d + i] += noise[i];
        }
        // cov^-1 = L^-T L^-1, L^-1 packed by rows
        let factor = cholesky_inverse(&cov, d).ok_or_else(|| not_definite("the demo's recording"))?;
        let l_inv = |i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
        let cov_inv = |i: usize, j: usize| (0..d).map(|m| l_inv(m, i) * l_inv(m, j)).sum::<f64>();
        let entry = |k: usize, j: usize| power[k] * (0..d).map(|i| w(i, k) * cov_inv(i, j)).sum::<f64>();
        let filter = (0..h * d).map(|at| entry(at / d, at % d)).collect();
        Ok(Self { filter, dims: d })
    }

    /// N x D to N x H.
    pub fn apply(&self, mixture: &[f32]) -> Vec<f32> {
        let estimate =
            |y: &[f32], row: &[f64]| row.iter().zip(y).map(|(f, &y)| f * f64::from(y)).sum::<f64>() as f32;
        let rows = || self.filter.chunks_exact(self.dims);
        mixture.chunks_exact(self.dims).flat_map(|y| rows().map(move |row| estimate(y, row))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn si_sdr_of_known_mixtures() {
        // A tenth of an orthogonal signal: 20 dB, at any scale.
        let truth = [1.0, 1.0, 1.0, 1.0];
        let estimate = [1.1, 0.9, 1.1, 0.9].map(|x| 7.0 * x);
        assert!((si_sdr(&estimate, &truth) - 20.0).abs() < 1e-9);
    }
}
