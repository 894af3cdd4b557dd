//! The conditional of a spike-and-slab latent in a maximal-causes model [004 eq. 3.13-3.24, corrected signs].
//!
//! Let M_d be the maximum over the other latents in dimension d. Above the border P_d = M_d / W_dh latent h is the maximum, and
//!
//! ```text
//! ln p(y, x | others) = const - K/2 (x - mu)^2 + sum over d with P_d < x of a_d W_dh (x - P_d) (y_d - M_d - W_dh (x - P_d) / 2)
//! ```
//!
//! with a_d = 1 / sigma_d^2: continuous, and between two borders the logarithm of a Gaussian. Each part is split at its maximum,
//! so that all pieces are monotone ([`crate::numeric::normal::piece`]); heights are relative to the highest point of all, so
//! nothing relevant overflows or underflows. The spike is an atom at x = 0.
//!
//! **Digits.** The borders are walked twice: once to find the highest point, then outward from it with the slope there summed from
//! residuals. So near the peak, where it matters, heights are sums of small numbers, however far the data is from the model.
//!
//! | module | |
//! |---|---|
//! | `outline` | borders in order, their heights and slopes, the highest point |
//! | `piece` | the part of a Gaussian between two of them |
//!
//! Work: 5 D log2 D to sort, about 60 per dimension for the pieces that are not negligible.

mod outline;
mod piece;

use crate::counts::Count;
use crate::memory::Border;
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::numeric::slices::{set, span_mut};
use outline::{Turn, border, sort};
use piece::{Cut, Piece};

pub(super) use outline::{Dim, Dims};

/// Times the highest point may turn out to be another one.
const ANCHORS: usize = 3;

/// The prior of the latent: l, mu, K.
#[derive(Clone, Copy)]
pub(super) struct Slab<T> {
    pub logit: T,
    pub mean: T,
    pub precision: T,
}

/// A conditional, ready to be drawn from.
pub(super) struct Pieces<'x, T> {
    borders: &'x mut [Border<T>],
    pub facts: Facts<T>,
}

/// What there is to it but its borders.
#[derive(Clone, Copy)]
pub(super) struct Facts<T> {
    /// Number of borders.
    count: usize,
    /// Of the segment before the first border: precision, slope at its end, mass.
    precision: T,
    slope_at_first: T,
    mass: T,
    /// Which segment has the highest point, and where that is.
    anchor: usize,
    pub peak: T,
    /// Slope there: zero unless it is at a border.
    slope: T,
    pub total: T,
    pub log_odds: T,
    /// About the peak.
    pub mean: T,
    pub variance: T,
}

impl<'x, T: Real> Pieces<'x, T> {
    /// `memory` has room for one border more than there are dimensions.
    pub fn new(dims: &dyn Dims<T>, slab: Slab<T>, memory: &'x mut [Border<T>]) -> Self {
        let zero = T::ZERO;
        // Zero is a border too, where nothing changes: there is always one.
        set(memory, 0, Border::ZERO);
        let (mut count, mut before, mut pull) = (1, slab.precision, slab.precision * slab.mean);
        dims.each(&mut |dim| {
            Count::PieceDims.add(1);
            let bend = dim.precision * dim.w * dim.w;
            match dim.border() {
                Turn::Never => {}
                Turn::Always => {
                    before += bend;
                    pull += dim.precision * dim.w * dim.y;
                }
                Turn::At(place) => {
                    let jump = dim.precision * dim.w * (dim.y - dim.others);
                    set(memory, count, Border { place, jump, precision: bend, ..Border::ZERO });
                    count += 1;
                }
            }
        });
        Count::Borders.add(count);
        let borders = span_mut(memory, 0, count);
        sort(borders);
        let mut precision = before;
        for border in borders.iter_mut() {
            precision += border.precision;
            border.precision = precision;
        }
        let facts = Facts {
            count,
            precision: before,
            slope_at_first: pull - before * border(borders, 0).place,
            mass: zero,
            anchor: 0,
            peak: zero,
            slope: zero,
            total: zero,
            log_odds: zero,
            mean: zero,
            variance: zero,
        };
        let mut pieces = Self { borders, facts };
        pieces.climb();
        for _ in 0..ANCHORS {
            pieces.spread(dims, slab);
            if !pieces.move_anchor() {
                break;
            }
        }
        pieces.weigh();
        let peak = pieces.facts.peak;
        let away = peak - slab.mean;
        let mut log_odds = slab.logit - T::HALF * slab.precision * away * away;
        dims.each(&mut |dim| log_odds += dim.gain(peak));
        // sqrt(K / (2 pi))
        let norm = (slab.precision * T::from_f64(core::f64::consts::FRAC_1_PI / 2.0)).sqrt();
        pieces.facts.log_odds = log_odds + (norm * pieces.facts.total).ln();
        pieces
    }

    /// The same again, `memory` being as [`Pieces::new`] left it.
    pub fn again(facts: Facts<T>, memory: &'x mut [Border<T>]) -> Self {
        Self { borders: span_mut(memory, 0, facts.count), facts }
    }

    fn place(&self, i: usize) -> T {
        border(self.borders, i).place
    }

    fn is_last(&self, segment: usize) -> bool {
        segment >= self.borders.len()
    }

    /// Precision in a segment: number 0 is before the first border.
    fn precision(&self, segment: usize) -> T {
        if segment == 0 { self.facts.precision } else { border(self.borders, segment - 1).precision }
    }

    /// The pieces of a segment.
    fn cut(&self, segment: usize) -> Cut<T> {
        Count::Segments.add(1);
        let precision = self.precision(segment);
        let root = precision.sqrt();
        let deviation = T::ONE / root;
        let piece = |from, direction, height, t, width: T| {
            Some(Piece { from, direction, height, t, w: width * root, deviation })
        };
        let (right, left, infinite) = (T::ONE, -T::ONE, -T::IMPOSSIBLE);
        let bell = |top: T, height: T, before: T, after: T| {
            [piece(top, left, height, T::ZERO, before), piece(top, right, height, T::ZERO, after)]
        };
        let end = if self.is_last(segment) { infinite } else { self.place(segment) };
        let begin = if segment == 0 { T::IMPOSSIBLE } else { self.place(segment - 1) };
        if segment == self.facts.anchor && self.facts.peak > begin && self.facts.peak < end {
            return bell(self.facts.peak, T::ZERO, self.facts.peak - begin, end - self.facts.peak);
        }
        if segment == 0 {
            let (slope, Border { place, height, .. }) = (self.facts.slope_at_first, border(self.borders, 0));
            if !(slope < T::ZERO) {
                return [piece(place, left, height, slope * deviation, infinite), None];
            }
            let back = -slope / precision;
            return bell(place - back, height - T::HALF * slope * back, infinite, back);
        }
        let Border { place, slope, height, .. } = border(self.borders, segment - 1);
        let (width, ahead) = (end - place, slope / precision);
        if !(slope > T::ZERO) {
            [piece(place, right, height, -slope * deviation, width), None]
        } else if ahead < width {
            bell(place + ahead, height + T::HALF * slope * ahead, ahead, width - ahead)
        } else {
            let at_end = (slope - precision * width).max(T::ZERO);
            [piece(end, left, border(self.borders, segment).height, at_end * deviation, width), None]
        }
    }

    /// Masses of all segments, and moments about the peak.
    fn weigh(&mut self) {
        let [mut total, mut first, mut square] = [T::ZERO; 3];
        for segment in 0..=self.borders.len() {
            let mut mass = T::ZERO;
            for piece in self.cut(segment).into_iter().flatten() {
                let [m0, m1, m2] = piece.moments();
                let away = piece.from - self.facts.peak;
                let m1 = piece.direction * m1;
                mass += m0;
                if m0 > T::ZERO {
                    first += away * m0 + m1;
                    square += away * (away * m0 + m1 + m1) + m2;
                }
            }
            total += mass;
            match segment.checked_sub(1) {
                None => self.facts.mass = mass,
                Some(before) => {
                    if let Some(border) = self.borders.get_mut(before) {
                        border.jump = mass;
                    }
                }
            }
        }
        self.facts.total = total;
        self.facts.mean = first / total;
        self.facts.variance = (square / total - self.facts.mean * self.facts.mean).max(T::ZERO);
    }

    fn mass(&self, segment: usize) -> T {
        if segment == 0 { self.facts.mass } else { border(self.borders, segment - 1).jump }
    }

    /// A draw of x, given that it is on.
    pub fn draw(&self, rng: &mut Rng) -> T {
        Count::PieceDraws.add(1);
        let mut left = rng.unit::<T>() * self.facts.total;
        let mut chosen = None;
        for segment in 0..=self.borders.len() {
            let mass = self.mass(segment);
            if !(mass > T::ZERO) {
                continue;
            }
            // The last one that has any mass takes what rounding leaves over.
            chosen = Some(segment);
            if left < mass {
                break;
            }
            left -= mass;
        }
        let [one, other] = chosen.map_or([None; 2], |segment| self.cut(segment));
        let beyond = rng.unit();
        let chosen = match (one, other) {
            (Some(one), Some(other)) => Some(if left < one.moments()[0] { one } else { other }),
            (one, other) => one.or(other),
        };
        chosen.map_or(self.facts.peak, |piece| piece.draw(beyond))
    }

    /// Probability that x, given that it is on, is no larger than `x`.
    pub fn below(&self, x: T) -> T {
        let mut sum = T::ZERO;
        for segment in 0..=self.borders.len() {
            let begin = if segment == 0 { T::IMPOSSIBLE } else { self.place(segment - 1) };
            if begin >= x {
                break;
            }
            if !self.is_last(segment) && self.place(segment) <= x {
                sum += self.mass(segment);
                continue;
            }
            self.cut(segment).into_iter().flatten().for_each(|piece| sum += piece.below(x));
        }
        sum / self.facts.total
    }
}
