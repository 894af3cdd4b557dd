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

#![allow(clippy::needless_range_loop)] // rows and columns of small matrices

use super::bin::{
    Bin, Complex, Constants, Found, MOST_MICROPHONES, MOST_SOURCES, MOST_STATES, Posterior, Prior, conj,
    minus, square, times,
};
use crate::numeric::math::Real;
use crate::numeric::slices::copy;

/// y or what is as long.
type Row<T> = [Complex<T>; MOST_MICROPHONES];
/// A Hermitian matrix or a Cholesky factor: entries on and below the diagonal.
type Lower<T> = [Row<T>; MOST_MICROPHONES];

/// A state, or a sum over states: w_s and w_s P_s y.
#[derive(Clone, Copy)]
struct State<T> {
    weight: T,
    part: Row<T>,
}

#[inline(always)]
fn scaled<T: Real>([re, im]: Complex<T>, scale: T) -> Complex<T> {
    [re * scale, im * scale]
}

#[inline(always)]
fn plus<T: Real>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a + c, b + d]
}

/// Of all sources and states; no bin reads what the one before it left here.
pub(super) struct Table<T> {
    /// F_h, then (1 - eps) R_h = (1 - eps) F_h F_h^H.
    covariances: [Lower<T>; MOST_SOURCES],
    /// C of the last state without its lowest 0, 1, ... sources, at last of none, all without the floor.
    partial: [Lower<T>; MOST_SOURCES + 1],
    /// R_h[m, :].
    rows: [Row<T>; MOST_SOURCES],
}

impl<T: Real> Table<T> {
    /// A constant, so that it is cleared where it stays and not copied there.
    pub const EMPTY: Self = {
        let none = [[T::ZERO; 2]; MOST_MICROPHONES];
        let empty = [none; MOST_MICROPHONES];
        Self {
            covariances: [empty; MOST_SOURCES],
            partial: [empty; MOST_SOURCES + 1],
            rows: [none; MOST_SOURCES],
        }
    };
}

/// Calls `visit` with the number of every state, its w_s, w_s P_s y and q_s of y scaled to length 1.
#[inline(always)]
fn walk<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>],
    table: &mut Table<T>,
    mut visit: impl FnMut(usize, &State<T>, T),
) {
    let (dims, m) = (y.len().min(MOST_MICROPHONES), constants.microphone);
    let on_level = T::ONE - constants.off_level;
    let Table { covariances, partial, rows } = table;
    let [.., base] = partial;
    *base = [[[T::ZERO; 2]; MOST_MICROPHONES]; MOST_MICROPHONES];
    let mut numbers = bin.factors.iter();
    let mut next = || numbers.next().copied().unwrap_or(T::ZERO);
    for (row, kept) in rows.iter_mut().zip(covariances.iter_mut()).take(prior.sources) {
        for i in 0..dims {
            for j in 0..i {
                kept[i][j] = [next(), next()];
            }
            kept[i][i] = [next(), T::ZERO];
        }
        // Entries of a product only need those of the factor that come before them.
        for i in (0..dims).rev() {
            for j in (0..i + 1).rev() {
                let mut r = scaled(kept[i][j], kept[j][j][0]);
                for k in 0..j {
                    r = plus(r, times(kept[i][k], conj(kept[j][k])));
                }
                if i == m {
                    row[j] = r;
                } else if j == m {
                    row[i] = conj(r);
                }
                base[i][j] = plus(base[i][j], scaled(r, constants.off_level));
                kept[i][j] = scaled(r, on_level);
            }
        }
    }
    let mut shares = [prior.some; MOST_STATES];
    for s in 0..1usize << prior.sources.min(MOST_SOURCES) {
        // That of all off is at the end; a state's share is that of the rest of it times the odds of its lowest source.
        let (mut at, mut share, mut floor) = (MOST_SOURCES, bin.silence, T::ONE);
        if s > 0 {
            let rest = s & (s - 1);
            let from = ((rest | 1 << MOST_SOURCES).trailing_zeros() as usize).min(MOST_SOURCES);
            at = (s.trailing_zeros() as usize).min(MOST_SOURCES - 1);
            for i in 0..dims {
                for j in 0..=i {
                    partial[at][i][j] = plus(partial[from][i][j], covariances[at][i][j]);
                }
            }
            (share, floor) = (shares[rest & 15] * prior.odds[at], constants.floor);
            shares[s & 15] = share;
        }
        let (q, determinant, mut part) = solve(&partial[at], floor, y);
        let quadratic = q * prior.loudness;
        let mut power = determinant;
        for _ in 0..dims {
            power *= quadratic;
        }
        let weight = share / power;
        part.iter_mut().for_each(|part| *part = scaled(*part, weight));
        visit(s, &State { weight, part }, quadratic);
    }
}

pub(super) fn posterior<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>],
) -> Posterior<T> {
    let mut posterior = Posterior { weights: [T::ZERO; MOST_STATES], quadratics: [T::ZERO; MOST_STATES] };
    let mut table = Table::EMPTY;
    walk(bin, constants, prior, y, &mut table, |s, state, quadratic| {
        (posterior.weights[s & 15], posterior.quadratics[s & 15]) = (state.weight, quadratic);
    });
    posterior
}

#[inline(never)]
pub(super) fn infer<T: Real>(
    bin: &Bin<'_, T>,
    constants: &Constants<T>,
    prior: &Prior<T>,
    y: &[Complex<T>],
    found: &mut Found<T>,
) -> bool {
    let Found { activities, images, array: table, .. } = found;
    // Sums over states with h on, at last over all.
    let mut sums = [State { weight: T::ZERO, part: [[T::ZERO; 2]; MOST_MICROPHONES] }; MOST_SOURCES + 1];
    walk(bin, constants, prior, y, table, |s, state, _| {
        for (h, sum) in sums.iter_mut().enumerate() {
            if (s | 1 << MOST_SOURCES) >> h & 1 == 1 {
                sum.weight += state.weight;
                sum.part.iter_mut().zip(state.part).for_each(|(sum, part)| *sum = plus(*sum, part));
            }
        }
    });
    let [on @ .., all] = &sums;
    if !(all.weight > T::ZERO && all.weight.is_finite()) {
        return false;
    }
    let (share, off_level) = (T::ONE / all.weight, constants.off_level);
    let on_level = T::ONE - off_level;
    let found = activities.iter_mut().zip(images).zip(on.iter().zip(&table.rows));
    for ((activity, image_of), (on, row)) in found.take(prior.sources) {
        *activity = on.weight * share;
        let mut image = [T::ZERO; 2];
        for ((&row, &all), &on) in row.iter().zip(&all.part).zip(&on.part).take(y.len()) {
            image = plus(image, times(row, plus(scaled(all, off_level), scaled(on, on_level))));
        }
        *image_of = scaled(image, share);
    }
    true
}

/// y^H C^-1 y, det C and C^-1 y, with the floor added to the diagonal of C.
fn solve<T: Real>(c: &Lower<T>, floor: T, y: &[Complex<T>]) -> (T, T, Row<T>) {
    let dims = y.len().min(MOST_MICROPHONES);
    let (mut c, mut u) = (*c, [[T::ZERO; 2]; MOST_MICROPHONES]);
    copy(&mut u, y);
    for i in 0..dims {
        c[i][i][0] += floor;
    }
    let mut inverse = [T::ZERO; MOST_MICROPHONES];
    let (mut q, mut determinant) = (T::ZERO, T::ONE);
    for j in 0..dims {
        // C is at least its floor; rounding may take that away from a matrix that is nearly singular.
        let d = c[j][j][0].max(T::from_f64(1e-6));
        determinant *= d;
        inverse[j] = T::ONE / d;
        q += square(u[j]) * inverse[j];
        // Column j of L, and what it takes off the rest.
        for i in j + 1..dims {
            let l = scaled(c[i][j], inverse[j]);
            u[i] = minus(u[i], times(l, u[j]));
            for k in j + 1..i {
                c[i][k] = minus(c[i][k], times(l, conj(c[k][j])));
            }
            c[i][i][0] -= square(l) * d;
        }
        for i in j + 1..dims {
            c[i][j] = scaled(c[i][j], inverse[j]);
        }
    }
    for i in (0..dims).rev() {
        u[i] = scaled(u[i], inverse[i]);
        for k in i + 1..dims {
            u[i] = minus(u[i], times(conj(c[k][i]), u[k]));
        }
    }
    (q, determinant, u)
}
