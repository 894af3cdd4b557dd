//! A recording from a file through a stream.

use super::model_file::{same_dims, warn_of_rate, warn_unless_at};
use super::output::{Progress, counted};
use crate::data::Source;
use crate::{Error, Result, streaming};
use spikelet::frame::Form;
use spikelet::{Blob, SpatialModel};
use std::path::Path;

/// What came out.
#[derive(Debug)]
pub(super) struct Separated {
    /// One for each group, `channels` interleaved.
    pub signals: Vec<Vec<f32>>,
    /// 1, or those of a recording whose channels went through one by one.
    pub channels: usize,
    /// Samples per second.
    pub rate: u32,
}

/// All of a recording; sample t of every signal belongs to sample t of it.
pub(super) fn separate(blob: Blob<'_>, model: &Path, recording: &Path) -> Result<Separated> {
    let mut source = Source::open(recording)?;
    let Some(rate) = source.rate() else {
        return Err(Error::input("this is no recording", recording.display(), "give a .wav"));
    };
    let frame = blob.frame();
    let by_channel = matches!(frame.map(|frame| frame.form), Some(Form::Windows { .. }));
    if !by_channel {
        same_dims(&source, &blob.model(), model)?;
    }
    warn_of_rate(&source, &blob);
    let (mut values, samples) = (Vec::new(), source.points());
    source.read_chunk(0, samples, &mut values)?;
    let channels = if by_channel { source.dims() } else { 1 };
    let width = if by_channel { 1 } else { source.dims() };
    let mut signals = vec![vec![0.0; samples * channels]; blob.groups().len()];
    let mut progress = Progress::new("separate", samples * channels);
    for channel in 0..channels {
        let input: Vec<f32> = match by_channel {
            true => values.iter().skip(channel).step_by(channels).map(|&y| y as f32).collect(),
            false => values.iter().map(|&y| y as f32).collect(),
        };
        let parts = streaming::separate(blob, &input, width, |done| progress.advance(done))
            .map_err(|error| Error::input(error, recording.display(), "check the model and the recording"))?;
        for (signal, part) in signals.iter_mut().zip(parts) {
            let places = signal.iter_mut().skip(channel).step_by(channels);
            places.zip(part).for_each(|(place, x)| *place = x);
        }
    }
    Ok(Separated { signals, channels, rate })
}

/// The same for sources on spaced microphones.
pub(super) fn room(model: SpatialModel<'_>, name: &Path, recording: &Path) -> Result<Separated> {
    let mut source = Source::open(recording)?;
    let Some(rate) = source.rate() else {
        return Err(Error::input("this is no recording", recording.display(), "give a .wav"));
    };
    if source.dims() != model.microphones() {
        let (found, expected) = (counted(source.dims(), "channel"), model.microphones());
        let what = format!("the recording has {found}, the model is for {expected}");
        let place = format!("{} and {}", recording.display(), name.display());
        let advice = "give a recording of the microphones that it was learned from";
        return Err(Error::input(what, place, advice));
    }
    warn_unless_at(&source, model.rate());
    let (mut values, samples) = (Vec::new(), source.points());
    source.read_chunk(0, samples, &mut values)?;
    let input: Vec<f32> = values.iter().map(|&y| y as f32).collect();
    drop(values);
    let mut progress = Progress::new("separate", samples);
    let signals = streaming::separate_room(model, &input, |done| progress.advance(done))
        .map_err(|error| Error::input(error, recording.display(), "check the model and the recording"))?;
    Ok(Separated { signals, channels: 1, rate })
}
