//! Second moments of the candidates, which training asks for.

use super::Sums;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set};
use crate::states::tableau::Tableau;

impl<T: Real> Sums<'_, T> {
    /// The products of all candidates, as in the formula at the top.
    #[inline(never)]
    pub(super) fn add_second(&mut self, tableau: &mut Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        let coupling = |tableau: &Tableau<'_, T>, j: usize, i: usize| -> T {
            let Some(candidate) = tableau.candidates.get(j) else { return T::ZERO };
            match (candidate.sign < T::ZERO, i == j) {
                (true, true) => candidate.variance,
                (true, false) => -tableau.seen_pair(j, i),
                (false, is_own) => {
                    if is_own {
                        T::ONE
                    } else {
                        T::ZERO
                    }
                }
            }
        };
        // (T e), in the scratch column.
        for j in 0..n {
            let mut sum = T::ZERO;
            for i in 0..n {
                let Some(&Candidate { weight, value, .. }) = tableau.candidates.get(i) else { return };
                if weight > T::ZERO {
                    sum += coupling(tableau, j, i) * (weight * value);
                }
            }
            set(tableau.column, j, sum);
        }
        let kappa = |j: usize| {
            let x = tableau.candidates.get(j).map(|candidate| candidate.x);
            x.filter(|_| tableau.is_on(j)).unwrap_or(T::ZERO)
        };
        for j in 0..n {
            let (x, te, is_on) = (kappa(j), at(tableau.column, j), tableau.is_on(j));
            for k in 0..=j {
                let (other, te_other) = (kappa(k), at(tableau.column, k));
                let spread = if is_on && tableau.is_on(k) { coupling(tableau, j, k) } else { T::ZERO };
                let value = (spread + x * other) * mass + x * te_other + te * other;
                add_both(self.second, n, j, k, value);
            }
        }
        for i in 0..n {
            let Some(&Candidate { weight, value, inverse, .. }) = tableau.candidates.get(i) else { return };
            if !(weight > T::ZERO) {
                continue;
            }
            let spread = weight * (inverse + value * value);
            for j in 0..n {
                let own = coupling(tableau, j, i) * spread;
                if own != T::ZERO {
                    for k in 0..=j {
                        add_both(self.second, n, j, k, own * coupling(tableau, k, i));
                    }
                }
            }
        }
    }

    /// The same of latents that are on or off.
    pub(super) fn add_products(&mut self, tableau: &Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        let known = |j: usize| {
            let candidate = tableau.candidates.get(j);
            candidate.map_or((false, T::ZERO), |candidate| (candidate.sign < T::ZERO, candidate.weight))
        };
        for j in 0..n {
            let (is_on, weight) = known(j);
            for k in 0..=j {
                let (other_is_on, other_weight) = known(k);
                let value = match (is_on, other_is_on) {
                    _ if j == k => {
                        if is_on {
                            mass - weight
                        } else {
                            weight
                        }
                    }
                    (true, true) => mass - weight - other_weight,
                    (true, false) => other_weight,
                    (false, true) => weight,
                    (false, false) => T::ZERO,
                };
                add_both(self.second, n, j, k, value);
            }
        }
    }
}

/// Adds to both triangles.
pub(super) fn add_both<T: Real>(matrix: &mut [T], n: usize, j: usize, k: usize, value: T) {
    for place in [j * n + k, k * n + j].into_iter().take(if j == k { 1 } else { 2 }) {
        set(matrix, place, at(matrix, place) + value);
    }
}
