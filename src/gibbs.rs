//! Posteriors by drawing from them: in every sweep each selected latent is drawn from its exact conditional given all
//! others.
//!
//! | module | what it knows |
//! |---|---|
//! | `linear` | conditionals where latents add up: b and G of the block, free of D |
//! | `maximal` | conditionals where the strongest counts: running maxima, 3 D numbers |
//! | `pieces` | with a slab, such a conditional: a bell between any two borders, an atom at zero |
//! | `chain` | starts, sweeps, what is kept of them |
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

use crate::arena::{Arena, BlockMemory};
use crate::block::Block;
use crate::engine::Gibbs;
use crate::found::Found;
use crate::map::{best_values, to_latents};
use crate::math::Real;
use crate::model::{Model, States};
use crate::posterior::Sums;
use crate::rng::Rng;
use crate::slices::{at, set};
use chain::{Best, Chains};
use heapless::Vec;
use linear::Linear;
use maximal::Maximal;

pub use chain::Draw;
pub(crate) use chain::{CLIMBS, REFRESH};
pub use probe::Conditional;
pub(crate) use probe::conditional;

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
        for taken in found.ascending() {
            latent += u16::from(taken <= latent);
        }
        if found.selected.push(latent).is_err() {
            return; // as many as there were
        }
    }
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
    order: Order,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) {
    let Arena { chain, work, sums, map_values, activity, mean, variance, .. } = arena;
    let mut block = gather(model, order, arena.projection, arena.block.reborrow());
    let room = linear::Room {
        state: chain.state,
        work,
        rest: sums.first,
        values: map_values,
        sample: arena.sample,
        weighted: arena.weighted,
    };
    let energy = linear::refer(model, &mut block, room, found.energy, usize::from(settings.max_active));
    let mut path = crate::states::Path::new();
    let mut sums = Sums::new(&block, T::ZERO, 0, sums.reborrow(), &mut path);
    let mut sampler = Linear::new(model, &block, chain.state, work);
    let best = Best::new(&mut found.map, map_values);
    let values = &mut *chain.values;
    let joint =
        Chains { settings, rng: &mut rng(settings, found.number), values, sums: &mut sums, best, visit }
            .run(&mut sampler);
    report(&block, &mut sums, activity, mean, variance);
    if model.shape.kind.has_slab() {
        best_values(model, &block, &found.map, work, map_values);
    }
    found.evidence = model.log_norm - T::HALF * energy + joint;
    found.order = block.order;
}

fn maximal<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    order: Order,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    visit: impl FnMut(Draw<'_, T>),
) {
    let block = gather(model, order, arena.projection, arena.block.reborrow());
    let Arena { sample, chain, sums, map_values, activity, mean, variance, .. } = arena;
    let mut path = crate::states::Path::new();
    let mut sums = Sums::new(&block, T::ZERO, 0, sums.reborrow(), &mut path);
    chain.clean.fill(T::ZERO);
    let mut sampler =
        Maximal::new(model, &block, sample, chain.state, chain.maxima, chain.borders, chain.clean);
    let best = Best::new(&mut found.map, map_values);
    let values = &mut *chain.values;
    let joint =
        Chains { settings, rng: &mut rng(settings, found.number), values, sums: &mut sums, best, visit }
            .run(&mut sampler);
    report(&block, &mut sums, activity, mean, variance);
    let scale = sums.scale();
    chain.clean.iter_mut().for_each(|sum| *sum *= scale);
    found.evidence = model.log_norm + joint;
    found.order = block.order;
}

fn gather<'b, T: Real>(
    model: &Model<'_, T>,
    order: Order,
    projection: &[T],
    memory: BlockMemory<'b, T>,
) -> Block<'b, T> {
    match model.shape.kind.has_slab() {
        true => Block::gather(model, order, projection, memory),
        false => Block::gather_switched(model, order, projection, memory),
    }
}

fn rng(settings: &Gibbs, number: u64) -> Rng {
    Rng::of_sample(settings.seed, number & !SELECTION)
}

/// Sums to what is reported about every latent: those that were not selected are off.
fn report<T: Real>(
    block: &Block<'_, T>,
    sums: &mut Sums<'_, '_, T>,
    activity: &mut [T],
    mean: &mut [T],
    variance: &mut [T],
) {
    for values in [&mut *activity, &mut *mean, &mut *variance] {
        values.fill(T::ZERO);
    }
    for (p, &latent) in block.order.iter().enumerate() {
        let (h, marginal) = (usize::from(latent), sums.marginal(p));
        set(activity, h, marginal.activity);
        set(mean, h, marginal.mean);
        set(variance, h, marginal.variance);
    }
    sums.finish_second();
}

/// l_h at position `p`.
fn logit<T: Real>(model: &Model<'_, T>, block: &Block<'_, T>, p: usize) -> T {
    at(model.prior_logit, latent(block, p))
}

/// Position -> latent.
fn latent<T>(block: &Block<'_, T>, p: usize) -> usize {
    usize::from(block.order.get(p).copied().unwrap_or_default())
}
