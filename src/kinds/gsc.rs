//! Gaussian sparse coding [000, 001]: y ~ N(W (s.z), Sigma), s_h ~ Bernoulli(pi_h), z_h ~ N(mu_h, psi_h^2).
//!
//! For the latents A that are on, with K = 1 / psi^2 and M = G_AA + diag(K), the coefficients are N(kappa, Lambda),
//! Lambda = M^-1. Flipping one latent changes the log joint by a number that only needs what the others leave of it:
//!
//! ```text
//! on:   d = g + K      l + 1/2 ln(K / d) + 1/2 (r^2 + K mu (2 r - g mu)) / d           g, r: what A leaves of G_hh and of b_h
//! off:  d = 1 / Lambda_hh   minus the same, g = d - K = K (psi^2 - Lambda) / Lambda, r = d (kappa - mu) + g mu
//! ```
//!
//! Written with g, r and kappa - mu, the large K mu^2 of a narrow slab never appears: [`turn_on`], [`turn_off`].

use super::{Combination, Flip, Spec};
use crate::numeric::math::Real;

pub(crate) const SPEC: Spec = Spec {
    name: "gsc",
    feature: "gsc",
    is_built: cfg!(feature = "gsc"),
    has_slab: true,
    combination: Combination::Sum,
    is_non_negative: false,
    is_enumerable: true,
};

/// The prior of a latent: l_h = ln pi_h - ln(1 - pi_h), mu_h, K_h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior<T> {
    pub logit: T,
    pub mean: T,
    pub precision: T,
}

/// Nats gained by a latent that sees r of the residual, before the cost of being on: 1/2 (r + K mu)^2 / d - 1/2 K mu^2.
#[inline(always)]
pub(crate) fn gain<T: Real>(r: T, g: T, mean: T, pull: T, variance: T) -> T {
    T::HALF * (r * r + pull * (r + r - g * mean)) * variance
}

/// Whether a pivot g + K is more than rounding errors of G_hh, `rest`. Latents that are on may explain all of a column that is parallel to
/// theirs, and D of them explain all of every column: g is rounding errors then. Where the noise is far below the slab, K is no more than
/// these, and states with that latent on as well have no digits.
#[inline(always)]
pub(crate) fn is_resolved<T: Real>(pivot: T, rest: T) -> bool {
    pivot > T::RESOLVED * rest
}

/// Turns a latent on of which the others leave g and r.
#[inline(always)]
pub(crate) fn turn_on<T: Real>(prior: Prior<T>, g: T, r: T) -> Flip<T> {
    let Prior { logit, mean, precision } = prior;
    let (pull, variance) = (precision * mean, T::ONE / (g + precision));
    Flip {
        exponent: logit + gain(r, g, mean, pull, variance),
        ratio: precision * variance,
        value: (r + pull) * variance,
        inverse: variance,
    }
}

/// Turns a latent off whose coefficient has this variance, less than the slab's by `shrunk`, and is `away` from the slab's mean.
#[inline(always)]
pub(crate) fn turn_off<T: Real>(prior: Prior<T>, variance: T, shrunk: T, away: T) -> Flip<T> {
    let Prior { logit, mean, precision } = prior;
    let (d, kappa) = (T::ONE / variance, mean + away);
    let g = precision * shrunk * d;
    let gained = T::HALF * (g * kappa * kappa + precision * away * (mean + kappa));
    Flip { exponent: -(logit + gained), ratio: d / precision, value: -(kappa * d), inverse: -d }
}
