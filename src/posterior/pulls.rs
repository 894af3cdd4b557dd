//! How a slab's mean and covariance would have to move, as learning a full slab needs it: with tables of states only.

use crate::numeric::math::Real;
use crate::numeric::slices::{at, lower_row, set};
use crate::states::table::Tabled;

/// Sums over states of g = W_A^T Sigma^-1 (y - W kappa), and of g g^T - G + G Lambda G, which is g g^T - W_A^T C^-1 W_A with
/// C = Sigma + W Psi W^T.
pub(crate) struct Pulls<'x, T> {
    /// (n)
    pub first: &'x mut [T],
    /// (n x n)
    pub second: &'x mut [T],
    /// Scratch: g of one state (A), G_AA Lambda (A x A).
    pub of_state: &'x mut [T],
    pub solved: &'x mut [T],
}

impl<T: Real> Pulls<'_, T> {
    /// Adds a state of this weight, whose moments the table has.
    pub fn add(&mut self, tabled: &Tabled<'_, T>, path: &[u16], weight: T) {
        let (n, k) = (tabled.latents.len(), path.len());
        let states = path.iter().zip(self.of_state.iter_mut()).zip(self.solved.chunks_exact_mut(k.max(1)));
        for ((&p, g), solved) in states {
            let p = usize::from(p);
            *g = tabled.seen_without(p, path);
            for (column, ((&q, &kappa), entry)) in path.iter().zip(&*tabled.mean).zip(solved).enumerate() {
                let q = usize::from(q);
                *g -= tabled.gram(p, q) * (kappa - tabled.reference(q));
                // (G Lambda)_pq
                *entry = T::ZERO;
                for (i, &other) in path.iter().enumerate() {
                    let (high, low) = if i >= column { (i, column) } else { (column, i) };
                    *entry +=
                        tabled.gram(p, usize::from(other)) * at(lower_row(tabled.covariance, high), low);
                }
            }
            set(self.first, p, at(self.first, p) + weight * *g);
        }
        for ((&p, &g), row) in path.iter().zip(self.of_state.iter()).zip(self.solved.chunks_exact(k.max(1))) {
            for (&q, &other) in path.iter().zip(self.of_state.iter()) {
                let (p, q) = (usize::from(p), usize::from(q));
                let mut product = g * other - tabled.gram(q, p);
                for (&entry, &l) in row.iter().zip(path) {
                    product += entry * tabled.gram(q, usize::from(l));
                }
                set(self.second, p * n + q, at(self.second, p * n + q) + weight * product);
            }
        }
    }
}
