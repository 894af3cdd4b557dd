//! What a model of sources in one channel is, and what it costs.

use crate::commands::model_file::names;
use crate::commands::output::{counted, print, printable};
use crate::commands::processor::{Cores, Load, OnCore};
use crate::{Error, Result};
use serde::Serialize;
use spikelet::SpectralModel;
use spikelet::blob::VERSION;
use spikelet::spectral::stream_bytes;
use std::path::Path;

/// Latents of each group whose states are looked at, by the number of groups: see `spikelet::spectral`.
const KEPT: [usize; 5] = [1, 8, 8, 5, 3];
/// Backgrounds that latents are tried beside.
const BACKGROUNDS: usize = 3;
/// States that masks are made of.
const PICKS: usize = 8;

/// The JSON object; names as for other kinds.
#[derive(Debug, Serialize)]
struct Facts<'a> {
    kind: &'static str,
    dims: usize,
    latents: usize,
    /// Of each source.
    latents_by_source: Vec<usize>,
    /// Levels that are tracked.
    levels: usize,
    states: usize,
    encoding: &'static str,
    blob_bytes: usize,
    /// RAM of a stream, which is the only way to run it.
    arena_bytes: usize,
    stream_bytes: usize,
    features: [&'static str; 1],
    /// Operations per sample, on average.
    operations: u64,
    /// Operations of a hop, which come at once.
    operations_per_hop: u64,
    /// Instructions are those of a hop.
    cores: Vec<OnCore>,
    load: Option<Load>,
    /// The smallest rate of false alarms that a threshold is known for.
    calibrated_to: Option<f32>,
    latency: usize,
    hop: usize,
    version: u16,
    groups: Vec<&'a str>,
    rate: Option<u32>,
    frame: String,
    provenance: &'a str,
}

/// What is counted in a frame.
struct Work {
    /// Comparisons of a band with a latent beside one background.
    bands: u64,
    /// Entries of masks.
    masks: u64,
    /// Multiply-adds of transforms and windows.
    transforms: u64,
    /// Logarithms and powers.
    functions: u64,
}

impl Work {
    fn of(model: &SpectralModel<'_>) -> Self {
        let (groups, filters, dims, length) = (model.count(), model.filters(), model.dims(), model.length());
        let kept = KEPT[groups.min(KEPT.len() - 1)];
        let others = kept.pow(groups.saturating_sub(1) as u32).next_multiple_of(BACKGROUNDS);
        let first = model.source(0).map_or(0, |source| source.0);
        let alone = model.latents() - first;
        let transform = 4 * (length / 2) * (length / 2).ilog2() as usize / 2 + 4 * length;
        Self {
            bands: (dims * (filters * (BACKGROUNDS * model.latents() + others * kept) + alone)) as u64,
            masks: (filters * PICKS * model.mask_len() * groups.saturating_sub(1)) as u64,
            transforms: ((1 + groups) * transform) as u64,
            functions: (filters * (model.latents() + others * kept) + dims) as u64,
        }
    }

    fn operations(&self) -> u64 {
        2 * self.bands + 5 * self.masks + self.transforms + 10 * self.functions
    }
}

/// Prints it.
pub(super) fn show(model: &SpectralModel<'_>, cores: Cores, path: &Path, as_json: bool) -> Result<()> {
    let work = Work::of(model);
    let rate = Some(model.rate()).filter(|&rate| rate > 0);
    let kept = KEPT[model.count().min(KEPT.len() - 1)];
    let on_cores = cores.rows();
    let facts = Facts {
        kind: "spectral",
        dims: model.dims(),
        latents: model.latents(),
        latents_by_source: (0..model.count()).filter_map(|group| Some(model.source(group)?.0)).collect(),
        levels: model.filters(),
        states: kept.pow(model.count() as u32),
        encoding: if model.is_integer() { "i8" } else { "f32" },
        blob_bytes: model.byte_len(),
        arena_bytes: stream_bytes(model),
        stream_bytes: stream_bytes(model),
        features: ["spectral"],
        operations: work.operations().div_ceil(model.hop() as u64),
        operations_per_hop: work.operations(),
        cores: cores.on_core,
        load: cores.load,
        calibrated_to: model.normal().as_chunks::<2>().0.last().map(|pair| pair[0]),
        latency: model.length() - 1,
        hop: model.hop(),
        version: VERSION,
        groups: names::groups(&model.groups()),
        rate,
        frame: format!("Fourier frames of {} samples every {}", model.length(), model.hop()),
        provenance: model.provenance(),
    };
    if as_json {
        let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
            Error::run(format_args!("no JSON ({cause})"), path.display(), "report this as a bug")
        })?;
        return print(&format!("{text}\n"));
    }
    let second = rate.map_or(String::new(), |rate| format!(", {rate} a second"));
    let late = rate.map_or(String::new(), |rate| {
        format!(" ({:.0} ms)", 1000.0 * facts.latency as f64 / f64::from(rate))
    });
    let sources = facts.latents_by_source.iter().enumerate().map(|(k, latents)| {
        format!("{} ({latents} latents)", facts.groups.get(k).copied().unwrap_or("one, without a name"))
    });
    let first = [
        ("model", format!("spectral {}", path.display())),
        ("bands D", facts.dims.to_string()),
        ("sources", sources.collect::<Vec<_>>().join(", ")),
        ("levels tracked", facts.levels.to_string()),
        ("states per frame", format!("{} for each level", facts.states)),
        ("encoding", facts.encoding.to_owned()),
        ("flash", format!("{} bytes", facts.blob_bytes)),
        ("RAM", format!("{} bytes for a stream", facts.stream_bytes)),
        ("features", facts.features.join(", ")),
        (
            "operations",
            format!("{} per sample, {} at once per hop", facts.operations, facts.operations_per_hop),
        ),
        ("a hop", format!("{} samples, with this many instructions at once:", facts.hop)),
    ];
    let last = [
        ("latency", counted(facts.latency, "sample") + &late),
        ("points are", facts.frame.clone() + &second),
        (
            "usual scores",
            match facts.calibrated_to {
                Some(rate) => format!("known for rates of false alarms down to {rate}"),
                None => "not known; see `spikelet eval --calibrate`".into(),
            },
        ),
        ("blob format", format!("version {VERSION}")),
        ("provenance", printable(facts.provenance)),
    ];
    let rows = first.iter().chain(&on_cores).chain(&last);
    print(&rows.map(|(key, value)| format!("{key:<18} {value}\n")).collect::<String>())
}
