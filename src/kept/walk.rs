//! The walk over states whose factors are kept, and the sums over them.

use super::{Latent, MAX_ACTIVE};
use crate::math::Real;
use crate::posterior::{Joint, Sums};

/// The most probable state so far; exponents are relative to the anchor.
struct Best<T> {
    weight: T,
    /// Exponents below this do not show in any sum.
    floor: T,
    /// How far below the best state the floor is.
    negligible: T,
    path: [u16; MAX_ACTIVE],
    len: usize,
}

impl<T: Real> Best<T> {
    /// The weight of a state.
    #[inline(never)]
    fn weigh(&mut self, joint: Joint<T>, path: &[usize]) -> T {
        if joint.exponent < self.floor {
            return T::ZERO;
        }
        let weight = joint.exponent.exp_in_range() * joint.scale;
        if weight > self.weight {
            self.note(weight, joint, path);
        }
        weight
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, weight: T, joint: Joint<T>, path: &[usize]) {
        self.weight = weight;
        self.floor = self.floor.max(joint.ln_below() - self.negligible);
        self.len = path.len();
        for (slot, &position) in self.path.iter_mut().zip(path) {
            *slot = position as u16;
        }
    }
}

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

    fn add_all(&mut self, other: Self) {
        self.first += other.first;
        self.square += other.square;
    }

    /// Adds to the sums of the latent itself, over states that weigh `mass` in all.
    #[inline(always)]
    fn add_to(self, latent: &mut Latent<T>, mass: T) {
        latent[3] += mass;
        latent[4] += self.first;
        latent[5] += self.square;
    }

    /// The same about the coefficient in the parent, of states that weigh `mass` in all.
    #[inline(always)]
    fn about_parent(self, t: T, row: T, mass: T) -> Self {
        let d = t * row;
        Self {
            first: self.first + d * mass,
            square: self.square + (d + d) * self.first + (d * d + row * row) * mass,
        }
    }
}

/// All states: their sums go to `sums`. Rows come in the order of the walk.
pub(super) fn walk<T: Real>(
    latents: &mut [Latent<T>],
    mut rows: &[T],
    max_active: usize,
    sums: &mut Sums<'_, '_, T>,
) {
    let count = latents.len();
    let (empty, floor) = (Joint::new(-sums.anchor()), sums.floor() - sums.anchor());
    let negligible = sums.negligible();
    let mut best = Best { weight: T::ZERO, floor, negligible, path: [0; MAX_ACTIVE], len: 0 };
    let mut total = best.weigh(empty, &[]);
    let mut rest_i = &mut *latents;
    while let Some((latent_i, after_i)) = rest_i.split_first_mut()
        && let Some((&row, after_row)) = rows.split_first()
    {
        rows = after_row;
        let i = count - after_i.len() - 1;
        let &mut [v_i, offset, root, ..] = latent_i;
        let t_i = row * v_i;
        let exponent = empty.exponent + offset + T::HALF * (t_i * t_i);
        let joint_i = Joint { exponent, scale: root * row };
        let (mut mass_i, mut about_i) = (best.weigh(joint_i, &[i]), About::NOTHING);

        let mut rest_j = &mut *after_i;
        while max_active > 1
            && let Some((latent_j, after_j)) = rest_j.split_first_mut()
            && let Some((&[row_i, row_j], after_row)) = rows.split_first_chunk()
        {
            rows = after_row;
            let j = count - after_j.len() - 1;
            let &mut [v_j, offset, root, ..] = latent_j;
            let t = row_i * v_i + row_j * v_j;
            let exponent = joint_i.exponent + offset + T::HALF * (t * t);
            let joint_j = Joint { exponent, scale: joint_i.scale * (root * row_j) };
            let mut mass = best.weigh(joint_j, &[i, j]);
            let (mut below_i, mut below_j) = (About::NOTHING, About::NOTHING);

            let after = if max_active > 2 { &mut *after_j } else { &mut [] };
            let mut states = after.iter_mut();
            // Not `for` and `zip`, whose index would take a tenth of the time.
            while let Some(latent_k) = states.next()
                && let Some((&[row_i, row_j, row_k], after_row)) = rows.split_first_chunk()
            {
                rows = after_row;
                let &mut [v_k, offset, root, ..] = latent_k;
                let t = row_i * v_i + row_j * v_j + row_k * v_k;
                let exponent = joint_j.exponent + offset + T::HALF * (t * t);
                if exponent < best.floor {
                    continue;
                }
                let scale = joint_j.scale * (root * row_k);
                let weight = exponent.exp_in_range() * scale;
                let p = weight * t;
                let q = weight + p * t;
                mass += weight;
                below_i.add(row_i, p, q);
                below_j.add(row_j, p, q);
                latent_k[3] += weight;
                latent_k[4] += p * row_k;
                latent_k[5] += q * (row_k * row_k);
                if weight > best.weight {
                    best.note(weight, Joint { exponent, scale }, &[i, j, count - states.len() - 1]);
                }
            }
            if !(mass <= T::ZERO) {
                mass_i += mass;
                about_i.add_all(below_i.about_parent(t, row_i, mass));
                below_j.about_parent(t, row_j, mass).add_to(latent_j, mass);
            }
            rest_j = after_j;
        }
        total += mass_i;
        about_i.about_parent(t_i, row, mass_i).add_to(latent_i, mass_i);
        rest_i = after_i;
    }
    let totals = latents.iter().map(|&[_, _, _, on, first, square]| [on, first, square]);
    sums.take_walk(totals, total, best.weight, best.path.get(..best.len).unwrap_or(&[]));
}
