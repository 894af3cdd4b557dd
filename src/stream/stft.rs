//! The short-time Fourier transform: frames of L samples every K = L/2, L/4 or L/8, L/2 + 1 complex bins each.
//!
//! ```text
//! X_k = sum_{n < L} w_n x_n e^{-2 pi i k n / L},   w_n = 1/2 (1 - cos(2 pi n / L))          (Hann)
//! ```
//!
//! The way back is the inverse transform times w_n 8 K / 3 L, added up where frames overlap: the squares of the L / K Hann windows that
//! cover a sample sum to 3 L / 8 K, so that an unchanged spectrum gives the signal back, up to rounding. With K = L/2 the sum
//! depends on the sample, and the way back divides by it: w_n^2 + (1 - w_n)^2 = 1/2 (1 + cos^2(2 pi n / L)).
//!
//! A real frame is a complex one of L/2 points, z_m = x_2m + i x_2m+1. With t_k = e^{-2 pi i k / L}, Z the transform of z and
//! E, O those of even and odd samples,
//!
//! ```text
//! E_k = (Z_k + conj Z_{L/2-k}) / 2,   O_k = (Z_k - conj Z_{L/2-k}) / 2i,   X_k = E_k + t_k O_k,   X_{L/2-k} = conj(E_k - t_k O_k)
//! ```
//!
//! Windows and all rotations come from one table, t_k for k < L/2: L numbers. The cosines of the window are in it too.

use crate::counts::Count;
use crate::numeric::slices::{copy, row, set, span_mut};
use crate::stream::fourier::{fourier, twiddles};

/// Transforms of one length, over a table made for it.
///
/// ```
/// use spikelet::stft::Stft;
/// let mut table = [0.0; Stft::table_len(64)];
/// Stft::prepare(&mut table);
/// let stft = Stft::over(&table);
/// let (ring, mut back, mut spectrum) = ([1.0; 64], [0.0; 64], [[0.0; 2]; Stft::bins(64)]);
/// for _ in 0..4 {
///     stft.forward(&ring, 0, &mut spectrum);
///     assert!((spectrum[0][0] - 32.0).abs() < 1e-4); // the sum of the window
///     stft.inverse(&mut spectrum, 16, &mut back, 0);
///     back.rotate_left(16);
/// }
/// assert!(back[..16].iter().all(|x| (x - 1.0).abs() < 1e-6)); // four frames have covered these
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stft<'t> {
    /// t_k for k < L / 2.
    twiddles: &'t [[f32; 2]],
}

impl<'t> Stft<'t> {
    /// Numbers in the table for frames of `length` samples, a power of two from 16 on.
    pub const fn table_len(length: usize) -> usize {
        length
    }

    /// Complex numbers of a spectrum.
    pub const fn bins(length: usize) -> usize {
        length / 2 + 1
    }

    /// Fills in the table; its length is that of frames.
    pub fn prepare(table: &mut [f32]) {
        let length = table.len();
        twiddles(table, length);
    }

    /// Over a table that [`Stft::prepare`] has filled in.
    pub fn over(table: &'t [f32]) -> Self {
        Self { twiddles: table.as_chunks().0 }
    }

    /// The spectrum of a frame that lies in a ring of L numbers, its first sample at `oldest`, which is even.
    pub fn forward(&self, ring: &[f32], oldest: usize, spectrum: &mut [[f32; 2]]) {
        let half = self.twiddles.len();
        let Some((points, nyquist)) = spectrum.split_at_mut_checked(half) else { return };
        Count::StftSamples.add(2 * half);
        let (newer, older) = ring.split_at_checked(oldest).unwrap_or_default();
        let frame = points.as_flattened_mut();
        copy(frame, older);
        copy(span_mut(frame, older.len(), newer.len()), newer);
        self.window(points, [0.5; 2]);
        fourier(points, self.twiddles, 2);
        let Some((first, pairs, middle)) = ends(points) else { return };
        let [re, im] = *first;
        *first = [re + im, 0.0];
        set(nyquist, 0, [re - im, 0.0]);
        for ((low, high), &[cos, sin]) in pairs.zip(self.twiddles.iter().skip(1)) {
            let ([a, b], [c, d]) = (*low, *high);
            let (e, o) = ([0.5 * (a + c), 0.5 * (b - d)], [0.5 * (b + d), 0.5 * (c - a)]);
            let turned = [o[0] * cos - o[1] * sin, o[0] * sin + o[1] * cos];
            *high = [e[0] - turned[0], turned[1] - e[1]];
            *low = [e[0] + turned[0], e[1] + turned[1]];
        }
        *middle = [middle[0], -middle[1]];
    }

    /// The way back, added to a ring of L numbers from `oldest` on, which is even, for frames every `hop` samples; `spectrum` is
    /// used up.
    pub fn inverse(&self, spectrum: &mut [[f32; 2]], hop: usize, ring: &mut [f32], oldest: usize) {
        let half = self.twiddles.len();
        let Some((points, nyquist)) = spectrum.split_at_mut_checked(half) else { return };
        Count::StftSamples.add(2 * half);
        // Of the ends only the real parts: the signal is real. The transform of the conjugates of Z is the conjugate of the
        // inverse one: odd samples come out with the other sign, which the window puts right.
        let Some((first, pairs, middle)) = ends(points) else { return };
        let ([start, _], [end, _]) = (*first, row(nyquist, 0));
        *first = [start + end, end - start];
        for ((low, high), &[cos, sin]) in pairs.zip(self.twiddles.iter().skip(1)) {
            let ([a, b], [c, d]) = (*low, *high);
            let (e, f) = ([a + c, b - d], [a - c, b + d]);
            let o = [f[0] * cos + f[1] * sin, f[1] * cos - f[0] * sin];
            *high = [e[0] + o[1], e[1] - o[0]];
            *low = [e[0] - o[1], -e[1] - o[0]];
        }
        *middle = [2.0 * middle[0], 2.0 * middle[1]];
        fourier(points, self.twiddles, 2);
        // 1/2 of E and O, 2 / L of the transform, 8 K / 3 L of the windows; with two of them what they sum to.
        let length = 2.0 * half as f32;
        let is_half = hop == half;
        let half_scale = if is_half { 0.5 / length } else { 4.0 * hop as f32 / (3.0 * length * length) };
        self.window(points, [half_scale, -half_scale]);
        if is_half {
            self.even_out(points);
        }
        let Some((newer, older)) = ring.split_at_mut_checked(oldest) else { return };
        let (head, tail) = points.as_flattened().split_at_checked(older.len()).unwrap_or_default();
        older.iter_mut().zip(head).for_each(|(out, x)| *out += x);
        newer.iter_mut().zip(tail).for_each(|(out, x)| *out += x);
    }

    /// Multiplies a frame with its window, even and odd samples with twice these numbers too. w_{n + L/2} = 1 - w_n.
    #[inline(never)]
    fn window(&self, points: &mut [[f32; 2]], halves: [f32; 2]) {
        let quarter = self.twiddles.len() / 2;
        let Some((early, late)) = points.split_at_mut_checked(quarter) else { return };
        for ((early, late), &[even, odd]) in early.iter_mut().zip(late).zip(self.twiddles.as_chunks().0) {
            let cosines = [halves[0] * even[0], halves[1] * odd[0]];
            *early = [early[0] * (halves[0] - cosines[0]), early[1] * (halves[1] - cosines[1])];
            *late = [late[0] * (halves[0] + cosines[0]), late[1] * (halves[1] + cosines[1])];
        }
    }

    /// Divides a frame by what the squares of two windows, half a frame apart, sum to.
    fn even_out(&self, points: &mut [[f32; 2]]) {
        let quarter = self.twiddles.len() / 2;
        let Some((early, late)) = points.split_at_mut_checked(quarter) else { return };
        for ((early, late), rotations) in early.iter_mut().zip(late).zip(self.twiddles.as_chunks::<2>().0) {
            let [even, odd] = rotations.map(|[cos, _]| 1.0 / (0.5 + 0.5 * cos * cos));
            *early = [early[0] * even, early[1] * odd];
            *late = [late[0] * even, late[1] * odd];
        }
    }
}

/// Entry 0, pairs of entries k and M - k, and entry M/2.
#[inline(always)]
#[allow(clippy::type_complexity)]
fn ends(
    points: &mut [[f32; 2]],
) -> Option<(&mut [f32; 2], impl Iterator<Item = (&mut [f32; 2], &mut [f32; 2])>, &mut [f32; 2])> {
    let (low, high) = points.split_at_mut_checked(points.len() / 2)?;
    let ((first, low), (middle, high)) = (low.split_first_mut()?, high.split_first_mut()?);
    Some((first, low.iter_mut().zip(high.iter_mut().rev()), middle))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::numeric::rng::Rng;
    use std::vec;
    use std::vec::Vec;

    fn noise(len: usize) -> Vec<f32> {
        let mut rng = Rng::new(len as u64);
        (0..len).map(|_| rng.normal::<f32>()).collect()
    }

    #[test]
    fn as_defined() {
        for length in [16, 64, 256, 1024] {
            let mut table = vec![0.0; Stft::table_len(length)];
            Stft::prepare(&mut table);
            let (samples, oldest) = (noise(length), length / 4);
            let mut spectrum = vec![[0.0; 2]; Stft::bins(length)];
            Stft::over(&table).forward(&samples, oldest, &mut spectrum);
            for (k, found) in spectrum.iter().enumerate() {
                let (mut re, mut im) = (0.0, 0.0);
                for n in 0..length {
                    let turn = core::f64::consts::TAU / length as f64;
                    let x =
                        f64::from(samples[(n + oldest) % length]) * 0.5 * (1.0 - libm::cos(turn * n as f64));
                    let angle = turn * ((k * n) % length) as f64;
                    re += x * libm::cos(angle);
                    im -= x * libm::sin(angle);
                }
                // Eight to ten stages of rounding, on numbers of the size of the root of L.
                let bound = 1e-6 * libm::sqrt(length as f64) + 4e-7 * (re.abs() + im.abs());
                let off = (f64::from(found[0]) - re).abs().max((f64::from(found[1]) - im).abs());
                assert!(off < bound, "{length}: bin {k} is {found:?}, not {re} {im}");
            }
        }
    }

    #[test]
    fn what_is_not_changed_comes_back() {
        for (length, overlap) in [(16, 4), (64, 8), (512, 2), (1024, 4), (1024, 8)] {
            let hop = length / overlap;
            let mut table = vec![0.0; Stft::table_len(length)];
            Stft::prepare(&mut table);
            let stft = Stft::over(&table);
            let samples = noise(4 * length);
            let mut back = vec![0.0; samples.len()];
            let mut spectrum = vec![[0.0; 2]; Stft::bins(length)];
            for start in (0..=samples.len() - length).step_by(hop) {
                // In a ring a frame may begin anywhere.
                let oldest = start % length;
                let mut ring = samples[start..start + length].to_vec();
                ring.rotate_right(oldest);
                stft.forward(&ring, oldest, &mut spectrum);
                let mut out = vec![0.0; length];
                stft.inverse(&mut spectrum, hop, &mut out, oldest);
                out.rotate_left(oldest);
                back[start..start + length].iter_mut().zip(&out).for_each(|(back, out)| *back += out);
            }
            for i in length..samples.len() - length {
                let off = (back[i] - samples[i]).abs();
                assert!(off < 3e-6, "{length}/{hop}: {i} is {} not {}", back[i], samples[i]);
            }
        }
    }
}
