//! How close models come to sounds that are known.

use crate::Result;
use crate::commands::model_file::ModelFile;
use crate::commands::output::Folder;
use crate::commands::separate::{Matched, Truth};
use crate::commands::streaming;
use crate::data::Points;
use crate::metrics::MAX_DB;

/// A table: a row for each sound, a column for each model, which is given by the head of its column and its file.
pub(super) fn comparison(
    folder: &Folder,
    mixture: &str,
    truths: &[Truth],
    models: &[(&str, &str)],
) -> Result<String> {
    let heard = Points::read(mixture)?;
    let mut columns = vec![truths.iter().map(|truth| truth.closest_channel_db(&heard)).collect::<Vec<f64>>()];
    let mut sizes = Vec::new();
    for (_, name) in models {
        let path = folder.file(name);
        let file = ModelFile::read(&path)?;
        let model = file.separator()?;
        sizes.push(model.byte_len());
        let separated = streaming::separate(model, &path, mixture.as_ref(), None)?;
        let matched = Matched::new(truths, &separated.signals, separated.channels);
        let score = |k: usize| matched.of[k].map_or(-MAX_DB, |signal| matched.score(k, signal));
        columns.push((0..truths.len()).map(score).collect());
    }
    let row = |name: &str, first: &str, others: Vec<String>| {
        let others: String = others.iter().map(|text| format!("{text:>8}")).collect();
        format!("{name:<12}{first:>14}{others}\n")
    };
    let figures = |name: &str, of: &dyn Fn(&Vec<f64>) -> f64| {
        let mut texts = columns.iter().map(|column| format!("{:.1}", of(column)));
        row(name, &texts.next().unwrap_or_default(), texts.collect())
    };
    let heads = models.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut text =
        "\nSeparation in dB (SI-SDR, higher is better):\n".to_owned() + &row("sound", "best single", heads);
    for (k, truth) in truths.iter().enumerate() {
        text += &figures(&truth.name, &|column| column[k]);
    }
    text += &figures("mean", &|column| column.iter().sum::<f64>() / column.len() as f64);
    text += &row("model bytes", "", sizes.iter().map(ToString::to_string).collect());
    Ok(text + "Best single: the microphone that comes closest.\n")
}
