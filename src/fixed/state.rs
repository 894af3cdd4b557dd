//! One state: its coefficients, their variances, its weight.

use super::factors::{shift_of, times_c, times_d};
use super::numbers::{exp2, mul_high, square};
use super::{LOG_DIGITS, MAX_ACTIVE, ROOT_BITS};

/// sqrt(log2 e), the deviation of a latent by itself. (16 digits)
const DEVIATION: i32 = (ROOT_BITS * 65536.0) as i32;
/// Its square. (14 digits)
const VARIANCE: u64 = (ROOT_BITS * ROOT_BITS * 16384.0) as u64;
/// From the digits of t to those of coefficients.
const FEWER: u32 = 6;

/// A state, and what its factor is made of: of its links those that it has, with latents i, j and k on.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub count: usize,
    pub positions: [u8; MAX_ACTIVE],
    pub t: [i32; MAX_ACTIVE],
    pub c: i32,
    pub d: i32,
    /// c_ik, e and d_k.
    pub third: [i32; 3],
}

impl State {
    /// The latents that are on.
    pub fn positions(&self) -> &[u8] {
        self.positions.get(..self.count).unwrap_or(&[])
    }

    /// kappa = L^-T t, from the last on; nothing if they are out of proportion, as those of latents can be that are nearly the
    /// same.
    #[inline(always)]
    pub fn coefficients(&self) -> Option<[i32; MAX_ACTIVE]> {
        let [t_i, t_j, t_k] = self.t.map(|t| t >> FEWER);
        let [c_ik, e, d_k] = self.third;
        let k = if self.count > 2 { coefficient(t_k, d_k)? } else { 0 };
        let j = if self.count > 1 { coefficient(t_j.wrapping_sub(times_c(k, e)), self.d)? } else { 0 };
        Some([t_i.wrapping_sub(times_c(j, self.c)).wrapping_sub(times_c(k, c_ik)), j, k])
    }

    /// The diagonal of L^-T L^-1, by columns of L^-1. (14 digits)
    #[inline(always)]
    pub fn variances(&self) -> [u64; MAX_ACTIVE] {
        if self.count < 2 {
            return [VARIANCE, 0, 0];
        }
        let j = times_d(DEVIATION, self.d);
        let [i, j] = [VARIANCE + square(times_c(j, self.c)), square(j)];
        if self.count < 3 {
            return [i, j, 0];
        }
        let [c_ik, e, d_k] = self.third;
        let of_k = times_d(DEVIATION, d_k);
        let of_j = times_d(times_c(of_k, e), self.d);
        let of_i = times_c(of_k, c_ik).wrapping_sub(times_c(of_j, self.c));
        [i + square(of_i), j + square(of_j), square(of_k)]
    }

    /// Its weight, 2^21 times 2 to the power of minus `below` and the mantissas of its d; not far below.
    #[inline(always)]
    pub fn weight(&self, below: i32) -> u32 {
        let (mut weight, mut shift) = (exp2(below), 4 + (below >> LOG_DIGITS) as u32);
        // Each product takes two digits off the 26.
        if self.count > 1 {
            (weight, shift) = (mul_high(weight, self.d), shift - 2);
        }
        if self.count > 2 {
            (weight, shift) = (mul_high(weight, self.third[2]), shift - 2);
        }
        ((weight >> shift.min(31)) + 1) as u32 >> 1
    }
}

/// A product with d, if it leaves room for sums of three.
#[inline(always)]
fn coefficient(a: i32, d: i32) -> Option<i32> {
    let (high, shift) = (mul_high(a, d), shift_of(d));
    (high.unsigned_abs() < (1 << 29) >> shift).then_some(high << shift)
}
