//! Recorded sounds, and what a device makes of them.

use spikelet::Blob;
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::data;
use spikelet_trainer::parameters::Parameters;
use spikelet_trainer::prepare::{GramName, Options, Prepared};
use spikelet_trainer::{Error, Result, streaming};
use std::path::{Path, PathBuf};

/// The first channel of a file.
pub struct Recording {
    /// The name of the file after the last `_`.
    pub speaker: String,
    pub samples: Vec<f64>,
    pub rate: u32,
}

/// All WAV files of a folder, by name.
pub fn read(folder: &Path) -> Result<Vec<Recording>> {
    let fail = |cause| Error::reading(folder, &cause);
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>().map_err(fail)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "wav"));
    paths.sort();
    let mut recordings = Vec::new();
    for path in paths {
        let points = data::Points::read(&path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let speaker = name.rsplit('_').next().unwrap_or(&name).to_owned();
        let samples = points.values.iter().step_by(points.dims).copied().collect();
        recordings.push(Recording { speaker, samples, rate: points.rate.unwrap_or(8000) });
    }
    Ok(recordings)
}

/// Of mean power 0.01.
pub fn loud(samples: &[f64]) -> Vec<f64> {
    let power = samples.iter().map(|x| x * x).sum::<f64>() / samples.len() as f64;
    samples.iter().map(|x| 0.1 * x / power.sqrt().max(f64::MIN_POSITIVE)).collect()
}

/// A recording through the stream of a model, as a device runs it: a signal for each latent or group of latents.
pub fn separated(
    model: &Parameters,
    options: &Options,
    about: About<'_>,
    input: &[f32],
    channels: usize,
) -> Result<Vec<Vec<f64>>> {
    let options = Options { gram: GramName::Auto, ..*options };
    let bytes = blob::write(&Prepared::<f32>::new(model, &options)?, &model.slab_cov, about)?;
    // On the boundary that a blob needs.
    let mut memory = vec![0u8; bytes.len() + 8];
    let offset = memory.as_ptr().align_offset(8);
    memory[offset..][..bytes.len()].copy_from_slice(&bytes);
    let refused = |what: &dyn std::fmt::Display| Error::run(what, "the model of a recording", "report this");
    let blob = Blob::parse(&memory[offset..]).map_err(|error| refused(&error))?;
    let parts = streaming::separate(blob, input, channels, |_| {}).map_err(|error| refused(&error))?;
    Ok(parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect())
}
