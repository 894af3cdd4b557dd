//! A recording through a stream of the core, as a device would run it: one signal for each group of latents.

use spikelet::{Blob, Engine, Error, SpatialModel, SpatialStream, SpectralModel, SpectralStream, Stream};

/// Samples that are processed at a time; the result does not depend on it.
const BLOCK: usize = 4096;

/// One stream from its beginning to its end: sample t of every signal belongs to sample t of `input`, which has `channels`
/// numbers each. `done` hears how many samples went in.
///
/// ```
/// # let blob = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap();
/// use spikelet_trainer::streaming::separate;
/// let sources = separate(blob, &[0.0, 2.0, -3.0, 0.1], 2, |_| {}).unwrap(); // two samples on two sensors
/// assert!(sources[0][0].abs() < 0.1 && (sources[1][0] - 2.0).abs() < 0.1 && (sources[0][1] + 3.0).abs() < 0.1);
/// ```
pub fn separate(
    blob: Blob<'_>,
    input: &[f32],
    channels: usize,
    mut done: impl FnMut(usize),
) -> Result<Vec<Vec<f32>>, Error> {
    let mut memory = vec![0.0; Stream::memory_len(&blob)];
    let mut stream = Stream::new(blob, Engine::of_kind(blob.kind()), &mut memory)?;
    let (groups, latency) = (stream.groups(), stream.latency());
    aligned(input, channels, groups, latency, &mut done, |block, out| stream.process(block, out))
}

/// The same for sources on spaced microphones.
pub fn separate_room(
    model: SpatialModel<'_>,
    input: &[f32],
    mut done: impl FnMut(usize),
) -> Result<Vec<Vec<f32>>, Error> {
    let mut memory = vec![0.0; SpatialStream::memory_len(&model)];
    let mut stream = SpatialStream::new(model, &mut memory)?;
    let (channels, groups, latency) = (stream.channels(), stream.groups(), stream.latency());
    aligned(input, channels, groups, latency, &mut done, |block, out| stream.process(block, out))
}

/// The same for sources in one channel. The level of the recording is measured first, as a device would be told.
pub fn separate_channel(
    model: SpectralModel<'_>,
    input: &[f32],
    reduction: Option<f32>,
    mut done: impl FnMut(usize),
) -> Result<Vec<Vec<f32>>, Error> {
    let mut memory = vec![0.0; SpectralStream::memory_len(&model)];
    let mut stream = SpectralStream::new(model, &mut memory)?;
    // Without an offset, which the stream takes out.
    let mean = |of: &dyn Fn(f64) -> f64| {
        input.iter().map(|&x| of(x.into())).sum::<f64>() / input.len().max(1) as f64
    };
    let offset = mean(&|x| x);
    stream.set_level(mean(&|x| (x - offset) * (x - offset)) as f32);
    if let Some(decibels) = reduction {
        stream.set_reduction(decibels);
    }
    let (channels, groups, latency) = (stream.channels(), stream.groups(), stream.latency());
    aligned(input, channels, groups, latency, &mut done, |block, out| stream.process(block, out))
}

/// What was found in one frame of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Of the middle of the frame.
    pub seconds: f64,
    /// The probability of each source to be heard.
    pub activities: Vec<f32>,
    /// How badly the model explains the last frames.
    pub score: f32,
}

/// Which sources are to be heard, frame after frame. As on a device, where the level of the input is not known before.
pub fn events(model: SpectralModel<'_>, input: &[f32], rate: u32) -> Result<Vec<Event>, Error> {
    let mut memory = vec![0.0; SpectralStream::memory_len(&model)];
    let mut stream = SpectralStream::new(model, &mut memory)?;
    let (hop, groups) = (stream.hop(), stream.groups());
    let (mut out, mut found) = (vec![0.0; hop * groups], Vec::new());
    for (number, block) in input.chunks_exact(hop).enumerate() {
        stream.process(block, &mut out)?;
        // Frames at the beginning reach into the silence before it.
        let end = (number + 1) * hop;
        if end >= model.length() {
            let activities = (0..groups).map(|group| stream.activity(group)).collect();
            let seconds = (end as f64 - model.length() as f64 / 2.0) / f64::from(rate.max(1));
            found.push(Event { seconds, activities, score: stream.score() });
        }
    }
    Ok(found)
}

/// Runs all of `input` through `process` block by block, then silence until the last sample has come out; drops the latency.
fn aligned(
    input: &[f32],
    channels: usize,
    groups: usize,
    latency: usize,
    done: &mut dyn FnMut(usize),
    mut process: impl FnMut(&[f32], &mut [f32]) -> Result<(), Error>,
) -> Result<Vec<Vec<f32>>, Error> {
    let samples = input.len() / channels;
    let (mut out, silence) = (vec![0.0; BLOCK * groups], vec![0.0; latency * channels]);
    let (mut signals, mut number) = (vec![Vec::with_capacity(samples); groups], 0);
    for (part, count) in [(input, 1), (&silence, 0)] {
        for block in part.chunks(BLOCK * channels) {
            let len = block.len() / channels;
            let out = &mut out[..len * groups];
            process(block, out)?;
            for parts in out.chunks_exact(groups).skip(latency.saturating_sub(number)) {
                signals.iter_mut().zip(parts).for_each(|(signal, &part)| signal.push(part));
            }
            number += len;
            done(count * len);
        }
    }
    Ok(signals)
}
