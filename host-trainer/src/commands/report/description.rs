//! MODEL.json as `spikelet train` wrote it, read back and checked.
//!
//! In comes the path, out goes a [`Description`]: parameters that are a model, and what is known about the run. Keys that are
//! missing or of another type, numbers that are no model and a frame that does not fit the dimensions end here, with the
//! name of the file.

use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use crate::train::run::Step;
use crate::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

/// Longest file that is read: 10 000 latents of 1000 dimensions fit.
const MOST_BYTES: u64 = 1 << 30;

/// What is known about a model and its training.
#[derive(Debug)]
pub(in crate::commands) struct Description {
    pub parameters: Parameters,
    /// How points are made, as it was written.
    pub frame: Option<Map<String, Value>>,
    pub look: Look,
    pub rate: Option<f64>,
    pub run: Run,
}

/// What is known about a training run, whatever kind of model it made.
#[derive(Debug, Deserialize)]
pub(in crate::commands) struct Run {
    /// As they were written, whatever version wrote them.
    pub settings: Map<String, Value>,
    /// How many points it learned from.
    pub points: Option<u64>,
    /// Which start was kept, counted from 0.
    pub start: Option<u64>,
    pub history: Vec<Step>,
    /// The iterate that the parameters are, where it is known.
    pub kept: Option<Kept>,
    pub warnings: Vec<String>,
    #[serde(default)]
    pub version: String,
    /// How many steps at the beginning have another objective than the rest.
    #[serde(skip)]
    pub alignment: usize,
}

/// What is read of the description of a model that runs as a stream only.
#[derive(Debug, Deserialize)]
pub(super) struct Streamed {
    #[serde(flatten)]
    pub run: Run,
    /// Of each source at every microphone but the first, in samples.
    #[serde(default)]
    pub delays: Vec<Vec<f64>>,
}

/// Which iterate was kept.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(in crate::commands) struct Kept {
    pub iteration: usize,
    /// F, summed over points.
    pub free_energy: f64,
}

/// What a column of the dictionary is a picture of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Look {
    /// How strong a source is in every dimension.
    Direction,
    Waveform,
    Picture {
        width: usize,
        height: usize,
    },
}

/// The stages of training a spatial model.
#[derive(Deserialize)]
struct Stages {
    history: Vec<OfStage>,
}

#[derive(Deserialize)]
struct OfStage {
    stage: Option<String>,
}

#[derive(Deserialize)]
struct Whole {
    frame: Option<Map<String, Value>>,
    parameters: Numbers,
    #[serde(flatten)]
    run: Run,
}

#[derive(Deserialize)]
struct Framed {
    form: String,
    length: Option<usize>,
    width: Option<usize>,
    colours: Option<usize>,
    height: Option<usize>,
    rate: Option<f64>,
}

#[derive(Deserialize)]
struct Numbers {
    w: Vec<Vec<f64>>,
    pi: Vec<f64>,
    mu: Option<Vec<f64>>,
    psi2: Option<Nested>,
    sigma2: Nested,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "neither a number, nor a list of numbers, nor a list of such lists")]
enum Nested {
    One(f64),
    Each(Vec<f64>),
    Matrix(Vec<Vec<f64>>),
}

impl Description {
    pub fn read(path: &Path) -> Result<Self> {
        let text = text_of(path)?;
        let whole: Whole = serde_json::from_str(&text).map_err(|cause| {
            let any: Option<Value> = serde_json::from_str(&text).ok();
            if any.is_some_and(|any| any["settings"]["model"] == "spatial") {
                let what = "a spatial model has no dictionary to go on from";
                return Error::input(what, path.display(), "train it anew on more data");
            }
            no_description(path, &cause)
        })?;
        drop(text);
        whole.check().map_err(|what| no_description(path, &what))
    }

    /// The same, with columns that are pictures of this size; `path` is for errors.
    pub fn with_picture(mut self, width: u32, height: u32, path: &Path) -> Result<Self> {
        let (width, height) = (width as usize, height as usize);
        if width * height != self.parameters.dims {
            let what = format!("{} dimensions are no {width} x {height} pixels", self.parameters.dims);
            return Err(Error::input(
                what,
                format_args!("--patch, {}", path.display()),
                "give the true size",
            ));
        }
        self.look = Look::Picture { width, height };
        Ok(self)
    }

    /// Column h of W.
    pub fn column(&self, latent: usize) -> Vec<f64> {
        let Parameters { dims, latents, dictionary, .. } = &self.parameters;
        (0..*dims).map(|d| dictionary[d * latents + latent]).collect()
    }

    /// Latents, the ones most often on first; of equal ones that with the lower number.
    pub fn by_usage(&self) -> Vec<usize> {
        let prior = &self.parameters.prior;
        let mut order: Vec<usize> = (0..prior.len()).collect();
        order.sort_by(|&a, &b| prior[b].total_cmp(&prior[a]).then(a.cmp(&b)));
        order
    }
}

impl Run {
    /// A setting that is a whole number.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.settings.get(name).and_then(Value::as_u64)
    }
}

impl Streamed {
    pub fn read(path: &Path) -> Result<Self> {
        let text = text_of(path)?;
        let mut told: Self = serde_json::from_str(&text).map_err(|cause| no_description(path, &cause))?;
        let stages: Stages = serde_json::from_str(&text).map_err(|cause| no_description(path, &cause))?;
        told.run.alignment =
            stages.history.iter().take_while(|step| step.stage.as_deref() == Some("alignment")).count();
        Ok(told)
    }
}

const ADVICE: &str = "give the MODEL.json that `spikelet train` wrote";

fn no_description(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::input(format_args!("this is no description of a model ({why})"), path.display(), ADVICE)
}

/// All of a file that is not too long.
fn text_of(path: &Path) -> Result<String> {
    let fail = |cause| Error::reading(path, &cause);
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        let advice = "name the .json that `spikelet train` wrote beside the model";
        return Err(Error::input("this is not a file", path.display(), advice));
    }
    if metadata.len() > MOST_BYTES {
        let what = format!("{} bytes are more than a description of a model has", metadata.len());
        return Err(Error::input(what, path.display(), ADVICE));
    }
    let mut text = String::new();
    let read = BufReader::new(File::open(path).map_err(fail)?).take(MOST_BYTES).read_to_string(&mut text);
    read.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::InvalidData => Error::input("this is not text", path.display(), ADVICE),
        _ => fail(cause),
    })?;
    Ok(text)
}

impl Whole {
    fn check(self) -> Result<Description, String> {
        let Self { frame, parameters, run } = self;
        let kind = run.settings.get("model").ok_or("`settings` lacks the key `model`")?;
        let kind = ModelKind::deserialize(kind)
            .map_err(|_| format!("this version of spikelet knows no model {kind} (settings.model)"))?;
        let of_components = run.settings.get("noise").is_some_and(|noise| noise == "components");
        let parameters = parameters.check(kind, of_components)?;
        let dims = parameters.dims;
        if run.points == Some(0) {
            return Err("`points` is 0".into());
        }
        let written = frame;
        let framed = |frame: &Map<String, Value>| Framed::deserialize(frame);
        let frame = written.as_ref().map(framed).transpose().map_err(|cause| format!("frame: {cause}"))?;
        let rate = frame.as_ref().and_then(|frame| frame.rate).filter(|&rate| rate > 0.0);
        let look = match &frame {
            Some(Framed { form, length: Some(length), .. }) if form == "windows" => {
                if *length != dims {
                    return Err(format!("windows of {length} samples, but {dims} dimensions"));
                }
                Look::Waveform
            }
            Some(Framed { form, width: Some(width), height: Some(height), colours, .. })
                if form == "patches" =>
            {
                // Colours are drawn one below the other.
                let rows = height.checked_mul(colours.unwrap_or(1).max(1)).unwrap_or(0);
                if width.checked_mul(rows) != Some(dims) {
                    return Err(format!("patches of {width} x {height} pixels, but {dims} dimensions"));
                }
                Look::Picture { width: *width, height: rows }
            }
            Some(Framed { form, .. }) if form == "windows" || form == "patches" => {
                return Err(format!("`frame` does not say how large its {form} are"));
            }
            _ => Look::Direction,
        };
        let frame = written;
        Ok(Description { parameters, frame, look, rate, run })
    }
}

impl Numbers {
    /// `of_components`: whether a matrix of variances has a column for each component.
    fn check(self, kind: ModelKind, of_components: bool) -> Result<Parameters, String> {
        let (dims, latents) = (self.w.len(), self.pi.len());
        let parameters = Parameters {
            kind,
            dims,
            latents,
            dictionary: flat(self.w, latents, "w")?,
            prior: self.pi,
            slab_mean: self.mu.unwrap_or_default(),
            slab_cov: match self.psi2 {
                None => SlabCov::Unit,
                Some(Nested::One(psi2)) => SlabCov::Diagonal(vec![psi2; latents]),
                Some(Nested::Each(psi2)) => SlabCov::Diagonal(psi2),
                Some(Nested::Matrix(psi)) => SlabCov::Full(flat(psi, latents, "psi2")?),
            },
            noise: match self.sigma2 {
                Nested::One(sigma2) => NoiseCov::Shared(sigma2),
                Nested::Each(sigma2) => NoiseCov::Diagonal(sigma2),
                Nested::Matrix(sigma) if kind == ModelKind::Gmm && of_components => {
                    NoiseCov::Components(flat(sigma, latents, "sigma2")?)
                }
                Nested::Matrix(sigma) => NoiseCov::Full(flat(sigma, dims, "sigma2")?),
            },
        };
        parameters.check().map_err(|error| error.to_string())?;
        Ok(parameters)
    }
}

/// Rows of a matrix, each of them `width` numbers long.
fn flat(rows: Vec<Vec<f64>>, width: usize, name: &str) -> Result<Vec<f64>, String> {
    if let Some(at) = rows.iter().position(|row| row.len() != width) {
        let found = rows[at].len();
        return Err(format!("parameters.{name}[{at}] has {found} numbers where {width} are needed"));
    }
    Ok(rows.concat())
}
