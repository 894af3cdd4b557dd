//! Slice access that cannot panic, so that no panic machinery reaches firmware.
//!
//! Sizes are checked once, when a model and its arena are put together; behind that check every
//! access here is in range. Should one ever not be, it reads as empty or zero instead of panicking.

use super::math::Real;

/// `len` entries from `start` on; empty when they are not all there.
#[inline(always)]
pub(crate) fn span<T>(values: &[T], start: usize, len: usize) -> &[T] {
    values.get(start..start.wrapping_add(len)).unwrap_or(&[])
}

/// [`span`], to write.
#[inline(always)]
pub(crate) fn span_mut<T>(values: &mut [T], start: usize, len: usize) -> &mut [T] {
    values.get_mut(start..start.wrapping_add(len)).unwrap_or(&mut [])
}

/// Entry `index`, or zero.
#[inline(always)]
pub(crate) fn at<T: Real>(values: &[T], index: usize) -> T {
    values.get(index).copied().unwrap_or(T::ZERO)
}

/// Row `index`, or zeros.
#[inline(always)]
#[cfg(feature = "stream")]
pub(crate) fn row<T: Real, const N: usize>(rows: &[[T; N]], index: usize) -> [T; N] {
    rows.get(index).copied().unwrap_or([T::ZERO; N])
}

/// Sets entry `index`.
#[inline(always)]
pub(crate) fn set<T>(values: &mut [T], index: usize, value: T) {
    if let Some(slot) = values.get_mut(index) {
        *slot = value;
    }
}

/// Copies as many entries as both have.
#[inline(always)]
pub(crate) fn copy<T: Copy>(to: &mut [T], from: &[T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from;
    }
}

/// Exchanges two entries.
#[inline]
pub(crate) fn exchange<T: Copy>(values: &mut [T], i: usize, j: usize) {
    if let (Some(&a), Some(&b)) = (values.get(i), values.get(j)) {
        set(values, i, b);
        set(values, j, a);
    }
}

/// Row `i` of a lower triangle with diagonal, packed by rows: its `i + 1` entries.
#[inline(always)]
pub(crate) fn lower_row<T>(packed: &[T], i: usize) -> &[T] {
    span(packed, triangle(i), i + 1)
}

/// [`lower_row`], to write.
#[inline(always)]
pub(crate) fn lower_row_mut<T>(packed: &mut [T], i: usize) -> &mut [T] {
    span_mut(packed, triangle(i), i + 1)
}

/// 1 + 2 + ... + n: entries in the first `n` rows of a lower triangle with diagonal.
pub(crate) const fn triangle(n: usize) -> usize {
    n * (n + 1) / 2
}

/// Sum of products in index order (the order is part of the result).
#[inline(always)]
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sum = T::ZERO;
    for (&a, &b) in a.iter().zip(b) {
        sum += a * b;
    }
    sum
}
