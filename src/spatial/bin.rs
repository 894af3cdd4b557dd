//! One bin of one frame: which sources are on, and what each of them is at the microphone that is put out.
//!
//! C_s = L diag(d) L^H without square roots; with u = L^-1 y
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

use crate::counts::Count;
use crate::numeric::math::Real;

/// Most sources, H.
pub const MOST_SOURCES: usize = 4;
/// Most microphones, D.
pub const MOST_MICROPHONES: usize = 4;

/// Real and imaginary part.
pub type Complex<T> = [T; 2];

/// A Hermitian matrix or a Cholesky factor: entries on and below the diagonal.
type Lower<T, const D: usize> = [[Complex<T>; D]; D];

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

/// A state: w_s and w_s P_s y.
#[derive(Clone, Copy)]
struct State<T, const D: usize> {
    weight: T,
    part: [Complex<T>; D],
}

#[inline(always)]
fn times<T: Real>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a * c - b * d, a * d + b * c]
}

#[inline(always)]
fn conj<T: Real>([a, b]: Complex<T>) -> Complex<T> {
    [a, -b]
}

#[inline(always)]
fn minus<T: Real>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a - c, b - d]
}

#[inline(always)]
fn square<T: Real>([a, b]: Complex<T>) -> T {
    a * a + b * b
}

impl<T: Real> Bin<'_, T> {
    /// R_h = F F^H of source h.
    #[inline(always)]
    fn covariance<const D: usize>(&self, source: usize) -> Lower<T, D> {
        let mut factor = [[[T::ZERO; 2]; D]; D];
        let mut numbers = self.factors.iter().skip(source * D * D);
        let mut next = || numbers.next().copied().unwrap_or(T::ZERO);
        for i in 0..D {
            for j in 0..i {
                factor[i][j] = [next(), next()];
            }
            factor[i][i] = [next(), T::ZERO];
        }
        let mut product = [[[T::ZERO; 2]; D]; D];
        for i in 0..D {
            for j in 0..i {
                let mut sum = [factor[i][j][0] * factor[j][j][0], factor[i][j][1] * factor[j][j][0]];
                for k in 0..j {
                    let [re, im] = times(factor[i][k], conj(factor[j][k]));
                    sum = [sum[0] + re, sum[1] + im];
                }
                product[i][j] = sum;
            }
            let mut sum = factor[i][i][0] * factor[i][i][0];
            for k in 0..i {
                sum += square(factor[i][k]);
            }
            product[i][i] = [sum, T::ZERO];
        }
        product
    }

    /// Infers a bin of H sources. `expected` are abar_h of the frame before; `activities` are set to those of this frame, `images` to
    /// x_h. False where numbers are too large.
    #[inline(always)]
    pub fn infer<const D: usize>(
        &self,
        constants: &Constants<T>,
        y: &[Complex<T>; D],
        expected: &[T; MOST_SOURCES],
        activities: &mut [T; MOST_SOURCES],
        images: &mut [Complex<T>; MOST_SOURCES],
    ) -> bool {
        let sources = self.activity.len().min(MOST_SOURCES);
        let states = 1 << sources;
        Count::SpatialBins.add(1);
        Count::SpatialSources.add(sources * D * D);
        Count::SpatialStates.add(states);
        Count::SpatialMacs.add(states * (D * (D + 1) * (D + 5) / 6));
        let on_level = T::ONE - constants.off_level;
        let mut energy = T::ZERO;
        for &y in y {
            energy += square(y);
        }
        if !energy.is_finite() {
            return false;
        }
        // Loudness does not matter; where there is none, nor does q.
        let is_silent = energy < T::from_f64(1e-30);
        let loudness = if is_silent { T::ONE } else { T::ONE / energy };

        // R_h, then those of states without some of their lowest sources, and at last of none.
        let mut covariances = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES];
        let mut rows = [[[T::ZERO; 2]; D]; MOST_SOURCES];
        let mut odds = [T::ONE; MOST_SOURCES];
        let mut partial = [[[[T::ZERO; 2]; D]; D]; MOST_SOURCES + 1];
        let [.., base] = &mut partial;
        for h in 0..sources {
            let mut r = self.covariance::<D>(h);
            for j in 0..D {
                let m = constants.microphone.min(D - 1);
                rows[h][j] = if j <= m { r[m][j] } else { conj(r[j][m]) };
            }
            for i in 0..D {
                for j in 0..i + 1 {
                    let [re, im] = r[i][j];
                    let [sum_re, sum_im] = &mut base[i][j];
                    *sum_re += constants.off_level * re;
                    *sum_im += constants.off_level * im;
                    r[i][j] = [on_level * re, on_level * im];
                }
            }
            covariances[h] = r;
            let mean = self.activity.get(h).copied().unwrap_or(T::ZERO);
            odds[h] = (constants.context * (expected[h] - mean)).exp_in_range();
        }
        let some = (T::ONE - self.silence) / T::from_i32((states - 1) as i32);
        let mut table = [State { weight: T::ZERO, part: [[T::ZERO; 2]; D] }; 1 << MOST_SOURCES];
        let mut priors = [some; 1 << MOST_SOURCES];
        for s in 0..states {
            let (mut c, prior, floor) = match s {
                0 => (partial[MOST_SOURCES], self.silence, T::ONE),
                _ => {
                    let lowest = (s.trailing_zeros() as usize).min(MOST_SOURCES - 1);
                    let rest = s & (s - 1);
                    let from = (rest | 1 << MOST_SOURCES).trailing_zeros() as usize;
                    let mut c = partial[from.min(MOST_SOURCES)];
                    for i in 0..D {
                        for j in 0..i + 1 {
                            let [re, im] = covariances[lowest][i][j];
                            c[i][j] = [c[i][j][0] + re, c[i][j][1] + im];
                        }
                    }
                    partial[lowest] = c;
                    let before = if rest == 0 { some } else { priors[rest & 15] };
                    priors[s & 15] = before * odds[lowest];
                    (c, priors[s & 15], constants.floor)
                }
            };
            for i in 0..D {
                c[i][i][0] += floor;
            }
            let (q, determinant, part) = solve(c, y);
            let q = if is_silent { T::ONE } else { q * loudness };
            let mut power = determinant;
            for _ in 0..D {
                power *= q;
            }
            let weight = prior / power;
            table[s & 15] = State { weight, part: part.map(|[re, im]| [weight * re, weight * im]) };
        }
        let mut on = [State { weight: T::ZERO, part: [[T::ZERO; 2]; D] }; MOST_SOURCES];
        for h in (0..sources).rev() {
            let half = 1 << h;
            for s in 0..half {
                let upper = table[(s + half) & 15];
                add(&mut on[h], &upper);
                add(&mut table[s & 15], &upper);
            }
        }
        let all = &table[0];
        if !(all.weight > T::ZERO && all.weight.is_finite()) {
            return false;
        }
        let share = T::ONE / all.weight;
        for h in 0..sources {
            activities[h] = on[h].weight * share;
            let mut image = [T::ZERO; 2];
            for j in 0..D {
                let part = |k: usize| constants.off_level * all.part[j][k] + on_level * on[h].part[j][k];
                let [re, im] = times(rows[h][j], [part(0), part(1)]);
                image = [image[0] + re, image[1] + im];
            }
            images[h] = [image[0] * share, image[1] * share];
        }
        true
    }
}

#[inline(always)]
fn add<T: Real, const D: usize>(sum: &mut State<T, D>, term: &State<T, D>) {
    sum.weight += term.weight;
    for j in 0..D {
        sum.part[j] = [sum.part[j][0] + term.part[j][0], sum.part[j][1] + term.part[j][1]];
    }
}

/// y^H C^-1 y, det C and C^-1 y.
#[inline(always)]
fn solve<T: Real, const D: usize>(mut c: Lower<T, D>, y: &[Complex<T>; D]) -> (T, T, [Complex<T>; D]) {
    let mut u = *y;
    let mut inverse = [T::ZERO; D];
    let (mut q, mut determinant) = (T::ZERO, T::ONE);
    for j in 0..D {
        // C is at least its floor; rounding may take that away from a matrix that is nearly singular.
        let d = c[j][j][0].max(T::from_f64(1e-6));
        determinant *= d;
        inverse[j] = T::ONE / d;
        q += square(u[j]) * inverse[j];
        // Column j of L, and what it takes off the rest.
        for i in j + 1..D {
            let l = [c[i][j][0] * inverse[j], c[i][j][1] * inverse[j]];
            u[i] = minus(u[i], times(l, u[j]));
            for k in j + 1..i {
                c[i][k] = minus(c[i][k], times(l, conj(c[k][j])));
            }
            c[i][i][0] -= square(l) * d;
        }
        for i in j + 1..D {
            c[i][j] = [c[i][j][0] * inverse[j], c[i][j][1] * inverse[j]];
        }
    }
    for i in (0..D).rev() {
        u[i] = [u[i][0] * inverse[i], u[i][1] * inverse[i]];
        for k in i + 1..D {
            u[i] = minus(u[i], times(conj(c[k][i]), u[k]));
        }
    }
    (q, determinant, u)
}
