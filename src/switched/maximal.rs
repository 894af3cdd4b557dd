//! Maximal causes: of the latents that are on, the strongest alone makes each dimension.
//!
//! ```text
//! ln p(y, s) = log norm + sum_A l_h - 1/2 sum_d (y_d - m_d)^2 / sigma_d^2,   m_d = max_h s_h W_dh
//! ```
//!
//! A level has the running maximum m, so a child is one pass over D numbers. The residual y - m is formed for each
//! dimension, so nothing large cancels, however loud the sample.

use super::Superposition;
use crate::math::Real;
use crate::model::{Model, Noise, with_column};
use crate::slices::{at, set, span};
use core::ops::Range;

pub(super) struct Maximal<'x, T> {
    model: &'x Model<'x, T>,
    /// Position -> latent.
    order: &'x [u16],
    sample: &'x [T],
    /// Of every level: m, the sum of l_h, the log joint. (D + 2 each)
    rows: &'x mut [T],
}

impl<'x, T: Real> Maximal<'x, T> {
    /// At the empty state.
    pub fn new(model: &'x Model<'x, T>, order: &'x [u16], sample: &'x [T], rows: &'x mut [T]) -> Self {
        let empty = misfit(&model.noise, sample, sample.iter().map(|_| T::ZERO));
        for row in rows.iter_mut().take(sample.len() + 1) {
            *row = T::ZERO;
        }
        set(rows, sample.len() + 1, empty);
        Self { model, order, sample, rows }
    }

    /// The same sum for a latent that is on alone, without l_h; `b` is its projection. Of a loud sample the residual is formed
    /// here too: b - G_hh / 2 would be a small difference of large numbers.
    pub fn alone(&self, latent: usize, b: T) -> T {
        let empty = self.joint(0);
        if -empty > T::REFINE_ABOVE {
            return misfit(&self.model.noise, self.sample, self.model.column(latent));
        }
        empty + (b - T::HALF * at(self.model.gram_diagonal, latent))
    }

    fn width(&self) -> usize {
        self.sample.len() + 2
    }

    fn latent(&self, position: usize) -> usize {
        usize::from(self.order.get(position).copied().unwrap_or_default())
    }
}

impl<T: Real> Superposition<T> for Maximal<'_, T> {
    fn joint(&self, level: usize) -> T {
        at(self.rows, level * self.width() + self.sample.len() + 1)
    }

    fn each_child(&self, level: usize, positions: Range<usize>, mut visit: impl FnMut(usize, T)) {
        let row = span(self.rows, level * self.width(), self.width());
        let logits = at(row, self.sample.len());
        for p in positions.rev() {
            let latent = self.latent(p);
            let misfit = with_column!(self.model, latent, |column| {
                let maxima = row.iter().zip(column).map(|(&m, w)| m.max(w));
                misfit(&self.model.noise, self.sample, maxima)
            });
            visit(p, logits + at(self.model.prior_logit, latent) + misfit);
        }
    }

    fn descend(&mut self, level: usize, position: usize) {
        let (width, latent) = (self.width(), self.latent(position));
        let Some((above, below)) = self.rows.split_at_mut_checked((level + 1) * width) else { return };
        let above = span(above, level * width, width);
        with_column!(self.model, latent, |column| {
            for ((below, &above), w) in below.iter_mut().zip(above).zip(column) {
                *below = above.max(w);
            }
        });
        let logits = at(above, self.sample.len()) + at(self.model.prior_logit, latent);
        let joint = logits + misfit(&self.model.noise, self.sample, below.iter().copied());
        set(below, self.sample.len(), logits);
        set(below, self.sample.len() + 1, joint);
    }
}

/// -1/2 sum_d (y_d - m_d)^2 / sigma_d^2.
#[inline(always)]
pub(crate) fn misfit<T: Real>(noise: &Noise<'_, T>, sample: &[T], maxima: impl Iterator<Item = T>) -> T {
    let misses = sample.iter().zip(maxima).map(|(&y, m)| y - m);
    let mut sum = T::ZERO;
    match *noise {
        Noise::Shared(precision) => {
            misses.for_each(|miss| sum += miss * miss);
            sum *= precision;
        }
        // Full noise does not go with this kind, which the model's checks ensure.
        Noise::Diagonal(precisions) | Noise::Full(precisions) => {
            misses.zip(precisions).for_each(|(miss, &precision)| sum += miss * miss * precision);
        }
    }
    -(T::HALF * sum)
}
