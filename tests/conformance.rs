//! The models and samples that every target must agree on, bit for bit.
//!
//! `tests/conformance/*.spk` and `*.f32` (rows of D little-endian numbers) are checked in, so that
//! firmware builds need no trainer. This test makes them again and fails when a byte differs;
//! `SPIKELET_BLESS=1 cargo test -p spikelet-trainer --test conformance` writes them instead, which is
//! a change of numbers that the changelog must mention. It also prints the digests of the desktop.

mod common;

use common::channels::{self, Channel};
use common::rooms::Room;
use common::streams::{in_blocks, stream};
use common::{digest, fnv, tests_dir};
use spikelet::frame::{Form, Frame};
use spikelet::model::Width;
use spikelet::rng::Rng;
use spikelet::{
    Blob, Detail, Engine, Gibbs, Inference, Kind, SpatialModel, SpatialStream, SpectralModel, SpectralStream,
};
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::groups::Grouping;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};
use spikelet_trainer::spectral::Encoding;

const SAMPLES: usize = 100;
/// Of a model that is sampled, which takes a hundred times as long.
const SAMPLED: usize = 20;
/// Of a model of integers or one more, and of a large one, for which the smallest device has no more room.
const FEWER: usize = 30;
const OF_LARGE: usize = 30;

struct Recipe {
    kind: ModelKind,
    name: &'static str,
    dims: usize,
    latents: usize,
    selected: usize,
    max_active: usize,
}

/// How models whose name ends in `-gibbs` are sampled; `examples/firmware-c/main.c`, its desktop twin and
/// `examples/firmware-rust/src/recording.rs` have the same.
fn settings(kind: Kind) -> Gibbs {
    Gibbs { chains: 2, extra: 1, seed: 1, ..Gibbs::new(kind, 10) }
}

/// The rows of the cost table. The first has loud samples (they take the reference path on the way), the second a slab mean and
/// diagonal noise, the third a Gram matrix that is computed. Then latents that are on or off, added up or the strongest alone,
/// and the samplers. Then dictionaries of integers, as their names say, one without negative numbers, the first shape again with
/// ordinary samples only, and one with more states than factors are kept of. At last two that are inferred in integers; the
/// second has samples that are too loud for that. Then mixtures whose components share their noise or have their own, and one
/// that selects by learned scores.
const RECIPES: [Recipe; 20] = [
    Recipe { kind: ModelKind::Gsc, name: "d4h6", dims: 4, latents: 6, selected: 6, max_active: 6 },
    Recipe { kind: ModelKind::Gsc, name: "d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gsc, name: "d64h256", dims: 64, latents: 256, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Bsc, name: "bsc-d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Mca, name: "mca-d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gsc, name: "gsc-gibbs", dims: 12, latents: 16, selected: 12, max_active: 3 },
    Recipe { kind: ModelKind::Bsc, name: "bsc-gibbs", dims: 12, latents: 16, selected: 12, max_active: 3 },
    Recipe { kind: ModelKind::Ssmca, name: "ssmca-gibbs", dims: 12, latents: 16, selected: 6, max_active: 6 },
    Recipe { kind: ModelKind::Gsc, name: "i16-d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gsc, name: "i8-d32h64", dims: 32, latents: 64, selected: 14, max_active: 8 },
    Recipe {
        kind: ModelKind::Mca,
        name: "i8-mca-d16h32",
        dims: 16,
        latents: 32,
        selected: 14,
        max_active: 8,
    },
    Recipe { kind: ModelKind::Nmf, name: "nmf-d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gsc, name: "quiet-d4h6", dims: 4, latents: 6, selected: 6, max_active: 6 },
    Recipe {
        kind: ModelKind::Gsc,
        name: "subsets-d12h16",
        dims: 12,
        latents: 16,
        selected: 8,
        max_active: 5,
    },
    Recipe { kind: ModelKind::Gsc, name: "fixed-d16h32", dims: 16, latents: 32, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gsc, name: "fixed-d4h6", dims: 4, latents: 6, selected: 6, max_active: 6 },
    Recipe { kind: ModelKind::Gsc, name: "i16-d64h256", dims: 64, latents: 256, selected: 14, max_active: 8 },
    Recipe { kind: ModelKind::Gmm, name: "gmm-d16h64", dims: 16, latents: 64, selected: 8, max_active: 1 },
    Recipe { kind: ModelKind::Gmm, name: "own-d8h16", dims: 8, latents: 16, selected: 4, max_active: 1 },
    Recipe {
        kind: ModelKind::Gsc,
        name: "learned-d12h16",
        dims: 12,
        latents: 16,
        selected: 8,
        max_active: 3,
    },
];

impl Recipe {
    fn is_sampled(&self) -> bool {
        self.name.ends_with("-gibbs")
    }

    /// Which states are looked at.
    fn states(&self) -> StatesName {
        let is_listed = self.name.starts_with("subsets-") || self.is_learned() || self.kind == ModelKind::Gmm;
        if is_listed || self.is_sampled() { StatesName::Subsets } else { StatesName::Adaptive }
    }

    /// Whether latents are selected by learned scores.
    fn is_learned(&self) -> bool {
        self.name.starts_with("learned-")
    }

    /// Whether its samples are all ordinary ones.
    fn is_quiet(&self) -> bool {
        self.name.starts_with("quiet-")
    }

    /// Of its integers.
    fn width(&self) -> Option<Width> {
        match self.name.split('-').next() {
            Some("i16" | "fixed") => Some(Width::I16),
            Some("i8") => Some(Width::I8),
            _ => None,
        }
    }

    fn count(&self) -> usize {
        match (self.is_sampled(), self.width()) {
            (true, _) => SAMPLED,
            (_, Some(_)) => FEWER,
            _ if self.kind != ModelKind::Gsc => FEWER,
            _ if self.is_quiet() || self.is_learned() || self.name.starts_with("subsets-") => FEWER,
            _ if self.latents > 100 => OF_LARGE,
            _ => SAMPLES,
        }
    }

    fn parameters(&self, rng: &mut Rng) -> Parameters {
        let (d, h) = (self.dims, self.latents);
        let second = self.name.ends_with("d16h32") || self.is_sampled();
        let scale = 1.0 / (d as f64).sqrt();
        let dictionary: Vec<f64> = (0..d * h).map(|_| rng.normal::<f64>() * scale).collect();
        let (is_maximal, is_positive) = (self.kind.kind().is_maximal(), self.kind.kind().is_non_negative());
        let entry = |w: f64| if is_positive { w.abs() } else { w };
        let dictionary = dictionary.into_iter().map(entry).collect();
        if !self.kind.kind().has_slab() {
            let noise = match is_maximal {
                true => NoiseCov::Shared(0.02),
                false if self.name.starts_with("own-") => {
                    NoiseCov::Components((0..d * h).map(|e| 0.01 + 0.001 * (e % 13) as f64).collect())
                }
                false => NoiseCov::Diagonal((0..d).map(|i| 0.01 + 0.001 * i as f64).collect()),
            };
            return Parameters::binary(self.kind, dictionary, d, vec![1.5 / h as f64; h], noise);
        }
        Parameters {
            kind: self.kind,
            dims: d,
            latents: h,
            dictionary,
            prior: vec![1.5 / h as f64; h],
            slab_mean: vec![if second { 1.0 } else { 0.0 }; h],
            slab_cov: if second { SlabCov::Diagonal(vec![0.5; h]) } else { SlabCov::Unit },
            noise: match second {
                true => NoiseCov::Diagonal((0..d).map(|i| 0.01 + 0.001 * i as f64).collect()),
                false => NoiseCov::Shared(if d == 4 && !self.is_quiet() { 1e-4 } else { 0.02 }),
            },
        }
    }

    /// Samples of the model itself, with every tenth one zero, huge or pure noise unless it is quiet.
    fn samples(&self, parameters: &Parameters, rng: &mut Rng) -> Vec<f32> {
        let (d, h) = (self.dims, self.latents);
        let variances = parameters.noise_variances();
        let has_slab = self.kind.kind().has_slab();
        let psi2 = parameters.slab_variances();
        let mut samples = Vec::with_capacity(self.count() * d);
        for n in 0..self.count() {
            // Of a mixture one component is on.
            let one = (self.kind == ModelKind::Gmm).then(|| (rng.uniform::<f64>() * h as f64) as usize);
            let x: Vec<f64> = (0..h)
                .map(|i| {
                    let (on, z) = (rng.uniform::<f64>() < parameters.prior[i], rng.normal::<f64>());
                    match (one.map_or(on, |one| one == i), has_slab) {
                        (true, true) => parameters.slab_mean[i] + psi2[i].sqrt() * z,
                        (true, false) => 1.0,
                        (false, _) => 0.0,
                    }
                })
                .collect();
            let case = if self.is_quiet() { 1 } else { n % 30 };
            let factor = match case {
                0 => 0.0,
                10 => 1000.0,
                _ => 1.0,
            };
            for (row, variance) in parameters.dictionary.chunks_exact(h).zip(&variances) {
                let parts = row.iter().zip(&x).map(|(w, x)| w * x);
                let signal = match self.kind {
                    _ if case == 20 => 0.0,
                    kind if kind.kind().is_maximal() => parts.fold(0.0, f64::max),
                    _ => parts.sum::<f64>(),
                };
                samples.push((factor * (signal + variance.sqrt() * rng.normal::<f64>())) as f32);
            }
        }
        samples
    }
}

/// Compares, or writes when blessed.
fn same_bytes(path: &std::path::Path, bytes: &[u8]) {
    if std::env::var_os("SPIKELET_BLESS").is_some() {
        std::fs::write(path, bytes).unwrap();
    }
    let found = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(found == bytes, "{} is not what the code makes today: see the top of this test", path.display());
}

#[test]
fn checked_in_models_are_those_the_code_makes() {
    for (seed, recipe) in (1..).zip(&RECIPES) {
        let mut rng = Rng::new(seed);
        let parameters = recipe.parameters(&mut rng);
        let options = Options {
            selected: recipe.selected,
            max_active: recipe.max_active,
            singletons: true,
            selection: SelectionName::of_kind(recipe.kind),
            states: Some(recipe.states()),
            expansions: Options::EXPANSIONS,
            gram: GramName::Auto,
        };
        let prepared = match recipe.width() {
            Some(width) => {
                let prepared = Prepared::quantized(&parameters, &options, width).unwrap();
                match recipe.name.starts_with("fixed-") {
                    true => prepared.in_fixed_point().unwrap(),
                    false => prepared,
                }
            }
            None => Prepared::new(&parameters, &options).unwrap(),
        };
        let prepared = match recipe.is_learned() {
            // As a kernel would have learned them from the columns, roughly.
            true => {
                let scores: Vec<f64> =
                    parameters.dictionary.iter().map(|w| w + 0.1 * rng.normal::<f64>()).collect();
                prepared.with_scores(&scores).unwrap()
            }
            false => prepared,
        };
        let text = format!("conformance model {}", recipe.name);
        let bytes = blob::write(&prepared, &parameters.slab_cov, &text).unwrap();
        let folder = tests_dir().join("conformance");
        same_bytes(&folder.join(recipe.name).with_extension("spk"), &bytes);

        let samples = recipe.samples(&parameters, &mut rng);
        let sample_bytes: Vec<u8> = samples.iter().flat_map(|y| y.to_le_bytes()).collect();
        same_bytes(&folder.join(recipe.name).with_extension("f32"), &sample_bytes);

        let model = prepared.model().unwrap();
        let engine = match recipe.is_sampled() {
            true => Engine::Gibbs(settings(model.shape.kind)),
            false => Engine::Truncated,
        };
        // Whatever is in memory before: it must not show.
        let mut memory = vec![f32::NAN; engine.arena_len(model.shape, Detail::Marginals)];
        let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
        let found = format!("{:016x}\n", digest(&mut inference, &samples));
        println!("{} {found}", recipe.name);
        same_bytes(&folder.join(recipe.name).with_extension("digest"), found.as_bytes());
    }
}

/// Two microphones, three sources of two directions each, 16 bins: what a device hears, and the digest of what it puts out.
#[test]
fn the_stream_of_devices() {
    let angles = [0.1, 0.2, 0.7, 0.8, 1.3, 1.4f64];
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims: 2,
        latents: 6,
        dictionary: angles.map(f64::cos).into_iter().chain(angles.map(f64::sin)).collect(),
        prior: vec![0.15; 6],
        slab_mean: vec![0.0; 6],
        slab_cov: SlabCov::Diagonal(vec![1.0; 6]),
        noise: NoiseCov::Shared(1e-3),
    };
    let options = Options {
        selected: 4,
        max_active: 3,
        states: Some(StatesName::Adaptive),
        expansions: 1,
        ..common::exact(6)
    };
    let gains: Vec<f32> = (0..16).map(|k| 1.0 + 0.5 * k as f32).collect();
    let names = ["left", "middle", "right"].map(String::from).to_vec();
    let groups = Grouping { names, numbers: vec![0, 0, 1, 1, 2, 2] };
    let about = About {
        provenance: "conformance stream",
        frame: Some(Frame { form: Form::Transform { bins: 16, channels: 2 }, rate: 8000, centred: false }),
        gains: &gains,
        groups: Some(&groups),
    };
    let prepared = Prepared::new(&parameters, &options).unwrap();
    let bytes = blob::write(&prepared, &parameters.slab_cov, about).unwrap();
    let path = |extension| tests_dir().join("conformance/stream-d2h6").with_extension(extension);
    same_bytes(&path("spk"), &bytes);

    // Bursts from each direction, silence, full scale.
    let mut rng = Rng::new(12);
    let samples: Vec<f32> = (0..500)
        .flat_map(|t| {
            let (source, loud) = (t / 40 % 6, [1.0, 0.1, 0.0, 8.0][t / 100 % 4]);
            let y = (loud * rng.normal::<f64>()).clamp(-1.0, 1.0);
            [angles[source].cos() * y, angles[source].sin() * y].map(|y| y as f32)
        })
        .collect();
    same_bytes(&path("f32"), &samples.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());

    let blob = common::streams::parse(&bytes).unwrap();
    let output = in_blocks(&mut stream(blob, Engine::Truncated).unwrap(), &samples, &[500]);
    let hash = fnv(&output.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());
    same_bytes(&path("digest"), format!("{hash:016x}\n").as_bytes());
}

/// Two and three sources on two microphones as in a room of 8 kHz, and two that the smallest device has room for: four sources,
/// put out at the second microphone, and three microphones.
#[test]
fn the_rooms_of_devices() {
    let delays = [-1.2, 1.1, 0.1, 0.6];
    let room = Room {
        microphones: 2,
        delays: &delays[..2],
        length: 1024,
        hop: 256,
        rate: 8000,
        is_integer: false,
        microphone: 0,
        following: 0.0,
    };
    for (name, samples, room) in [
        ("room-d2h2", 3072, Room { ..room }),
        ("room-d2h3", 3072, Room { delays: &delays[..3], is_integer: true, ..room }),
        ("room-follows-d2h3", 3072, Room { delays: &delays[..3], is_integer: true, following: 0.15, ..room }),
        ("room-follows-d2h2", 400, Room { length: 64, hop: 16, following: 0.15, ..room }),
        ("room-d2h4", 400, Room { delays: &delays, length: 128, hop: 16, microphone: 1, ..room }),
        (
            "room-d3h3",
            200,
            Room { microphones: 3, delays: &delays[..3], length: 64, hop: 16, microphone: 2, ..room },
        ),
    ] {
        let path = |extension| tests_dir().join("conformance").join(name).with_extension(extension);
        let (bytes, recording) = (room.bytes(), room.recording(samples, 5));
        same_bytes(&path("spk"), &bytes);
        same_bytes(&path("f32"), &recording.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());

        let model = SpatialModel::parse(&bytes).expect("allocators align by eight bytes at least");
        let mut memory = vec![f32::NAN; SpatialStream::memory_len(&model)];
        let mut stream = SpatialStream::new(model, &mut memory).unwrap();
        let mut output = vec![0.0; samples * model.sources()];
        stream.process(&recording, &mut output).unwrap();
        let hash = fnv(&output.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());
        same_bytes(&path("digest"), format!("{hash:016x}\n").as_bytes());

        // What follows has moved: otherwise the digest would prove nothing.
        let still = model.with_following(None).unwrap();
        let mut memory = vec![f32::NAN; SpatialStream::memory_len(&still)];
        let mut unmoved = vec![0.0; output.len()];
        SpatialStream::new(still, &mut memory).unwrap().process(&recording, &mut unmoved).unwrap();
        assert_eq!(output != unmoved, room.following > 0.0, "{name}");
    }
}

/// A voice and its noise as in a product, and two models that the smallest device has room for: floats, and three sources in bytes.
#[test]
fn the_channels_of_devices() {
    let small = Channel { latents: &[5, 7], bands: 8, length: 64, hop: 16, encoding: Encoding::F32 };
    for (name, samples, channel) in [
        (
            "channel-d96h192",
            4096,
            Channel { latents: &[128, 64], bands: 96, length: 512, hop: 256, encoding: Encoding::I8 },
        ),
        ("channel-d8h12", 400, Channel { ..small }),
        (
            "channel-d12h14",
            400,
            Channel { latents: &[6, 4, 4], bands: 12, hop: 32, encoding: Encoding::I8, ..small },
        ),
    ] {
        let path = |extension| tests_dir().join("conformance").join(name).with_extension(extension);
        let (bytes, recording) = (channel.bytes(), channels::recording(samples));
        same_bytes(&path("spk"), &bytes);
        same_bytes(&path("f32"), &recording.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());

        let model = SpectralModel::parse(&bytes).expect("allocators align by eight bytes at least");
        let mut memory = vec![f32::NAN; SpectralStream::memory_len(&model)];
        let mut stream = SpectralStream::new(model, &mut memory).unwrap();
        let mut output = vec![0.0; samples * model.count()];
        stream.process(&recording, &mut output).unwrap();
        let hash = fnv(&output.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>());
        same_bytes(&path("digest"), format!("{hash:016x}\n").as_bytes());
    }
}

#[test]
fn the_model_of_the_documentation() {
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims: 2,
        latents: 2,
        dictionary: vec![1.0, 0.0, 0.0, 1.0],
        prior: vec![0.1; 2],
        slab_mean: vec![0.0; 2],
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(0.01),
    };
    let options = Options {
        selected: 2,
        max_active: 2,
        singletons: true,
        selection: SelectionName::Singleton,
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Auto,
    };
    let prepared = Prepared::new(&parameters, &options).unwrap();
    let bytes = blob::write(&prepared, &parameters.slab_cov, "two sources, for the documentation").unwrap();
    same_bytes(&tests_dir().join("blobs/two_sources-v1.spk"), &bytes);
    assert_eq!(Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().byte_len(), bytes.len());
}
