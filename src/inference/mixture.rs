//! One sample by a mixture ([`crate::kinds::gmm`]): a distance for each component; there are no other states.
//!
//! Work: the scores of all components, D multiply-adds (2 D where components have variances of their own, D^2 / 2 where noise is
//! full) for each selected one, an exponential for each that counts.

use crate::counts::Count;
use crate::features::DETAIL;
use crate::memory::Memory;
use crate::model::{Model, Noise, Selection, float_column, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, dot, lower_row, set, span};
use crate::select::scores::score;
use crate::select::top;
use crate::state::State;

/// Scores of all components, their distances as the scores have them, and the best.
pub(super) fn select<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    let Memory { sample, projection, activity, distance, column, .. } = memory;
    score(model, sample, projection, activity);
    Count::Components.add(activity.len());
    for (c, (score, distance)) in activity.iter_mut().zip(distance.iter_mut()).enumerate() {
        let (above, prior) = match model.selection {
            Selection::Independent { offset, .. } => (*score - at(offset, c), at(model.prior_logit, c)),
            // Learned with the prior in it.
            Selection::Learned { .. } => {
                let alone = at(projection, c) - T::HALF * at(model.gram_diagonal, c);
                (alone - T::HALF * state.energy, T::ZERO)
            }
            _ => (*score - T::HALF * state.energy, at(model.prior_logit, c)),
        };
        *distance = T::ZERO.max(-(above + above));
        *score += prior;
    }
    top(activity, model.shape.selected, column, &mut state.latents);
}

/// Responsibilities of all components that count, and the evidence.
pub(super) fn posterior<T: Real>(model: &Model<'_, T>, memory: &mut Memory<'_, T>, state: &mut State<T>) {
    for &latent in &state.latents {
        let c = usize::from(latent);
        let exact = distance(model, memory.sample, memory.weighted, c);
        set(memory.distance, c, exact);
    }
    let Memory { activity, mean, variance, distance, .. } = memory;
    let log_joint = |c: usize| {
        let offset = match model.selection {
            Selection::Independent { offset, .. } => at(offset, c),
            _ => T::ZERO,
        };
        at(model.prior_logit, c) + offset - T::HALF * at(distance, c)
    };
    let mut best = (T::IMPOSSIBLE, 0u16);
    activity.fill(T::IMPOSSIBLE);
    let mut count = |c: usize| {
        Count::Joints.add(1);
        let joint = log_joint(c);
        set(activity, c, joint);
        // Of equals the first.
        if joint > best.0 || joint == best.0 && (c as u16) < best.1 {
            best = (joint, c as u16);
        }
    };
    match model.shape.singletons {
        true => (0..model.shape.latents).for_each(&mut count),
        false => state.latents.iter().for_each(|&latent| count(usize::from(latent))),
    }
    let mut total = T::ZERO;
    for joint in activity.iter_mut() {
        // Nothing below this shows in the sum.
        let below = *joint - best.0;
        *joint = if below > T::NEGLIGIBLE {
            Count::Weights.add(1);
            below.exp()
        } else {
            T::ZERO
        };
        total += *joint;
    }
    let scale = T::ONE / total;
    for ((activity, mean), variance) in activity.iter_mut().zip(mean.iter_mut()).zip(variance.iter_mut()) {
        let on = *activity * scale;
        (*activity, *mean, *variance) = (on, on, on * (T::ONE - on));
    }
    state.evidence = model.log_norm + (best.0 + total.ln());
    state.sound = state.evidence * T::ZERO;
    state.map.clear();
    let _ = state.map.push(best.1); // there is room for one
    set(memory.map_values, 0, T::ONE);
    if DETAIL && !memory.second.is_empty() {
        memory.second.fill(T::ZERO);
        let n = state.latents.len();
        for (i, &latent) in state.latents.iter().enumerate() {
            set(memory.second, i * n + i, at(memory.activity, usize::from(latent)));
        }
    }
}

/// (y - W_c)^T Sigma_c^-1 (y - W_c), from the residual, for which there is room in `residual`.
fn distance<T: Real>(model: &Model<'_, T>, sample: &[T], residual: &mut [T], c: usize) -> T {
    Count::Distances.add(1);
    Count::DistanceDims.add(sample.len());
    with_column!(model, c, |column| {
        for ((r, &y), w) in residual.iter_mut().zip(sample).zip(column) {
            *r = y - w;
        }
    });
    let mut sum = T::ZERO;
    if let Selection::Independent { precision, .. } = model.selection {
        for (&r, a) in residual.iter().zip(float_column(precision, sample.len(), c)) {
            sum += a * r * r;
        }
        return sum;
    }
    match model.noise {
        Noise::Shared(precision) => {
            residual.iter().for_each(|&r| sum += r * r);
            sum * precision
        }
        Noise::Diagonal(precisions) => {
            residual.iter().zip(precisions).for_each(|(&r, &a)| sum += a * r * r);
            sum
        }
        Noise::Full(factor) => {
            Count::Whitened.add(sample.len() * sample.len() / 2);
            for i in 0..sample.len() {
                let white = dot(lower_row(factor, i), span(residual, 0, i + 1));
                sum += white * white;
            }
            sum
        }
    }
}

/// Visits the components that count: each is a state.
pub(super) fn each_state<T: Real>(
    model: &Model<'_, T>,
    memory: &Memory<'_, T>,
    state: &State<T>,
    visit: &mut dyn FnMut(&[u16], T),
) {
    for (latent, &probability) in (0u16..).zip(memory.activity.iter()) {
        if model.shape.singletons || state.latents.contains(&latent) {
            visit(&[latent], probability);
        }
    }
}
