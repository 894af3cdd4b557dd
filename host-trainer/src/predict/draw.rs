//! Samples that a model itself makes: what a device may expect to see, as long as the model is right.
//!
//! y = W (s.z) + noise, or the maximum over latents instead of the sum, from the numbers of the model alone.

use spikelet::math::Real;
use spikelet::model::{Model, Noise};
use spikelet::rng::Rng;

/// Sample `number` of those that `seed` stands for: the same whatever others are drawn.
///
/// ```
/// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
/// let sample = spikelet_trainer::predict::draw(&model, 1, 0);
/// assert_eq!(sample.len(), 2);
/// assert_eq!(sample, spikelet_trainer::predict::draw(&model, 1, 0));
/// ```
pub fn draw(model: &Model<'_, f32>, seed: u64, number: u64) -> Vec<f32> {
    let mut rng = Rng::of_sample(seed, number);
    let dims = model.shape.dims;
    let mut clean = vec![0.0f64; dims];
    for (latent, &logit) in model.prior_logit.iter().enumerate() {
        let (chance, normal) = (rng.unit::<f64>(), rng.normal::<f64>());
        if chance * (1.0 + (-f64::from(logit)).exp()) >= 1.0 {
            continue;
        }
        let strength = match model.slab_mean.get(latent) {
            Some(&mean) => f64::from(mean) + normal / f64::from(model.slab_precision[latent]).sqrt(),
            None => 1.0,
        };
        for (clean, w) in clean.iter_mut().zip(model.column(latent)) {
            let part = f64::from(w) * strength;
            *clean = if model.shape.kind.is_maximal() { clean.max(part) } else { *clean + part };
        }
    }
    let white: Vec<f64> = (0..dims).map(|_| rng.normal()).collect();
    let noise = coloured(&model.noise, &white);
    clean.iter().zip(noise).map(|(clean, noise)| (clean + noise) as f32).collect()
}

/// Noise of the model's covariance from independent numbers of variance one.
fn coloured(noise: &Noise<'_, f32>, white: &[f64]) -> Vec<f64> {
    match *noise {
        Noise::Shared(precision) => white.iter().map(|e| e / f64::from(precision).sqrt()).collect(),
        Noise::Diagonal(precisions) => {
            white.iter().zip(precisions).map(|(e, &precision)| e / f64::from(precision).sqrt()).collect()
        }
        // L^-1 n = e, solved from the first dimension on.
        Noise::Full(inverse) => {
            let mut noise = Vec::with_capacity(white.len());
            let mut rows = inverse;
            for (d, e) in white.iter().enumerate() {
                let (row, rest) = rows.split_at(d + 1);
                let known: f64 = row.iter().zip(&noise).map(|(&l, n)| f64::from(l) * n).sum();
                noise.push((e - known) / f64::from(row[d]));
                rows = rest;
            }
            noise
        }
    }
}

/// Whether inference takes this sample for a loud one: see [`Real::REFINE_ABOVE`].
pub fn is_loud(model: &Model<'_, f32>, sample: &[f32]) -> bool {
    if model.shape.kind.is_maximal() {
        return false;
    }
    let weighted = weighted(&model.noise, sample);
    (0..model.shape.latents).any(|h| {
        let column = model.column(h).zip(&weighted);
        let b: f64 = column.map(|(w, y)| f64::from(w) * y).sum();
        let gram = f64::from(model.gram_diagonal[h]);
        let gain = match (model.slab_mean.get(h), model.slab_precision.get(h)) {
            (Some(&mean), Some(&precision)) => {
                let (mean, precision) = (f64::from(mean), f64::from(precision));
                let pull = mean * precision;
                0.5 * (b * b + pull * (2.0 * b - gram * mean)) / (gram + precision)
            }
            _ => b,
        };
        gain > f64::from(f32::REFINE_ABOVE)
    })
}

/// Whether inference of maximal causes takes this sample for one that is far from zero.
pub fn is_far(model: &Model<'_, f32>, sample: &[f32]) -> bool {
    let weighted = weighted(&model.noise, sample);
    let energy: f64 = weighted.iter().zip(sample).map(|(a, &y)| a * f64::from(y)).sum();
    0.5 * energy > f64::from(f32::REFINE_ABOVE)
}

/// Sigma^-1 y.
fn weighted(noise: &Noise<'_, f32>, sample: &[f32]) -> Vec<f64> {
    let sample = sample.iter().map(|&y| f64::from(y));
    match *noise {
        Noise::Shared(precision) => sample.map(|y| y * f64::from(precision)).collect(),
        Noise::Diagonal(precisions) => {
            sample.zip(precisions).map(|(y, &precision)| y * f64::from(precision)).collect()
        }
        // L^-T L^-1 y.
        Noise::Full(inverse) => {
            let sample: Vec<f64> = sample.collect();
            let mut result = vec![0.0; sample.len()];
            let mut rows = inverse;
            for d in 0..sample.len() {
                let (row, rest) = rows.split_at(d + 1);
                let white: f64 = row.iter().zip(&sample).map(|(&l, y)| f64::from(l) * y).sum();
                for (result, &l) in result.iter_mut().zip(row) {
                    *result += f64::from(l) * white;
                }
                rows = rest;
            }
            result
        }
    }
}
