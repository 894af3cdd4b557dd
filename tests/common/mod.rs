//! What several test programs need.
#![allow(dead_code)] // each of them uses its own part

pub mod channels;
pub mod rooms;
pub mod sampling;
pub mod streams;
pub mod twofold;

use spikelet::{Error, Inference};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};
use std::path::PathBuf;

/// `tests/`, whichever package the test belongs to.
pub fn tests_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// A folder of `tests/golden`. A missing one is a failure, never skipped.
pub struct Case {
    folder: PathBuf,
    json: serde_json::Value,
}

impl Case {
    pub fn load(name: &str) -> Self {
        let folder = tests_dir().join("golden").join(name);
        let text = std::fs::read_to_string(folder.join("case.json")).expect(name);
        Self { folder, json: serde_json::from_str(&text).expect(name) }
    }

    pub fn number(&self, key: &str) -> usize {
        self.json[key].as_u64().expect(key) as usize
    }

    pub fn real(&self, key: &str) -> f64 {
        self.json[key].as_f64().expect(key)
    }

    pub fn nested(&self, key: &str, name: &str) -> Option<f64> {
        self.json[key][name].as_f64()
    }

    pub fn optional(&self, key: &str) -> Option<f64> {
        self.json[key].as_f64()
    }

    pub fn flag(&self, key: &str) -> bool {
        self.json[key].as_bool().expect(key)
    }

    pub fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or_default()
    }

    pub fn lists(&self, key: &str, word: &str) -> bool {
        self.json[key].as_array().expect(key).iter().any(|item| item == word)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.npy"))
    }

    /// A float64 array, flat; `None` when the case has none of that name.
    pub fn array(&self, name: &str) -> Option<Vec<f64>> {
        self.words(name, "<f8").map(|words| words.into_iter().map(f64::from_bits).collect())
    }

    /// An int64 array, flat.
    pub fn integers(&self, name: &str) -> Vec<i64> {
        self.words(name, "<i8").expect(name).into_iter().map(|word| word as i64).collect()
    }

    /// The vectors are plain little-endian 8-byte arrays in C order: header, then numbers.
    fn words(&self, name: &str, kind: &str) -> Option<Vec<u64>> {
        let bytes = std::fs::read(self.path(name)).ok()?;
        let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = std::str::from_utf8(&bytes[10..end]).unwrap();
        assert!(header.contains(kind) && header.contains("False"), "{name}: {header}");
        Some(bytes[end..].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect())
    }
}

/// FNV-1a.
pub fn fnv(bytes: &[u8]) -> u64 {
    let add = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// [`fnv`] over everything inference says about every sample; `examples/firmware-c/digest.h` has the
/// same in C.
pub fn digest(inference: &mut spikelet::Inference<'_, f32>, samples: &[f32]) -> u64 {
    let dims = inference.model().shape.dims;
    let mut said = Vec::new();
    let mut add = |bytes: &[u8]| said.extend_from_slice(bytes);
    let mut reconstruction = vec![0.0f32; dims];
    for sample in samples.chunks_exact(dims) {
        let estimate = inference.infer(sample).expect("finite samples");
        estimate.selected.iter().for_each(|latent| add(&latent.to_le_bytes()));
        for numbers in [estimate.activity, estimate.mean, estimate.variance] {
            numbers.iter().for_each(|number| add(&number.to_le_bytes()));
        }
        estimate.map_latents.iter().for_each(|latent| add(&latent.to_le_bytes()));
        estimate.map_values.iter().for_each(|number| add(&number.to_le_bytes()));
        add(&estimate.evidence.to_le_bytes());
        inference.reconstruct(&mut reconstruction).expect("D entries");
        reconstruction.iter().for_each(|number| add(&number.to_le_bytes()));
    }
    fnv(&said)
}

/// The kind of model of a case.
pub fn kind(case: &Case) -> ModelKind {
    match case.text("model") {
        "bsc" => ModelKind::Bsc,
        "nmf" => ModelKind::Nmf,
        "mca" => ModelKind::Mca,
        "ssmca" => ModelKind::Ssmca,
        _ => ModelKind::Gsc,
    }
}

/// The parameters of a case.
pub fn parameters(case: &Case) -> Parameters {
    let (dims, latents) = (case.number("dims"), case.number("latents"));
    let kind = kind(case);
    let noise = match case.array("Sigma") {
        Some(sigma) => NoiseCov::Full(sigma),
        None => match case.array("sigma2").expect("a noise").as_slice() {
            [sigma2] => NoiseCov::Shared(*sigma2),
            sigma2 => NoiseCov::Diagonal(sigma2.to_vec()),
        },
    };
    let (dictionary, prior) = (case.array("W").unwrap(), case.array("pi").unwrap());
    if !kind.kind().has_slab() {
        return Parameters::binary(kind, dictionary, dims, prior, noise);
    }
    let slab_cov = match case.array("Psi") {
        Some(psi) => SlabCov::Full(psi),
        None => SlabCov::Diagonal(case.array("psi2").expect("a slab")),
    };
    Parameters {
        kind,
        dims,
        latents,
        dictionary,
        prior,
        slab_mean: case.array("mu").unwrap(),
        slab_cov,
        noise,
    }
}

/// How inference runs in a case.
pub fn options(case: &Case) -> Options {
    Options {
        selected: case.number("selected"),
        max_active: case.number("max_active"),
        singletons: case.flag("singletons"),
        selection: match case.text("selection") {
            "independent" => SelectionName::Independent,
            "cosine" => SelectionName::Cosine,
            "bound" => SelectionName::Bound,
            _ => SelectionName::Singleton,
        },
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Auto,
    }
}

/// Exact inference with `latents` latents.
pub fn exact(latents: usize) -> Options {
    let (selection, gram) = (SelectionName::Singleton, GramName::Auto);
    Options {
        selected: latents,
        max_active: latents,
        singletons: true,
        selection,
        states: None,
        expansions: Options::EXPANSIONS,
        gram,
    }
}

/// So many random cases, but no others tomorrow than today.
pub fn the_same_cases_every_time(cases: u32) -> proptest::prelude::ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(1);
    proptest::prelude::ProptestConfig { cases, rng_seed, failure_persistence: None, ..Default::default() }
}

/// Inference on these numbers, repeated to a sample, gives what a posterior must be, or an error that says why not;
/// samples are only too large when one of their numbers exceeds `too_large`.
pub fn posterior_or_error(parameters: &Parameters, options: &Options, numbers: &[f32], too_large: f32) {
    let prepared = Prepared::<f32>::new(parameters, options).unwrap();
    let mut memory = vec![0.0; prepared.model().unwrap().arena_len()];
    let mut inference = Inference::new(prepared.model().unwrap(), &mut memory).unwrap();
    let sample: Vec<f32> = (0..parameters.dims).map(|d| numbers[d % numbers.len()]).collect();
    match inference.infer(&sample) {
        Err(Error::SampleNotFinite { index }) => assert!(!sample[index].is_finite()),
        Err(Error::OutOfRange) => assert!(sample.iter().any(|y| y.abs() > too_large)),
        Err(error) => panic!("{error}"),
        Ok(found) => {
            assert!(found.activity.iter().all(|&a| (0.0..=1.0 + 1e-5).contains(&a)));
            assert!(found.mean.iter().all(|m| m.is_finite()));
            assert!(found.variance.iter().all(|&v| v.is_finite() && v >= 0.0));
            assert!(found.evidence.is_finite());
        }
    }
}
