//! The one loop whose work grows with D H: products of a sample with a packed dictionary.
//!
//! Each kernel is written once in plain Rust, the portable reference. On Cortex-M with a float unit, or with
//! the DSP extension, the same sums are a few lines of assembly (`cortex_m`, `dsp`), which reach the same bits: `tests/cost --projection` counts their instructions and
//! compares them with the reference on random shapes.
//!
//! **Floats.** b_h = sum_d W_dh u_d, from dimension 0 up, every product and every sum rounded: [`PANEL`] latents side by
//! side, so that one load of u_d serves a whole panel. Vector units and single accumulators reach the same bits.
//! Nothing is fused: VMLA rounds the product before it adds, VFMA would not.
//!
//! **Integers.** Exact, so that their order does not matter: see [`integer`].

#[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
mod cortex_m;
#[cfg(spikelet_dsp)]
mod dsp;
pub mod integer;

use crate::math::Real;
use crate::model::PANEL;

/// What differs between precisions in the kernels; part of [`crate::math::Real`], which it seals.
pub trait Kernel: Copy + Sized {
    /// b = W^T u for all latents, W in panels of [`PANEL`].
    #[doc(hidden)]
    fn project(dictionary: &[Self], weighted: &[Self], projection: &mut [Self]);

    /// Sums of integers, in the first words of `projection`, to numbers, times `scales` and `factor`.
    #[doc(hidden)]
    fn scale_sums(projection: &mut [Self], scales: &[Self], factor: Self);

    /// A number from an integer, rounded.
    fn from_i32(value: i32) -> Self;
    /// The nearest integer, ties to even, where that has 16 bits.
    fn nearest(self) -> i16;
    /// e with 2^e <= x < 2^(e + 1) of a positive number x; as little as any for zero and subnormal numbers.
    fn exponent(self) -> i32;
    /// 2^e where that is a normal number.
    fn power_of_two(exponent: i32) -> Self;
    /// An integer m and an exponent e: m 2^(e - 30), rounded to 24 digits. |m| is in [2^30, 2^31), or zero where a number
    /// is subnormal.
    fn parts(self) -> (i32, i32);
    /// The number with such parts, rounded towards zero where it has fewer digits than they; zero where it would be subnormal.
    fn of_parts(mantissa: i32, exponent: i32) -> Self;
}

impl Kernel for f32 {
    fn project(dictionary: &[Self], weighted: &[Self], projection: &mut [Self]) {
        #[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
        cortex_m::project(dictionary, weighted, projection);
        #[cfg(not(all(target_arch = "arm", target_abi = "eabihf")))]
        portable(dictionary, weighted, projection);
    }
    fn scale_sums(projection: &mut [Self], scales: &[Self], factor: Self) {
        for (b, &scale) in projection.iter_mut().zip(scales) {
            *b = b.to_bits() as i32 as f32 * (scale * factor);
        }
    }
    fn from_i32(value: i32) -> Self {
        value as f32
    }
    fn nearest(self) -> i16 {
        // The sum has no room for fractions: the integer is in its lowest bits.
        (self + 12_582_912.0).to_bits() as i16
    }
    fn exponent(self) -> i32 {
        (self.to_bits() >> 23) as i32 - 127
    }
    fn power_of_two(exponent: i32) -> Self {
        Self::from_bits(((exponent + 127) as u32) << 23)
    }
    fn parts(self) -> (i32, i32) {
        let bits = self.to_bits();
        let exponent = (bits >> 23 & 0xff) as i32;
        let magnitude = if exponent > 0 { (bits << 7 | 1 << 30) & !(1 << 31) } else { 0 } as i32;
        (if bits >> 31 == 0 { magnitude } else { -magnitude }, exponent - 127)
    }
    fn of_parts(mantissa: i32, exponent: i32) -> Self {
        if mantissa == 0 || exponent < -126 {
            return 0.0;
        }
        let digits = (mantissa.unsigned_abs() >> 7) & 0x7f_ffff;
        Self::from_bits((mantissa as u32 & 1 << 31) | ((exponent.min(127) + 127) as u32) << 23 | digits)
    }
}

impl Kernel for f64 {
    fn project(dictionary: &[Self], weighted: &[Self], projection: &mut [Self]) {
        portable(dictionary, weighted, projection);
    }
    fn scale_sums(projection: &mut [Self], scales: &[Self], factor: Self) {
        // From the last on, since a number takes the place of two sums.
        for (latent, &scale) in scales.iter().enumerate().rev() {
            let sum = integer::words(projection).get(latent).copied().unwrap_or_default();
            crate::slices::set(projection, latent, f64::from(sum as i32) * (scale * factor));
        }
    }
    fn from_i32(value: i32) -> Self {
        f64::from(value)
    }
    fn nearest(self) -> i16 {
        // The sum has no room for fractions: the integer is in its lowest bits.
        (self + 6_755_399_441_055_744.0).to_bits() as i16
    }
    fn exponent(self) -> i32 {
        (self.to_bits() >> 52) as i32 - 1023
    }
    fn power_of_two(exponent: i32) -> Self {
        Self::from_bits(((exponent + 1023) as u64) << 52)
    }
    fn parts(self) -> (i32, i32) {
        (self as f32).parts()
    }
    fn of_parts(mantissa: i32, exponent: i32) -> Self {
        if mantissa == 0 {
            0.0
        } else {
            f64::from(mantissa) * Self::power_of_two(exponent.clamp(-900, 900) - 30)
        }
    }
}

/// The panels of a packed matrix with `dims` rows. (`chunks_exact` with a length only known at run
/// time would bring a panic path.)
pub(crate) fn panels<T>(packed: &[T], dims: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = packed;
    core::iter::from_fn(move || {
        let (panel, tail) = rest.split_at_checked(dims * PANEL)?;
        rest = tail;
        Some(panel)
    })
}

/// The reference of [`Kernel::project`].
pub fn portable<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    for (panel, b) in panels(dictionary, weighted.len()).zip(projection.chunks_mut(PANEL)) {
        let mut sums = [T::ZERO; PANEL];
        let [s0, s1, s2, s3, s4, s5, s6, s7] = &mut sums;
        // Written out, so that the eight sums stay in registers also when optimising for size.
        for (w, &u) in panel.chunks_exact(PANEL).zip(weighted) {
            if let &[w0, w1, w2, w3, w4, w5, w6, w7] = w {
                *s0 += w0 * u;
                *s1 += w1 * u;
                *s2 += w2 * u;
                *s3 += w3 * u;
                *s4 += w4 * u;
                *s5 += w5 * u;
                *s6 += w6 * u;
                *s7 += w7 * u;
            }
        }
        for (b, sum) in b.iter_mut().zip(sums) {
            *b = sum;
        }
    }
}
