//! Maximal causes [002]: in each dimension the strongest latent that is on makes the sample, y_d ~ N(max_h s_h W_dh, sigma_d^2).
//!
//! With a_d = 1 / sigma_d^2, m_d the maximum in the present state and m'_d after flipping a latent, the log joint changes by
//!
//! ```text
//! +-l_h + sum_d a_d (m'_d - m_d) (y_d - (m'_d + m_d) / 2)
//! ```
//!
//! m'_d = max(m_d, W_dh) for a latent that turns on; where one that turns off made the maximum, it is the next largest. So the
//! largest two of every dimension give all one-flip neighbours of a state in D steps each, and nothing large cancels.

use super::{Combination, Spec};
use crate::numeric::math::Real;

pub(crate) const SPEC: Spec = Spec {
    name: "mca",
    feature: "mca",
    is_built: cfg!(feature = "mca"),
    has_slab: false,
    combination: Combination::Maximum,
    is_non_negative: true,
    is_enumerable: true,
};

/// What a dimension gains when its maximum moves; without the precision.
#[inline(always)]
pub(crate) fn gain<T: Real>(y: T, from: T, to: T) -> T {
    (to - from) * (y - T::HALF * (to + from))
}
