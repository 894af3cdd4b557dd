//! Which sources are to be heard in every frame of a recording, by a model of one channel.

use crate::commands::model_file::warn_unless_at;
use crate::commands::output::{Folder, counted, print, refuse_overwriting};
use crate::data::Source;
use crate::streaming::{Event, events};
use crate::{Error, Result};
use spikelet::SpectralModel;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// What is written.
const NAME: &str = "events.csv";

/// Infers all of a recording, and writes a table.
pub(super) fn write(model: SpectralModel<'_>, name: &Path, recording: &Path, out_dir: &Path) -> Result<()> {
    let events = of_recording(model, recording)?;
    let folder = Folder::create(out_dir)?;
    refuse_overwriting(&folder.file(NAME), &[name, recording])?;
    let groups = model.groups();
    // Quoted: a name may have a comma.
    let quoted = |group: usize| match groups.name(group) {
        "" => format!("source {group}"),
        name => name.replace('"', "'"),
    };
    let names: Vec<String> = (0..model.count()).map(quoted).collect();
    let mut text = String::from("seconds");
    for name in &names {
        let _ = write!(text, ",\"{name}\""); // a String takes everything
    }
    text += if model.normal().is_empty() { ",score\n" } else { ",score,rate\n" };
    for event in &events {
        let _ = write!(text, "{:.4}", event.seconds);
        for activity in &event.activities {
            let _ = write!(text, ",{activity:.4}");
        }
        let _ = write!(text, ",{:.3}", event.score);
        if !model.normal().is_empty() {
            let _ = write!(text, ",{}", model.rate_above(event.score));
        }
        text.push('\n');
    }
    folder.write_together(&[NAME], |writers| {
        let fail = |cause| Error::writing(&folder.file(NAME), &cause);
        writers.iter_mut().try_for_each(|writer| writer.write_all(text.as_bytes()).map_err(fail))
    })?;
    let mut text = format!("{}: {}\n", folder.file(NAME).display(), counted(events.len(), "frame"));
    for (group, name) in names.iter().enumerate() {
        let on = events.iter().filter(|event| event.activities[group] > 0.5).count();
        let _ = writeln!(
            text,
            "{name:<18} heard in {:.1} % of the frames",
            100.0 * on as f64 / events.len().max(1) as f64
        );
    }
    print(&text)
}

/// Of a recording of one channel.
pub(in crate::commands) fn of_recording(model: SpectralModel<'_>, recording: &Path) -> Result<Vec<Event>> {
    let mut source = Source::open(recording)?;
    if source.rate().is_none() || source.dims() != 1 {
        let what = "this is no recording of one channel";
        return Err(Error::input(what, recording.display(), "give a .wav of one channel"));
    }
    warn_unless_at(&source, model.rate());
    let (mut values, samples) = (Vec::new(), source.points());
    source.read_chunk(0, samples, &mut values)?;
    let input: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let rate = source.rate().unwrap_or(1);
    events(model, &input, rate)
        .map_err(|error| Error::input(error, recording.display(), "check the model and the recording"))
}
