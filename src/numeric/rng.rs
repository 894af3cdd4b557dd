//! Seeded random numbers, the same on every target.
//!
//! xoshiro256++ (`rand_xoshiro`, behind `rand_core`'s traits), seeded through SplitMix64. Uniform and
//! normal variates are made from its integers by IEEE operations and [`Real`]'s functions only.
//!
//! **Which normal variates.** Sampling takes [`Rng::standard`], the inverse of the distribution function (Wichura's AS 241,
//! exact to the precision's rounding): one random integer and no loop, so the work of a sample has a bound; 85 of 100 variates
//! take 8 multiply-adds and a division, the others also ln and a square root; both tails reach 9 standard deviations; and
//! samplers of parts of the bell need the same functions anyhow. The polar method ([`Rng::normal`]) is as exact but
//! rejects a fifth of its tries, without a bound on how many; ziggurats need tables of kilobytes; sine and cosine are larger than
//! both. [`Rng::uniform`] and [`Rng::normal`] stay as they are for those who keep their numbers.

use super::math::Real;
use super::normal::upper_quantile;
use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers that depends on its seed and on nothing else.
///
/// ```
/// let mut rng = spikelet::rng::Rng::new(7);
/// let mean = (0..1000).map(|_| rng.normal::<f64>()).sum::<f64>() / 1000.0;
/// assert!(mean.abs() < 0.1); // three standard errors
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Any seed will do, zero too.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The stream of one of many samples: depends on the seed and on the sample's number, not on which samples came before.
    ///
    /// ```
    /// use spikelet::rng::Rng;
    /// assert_eq!(Rng::of_sample(7, 3), Rng::of_sample(7, 3));
    /// assert_ne!(Rng::of_sample(7, 3), Rng::of_sample(3, 7));
    /// ```
    pub fn of_sample(seed: u64, number: u64) -> Self {
        Self::new(mix(seed, number))
    }

    /// Uniform on (0, 1), both ends excluded: the middle of one of 2^23 equal intervals, which `f32`
    /// and `f64` both represent exactly.
    pub fn uniform<T: Real>(&mut self) -> T {
        let middle = (self.0.next_u64() >> 41) as f64 + 0.5;
        T::from_f64(middle / 8_388_608.0)
    }

    /// Uniform on (0, 1), both ends excluded, with all digits of the precision also near 0.
    ///
    /// ```
    /// let mut rng = spikelet::rng::Rng::new(1);
    /// assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit::<f32>())));
    /// ```
    pub fn unit<T: Real>(&mut self) -> T {
        T::unit(self.0.next_u64())
    }

    /// An integer below `count`, which has at most 16 bits. (They differ in probability by 2^-32 of it.)
    ///
    /// ```
    /// let mut rng = spikelet::rng::Rng::new(1);
    /// assert!((0..1000).all(|_| rng.below(3) < 3));
    /// ```
    pub fn below(&mut self, count: u16) -> u16 {
        (((self.0.next_u64() >> 16) * u64::from(count)) >> 48) as u16
    }

    /// Standard normal, by the inverse of the distribution function: exact, one random integer, no loop.
    ///
    /// ```
    /// let mut rng = spikelet::rng::Rng::new(7);
    /// let square = (0..1000).map(|_| rng.standard::<f64>()).map(|x| x * x).sum::<f64>() / 1000.0;
    /// assert!((square - 1.0).abs() < 0.15); // three standard errors
    /// ```
    pub fn standard<T: Real>(&mut self) -> T {
        // One bit for the sign, the others for how far out.
        let bits = self.0.next_u64();
        let x = upper_quantile(T::HALF * T::unit(bits));
        if bits & 1 == 0 { x } else { -x }
    }

    /// Standard normal, by the polar method: exact, and in need of ln and a square root only.
    pub fn normal<T: Real>(&mut self) -> T {
        loop {
            let [x, y] = [(); 2].map(|()| {
                let uniform: T = self.uniform();
                uniform + uniform - T::ONE
            });
            let square = x * x + y * y;
            if square < T::ONE && square > T::ZERO {
                let two_ln = square.ln() + square.ln();
                return x * (-two_ln / square).sqrt();
            }
        }
    }
}

/// One seed from two numbers: SplitMix64's scrambling, twice.
///
/// ```
/// use spikelet::rng::mix;
/// assert_ne!(mix(0, 1), mix(1, 0));
/// ```
pub const fn mix(seed: u64, number: u64) -> u64 {
    scramble(scramble(seed).wrapping_add(number))
}

const fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
