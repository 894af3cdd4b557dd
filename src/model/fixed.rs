//! Latents in fixed point, and which models can have them: see [`crate::fixed`].

use super::{Dictionary, Kind, Model, ModelError, Shape, States};
use crate::numeric::math::Real;

/// Least K / (G + K), Q30: what is left of a latent beside others.
const LEAST_PIVOT: i32 = 1 << 4;
/// Most that a latent's parts of exponents are away from zero: there is room for both, and for what it explains.
const MAX_OFFSET: u32 = 1 << 27;

/// What inference in integers (`src/fixed`) needs of a latent, s = 1 / sqrt(G + K).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedLatent {
    /// s, with 30 digits behind the point, times 2 to the power of `exponent`.
    pub scale: i32,
    /// See `scale`.
    pub exponent: i32,
    /// -1/2 ln((G + K) Psi) - 1/2 K mu^2 in bits, with 13 digits behind the point.
    pub offset: i32,
    /// The prior's logit, likewise.
    pub logit: i32,
    /// sqrt(log2 e) K mu s, with 22 digits.
    pub pull: i32,
    /// K / (G + K), with 30 digits: the least that other latents leave of this one.
    pub least: i32,
}

impl FixedLatent {
    /// Whether all of it is in range.
    fn is_possible(&self) -> bool {
        self.scale >= 1 << 30
            && self.exponent.unsigned_abs() <= 100
            && self.offset.unsigned_abs() <= MAX_OFFSET
            && self.logit.unsigned_abs() <= MAX_OFFSET
            && self.pull.unsigned_abs() <= 1 << 30
            && (LEAST_PIVOT..=1 << 30).contains(&self.least)
    }
}

impl Shape {
    /// Whether models of this shape can be inferred in integers: see [`Model::fixed`].
    ///
    /// ```
    /// # use spikelet::{Kind, Shape, model::States};
    /// let (kind, dims, latents, selected, max_active) = (Kind::Gsc, 4, 6, 6, 4);
    /// let states = States::Adaptive { expansions: 4 };
    /// let shape = Shape { kind, dims, latents, selected, max_active, singletons: false, states };
    /// assert!(shape.fits_integers() && !Shape { states: States::Subsets, ..shape }.fits_integers());
    /// ```
    pub const fn fits_integers(&self) -> bool {
        matches!((self.kind, self.states), (Kind::Gsc, States::Adaptive { .. }))
    }
}

impl<T: Real> Model<'_, T> {
    /// Whether the model has what inference in integers needs, if it wants that.
    pub(super) fn check_fixed(&self) -> Result<(), ModelError> {
        let (Some(fixed), expected) = (self.fixed, self.shape.latents) else { return Ok(()) };
        if !(self.shape.fits_integers() && matches!(self.dictionary, Dictionary::Integer(_))) {
            return Err(ModelError::Unfit { field: "fixed" });
        }
        if fixed.len() != expected {
            return Err(ModelError::Length { field: "fixed", expected, found: fixed.len() });
        }
        match fixed.iter().position(|latent| !latent.is_possible()) {
            Some(index) => Err(ModelError::Range { field: "fixed", index }),
            None => Ok(()),
        }
    }
}
