//! One sample by the papers' sets of states: the walk on the tableau, or the table of states.

use crate::features::DETAIL;
use crate::memory::Memory;
use crate::model::{Model, States};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span_mut};
use crate::posterior::{Outside, Pulls, Results, Sums};
use crate::project::project_some;
use crate::select::scores::singleton_scores;
use crate::state::{State, tableau};
use crate::states::subsets::walk;
use crate::states::table::{Tabled, each_path, sort};
use crate::states::tableau::{Joint, PASSES, Path, Tableau};

/// The posterior over all of them.
pub(super) fn posterior<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    if model.shape.singletons {
        singleton_scores(model, memory.sample, memory.projection, memory.activity);
    }
    match model.shape.states {
        States::Table => by_table(model, memory, state),
        States::Adaptive { .. } | States::Subsets => by_walk(model, memory, state),
    }
}

#[inline(never)]
fn by_walk<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let energy = state.energy;
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    tableau.begin(memory.projection, energy);
    tableau.settle(model.shape.max_active);
    let mut sums = Sums::new(memory.second, &mut state.map, memory.map_values);
    // A loud sample whose best state turns out to be another than the reference is looked at again from there.
    for pass in 1..=PASSES {
        tableau.mark_anew();
        let reference = tableau.on;
        sums.begin(tableau.joint, reference);
        walk(&mut tableau, memory.levels, &mut |tableau, is_reference, children| {
            sums.expand(tableau, is_reference, children);
        });
        let best = sums.best();
        tableau.go_to(best);
        if pass == PASSES || !tableau.may_refine() || !tableau.is_apart(reference) {
            break;
        }
        tableau.begin(memory.projection, energy);
        tableau.go_to(best);
        tableau.refine();
    }
    sums.note(&tableau);
    let family = tableau.family();
    let Tableau { latents, candidates, .. } = tableau;
    let outside = Outside { model, projection: memory.projection, candidates: latents };
    let mut results = Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    outside.add(-(T::HALF * energy), &mut sums, candidates, &mut results);
    (state.anchor, state.log_total) = sums.log_total();
    state.evidence = model.log_norm + (state.anchor.base + (state.anchor.relative() + state.log_total));
    state.sound = sums.conclude(latents, candidates, family, results);
}

/// What a table of states needs of the sample: G, a reference if it is loud, and its residual, in `column`. Returns the log
/// joint of that residual.
fn refer<T: Real>(tableau: &mut Tableau<'_, T>, gram: &mut [T], projection: &[T], energy: T) -> T {
    tableau.begin(projection, energy);
    copy(gram, tableau.square);
    let n = tableau.len();
    if !tableau.is_loud {
        tableau.mark();
        for i in 0..n {
            set(tableau.column, i, at(projection, tableau.latent(i)));
        }
        return -(T::HALF * energy);
    }
    tableau.settle(tableau.model.shape.max_active);
    tableau.mark();
    let energy = tableau.leave();
    project_some(tableau.model, tableau.latents, tableau.weighted, span_mut(tableau.column, 0, n));
    -(T::HALF * energy)
}

/// The table over memory.
macro_rules! tabled {
    ($model:expr, $table:expr, $memory:expr, $tableau:expr) => {
        Tabled {
            model: $model,
            table: $table,
            latents: $tableau.latents,
            candidates: $tableau.candidates,
            gram: $memory.gram,
            seen: $tableau.column,
            right: $memory.right,
            point: $memory.point,
            mean: $memory.state_mean,
            variance: $memory.state_variance,
            covariance: $memory.covariance,
        }
    };
}

#[inline(never)]
fn by_table<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let (energy, Some(table)) = (state.energy, model.table) else { return };
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    let base = refer(&mut tableau, memory.gram, memory.projection, energy);
    let family = tableau.family();
    let mut tabled = tabled!(model, table, memory, tableau);
    // Weights are relative to a state that is known to be good.
    let mut reference = path_of(&[]);
    for (i, candidate) in (0u16..).zip(tabled.candidates.iter()).take(tabled.latents.len()) {
        if candidate.reference != T::ZERO {
            let _ = reference.push(i); // no more than may be on
        }
    }
    sort(&mut reference, tabled.latents);
    let anchor = Joint { exponent: tabled.evaluate(&reference), ..Joint::new(base) };
    let is_on = |mask: u64, &i: &u16| mask | 1 << (i % 64);
    let mut sums = Sums::new(memory.second, &mut state.map, memory.map_values);
    sums.begin(anchor, reference.iter().fold(0, is_on));
    let Memory { pull, pull_second, pull_of_state, solved, .. } = memory;
    let mut pulls = Pulls { first: pull, second: pull_second, of_state: pull_of_state, solved };
    let has_pulls = DETAIL && !pulls.first.is_empty();
    if has_pulls {
        pulls.first.fill(T::ZERO);
        pulls.second.fill(T::ZERO);
    }
    each_path(tabled.latents.len(), model.shape.max_active, &mut |path| {
        let mut path = path_of(path);
        sort(&mut path, tabled.latents);
        let relative = tabled.evaluate(&path);
        tabled.moments(&path);
        let before = sums.anchor();
        let moments = [&*tabled.mean, tabled.variance, tabled.covariance];
        let weight = sums.add_state(tabled.candidates, (&path, tabled.latents), relative, moments);
        if has_pulls {
            let factor = (before - sums.anchor()).exp();
            if factor != T::ONE {
                [&mut *pulls.first, pulls.second].into_iter().flatten().for_each(|sum| *sum *= factor);
            }
            pulls.add(&tabled, &path, weight);
        }
    });
    let Tabled { latents, candidates, .. } = tabled;
    let outside = Outside { model, projection: memory.projection, candidates: latents };
    let mut results = Results { activity: memory.activity, mean: memory.mean, variance: memory.variance };
    outside.add(-(T::HALF * energy), &mut sums, candidates, &mut results);
    if has_pulls {
        let scale = sums.scale();
        [&mut *pulls.first, pulls.second].into_iter().flatten().for_each(|sum| *sum *= scale);
    }
    (state.anchor, state.log_total) = sums.log_total();
    state.evidence = model.log_norm + (state.anchor.base + (state.anchor.relative() + state.log_total));
    state.sound = sums.conclude(latents, candidates, family, results);
}

fn path_of(positions: &[u16]) -> Path {
    let mut path = Path::new();
    let _ = path.extend_from_slice(positions); // same capacity
    path
}

/// Visits the states of the last sample: latents and probability. Maximal causes have no table.
#[inline(never)]
pub(super) fn each_state<T: Real, const MAXIMAL: bool>(
    model: &Model<'_, T>,
    memory: &mut Memory<'_, T>,
    state: &mut State<T>,
    path: &mut Path,
    visit: &mut dyn FnMut(&[u16], T),
) {
    let (energy, anchor, log_total) = (state.energy, state.anchor, state.log_total);
    // The memory of candidates then has none of floats.
    let was_fixed = state.is_fixed;
    // What was reported is not to be lost.
    let mut tableau = tableau!(model, memory, &mut state.latents, state.energy, state.joint, (0, 0));
    if let Some(table) = model.table.filter(|_| !MAXIMAL && model.shape.states == States::Table) {
        let base = refer(&mut tableau, memory.gram, memory.projection, energy);
        let mut tabled = tabled!(model, table, memory, tableau);
        each_path(tabled.latents.len(), model.shape.max_active, &mut |positions| {
            let mut positions = path_of(positions);
            sort(&mut positions, tabled.latents);
            let joint = Joint { exponent: tabled.evaluate(&positions), ..Joint::new(base) };
            let probability = (joint.above(&anchor) - log_total).exp();
            path.clear();
            for &p in &positions {
                let _ = path.push(tabled.latents.get(usize::from(p)).copied().unwrap_or_default());
            }
            visit(path, probability);
        });
    } else {
        // From the same reference as before.
        let mut reference = 0;
        for (i, candidate) in tableau.candidates.iter().enumerate().take(tableau.len()) {
            reference |= u64::from(candidate.reference != T::ZERO) << (i % 64);
        }
        tableau.begin(memory.projection, energy);
        match tableau.may_refine() && !was_fixed {
            true => {
                tableau.go_to(reference);
                tableau.refine();
            }
            false => tableau.settle(model.shape.max_active),
        }
        walk(&mut tableau, memory.levels, &mut |tableau, is_reference, children| {
            let (here, children) = (tableau.joint.above(&anchor) - log_total, tableau.with_digits(children));
            for flip in (0..tableau.len()).map(Some).chain(is_reference.then_some(None)) {
                if flip.is_some_and(|i| children >> (i % 64) & 1 == 0) {
                    continue;
                }
                let change = flip.map_or(T::ZERO, |i| tableau.change(i));
                path.clear();
                for i in (0..tableau.len()).filter(|&i| tableau.is_on(i) != (flip == Some(i))) {
                    let _ = path.push(tableau.latent(i) as u16); // no more than may be on
                }
                visit(path, (here + change).exp());
            }
        });
    }
    if model.shape.singletons {
        // A latent that was not selected is on in one state only.
        for (latent, &probability) in (0u16..).zip(memory.activity.iter()) {
            if !state.latents.contains(&latent) {
                visit(&[latent], probability);
            }
        }
    }
}
