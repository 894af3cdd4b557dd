//! What parameters must be before anything is inferred from them.

use super::{
    Dictionary, Kind, MAX_STATES, Model, ModelError, Noise, PANEL, Selection, Shape, StateTable, States,
};
use crate::capacity::{MAX_ACTIVE, MAX_CANDIDATES, MAX_EXPANSIONS, MAX_SELECTED};
use crate::features::{FIXED, INTEGERS, left_out};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, lower_row};

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
        match self.states {
            States::Adaptive { .. } if self.selected > MAX_CANDIDATES => {
                return Err(ModelError::Capacity { field: "selected", most: MAX_CANDIDATES });
            }
            States::Adaptive { expansions: 0 } => return Err(ModelError::Size { field: "expansions" }),
            States::Adaptive { expansions } if expansions as usize > MAX_EXPANSIONS => {
                return Err(ModelError::Capacity { field: "expansions", most: MAX_EXPANSIONS });
            }
            States::Adaptive { .. } if self.singletons => {
                return Err(ModelError::Unfit { field: "singletons" });
            }
            // Those of sampled kinds are never looked at one by one.
            States::Subsets | States::Table if self.states() > MAX_STATES && !self.kind.is_sampled() => {
                return Err(ModelError::TooManyStates);
            }
            States::Adaptive { .. } | States::Subsets | States::Table => {}
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
        let Shape { kind, dims: d, latents: h, .. } = parts.shape;
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
        parts.check_states()?;
        if FIXED {
            parts.check_fixed()?;
        }
        numbers("log_norm", &[parts.log_norm], 1)?;
        Ok(parts)
    }

    /// Whether the model has what its states need.
    pub(super) fn check_states(&self) -> Result<(), ModelError> {
        let Shape { kind, latents, max_active, .. } = self.shape;
        match (self.shape.states, self.table) {
            (States::Table, Some(table)) if kind == Kind::Gsc => {
                match StateTable::<T>::len(latents, max_active, table.full_slab) {
                    Some(len) => numbers("states", table.records, len),
                    None => Err(ModelError::Size { field: "states" }),
                }
            }
            (States::Table, _) => Err(ModelError::Unfit { field: "states" }),
            // A full slab has no states without a table.
            (States::Adaptive { .. } | States::Subsets, Some(table)) if table.full_slab => {
                Err(ModelError::Unfit { field: "states" })
            }
            (States::Adaptive { .. } | States::Subsets, _) => Ok(()),
        }
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
