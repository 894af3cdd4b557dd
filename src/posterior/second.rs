//! Second moments of the candidates, which training asks for.

use super::Sums;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set, span};
use crate::states::tableau::Tableau;

impl<T: Real> Sums<'_, T> {
    /// The products of all candidates, as in the formula at the top; [`Sums::add_slab`] has left e and C with the candidates, as
    /// `push` and `spread`. With c a latent that is on and j another, what is added is
    ///
    /// ```text
    /// j off:  kappa_c e_j - S_cj C_j               and C_j on the diagonal
    /// j on:   (Lambda_cj + kappa_c kappa_j) W + kappa_c (T e)_j + (T e)_c kappa_j + sum_i T_ci C_i T_ji
    /// ```
    ///
    /// Work: |A|^2 n / 2.
    #[inline(never)]
    pub(super) fn add_second(&mut self, tableau: &mut Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        for c in 0..n {
            let Some(&own) = tableau.candidates.get(c) else { return };
            let Candidate { variance: lambda, x: kappa, push, spread, .. } = own;
            if !tableau.is_on(c) {
                add_both(self.second, n, c, c, spread);
                continue;
            }
            tableau.gather_seen(c);
            let (column, candidates) = (span(tableau.column, 0, n), span(tableau.candidates, 0, n));
            let (mut te, mut squares) = (lambda * push, lambda * lambda * spread);
            for (candidate, &s) in candidates.iter().zip(column) {
                te -= s * candidate.push;
                squares += s * s * candidate.spread;
            }
            add_both(self.second, n, c, c, (lambda + kappa * kappa) * mass + (kappa + kappa) * te + squares);
            for (j, (other, &s)) in candidates.iter().zip(column).enumerate() {
                if !tableau.is_on(j) {
                    add_both(self.second, n, c, j, kappa * other.push - s * other.spread);
                    continue;
                }
                if j == c {
                    continue;
                }
                // Half of it belongs to the turn of j.
                let mut value = other.x * te;
                if j < c {
                    // S is zero on the diagonal of `column`; the two latents' own entries of T are Lambda.
                    let own = s * (lambda * spread + other.variance * other.spread);
                    let mut products = T::ZERO;
                    tableau.each_pair(j, |i, candidate, b| products += at(column, i) * b * candidate.spread);
                    value += (kappa * other.x - s) * mass + products - own;
                }
                add_both(self.second, n, c, j, value);
            }
        }
    }

    /// The same of latents that are on or off.
    pub(super) fn add_products(&mut self, tableau: &Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        let known = |j: usize| {
            let candidate = tableau.candidates.get(j);
            candidate.map_or((false, T::ZERO), |candidate| (tableau.is_on(j), candidate.weight))
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
