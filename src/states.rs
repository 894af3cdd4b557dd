//! The walk over the kept states, depth first, and what a model kind has to provide for it.
//!
//! States are subsets of positions (see [`crate::block`]), grown in ascending order. All children of a
//! state are evaluated together, before any of them is looked at. Siblings are visited from the last
//! position down; the caller puts promising latents last, so that the probable states come early.
//!
//! On the way back up a kind turns the sums over a subtree into sums for its parent, so nothing is
//! done per state that can be done per subtree.

use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::posterior::Sums;
use crate::slices::{at, span_mut};
use heapless::Vec;

/// A set of active latents, by position.
pub(crate) type Path = Vec<u16, MAX_ACTIVE>;

/// How one model kind evaluates states along the walk; `k` is the number of active latents.
pub(crate) trait StateModel<T> {
    /// Goes down to the child that adds `new` to the current state with `k` on.
    fn descend(&mut self, k: usize, new: usize);
    /// Log joints of the states that add position p to the current one, for p from `first` on.
    fn children(&mut self, k: usize, first: usize, log_joint: T, children: &mut [T]);
    /// Starts the sums of the subtree of `path`, the current state, with its own weight.
    fn open(&mut self, path: &[u16], weight: T, sums: &mut Sums<'_, '_, T>);
    /// Adds the children of `path` from `first` on, which have no children, to these sums.
    fn add_leaves(&mut self, path: &[u16], first: usize, weights: &[T], sums: &mut Sums<'_, '_, T>);
    /// Comes back from the child that added `new`: adds the sums of its subtree to those of its parent.
    fn ascend(&mut self, k: usize, new: usize);
    /// The last three in one, for a state whose children have none.
    fn ascend_leaves(&mut self, path: &[u16], weight: T, weights: &[T], sums: &mut Sums<'_, '_, T>);
    /// Multiplies all sums the kind keeps itself.
    fn rescale(&mut self, factor: T);
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

/// Visits all states in `room` that add latents to the current one, whose log joint is given and whose
/// sums are open. `log_joints` is scratch, `positions` numbers for every k up to `max_active`.
pub(crate) fn walk<T: Real>(
    room: Room,
    path: &mut Path,
    log_joint: T,
    log_joints: &mut [T],
    states: &mut impl StateModel<T>,
    sums: &mut Sums<'_, '_, T>,
) {
    let Room { first, positions, max_active } = room;
    let root = path.len();
    if root >= max_active || first >= positions {
        return;
    }
    let row = |k: usize| k * positions;
    let children = span_mut(log_joints, row(root), positions);
    states.children(root, first, log_joint, children);
    if root + 1 == max_active {
        if sums.weigh(path, first, children, states) {
            states.add_leaves(path, first, children, sums);
        }
        return;
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
        let log_joint = at(log_joints, row(k) + new);
        if path.push(new as u16).is_err() {
            return; // max_active is within the capacity
        }
        states.descend(k, new);
        let children = span_mut(log_joints, row(k + 1), positions);
        states.children(k + 1, new + 1, log_joint, children);
        if k + 2 < max_active {
            let weight = sums.weight(path, log_joint, states);
            states.open(path, weight, sums);
            candidates = positions;
        } else {
            // The state itself first, so that it can lift the anchor before its children's weights count,
            // and again, in case they did.
            sums.weight(path, log_joint, states);
            let any = sums.weigh(path, new + 1, children, states);
            let weight = sums.weight(path, log_joint, states);
            if any || !(weight <= T::ZERO) {
                states.ascend_leaves(path, weight, children, sums);
            }
            path.pop();
        }
    }
}
