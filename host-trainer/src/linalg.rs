//! The little dense algebra that preparing a model needs.

use crate::Result;
use crate::parameters::{NoiseCov, Parameters};
use crate::prepare::not_definite;
use faer::{Mat, MatMut, MatRef, Par, Side};
use spikelet::math::Real;
use spikelet::model::PANEL;
pub(crate) use spikelet::project::many::product;

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

/// Rows and columns of a matrix that are transposed together, so that what is read and what is written stay in the cache.
const TILE: usize = 16;

/// The transpose of a row-major matrix with this many columns.
pub(crate) fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    let columns = columns.max(1);
    let rows = matrix.len() / columns;
    let mut out = vec![0.0; matrix.len()];
    for (block, band) in matrix.chunks(TILE * columns).enumerate() {
        for first in (0..columns).step_by(TILE) {
            for j in first..(first + TILE).min(columns) {
                let to = &mut out[j * rows + block * TILE..];
                to.iter_mut().zip(band.chunks_exact(columns)).for_each(|(to, row)| *to = row[j]);
            }
        }
    }
    out
}

/// The columns of a row-major matrix (k x n) in panels, as [`product`] wants them: `PANEL` columns, row by row, with zeros where
/// there are no more.
pub(crate) fn pack<T: Real>(matrix: &[f64], k: usize, n: usize) -> Vec<T> {
    let mut packed = vec![T::ZERO; k * n.next_multiple_of(PANEL)];
    for (p, panel) in packed.chunks_exact_mut(k * PANEL).enumerate() {
        let width = PANEL.min(n - p * PANEL);
        for (to, row) in panel.chunks_exact_mut(PANEL).zip(matrix.chunks_exact(n)) {
            to.iter_mut().zip(&row[p * PANEL..][..width]).for_each(|(to, &w)| *to = T::from_f64(w));
        }
    }
    packed
}

/// A A^T of the columns of a row-major matrix (k x n), all of it. (n x n)
pub(crate) fn squares(matrix: &[f64], k: usize, n: usize) -> Vec<f64> {
    let (rows, panels) = (transposed(matrix, n), pack::<f64>(matrix, k, n));
    let mut out = vec![0.0; n * n];
    // What is above the diagonal follows from what is below it.
    for (block, (a, out)) in rows.chunks(BLOCK * k).zip(out.chunks_mut(BLOCK * n)).enumerate() {
        let columns = ((block + 1) * BLOCK).min(n);
        let mut part = vec![0.0; a.len() / k * columns];
        product(a, &panels[..columns.next_multiple_of(PANEL) * k], k, columns, &mut part);
        for (out, part) in out.chunks_exact_mut(n).zip(part.chunks_exact(columns)) {
            out[..columns].copy_from_slice(part);
        }
    }
    for i in 0..n {
        for j in (i / BLOCK + 1) * BLOCK..n {
            out[i * n + j] = out[j * n + i];
        }
    }
    out
}

/// Rows of [`squares`] that are worked on together.
const BLOCK: usize = 32;

/// G = W^T Sigma^-1 W (H x H, row-major).
pub(crate) fn gram(parameters: &Parameters) -> Result<Vec<f64>> {
    let (d, h) = (parameters.dims, parameters.latents);
    let whitened = whitened(parameters)?;
    Ok(squares(&whitened, d, h))
}

/// The diagonal of [`gram`] without the rest.
pub(crate) fn gram_diagonal(parameters: &Parameters) -> Result<Vec<f64>> {
    let mut diagonal = vec![0.0; parameters.latents];
    for row in whitened(parameters)?.chunks_exact(parameters.latents) {
        diagonal.iter_mut().zip(row).for_each(|(sum, w)| *sum += w * w);
    }
    Ok(diagonal)
}

/// L^-1 W with L L^T = Sigma. (D x H, row-major)
pub(crate) fn whitened(parameters: &Parameters) -> Result<Vec<f64>> {
    let (d, h) = (parameters.dims, parameters.latents);
    let mut whitened = parameters.dictionary.clone();
    match &parameters.noise {
        NoiseCov::Full(sigma) => {
            let factor = MatRef::from_row_major_slice(sigma, d, d)
                .llt(Side::Lower)
                .map_err(|_| not_definite("sigma2"))?;
            let right = MatMut::from_row_major_slice_mut(&mut whitened, d, h);
            faer::linalg::triangular_solve::solve_lower_triangular_in_place(factor.L(), right, Par::Seq);
        }
        _ => {
            for (row, variance) in whitened.chunks_exact_mut(h).zip(parameters.noise_variances()) {
                let deviation = variance.sqrt();
                row.iter_mut().for_each(|w| *w /= deviation);
            }
        }
    }
    Ok(whitened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_sums_in_order() {
        for (n, k, m) in [(1, 1, 1), (4, 3, 8), (5, 7, 9), (13, 2, 33), (40, 5, 70)] {
            let number = |e: usize| ((e * 37 + 11) % 101) as f64 / 7.0 - 6.0;
            let a: Vec<f64> = (0..n * k).map(number).collect();
            let b: Vec<f64> = (0..k * m).map(|e| number(e + 5)).collect();
            let mut out = vec![0.0; n * m];
            product(&a, &pack::<f64>(&b, k, m), k, m, &mut out);
            for (e, found) in out.into_iter().enumerate() {
                let sum = (0..k).fold(0.0, |sum, i| sum + a[e / m * k + i] * b[i * m + e % m]);
                assert_eq!(found, sum);
            }
            let all = squares(&b, k, m);
            for (e, found) in all.into_iter().enumerate() {
                let sum = (0..k).fold(0.0, |sum, i| sum + b[i * m + e / m] * b[i * m + e % m]);
                assert_eq!(found, sum);
            }
        }
    }

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
