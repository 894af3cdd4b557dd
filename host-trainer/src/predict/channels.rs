//! Instructions of streams of one channel, from counts like those of other models.
//!
//! Most of a frame is the same whatever is heard; what differs is how many latents are left for the next frame, and how many
//! levels have a part in the masks. So several signals are tried: frames that the model draws, a latent of each source at a time,
//! the same louder and softer, noise, tones and silence. The mean is that of the most expensive signal, or of a recording. The
//! worst case has the most of each count among all frames, and masks of all levels: an empirical envelope but for the last, not a
//! bound.

use super::{Core, Prediction, dot, hops};
use crate::Result;
use spikelet::counts::{Count, Counts};
use spikelet::rng::Rng;
use spikelet::spectral::{MASK_BASE, MASK_STEP, stream_bytes};
use spikelet::stft::Stft;
use spikelet::{SpectralModel, SpectralStream};

/// Frames of each signal that is tried.
const FRAMES: usize = 24;
/// States that masks are made of: of the most probable level, and of another.
const PICKS: usize = 8;
const FEW_PICKS: usize = 4;
/// Predictions are this much above what weights say: more than any model that was measured took beyond that (`tests/cost --predict`).
/// The Cortex-M0 has no float unit and room for the smallest models only, whose weights know it less well.
pub fn room(core: Core) -> f64 {
    if core.name == "cortex-m0" { 1.25 } else { 1.06 }
}

/// Counts of every hop of a signal.
pub fn count_hops(model: &SpectralModel<'_>, signal: &[f32]) -> Result<Vec<Counts>> {
    let mut memory = vec![0.0; SpectralStream::memory_len(model)];
    let refused = |error| crate::Error::run(error, "the stream of the model", "choose another model");
    let mut stream = SpectralStream::new(*model, &mut memory).map_err(refused)?;
    let [read, written] = [stream.channels(), stream.groups()].map(|each| each * stream.hop());
    Ok(hops(signal, read, written, |block, out| stream.process(block, out)))
}

/// What is counted in a hop: on average of each signal, and at most.
#[derive(Clone, Debug)]
pub struct Hop {
    means: Vec<Vec<f64>>,
    most: Counts,
    bands: usize,
    arena_bytes: usize,
}

impl Hop {
    /// Of signals that are tried.
    pub fn new(model: &SpectralModel<'_>) -> Result<Self> {
        Self::of(model, None)
    }

    /// The mean is of a recording.
    pub fn of_recording(model: &SpectralModel<'_>, recording: &[f32]) -> Result<Self> {
        if recording.len() < model.hop() {
            let what = format!("{} samples are less than one hop of {}", recording.len(), model.hop());
            return Err(crate::Error::input(what, "--data", "give a longer recording"));
        }
        Self::of(model, Some(recording))
    }

    fn of(model: &SpectralModel<'_>, recording: Option<&[f32]>) -> Result<Self> {
        let (mut most, mut means) = ([0; Count::ALL.len()], Vec::new());
        let signals = trials(model).into_iter().map(|signal| (signal, recording.is_none()));
        let signals = signals.chain(recording.map(|recording| (recording.to_vec(), true)));
        for (signal, is_usual) in signals {
            let hops = count_hops(model, &signal)?;
            for counts in &hops {
                most.iter_mut().zip(counts).for_each(|(m, &n)| *m = n.max(*m));
            }
            means.extend(is_usual.then(|| super::mean(&hops, hops.len() as f64)));
        }
        // Masks of all levels and states.
        let sources = model.count();
        let states = PICKS + (model.filters() - 1) * FEW_PICKS;
        let entries = (states * model.mask_len()) as u64;
        let (mask, each) =
            if sources == 2 { (Count::ChannelPairs, 1) } else { (Count::ChannelMasks, sources as u64) };
        most[mask as usize] = entries * each;
        Ok(Self { means, most, bands: model.dims(), arena_bytes: stream_bytes(model) })
    }

    /// What a stream takes on one core, for each hop; nothing if that was not measured.
    ///
    /// ```
    /// # static FILE: spikelet::Aligned<{ include_bytes!("../../../tests/conformance/channel-d96h192.spk").len() }> =
    /// #     spikelet::Aligned::new(include_bytes!("../../../tests/conformance/channel-d96h192.spk"));
    /// use spikelet_trainer::predict::{Core, channels::Hop};
    /// let model = spikelet::SpectralModel::parse(FILE.bytes()).unwrap();
    /// let hop = Hop::new(&model).unwrap().on(Core::find("m4f").unwrap()).unwrap();
    /// assert!((900_000.0..1_300_000.0).contains(&hop.instructions()) && hop.worst >= hop.instructions());
    /// ```
    pub fn on(&self, core: Core) -> Option<Prediction> {
        let weights = core.weights();
        weights[Count::ChannelFrames as usize]?;
        let of = |mean: &Vec<f64>| dot(&weights, mean.iter().copied());
        let mean = self.means.iter().map(of).fold(0.0, f64::max);
        let bytes = |what: &str| core.entry(what).unwrap_or_default();
        let larger = || {
            let most = core.entry("most:bands").filter(|&most| self.bands as f64 > most)?;
            Some(format!("{} bands, where {most} were measured", self.bands))
        };
        Some(Prediction {
            core,
            stages: [0.0, 0.0, room(core) * mean],
            worst: room(core) * dot(&weights, self.most.iter().map(|&count| count as f64)),
            streamed: None,
            worst_block: None,
            text_bytes: bytes("text:spectral") as u32,
            arena_bytes: self.arena_bytes,
            stack_bytes: bytes("stack:spectral") as u32,
            beyond: super::unknown(&weights, &[self.most]).or_else(larger),
        })
    }
}

/// A signal whose frames are sums of latents, by their prior, with random phases, as loud as what was learned from.
fn drawn(model: &SpectralModel<'_>) -> Vec<f32> {
    let (length, hop, bins) = (model.length(), model.hop(), model.bins());
    let (mut rng, mut first) = (Rng::new(super::SEED), 0);
    let mut table = vec![0.0; Stft::table_len(length)];
    Stft::prepare(&mut table);
    let stft = Stft::over(&table);
    let mut sources = Vec::new();
    for (latents, ..) in (0..model.count()).filter_map(|source| model.source(source)) {
        sources.push((first, latents));
        first += latents;
    }
    let mut signal = vec![0.0; FRAMES * hop + length];
    let (mut spectrum, mut frame) = (vec![[0.0; 2]; bins], vec![0.0; length]);
    // 20 a / L of a power of 1, see `spikelet::spectral`.
    let unit = length as f64 / 20.0 * f64::from(model.level()).sqrt();
    for start in (0..FRAMES).map(|number| number * hop) {
        let mut power = vec![0.0; bins];
        for &(first, latents) in &sources {
            let (mut left, mut latent) = (rng.uniform::<f32>(), 0);
            for (k, p) in model.priors()[first..first + latents].iter().enumerate() {
                latent = k;
                left -= p;
                if left < 0.0 {
                    break;
                }
            }
            let row = &model.masks()[(first + latent) * model.mask_len()..][..model.mask_len()];
            for (f, power) in power.iter_mut().enumerate() {
                let m = if f < model.single() { f } else { model.single() + (f - model.single()) / 2 };
                *power += MASK_BASE * 10f64.powf(MASK_STEP * f64::from(row[m]));
            }
        }
        for (bin, power) in spectrum.iter_mut().zip(&power) {
            let (sin, cos) = (std::f64::consts::TAU * rng.uniform::<f64>()).sin_cos();
            *bin = [sin, cos].map(|part| (unit * power.sqrt() * part) as f32);
        }
        frame.fill(0.0);
        stft.inverse(&mut spectrum, hop, &mut frame, 0);
        signal[start..start + length].iter_mut().zip(&frame).for_each(|(y, x)| *y += x);
    }
    signal
}

/// Signals that are tried.
fn trials(model: &SpectralModel<'_>) -> Vec<Vec<f32>> {
    let drawn = drawn(model);
    let mut rng = Rng::new(super::SEED);
    let level = model.level().sqrt();
    let of = |sample: &mut dyn FnMut(usize) -> f32| (0..drawn.len()).map(sample).collect::<Vec<f32>>();
    let tone = |n: usize| (0.05 * n as f32).sin();
    vec![
        drawn.iter().map(|y| 30.0 * y).collect(),
        drawn.iter().map(|y| 0.03 * y).collect(),
        of(&mut |_| level * rng.normal::<f32>()),
        of(&mut |n| level * tone(n)),
        of(&mut |n| tone(n).signum()),
        of(&mut |n| if 2 * n < drawn.len() { 0.0 } else { drawn[n] }),
        drawn,
    ]
}
