//! Sources that move slowly, on two microphones: covariances follow what is heard.
//!
//! ln p(y) of a point has the gradient B_h - A_h with respect to R_h; with the factor R = F F^H and P_s as in [`super`],
//!
//! ```text
//! A_h = sum_s p_s l(s_h) P_s,   B_h = sum_s p_s l(s_h) D / q_s P_s y y^H P_s,   M_h = F^H (B_h - A_h) F
//! R_h <- R_h + rate R_h (B_h - A_h) R_h = F (I + rate M_h) F^H
//! ```
//!
//! which is a step along the natural gradient. In training the means of B and A over frames are equal, so that sources that stand
//! pull their covariances nowhere. l(s_h) R_h is at most C_s, so that -I <= M_h <= 2 I: a step with a rate below 1 leaves R
//! positive definite, and traces of a bin are scaled to sum to 2 H, as in training. What [`super::pair`] found of the bin has all
//! that this asks for: with its g_s, Q_s, M_hk, n_h and A_h, here called a_h = adj(R_h) y,
//!
//! ```text
//! A_h = (sum_k M_hk adj(R_k) + n_h I) / sum_s w_s
//! B_h = sum_s l(s_h) 2 g_s / Q_s v_s v_s^H / sum_s w_s,   v_s = sum_k l(s_k) a_k + delta y
//! ```
//!
//! A source that moves changes its delay in all bins at once: g_h = sum over bins of 2 omega Im [R_h (B_h - A_h)]_11 is the
//! gradient of its delay at microphone 1, and every hop turns R_h by a step of g_h / G_h samples, G_h the decaying peak of the
//! sum of squares. It comes fast because it is of all bins; the covariances follow with the echoes.
//!
//! g_h also says whether there is anything to follow: gradients of a source that stands cancel out over the seconds, those of one
//! that walks do not. z_h = (sum g_h)^2 / sum g_h^2, sums that forget the past, is about 1 for the former. Below [`EVIDENCE`] a
//! source stays where it is, and from twice that on it follows at the full rate; so standing still costs next to nothing.

use super::bin::{Complex, Constants, Found, MOST_SOURCES, MOST_STATES, conj, square, times};
use super::model::{LONGEST_RECORD, SpatialModel};
use super::pair::{Source, Table};
use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, row, set, span, span_mut};
use crate::stream::Pieces;

/// Largest rate.
pub(super) const FASTEST: f32 = 0.5;
/// z_h from which a source is believed to move: 2.8 standard deviations.
const EVIDENCE: f32 = 8.0;
/// What sums of g_h keep from hop to hop: they go back by 6 s at 8 kHz.
const KEPT: f32 = 0.995;
/// Least part of a covariance off its direction, so that it can turn.
const SPREAD: f32 = 1e-5;
/// The most that is believed of a delay in one hop, in samples, and the part of it that is stepped.
const MOST_STEP: f32 = 0.02;
const PART: f32 = 0.3;
/// By how much peaks of squares fall from hop to hop.
const FALL: f32 = 0.03;
/// Bins by which the rate has come up to its full value, as a part of all: paths change by wavelengths, and those of the lowest tones
/// are longer than the room.
const SLOW: f32 = 0.04;
/// Numbers of a factor.
const FACTOR: usize = 4;
/// Numbers of a walk.
const WALK: usize = 3;

/// Numbers of memory.
pub(super) fn memory_len(model: &SpatialModel<'_>) -> usize {
    model.following().map_or(0, |_| model.sources() * (FACTOR * model.bins() + WALK))
}

/// Parameters that follow; empty where they do not.
#[derive(Debug)]
pub(super) struct Memory<'m> {
    /// Of all bins. (4 H (L/2 + 1))
    factors: &'m mut [f32],
    /// Of every source G_h, and the sums of g_h and of its square. (H)
    walks: &'m mut [[f32; WALK]],
}

impl<'m> Memory<'m> {
    pub fn cut(model: &SpatialModel<'_>, pieces: &mut Pieces<'m>) -> Option<Self> {
        if model.following().is_none() {
            return Some(Self { factors: &mut [], walks: &mut [] });
        }
        let sources = model.sources();
        let factors = pieces.take(FACTOR * sources * model.bins())?;
        Some(Self { factors, walks: pieces.take(WALK * sources)?.as_chunks_mut().0 })
    }

    /// Back to what was trained.
    pub fn reset(&mut self, model: &SpatialModel<'_>) {
        if model.following().is_none() {
            return;
        }
        self.walks.fill([0.0; WALK]);
        let mut buffer = [0.0; LONGEST_RECORD];
        let bins = self.factors.chunks_exact_mut((FACTOR * model.sources()).max(1));
        bins.enumerate().for_each(|(index, factors)| copy(factors, model.bin(index, &mut buffer).factors));
    }
}

/// Parameters during a frame.
pub(super) struct Moving<'a, 'm> {
    memory: &'a mut Memory<'m>,
    bins: usize,
    rate: f32,
    /// Between 0 and 1.
    evidence: [f32; MOST_SOURCES],
    /// g_h so far, and the sum of squares.
    gradients: [[f32; 2]; MOST_SOURCES],
}

impl<'a, 'm> Moving<'a, 'm> {
    /// Nothing where parameters stay as they were trained.
    pub fn new(model: &SpatialModel<'_>, memory: &'a mut Memory<'m>) -> Option<Self> {
        let rate = model.following()?;
        let mut evidence = [0.0; MOST_SOURCES];
        for (evidence, &[_, sum, squares]) in evidence.iter_mut().zip(&*memory.walks) {
            if squares > 0.0 {
                *evidence = (sum * sum / squares / EVIDENCE - 1.0).clamp(0.0, 1.0);
            }
        }
        Some(Self { memory, bins: model.bins(), rate, evidence, gradients: [[0.0; 2]; MOST_SOURCES] })
    }

    /// Those of a bin.
    pub fn factors(&self, index: usize) -> &[f32] {
        let len = FACTOR * self.memory.walks.len();
        span(self.memory.factors, index * len, len)
    }

    /// After a bin is inferred from y.
    pub fn heard(
        &mut self,
        index: usize,
        constants: &Constants<f32>,
        y: &[Complex<f32>],
        found: &Found<f32>,
    ) {
        let len = FACTOR * self.memory.walks.len();
        let (Some(y), table) = (y.as_array(), &found.pair) else { return };
        if self.rate > 0.0 && table.normal > 0.0 {
            let factors = span_mut(self.memory.factors, index * len, len);
            let part = index as f32 / (self.bins - 1).max(1) as f32;
            let slow = self.rate * (part / SLOW).clamp(0.0, 1.0);
            let omega = core::f32::consts::PI * part;
            let rates = self.evidence.map(|evidence| slow * evidence);
            step(table, factors, constants, y, &rates, omega, &mut self.gradients);
        }
    }

    /// Turns covariances by a step of delays.
    pub fn turn(self) {
        if self.rate <= 0.0 {
            return;
        }
        let (walks, sources) =
            (&mut *self.memory.walks, self.memory.factors.len() / (FACTOR * self.bins).max(1));
        for (h, (walk, [gradient, squares])) in walks.iter_mut().zip(self.gradients).enumerate() {
            let [peak, sum, all] = walk;
            *peak = Real::max(*peak + FALL * (squares - *peak), squares);
            *sum = KEPT * *sum + gradient;
            *all = KEPT * KEPT * *all + gradient * gradient;
            if !(*peak > 0.0 && peak.is_finite() && sum.is_finite() && all.is_finite()) {
                *walk = [0.0; WALK];
                continue;
            }
            let step = at(&self.evidence, h) * PART * (gradient / *peak).clamp(-MOST_STEP, MOST_STEP);
            let turn = core::f32::consts::PI * step / (self.bins - 1).max(1) as f32;
            for (f, bin) in self.memory.factors.chunks_exact_mut((FACTOR * sources).max(1)).enumerate() {
                let angle = turn * f as f32;
                // Angles are below 0.02.
                let rotation = [1.0 - 0.5 * angle * angle, -angle];
                let factor = span_mut(bin, FACTOR * h, FACTOR);
                let [re, im] = times([at(factor, 1), at(factor, 2)], rotation);
                set(factor, 1, re);
                set(factor, 2, im);
            }
        }
    }
}

/// 2 Im [R (B - A)]_11: how ln p(y) grows with the phase by which microphone 1 is later.
fn of_phase<T: Real>([a, re, im, _]: [T; 4], [_, x10, y10, _]: Hermitian<T>) -> T {
    T::from_i32(2) * a * (im * x10 - re * y10)
}

/// One bin: factors after a step, and what the bin adds to the gradients of delays. Its arrays are not on the stack while a bin
/// is inferred.
#[inline(never)]
fn step(
    table: &Table<f32>,
    factors: &mut [f32],
    constants: &Constants<f32>,
    y: &[Complex<f32>; 2],
    rates: &[f32; MOST_SOURCES],
    omega: f32,
    gradients: &mut [[f32; 2]; MOST_SOURCES],
) {
    let sources = factors.len() / FACTOR;
    Count::FollowedBins.add(1);
    Count::FollowedPairs.add(sources * sources);
    Count::FollowedStates.add(1 << sources);
    let pulls = pulls(table, sources, constants, y);
    let (mut energy, mut next) = (0.0, [[0.0; FACTOR]; MOST_SOURCES]);
    let each = factors.as_chunks::<FACTOR>().0.iter().zip(pulls).zip(&mut next).zip(gradients).zip(rates);
    for ((((&factor, pull), next), [sum, squares]), &rate) in each {
        let gradient = omega * of_phase(factor, pull);
        if gradient.is_finite() {
            (*sum, *squares) = (*sum + gradient, *squares + gradient * gradient);
        }
        *next = factor;
        if rate > 0.0 {
            let ([a, re, im, c], [m00, x10, y10, m11]) = (factor, seen(factor, pull));
            let m10 = [x10, y10];
            // I + rate M = L L^H, F <- F L.
            let first = Real::sqrt(Real::max(1.0 + rate * m00, 1.0 - rate));
            let below = [rate * m10[0] / first, rate * m10[1] / first];
            let last = Real::sqrt(Real::max(1.0 + rate * m11 - square(below), 1e-3));
            let b = [re * first + c * below[0], im * first + c * below[1]];
            let (a, c) = (a * first, c * last);
            *next = [a, b[0], b[1], Real::max(c, Real::sqrt(SPREAD * (a * a + square(b) + c * c)))];
        }
        next.iter().for_each(|x| energy += x * x);
    }
    let scale = Real::sqrt(2.0 * sources as f32 / energy);
    if rates.iter().any(|&rate| rate > 0.0) && scale.is_finite() {
        factors.iter_mut().zip(next.as_flattened()).for_each(|(to, x)| *to = x * scale);
    }
}

/// A Hermitian matrix: entries 00, 10 and 11.
type Hermitian<T> = [T; 4];

/// to + by x.
#[inline(always)]
fn added<T: Real>(to: [T; 4], x: [T; 4], by: T) -> [T; 4] {
    [to[0] + by * x[0], to[1] + by * x[1], to[2] + by * x[2], to[3] + by * x[3]]
}

/// B - A of all sources, from what was found in a bin. Entries are up to 1 / delta, those of M at most 2: by rounding M is off by some 1e-3
/// in single precision, of either sign.
fn pulls<T: Real>(
    table: &Table<T>,
    count: usize,
    constants: &Constants<T>,
    y: &[Complex<T>; 2],
) -> [Hermitian<T>; MOST_SOURCES] {
    let none = [T::ZERO; 4];
    let (eps, on) = (constants.off_level, T::ONE - constants.off_level);
    let force = T::from_i32(2) * table.normal / (square(y[0]) + square(y[1]));
    let sources = span(&table.sources, 0, count);
    // v where nothing is on but eps of all sources, without delta y.
    let mut least = none;
    for source in sources {
        least = added(least, flat(source.adjugate), eps);
    }
    let (mut vectors, mut with, mut all) = ([none; MOST_STATES], [none; MOST_SOURCES], none);
    for (s, state) in span(&table.states, 0, 1 << count.min(MOST_SOURCES)).iter().enumerate() {
        // That of the state without its lowest source, and what that source adds.
        let rest = s & s.wrapping_sub(1);
        let mut v = match rest {
            0 => added(least, flat(*y), if s == 0 { T::ONE } else { constants.floor }),
            1.. => row(&vectors, rest),
        };
        if let Some(source) = sources.get(s.trailing_zeros() as usize) {
            v = added(v, flat(source.adjugate), on);
        }
        set(&mut vectors, s, v);
        let share = force * state.share / state.quadratic;
        let [p, q, r, t] = v;
        let outer = [
            share * (p * p + q * q),
            share * (r * p + t * q),
            share * (t * p - r * q),
            share * (r * r + t * t),
        ];
        all = added(all, outer, eps);
        for (h, with) in with.iter_mut().enumerate() {
            if s >> h & 1 == 1 {
                *with = added(*with, outer, on);
            }
        }
    }
    let mut pulls = [none; MOST_SOURCES];
    for (h, (pull, source)) in pulls.iter_mut().zip(sources).enumerate() {
        *pull = added(all, row(&with, h), T::ONE);
        let diffuse = table.normal * source.diffuse;
        (pull[0], pull[3]) = (pull[0] - diffuse, pull[3] - diffuse);
        for (&Source { a, b, c, .. }, &pair) in sources.iter().zip(&row(&table.pairs, h)) {
            // adj R.
            let adjugate = [square(b) + c * c, -a * b[0], -a * b[1], a * a];
            *pull = added(*pull, adjugate, -table.normal * pair);
        }
    }
    pulls
}

#[inline(always)]
fn flat<T: Real>([[a, b], [c, d]]: [Complex<T>; 2]) -> [T; 4] {
    [a, b, c, d]
}

/// F^H X F.
#[inline(always)]
fn seen<T: Real>([a, re, im, c]: [T; 4], [x00, x10, y10, x11]: Hermitian<T>) -> Hermitian<T> {
    // X F.
    let b = [re, im];
    let near = times([x10, -y10], b);
    let far = [x10 * a + x11 * re, y10 * a + x11 * im];
    let both = times(conj(b), far);
    [a * (x00 * a + near[0]) + both[0], c * far[0], c * far[1], c * c * x11]
}

#[cfg(test)]
mod tests;
