//! The walk over states whose factors are kept: the best of them, or the sums over all.
//!
//! A state's t = L^-1 v, with the rows of the states on the way to it; its exponent is the sum of their squares, its
//! coefficients kappa = L^-T t, their variances the squares of the columns of L^-1. Written out for one, two and three latents,
//! i before j before k.

use super::Latent;
use super::best::Best;
use super::view::{SETS, View};
use crate::math::Real;
use crate::posterior::Joint;

/// Sums over states that have a latent on: of x and x^2.
#[derive(Clone, Copy)]
struct Sum<T> {
    first: T,
    square: T,
}

impl<T: Real> Sum<T> {
    const NOTHING: Self = Self { first: T::ZERO, square: T::ZERO };

    /// Adds a state where x has this mean and variance.
    #[inline(always)]
    fn add(&mut self, weight: T, mean: T, variance: T) {
        self.first += weight * mean;
        self.square += weight * (variance + mean * mean);
    }
}

/// What states are looked at for.
pub(super) struct Walk<'a, T> {
    view: &'a View<T>,
    pub best: Best<T>,
    /// Weights of the states that lack members, by the set they have.
    lacking: [T; SETS],
}

impl<'a, T: Real> Walk<'a, T> {
    pub fn new(view: &'a View<T>, best: Best<T>) -> Self {
        Self { view, best, lacking: [T::ZERO; SETS] }
    }

    /// The weight of all states that lack a member.
    pub fn lacking(&self, member: usize) -> T {
        let mut sum = T::ZERO;
        for (set, &weight) in self.lacking.iter().enumerate() {
            if set >> member & 1 == 0 {
                sum += weight;
            }
        }
        sum
    }

    /// The weight of a state with this set of members on, if it is not negligible; or a note of the best exponent where
    /// states are not summed.
    #[inline(always)]
    fn weigh<const SUM: bool, const N: usize>(
        &mut self,
        exponent: T,
        scale: impl FnOnce() -> T,
        set: usize,
        path: impl FnOnce() -> [usize; N],
    ) -> T {
        let best = &mut self.best;
        if !SUM {
            if exponent > best.joint.exponent {
                best.note(T::ZERO, Joint { exponent, scale: scale() }, &path());
            }
            return T::ZERO;
        }
        if best.is_negligible(exponent) {
            return T::ZERO;
        }
        let weight = best.weigh_apart(Joint { exponent, scale: scale() }, path);
        if set != self.view.full {
            self.lacking[set % SETS] += weight;
        }
        weight
    }

    /// All states, their rows in order. Sums go to the latents; returns the sum of all weights.
    #[inline(always)]
    fn states<const SUM: bool>(&mut self, latents: &mut [Latent<T>], mut rows: &[T], max_active: usize) -> T {
        let (count, bases) = (latents.len(), self.view.bases);
        let mut total = self.weigh::<SUM, 0>(bases[0], || T::ONE, 0, || []);
        let (mut rest_i, mut bits_i) = (&mut *latents, self.view.bits);
        while let Some((latent_i, after_i)) = rest_i.split_first_mut()
            && let Some((&row_ii, after_row)) = rows.split_first()
        {
            rows = after_row;
            let [offset_i, root, on_i, first_i, square_i, view_i @ ..] = latent_i;
            let i = count - after_i.len() - 1;
            let (set_i, offset_i, scale_i) = (bits_i as usize % SETS, *offset_i, *root * row_ii);
            bits_i >>= 3;
            let t_i = row_ii * view_i[set_i];
            let exponent = bases[set_i] + offset_i + T::HALF * (t_i * t_i);
            let mut mass_i = self.weigh::<SUM, 1>(exponent, || scale_i, set_i, || [i]);
            let mut sum_i = Sum::NOTHING;
            let variance_i = row_ii * row_ii;
            if SUM {
                sum_i.add(mass_i, row_ii * t_i, variance_i);
            }

            let (mut rest_j, mut bits_j) = (&mut *after_i, bits_i);
            while max_active > 1
                && let Some((latent_j, after_j)) = rest_j.split_first_mut()
                && let Some((&[row_ji, row_jj], after_row)) = rows.split_first_chunk()
            {
                rows = after_row;
                let [offset_j, root, on_j, first_j, square_j, view_j @ ..] = latent_j;
                let j = count - after_j.len() - 1;
                let set_j = set_i | (bits_j as usize % SETS);
                bits_j >>= 3;
                let (offset_j, scale_j) = (offset_i + *offset_j, scale_i * (*root * row_jj));
                let v_i = view_i[set_j];
                let (t_i, t_j) = (row_ii * v_i, row_ji * v_i + row_jj * view_j[set_j]);
                let exponent = bases[set_j] + offset_j + T::HALF * (t_i * t_i + t_j * t_j);
                let mut mass = self.weigh::<SUM, 2>(exponent, || scale_j, set_j, || [i, j]);
                let (variance_i, variance_j) = (variance_i + row_ji * row_ji, row_jj * row_jj);
                let mut sum_j = Sum::NOTHING;
                if SUM && !(mass <= T::ZERO) {
                    sum_i.add(mass, row_ii * t_i + row_ji * t_j, variance_i);
                    sum_j.add(mass, row_jj * t_j, variance_j);
                }

                let after = if max_active > 2 { &mut *after_j } else { &mut [] };
                let (mut states, mut bits_k) = (after.iter_mut(), bits_j);
                // Not `for` and `zip`, whose index would take a tenth of the time.
                while let Some(latent_k) = states.next()
                    && let Some((&[row_ki, row_kj, row_kk], after_row)) = rows.split_first_chunk()
                {
                    rows = after_row;
                    let [offset_k, root, on_k, first_k, square_k, view_k @ ..] = latent_k;
                    let set = set_j | (bits_k as usize % SETS);
                    bits_k >>= 3;
                    let (v_i, v_j) = (view_i[set], view_j[set]);
                    let (t_i, t_j) = (row_ii * v_i, row_ji * v_i + row_jj * v_j);
                    let t_k = row_ki * v_i + row_kj * v_j + row_kk * view_k[set];
                    let squares = t_i * t_i + t_j * t_j + t_k * t_k;
                    let exponent = bases[set] + (offset_j + *offset_k) + T::HALF * squares;
                    let k = || count - states.len() - 1;
                    let scale = || scale_j * (*root * row_kk);
                    let weight = self.weigh::<SUM, 3>(exponent, scale, set, || [i, j, k()]);
                    if !SUM || weight <= T::ZERO {
                        continue;
                    }
                    mass += weight;
                    let mean_i = row_ii * t_i + row_ji * t_j + row_ki * t_k;
                    sum_i.add(weight, mean_i, variance_i + row_ki * row_ki);
                    sum_j.add(weight, row_jj * t_j + row_kj * t_k, variance_j + row_kj * row_kj);
                    let mut sum_k = Sum { first: *first_k, square: *square_k };
                    sum_k.add(weight, row_kk * t_k, row_kk * row_kk);
                    *on_k += weight;
                    (*first_k, *square_k) = (sum_k.first, sum_k.square);
                }
                if SUM {
                    mass_i += mass;
                    *on_j += mass;
                    *first_j += sum_j.first;
                    *square_j += sum_j.square;
                }
                rest_j = after_j;
            }
            if SUM {
                total += mass_i;
                *on_i += mass_i;
                *first_i += sum_i.first;
                *square_i += sum_i.square;
            }
            rest_i = after_i;
        }
        total
    }

    /// The state with the largest exponent.
    #[inline(never)]
    pub fn search(&mut self, latents: &mut [Latent<T>], rows: &[T], max_active: usize) {
        self.states::<false>(latents, rows, max_active);
    }

    /// The sums over all states, which must have been zero; returns that of all weights.
    #[inline(never)]
    pub fn sum(&mut self, latents: &mut [Latent<T>], rows: &[T], max_active: usize) -> T {
        self.states::<true>(latents, rows, max_active)
    }
}
