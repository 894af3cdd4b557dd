//! Gaussian mixtures [004 sec. 4.5.2]: exactly one latent is on, the component c that made the sample,
//!
//! ```text
//! ln p(y, c) = ln pi_c - 1/2 Delta_c - D/2 ln 2 pi - 1/2 ln det Sigma_c,    Delta_c = (y - W_c)^T Sigma_c^-1 (y - W_c)
//! ```
//!
//! with Delta_c the squared distance of the sample from the component. Where all components share Sigma (one variance, one per
//! dimension, or any covariance), their scores are the projection of all linear models: -1/2 Delta_c = b_c - G_cc / 2 - 1/2 y^T
//! Sigma^-1 y. The components that are selected get theirs from the residual y - W_c, in which nothing large cancels. Where each
//! component has variances of its own, all get theirs that way: these precisions and their determinants are those of
//! [`crate::model::Selection::Independent`].
//!
//! The model's prior is ln pi_c rather than a logit. With `singletons` all components count, so that the posterior is exact;
//! without, the selected ones alone.

use super::{Combination, Spec};

pub(crate) const SPEC: Spec = Spec {
    name: "gmm",
    feature: "gmm",
    is_built: cfg!(feature = "gmm"),
    has_slab: false,
    combination: Combination::One,
    is_non_negative: false,
    is_enumerable: true,
};
