//! The walk over the kept states, depth first, and what a model kind has to provide for it.
//!
//! A state is a *path*: the positions (see [`crate::block`]) of its active latents, ascending. All
//! children of a state are evaluated together, before any of them is visited: most states are leaves,
//! and a leaf then costs a few operations. Siblings are visited from the last position down; the
//! caller puts promising latents last, so that the probable states come early.

use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use crate::slices::{at, span_mut};
use heapless::Vec;

/// How one model kind evaluates states along the walk.
pub(crate) trait StateModel<T> {
    /// Log joint of the empty state. All log joints of a sample share their reference.
    fn empty(&mut self) -> T;
    /// Posterior mean and variance of each active latent of `path`, whose parents are extended.
    fn moments(&mut self, path: &[u16]) -> Moments<'_, T>;
    /// Log joints of `path` plus position p, for every p after its last, into `children[p]`. The
    /// parents of `path` are extended, its log joint is known, its moments were looked at last.
    fn extend(&mut self, path: &[u16], log_joint: T, children: &mut [T]);
    /// Hands all children of `path`, which was extended last, to the visitor; they have no children.
    fn leaves(&mut self, path: &[u16], children: &mut [T], visitor: &mut impl Visitor<T>);
}

/// The continuous part of one state.
pub(crate) struct Moments<'a, T> {
    /// Posterior mean of each active latent.
    pub mean: &'a [T],
    /// Posterior variance of each active latent.
    pub variance: &'a [T],
    /// Posterior covariance, lower triangle packed by rows; empty unless second moments are asked for.
    pub covariance: &'a [T],
}

/// The children of one state, from position `first` on. Arrays are by position, and may be used up.
pub(crate) struct Leaves<'a, T> {
    /// Their parent.
    pub parent: Moments<'a, T>,
    /// Position of the first.
    pub first: usize,
    /// Log joints.
    pub log_joint: &'a mut [T],
    /// Posterior mean of the latent that was added.
    pub step: &'a mut [T],
    /// Its posterior variance.
    pub variance: &'a mut [T],
    /// A row per active latent of the parent: how much of it goes when one unit of the new latent
    /// comes. The parent's means change by -step x share.
    pub share: &'a [T],
}

/// What is done with each state.
pub(crate) trait Visitor<T> {
    /// Whether a state with this log joint can change the result.
    fn wants(&self, log_joint: T) -> bool;
    /// Takes a state.
    fn visit(&mut self, path: &[u16], log_joint: T, moments: Moments<'_, T>);
    /// Takes all children of `path` but does not look for the best state.
    fn take(&mut self, path: &[u16], leaves: Leaves<'_, T>);
    /// Notes that `path` is the best state if it is.
    fn consider(&mut self, path: &[u16], log_joint: T, moments: Moments<'_, T>);
    /// Whether a state with this log joint is the best so far.
    fn is_best(&self, log_joint: T) -> bool;
}

/// [`StateModel::leaves`], one by one.
pub(crate) fn visit_each<T: Real>(
    path: &[u16],
    positions: core::ops::Range<usize>,
    log_joints: &[T],
    states: &mut impl StateModel<T>,
    visitor: &mut impl Visitor<T>,
) {
    let mut child: Vec<u16, MAX_ACTIVE> = Vec::new();
    let _ = child.extend_from_slice(path); // shorter than max_active
    for p in positions.rev() {
        let log_joint = at(log_joints, p);
        if visitor.wants(log_joint) && child.push(p as u16).is_ok() {
            visitor.visit(&child, log_joint, states.moments(&child));
            child.pop();
        }
    }
}

/// Visits the empty state and every state of up to `max_active` of `positions` latents. `log_joints`
/// is scratch: `positions` numbers for each number of active latents below `max_active`.
pub(crate) fn walk<T: Real>(
    positions: usize,
    max_active: usize,
    log_joints: &mut [T],
    states: &mut impl StateModel<T>,
    visitor: &mut impl Visitor<T>,
) {
    let mut path: Vec<u16, MAX_ACTIVE> = Vec::new();
    let mut log_joint = states.empty();
    let mut candidates = positions; // positions below are still to come at this depth
    let mut is_new = true; // or did the walk come back to it from below
    loop {
        if is_new {
            let has_children =
                path.len() < max_active && path.last().is_none_or(|&p| usize::from(p) + 1 < positions);
            let wanted = visitor.wants(log_joint);
            if wanted || has_children {
                let moments = states.moments(&path);
                if wanted {
                    visitor.visit(&path, log_joint, moments);
                }
            }
            if has_children {
                let children = span_mut(log_joints, path.len() * positions, positions);
                states.extend(&path, log_joint, children);
                if path.len() + 1 == max_active {
                    states.leaves(&path, children, visitor);
                    candidates = 0;
                } else {
                    candidates = positions;
                }
            }
        }
        let first = path.last().map_or(0, |&last| usize::from(last) + 1);
        if candidates > first {
            candidates -= 1;
            log_joint = at(log_joints, path.len() * positions + candidates);
            is_new = path.push(candidates as u16).is_ok(); // max_active is within the capacity
            continue;
        }
        is_new = false;
        match path.pop() {
            Some(last) => candidates = usize::from(last),
            None => return,
        }
    }
}
