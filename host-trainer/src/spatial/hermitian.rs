//! Hermitian matrices of at most four rows, in `f64`: what a bin's covariances need, without the heap.
//!
//! A Hermitian matrix A has D^2 real coordinates in an orthonormal basis: its diagonal, and sqrt(2) times the real and imaginary
//! parts below it. Then tr(A B) is the product of two vectors of coordinates, and with those of y y^H so is y^H A y.

#![allow(clippy::needless_range_loop)] // indices as in the equations

use spikelet::spatial::{Complex, MOST_MICROPHONES};
use std::f64::consts::SQRT_2;

const MOST: usize = MOST_MICROPHONES;

/// Coordinates of a Hermitian matrix, D^2 of them used.
pub(super) type Coordinates = [f64; MOST * MOST];

/// D x D of it are used.
pub(super) type Matrix = [[Complex<f64>; MOST]; MOST];

/// A matrix of zeros.
pub(super) const ZERO: Matrix = [[[0.0; 2]; MOST]; MOST];

pub(super) fn times([a, b]: Complex<f64>, [c, d]: Complex<f64>) -> Complex<f64> {
    [a * c - b * d, a * d + b * c]
}

pub(super) fn conj([a, b]: Complex<f64>) -> Complex<f64> {
    [a, -b]
}

fn square([a, b]: Complex<f64>) -> f64 {
    a * a + b * b
}

/// x I.
pub(super) fn scalar(x: f64) -> Matrix {
    let mut a = ZERO;
    (0..MOST).for_each(|i| a[i][i][0] = x);
    a
}

/// a += x b.
pub(super) fn accumulate(a: &mut Matrix, x: f64, b: &Matrix) {
    for (a, b) in a.as_flattened_mut().iter_mut().zip(b.as_flattened()) {
        *a = [a[0] + x * b[0], a[1] + x * b[1]];
    }
}

pub(super) fn product(a: &Matrix, b: &Matrix, d: usize) -> Matrix {
    let mut out = ZERO;
    for i in 0..d {
        for j in 0..d {
            for k in 0..d {
                let [re, im] = times(a[i][k], b[k][j]);
                out[i][j] = [out[i][j][0] + re, out[i][j][1] + im];
            }
        }
    }
    out
}

/// A^H.
pub(super) fn adjoint(a: &Matrix) -> Matrix {
    let mut out = ZERO;
    for i in 0..MOST {
        for j in 0..MOST {
            out[i][j] = conj(a[j][i]);
        }
    }
    out
}

pub(super) fn trace(a: &Matrix, d: usize) -> f64 {
    (0..d).map(|i| a[i][i][0]).sum()
}

/// Coordinates of (A + A^H) / 2.
pub(super) fn coordinates(a: &Matrix, d: usize) -> Coordinates {
    let mut out = [0.0; MOST * MOST];
    for i in 0..d {
        for j in 0..i {
            out[i * i + 2 * j] = (a[i][j][0] + a[j][i][0]) / SQRT_2;
            out[i * i + 2 * j + 1] = (a[i][j][1] - a[j][i][1]) / SQRT_2;
        }
        out[i * i + 2 * i] = a[i][i][0];
    }
    out
}

/// The matrix with these coordinates.
pub(super) fn matrix(v: &[f64], d: usize) -> Matrix {
    let mut out = ZERO;
    for i in 0..d {
        for j in 0..i {
            out[i][j] = [v[i * i + 2 * j] / SQRT_2, v[i * i + 2 * j + 1] / SQRT_2];
            out[j][i] = conj(out[i][j]);
        }
        out[i][i] = [v[i * i + 2 * i], 0.0];
    }
    out
}

/// L with A = L L^H and positive numbers on its diagonal; nothing where A is not positive definite.
pub(super) fn cholesky(a: &Matrix, d: usize) -> Option<Matrix> {
    let mut l = ZERO;
    for i in 0..d {
        for j in 0..=i {
            let mut sum = a[i][j];
            for k in 0..j {
                let [re, im] = times(l[i][k], conj(l[j][k]));
                sum = [sum[0] - re, sum[1] - im];
            }
            l[i][j] = match i == j {
                true if sum[0] > 0.0 && sum[0].is_finite() => [sum[0].sqrt(), 0.0],
                true => return None,
                false => [sum[0] / l[j][j][0], sum[1] / l[j][j][0]],
            };
        }
    }
    Some(l)
}

/// Of a lower triangular matrix.
fn triangular_inverse(l: &Matrix, d: usize) -> Matrix {
    let mut out = ZERO;
    for j in 0..d {
        out[j][j] = [1.0 / l[j][j][0], 0.0];
        for i in j + 1..d {
            let mut sum = [0.0; 2];
            for k in j..i {
                let [re, im] = times(l[i][k], out[k][j]);
                sum = [sum[0] - re, sum[1] - im];
            }
            out[i][j] = [sum[0] / l[i][i][0], sum[1] / l[i][i][0]];
        }
    }
    out
}

/// A^-1 and ln det A of a positive definite matrix.
pub(super) fn inverse(a: &Matrix, d: usize) -> Option<(Matrix, f64)> {
    let l = cholesky(a, d)?;
    let inverse = triangular_inverse(&l, d);
    let log_determinant = (0..d).map(|i| 2.0 * l[i][i][0].ln()).sum();
    Some((product(&adjoint(&inverse), &inverse, d), log_determinant))
}

/// The positive root of a positive semidefinite matrix, by its eigenvectors: Jacobi's rotations.
pub(super) fn root(a: &Matrix, d: usize) -> Matrix {
    let (mut a, mut vectors) = (*a, scalar(1.0));
    // Four rows converge in five or six sweeps, quadratically at the end.
    for _ in 0..30 {
        let (mut beside, mut all) = (0.0, 0.0);
        for i in 0..d {
            for j in 0..d {
                all += square(a[i][j]);
                beside += if i == j { 0.0 } else { square(a[i][j]) };
            }
        }
        if beside <= 1e-32 * all {
            break;
        }
        for p in 0..d {
            for q in p + 1..d {
                rotate(&mut a, &mut vectors, p, q, d);
            }
        }
    }
    let mut out = ZERO;
    for k in 0..d {
        let value = a[k][k][0].max(0.0).sqrt();
        for i in 0..d {
            for j in 0..d {
                let [re, im] = times(vectors[i][k], conj(vectors[j][k]));
                out[i][j] = [out[i][j][0] + value * re, out[i][j][1] + value * im];
            }
        }
    }
    out
}

/// A <- J^H A J and V <- V J with the rotation J that makes a_pq zero.
fn rotate(a: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize, d: usize) {
    let size = square(a[p][q]).sqrt();
    if size == 0.0 {
        return;
    }
    let phase = [a[p][q][0] / size, a[p][q][1] / size];
    let theta = (a[q][q][0] - a[p][p][0]) / (2.0 * size);
    let t = 1f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    // Columns p and q of J: (c, -s conj(phase)) and (s phase, c).
    let (along, across) = ([s * phase[0], s * phase[1]], [-s * phase[0], s * phase[1]]);
    let columns = |m: &mut Matrix| {
        for i in 0..d {
            let (x, y) = (m[i][p], m[i][q]);
            let (from_q, from_p) = (times(y, across), times(x, along));
            m[i][p] = [c * x[0] + from_q[0], c * x[1] + from_q[1]];
            m[i][q] = [c * y[0] + from_p[0], c * y[1] + from_p[1]];
        }
    };
    columns(a);
    columns(vectors);
    for j in 0..d {
        let (x, y) = (a[p][j], a[q][j]);
        let (from_q, from_p) = (times(y, conj(across)), times(x, conj(along)));
        a[p][j] = [c * x[0] + from_q[0], c * x[1] + from_q[1]];
        a[q][j] = [c * y[0] + from_p[0], c * y[1] + from_p[1]];
    }
}

/// The positive definite solution R of R A R = M, for A positive definite: with A = L L^H, R = L^-H (L^H M L)^1/2 L^-1.
pub(super) fn riccati(a: &Matrix, m: &Matrix, d: usize) -> Option<Matrix> {
    let l = cholesky(a, d)?;
    let inside = product(&product(&adjoint(&l), m, d), &l, d);
    let inverse = triangular_inverse(&l, d);
    Some(product(&product(&adjoint(&inverse), &root(&inside, d), d), &inverse, d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::rng::Rng;

    /// Positive definite, of condition numbers up to 1e4 or so.
    fn random(rng: &mut Rng, d: usize) -> Matrix {
        let mut a = ZERO;
        for i in 0..d {
            for j in 0..d {
                a[i][j] = [rng.normal(), rng.normal()];
            }
        }
        let mut out = product(&a, &adjoint(&a), d);
        (0..d).for_each(|i| out[i][i][0] += 1e-3);
        out
    }

    fn difference(a: &Matrix, b: &Matrix, d: usize) -> f64 {
        let mut worst = 0f64;
        for i in 0..d {
            for j in 0..d {
                worst = worst.max((a[i][j][0] - b[i][j][0]).abs()).max((a[i][j][1] - b[i][j][1]).abs());
            }
        }
        worst / trace(b, d)
    }

    #[test]
    fn as_defined() {
        let mut rng = Rng::new(1);
        for trial in 0..100 {
            let d = 1 + trial % MOST;
            let (a, m) = (random(&mut rng, d), random(&mut rng, d));
            // Roundings of 1e-16, times condition numbers.
            let (inverted, log_determinant) = inverse(&a, d).unwrap();
            assert!(difference(&product(&a, &inverted, d), &scalar(1.0), d) < 1e-10);
            let l = cholesky(&a, d).unwrap();
            assert!(difference(&product(&l, &adjoint(&l), d), &a, d) < 1e-14);
            let expected: f64 = (0..d).map(|i| 2.0 * l[i][i][0].ln()).sum();
            assert!((log_determinant - expected).abs() < 1e-12);
            let root = root(&a, d);
            assert!(difference(&product(&root, &root, d), &a, d) < 1e-13);
            let r = riccati(&a, &m, d).unwrap();
            assert!(difference(&product(&product(&r, &a, d), &r, d), &m, d) < 1e-9);
            assert!(difference(&matrix(&coordinates(&a, d), d), &a, d) < 1e-15);
            let (v, w) = (coordinates(&a, d), coordinates(&m, d));
            let dot: f64 = v.iter().zip(&w).map(|(v, w)| v * w).sum();
            let exact = trace(&product(&a, &m, d), d);
            assert!((dot - exact).abs() < 1e-12 * exact);
        }
        assert!(cholesky(&scalar(-1.0), 2).is_none() && cholesky(&scalar(f64::NAN), 1).is_none());
    }
}
