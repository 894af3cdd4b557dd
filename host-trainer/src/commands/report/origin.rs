//! The head of the page, what the model is in plain words, and how it was made.

use super::description::{Description, Look, Run};
use super::digits::{bytes, count, fixed, number};
use super::page::{escaped, facts, hint, note, paragraph, section, table};
use super::{sparsity, strength, training};
use crate::commands::inspect::Facts;
use crate::parameters::ModelKind;
use serde_json::Value;
use std::path::Path;

/// Warnings that are shown.
const MOST_WARNINGS: usize = 50;

/// Title, sentence, key figures. `blob` is what is known of the model file, if it is there.
pub(super) fn head(told: &Description, name: &str, blob: Option<&Facts<'_>>) -> String {
    let parameters = &told.parameters;
    let kind = parameters.kind;
    let mut figures = vec![
        ("dimensions D", count(parameters.dims as u64), shape(told)),
        ("latents H", count(parameters.latents as u64), "that can be on".into()),
        ("on at a time", fixed(sparsity::mean_on(told), 2), "latents, on average".into()),
        ("noise", number(mean_noise(told)), "standard deviation".into()),
    ];
    if let Some(db) = strength::signal_over_noise_db(parameters) {
        figures.push(("signal over noise", format!("{} dB", fixed(db, 1)), "by the model".into()));
    }
    if let Some(last) = training::last(&told.run) {
        figures.push(("free energy", fixed(last, 3), training::unit(&told.run).into()));
    }
    if let Some(points) = told.run.points {
        figures.push(("learned from", count(points), "points".into()));
    }
    if let Some(blob) = blob {
        figures.push(("flash", bytes(blob.blob_bytes as u64), format!("{} dictionary", blob.encoding)));
        let (ram, of_what) =
            blob.stream_bytes.map_or((blob.arena_bytes, "per state"), |bytes| (bytes, "per stream"));
        figures.push(("RAM", bytes(ram as u64), of_what.into()));
        figures.push(("work", count(blob.operations), "multiply-adds a sample, at most".into()));
    }
    format!(
        "<header>\n<p class=\"over\">Spikelet model report · {}</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}</header>\n",
        full_name(kind),
        escaped(name),
        sentence(told),
        facts(&figures)
    )
}

fn full_name(kind: ModelKind) -> &'static str {
    match kind {
        ModelKind::Gsc => "spike-and-slab sparse coding (gsc)",
        ModelKind::Bsc => "binary sparse coding (bsc)",
        ModelKind::Nmf => "binary sparse coding without negative parts (nmf)",
        ModelKind::Mca => "maximal causes (mca)",
        ModelKind::Ssmca => "spike-and-slab maximal causes (ssmca)",
        ModelKind::Gmm => "a Gaussian mixture (gmm)",
    }
}

fn shape(told: &Description) -> String {
    match told.look {
        Look::Direction => "numbers of a sample".into(),
        Look::Waveform => "samples of a window".into(),
        Look::Picture { width, height } => format!("{width} × {height} pixels"),
    }
}

/// For somebody who has never heard of such models.
fn sentence(told: &Description) -> String {
    let (sample, part) = match told.look {
        Look::Direction => ("sample", "sources"),
        Look::Waveform => ("window of the recording", "waveforms"),
        Look::Picture { .. } => ("patch of the picture", "small pictures"),
    };
    let latents = count(told.parameters.latents as u64);
    let many = if told.parameters.latents == 1 { "one".into() } else { format!("a few out of {latents}") };
    let how = match told.parameters.kind {
        ModelKind::Gsc => {
            format!(
                "the sum of {many} learned {part}, each at its own strength, and noise. What is off adds nothing"
            )
        }
        ModelKind::Bsc => format!("the sum of {many} learned {part}, each of them just on or off, and noise"),
        ModelKind::Nmf => {
            format!(
                "the sum of {many} learned {part} without negative parts, each of them just on or off, and noise"
            )
        }
        ModelKind::Mca => {
            format!(
                "made by {many} learned {part} that are on: in each place the strongest shows and masks the others. Noise is added"
            )
        }
        ModelKind::Ssmca => format!(
            "made by {many} learned {part}, each at its own strength: in each place the strongest shows and masks the others. Noise is added"
        ),
        ModelKind::Gmm => format!("one of {latents} learned {part}, and noise"),
    };
    let says = match told.parameters.kind.kind().has_slab() {
        _ if told.parameters.kind == ModelKind::Gmm => "which one it is, and how sure that is",
        true => "which are on, how strong they are, and how sure that is",
        false => "which are on, and how sure that is",
    };
    format!("This model takes every {sample} as {how}. Given one, it says {says}.")
}

fn mean_noise(told: &Description) -> f64 {
    let variances = told.parameters.noise_variances();
    (variances.iter().sum::<f64>() / variances.len() as f64).sqrt()
}

/// Settings, provenance, time and version.
pub(super) fn html(told: &Description, json: &Path, blob: Option<&Facts<'_>>) -> String {
    let mut rows = vec![("description", json.display().to_string())];
    if let Some(blob) = blob {
        rows.push(("provenance", blob.provenance.into()));
        rows.push(("points are", blob.frame.clone().unwrap_or("single samples or rows".into())));
        rows.push(("blob format", format!("version {}, revision {}", blob.version, blob.revision)));
    }
    made(&rows, Some(&told.run))
}

/// The same of any model: what is known of it by names, and of its training if there is anything.
pub(super) fn made(known: &[(&str, String)], run: Option<&Run>) -> String {
    let mut rows: Vec<Vec<String>> =
        known.iter().map(|(name, value)| vec![(*name).to_owned(), escaped(value)]).collect();
    let Some(run) = run else { return section("made", "How it was made", &table(&["", ""], &rows)) };
    let mut row = |name: &str, value: String| rows.push(vec![name.to_string(), value]);
    row("spikelet", if run.version.is_empty() { "not known".into() } else { escaped(&run.version) });
    if let Some(step) = run.history.last() {
        let each = step.seconds / run.history.len().max(1) as f64;
        row("time", format!("{} s for this start, {} s an iteration", number(step.seconds), number(each)));
    }
    let made = table(&["", ""], &rows);
    let settings: String = run
        .settings
        .iter()
        .map(|(name, value)| {
            // As the flag counts them.
            let counted = value.as_u64().filter(|_| name == "microphone").map(|number| count(number + 1));
            let value = counted.unwrap_or_else(|| setting(value));
            format!("<div><dt>{}</dt><dd>{value}</dd></div>\n", escaped(&name.replace('_', " ")))
        })
        .collect();
    let body =
        format!("{}{made}<h3>Settings</h3>\n<dl class=\"settings\">\n{settings}</dl>\n", warnings(run));
    section("made", "How it was made", &body)
}

/// A value of the settings as text.
fn setting(value: &Value) -> String {
    match value {
        Value::Null => "default".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => count(whole),
            None => number.as_f64().map_or_else(|| escaped(&number.to_string()), |value| value.to_string()),
        },
        Value::String(text) => escaped(text),
        Value::Array(values) if values.is_empty() => "none".into(),
        Value::Array(values) => values.iter().take(20).map(setting).collect::<Vec<_>>().join(", "),
        Value::Object(_) => escaped(&value.to_string()),
    }
}

/// The same text with flags that are not broken across lines.
fn flags(html: &str) -> String {
    let word = |word: &str| match word.starts_with("--") {
        true => format!("<span class=\"flag\">{word}</span>"),
        false => word.to_owned(),
    };
    html.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn warnings(run: &Run) -> String {
    let shown = run.warnings.iter().take(MOST_WARNINGS);
    let mut html: String =
        shown.map(|text| note(format_args!("Warning: {}", flags(&escaped(text))))).collect();
    if run.warnings.len() > MOST_WARNINGS {
        let rest = run.warnings.len() - MOST_WARNINGS;
        html += &hint(format_args!("{} more warnings are in the description.", count(rest as u64)));
    }
    if run.warnings.is_empty() {
        html = paragraph("Training gave no warning.");
    }
    html
}
