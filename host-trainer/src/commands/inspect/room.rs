//! What a spatial model is, and what it costs.

use crate::commands::model_file::names;
use crate::commands::output::{counted, print, printable};
use crate::commands::processor::{Cores, Load, OnCore};
use crate::{Error, Result};
use serde::Serialize;
use spikelet::SpatialModel;
use spikelet::blob::VERSION;
use spikelet::spatial::stream_bytes;
use std::path::Path;

/// The JSON object; names as for other kinds.
#[derive(Debug, Serialize)]
struct Facts<'a> {
    kind: &'static str,
    dims: usize,
    latents: usize,
    states: usize,
    encoding: &'static str,
    blob_bytes: usize,
    /// RAM of a stream, which is the only way to run it.
    arena_bytes: usize,
    stream_bytes: usize,
    features: [&'static str; 1],
    /// Instructions are those of a hop.
    cores: Vec<OnCore>,
    load: Option<Load>,
    latency: usize,
    hop: usize,
    microphone: usize,
    /// How fast parameters follow sources that move.
    following: Option<f32>,
    version: u16,
    groups: Vec<&'a str>,
    rate: Option<u32>,
    frame: String,
    provenance: &'a str,
}

fn moved(rate: f32) -> String {
    format!("sources that move slowly, at a rate of {rate}")
}

/// Prints it.
pub(super) fn show(model: &SpatialModel<'_>, cores: Cores, path: &Path, as_json: bool) -> Result<()> {
    let on_cores = cores.rows();
    let facts = Facts {
        kind: "spatial",
        dims: model.microphones(),
        latents: model.sources(),
        states: 1 << model.sources(),
        encoding: if model.is_integer() { "i16" } else { "f32" },
        blob_bytes: model.byte_len(),
        arena_bytes: stream_bytes(model),
        stream_bytes: stream_bytes(model),
        features: [if model.following().is_some() { "following" } else { "spatial" }],
        cores: cores.on_core,
        load: cores.load,
        latency: model.length() - 1,
        hop: model.hop(),
        microphone: model.constants().microphone,
        following: model.following(),
        version: VERSION,
        groups: names::groups(&model.groups()),
        rate: Some(model.rate()).filter(|&rate| rate > 0),
        frame: format!("Fourier frames of {} samples every {}", model.length(), model.hop()),
        provenance: model.provenance(),
    };
    if as_json {
        let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
            Error::run(format_args!("no JSON ({cause})"), path.display(), "report this as a bug")
        })?;
        return print(&format!("{text}\n"));
    }
    let rate = facts.rate.map_or(String::new(), |rate| format!(", {rate} a second"));
    let late = facts.rate.map_or(String::new(), |rate| {
        format!(" ({:.0} ms)", 1000.0 * facts.latency as f64 / f64::from(rate))
    });
    let first = [
        ("model", format!("spatial {}", path.display())),
        ("microphones D", facts.dims.to_string()),
        ("sources H", format!("{}, as microphone {} hears them", facts.latents, facts.microphone + 1)),
        ("follows", facts.following.map_or("nothing: sources stay where they are".into(), moved)),
        ("states per bin", facts.states.to_string()),
        ("encoding", format!("{}, inferred in floats", facts.encoding)),
        ("flash", format!("{} bytes", facts.blob_bytes)),
        ("RAM", format!("{} bytes for a stream", facts.stream_bytes)),
        ("features", facts.features.join(", ")),
        ("a hop", format!("{} samples, with this many instructions at once:", facts.hop)),
    ];
    let last = [
        ("latency", counted(facts.latency, "sample") + &late),
        ("points are", facts.frame.clone() + &rate),
        ("blob format", format!("version {VERSION}")),
        ("provenance", printable(facts.provenance)),
    ];
    let rows = first.iter().chain(&on_cores).chain(&last);
    print(&rows.map(|(key, value)| format!("{key:<18} {value}\n")).collect::<String>())
}
