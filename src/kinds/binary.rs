//! Latents that are on or off and add up: binary sparse coding (BSC, also LinCA) and, with W >= 0, NMF [002, 004].
//!
//! y ~ N(W s, Sigma). With r = W_h^T Sigma^-1 (y - W s) in the present state, flipping latent h changes the log joint by
//!
//! ```text
//! l_h + r - G_hh / 2  on,     -(l_h + r + G_hh / 2)  off
//! ```
//!
//! and the r of all latents by a column of G.

use super::{Combination, Flip, Spec};
use crate::numeric::math::Real;

pub(crate) const BSC: Spec = Spec {
    name: "bsc",
    feature: "binary",
    is_built: cfg!(feature = "binary"),
    has_slab: false,
    combination: Combination::Sum,
    is_non_negative: false,
    is_enumerable: true,
};

pub(crate) const NMF: Spec = Spec { name: "nmf", is_non_negative: true, ..BSC };

/// Flips a latent; `sign` is 1 where it is off, -1 where it is on.
#[inline(always)]
pub(crate) fn flip<T: Real>(logit: T, gram: T, r: T, sign: T) -> Flip<T> {
    Flip { exponent: sign * (logit + r) - T::HALF * gram, ratio: T::ONE, value: sign, inverse: T::ONE }
}
