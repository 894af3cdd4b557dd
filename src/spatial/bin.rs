//! One bin of one frame: which sources are on, and what each of them is at the microphone that is put out.
//!
//! Two microphones have closed forms ([`super::pair`]), more take a factorisation of every state's covariance ([`super::array`]).

use super::{array, pair};
use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::slices::copy;

/// Most sources, H.
pub const MOST_SOURCES: usize = 4;
/// Most microphones, D.
pub const MOST_MICROPHONES: usize = 4;
/// Most states, 2^H. Bit h of a state's number is s_h.
pub const MOST_STATES: usize = 1 << MOST_SOURCES;

/// Real and imaginary part.
pub type Complex<T> = [T; 2];

/// What all bins share.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Constants<T> {
    /// Level of a source that is off, eps; of one that is on it is 1.
    pub off_level: T,
    /// How much the frame before counts, beta.
    pub context: T,
    /// Added to the diagonal of the covariance of every state, delta; 1 where all sources are off.
    pub floor: T,
    /// The microphone whose images of sources are put out.
    pub microphone: usize,
}

/// Parameters of a bin.
#[derive(Clone, Copy, Debug)]
pub struct Bin<'a, T> {
    /// Cholesky factors of R_h, one source after the other: D^2 numbers each, row by row on and below the diagonal, complex
    /// entries as two numbers, those of the diagonal as one.
    pub factors: &'a [T],
    /// Probability that all sources are off, pi0.
    pub silence: T,
    /// Mean activities, m_h. (H)
    pub activity: &'a [T],
}

/// The posterior of a bin: what a step of EM needs.
#[derive(Clone, Copy, Debug)]
pub struct Posterior<T> {
    /// p(s | y), which sum to 1.
    pub weights: [T; MOST_STATES],
    /// q_s = y^H C_s^-1 y of y scaled to length 1.
    pub quadratics: [T; MOST_STATES],
}

/// What is found in a bin, and memory for it; one serves any number of bins.
pub struct Found<T> {
    /// Probability that a source is on, 0 behind the last.
    pub activities: [T; MOST_SOURCES],
    /// x_h.
    pub images: [Complex<T>; MOST_SOURCES],
    pub(super) pair: pair::Table<T>,
    pub(super) array: array::Table<T>,
}

impl<T: Real> Found<T> {
    const EMPTY: Self = Self {
        activities: [T::ZERO; MOST_SOURCES],
        images: [[T::ZERO; 2]; MOST_SOURCES],
        pair: pair::Table::EMPTY,
        array: array::Table::EMPTY,
    };
}

impl<T: Real> Default for Found<T> {
    #[inline(always)]
    fn default() -> Self {
        Self::EMPTY
    }
}

/// What there is before the microphones are heard.
pub(super) struct Prior<T> {
    /// H.
    pub sources: usize,
    /// 1 / |y|^2, which q is multiplied with: loudness does not matter.
    pub loudness: T,
    /// pi_s where not all are off.
    pub some: T,
    /// e^{beta (abar_h - m_h)}.
    pub odds: [T; MOST_SOURCES],
}

/// What becomes of a bin.
enum Heard<T> {
    Sound(Prior<T>),
    Silence,
    /// Too loud for the numbers there are.
    Overflow,
}

/// |y|^2 between these: products of D quadratic forms, each within 1e5 of it, stay numbers in single precision. Below is silence.
const FAINTEST: f64 = 1e-30;
const LOUDEST: f64 = 1e30;

#[inline(always)]
pub(super) fn times<T: Real>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a * c - b * d, a * d + b * c]
}

#[inline(always)]
pub(super) fn conj<T: Real>([a, b]: Complex<T>) -> Complex<T> {
    [a, -b]
}

#[inline(always)]
pub(super) fn minus<T: Real>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a - c, b - d]
}

#[inline(always)]
pub(super) fn square<T: Real>([a, b]: Complex<T>) -> T {
    a * a + b * b
}

impl<T: Real> Bin<'_, T> {
    #[inline(always)]
    fn heard(&self, constants: &Constants<T>, y: &[Complex<T>], expected: &[T; MOST_SOURCES]) -> Heard<T> {
        let (dims, sources) = (y.len(), self.activity.len().min(MOST_SOURCES));
        let states = 1 << sources;
        if dims == 2 {
            Count::PairBins.add(1);
            Count::PairSources.add(sources);
            Count::PairStates.add(states);
        } else {
            Count::SpatialBins.add(1);
            Count::SpatialSources.add(sources * dims * dims);
            Count::SpatialStates.add(states);
            Count::SpatialMacs.add(states * (dims * (dims + 1) * (dims + 5) / 6));
        }
        let mut energy = T::ZERO;
        for &y in y {
            energy += square(y);
        }
        if !(energy <= T::from_f64(LOUDEST)) {
            return Heard::Overflow;
        }
        if energy < T::from_f64(FAINTEST) {
            return Heard::Silence;
        }
        let mut odds = [T::ONE; MOST_SOURCES];
        for ((odds, &expected), &mean) in odds.iter_mut().zip(expected).zip(self.activity) {
            *odds = (constants.context * (expected - mean)).exp_in_range();
        }
        let some = (T::ONE - self.silence) / T::from_i32(states as i32 - 1);
        Heard::Sound(Prior { sources, loudness: T::ONE / energy, some, odds })
    }

    /// Infers a bin of two to four microphones; `expected` are abar_h of the frame before. Silence has no images, and activities are those
    /// expected before anything is heard, m_h. False where numbers are too large; then both are as in silence.
    #[inline(always)]
    pub fn infer(
        &self,
        constants: &Constants<T>,
        y: &[Complex<T>],
        expected: &[T; MOST_SOURCES],
        found: &mut Found<T>,
    ) -> bool {
        let heard = self.heard(constants, y, expected);
        found.pair.normal = T::ZERO;
        if let Heard::Sound(prior) = &heard {
            let is_done = match y.as_array() {
                Some(pair) => pair::infer(self, constants, prior, pair, found),
                None => array::infer(self, constants, prior, y, found),
            };
            if is_done {
                return true;
            }
        }
        copy(&mut found.activities, self.activity);
        found.images = [[T::ZERO; 2]; MOST_SOURCES];
        matches!(heard, Heard::Silence)
    }

    /// The posterior over all states; nothing in silence and where numbers are too large.
    pub fn posterior(
        &self,
        constants: &Constants<T>,
        y: &[Complex<T>],
        expected: &[T; MOST_SOURCES],
    ) -> Option<Posterior<T>> {
        let Heard::Sound(prior) = self.heard(constants, y, expected) else { return None };
        let Posterior { mut weights, quadratics } = match y.as_array() {
            Some(pair) => pair::posterior(self, constants, &prior, pair),
            None => array::posterior(self, constants, &prior, y),
        };
        let mut total = T::ZERO;
        weights.iter().for_each(|&weight| total += weight);
        if !(total > T::ZERO && total.is_finite()) {
            return None;
        }
        weights.iter_mut().for_each(|weight| *weight = *weight / total);
        Some(Posterior { weights, quadratics })
    }
}
