//! The models that are fitted, and others that are predicted: none is in both.
//!
//! All of tests/conformance are among the latter. Of the others a name says all: kind, D x H x H' x gamma, 1 / sigma^2, and
//!
//! | word | |
//! |---|---|
//! | i16, i8, fixed | dictionary of integers, inference in integers (i16) |
//! | subsets, table | states; adaptive otherwise |
//! | x16 | expansions of adaptive states |
//! | computed, diagonal, full, own | G not stored; noise by dimension, with correlations, by component of a mixture |
//! | mean, slabs | a slab with a mean, with correlations |
//! | independent, singleton, alone | scores, no singletons of latents that are no candidates |
//! | transform64, windows4 | a stream: bins, or hop |
//! | gibbs-2x10x1x0 | chains, sweeps, latents chosen at random, whether chains start at random |
//!
//! Spatial streams are called room, microphones x sources x length x hop of a frame, i16 where parameters are integers, and
//! follows where they follow; streams of one channel are called channel, bands x length x hop x latents of each source, and i8
//! where spectra are integers.

use spikelet::frame::{Form, Frame};
use spikelet::model::Width;
use spikelet::rng::Rng;
use spikelet::{Blob, Engine, Gibbs, SpatialModel, SpectralModel, Start};
use spikelet_trainer::blob::{About, write};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};
use spikelet_trainer::spectral::Encoding;
use std::fs;
use std::path::Path;

#[path = "../common/channels.rs"]
mod channels;
#[path = "../common/rooms.rs"]
mod rooms;

use channels::Channel;
use rooms::Room;

/// Samples of each.
pub const SAMPLES: u64 = 9;

const FIT: &str = include_str!("fit.txt");
const CHECK: &str = include_str!("check.txt");

const CONFORMANCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance");

/// The names for a purpose, fit or check.
pub fn names(purpose: &str) -> Vec<String> {
    let listed = if purpose == "fit" { FIT } else { CHECK }.split_whitespace().map(str::to_string);
    let files = fs::read_dir(CONFORMANCE).unwrap().map(|file| file.unwrap().path());
    let known =
        files.filter(|file| purpose != "fit" && file.extension().is_some_and(|ending| ending == "spk"));
    let mut known: Vec<String> =
        known.map(|file| file.file_stem().unwrap().to_str().unwrap().into()).collect();
    known.sort();
    listed.chain(known).collect()
}

/// A model.
pub struct Made {
    /// Those of tests/conformance have their own.
    pub samples: Option<Vec<f32>>,
    pub bytes: Vec<u8>,
    pub engine: Engine,
    pub shape: [usize; 4],
    /// Draws for a block of a stream; 0 where there is none.
    pub draws: usize,
    pub input: Input,
}

/// What is inferred.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Points,
    /// A recording of spaced microphones.
    Room,
    /// A recording of one channel.
    Channel,
}

impl Made {
    pub fn blob(&self) -> Blob<'_> {
        Blob::parse(&self.bytes).expect("allocators align by eight bytes at least")
    }

    pub fn room(&self) -> SpatialModel<'_> {
        SpatialModel::parse(&self.bytes).expect("allocators align by eight bytes at least")
    }

    pub fn channel(&self) -> SpectralModel<'_> {
        SpectralModel::parse(&self.bytes).expect("allocators align by eight bytes at least")
    }

    /// Coefficients of a block, where there is a transform.
    pub fn bins(&self) -> Option<usize> {
        if self.input != Input::Points {
            return None;
        }
        match self.blob().frame()?.form {
            Form::Transform { bins, .. } => Some(bins as usize),
            _ => None,
        }
    }
}

/// Hops of a stream without points; of a room the last is silent.
const HOPS: usize = 15;

fn streamed(input: Input, samples: Vec<f32>, bytes: Vec<u8>) -> Made {
    Made { samples: Some(samples), bytes, engine: Engine::Truncated, shape: [0; 4], draws: 1, input }
}

/// A spatial stream of a name.
fn made_room(shape: &str, is_integer: bool, follows: bool) -> Made {
    let numbers: Vec<usize> = shape.split('x').map(|number| number.parse().unwrap()).collect();
    let [microphones, sources, length, hop]: [usize; 4] = numbers.try_into().unwrap();
    let delays = [0.8, -0.6, 0.1, -1.3];
    let (length, hop) = (length as u32, hop as u32);
    let delays = &delays[..sources];
    let following = if follows { 0.15 } else { 0.0 };
    let room_of = Room { microphones, delays, length, hop, rate: 8000, is_integer, microphone: 0, following };
    streamed(Input::Room, room_of.recording(HOPS * hop as usize, 7), room_of.bytes())
}

/// A stream of one channel of a name.
fn made_channel(shape: &str, is_integer: bool) -> Made {
    let numbers: Vec<usize> = shape.split('x').map(|number| number.parse().unwrap()).collect();
    let [bands, length, hop, ref latents @ ..] = numbers[..] else { panic!("{shape} is no channel") };
    let encoding = if is_integer { Encoding::I8 } else { Encoding::F32 };
    let bytes = Channel { latents, bands, length, hop, encoding }.bytes();
    streamed(Input::Channel, channels::recording(HOPS * hop), bytes)
}

/// One of tests/conformance.
fn known(name: &str) -> Made {
    let path = Path::new(CONFORMANCE).join(name);
    let bytes = fs::read(path.with_extension("spk")).unwrap();
    let samples = fs::read(path.with_extension("f32")).unwrap();
    let samples = samples.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    if name.starts_with("room-") {
        return streamed(Input::Room, samples, bytes);
    }
    if name.starts_with("channel-") {
        return streamed(Input::Channel, samples, bytes);
    }
    let blob = Blob::parse(&bytes).unwrap();
    let (kind, shape) = (blob.kind(), blob.model().shape);
    let gibbs = Engine::Gibbs(Gibbs { chains: 2, extra: 1, seed: 1, ..Gibbs::new(kind, 10) });
    let engine = if name.ends_with("-gibbs") { gibbs } else { Engine::Truncated };
    let draws = usize::from(blob.frame().is_some());
    let shape = [shape.dims, shape.latents, shape.selected, shape.max_active];
    Made { samples: Some(samples), bytes, engine, shape, draws, input: Input::Points }
}

/// The model of a name.
pub fn made(name: &str) -> Made {
    let words: Vec<&str> = name.split('-').collect();
    let has = |word: &str| words.contains(&word);
    let number =
        |prefix: &str| words.iter().find_map(|word| word.strip_prefix(prefix)?.parse::<usize>().ok());
    let numbers = |word: &str| word.split('x').map(|number| number.parse().unwrap()).collect::<Vec<usize>>();
    if !words.get(1).is_some_and(|shape| shape.contains('x')) {
        return known(name);
    }
    if words[0] == "room" {
        return made_room(words[1], has("i16"), has("follows"));
    }
    if words[0] == "channel" {
        return made_channel(words[1], has("i8"));
    }
    use ModelKind::{Bsc, Gmm, Gsc, Mca, Nmf, Ssmca};
    let kinds = [Gsc, Bsc, Nmf, Mca, Ssmca, Gmm];
    let kind = kinds.into_iter().find(|kind| kind.name() == words[0]).unwrap();
    let shape: [usize; 4] = numbers(words[1]).try_into().unwrap();
    let [d, h, selected, max_active] = shape;
    let variance = 1.0 / words[2].parse::<f64>().unwrap();

    let mut rng = Rng::new(100 * d as u64 + h as u64);
    let is_positive = kind.kind().is_non_negative();
    let mut entry = || {
        let w = rng.normal::<f64>() / (d as f64).sqrt();
        if is_positive { w.abs() } else { w }
    };
    let dictionary = (0..d * h).map(|_| entry()).collect();
    let matrix = |n: usize, diagonal: f64| {
        let entry = move |i: usize| if i / n == i % n { diagonal } else { 0.1 * diagonal / n as f64 };
        (0..n * n).map(entry).collect()
    };
    let noise = match () {
        _ if has("own") => {
            NoiseCov::Components((0..d * h).map(|i| variance * (1.0 + (i % 7) as f64 / 7.0)).collect())
        }
        _ if has("full") => NoiseCov::Full(matrix(d, variance)),
        _ if has("diagonal") => {
            NoiseCov::Diagonal((0..d).map(|i| variance * (1.0 + i as f64 / d as f64)).collect())
        }
        _ => NoiseCov::Shared(variance),
    };
    let has_slab = kind.kind().has_slab();
    let slab_cov = match () {
        _ if has("slabs") => SlabCov::Full(matrix(h, 0.5)),
        _ if has("mean") => SlabCov::Diagonal(vec![0.5; h]),
        _ => SlabCov::Unit,
    };
    let slab_mean = if has_slab { vec![if has("mean") { 1.0 } else { 0.0 }; h] } else { Vec::new() };
    // Two to three latents on, as samples of sparse models have, more where more may be.
    let on = if kind == Gmm { 1.0 } else { f64::max(2.0, max_active as f64 / 3.0) };
    let prior = vec![if kind == Gmm { on / h as f64 } else { (on / h as f64).min(0.4) }; h];
    let parameters = Parameters {
        kind,
        dims: d,
        latents: h,
        dictionary,
        prior,
        slab_mean,
        slab_cov: slab_cov.clone(),
        noise,
    };
    let options = Options {
        selected,
        max_active,
        singletons: !has("alone"),
        selection: match () {
            _ if has("independent") => SelectionName::Independent,
            _ if has("singleton") => SelectionName::Singleton,
            _ => SelectionName::of_kind(kind),
        },
        states: Some(match () {
            _ if has("table") || has("slabs") => StatesName::Table,
            _ if has("subsets") => StatesName::Subsets,
            _ => StatesName::Adaptive,
        }),
        expansions: number("x").unwrap_or(Options::EXPANSIONS),
        gram: if has("computed") { GramName::Computed } else { GramName::Auto },
    };
    let prepared = match () {
        _ if has("i16") || has("fixed") => Prepared::quantized(&parameters, &options, Width::I16),
        _ if has("i8") => Prepared::quantized(&parameters, &options, Width::I8),
        _ => Prepared::new(&parameters, &options),
    };
    let mut prepared = prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
    if has("fixed") {
        prepared = prepared.in_fixed_point().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let form = match (number("transform"), number("windows")) {
        (Some(bins), _) => Some(Form::Transform { bins: bins as u32, channels: d as u32 }),
        (_, Some(hop)) => Some(Form::Windows { length: d as u32, hop: hop as u32 }),
        _ => None,
    };
    let frame = form.map(|form| Frame { form, rate: 0, centred: false });
    let bytes = write(&prepared, &slab_cov, About { frame, ..About::default() }).unwrap();
    let engine = match has("gibbs") {
        true => {
            let [chains, sweeps, extra, is_random] = numbers(words[words.len() - 1]).try_into().unwrap();
            let start = if is_random > 0 { Start::Random } else { Start::Greedy };
            let usual = Gibbs::new(kind.kind(), sweeps as u32);
            Engine::Gibbs(Gibbs { chains: chains as u32, start, extra: extra as u16, seed: 1, ..usual })
        }
        false => Engine::Truncated,
    };
    let draws = match form {
        Some(Form::Transform { bins, .. }) => bins as usize,
        Some(Form::Windows { .. }) => 1,
        _ => 0,
    };
    Made { samples: None, bytes, engine, shape, draws, input: Input::Points }
}
