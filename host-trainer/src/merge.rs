//! Models of single sources as one model of their mixture.
//!
//! ```text
//! W = [W_A W_B ...]      pi, mu, Psi one after the other      Sigma = Sigma_A + Sigma_B + ...
//! ```
//!
//! In a mixture every source leaves what its dictionary does not explain, so that noises add up.

use crate::parameters::{NoiseCov, Parameters, SlabCov};

/// One model of all: of the same kind, for points of the same form, at least one.
pub fn join(parts: &[&Parameters]) -> Parameters {
    let all = || parts.iter().copied();
    let Parameters { kind, dims, .. } = *parts[0];
    let latents = all().map(|model| model.latents).sum();
    let row = |model: &Parameters, d: usize| model.dictionary[d * model.latents..][..model.latents].to_vec();
    let is_plain = |model: &Parameters| matches!(model.slab_cov, SlabCov::Unit);
    let is_full = |model: &Parameters| matches!(model.slab_cov, SlabCov::Full(_));
    let slab_cov = match (all().all(is_plain), all().any(is_full)) {
        (true, _) => SlabCov::Unit,
        (_, true) => SlabCov::Full(blocks(parts, latents)),
        _ => SlabCov::Diagonal(all().flat_map(Parameters::slab_variances).collect()),
    };
    let is_shared = |model: &Parameters| matches!(model.noise, NoiseCov::Shared(_));
    let has_full = |model: &Parameters| matches!(model.noise, NoiseCov::Full(_));
    let variances: Vec<f64> =
        (0..dims).map(|d| all().map(|model| model.noise_variances()[d]).sum()).collect();
    let noise = match (all().all(is_shared), all().any(has_full)) {
        (true, _) => NoiseCov::Shared(variances[0]),
        (_, true) => {
            let entry = |e: usize| all().map(|model| model.noise_covariance(e / dims, e % dims)).sum();
            NoiseCov::Full((0..dims * dims).map(entry).collect())
        }
        _ => NoiseCov::Diagonal(variances),
    };
    Parameters {
        kind,
        dims,
        latents,
        dictionary: (0..dims)
            .flat_map(|d| all().flat_map(move |model| row(model, d)).collect::<Vec<_>>())
            .collect(),
        prior: all().flat_map(|model| model.prior.clone()).collect(),
        slab_mean: all().flat_map(|model| model.slab_mean.clone()).collect(),
        slab_cov,
        noise,
    }
}

/// Slabs of different models do not depend on each other. (H x H)
fn blocks(parts: &[&Parameters], latents: usize) -> Vec<f64> {
    let (mut full, mut first) = (vec![0.0; latents * latents], 0);
    for parameters in parts {
        for i in 0..parameters.latents {
            for j in 0..parameters.latents {
                full[(first + i) * latents + first + j] = parameters.slab_covariance(i, j);
            }
        }
        first += parameters.latents;
    }
    full
}
