//! A recording from a file through a stream.

use super::model_file::{Separator, same_dims, warn_of_rate, warn_unless_at};
use super::output::{Progress, counted};
use crate::data::Source;
use crate::files::ending;
use crate::{Error, Result, streaming};
use spikelet::frame::Form;
use spikelet::{Blob, SpatialModel, SpectralModel};
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

/// All of a recording; sample t of every signal belongs to sample t of it. `reduction` is for models of spectra.
pub(super) fn separate(
    model: Separator<'_>,
    name: &Path,
    recording: &Path,
    reduction: Option<f32>,
) -> Result<Separated> {
    match model {
        Separator::Points(blob) => points(blob, name, recording),
        Separator::Room(model) => room(model, name, recording),
        Separator::Spectral(model) => channels(model, name, recording, reduction),
    }
}

/// By a model of points.
fn points(blob: Blob<'_>, model: &Path, recording: &Path) -> Result<Separated> {
    let source = Recording::open(recording)?;
    let by_channel = matches!(blob.frame().map(|frame| frame.form), Some(Form::Windows { .. }));
    if !by_channel {
        same_dims(&source.0, &blob.model(), model)?;
    }
    warn_of_rate(&source.0, &blob);
    source.separate(by_channel, blob.groups().len(), |input, width, done| {
        streaming::separate(blob, input, width, done)
    })
}

/// By a model of sources on spaced microphones.
fn room(model: SpatialModel<'_>, name: &Path, recording: &Path) -> Result<Separated> {
    let source = Recording::open(recording)?;
    if source.0.dims() != model.microphones() {
        let (found, expected) = (counted(source.0.dims(), "channel"), model.microphones());
        let what = format!("the recording has {found}, the model is for {expected}");
        let place = format!("{} and {}", recording.display(), name.display());
        let advice = "give a recording of the microphones that it was learned from";
        return Err(Error::input(what, place, advice));
    }
    warn_unless_at(&source.0, model.rate());
    source
        .separate(false, model.groups().len(), |input, _, done| streaming::separate_room(model, input, done))
}

/// By a model of sources in one channel, each channel of the recording by itself.
pub(super) fn channels(
    model: SpectralModel<'_>,
    name: &Path,
    recording: &Path,
    reduction: Option<f32>,
) -> Result<Separated> {
    let source = Recording::open(recording)?;
    if model.count() < 2 {
        let advice = "put it together with another by `spikelet merge`";
        return Err(Error::input("the model knows one source only", name.display(), advice));
    }
    warn_unless_at(&source.0, model.rate());
    source.separate(true, model.count(), |input, _, done| {
        streaming::separate_channel(model, input, reduction, done)
    })
}

/// A file that has a rate.
struct Recording(Source, u32);

impl Recording {
    fn open(path: &Path) -> Result<Self> {
        let refuse = || Error::input("this is no recording", path.display(), "give a .wav");
        if ending(path).as_deref() == Some("png") {
            return Err(refuse());
        }
        let source = Source::open(path)?;
        let rate = source.rate().ok_or_else(refuse)?;
        Ok(Self(source, rate))
    }

    /// All channels at once or one by one through `run`, which gets samples, their channels and whom to tell how many are done.
    fn separate(
        self,
        by_channel: bool,
        groups: usize,
        mut run: impl FnMut(&[f32], usize, &mut dyn FnMut(usize)) -> Result<Vec<Vec<f32>>, spikelet::Error>,
    ) -> Result<Separated> {
        let Self(mut source, rate) = self;
        let (mut values, samples) = (Vec::new(), source.points());
        source.read_chunk(0, samples, &mut values)?;
        let (channels, width) = if by_channel { (source.dims(), 1) } else { (1, source.dims()) };
        let mut signals = vec![vec![0.0; samples * channels]; groups];
        let mut progress = Progress::new("separate", samples * channels);
        for channel in 0..channels {
            let input: Vec<f32> = match by_channel {
                true => values.iter().skip(channel).step_by(channels).map(|&y| y as f32).collect(),
                false => std::mem::take(&mut values).into_iter().map(|y| y as f32).collect(),
            };
            let parts = run(&input, width, &mut |done| progress.advance(done)).map_err(|error| {
                Error::input(error, source.path().display(), "check the model and the recording")
            })?;
            for (signal, part) in signals.iter_mut().zip(parts) {
                let places = signal.iter_mut().skip(channel).step_by(channels);
                places.zip(part).for_each(|(place, x)| *place = x);
            }
        }
        Ok(Separated { signals, channels, rate })
    }
}
