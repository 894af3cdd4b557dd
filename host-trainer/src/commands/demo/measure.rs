//! What a linear filter would have made of the same recording.

use crate::Result;
use crate::linalg::cholesky_inverse;
use crate::parameters::Parameters;
use crate::prepare::not_definite;

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
