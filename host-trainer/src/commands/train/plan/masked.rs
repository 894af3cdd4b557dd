//! What is learned from patches with missing pixels.

use super::{Engine, NoiseForm, Plan, SlabForm, StatesForm, Trained};
use crate::parameters::ModelKind;
use crate::{Error, Result};

impl Plan {
    /// Chooses what training with missing numbers needs: states that are found by search. Refuses what does not go with it.
    pub fn for_mask(&mut self) -> Result<()> {
        let is_gsc = matches!(self.given_model, None | Some(Trained::Points(ModelKind::Gsc)));
        let others = [
            (!is_gsc, "--model", "use --model gsc"),
            (self.from.is_some(), "--from", "train without it"),
            (self.whiten, "--whiten", "leave it out"),
            (self.holdout.is_some(), "--holdout", "leave it out"),
            (self.states == Some(StatesForm::Subsets), "--states subsets", "leave it out"),
            (self.engine.is_some_and(|engine| engine != Engine::Truncated), "--engine", "leave it out"),
            (self.slab == Some(SlabForm::Full), "--slab full", "use a diagonal slab"),
            (self.noise == Some(NoiseForm::Full), "--noise full", "use --noise shared or diagonal"),
            (self.selection.is_some(), "--selection", "leave it out"),
        ];
        if let Some((_, flag, advice)) = others.iter().find(|(given, ..)| *given) {
            return Err(Error::input("missing pixels do not go with it", flag, advice));
        }
        (self.engine, self.states) = (Some(Engine::Truncated), Some(StatesForm::Adaptive));
        Ok(())
    }
}
