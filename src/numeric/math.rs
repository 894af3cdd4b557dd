//! Scalars: the two precisions of inference, and the only callers of exp, ln and sqrt.
//!
//! The device computes in `f32`, the trainer in `f64`, with the same code. Additions, products and
//! divisions are IEEE operations and never fused, and the transcendental functions come from `libm`
//! (or, by feature, `micromath`), not from the platform. So the same blob and the same sample give
//! the same bits on every target.

use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point number that inference can run in: [`f32`] or [`f64`].
///
/// ```
/// use spikelet::math::Real;
/// assert_eq!(<f32 as Real>::ln(<f32 as Real>::exp(2.0)), 2.0);
/// ```
pub trait Real:
    sealed::Sealed
    + Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + core::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 1/2.
    const HALF: Self;
    /// A latent whose best explanation gains more nats than this makes the plain log joints lose
    /// digits that matter (they are differences of numbers this large), so the posterior is then
    /// computed around a reference state. Rounding errors stay near 2^8 x 2^-24 = 1.5e-5 nats in
    /// `f32` and 2^20 x 2^-53 = 1e-10 nats in `f64`.
    const REFINE_ABOVE: Self;
    /// Weights whose sum is below 2 to minus this power of the total are left out.
    const WEIGHT_BITS: u32;
    /// Not a number.
    const NAN: Self;
    /// The log joint of a state that cannot be.
    const IMPOSSIBLE: Self;
    /// What differences of numbers about 1 may be off by.
    const ROUNDING: Self;
    /// How many times [`Real::ROUNDING`] of a number must be left of it to be known well enough.
    const RESOLVED: Self;
    /// Nats below the best state that a search goes at most: weights are still numbers there.
    const FARTHEST: Self;
    /// More nats than half of the logarithm of a determinant's change is, where numbers are in range.
    const FARTHEST_RATIO: Self;
    /// Nats below the best state at which a state does not show in any sum.
    const NEGLIGIBLE: Self;
    /// Nats a state may rise above the anchor of the log-sum-exp before the sums are rescaled;
    /// its exponential is far from overflow in either precision.
    const HEADROOM: Self;

    /// Splits a number into two halves of its digits when multiplied with it (Dekker).
    const SPLITTER: Self;

    /// Coefficients of the normal distribution's functions.
    #[doc(hidden)]
    const TABLES: &'static crate::numeric::normal::Tables<Self>;

    /// Uniform on (0, 1), both ends excluded, from 64 random bits: the middle of the interval that the first digits after
    /// the leading zeros leave open. So small numbers have as many digits as others, down to 2^-64.
    fn unit(bits: u64) -> Self;
    /// Rounds to this precision.
    fn from_f64(value: f64) -> Self;
    /// Widens (exactly).
    fn to_f64(self) -> f64;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// [`Real::exp`] of a number between -80 and 80.
    fn exp_in_range(self) -> Self {
        self.exp()
    }
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// ln of a positive number to about 0.005: from its exponent and a parabola through its digits. For the order of gains in a
    /// search, where it costs a fifth of [`Real::ln`].
    fn ln_rough(self) -> Self;
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
    /// Numbers as single precision, if they are.
    #[doc(hidden)]
    fn single(numbers: &[Self]) -> Option<&[f32]>;
    /// [`Real::single`], to write.
    #[doc(hidden)]
    fn single_mut(numbers: &mut [Self]) -> Option<&mut [f32]>;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// So many bits in nats.
    fn nats(bits: u32) -> Self;

    /// The larger of the two; `self` when `other` is NaN.
    fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const HALF: Self = 0.5;
    const REFINE_ABOVE: Self = 256.0;
    const WEIGHT_BITS: u32 = 25; // half a rounding unit
    const NAN: Self = f32::NAN;
    const IMPOSSIBLE: Self = f32::NEG_INFINITY;
    const ROUNDING: Self = 2.4e-7;
    const RESOLVED: Self = 64.0; // to a percent
    const FARTHEST: Self = 60.0;
    const FARTHEST_RATIO: Self = 20.0;
    const NEGLIGIBLE: Self = -18.0;
    const HEADROOM: Self = 40.0;
    const SPLITTER: Self = 4097.0; // 2^12 + 1
    const TABLES: &'static crate::numeric::normal::Tables<Self> = &crate::numeric::normal::SINGLE;

    fn unit(bits: u64) -> Self {
        // The lowest bit ends the zeros. 23 digits and a half one are 24, all that fit.
        let zeros = (bits | 1).leading_zeros();
        let digits = ((bits | 1) << zeros >> 41) as u32;
        (digits as f32 + 0.5) * f32::from_bits((127 - 23 - zeros) << 23)
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[cfg(not(feature = "micromath"))]
    fn exp(self) -> Self {
        super::exp::exp_f32(self)
    }
    #[cfg(not(feature = "micromath"))]
    #[inline(always)]
    fn exp_in_range(self) -> Self {
        super::exp::exp_f32_in_range(self)
    }
    #[cfg(not(feature = "micromath"))]
    fn ln(self) -> Self {
        libm::logf(self)
    }
    #[cfg(feature = "micromath")]
    fn exp(self) -> Self {
        // micromath wraps around below the smallest normal number.
        if self < -87.0 { 0.0 } else { micromath::F32(self).exp().0 }
    }
    #[cfg(feature = "micromath")]
    fn ln(self) -> Self {
        micromath::F32(self).ln().0
    }
    fn sqrt(self) -> Self {
        super::sqrt::sqrt_f32(self)
    }
    fn nats(bits: u32) -> Self {
        bits as f32 * core::f32::consts::LN_2
    }
    #[inline(always)]
    fn ln_rough(self) -> Self {
        let bits = self.to_bits();
        // x = 2^e m, 1 <= m < 2, and log2 m is about (m - 1) (1.345 - 0.345 (m - 1)), no more than 0.009 off.
        let (e, part) = ((bits >> 23) as i32 - 127, f32::from_bits(bits & 0x7f_ffff | 0x3f80_0000) - 1.0);
        (e as f32 + part * (1.345 - 0.345 * part)) * core::f32::consts::LN_2
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
    fn single(numbers: &[Self]) -> Option<&[f32]> {
        Some(numbers)
    }
    fn single_mut(numbers: &mut [Self]) -> Option<&mut [f32]> {
        Some(numbers)
    }
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const HALF: Self = 0.5;
    const REFINE_ABOVE: Self = 1_048_576.0;
    const WEIGHT_BITS: u32 = 44; // 6e-14, as much as rounding errors add up to
    const NAN: Self = f64::NAN;
    const IMPOSSIBLE: Self = f64::NEG_INFINITY;
    const ROUNDING: Self = 9e-16;
    const RESOLVED: Self = 1e6; // to a millionth
    const FARTHEST: Self = 600.0;
    const FARTHEST_RATIO: Self = 90.0;
    const NEGLIGIBLE: Self = -36.0;
    const HEADROOM: Self = 40.0;
    const SPLITTER: Self = 134_217_729.0; // 2^27 + 1
    const TABLES: &'static crate::numeric::normal::Tables<Self> = &crate::numeric::normal::DOUBLE;

    fn unit(bits: u64) -> Self {
        let zeros = (bits | 1).leading_zeros();
        let digits = (bits | 1) << zeros >> 12;
        (digits as f64 + 0.5) * f64::from_bits(u64::from(1023 - 52 - zeros) << 52)
    }

    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn exp(self) -> Self {
        super::exp::exp_f64(self)
    }
    #[inline(always)]
    fn exp_in_range(self) -> Self {
        super::exp::exp_f64_in_range(self)
    }
    fn ln(self) -> Self {
        libm::log(self)
    }
    fn sqrt(self) -> Self {
        libm::sqrt(self)
    }
    fn nats(bits: u32) -> Self {
        f64::from(bits) * core::f64::consts::LN_2
    }
    fn ln_rough(self) -> Self {
        let bits = self.to_bits();
        let part = f64::from_bits(bits & 0xf_ffff_ffff_ffff | 0x3ff0_0000_0000_0000) - 1.0;
        let e = (bits >> 52) as i32 - 1023;
        (f64::from(e) + part * (1.345 - 0.345 * part)) * core::f64::consts::LN_2
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
    fn single(_: &[Self]) -> Option<&[f32]> {
        None
    }
    fn single_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

/// A sum of products in double-word arithmetic, rounded once at the end.
///
/// Products are split exactly into two numbers and sums carry their rounding error along (Dekker 1971,
/// Knuth's two-sum), about 25 operations a term: for differences of large numbers only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accurate<T> {
    sum: T,
    error: T,
}

impl<T: Real> Accurate<T> {
    pub fn new(start: T) -> Self {
        Self { sum: start, error: T::ZERO }
    }

    /// Subtracts a x b.
    pub fn subtract_product(&mut self, a: T, b: T) {
        let halves = |x: T| {
            let big = x * T::SPLITTER;
            let high = big - (big - x);
            (high, x - high)
        };
        let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
        let product = a * b;
        let product_error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
        let sum = self.sum - product;
        let back = sum - self.sum;
        let sum_error = (self.sum - (sum - back)) - (product + back);
        self.sum = sum;
        self.error += sum_error - product_error;
    }

    pub fn value(self) -> T {
        self.sum + self.error
    }
}

/// Binomial coefficient, or `u64::MAX` when it does not fit.
///
/// ```
/// assert_eq!(spikelet::math::binomial(10, 3), 120);
/// ```
#[inline(never)]
pub const fn binomial(n: u64, k: u64) -> u64 {
    if k > n {
        return 0;
    }
    let (mut c, mut i) = (1u64, 1);
    while i <= k {
        // c (n - i + 1) / i is exact: c is C(n, i - 1), so the product is i C(n, i).
        c = match c.checked_mul(n - i + 1) {
            Some(product) if i <= 0xffff => divided(product, i as u32),
            _ => return u64::MAX,
        };
        i += 1;
    }
    c
}

/// Divides by a number of 16 bits, digit by digit: dividing by 64 bits would bring 700 bytes of run time on small cores.
const fn divided(mut number: u64, by: u32) -> u64 {
    let (mut rest, mut digits) = (0, 4);
    while digits > 0 {
        number = number.rotate_left(16);
        let part = rest << 16 | number as u32 & 0xffff;
        number = number & !0xffff | (part / by) as u64;
        rest = part % by;
        digits -= 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomials_are_pascals_triangle() {
        for n in 1..40 {
            for k in 1..=n {
                assert_eq!(binomial(n, k), binomial(n - 1, k - 1) + binomial(n - 1, k));
            }
        }
        assert_eq!(binomial(200, 100), u64::MAX);
        assert_eq!(binomial(60, 30), 118_264_581_564_861_424);
        assert_eq!(binomial(1 << 32, 2), ((1 << 32) - 1) << 31);
    }

    #[test]
    fn accurate_sums_keep_what_cancels() {
        // 1/3 as two f32 factors apart: the plain difference keeps no digit of the rest.
        let mut sum = Accurate::new(1.0e6f32);
        sum.subtract_product(1000.0, 999.999_94);
        sum.subtract_product(1.0e-3, 3.0);
        let exact = 1.0e6 - 1000.0 * f64::from(999.999_94f32) - f64::from(1.0e-3f32) * 3.0;
        // Rounded once at the end: half a unit in the last place of 0.06.
        assert!(
            (f64::from(sum.value()) - exact).abs() < 2e-9 + exact.abs() * 6e-8,
            "{} {exact}",
            sum.value()
        );
    }

    #[test]
    fn rough_logarithms_are_near() {
        for x in [1e-30f32, 0.3, 0.5, 0.999, 1.0, 1.2, 1.5, 1.8, 7e20] {
            let exact = Real::ln(f64::from(x));
            assert!((f64::from(x.ln_rough()) - exact).abs() < 0.007, "{x}");
            assert!((f64::from(x).ln_rough() - exact).abs() < 0.007, "{x}");
        }
    }
}
