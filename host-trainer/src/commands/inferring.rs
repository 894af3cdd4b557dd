//! How posteriors are computed, as flags: the same for all commands that run points through a model.

use super::engine::all_cores;
use super::sampling::Sampling;
use crate::prepare::check_truncation;
use crate::{Error, Result};
use spikelet::{Engine, Model, Shape};

#[derive(Debug, clap::Args)]
pub(super) struct Inferring {
    /// H', latents kept per point [default: the model's]
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: the model's; with gibbs as many as this build allows]
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// Threads to compute on; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    sampling: Sampling,
}

impl Inferring {
    /// The model as it was asked for, and its engine.
    pub fn of<'a>(&self, model: Model<'a, f32>) -> Result<(Model<'a, f32>, Engine)> {
        let model = match self.sampling.is_chosen(&model) {
            // The states that chains look at before they start are those of the model.
            true if self.sampling.lists_states() => truncated(model, self.selected, None)?,
            // What may be on at once does not matter to a sampler, so it is as little as any model allows.
            true => truncated(model, Some(self.selected.unwrap_or(model.shape.selected)), Some(1))?,
            false => truncated(model, self.selected, self.max_active)?,
        };
        Ok((model, self.sampling.engine(&model, self.max_active)?))
    }

    /// How many threads to compute on.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(all_cores, usize::from)
    }
}

/// The model with the truncation the user asked for, or its own.
fn truncated<'a>(
    model: Model<'a, f32>,
    selected: Option<usize>,
    max_active: Option<usize>,
) -> Result<Model<'a, f32>> {
    if selected.is_none() && max_active.is_none() {
        return Ok(model);
    }
    let selected = selected.unwrap_or(model.shape.selected);
    // Fewer latents kept mean fewer on, unless that was asked for as well.
    let max_active = max_active.unwrap_or(model.shape.max_active.min(selected));
    check_truncation(Shape { selected, max_active, ..model.shape })?;
    model.with_truncation(selected, max_active).map_err(|_| {
        let most = model.shape.max_active;
        let what = format!("the model holds a table of states with up to {most} latents on");
        Error::input(what, "--max-active", format_args!("choose {most} or less, or import it again"))
    })
}
