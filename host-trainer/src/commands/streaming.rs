//! A recording through a stream of the core, as a device would run it: one signal for each group of latents.

use super::model_file::same_dims;
use super::output::Progress;
use crate::data::Source;
use crate::{Error, Result};
use spikelet::frame::Form;
use spikelet::{Blob, Engine, Stream};
use std::path::Path;

/// Samples that are processed at a time; the result does not depend on it.
const BLOCK: usize = 4096;

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
        let place = |sample: usize| sample * channels + channel;
        run(blob, &input, width, &mut signals, place, |done| progress.advance(done))
            .map_err(|error| Error::input(error, recording.display(), "check the model and the recording"))?;
    }
    Ok(Separated { signals, channels, rate })
}

/// One stream from its beginning to its end; `place` says where in a signal a sample goes.
fn run(
    blob: Blob<'_>,
    input: &[f32],
    width: usize,
    signals: &mut [Vec<f32>],
    place: impl Fn(usize) -> usize,
    mut done: impl FnMut(usize),
) -> Result<(), spikelet::Error> {
    let mut memory = vec![0.0; Stream::memory_len(&blob)];
    let mut stream = Stream::new(blob, Engine::of_kind(blob.kind()), &mut memory)?;
    let (groups, latency, samples) = (stream.groups(), stream.latency(), input.len() / width);
    let mut out = vec![0.0; BLOCK * groups];
    let silence = vec![0.0; latency * width];
    let mut number = 0;
    for part in [input, &silence] {
        for block in part.chunks(BLOCK * width) {
            let count = block.len() / width;
            let out = &mut out[..count * groups];
            stream.process(block, out)?;
            for (sample, parts) in (number..).zip(out.chunks_exact(groups)) {
                if (latency..latency + samples).contains(&sample) {
                    let at = place(sample - latency);
                    signals.iter_mut().zip(parts).for_each(|(signal, &part)| signal[at] = part);
                }
            }
            number += count;
            done(if number <= samples { count } else { 0 });
        }
    }
    Ok(())
}
