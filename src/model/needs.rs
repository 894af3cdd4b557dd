//! The features that a model needs.

use super::{Dictionary, Kind, Model, States};
use crate::features::Features;

impl Features {
    /// What a build must have to run a model with its usual engine. A model in fixed point needs nothing for floats, but samples
    /// that are too loud for integers are refused without the feature `gsc`.
    pub const fn of<T>(model: &Model<'_, T>) -> Self {
        let is_fixed = model.fixed.is_some();
        let kind = model.shape.kind;
        Self::NONE
            .with(Self::of_kind(kind), !is_fixed)
            .with(
                Self::SUBSETS,
                !kind.is_sampled()
                    && !matches!(kind, Kind::Gmm)
                    && matches!(model.shape.states, States::Subsets | States::Table),
            )
            .with(Self::INTEGERS, matches!(model.dictionary, Dictionary::Integer(_)))
            .with(Self::FIXED_POINT, is_fixed)
            .with(Self::STREAM, model.is_transformed)
    }
}

/// What a model needs and this build lacks, if there is anything.
pub(crate) const fn left_out<T>(model: &Model<'_, T>) -> Option<Features> {
    let missing = Features::of(model).without(Features::BUILT);
    if missing.is_empty() { None } else { Some(missing) }
}
