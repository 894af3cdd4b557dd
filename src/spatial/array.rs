//! Any number of microphones: C_s = L diag(d) L^H without square roots; with u = L^-1 y
//!
//! ```text
//! q_s = sum_i |u_i|^2 / d_i,   det C_s = prod_i d_i,   P_s y = L^-H (u / d)
//! w_s = pi_s e^{beta sum_h s_h (abar_h - m_h)} / (det C_s q_s^D)                           weights of states, not normalised
//! x_h = sum_j R_h[m, j] (sum_s w_s l(s_h) P_s y)_j / sum_s w_s
//! ```
//!
//! C_s is that of the state without its lowest source, plus (1 - eps) R of this source. With l(s_h) = eps + (1 - eps) s_h, the sums over
//! states are one over all and one over those with h on; both come out of folding the table of states in halves, H times.

#![allow(clippy::needless_range_loop)] // indices as in the equations

use super::bin::{
    Bin, Complex, Constants, MOST_SOURCES, MOST_STATES, Posterior, Prior, conj, minus, square, times,
};
use crate::numeric::math::Real;
use crate::numeric::slices::span;

/// A Hermitian matrix or a Cholesky factor: entries on and below the diagonal.
type Lower<T, const D: usize> = [[Complex<T>; D]; D];

/// A state: w_s, w_s P_s y and q_s of y scaled to length 1.
#[derive(Clone, Copy)]
struct State<T, const D: usize> {
    weight: T,
    part: [Complex<T>; D],
    quadratic: T,
}

/// All states, and R_h[m, :] of all sources.
struct Table<T, const D: usize> {
    states: [State<T, D>; MOST_STATES],
    rows: [[Complex<T>; D]; MOST_SOURCES],
}

/// R_h = F F^H of source h.
#[inline(never)]
fn covariance<T: Real, const D: usize>(bin: &Bin<'_, T>, source: usize) -> Lower<T, D> {
    let mut factor = [[[T::ZERO; 2]; D]; D];
    let mut numbers = span(bin.factors, source * D * D, D * D).iter();
    let mut next = || numbers.next().copied().unwrap_or(T::ZERO);
    each!(i in 0 1 2 3 => {
        if i < D {
            each!(j in 0 1 2 => {
                if j < i {
                    factor[i][j] = [next(), next()];
                }
            });
            factor[i][i] = [next(), T::ZERO];
        }
    });
    let mut product = [[[T::ZERO; 2]; D]; D];
    each!(i in 0 1 2 3 => {
        if i < D {
            each!(j in 0 1 2 => {
                if j < i {
                    let mut sum = [factor[i][j][0] * factor[j][j][0], factor[i][j][1] * factor[j][j][0]];
                    each!(k in 0 1 2 => {
                        if k < j {
                            let [re, im] = times(factor[i][k], conj(factor[j][k]));
                            sum = [sum[0] + re, sum[1] + im];
                        }
                    });
                    product[i][j] = sum;
                }
            });
            let mut sum = factor[i][i][0] * factor[i][i][0];
            each!(k in 0 1 2 => {
                if k < i {
                    sum += square(factor[i][k]);
                }
            });
            product[i][i] = [sum, T::ZERO];
        }
    });
    product
}

#[inline(always)]
fn table<T: Real, const D: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; D],
) -> Table<T, D> {
    let on_level = T::ONE - constants.off_level;
    // R_h, then those of states without some of their lowest sources, and at last of none.
    let mut covariances = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES];
    let mut rows = [[[T::ZERO; 2]; D]; MOST_SOURCES];
    let mut partial = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES + 1];
    let [.., base] = &mut partial;
    for (h, (row, kept)) in rows.iter_mut().zip(&mut covariances).enumerate().take(prior.sources) {
        let mut r = covariance::<T, D>(bin, h);
        for j in 0..D {
            let m = constants.microphone.min(D - 1);
            row[j] = if j <= m { r[m][j] } else { conj(r[j][m]) };
        }
        each!(i in 0 1 2 3 => {
            each!(j in 0 1 2 3 => {
                if j <= i && i < D {
                    let ([re, im], [sum_re, sum_im]) = (r[i][j], base[i][j]);
                    base[i][j] = [sum_re + constants.off_level * re, sum_im + constants.off_level * im];
                    r[i][j] = [on_level * re, on_level * im];
                }
            });
        });
        *kept = r;
    }
    let nothing = State { weight: T::ZERO, part: [[T::ZERO; 2]; D], quadratic: T::ZERO };
    let mut states = [nothing; MOST_STATES];
    let mut shares = [prior.some; MOST_STATES];
    for s in 0..1usize << prior.sources.min(MOST_SOURCES) {
        let (mut c, share, floor) = match s {
            0 => (partial[MOST_SOURCES], bin.silence, T::ONE),
            _ => {
                let lowest = (s.trailing_zeros() as usize).min(MOST_SOURCES - 1);
                let rest = s & (s - 1);
                let from = (rest | 1 << MOST_SOURCES).trailing_zeros() as usize;
                let mut c = partial[from.min(MOST_SOURCES)];
                let added = &covariances[lowest];
                each!(i in 0 1 2 3 => {
                    each!(j in 0 1 2 3 => {
                        if j <= i && i < D {
                            c[i][j] = [c[i][j][0] + added[i][j][0], c[i][j][1] + added[i][j][1]];
                        }
                    });
                });
                partial[lowest] = c;
                let before = if rest == 0 { prior.some } else { shares[rest & 15] };
                shares[s & 15] = before * prior.odds[lowest];
                (c, shares[s & 15], constants.floor)
            }
        };
        for i in 0..D {
            c[i][i][0] += floor;
        }
        let (q, determinant, part) = solve(&c, y);
        let quadratic = q * prior.loudness;
        let mut power = determinant;
        for _ in 0..D {
            power *= quadratic;
        }
        let weight = share / power;
        states[s & 15] = State { weight, part: part.map(|[re, im]| [weight * re, weight * im]), quadratic };
    }
    Table { states, rows }
}

pub(super) fn posterior<T: Real, const D: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; D],
) -> Posterior<T> {
    let Table { states, .. } = table(bin, constants, prior, y);
    Posterior {
        weights: states.each_ref().map(|state| state.weight),
        quadratics: states.each_ref().map(|state| state.quadratic),
    }
}

#[inline(always)]
pub(super) fn infer<T: Real, const D: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; D],
    activities: &mut [T; MOST_SOURCES],
    images: &mut [Complex<T>; MOST_SOURCES],
) -> bool {
    let Table { mut states, rows } = table(bin, constants, prior, y);
    let (off_level, sources) = (constants.off_level, prior.sources.min(MOST_SOURCES));
    let on_level = T::ONE - off_level;
    let nothing = State { weight: T::ZERO, part: [[T::ZERO; 2]; D], quadratic: T::ZERO };
    let mut on = [nothing; MOST_SOURCES];
    for (h, on) in on.iter_mut().enumerate().take(sources).rev() {
        let half = 1 << h;
        for s in 0..half {
            let upper = states[(s + half) & 15];
            add(on, &upper);
            add(&mut states[s & 15], &upper);
        }
    }
    let [all, ..] = &states;
    if !(all.weight > T::ZERO && all.weight.is_finite()) {
        return false;
    }
    let share = T::ONE / all.weight;
    let found = activities.iter_mut().zip(images).zip(on.iter().zip(&rows));
    for ((activity, image_of), (on, row)) in found.take(sources) {
        *activity = on.weight * share;
        let mut image = [T::ZERO; 2];
        for j in 0..D {
            let part = |k: usize| off_level * all.part[j][k] + on_level * on.part[j][k];
            let [re, im] = times(row[j], [part(0), part(1)]);
            image = [image[0] + re, image[1] + im];
        }
        *image_of = [image[0] * share, image[1] * share];
    }
    true
}

#[inline(always)]
fn add<T: Real, const D: usize>(sum: &mut State<T, D>, term: &State<T, D>) {
    sum.weight += term.weight;
    each!(j in 0 1 2 3 => {
        if j < D {
            sum.part[j] = [sum.part[j][0] + term.part[j][0], sum.part[j][1] + term.part[j][1]];
        }
    });
}

/// y^H C^-1 y, det C and C^-1 y.
#[inline(never)]
fn solve<T: Real, const D: usize>(c: &Lower<T, D>, y: &[Complex<T>; D]) -> (T, T, [Complex<T>; D]) {
    let (mut c, mut u) = (*c, *y);
    let mut inverse = [T::ZERO; D];
    let (mut q, mut determinant) = (T::ZERO, T::ONE);
    each!(j in 0 1 2 3 => {
        if j < D {
            // C is at least its floor; rounding may take that away from a matrix that is nearly singular.
            let d = c[j][j][0].max(T::from_f64(1e-6));
            determinant *= d;
            inverse[j] = T::ONE / d;
            q += square(u[j]) * inverse[j];
            // Column j of L, and what it takes off the rest.
            each!(i in 1 2 3 => {
                if i > j && i < D {
                    let l = [c[i][j][0] * inverse[j], c[i][j][1] * inverse[j]];
                    u[i] = minus(u[i], times(l, u[j]));
                    each!(k in 1 2 => {
                        if k > j && k < i {
                            c[i][k] = minus(c[i][k], times(l, conj(c[k][j])));
                        }
                    });
                    c[i][i][0] -= square(l) * d;
                }
            });
            each!(i in 1 2 3 => {
                if i > j && i < D {
                    c[i][j] = [c[i][j][0] * inverse[j], c[i][j][1] * inverse[j]];
                }
            });
        }
    });
    each!(i in 3 2 1 0 => {
        if i < D {
            u[i] = [u[i][0] * inverse[i], u[i][1] * inverse[i]];
            each!(k in 1 2 3 => {
                if k > i && k < D {
                    u[i] = minus(u[i], times(conj(c[k][i]), u[k]));
                }
            });
        }
    });
    (q, determinant, u)
}
