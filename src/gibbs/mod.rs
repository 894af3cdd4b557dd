//! Gibbs sampling: in every sweep each selected latent is drawn from its exact conditional given all others.
//!
//! | module | |
//! |---|---|
//! | `linear` | conditionals where latents add up: b and G of the candidates, independent of D |
//! | `maximal` | conditionals where the strongest counts: running maxima, 3 D numbers |
//! | `pieces` | the same with a slab: piecewise Gaussian, and an atom at zero |
//! | `start` | where chains begin |
//! | `chain` | sweeps, and the sums over them |
//!
//! **What is reported.** Activity, mean and variance are averages of the conditionals' moments over all draws after burn-in, not of
//! the values drawn: the expectation is the same and the variance smaller (Rao-Blackwell). With second moments they are
//! averages over the values: a dictionary is then learned by regression on complete draws, each of which explains its
//! sample; averages of different conditionals would not be consistent with each other. The best state is the best
//! at the end of any sweep, burn-in included. The evidence is ln p(y, s) of that state alone, its slabs integrated
//! out: a lower bound of the sum over all states, which cannot be estimated from draws. For spike-and-slab latents of which the
//! strongest counts that integral has no closed form; each slab is replaced by the Gaussian around its value in the state.
//!
//! Work: see [`crate::Model::gibbs_operations`].

mod chain;
mod linear;
mod maximal;
mod pieces;
mod probe;
mod start;
mod tally;

use crate::engine::Gibbs;
use crate::kinds::Family;
use crate::memory::{Candidate, Memory};
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::numeric::slices::{at, exchange};
use crate::numeric::words::records_mut;
use crate::posterior::Results;
use crate::state::{State, tableau};
use crate::states::tableau::{Latents, Path, Tableau};
use chain::{Best, Chains};
use linear::Linear;
use maximal::Maximal;
use tally::Tally;

pub use chain::Draw;
pub(crate) use chain::REFRESH;
pub use probe::Conditional;
pub(crate) use probe::conditional;
pub(crate) use start::CLIMBS;

/// Sets apart what is drawn for the selection from what is drawn for the posterior.
const SELECTION: u64 = 1 << 63;

/// Exchanges the last of the selected for latents chosen at random among those that were not.
pub(crate) fn select_extra<T: Real>(model: &Model<'_, T>, settings: &Gibbs, state: &mut State<T>) {
    let (latents, extra) = (model.shape.latents, usize::from(settings.extra));
    let mut rng = Rng::of_sample(settings.seed, state.number | SELECTION);
    for _ in 0..extra.min(state.latents.len()) {
        state.latents.pop();
    }
    while state.latents.len() < model.shape.selected {
        // The n-th of those that are left, n at random.
        let mut latent = rng.below(latents.saturating_sub(state.latents.len()) as u16);
        // In ascending order of those that are taken: each at or below it moves it on.
        let mut least = 0;
        while let Some(taken) = next_above(&state.latents, least) {
            latent += u16::from(taken <= latent);
            least = taken + 1;
        }
        if state.latents.push(latent).is_err() {
            break; // as many as there were
        }
    }
}

/// The least of some latents that is no less than `least`.
fn next_above(latents: &Latents, least: u16) -> Option<u16> {
    latents.iter().copied().filter(|&latent| latent >= least).min()
}

/// The posterior of the sample in memory, from its selection on; `visit` gets every draw that counts.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    visit: &mut dyn FnMut(Draw<'_, T>),
) {
    match model.shape.kind.family() {
        Family::Slab | Family::Binary => linear(model, settings, memory, state, visit),
        Family::Maximal => maximal(model, settings, memory, state, visit),
    }
    to_latents(&mut state.map, memory.map_values, &state.latents);
}

#[inline(never)]
fn linear<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    visit: &mut dyn FnMut(Draw<'_, T>),
) {
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    let energy = state.energy;
    tableau.begin(memory.projection, energy);
    let (n, max_active) = (tableau.len(), usize::from(settings.max_active));
    let Memory { gram, links, projection, values, map_values, second, .. } = memory;
    let links = records_mut(links);
    let mut sampler = Linear::new(&mut tableau, gram, links, projection, (energy, max_active.min(n)));
    let mut tally = Tally::new(second);
    let best = Best::new(&mut state.map, map_values);
    let joint = Chains {
        settings,
        listed: model.shape.max_active,
        rng: &mut Rng::of_sample(settings.seed, state.number & !SELECTION),
        values,
        sums: &mut tally,
        best,
        visit,
    }
    .run(&mut sampler);
    if model.shape.kind.has_slab() {
        sampler.coefficients(&state.map, map_values);
    }
    state.evidence = model.log_norm + joint;
    let Tableau { latents, candidates, .. } = tableau;
    let results = Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    (_, state.sound) = tally.conclude(latents, candidates, model.shape.kind.has_slab(), results);
}

/// The prior of the selected latents, where there is no tableau.
fn priors<T: Real>(model: &Model<'_, T>, latents: &Latents, candidates: &mut [Candidate<T>]) {
    for (candidate, &latent) in candidates.iter_mut().zip(latents) {
        let h = usize::from(latent);
        *candidate = Candidate {
            logit: at(model.prior_logit, h),
            mean: at(model.slab_mean, h),
            precision: at(model.slab_precision, h),
            ..Candidate::ZERO
        };
    }
}

#[inline(never)]
fn maximal<T: Real>(
    model: &Model<'_, T>,
    settings: &Gibbs,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    visit: &mut dyn FnMut(Draw<'_, T>),
) {
    let Memory {
        sample, candidates, links, chain_maxima, borders, clean, values, map_values, second, ..
    } = memory;
    let (candidates, links) = (records_mut(candidates), records_mut(links));
    priors(model, &state.latents, candidates);
    clean.fill(T::ZERO);
    let borders = records_mut(borders);
    let mut sampler =
        Maximal::new(model, &state.latents, candidates, sample, links, chain_maxima, borders, clean);
    let mut tally = Tally::new(second);
    let best = Best::new(&mut state.map, map_values);
    let joint = Chains {
        settings,
        listed: model.shape.max_active,
        rng: &mut Rng::of_sample(settings.seed, state.number & !SELECTION),
        values,
        sums: &mut tally,
        best,
        visit,
    }
    .run(&mut sampler);
    state.evidence = model.log_norm + joint;
    let results = Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    let (scale, sound) = tally.conclude(&state.latents, candidates, model.shape.kind.has_slab(), results);
    clean.iter_mut().for_each(|sum| *sum *= scale);
    state.sound = sound;
}

/// Positions to latents, ascending, their values along with them.
fn to_latents<T: Copy>(map: &mut Path, values: &mut [T], latents: &Latents) {
    for slot in map.iter_mut() {
        *slot = latents.get(usize::from(*slot)).copied().unwrap_or_default();
    }
    for end in (1..map.len()).rev() {
        for i in 0..end {
            if map.get(i) > map.get(i + 1) {
                exchange(map, i, i + 1);
                exchange(values, i, i + 1);
            }
        }
    }
}
