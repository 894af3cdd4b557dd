//! Samples that a model itself makes: what a device may expect to see, as long as the model is right.
//!
//! y = W (s.z) + noise, or the maximum over latents instead of the sum, from the numbers of the model alone.

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
