//! The little dense algebra that preparing a model needs.

use crate::Result;
use crate::parameters::{NoiseCov, Parameters};
use crate::prepare::not_definite;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};

/// L^-1 with L L^T = `matrix` (n x n), packed by rows; `None` when it is not positive definite.
pub(crate) fn cholesky_inverse(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let factor = MatRef::from_row_major_slice(matrix, n, n).llt(Side::Lower).ok()?;
    let mut inverse = Mat::<f64>::identity(n, n);
    faer::linalg::triangular_solve::solve_lower_triangular_in_place(factor.L(), inverse.as_mut(), Par::Seq);
    let packed: Vec<f64> =
        (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| inverse[(i, j)]).collect();
    packed.iter().all(|v| v.is_finite()).then_some(packed)
}

/// Sigma = L L^T (n x n, row-major), from L^-1 packed by rows: row i of L follows from the rows above it.
pub(crate) fn covariance_of(inverse: &[f64], n: usize) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let given = &inverse[i * (i + 1) / 2..][..=i];
        let mut row = vec![0.0; n];
        for (f, above) in given.iter().zip(&rows) {
            row.iter_mut().zip(above).for_each(|(x, l)| *x -= f * l / given[i]);
        }
        row[i] = 1.0 / given[i];
        rows.push(row);
    }
    let entry = |i: usize, j: usize| rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum();
    (0..n * n).map(|at| entry(at / n, at % n)).collect()
}

/// sum a_i b_i.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of length 1; `None` without a direction.
pub(crate) fn unit(vector: &[f64]) -> Option<Vec<f64>> {
    let norm = dot(vector, vector).sqrt();
    (norm > 0.0 && norm.is_finite()).then(|| vector.iter().map(|v| v / norm).collect())
}

/// The transpose of a row-major matrix with this many columns.
pub(crate) fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    let rows = matrix.len() / columns.max(1);
    (0..matrix.len()).map(|e| matrix[e % rows * columns + e / rows]).collect()
}

/// G = W^T Sigma^-1 W (H x H, row-major).
pub(crate) fn gram(parameters: &Parameters) -> Result<Vec<f64>> {
    let h = parameters.latents;
    let whitened = whitened(parameters)?;
    let mut gram = Mat::<f64>::zeros(h, h);
    matmul(gram.as_mut(), Accum::Replace, whitened.transpose(), whitened.as_ref(), 1.0, Par::Seq);
    Ok((0..h * h).map(|i| gram[(i / h, i % h)]).collect())
}

/// The diagonal of [`gram`] without the rest, to rounding.
pub(crate) fn gram_diagonal(parameters: &Parameters) -> Result<Vec<f64>> {
    let whitened = whitened(parameters)?;
    Ok((0..parameters.latents).map(|h| whitened.col(h).squared_norm_l2()).collect())
}

/// L^-1 W with L L^T = Sigma. (D x H)
pub(crate) fn whitened(parameters: &Parameters) -> Result<Mat<f64>> {
    let (d, h) = (parameters.dims, parameters.latents);
    let mut whitened = MatRef::from_row_major_slice(&parameters.dictionary, d, h).to_owned();
    match &parameters.noise {
        NoiseCov::Full(sigma) => {
            let factor = MatRef::from_row_major_slice(sigma, d, d)
                .llt(Side::Lower)
                .map_err(|_| not_definite("sigma2"))?;
            faer::linalg::triangular_solve::solve_lower_triangular_in_place(
                factor.L(),
                whitened.as_mut(),
                Par::Seq,
            );
        }
        _ => {
            for (i, variance) in parameters.noise_variances().iter().enumerate() {
                for w in whitened.row_mut(i).iter_mut() {
                    *w /= variance.sqrt();
                }
            }
        }
    }
    Ok(whitened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covariances_come_back_from_the_factor() {
        let d = 7;
        let sigma: Vec<f64> = (0..d * d)
            .map(|at| ((at / d) as f64, (at % d) as f64))
            .map(|(i, j)| (-0.4 * (i - j).abs()).exp() * (i + 1.0) * (j + 1.0) * 1e-3)
            .collect();
        let factor = cholesky_inverse(&sigma, d).unwrap();
        for (found, sigma) in covariance_of(&factor, d).into_iter().zip(&sigma) {
            assert!((found / sigma - 1.0).abs() < 1e-10);
        }
    }
}
