//! Which states are looked at, as flags.

use crate::prepare::{Options, StatesName, check_truncation};
use crate::{Error, Result};
use spikelet::capacity::{MAX_CANDIDATES, MAX_SELECTED};
use spikelet::model::States;
use spikelet::{Model, Shape};

#[derive(Clone, Copy, Debug, Default, PartialEq, clap::Args)]
pub(super) struct ChosenStates {
    /// Which states are looked at [default: the model's]
    #[arg(long, value_enum)]
    pub states: Option<StatesName>,
    /// States of a search whose neighbours are looked at, with adaptive states [default: the model's, or 4]
    #[arg(long, value_name = "COUNT")]
    pub expansions: Option<usize>,
    /// H', latents kept per point; candidates at most with adaptive states [default: the model's]
    #[arg(long, value_name = "COUNT")]
    pub selected: Option<usize>,
    /// Most latents on at once [default: the model's; with gibbs as many as this build allows]
    #[arg(long, value_name = "COUNT")]
    pub max_active: Option<usize>,
}

impl ChosenStates {
    /// The model with the states the user asked for, or its own.
    pub fn adapt<'a>(&self, model: Model<'a, f32>) -> Result<Model<'a, f32>> {
        if *self == Self::default() {
            return Ok(model);
        }
        if model.shape.kind.is_mixture() && *self != (Self { selected: self.selected, ..Self::default() }) {
            let what = "exactly one component of a mixture is on";
            let place = "--states, --expansions and --max-active";
            return Err(Error::input(what, place, "leave them out for a model of kind gmm"));
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
            return Err(Error::input(what, "--expansions", "leave it out, or use --states adaptive"));
        }
        if states == States::Table && model.table.is_none() {
            let what = "the model has no table of states";
            return Err(Error::input(what, "--states table", "import it again with --states table"));
        }
        if states != States::Table && model.has_full_slab() {
            let what = "a slab with correlations needs its table of states";
            return Err(Error::input(what, "--states", "leave the flag out"));
        }
        let is_adaptive = matches!(states, States::Adaptive { .. });
        let most = if is_adaptive { MAX_CANDIDATES } else { MAX_SELECTED };
        let selected = self.selected.unwrap_or(model.shape.selected.min(most));
        // Fewer latents kept mean fewer on, unless that was asked for as well.
        let max_active = self.max_active.unwrap_or(model.shape.max_active.min(selected));
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
