//! Where a start begins.
//!
//! The columns of W are random directions coloured by the covariance C of the data, W = C^(1/2) X with
//! X standard normal, scaled so that the model's covariance equals the data's on average: H pi W W^T.
//! Against white random columns this spends no iterations on learning second-order statistics. Noise
//! starts at the data's variance (everything is noise until the dictionary explains it), pi at two
//! latents on at a time, at most one half.

use super::settings::{NoiseForm, Settings, SlabForm};
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use faer::{Mat, Side};
use spikelet::rng::Rng;

/// Random parameters for start number `restart` on data with this covariance (D x D).
pub fn init(settings: &Settings, covariance: &[f64], dims: usize, restart: usize) -> Parameters {
    let (d, h) = (dims, settings.latents);
    // Starts are streams of their own, so that start 3 is the same whether or not 1 and 2 ran.
    let mut rng = Rng::new(settings.seed.wrapping_add((restart as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let variance = (0..d).map(|i| covariance[i * d + i]).sum::<f64>() / d as f64;
    let prior = (2.0 / h as f64).min(0.5);
    let root = square_root(covariance, d, variance);
    let scale = 1.0 / (h as f64 * prior).sqrt();
    let white: Vec<f64> = (0..d * h).map(|_| scale * rng.normal::<f64>()).collect();
    let entry = |i: usize, j: usize| (0..d).map(|k| root[i * d + k] * white[k * h + j]).sum();
    Parameters {
        dims,
        latents: h,
        dictionary: (0..d * h).map(|e| entry(e / h, e % h)).collect(),
        prior: vec![prior; h],
        slab_mean: vec![0.0; h],
        slab_cov: match settings.slab {
            SlabForm::Unit => SlabCov::Unit,
            SlabForm::Diagonal => SlabCov::Diagonal(vec![1.0; h]),
        },
        noise: match settings.noise {
            NoiseForm::Shared => NoiseCov::Shared(variance),
            NoiseForm::Diagonal => NoiseCov::Diagonal(vec![variance; d]),
            NoiseForm::Full => {
                NoiseCov::Full((0..d * d).map(|e| if e / d == e % d { variance } else { 0.0 }).collect())
            }
        },
    }
}

/// Symmetric square root; directions without variance get a thousandth of the mean.
fn square_root(covariance: &[f64], d: usize, variance: f64) -> Vec<f64> {
    let matrix = Mat::from_fn(d, d, |i, j| covariance[i * d + j]);
    let Ok(eigen) = matrix.self_adjoint_eigen(Side::Lower) else {
        return (0..d * d).map(|e| if e / d == e % d { variance.sqrt() } else { 0.0 }).collect();
    };
    let (u, values) = (eigen.U(), eigen.S().column_vector());
    let floor = 1e-6 * variance;
    let entry =
        |i: usize, j: usize| (0..d).map(|k| u[(i, k)] * values[k].max(floor).sqrt() * u[(j, k)]).sum();
    (0..d * d).map(|e| entry(e / d, e % d)).collect()
}
