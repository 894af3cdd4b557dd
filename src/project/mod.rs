//! The sample against the dictionary: u = Sigma^-1 y, its energy y.u, and b = W^T u.
//!
//! The only stage whose work depends on D: D H multiply-adds, plus D (shared or diagonal noise) or
//! D (D + 1) (full noise). Later stages use only b, G and the prior.
//! The product with W is in [`kernel`], of many samples at once in `many`. With an integer dictionary u is rounded to integers, in place.

#[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
mod cortex_m;
#[cfg(spikelet_dsp)]
mod dsp;
pub mod integer;
pub mod kernel;
#[cfg(feature = "training")]
pub mod many;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::counts::Count;
use crate::model::{Dictionary, Integers, Model, Noise, PANEL, QUAD, Width, float_column, float_columns};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, dot, lower_row, set, span, triangle};
use crate::numeric::words::words;
use integer::{pack, sample_words, sum_of_one};

/// u = Sigma^-1 y into `weighted`; returns the energy y^T Sigma^-1 y.
pub(crate) fn weigh<T: Real>(noise: &Noise<'_, T>, sample: &[T], weighted: &mut [T]) -> T {
    copy(weighted, sample);
    weigh_in_place(noise, weighted)
}

/// [`weigh`] of what is in `weighted` already. With F the inverse Cholesky factor of full noise, Sigma^-1 y = F^T (F y) and the energy is
/// |F y|^2, which cannot come out negative.
pub(crate) fn weigh_in_place<T: Real>(noise: &Noise<'_, T>, weighted: &mut [T]) -> T {
    Count::Weighed.add(weighted.len());
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

/// F y to F^T F y, in place; returns |F y|^2.
fn unwhiten<T: Real>(factor: &[T], weighted: &mut [T]) -> T {
    let energy = dot(weighted, weighted);
    Count::Whitened.add(weighted.len() * weighted.len());
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

/// b = W^T u of the sample, once [`weigh`] has left u in `weighted`, which is not that any more afterwards where W has
/// integers. `given` are the integers that the sample came as, if it did, and their step: with one precision for all they are
/// multiplied as they are, as far as they fit.
pub(crate) fn project_sample<T: Real>(
    model: &Model<'_, T>,
    sample: &[T],
    given: Option<(&[i16], T)>,
    weighted: &mut [T],
    projection: &mut [T],
) {
    let mut factor = T::ONE;
    if let (Dictionary::Integer(_), Noise::Shared(precision)) = (model.dictionary.known(), model.noise) {
        // The sample itself is rounded, not u: integers that fit stay as they are.
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
    project_scaled(model, factor, weighted, projection);
}

/// b = W^T u with u in `weighted`, which is not that any more afterwards where W has integers.
pub(crate) fn project<T: Real>(model: &Model<'_, T>, weighted: &mut [T], projection: &mut [T]) {
    project_scaled(model, T::ONE, weighted, projection);
}

/// The same where W has integers and u is `factor` times what is in `weighted`.
fn project_scaled<T: Real>(model: &Model<'_, T>, factor: T, weighted: &mut [T], projection: &mut [T]) {
    let Integers { width, words: packed, scales, peak } = match model.dictionary.known() {
        Dictionary::Float(packed) => {
            Count::Floats.add(packed.len());
            Count::Panels.add(projection.len().div_ceil(PANEL));
            return kernel::project(packed, weighted, projection);
        }
        Dictionary::Integer(integers) => integers,
    };
    count_integers(width, weighted.len(), projection.len());
    let factor = factor * pack(weighted, peak);
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
                Count::Columns.add(weighted.len());
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
    Count::Packed.add(dims);
    let sample = span(words(weighted), 0, sample_words(dims));
    for (b, latent) in outputs {
        Count::ColumnsOfIntegers.add(dims);
        let sum = sum_of_one(integers.width, integers.quad(dims, latent), sample, latent % QUAD);
        *b = T::from_i32(sum) * (at(integers.scales, latent) * step);
    }
}

/// G_hj of a latent and as many others as there is room for, read or computed.
pub(crate) fn gram_row<T: Real>(model: &Model<'_, T>, h: usize, others: &[u16], row: &mut [T]) {
    let entries = row.iter_mut().zip(others.iter().map(|&j| usize::from(j)));
    let Some(stored) = model.gram else {
        return entries.for_each(|(entry, j)| *entry = gram_dot(model, h, j));
    };
    let start = triangle(h);
    for (entry, j) in entries {
        Count::GramRead.add(1);
        *entry = at(stored, if h > j { start + j } else { triangle(j) + h });
    }
}

/// G_hj of two different latents, read or computed.
pub(crate) fn gram_entry<T: Real>(model: &Model<'_, T>, h: usize, j: usize) -> T {
    let mut entry = [T::ZERO];
    gram_row(model, h, &[j as u16], &mut entry);
    entry[0]
}

/// W_h^T Sigma^-1 W_j.
fn gram_dot<T: Real>(model: &Model<'_, T>, h: usize, j: usize) -> T {
    count_gram(model);
    let dims = model.shape.dims;
    match model.dictionary.known() {
        Dictionary::Float(packed) => product(&model.noise, float_columns(packed, dims, h, j)),
        Dictionary::Integer(integers) => match model.noise {
            Noise::Shared(precision) => integers.product(dims, h, j) * precision,
            _ => product(&model.noise, integers.column(dims, h).zip(integers.column(dims, j))),
        },
    }
}

/// Counts a product of all latents in integers.
pub(crate) fn count_integers(width: Width, dims: usize, latents: usize) {
    let width = if width == Width::I16 { Count::I16 } else { Count::I8 };
    width.add(dims.next_multiple_of(QUAD) * latents.next_multiple_of(QUAD));
    Count::Packed.add(dims);
    Count::Scaled.add(latents);
}

/// Counts an entry of G that is computed.
#[inline(always)]
fn count_gram<T: Real>(model: &Model<'_, T>) {
    match (model.dictionary.known(), model.noise) {
        (Dictionary::Integer(integers), Noise::Shared(_)) if integers.width == Width::I16 => {
            Count::GramI16.add(model.shape.dims);
        }
        (Dictionary::Integer(_), Noise::Shared(_)) => Count::GramI8.add(model.shape.dims),
        _ => Count::GramFloats.add(model.shape.dims),
    }
}

/// Summed over dimensions in order.
#[inline(always)]
fn product<T: Real>(noise: &Noise<'_, T>, pairs: impl Iterator<Item = (T, T)>) -> T {
    let mut sum = T::ZERO;
    match *noise {
        Noise::Diagonal(precisions) => {
            for ((w, other), &precision) in pairs.zip(precisions) {
                sum += w * other * precision;
            }
            sum
        }
        Noise::Shared(precision) => {
            for (w, other) in pairs {
                sum += w * other;
            }
            sum * precision
        }
        // D^2 multiply-adds per entry: the model must store G instead, which its checks ensure.
        Noise::Full(_) => T::ZERO,
    }
}
