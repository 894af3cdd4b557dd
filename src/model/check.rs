//! What parameters must be before anything is inferred from them.

use super::needs::left_out;
use super::{
    Dictionary, Kind, MAX_STATES, Model, ModelError, Noise, PANEL, Selection, Shape, StateTable, States,
};
use crate::capacity::{MAX_ACTIVE, MAX_CANDIDATES, MAX_EXPANSIONS, MAX_SELECTED};
use crate::features::{FIXED, INTEGERS, SUBSETS};
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
            States::Subsets | States::Table
                if SUBSETS && self.states() > MAX_STATES && !self.kind.is_sampled() =>
            {
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
        if let Some(features) = left_out(&parts) {
            return Err(ModelError::LeftOut { features });
        }
        parts.shape.check()?;
        let Shape { kind, dims: d, latents: h, .. } = parts.shape;
        // Checked products: on a 32-bit device D x H may not fit.
        let panels = h.div_ceil(PANEL).checked_mul(PANEL).and_then(|h| h.checked_mul(d));
        let Some(panels) = panels else { return Err(ModelError::Size { field: "dims" }) };
        if let (Dictionary::Integer(integers), true) = (&mut parts.dictionary, INTEGERS) {
            *integers = integers.checked(d, h, kind.is_non_negative())?;
        }
        let full_noise = matches!(parts.noise, Noise::Full(_));
        if kind.is_maximal() && full_noise {
            return Err(ModelError::Unfit { field: "noise" });
        }
        let Some(pairs) = h.checked_mul(h + 1) else { return Err(ModelError::Size { field: "gram" }) };
        if parts.gram.is_none() && full_noise {
            // Without it every entry would cost D^2 multiply-adds per sample.
            return Err(ModelError::Size { field: "gram" });
        }
        let Some(factor) = d.checked_mul(d + 1) else { return Err(ModelError::Size { field: "noise" }) };
        let slab = if kind.has_slab() { h } else { 0 };
        let sign = if kind.is_non_negative() { Sign::NotNegative } else { Sign::Any };
        let dictionary = match parts.dictionary {
            Dictionary::Float(packed) => ("dictionary", packed, panels, sign),
            Dictionary::Integer(_) => ("dictionary", &[][..], 0, sign),
        };
        let precision;
        let noise = match parts.noise {
            Noise::Shared(shared) => {
                precision = [shared];
                ("noise", &precision[..], 1, Sign::Positive)
            }
            Noise::Diagonal(precisions) => ("noise", precisions, d, Sign::Positive),
            Noise::Full(packed) => ("noise", packed, factor / 2, Sign::Any),
        };
        let log_norm = [parts.log_norm];
        for (field, values, expected, sign) in [
            dictionary,
            ("prior", parts.prior_logit, h, Sign::Any),
            ("slab_mean", parts.slab_mean, slab, Sign::Any),
            ("slab_cov", parts.slab_precision, slab, Sign::Positive),
            ("gram_diagonal", parts.gram_diagonal, h, Sign::NotNegative),
            ("score_offset", parts.score_offset, slab, Sign::Any),
            ("gram", parts.gram.unwrap_or(&[]), parts.gram.map_or(0, |_| pairs / 2), Sign::Any),
            noise,
            ("log_norm", &log_norm[..], 1, Sign::Any),
        ] {
            numbers(field, values, expected, sign)?;
        }
        if let Noise::Full(factor) = parts.noise
            && let Some(index) = (0..d).find(|&i| !(at(lower_row(factor, i), i) > T::ZERO))
        {
            return Err(ModelError::Range { field: "noise", index });
        }
        match parts.selection {
            Selection::Singleton => {}
            Selection::Independent { precision, offset } if kind == Kind::Gsc => {
                numbers("selection_precision", precision, panels, Sign::NotNegative)?;
                numbers("selection_offset", offset, h, Sign::Any)?;
            }
            Selection::Cosine { scale } if kind != Kind::Gsc => {
                numbers("selection_scale", scale, h, Sign::Any)?
            }
            Selection::Bound if kind.is_non_negative() && !kind.has_slab() && !full_noise => {}
            _ => return Err(ModelError::Unfit { field: "selection" }),
        }
        parts.check_states()?;
        if FIXED {
            parts.check_fixed()?;
        }
        Ok(parts)
    }

    /// Whether the model has what its states need.
    pub(super) fn check_states(&self) -> Result<(), ModelError> {
        let Shape { kind, latents, max_active, .. } = self.shape;
        match (self.shape.states, self.table) {
            (States::Table, Some(table)) if SUBSETS && kind == Kind::Gsc => {
                match StateTable::<T>::len(latents, max_active, table.full_slab) {
                    Some(len) => numbers("states", table.records, len, Sign::Any),
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

/// What numbers may be, beside finite.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sign {
    Any,
    NotNegative,
    Positive,
}

/// Refuses anything but as many numbers as the shape says, all of them finite and of this sign.
#[inline(never)]
pub(crate) fn numbers<T: Real>(
    field: &'static str,
    values: &[T],
    expected: usize,
    sign: Sign,
) -> Result<(), ModelError> {
    if values.len() != expected {
        return Err(ModelError::Length { field, expected, found: values.len() });
    }
    for (index, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(ModelError::NotFinite { field, index });
        }
        let is_allowed = match sign {
            Sign::Any => true,
            Sign::NotNegative => value >= T::ZERO,
            Sign::Positive => value > T::ZERO,
        };
        if !is_allowed {
            return Err(ModelError::Range { field, index });
        }
    }
    Ok(())
}
