//! How loud the input is, and how loud its sources are relative to each other.

use super::model::{MOST_FILTERS, SpectralModel};
use crate::math::Real;
use crate::numeric::slices::{at, set, span_mut};

/// The level of the blob counts as so many frames' lengths of input, and the mean goes back so many.
const FIRST: f32 = 4.0;
const LONGEST: f32 = 125.0;
/// Quiet input counts less by this: pauses do not lower the level much.
const QUIET: f32 = 1e-3;
const QUIET_WEIGHT: f32 = 1.0 / 16.0;
/// Forgetting and weight of a frame's evidence.
const FORGET: f32 = 0.98;
const EVIDENCE: f32 = 0.3;
/// Filters less probable than this have no part in masks.
const NEGLIGIBLE: f32 = 1e-3;

/// What is kept from frame to frame beside posteriors.
#[derive(Debug)]
pub(super) struct Levels<'m> {
    /// Mean power of the input, how many frames it is a mean of, residue of other sources in outputs, frames since the beginning,
    /// what a constant in the input leaves in bin 0; then E of each filter.
    numbers: &'m mut [f32],
}

impl<'m> Levels<'m> {
    pub const fn len(filters: usize) -> usize {
        5 + filters
    }

    pub fn over(numbers: &'m mut [f32]) -> Self {
        Self { numbers }
    }

    /// At the beginning; the residue stays.
    pub fn reset(&mut self, model: &SpectralModel<'_>) {
        let residue = self.residue();
        self.numbers.fill(0.0);
        self.set_residue(residue);
        self.set_level(model.level(), FIRST * model.length() as f32 / model.hop() as f32);
    }

    fn set_level(&mut self, power: f32, frames: f32) {
        set(self.numbers, 0, power);
        set(self.numbers, 1, frames);
    }

    /// The mean power of the input as it is known from elsewhere.
    pub fn know(&mut self, model: &SpectralModel<'_>, power: f32) {
        self.set_level(power, LONGEST * model.length() as f32 / model.hop() as f32);
    }

    pub fn residue(&self) -> f32 {
        at(self.numbers, 2)
    }

    pub fn set_residue(&mut self, residue: f32) {
        set(self.numbers, 2, residue);
    }

    /// Whether frames no longer reach back into the silence before the first: with an offset that is a loud edge, which says
    /// nothing of levels.
    fn is_filled(&self, model: &SpectralModel<'_>) -> bool {
        at(self.numbers, 3) * model.hop() as f32 > model.length() as f32
    }

    /// Hears bin 0 of the next frame; what of it is constant: the mean over frames that do not reach back into that silence.
    pub fn offset(&mut self, model: &SpectralModel<'_>, zero: f32) -> f32 {
        let frames = at(self.numbers, 3) + 1.0 - model.length() as f32 / model.hop() as f32;
        let offset = at(self.numbers, 4);
        let offset = offset + (zero - offset) / if frames > 1.0 { frames } else { 1.0 };
        // What is too loud to be inferred is not remembered.
        if offset * offset <= 1e30 {
            set(self.numbers, 4, offset);
        }
        offset
    }

    /// Hears K samples of some mean power; c^2, what the power of the frame is multiplied with.
    pub fn hear(&mut self, model: &SpectralModel<'_>, power: f32) -> f32 {
        let overlap = model.length() as f32 / model.hop() as f32;
        let (mut level, frames) = (at(self.numbers, 0), at(self.numbers, 1) + 1.0);
        let frames = if frames < LONGEST * overlap { frames } else { LONGEST * overlap };
        let heard = at(self.numbers, 3);
        set(self.numbers, 3, if heard < LONGEST { heard + 1.0 } else { heard });
        if self.is_filled(model) {
            let weight = if power < QUIET * level { QUIET_WEIGHT } else { 1.0 };
            level += (power - level) * (weight / frames);
        }
        let least = 1e-8 * model.level();
        let level = if level > least { level } else { least };
        self.set_level(level, frames);
        model.count() as f32 / level
    }

    /// Takes the evidence of all filters, and gives their weights.
    pub fn weigh(&mut self, model: &SpectralModel<'_>, evidences: &[f32], weights: &mut [f32; MOST_FILTERS]) {
        let share = if self.is_filled(model) { EVIDENCE } else { 0.0 };
        let sums = span_mut(self.numbers, 5, evidences.len());
        let mut most = f32::NEG_INFINITY;
        for (sum, evidence) in sums.iter_mut().zip(evidences) {
            *sum = FORGET * *sum + share * evidence;
            most = if *sum > most { *sum } else { most };
        }
        let mut total = 0.0;
        for (weight, &sum) in weights.iter_mut().zip(sums.iter()) {
            let value: f32 = Real::exp(sum - most);
            *weight = if value > NEGLIGIBLE { value } else { 0.0 };
            total += *weight;
        }
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
}
