//! The walk over the kept states, depth first, and what a model kind has to provide for it.
//!
//! A state is a *path*: the positions (see [`crate::block`]) of its active latents, ascending. Every
//! prefix of a path is visited before the path, so a kind can build each state from its parent.
//! Siblings are visited from the last position down; the caller puts promising latents last, so
//! that the probable states come early.

use crate::capacity::MAX_ACTIVE;
use crate::math::Real;
use heapless::Vec;

/// How one model kind evaluates states along the walk.
pub(crate) trait StateModel<T> {
    /// Log joint of the state `path` relative to the reference; its parent was extended and settled.
    fn extend(&mut self, path: &[u16]) -> T;
    /// Completes the state extended last: coefficients, and what its children need.
    fn settle(&mut self, path: &[u16]);
    /// Posterior mean and variance of each active latent of the settled state.
    fn coefficients(&self, path: &[u16]) -> (&[T], &[T]);
    /// Posterior covariance of the settled state, packed by rows; empty unless asked for.
    fn covariance(&self, path: &[u16]) -> &[T];
}

/// What is done with each state.
pub(crate) trait Visitor<T> {
    /// Whether a state with this log joint can change the result.
    fn wants(&self, log_joint: T) -> bool;
    /// Takes a settled state.
    fn visit(&mut self, path: &[u16], log_joint: T, state: &impl StateModel<T>);
}

/// Visits the empty state and every state of up to `max_active` of `positions` latents.
pub(crate) fn walk<T: Real>(
    positions: usize,
    max_active: usize,
    state: &mut impl StateModel<T>,
    visitor: &mut impl Visitor<T>,
) {
    let mut path: Vec<u16, MAX_ACTIVE> = Vec::new();
    let mut candidates = positions; // those below are still to come at this depth
    loop {
        let log_joint = state.extend(&path);
        let leaf = path.len() >= max_active || path.last().is_some_and(|&p| usize::from(p) + 1 >= positions);
        let wanted = visitor.wants(log_joint);
        if wanted || !leaf {
            state.settle(&path);
        }
        if wanted {
            visitor.visit(&path, log_joint, state);
        }
        if !leaf {
            candidates = positions;
        } else if let Some(last) = path.pop() {
            candidates = usize::from(last);
        }
        // Up until some state has a sibling left.
        loop {
            let floor = path.last().map_or(0, |&p| usize::from(p) + 1);
            if candidates > floor {
                candidates -= 1;
                if path.push(candidates as u16).is_err() {
                    return;
                }
                break;
            }
            match path.pop() {
                Some(last) => candidates = usize::from(last),
                None => return,
            }
        }
    }
}
