//! What parameters must be before anything is inferred from them.

use super::{
    Dictionary, Kind, MAX_STATES, Model, ModelError, Noise, PANEL, Selection, Shape, StateTable, States,
};
use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::features::{DEEP, FIXED, FLOAT_SLAB, GIBBS, INTEGERS, MANY_STATES, has_slab, left_out};
use crate::fixed::{fits, is_possible};
use crate::kept::serves;
use crate::math::Real;
use crate::slices::{at, lower_row};

impl Shape {
    pub(super) const fn check(&self) -> Result<(), ModelError> {
        if self.dims == 0 || self.dims > i32::MAX as usize / 8 {
            return Err(ModelError::Size { field: "dims" });
        }
        if self.latents == 0 || self.latents > u16::MAX as usize {
            return Err(ModelError::Size { field: "latents" });
        }
        if self.selected == 0 || self.selected > self.latents {
            return Err(ModelError::Size { field: "selected" });
        }
        if self.max_active == 0 || self.max_active > self.selected {
            return Err(ModelError::Size { field: "max_active" });
        }
        if self.selected > MAX_SELECTED {
            return Err(ModelError::Capacity { field: "selected", most: MAX_SELECTED });
        }
        if self.max_active > MAX_ACTIVE {
            return Err(ModelError::Capacity { field: "max_active", most: MAX_ACTIVE });
        }
        // Those of sampled kinds are never looked at one by one.
        if MANY_STATES && self.states() > MAX_STATES && !self.kind.is_sampled() {
            return Err(ModelError::TooManyStates);
        }
        // Maximal causes keep D numbers for each latent that is on.
        if self.kind.is_maximal() && self.dims > i32::MAX as usize / 8 / self.max_active {
            return Err(ModelError::Size { field: "dims" });
        }
        Ok(())
    }
}

impl<'a, T: Real> Model<'a, T> {
    /// Checks sizes, capacities, finiteness and ranges of all parts; a model that passes cannot
    /// make inference panic, run out of bounds or run forever.
    pub fn new(mut parts: Model<'a, T>) -> Result<Self, ModelError> {
        if let Some(feature) = left_out(&parts) {
            return Err(ModelError::LeftOut { feature });
        }
        parts.shape.check()?;
        let Shape { kind, dims: d, latents: h, max_active, .. } = parts.shape;
        // Checked products: on a 32-bit device D x H may not fit.
        let panels = h.div_ceil(PANEL).checked_mul(PANEL).and_then(|h| h.checked_mul(d));
        let Some(panels) = panels else { return Err(ModelError::Size { field: "dims" }) };
        match &mut parts.dictionary {
            Dictionary::Float(packed) => {
                numbers("dictionary", packed, panels)?;
                if kind.is_non_negative() {
                    not_negative("dictionary", packed)?;
                }
            }
            Dictionary::Integer(integers) if INTEGERS => {
                *integers = integers.checked(d, h, kind.is_non_negative())?
            }
            Dictionary::Integer(_) => {}
        }
        numbers("prior", parts.prior_logit, h)?;
        let full_noise = matches!(parts.noise, Noise::Full(_));
        if kind.is_maximal() && full_noise {
            return Err(ModelError::Unfit { field: "noise" });
        }
        let slab = if kind.has_slab() { h } else { 0 };
        numbers("slab_mean", parts.slab_mean, slab)?;
        positive("slab_cov", parts.slab_precision, slab)?;
        numbers("gram_diagonal", parts.gram_diagonal, h)?;
        not_negative("gram_diagonal", parts.gram_diagonal)?;
        numbers("score_offset", parts.score_offset, slab)?;
        if let Some(gram) = parts.gram {
            let Some(len) = h.checked_mul(h + 1) else { return Err(ModelError::Size { field: "gram" }) };
            numbers("gram", gram, len / 2)?;
        } else if full_noise {
            // Without it every entry would cost D^2 multiply-adds per sample.
            return Err(ModelError::Size { field: "gram" });
        }
        match parts.noise {
            Noise::Shared(precision) => positive("noise", &[precision], 1)?,
            Noise::Diagonal(precisions) => positive("noise", precisions, d)?,
            Noise::Full(factor) => {
                let Some(len) = d.checked_mul(d + 1) else { return Err(ModelError::Size { field: "noise" }) };
                numbers("noise", factor, len / 2)?;
                if let Some(index) = (0..d).find(|&i| !(at(lower_row(factor, i), i) > T::ZERO)) {
                    return Err(ModelError::Range { field: "noise", index });
                }
            }
        }
        match parts.selection {
            Selection::Singleton => {}
            Selection::Independent { precision, offset } if kind == Kind::Gsc => {
                numbers("selection_precision", precision, panels)?;
                not_negative("selection_precision", precision)?;
                numbers("selection_offset", offset, h)?;
            }
            Selection::Cosine { scale } if kind != Kind::Gsc => numbers("selection_scale", scale, h)?,
            Selection::Bound if kind.is_non_negative() && !kind.has_slab() && !full_noise => {}
            _ => return Err(ModelError::Unfit { field: "selection" }),
        }
        if FIXED && let Some(fixed) = parts.fixed {
            let is_grown = matches!(parts.states, States::Grown);
            let is_singleton = matches!(parts.selection, Selection::Singleton);
            let is_integer = matches!(parts.dictionary, Dictionary::Integer(_));
            if !(fits(&parts.shape) && is_grown && is_singleton && is_integer) {
                return Err(ModelError::Unfit { field: "fixed" });
            }
            if fixed.len() != h {
                return Err(ModelError::Length { field: "fixed", expected: h, found: fixed.len() });
            }
            if let Some(index) = fixed.iter().position(|latent| !is_possible(latent)) {
                return Err(ModelError::Range { field: "fixed", index });
            }
        }
        if let States::Table(table) = parts.states {
            match StateTable::<T>::len(h, max_active, table.full_slab) {
                Some(len) if kind == Kind::Gsc => numbers("states", table.records, len)?,
                Some(_) => return Err(ModelError::Unfit { field: "states" }),
                None => return Err(ModelError::Size { field: "states" }),
            }
        }
        numbers("log_norm", &[parts.log_norm], 1)?;
        // By sampling it could still be inferred.
        if FLOAT_SLAB && !DEEP && !GIBBS && has_slab(kind) && !serves(&parts) {
            return Err(ModelError::LeftOut { feature: "deep" });
        }
        Ok(parts)
    }
}

/// As many numbers as the shape says, all of them finite.
fn numbers<T: Real>(field: &'static str, values: &[T], expected: usize) -> Result<(), ModelError> {
    if values.len() != expected {
        return Err(ModelError::Length { field, expected, found: values.len() });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(ModelError::NotFinite { field, index }),
        None => Ok(()),
    }
}

/// [`numbers`] that are also above zero.
pub(crate) fn positive<T: Real>(
    field: &'static str,
    values: &[T],
    expected: usize,
) -> Result<(), ModelError> {
    numbers(field, values, expected)?;
    match values.iter().position(|&v| !(v > T::ZERO)) {
        Some(index) => Err(ModelError::Range { field, index }),
        None => Ok(()),
    }
}

fn not_negative<T: Real>(field: &'static str, values: &[T]) -> Result<(), ModelError> {
    match values.iter().position(|&v| v < T::ZERO) {
        Some(index) => Err(ModelError::Range { field, index }),
        None => Ok(()),
    }
}
