//! What two sources in one channel take, before both are recorded: a stand-in has the recording for both.

use super::fit::Cost;
use crate::commands::inspect::m4f_instructions;
use crate::commands::model_file::ModelFile;
use crate::data::Points;
use crate::predict::Core;
use crate::spectral::{Encoding, Geometry, Parts, Settings, learn};
use crate::{Error, Result};
use spikelet::spectral::stream_bytes;
use std::path::Path;

/// Typical spectra of each source.
pub(super) const LATENTS: usize = 64;
/// Seconds of the recording that are learned from: sizes do not depend on it.
const SECONDS: usize = 8;

/// Of two sources; instructions are known of a Cortex-M4F only, and of library and stack nothing.
pub(super) fn cost(data: &Path, core: Core) -> Result<Cost> {
    let mut points = Points::read(data)?;
    let rate = points.rate.unwrap_or(8000);
    points.values.truncate(SECONDS * rate as usize);
    let geometry = Geometry::new(rate, false);
    let settings = Settings { latents: LATENTS, iterations: 1, copies: Some(false), seed: 1, threads: 1 };
    let learned = learn(&[points.values], &geometry, &settings, |_, _| {})?;
    let part = Parts::of(&learned, &geometry);
    let both = Parts::merge(&[part.clone(), part], vec!["a".into(), "b".into()])?;
    let file = ModelFile::new("the stand-in".into(), &both.bytes(Encoding::I8, "")?);
    let Some(model) = file.spectral()? else {
        return Err(Error::run("the stand-in is no model of spectra", "advise", "report this as a bug"));
    };
    let frame = m4f_instructions(&model) as f64;
    let hertz = frame * f64::from(rate) / model.hop() as f64 * core.cycles_per_instruction;
    Ok(Cost {
        of: "a frame",
        instructions: [frame; 2],
        worst: "at worst",
        hertz: (core.short == "m4f").then_some([hertz; 2]),
        ram: stream_bytes(&model) as u64,
        flash: model.byte_len() as u64,
        latency: Some((model.length() - 1) as f64 / f64::from(rate)),
    })
}
