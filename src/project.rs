//! The sample against the dictionary: u = Sigma^-1 y, its energy y.u, and b = W^T u.
//!
//! The only stage whose work depends on D: D H multiply-adds, plus D (shared or diagonal noise) or
//! D (D + 1) (full noise). Everything after it lives on b, G and the prior.
//! The product with W is in [`crate::kernel`]. Where W has integers, u is rounded to integers for it,
//! in place.

use crate::arena::Arena;
use crate::kernel::integer::{self, pack, sample_words, sum_of_one, words};
use crate::math::Real;
use crate::model::{Dictionary, Integers, Model, Noise, QUAD, float_column};
use crate::slices::{at, copy, dot, lower_row, set, span};

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

impl<T: Real> Arena<'_, T> {
    /// Projects the sample; returns y^T Sigma^-1 y.
    #[inline(always)]
    pub fn project(&mut self, model: &Model<'_, T>, given: Option<(&[i16], T)>) -> T {
        let energy = weigh(&model.noise, self.sample, self.weighted);
        project(model, self.sample, self.weighted, given, self.projection);
        energy
    }
}

/// b = W^T u of the sample, once [`weigh`] has left u in `weighted`, which is not that any more afterwards where W has
/// integers. `given` are the integers that the sample came as, if it did, and their step.
pub(crate) fn project<T: Real>(
    model: &Model<'_, T>,
    sample: &[T],
    weighted: &mut [T],
    given: Option<(&[i16], T)>,
    projection: &mut [T],
) {
    let Integers { width, words: packed, scales, peak } = match model.dictionary.known() {
        Dictionary::Float(packed) => return T::project(packed, weighted, projection),
        Dictionary::Integer(integers) => integers,
    };
    // With one precision for all, the sample itself is rounded: integers that fit stay as they are.
    let mut factor = T::ONE;
    if let Noise::Shared(precision) = model.noise {
        factor = precision;
        match given {
            Some((integers, step)) => {
                factor *= step;
                for (v, &y) in weighted.iter_mut().zip(integers) {
                    *v = T::from_i32(i32::from(y));
                }
            }
            None => copy(weighted, sample),
        }
    }
    factor *= pack(weighted, peak);
    let sample = span(words(weighted), 0, sample_words(weighted.len()));
    integer::project(width, packed, sample, scales, factor, projection);
}

/// W_h^T u for some latents, in order, from u in `weighted`, which is not that any more afterwards where W has integers.
pub(crate) fn project_some<T: Real>(
    model: &Model<'_, T>,
    latents: &[u16],
    weighted: &mut [T],
    projection: &mut [T],
) {
    let outputs = projection.iter_mut().zip(latents.iter().map(|&latent| usize::from(latent)));
    let integers = match model.dictionary.known() {
        Dictionary::Float(packed) => {
            for (b, latent) in outputs {
                let mut sum = T::ZERO;
                for (w, &u) in float_column(packed, weighted.len(), latent).zip(weighted.iter()) {
                    sum += w * u;
                }
                *b = sum;
            }
            return;
        }
        Dictionary::Integer(integers) => integers,
    };
    let dims = weighted.len();
    let step = pack(weighted, integers.peak);
    let sample = span(words(weighted), 0, sample_words(dims));
    for (b, latent) in outputs {
        let sum = sum_of_one(integers.width, integers.quad(dims, latent), sample, latent % QUAD);
        *b = T::from_i32(sum) * (at(integers.scales, latent) * step);
    }
}
