//! Posteriors by drawing from them: in every sweep each selected latent is drawn from its exact conditional given all
//! others.
//!
//! | module | what it knows |
//! |---|---|
//! | `linear` | conditionals where latents add up: b and G of the block, free of D |
//! | `maximal` | conditionals where the strongest counts: running maxima, 3 D numbers |
//! | `pieces` | with a slab, such a conditional: a bell between any two borders, an atom at zero |
//! | `start` | where chains begin |
//! | `chain` | sweeps, what is kept of them |
//!
//! **What is reported.** Activity, mean and variance are averages of the conditionals' own moments over all draws that count, not of
//! the values drawn: both have the same expectation, the former vary less (Rao and Blackwell). With second moments they are
//! averages over the values: a dictionary is then learned by regression on complete draws, each of which explains its
//! sample, where averages of different conditionals would be at odds by more than they gain. The best state is the best
//! at the end of any sweep, burn-in included. The evidence is ln p(y, s) of that state alone, its slabs integrated
//! out: a lower bound of the sum over all states, which draws do not tell. For spike-and-slab latents of which the
//! strongest counts there is no such integral; each slab is then taken as the bell that its state's maxima make of it.
//!
//! Work: see [`crate::Model::gibbs_operations`].

mod chain;
mod linear;
mod maximal;
mod pieces;
mod probe;
mod start;

use crate::arena::{Arena, SumMemory};
use crate::block::Block;
use crate::conclude::{Results, conclude_selected};
use crate::engine::Gibbs;
use crate::found::Found;
use crate::map::{best_values, to_latents};
use crate::math::Real;
use crate::model::{Model, States};
use crate::posterior::Sums;
use crate::rng::Rng;
use crate::slices::at;
use crate::states::Path;
use chain::{Best, Chains, Sampler};
use heapless::Vec;
use linear::Linear;
use maximal::Maximal;

pub use chain::Draw;
pub(crate) use chain::REFRESH;
pub use probe::Conditional;
pub(crate) use probe::conditional;
pub(crate) use start::CLIMBS;

/// Sets apart what is drawn for the selection from what is drawn for the posterior.
const SELECTION: u64 = 1 << 63;

/// Exchanges the last of the selected for latents chosen at random among those that were not.
pub(crate) fn select_extra<T: Real>(model: &Model<'_, T>, settings: &Gibbs, found: &mut Found<T>) {
    let (latents, extra) = (model.shape.latents, usize::from(settings.extra));
    let mut rng = Rng::of_sample(settings.seed, found.number | SELECTION);
    for _ in 0..extra.min(found.selected.len()) {
        found.selected.pop();
    }
    while found.selected.len() < model.shape.selected {
        // The n-th of those that are left, n at random.
        let mut latent = rng.below(latents.saturating_sub(found.selected.len()) as u16);
        found.order_ascending(model.shape.latents);
        for &taken in &found.order {
            latent += u16::from(taken <= latent);
        }
        if found.selected.push(latent).is_err() {
            break; // as many as there were
        }
    }
    found.order.clear();
}

/// The posterior of the sample in `arena`, from its selection on; `visit` gets every draw that counts.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) {
    // Conditionals need no table.
    let model = &Model { states: States::Grown, ..*model };
    let mut order = Vec::new();
    let _ = order.extend_from_slice(&found.selected); // same capacity
    if crate::features::is_maximal(model.shape.kind) {
        maximal(model, settings, order, arena, found, visit);
    } else {
        linear(model, settings, order, arena, found, visit);
    }
    to_latents(&mut found.map, arena.map_values, &found.order);
}

type Order = Vec<u16, { crate::capacity::MAX_SELECTED }>;

fn linear<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    mut order: Order,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) {
    let Arena { projection, chain, work, sums, map_values, activity, mean, variance, .. } = arena;
    let mut block = Block::gather(model, &mut order, projection, arena.block.reborrow());
    let room = linear::Room {
        state: chain.state,
        work,
        rest: sums.first,
        values: map_values,
        sample: arena.sample,
        weighted: arena.weighted,
    };
    let energy = linear::refer(model, &mut block, room, found.energy, usize::from(settings.max_active));
    let mut sampler = Linear::new(model, &block, chain.state, work);
    let results = Results { projection, activity, mean, variance };
    let room = Room { values: chain.values, sums: sums.reborrow(), map_values, results };
    let (joint, _) = sample(model, settings, &block, &mut sampler, room, found, visit);
    if model.shape.kind.has_slab() {
        best_values(model, &block, &found.map, work, map_values);
    }
    found.evidence = model.log_norm - T::HALF * energy + joint;
    found.order = order;
}

fn maximal<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    mut order: Order,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) {
    let Arena { projection, chain, sums, map_values, activity, mean, variance, .. } = arena;
    let block = Block::gather(model, &mut order, projection, arena.block.reborrow());
    chain.clean.fill(T::ZERO);
    let mut sampler =
        Maximal::new(model, &block, arena.sample, chain.state, chain.maxima, chain.borders, chain.clean);
    let results = Results { projection, activity, mean, variance };
    let room = Room { values: chain.values, sums: sums.reborrow(), map_values, results };
    let (joint, scale) = sample(model, settings, &block, &mut sampler, room, found, visit);
    chain.clean.iter_mut().for_each(|sum| *sum *= scale);
    found.evidence = model.log_norm + joint;
    found.order = order;
}

/// What chains write to.
struct Room<'x, T> {
    values: &'x mut [T],
    sums: SumMemory<'x, T>,
    map_values: &'x mut [T],
    results: Results<'x, T>,
}

/// All chains, and what they say about every latent; returns the joint of the best state and the weight of a draw.
fn sample<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    block: &Block<'_, T>,
    sampler: &mut impl Sampler<T>,
    room: Room<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) -> (T, T) {
    let mut path = Path::new();
    let mut sums = Sums::new(block, T::ZERO, 0, room.sums, &mut path);
    let chains = Chains {
        settings,
        listed: model.shape.max_active,
        rng: &mut Rng::of_sample(settings.seed, found.number & !SELECTION),
        values: room.values,
        sums: &mut sums,
        best: Best::new(&mut found.map, room.map_values),
        visit,
    };
    let joint = chains.run(sampler);
    conclude_selected(block, &mut sums, room.results);
    (joint, sums.scale())
}

/// l_h at position `p`.
fn logit<T: Real>(model: &Model<'_, T>, block: &Block<'_, T>, p: usize) -> T {
    at(model.prior_logit, latent(block, p))
}

/// Position -> latent.
fn latent<T>(block: &Block<'_, T>, p: usize) -> usize {
    usize::from(block.order.get(p).copied().unwrap_or_default())
}
