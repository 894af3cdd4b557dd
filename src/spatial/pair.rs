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

use super::bin::{
    Bin, Complex, Constants, MOST_SOURCES, MOST_STATES, Posterior, Prior, conj, minus, square, times,
};
use crate::numeric::math::Real;

/// A source: its factor, and what it adds to all states.
#[derive(Clone, Copy)]
struct Source<T> {
    a: T,
    b: Complex<T>,
    c: T,
    /// A_h.
    adjugate: [Complex<T>; 2],
    /// Q_h / |y|^2.
    quadratic: T,
    /// det R_h and tr R_h.
    determinant: T,
    trace: T,
}

/// A state.
#[derive(Clone, Copy)]
struct State<T> {
    /// pi_s e^{...}; then g_s.
    share: T,
    /// Q_s / |y|^2.
    quadratic: T,
    /// det C_s; then w_s.
    determinant: T,
}

struct Table<T> {
    sources: [Source<T>; MOST_SOURCES],
    states: [State<T>; MOST_STATES],
}

/// g_s, Q_s and det C_s of all states.
#[inline(always)]
fn table<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
) -> Table<T> {
    let (eps, floor) = (constants.off_level, constants.floor);
    let on = T::ONE - eps;
    let zero = Source {
        a: T::ZERO,
        b: [T::ZERO; 2],
        c: T::ZERO,
        adjugate: [[T::ZERO; 2]; 2],
        quadratic: T::ZERO,
        determinant: T::ZERO,
        trace: T::ZERO,
    };
    let mut sources = [zero; MOST_SOURCES];
    let (mut quadratic, mut determinant, mut trace) = (T::ZERO, T::ZERO, T::ZERO);
    let near = square(y[0]);
    for (source, &[a, re, im, c]) in sources.iter_mut().zip(bin.factors.as_chunks().0) {
        let (b, c_square) = ([re, im], c * c);
        let kappa = minus([a * y[1][0], a * y[1][1]], times(b, y[0]));
        let turned = times(conj(b), kappa);
        *source = Source {
            a,
            b,
            c,
            adjugate: [
                [c_square * y[0][0] - turned[0], c_square * y[0][1] - turned[1]],
                [a * kappa[0], a * kappa[1]],
            ],
            quadratic: (square(kappa) + c_square * near) * prior.loudness,
            determinant: a * a * c_square,
            trace: a * a + square(b) + c_square,
        };
        quadratic += source.quadratic;
        determinant += source.determinant;
        trace += source.trace;
    }
    // D_hk, and their sums over k.
    let mut crossed = [[T::ZERO; MOST_SOURCES]; MOST_SOURCES];
    let mut sums = [T::ZERO; MOST_SOURCES];
    for h in 1..prior.sources.min(MOST_SOURCES) {
        for k in 0..h {
            let (one, other) = (&sources[h], &sources[k]);
            let (first, second) = (one.a * other.c, other.a * one.c);
            let difference =
                [one.a * other.b[0] - other.a * one.b[0], one.a * other.b[1] - other.a * one.b[1]];
            let cross = square(difference) + first * first + second * second;
            determinant += cross;
            sums[h] += cross;
            sums[k] += cross;
            crossed[h][k] = cross;
        }
    }
    // With l = eps + (1 - eps) s: what all states have, then in turn what each source that is on adds to the states before it.
    let off = State { share: T::ZERO, quadratic: T::ZERO, determinant: T::ZERO };
    let mut states = [off; MOST_STATES];
    let least = eps * eps * determinant;
    states[0] = State {
        share: prior.some,
        quadratic: eps * quadratic + floor,
        determinant: least + floor * (eps * trace + floor),
    };
    for h in 0..prior.sources.min(MOST_SOURCES) {
        let source = &sources[h];
        let quadratic = on * source.quadratic;
        let alone = on * ((T::ONE + eps) * source.determinant + eps * sums[h] + floor * source.trace);
        // det C of the states there are with h minus det C of them: D_hk add up over those that are on.
        let mut added = [alone; MOST_STATES / 2];
        for k in 0..h {
            let cross = on * on * crossed[h][k];
            let (known, new) = added.split_at_mut_checked(1 << k).unwrap_or_default();
            new.iter_mut().zip(known).for_each(|(new, known)| *new = *known + cross);
        }
        let (known, new) = states.split_at_mut_checked(1 << h).unwrap_or_default();
        for ((new, known), added) in new.iter_mut().zip(known).zip(added) {
            *new = State {
                share: known.share * prior.odds[h],
                quadratic: known.quadratic + quadratic,
                determinant: known.determinant + added,
            };
        }
    }
    states[0] = State {
        share: bin.silence,
        quadratic: eps * quadratic + T::ONE,
        determinant: least + (eps * trace + T::ONE),
    };
    for state in states.iter_mut().take(1 << prior.sources) {
        let inverse = T::ONE / state.quadratic;
        state.share *= inverse * inverse;
    }
    Table { sources, states }
}

pub(super) fn posterior<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
) -> Posterior<T> {
    let Table { states, .. } = table(bin, constants, prior, y);
    let mut posterior = Posterior { weights: [T::ZERO; MOST_STATES], quadratics: [T::ZERO; MOST_STATES] };
    let Posterior { weights, quadratics } = &mut posterior;
    for ((state, weight), q) in states.iter().zip(weights).zip(quadratics).take(1 << prior.sources) {
        *weight = state.share * state.determinant;
        *q = state.quadratic / state.determinant;
    }
    posterior
}

/// Sums over the states in which bit h, or both h and k, are on; `values` is used up.
#[inline(always)]
fn fold<T: Real, const N: usize>(values: &mut [T; N], h: usize) -> T {
    let (lower, upper) = values.split_at_mut_checked(1 << h).unwrap_or_default();
    let mut sum = T::ZERO;
    for (lower, upper) in lower.iter_mut().zip(upper) {
        sum += *upper;
        *lower += *upper;
    }
    sum
}

#[inline(always)]
pub(super) fn infer<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
    activities: &mut [T; MOST_SOURCES],
    images: &mut [Complex<T>; MOST_SOURCES],
) -> bool {
    let Table { sources, states } = table(bin, constants, prior, y);
    let (eps, count) = (constants.off_level, prior.sources.min(MOST_SOURCES));
    let on = T::ONE - eps;
    let silent = states[0].share;
    let (mut weights, mut shares) = ([T::ZERO; MOST_STATES], [T::ZERO; MOST_STATES]);
    for ((state, weight), share) in states.iter().zip(&mut weights).zip(&mut shares).take(1 << count) {
        *weight = state.share * state.determinant;
        *share = state.share;
    }
    // Sums of g over the states with h on, and with h and k on; of w over those with h on.
    let mut single = [T::ZERO; MOST_SOURCES];
    let mut both = [[T::ZERO; MOST_SOURCES]; MOST_SOURCES];
    for h in (0..count).rev() {
        activities[h] = fold(&mut weights, h);
        let mut upper = [T::ZERO; MOST_STATES / 2];
        let with_h = shares.get(1 << h..).unwrap_or_default();
        upper.iter_mut().zip(with_h).take(1 << h).for_each(|(upper, share)| *upper = *share);
        for k in (0..h).rev() {
            both[h][k] = fold(&mut upper, k);
        }
        single[h] = fold(&mut shares, h);
    }
    let ([total, ..], [all, ..]) = (weights, shares);
    if !(total > T::ZERO && total.is_finite()) {
        return false;
    }
    let normal = T::ONE / total;
    let least = eps * eps * all;
    for h in 0..count {
        activities[h] *= normal;
        let n = constants.floor * (eps * (all - silent) + on * single[h]) + eps * silent;
        let mut v = [[n * y[0][0], n * y[0][1]], [n * y[1][0], n * y[1][1]]];
        for (k, source) in sources.iter().enumerate().take(count) {
            let weight = match h == k {
                true => least + (T::ONE - eps * eps) * single[h],
                false => least + on * (eps * (single[h] + single[k]) + on * (both[h][k] + both[k][h])),
            };
            for i in 0..2 {
                v[i][0] += weight * source.adjugate[i][0];
                v[i][1] += weight * source.adjugate[i][1];
            }
        }
        // R_h[m, :] v.
        let Source { a, b, c, .. } = sources[h];
        let (a, c_square) = (a * normal, c * c * normal);
        let turned = times(conj(b), v[1]);
        let sum = [sources[h].a * v[0][0] + turned[0], sources[h].a * v[0][1] + turned[1]];
        images[h] = match constants.microphone {
            0 => [a * sum[0], a * sum[1]],
            _ => {
                let image = times([b[0] * normal, b[1] * normal], sum);
                [image[0] + c_square * v[1][0], image[1] + c_square * v[1][1]]
            }
        };
    }
    true
}
