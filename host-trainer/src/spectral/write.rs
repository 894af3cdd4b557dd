//! Writes what [`spikelet::spectral`] reads; the sections are described there.

use super::{Geometry, Learned, SUCCESSORS};
use crate::blob::{Header, assembled};
use crate::groups::Grouping;
use crate::{Error, Result};
use spikelet::SpectralModel;
use spikelet::blob::SPECTRAL;
use spikelet::frame::{Form, Frame};
use spikelet::spectral::{Band, MASK_BASE, MASK_STEP, MOST_LATENTS, MOST_SOURCES, mask_len};

/// Levels of the first source relative to the others that are tracked, in dB.
const LEVELS: [f64; 5] = [-10.0, -5.0, 0.0, 5.0, 10.0];
/// Of three sources and more, in dB.
const EVEN: f32 = 1.0;
const LOUD: f32 = 5.0;
const SOFT: f32 = -4.0;
/// The largest number of spectra in bytes. Frames are divided by the gains of a group, down to -3 dB, and bytes must have room for that.
const LOUDEST: f32 = 190.0;
/// How often a source is absent, and with which probability it stays so, of 255.
const ABSENT: f32 = 0.1;
const STAYS_ABSENT: u8 = 250;
/// lambda.
const PERSISTENCE: f32 = 0.5;

/// How W is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Single precision.
    F32,
    /// Bytes with one scale.
    I8,
}

/// Gains of `sources` sources, the first so many dB louder than the others, of mean square 1: one vector for each of `levels`.
pub fn gains(sources: usize, levels: &[f64]) -> Vec<f32> {
    let mut gains = Vec::new();
    for level in levels {
        let power = 10f64.powf(level / 10.0);
        let unit = (sources as f64 / (power + sources as f64 - 1.0)).sqrt();
        gains.push((power.sqrt() * unit) as f32);
        gains.extend(std::iter::repeat_n(unit as f32, sources.saturating_sub(1)));
    }
    gains
}

/// Gains that are followed side by side. Two sources are mostly both there, and one level between them is unknown. Of more some
/// are absent most of the time, and those that are there are louder than their part of the mean: all alike, one louder than the
/// others, one softer.
fn tracked(sources: usize) -> Vec<f32> {
    if sources <= 2 {
        return gains(sources, &LEVELS);
    }
    let gain = |decibels: f32| 10f32.powf(decibels / 20.0);
    let mut all = vec![gain(EVEN); sources];
    for (one, others) in [(LOUD, SOFT), (SOFT, LOUD)] {
        for chosen in 0..sources {
            all.extend((0..sources).map(|source| gain(if source == chosen { one } else { others })));
        }
    }
    all
}

/// All of a model, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// L, K and rate.
    pub frame: Frame,
    /// P.
    pub bands: Vec<Band>,
    /// Smallest amplitude.
    pub floor: f32,
    /// p.
    pub power: f32,
    /// lambda.
    pub persistence: f32,
    /// Bins with an entry of a mask each.
    pub single: usize,
    /// Latents, sigma and level of each source.
    pub sources: Vec<(usize, f32, f32)>,
    /// Names of sources; none for a single one.
    pub names: Vec<String>,
    /// G for each filter.
    pub gains: Vec<f32>,
    /// W. (H x D)
    pub rows: Vec<f32>,
    /// U, as bytes. (H x M)
    pub masks: Vec<u8>,
    /// Probabilities.
    pub prior: Vec<f32>,
    /// Successors and probabilities. (H x R x 2)
    pub next: Vec<u8>,
    /// R.
    pub successors: usize,
    /// Rates of frames of usual sound, and the scores that these exceed; empty where that was not measured.
    pub normal: Vec<[f32; 2]>,
}

impl Parts {
    /// Of one source.
    pub fn of(learned: &Learned, geometry: &Geometry) -> Self {
        let (k, bins) = (learned.mixture.prior.len(), geometry.bins());
        let successors = SUCCESSORS.min(k);
        let masks = learned.power.chunks_exact(bins).flat_map(|row| codes(row, geometry.single)).collect();
        let next = learned.transitions.chunks_exact(k).flat_map(|row| likely(row, successors)).collect();
        Self {
            frame: geometry.frame(),
            bands: geometry.bands.clone(),
            floor: geometry.floor,
            power: geometry.power,
            persistence: PERSISTENCE,
            single: geometry.single,
            sources: vec![(k, learned.sigma as f32, learned.level as f32)],
            names: Vec::new(),
            gains: vec![1.0],
            rows: learned.mixture.means.clone(),
            masks,
            prior: learned.mixture.prior.iter().map(|&p| p as f32).collect(),
            next,
            successors,
            normal: Vec::new(),
        }
    }

    /// What a blob holds.
    pub fn read(model: &SpectralModel<'_>) -> Self {
        let (dims, latents) = (model.dims(), model.latents());
        let mut rows = vec![0.0; latents * dims];
        rows.chunks_exact_mut(dims).enumerate().for_each(|(h, row)| model.spectrum(h, row));
        let groups = model.groups();
        let form = Form::Fourier { length: model.length() as u32, hop: model.hop() as u32 };
        Self {
            frame: Frame { form, rate: model.rate(), centred: false },
            bands: (0..dims).map(|d| model.band(d)).collect(),
            floor: model.floor(),
            power: model.compression(),
            persistence: model.persistence(),
            single: model.single(),
            sources: (0..model.count()).filter_map(|group| model.source(group)).collect(),
            names: match groups.is_named() {
                true => (0..groups.len()).map(|group| groups.name(group).to_owned()).collect(),
                false => Vec::new(),
            },
            gains: model.gains().to_vec(),
            rows,
            masks: model.masks().to_vec(),
            prior: model.priors().to_vec(),
            next: model.transitions().to_vec(),
            successors: model.successors(),
            normal: model.normal().as_chunks().0.to_vec(),
        }
    }

    /// Whether frames are made alike.
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |parts: &Self| (parts.frame, parts.floor, parts.power, parts.single);
        of(self) == of(other) && self.bands == other.bands
    }

    /// A single source that may be absent: one more latent, silence, where there is room for it. Pauses within a recording are
    /// short and lead back to sound; this one lasts.
    fn with_absence(&self) -> Self {
        let (latents, mut parts) = (self.prior.len(), self.clone());
        if latents >= MOST_LATENTS {
            return parts;
        }
        let (dims, width) = (self.bands.len(), self.masks.len() / latents.max(1));
        parts.rows.extend(std::iter::repeat_n(0.0, dims));
        parts.masks.extend(std::iter::repeat_n(0, width));
        parts.prior.iter_mut().for_each(|p| *p *= 1.0 - ABSENT);
        parts.prior.push(ABSENT);
        let mut stays = vec![0; 2 * self.successors];
        if let [to, probability, ..] = stays.as_mut_slice() {
            (*to, *probability) = (latents as u8, STAYS_ABSENT);
        }
        parts.next.extend(stays);
        parts.sources = self.sources.iter().map(|&(_, sigma, level)| (latents + 1, sigma, level)).collect();
        parts
    }

    /// One model of all sources, with their names, and levels to track. Each of `all` is like the first. A source gets one more
    /// latent for when it is not there.
    pub fn merge(all: &[Self], names: Vec<String>) -> Result<Self> {
        let all: Vec<Self> = all.iter().map(Self::with_absence).collect();
        let mut merged = all[0].clone();
        let successors = all.iter().map(|parts| parts.successors).max().unwrap_or(0);
        (merged.sources, merged.rows, merged.masks) = (Vec::new(), Vec::new(), Vec::new());
        (merged.prior, merged.next) = (Vec::new(), Vec::new());
        for parts in &all {
            merged.sources.extend(&parts.sources);
            merged.rows.extend(&parts.rows);
            merged.masks.extend(&parts.masks);
            merged.prior.extend(&parts.prior);
            let latents = parts.prior.len();
            for latent in 0..latents {
                let row = &parts.next[2 * latent * parts.successors..][..2 * parts.successors];
                merged.next.extend(row);
                merged.next.extend(std::iter::repeat_n(0, 2 * (successors - parts.successors)));
            }
        }
        if merged.sources.len() > MOST_SOURCES {
            let what = format!("{} sources, at most {MOST_SOURCES} are told apart", merged.sources.len());
            return Err(Error::input(what, "the models", "merge fewer"));
        }
        // What is usual alone is not what is usual together.
        merged.normal = Vec::new();
        merged.successors = successors;
        merged.gains = tracked(merged.sources.len());
        merged.names = names;
        Ok(merged)
    }

    /// The blob.
    pub fn bytes(&self, encoding: Encoding, provenance: &str) -> Result<Vec<u8>> {
        let floats = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let most = self.rows.iter().fold(0.0f32, |most, &w| most.max(w));
        let (code, scale, rows) = match encoding {
            Encoding::F32 => (0, 0.0, floats(&self.rows)),
            Encoding::I8 => {
                let scale = (most / LOUDEST).clamp(1e-6, 1.0);
                (2, scale, self.rows.iter().map(|w| (w / scale).round() as u8).collect())
            }
        };
        let mut spec = floats(&[self.floor, self.power, self.persistence]);
        spec.extend((self.successors as u32).to_le_bytes());
        spec.extend((self.single as u32).to_le_bytes());
        spec.extend(scale.to_le_bytes());
        let mut sources = Vec::new();
        for &(latents, sigma, level) in &self.sources {
            sources.extend((latents as u32).to_le_bytes());
            sources.extend(floats(&[sigma, level]));
        }
        let bands: Vec<f32> =
            self.bands.iter().flat_map(|band| [band.lo, band.rise, band.hi, band.fall]).collect();
        let mut sections: Vec<(&[u8; 4], Vec<u8>)> = vec![
            (b"SPEC", spec),
            (b"SRCS", sources),
            (b"GAIN", floats(&self.gains)),
            (b"BAND", floats(&bands)),
            (b"CODE", rows),
            (b"MASK", self.masks.clone()),
            (b"PRIO", floats(&self.prior)),
            (b"NEXT", self.next.clone()),
            (b"fram", self.frame.bytes().to_vec()),
        ];
        if !self.names.is_empty() {
            let numbers = (0..).zip(&self.sources).flat_map(|(g, source)| vec![g; source.0]).collect();
            let groups = Grouping { names: self.names.clone(), numbers };
            sections.push((b"grps", groups.section()?));
        }
        if !self.normal.is_empty() {
            sections.push((b"norm", floats(self.normal.as_flattened())));
        }
        sections.push((b"prov", provenance.as_bytes().to_vec()));
        let header = Header {
            codes: [SPECTRAL, code, 0, 0, 0, 0, 0, 0],
            dims: self.bands.len(),
            latents: self.prior.len(),
            ..Header::default()
        };
        Ok(assembled(&header, &sections))
    }
}

/// Powers of bins, those above `single` in pairs, as bytes.
fn codes(row: &[f64], single: usize) -> Vec<u8> {
    let (alone, pairs) = row.split_at(single.min(row.len()));
    let code =
        |power: f64| ((power.max(1e-30) / MASK_BASE).log10() / MASK_STEP).round().clamp(0.0, 255.0) as u8;
    let means = pairs.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64);
    let codes: Vec<u8> = alone.iter().copied().chain(means).map(code).collect();
    debug_assert_eq!(codes.len(), mask_len(row.len(), single));
    codes
}

/// The most probable successors, with 255 times their probabilities, which sum to 255 at most.
fn likely(row: &[f64], successors: usize) -> Vec<u8> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
    let mut left = 255;
    order[..successors]
        .iter()
        .flat_map(|&to| {
            let share = ((255.0 * row[to]).round() as u32).min(left);
            left -= share;
            [to as u8, share as u8]
        })
        .collect()
}
