//! The log joint of a state, relative to that of its neighbours.

use crate::kinds::Flip;
use crate::numeric::math::Real;

/// Where the log joint of a state is: relative to all that depends neither on the state nor on the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joint<T> {
    /// What all states share.
    pub base: T,
    /// Changes since then, without determinants.
    pub exponent: T,
    /// The factor of determinants, squared.
    pub ratio: T,
    /// Half of the logarithm of factors that would have left the range of numbers.
    pub settled: T,
}

impl<T: Real> Joint<T> {
    /// The empty state.
    pub fn new(base: T) -> Self {
        Self { base, exponent: T::ZERO, ratio: T::ONE, settled: T::ZERO }
    }

    /// Its logarithm without base and ratio.
    #[inline(always)]
    pub fn relative(&self) -> T {
        self.exponent + self.settled
    }

    /// By how much it is above another one. What both share may be large, and cancels exactly.
    pub fn above(&self, other: &Self) -> T {
        let ratio = T::HALF * (self.ratio / other.ratio).ln();
        (self.base - other.base) + (self.relative() - other.relative()) + ratio
    }

    /// Its logarithm.
    pub fn ln(&self) -> T {
        self.base + (self.relative() + T::HALF * self.ratio.ln())
    }

    #[inline(always)]
    pub(super) fn add(&mut self, flip: &Flip<T>) {
        self.exponent += flip.exponent;
        let ratio = self.ratio * flip.ratio;
        // Before it leaves the range of numbers.
        if ratio > T::from_f64(1e-20) && ratio < T::from_f64(1e20) {
            self.ratio = ratio;
        } else {
            self.settled += T::HALF * (self.ratio.ln() + flip.ratio.ln());
            self.ratio = T::ONE;
        }
    }
}
