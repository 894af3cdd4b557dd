//! The coefficients of a recording's lapped transform as points: one bin of all channels each, block after block.
//!
//! The transform is the core's ([`spikelet::mdct`]), and blocks lie as in a stream ([`spikelet::stream`]): silence before the
//! first sample and after the last, so that a model meets the same points here as on a device.
//!
//! Gains make bins alike, so that one model fits all of them. Those of training data are
//!
//! ```text
//! a_k = (mean of X_k^2 over blocks and channels)^(-1/2)
//! ```
//!
//! and a bin with hardly any sound in it is taken as 60 dB below the loudest: what is there is noise, and stays small.
//!
//! A recording may be empty above some frequency: sound of a low rate that was resampled to a higher one, or that went through
//! a coder or a telephone. [`used_bins`] finds where that begins, and training leaves out the bins above
//! ([`Spectra::leave_out`]). Otherwise most points would be silence or noise, and prior and noise of the model fit those.

use super::Source;
use crate::error::{Error, Result};
use crate::files::ending;
use spikelet::mdct::Mdct;
use std::path::Path;

/// Least power of a bin, as a part of that of the loudest.
const FLOOR: f64 = 1e-6;

/// The band above a frequency is empty only if it is this part of all bins at least.
const LEAST_EMPTY: f64 = 0.125;

/// Bins are looked at in as many groups.
const BANDS: usize = 32;

/// Gaussian noise has a kurtosis of 3, sound comes and goes and has far more. Noise counts as empty if it is 20 dB below the
/// loudest bin too.
const NOISE_KURTOSIS: f64 = 4.0;
const NOISE_BELOW: f64 = 1e-2;

/// Coefficients of a bin from which a kurtosis can be told: of fewer, that of sound is too low.
const LEAST_COUNT: f64 = 128.0;

/// All coefficients of a recording.
#[derive(Clone, Debug)]
pub struct Spectra {
    bins: usize,
    /// Bins whose coefficients are points: the lowest ones.
    used: usize,
    channels: usize,
    rate: u32,
    /// Blocks x bins x channels, not yet evened out.
    values: Vec<f32>,
    /// Empty for 1.
    gains: Vec<f32>,
}

impl Spectra {
    /// Reads a recording of so many channels; `bins` is a power of two.
    pub fn open(path: &Path, bins: usize, channels: usize) -> Result<Self> {
        if !matches!(ending(path).as_deref(), Some("wav" | "wave")) {
            return Err(Error::input(
                "only recordings can be transformed",
                path.display(),
                "give a .wav; other data is for models without a transform",
            ));
        }
        let mut source = Source::open(path)?;
        if source.dims() != channels {
            let plural = if source.dims() == 1 { "" } else { "s" };
            let what = format!("{} channel{plural} where there should be {channels}", source.dims());
            return Err(Error::input(what, path.display(), "give recordings of the same microphones"));
        }
        let mut table = vec![0.0; Mdct::table_len(bins)];
        Mdct::prepare(&mut table);
        let mdct = Mdct::over(&table);
        // One more than the samples fill: the end of the last one overlaps with silence.
        let blocks = source.points().div_ceil(bins) + 1;
        let mut values = Vec::new();
        super::reserve(&mut values, blocks.saturating_mul(bins * channels), path)?;
        values.resize(blocks * bins * channels, 0.0f32);
        let mut older = vec![vec![0.0f32; bins]; channels];
        let (mut newer, mut spectrum, mut chunk) = (vec![0.0f32; bins], vec![0.0f32; bins], Vec::new());
        for (block, points) in values.chunks_exact_mut(bins * channels).enumerate() {
            source.read_chunk(block * bins, bins, &mut chunk)?;
            for (channel, older) in older.iter_mut().enumerate() {
                newer.fill(0.0);
                let samples = chunk.iter().skip(channel).step_by(channels);
                newer.iter_mut().zip(samples).for_each(|(x, &sample)| *x = sample as f32);
                mdct.forward(older, &newer, &mut spectrum);
                let places = points.iter_mut().skip(channel).step_by(channels);
                places.zip(&spectrum).for_each(|(place, &x)| *place = x);
                older.copy_from_slice(&newer);
            }
        }
        let rate = source.rate().unwrap_or(0);
        Ok(Self { bins, used: bins, channels, rate, values, gains: Vec::new() })
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.channels / self.bins * self.used
    }

    /// Never: a recording has a sample.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// D.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Samples per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// From now on points are read times the gain of their bin, which may be none.
    pub fn even_out(&mut self, gains: &[f32]) {
        self.gains = gains.to_vec();
    }

    /// From now on only coefficients of the lowest `used` bins are points, at least one.
    pub fn leave_out(&mut self, used: usize) {
        self.used = used.clamp(1, self.bins);
    }

    /// Appends `count` points from number `start` on.
    pub fn read(&self, start: usize, count: usize, out: &mut Vec<f64>) {
        for number in start..start + count {
            let (block, bin) = (number / self.used, number % self.used);
            let gain = self.gains.get(bin).copied().unwrap_or(1.0);
            let point = &self.values[(block * self.bins + bin) * self.channels..][..self.channels];
            // As a stream computes it, to the bit.
            out.extend(point.iter().map(|x| f64::from(x * gain)));
        }
    }
}

/// Sums over blocks and channels of these recordings, which have the same bins: X^2 and X^4 of every bin, and how many there
/// were. The first and last `edges` blocks of a recording are left out.
fn moments(recordings: &[&Spectra], edges: usize) -> (Vec<[f64; 2]>, usize) {
    let bins = recordings.first().map_or(0, |first| first.bins);
    let (mut sums, mut count) = (vec![[0.0f64; 2]; bins], 0);
    for recording in recordings {
        let block = bins * recording.channels;
        let edge = edges.min(recording.values.len() / block / 2) * block;
        let values = &recording.values[edge..recording.values.len() - edge];
        count += values.len() / bins;
        for (number, point) in values.chunks_exact(recording.channels).enumerate() {
            let [second, fourth] = &mut sums[number % bins];
            for square in point.iter().map(|&x| f64::from(x) * f64::from(x)) {
                *second += square;
                *fourth += square * square;
            }
        }
    }
    (sums, count)
}

/// The gains that even out these recordings together; they have the same bins.
pub fn gains(recordings: &[&Spectra]) -> Vec<f32> {
    let (sums, count) = moments(recordings, 0);
    let power: Vec<f64> = sums.iter().map(|[second, _]| second / count.max(1) as f64).collect();
    let loudest = power.iter().copied().fold(0.0, f64::max);
    // Silence has no spectrum: it stays as it is.
    let floor = if loudest > 0.0 { FLOOR * loudest } else { 1.0 };
    power.iter().map(|&power| (1.0 / power.max(floor).sqrt()) as f32).collect()
}

/// How many of the lowest bins have sound in them: all, unless the band above some frequency is empty.
///
/// A group of bins is empty where its mean power is 60 dB below that of the loudest bin, or 20 dB below it and distributed
/// like noise.
pub fn used_bins(recordings: &[&Spectra]) -> usize {
    // Where a recording begins and ends within a sound, a click fills the band.
    let (sums, count) = moments(recordings, 2);
    let (bins, count) = (sums.len(), count.max(1) as f64);
    let loudest = sums.iter().map(|[second, _]| second / count).fold(0.0, f64::max);
    let is_empty = |group: &[[f64; 2]]| {
        let each = group.len() as f64;
        let power = group.iter().map(|[second, _]| second / count).sum::<f64>() / each;
        let kurtosis = group.iter().map(|[second, fourth]| count * fourth / (second * second).max(1e-300));
        let is_noise = count >= LEAST_COUNT && kurtosis.sum::<f64>() / each < NOISE_KURTOSIS;
        power <= FLOOR * loudest || (power <= NOISE_BELOW * loudest && is_noise)
    };
    let width = (bins / BANDS).max(1);
    let groups = bins / width;
    let used =
        (0..groups).rev().find(|g| !is_empty(&sums[g * width..][..width])).map_or(groups, |g| g + 1) * width;
    if (bins - used) as f64 >= LEAST_EMPTY * bins as f64 { used } else { bins }
}

#[cfg(test)]
mod tests {
    use super::super::write_wav;
    use super::*;

    #[test]
    fn gains_make_bins_alike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hum.wav");
        let sample = |n: usize| (0.3 * n as f32).sin() + 0.01 * (2.1 * n as f32).sin();
        let samples: Vec<f32> = (0..1000).flat_map(|n| [sample(n), 0.5 * sample(n)]).collect();
        write_wav(&path, 8000, 2, &samples).unwrap();
        let mut spectra = Spectra::open(&path, 16, 2).unwrap();
        assert_eq!(
            (spectra.len(), spectra.channels(), spectra.rate()),
            ((1000usize.div_ceil(16) + 1) * 16, 2, 8000)
        );
        // The transform is orthogonal: all energy is there.
        let energy = |values: &[f32]| values.iter().map(|&x| f64::from(x * x)).sum::<f64>();
        assert!((energy(&spectra.values) / energy(&samples) - 1.0).abs() < 1e-5);

        let found = gains(&[&spectra]);
        spectra.even_out(&found);
        let mut points = Vec::new();
        spectra.read(0, spectra.len(), &mut points);
        for bin in 0..16 {
            let of_bin = points.chunks_exact(2).skip(bin).step_by(16);
            let power = of_bin.map(|point| point[0] * point[0] + point[1] * point[1]).sum::<f64>();
            assert!((power / (points.len() / 16) as f64 - 1.0).abs() < 1e-3, "{bin} {power}");
        }
        assert!(Spectra::open(&path, 16, 1).unwrap_err().to_string().starts_with("2 channels where"));
    }

    /// A tone that comes and goes in the lowest quarter of the band; then the same with weak noise everywhere.
    #[test]
    fn an_empty_band_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let open = |noise: f64, frequency: f32| {
            let mut rng = spikelet::rng::Rng::new(1);
            // A smooth envelope: clicks would fill the band.
            let envelope = |n: usize| (0.004 * n as f32).sin().max(0.0).powi(6);
            let sample = |n: usize| envelope(n) * (frequency * n as f32).sin();
            let noisy = |n| sample(n) + (noise * rng.normal::<f64>()) as f32;
            let path = folder.path().join("tone.wav");
            write_wav(&path, 8000, 1, &(0..16000).map(noisy).collect::<Vec<f32>>()).unwrap();
            Spectra::open(&path, 64, 1).unwrap()
        };
        for noise in [1e-6, 1e-2] {
            let mut spectra = open(noise, 0.5);
            let used = used_bins(&[&spectra]);
            // The tone is in bin 10 of 64, and 60 dB weaker some bins above.
            assert!((11..=32).contains(&used), "{used}");
            let (all, blocks) = (spectra.len(), spectra.len() / 64);
            let mut whole = Vec::new();
            spectra.read(64, 64, &mut whole);
            spectra.leave_out(used);
            assert_eq!(spectra.len(), blocks * used, "of {all}");
            let mut part = Vec::new();
            spectra.read(used, used, &mut part);
            assert_eq!(part, whole[..used]);
        }
        // Sound up to the highest bin.
        assert_eq!(used_bins(&[&open(1e-6, 3.1)]), 64);
    }

    #[test]
    fn silence_has_gains_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("silence.wav");
        write_wav(&path, 8000, 1, &[0.0]).unwrap();
        let spectra = Spectra::open(&path, 32, 1).unwrap();
        assert_eq!(gains(&[&spectra]), [1.0; 32]);
    }
}
