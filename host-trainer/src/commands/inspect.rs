//! `spikelet inspect`: what a model is and what it costs on a device.

mod room;
mod spectral;

use super::model_file::{ModelFile, arena_bytes, names};
use super::output::{print, printable};
use super::processor::{Cores, Load, OnCore, Processor};
use super::sampling::Sampling;
use crate::{Error, Result};
use serde::Serialize;
use spikelet::blob::{Blob, VERSION};
use spikelet::model::Model;
use spikelet::stream::stream_bytes;
use spikelet::{Engine, Features, Gibbs, gibbs_state_bytes};
use std::path::PathBuf;

/// Show what a model is, and what it costs in flash, RAM and operations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Operations are multiply-adds per sample, an upper bound; a loud sample (far above the noise) takes the refinement on top.
Instructions on a core are predicted from measured ones, for samples that the model draws or those of --data. \"at worst\" is 1.25 times the most
expensive of these and of samples up to a thousand times louder: an empirical envelope, not a bound. \"a guess\" names what is unlike all models
that were measured. For spatial models and those of one channel instructions are those of a hop, which come at once. Flash is the model and a library
for its kind alone. Emulators count instructions, not cycles: see --cpi.

Example:
  spikelet inspect model.spk
  spikelet inspect model.spk --core m4f --clock 168MHz --rate 16000
  spikelet inspect model.spk --core m4f --data recording.wav
  spikelet inspect model.spk --core m7 --engine gibbs --sweeps 50
  spikelet inspect model.spk --json")]
pub(super) struct Inspect {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    processor: Processor,
    #[command(flatten)]
    sampling: Sampling,
}

/// The JSON object; names are part of the interface.
#[derive(Debug, Serialize)]
pub(super) struct Facts<'a> {
    pub kind: &'static str,
    pub dims: usize,
    pub latents: usize,
    pub selected: usize,
    pub max_active: usize,
    pub singletons: bool,
    pub states: u64,
    pub encoding: &'static str,
    /// What samples are inferred in: floats or integers.
    pub arithmetic: &'static str,
    pub noise: &'static str,
    pub slab: &'static str,
    pub selection: &'static str,
    pub state_source: &'static str,
    pub gram_stored: bool,
    pub blob_bytes: usize,
    pub arena_bytes: usize,
    /// Cargo features of the core and of the C library that it needs.
    pub features: Vec<&'static str>,
    /// RAM of a stream; none where there can be no stream.
    pub stream_bytes: Option<usize>,
    /// Multiply-adds per sample.
    pub operations: u64,
    pub operations_by_stage: Stages,
    pub operations_refinement: u64,
    /// With the engine gibbs.
    pub gibbs: Option<Sampled>,
    /// Predictions; empty where nothing is known.
    pub cores: Vec<OnCore>,
    /// What a stream takes of the processor, if a clock was given.
    pub load: Option<Load>,
    /// The share of samples that are loud, of those the model draws.
    pub loud: Option<f64>,
    pub version: u16,
    pub revision: u16,
    /// What a stream puts out, one after the other.
    pub groups: Vec<&'a str>,
    pub rate: Option<u32>,
    /// How data becomes points.
    pub frame: Option<String>,
    pub provenance: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Stages {
    pub projection: u64,
    pub selection: u64,
    pub posterior: u64,
}

/// What sampling takes, at most.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sampled {
    pub sweeps: u32,
    pub operations: u64,
    pub operations_refinement: u64,
    pub operations_per_sweep: u64,
    pub arena_bytes: usize,
}

impl Sampled {
    fn new(model: &Model<'_, f32>, engine: Engine) -> Option<Self> {
        if model.has_full_slab() || model.shape.kind.is_mixture() {
            return None;
        }
        let settings = match engine {
            Engine::Gibbs(settings) => settings,
            Engine::Truncated => Gibbs::new(model.shape.kind, Gibbs::SWEEPS),
        };
        let operations = |sweeps| model.gibbs_operations(&Gibbs { sweeps, ..settings });
        let sweeps = settings.sweeps;
        let (usual, one_more) = (operations(sweeps), operations(sweeps.saturating_add(1)));
        Some(Self {
            sweeps,
            operations: usual.total(),
            operations_refinement: usual.refinement,
            operations_per_sweep: one_more.total() - usual.total(),
            arena_bytes: gibbs_state_bytes(model.shape),
        })
    }
}

impl Inspect {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        if let Some(model) = file.room()? {
            self.sampling.refuse()?;
            return room::show(&model, self.processor.predict_room(&model)?, &self.model, self.json);
        }
        if let Some(model) = file.spectral()? {
            self.sampling.refuse()?;
            return spectral::show(&model, self.processor.predict_channel(&model)?, &self.model, self.json);
        }
        let blob = file.blob()?;
        let engine = self.sampling.checked(&blob.model(), None)?;
        let cores = self.processor.predict(&blob, engine)?;
        let rows = cores.rows();
        let facts = Facts::new(&blob, engine, cores);
        if self.json {
            let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
                Error::run(format_args!("no JSON ({cause})"), self.model.display(), "report this as a bug")
            })?;
            return print(&format!("{text}\n"));
        }
        print(&facts.table(&self.model.display().to_string(), rows))
    }
}

impl<'a> Facts<'a> {
    pub fn new(blob: &Blob<'a>, engine: Engine, cores: Cores) -> Self {
        let model = blob.model();
        let (shape, operations) = (model.shape, model.operations());
        Self {
            kind: names::kind(blob.kind()),
            dims: shape.dims,
            latents: shape.latents,
            selected: shape.selected,
            max_active: shape.max_active,
            singletons: shape.singletons,
            states: shape.states(),
            encoding: names::encoding(&model),
            arithmetic: if model.fixed.is_some() { "integers" } else { "floats" },
            noise: names::noise(&model),
            slab: names::slab(blob.slab()),
            selection: names::selection(&model),
            state_source: names::states(&model),
            gram_stored: model.gram.is_some(),
            blob_bytes: blob.byte_len(),
            arena_bytes: arena_bytes(shape),
            features: Features::of(&model)
                .with(Features::GIBBS, matches!(engine, Engine::Gibbs(_)))
                .names()
                .collect(),
            stream_bytes: Some(stream_bytes(blob)).filter(|&bytes| bytes > 0),
            operations: operations.total(),
            operations_by_stage: Stages {
                projection: operations.projection,
                selection: operations.selection,
                posterior: operations.posterior,
            },
            operations_refinement: operations.refinement,
            gibbs: Sampled::new(&model, engine),
            cores: cores.on_core,
            load: cores.load,
            loud: cores.loud,
            version: VERSION,
            revision: blob.revision(),
            groups: names::groups(&blob.groups()),
            rate: blob.frame().map(|frame| frame.rate).filter(|&rate| rate > 0),
            frame: blob.frame().map(|frame| names::frame(&frame)),
            provenance: blob.provenance(),
        }
    }

    fn points_are(&self) -> String {
        let frame = self.frame.as_deref().unwrap_or("not known");
        self.rate.map_or(frame.into(), |rate| format!("{frame}, {rate} a second"))
    }

    fn sources(&self) -> String {
        let names: Vec<String> = self.groups.iter().map(|name| printable(name)).collect();
        match names.len() {
            0 => "without names".into(),
            _ => names.join(", "),
        }
    }

    fn table(&self, name: &str, cores: Vec<(&'static str, String)>) -> String {
        let yes = |flag: bool| if flag { "yes" } else { "no" };
        let stages = &self.operations_by_stage;
        let rows = [
            ("model", format!("{} {name}", self.kind)),
            ("dimensions D", self.dims.to_string()),
            ("latents H", self.latents.to_string()),
            ("selected H'", format!("{} ({} score)", self.selected, self.selection)),
            ("most on at once", self.max_active.to_string()),
            (
                "states per sample",
                format!("{} (singletons of all latents: {})", self.states, yes(self.singletons)),
            ),
            ("noise, slab", format!("{}, {}", self.noise, self.slab)),
            ("encoding", format!("{}, inferred in {}", self.encoding, self.arithmetic)),
            ("flash", format!("{} bytes (Gram matrix stored: {})", self.blob_bytes, yes(self.gram_stored))),
            (
                "RAM",
                match self.stream_bytes {
                    Some(bytes) => format!("{} bytes, {bytes} for a stream", self.arena_bytes),
                    None => format!("{} bytes", self.arena_bytes),
                },
            ),
            ("features", self.features.join(", ")),
            ("multiply-adds", format!("{} per sample", self.operations)),
            ("  projection", stages.projection.to_string()),
            ("  selection", stages.selection.to_string()),
            ("  posterior", stages.posterior.to_string()),
            ("  loud samples", format!("{} more", self.operations_refinement)),
            (
                "sampled",
                self.gibbs.map_or("not possible for this model".into(), |gibbs| {
                    format!(
                        "{} multiply-adds with {} sweeps, {} a sweep; RAM {} bytes",
                        gibbs.operations, gibbs.sweeps, gibbs.operations_per_sweep, gibbs.arena_bytes
                    )
                }),
            ),
        ];
        let last = [
            ("points are", self.points_are()),
            ("sources", self.sources()),
            ("blob format", format!("version {}, revision {}", self.version, self.revision)),
            ("provenance", printable(self.provenance)),
        ];
        let could_be_fixed = self.kind == "gsc"
            && self.encoding == "f32"
            && self.max_active <= 3
            && self.selected <= 10
            && self.selection == "singleton"
            && self.state_source == "subsets";
        let note = could_be_fixed.then(|| {
            (
                "no float unit",
                "on a core without one, spikelet quantize --encoding i16 --fixed-point takes far less".into(),
            )
        });
        rows.into_iter()
            .chain(cores)
            .chain(note)
            .chain(last)
            .map(|(key, value)| format!("{key:<18} {value}\n"))
            .collect()
    }
}
