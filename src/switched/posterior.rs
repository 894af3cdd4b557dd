//! One sample: a reference if it is loud, the walk, its results.

use super::linear::{Linear, climb};
use super::maximal::Maximal;
use super::{Superposition, Switched, Switches, Walk};
use crate::arena::Arena;
use crate::block::Block;
use crate::conclude::{Results, conclude};
use crate::features::is_maximal;
use crate::found::Found;
use crate::math::Real;
use crate::model::Model;
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::reference::{PASSES, ROUNDS, leave};
use crate::slices::at;

/// The posterior of the sample in `arena`, from its scores on.
pub(crate) fn posterior<T: Real>(model: &Model<'_, T>, arena: &mut Arena<'_, T>, found: &mut Found<T>) {
    match is_maximal(model.shape.kind) {
        true => maximal(model, arena, found),
        false => linear(model, arena, found),
    }
}

/// Log joints are differences of numbers as large as the signal-to-noise ratio; what the reference leaves of a loud sample
/// is small for all states that matter: see [`crate::reference`].
fn linear<T: Real>(model: &Model<'_, T>, arena: &mut Arena<'_, T>, found: &mut Found<T>) {
    let shape = model.shape;
    found.order_worst_first();
    let Found { selected, order, map, .. } = found;
    let mut block = Block::gather(model, order, arena.projection, arena.block.reborrow());
    let outside = Outside { model, selected };
    let largest_outside = outside.log_joints(arena.activity, T::ZERO);
    let is_loud = block.b.iter().any(|&b| b > T::REFINE_ABOVE);
    let (mut energy, mut known) = (found.energy, T::ZERO);
    for _ in 0..ROUNDS {
        let (joint, changed) = climb(model, &mut block, arena.switches.rows);
        known = joint;
        if !is_loud || !changed {
            break;
        }
        energy = leave(model, &mut block, arena.sample, arena.weighted);
    }
    if !is_loud {
        block.members.clear();
    }
    let mut pass = 1;
    let (mut sums, empty) = loop {
        block.put_members_first();
        let empty = block.energy_without(u32::MAX);
        let mut linear = Linear::new(model, &block, arena.switches.rows);
        if is_loud {
            known = linear.joint(0);
        }
        let anchor = (empty + largest_outside).max(known);
        let mut sums = Sums::new(&block, anchor, shape.state_bits(), arena.sums.reborrow(), map);
        Walk::all(&mut linear, switches(&block, shape.max_active), arena.switches.sums, &mut sums);
        let is_reference = sums.best_path().iter().copied().eq(0..block.members.len() as u16);
        if !is_loud || is_reference || pass >= PASSES {
            break (sums, empty);
        }
        pass += 1;
        block.make_members(map);
        energy = leave(model, &mut block, arena.sample, arena.weighted);
    };
    let Arena { projection, activity, mean, variance, .. } = arena;
    let results = Results { projection, activity, mean, variance };
    let conclusion = conclude(&outside, empty, &block, &mut sums, results);
    arena.map_values.fill(T::ONE);
    let members = block.members.len() as u16;
    found.members = members;
    found.settle(model, arena.projection, arena.map_values, energy, conclusion);
}

fn maximal<T: Real>(model: &Model<'_, T>, arena: &mut Arena<'_, T>, found: &mut Found<T>) {
    let shape = model.shape;
    found.order_worst_first();
    let Found { selected, order, map, .. } = found;
    let outside = Outside { model, selected };
    let block = Block::gather(model, order, arena.projection, arena.block.reborrow());
    let mut maximal = Maximal::new(model, block.order, arena.sample, arena.switches.rows);
    let (mut known, projection) = (maximal.joint(0), &*arena.projection);
    for &latent in block.order.iter() {
        let latent = usize::from(latent);
        known = known.max(maximal.alone(latent, at(projection, latent)) + at(model.prior_logit, latent));
    }
    if shape.singletons {
        for (latent, (score, &b)) in arena.activity.iter_mut().zip(projection).enumerate() {
            *score = maximal.alone(latent, b);
        }
    }
    let anchor = outside.log_joints(arena.activity, known);
    let mut sums = Sums::new(&block, anchor, shape.state_bits(), arena.sums.reborrow(), map);
    Walk::all(&mut maximal, switches(&block, shape.max_active), arena.switches.sums, &mut sums);
    let Arena { projection, activity, mean, variance, .. } = arena;
    let results = Results { projection, activity, mean, variance };
    // Here log joints have the energy in them, and are relative to nothing.
    let conclusion = conclude(&outside, T::ZERO, &block, &mut sums, results);
    arena.map_values.fill(T::ONE);
    found.members = 0;
    found.settle(model, arena.projection, arena.map_values, T::ZERO, conclusion);
}

fn switches<T: Real>(block: &Block<'_, T>, max_active: usize) -> Switches {
    Switches { positions: block.len(), members: block.members.len(), max_active }
}

/// Visits the states of the last sample: positions and log joint.
pub(crate) fn each_state<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &Found<T>,
    visit: impl FnMut(&[u16], T),
) {
    let mut order = found.order.clone();
    let mut block = Block::restore(&mut order, arena.block.reborrow());
    for member in 0..found.members {
        let _ = block.members.push(member); // as many as there were
    }
    let switches = switches(&block, model.shape.max_active);
    let rows = &mut *arena.switches.rows;
    match is_maximal(model.shape.kind) {
        true => {
            let maximal = Maximal::new(model, block.order, arena.sample, rows);
            Visits { superposition: maximal, switches, visit, path: Switched::new() }.all();
        }
        false => {
            let linear = Linear::new(model, &block, rows);
            Visits { superposition: linear, switches, visit, path: Switched::new() }.all();
        }
    }
}

/// A walk that sums nothing.
struct Visits<J, V> {
    superposition: J,
    switches: Switches,
    visit: V,
    path: Switched,
}

impl<J, V> Visits<J, V> {
    fn all<T: Real>(mut self)
    where
        J: Superposition<T>,
        V: FnMut(&[u16], T),
    {
        self.subtree(0, 0, self.switches.room());
    }

    fn subtree<T: Real>(&mut self, level: usize, first: usize, room: usize)
    where
        J: Superposition<T>,
        V: FnMut(&[u16], T),
    {
        let Switches { positions, members, .. } = self.switches;
        (self.visit)(&self.switches.state(&self.path, None), self.superposition.joint(level));
        for p in first..positions {
            if room == 0 && p >= members {
                return;
            }
            let room = self.switches.room_after(room, p);
            if p + 1 < positions && (room > 0 || p + 1 < members) {
                self.superposition.descend(level, p);
                let _ = self.path.push(p as u16); // ascending positions: no more than there are
                self.subtree(level + 1, p + 1, room);
                self.path.pop();
            } else {
                let state = self.switches.state(&self.path, Some(p));
                self.superposition.each_child(level, p..p + 1, |_, joint| (self.visit)(&state, joint));
            }
        }
    }
}
