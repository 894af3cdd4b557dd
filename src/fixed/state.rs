//! One state: its coefficients, their variances, its weight.

use super::factors::{times_c, times_d};
use super::numbers::{exp2, mul_high, square};
use super::{LOG_DIGITS, MAX_ACTIVE, ROOT_BITS};

/// sqrt(log2 e), the deviation of a latent by itself. (16 digits)
const DEVIATION: i32 = (ROOT_BITS * 65536.0) as i32;
/// Its square. (14 digits)
const VARIANCE: u32 = (ROOT_BITS * ROOT_BITS * 16384.0) as u32;
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

    /// kappa = L^-T t, from the last on.
    pub fn coefficients(&self) -> [i32; MAX_ACTIVE] {
        let [t_i, t_j, t_k] = self.t.map(|t| t >> FEWER);
        let [c_ik, e, d_k] = self.third;
        let k = if self.count > 2 { times_d(t_k, d_k) } else { 0 };
        let j = if self.count > 1 { times_d(t_j - times_c(k, e), self.d) } else { 0 };
        [t_i - times_c(j, self.c) - times_c(k, c_ik), j, k]
    }

    /// The diagonal of L^-T L^-1, by columns of L^-1; one of them may be too large to be one. (14 digits)
    pub fn variances(&self) -> [u32; MAX_ACTIVE] {
        let mut variances = [VARIANCE, 0, 0];
        if self.count > 1 {
            let j = times_d(DEVIATION, self.d);
            variances = [VARIANCE.saturating_add(square(times_c(j, self.c))), square(j), 0];
        }
        if self.count > 2 {
            let [c_ik, e, d_k] = self.third;
            let k = times_d(DEVIATION, d_k);
            let j = times_d(times_c(k, e), self.d);
            let i = times_c(k, c_ik).wrapping_sub(times_c(j, self.c));
            for (variance, deviation) in variances.iter_mut().zip([i, j, k]) {
                *variance = variance.saturating_add(square(deviation));
            }
        }
        variances
    }

    /// Its weight, 2^21 times 2 to the power of minus `below` and the mantissas of its d, of at most 30 bits below.
    pub fn weight(&self, below: i32) -> u32 {
        let mut weight = exp2(below);
        // Each product takes two digits off the 26.
        let mut shift = 4 + (below >> LOG_DIGITS) as u32;
        for d in [self.d, self.third[2]].into_iter().take(self.count.saturating_sub(1)) {
            weight = mul_high(weight, d);
            shift -= 2;
        }
        ((weight >> shift.min(31)) + 1) as u32 >> 1
    }
}
