//! One sample of a spike-and-slab model: a reference if it is loud, the walk in one of its two ways, its results.

use crate::arena::Arena;
use crate::block::Block;
use crate::conclude::{Results, conclude};
use crate::core_set::CoreSet;
use crate::factor::Factor;
use crate::features::{DEEP, FIXED, TABLES};
use crate::fixed;
use crate::found::Found;
use crate::grown::{BranchMemory, Grown};
use crate::kept;
use crate::map::best_values;
use crate::math::Real;
use crate::model::{Model, Shape, States};
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::reference::{PASSES, Scratch, leave, refine};
use crate::single::joint;
use crate::slices::at;
use crate::states::each_path;
use crate::table::Tabled;

/// The posterior of the sample in `arena`, from its scores on; false if this build lacks the way to it.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
) -> bool {
    let outside = Outside { model, selected: &found.selected };
    let largest_outside = outside.log_joints(arena.activity, T::ZERO);
    if kept::posterior(model, arena, found, largest_outside) {
        return true;
    }
    found.kept.clear();
    if !DEEP {
        return false;
    }
    match model.states {
        States::Table(_) if TABLES => found.order_ascending(model.shape.latents),
        // Siblings are visited from the last position down: the best latents go last.
        _ => found.order_worst_first(),
    }
    let Found { order, map, .. } = found;
    let mut block = Block::gather(model, order, arena.projection, arena.block.reborrow());
    let mut energy = found.energy;
    let Shape { selected, max_active, .. } = model.shape;
    let mut branches = BranchMemory::cut(arena.walk, selected, max_active);
    let mut pass = 1;
    let mut sums = loop {
        let work = &mut arena.work;
        let scratch = Scratch {
            factor: Factor { rows: work.rows, pivot_inv: work.pivot_inv, coupling: work.coupling },
            forward: work.v,
            change: arena.map_values,
            rest: arena.sums.first,
        };
        energy = refine(model, &mut block, arena.sample, arena.weighted, scratch, energy, max_active);
        let (mut always, mut known) = (0, block.energy_without(u32::MAX));
        if !TABLES || matches!(model.states, States::Grown) {
            let core = CoreSet::find(&block, &model.shape, &mut branches, arena.sums.first);
            (always, known) = (block.add_members(&core.positions), core.known);
            block.put_members_first();
        }
        let anchor = (block.energy_without(u32::MAX) + largest_outside).max(known);
        let state_bits = model.shape.state_bits();
        let mut sums = Sums::new(&block, anchor, state_bits, arena.sums.reborrow(), map);
        match model.states {
            States::Table(table) if TABLES => {
                let latents = model.shape.latents;
                let mut states = Tabled::new(&block, table, latents, max_active, &mut arena.work);
                states.walk_all(max_active, &mut sums);
            }
            _ => Grown::walk_all(&block, always, max_active, branches.reborrow(), &mut sums),
        }
        best_values(model, &block, sums.best_path(), &mut arena.work, arena.map_values);
        if pass >= PASSES || block.is_well_referred(sums.best_path(), arena.map_values) {
            break sums;
        }
        pass += 1;
        block.refer_to(map, arena.map_values);
        energy = leave(model, &mut block, arena.sample, arena.weighted);
    };
    let outside = Outside { model, selected: &found.selected };
    let empty = block.energy_without(u32::MAX);
    let Arena { projection, activity, mean, variance, .. } = arena;
    let conclusion =
        conclude(&outside, empty, &block, &mut sums, Results { projection, activity, mean, variance });
    found.settle(model, arena.projection, arena.map_values, energy, conclusion);
    true
}

/// Visits the states of the last sample: positions and log joint.
pub(crate) fn each_state<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &Found<T>,
    mut visit: impl FnMut(&[u16], T),
) {
    let mut order = found.order.clone();
    if FIXED && found.is_fixed {
        // What is in memory are integers: floats for the block, then integers again.
        arena.project(model, None);
        Block::gather(model, &mut order, arena.projection, arena.block.reborrow());
        fixed::project(model, arena, None);
    }
    let mut block = Block::restore(&mut order, arena.block.reborrow());
    // A member whose coefficient in the reference is zero might as well be none.
    for p in 0..block.len() as u16 {
        if at(block.reference, usize::from(p)) != T::ZERO {
            let _ = block.members.push(p); // as many as there were
        }
    }
    let (positions, max_active) = (block.len(), model.shape.max_active);
    let work = &mut arena.work;
    match model.states {
        States::Table(table) if TABLES => {
            let mut states = Tabled::new(&block, table, model.shape.latents, max_active, work);
            each_path(positions, max_active, |path| visit(path, states.evaluate(path)));
        }
        _ => {
            let mut factor = Factor { rows: work.rows, pivot_inv: work.pivot_inv, coupling: work.coupling };
            each_path(positions, max_active, |path| {
                let joint = joint(&block, path, &mut factor, work.v);
                visit(path, joint.exponent + joint.scale.ln());
            });
        }
    }
}
