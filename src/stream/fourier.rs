//! The complex Fourier transform of a power of two of points, in place: what both transforms are made of.
//!
//! The crate that fits best is `microfft` (0.6, MIT): no heap, no path to a panic, no code of its own for any processor, so that
//! bits would be the same on every core. But its length is in the type and here it comes with the blob, so that a firmware would
//! carry all of them. Built as firmware is (`opt-level = "s"`, Cortex-M4F), its real transforms and inverse complex ones of 64 to
//! 4096 samples take 10.7 kB of flash, of which 4 kB are a table; this one takes 1.2 kB for all lengths and has its table in RAM,
//! L numbers. Of 512 points, which is a real frame of 1024, `microfft::inverse` takes 58 k instructions and this one 43 k. It is
//! also the lapped transform's, whose bits must not change. `realfft` and `rustfft` need the heap and pick kernels by processor,
//! so that bits would differ from core to core.
//!
//! Sines are polynomials in single precision: `libm` computes them in double, which most microcontrollers lack.

use crate::counts::Count;
use crate::numeric::slices::{exchange, span_mut};

/// sin(pi / 2 x) for x from 0 to 1, to 1.2e-7.
pub(crate) fn quarter_sine(x: f32) -> f32 {
    let quarter = core::f32::consts::FRAC_PI_2;
    if x <= 0.5 {
        // y - y^3 / 3! + ..., to 2e-9
        let y = x * quarter;
        let square = y * y;
        let series = -1.0 / 5040.0 + square * (1.0 / 362_880.0);
        return y + y * square * (-1.0 / 6.0 + square * (1.0 / 120.0 + square * series));
    }
    let y = (1.0 - x) * quarter;
    let square = y * y;
    let series = 1.0 / 40_320.0 - square * (1.0 / 3_628_800.0);
    1.0 + square * (-0.5 + square * (1.0 / 24.0 + square * (-1.0 / 720.0 + square * series)))
}

/// Fills in e^{-2 pi i k / points} for as many k as there are pairs in the table, at most `points` / 2.
pub(crate) fn twiddles(table: &mut [f32], points: usize) {
    let quarter = points as f32 / 4.0;
    let len = table.len();
    for (k, pair) in span_mut(table, 0, len).as_chunks_mut().0.iter_mut().enumerate() {
        // In quarters of a turn, from 0 to 2.
        let x = k as f32 / quarter;
        *pair = match x <= 1.0 {
            true => [quarter_sine(1.0 - x), -quarter_sine(x)],
            false => [-quarter_sine(x - 1.0), -quarter_sine(2.0 - x)],
        };
    }
}

/// sum_m z_m e^{-2 pi i m k / M}, in place; entry k of the table is e^{-2 pi i k / (stride M)}. M is a power of two from 4 on.
///
/// Stages of two points, two at a time in registers: half the loads and stores, and the bits of one after the other. The first
/// two need no rotations; an odd one is left for the end.
pub(crate) fn fourier(points: &mut [[f32; 2]], twiddles: &[[f32; 2]], stride: usize) {
    let len = points.len();
    let unused = usize::BITS - len.trailing_zeros();
    for i in 0..len {
        let j = i.reverse_bits().checked_shr(unused).unwrap_or_default();
        if i < j {
            exchange(points, i, j);
        }
    }
    for [p0, p1, p2, p3] in points.as_chunks_mut().0 {
        let (first, second) = (butterfly(*p0, *p1), butterfly(*p2, *p3));
        (*p0, *p2) = butterfly(first.0, second.0);
        (*p1, *p3) = butterfly(first.1, by_minus_i(second.1));
    }
    // So many points are transformed already; entry k step of the table is e^{-2 pi i k / 2 done}.
    let (mut done, mut step) = (4, stride * len / 8);
    while 4 * done <= len {
        Count::TwoStages.add(len);
        two_stages(points, twiddles, done, step);
        (done, step) = (4 * done, step / 4);
    }
    if 2 * done == len {
        Count::Butterflies.add(done);
        let Some((even, odd)) = points.split_at_mut_checked(done) else { return };
        for ((even, odd), &twiddle) in even.iter_mut().zip(odd).zip(twiddles.iter().step_by(step.max(1))) {
            (*even, *odd) = butterfly(*even, rotated(*odd, twiddle));
        }
    }
    // The first two stages, which need no twiddles, are counted with the numbers that come in.
    Count::Transforms.add(1);
}

/// From transforms of `done` points to those of four times as many.
#[inline(always)]
fn two_stages(points: &mut [[f32; 2]], twiddles: &[[f32; 2]], done: usize, step: usize) {
    let (one, two) = (step.max(1), (step / 2).max(1));
    for block in points.chunks_exact_mut((4 * done).max(1)) {
        let Some((low, high)) = block.split_at_mut_checked(2 * done) else { return };
        let Some((p0, p1)) = low.split_at_mut_checked(done) else { return };
        let Some((p2, p3)) = high.split_at_mut_checked(done) else { return };
        let turns = twiddles.iter().step_by(one).zip(twiddles.iter().step_by(two));
        for ((((p0, p1), p2), p3), (&outer, &inner)) in p0.iter_mut().zip(p1).zip(p2).zip(p3).zip(turns) {
            let first = butterfly(*p0, rotated(*p1, outer));
            let second = butterfly(*p2, rotated(*p3, outer));
            (*p0, *p2) = butterfly(first.0, rotated(second.0, inner));
            // A quarter of a turn more.
            (*p1, *p3) = butterfly(first.1, by_minus_i(rotated(second.1, inner)));
        }
    }
}

#[inline(always)]
fn butterfly([a, b]: [f32; 2], [c, d]: [f32; 2]) -> ([f32; 2], [f32; 2]) {
    ([a + c, b + d], [a - c, b - d])
}

#[inline(always)]
fn rotated([c, d]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [c * cos - d * sin, c * sin + d * cos]
}

#[inline(always)]
fn by_minus_i([re, im]: [f32; 2]) -> [f32; 2] {
    [im, -re]
}
