//! Sources in one channel: what [`spikelet::spectral`] infers, learned from recordings of each source by itself.
//!
//! ```text
//! recordings of a source ─▶ copies resampled ─▶ frames: bands v, power of bins ─▶ mixture EM ─▶ spectra W, U, prior, transitions
//!                        └▶ a part held back ─▶ sigma: how far frames are from the nearest latent
//! sources ─▶ merge: one group each, gains to track ─▶ blob
//! ```
//!
//! Bands and compression are those of the core, in its precision.

mod frames;
mod mixture;
mod resample;
#[cfg(test)]
mod tests;
mod usual;
mod write;

pub use frames::{Geometry, Heard};
pub use mixture::Mixture;
pub use resample::resampled;
pub use usual::usual_scores;
pub use write::{Encoding, Parts, gains};

use crate::{Error, Result};

/// sigma is this many times the rms distance of held-back frames to the nearest latent.
const SPREAD: f64 = 3.0;
/// Latents of the mixture that this distance is measured to, at most.
const SPREAD_LATENTS: usize = 64;
/// Copies: the pitch and the resonances of a voice are never twice the same.
const COPIES: [(usize, usize); 5] = [(1, 1), (17, 16), (16, 17), (9, 8), (8, 9)];
/// They are learned from where they bring held-back frames closer by more than this factor: those of steady noises do not, and blur it.
const COPIES_HELP: f64 = 0.985;
/// Frames with their copies, at most; of longer recordings pieces are left out.
const MOST_FRAMES: usize = 120_000;
/// Frames of such a piece.
const PIECE: usize = 500;
/// Successors of a latent that are kept, at most.
const SUCCESSORS: usize = 16;

/// How a source is learned.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// K.
    pub latents: usize,
    /// Most iterations of EM.
    pub iterations: usize,
    /// Whether copies resampled by small factors are learned from, too; where it is not said, whether held-back frames are closer then.
    pub copies: Option<bool>,
    /// Of random numbers.
    pub seed: u64,
    /// To compute on; the results do not depend on it.
    pub threads: usize,
}

/// A source that was learned.
#[derive(Clone, Debug)]
pub struct Learned {
    /// W, prior and the free energy of every iteration.
    pub mixture: Mixture,
    /// U: mean power of each bin. (K x bins)
    pub power: Vec<f64>,
    /// T, from each latent to each. (K x K)
    pub transitions: Vec<f64>,
    /// sigma.
    pub sigma: f64,
    /// Mean power of the recordings.
    pub level: f64,
    /// Whether copies were learned from.
    pub copies: bool,
    /// Frames that were learned from.
    pub frames: usize,
    /// What may not be meant.
    pub warnings: Vec<String>,
}

/// One source from recordings of it. `progress` hears the free energy after each iteration.
pub fn learn(
    recordings: &[Vec<f64>],
    geometry: &Geometry,
    settings: &Settings,
    mut progress: impl FnMut(usize, f64),
) -> Result<Learned> {
    let mut recordings: Vec<Vec<f64>> = recordings.to_vec();
    let mut level = 0.0;
    for recording in &mut recordings {
        let len = recording.len().max(1) as f64;
        let offset = recording.iter().sum::<f64>() / len;
        recording.iter_mut().for_each(|x| *x -= offset);
        let power = recording.iter().map(|x| x * x).sum::<f64>() / len;
        if power <= 1e-12 {
            return Err(Error::input("a recording is silent", "the recordings", "leave it out"));
        }
        recording.iter_mut().for_each(|x| *x /= power.sqrt());
        level += power;
    }
    level /= recordings.len().max(1) as f64;
    let mut warnings = Vec::new();
    let recordings = shortened(recordings, geometry, &mut warnings);
    let (seen, held) = hold_back(&recordings);
    let held = Heard::of(&held, geometry);
    let few = settings.latents.min(SPREAD_LATENTS);
    let distance = |copies: bool| -> Result<f64> {
        let heard = Heard::of(&with_copies(&seen, copies), geometry);
        let mixture = Mixture::learn(&heard, &Settings { latents: few, ..*settings }, |_, _| {})?;
        Ok(mixture.distance(&held))
    };
    let (copies, off) = match settings.copies {
        Some(copies) => (copies, distance(copies)?),
        None => {
            let (without, with) = (distance(false)?, distance(true)?);
            let copies = with < COPIES_HELP * without;
            (copies, if copies { with } else { without })
        }
    };
    let heard = Heard::of(&with_copies(&recordings, copies), geometry);
    let mixture = Mixture::learn(&heard, settings, &mut progress)?;
    let (power, transitions) = mixture.statistics(&heard, geometry.hop / geometry.step());
    let frames = heard.len();
    if frames < 10 * settings.latents {
        warnings.push(format!(
            "{frames} frames for {} latents: record more, or learn fewer latents",
            settings.latents
        ));
    }
    let sigma = (SPREAD * off).clamp(0.01, 100.0);
    Ok(Learned { mixture, power, transitions, sigma, level, copies, frames, warnings })
}

/// The last quarter of a recording, or of several recordings the first quarter of them.
fn hold_back(recordings: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    if let [single] = recordings {
        let (seen, held) = single.split_at(single.len() * 3 / 4);
        return (vec![seen.to_vec()], vec![held.to_vec()]);
    }
    let (held, seen) = recordings.split_at((recordings.len() / 4).max(1));
    (seen.to_vec(), held.to_vec())
}

fn with_copies(recordings: &[Vec<f64>], copies: bool) -> Vec<Vec<f64>> {
    let factors = &COPIES[..if copies { COPIES.len() } else { 1 }];
    recordings
        .iter()
        .flat_map(|recording| factors.iter().map(move |&(up, down)| resampled(recording, up, down)))
        .collect()
}

/// Evenly spaced pieces of recordings that are too long.
fn shortened(recordings: Vec<Vec<f64>>, geometry: &Geometry, warnings: &mut Vec<String>) -> Vec<Vec<f64>> {
    let samples: usize = recordings.iter().map(Vec::len).sum();
    let most = MOST_FRAMES / COPIES.len() * geometry.step();
    if samples <= most {
        return recordings;
    }
    let every = samples.div_ceil(most);
    warnings.push(format!("the recordings are long: one of {every} pieces of each is learned from"));
    let piece = PIECE * geometry.step();
    let pieces = |recording: &Vec<f64>| -> Vec<f64> {
        recording.chunks(piece).step_by(every).flatten().copied().collect()
    };
    recordings.iter().map(pieces).collect()
}
