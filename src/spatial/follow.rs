//! Sources that move slowly, on two microphones: covariances follow what is heard.
//!
//! ln p(y) of a point has the gradient B_h - A_h with respect to R_h; with the factor R = F F^H and P_s as in [`super`],
//!
//! ```text
//! A_h = sum_s p_s l(s_h) P_s,   B_h = sum_s p_s l(s_h) D / q_s P_s y y^H P_s,   M_h = F^H (B_h - A_h) F
//! R_h <- R_h + rate R_h (B_h - A_h) R_h = F (I + rate M_h) F^H
//! ```
//!
//! which is a step along the natural gradient. In training the means of B and A over frames are equal, so that sources that stand pull
//! their covariances nowhere. l(s_h) R_h is at most C_s, so that -I <= M_h <= 2 I: a step with a rate below 1 leaves R positive definite, and
//! traces of a bin are scaled to sum to 2 H, as in training.
//!
//! A source that moves changes its delay in all bins at once: g_h = sum over bins of 2 omega Im [R_h (B_h - A_h)]_11 is the gradient of its delay at
//! microphone 1, and every hop turns R_h by a step of g_h / G_h samples, G_h the decaying peak of the sum of squares. It comes fast because it is of all
//! bins; the covariances follow with the echoes.
//!
//! Work: beside that of the stream 2^H (20 + 30 H) multiply-adds a bin. Memory: 4 H numbers a bin more than [`super::SpatialStream`].

use super::bin::{Bin, Complex, Constants, MOST_SOURCES, Posterior, conj, minus, square, times};
use super::model::{LONGEST_RECORD, SpatialModel};
use super::stream::{Parameters, Work, run};
use crate::blob::groups::Groups;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::stream::Pieces;
use crate::stream::frames::{FrameModel, FrameStream};
use crate::stream::rings::Extent;
use crate::stream::stft::Stft;

/// A stream of two microphones whose sources may move slowly. [`FrameStream::reset`] goes back to what was trained.
pub type FollowingStream<'m> = FrameStream<'m, Following<'m>>;

/// Largest rate.
const MOST_RATE: f32 = 0.5;
/// Least part of a covariance off its direction, so that it can turn.
const SPREAD: f32 = 1e-5;
/// Most of a step of a delay, in samples.
const MOST_STEP: f32 = 0.02;
/// By how much peaks of squares fall from hop to hop.
const FALL: f32 = 0.03;
/// Bins by which the rate has come up to its full value, as a part of all: paths change by wavelengths, and those of the lowest tones
/// are longer than the room.
const SLOW: f32 = 0.04;
/// Numbers of a factor.
const FACTOR: usize = 4;

/// A model and how fast it follows.
#[derive(Clone, Copy, Debug)]
pub struct Following<'m> {
    model: SpatialModel<'m>,
    rate: f32,
}

impl<'m> Following<'m> {
    /// Nothing for more than two microphones, and for rates below 0 or above 1/2. 0 follows nothing; with 0.15 two voices after a walk
    /// of 45 degrees in 10 s come apart nearly as after training again.
    pub fn new(model: SpatialModel<'m>, rate: f32) -> Option<Self> {
        (model.microphones() == 2 && (0.0..=MOST_RATE).contains(&rate)).then_some(Self { model, rate })
    }
}

impl FollowingStream<'_> {
    /// Follows at another rate from the next frame on, as in [`Following::new`]; false for another one, which changes nothing.
    pub fn follow(&mut self, rate: f32) -> bool {
        let model = &mut self.work.model;
        let changed = Following::new(model.model, rate);
        *model = changed.unwrap_or(*model);
        changed.is_some()
    }
}

/// Memory of the stream.
#[derive(Debug)]
pub struct Memory<'m> {
    room: Work<'m>,
    /// Of all bins. (4 H (L/2 + 1))
    factors: &'m mut [f32],
    /// G_h. (H)
    peaks: &'m mut [f32],
}

impl<'m> FrameModel<'m> for Following<'m> {
    type Work = Memory<'m>;

    fn extent(&self) -> Extent {
        self.model.extent()
    }

    fn rate(&self) -> u32 {
        self.model.rate()
    }

    fn names(&self) -> Groups<'m> {
        self.model.groups()
    }

    fn work_len(&self) -> usize {
        let sources = self.model.sources();
        self.model.work_len() + FACTOR * sources * self.model.bins() + sources
    }

    fn work(&self, memory: &'m mut [f32]) -> Option<Memory<'m>> {
        let sources = self.model.sources();
        let mut pieces = Pieces(memory);
        let room = self.model.work(pieces.take(self.model.work_len())?)?;
        let factors = pieces.take(FACTOR * sources * self.model.bins())?;
        Some(Memory { room, factors, peaks: pieces.take(sources)? })
    }

    fn prepare(&self, work: &mut Memory<'m>) {
        self.model.prepare(&mut work.room);
    }

    fn reset(&self, work: &mut Memory<'m>) {
        self.model.reset(&mut work.room);
        work.peaks.fill(0.0);
        let mut buffer = [0.0; LONGEST_RECORD];
        let bins = work.factors.chunks_exact_mut((FACTOR * self.model.sources()).max(1));
        bins.enumerate()
            .for_each(|(index, factors)| copy(factors, self.model.bin(index, &mut buffer).factors));
    }

    fn infer(
        &self,
        work: &mut Memory<'m>,
        stft: Stft<'_>,
        input: &[f32],
        output: &mut [f32],
        oldest: usize,
    ) -> bool {
        let Memory { room, factors, peaks } = work;
        let mut moving = Moving { factors, rate: self.rate, gradients: [[0.0; 2]; MOST_SOURCES] };
        let is_whole = run(&self.model, &mut moving, room, stft, input, output, oldest);
        if self.rate > 0.0 {
            moving.turn(peaks);
        }
        is_whole
    }
}

/// Parameters of the stream during a frame.
struct Moving<'a> {
    factors: &'a mut [f32],
    rate: f32,
    /// g_h so far, and the sum of squares.
    gradients: [[f32; 2]; MOST_SOURCES],
}

impl Parameters for Moving<'_> {
    fn bin<'b>(
        &'b self,
        model: &SpatialModel<'_>,
        index: usize,
        buffer: &'b mut [f32; LONGEST_RECORD],
    ) -> Bin<'b, f32> {
        let bin = model.bin(index, buffer);
        Bin { factors: span(self.factors, index * bin.factors.len(), bin.factors.len()), ..bin }
    }

    fn heard(
        &mut self,
        model: &SpatialModel<'_>,
        index: usize,
        y: &[Complex<f32>],
        expected: &[f32; MOST_SOURCES],
    ) {
        let mut buffer = [0.0; LONGEST_RECORD];
        let (constants, bin) = (model.constants(), model.bin(index, &mut buffer));
        let len = bin.factors.len();
        let factors = span_mut(self.factors, index * len, len);
        let Some(y) = y.as_array() else { return };
        if self.rate > 0.0 {
            let part = index as f32 / (model.bins() - 1).max(1) as f32;
            let (rate, omega) = (self.rate * (part / SLOW).min(1.0), core::f32::consts::PI * part);
            step(&bin, factors, &constants, y, expected, rate, omega, &mut self.gradients);
        }
    }
}

impl Moving<'_> {
    /// Turns covariances by a step of delays.
    fn turn(&mut self, peaks: &mut [f32]) {
        let sources = peaks.len();
        let bins = self.factors.len() / (FACTOR * sources).max(1);
        for (h, (peak, [gradient, squares])) in peaks.iter_mut().zip(self.gradients).enumerate() {
            *peak = squares.max(*peak + FALL * (squares - *peak));
            if !(*peak > 0.0 && peak.is_finite() && gradient.is_finite()) {
                *peak = 0.0;
                continue;
            }
            let step = (gradient / *peak).clamp(-MOST_STEP, MOST_STEP);
            let turn = core::f32::consts::PI * step / (bins - 1).max(1) as f32;
            for (f, bin) in self.factors.chunks_exact_mut(FACTOR * sources).enumerate() {
                let angle = turn * f as f32;
                let square = angle * angle;
                // Angles are below 0.063.
                let rotation = [1.0 - square * (0.5 - square / 24.0), -angle * (1.0 - square / 6.0)];
                let factor = span_mut(bin, FACTOR * h, FACTOR);
                let [re, im] = times([at(factor, 1), at(factor, 2)], rotation);
                set(factor, 1, re);
                set(factor, 2, im);
            }
        }
    }
}

/// 2 Im [R (B - A)]_11 = 2 Im [F M F^-1]_11: how ln p(y) grows with the phase by which microphone 1 is later.
fn of_phase<T: Real>(b: Complex<T>, m10: Complex<T>, c: T) -> T {
    T::from_i32(2) * times(b, conj(m10))[1] / c
}

/// M_h of every source: entries 00, 10 and 11.
type Pulls<T> = [(T, Complex<T>, T); MOST_SOURCES];

/// One bin: factors after a step, and what the bin adds to the gradients of delays.
#[allow(clippy::too_many_arguments)]
fn step(
    bin: &Bin<'_, f32>,
    factors: &mut [f32],
    constants: &Constants<f32>,
    y: &[Complex<f32>; 2],
    expected: &[f32; MOST_SOURCES],
    rate: f32,
    omega: f32,
    gradients: &mut [[f32; 2]; MOST_SOURCES],
) {
    for [a, re, im, c] in factors.as_chunks_mut::<FACTOR>().0 {
        *c = c.max(Real::sqrt(SPREAD * (*a * *a + *re * *re + *im * *im + *c * *c)));
    }
    let now = Bin { factors, ..*bin };
    let Some(posterior) = now.posterior(constants, y, expected) else { return };
    let pulls = pulls(factors, &posterior, constants, y);
    let mut energy = 0.0;
    let mut next = [[0.0; FACTOR]; MOST_SOURCES];
    let each = factors.as_chunks::<FACTOR>().0.iter().zip(pulls).zip(&mut next).zip(gradients);
    for (((&[a, re, im, c], (m00, m10, m11)), next), [sum, squares]) in each {
        let b = [re, im];
        let gradient = omega * of_phase(b, m10, c);
        if gradient.is_finite() {
            (*sum, *squares) = (*sum + gradient, *squares + gradient * gradient);
        }
        // I + rate M = L L^H, F <- F L.
        let first = Real::sqrt(Real::max(1.0 + rate * m00, 1.0 - rate));
        let below = [rate * m10[0] / first, rate * m10[1] / first];
        let last = Real::sqrt(Real::max(1.0 + rate * m11 - square(below), 1e-3));
        *next = [a * first, b[0] * first + c * below[0], b[1] * first + c * below[1], c * last];
        next.iter().for_each(|x| energy += x * x);
    }
    let sources = factors.len() / FACTOR;
    let scale = Real::sqrt(2.0 * sources as f32 / energy);
    if scale.is_finite() && scale > 0.0 {
        let all = next.as_flattened();
        factors.iter_mut().zip(all).for_each(|(to, x)| *to = x * scale);
    }
}

fn pulls<T: Real>(
    factors: &[T],
    posterior: &Posterior<T>,
    constants: &Constants<T>,
    y: &[Complex<T>; 2],
) -> Pulls<T> {
    let mut pulls = [(T::ZERO, [T::ZERO; 2], T::ZERO); MOST_SOURCES];
    let factors = factors.as_chunks::<FACTOR>().0;
    let states = 1usize << factors.len().min(MOST_SOURCES);
    let loudness = T::ONE / (square(y[0]) + square(y[1]));
    let level = |s: usize, h: usize| if s >> h & 1 == 1 { T::ONE } else { constants.off_level };
    for (s, (&weight, &q)) in posterior.weights.iter().zip(&posterior.quadratics).enumerate().take(states) {
        // C = L diag(d) L^H, z = L^-1 y.
        let floor = if s == 0 { T::ONE } else { constants.floor };
        let (mut c00, mut c10, mut c11) = (floor, [T::ZERO; 2], floor);
        for (h, &[a, re, im, c]) in factors.iter().enumerate() {
            let l = level(s, h);
            c00 += l * a * a;
            c10 = [c10[0] + l * a * re, c10[1] + l * a * im];
            c11 += l * (re * re + im * im + c * c);
        }
        let first = T::ONE / c00;
        let below = [c10[0] * first, c10[1] * first];
        let last = T::ONE / (c11 - square(c10) * first).max(T::from_f64(1e-6));
        let z = minus(y[1], times(below, y[0]));
        let force = T::from_i32(2) * loudness / q;
        for (h, (&[a, re, im, c], (m00, m10, m11))) in factors.iter().zip(&mut pulls).enumerate() {
            let share = weight * level(s, h);
            // L^-1 F = (a 0; e c), u = F^H P y.
            let e = minus([re, im], [below[0] * a, below[1] * a]);
            let turned = times(conj(e), z);
            let u = [
                [a * first * y[0][0] + last * turned[0], a * first * y[0][1] + last * turned[1]],
                [c * last * z[0], c * last * z[1]],
            ];
            let both = times(u[1], conj(u[0]));
            *m00 += share * (force * square(u[0]) - (a * a * first + last * square(e)));
            *m10 = [
                m10[0] + share * (force * both[0] - c * last * e[0]),
                m10[1] + share * (force * both[1] - c * last * e[1]),
            ];
            *m11 += share * (force * square(u[1]) - c * c * last);
        }
    }
    pulls
}

#[cfg(test)]
mod tests;
