//! `eval` on models of one channel: the scores of usual sound, and whether what they promise holds on other recordings.

use super::Eval;
use crate::commands::infer::of_recording;
use crate::commands::model_file::ModelFile;
use crate::commands::output::{counted, print, refuse_description, refuse_overwriting};
use crate::spectral::{Encoding, Parts, usual_scores};
use crate::{Error, Result, files};
use serde::Serialize;
use spikelet::SpectralModel;
use std::fmt::Write as _;
use std::io::Write as _;

/// The JSON object.
#[derive(Debug, Serialize)]
struct Facts {
    frames: usize,
    /// Frames of usual sound that thresholds come from.
    calibrated_frames: Option<usize>,
    mean_score: f64,
    rates: Vec<Rate>,
}

#[derive(Debug, Serialize)]
struct Rate {
    promised: f32,
    threshold: f32,
    observed: f64,
}

impl Eval {
    /// Scores of frames; with --calibrate, also a model that knows which are usual.
    pub(super) fn spectral(&self, model: SpectralModel<'_>) -> Result<()> {
        if self.truth.is_some() || self.reference.is_some() {
            let what = "a model of spectra has no points to compare";
            let advice = "use `spikelet separate --reference`, or `spikelet denoise --reference`";
            return Err(Error::input(what, "--truth and --reference", advice));
        }
        let mut parts = Parts::read(&model);
        let mut calibrated_frames = None;
        if let Some(out) = &self.out {
            refuse_description(out, "spk")?;
            files::check_target(out)?;
            let inputs = self.calibrate.iter().chain([&self.model, &self.data]);
            refuse_overwriting(out, &inputs.collect::<Vec<_>>())?;
            let mut scores = Vec::new();
            for path in &self.calibrate {
                scores.extend(of_recording(model, path)?.iter().map(|event| event.score));
            }
            parts.normal = usual_scores(&scores).ok_or_else(|| {
                let what = format!(
                    "{} of usual sound are too few for a rate of one in ten",
                    counted(scores.len(), "frame")
                );
                Error::input(what, "--calibrate", "give some seconds at least, better minutes")
            })?;
            calibrated_frames = Some(scores.len());
        }
        let encoding = if model.is_integer() { Encoding::I8 } else { Encoding::F32 };
        let bytes = parts.bytes(encoding, model.provenance())?;
        let file = ModelFile::new("the model".into(), &bytes);
        let Some(model) = file.spectral()? else {
            return Err(Error::run("no model of spectra was made", "eval", "report this as a bug"));
        };
        let held: Vec<f32> = of_recording(model, &self.data)?.iter().map(|event| event.score).collect();
        if held.is_empty() {
            let what = "the recording is shorter than a frame";
            return Err(Error::input(what, self.data.display(), "give some seconds"));
        }
        let above = |threshold: f32| held.iter().filter(|&&score| score > threshold).count();
        let rates = parts.normal.iter().map(|&[promised, threshold]| Rate {
            promised,
            threshold,
            observed: above(threshold) as f64 / held.len() as f64,
        });
        let facts = Facts {
            frames: held.len(),
            calibrated_frames,
            mean_score: held.iter().map(|&score| f64::from(score)).sum::<f64>() / held.len() as f64,
            rates: rates.collect(),
        };
        if let Some(out) = &self.out {
            files::write_atomically(out, |writer| writer.write_all(&bytes))?;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
                Error::run(format_args!("no JSON ({cause})"), self.model.display(), "report this as a bug")
            })?;
            return print(&format!("{text}\n"));
        }
        let mut text =
            format!("{}: mean score {:.2} nats\n", counted(facts.frames, "frame"), facts.mean_score);
        if facts.rates.is_empty() {
            text += "which scores are usual is not known: see --calibrate\n";
        } else {
            let _ = writeln!(text, "{:>10}{:>12}{:>10}", "promised", "threshold", "observed");
        }
        for rate in &facts.rates {
            let _ = writeln!(
                text,
                "{:>9.2}%{:>12.2}{:>9.2}%",
                100.0 * rate.promised,
                rate.threshold,
                100.0 * rate.observed
            );
        }
        if let Some(out) = &self.out {
            let _ = writeln!(text, "{}: the model with these thresholds", out.display());
        }
        print(&text)
    }
}
