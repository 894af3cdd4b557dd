//! Training of spatial models: sources on spaced microphones in a room, from the mixture alone ([`spikelet::spatial`] has the model).
//!
//! | step | what it settles |
//! |---|---|
//! | `delays` | roughly where sources are, from delays that all bins agree on |
//! | `align` | which covariance of every bin belongs to which source: one source per point, shared frames |
//! | `states` | covariances when several sources are on at once: all 2^H states, by the core |
//! | `direct` | whether there are echoes; without them all bins share one delay for each source |
//! | `write` | a blob |
//!
//! [`simulate`] makes rooms to try it in.
//!
//! Bins are shared out to threads and nothing is added up across them out of order, so that the bits do not depend on their number.

mod align;
mod delays;
mod direct;
mod hermitian;
pub mod simulate;
mod spectra;
mod states;
mod suggest;
#[cfg(test)]
mod tests;
mod threads;
mod write;

pub use delays::SPEED_OF_SOUND;
pub use spectra::Spectra;
pub use suggest::Suggestion;
pub use write::Room;

use delays::{Delays, Search};
use direct::Direct;
use hermitian::Matrix;
use serde::{Deserialize, Serialize};
use spikelet::frame::{Form, Frame};
use spikelet::spatial::Constants;
use std::time::Instant;

/// How fast parameters follow sources that move, unless something else is asked for.
pub const FOLLOWING: f32 = 0.15;

/// Everything that decides the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// H.
    pub latents: usize,
    /// L, samples of a frame.
    pub length: usize,
    /// K, samples from one frame to the next.
    pub hop: usize,
    /// Of neighbouring microphones, in centimetres; from the data where it is not known.
    pub spacing: Option<f64>,
    /// Iterations with one source per point.
    pub alignment: usize,
    /// Iterations with all states.
    pub iterations: usize,
    /// eps, the level of a source that is off.
    pub off_level: f64,
    /// beta, how much the frame before counts.
    pub context: f64,
    /// delta, the floor of covariances.
    pub floor: f64,
    /// The microphone at which sources are put out.
    pub microphone: usize,
    /// Of the points that delays are found from.
    pub seed: u64,
}

impl Settings {
    /// H sources at so many samples a second: frames of 128 ms.
    pub fn new(latents: usize, rate: u32) -> Self {
        let length = Self::usual_length(rate);
        Self {
            latents,
            length,
            hop: length / 4,
            spacing: None,
            alignment: 20,
            iterations: 30,
            off_level: 0.03,
            context: 2.8,
            floor: 1e-4,
            microphone: 0,
            seed: 1,
        }
    }

    /// The power of two nearest to 128 ms.
    pub fn usual_length(rate: u32) -> usize {
        let samples = 0.128 * f64::from(rate.max(1));
        let (shortest, longest) = (*Form::FOURIER_LENGTHS.start(), *Form::FOURIER_LENGTHS.end());
        (2f64.powf(samples.log2().round()) as u32).clamp(shortest, longest) as usize
    }

    fn constants(&self) -> Constants<f64> {
        let Self { off_level, context, floor, microphone, .. } = *self;
        Constants { off_level, context, floor, microphone }
    }
}

/// Numbers of every frame: frames x sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Frames {
    sources: usize,
    values: Vec<f64>,
}

/// Parameters of a bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Bin {
    /// R_h.
    covariances: Vec<Matrix>,
    /// pi0.
    silence: f64,
    /// m_h.
    activity: Vec<f64>,
}

/// What an iteration did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// From 1 on, over both stages.
    pub iteration: usize,
    /// `alignment` or `states`.
    pub stage: Stage,
    /// Sum over points of ln p(y), under the parameters before the iteration. Stages have different models: only figures of one
    /// stage can be compared.
    pub objective: f64,
    /// Since training began.
    pub seconds: f64,
}

/// Which model is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// One source per point.
    Alignment,
    /// All states.
    States,
}

/// A training at some iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// What decides the result.
    pub settings: Settings,
    /// Samples per second.
    pub rate: u32,
    /// Frames and microphones of the recording.
    pub data: (usize, usize),
    /// What every iteration did.
    pub history: Vec<Step>,
    /// Delays of each source at microphones 1 to D-1 that it began from, in samples.
    delays: Vec<Delays>,
    bins: Vec<Bin>,
    /// r_ht.
    presence: Frames,
    /// <s_h> of every bin, from the first iteration with all states on.
    activities: Vec<Frames>,
    /// What bins share in a room without echoes, after the last iteration.
    #[serde(default)]
    direct: Option<Direct>,
}

impl Training {
    /// First parameters.
    pub fn new(settings: Settings, spectra: &Spectra, rate: u32, threads: usize) -> Self {
        let search = search(&settings, spectra, rate, threads);
        let (delays, _) = search.best(settings.latents);
        Self::from(settings, spectra, rate, delays)
    }

    fn from(settings: Settings, spectra: &Spectra, rate: u32, delays: Vec<Delays>) -> Self {
        let (h, d) = (settings.latents, spectra.microphones);
        let omega = |bin: usize| std::f64::consts::PI * bin as f64 / (spectra.bins - 1) as f64;
        let bin = |bin: usize| Bin {
            covariances: delays.iter().map(|delays| delays::covariance(delays, omega(bin), d)).collect(),
            silence: 0.1,
            activity: vec![0.5; h],
        };
        let presence = Frames { sources: h, values: vec![1.0 / h as f64; spectra.frames * h] };
        Self {
            rate,
            data: (spectra.frames, d),
            history: Vec::new(),
            bins: (0..spectra.bins).map(bin).collect(),
            presence,
            activities: Vec::new(),
            direct: None,
            delays,
            settings,
        }
    }

    /// Iterations of both stages.
    pub fn iterations(&self) -> usize {
        self.settings.alignment + self.settings.iterations
    }

    /// Whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        self.history.len() >= self.iterations()
    }

    /// Runs one iteration, on the recording that the training began with.
    pub fn step(&mut self, spectra: &Spectra, threads: usize) {
        let begin = Instant::now();
        let before = self.history.last().map_or(0.0, |step| step.seconds);
        let stage = match self.history.len() < self.settings.alignment {
            true => Stage::Alignment,
            false => Stage::States,
        };
        // Code for each number of microphones.
        let objective = match (stage, spectra.microphones) {
            (Stage::Alignment, 2) => self.align::<2>(spectra, threads),
            (Stage::Alignment, 3) => self.align::<3>(spectra, threads),
            (Stage::Alignment, _) => self.align::<4>(spectra, threads),
            (Stage::States, 2) => self.sweep::<2>(spectra, threads),
            (Stage::States, 3) => self.sweep::<3>(spectra, threads),
            (Stage::States, _) => self.sweep::<4>(spectra, threads),
        };
        let seconds = before + begin.elapsed().as_secs_f64();
        self.history.push(Step { iteration: self.history.len() + 1, stage, objective, seconds });
    }

    fn alignment_bins(&self) -> Vec<align::Bin> {
        let bin = |bin: &Bin| align::Bin { covariances: bin.covariances.clone(), silence: bin.silence };
        self.bins.iter().map(bin).collect()
    }

    fn align<const D: usize>(&mut self, spectra: &Spectra, threads: usize) -> f64 {
        let bins = self.alignment_bins();
        let (bins, objective) = align::iterate::<D>(spectra, bins, &mut self.presence, align::FLOOR, threads);
        for (bin, found) in self.bins.iter_mut().zip(bins) {
            (bin.covariances, bin.silence) = (found.covariances, found.silence);
        }
        objective
    }

    fn sweep<const D: usize>(&mut self, spectra: &Spectra, threads: usize) -> f64 {
        if self.activities.is_empty() {
            let h = self.settings.latents;
            self.bins.iter_mut().for_each(|bin| bin.silence = 0.1);
            // As expected: no context yet.
            let values = vec![0.5; spectra.frames * h];
            self.activities = vec![Frames { sources: h, values }; spectra.bins];
        }
        let constants = self.settings.constants();
        let objective =
            states::iterate::<D>(spectra, &mut self.bins, &mut self.activities, &constants, threads);
        let is_last = self.history.len() + 1 >= self.iterations();
        self.direct = is_last
            .then(|| {
                Direct::new::<D>(spectra, &self.bins, &self.activities, &self.delays, &constants, threads)
            })
            .flatten();
        objective
    }

    /// Covariances of a bin as they are put out.
    fn covariances(&self, index: usize) -> Vec<Matrix> {
        let bin = &self.bins[index];
        self.direct.as_ref().map_or_else(
            || bin.covariances.clone(),
            |direct| direct.covariances(bin, index, self.bins.len(), self.data.1),
        )
    }

    /// Whether the room has no echoes, as far as all iterations are done.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// What a device needs.
    pub fn room(&self, provenance: &str) -> Room {
        let Settings { length, hop, off_level, context, floor, microphone, latents, .. } = self.settings;
        let d = self.data.1;
        let record = |(index, bin): (usize, &Bin)| -> Vec<f32> {
            let mut covariances = self.covariances(index);
            states::normalise(&mut covariances, d);
            let factors = states::factors(&covariances, d);
            factors.iter().chain([&bin.silence]).chain(&bin.activity).map(|&x| x as f32).collect()
        };
        Room {
            microphones: d,
            sources: latents,
            constants: Constants {
                off_level: off_level as f32,
                context: context as f32,
                floor: floor as f32,
                microphone,
            },
            following: 0.0,
            frame: Frame {
                form: Form::Fourier { length: length as u32, hop: hop as u32 },
                rate: self.rate,
                centred: false,
            },
            records: self.bins.iter().enumerate().flat_map(record).collect(),
            provenance: provenance.into(),
        }
    }

    /// Whether the training began with a recording of this size, and holds what it needs to go on.
    pub fn fits(&self, spectra: &Spectra) -> bool {
        let (h, frames) = (self.settings.latents, spectra.frames);
        let is_whole = |frames_of: &Frames| frames_of.sources == h && frames_of.values.len() == frames * h;
        let is_bin = |bin: &Bin| bin.covariances.len() == h && bin.activity.len() == h;
        let begun = self.history.len() > self.settings.alignment;
        self.data == (frames, spectra.microphones)
            && self.bins.len() == spectra.bins
            && self.bins.iter().all(is_bin)
            && is_whole(&self.presence)
            && self.activities.len() == if begun { spectra.bins } else { 0 }
            && self.activities.iter().all(is_whole)
            && self.direct.as_ref().is_none_or(|direct| direct.sources() == h)
    }

    /// R (bins x sources x D x D x real and imaginary part), pi0 and m, as JSON.
    pub fn parameters(&self) -> serde_json::Value {
        let d = self.data.1;
        let rows = |r: &Matrix| r[..d].iter().map(|row| row[..d].to_vec()).collect::<Vec<_>>();
        let covariances = |bin: usize| self.covariances(bin).iter().map(rows).collect::<Vec<_>>();
        serde_json::json!({
            "r": (0..self.bins.len()).map(covariances).collect::<Vec<_>>(),
            "pi0": self.bins.iter().map(|bin| bin.silence).collect::<Vec<_>>(),
            "activity": self.bins.iter().map(|bin| bin.activity.clone()).collect::<Vec<_>>(),
        })
    }

    /// Delays of each source at microphones 1 to D-1, in samples.
    pub fn delays(&self) -> Vec<Vec<f64>> {
        self.delays.iter().map(|delays| delays[..self.data.1 - 1].to_vec()).collect()
    }
}

fn search(settings: &Settings, spectra: &Spectra, rate: u32, threads: usize) -> Search {
    let rate = f64::from(rate);
    let spacing = settings.spacing.map(|centimetres| centimetres / 100.0 / SPEED_OF_SOUND * rate);
    Search::new(spectra, spacing, rate, settings.seed, threads)
}
