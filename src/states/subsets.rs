//! The papers' sets: all states with at most gamma of the candidates on.
//!
//! They are reached from the reference by flipping candidates in a fixed order, the reference's latents first: these go off and
//! make room for others. A state's children are its neighbours by later candidates, and all of them are counted when it is
//! expanded ([`crate::posterior::Sums::expand`]); only those that have children of their own are gone to. The way back is a
//! copy of the state, not a flip: rounding errors do not add up.
//!
//! Exact where gamma = H' = H. Work per state: n^2 for those gone to, O(|A|) for the others.

use super::tableau::{Joint, Tableau};
use crate::capacity::MAX_SELECTED;
use crate::numeric::math::Real;
use heapless::Vec;

/// A state on the way: where its log joint is, how many are on, the place of the next child.
#[derive(Clone, Copy)]
struct Level<T> {
    joint: Joint<T>,
    on: u64,
    count: usize,
    next: usize,
}

/// Walks all states from the tableau at the reference; `expand` gets it at each state that is gone to, whether
/// it is the reference, and the flips that lead to its children, one bit each.
pub(crate) fn walk<T: Real>(
    tableau: &mut Tableau<'_, T>,
    levels: &mut [T],
    expand: &mut dyn FnMut(&mut Tableau<'_, T>, bool, u64),
) {
    let (n, members, max_active) = (tableau.len(), tableau.count, tableau.model.shape.max_active);
    let (mut order, mut place) = ([0u8; MAX_SELECTED], 0);
    for is_member in [true, false] {
        for i in (0..n).filter(|&i| tableau.is_on(i) == is_member) {
            order[place % MAX_SELECTED] = i as u8;
            place += 1;
        }
    }
    let mut stack: Vec<Level<T>, MAX_SELECTED> = Vec::new();
    let mut first = 0;
    loop {
        tableau.evaluate();
        let end = if tableau.count < max_active { n } else { members };
        let mut children = 0u64;
        for &i in order.iter().take(end).skip(first) {
            children |= 1 << (i % 64);
        }
        expand(tableau, stack.is_empty(), children);
        let depth = stack.len();
        if stack
            .push(Level { joint: tableau.joint, on: tableau.on, count: tableau.count, next: first })
            .is_ok()
        {
            tableau.keep(levels, depth);
        }
        // The next child that has children of its own, of this state or of one above it.
        loop {
            let depth = stack.len();
            let Some(level) = stack.last_mut() else { return };
            let Level { joint, on, count, next: child } = *level;
            level.next += 1;
            let is_member = child < members;
            if child + 1 >= n || !(is_member || count < max_active) {
                if depth == 1 {
                    // Back to the reference.
                    tableau.restore(levels, 0);
                    (tableau.joint, tableau.on, tableau.count) = (joint, on, count);
                    return;
                }
                stack.pop();
                continue;
            }
            let left = if is_member { count.saturating_sub(1) } else { count + 1 };
            if !(child + 1 < members || left < max_active) {
                continue;
            }
            tableau.restore(levels, depth - 1);
            (tableau.joint, tableau.on, tableau.count) = (joint, on, count);
            let i = usize::from(order[child % MAX_SELECTED]);
            if !tableau.may_flip(i) {
                continue;
            }
            tableau.flip(i);
            first = child + 1;
            break;
        }
    }
}
