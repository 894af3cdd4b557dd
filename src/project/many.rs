//! Many samples at once, for training: A B^T with B in panels, as [`super::kernel`] has the dictionary.
//!
//! Four rows of A share what is read of a panel, and some dozens of rows a panel that stays in the cache. On desktops the sums are
//! vectors (`x86`). Every entry is summed from its first product on, each rounded, so that bits depend neither on the
//! processor nor on an entry's place.

use crate::model::PANEL;
use crate::numeric::math::Real;

/// Rows that share what is read of a panel.
const ROWS: usize = 4;

/// Rows that are worked on before the next panel is read.
const BLOCK: usize = 32;

/// A B^T, row-major, of A (n x k) and B in panels, for the first `columns` rows of B.
pub fn product<T: Real>(a: &[T], panels: &[T], k: usize, columns: usize, out: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    return super::x86::product(a, panels, k, columns, out);
    #[cfg(not(target_arch = "x86_64"))]
    portable::<T, 1>(a, panels, k, columns, out);
}

/// The same with `SIDE` panels at a time, one or two.
#[inline(always)]
pub(super) fn portable<T: Real, const SIDE: usize>(
    a: &[T],
    panels: &[T],
    k: usize,
    columns: usize,
    out: &mut [T],
) {
    if k == 0 || columns == 0 {
        return;
    }
    let panels = panels.as_chunks::<PANEL>().0;
    for (a, out) in a.chunks(BLOCK * k).zip(out.chunks_mut(BLOCK * columns)) {
        for (at, side) in panels.chunks(SIDE * k).enumerate() {
            // Of an odd number of panels the last is its own neighbour, and of fewer rows than four the first stands for those that lack.
            let first = side.get(..k).unwrap_or(&[]);
            let second = side.get((SIDE - 1) * k..SIDE * k).unwrap_or(first);
            for (a, out) in a.chunks(ROWS * k).zip(out.chunks_mut(ROWS * columns)) {
                let row = |r: usize| a.get(r * k..(r + 1) * k).unwrap_or(a);
                let sums = tile::<T, SIDE>([row(0), row(1), row(2), row(3)], first, second);
                for (out, sums) in out.chunks_mut(columns).zip(&sums) {
                    let out = out.iter_mut().skip(at * SIDE * PANEL);
                    out.zip(sums.as_flattened()).for_each(|(out, &sum)| *out = sum);
                }
            }
        }
    }
}

#[inline(always)]
fn tile<T: Real, const SIDE: usize>(
    rows: [&[T]; ROWS],
    first: &[[T; PANEL]],
    second: &[[T; PANEL]],
) -> [[[T; PANEL]; SIDE]; ROWS] {
    let [r0, r1, r2, r3] = rows;
    // By name, so that the sums stay in registers.
    let mut s0 = [[T::ZERO; PANEL]; SIDE];
    let (mut s1, mut s2, mut s3) = (s0, s0, s0);
    for (((((b, c), &a0), &a1), &a2), &a3) in first.iter().zip(second).zip(r0).zip(r1).zip(r2).zip(r3) {
        add(&mut s0, a0, [b, c]);
        add(&mut s1, a1, [b, c]);
        add(&mut s2, a2, [b, c]);
        add(&mut s3, a3, [b, c]);
    }
    [s0, s1, s2, s3]
}

#[inline(always)]
fn add<T: Real, const SIDE: usize>(sums: &mut [[T; PANEL]; SIDE], a: T, panels: [&[T; PANEL]; 2]) {
    for (sums, panel) in sums.iter_mut().zip(panels) {
        for (sum, &b) in sums.iter_mut().zip(panel) {
            *sum += a * b;
        }
    }
}
