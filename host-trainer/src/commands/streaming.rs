//! A recording from a file through a stream.

use super::model_file::same_dims;
use super::output::Progress;
use crate::data::Source;
use crate::{Error, Result, streaming};
use spikelet::frame::Form;
use spikelet::{Blob, SpectralModel};
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

/// A recording of one channel, or each channel of one by itself, through a model of sources in one channel.
pub(super) fn separate_channels(
    model: SpectralModel<'_>,
    recording: &Path,
    reduction: Option<f32>,
) -> Result<Separated> {
    let mut source = Source::open(recording)?;
    let Some(rate) = source.rate() else {
        return Err(Error::input("this is no recording", recording.display(), "give a .wav"));
    };
    if model.count() < 2 {
        let advice = "put it together with another by `spikelet merge`";
        return Err(Error::input("the model knows one source only", "the model", advice));
    }
    if model.rate() != rate {
        let what = format!("{rate} samples per second, the model was learned at {}", model.rate());
        return Err(Error::input(what, recording.display(), "resample it"));
    }
    let (mut values, samples, channels) = (Vec::new(), source.points(), source.dims());
    source.read_chunk(0, samples, &mut values)?;
    let mut signals = vec![vec![0.0; samples * channels]; model.count()];
    let mut progress = Progress::new("separate", samples * channels);
    for channel in 0..channels {
        let input: Vec<f32> = values.iter().skip(channel).step_by(channels).map(|&y| y as f32).collect();
        let parts = streaming::separate_channel(model, &input, reduction, |done| progress.advance(done))
            .map_err(|error| Error::input(error, recording.display(), "check the model and the recording"))?;
        for (signal, part) in signals.iter_mut().zip(parts) {
            let places = signal.iter_mut().skip(channel).step_by(channels);
            places.zip(part).for_each(|(place, x)| *place = x);
        }
    }
    Ok(Separated { signals, channels, rate })
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
    if let Some(known) = frame.map(|frame| frame.rate).filter(|&known| known != 0 && known != rate) {
        eprintln!(
            "warning: {} has {rate} samples per second, the model was learned at {known}: resample it if \
             sources come out badly",
            recording.display()
        );
    }
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
