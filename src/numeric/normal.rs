//! The normal distribution: quantiles, and masses and moments of intervals, far into the tails too.
//!
//! A *piece* begins where its density is highest, t >= 0 standard deviations from the mean, and extends away from the mean for w of
//! them. Masses are relative to the density at that beginning,
//!
//! ```text
//! J(t, w) = integral from 0 to w of exp(-t v - v^2 / 2) dv = R(t) - exp(-w (t + w / 2)) R(t + w)
//! ```
//!
//! with Mills' ratio R(t) = J(t, inf): never larger than 1.26, and as exact for a tail of 1e-3000000 as in the middle. The
//! caller knows the density at the beginning, as a logarithm.
//!
//! Work: R takes 12 multiply-adds twice and two divisions in `f32` (24 in `f64`), a piece two of them and an
//! exponential, or six exponentials where it is so short that the difference would lose digits.

use super::math::Real;

/// Coefficients for one precision.
#[derive(Debug)]
pub struct Tables<T: 'static> {
    /// (1 + t) R(t) as a Chebyshev series in (t - 4) / (t + 4), after Shepherd and Laframboise (1981).
    mills: &'static [T],
    /// Numerators and denominators of the quantile, lowest power first (Wichura 1988, algorithm AS 241: PPND7, PPND16):
    /// in the middle, in the tails, far out.
    quantile: [[&'static [T]; 2]; 3],
    /// Gauss and Legendre's six points of the unit interval, each with its weight, for short pieces.
    points: [[T; 2]; 6],
    /// From this t on, moments of a tail are summed as series: differences would lose t^4 rounding errors.
    series_above: T,
    /// A Newton step that is no larger than this part of the result is the last one.
    resolution: T,
}

/// Terms of the series: with t as large as above, the next one does not show.
const SERIES: usize = 12;

/// Most Newton steps; each doubles the digits, and the starting points have one at least.
const STEPS: usize = 8;

/// R(t) for t >= 0. Within 2e-7 (`f32`) and 4e-16 (`f64`) of itself.
pub(crate) fn mills<T: Real>(t: T) -> T {
    let four = T::from_f64(4.0);
    let k = (t - four) / (t + four);
    let twice = k + k;
    // Clenshaw's recurrence, the highest order first.
    let (mut sum, mut before) = (T::ZERO, T::ZERO);
    let Some((&constant, others)) = T::TABLES.mills.split_first() else { return T::ZERO };
    for &c in others.iter().rev() {
        (sum, before) = (twice * sum - before + c, sum);
    }
    (constant + (k * sum - before)) / (T::ONE + t)
}

/// Moments 0, 1 and 2 of v over the whole tail: R, R1 = 1 - t R, R2 = R - t R1.
fn tail<T: Real>(t: T) -> [T; 3] {
    if !(t > T::TABLES.series_above) {
        let ratio = mills(t);
        let first = T::ONE - t * ratio;
        return [ratio, first, ratio - t * first];
    }
    // R1 = sum_j -(-1)^j (2j - 1)!! t^-2j, R2 = sum_j -(-1)^j 2j (2j - 1)!! t^-(2j + 1), from j = 1 on.
    let inverse = T::ONE / t;
    let step = inverse * inverse;
    let (mut term, mut twice_j, mut first, mut square) = (step, T::ZERO, T::ZERO, T::ZERO);
    for _ in 0..SERIES {
        twice_j += T::ONE + T::ONE;
        first += term;
        square += twice_j * term;
        term *= -((twice_j + T::ONE) * step);
    }
    [(T::ONE - first) * inverse, first, square * inverse]
}

/// Moments 0, 1 and 2 of v over a piece; `w` may be infinite.
pub(crate) fn piece<T: Real>(t: T, w: T) -> [T; 3] {
    let fall = w * (t + T::HALF * w);
    if fall <= T::HALF * T::HALF {
        return short_piece(t, w);
    }
    let near = tail(t);
    if !(fall < T::nats(2 * T::WEIGHT_BITS)) {
        return near;
    }
    let (far, left) = (tail(t + w), (-fall).exp());
    let [m0, m1, m2] = far;
    let beyond = [m0, m1 + w * m0, m2 + w * (m1 + m1 + w * m0)];
    let mut moments = near;
    for (moment, beyond) in moments.iter_mut().zip(beyond) {
        *moment -= left * beyond;
    }
    moments
}

/// By six points: off by 2e-14 at most where the exponent falls by no more than 1/4.
fn short_piece<T: Real>(t: T, w: T) -> [T; 3] {
    let mut moments = [T::ZERO; 3];
    for [place, weight] in T::TABLES.points {
        let v = w * place;
        let mut part = w * weight * (-(v * (t + T::HALF * v))).exp();
        for moment in &mut moments {
            *moment += part;
            part *= v;
        }
    }
    moments
}

/// The v at which a part `beyond` of a piece, in (0, 1), lies beyond it: uniform parts give draws from the piece.
pub(crate) fn invert<T: Real>(t: T, w: T, beyond: T) -> T {
    let fall = w * (t + T::HALF * w);
    let v = if fall <= T::HALF * T::HALF {
        invert_short(t, w, beyond)
    } else {
        let near = mills(t);
        let is_cut = fall < T::nats(2 * T::WEIGHT_BITS);
        let rest = if is_cut { (-fall).exp() * (mills(t + w) / near) } else { T::ZERO };
        invert_tail(t, near, -(rest + (T::ONE - rest) * beyond).ln())
    };
    let v = v.max(T::ZERO);
    if v > w { w } else { v }
}

/// Solves v (t + v / 2) + ln(R(t) / R(t + v)) = `fall`: so many nats of the tail lie before v.
fn invert_tail<T: Real>(t: T, near: T, fall: T) -> T {
    // The slope 1 / R(t + v) is at most 1 / R(t) + v, which makes this a lower bound.
    let rate = T::ONE / near;
    let twice = fall + fall;
    let mut v = twice / ((rate * rate + twice).sqrt() + rate);
    for _ in 0..STEPS {
        let ratio = mills(t + v);
        let step = (v * (t + T::HALF * v) + (near / ratio).ln() - fall) * ratio;
        v -= step;
        if !(step * step > (v * T::TABLES.resolution) * (v * T::TABLES.resolution)) {
            break;
        }
    }
    v
}

/// Solves J(t, v) = (1 - `beyond`) J(t, w) where the density is nearly the same all over. J <= v makes the start a lower bound,
/// from which Newton's steps rise without passing the solution, since J is concave.
fn invert_short<T: Real>(t: T, w: T, beyond: T) -> T {
    let [mass, ..] = short_piece(t, w);
    let wanted = mass * (T::ONE - beyond);
    let mut v = wanted;
    for _ in 0..STEPS {
        let [found, ..] = short_piece(t, v);
        let step = (wanted - found) / (-(v * (t + T::HALF * v))).exp();
        v += step;
        if !(step * step > (w * T::TABLES.resolution) * (w * T::TABLES.resolution)) {
            break;
        }
    }
    v
}

/// The positive x beyond which a part p of the normal distribution lies, 0 < p < 1/2.
pub(crate) fn upper_quantile<T: Real>(p: T) -> T {
    let [centre, middle, far] = T::TABLES.quantile;
    let q = T::HALF - p;
    if q <= T::from_f64(0.425) {
        return q * ratio(centre, T::from_f64(0.180_625) - q * q);
    }
    let r = (-p.ln()).sqrt();
    let five = T::from_f64(5.0);
    if r <= five { ratio(middle, r - T::from_f64(1.6)) } else { ratio(far, r - five) }
}

fn ratio<T: Real>([numerator, denominator]: [&[T]; 2], r: T) -> T {
    let value = |coefficients: &[T]| coefficients.iter().rev().fold(T::ZERO, |sum, &c| sum * r + c);
    value(numerator) / value(denominator)
}

/// For `f32`.
#[allow(clippy::excessive_precision)] // as they were computed; the compiler rounds
pub(crate) static SINGLE: Tables<f32> = Tables {
    mills: &[
        1.167_052_535,
        -0.161_019_576_7,
        -0.028_002_821_83,
        0.031_674_521_89,
        -0.012_103_231_16,
        0.002_705_612_976,
        -0.000_299_316_362,
        -1.716_686_527e-5,
        1.017_848_926e-5,
        -4.894_829_57e-7,
        -2.844_006_5e-7,
        3.076_628_37e-8,
    ],
    quantile: [
        [
            &[3.387_132_717_9, 50.434_271_938, 159.291_132_02, 59.109_374_720],
            &[1.0, 17.895_169_469, 78.757_757_664, 67.187_563_600],
        ],
        [
            &[1.423_437_277_7, 2.756_815_390_0, 1.306_728_481_6, 0.170_238_211_03],
            &[1.0, 0.737_001_642_50, 0.120_211_329_75],
        ],
        [
            &[6.657_905_115_0, 3.081_226_386_0, 0.428_682_943_37, 0.017_337_203_997],
            &[1.0, 0.241_978_942_25, 0.012_258_202_635],
        ],
    ],
    points: [
        [0.033_765_242_9, 0.085_662_246_19],
        [0.169_395_306_8, 0.180_380_786_5],
        [0.380_690_407_0, 0.233_956_967_3],
        [0.619_309_593_0, 0.233_956_967_3],
        [0.830_604_693_2, 0.180_380_786_5],
        [0.966_234_757_1, 0.085_662_246_19],
    ],
    series_above: 8.0,
    resolution: 1e-6, // the next step would be 1e-12
};

/// For `f64`.
#[allow(clippy::excessive_precision)] // as they were published
pub(crate) static DOUBLE: Tables<f64> = Tables {
    mills: &[
        1.167_052_535_088_247_21,
        -0.161_019_576_713_465_389,
        -0.028_002_821_825_452_974_7,
        0.031_674_521_892_392_658_9,
        -0.012_103_231_162_345_368_7,
        0.002_705_612_976_216_709_52,
        -0.000_299_316_362_027_031_659,
        -1.716_686_526_879_361_02e-5,
        1.017_848_926_410_986_74e-5,
        -4.894_829_570_004_191_77e-7,
        -2.844_006_500_151_047_84e-7,
        3.076_628_371_381_150_4e-8,
        9.180_378_674_469_537_2e-9,
        -1.275_610_221_380_873_62e-9,
        -3.660_279_376_104_133_83e-10,
        4.592_635_934_859_520_52e-11,
        1.718_931_468_764_652_68e-11,
        -1.272_683_369_870_069_4e-12,
        -8.668_081_913_316_188_43e-13,
        1.106_155_720_413_674_09e-15,
        4.275_021_077_010_333_38e-14,
        3.790_937_692_263_904_55e-15,
        -1.847_410_301_059_233_15e-15,
        -4.041_909_413_070_817_79e-16,
    ],
    quantile: [
        [
            &[
                3.387_132_872_796_366_608_0,
                133.141_667_891_784_377_45,
                1_971.590_950_306_551_442_7,
                13_731.693_765_509_461_125,
                45_921.953_931_549_871_457,
                67_265.770_927_008_700_853,
                33_430.575_583_588_128_105,
                2_509.080_928_730_122_672_7,
            ],
            &[
                1.0,
                42.313_330_701_600_911_252,
                687.187_007_492_057_908_30,
                5_394.196_021_424_751_107_7,
                21_213.794_301_586_595_867,
                39_307.895_800_092_710_610,
                28_729.085_735_721_942_674,
                5_226.495_278_852_854_561_0,
            ],
        ],
        [
            &[
                1.423_437_110_749_683_577_34,
                4.630_337_846_156_545_295_90,
                5.769_497_221_460_691_405_50,
                3.647_848_324_763_204_605_04,
                1.270_458_252_452_368_382_58,
                0.241_780_725_177_450_611_770,
                0.022_723_844_989_269_184_583_3,
                7.745_450_142_783_414_076_40e-4,
            ],
            &[
                1.0,
                2.053_191_626_637_758_821_87,
                1.676_384_830_183_803_849_40,
                0.689_767_334_985_100_004_550,
                0.148_103_976_427_480_074_590,
                0.015_198_666_563_616_457_196_6,
                5.475_938_084_995_344_946_00e-4,
                1.050_750_071_644_416_843_24e-9,
            ],
        ],
        [
            &[
                6.657_904_643_501_103_777_20,
                5.463_784_911_164_114_369_90,
                1.784_826_539_917_291_335_80,
                0.296_560_571_828_504_891_230,
                0.026_532_189_526_576_123_093_0,
                1.242_660_947_388_078_438_60e-3,
                2.711_555_568_743_487_578_15e-5,
                2.010_334_399_292_288_132_65e-7,
            ],
            &[
                1.0,
                0.599_832_206_555_887_937_690,
                0.136_929_880_922_735_805_310,
                0.014_875_361_290_850_614_852_5,
                7.868_691_311_456_132_591_00e-4,
                1.846_318_317_510_054_681_80e-5,
                1.421_511_758_316_445_888_70e-7,
                2.044_263_103_389_939_785_64e-15,
            ],
        ],
    ],
    points: [
        [0.033_765_242_898_423_986_1, 0.085_662_246_189_585_172_5],
        [0.169_395_306_766_867_743, 0.180_380_786_524_069_304],
        [0.380_690_406_958_401_546, 0.233_956_967_286_345_524],
        [0.619_309_593_041_598_454, 0.233_956_967_286_345_524],
        [0.830_604_693_233_132_257, 0.180_380_786_524_069_304],
        [0.966_234_757_101_576_014, 0.085_662_246_189_585_172_5],
    ],
    series_above: 16.0,
    resolution: 1e-9,
};

#[cfg(test)]
mod tests;
