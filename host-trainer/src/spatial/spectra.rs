//! The short-time Fourier transform of a recording, bin by bin: the points that spatial models are learned from.
//!
//! The transform is the core's ([`spikelet::stft`]), and frames lie as in a stream: silence before the first sample and after the
//! last, a frame every K samples. Loudness does not matter to the model, so every point is scaled to length 1.

use spikelet::spatial::Complex;
use spikelet::stft::Stft;

/// Energy below which a point is silence, as in the core.
const FAINTEST: f64 = 1e-30;

/// Points of all bins and frames.
#[derive(Clone, Debug)]
pub struct Spectra {
    /// D.
    pub microphones: usize,
    /// L/2 + 1.
    pub bins: usize,
    /// T.
    pub frames: usize,
    /// y of length 1, or 0 in silence: bins x frames x D.
    values: Vec<Complex<f32>>,
    /// |y|^2 before that: bins x frames.
    powers: Vec<f32>,
}

impl Spectra {
    /// Of interleaved samples; `length` and `hop` as in [`spikelet::frame::Form::Fourier`].
    pub fn new(samples: &[f32], microphones: usize, length: usize, hop: usize) -> Self {
        let count = samples.len() / microphones;
        let (bins, frames) = (Stft::bins(length), (count + length).div_ceil(hop));
        let mut table = vec![0.0; Stft::table_len(length)];
        Stft::prepare(&mut table);
        let stft = Stft::over(&table);
        let mut values = vec![[0.0; 2]; bins * frames * microphones];
        let (mut frame, mut spectrum) = (vec![0.0; length], vec![[0.0; 2]; bins]);
        for t in 0..frames {
            for channel in 0..microphones {
                for (n, x) in frame.iter_mut().enumerate() {
                    let at = ((t + 1) * hop + n).checked_sub(length).filter(|&at| at < count);
                    *x = at.map_or(0.0, |at| samples[at * microphones + channel]);
                }
                stft.forward(&frame, 0, &mut spectrum);
                for (f, &x) in spectrum.iter().enumerate() {
                    values[(f * frames + t) * microphones + channel] = x;
                }
            }
        }
        let mut powers = Vec::with_capacity(bins * frames);
        for point in values.chunks_exact_mut(microphones) {
            let energy: f64 = point.as_flattened().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let scale = if energy < FAINTEST { 0.0 } else { 1.0 / energy.sqrt() };
            point.as_flattened_mut().iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
            powers.push(energy as f32);
        }
        Self { microphones, bins, frames, values, powers }
    }

    /// All points of a bin, frame after frame.
    pub fn bin(&self, bin: usize) -> &[Complex<f32>] {
        let len = self.frames * self.microphones;
        &self.values[bin * len..][..len]
    }

    /// |y|^2 of a bin, frame after frame.
    pub fn powers(&self, bin: usize) -> &[f32] {
        &self.powers[bin * self.frames..][..self.frames]
    }

    /// One point, in double precision.
    pub fn point<const D: usize>(&self, bin: usize, frame: usize) -> [Complex<f64>; D] {
        let start = (bin * self.frames + frame) * self.microphones;
        let point = &self.values[start..start + self.microphones];
        std::array::from_fn(|i| point.get(i).map_or([0.0; 2], |y| y.map(f64::from)))
    }
}
