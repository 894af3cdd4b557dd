//! What could be trained on some data, and which of it fits the target.

use super::fit::{Cost, Limits};
use super::look::{Content, Look};
use super::sketch::Sketch;
use crate::commands::train::bins;
use crate::parameters::ModelKind;
use crate::predict::Core;
use crate::prepare::{Options, StatesName};
use crate::{Error, Result};
use spikelet::frame::Form;

/// Up to so many latents all states are looked at, as `train` does it; of maximal causes, whose states cost more, fewer.
const EXACT_UP_TO: usize = 10;
const EXACT_MAXIMAL: usize = 6;
/// Up to so many latents `train` takes the papers' states beyond that, and above them it searches.
const SUBSETS_UP_TO: usize = 32;
/// Components of a mixture whose points do not say how many clusters they lie in.
const COMPONENTS: usize = 8;
/// Expansions of the search, the best first. In `spikelet demo` eight lose nothing, six 0.3 dB, four 1.3 dB.
const EXPANSIONS: [usize; 4] = [8, 6, 4, 2];

/// One choice of everything.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub kind: ModelKind,
    pub dims: usize,
    pub latents: usize,
    pub states: StatesName,
    /// Of adaptive states.
    pub expansions: usize,
    pub selected: usize,
    pub max_active: usize,
    /// Samples where points are rows or samples.
    pub form: Form,
    /// Samples per second, 0 where unknown.
    pub rate: u32,
    /// Whole inference in integers, for cores without a float unit.
    pub fixed: bool,
}

impl Choice {
    /// With the states that `train` takes by itself.
    fn as_trained(kind: ModelKind, dims: usize, latents: usize, form: Form, rate: u32) -> Self {
        let (few, most) = if kind == ModelKind::Mca { (EXACT_MAXIMAL, 3) } else { (EXACT_UP_TO, 4) };
        let (states, selected, max_active) = match latents {
            _ if kind == ModelKind::Gmm => (StatesName::Subsets, latents, 1),
            _ if latents <= few => (StatesName::Subsets, latents, latents),
            _ if kind == ModelKind::Gsc && latents > dims.max(SUBSETS_UP_TO) => {
                (StatesName::Adaptive, latents.min(Options::CANDIDATES), latents.min(Options::ACTIVE))
            }
            _ => (StatesName::Subsets, few, most),
        };
        let expansions = Options::EXPANSIONS;
        Self { kind, dims, latents, states, expansions, selected, max_active, form, rate, fixed: false }
    }

    /// Whether `train` makes this by itself.
    pub fn is_as_trained(&self) -> bool {
        *self == Self::as_trained(self.kind, self.dims, self.latents, self.form, self.rate)
    }

    /// The same with fewer states, the best first. Integers always search.
    fn with_fewer_states(self, floats: bool) -> Vec<Self> {
        if self.kind != ModelKind::Gsc {
            let fewer = [3, 2, 1].map(|most| Self { max_active: most.min(self.max_active), ..self.clone() });
            return [self].into_iter().chain(fewer).collect();
        }
        let search = |expansions, max_active: usize| Self {
            states: StatesName::Adaptive,
            expansions,
            max_active: max_active.min(self.max_active),
            fixed: !floats,
            ..self.clone()
        };
        let mut all: Vec<Self> = EXPANSIONS.map(|expansions| search(expansions, Options::ACTIVE)).into();
        all.extend([search(1, 2), search(1, 1)]);
        // All states, where there are so few of them.
        if floats && self.states == StatesName::Subsets && self.max_active == self.latents {
            all.insert(0, self);
        }
        all
    }
}

/// What could be used on this data, the best first and the cheapest last.
pub(super) fn choices(
    look: &Look,
    kind: Option<ModelKind>,
    sources: Option<usize>,
    limits: &Limits,
    floats: bool,
) -> Vec<Choice> {
    let found = look.directions.unwrap_or(0);
    let mut all = Vec::new();
    match look.content {
        Content::Channels { channels, rate, .. } => {
            let latents = sources.unwrap_or(found.clamp(channels, 2 * channels));
            let longest = limits.latency.map_or(2048.0, |seconds| (seconds * f64::from(rate) + 1.0) / 2.0);
            let halved = std::iter::successors(Some(bins(rate)), |bins| Some(bins / 2));
            let mut halved = halved.take_while(|bins| *bins >= 16);
            // Where nothing fits, the shortest comes closest.
            let bins = halved.find(|bins| f64::from(*bins) <= longest).unwrap_or(16);
            let form = Form::Transform { bins, channels: channels as u32 };
            all.push(Choice::as_trained(ModelKind::Gsc, channels, latents, form, rate));
        }
        // Sources of one channel are learned one by one.
        Content::Mono { .. } => {}
        Content::Picture { .. } => {
            for (side, latents) in [(8, 256), (8, 64), (6, 64)] {
                let form = Form::Patches { width: side, height: side, colours: 1 };
                let dims = (side * side) as usize;
                all.push(Choice::as_trained(ModelKind::Gsc, dims, sources.unwrap_or(latents), form, 0));
            }
        }
        Content::Points { dims, negative, .. } => {
            let kind = kind.unwrap_or(match look.clusters {
                Some(_) => ModelKind::Gmm,
                None if negative => ModelKind::Gsc,
                None => ModelKind::Nmf,
            });
            if kind == ModelKind::Gmm {
                let components = sources.or(look.clusters).unwrap_or(COMPONENTS);
                return vec![Choice::as_trained(kind, dims, components, Form::Samples, 0)];
            }
            let few = if found > 0 { found.clamp(dims.min(2), 2 * dims) } else { dims.min(64) };
            all.push(Choice::as_trained(kind, dims, sources.unwrap_or(few), Form::Samples, 0));
            // Fewer elements, where there is no number of sources to find.
            let fewer =
                [few / 2, few / 4].into_iter().filter(|&few| sources.is_none() && found == 0 && few >= 8);
            all.extend(fewer.map(|few| Choice::as_trained(kind, dims, few, Form::Samples, 0)));
        }
    }
    all.into_iter().flat_map(|choice| choice.with_fewer_states(floats)).collect()
}

/// The first that fits, else the one that comes closest.
pub(super) fn best(
    choices: &[Choice],
    core: Core,
    limits: &Limits,
    sketch: Option<&Sketch>,
) -> Result<(Choice, Cost)> {
    let mut closest: Option<(Choice, Cost)> = None;
    for choice in choices {
        let Some(cost) = choice.cost(core, sketch)? else {
            let what = format!("nothing is known about the cost of {} on {}", choice.kind.name(), core.name);
            return Err(Error::input(what, "--core", "choose another core"));
        };
        let tightest = cost.tightest(limits);
        if tightest <= 1.0 {
            return Ok((choice.clone(), cost));
        }
        if closest.as_ref().is_none_or(|(_, other)| tightest < other.tightest(limits)) {
            closest = Some((choice.clone(), cost));
        }
    }
    closest.ok_or_else(|| Error::run("there is nothing to choose from", "advise", "report this as a bug"))
}
