//! Best first, as in [`crate::states::search`]: from a reference that no flip improves, with at most X expansions.

use super::numbers::{Scaled, log2};
use super::sums::Sums;
use super::tableau::Tableau;
use super::{LOG_DIGITS, TAU, TAU_PER_EXPANSION};
use crate::numeric::slices::{set, span, span_mut};
use crate::select::rise;
use crate::states::search::met;

/// Memory of a search: X entries each.
pub(super) struct Room<'x> {
    /// Masks of the states that were expanded.
    pub expanded: &'x mut [u32],
    /// Masks and log joints of the best states that are not, best first.
    pub waiting: &'x mut [u32],
    pub joints: &'x mut [i32],
}

/// Goes to another state, turning latents on first.
fn go_to(tableau: &mut Tableau<'_>, from: u32, to: u32) {
    for flips in [to & !from, from & !to] {
        let mut rest = flips;
        while rest != 0 {
            tableau.flip(rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// log2 of what all states weigh beside the reference, relative to it, when only that was expanded.
fn log_beside(sums: &Sums<'_>) -> i32 {
    let log = |weight: u32| {
        let Scaled { mantissa, exponent } = Scaled::of_wide(i64::from(weight), 0);
        log2(mantissa) + (exponent << LOG_DIGITS)
    };
    match sums.total - sums.reference_weight {
        0 => i32::MIN,
        beside => log(beside) - log(sums.reference_weight.max(1)),
    }
}

/// The search, from a tableau whose flips are evaluated. Returns how many states were expanded.
#[inline(never)]
pub(super) fn search(
    tableau: &mut Tableau<'_>,
    room: Room<'_>,
    expansions: usize,
    sums: &mut Sums<'_>,
    max_active: usize,
) -> usize {
    let Room { expanded, waiting, joints } = room;
    joints.fill(i32::MIN);
    let (mut state, mut count) = (tableau.mask(), 0);
    let mut tau = TAU.max(TAU_PER_EXPANSION.saturating_mul(expansions as i32));
    loop {
        let mut left_out = met(state, span(expanded, 0, count));
        if tableau.count >= max_active {
            left_out |= !state;
        }
        sums.expand(tableau, count == 0, left_out);
        set(expanded, count, state);
        count += 1;
        // As the float search: where the neighbours of the reference weigh little, so will those of other states.
        if count == 1 {
            tau = tau.saturating_add(log_beside(sums).clamp(-TAU, 0));
        }
        let worth = sums.best.saturating_sub(tau);
        // As many wait as can still be expanded: the queue loses its first place to the state that is.
        let left = expansions.saturating_sub(count);
        let (joints, waiting) = (span_mut(joints, count, left), span_mut(waiting, count, left));
        for (i, cell) in tableau.cells.iter().enumerate().take(tableau.len()) {
            let joint = sums.relative(tableau, cell.gain);
            if cell.weight != 0 && joint > worth && joints.last().is_some_and(|&last| joint > last) {
                rise(joints, waiting, joint, state ^ 1 << (i % 32));
            }
        }
        match (joints.first(), waiting.first()) {
            (Some(&joint), Some(&next)) if joint > worth => {
                go_to(tableau, state, next);
                tableau.evaluate();
                state = next;
            }
            _ => return count,
        }
    }
}
