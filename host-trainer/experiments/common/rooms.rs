//! Voices in simulated rooms, or in folders with mixture.wav and sources.wav, and what a model takes apart of them.

use super::recordings::Recording;
use super::seed;
use spikelet::SpatialModel;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Points, write_wav};
use spikelet_trainer::metrics::{MAX_DB, si_sdr_db};
use spikelet_trainer::spatial::simulate::{Heard, Shoebox, Walk};
use spikelet_trainer::spatial::{Settings, Spectra, Training};
use spikelet_trainer::{Error, Result, streaming};
use std::f64::consts::PI;
use std::ops::Range;
use std::path::Path;

/// Seconds of each room.
pub const SECONDS: usize = 14;

/// A mixture and the images of its sources at the first microphone.
pub struct Case {
    pub mixture: Vec<f32>,
    pub microphones: usize,
    pub images: Vec<Vec<f64>>,
    pub rate: u32,
}

/// Sounds as sparse as voices: syllables of a pitch that glides, through two resonances that change.
pub fn made_up() -> Vec<Recording> {
    let rate = 8000;
    let voice = |speaker: usize| {
        let mut rng = Rng::new(seed(119, speaker));
        let base = 90.0 + 35.0 * speaker as f64;
        let (mut samples, mut phase, mut memory) = (Vec::new(), 0.0f64, [[0.0f64; 2]; 2]);
        while samples.len() < SECONDS * rate {
            let length = ((0.1 + 0.25 * rng.uniform::<f64>()) * rate as f64) as usize;
            let is_pause = rng.uniform::<f64>() < 0.3;
            let (pitch, glide) =
                (base * (0.8 + 0.5 * rng.uniform::<f64>()), 0.4 * (rng.uniform::<f64>() - 0.5));
            let formants = [250.0 + 600.0 * rng.uniform::<f64>(), 900.0 + 1800.0 * rng.uniform::<f64>()];
            for n in 0..length {
                let part = n as f64 / length as f64;
                phase += pitch * (1.0 + glide * part) / rate as f64;
                let pulse = if phase >= 1.0 { 1.0 } else { 0.0 };
                phase = phase.fract();
                let mut x =
                    if is_pause { 0.0 } else { (PI * part).sin() * pulse } + 1e-4 * rng.normal::<f64>();
                for (formant, memory) in formants.iter().zip(&mut memory) {
                    let turn = (2.0 * PI * formant / rate as f64).cos();
                    x += 1.88 * turn * memory[0] - 0.8836 * memory[1];
                    *memory = [x, memory[0]];
                }
                samples.push(x);
            }
        }
        Recording { speaker: speaker.to_string(), samples, rate: rate as u32 }
    };
    (0..6).map(voice).collect()
}

impl Case {
    /// A folder with mixture.wav and sources.wav.
    pub fn read(folder: &Path) -> Result<Self> {
        let (mixture, sources) =
            (Points::read(folder.join("mixture.wav"))?, Points::read(folder.join("sources.wav"))?);
        let channel = |c: usize| sources.values.iter().skip(c).step_by(sources.dims).copied().collect();
        Ok(Self {
            mixture: mixture.values.iter().map(|&x| x as f32).collect(),
            microphones: mixture.dims,
            images: (0..sources.dims).map(channel).collect(),
            rate: mixture.rate.unwrap_or(8000),
        })
    }

    /// Different voices for each seed, of different speakers as far as there are some.
    pub fn simulated(room: &Shoebox, voices: &[Recording], rng: &mut Rng) -> Result<Self> {
        let (chosen, rate) = choose(room.sources.len(), voices, rng)?;
        let samples = SECONDS * rate as usize;
        let sounds: Vec<&[f64]> = chosen.iter().map(|voice| &voice[..samples.min(voice.len())]).collect();
        let Heard { mixture, images } = room.record(&sounds, rate, rng);
        Ok(Self { mixture, microphones: room.microphones.len(), images, rate })
    }

    /// The same with a source that may walk, for so many seconds: voices are repeated.
    pub fn walked(
        room: &Shoebox,
        walk: Option<Walk>,
        seconds: usize,
        voices: &[Recording],
        rng: &mut Rng,
    ) -> Result<Self> {
        let (chosen, rate) = choose(room.sources.len(), voices, rng)?;
        let sounds = chosen.iter().map(|voice| voice.iter().copied().cycle().take(seconds * rate as usize));
        let sounds: Vec<Vec<f64>> = sounds.map(Iterator::collect).collect();
        let sounds: Vec<&[f64]> = sounds.iter().map(Vec::as_slice).collect();
        let Heard { mixture, images } = room.record_walk(&sounds, walk, rate, rng);
        Ok(Self { mixture, microphones: room.microphones.len(), images, rate })
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|cause| Error::writing(folder, &cause))?;
        write_wav(folder.join("mixture.wav"), self.rate, self.microphones, &self.mixture)?;
        let samples = self.images[0].len();
        let interleaved: Vec<f32> =
            (0..samples).flat_map(|n| self.images.iter().map(move |image| image[n] as f32)).collect();
        write_wav(folder.join("sources.wav"), self.rate, self.images.len(), &interleaved)
    }

    /// Trains on some samples of the mixture, from the mixture alone: a blob of floats on the boundary that it needs.
    pub fn trained(&self, samples: Range<usize>, threads: usize) -> Model {
        self.trained_with(Settings::new(self.images.len(), self.rate), samples, threads)
    }

    /// The same with other settings.
    pub fn trained_with(&self, settings: Settings, samples: Range<usize>, threads: usize) -> Model {
        let mixture = &self.mixture[samples.start * self.microphones..samples.end * self.microphones];
        let spectra = Spectra::new(mixture, self.microphones, settings.length, settings.hop);
        let mut training = Training::new(settings, &spectra, self.rate, threads);
        while !training.is_finished() {
            training.step(&spectra, threads);
        }
        let bytes = training.room("").floats();
        let mut memory = vec![0u8; bytes.len() + 8];
        let offset = memory.as_ptr().align_offset(8);
        memory[offset..][..bytes.len()].copy_from_slice(&bytes);
        Model { memory, offset }
    }

    /// Runs all of the mixture through the stream of a device.
    pub fn separated(&self, model: &Model) -> Result<Vec<Vec<f64>>> {
        wide(streaming::separate_room(model.room()?, &self.mixture, |_| {}))
    }

    /// The same with parameters that follow at a rate.
    pub fn followed(&self, model: &Model, rate: f32) -> Result<Vec<Vec<f64>>> {
        let following = model.room()?.with_following(Some(rate));
        let following = following
            .ok_or_else(|| Error::input("not followed", "the rate", "give 0 to 0.5 on two microphones"))?;
        wide(streaming::separate_room(following, &self.mixture, |_| {}))
    }
}

fn refused(what: impl std::fmt::Display) -> Error {
    Error::run(what, "the model of a room", "report this")
}

fn wide(parts: std::result::Result<Vec<Vec<f32>>, spikelet::Error>) -> Result<Vec<Vec<f64>>> {
    let parts = parts.map_err(refused)?;
    Ok(parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect())
}

/// A blob in memory.
pub struct Model {
    memory: Vec<u8>,
    offset: usize,
}

impl Model {
    fn room(&self) -> Result<SpatialModel<'_>> {
        SpatialModel::parse(&self.memory[self.offset..]).map_err(refused)
    }
}

/// Voices of different speakers, and their rate.
fn choose<'v>(count: usize, voices: &'v [Recording], rng: &mut Rng) -> Result<(Vec<&'v [f64]>, u32)> {
    let mut left: Vec<&Recording> = voices.iter().collect();
    let mut chosen: Vec<&Recording> = Vec::new();
    while chosen.len() < count {
        if left.is_empty() {
            return Err(Error::input("too few voices", "the folder", "give four speakers or more"));
        }
        let voice = left.swap_remove((rng.uniform::<f64>() * left.len() as f64) as usize);
        // Those of the one-word recordings are several speakers under one name.
        if voice.speaker == "kt" || chosen.iter().all(|other| other.speaker != voice.speaker) {
            chosen.push(voice);
        }
    }
    let rate = chosen.first().map_or(8000, |voice| voice.rate);
    Ok((chosen.iter().map(|voice| voice.samples.as_slice()).collect(), rate))
}

pub fn db(estimate: &[f64], truth: &[f64]) -> f64 {
    si_sdr_db(estimate, truth).unwrap_or(-MAX_DB)
}

/// SI-SDR over some samples, in the order of sources that gives the largest sum.
pub fn best_pairs(parts: &[Vec<f64>], images: &[Vec<f64>], samples: Range<usize>) -> Vec<f64> {
    let table: Vec<Vec<f64>> = images
        .iter()
        .map(|image| parts.iter().map(|part| db(&part[samples.clone()], &image[samples.clone()])).collect())
        .collect();
    let mut best = Vec::new();
    let mut orders = vec![Vec::new()];
    for _ in images {
        let longer = |order: &Vec<usize>| {
            let free = (0..parts.len()).filter(|part| !order.contains(part)).collect::<Vec<_>>();
            free.into_iter().map(|part| [order.as_slice(), &[part]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    for order in &orders {
        let figures: Vec<f64> = order.iter().enumerate().map(|(k, &part)| table[k][part]).collect();
        if best.is_empty() || figures.iter().sum::<f64>() > best.iter().sum() {
            best = figures;
        }
    }
    best
}
