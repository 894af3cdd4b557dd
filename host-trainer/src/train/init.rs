//! Where a start begins.
//!
//! The columns of W are random directions coloured by the covariance C of the data, W = C^(1/2) X with
//! X standard normal, scaled so that the model's covariance equals the data's on average: H pi W W^T.
//! Against white random columns this spends no iterations on learning second-order statistics. Noise
//! starts at the data's variance (everything is noise until the dictionary explains it), pi at two
//! latents on at a time, at most one half.

use super::points::Points;
use super::settings::{InitForm, NoiseForm, Settings, SlabForm};
use super::whiten::Spectrum;
use crate::Result;
use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet::rng::Rng;

/// Random parameters for start number `restart` on data with this covariance (D x D).
pub fn init(
    settings: &Settings,
    covariance: &[f64],
    points: &mut Points,
    restart: usize,
) -> Result<Parameters> {
    let (dims, h) = (points.dims(), settings.latents);
    let d = dims;
    // Starts are streams of their own, so that start 3 is the same whether or not 1 and 2 ran.
    let mut rng = Rng::new(settings.seed.wrapping_add((restart as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let variance = (0..d).map(|i| covariance[i * d + i]).sum::<f64>() / d as f64;
    let prior = (2.0 / h as f64).min(0.5);
    let scale = 1.0 / (h as f64 * prior).sqrt();
    let dictionary = match settings.init {
        InitForm::Random => {
            let root = square_root(covariance, d, variance);
            let white: Vec<f64> = (0..d * h).map(|_| scale * rng.normal::<f64>()).collect();
            let entry = |i: usize, j: usize| (0..d).map(|k| root[i * d + k] * white[k * h + j]).sum();
            (0..d * h).map(|e| entry(e / h, e % h)).collect()
        }
        InitForm::Data => drawn(points, h, scale * (d as f64 * variance).sqrt(), &mut rng)?,
    };
    Ok(Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents: h,
        dictionary,
        prior: vec![prior; h],
        slab_mean: vec![0.0; h],
        slab_cov: match settings.slab {
            SlabForm::Unit => SlabCov::Unit,
            SlabForm::Diagonal => SlabCov::Diagonal(vec![1.0; h]),
            SlabForm::Full => {
                SlabCov::Full((0..h * h).map(|e| f64::from(u8::from(e / h == e % h))).collect())
            }
        },
        noise: match settings.noise {
            NoiseForm::Shared => NoiseCov::Shared(variance),
            NoiseForm::Diagonal => NoiseCov::Diagonal(vec![variance; d]),
            NoiseForm::Full => {
                NoiseCov::Full((0..d * d).map(|e| if e / d == e % d { variance } else { 0.0 }).collect())
            }
        },
    })
}

/// Points drawn at random as columns, all of the same norm. (D x H)
fn drawn(points: &mut Points, h: usize, norm: f64, rng: &mut Rng) -> Result<Vec<f64>> {
    let (d, n, mut point) = (points.dims(), points.len(), Vec::new());
    let mut dictionary = vec![0.0; d * h];
    for k in 0..h {
        let drawn = (rng.uniform::<f64>() * n as f64) as usize;
        points.read(drawn.min(n - 1), 1, &mut point)?;
        // A little noise: the same point may be drawn twice, and a point of zeros has no direction.
        let length = point.iter().map(|y| y * y).sum::<f64>().sqrt();
        for (i, y) in point.iter().enumerate() {
            let direction = if length > 0.0 { y / length } else { 0.0 };
            dictionary[i * h + k] = norm * (direction + 0.1 * rng.normal::<f64>() / (d as f64).sqrt());
        }
    }
    Ok(dictionary)
}

/// Symmetric square root; directions without variance get a thousandth of the mean.
fn square_root(covariance: &[f64], d: usize, variance: f64) -> Vec<f64> {
    let floor = 1e-6 * variance;
    Spectrum::new(covariance, d).map(|v| v.max(floor).sqrt())
}
