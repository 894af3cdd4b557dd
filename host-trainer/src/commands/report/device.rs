//! What the model costs on a device, and what integers would save and lose.

use super::digits::{bytes, count, fixed, number, percent};
use super::examples::Sample;
use super::page::{escaped, figure, hint, paragraph, section, table};
use crate::Result;
use crate::commands::chosen_states::ChosenStates;
use crate::commands::inspect::Facts;
use crate::commands::model_file::ModelFile;
use crate::commands::output::Progress;
use crate::commands::processor::OnCore;
use crate::commands::quantize::encode;
use spikelet::model::{Dictionary, Width};
use std::path::Path;

/// Flash, RAM and operations.
pub(super) fn cost(facts: &Facts<'_>) -> String {
    let stages = &facts.operations_by_stage;
    let row = |name: &str, value: String, word: &str| vec![name.into(), value, word.into()];
    let mut rows = vec![
        row("Flash", bytes(facts.blob_bytes as u64), "the model itself; the code comes on top"),
        match facts.stream_bytes {
            Some(ram) => row("RAM", bytes(ram as u64), "for each stream, known before anything runs"),
            None => row("RAM", bytes(facts.arena_bytes as u64), "for each state, known before anything runs"),
        },
        row("States", count(facts.states), "looked at for every sample"),
        row("Projection", count(stages.projection), "multiply-adds: the sample times the dictionary"),
        row("Selection", count(stages.selection), "multiply-adds: which latents are worth a closer look"),
        row("Posterior", count(stages.posterior), "multiply-adds: probabilities and strengths"),
        row("All of a sample", count(facts.operations), "multiply-adds, at most"),
        row("Loud sample", count(facts.operations_refinement), "multiply-adds more, far above the noise"),
    ];
    if let Some(gibbs) = facts.gibbs.filter(|gibbs| gibbs.operations != facts.operations) {
        let word = format!("multiply-adds, if it is sampled instead with {} sweeps", gibbs.sweeps);
        rows.push(row("Sampled", count(gibbs.operations), &word));
    }
    let bounds = table(&["", "#", ""], &rows) + &hint("Bounds, the same on every core.");
    section("cost", "Cost on a device", &(bounds + &cores(&facts.cores, "sample")))
}

/// Instructions differ from core to core: a row for each; `unit` is what they are counted of.
pub(super) fn cores(all: &[OnCore], unit: &str) -> String {
    if all.is_empty() {
        return hint("What this model takes on a core was not measured, so there is no prediction.");
    }
    let row = |on: &OnCore| {
        let numbers = [on.instructions, on.instructions_worst].map(count);
        let sizes = [on.flash_bytes, on.arena_bytes, on.stack_bytes as usize].map(|size| bytes(size as u64));
        [vec![on.core.to_string()], numbers.to_vec(), sizes.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let caption = format!(
        "Instructions for an average {unit} that the model draws and for the worst case, an empirical envelope, predicted from measurements \
         on shapes like this one; flash with the code, and the stack."
    );
    figure(&table(&["core", "#instructions", "#worst", "#flash", "#RAM", "#stack"], &rows), &caption)
}

/// Flash of every encoding and, where there is data, what it changes.
pub(super) fn encodings(file: &ModelFile, name: &Path, sample: Option<&Sample>) -> Result<String> {
    let blob = file.blob()?;
    let model = blob.model();
    if matches!(model.dictionary, Dictionary::Integer(_)) {
        let body = paragraph(
            "The model has a dictionary of integers already; what that cost shows beside the one in f32.",
        );
        return Ok(section("integers", "Integers", &body));
    }
    let flash = |length: usize| vec![bytes(length as u64), percent(length as f64 / blob.byte_len() as f64)];
    let blank = || vec!["—".to_string(); if sample.is_some() { 5 } else { 0 }];
    let mut rows = vec![[vec!["f32, this model".to_string()], flash(blob.byte_len()), blank()].concat()];
    let mut refused = String::new();
    let mut progress = Progress::new("report", 2 * sample.map_or(0, Sample::len));
    for (label, width) in [("i16", Width::I16), ("i8", Width::I8)] {
        let encoded = match encode(file, name, Some(width), false, &ChosenStates::default()) {
            Ok(encoded) => encoded,
            Err(error) => {
                refused += &hint(format_args!("{label} is not possible: {}.", escaped(&error.to_string())));
                continue;
            }
        };
        let small = ModelFile::new(format!("{} as {label}", name.display()), &encoded);
        let mut row = [vec![label.to_string()], flash(encoded.len())].concat();
        if let Some(sample) = sample {
            let (before, after) = losses(sample, [file, &small], &mut progress)?;
            rows[0].truncate(row.len());
            rows[0].extend(before);
            row.extend(after);
        }
        rows.push(row);
    }
    let mut head = vec!["dictionary", "#flash", "#of f32"];
    let mut body = paragraph(
        "A dictionary of integers takes less flash and is faster without a float unit. The rounding error becomes part of the \
         noise, so that probabilities stay what they say.",
    );
    match sample {
        Some(sample) => {
            head.extend(["#KL", "#same best state", "#signal over error", "#loss", "#free energy"]);
            let caption = format!(
                "On {}. KL: divergence of the posteriors from those in f32, nats per point. Same best state: part of the points. \
                 Signal over error: of the data against what the model explains. Free energy: change per point, in nats.",
                sample.words()
            );
            body += &figure(&table(&head, &rows), &caption);
        }
        None => {
            body += &table(&head, &rows);
            body += &hint("What the integers lose shows with <code>--data</code>.");
        }
    }
    Ok(section("integers", "Integers", &(body + &refused)))
}

/// KL, agreement, signal over error, loss and change of free energy: of the first model, for which most are nothing, and of
/// the second.
fn losses(
    sample: &Sample,
    files: [&ModelFile; 2],
    progress: &mut Progress,
) -> Result<(Vec<String>, Vec<String>)> {
    let models = [files[0].blob()?.model(), files[1].blob()?.model()];
    let comparison = sample.compare(models, progress)?;
    let db = |value: Option<f64>| value.map_or("—".into(), |db| format!("{} dB", fixed(db, 2)));
    let [before, after] = comparison.free_energy();
    let none = || "—".to_string();
    let first = vec![none(), none(), db(comparison.snr_db()[0]), none(), none()];
    let second = vec![
        number(comparison.kl().max(0.0)),
        percent(comparison.map_agreement()),
        db(comparison.snr_db()[1]),
        comparison.loss_db().map_or("—".into(), |loss| format!("{} dB", fixed(loss, 3))),
        fixed(after - before, 4),
    ];
    Ok((first, second))
}
