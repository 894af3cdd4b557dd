//! Seeded random numbers, the same on every target.
//!
//! xoshiro256++ (`rand_xoshiro`, behind `rand_core`'s traits), seeded through SplitMix64. Uniform and
//! normal variates are made from its integers by IEEE operations and [`Real`]'s functions only.

use crate::math::Real;
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

    /// Uniform on (0, 1), both ends excluded: the middle of one of 2^23 equal intervals, which `f32`
    /// and `f64` both represent exactly.
    pub fn uniform<T: Real>(&mut self) -> T {
        let middle = (self.0.next_u64() >> 41) as f64 + 0.5;
        T::from_f64(middle / 8_388_608.0)
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
