//! The sums over all states of a quiet sample, for which there is no reference.
//!
//! On the way up, sums over a subtree are about the coefficients of its root: of weights W, of x's difference f and of
//! its square f2. With p = w t and q = w (1 + t^2), a state that nothing is added to gives p row and q row^2; seen from the
//! parent of a root, differences d = t row larger, these become f + d W and f2 + 2 d f + (d^2 + row^2) W.

use super::Latent;
use super::best::Best;
use crate::math::Real;
use crate::posterior::Joint;

/// Sums over the states below one, for a latent that is on there: of x's difference and of its square.
#[derive(Clone, Copy)]
struct About<T> {
    first: T,
    square: T,
}

impl<T: Real> About<T> {
    const NOTHING: Self = Self { first: T::ZERO, square: T::ZERO };

    /// Adds a state that nothing is added to.
    #[inline(always)]
    fn add(&mut self, row: T, p: T, q: T) {
        self.first += p * row;
        self.square += q * (row * row);
    }

    /// The same about the coefficient in the parent, of states that weigh `mass` in all.
    #[inline(always)]
    fn about_parent(self, t: T, row: T, mass: T) -> Self {
        let d = t * row;
        let moved = d * mass;
        Self {
            first: self.first + moved,
            square: self.square + d * (self.first + self.first + moved) + row * row * mass,
        }
    }
}

/// All states, their rows in order. Sums go to the latents; returns that of all weights. `empty` is the exponent of the
/// empty state.
#[inline(never)]
pub(super) fn sum<T: Real>(
    latents: &mut [Latent<T>],
    mut rows: &[T],
    max_active: usize,
    empty: T,
    best: &mut Best<T>,
) -> T {
    let count = latents.len();
    let mut total = best.weigh(Joint::new(empty), || []);
    let mut rest_i = &mut *latents;
    while let Some((latent_i, after_i)) = rest_i.split_first_mut()
        && let Some((&row, after_row)) = rows.split_first()
    {
        rows = after_row;
        let i = count - after_i.len() - 1;
        let &mut [offset, root, _, _, _, v_i, ..] = latent_i;
        let t_i = row * v_i;
        let joint_i = Joint { exponent: empty + offset + T::HALF * (t_i * t_i), scale: root * row };
        let (mut mass_i, mut about_i) = (best.weigh(joint_i, || [i]), About::NOTHING);

        let mut rest_j = &mut *after_i;
        while max_active > 1
            && let Some((latent_j, after_j)) = rest_j.split_first_mut()
            && let Some((&[row_i, row_j], after_row)) = rows.split_first_chunk()
        {
            rows = after_row;
            let j = count - after_j.len() - 1;
            let &mut [offset, root, _, _, _, v_j, ..] = latent_j;
            let t = row_i * v_i + row_j * v_j;
            let exponent = joint_i.exponent + offset + T::HALF * (t * t);
            let joint_j = Joint { exponent, scale: joint_i.scale * (root * row_j) };
            let mut mass = best.weigh(joint_j, || [i, j]);
            let (mut below_i, mut below_j) = (About::NOTHING, About::NOTHING);

            let after = if max_active > 2 { &mut *after_j } else { &mut [] };
            let mut states = after.iter_mut();
            // Not `for` and `zip`, whose index would take a tenth of the time.
            while let Some(latent_k) = states.next()
                && let Some((&[row_i, row_j, row_k], after_row)) = rows.split_first_chunk()
            {
                rows = after_row;
                let [offset, root, on, first, square, v_k, ..] = latent_k;
                let t = row_i * v_i + row_j * v_j + row_k * *v_k;
                let exponent = joint_j.exponent + *offset + T::HALF * (t * t);
                if best.is_negligible(exponent) {
                    continue;
                }
                let joint = Joint { exponent, scale: joint_j.scale * (*root * row_k) };
                let weight = best.weigh_apart(joint, || [i, j, count - states.len() - 1]);
                let p = weight * t;
                let q = weight + p * t;
                mass += weight;
                below_i.add(row_i, p, q);
                below_j.add(row_j, p, q);
                *on += weight;
                *first += p * row_k;
                *square += q * (row_k * row_k);
            }
            if !(mass <= T::ZERO) {
                mass_i += mass;
                let moved = below_i.about_parent(t, row_i, mass);
                about_i.first += moved.first;
                about_i.square += moved.square;
                let moved = below_j.about_parent(t, row_j, mass);
                add_to(latent_j, mass, moved);
            }
            rest_j = after_j;
        }
        total += mass_i;
        add_to(latent_i, mass_i, about_i.about_parent(t_i, row, mass_i));
        rest_i = after_i;
    }
    total
}

/// Adds to the sums of a latent.
#[inline(always)]
fn add_to<T: Real>(latent: &mut Latent<T>, mass: T, about: About<T>) {
    let [_, _, on, first, square, ..] = latent;
    *on += mass;
    *first += about.first;
    *square += about.square;
}
