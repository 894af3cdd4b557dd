//! What this build has: every kind of model and every engine is a feature, so that firmware for one of them links
//! nothing of the others.
//!
//! Nothing is compiled conditionally. Models of other kinds are refused when they are put together ([`left_out`]), and the few
//! places that tell kinds apart ask here: where the build leaves one answer only, the compiler knows it and drops the rest.

use crate::model::{Kind, States};

/// Gibbs sampling.
pub(crate) const GIBBS: bool = cfg!(feature = "gibbs");
/// Tables of states.
pub(crate) const TABLES: bool = cfg!(feature = "tables");
/// Selection for kinds other than Gaussian sparse coding.
pub(crate) const COSINE: bool = SWITCHED || cfg!(feature = "ssmca");
/// Selection where W is not negative and latents have no slab.
pub(crate) const BOUND: bool = cfg!(any(feature = "nmf", feature = "mca"));
/// Selection for Gaussian sparse coding.
pub(crate) const INDEPENDENT: bool = cfg!(feature = "gsc");

const SLAB: bool = cfg!(any(feature = "gsc", feature = "ssmca"));
const SWITCHED: bool = cfg!(any(feature = "bsc", feature = "nmf", feature = "mca"));
const LINEAR: bool = cfg!(any(feature = "gsc", feature = "bsc", feature = "nmf"));
const MAXIMAL: bool = cfg!(any(feature = "mca", feature = "ssmca"));

#[cfg(not(any(feature = "gsc", feature = "bsc", feature = "nmf", feature = "mca", feature = "ssmca")))]
compile_error!("choose at least one kind of model, a feature: gsc, bsc, nmf, mca or ssmca");

/// [`Kind::has_slab`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn has_slab(kind: Kind) -> bool {
    SLAB && (!SWITCHED || kind.has_slab())
}

/// [`Kind::is_maximal`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn is_maximal(kind: Kind) -> bool {
    MAXIMAL && (!LINEAR || kind.is_maximal())
}

/// [`Kind::is_sampled`] of a model that was not refused.
#[inline(always)]
pub(crate) const fn is_sampled(kind: Kind) -> bool {
    cfg!(feature = "ssmca") && kind.is_sampled()
}

/// The feature that a model needs and this build lacks.
pub(crate) const fn left_out<T>(kind: Kind, states: &States<'_, T>) -> Option<&'static str> {
    let (has, name) = match kind {
        Kind::Gsc => (cfg!(feature = "gsc"), "gsc"),
        Kind::Bsc => (cfg!(feature = "bsc"), "bsc"),
        Kind::Nmf => (cfg!(feature = "nmf"), "nmf"),
        Kind::Mca => (cfg!(feature = "mca"), "mca"),
        Kind::Ssmca => (cfg!(feature = "ssmca"), "ssmca"),
    };
    match states {
        _ if !has => Some(name),
        States::Table(_) if !TABLES => Some("tables"),
        _ => None,
    }
}
