//! Recordings to frames, by the core's transform, bands and compression.

use spikelet::frame::{Form, Frame};
use spikelet::spectral::{Band, MOST_BANDS, compress, frame_power};
use spikelet::stft::Stft;

/// Seconds of a frame, about.
const SECONDS: f64 = 0.064;
/// Bands at 8 kHz, where there are as many per mel.
const BANDS: f64 = 96.0;
/// Bins up to this frequency have an entry of a mask each.
const SINGLE: f64 = 1000.0;
/// Amplitudes below are silence, and the exponent of the compression.
const FLOOR: f32 = 0.1;
const POWER: f32 = 0.3;

/// How frames are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Samples per second.
    pub rate: u32,
    /// L.
    pub length: usize,
    /// K.
    pub hop: usize,
    /// P.
    pub bands: Vec<Band>,
    /// Smallest amplitude.
    pub floor: f32,
    /// p.
    pub power: f32,
    /// Bins with an entry of a mask each.
    pub single: usize,
}

impl Geometry {
    /// For recordings of a rate; hops are a quarter of a frame, or half of one.
    pub fn new(rate: u32, is_half: bool) -> Self {
        let exact = (SECONDS * f64::from(rate)).max(1.0).log2().round();
        let shortest = f64::from(*Form::FOURIER_LENGTHS.start());
        let longest = f64::from(*Form::FOURIER_LENGTHS.end());
        let length = exact.exp2().clamp(shortest, longest) as usize;
        let nyquist = f64::from(rate) / 2.0;
        let count = (BANDS * mel(nyquist) / mel(4000.0) / 4.0).round() as usize * 4;
        let count = count.clamp(8, MOST_BANDS.min(length / 4));
        let width = f64::from(rate) / length as f64;
        let single = ((SINGLE / width) as usize).min(length / 2);
        Self {
            rate,
            length,
            hop: if is_half { length / 2 } else { length / 4 },
            bands: triangles(nyquist, length, count),
            floor: FLOOR,
            power: POWER,
            single,
        }
    }

    /// Samples from one frame to the next in training.
    pub fn step(&self) -> usize {
        self.length / 4
    }

    /// L/2 + 1.
    pub fn bins(&self) -> usize {
        Stft::bins(self.length)
    }

    /// As a blob says it.
    pub fn frame(&self) -> Frame {
        let form = Form::Fourier { length: self.length as u32, hop: self.hop as u32 };
        Frame { form, rate: self.rate, centred: false }
    }
}

fn mel(hertz: f64) -> f64 {
    (1.0 + hertz / 700.0).log10()
}

/// Triangles between neighbours on the mel scale, not narrower than one bin on either side, each of sum 1.
fn triangles(nyquist: f64, length: usize, count: usize) -> Vec<Band> {
    let (bins, width) = (length / 2 + 1, 2.0 * nyquist / length as f64);
    let edge = |i: usize| 700.0 * (10f64.powf(mel(nyquist) * i as f64 / (count + 1) as f64) - 1.0) / width;
    let band = |i: usize| {
        let middle = edge(i + 1);
        let (lo, hi) = (edge(i).min(middle - 1.0), edge(i + 2).max(middle + 1.0));
        let weight =
            |f: usize| ((f as f64 - lo) / (middle - lo)).min((hi - f as f64) / (hi - middle)).max(0.0);
        let sum: f64 = (0..bins).map(weight).sum();
        let slope = |side: f64| (1.0 / (side * sum)) as f32;
        let hi32 = (hi as f32).min(bins as f32);
        Band { lo: lo as f32, rise: slope(middle - lo), hi: hi32, fall: slope(hi - middle) }
    };
    (0..count).map(band).collect()
}

/// Frames of recordings, one after the other.
#[derive(Clone, Debug)]
pub struct Heard {
    /// v. (N x D)
    pub bands: Vec<f32>,
    /// Power of bins. (N x bins)
    pub power: Vec<f32>,
    /// Where each recording ends, in frames.
    pub ends: Vec<usize>,
    /// D.
    pub dims: usize,
}

impl Heard {
    /// Frames every quarter of a frame's length; those at the ends reach into silence.
    pub fn of(recordings: &[Vec<f64>], geometry: &Geometry) -> Self {
        let (length, bins, step) = (geometry.length, geometry.bins(), geometry.step());
        let mut table = vec![0.0; Stft::table_len(length)];
        Stft::prepare(&mut table);
        let stft = Stft::over(&table);
        let (mut spectrum, mut powers) = (vec![[0.0; 2]; bins], vec![0.0; bins]);
        let dims = geometry.bands.len();
        let mut heard = Self { bands: Vec::new(), power: Vec::new(), ends: Vec::new(), dims };
        for recording in recordings {
            let mut padded = vec![0.0f32; length / 2];
            padded.extend(recording.iter().map(|&x| x as f32));
            padded.resize(padded.len() + length / 2, 0.0);
            for start in (0..padded.len().saturating_sub(length)).step_by(step) {
                stft.forward(&padded[start..start + length], 0, &mut spectrum);
                frame_power(&spectrum, length, 1.0, &mut powers);
                let v = |band: &Band| compress(band.energy(&powers), geometry.floor, geometry.power);
                heard.bands.extend(geometry.bands.iter().map(v));
                heard.power.extend(&powers);
            }
            heard.ends.push(heard.bands.len() / dims);
        }
        heard
    }

    /// N.
    pub fn len(&self) -> usize {
        self.bands.len() / self.dims
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }
}
