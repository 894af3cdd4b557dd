//! Numbers of fixed point: what processors without a float unit are quick at, and the same on every core.
//!
//! "Q22" is an integer that counts 2^-22. Shifts and upper halves of products round down. Tables are computed when the
//! program is built; tests below hold all functions against floats.

use crate::math::Real;

/// Digits of [`exp2`]'s argument behind the point.
pub(crate) const LOG_DIGITS: u32 = 13;

/// The upper half of a product, rounded down.
#[inline(always)]
pub(crate) fn mul_high(a: i32, b: i32) -> i32 {
    #[cfg(spikelet_narrow)]
    return narrow::mul_high(a, b);
    #[cfg(not(spikelet_narrow))]
    return ((i64::from(a) * i64::from(b)) >> 32) as i32;
}

/// A whole product.
#[inline(always)]
pub(crate) fn mul_wide(a: u32, b: u32) -> u64 {
    #[cfg(spikelet_narrow)]
    return narrow::mul_wide(a, b);
    #[cfg(not(spikelet_narrow))]
    return u64::from(a) * u64::from(b);
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
}

/// The square of a number.
#[inline(always)]
pub(crate) fn square(a: i32) -> u64 {
    mul_wide(a.unsigned_abs(), a.unsigned_abs())
}

/// A product with a number that has a sign, which the sum can hold.
#[inline(always)]
pub(crate) fn add_product(sum: &mut i64, weight: u32, a: i32) {
    let product = mul_wide(weight, a.unsigned_abs()) as i64;
    *sum = if a < 0 { sum.wrapping_sub(product) } else { sum.wrapping_add(product) };
}

/// A number as a mantissa times 2 to the power of an exponent less 30.
#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    pub mantissa: i32,
    pub exponent: i32,
}

impl Scaled {
    /// Its mantissa is in [2^30, 2^31), or zero.
    pub fn new<T: Real>(value: T) -> Self {
        let (mantissa, exponent) = value.parts();
        Self { mantissa, exponent }
    }

    /// The product; its mantissa is four times smaller at most.
    pub fn times(self, other: Self) -> Self {
        Self {
            mantissa: mul_high(self.mantissa, other.mantissa),
            exponent: self.exponent + other.exponent + 2,
        }
    }

    /// With so many digits behind the point, as far as there is room.
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

    /// 1 / sqrt of a positive number whose mantissa is at least 2^30.
    pub fn inverse_root(self) -> Self {
        let is_odd = self.exponent & 1;
        let mantissa = inverse_root((self.mantissa as u32) << is_odd);
        Self { mantissa, exponent: -(self.exponent >> 1) - 1 }
    }

    /// As a float.
    pub fn to_real<T: Real>(self) -> T {
        T::from_i32(self.mantissa) * T::power_of_two((self.exponent - 30).clamp(-120, 120))
    }
}

/// An integer as a float, times 2 to the power of an exponent.
pub(crate) fn to_real<T: Real>(value: i64, exponent: i32) -> T {
    let digits = 64 - value.unsigned_abs().leading_zeros() as i32;
    let shift = (digits - 31).max(0);
    T::from_i32((value >> shift) as i32) * T::power_of_two(shift + exponent)
}

/// Parts that [1, 4) is cut into for a first guess of roots, and [0, 1) for one of powers.
const ROOTS: usize = 96;
const POWERS: usize = 32;

/// 1 / sqrt(1 + i / 32), Q16 where that has room.
const ROOT_TABLE: [u16; ROOTS + 1] = {
    let mut table = [0; ROOTS + 1];
    let mut i = 0;
    while i <= ROOTS {
        let x = 1.0 + i as f64 / 32.0;
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
const POWER_TABLE: [i32; POWERS] = {
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
#[inline(always)]
pub(crate) fn inverse_root(x: u32) -> i32 {
    let part = (x >> 25).wrapping_sub(32) as usize;
    let between = (x >> 9) & 0xffff;
    let entry = |i: usize| u32::from(ROOT_TABLE.get(i).copied().unwrap_or_default());
    let (from, to) = (entry(part), entry(part + 1));
    let guess = from.wrapping_sub(from.wrapping_sub(to).wrapping_mul(between) >> 16);
    // x guess^2 - 1, Q27, below 2^-12: the step has 31 bits.
    let rest = mul_high((x >> 1) as i32, (guess.wrapping_mul(guess) >> 2) as i32).wrapping_sub(1 << 27);
    let step = (guess as i32).wrapping_mul(rest) >> 13;
    ((guess << 15).wrapping_sub(step as u32)).min(i32::MAX as u32) as i32
}

/// 2^-y, Q26, of y >= 0 with [`LOG_DIGITS`] digits; its integer part is left to a shift. Within 2^-18 of it.
#[inline(always)]
pub(crate) fn exp2(y: i32) -> i32 {
    const LN_2: u32 = 5678; // Q13
    let fraction = y as u32 & ((1 << LOG_DIGITS) - 1);
    let entry = POWER_TABLE.get((fraction >> 8) as usize).copied().unwrap_or_default();
    // 1 - x + x^2 / 2 with x in Q26, below 1/46.
    let x = (fraction & 255) * LN_2;
    let half_square = ((x >> 6) * (x >> 6)) >> 11;
    mul_high(entry, ((1 << 30) - (x << 4) + half_square) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn products_of_halves_are_products() {
        let mut rng = Rng::new(1);
        let edges = [0, 1, -1, i32::MAX, i32::MIN, 0xffff, -0xffff, 0x10000, -0x10000];
        let mut word = || (u32::from(rng.below(0xffff)) << 16 | u32::from(rng.below(0xffff))) as i32;
        let random = (0..100_000).map(|_| (word(), word()));
        for (a, b) in edges.iter().flat_map(|&a| edges.map(|b| (a, b))).chain(random) {
            assert_eq!(narrow::mul_high(a, b), ((i64::from(a) * i64::from(b)) >> 32) as i32, "{a} {b}");
            let (a, b) = (a as u32, b as u32);
            assert_eq!(narrow::mul_wide(a, b), u64::from(a) * u64::from(b), "{a} {b}");
        }
    }

    #[test]
    fn roots_are_near() {
        for x in (1 << 30..=u32::MAX).step_by(1009).chain([u32::MAX]) {
            let exact = 2.0 / libm::sqrt(f64::from(x) / 1073741824.0);
            let found = f64::from(inverse_root(x)) / 1073741824.0;
            assert!((found / exact - 1.0).abs() < 1.0 / 67_108_864.0, "{x}: {found} {exact}");
            assert!(inverse_root(x) >= 1 << 30);
        }
    }

    #[test]
    fn powers_are_near() {
        for y in 0..1 << LOG_DIGITS {
            let exact = libm::exp2(-f64::from(y) / 8192.0);
            let found = f64::from(exp2(y)) / 67_108_864.0;
            assert!((found / exact - 1.0).abs() < 1.0 / 262_144.0, "{y}: {found} {exact}");
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
        assert_eq!(to_real::<f64>(-5 << 40, -40), -5.0);
        let (x, root) = (Scaled::new(7.3f64), Scaled::new(7.3f64).inverse_root());
        assert!((x.to_real::<f64>() * root.to_real::<f64>() * root.to_real::<f64>() - 1.0).abs() < 1e-7);
    }
}
