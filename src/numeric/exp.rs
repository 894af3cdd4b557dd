//! e^x, the only transcendental function that every state needs.
//!
//! x = n ln 2 + r with n an integer and |r| <= ln 2 / 2, so e^x = 2^n e^r. n is found by adding a
//! number so large that the sum is rounded to an integer; ln 2 is subtracted in two parts, the first
//! with so few bits that n times it is exact; e^r = 1 + r + r^2 p(r) with a minimax
//! polynomial p. No table, no division, no branch on the way, only IEEE additions and products:
//! the same bits on every core. Within one unit in the last place (tests below; the polynomials alone are
//! off by 3e-9 and 2e-17).
//!
//! Results below the smallest normal number are zero.

/// e^x in single precision: 5 coefficients, about 20 operations.
#[cfg(any(test, not(feature = "micromath")))]
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    if !(x >= -87.0) {
        return if x < 0.0 { 0.0 } else { x }; // NaN stays
    }
    if x > 88.37 {
        return f32::INFINITY;
    }
    exp_f32_in_range(x)
}

/// [`exp_f32`] of a number that cannot be near the ends of the range, NaN included.
#[cfg(any(test, not(feature = "micromath")))]
#[inline(always)]
pub(crate) fn exp_f32_in_range(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 x 2^23
    const LN_2_HIGH: f32 = f32::from_bits(0x3f31_8000); // 9 digits
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * core::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let p = 0.499_999_93 + r * (0.166_665_2 + r * (0.041_668_39 + r * (0.008_368_745 + r * 0.001_381_456_1)));
    let power = 1.0 + (r + r * r * p);
    // The low digits of `shifted` are n: added in the exponent's place, they multiply by 2^n.
    f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// e^x in double precision: 10 coefficients, in pairs, so that a processor can work on several at once.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    if !(x >= -708.0) {
        return if x < 0.0 { 0.0 } else { x };
    }
    if x > 709.4 {
        return f64::INFINITY;
    }
    exp_f64_in_range(x)
}

/// [`exp_f64`] of a number that cannot be near the ends of the range, NaN included.
#[inline(always)]
pub(crate) fn exp_f64_in_range(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 x 2^52
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000); // 32 digits
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let shifted = x * core::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let r2 = r * r;
    let r4 = r2 * r2;
    let p01 = 0.500_000_000_000_000_1 + r * 0.166_666_666_666_666_67;
    let p23 = 0.041_666_666_666_624_13 + r * 0.008_333_333_333_330_062;
    let p45 = 0.001_388_888_891_721_371_7 + r * 0.000_198_412_698_630_536_17;
    let p67 = 2.480_152_129_595_437_5e-5 + r * 2.755_726_845_999_706_5e-6;
    let p89 = 2.762_008_844_540_975e-7 + r * 2.510_038_549_551_032e-8;
    let p = (p01 + r2 * p23) + r4 * ((p45 + r2 * p67) + r4 * p89);
    let power = 1.0 + (r + r2 * p);
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place.
    fn ulps_f32(x: f32) -> f64 {
        let exact = libm::exp(f64::from(x));
        let found = exp_f32(x);
        let ulp = f64::from(f32::from_bits((exact as f32).to_bits() + 1)) - f64::from(exact as f32);
        (f64::from(found) - exact).abs() / ulp
    }

    #[test]
    fn single_precision_is_within_one_unit() {
        // Every 61st of all numbers from -87 to 88.37, of either sign.
        let step = if cfg!(miri) { 4_000_037 } else { 61 };
        let mut worst: f64 = 0.0;
        for sign in [0, 1 << 31] {
            for bits in (0..0x42b0_bd71u32).step_by(step) {
                let x = f32::from_bits(bits | sign);
                if x >= -87.0 {
                    worst = worst.max(ulps_f32(x));
                }
            }
        }
        assert!(worst <= 1.0, "{worst} ulp");
    }

    #[test]
    fn double_precision_is_within_one_unit_of_libm() {
        // libm's own error is below one unit, so two apart is the most there can be.
        let mut worst: i64 = 0;
        for i in (-700_000..700_000i32).step_by(if cfg!(miri) { 5003 } else { 1 }) {
            let x = f64::from(i) * 1.000_37e-3;
            worst = worst.max((exp_f64(x).to_bits() as i64 - libm::exp(x).to_bits() as i64).abs());
        }
        assert!(worst <= 1, "{worst}");
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!((exp_f32(0.0), exp_f64(0.0)), (1.0, 1.0));
        assert_eq!((exp_f32(-1e9), exp_f64(f64::NEG_INFINITY)), (0.0, 0.0));
        assert_eq!((exp_f32(1e9), exp_f64(f64::INFINITY)), (f32::INFINITY, f64::INFINITY));
        assert!(exp_f32(f32::NAN).is_nan() && exp_f64(f64::NAN).is_nan());
        // The NaN that processors make, of either sign, is not lost in the exponent.
        assert!([f32::NAN, -f32::NAN].iter().all(|&x| exp_f32_in_range(x).is_nan()));
        assert!([f64::NAN, -f64::NAN].iter().all(|&x| exp_f64_in_range(x).is_nan()));
        assert!(exp_f32(88.3) > 2e38 && exp_f64(709.3) > 1e308);
    }
}
