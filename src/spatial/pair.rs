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
use crate::numeric::slices::row;

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
    /// det C_s.
    determinant: T,
}

struct Table<T> {
    sources: [Source<T>; MOST_SOURCES],
    states: [State<T>; MOST_STATES],
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

/// g_s, Q_s and det C_s of all states of H sources.
#[inline(always)]
fn table<T: Real, const H: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
) -> Table<T> {
    let (eps, floor) = (constants.off_level, constants.floor);
    let on = T::ONE - eps;
    let near = square(y[0]);
    let zero = Source::new([T::ZERO; 4], &[[T::ZERO; 2]; 2], T::ZERO, T::ZERO);
    let mut sources = [zero; MOST_SOURCES];
    let (mut quadratic, mut determinant, mut trace) = (T::ZERO, T::ZERO, T::ZERO);
    let (factors, _) = bin.factors.as_chunks::<4>();
    each!(h in 0 1 2 3 => {
        if h < H {
            sources[h] = Source::new(row(factors, h), y, near, prior.loudness);
            quadratic += sources[h].quadratic;
            determinant += sources[h].determinant;
            trace += sources[h].trace;
        }
    });
    // D_hk, and their sums over k.
    let mut crossed = [[T::ZERO; MOST_SOURCES]; MOST_SOURCES];
    let mut sums = [T::ZERO; MOST_SOURCES];
    each!(h in 1 2 3 => {
        each!(k in 0 1 2 => {
            if k < h && h < H {
                let cross = sources[h].crossed(&sources[k]);
                determinant += cross;
                sums[h] += cross;
                sums[k] += cross;
                crossed[h][k] = on * on * cross;
                crossed[k][h] = crossed[h][k];
            }
        });
    });
    // With l = eps + (1 - eps) s: what all states have, then what the lowest source of a state adds to the rest of it.
    let none = State { share: T::ZERO, quadratic: T::ZERO, determinant: T::ZERO };
    let mut states = [none; MOST_STATES];
    let least = eps * eps * determinant;
    let mut alone = [none; MOST_SOURCES];
    each!(h in 0 1 2 3 => {
        if h < H {
            let Source { quadratic, determinant, trace, .. } = sources[h];
            let determinant = (T::ONE + eps) * determinant + eps * sums[h] + floor * trace;
            alone[h] = State { share: prior.odds[h], quadratic: on * quadratic, determinant: on * determinant };
        }
    });
    states[0] = State {
        share: prior.some,
        quadratic: eps * quadratic + floor,
        determinant: least + floor * (eps * trace + floor),
    };
    each!(s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => {
        const LOWEST: usize = s.trailing_zeros() as usize;
        const REST: usize = s & (s - 1);
        if s < 1 << H {
            let (rest, added) = (states[REST], alone[LOWEST]);
            let mut determinant = rest.determinant + added.determinant;
            each!(k in 1 2 3 => {
                if REST >> k & 1 == 1 {
                    determinant += crossed[LOWEST][k];
                }
            });
            let quadratic = rest.quadratic + added.quadratic;
            states[s] = State { share: rest.share * added.share, quadratic, determinant };
        }
    });
    states[0] = State {
        share: bin.silence,
        quadratic: eps * quadratic + T::ONE,
        determinant: least + (eps * trace + T::ONE),
    };
    each!(s in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => {
        if s < 1 << H {
            let inverse = T::ONE / states[s].quadratic;
            states[s].share *= inverse * inverse;
        }
    });
    Table { sources, states }
}

pub(super) fn posterior<T: Real, const H: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
) -> Posterior<T> {
    let Table { states, .. } = table::<T, H>(bin, constants, prior, y);
    let mut posterior = Posterior { weights: [T::ZERO; MOST_STATES], quadratics: [T::ZERO; MOST_STATES] };
    let Posterior { weights, quadratics } = &mut posterior;
    for ((state, weight), q) in states.iter().zip(weights).zip(quadratics).take(1 << H) {
        *weight = state.share * state.determinant;
        *q = state.quadratic / state.determinant;
    }
    posterior
}

#[inline(always)]
pub(super) fn infer<T: Real, const H: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; 2],
    activities: &mut [T; MOST_SOURCES],
    images: &mut [Complex<T>; MOST_SOURCES],
) -> bool {
    let Table { sources, states } = table::<T, H>(bin, constants, prior, y);
    let eps = constants.off_level;
    let on = T::ONE - eps;
    // Sums of w and g over all states, over those with h on, and of g over those with h and k on.
    let silent = states[0].share;
    let (mut total, mut all) = (T::ZERO, T::ZERO);
    let (mut active, mut single) = ([T::ZERO; MOST_SOURCES], [T::ZERO; MOST_SOURCES]);
    let mut both = [[T::ZERO; MOST_SOURCES]; MOST_SOURCES];
    each!(s in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => {
        if s < 1 << H {
            let State { share, determinant, .. } = states[s];
            let weight = share * determinant;
            total += weight;
            all += share;
            each!(h in 0 1 2 3 => {
                if s >> h & 1 == 1 {
                    active[h] += weight;
                    single[h] += share;
                    each!(k in 0 1 2 => {
                        if k < h && s >> k & 1 == 1 {
                            both[h][k] += share;
                        }
                    });
                }
            });
        }
    });
    if !(total > T::ZERO && total.is_finite()) {
        return false;
    }
    let normal = T::ONE / total;
    let least = eps * eps * all;
    each!(h in 0 1 2 3 => {
        if h < H {
            activities[h] = active[h] * normal;
            let n = constants.floor * (eps * (all - silent) + on * single[h]) + eps * silent;
            let mut v = [[n * y[0][0], n * y[0][1]], [n * y[1][0], n * y[1][1]]];
            each!(k in 0 1 2 3 => {
                if k < H {
                    let weight = match h == k {
                        true => least + (T::ONE - eps * eps) * single[h],
                        false => {
                            let both = if h > k { both[h][k] } else { both[k][h] };
                            least + on * (eps * (single[h] + single[k]) + on * both)
                        }
                    };
                    let [[p, q], [r, t]] = sources[k].adjugate;
                    v = [
                        [v[0][0] + weight * p, v[0][1] + weight * q],
                        [v[1][0] + weight * r, v[1][1] + weight * t],
                    ];
                }
            });
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
    });
    true
}
