//! How a posterior is computed: over all kept states, or from draws.

use crate::capacity::MAX_ACTIVE;
use crate::error::Error;
use crate::memory::{Detail, arena_len, gibbs_arena_len, gibbs_state_bytes, state_bytes};
use crate::model::{Kind, Shape};

/// The way from the selected latents to their posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Engine {
    /// States in closed form, those that the model's shape says ([`crate::model::States`]). Not for [`Kind::Ssmca`].
    Truncated,
    /// Draws from the posterior of the H' latents, with any number of them on. Not for [`Kind::Gmm`].
    Gibbs(Gibbs),
}

impl Engine {
    /// The one that a kind of model has unless another is asked for.
    pub const fn of_kind(kind: Kind) -> Self {
        if kind.is_sampled() { Self::Gibbs(Gibbs::new(kind, Gibbs::SWEEPS)) } else { Self::Truncated }
    }
}

/// What the engines need as memory.
impl Engine {
    /// [`crate::arena_len`] or [`crate::gibbs_arena_len`].
    pub const fn arena_len(&self, shape: Shape, detail: Detail) -> usize {
        match self {
            Self::Truncated => arena_len(shape, detail),
            Self::Gibbs(_) => gibbs_arena_len(shape, detail),
        }
    }

    /// [`crate::state_bytes`] or [`crate::gibbs_state_bytes`].
    pub const fn state_bytes(&self, shape: Shape) -> usize {
        match self {
            Self::Truncated => state_bytes(shape),
            Self::Gibbs(_) => gibbs_state_bytes(shape),
        }
    }
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Start {
    /// At a state that no latent alone can improve: found by switching whichever gains most, at most 16 times.
    #[default]
    Greedy,
    /// At a draw from the prior.
    Random,
    /// At the most probable of all states with at most gamma of the H' latents on: for models with few enough states
    /// ([`Shape::states`], at most [`Start::MOST_STATES`]), and not for [`Kind::Ssmca`], which cannot be enumerated.
    Best,
}

impl Start {
    /// States that [`Start::Best`] looks at, at most; with more, greedy starts are as good and come to an end.
    pub const MOST_STATES: u64 = 1 << 24;
}

/// Settings of Gibbs sampling.
///
/// In a sweep every selected latent is drawn once from its exact conditional, given all others. The random numbers
/// depend on the seed and on the sample's number ([`crate::Inference::seek`]), not on what was inferred before.
///
/// ```
/// use spikelet::{Gibbs, Kind};
/// let settings = Gibbs { chains: 2, seed: 7, ..Gibbs::new(Kind::Gsc, 100) };
/// assert_eq!((settings.burn_in, settings.draws()), (50, 100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gibbs {
    /// Sweeps of each chain, burn-in included; at least 1.
    pub sweeps: u32,
    /// The first sweeps of each chain, which count for nothing but the best state; fewer than `sweeps`.
    pub burn_in: u32,
    /// Of the sweeps after that every so-many-th counts; at least 1.
    pub thinning: u32,
    /// Chains, one after the other, each from its own start; at least 1.
    pub chains: u32,
    /// Where they start.
    pub start: Start,
    /// How many of the H' latents are chosen at random among those that scores leave out, instead of by their scores
    /// [004 sec. 2.4]; fewer than H'.
    pub extra: u16,
    /// Most latents on at once. Capacity is the limit: see [`crate::capacity::MAX_ACTIVE`].
    pub max_active: u16,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Gibbs {
    /// Sweeps where nobody says how many.
    pub const SWEEPS: u32 = 100;

    /// One chain from a greedy start. Burn-in is half of the sweeps where slabs are added up (paper 003), a third otherwise (004).
    pub const fn new(kind: Kind, sweeps: u32) -> Self {
        let burn_in = if matches!(kind, Kind::Gsc) { sweeps / 2 } else { sweeps / 3 };
        let max_active = MAX_ACTIVE as u16;
        Self { sweeps, burn_in, thinning: 1, chains: 1, start: Start::Greedy, extra: 0, max_active, seed: 0 }
    }

    /// Draws that count, of all chains together.
    pub const fn draws(&self) -> u64 {
        let kept = self.sweeps.saturating_sub(self.burn_in) as u64;
        let thinning = if self.thinning == 0 { 1 } else { self.thinning as u64 };
        kept.div_ceil(thinning) * self.chains as u64
    }

    /// Refuses settings that give no draws, naming the first that is wrong.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        let can_be_listed = !shape.kind.is_sampled() && shape.states() <= Start::MOST_STATES;
        for (is_good, field) in [
            (self.sweeps > 0, "sweeps"),
            (self.burn_in < self.sweeps, "burn_in"),
            (self.thinning > 0, "thinning"),
            (self.chains > 0, "chains"),
            (usize::from(self.extra) < shape.selected, "extra"),
            (self.start != Start::Best || can_be_listed, "start"),
            (self.max_active > 0 && usize::from(self.max_active) <= MAX_ACTIVE, "max_active"),
        ] {
            if !is_good {
                return Err(Error::Setting { field });
            }
        }
        Ok(())
    }
}
