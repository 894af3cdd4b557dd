//! The modified discrete cosine transform: lapped, real, and as many coefficients as samples.
//!
//! Blocks of N samples follow each other. A block x_N .. x_2N-1 together with the one before it, x_0 .. x_N-1, becomes
//!
//! ```text
//! X_k = sqrt(2 / N) sum_{n < 2N} w_n x_n cos(pi / N (n + 1/2 + N / 2) (k + 1/2)),   w_n = sin(pi / 2N (n + 1/2))
//! ```
//!
//! and the way back is the transpose: w_n times the same sum over k, added up where blocks overlap. Since w_n^2 + w_N+n^2 = 1
//! the aliasing of a block cancels with that of the next (Princen and Bradley, 1986): an unchanged
//! spectrum gives the signal back. The transform as a whole is orthogonal: white noise stays white.
//!
//! The 2N samples are folded to N, and a cosine transform of type 4 of these is a complex Fourier transform of N/2 points
//! between two rotations, all in place (`src/stream/fourier.rs`).

use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, row, set, span, span_mut};
use crate::stream::fourier::{fourier, quarter_sine, twiddles};

/// A transform of one length, over a table made for it.
///
/// ```
/// use spikelet::mdct::Mdct;
/// let mut table = [0.0; Mdct::table_len(16)];
/// Mdct::prepare(&mut table);
/// let mdct = Mdct::over(&table);
/// let (silence, block) = ([0.0; 16], [1.0; 16]);
/// let (mut spectrum, mut first, mut second) = ([0.0; 16], [0.0; 16], [0.0; 16]);
/// mdct.forward(&silence, &block, &mut spectrum);
/// mdct.inverse(&mut spectrum, &mut first, &mut second);
/// mdct.forward(&block, &silence, &mut spectrum);
/// mdct.inverse(&mut spectrum, &mut second, &mut first);
/// assert!(second.iter().all(|x| (x - 1.0).abs() < 1e-6)); // both halves of what covers the block
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mdct<'t> {
    /// w_n (N), then e^{-2 pi i k / M} for k < M / 2 with M = N / 2, as pairs (N / 2).
    window: &'t [f32],
    twiddles: &'t [[f32; 2]],
}

impl<'t> Mdct<'t> {
    /// Numbers in the table for `bins` coefficients, a power of two from 16 on.
    pub const fn table_len(bins: usize) -> usize {
        bins + bins / 2
    }

    /// Fills in the table; its length tells how many bins there are.
    pub fn prepare(table: &mut [f32]) {
        let bins = table.len() / 3 * 2;
        let n = bins as f32;
        for (i, w) in span_mut(table, 0, bins).iter_mut().enumerate() {
            *w = quarter_sine((i as f32 + 0.5) / n);
        }
        twiddles(span_mut(table, bins, bins / 2), bins / 2);
    }

    /// Over a table that [`Mdct::prepare`] has filled in.
    pub fn over(table: &'t [f32]) -> Self {
        let bins = table.len() / 3 * 2;
        Self { window: span(table, 0, bins), twiddles: span(table, bins, bins / 2).as_chunks().0 }
    }

    /// N.
    pub fn bins(&self) -> usize {
        self.window.len()
    }

    /// The coefficients of two blocks of N samples; `spectrum` has N numbers.
    pub fn forward(&self, older: &[f32], newer: &[f32], spectrum: &mut [f32]) {
        let (n, half) = (self.bins(), self.bins() / 2);
        Count::Windowed.add(n);
        let windowed = |block: &[f32], i: usize, w: usize| at(block, i) * at(self.window, w);
        for i in 0..half {
            let late = windowed(newer, half - 1 - i, half + i) + windowed(newer, half + i, half - 1 - i);
            let early = windowed(older, i, i) - windowed(older, n - 1 - i, n - 1 - i);
            set(spectrum, i, -late);
            set(spectrum, half + i, early);
        }
        self.cosine(spectrum);
    }

    /// The way back, added to both blocks; `spectrum` is used up.
    pub fn inverse(&self, spectrum: &mut [f32], older: &mut [f32], newer: &mut [f32]) {
        let (n, half) = (self.bins(), self.bins() / 2);
        Count::Windowed.add(n);
        self.cosine(spectrum);
        let (late, early) = (span(spectrum, 0, half), span(spectrum, half, half));
        let older = older.iter_mut().zip(self.window);
        let newer = newer.iter_mut().zip(self.window.iter().rev());
        for (i, ((older, &rising), (newer, &falling))) in older.zip(newer).enumerate() {
            let (before, after) = match i < half {
                true => (at(early, i), -at(late, half - 1 - i)),
                false => (-at(early, n - 1 - i), -at(late, i - half)),
            };
            *older += rising * before;
            *newer += falling * after;
        }
    }

    /// C_k = sqrt(2 / N) sum_n x_n cos(pi / N (n + 1/2) (k + 1/2)), in place; its own inverse.
    ///
    /// With t_m = e^{-i pi (4m + 1) / 4N}, the Fourier transform Z of z_m = (x_2m + i x_N-1-2m) t_m has
    /// sqrt(2 / N) Z_m t_m e^{i pi / 4N} = C_2m - i C_N-1-2m. Pairs m and M - 1 - m trade numbers with each other only.
    fn cosine(&self, x: &mut [f32]) {
        let n = self.bins();
        let (points, _) = span_mut(x, 0, n).as_chunks_mut();
        Count::Rotated.add(n);
        let last = points.len().wrapping_sub(1);
        // t_m: both parts are in the window.
        let rotated = |m: usize, [re, im]: [f32; 2]| {
            let (cos, sin) = (at(self.window, n - 1 - 2 * m), at(self.window, 2 * m));
            [re * cos + im * sin, im * cos - re * sin]
        };
        for m in 0..n / 4 {
            let ([a, d], [c, b]) = (row(points, m), row(points, last - m));
            set(points, m, rotated(m, [a, b]));
            set(points, last - m, rotated(last - m, [c, d]));
        }
        fourier(points, self.twiddles, 1);
        let (scale, angle) = (Real::sqrt(2.0 / n as f32), 0.5 / n as f32);
        let (cos, sin) = (scale * quarter_sine(1.0 - angle), scale * quarter_sine(angle));
        let turned = |m: usize, point: [f32; 2]| {
            let [re, im] = rotated(m, point);
            [re * cos - im * sin, re * sin + im * cos]
        };
        for m in 0..n / 4 {
            let ([a, b], [c, d]) = (turned(m, row(points, m)), turned(last - m, row(points, last - m)));
            set(points, m, [a, -d]);
            set(points, last - m, [c, -b]);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::numeric::rng::Rng;
    use std::vec;
    use std::vec::Vec;

    /// Straight from the definition.
    fn definition(samples: &[f32], k: usize) -> f64 {
        let n = samples.len() as f64 / 2.0;
        let pi = core::f64::consts::PI;
        let terms = samples.iter().enumerate().map(|(i, &x)| {
            let i = i as f64 + 0.5;
            libm::sin(pi / (2.0 * n) * i)
                * f64::from(x)
                * libm::cos(pi / n * (i + n / 2.0) * (k as f64 + 0.5))
        });
        libm::sqrt(2.0 / n) * terms.sum::<f64>()
    }

    fn noise(len: usize) -> Vec<f32> {
        let mut rng = Rng::new(len as u64);
        (0..len).map(|_| rng.normal::<f32>()).collect()
    }

    #[test]
    fn sines() {
        for i in 0..=1000 {
            let x = i as f32 / 1000.0;
            let exact = libm::sin(core::f64::consts::FRAC_PI_2 * f64::from(x));
            assert!((f64::from(quarter_sine(x)) - exact).abs() < 1.2e-7, "{x}");
        }
    }

    #[test]
    fn it_is_the_definition() {
        let mut bins = 16;
        while bins <= if cfg!(miri) { 32 } else { 2048 } {
            let mut table = vec![0.0; Mdct::table_len(bins)];
            Mdct::prepare(&mut table);
            let samples = noise(2 * bins);
            let mut spectrum = vec![0.0; bins];
            Mdct::over(&table).forward(&samples[..bins], &samples[bins..], &mut spectrum);
            // Coefficients have variance 1. Each of log2 N stages, folding and two rotations round by 2^-24 of that a few
            // times, independently, and twiddles are off by 2^-23: far below 2e-6 for 2048 bins.
            for (k, &found) in spectrum.iter().enumerate() {
                let exact = definition(&samples, k);
                assert!((f64::from(found) - exact).abs() < 2e-6, "{bins} bins: {k} is {found}, not {exact}");
            }
            bins *= 2;
        }
    }

    #[test]
    fn what_is_not_changed_comes_back() {
        for bins in [16, 64, 256] {
            let mut table = vec![0.0; Mdct::table_len(bins)];
            Mdct::prepare(&mut table);
            let mdct = Mdct::over(&table);
            let samples = noise(5 * bins);
            let (mut back, mut spectrum) = (vec![0.0; 5 * bins], vec![0.0; bins]);
            for block in 0..4 {
                let (older, newer) = (block * bins, (block + 1) * bins);
                mdct.forward(&samples[older..newer], &samples[newer..newer + bins], &mut spectrum);
                let (first, second) = back.split_at_mut(newer);
                mdct.inverse(&mut spectrum, &mut first[older..], second);
            }
            for (i, (found, exact)) in back.iter().zip(&samples).enumerate().skip(bins).take(3 * bins) {
                assert!((found - exact).abs() < 4e-6, "{bins} bins: {i} is {found}, not {exact}");
            }
        }
    }
}
