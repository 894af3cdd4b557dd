//! Any number of microphones: C_s = L diag(d) L^H without square roots; with u = L^-1 y
//!
//! ```text
//! q_s = sum_i |u_i|^2 / d_i,   det C_s = prod_i d_i,   P_s y = L^-H (u / d)
//! w_s = pi_s e^{beta sum_h s_h (abar_h - m_h)} / (det C_s q_s^D)                           weights of states, not normalised
//! x_h = sum_j R_h[m, j] (sum_s w_s l(s_h) P_s y)_j / sum_s w_s
//! ```
//!
//! C_s is that of the state without its lowest source, plus (1 - eps) R of this source. With l(s_h) = eps + (1 - eps) s_h, the sums over
//! states are one over all and one over those with h on.

use super::bin::{
    Bin, Complex, Constants, MOST_SOURCES, MOST_STATES, Posterior, Prior, conj, minus, square, times,
};
use crate::numeric::math::Real;
use crate::numeric::slices::span;

/// A Hermitian matrix or a Cholesky factor: entries on and below the diagonal.
type Lower<T, const D: usize> = [[Complex<T>; D]; D];

/// A state, or a sum over states: w_s and w_s P_s y.
#[derive(Clone, Copy)]
struct State<T, const D: usize> {
    weight: T,
    part: [Complex<T>; D],
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

/// Calls `visit` with the number of every state, its w_s, w_s P_s y and q_s of y scaled to length 1; returns R_h[m, :] of all sources.
#[inline(always)]
fn walk<T: Real, const D: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; D],
    mut visit: impl FnMut(usize, &State<T, D>, T),
) -> [[Complex<T>; D]; MOST_SOURCES] {
    let on_level = T::ONE - constants.off_level;
    // (1 - eps) R_h; C of the last state without its lowest 0, 1, ... sources, at last of none, all without the floor.
    let mut covariances = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES];
    let mut partial = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES + 1];
    let mut rows = [[[T::ZERO; 2]; D]; MOST_SOURCES];
    let [.., base] = &mut partial;
    for (h, (row, kept)) in rows.iter_mut().zip(&mut covariances).enumerate().take(prior.sources) {
        let r = covariance::<T, D>(bin, h);
        for (j, entry) in row.iter_mut().enumerate() {
            let m = constants.microphone.min(D - 1);
            *entry = if j <= m { r[m][j] } else { conj(r[j][m]) };
        }
        each!(i in 0 1 2 3 => {
            each!(j in 0 1 2 3 => {
                if j <= i && i < D {
                    let ([re, im], [sum_re, sum_im]) = (r[i][j], base[i][j]);
                    base[i][j] = [sum_re + constants.off_level * re, sum_im + constants.off_level * im];
                    kept[i][j] = [on_level * re, on_level * im];
                }
            });
        });
    }
    let mut shares = [prior.some; MOST_STATES];
    for s in 0..1usize << prior.sources.min(MOST_SOURCES) {
        // That of all off is at the end; a state's share is that of the rest of it times the odds of its lowest source.
        let (mut at, mut share, mut floor) = (MOST_SOURCES, bin.silence, T::ONE);
        if s > 0 {
            let rest = s & (s - 1);
            let from = ((rest | 1 << MOST_SOURCES).trailing_zeros() as usize).min(MOST_SOURCES);
            at = (s.trailing_zeros() as usize).min(MOST_SOURCES - 1);
            each!(i in 0 1 2 3 => {
                each!(j in 0 1 2 3 => {
                    if j <= i && i < D {
                        let ([re, im], added) = (partial[from][i][j], covariances[at][i][j]);
                        partial[at][i][j] = [re + added[0], im + added[1]];
                    }
                });
            });
            let before = if rest == 0 { prior.some } else { shares[rest & 15] };
            (share, floor) = (before * prior.odds[at], constants.floor);
            shares[s & 15] = share;
        }
        let (q, determinant, mut part) = solve(&partial[at], floor, y);
        let quadratic = q * prior.loudness;
        let mut power = determinant;
        for _ in 0..D {
            power *= quadratic;
        }
        let weight = share / power;
        each!(j in 0 1 2 3 => {
            if j < D {
                part[j] = [weight * part[j][0], weight * part[j][1]];
            }
        });
        visit(s, &State { weight, part }, quadratic);
    }
    rows
}

pub(super) fn posterior<T: Real, const D: usize>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>; D],
) -> Posterior<T> {
    let mut posterior = Posterior { weights: [T::ZERO; MOST_STATES], quadratics: [T::ZERO; MOST_STATES] };
    walk(bin, constants, prior, y, |s, state, quadratic| {
        (posterior.weights[s & 15], posterior.quadratics[s & 15]) = (state.weight, quadratic);
    });
    posterior
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
    let nothing = State { weight: T::ZERO, part: [[T::ZERO; 2]; D] };
    // Sums over all states, and over those with h on.
    let (mut all, mut on) = (nothing, [nothing; MOST_SOURCES]);
    let rows = walk(bin, constants, prior, y, |s, state, _| {
        add(&mut all, state);
        for (h, on) in on.iter_mut().enumerate() {
            if s >> h & 1 == 1 {
                add(on, state);
            }
        }
    });
    if !(all.weight > T::ZERO && all.weight.is_finite()) {
        return false;
    }
    let (share, off_level) = (T::ONE / all.weight, constants.off_level);
    let on_level = T::ONE - off_level;
    let found = activities.iter_mut().zip(images).zip(on.iter().zip(&rows));
    for ((activity, image_of), (on, row)) in found.take(prior.sources) {
        *activity = on.weight * share;
        let mut image = [T::ZERO; 2];
        each!(j in 0 1 2 3 => {
            if j < D {
                let part = |k: usize| off_level * all.part[j][k] + on_level * on.part[j][k];
                let [re, im] = times(row[j], [part(0), part(1)]);
                image = [image[0] + re, image[1] + im];
            }
        });
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

/// y^H C^-1 y, det C and C^-1 y, with the floor added to the diagonal of C.
#[inline(never)]
fn solve<T: Real, const D: usize>(c: &Lower<T, D>, floor: T, y: &[Complex<T>; D]) -> (T, T, [Complex<T>; D]) {
    let (mut c, mut u) = (*c, *y);
    each!(i in 0 1 2 3 => {
        if i < D {
            c[i][i][0] += floor;
        }
    });
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
