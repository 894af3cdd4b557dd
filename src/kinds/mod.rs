//! Kinds of models: what a latent is, and how latents make a sample. One file each, with everything that is special to it.
//!
//! | file | kinds | a latent | a sample | states |
//! |---|---|---|---|---|
//! | [`gsc`] | GSC | spike and slab | W (s.z) + noise | closed form: a flip is a sweep of the tableau |
//! | [`binary`] | BSC, NMF | on or off | W s + noise | closed form: a flip moves the residual by a column of G |
//! | [`mca`] | MCA | on or off | in each dimension the strongest, + noise | closed form: running maxima |
//! | [`ssmca`] | SSMCA | spike and slab | in each dimension the strongest, + noise | sampled only |
//! | [`gmm`] | GMM | on or off | the one that is on, + noise | one each: no search, no walk |
//!
//! Everything else asks a kind for its [`Spec`], or matches on [`Kind`] without a default arm, so that the compiler lists what a
//! new kind lacks.

use crate::numeric::math::Real;

pub(crate) mod binary;
pub(crate) mod gmm;
pub(crate) mod gsc;
pub(crate) mod mca;
pub(crate) mod ssmca;

/// What latents are, and how they add up to a sample. The numbers are those of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Kind {
    /// Gaussian sparse coding: spike-and-slab latents, y ~ N(W (s.z), Sigma).
    Gsc = 1,
    /// Binary sparse coding, also known as LinCA: latents are on or off, y ~ N(W s, Sigma).
    Bsc = 2,
    /// The same with W >= 0: non-negative matrix factorisation with binary latents.
    Nmf = 3,
    /// Maximal causes: y_d ~ N(max_h s_h W_dh, sigma_d^2), W >= 0.
    Mca = 4,
    /// Maximal causes with strengths: spike-and-slab latents, y_d ~ N(max_h s_h z_h W_dh, sigma_d^2), W >= 0. Sampled only.
    Ssmca = 5,
    /// A Gaussian mixture: exactly one latent is on, y ~ N(W_c, Sigma_c).
    Gmm = 6,
}

/// How latents that are on make a sample together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Combination {
    /// They add up.
    Sum,
    /// In each dimension the strongest counts.
    Maximum,
    /// Exactly one is on.
    One,
}

/// The facts about a kind that others go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Spec {
    /// Its name on the command line, which is also the Cargo feature's (bsc and nmf share one).
    pub name: &'static str,
    /// The Cargo feature that brings it.
    pub feature: &'static str,
    /// Whether this build has it.
    pub is_built: bool,
    /// Whether a latent that is on has a coefficient of its own (otherwise it is 1).
    pub has_slab: bool,
    /// How latents make a sample.
    pub combination: Combination,
    /// Whether W must not be negative.
    pub is_non_negative: bool,
    /// Whether states have a closed form; otherwise the posterior can only be sampled.
    pub is_enumerable: bool,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Gsc, Self::Bsc, Self::Nmf, Self::Mca, Self::Ssmca, Self::Gmm];

    /// What there is to know about it.
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::Gsc => &gsc::SPEC,
            Self::Bsc => &binary::BSC,
            Self::Nmf => &binary::NMF,
            Self::Mca => &mca::SPEC,
            Self::Ssmca => &ssmca::SPEC,
            Self::Gmm => &gmm::SPEC,
        }
    }

    /// The kind with this number in a blob.
    pub const fn of_code(code: u8) -> Option<Self> {
        let mut i = 0;
        while i < Self::ALL.len() {
            if Self::ALL[i] as u8 == code {
                return Some(Self::ALL[i]);
            }
            i += 1;
        }
        None
    }

    /// See [`Spec::has_slab`].
    pub const fn has_slab(self) -> bool {
        self.spec().has_slab
    }

    /// See [`Spec::is_non_negative`].
    pub const fn is_non_negative(self) -> bool {
        self.spec().is_non_negative
    }

    /// Whether in each dimension the strongest latent counts, instead of their sum.
    pub const fn is_maximal(self) -> bool {
        matches!(self.spec().combination, Combination::Maximum)
    }

    /// Whether exactly one latent is on.
    #[inline(always)]
    pub const fn is_mixture(self) -> bool {
        let others = SLAB || MAXIMAL || cfg!(any(feature = "binary", feature = "fixed-point"));
        cfg!(feature = "gmm") && (!others || matches!(self.spec().combination, Combination::One))
    }

    /// Whether states have no closed form, so that their posterior can only be sampled.
    pub const fn is_sampled(self) -> bool {
        !self.spec().is_enumerable
    }
}

/// How a state of this kind is changed, by what the compiler knows of the build: arms of kinds that were left out are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// [`gsc`].
    Slab,
    /// [`binary`]; also [`gmm`], which has no states with more than one latent on.
    Binary,
    /// [`mca`]; also [`ssmca`], which has no states to enumerate.
    Maximal,
}

const SLAB: bool = cfg!(feature = "gsc");
const BINARY: bool = cfg!(any(feature = "binary", feature = "gmm"));
const MAXIMAL: bool = cfg!(any(feature = "mca", feature = "ssmca"));

#[cfg(not(any(
    feature = "gsc",
    feature = "binary",
    feature = "mca",
    feature = "ssmca",
    feature = "gmm",
    feature = "fixed-point",
    feature = "spatial",
    feature = "spectral"
)))]
compile_error!(
    "choose at least one kind of model, a feature: gsc, binary, mca, ssmca, gmm, fixed-point, spatial or spectral"
);

impl Kind {
    /// Its family, of a model that this build did not refuse.
    #[inline(always)]
    pub(crate) const fn family(self) -> Family {
        match (SLAB, BINARY, MAXIMAL) {
            (_, false, false) => return Family::Slab,
            (false, true, false) => return Family::Binary,
            (false, false, true) => return Family::Maximal,
            _ => {}
        }
        match self {
            Self::Gsc if SLAB || cfg!(feature = "fixed-point") => Family::Slab,
            Self::Mca | Self::Ssmca if MAXIMAL => Family::Maximal,
            Self::Gsc | Self::Bsc | Self::Nmf | Self::Mca | Self::Ssmca | Self::Gmm => {
                if BINARY {
                    Family::Binary
                } else {
                    Family::Slab
                }
            }
        }
    }
}

/// The kind of model, where this build has a single one; inference in integers is one of [`Kind::Gsc`].
const ONLY: Option<Kind> = {
    let (mut only, mut count, mut i) = (None, 0, 0);
    while i < Kind::ALL.len() {
        let kind = Kind::ALL[i];
        if kind.spec().is_built || matches!(kind, Kind::Gsc) && cfg!(feature = "fixed-point") {
            (only, count) = (Some(kind), count + 1);
        }
        i += 1;
    }
    if count == 1 { only } else { None }
};

impl Kind {
    /// The same, of a model that this build did not refuse: a constant where the build has one kind, so that the compiler drops
    /// what the others need.
    #[inline(always)]
    pub(crate) const fn known(self) -> Self {
        match ONLY {
            Some(only) => only,
            None => self,
        }
    }
}

/// What flipping one latent, on or off, does to a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flip<T> {
    /// The change of the log joint, without determinants.
    pub exponent: T,
    /// The factor of the determinants, squared: the log joint also changes by half of its logarithm.
    pub ratio: T,
    /// u: what other coefficients move by, for each unit of their coupling. The coefficient itself where the latent turns on.
    pub value: T,
    /// One over the pivot: the variance of the coefficient of a latent that turns on, minus the precision of one that turns off.
    pub inverse: T,
}

impl<T: Real> Flip<T> {
    /// Nothing changes.
    pub const NONE: Self = Self { exponent: T::ZERO, ratio: T::ONE, value: T::ZERO, inverse: T::ONE };
}
