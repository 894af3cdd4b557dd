//! A model that was trained before, to go on from: its parameters, settings and the way its points are made.

use crate::commands::report::Description;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::train::Settings;
use crate::train::settings::{NoiseForm, SlabForm};
use crate::{Error, Result};
use serde_json::{Map, Value};
use spikelet::frame::{Form, Frame};
use std::path::{Path, PathBuf};

/// MODEL.json, as far as training goes on from it.
pub(super) struct Model {
    pub path: PathBuf,
    pub parameters: Parameters,
    /// `None` where another version wrote others.
    pub settings: Option<Settings>,
    /// How its points are made, where they are not samples.
    pub frame: Option<Frame>,
    /// Of the bins of a transform.
    pub gains: Vec<f32>,
    /// Samples per second of its data, 0 where unknown.
    rate: u32,
}

impl Model {
    pub fn read(path: &Path) -> Result<Self> {
        let told = Description::read(path)?;
        let form = told.frame.as_ref().and_then(|frame| frame.get("form")?.as_str());
        if form.is_some_and(|form| form == "spectrum") {
            let what = "a source of spectra is learned anew, which takes seconds";
            return Err(Error::input(
                what,
                path.display(),
                "leave --from out, and give all recordings of the source",
            ));
        }
        let settings = serde_json::from_value(Value::Object(told.run.settings)).ok();
        let (frame, gains) =
            told.frame.as_ref().map_or((None, Vec::new()), |told| (frame(told), gains(told)));
        let rate = told.frame.as_ref().and_then(|told| told.get("rate")?.as_u64()).unwrap_or(0);
        let rate = u32::try_from(rate).unwrap_or(0);
        Ok(Self { path: path.to_path_buf(), parameters: told.parameters, settings, frame, gains, rate })
    }

    /// What to say where recordings have another rate than those it was trained on.
    pub fn other_rate(&self, rate: Option<u32>) -> Option<String> {
        let rate = rate.filter(|&rate| self.rate != 0 && rate != self.rate)?;
        Some(format!(
            "the data has {rate} samples per second, {} was trained at {}: resample the data, or train without --from",
            self.path.display(),
            self.rate
        ))
    }

    pub fn noise_form(&self) -> NoiseForm {
        match &self.parameters.noise {
            NoiseCov::Shared(_) => NoiseForm::Shared,
            NoiseCov::Diagonal(_) => NoiseForm::Diagonal,
            NoiseCov::Full(_) => NoiseForm::Full,
            NoiseCov::Components(_) => NoiseForm::Components,
        }
    }

    /// A unit slab is written as variances of 1, so the settings know better.
    pub fn slab_form(&self) -> SlabForm {
        match (&self.parameters.slab_cov, &self.settings) {
            (SlabCov::Full(_), _) => SlabForm::Full,
            (SlabCov::Unit, _) => SlabForm::Unit,
            (SlabCov::Diagonal(_), Some(settings)) if self.is_unit() => settings.slab,
            (SlabCov::Diagonal(_), _) => SlabForm::Diagonal,
        }
    }

    fn is_unit(&self) -> bool {
        let Parameters { slab_mean, .. } = &self.parameters;
        slab_mean.iter().all(|&mu| mu == 0.0)
            && self.parameters.slab_variances().iter().all(|&psi2| psi2 == 1.0)
    }

    /// Its parameters in the forms that are asked for, to begin with on points of so many dimensions.
    pub fn first(&self, settings: &Settings, dims: usize) -> Result<Parameters> {
        let old = &self.parameters;
        let (d, h) = (old.dims, old.latents);
        if d != dims {
            let what = format!("the model is for points of {d} dimensions, the data has {dims}");
            return Err(Error::input(what, self.path.display(), "give data like that it was trained on"));
        }
        let full = |n: usize, entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|e| entry(e / n, e % n)).collect()
        };
        let variances = old.noise_variances();
        let noise = match settings.noise {
            NoiseForm::Shared => NoiseCov::Shared(variances.iter().sum::<f64>() / d as f64),
            NoiseForm::Diagonal => NoiseCov::Diagonal(variances),
            NoiseForm::Full => NoiseCov::Full(full(d, &|i, j| old.noise_covariance(i, j))),
            NoiseForm::Components => match &old.noise {
                NoiseCov::Components(_) => old.noise.clone(),
                _ => NoiseCov::Components(variances.iter().flat_map(|&v| vec![v; h]).collect()),
            },
        };
        let slab_cov = match settings.slab {
            _ if !old.kind.kind().has_slab() => old.slab_cov.clone(),
            SlabForm::Unit if self.is_unit() => SlabCov::Unit,
            SlabForm::Unit => {
                let what = "the slab of the model to go on from has other means and variances";
                return Err(Error::input(what, "--slab unit", "leave it out, or train without --from"));
            }
            SlabForm::Diagonal => SlabCov::Diagonal(old.slab_variances()),
            SlabForm::Full => SlabCov::Full(full(h, &|i, j| old.slab_covariance(i, j))),
        };
        Ok(Parameters { noise, slab_cov, ..old.clone() })
    }
}

/// What [`json`](super::report::json) writes about how points are made.
fn frame(told: &Map<String, Value>) -> Option<Frame> {
    let number =
        |key: &str| told.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let form = match told.get("form")?.as_str()? {
        "windows" => Form::Windows { length: number("length")?, hop: number("hop")? },
        "patches" => {
            let colours = number("colours").and_then(|colours| u16::try_from(colours).ok()).unwrap_or(1);
            Form::Patches { width: number("width")?, height: number("height")?, colours }
        }
        "transform" => Form::Transform { bins: number("bins")?, channels: number("channels")? },
        _ => return None,
    };
    let centred = told.get("centred").and_then(Value::as_bool).unwrap_or(false);
    Some(Frame { form, rate: 0, centred })
}

fn gains(told: &Map<String, Value>) -> Vec<f32> {
    let gains = told.get("gains").and_then(Value::as_array);
    gains.into_iter().flatten().filter_map(Value::as_f64).map(|gain| gain as f32).collect()
}
