//! One start of expectation maximisation at a time, so that an experiment sees them all.

use super::mixtures::{mean_square, normal_matrix};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::train::run::Start;
use spikelet_trainer::train::settings::{Engine, SlabForm};
use spikelet_trainer::train::{Next, Points, Settings, State};

/// Exact EM for W, pi and one noise variance, one start, as in paper 001; experiments change what they must.
pub fn exact(latents: usize, iterations: usize, seed: u64) -> Settings {
    Settings { slab: SlabForm::Unit, iterations, seed, ..Settings::new(ModelKind::Gsc, latents) }
}

/// The same with truncated posteriors.
pub fn truncated(
    latents: usize,
    selected: usize,
    max_active: usize,
    iterations: usize,
    seed: u64,
) -> Settings {
    Settings { selected, max_active, engine: Engine::Truncated, ..exact(latents, iterations, seed) }
}

/// Trains from the library's own initial parameters.
pub fn train(settings: &Settings, points: &mut Points) -> Result<State> {
    finish(State::new(settings.clone(), points)?, points)
}

/// Trains one start from given parameters.
pub fn train_from(parameters: Parameters, settings: &Settings, points: &mut Points) -> Result<Start> {
    let mut state = State::new(settings.clone(), points)?;
    state.current.parameters = parameters;
    Ok(finish(state, points)?.current)
}

fn finish(mut state: State, points: &mut Points) -> Result<State> {
    // Experiments use the cores for trials.
    state.run(points, 1, |_| Ok(Next::Continue))?;
    Ok(state)
}

/// Initial parameters of paper 001: W standard normal, pi uniform between 0.05 and 1, noise as large as the data.
pub fn paper_start(points: &[f64], dims: usize, latents: usize, rng: &mut Rng) -> Parameters {
    Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary: normal_matrix(rng, dims, latents),
        prior: (0..latents).map(|_| 0.05 + 0.95 * rng.uniform::<f64>()).collect(),
        slab_mean: vec![0.0; latents],
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(mean_square(points)),
    }
}

/// Initial parameters of paper 000: as those of 001, but pi below 0.95, slab means standard normal, slab variances
/// uniform between 0 and 1.
pub fn learned_slab_start(points: &[f64], dims: usize, latents: usize, rng: &mut Rng) -> Parameters {
    let mut start = paper_start(points, dims, latents, rng);
    start.prior = (0..latents).map(|_| 0.05 + 0.9 * rng.uniform::<f64>()).collect();
    start.slab_mean = normal_matrix(rng, 1, latents);
    start.slab_cov = SlabCov::Diagonal((0..latents).map(|_| rng.uniform::<f64>().max(1e-3)).collect());
    start
}
