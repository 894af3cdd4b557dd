//! What a model costs on a core, before there is any firmware.
//!
//! Samples are inferred here, by the same code as on a device, which counts its operations ([`spikelet::counts`]); a table of
//! weights, instructions for each core and operation, turns counts into instructions. The weights are fitted to counts and
//! instructions of other models, measured under an emulator: `tests/cost --fit` writes `predict/weights.csv`, and `tests/cost
//! --predict` says how near predictions come to models that were not fitted.

pub mod channels;
mod draw;
pub mod rooms;

use crate::{Error, Result};
use spikelet::counts::{Count, Counts, take};
use spikelet::frame::Form;
use spikelet::mdct::Mdct;
use spikelet::model::{Dictionary, States};
use spikelet::stream::stream_bytes;
use spikelet::{Blob, Detail, Engine, Inference, Kind, Model, Stream};
use std::ops::Range;

pub use draw::draw;

/// Lines `core,what,number`.
const TABLE: &str = include_str!("predict/weights.csv");

/// What `tests/cost --predict` allows between a mean and its prediction.
pub const ALLOWED: f64 = 0.15;

/// The worst case is this times the most expensive sample tried, of which a third is up to a thousand times too loud: an empirical
/// envelope, not a bound. The bound is [`Model::operations`], in multiply-adds.
pub const MARGIN: f64 = 1.25;

/// Samples that are drawn, and those that are made louder: ten to a thousand times.
const DRAWN: u64 = 120;
const LOUD: u64 = 60;
/// Blocks of a stream.
const BLOCKS: usize = 6;
/// What random numbers depend on.
pub const SEED: u64 = 1;

/// A processor core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// As `tests/cost` calls it.
    pub name: &'static str,
    /// As users do.
    pub short: &'static str,
    /// Cycles of an average instruction: an assumption, with memory that does not make the core wait. Emulators count
    /// instructions only.
    pub cycles_per_instruction: f64,
}

/// The cores that were measured.
pub const CORES: [Core; 5] = [
    Core { name: "cortex-m0", short: "m0", cycles_per_instruction: 1.6 },
    Core { name: "cortex-m4f", short: "m4f", cycles_per_instruction: 1.5 },
    Core { name: "cortex-m7", short: "m7", cycles_per_instruction: 1.0 },
    Core { name: "cortex-m33", short: "m33", cycles_per_instruction: 1.5 },
    Core { name: "riscv32imac", short: "rv32", cycles_per_instruction: 1.5 },
];

impl Core {
    /// The name of the core whose weights it has: firmware for a Cortex-M4F takes as many instructions on a Cortex-M7.
    pub fn measured_as(&self) -> &'static str {
        if self.name == "cortex-m7" { "cortex-m4f" } else { self.name }
    }

    /// The core of this name, long or short.
    ///
    /// ```
    /// use spikelet_trainer::predict::Core;
    /// assert_eq!(Core::find("m4f"), Core::find("cortex-m4f"));
    /// assert!(Core::find("m4").is_none());
    /// ```
    pub fn find(name: &str) -> Option<Self> {
        CORES.into_iter().find(|core| core.name == name || core.short == name)
    }

    /// An entry of the table.
    fn entry(&self, what: &str) -> Option<f64> {
        let mut lines = TABLE.lines().map(|line| line.split(','));
        lines.find_map(|mut words| {
            let is_it = words.next() == Some(self.measured_as()) && words.next() == Some(what);
            words.next().filter(|_| is_it)?.parse().ok()
        })
    }

    /// Instructions of every operation; none of those that were not measured.
    pub fn weights(&self) -> Vec<Option<f64>> {
        Count::ALL.iter().map(|count| self.entry(count.name())).collect()
    }
}

/// Counts of the three stages of a sample.
pub fn count(inference: &mut Inference<'_, f32>, sample: &[f32]) -> Result<[Counts; 3]> {
    take();
    let refused = |error| Error::run(error, "a sample that the model draws", "rescale data and dictionary");
    inference.project(sample).map_err(refused)?;
    let projection = take();
    inference.select();
    let selection = take();
    inference.posterior().map_err(refused)?;
    Ok([projection, selection, take()])
}

/// Counts of every block of a stream, as many samples as it works on at once.
pub fn count_blocks(blob: &Blob<'_>, engine: Engine, signal: &[f32]) -> Result<Vec<Counts>> {
    let mut memory = vec![0.0; Stream::memory_len_for(blob, &engine)];
    let refused = |error| Error::run(error, "the stream of the model", "leave --clock away");
    let mut stream = Stream::new(*blob, engine, &mut memory).map_err(refused)?;
    let [read, written] = [stream.channels(), stream.groups()].map(|each| each * stream.hop());
    Ok(hops(signal, read, written, |block, out| stream.process(block, out)))
}

/// Counts of every block of a signal.
fn hops(
    signal: &[f32],
    read: usize,
    written: usize,
    mut process: impl FnMut(&[f32], &mut [f32]) -> Result<(), spikelet::Error>,
) -> Vec<Counts> {
    let mut out = vec![0.0; written];
    let blocks = signal.chunks_exact(read).map(|block| {
        take();
        // What could not be inferred was worked on all the same.
        let _ = process(block, &mut out);
        take()
    });
    blocks.collect()
}

/// Counts of the lapped transform of a block, forth and back.
pub fn count_transform(bins: usize) -> [Counts; 2] {
    let mut table = vec![0.0; Mdct::table_len(bins)];
    Mdct::prepare(&mut table);
    let mdct = Mdct::over(&table);
    let (mut older, mut newer, mut spectrum) = (vec![0.0; bins], vec![0.0; bins], vec![0.0; bins]);
    take();
    mdct.forward(&older, &newer, &mut spectrum);
    let forward = take();
    mdct.inverse(&mut spectrum, &mut older, &mut newer);
    [forward, take()]
}

/// Points that a stream works on at once.
fn points_of_block(blob: &Blob<'_>) -> usize {
    match blob.frame().map(|frame| frame.form) {
        Some(Form::Transform { bins, .. }) => bins as usize,
        _ => 1,
    }
}

/// Number `number` of the samples that a model is measured with: drawn, or so many times one.
pub fn loud(model: &Model<'_, f32>, number: u64) -> Vec<f32> {
    let factor = 10f32.powi(1 + (number % 3) as i32);
    draw(model, SEED, number).into_iter().map(|y| y * factor).collect()
}

/// Weighted counts.
pub fn dot(weights: &[Option<f64>], counts: impl IntoIterator<Item = f64>) -> f64 {
    weights.iter().zip(counts).map(|(weight, count)| weight.unwrap_or(0.0) * count).sum()
}

/// What a model takes on one core.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Where.
    pub core: Core,
    /// Instructions of an average sample: projection, selection, posterior.
    pub stages: [f64; 3],
    /// Instructions of the worst case, however loud: see [`MARGIN`].
    pub worst: f64,
    /// Instructions of a stream for each point: inference, transform, windows.
    pub streamed: Option<f64>,
    /// Instructions of a stream for each point of the dearest block, [`MARGIN`] times that of those tried.
    pub worst_block: Option<f64>,
    /// Flash for code, in bytes.
    pub text_bytes: u32,
    /// RAM in bytes: of a stream, where points are windows or coefficients of a transform, else of a state.
    pub arena_bytes: usize,
    /// Deepest stack, in bytes.
    pub stack_bytes: u32,
    /// What is unlike all that was measured, in words; nothing if the prediction is as good as others.
    pub beyond: Option<String>,
}

impl Prediction {
    /// Instructions of an average sample.
    pub fn instructions(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// Predictions for one model.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// Means of the samples' counts, by stage.
    stages: [Vec<f64>; 3],
    /// Every sample, the loud ones too.
    samples: Vec<Counts>,
    loud: f64,
    /// What a stream counts beside inference, for each point.
    beside: Option<Vec<f64>>,
    /// Blocks of the stream, as many samples as it works on at once, and how many points each has.
    blocks: (Vec<Counts>, usize),
    sizes: [(&'static str, usize); 3],
    arena_bytes: usize,
    method: String,
    features: Vec<&'static str>,
}

fn mean(all: &[Counts], per: f64) -> Vec<f64> {
    let sum = |i: usize| all.iter().map(|counts| counts[i] as f64).sum::<f64>();
    (0..Count::ALL.len()).map(|i| sum(i) / per).collect()
}

fn inference<'m>(
    model: &Model<'m, f32>,
    engine: Engine,
    memory: &'m mut Vec<f32>,
) -> Result<Inference<'m, f32>> {
    memory.resize(engine.arena_len(model.shape, Detail::Marginals), 0.0);
    let refused = |error| Error::run(error, "the model", "choose another engine");
    Inference::with_engine(*model, memory, Detail::Marginals, engine).map_err(refused)
}

/// A signal of all channels whose coefficients are draws.
fn synthesized(blob: &Blob<'_>, bins: usize, channels: usize) -> Vec<f32> {
    let mut table = vec![0.0; Mdct::table_len(bins)];
    Mdct::prepare(&mut table);
    let gain = |bin: usize| blob.gains().get(bin).copied().unwrap_or(1.0);
    let mut signal = vec![0.0; (BLOCKS + 1) * bins * channels];
    for block in 0..BLOCKS {
        let point = |bin: usize| draw(&blob.model(), SEED, (block * bins + bin) as u64);
        let points: Vec<_> = (0..bins).map(point).collect();
        for channel in 0..channels {
            let coefficients = points.iter().enumerate().map(|(bin, point)| point[channel] / gain(bin));
            let mut both = vec![0.0; 2 * bins];
            let (older, newer) = both.split_at_mut(bins);
            Mdct::over(&table).inverse(&mut coefficients.collect::<Vec<_>>(), older, newer);
            for (n, y) in both.into_iter().enumerate() {
                signal[(block * bins + n) * channels + channel] += y;
            }
        }
    }
    signal
}

/// Kind and engine, as the table calls them.
pub fn method(model: &Model<'_, f32>, engine: Engine) -> String {
    let states = match (engine, model.shape.states) {
        (Engine::Gibbs(_), _) => "gibbs",
        _ if model.fixed.is_some() => "fixed",
        (_, States::Adaptive { .. }) => "adaptive",
        (_, States::Subsets) => "subsets",
        (_, States::Table) => "table",
    };
    format!("{}-{states}", model.shape.kind.spec().name)
}

/// The draws that are the points of a block, by its number.
type PointsOfBlock = Box<dyn Fn(usize) -> Range<usize>>;

impl Predictor {
    /// For samples as the model itself draws them.
    pub fn new(model: &Model<'_, f32>, engine: Engine) -> Result<Self> {
        // Chains take long, and have many draws in one sample.
        let share = if matches!(engine, Engine::Gibbs(_)) { 6 } else { 1 };
        Self::of_samples(model, engine, (0..DRAWN / share).map(|number| draw(model, SEED, number)))
    }

    /// For other samples.
    pub fn of_samples(
        model: &Model<'_, f32>,
        engine: Engine,
        samples: impl Iterator<Item = Vec<f32>>,
    ) -> Result<Self> {
        let mut memory = Vec::new();
        let mut inference = inference(model, engine, &mut memory)?;
        let own: Vec<[Counts; 3]> = samples.map(|y| count(&mut inference, &y)).collect::<Result<_>>()?;
        let stages = [0, 1, 2].map(|stage| {
            let of_stage: Vec<Counts> = own.iter().map(|counts| counts[stage]).collect();
            mean(&of_stage, own.len().max(1) as f64)
        });
        let total = |counts: &[Counts; 3]| std::array::from_fn(|i| counts.iter().map(|of| of[i]).sum());
        let mut samples: Vec<Counts> = own.iter().map(total).collect();
        let is_loud = |counts: &&Counts| counts[Count::Refined as usize] > 0;
        let loud_share = samples.iter().filter(is_loud).count() as f64 / samples.len().max(1) as f64;
        let tries = if matches!(engine, Engine::Gibbs(_)) { LOUD / 6 } else { LOUD };
        // Some are too loud to be inferred at all.
        let tried = (0..tries).filter_map(|number| count(&mut inference, &loud(model, number)).ok());
        samples.extend(tried.map(|counts| total(&counts)));
        let shape = model.shape;
        Ok(Self {
            stages,
            samples,
            loud: loud_share,
            beside: None,
            blocks: (Vec::new(), 1),
            sizes: [("dimensions", shape.dims), ("latents", shape.latents), ("selected", shape.selected)],
            arena_bytes: engine.state_bytes(shape),
            method: method(model, engine),
            features: features(model, engine),
        })
    }

    /// And for a stream, if there is a transform or there are windows: what these take is not part of a sample.
    pub fn with_stream(mut self, blob: &Blob<'_>, engine: Engine) -> Result<Self> {
        let model = blob.model();
        // A signal, and the draws that are the points of a block.
        let (signal, points): (Vec<f32>, PointsOfBlock) = match blob.frame().map(|f| f.form) {
            Some(Form::Transform { bins, channels }) => {
                let [bins, channels] = [bins, channels].map(|n| n as usize);
                let points = move |block: usize| block.saturating_sub(1) * bins..block * bins;
                (synthesized(blob, bins, channels), Box::new(points))
            }
            Some(Form::Windows { length, hop }) => {
                let [length, hop] = [length, hop].map(|n| n as usize);
                // The windows between two draws are none.
                let points = move |block: usize| match (block + 1) * hop {
                    end if end % length == 0 => end / length - 1..end / length,
                    _ => 0..0,
                };
                let draws = (0..BLOCKS * hop).flat_map(|number| draw(&model, SEED, number as u64));
                (draws.collect(), Box::new(points))
            }
            _ => return Ok(self),
        };
        let mut memory = Vec::new();
        let mut inference = inference(&model, engine, &mut memory)?;
        let (mut whole, mut alone) = (Vec::new(), Vec::new());
        for (block, counts) in count_blocks(blob, engine, &signal)?.into_iter().enumerate() {
            let points = points(block);
            whole.extend((!points.is_empty()).then_some(counts));
            for number in points {
                alone.extend(count(&mut inference, &draw(&model, SEED, number as u64))?);
            }
        }
        let per = alone.len().max(1) as f64 / 3.0;
        let beside = mean(&whole, per).into_iter().zip(mean(&alone, per)).map(|(all, part)| all - part);
        self.beside = Some(beside.collect());
        self.blocks = (whole, points_of_block(blob));
        self.arena_bytes = stream_bytes(blob);
        self.features.push("stream");
        Ok(self)
    }

    /// With the blocks of a recording of all channels instead of those that the model draws.
    pub fn with_blocks_of(mut self, blob: &Blob<'_>, engine: Engine, recording: &[f32]) -> Result<Self> {
        if self.beside.is_some() {
            self.blocks.0 = count_blocks(blob, engine, recording)?;
        }
        Ok(self)
    }

    /// The share of the samples drawn that were refined.
    pub fn loud(&self) -> f64 {
        self.loud
    }

    /// What it costs on a core; nothing if that was not measured.
    pub fn on(&self, core: Core) -> Option<Prediction> {
        let weights = core.weights();
        if weights.iter().all(Option::is_none) {
            return None;
        }
        let of = |counts: &Counts| dot(&weights, counts.iter().map(|&count| count as f64));
        let text = |feature: &&str| core.entry(&format!("text:{feature}"));
        let stack = core.entry(&format!("stack:{}", self.method)).or(core.entry("stack:most"));
        // Frames of the stream itself lie above those of inference.
        let stream = self.beside.as_ref().and_then(|_| core.entry("stack:stream")).unwrap_or(0.0);
        let stages = [0, 1, 2].map(|stage| dot(&weights, self.stages[stage].iter().copied()));
        let (blocks, per_block) = &self.blocks;
        let beside = self.beside.as_ref().map(|counts| dot(&weights, counts.iter().copied()));
        Some(Prediction {
            core,
            stages,
            worst: MARGIN * self.samples.iter().map(of).fold(0.0, f64::max),
            streamed: beside.map(|beside| stages.iter().sum::<f64>() + beside),
            worst_block: blocks.iter().map(of).reduce(f64::max).map(|most| MARGIN * most / *per_block as f64),
            text_bytes: self.features.iter().filter_map(text).sum::<f64>() as u32,
            arena_bytes: self.arena_bytes,
            stack_bytes: (stack.unwrap_or_default() + stream) as u32,
            beyond: self.beyond(core, &weights),
        })
    }

    fn beyond(&self, core: Core, weights: &[Option<f64>]) -> Option<String> {
        let larger = self.sizes.iter().find_map(|(what, size)| {
            let most = core.entry(&format!("most:{what}"))?;
            (*size as f64 > most).then(|| format!("{size} {what}, where {most} were measured"))
        });
        unknown(weights, &self.samples).or(larger)
    }
}

/// What was counted and has no weight.
fn unknown(weights: &[Option<f64>], samples: &[Counts]) -> Option<String> {
    Count::ALL.iter().zip(weights).find_map(|(count, weight)| {
        let is_counted = samples.iter().any(|counts| counts[*count as usize] > 0);
        (weight.is_none() && is_counted).then(|| format!("what \"{}\" takes was not measured", count.name()))
    })
}

/// The parts of the library that a model needs.
fn features(model: &Model<'_, f32>, engine: Engine) -> Vec<&'static str> {
    let kind = model.shape.kind;
    let mut features = vec![kind.spec().feature];
    if model.fixed.is_some() {
        features.push("fixed-point");
    } else if matches!(model.dictionary, Dictionary::Integer(_)) {
        features.push("integers");
    }
    match engine {
        Engine::Gibbs(_) if kind != Kind::Ssmca => features.push("gibbs"),
        Engine::Truncated if !matches!(model.shape.states, States::Adaptive { .. }) => {
            features.push("subsets")
        }
        _ => {}
    }
    features
}
