//! One state by itself: its rows among all, and its coefficients.

use super::Latent;
use super::view::{SETS, View};
use crate::block::Block;
use crate::math::Real;
use crate::slices::{at, set, span};

/// Where the rows of a state and of those on the way to it begin, in the order of the walk: after all states that begin with
/// an earlier latent come the state itself, then those that it begins.
fn starts(path: &[u16], selected: usize, max_active: usize) -> [usize; 3] {
    let (mut starts, mut next, mut start) = ([0; 3], 0, 0);
    for (depth, (&position, slot)) in path.iter().zip(&mut starts).enumerate() {
        for p in next..usize::from(position) {
            let later = selected.saturating_sub(p + 1);
            let more = max_active.saturating_sub(depth + 1);
            start += match more {
                0 => depth + 1,
                1 => depth + 1 + (depth + 2) * later,
                _ => depth + 1 + (depth + 2) * later + (depth + 3) * (later * later.saturating_sub(1) / 2),
            };
        }
        *slot = start;
        start += depth + 1;
        next = usize::from(position) + 1;
    }
    starts
}

/// The coefficients of a state, x0 + kappa, in the order of its positions.
#[inline(never)]
pub(super) fn coefficients<T: Real>(
    path: &[u16],
    (block, view): (&Block<'_, T>, &View<T>),
    latents: &[Latent<T>],
    rows: &[T],
    max_active: usize,
    values: &mut [T],
) {
    let mut on = 0;
    for (&position, value) in path.iter().zip(values.iter_mut()) {
        let p = usize::from(position);
        on |= view.bits >> (3 * p) & 7;
        *value = at(block.reference, p);
    }
    for (depth, &start) in starts(path, block.len(), max_active).iter().enumerate().take(path.len()) {
        let row = span(rows, start, depth + 1);
        let mut t = T::ZERO;
        for (&entry, &position) in row.iter().zip(path) {
            let v =
                latents.get(usize::from(position)).map_or(T::ZERO, |latent| latent[5 + on as usize % SETS]);
            t += entry * v;
        }
        for (depth, &entry) in row.iter().enumerate() {
            set(values, depth, at(values, depth) + entry * t);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::starts;
    use crate::kept::factors::rows_len;

    #[test]
    fn rows_stand_in_the_order_of_the_walk() {
        for (selected, max_active) in [(1, 1), (4, 1), (5, 2), (3, 3), (7, 3)] {
            let mut next = 0;
            for i in 0..selected as u16 {
                assert_eq!(starts(&[i], selected, max_active)[0], next);
                next += 1;
                for j in i + 1..if max_active > 1 { selected as u16 } else { 0 } {
                    assert_eq!(starts(&[i, j], selected, max_active)[1], next);
                    next += 2;
                    for k in j + 1..if max_active > 2 { selected as u16 } else { 0 } {
                        assert_eq!(starts(&[i, j, k], selected, max_active)[2], next);
                        next += 3;
                    }
                }
            }
            assert_eq!(next, rows_len(selected, max_active));
        }
    }
}
