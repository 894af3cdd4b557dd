//! Points through the core in `f32`, exactly as a device would, on several threads.
//!
//! In come a model and rows of D numbers, out come the posteriors in the order of the rows. A posterior depends on its sample
//! (and, if it is drawn, on the number of the point and the seed) only, so the threads do not show in the results. Fails at the
//! first sample that the core refuses.

use crate::data::Mosaic;
use crate::{Error, Result};
use spikelet::{Detail, Engine, Inference, Model};
use std::num::NonZero;
use std::thread;

/// Work between two steps of the progress bar and two writes, in multiply-adds: a fraction of a second.
const PIECE_OPERATIONS: u64 = 300_000_000;

/// Numbers of data or results held at once, at most.
const PIECE_NUMBERS: usize = 4_000_000;

/// Posteriors of consecutive points, one row of each array per point.
#[derive(Debug, Default)]
pub(super) struct Posteriors {
    /// Latents kept, best first, -1 where there are fewer. (N x H')
    pub selected: Vec<i64>,
    /// <s>. (N x H)
    pub activity: Vec<f32>,
    /// <s.z>. (N x H)
    pub mean: Vec<f32>,
    /// Variance of s.z. (N x H)
    pub variance: Vec<f32>,
    /// Of mixtures the squared distance from each component. (N x H; else empty)
    pub distance: Vec<f32>,
    /// ln of the sum over kept states. (N)
    pub evidence: Vec<f32>,
    /// 1 where the most probable state is on. (N x H)
    pub map: Vec<i64>,
    /// The points without noise, if asked for. (N x D)
    pub reconstruction: Vec<f32>,
    /// How much each of them counts where they overlap, likewise. (N)
    pub weight: Vec<f32>,
    /// The number of a point and one of its states, as a mask over its row of `selected`, if asked for. (M x 2)
    pub states: Vec<i64>,
}

/// What is asked for beside posteriors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Extra {
    #[default]
    Nothing,
    /// [`Posteriors::reconstruction`].
    Reconstruction,
    /// The same, with weights for which it is asked what latents have in common.
    Overlapping,
    /// [`Posteriors::states`]; every state within the mask that [`check_states`] allows.
    States,
}

/// Latents that a mask of 64 bits with a sign has room for.
const MASK_BITS: usize = 63;

/// States of a point that are held at once, at most: 256 MB.
const MOST_STATES: u64 = 1 << 24;

/// Refuses states that cannot be written as masks over the selected latents.
pub(super) fn check_states(model: &Model<'_, f32>, engine: Engine) -> Result<()> {
    let shape = model.shape;
    let refuse = |what: String, advice: &str| Err(Error::input(what, "--write-states", advice));
    if matches!(engine, Engine::Gibbs(_)) {
        let what = "a sampled posterior has draws, not a list of states".to_string();
        return refuse(what, "leave the flag out, or use --engine truncated");
    }
    if shape.singletons && shape.selected < shape.latents {
        let what =
            "states of latents that are not selected have no place in masks over those that are".to_string();
        return refuse(what, "use --states adaptive, or import the model with --no-singletons");
    }
    if shape.selected > MASK_BITS {
        let what =
            format!("{} selected latents are more than the {MASK_BITS} bits of a mask", shape.selected);
        return refuse(what, "lower --selected");
    }
    if shape.states() > MOST_STATES {
        let what = format!("{} states a point are too many to write", shape.states());
        return refuse(what, "lower --max-active, --selected or --expansions");
    }
    Ok(())
}

/// As many threads as the machine runs at once.
pub(super) fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Bound on the multiply-adds of a point.
pub(super) fn operations(model: &Model<'_, f32>, engine: Engine) -> u64 {
    match engine {
        Engine::Truncated => model.operations().total(),
        Engine::Gibbs(settings) => model.gibbs_operations(&settings).total(),
    }
}

/// Points that are worked on between two steps of the progress bar.
pub(super) fn piece_points(model: &Model<'_, f32>, engine: Engine, threads: usize, extra: Extra) -> usize {
    let by_work = (PIECE_OPERATIONS / operations(model, engine).max(1)) as usize;
    // A state takes two numbers of 64 bits.
    let states = if extra == Extra::States { 4 * model.shape.states() as usize } else { 0 };
    let by_memory = PIECE_NUMBERS / (2 * model.shape.dims + 5 * model.shape.latents + states);
    threads * by_work.min(by_memory / threads).max(1)
}

/// Posteriors of `points` (N x D), in order, in about equal parts of at most `threads`. `first` is the number of the
/// first point and `name` that of the data, for errors.
pub(super) fn infer(
    model: Model<'_, f32>,
    engine: Engine,
    points: &[f64],
    threads: usize,
    first: usize,
    name: &str,
    extra: Extra,
) -> Result<Vec<Posteriors>> {
    let dims = model.shape.dims;
    let part = (points.len() / dims).div_ceil(threads).max(1);
    let parts = || points.chunks(part * dims).zip((first..).step_by(part));
    if threads == 1 {
        return parts()
            .map(|(points, first)| infer_part(model, engine, points, first, name, extra))
            .collect();
    }
    thread::scope(|scope| {
        let spawn = |(points, first)| {
            thread::Builder::new()
                .spawn_scoped(scope, move || infer_part(model, engine, points, first, name, extra))
                .map_err(|cause| {
                    Error::run(format_args!("no more threads ({cause})"), "--threads", "ask for fewer")
                })
        };
        let running = parts().map(spawn).collect::<Result<Vec<_>>>()?;
        // In order: of several refused points the first is told, whatever the number of threads.
        running.into_iter().map(|thread| thread.join().expect("inference does not panic")).collect()
    })
}

/// [`infer`] on this thread.
pub(super) fn infer_part(
    model: Model<'_, f32>,
    engine: Engine,
    points: &[f64],
    first: usize,
    name: &str,
    extra: Extra,
) -> Result<Posteriors> {
    let detail = match extra {
        Extra::Overlapping if model.gram.is_some() => Detail::SecondMoments,
        _ => Detail::Marginals,
    };
    let mut memory = vec![0.0; engine.arena_len(model.shape, detail)];
    let mut inference = Inference::with_engine(model, &mut memory, detail, engine)
        .expect("memory of the length it asked for, and an engine that was checked");
    inference.seek(first as u64);
    let mut results = Posteriors::default();
    let mut sample = vec![0.0; model.shape.dims];
    for (point, values) in (first..).zip(points.chunks_exact(model.shape.dims)) {
        for (sample, &value) in sample.iter_mut().zip(values) {
            *sample = value as f32;
        }
        let estimate = inference.infer(&sample).map_err(|error| {
            let what = match error {
                spikelet::Error::SampleNotFinite { index } => {
                    format!("{:e} does not fit a 32-bit number (dimension {index})", values[index])
                }
                other => other.to_string(),
            };
            let place = format!("{name}, point {point} (counted from 0)");
            Error::input(what, place, "remove the point, or rescale data and model")
        })?;
        let kept = results.selected.len();
        results.selected.extend(estimate.selected.iter().map(|&latent| i64::from(latent)));
        results.selected.resize(kept + model.shape.selected, -1);
        results.activity.extend_from_slice(estimate.activity);
        results.mean.extend_from_slice(estimate.mean);
        results.variance.extend_from_slice(estimate.variance);
        results.distance.extend_from_slice(estimate.distance);
        results.evidence.push(estimate.evidence);
        match extra {
            Extra::Reconstruction => results.weight.push(Mosaic::weight(&model, estimate.variance)),
            Extra::Overlapping => results.weight.push(Mosaic::joint_weight(&model, &estimate)),
            Extra::Nothing | Extra::States => {}
        }
        let row = results.map.len();
        results.map.resize(row + model.shape.latents, 0);
        for &latent in estimate.map_latents {
            results.map[row + usize::from(latent)] = 1;
        }
        match extra {
            Extra::Nothing => {}
            Extra::Reconstruction | Extra::Overlapping => {
                inference.reconstruct(&mut sample).expect("D entries");
                results.reconstruction.extend_from_slice(&sample);
            }
            Extra::States => {
                let candidates = &results.selected[kept..];
                inference.for_each_state(|latents, _| {
                    let bit = |&latent: &u16| candidates.iter().position(|&other| other == i64::from(latent));
                    let mask = latents.iter().filter_map(bit).fold(0, |mask, bit| mask | 1 << bit);
                    results.states.extend([point as i64, mask]);
                });
            }
        }
    }
    Ok(results)
}
