//! Fixed-point arithmetic. "Q22" is an integer in units of 2^-22. Shifts and upper halves of products round down. Tables are
//! computed when the program is built; tests below compare all functions with floats.

use super::LOG_DIGITS;
use crate::numeric::math::Real;

/// The upper half of a product, rounded down.
#[inline(always)]
pub(super) fn mul_high(a: i32, b: i32) -> i32 {
    #[cfg(spikelet_narrow)]
    return narrow::mul_high(a, b);
    #[cfg(not(spikelet_narrow))]
    return ((i64::from(a) * i64::from(b)) >> 32) as i32;
}

/// A whole product.
#[inline(always)]
pub(super) fn mul_wide(a: u32, b: u32) -> u64 {
    #[cfg(spikelet_narrow)]
    return narrow::mul_wide(a, b);
    #[cfg(not(spikelet_narrow))]
    return u64::from(a) * u64::from(b);
}

/// [`mul_wide`] of numbers with signs.
#[inline(always)]
pub(super) fn mul_wide_signed(a: i32, b: i32) -> i64 {
    #[cfg(spikelet_narrow)]
    return narrow::mul_wide_signed(a, b);
    #[cfg(not(spikelet_narrow))]
    return i64::from(a) * i64::from(b);
}

/// The same from products that fit into a word, all that a Cortex-M0 has.
#[cfg(any(spikelet_narrow, test))]
mod narrow {
    #[inline(always)]
    pub fn mul_high(a: i32, b: i32) -> i32 {
        let (a_low, a_high, b_low, b_high) = (a & 0xffff, a >> 16, b & 0xffff, b >> 16);
        let low = (a_low as u32).wrapping_mul(b_low as u32) >> 16;
        let middle = a_high.wrapping_mul(b_low).wrapping_add(low as i32);
        let other = a_low.wrapping_mul(b_high).wrapping_add(middle & 0xffff);
        a_high.wrapping_mul(b_high).wrapping_add(middle >> 16).wrapping_add(other >> 16)
    }

    // A call of its own: it is too long to stand in every place.
    #[inline(never)]
    pub fn mul_wide(a: u32, b: u32) -> u64 {
        let (a_low, a_high, b_low, b_high) = (a & 0xffff, a >> 16, b & 0xffff, b >> 16);
        let low = a_low.wrapping_mul(b_low);
        let middle = a_high.wrapping_mul(b_low).wrapping_add(low >> 16);
        let other = a_low.wrapping_mul(b_high).wrapping_add(middle & 0xffff);
        let high = a_high.wrapping_mul(b_high).wrapping_add(middle >> 16).wrapping_add(other >> 16);
        u64::from(high) << 32 | u64::from(other << 16 | low & 0xffff)
    }

    /// Of a core that has no instruction for it.
    #[inline(never)]
    pub fn leading_zeros(x: u32) -> i32 {
        /// Of four digits.
        static ZEROS: [u8; 16] = [4, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let (mut x, mut zeros) = (x, 0);
        if x >> 16 == 0 {
            (x, zeros) = (x << 16, 16);
        }
        if x >> 24 == 0 {
            (x, zeros) = (x << 8, zeros + 8);
        }
        if x >> 28 == 0 {
            (x, zeros) = (x << 4, zeros + 4);
        }
        zeros + i32::from(ZEROS[(x >> 28) as usize])
    }

    // Most numbers are small, and then one product does.
    #[inline(always)]
    pub fn square(a: i32) -> u64 {
        let a = a.unsigned_abs();
        if a < 1 << 16 { u64::from(a * a) } else { mul_wide(a, a) }
    }

    #[inline(always)]
    pub fn mul_wide_signed(a: i32, b: i32) -> i64 {
        let product = mul_wide(a.unsigned_abs(), b.unsigned_abs()) as i64;
        if a ^ b < 0 { -product } else { product }
    }
}

/// The square of a number with 16 digits behind the point, with 14.
#[inline(always)]
pub(super) fn square(a: i32) -> u64 {
    #[cfg(spikelet_narrow)]
    return narrow::square(a >> 2) >> 14;
    #[cfg(not(spikelet_narrow))]
    return (i64::from(a >> 2) * i64::from(a >> 2)) as u64 >> 14;
}

/// Zeros before the first digit.
#[inline(always)]
fn leading_zeros(x: u32) -> i32 {
    #[cfg(spikelet_narrow)]
    return narrow::leading_zeros(x);
    #[cfg(not(spikelet_narrow))]
    return x.leading_zeros() as i32;
}

/// A number as a mantissa times 2 to the power of an exponent less 30: a float with cheap products.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub mantissa: i32,
    pub exponent: i32,
}

impl Scaled {
    /// 1.
    pub const ONE: Self = Self { mantissa: 1 << 30, exponent: 0 };

    /// Its mantissa is in [2^30, 2^31), or zero.
    #[inline(never)]
    pub fn new<T: Real>(value: T) -> Self {
        let (mantissa, exponent) = value.parts();
        Self { mantissa, exponent }
    }

    /// An integer with so many digits behind the point.
    #[inline(never)]
    pub fn of(value: i32, digits: i32) -> Self {
        let shift = leading_zeros(value.unsigned_abs()) - 1;
        let mantissa = if shift < 0 { value >> 1 } else { value << shift.min(30) };
        Self { mantissa, exponent: 30 - shift - digits }
    }

    /// [`Scaled::of`], of two words.
    #[inline(never)]
    pub fn of_wide(value: i64, digits: i32) -> Self {
        let size = value.unsigned_abs();
        let (high, low) = ((size >> 32) as u32, size as u32);
        // What the lower word is shifted by to leave one with a sign.
        let more = if high != 0 { 33 - leading_zeros(high) } else { (low >> 31) as i32 };
        match more {
            1.. => Self { mantissa: (value >> more) as i32, exponent: 30 - digits + more },
            _ => Self::of(value as i32, digits),
        }
    }

    /// The same with a mantissa of at least 2^30: products take digits off it.
    #[inline(never)]
    pub fn normal(self) -> Self {
        Self::of(self.mantissa, 30 - self.exponent)
    }

    /// The product; its mantissa is four times smaller at most.
    #[inline(never)]
    pub fn times(self, other: Self) -> Self {
        Self {
            mantissa: mul_high(self.mantissa, other.mantissa),
            exponent: self.exponent + other.exponent + 2,
        }
    }

    /// The sum.
    #[inline(never)]
    pub fn plus(self, other: Self) -> Self {
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = (large.exponent - small.exponent).min(30);
        let mantissa = (large.mantissa >> 1).wrapping_add(small.mantissa >> 1 >> shift);
        Self { mantissa, exponent: large.exponent + 1 }
    }

    /// The difference, or zero if it is negative.
    pub fn less(self, other: Self) -> Self {
        let Self { mantissa, exponent } = self.plus(Self { mantissa: -other.mantissa, ..other });
        Self { mantissa: mantissa.max(0), exponent }
    }

    /// With so many digits behind the point, as far as there is room.
    #[inline(never)]
    pub fn to_fixed(self, digits: i32) -> i32 {
        let shift = self.exponent + digits - 30;
        if shift <= 0 {
            return self.mantissa >> (-shift).min(31);
        }
        let most = if shift < 31 { i32::MAX >> shift } else { 0 };
        if self.mantissa.unsigned_abs() <= most as u32 {
            self.mantissa << shift.min(31)
        } else {
            i32::MAX ^ (self.mantissa >> 31)
        }
    }

    /// The same in two words.
    pub fn to_wide(self, digits: i32) -> i64 {
        let (wide, shift) = (i64::from(self.mantissa), self.exponent + digits - 30);
        if shift < 0 { wide >> (-shift).min(63) } else { wide << shift.min(32) }
    }

    /// 1 / sqrt of a positive number whose mantissa is at least 2^30.
    pub fn inverse_root(self) -> Self {
        let is_odd = self.exponent & 1;
        let mantissa = inverse_root((self.mantissa as u32) << is_odd);
        Self { mantissa, exponent: -(self.exponent >> 1) - 1 }
    }

    /// 1 over such a number.
    pub fn inverse(self) -> Self {
        let root = self.inverse_root();
        root.times(root).normal()
    }

    /// As a float.
    #[inline(never)]
    pub fn to_real<T: Real>(self) -> T {
        let Self { mantissa, exponent } = self.normal();
        T::of_parts(mantissa, exponent)
    }
}

/// Parts that [0, 4) is cut into for a first guess of roots, the first quarter unused, and [0, 1) for one of powers.
const ROOTS: usize = 128;
const POWERS: usize = 32;

/// 1 / sqrt(i / 32), Q16 where that has room.
static ROOT_TABLE: [u16; ROOTS + 1] = {
    let mut table = [0; ROOTS + 1];
    let mut i = ROOTS / 4;
    while i <= ROOTS {
        let x = i as f64 / 32.0;
        let (mut root, mut round) = (1.0 / x, 0);
        while round < 8 {
            root *= 1.5 - 0.5 * x * root * root;
            round += 1;
        }
        let entry = root * 65536.0 + 0.5;
        table[i] = if entry >= 65535.0 { 65535 } else { entry as u16 };
        i += 1;
    }
    table
};

/// 2^-(i / 32), Q28.
static POWER_TABLE: [i32; POWERS] = {
    let mut table = [0; POWERS];
    let mut i = 0;
    while i < POWERS {
        let x = -core::f64::consts::LN_2 * i as f64 / 32.0;
        let (mut power, mut term, mut n) = (1.0, 1.0, 1);
        while n < 20 {
            term *= x / n as f64;
            power += term;
            n += 1;
        }
        table[i] = (power * 268_435_456.0 + 0.5) as i32;
        i += 1;
    }
    table
};

/// 2 / sqrt(x) in Q30 of x in [1, 4), Q30: a straight line through two entries of the table, and one step of Newton's.
/// Within 2^-26 of it, and below 2.
#[inline(never)]
pub(super) fn inverse_root(x: u32) -> i32 {
    let (part, between) = ((x >> 25) as usize % ROOTS, (x >> 9) & 0xffff);
    let (from, to) = (u32::from(ROOT_TABLE[part]), u32::from(ROOT_TABLE[part + 1]));
    let guess = from.wrapping_sub(from.wrapping_sub(to).wrapping_mul(between) >> 16);
    // x guess^2 - 1, Q27, below 2^-12: the step has 31 bits.
    let rest = mul_high((x >> 1) as i32, (guess.wrapping_mul(guess) >> 2) as i32).wrapping_sub(1 << 27);
    let step = (guess as i32).wrapping_mul(rest) >> 13;
    ((guess << 15).wrapping_sub(step as u32)).min(i32::MAX as u32) as i32
}

/// 2^-y, Q26, of y >= 0 with [`LOG_DIGITS`] digits; its integer part is left to a shift. Within 2^-18 of it.
#[inline(always)]
pub(super) fn exp2(y: i32) -> i32 {
    const LN_2: u32 = 5678; // Q13
    let fraction = y as u32 & ((1 << LOG_DIGITS) - 1);
    let entry = POWER_TABLE[(fraction >> 8) as usize % POWERS];
    // 1 - x + x^2 / 2 with x in Q26, below 1/46.
    let x = (fraction & 255) * LN_2;
    let half_square = ((x >> 6) * (x >> 6)) >> 11;
    mul_high(entry, ((1 << 30) - (x << 4) + half_square) as i32)
}

/// Parts that [1, 2) is cut into for logarithms.
const LOGS: usize = 64;

/// log2(1 + i / 64), with [`LOG_DIGITS`] digits.
static LOG_TABLE: [u16; LOGS + 1] = {
    let mut table = [0; LOGS + 1];
    let mut i = 0;
    while i <= LOGS {
        // ln((1 + z) / (1 - z)) = 2 (z + z^3 / 3 + ...)
        let z = i as f64 / (i + 2 * LOGS) as f64;
        let (mut sum, mut power, mut n) = (0.0, z, 1);
        while n < 40 {
            sum += power / n as f64;
            power *= z * z;
            n += 2;
        }
        table[i] = (2.0 * sum * core::f64::consts::LOG2_E * (1 << LOG_DIGITS) as f64 + 0.5) as u16;
        i += 1;
    }
    table
};

/// log2 of a mantissa from 1 to 2, Q30, with [`LOG_DIGITS`] digits: a straight line through two entries of the table, within
/// 2^-13 of it.
#[inline(never)]
pub(super) fn log2(mantissa: i32) -> i32 {
    let (part, between) = ((mantissa >> 24) as usize % LOGS, (mantissa >> 8) & 0xffff);
    let (from, to) = (i32::from(LOG_TABLE[part]), i32::from(LOG_TABLE[part + 1]));
    from + (((to - from) * between + 0x8000) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::rng::Rng;

    #[test]
    fn products_of_halves_are_products() {
        let mut rng = Rng::new(1);
        let edges = [0, 1, -1, i32::MAX, i32::MIN, 0xffff, -0xffff, 0x10000, -0x10000];
        let mut word = || (u32::from(rng.below(0xffff)) << 16 | u32::from(rng.below(0xffff))) as i32;
        let random = (0..if cfg!(miri) { 100 } else { 100_000 }).map(|_| (word(), word()));
        for (a, b) in edges.iter().flat_map(|&a| edges.map(|b| (a, b))).chain(random) {
            assert_eq!(narrow::mul_high(a, b), ((i64::from(a) * i64::from(b)) >> 32) as i32, "{a} {b}");
            assert_eq!(narrow::leading_zeros(a as u32), a.leading_zeros() as i32, "{a}");
            assert_eq!(narrow::square(a), (i64::from(a) * i64::from(a)) as u64, "{a}");
            assert_eq!(narrow::mul_wide_signed(a, b), i64::from(a) * i64::from(b), "{a} {b}");
            let (a, b) = (a as u32, b as u32);
            assert_eq!(narrow::mul_wide(a, b), u64::from(a) * u64::from(b), "{a} {b}");
        }
    }

    #[test]
    fn roots_are_near() {
        for x in (1 << 30..=u32::MAX).step_by(if cfg!(miri) { 40_000_003 } else { 1009 }).chain([u32::MAX]) {
            let exact = 2.0 / libm::sqrt(f64::from(x) / 1073741824.0);
            let found = f64::from(inverse_root(x)) / 1073741824.0;
            assert!((found / exact - 1.0).abs() < 1.0 / 67_108_864.0, "{x}: {found} {exact}");
            assert!(inverse_root(x) >= 1 << 30);
        }
    }

    #[test]
    fn powers_are_near() {
        for y in (0..1 << LOG_DIGITS).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let exact = libm::exp2(-f64::from(y) / 8192.0);
            let found = f64::from(exp2(y)) / 67_108_864.0;
            assert!((found / exact - 1.0).abs() < 1.0 / 262_144.0, "{y}: {found} {exact}");
        }
    }

    #[test]
    fn logarithms_are_near() {
        for m in (1 << 30..=i32::MAX).step_by(if cfg!(miri) { 40_000_003 } else { 10_009 }) {
            let exact = libm::log2(f64::from(m) / 1_073_741_824.0);
            assert!((f64::from(log2(m)) / 8192.0 - exact).abs() < 1.5 / 8192.0, "{m}");
        }
    }

    #[test]
    fn floats_come_and_go() {
        for value in [1.0f32, -1.0, 0.3, -1e-6, 1234.5, 3e20, 0.0] {
            assert_eq!(Scaled::new(value).to_real::<f32>(), value);
        }
        assert_eq!(Scaled::new(-2.5f32).to_fixed(4), -40);
        assert_eq!(Scaled::new(-1e9f32).to_fixed(4), i32::MIN);
        assert_eq!(Scaled::new(1e30f32).to_fixed(4), i32::MAX);
        assert_eq!(Scaled::new(1e-30f32).to_fixed(4), 0);
        for (wide, digits) in [(-5i64 << 40, 40), (-5 << 20, 20), (-5, 0), (-5 << 60, 60)] {
            assert_eq!(Scaled::of_wide(wide, digits).to_real::<f64>(), -5.0);
        }
        assert_eq!(Scaled::of(i32::MIN, 31).to_real::<f64>(), -1.0);
        assert_eq!(Scaled::of(0, 7).to_real::<f32>(), 0.0);
        assert_eq!(Scaled::new(1e-30f32).times(Scaled::new(1e-30f32)).to_real::<f32>(), 0.0);
        for (x, y) in [(7.3f64, 0.02), (1e-3, 5e4), (1e9, -3.0)] {
            let (a, b) = (Scaled::new(x), Scaled::new(y));
            assert!((a.inverse().to_real::<f64>() * x - 1.0).abs() < 1e-7);
            assert!((a.times(b).to_real::<f64>() / (x * y) - 1.0).abs() < 1e-7);
            assert!((a.plus(b).to_real::<f64>() / (x + y) - 1.0).abs() < 1e-7);
            let difference = a.less(b).to_real::<f64>();
            assert!((difference - (x - y).max(0.0)).abs() < 1e-7 * (x.abs() + y.abs()));
        }
    }
}
