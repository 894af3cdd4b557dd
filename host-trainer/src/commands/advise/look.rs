//! What the data is: a survey that decides the kind of model and how many latents it has.

use super::clusters::clusters;
use crate::commands::train::{bins, long_enough, refuse_copies};
use crate::data::{Sheet, Source, gains, used_bins};
use crate::delays::delays;
use crate::files::ending;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use std::path::Path;

/// Pixels below which a picture has no room for patches.
const LEAST_SIDE: usize = 32;
/// Numbers that are looked at, at most.
const MOST: usize = 4_000_000;
/// The strongest points, of which directions are counted, and how near points of one direction are (squared cosine).
const STRONGEST: usize = 1500;
const NEAR: f64 = 0.99;
const APART: f64 = 0.94;
/// Part of the strongest points that a direction must have, over what chance gives.
const LEAST: f64 = 0.06;

/// What is in a file.
#[derive(Debug)]
pub(super) enum Content {
    /// Sound or sensors on several channels; `top` is the frequency above which there is nothing.
    Channels {
        channels: usize,
        rate: u32,
        seconds: f64,
        apart: bool,
        top: f64,
    },
    /// One channel.
    Mono {
        rate: u32,
        seconds: f64,
        top: f64,
    },
    Picture {
        width: usize,
        height: usize,
    },
    /// Rows of numbers.
    Points {
        points: usize,
        dims: usize,
        negative: bool,
    },
}

/// The content of a file and how many directions stand out in it, where they can be counted.
#[derive(Debug)]
pub(super) struct Look {
    pub content: Content,
    pub directions: Option<usize>,
    /// Clusters of points that stand apart.
    pub clusters: Option<usize>,
}

impl Look {
    fn new(content: Content, directions: Option<usize>) -> Self {
        Self { content, directions, clusters: None }
    }

    pub fn at(path: &Path) -> Result<Self> {
        if ending(path).as_deref() == Some("png") {
            let form = Form::Patches { width: 8, height: 8, colours: 1 };
            let Sheet { width, height, .. } = Sheet::read(path, form)?;
            if width.min(height) < LEAST_SIDE {
                let what = format!("{width} x {height} pixels are too few to learn patches from");
                return Err(Error::input(what, path.display(), "give a larger picture"));
            }
            return Ok(Self::new(Content::Picture { width, height }, None));
        }
        let mut source = Source::open(path)?;
        let dims = source.dims();
        let mut values = Vec::new();
        source.read_chunk(0, MOST / dims, &mut values)?;
        if values.iter().all(|&y| y == 0.0) {
            return Err(Error::input(
                "all numbers are zero",
                path.display(),
                "check how it was recorded or saved",
            ));
        }
        match source.rate() {
            Some(rate) if dims == 1 => {
                let seconds = source.points() as f64 / f64::from(rate);
                let is_long = source.points() >= bins(rate) as usize;
                let top = if is_long {
                    Band::of(path, &source, rate, bins(rate))?.top
                } else {
                    f64::from(rate) / 2.0
                };
                Ok(Self::new(Content::Mono { rate, seconds, top }, None))
            }
            Some(rate) => Self::channels(path, &source, rate, &values),
            None => {
                let power: f64 = values.iter().map(|y| y * y).sum();
                let below: f64 = values.iter().filter(|y| **y < 0.0).map(|y| y * y).sum();
                let negative = below > 0.02 * power;
                let directions = (negative && dims <= 16).then(|| directions(&values, dims));
                let content = Content::Points { points: source.points(), dims, negative };
                Ok(Self { clusters: clusters(&values, dims)?, ..Self::new(content, directions) })
            }
        }
    }

    fn channels(path: &Path, source: &Source, rate: u32, values: &[f64]) -> Result<Self> {
        let channels = source.dims();
        long_enough(source, bins(rate))?;
        refuse_copies(values, channels, path)?;
        let Band { mut framed, top, .. } = Band::of(path, source, rate, bins(rate))?;
        let mut points = Vec::new();
        framed.read_chunk(0, MOST / channels, &mut points)?;
        let content = Content::Channels {
            channels,
            rate,
            seconds: source.points() as f64 / f64::from(rate),
            apart: delays(values, channels, rate).found(),
            top,
        };
        Ok(Self::new(content, Some(directions(&points, channels))))
    }
}

/// The coefficients of a recording as far as there is anything in them.
pub(super) struct Band {
    pub framed: Source,
    pub gains: Vec<f32>,
    /// Hz.
    pub top: f64,
}

impl Band {
    pub fn of(path: &Path, source: &Source, rate: u32, bins: u32) -> Result<Self> {
        let form = Form::Transform { bins, channels: source.dims() as u32 };
        let mut framed = Source::open_framed(path, Some(&Frame { form, rate, centred: false }), 1)?;
        let spectra: Vec<_> = framed.spectra().into_iter().collect();
        let (gains, used) = (gains(&spectra), used_bins(&spectra));
        framed.even_out(&gains);
        framed.leave_out(used);
        let top = used as f64 / f64::from(bins) * f64::from(rate) / 2.0;
        Ok(Self { framed, gains, top })
    }
}

/// How many directions the strongest points crowd along: the densest first, each with all that is near it, until what is left
/// is no denser than chance.
fn directions(values: &[f64], dims: usize) -> usize {
    let mut points: Vec<(f64, &[f64])> =
        values.chunks_exact(dims).map(|y| (y.iter().map(|y| y * y).sum::<f64>(), y)).collect();
    points.sort_by(|a, b| b.0.total_cmp(&a.0));
    // The loudest twentieth: there one source is alone most often.
    points.truncate((points.len() / 20).clamp(50.min(points.len()), STRONGEST));
    points.retain(|point| point.0 > 0.0);
    let all = points.len() as f64;
    let near = |a: &(f64, &[f64]), b: &(f64, &[f64]), least: f64| {
        let dot: f64 = a.1.iter().zip(b.1).map(|(a, b)| a * b).sum();
        dot * dot > least * a.0 * b.0
    };
    let mut count = 0;
    while !points.is_empty() {
        let crowd = |a: &(f64, &[f64])| points.iter().filter(|b| near(a, b, NEAR)).count();
        let Some(densest) = points.iter().copied().max_by_key(crowd) else { break };
        if (crowd(&densest) as f64) < LEAST * all {
            break;
        }
        count += 1;
        points.retain(|point| !near(point, &densest, APART));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::rng::Rng;

    #[test]
    fn directions_are_counted() {
        let mut rng = Rng::new(1);
        for sources in 1..=4 {
            let values: Vec<f64> = (0..20_000)
                .flat_map(|_| {
                    let which = rng.below(sources) as f64;
                    let (angle, strength) = (0.3 + 0.7 * which, rng.normal::<f64>().powi(3));
                    let noise = [0.05 * rng.normal::<f64>(), 0.05 * rng.normal::<f64>()];
                    [angle.cos() * strength + noise[0], angle.sin() * strength + noise[1]]
                })
                .collect();
            assert_eq!(directions(&values, 2), sources as usize);
        }
        assert_eq!(directions(&[0.0; 40], 2), 0);
    }
}
