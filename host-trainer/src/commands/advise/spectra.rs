//! What two sources in one channel take, before both are recorded: a stand-in has the recording for both.

use super::fit::{Cost, Limits};
use crate::commands::model_file::ModelFile;
use crate::data::Points;
use crate::predict::{Core, Prediction, channels::Hop};
use crate::spectral::{Encoding, Geometry, Parts, Settings, learn};
use crate::{Error, Result};
use spikelet::SpectralModel;
use std::path::Path;

/// Typical spectra of each source where there is room for them.
pub(super) const LATENTS: usize = 64;
/// Seconds of the recording that are learned from: cost does not depend on it.
const SECONDS: usize = 8;

/// Sizes of a model of two sources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Typical spectra of each source.
    pub latents: usize,
    /// Samples from frame to frame.
    pub hop: usize,
    /// Whether that is half of a frame, not a quarter, as `train` has it.
    pub is_half: bool,
}

/// What is advised.
#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub choice: Choice,
    /// None where it is not known for the core.
    pub cost: Option<Cost>,
    /// What makes the cost a guess.
    pub guess: Option<String>,
}

/// From the best to the one that takes the least work.
const CHOICES: [(usize, bool); 4] = [(LATENTS, false), (LATENTS, true), (32, true), (16, true)];

/// The first choice that fits, else the one that comes closest.
pub(super) fn best(data: &Path, core: Core, limits: &Limits) -> Result<Advice> {
    let mut points = Points::read(data)?;
    let rate = points.rate.unwrap_or(8000);
    points.values.truncate(SECONDS * rate as usize);
    let recording = [points.values];
    let mut closest: Option<(f64, Advice)> = None;
    for (latents, is_half) in CHOICES {
        let geometry = Geometry::new(rate, is_half);
        let choice = Choice { latents, hop: geometry.hop, is_half };
        let file = ModelFile::new("the stand-in".into(), &stand_in(&recording, &geometry, latents)?);
        let Some(model) = file.spectral()? else { break };
        let Some(hop) = Hop::new(&model)?.on(core) else {
            return Ok(Advice { choice, cost: None, guess: None });
        };
        let cost = cost(&model, &hop);
        let tightest = cost.tightest(limits);
        if closest.as_ref().is_none_or(|(other, _)| tightest < *other) {
            closest = Some((tightest, Advice { choice, cost: Some(cost), guess: hop.beyond }));
        }
        if tightest <= 1.0 {
            break;
        }
    }
    let nothing = || Error::run("the stand-in is no model of spectra", "advise", "report this as a bug");
    closest.map(|(_, advice)| advice).ok_or_else(nothing)
}

/// Two sources of so many latents, in bytes.
fn stand_in(recording: &[Vec<f64>], geometry: &Geometry, latents: usize) -> Result<Vec<u8>> {
    let settings = Settings { latents, iterations: 1, copies: Some(false), seed: 1, threads: 1 };
    let part = Parts::of(&learn(recording, geometry, &settings, |_, _| {})?, geometry);
    Parts::merge(&[part.clone(), part], vec!["a".into(), "b".into()])?.bytes(Encoding::I8, "")
}

fn cost(model: &SpectralModel<'_>, hop: &Prediction) -> Cost {
    let rate = f64::from(model.rate());
    let instructions = [hop.instructions(), hop.worst];
    let per_second = rate / model.hop() as f64 * hop.core.cycles_per_instruction;
    Cost {
        of: "a hop",
        instructions,
        worst: "at worst",
        hertz: Some(instructions.map(|n| n * per_second)),
        ram: hop.arena_bytes as u64 + u64::from(hop.stack_bytes),
        flash: u64::from(hop.text_bytes) + model.byte_len() as u64,
        latency: Some((model.length() - 1) as f64 / rate),
    }
}
