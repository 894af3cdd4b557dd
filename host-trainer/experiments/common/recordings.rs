//! Recorded sounds, and what a device makes of them.

use super::gsc;
use spikelet::Blob;
use spikelet::frame::{Form, Frame};
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::data;
use spikelet_trainer::delays::bins_of;
use spikelet_trainer::parameters::Parameters;
use spikelet_trainer::prepare::{GramName, Options, Prepared};
use spikelet_trainer::train::settings::{InitForm, NoiseForm, SlabForm};
use spikelet_trainer::train::weak::Weak;
use spikelet_trainer::train::{Points, Settings};
use spikelet_trainer::{Error, Result, streaming};
use std::path::{Path, PathBuf};

/// Bins of the lapped transform for a rate, as `train` takes them: 256 at 8 kHz, 1024 at 44.1 kHz.
pub fn bins(rate: u32) -> usize {
    bins_of(0.032 * f64::from(rate))
}

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

/// What a mixture alone teaches, by a lapped transform.
pub struct Learned {
    pub parameters: Parameters,
    pub settings: Settings,
    pub frame: Frame,
    pub gains: Vec<f32>,
    /// The coefficients, as the model takes them. (N x D)
    pub points: Vec<f64>,
}

/// Learns H directions from what D microphones heard (N x D), as `train --transform mdct` does.
pub fn learn(heard: &[f32], d: usize, h: usize, rate: u32, seed: u64) -> Result<Learned> {
    let folder = tempfile::tempdir().map_err(|cause| Error::run(cause, "a temporary folder", "make room"))?;
    let path = folder.path().join("mixture.wav");
    data::write_wav(&path, rate, d, heard)?;
    let form = Form::Transform { bins: bins(rate) as u32, channels: d as u32 };
    let frame = Frame { form, rate, centred: false };
    let mut points = Points::open_framed(std::slice::from_ref(&path), Some(&frame), 1)?;
    // As `train --transform` does by itself: with as many microphones as voices, weak sounds are the voices' too.
    let (noise, weak) =
        if d >= h { (NoiseForm::Full, Weak::Sources) } else { (NoiseForm::Shared, Weak::Noise) };
    let settings = Settings {
        slab: SlabForm::Unit,
        noise,
        weak,
        init: InitForm::Lines,
        restarts: 4,
        tolerance: 1e-7,
        ..gsc::exact(h, 60, seed)
    };
    let parameters = gsc::train(&settings, &mut points)?.model();
    let gains = points.gains().to_vec();
    let mut source = data::Source::open_framed(&path, Some(&frame), 1)?;
    source.even_out(&gains);
    let mut points = Vec::new();
    source.read_chunk(0, source.points(), &mut points)?;
    Ok(Learned { parameters, settings, frame, gains, points })
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
    streamed(&bytes, input, channels)
}

/// The same with a blob.
pub fn streamed(bytes: &[u8], input: &[f32], channels: usize) -> Result<Vec<Vec<f64>>> {
    // On the boundary that a blob needs.
    let mut memory = vec![0u8; bytes.len() + 8];
    let offset = memory.as_ptr().align_offset(8);
    memory[offset..][..bytes.len()].copy_from_slice(bytes);
    let refused = |what: &dyn std::fmt::Display| Error::run(what, "the model of a recording", "report this");
    let blob = Blob::parse(&memory[offset..]).map_err(|error| refused(&error))?;
    let parts = streaming::separate(blob, input, channels, |_| {}).map_err(|error| refused(&error))?;
    Ok(parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect())
}
