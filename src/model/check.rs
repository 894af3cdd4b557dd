//! Checks of parameters, once, before inference.

use super::needs::left_out;
use super::{
    Dictionary, Kind, MAX_STATES, Model, ModelError, Noise, PANEL, Selection, Shape, StateTable, States,
};
use crate::capacity::{MAX_ACTIVE, MAX_CANDIDATES, MAX_EXPANSIONS, MAX_SELECTED};
use crate::features::{FIXED, INDEPENDENT, INTEGERS, SUBSETS};
use crate::kinds::gsc::is_resolved;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, lower_row};

impl Shape {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        // Maximal causes keep D numbers for each latent that is on.
        let rows = if self.kind.is_maximal() { self.max_active.max(1) } else { 1 };
        let (candidates, expansions) = match self.states {
            States::Adaptive { expansions } => (MAX_CANDIDATES, usize::from(expansions)),
            States::Subsets | States::Table => (MAX_SELECTED, 1),
        };
        for (field, size, container, capacity) in [
            ("dims", self.dims, i32::MAX as usize / 8 / rows, usize::MAX),
            ("latents", self.latents, u16::MAX as usize, usize::MAX),
            ("selected", self.selected, self.latents, candidates),
            ("max_active", self.max_active, self.selected, MAX_ACTIVE),
            ("expansions", expansions, usize::MAX, MAX_EXPANSIONS),
        ] {
            if size == 0 || size > container {
                return Err(ModelError::Size { field });
            }
            if size > capacity {
                return Err(ModelError::Capacity { field, most: capacity });
            }
        }
        if self.kind.is_mixture() {
            // There is nothing to search for, and one latent is on.
            return match (self.max_active, self.states) {
                (1, States::Subsets) => Ok(()),
                (1, _) => Err(ModelError::Unfit { field: "states" }),
                _ => Err(ModelError::Size { field: "max_active" }),
            };
        }
        match self.states {
            States::Adaptive { .. } if self.singletons => Err(ModelError::Unfit { field: "singletons" }),
            // Those of sampled kinds are never looked at one by one.
            States::Subsets | States::Table
                if SUBSETS && self.states() > MAX_STATES && !self.kind.is_sampled() =>
            {
                Err(ModelError::TooManyStates)
            }
            States::Adaptive { .. } | States::Subsets | States::Table => Ok(()),
        }
    }
}

impl<'a, T: Real> Model<'a, T> {
    /// Checks sizes, capacities, finiteness and ranges of all parts; a model that passes cannot
    /// make inference panic, run out of bounds or run forever.
    pub fn new(mut parts: Model<'a, T>) -> Result<Self, ModelError> {
        parts.check()?;
        Ok(parts)
    }

    /// [`Model::new`] in place. Finds out the peak of a dictionary of integers, and whether slabs have means.
    pub(crate) fn check(&mut self) -> Result<(), ModelError> {
        if let Some(features) = left_out(self) {
            return Err(ModelError::LeftOut { features });
        }
        self.shape.kind = self.shape.kind.known();
        self.shape.check()?;
        let Shape { kind, dims: d, latents: h, .. } = self.shape;
        // Checked products: on a 32-bit device D x H may not fit.
        let panels = h.div_ceil(PANEL).checked_mul(PANEL).and_then(|h| h.checked_mul(d));
        let (Some(panels), Some(factor), Some(pairs)) = (panels, d.checked_mul(d + 1), h.checked_mul(h + 1))
        else {
            return Err(ModelError::Size { field: "dims" });
        };
        let full_noise = matches!(self.noise, Noise::Full(_));
        if kind.is_maximal() && full_noise {
            return Err(ModelError::Unfit { field: "noise" });
        }
        if self.gram.is_none() && full_noise && !kind.is_mixture() {
            // Without it every entry would cost D^2 multiply-adds per sample.
            return Err(ModelError::Size { field: "gram" });
        }
        let slab = if kind.has_slab() { h } else { 0 };
        let sign = if kind.is_non_negative() { Sign::NotNegative } else { Sign::Any };
        let mut checks = Checks { fault: None };
        match &mut self.dictionary {
            Dictionary::Float(packed) => checks.numbers("dictionary", packed, panels, sign),
            Dictionary::Integer(integers) if INTEGERS => {
                *integers = integers.checked(d, h, kind.is_non_negative())?;
            }
            Dictionary::Integer(_) => {}
        }
        checks.numbers("prior", self.prior_logit, h, Sign::Any);
        checks.numbers("slab_mean", self.slab_mean, slab, Sign::Any);
        self.has_slab_mean = self.slab_mean.iter().any(|&mean| mean != T::ZERO);
        checks.numbers("slab_cov", self.slab_precision, slab, Sign::Positive);
        checks.numbers("gram_diagonal", self.gram_diagonal, h, Sign::NotNegative);
        let mut pivots = self.slab_precision.iter().zip(self.gram_diagonal);
        self.may_lose_digits = pivots.any(|(&k, &g)| !is_resolved(k, g * T::ROUNDING));
        checks.numbers("score_offset", self.score_offset, slab, Sign::Any);
        checks.numbers("log_norm", &[self.log_norm], 1, Sign::Any);
        if let Some(gram) = self.gram {
            checks.numbers("gram", gram, pairs / 2, Sign::Any);
        }
        match self.noise {
            Noise::Shared(precision) => checks.numbers("noise", &[precision], 1, Sign::Positive),
            Noise::Diagonal(precisions) => checks.numbers("noise", precisions, d, Sign::Positive),
            Noise::Full(packed) => checks.numbers("noise", packed, factor / 2, Sign::Any),
        }
        match self.selection {
            Selection::Singleton => {}
            Selection::Independent { precision, offset } if matches!(kind, Kind::Gsc | Kind::Gmm) => {
                if INDEPENDENT {
                    checks.numbers("selection_precision", precision, panels, Sign::NotNegative);
                    checks.numbers("selection_offset", offset, h, Sign::Any);
                }
            }
            Selection::Cosine { scale } if !matches!(kind, Kind::Gsc | Kind::Gmm) => {
                checks.numbers("selection_scale", scale, h, Sign::Any);
            }
            Selection::Learned { weights } => {
                checks.numbers("selection_weights", weights, panels, Sign::Any);
            }
            Selection::Bound if kind.is_non_negative() && !kind.has_slab() && !full_noise => {}
            _ => return Err(ModelError::Unfit { field: "selection" }),
        }
        if let Some(error) = checks.fault {
            return Err(error);
        }
        if let Noise::Full(factor) = self.noise
            && let Some(index) = (0..d).find(|&i| !(at(lower_row(factor, i), i) > T::ZERO))
        {
            return Err(ModelError::Range { field: "noise", index });
        }
        self.check_states()?;
        if FIXED { self.check_fixed() } else { Ok(()) }
    }

    /// Whether the model has what its states need.
    pub(super) fn check_states(&self) -> Result<(), ModelError> {
        let Shape { kind, latents, max_active, .. } = self.shape;
        if !SUBSETS && !kind.is_sampled() {
            return Ok(()); // any others were refused
        }
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

/// Checks one array after the other and keeps the first error, to be returned once: a return after each would double the code.
struct Checks {
    fault: Option<ModelError>,
}

impl Checks {
    #[inline(never)]
    fn numbers<T: Real>(&mut self, field: &'static str, values: &[T], expected: usize, sign: Sign) {
        if self.fault.is_none() {
            self.fault = numbers(field, values, expected, sign).err();
        }
    }
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
