//! Binary sparse coding, with W of either sign or W >= 0.
//!
//! With r what the reference leaves of the sample and b = W^T Sigma^-1 r, switching latent h on gains
//! l_h + b_h - G_hh / 2 and switching it off gains -(l_h + b_h) - G_hh / 2; two switches together gain
//! -t_h t_j G_hj more, t = 1 for on and -1 for off. A level has the gain of every later position, given the switches so
//! far: a state is one addition away from its parent, and the gains after a switch are one subtraction each.
//!
//! With the empty state as the reference that is
//! ln p(y, s) = e0 + sum_h ln(1 - pi_h) + sum_A (l_h + b_h - G_hh / 2) - sum_{h<j in A} G_hj.

use super::{Superposition, most_members};
use crate::block::Block;
use crate::math::Real;
use crate::model::Model;
use crate::slices::{at, exchange, set, span, span_mut};
use core::ops::Range;

pub(super) struct Linear<'x, 'b, T> {
    block: &'x Block<'b, T>,
    /// Of every level: gains, then the log joint. (S + 1 each)
    rows: &'x mut [T],
}

impl<'x, 'b, T: Real> Linear<'x, 'b, T> {
    /// At the reference, whose members are the block's first positions.
    pub fn new(model: &Model<'_, T>, block: &'x Block<'b, T>, rows: &'x mut [T]) -> Self {
        let members = block.members.len();
        let mut joint = T::ZERO;
        for (p, row) in rows.iter_mut().enumerate().take(block.len()) {
            let logit = logit(model, block, p);
            *row = gain(block, p, logit, p < members);
            joint += if p < members { logit } else { T::ZERO };
        }
        set(rows, block.len(), joint);
        Self { block, rows }
    }

    fn width(&self) -> usize {
        self.block.len() + 1
    }
}

impl<T: Real> Superposition<T> for Linear<'_, '_, T> {
    fn joint(&self, level: usize) -> T {
        at(self.rows, level * self.width() + self.block.len())
    }

    #[inline(always)]
    fn each_child(&self, level: usize, positions: Range<usize>, mut visit: impl FnMut(usize, T)) {
        let joint = self.joint(level);
        let gains = span(self.rows, level * self.width() + positions.start, positions.len());
        for (p, &gain) in positions.zip(gains).rev() {
            visit(p, joint + gain);
        }
    }

    fn descend(&mut self, level: usize, position: usize) {
        let (width, members) = (self.width(), self.block.members.len());
        let Some((above, below)) = self.rows.split_at_mut_checked((level + 1) * width) else { return };
        let above = span(above, level * width, width);
        set(below, width - 1, at(above, width - 1) + at(above, position));
        let (first, later) = (position + 1, width.saturating_sub(position + 2));
        // One switched off and the other on: the sign changes.
        let opposite = if position < members { members } else { width };
        let gram = span(self.block.gram_row(position), first, later);
        let gains = span_mut(below, first, later).iter_mut().zip(span(above, first, later)).zip(gram);
        for (q, ((below, &above), &g)) in (first..).zip(gains) {
            *below = if q >= opposite { above + g } else { above - g };
        }
    }
}

fn logit<T: Real>(model: &Model<'_, T>, block: &Block<'_, T>, p: usize) -> T {
    at(model.prior_logit, usize::from(block.order.get(p).copied().unwrap_or_default()))
}

/// Nats that switching position `p` gains.
fn gain<T: Real>(block: &Block<'_, T>, p: usize, logit: T, is_on: bool) -> T {
    let on = logit + at(block.b, p);
    (if is_on { -on } else { on }) - T::HALF * at(block.gram_row(p), p)
}

/// Switches whatever gains most until nothing gains, from the reference on; makes the state it ends at the reference and
/// returns its log joint and whether it is another one. `b` stays as it is. `gains` is scratch. (S)
pub(super) fn climb<T: Real>(model: &Model<'_, T>, block: &mut Block<'_, T>, gains: &mut [T]) -> (T, bool) {
    let (s, max_active) = (block.len(), model.shape.max_active);
    let (mut joint, mut changed) = (T::ZERO, false);
    for (p, slot) in span_mut(gains, 0, s).iter_mut().enumerate() {
        let (logit, is_on) = (logit(model, block, p), block.members.contains(&(p as u16)));
        *slot = gain(block, p, logit, is_on);
        joint += if is_on { logit } else { T::ZERO };
    }
    for _ in 0..2 * max_active {
        let is_full = block.members.len() >= most_members(max_active);
        let mut best = (0, T::ZERO);
        for (p, &gain) in gains.iter().enumerate().take(s) {
            if gain > best.1 && (!is_full || block.members.contains(&(p as u16))) {
                best = (p, gain);
            }
        }
        if !(best.1 > T::ZERO) {
            break;
        }
        let (p, gain) = best;
        joint += gain;
        changed = true;
        let was_on = block.members.iter().position(|&member| usize::from(member) == p);
        for (q, (slot, &g)) in gains.iter_mut().zip(block.gram_row(p)).enumerate() {
            let is_on = block.members.contains(&(q as u16));
            *slot += if is_on == was_on.is_some() { -g } else { g };
        }
        set(gains, p, -gain);
        if let Some(place) = was_on {
            let last = block.members.len() - 1;
            exchange(&mut block.members, place, last);
            block.members.pop();
        } else {
            let _ = block.members.push(p as u16); // not full, as was seen above
        }
    }
    (joint, changed)
}
