//! The complex Fourier transform of a power of two of points, in place: what both transforms are made of.
//!
//! The crate one would take is `microfft`: it has no path to a panic and no code of its own for any processor. But it has its code and a
//! table once for every length, and here the length comes with the blob, so that a firmware would carry all of them, several times
//! the flash of this one, which is one loop for all lengths. `realfft` and `rustfft` need the heap and pick their kernels by
//! processor, so that bits would differ from core to core. Sines are polynomials in single precision: `libm` computes them in
//! double, which most microcontrollers lack.

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

/// sum_m z_m e^{-2 pi i m k / M}, in place; entry k of the table is e^{-2 pi i k / (stride M)}.
pub(crate) fn fourier(points: &mut [[f32; 2]], twiddles: &[[f32; 2]], stride: usize) {
    let len = points.len();
    let unused = usize::BITS - len.trailing_zeros();
    for i in 0..len {
        let j = i.reverse_bits().checked_shr(unused).unwrap_or_default();
        if i < j {
            exchange(points, i, j);
        }
    }
    let mut half = 1;
    while half < len {
        // e^{-2 pi i k / 2 half}: every so-many-th of the table.
        let step = (stride * len / 2).checked_div(half).unwrap_or_default().max(1);
        for block in points.chunks_exact_mut((2 * half).max(1)) {
            let Some((even, odd)) = block.split_at_mut_checked(half) else { return };
            Count::Butterflies.add(half);
            let twiddles = twiddles.iter().step_by(step);
            for ((even, odd), &[cos, sin]) in even.iter_mut().zip(odd).zip(twiddles) {
                let ([a, b], [c, d]) = (*even, *odd);
                let (re, im) = (c * cos - d * sin, c * sin + d * cos);
                *even = [a + re, b + im];
                *odd = [a - re, b - im];
            }
        }
        half *= 2;
    }
}
