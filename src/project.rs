//! The sample against the dictionary: u = Sigma^-1 y, its energy y.u, and b = W^T u.
//!
//! The only stage whose work depends on D: D H multiply-adds, plus D (shared or diagonal noise) or
//! D (D + 1) (full noise). Everything after it lives on b, G and the prior.
//! The product with W is in [`crate::kernel`].

use crate::math::Real;
use crate::model::{Model, Noise};
use crate::slices::{at, dot, lower_row, set};

/// u = Sigma^-1 y into `weighted`; returns the energy y^T Sigma^-1 y.
pub(crate) fn weigh<T: Real>(noise: &Noise<'_, T>, sample: &[T], weighted: &mut [T]) -> T {
    match *noise {
        Noise::Shared(precision) => {
            for (u, &y) in weighted.iter_mut().zip(sample) {
                *u = y * precision;
            }
            dot(sample, weighted)
        }
        Noise::Diagonal(precisions) => {
            for ((u, &y), &precision) in weighted.iter_mut().zip(sample).zip(precisions) {
                *u = y * precision;
            }
            dot(sample, weighted)
        }
        Noise::Full(factor) => whiten_twice(factor, sample, weighted),
    }
}

/// [`weigh`] of what is in `weighted` already.
pub(crate) fn weigh_in_place<T: Real>(noise: &Noise<'_, T>, weighted: &mut [T]) -> T {
    let mut energy = T::ZERO;
    match *noise {
        Noise::Full(factor) => {
            for i in (0..weighted.len()).rev() {
                let white = dot(lower_row(factor, i), weighted);
                set(weighted, i, white);
            }
            return unwhiten(factor, weighted);
        }
        Noise::Shared(precision) => {
            for r in weighted.iter_mut() {
                let u = *r * precision;
                energy += *r * u;
                *r = u;
            }
        }
        Noise::Diagonal(precisions) => {
            for (r, &precision) in weighted.iter_mut().zip(precisions) {
                let u = *r * precision;
                energy += *r * u;
                *r = u;
            }
        }
    }
    energy
}

/// With F the inverse Cholesky factor, Sigma^-1 y = F^T (F y) and the energy is |F y|^2, which
/// cannot come out negative.
fn whiten_twice<T: Real>(factor: &[T], sample: &[T], weighted: &mut [T]) -> T {
    for (i, w) in weighted.iter_mut().enumerate() {
        *w = dot(lower_row(factor, i), sample);
    }
    unwhiten(factor, weighted)
}

/// F y to F^T F y, in place; returns |F y|^2.
fn unwhiten<T: Real>(factor: &[T], weighted: &mut [T]) -> T {
    let energy = dot(weighted, weighted);
    // u_j = sum_{i >= j} F_ij w_i; entry j is no longer needed as w_j once it is overwritten.
    let d = weighted.len();
    for j in 0..d {
        let mut u = T::ZERO;
        for i in j..d {
            u += at(lower_row(factor, i), j) * at(weighted, i);
        }
        set(weighted, j, u);
    }
    energy
}

/// b_h alone, to the same bits as [`crate::kernel`] has it.
pub(crate) fn project_one<T: Real>(model: &Model<'_, T>, latent: usize, weighted: &[T]) -> T {
    let mut sum = T::ZERO;
    for (w, &u) in model.column(latent).zip(weighted) {
        sum += w * u;
    }
    sum
}
