//! What a model may look like beside its parameters, and what is refused in the words of the command line.

use crate::parameters::{ModelKind, NoiseCov, Parameters};
use crate::{Error, Result};
use spikelet::capacity::{MAX_ACTIVE, MAX_CANDIDATES, MAX_EXPANSIONS, MAX_SELECTED};
use spikelet::model::{MAX_STATES, Shape, States};

/// Names of the selection scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SelectionName {
    /// Probability of the sample with one latent on.
    Singleton,
    /// The same with dimensions taken as independent.
    Independent,
    /// Product with the column of W, which has length 1 for that (not for gsc).
    Cosine,
    /// Most that any state with the latent on can reach (nmf, mca).
    Bound,
}

impl SelectionName {
    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Singleton => "singleton",
            Self::Independent => "independent",
            Self::Cosine => "cosine",
            Self::Bound => "bound",
        }
    }

    /// The one that a kind has unless another is asked for.
    pub fn of_kind(kind: ModelKind) -> Self {
        match kind {
            ModelKind::Gsc | ModelKind::Gmm => Self::Singleton,
            ModelKind::Bsc | ModelKind::Ssmca => Self::Cosine,
            ModelKind::Nmf | ModelKind::Mca => Self::Bound,
        }
    }
}

/// Which states of a sample are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StatesName {
    /// Found by search around a greedy reference (diagonal slab).
    Adaptive,
    /// The papers': at most `--max-active` of the `--selected` latents with the best scores (diagonal slab).
    Subsets,
    /// The same with matrices precomputed for every state (any slab).
    Table,
}

/// Whether the H x H Gram matrix is part of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GramName {
    /// Stored when it is small or no larger than the dictionary.
    Auto,
    /// Stored.
    Stored,
    /// The H' x H' block is computed for every sample.
    Computed,
}

/// How inference shall run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// H'.
    pub selected: usize,
    /// gamma.
    pub max_active: usize,
    /// Keep the singleton states of all latents.
    pub singletons: bool,
    /// Selection score.
    pub selection: SelectionName,
    /// Which states; `None` is subsets, or a table for a full slab.
    pub states: Option<StatesName>,
    /// X of adaptive states.
    pub expansions: usize,
    /// Whether G is stored.
    pub gram: GramName,
}

impl Options {
    /// Expansions unless others are asked for.
    pub const EXPANSIONS: usize = 4;
    /// Candidates of adaptive states, likewise.
    pub const CANDIDATES: usize = 20;
    /// Most of them on at once, likewise.
    pub const ACTIVE: usize = 12;
}

/// Refuses what the core would refuse, in the words of the command line.
pub(crate) fn check_truncation(shape: Shape) -> Result<()> {
    let Shape { latents, selected, max_active, .. } = shape;
    if latents > usize::from(u16::MAX) {
        let what = format!("{latents} latents are more than 65535");
        return Err(Error::input(what, "W", "give a D x H matrix with fewer columns"));
    }
    if selected == 0 || selected > latents {
        let advice = format!("choose 1 to {latents}, the number of latents");
        return Err(Error::input(format_args!("cannot preselect {selected} latents"), "--selected", advice));
    }
    if shape.kind.is_mixture() && max_active != 1 {
        let what = format!("exactly one component of a mixture is on, not {max_active}");
        return Err(Error::input(what, "--max-active", "leave the flag out"));
    }
    if max_active == 0 || max_active > selected {
        let advice = format!("choose 1 to {selected}, the number of preselected latents");
        return Err(Error::input(
            format_args!("cannot have {max_active} latents on"),
            "--max-active",
            advice,
        ));
    }
    let (most_selected, expansions) = match shape.states {
        States::Adaptive { expansions } => (MAX_CANDIDATES, usize::from(expansions)),
        States::Subsets | States::Table => (MAX_SELECTED, 1),
    };
    for (flag, value, most, what) in [
        ("--selected", selected, most_selected, "latents"),
        ("--max-active", max_active, MAX_ACTIVE, "latents"),
        ("--expansions", expansions, MAX_EXPANSIONS, "expansions"),
    ] {
        if value == 0 || value > most {
            let advice = format!("choose 1 to {most}");
            return Err(Error::input(format_args!("{value} {what} are not possible"), flag, advice));
        }
    }
    if shape.states() > MAX_STATES && !shape.kind.is_sampled() {
        let what =
            format!("up to {max_active} of {selected} latents on are more than 2^32 states per sample");
        return Err(Error::input(what, "--max-active", "lower it, or lower --selected"));
    }
    Ok(())
}

/// Refuses scores that say nothing about this kind of model.
pub(super) fn check_selection(parameters: &Parameters, selection: SelectionName) -> Result<()> {
    let kind = parameters.kind;
    let full_noise = matches!(parameters.noise, NoiseCov::Full(_));
    let (why, place) = match selection {
        SelectionName::Independent | SelectionName::Cosine | SelectionName::Bound
            if kind == ModelKind::Gmm =>
        {
            ("components are selected by how likely each is", selection.name())
        }
        SelectionName::Independent if kind != ModelKind::Gsc => {
            ("independent dimensions are for gsc; here the score singleton is the same", "independent")
        }
        SelectionName::Cosine if kind == ModelKind::Gsc => (
            "the cosine does not say how likely a latent with a slab is on, which may have either sign",
            "cosine",
        ),
        SelectionName::Bound if !kind.kind().is_non_negative() => {
            ("the bound holds only where W is not negative", "bound")
        }
        SelectionName::Bound if kind.kind().has_slab() => {
            ("the bound holds only where latents are off or on, without a strength", "bound")
        }
        SelectionName::Bound if full_noise => ("the bound needs noise without correlations", "bound"),
        _ => return Ok(()),
    };
    let names = match kind {
        ModelKind::Gmm => "singleton",
        ModelKind::Gsc => "singleton or independent",
        ModelKind::Nmf | ModelKind::Mca if !full_noise => "bound, cosine or singleton",
        _ => "cosine or singleton",
    };
    let advice = format!("choose {names} for a model of kind {}", kind.name());
    Err(Error::input(why, format_args!("--selection {place}"), advice))
}
