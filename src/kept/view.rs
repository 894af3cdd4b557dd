//! The sample as states see it: what the members of the reference that they have on leave of it.
//!
//! With x0 the reference's coefficients, R its members and r = y - W x0, a state with the members A on sees
//! b = W^T Sigma^-1 (r + sum over R \ A of W_m x0_m), and coefficients of members are differences from x0. Exponents are
//! relative to the state that has all members on at x0: what is large is in those of states that lack one.

use super::Latent;
use crate::block::Block;
use crate::math::Real;
use crate::slices::{at, row};

/// Sets of members that can be on, one bit each.
pub(super) const SETS: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct View<T> {
    /// By set of members that are on: the exponent of the state that has no other latent on and leaves them at x0.
    pub bases: [T; SETS],
    /// The bit of every position, zero if it is no member: three digits each, the first position's lowest.
    pub bits: u32,
    /// All members.
    pub full: usize,
    /// What all exponents are relative to: the members' priors.
    pub constant: T,
}

impl<T: Real> View<T> {
    /// Of a block and its reference; prepares the latents, their v in every set.
    pub fn new(block: &Block<'_, T>, latents: &mut [Latent<T>]) -> Self {
        let zero = T::ZERO;
        for ((latent, &[mean, _, logit, pull, root]), &b) in
            latents.iter_mut().zip(&*block.slab).zip(&*block.b)
        {
            let [offset, latent_root, on, first, square, views @ ..] = latent;
            (*offset, *latent_root) = (logit - T::HALF * pull * mean, root);
            (*on, *first, *square) = (zero, zero, zero);
            views[0] = b + pull;
        }
        let mut view = Self { bases: [zero; SETS], bits: 0, full: 0, constant: zero };
        if !block.members.is_empty() {
            view.refer(block, latents);
        }
        view
    }

    /// The same with a reference.
    #[inline(never)]
    fn refer(&mut self, block: &Block<'_, T>, latents: &mut [Latent<T>]) {
        let mut offsets = [T::ZERO; 3];
        self.full = (1 << block.members.len().min(3)) - 1;
        for ((bit, &member), slot) in block.members.iter().enumerate().zip(&mut offsets) {
            let p = usize::from(member);
            let ([mean, precision, logit, ..], x0) = (row(block.slab, p), at(block.reference, p));
            let away = mean - x0;
            *slot = logit - T::HALF * precision * away * away;
            if let Some([offset, _, _, _, _, v, ..]) = latents.get_mut(p) {
                *offset = T::ZERO;
                *v -= precision * x0;
            }
            self.constant += *slot;
            self.bits |= 1 << (bit + 3 * p);
        }
        for (p, [_, _, _, _, _, views @ ..]) in latents.iter_mut().enumerate() {
            let gram = block.gram_row(p);
            views[self.full % SETS] = views[0];
            // From the set that lacks one member less.
            for set in (0..self.full).rev() {
                let lacks = self.missing(set).trailing_zeros() as usize;
                let m = usize::from(block.members.get(lacks).copied().unwrap_or_default());
                views[set % SETS] = views[(set | 1 << lacks) % SETS] + at(gram, m) * at(block.reference, m);
            }
        }
        for set in 0..self.full {
            let missing = self.missing(set);
            let mut base = block.energy_without(missing as u32);
            for (bit, &offset) in offsets.iter().enumerate() {
                if missing >> bit & 1 != 0 {
                    base -= offset;
                }
            }
            self.bases[set % SETS] = base;
        }
    }

    /// Members that are not in a set.
    fn missing(&self, set: usize) -> usize {
        self.full & !set
    }
}
