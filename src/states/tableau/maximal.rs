//! Maximal causes: the two largest causes of every dimension say what each flip changes.

use super::{Joint, Tableau};
use crate::counts::Count;
use crate::kinds::{Flip, mca};
use crate::model::{Noise, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, span};

impl<T: Real> Tableau<'_, T> {
    /// The two largest causes of every dimension.
    pub(super) fn maximise(&mut self) {
        Count::Filled.add(self.maxima.len());
        self.maxima.fill(T::ZERO);
        for i in 0..self.len() {
            if !self.is_on(i) {
                continue;
            }
            Count::Maxima.add(self.sample.len());
            let Some((largest, next)) = self.maxima.split_at_mut_checked(self.sample.len()) else { return };
            with_column!(
                self.model,
                usize::from(self.latents.get(i).copied().unwrap_or_default()),
                |column| {
                    for ((largest, next), w) in largest.iter_mut().zip(next).zip(column) {
                        if w > *largest {
                            *next = *largest;
                            *largest = w;
                        } else {
                            *next = next.max(w);
                        }
                    }
                }
            );
        }
    }

    pub(super) fn flip_of_maximal(&self, i: usize) -> Flip<T> {
        let (largest, next) = self.maxima.split_at_checked(self.sample.len()).unwrap_or_default();
        let (logit, is_on) = (self.candidates.get(i).map_or(T::ZERO, |c| c.logit), self.is_on(i));
        let causes = self.sample.iter().zip(largest).zip(next);
        let mut sum = T::ZERO;
        let shared = match self.model.noise {
            Noise::Shared(precision) => precision,
            Noise::Diagonal(_) | Noise::Full(_) => T::ONE,
        };
        let precisions = match self.model.noise {
            Noise::Diagonal(precisions) => precisions,
            Noise::Shared(_) | Noise::Full(_) => &[],
        };
        with_column!(self.model, self.latent(i), |column| {
            for (d, (((&y, &largest), &next), w)) in causes.zip(column).enumerate() {
                let to = match is_on {
                    true => {
                        if w >= largest {
                            next
                        } else {
                            largest
                        }
                    }
                    false => largest.max(w),
                };
                let gained = mca::gain(y, largest, to);
                sum += if precisions.is_empty() { gained } else { gained * at(precisions, d) };
            }
        });
        let exponent = sum * shared + if is_on { -logit } else { logit };
        Flip { exponent, ratio: T::ONE, value: if is_on { -T::ONE } else { T::ONE }, inverse: T::ONE }
    }

    /// The log joint from the residual itself, for maximal causes.
    pub(super) fn maximal_joint(&self) -> Joint<T> {
        let mut sum = T::ZERO;
        for (d, (&y, &m)) in self.sample.iter().zip(self.maxima.iter()).enumerate() {
            let miss = y - m;
            sum += miss * miss * self.model.precision(d);
        }
        let mut exponent = T::ZERO;
        for candidate in span(self.candidates, 0, self.len()) {
            if candidate.sign < T::ZERO {
                exponent += candidate.logit;
            }
        }
        Joint { exponent, ..Joint::new(-(T::HALF * sum)) }
    }
}
