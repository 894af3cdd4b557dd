//! A factor of M that grows by one latent at a time: M = L D L^T with unit lower L, kept as
//! U = L^-1 and the inverse pivots, so that adding a latent, solving and inverting need no square
//! root and never rebuild a matrix.
//!
//! Member k costs k^2/2 multiply-adds to couple ([`Factor::couple`]: enough for its log joint) and
//! k^2/2 more to settle ([`Factor::settle`]: needed for coefficients and for adding further members).

use crate::math::Real;
use crate::slices::{at, dot, set, span, span_mut, strict_row, triangle};

pub(crate) struct Factor<'m, T> {
    /// Rows of U below its unit diagonal, packed.
    pub rows: &'m mut [T],
    /// 1 / D_k.
    pub pivot_inv: &'m mut [T],
    /// c = D^-1 U g of the member coupled last: how much of it the earlier members explain.
    pub coupling: &'m mut [T],
}

impl<T: Real> Factor<'_, T> {
    /// Couples member `k` of M = G + diag(precisions): `g` are its entries of G with members 0..k,
    /// `gram` the one with itself. Returns what the earlier members leave of `gram`, the Schur
    /// complement. G is positive semidefinite, so that is never negative; rounding may not make it so.
    pub fn couple(&mut self, k: usize, g: impl Iterator<Item = T>, gram: T, precision: T) -> T {
        let coupling = span_mut(self.coupling, 0, k);
        for (slot, g) in coupling.iter_mut().zip(g) {
            *slot = g;
        }
        self.couple_given(k, gram, precision)
    }

    /// [`Factor::couple`] with `g` where `coupling` will be. Apart, so that it is there once, wherever `g` comes from.
    fn couple_given(&mut self, k: usize, gram: T, precision: T) -> T {
        let coupling = span_mut(self.coupling, 0, k);
        let mut left = gram;
        // From the last member down, since U g of member i needs g of the members before it only.
        for i in (0..k).rev() {
            let (before, after) = coupling.split_at_mut_checked(i).unwrap_or_default();
            if let Some(slot) = after.first_mut() {
                let w = *slot + dot(strict_row(self.rows, i), before);
                let c = w * at(self.pivot_inv, i);
                left -= w * c;
                *slot = c;
            }
        }
        let left = left.max(T::ZERO);
        set(self.pivot_inv, k, T::ONE / (left + precision));
        left
    }

    /// c . t: what the earlier members take from the coupled member's right-hand side.
    pub fn explained(&self, k: usize, forward: &[T]) -> T {
        dot(span(self.coupling, 0, k), span(forward, 0, k))
    }

    /// Row k of U: -c^T U.
    pub fn settle(&mut self, k: usize) {
        let Some((above, rest)) = self.rows.split_at_mut_checked(triangle(k) - k) else { return };
        let row = span_mut(rest, 0, k);
        let coupling = span(self.coupling, 0, k);
        for (slot, &c) in row.iter_mut().zip(coupling) {
            *slot = -c;
        }
        for (i, &c) in coupling.iter().enumerate().skip(1) {
            for (slot, &u) in row.iter_mut().zip(strict_row(above, i)) {
                *slot -= c * u;
            }
        }
    }

    /// (M^-1)_jj of `n` members.
    pub fn inverse_diagonal(&self, j: usize, n: usize) -> T {
        let mut sum = at(self.pivot_inv, j);
        for k in j + 1..n {
            let u = at(strict_row(self.rows, k), j);
            sum += u * u * at(self.pivot_inv, k);
        }
        sum
    }

    /// `x += U^T D^-1 forward`: the solution for a right-hand side v with forward = U v.
    pub fn add_solution(&self, forward: &[T], x: &mut [T]) {
        for (k, (&t, &pivot_inv)) in forward.iter().zip(self.pivot_inv.iter()).enumerate() {
            let step = t * pivot_inv;
            for (x, &u) in x.iter_mut().zip(strict_row(self.rows, k)) {
                *x += u * step;
            }
            if let Some(x) = x.get_mut(k) {
                *x += step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_solves() {
        let m = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]];
        let (mut rows, mut pivot_inv, mut coupling) = ([0.0f64; 3], [0.0; 3], [0.0; 3]);
        let mut factor = Factor { rows: &mut rows, pivot_inv: &mut pivot_inv, coupling: &mut coupling };
        let mut det = 1.0;
        let v = [1.0, -2.0, 3.0];
        let mut forward = [0.0; 3];
        for k in 0..3 {
            det *= 0.5 + factor.couple(k, m[k][..k].iter().copied(), m[k][k] - 0.5, 0.5);
            forward[k] = v[k] - factor.explained(k, &forward);
            factor.settle(k);
        }
        assert!((det - (4.0 * 14.0 - 1.0 * 5.5 + 0.5 * (-1.0 - 1.5))).abs() < 1e-12);
        let mut x = [0.0; 3];
        factor.add_solution(&forward, &mut x);
        for (row, v) in m.iter().zip(v) {
            assert!((dot(row, &x) - v).abs() < 1e-12);
        }
    }
}
