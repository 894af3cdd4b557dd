//! What settings cost on a target, before anything is trained: a stand-in model of the same shape is predicted.
//!
//! Of recordings it has the parameters of a short training and their own samples. Of other data its columns are random, its prior and
//! noise typical of what training finds, and its samples its own draws. The trained model costs about the same, and `spikelet inspect`
//! says how much exactly.

use super::choose::Choice;
use super::sketch::Sketch;
use crate::Result;
use crate::blob::About;
use crate::commands::chosen_states::ChosenStates;
use crate::commands::import::build;
use crate::commands::model_file::ModelFile;
use crate::commands::processor::Processor;
use crate::commands::quantize::encode;
use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use crate::predict::Core;
use crate::prepare::{Options, StatesName};
use crate::train::Settings;
use spikelet::Engine;
use spikelet::frame::{Form, Frame};
use spikelet::model::Width;
use spikelet::rng::Rng;
use std::path::Path;

/// Latents on at a time, and noise for latents of variance 1.
const ON: f64 = 0.8;
const NOISE: f64 = 0.02;

/// What is there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub clock: Option<f64>,
    pub ram: Option<u64>,
    pub flash: Option<u64>,
    pub latency: Option<f64>,
}

/// What a choice takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// What instructions are counted of: a point or a hop.
    pub of: &'static str,
    /// Instructions of a point in a stream: mean, and in the worst block, which is the worst point where there are no blocks.
    pub instructions: [f64; 2],
    /// What the second is.
    pub worst: &'static str,
    /// Cycles a second, mean and worst; none where the rate is unknown.
    pub hertz: Option<[f64; 2]>,
    /// Arena and stack.
    pub ram: u64,
    /// Code and model.
    pub flash: u64,
    /// Seconds, where the rate is known.
    pub latency: Option<f64>,
}

impl Choice {
    /// Samples by which a stream is late.
    pub fn latency_samples(&self) -> u32 {
        match self.form {
            Form::Transform { bins, .. } => 2 * bins - 1,
            Form::Windows { length, .. } => length - 1,
            _ => 0,
        }
    }

    /// Points of a second.
    fn points_per_second(&self) -> f64 {
        match self.form {
            Form::Windows { hop, .. } => f64::from(self.rate) / f64::from(hop),
            _ => f64::from(self.rate),
        }
    }

    /// Parameters such as training finds.
    fn typical(&self) -> Parameters {
        let (d, h, mut rng) = (self.dims, self.latents, Rng::new(1));
        let positive = self.kind.kind().is_non_negative();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for _ in 0..h {
            let entry = |rng: &mut Rng| if positive { rng.normal::<f64>().abs() } else { rng.normal() };
            let column: Vec<f64> = (0..d).map(|_| entry(&mut rng)).collect();
            let norm = column.iter().map(|w| w * w).sum::<f64>().sqrt();
            columns.push(column.into_iter().map(|w| w * (d as f64).sqrt() / norm).collect());
        }
        let has_slab = self.kind.kind().has_slab();
        Parameters {
            kind: self.kind,
            dims: d,
            latents: h,
            dictionary: (0..d * h).map(|e| columns[e % h][e / h]).collect(),
            prior: match self.kind {
                ModelKind::Gmm => vec![1.0 / h as f64; h],
                _ => vec![(ON / h as f64).min(0.3); h],
            },
            slab_mean: if has_slab { vec![0.0; h] } else { Vec::new() },
            slab_cov: if has_slab { SlabCov::Diagonal(vec![1.0; h]) } else { SlabCov::Unit },
            noise: match self.form {
                // As `train` has it for no more sources than microphones.
                Form::Transform { .. } if d == h => {
                    NoiseCov::Full((0..d * d).map(|e| if e % (d + 1) == 0 { NOISE } else { 0.0 }).collect())
                }
                _ => NoiseCov::Shared(NOISE),
            },
        }
    }

    /// A model of this shape, as bytes.
    fn stand_in(&self, sketch: Option<&Sketch>) -> Result<Vec<u8>> {
        let parameters = sketch.map_or_else(|| self.typical(), |sketch| sketch.parameters.clone());
        let options = Options {
            selected: self.selected,
            max_active: self.max_active,
            singletons: self.states == StatesName::Subsets,
            states: Some(self.states),
            expansions: self.expansions,
            ..Settings::new(self.kind, self.latents).options()
        };
        let gains = match (self.form, sketch) {
            (_, Some(sketch)) => sketch.gains.clone(),
            (Form::Transform { bins, .. }, None) => vec![1.0; bins as usize],
            _ => Vec::new(),
        };
        let frame = Some(Frame { form: self.form, rate: self.rate, centred: false });
        let frame = frame.filter(|frame| frame.form != Form::Samples || self.rate > 0);
        let bytes = build(&parameters, &options, About { frame, gains: &gains, ..About::default() })?;
        if !self.fixed {
            return Ok(bytes);
        }
        let file = ModelFile::new("the stand-in".into(), &bytes);
        encode(&file, Path::new("the stand-in"), Some(Width::I16), true, &ChosenStates::default())
    }

    pub fn cost(&self, core: Core, sketch: Option<&Sketch>) -> Result<Option<Cost>> {
        let bytes = self.stand_in(sketch)?;
        let file = ModelFile::new("the stand-in".into(), &bytes);
        let blob = file.blob()?;
        let engine = Engine::of_kind(blob.kind());
        let cores = Processor::of(core, sketch.map(|sketch| sketch.path.as_path())).predict(&blob, engine)?;
        let Some(on) = cores.on_core.first() else { return Ok(None) };
        let streamed = on.instructions_streamed.unwrap_or(on.instructions);
        let worst = on.instructions_worst_block.unwrap_or(on.instructions_worst);
        let instructions = [streamed, worst].map(|n| n as f64);
        let per_second = self.points_per_second() * core.cycles_per_instruction;
        Ok(Some(Cost {
            instructions,
            of: "a point",
            worst: if on.instructions_worst_block.is_some() { "in the worst block" } else { "at worst" },
            hertz: (self.rate > 0).then(|| instructions.map(|n| n * per_second)),
            ram: on.arena_bytes as u64 + u64::from(on.stack_bytes),
            flash: u64::from(on.text_bytes) + bytes.len() as u64,
            latency: (self.rate > 0).then(|| f64::from(self.latency_samples()) / f64::from(self.rate)),
        }))
    }
}

impl Cost {
    /// How many times over its limit each thing is; below 1 all fit.
    pub fn over(&self, limits: &Limits) -> Vec<(&'static str, f64)> {
        let ratio = |is: Option<f64>, most: Option<f64>| Some(is? / most?);
        let bytes = |is: u64, most: Option<u64>| ratio(Some(is as f64), most.map(|most| most as f64));
        let all = [
            ("processor", ratio(self.hertz.map(|hertz| hertz[1]), limits.clock)),
            ("RAM", bytes(self.ram, limits.ram)),
            ("flash", bytes(self.flash, limits.flash)),
            ("latency", ratio(self.latency, limits.latency)),
        ];
        all.into_iter().filter_map(|(what, ratio)| Some((what, ratio?))).collect()
    }

    /// The limit that is missed most, or met with the least to spare.
    pub fn tightest(&self, limits: &Limits) -> f64 {
        self.over(limits).into_iter().map(|(_, ratio)| ratio).fold(0.0, f64::max)
    }
}
