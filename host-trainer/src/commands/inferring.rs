//! How posteriors are computed, as flags: the same for all commands that run points through a model.

use super::engine::all_cores;
use super::sampling::Sampling;
use crate::prepare::{Options, StatesName, check_truncation};
use crate::{Error, Result};
use spikelet::capacity::{MAX_CANDIDATES, MAX_SELECTED};
use spikelet::model::States;
use spikelet::{Engine, Model, Shape};

#[derive(Debug, clap::Args)]
pub(super) struct Inferring {
    /// Which states are looked at [default: the model's]
    #[arg(long, value_enum)]
    states: Option<StatesName>,
    /// States of a search whose neighbours are looked at, with adaptive states [default: the model's, or 4]
    #[arg(long, value_name = "COUNT")]
    expansions: Option<usize>,
    /// H', latents kept per point; candidates at most with adaptive states [default: the model's]
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
            true if self.sampling.lists_states() => self.adapted(model, self.selected, None)?,
            // What may be on at once does not matter to a sampler, so it is as little as any model allows.
            true => self.adapted(model, Some(self.selected.unwrap_or(model.shape.selected)), Some(1))?,
            false => self.adapted(model, self.selected, self.max_active)?,
        };
        Ok((model, self.sampling.engine(&model, self.max_active)?))
    }

    /// How many threads to compute on.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(all_cores, usize::from)
    }

    /// The model with the states the user asked for, or its own.
    fn adapted<'a>(
        &self,
        model: Model<'a, f32>,
        selected: Option<usize>,
        max_active: Option<usize>,
    ) -> Result<Model<'a, f32>> {
        let asked = (self.states, self.expansions, selected, max_active);
        if asked == (None, None, None, None) {
            return Ok(model);
        }
        let own = match model.shape.states {
            States::Adaptive { expansions } => usize::from(expansions),
            States::Subsets | States::Table => Options::EXPANSIONS,
        };
        let expansions = u16::try_from(self.expansions.unwrap_or(own)).unwrap_or(u16::MAX);
        let states = match (self.states, model.shape.states) {
            (Some(StatesName::Adaptive), _) | (None, States::Adaptive { .. }) => {
                States::Adaptive { expansions }
            }
            (Some(StatesName::Subsets), _) | (None, States::Subsets) => States::Subsets,
            (Some(StatesName::Table), _) | (None, States::Table) => States::Table,
        };
        if self.expansions.is_some() && !matches!(states, States::Adaptive { .. }) {
            let what = "only adaptive states are expanded";
            return Err(Error::input(what, "--expansions", "leave it away, or use --states adaptive"));
        }
        if states == States::Table && model.table.is_none() {
            let what = "the model has no table of states";
            return Err(Error::input(what, "--states table", "import it again with --states table"));
        }
        if states != States::Table && model.has_full_slab() {
            let what = "a slab with correlations needs its table of states";
            return Err(Error::input(what, "--states", "leave the flag away"));
        }
        let is_adaptive = matches!(states, States::Adaptive { .. });
        let most = if is_adaptive { MAX_CANDIDATES } else { MAX_SELECTED };
        let selected = selected.unwrap_or(model.shape.selected.min(most));
        // Fewer latents kept mean fewer on, unless that was asked for as well.
        let max_active = max_active.unwrap_or(model.shape.max_active.min(selected));
        let singletons = model.shape.singletons && !is_adaptive;
        check_truncation(Shape { selected, max_active, states, singletons, ..model.shape })?;
        let table = model.table.filter(|_| states == States::Table);
        Model { table, ..model }.with_states(selected, max_active, states).map_err(|_| {
            let most = model.shape.max_active;
            let what = format!("the model holds a table of states with up to {most} latents on");
            Error::input(what, "--max-active", format_args!("choose {most} or less, or import it again"))
        })
    }
}
