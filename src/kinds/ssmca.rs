//! Maximal causes with strengths [004 ch. 3]: y_d ~ N(max_h s_h z_h W_dh, sigma_d^2). States have no closed form; the conditional
//! of a latent is piecewise normal: see [`crate::gibbs`].

use super::{Combination, Spec};

pub(crate) const SPEC: Spec = Spec {
    name: "ssmca",
    feature: "ssmca",
    is_built: cfg!(feature = "ssmca"),
    has_slab: true,
    combination: Combination::Maximum,
    is_non_negative: true,
    is_enumerable: false,
};
