//! JADE (Cardoso and Souloumiac 1993): the rotation of the white data that makes its fourth cumulants most diagonal.
//!
//! It has no starts and turns with the data, so its index depends on the sources alone: the deviation of 0.00 that the
//! literature gives for it says so, and makes it a fingerprint of the samples that were used.

use super::mixtures::product;
use spikelet_trainer::Result;
use spikelet_trainer::train::Points;
use spikelet_trainer::train::whiten::Whitening;

/// Most sweeps over all pairs of sources.
const SWEEPS: usize = 100;
/// Angles below this are none.
const TOLERANCE: f64 = 1e-7;

/// The mixing matrix (D x D).
pub fn jade(points: &[f64], dims: usize) -> Result<Vec<f64>> {
    let d = dims;
    let (mean, covariance) = Points::new(points.to_vec(), d).covariance()?;
    let whitening = Whitening::new(&covariance, d);
    let mut white: Vec<f64> = points.iter().enumerate().map(|(at, y)| y - mean[at % d]).collect();
    whitening.apply(&mut white);
    let mut cumulants = cumulants(&white, d);
    let mut rotation: Vec<f64> = (0..d * d).map(|at| identity(at / d, at % d)).collect();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for q in 1..d {
            for p in 0..q {
                let (sin, cos) = angle(&cumulants, d, p, q).sin_cos();
                if sin.abs() > TOLERANCE {
                    turned = true;
                    for matrix in &mut cumulants {
                        turn_columns(matrix, d, (p, q), (sin, cos));
                        turn_rows(matrix, d, (p, q), (sin, cos));
                    }
                    turn_columns(&mut rotation, d, (p, q), (sin, cos));
                }
            }
        }
        if !turned {
            break;
        }
    }
    Ok(product(&whitening.inverse, &rotation, d))
}

/// For every pair i >= j the matrix of cumulants (k, l) of z_i z_j z_k z_l; each pair i > j stands for two.
fn cumulants(white: &[f64], d: usize) -> Vec<Vec<f64>> {
    let n = (white.len() / d) as f64;
    let mut all = Vec::new();
    for i in 0..d {
        for j in 0..=i {
            let weight = if i == j { 1.0 } else { std::f64::consts::SQRT_2 };
            let entry = |k: usize, l: usize| {
                let moment = white.chunks_exact(d).map(|z| z[i] * z[j] * z[k] * z[l]).sum::<f64>() / n;
                let normal = identity(i, j) * identity(k, l)
                    + identity(i, k) * identity(j, l)
                    + identity(i, l) * identity(j, k);
                weight * (moment - normal)
            };
            all.push((0..d * d).map(|at| entry(at / d, at % d)).collect());
        }
    }
    all
}

/// The angle in the plane (p, q) that makes all matrices most diagonal at once.
fn angle(matrices: &[Vec<f64>], d: usize, p: usize, q: usize) -> f64 {
    let (mut on, mut off) = (0.0, 0.0);
    for m in matrices {
        let (difference, sum) = (m[p * d + p] - m[q * d + q], m[p * d + q] + m[q * d + p]);
        on += difference * difference - sum * sum;
        off += 2.0 * difference * sum;
    }
    0.5 * f64::atan2(off, on + on.hypot(off))
}

fn turn_columns(m: &mut [f64], d: usize, (p, q): (usize, usize), (sin, cos): (f64, f64)) {
    for row in m.chunks_exact_mut(d) {
        (row[p], row[q]) = (cos * row[p] + sin * row[q], cos * row[q] - sin * row[p]);
    }
}

fn turn_rows(m: &mut [f64], d: usize, (p, q): (usize, usize), (sin, cos): (f64, f64)) {
    for k in 0..d {
        let (a, b) = (m[p * d + k], m[q * d + k]);
        (m[p * d + k], m[q * d + k]) = (cos * a + sin * b, cos * b - sin * a);
    }
}

fn identity(i: usize, j: usize) -> f64 {
    f64::from(u8::from(i == j))
}

#[cfg(test)]
mod tests {
    use super::super::mixtures::{Source, mix, normal_matrix};
    use super::*;
    use spikelet::rng::Rng;
    use spikelet_trainer::metrics::amari;

    #[test]
    fn sources_without_noise_are_found() {
        let mut rng = Rng::new(1);
        let mixing = normal_matrix(&mut rng, 3, 3);
        let data = mix(&Source::Laplace.points(&mut rng, 5000, 3), &mixing, 3);
        let index = amari(&jade(&data, 3).unwrap(), &mixing, 3, 3).unwrap();
        // Fourth moments of Laplace sources are known to about 10 %, an angle to a few hundredths.
        assert!(index < 0.1, "{index}");
    }
}
