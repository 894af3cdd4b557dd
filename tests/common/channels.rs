//! Models of sources in one channel, without training: each latent is a few peaks in a spectrum.

use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet::spectral::{Band, mask_len};
use spikelet_trainer::spectral::{Encoding, Parts, gains};

/// Sources of `latents` spectra each, in frames of `length` samples.
pub struct Channel<'a> {
    pub latents: &'a [usize],
    pub bands: usize,
    pub length: usize,
    pub hop: usize,
    pub encoding: Encoding,
}

/// Successors of a latent.
const SUCCESSORS: usize = 4;

impl Channel<'_> {
    /// The blob.
    pub fn bytes(&self) -> Vec<u8> {
        let mut rng = Rng::new(3);
        let (bins, single) = (self.length / 2 + 1, self.length / 8);
        let width = (self.length / 2) as f32 / self.bands as f32;
        let edge = |d: usize| d as f32 * width;
        let band = |d: usize| Band {
            lo: edge(d) - 0.5,
            rise: 0.7 / width,
            hi: edge(d + 1) + 0.5,
            fall: 0.9 / width,
        };
        let (mut rows, mut masks, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for &count in self.latents {
            for latent in 0..count {
                let peaks: Vec<(f32, f32)> =
                    (0..3).map(|_| (rng.uniform::<f32>(), 0.3 + 3.0 * rng.uniform::<f32>())).collect();
                let level = |x: f32| {
                    peaks.iter().map(|(at, tall)| tall / (1.0 + 400.0 * (x - at) * (x - at))).sum::<f32>()
                };
                // The first is a pause.
                let loud = if latent == 0 { 0.0 } else { 1.0 };
                rows.extend((0..self.bands).map(|d| 0.5 + loud * level(d as f32 / self.bands as f32)));
                masks.extend((0..mask_len(bins, single)).map(|m| {
                    let bin = if m < single { m } else { single + 2 * (m - single) };
                    (60.0 + 45.0 * loud * level(bin as f32 / bins as f32)) as u8
                }));
                let to = |i: usize| ((latent + i) % count) as u8;
                next.extend((0..SUCCESSORS.min(count)).flat_map(|i| [to(i), 60 - 10 * i as u8]));
                next.resize(next.len().next_multiple_of(2 * SUCCESSORS), 0);
            }
        }
        let parts = Parts {
            frame: Frame {
                form: Form::Fourier { length: self.length as u32, hop: self.hop as u32 },
                rate: 8000,
                centred: false,
            },
            bands: (0..self.bands).map(band).collect(),
            floor: 0.1,
            power: 0.3,
            persistence: 0.5,
            single,
            sources: self.latents.iter().map(|&count| (count, 0.7, 0.01)).collect(),
            names: (0..self.latents.len()).map(|source| format!("source {source}")).collect(),
            gains: gains(self.latents.len(), &[-10.0, -5.0, 0.0, 5.0, 10.0]),
            rows,
            masks,
            prior: self.latents.iter().flat_map(|&count| vec![1.0 / count as f32; count]).collect(),
            next,
            successors: SUCCESSORS,
            normal: vec![[0.5, 20.0], [0.01, 60.0]],
        };
        parts.bytes(self.encoding, "conformance channel").unwrap()
    }
}

/// Tones that glide, noise, a knock now and then, loud and faint, and a silence.
pub fn recording(samples: usize) -> Vec<f32> {
    let (mut rng, mut phase, mut low) = (Rng::new(4), 0.0f64, 0.0);
    (0..samples)
        .map(|t| {
            let place = t as f64 / samples as f64;
            let loud = [0.3, 0.05, 0.8, 0.0, 0.2][(5.0 * place) as usize];
            phase += 0.05 + 0.3 * place;
            low = 0.8 * low + 0.2 * rng.normal::<f64>();
            let knock = if t % 97 < 5 { rng.normal::<f64>() } else { 0.0 };
            (loud * (phase.sin() + 0.5 * (3.0 * phase).sin() + low + knock)).clamp(-1.0, 1.0) as f32
        })
        .collect()
}
