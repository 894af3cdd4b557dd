//! Random models, and samples of them.

use crate::family::Family;
use crate::shapes::{Case, Purpose, cases, samples};
use spikelet::rng::Rng;
use spikelet::{Engine, Model, Start};
use spikelet_trainer::blob;
use spikelet_trainer::parameters::{NoiseCov, Parameters, SlabCov};
use spikelet_trainer::predict::{Method, SEED, draw};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};
use std::fs;
use std::path::Path;

/// Writes blobs and samples, and prints their paths.
pub fn write(folder: &Path, family: &Family, purpose: Purpose) {
    fs::create_dir_all(folder).unwrap();
    for (index, case) in cases(family, purpose).iter().enumerate() {
        let path = folder.join(name(family, purpose, index, case)).with_extension("spk");
        let prepared = prepared(family, index, case);
        fs::write(&path, blob::write(&prepared, &slab(family, index, case.shape[1]), "").unwrap()).unwrap();
        let model = prepared.model().unwrap();
        let all = (0..samples(family, purpose)).flat_map(|number| sample(&model, purpose, number));
        let bytes: Vec<u8> = all.flat_map(f32::to_le_bytes).collect();
        fs::write(path.with_extension("f32"), bytes).unwrap();
        println!("{}", path.display());
    }
}

/// What the firmware calls a model. The last word of one that is sampled says how: see tests/firmware/src/settings.rs.
pub fn name(family: &Family, purpose: Purpose, index: usize, case: &Case) -> String {
    let purpose = if purpose == Purpose::Fit { "fit" } else { "check" };
    let name = format!("{}-{purpose}-{index}", family.name);
    match case.engine {
        Engine::Truncated => name,
        Engine::Gibbs(settings) => {
            let is_random = u8::from(settings.start == Start::Random);
            format!("{name}-{}x{}x{}x{is_random}", settings.chains, settings.sweeps, settings.extra)
        }
    }
}

/// Whether a sample is louder than the model itself would have it: the dearest are found among these.
pub fn is_scaled(purpose: Purpose, number: u64) -> bool {
    purpose == Purpose::Fit && number % 3 == 2
}

/// A sample of the model, or ten to a thousand times one.
pub fn sample(model: &Model<'_, f32>, purpose: Purpose, number: u64) -> Vec<f32> {
    let mut sample = draw(model, SEED, number);
    if is_scaled(purpose, number) {
        let factor = 10f32.powi(1 + (number / 3 % 3) as i32);
        sample.iter_mut().for_each(|y| *y *= factor);
    }
    sample
}

/// The slab of model `index`: with and without a mean; in some tables, one that depends on the others.
fn slab(family: &Family, index: usize, latents: usize) -> SlabCov {
    if !family.kind.kind().has_slab() || index.is_multiple_of(2) {
        return SlabCov::Unit;
    }
    if family.method == Method::Table && index % 4 == 3 {
        let covariance = |i: usize| if i / latents == i % latents { 0.5 } else { 0.1 / latents as f64 };
        return SlabCov::Full((0..latents * latents).map(covariance).collect());
    }
    SlabCov::Diagonal(vec![0.5; latents])
}

/// A random model, with more or less noise; some whose Gram matrix is computed, some with full noise, some without
/// singletons.
pub fn prepared(family: &Family, index: usize, case: &Case) -> Prepared<f32> {
    let (kind, [d, h, selected, max_active]) = (family.kind, case.shape);
    let mut rng = Rng::new(100 * d as u64 + h as u64);
    let is_positive = kind.kind().is_non_negative();
    let mut entry = || {
        let w = rng.normal::<f64>() / (d as f64).sqrt();
        if is_positive { w.abs() } else { w }
    };
    let dictionary = (0..d * h).map(|_| entry()).collect();
    let variance = case.noise;
    let covariance = |i: usize| if i / d == i % d { variance } else { 0.1 * variance / d as f64 };
    let noise = match index % 6 {
        5 if !is_positive => NoiseCov::Full((0..d * d).map(covariance).collect()),
        0 | 3 => NoiseCov::Diagonal((0..d).map(|i| variance * (1.0 + i as f64 / d as f64)).collect()),
        _ => NoiseCov::Shared(variance),
    };
    let prior = vec![([1.5, 1.0, 2.5][index % 3] / h as f64).min(0.4); h];
    let slab_mean = if kind.kind().has_slab() { vec![(index % 2) as f64; h] } else { Vec::new() };
    let slab_cov = slab(family, index, h);
    let parameters = Parameters { kind, dims: d, latents: h, dictionary, prior, slab_mean, slab_cov, noise };
    // Computed with the same noise in all dimensions, and with other noise.
    let gram =
        if index % 6 == 4 || matches!(index % 12, 0 | 3) { GramName::Computed } else { GramName::Auto };
    let states = (family.method == Method::Table).then_some(StatesName::Table);
    let (selection, singletons) = (SelectionName::of_kind(kind), index % 7 != 2);
    let options = Options { selected, max_active, singletons, selection, states, gram };
    let prepared = match family.width {
        Some(width) => Prepared::quantized(&parameters, &options, width),
        None => Prepared::new(&parameters, &options),
    }
    .unwrap();
    if family.method == Method::Fixed { prepared.in_fixed_point().unwrap() } else { prepared }
}
