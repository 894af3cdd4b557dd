//! Two microphones: closed forms.
//!
//! Of 2 x 2 matrices the adjugate is linear, and C^-1 = adj C / det C. So each source adds its part to every state:
//!
//! ```text
//! Q_h = y^H adj(R_h) y,   A_h = adj(R_h) y,   D_hk = tr(adj(R_h) R_k)
//! Q_s = sum_h l(s_h) Q_h + delta |y|^2,       q_s = Q_s / det C_s
//! det C_s = sum_h l(s_h)^2 det R_h + sum_{h<k} l(s_h) l(s_k) D_hk + delta sum_h l(s_h) tr R_h + delta^2
//! w_s = g_s det C_s,   g_s = pi_s e^{beta sum_h s_h (abar_h - m_h)} / Q_s^2                 weights of states, not normalised
//! x_h = R_h[m, :] (sum_k M_hk A_k + n_h y) / sum_s w_s,   M_hk = sum_s g_s l(s_h) l(s_k),   n_h = sum_s g_s l(s_h) delta
//! ```
//!
//! with 1 for delta in the state in which all are off. With the factor F = (a 0; b c) of R_h = F F^H and kappa = a y_1 - b y_0
//!
//! ```text
//! det R = (a c)^2,   tr R = a^2 + |b|^2 + c^2,   D_hk = |a_h b_k - a_k b_h|^2 + (a_h c_k)^2 + (a_k c_h)^2
//! Q = |kappa|^2 + c^2 |y_0|^2,                   A = (c^2 y_0 - conj(b) kappa, a kappa)
//! ```
//!
//! All of these are sums of squares: nothing cancels where R is nearly singular, and one division per state is enough.

#![allow(clippy::needless_range_loop)] // a source has an index in several arrays

use super::bin::{
    Bin, Complex, Constants, Found, MOST_SOURCES, MOST_STATES, Posterior, Prior, conj, minus, square, times,
};
use crate::numeric::math::Real;
use crate::numeric::slices::{set, span, span_mut};

/// A source: its factor, and what it adds to all states.
#[derive(Clone, Copy)]
pub(super) struct Source<T> {
    pub a: T,
    pub b: Complex<T>,
    pub c: T,
    /// A_h.
    pub adjugate: [Complex<T>; 2],
    /// Q_h / |y|^2.
    quadratic: T,
    /// det R_h and tr R_h.
    determinant: T,
    trace: T,
    /// Sum of D_hk over other sources.
    crossed: T,
    /// n_h.
    pub diffuse: T,
}

/// A state.
#[derive(Clone, Copy)]
pub(super) struct State<T> {
    /// pi_s e^{...}; then g_s.
    pub share: T,
    /// Q_s / |y|^2.
    pub quadratic: T,
    /// det C_s.
    determinant: T,
    /// w_s.
    weight: T,
}

/// Of all sources and states; no bin reads what the one before it left here.
pub(super) struct Table<T> {
    pub sources: [Source<T>; MOST_SOURCES],
    pub states: [State<T>; MOST_STATES],
    /// D_hk (1 - eps)^2 for h < k; then M_hk.
    pub pairs: [[T; MOST_SOURCES]; MOST_SOURCES],
    /// 1 / sum of w; 0 where nothing was inferred.
    pub normal: T,
}

impl<T: Real> Source<T> {
    #[inline(always)]
    fn new([a, re, im, c]: [T; 4], y: &[Complex<T>; 2], near: T, loudness: T) -> Self {
        let (b, c_square) = ([re, im], c * c);
        let kappa = minus([a * y[1][0], a * y[1][1]], times(b, y[0]));
        let turned = times(conj(b), kappa);
        Self {
            a,
            b,
            c,
            adjugate: [
                [c_square * y[0][0] - turned[0], c_square * y[0][1] - turned[1]],
                [a * kappa[0], a * kappa[1]],
            ],
            quadratic: (square(kappa) + c_square * near) * loudness,
            determinant: a * a * c_square,
            trace: a * a + square(b) + c_square,
            crossed: T::ZERO,
            diffuse: T::ZERO,
        }
    }

    /// D_hk.
    #[inline(always)]
    fn crossed(&self, other: &Self) -> T {
        let (first, second) = (self.a * other.c, other.a * self.c);
        let difference =
            [self.a * other.b[0] - other.a * self.b[0], self.a * other.b[1] - other.a * self.b[1]];
        square(difference) + first * first + second * second
    }
}

impl<T: Real> Table<T> {
    /// A constant, so that it is cleared where it stays and not copied there.
    pub const EMPTY: Self = {
        let (zero, b) = (T::ZERO, [T::ZERO; 2]);
        let adjugate = [b; 2];
        let source = Source {
            a: zero,
            b,
            c: zero,
            adjugate,
            quadratic: zero,
            determinant: zero,
            trace: zero,
            crossed: zero,
            diffuse: zero,
        };
        let state = State { share: T::ZERO, quadratic: T::ZERO, determinant: T::ZERO, weight: T::ZERO };
        let pairs = [[T::ZERO; MOST_SOURCES]; MOST_SOURCES];
        Self { sources: [source; MOST_SOURCES], states: [state; MOST_STATES], pairs, normal: T::ZERO }
    };

    /// g_s, Q_s, det C_s and w_s of all states; returns the sums of w and of g.
    #[inline(always)]
    fn fill(
        &mut self,
        bin: &Bin<'_, T>,
        constants: &Constants<T>,
        prior: &Prior<T>,
        y: &[Complex<T>; 2],
    ) -> (T, T) {
        let (eps, floor, near) = (constants.off_level, constants.floor, square(y[0]));
        let (on, count) = (T::ONE - eps, prior.sources.min(MOST_SOURCES));
        let Self { sources, pairs, .. } = self;
        let (mut quadratic, mut determinant, mut trace) = (T::ZERO, T::ZERO, T::ZERO);
        for (source, &factor) in sources.iter_mut().zip(bin.factors.as_chunks().0) {
            *source = Source::new(factor, y, near, prior.loudness);
            quadratic += source.quadratic;
            determinant += source.determinant;
            trace += source.trace;
        }
        for h in 1..count {
            for k in 0..h {
                let cross = sources[h].crossed(&sources[k]);
                determinant += cross;
                sources[h].crossed += cross;
                sources[k].crossed += cross;
                pairs[k][h] = on * on * cross;
            }
        }
        // With l = eps + (1 - eps) s: what all states have, then what the lowest source of a state adds to the rest of it.
        let least = eps * eps * determinant;
        let first = |share, floor| State {
            share,
            quadratic: eps * quadratic + floor,
            determinant: least + floor * (eps * trace + floor),
            weight: T::ZERO,
        };
        let states = span_mut(&mut self.states, 0, 1 << count);
        set(states, 0, first(prior.some, floor));
        for h in (0..count).rev() {
            let Source { quadratic, determinant, trace, crossed, .. } = sources[h];
            let determinant = on * ((T::ONE + eps) * determinant + eps * crossed + floor * trace);
            let (mut rest, step) = (0, 2 << h);
            while let Some(&others) = states.get(rest) {
                if let Some(state) = states.get_mut(rest | 1 << h) {
                    state.share = others.share * prior.odds[h];
                    state.quadratic = others.quadratic + on * quadratic;
                    state.determinant = others.determinant + determinant;
                }
                rest += step;
            }
            for k in h + 1..count {
                let both = 1 << h | 1 << k;
                let mut s = both;
                while let Some(state) = states.get_mut(s) {
                    state.determinant += pairs[h][k];
                    s = (s + step) | both;
                }
            }
        }
        set(states, 0, first(bin.silence, T::ONE));
        let mut sums = (T::ZERO, T::ZERO);
        for state in states {
            let inverse = T::ONE / state.quadratic;
            state.share *= inverse * inverse;
            state.weight = state.share * state.determinant;
            sums = (sums.0 + state.weight, sums.1 + state.share);
        }
        sums
    }
}

/// Sums of w and of g over all states in which the sources of `on` are on.
#[inline(always)]
fn sum<T: Real>(states: &[State<T>], on: usize) -> (T, T) {
    let (mut weight, mut share, mut s) = (T::ZERO, T::ZERO, on);
    while let Some(state) = states.get(s) {
        weight += state.weight;
        share += state.share;
        s = (s + 1) | on;
    }
    (weight, share)
}

pub(super) fn posterior<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
) -> Posterior<T> {
    let mut table = Table::EMPTY;
    table.fill(bin, constants, prior, y);
    let mut posterior = Posterior { weights: [T::ZERO; MOST_STATES], quadratics: [T::ZERO; MOST_STATES] };
    let Posterior { weights, quadratics } = &mut posterior;
    for ((state, weight), q) in table.states.iter().zip(weights).zip(quadratics).take(1 << prior.sources) {
        *weight = state.weight;
        *q = state.quadratic / state.determinant;
    }
    posterior
}

#[inline(never)]
pub(super) fn infer<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
    found: &mut Found<T>,
) -> bool {
    let Found { activities, images, pair: table, .. } = found;
    let (total, all) = table.fill(bin, constants, prior, y);
    let (eps, count) = (constants.off_level, prior.sources.min(MOST_SOURCES));
    let (on, mut single) = (T::ONE - eps, [T::ZERO; MOST_SOURCES]);
    let Table { sources, states, pairs, normal: kept } = table;
    let states = span(states, 0, 1 << count);
    let (normal, least) = (T::ONE / total, eps * eps * all);
    // Where there is no weight, or an infinite one.
    if !(total > T::ZERO && normal > T::ZERO) {
        return false;
    }
    *kept = normal;
    for h in 0..count {
        let (weight, share) = sum(states, 1 << h);
        (activities[h], single[h]) = (weight * normal, share);
        pairs[h][h] = least + (T::ONE - eps * eps) * share;
        for k in 0..h {
            let (_, both) = sum(states, 1 << h | 1 << k);
            let weight = least + on * (eps * (share + single[k]) + on * both);
            (pairs[h][k], pairs[k][h]) = (weight, weight);
        }
    }
    let silent = states.first().map_or(T::ZERO, |state| state.share);
    for h in 0..count {
        let n = constants.floor * (eps * (all - silent) + on * single[h]) + eps * silent;
        sources[h].diffuse = n;
        let mut v = [[n * y[0][0], n * y[0][1]], [n * y[1][0], n * y[1][1]]];
        for (source, &weight) in sources.iter().zip(&pairs[h]).take(count) {
            let [[p, q], [r, t]] = source.adjugate;
            v = [[v[0][0] + weight * p, v[0][1] + weight * q], [v[1][0] + weight * r, v[1][1] + weight * t]];
        }
        // R_h[m, :] v = F[m, :] F^H v.
        let Source { a, b, c, .. } = sources[h];
        let turned = times(conj(b), v[1]);
        let sum = [a * v[0][0] + turned[0], a * v[0][1] + turned[1]];
        let image = match constants.microphone {
            0 => [a * sum[0], a * sum[1]],
            _ => {
                let near = times(b, sum);
                [near[0] + c * c * v[1][0], near[1] + c * c * v[1][1]]
            }
        };
        images[h] = [image[0] * normal, image[1] * normal];
    }
    true
}
