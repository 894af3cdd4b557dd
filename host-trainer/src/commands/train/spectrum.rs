//! `train --transform spectrum`: one source in one channel.

use super::Train;
use super::outputs::Outputs;
use crate::commands::output::{Progress, counted, print, warn};
use crate::data::Points;
use crate::files::{Staged, ending};
use crate::parameters::ModelKind;
use crate::spectral::{Encoding, Geometry, Learned, Parts, Settings, learn};
use crate::{Error, Result};
use serde_json::{Value, json};
use spikelet::spectral::MOST_LATENTS;
use std::io::Write as _;
use std::path::PathBuf;

impl Train {
    /// Learns one source and writes it, where the flags ask for spectra.
    pub(super) fn spectrum(&self) -> Result<()> {
        self.check_spectrum()?;
        let (hop, copies) = self.framing.spectrum()?;
        let outputs = Outputs::new(&self.out, self.checkpoint.as_deref(), &self.data)?;
        let (recordings, rate) = self.recordings()?;
        let geometry = Geometry::new(rate, is_half(hop, rate)?);
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let settings = Settings {
            latents: self.plan.latents(),
            iterations: self.plan.iterations(),
            copies,
            seed: self.plan.seed,
            threads: self.threads.map_or_else(cores, usize::from),
        };
        let mut progress = Progress::new("training", settings.iterations);
        let learned = learn(&recordings, &geometry, &settings, |iteration, free_energy| {
            let short = format!("iteration {iteration}, F {free_energy:.1}");
            progress.note(short.clone(), short);
            progress.advance(1);
        })?;
        drop(progress);
        learned.warnings.iter().for_each(warn);
        let frames = counted(learned.frames, "frame");
        let provenance = format!(
            "spikelet {} train on spectra of {frames}, seed {}",
            env!("CARGO_PKG_VERSION"),
            settings.seed
        );
        let blob = Parts::of(&learned, &geometry).bytes(Encoding::F32, &provenance)?;
        let text = description(&learned, &geometry, &settings);
        let staged = Staged::write(&self.out, |writer| writer.write_all(&blob))?;
        let json = Staged::write(&outputs.json, |writer| writer.write_all(text.as_bytes()))?;
        staged.commit()?;
        json.commit()?;
        print(&format!(
            "{}: a source of {} from {frames}{}, {} bands, spread {:.2}; put it together with others by `spikelet merge`\n",
            self.out.display(),
            counted(settings.latents, "latent"),
            if learned.copies { " with resampled copies" } else { "" },
            geometry.bands.len(),
            learned.sigma,
        ))
    }

    fn check_spectrum(&self) -> Result<()> {
        if self.plan.model != ModelKind::Mca {
            let what =
                format!("sources of spectra hide each other, which {} does not know", self.plan.model.name());
            return Err(Error::input(what, "--transform spectrum", "use --model mca"));
        }
        if self.plan.latents() > MOST_LATENTS {
            let what = format!("{} spectra of a source", self.plan.latents());
            return Err(Error::input(what, "--latents", format_args!("choose at most {MOST_LATENTS}")));
        }
        if let Some(flag) = self.plan.given_for_points() {
            let what = "exactly one latent of a source is on: there is nothing to choose";
            return Err(Error::input(what, flag, "leave it out with --transform spectrum"));
        }
        if self.resume || self.checkpoint.is_some() {
            let what = "sources of spectra are learned in seconds, without checkpoints";
            return Err(Error::input(what, "--resume and --checkpoint", "leave them out"));
        }
        Ok(())
    }

    /// All files, each of one channel and of one rate.
    fn recordings(&self) -> Result<(Vec<Vec<f64>>, u32)> {
        let (mut recordings, mut first) = (Vec::new(), None);
        for path in &expanded(&self.data)? {
            let points = Points::read(path)?;
            let Some(rate) = points.rate else {
                let what = "spectra are made of recordings";
                return Err(Error::input(what, path.display(), "give .wav files of the source by itself"));
            };
            if points.dims != 1 {
                let what = format!("{} channels where spectra have one", points.dims);
                return Err(Error::input(what, path.display(), "give one channel, or use --model spatial"));
            }
            let known = *first.get_or_insert(rate);
            if rate != known {
                let what = format!("{rate} samples per second, {known} in the first recording");
                return Err(Error::input(what, path.display(), "resample it"));
            }
            if rate < 4000 {
                let what = format!("{rate} samples per second hold little of a sound");
                return Err(Error::input(what, path.display(), "record at 8 kHz or more"));
            }
            if points.values.iter().all(|x| x.abs() < 1e-6) {
                let what = "the recording is silent";
                return Err(Error::input(what, path.display(), "record the source, or leave it out"));
            }
            recordings.push(points.values);
        }
        Ok((recordings, first.unwrap_or(8000)))
    }
}

/// Files as they are; of a folder all recordings in it, in the order of their names.
fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let fail = |cause| Error::reading(path, &cause);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(fail)? {
            let file = entry.map_err(fail)?.path();
            if matches!(ending(&file).as_deref(), Some("wav" | "wave")) && file.is_file() {
                found.push(file);
            }
        }
        if found.is_empty() {
            let advice = "give recordings, or a folder with .wav files in it";
            return Err(Error::input("there is no recording in the folder", path.display(), advice));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// Whether frames follow each other every half of their length.
fn is_half(hop: Option<u32>, rate: u32) -> Result<bool> {
    let length = Geometry::new(rate, false).length as u32;
    match hop {
        None => Ok(false),
        Some(hop) if hop == length / 4 => Ok(false),
        Some(hop) if hop == length / 2 => Ok(true),
        Some(hop) => {
            let what = format!("frames of {length} samples cannot follow each other every {hop}");
            let advice = format!("choose {} or {}", length / 4, length / 2);
            Err(Error::input(what, "--hop", advice))
        }
    }
}

/// MODEL.json.
fn description(learned: &Learned, geometry: &Geometry, settings: &Settings) -> String {
    let rows =
        |matrix: &[f64], width: usize| -> Value { matrix.chunks(width).map(|row| json!(row)).collect() };
    let (k, d) = (settings.latents, geometry.bands.len());
    // As everywhere, W is D x H.
    let w: Vec<Vec<f32>> =
        (0..d).map(|d_| (0..k).map(|h| learned.mixture.means[h * d + d_]).collect()).collect();
    let history: Vec<Value> = learned
        .mixture
        .history
        .iter()
        .zip(&learned.mixture.seconds)
        .enumerate()
        .map(|(iteration, (free_energy, seconds))| {
            json!({ "iteration": iteration, "free_energy": free_energy, "seconds": seconds })
        })
        .collect();
    let value = json!({
        "settings": {
            "model": "mca", "transform": "spectrum", "latents": k, "iterations": settings.iterations,
            "seed": settings.seed, "copies": learned.copies,
        },
        "points": learned.frames,
        "frame": {
            "form": "spectrum", "length": geometry.length, "hop": geometry.hop, "rate": geometry.rate,
            "bands": d, "floor": geometry.floor, "compression": geometry.power,
        },
        "parameters": {
            "w": w, "pi": learned.mixture.prior, "sigma2": learned.sigma * learned.sigma,
            "power": rows(&learned.power, geometry.bins()), "transitions": rows(&learned.transitions, k),
            "level": learned.level,
        },
        "history": history,
        "warnings": learned.warnings,
        "version": env!("CARGO_PKG_VERSION"),
    });
    format!("{value:#}\n")
}
