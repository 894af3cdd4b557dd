//! The walk over the kept states, depth first, and what a model kind has to provide for it.
//!
//! States are subsets of positions (see [`crate::block`]), grown in ascending order. Siblings are visited from
//! the last position down; the caller puts promising latents last, so that the probable states come early.
//!
//! Most states are *leaves*, with as many latents on as there may be, or *twigs*, with one less. They are evaluated
//! and summed where they are met. For the others a kind turns the sums over a
//! subtree into sums for its parent on the way back up, so nothing is done per state that can be done per subtree.

use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::posterior::{Joint, Sums};
use heapless::Vec;

/// A set of active latents, by position.
pub(crate) type Path = Vec<u16, MAX_ACTIVE>;

/// How one model kind evaluates states along the walk. A state is `path`, or has `k` latents on.
pub(crate) trait StateModel<T> {
    /// The state that adds `new` to the current one, which has `k` on.
    fn step(&mut self, k: usize, new: usize) -> Joint<T>;
    /// Goes there.
    fn descend(&mut self, k: usize, new: usize);
    /// Starts the sums of the subtree of `path`, the current state, with its own weight.
    fn open(&mut self, path: &[u16], weight: T, sums: &mut Sums<'_, '_, T>);
    /// Adds all states that add one or two latents from `first` on to `path`, the current state.
    fn add_twigs(&mut self, path: &[u16], first: usize, sums: &mut Sums<'_, '_, T>);
    /// Adds all that add one.
    fn add_leaves(&mut self, path: &[u16], first: usize, sums: &mut Sums<'_, '_, T>);
    /// Comes back from the child that added `new`: adds the sums of its subtree to those of its parent.
    fn ascend(&mut self, k: usize, new: usize);
    /// Multiplies all sums the kind keeps itself.
    fn rescale(&mut self, factor: T);

    /// The weight of the state `path` with the positions of `tail`.
    fn weigh(&mut self, joint: Joint<T>, path: &[u16], tail: &[usize], sums: &mut Sums<'_, '_, T>) -> T
    where
        T: Real,
    {
        if sums.is_too_high(joint.exponent) {
            let factor = sums.lift(joint);
            self.rescale(factor);
        }
        let weight = sums.weight(joint);
        if sums.is_best(weight) {
            sums.note_best(weight, joint, path, tail);
        }
        weight
    }
}

/// Which states a walk visits.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// First position that may be added.
    pub first: usize,
    /// One past the last.
    pub positions: usize,
    /// Most latents on.
    pub max_active: usize,
}

/// Visits all states in `room` that add latents to the current one, whose sums are open.
pub(crate) fn walk<T: Real>(
    room: Room,
    path: &mut Path,
    states: &mut impl StateModel<T>,
    sums: &mut Sums<'_, '_, T>,
) {
    let Room { first, positions, max_active } = room;
    let root = path.len();
    if root >= max_active || first >= positions {
        return;
    }
    match max_active - root {
        1 => return states.add_leaves(path, first, sums),
        2 => return states.add_twigs(path, first, sums),
        _ => {}
    }
    let mut candidates = positions; // those below are still to come at this depth
    loop {
        let k = path.len();
        let floor = if k == root { first } else { path.last().map_or(0, |&last| usize::from(last) + 1) };
        if candidates <= floor {
            if k == root {
                return;
            }
            let Some(last) = path.pop() else { return };
            candidates = usize::from(last);
            states.ascend(k - 1, candidates);
            continue;
        }
        candidates -= 1;
        let new = candidates;
        let joint = states.step(k, new);
        states.descend(k, new);
        if path.push(new as u16).is_err() {
            return; // max_active is within the capacity
        }
        let weight = states.weigh(joint, path, &[], sums);
        states.open(path, weight, sums);
        if k + 3 < max_active {
            candidates = positions;
        } else {
            states.add_twigs(path, new + 1, sums);
            path.pop();
            states.ascend(k, new);
        }
    }
}
