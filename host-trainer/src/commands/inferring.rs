//! How posteriors are computed, as flags: the same for all commands that run points through a model.

use super::chosen_states::ChosenStates;
use super::engine::all_cores;
use super::model_file::warn_of_digits;
use super::sampling::Sampling;
use crate::Result;
use spikelet::{Engine, Model};

#[derive(Debug, clap::Args)]
pub(super) struct Inferring {
    #[command(flatten)]
    states: ChosenStates,
    /// Threads to compute on; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    sampling: Sampling,
}

impl Inferring {
    /// The model as it was asked for, and its engine.
    pub fn of<'a>(&self, model: Model<'a, f32>) -> Result<(Model<'a, f32>, Engine)> {
        if model.shape.kind.is_mixture() && self.sampling.is_chosen(&model) {
            // Refused, before its states are made those of a sampler.
            self.sampling.checked(&model, None)?;
        }
        let model = match self.sampling.is_chosen(&model) {
            // The states that chains look at before they start are those of the model.
            true if self.sampling.lists_states() => {
                ChosenStates { max_active: None, ..self.states }.adapt(model)?
            }
            // What may be on at once does not matter to a sampler, so it is as little as any model allows.
            true => ChosenStates {
                selected: Some(self.states.selected.unwrap_or(model.shape.selected)),
                max_active: Some(1),
                ..self.states
            }
            .adapt(model)?,
            false => {
                let model = self.states.adapt(model)?;
                warn_of_digits(&model);
                model
            }
        };
        Ok((model, self.sampling.engine(&model, self.states.max_active)?))
    }

    /// How many threads to compute on.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(all_cores, usize::from)
    }
}
