//! What a model leaves of points.

use spikelet::{Detail, Engine, Inference};
use spikelet_trainer::parameters::Parameters;
use spikelet_trainer::prepare::{Options, Prepared};
use spikelet_trainer::{Error, Result};

/// How well points are explained.
pub struct Explained {
    /// Mean of (y - W <s>)^2 over points and dimensions.
    pub error: f64,
    /// The same of the most probable state, W s.
    pub map_error: f64,
    /// Latents on at a time.
    pub on: f64,
    /// How often each is on. (H)
    pub activity: Vec<f64>,
}

/// Inference of points (N x D) by a model of latents that are on or off.
pub fn explained(model: &Parameters, options: &Options, points: &[f64]) -> Result<Explained> {
    let refused = |error| Error::input(error, "the data", "check its range");
    let prepared = Prepared::<f64>::new(model, options)?;
    let (d, h) = (model.dims, model.latents);
    let shape = prepared.model()?.shape;
    let mut memory = vec![0.0; Engine::Truncated.arena_len(shape, Detail::Marginals)];
    let mut inference =
        Inference::with_engine(prepared.model()?, &mut memory, Detail::Marginals, Engine::Truncated)
            .map_err(refused)?;
    let (mut error, mut map_error, mut activity) = (0.0, 0.0, vec![0.0; h]);
    for y in points.chunks_exact(d) {
        let estimate = inference.infer(y).map_err(refused)?;
        activity.iter_mut().zip(estimate.activity).for_each(|(sum, a)| *sum += a);
        for (y, row) in y.iter().zip(model.dictionary.chunks_exact(h)) {
            let mean: f64 = row.iter().zip(estimate.activity).map(|(w, s)| w * s).sum();
            let map: f64 = estimate.map_latents.iter().map(|&k| row[usize::from(k)]).sum();
            error += (y - mean).powi(2);
            map_error += (y - map).powi(2);
        }
    }
    let n = (points.len() / d) as f64;
    activity.iter_mut().for_each(|a| *a /= n);
    let all = points.len() as f64;
    Ok(Explained { error: error / all, map_error: map_error / all, on: activity.iter().sum(), activity })
}
