//! The most probable state that a walk has seen.

use super::MAX_ACTIVE;
use crate::math::Real;
use crate::posterior::Joint;

/// Exponents are relative to the anchor.
pub(super) struct Best<T> {
    pub weight: T,
    /// Exponents below this do not show in any sum.
    floor: T,
    /// How far below the best state the floor is.
    negligible: T,
    pub joint: Joint<T>,
    path: [u16; MAX_ACTIVE],
    len: usize,
}

impl<T: Real> Best<T> {
    pub fn new(floor: T, negligible: T) -> Self {
        let joint = Joint { exponent: floor, scale: T::ONE };
        Self { weight: T::ZERO, floor, negligible, joint, path: [0; MAX_ACTIVE], len: 0 }
    }

    pub fn path(&self) -> &[u16] {
        self.path.get(..self.len).unwrap_or(&[])
    }

    /// Whether a state does not show. NaN does: it must be reported.
    #[inline(always)]
    pub fn is_negligible(&self, exponent: T) -> bool {
        exponent < self.floor
    }

    /// The weight of a state, zero if it does not show.
    #[inline(always)]
    pub fn weigh<const N: usize>(&mut self, joint: Joint<T>, path: impl FnOnce() -> [usize; N]) -> T {
        if self.is_negligible(joint.exponent) { T::ZERO } else { self.weigh_apart(joint, path) }
    }

    /// The weight of a state that is not negligible.
    #[inline(always)]
    pub fn weigh_apart<const N: usize>(&mut self, joint: Joint<T>, path: impl FnOnce() -> [usize; N]) -> T {
        let weight = joint.exponent.exp_in_range() * joint.scale;
        if weight > self.weight {
            self.note(weight, joint, &path());
        }
        weight
    }

    /// Takes note of a state.
    #[cold]
    #[inline(never)]
    pub fn note(&mut self, weight: T, joint: Joint<T>, path: &[usize]) {
        (self.weight, self.joint) = (weight, joint);
        self.floor = self.floor.max(joint.ln_below() - self.negligible);
        self.len = path.len();
        for (slot, &position) in self.path.iter_mut().zip(path) {
            *slot = position as u16;
        }
    }
}
