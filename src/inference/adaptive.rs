//! One sample by adaptive states: reference, search, results.

use crate::memory::Memory;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::words::words_mut;
use crate::posterior::{Results, Sums};
use crate::state::{State, tableau};
use crate::states::reference::{Scratch, refer};
use crate::states::search::{Room, reach, revisit, search};
use crate::states::tableau::{PASSES, Path, Tableau};

/// Candidates, and the tableau at the reference.
#[inline(never)]
pub(super) fn select<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    tableau.clear(-(T::HALF * state.energy));
    let scratch = Scratch {
        projection: memory.projection,
        seen: memory.mean,
        gains: memory.variance,
        best: words_mut(memory.activity),
    };
    refer(&mut tableau, scratch);
    (state.joint, state.on, state.count) = (tableau.joint, tableau.on, tableau.count);
}

/// The posterior over the states that a search finds.
#[inline(never)]
pub(super) fn posterior<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let max_active = model.shape.max_active;
    let mut tableau =
        tableau!(model, memory, &mut state.latents, state.energy, state.joint, (state.on, state.count));
    if tableau.is_loud {
        tableau.settle_loud(max_active);
    }
    let mut sums = Sums::new(memory.second, &mut state.map, memory.map_values);
    // A loud sample whose best state turns out to be another than the reference is looked at again from there.
    for pass in 1..=PASSES {
        if pass == 1 {
            tableau.mark()
        } else {
            tableau.mark_anew()
        }
        let reference = tableau.on;
        sums.begin(tableau.joint, reference);
        let (expanded, waiting) = (&mut *memory.expanded, &mut *memory.waiting);
        let room = Room { expanded, waiting, waiting_weights: memory.waiting_weights };
        sums.reach(reach(room.waiting.len()));
        let expand = |tableau: &mut Tableau<'_, T>, is_new, counted| sums.expand(tableau, is_new, counted);
        state.expanded = search(&mut tableau, room, max_active, expand) as u16;
        tableau.look_back();
        tableau.go_to(sums.best());
        if pass == PASSES || !tableau.may_refine() || !tableau.is_apart(reference) {
            break;
        }
        tableau.refine();
    }
    sums.note(&tableau);
    (state.joint, state.on, state.count) = (tableau.joint, tableau.on, tableau.count);
    (state.anchor, state.log_total) = sums.log_total();
    state.evidence = model.log_norm + (state.anchor.base + (state.anchor.relative() + state.log_total));
    let family = tableau.family();
    if tableau.len() < model.shape.latents {
        for values in [&mut *memory.activity, memory.mean, memory.variance] {
            values.fill(T::ZERO);
        }
    }
    let results = Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    state.sound = sums.conclude(tableau.latents, tableau.candidates, family, results);
}

/// Rebuilds the tableau at the reference in floats, after inference in integers.
pub(super) fn begin_anew<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    tableau.begin(memory.projection, state.energy);
    let reference = words_mut(memory.expanded).first().copied().unwrap_or_default();
    tableau.go_to(u64::from(reference));
    tableau.refine();
    (state.joint, state.anchor) = (tableau.joint, tableau.joint);
    (state.on, state.count) = (tableau.on, tableau.count);
}

/// Visits the states of the last sample: latents and probability.
#[inline(never)]
pub(super) fn each_state<T: Real>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    path: &mut Path,
    visit: &mut dyn FnMut(&[u16], T),
) {
    let log_total = state.log_total;
    let mut tableau =
        tableau!(model, memory, &mut state.latents, state.energy, state.joint, (state.on, state.count));
    revisit(
        &mut tableau,
        memory.expanded,
        usize::from(state.expanded),
        model.shape.max_active,
        &state.anchor,
        |tableau, mask, above| {
            path.clear();
            for (i, &latent) in tableau.latents.iter().enumerate() {
                if mask >> (i % 32) & 1 != 0 {
                    let _ = path.push(latent); // no more than may be on
                }
            }
            visit(path, (above - log_total).exp());
        },
    );
    (state.joint, state.on, state.count) = (tableau.joint, tableau.on, tableau.count);
}
