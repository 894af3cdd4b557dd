//! Candidate positions of the objects in an image: by a scan of all positions, or by regression from the image [004 sec. 4.5.3].
//!
//! The scan scores every object at every position by what its pixels gain if it is alone, sum_j ln(m e^l + 1 - m); pixels are rounded to
//! [`LEVELS`] values, for which these are tabulated: s^2 additions a position. Regression ([`crate::gp`]) takes the image as input and has one
//! output for every object and position: one factorisation serves all of them, Q operations an output.

use super::{Objects, Placed, Posterior};
use crate::gp::{Factor, Kernel, KernelName, fit};
use crate::{Error, Result};

/// Values that a scan tells apart.
pub const LEVELS: usize = 64;

/// Scores of all objects at all positions of every image. (N x H x positions)
pub fn scan(objects: &Objects, images: &[f64]) -> Vec<f64> {
    let (low, high) =
        images.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(*y), h.max(*y)));
    let step = ((high - low) / (LEVELS - 1) as f64).max(f64::MIN_POSITIVE);
    let (size, places) = (objects.side * objects.side, objects.places());
    let entry = |e: usize| {
        let (h, j, level) = (e / (size * LEVELS), e / LEVELS % size, e % LEVELS);
        objects.alone(h, j, low + step * level as f64)
    };
    let table: Vec<f64> = (0..objects.count() * size * LEVELS).map(entry).collect();
    let prior: Vec<f64> = objects.prior.iter().map(|pi| (pi / (1.0 - pi)).ln()).collect();
    let mut scores = Vec::with_capacity(
        images.len() / (objects.canvas * objects.canvas) * objects.count() * places * places,
    );
    for image in images.chunks_exact(objects.canvas * objects.canvas) {
        let levels: Vec<usize> =
            image.iter().map(|y| (((y - low) / step).round() as usize).min(LEVELS - 1)).collect();
        for (table, prior) in table.chunks_exact(size * LEVELS).zip(&prior) {
            for position in 0..places * places {
                let first = position / places * objects.canvas + position % places;
                let mut sum = *prior;
                for (row, table) in table.chunks_exact(objects.side * LEVELS).enumerate() {
                    let levels = &levels[first + row * objects.canvas..][..objects.side];
                    for (level, table) in levels.iter().zip(table.chunks_exact(LEVELS)) {
                        sum += table[*level];
                    }
                }
                scores.push(sum);
            }
        }
    }
    scores
}

/// The `count` objects with the best scores of one image (H x positions), each with its `each` best positions; of equals the first.
pub fn candidates(objects: &Objects, scores: &[f64], count: usize, each: usize) -> Vec<(usize, Vec<usize>)> {
    let mut ranked: Vec<(f64, usize, Vec<usize>)> = scores
        .chunks_exact(objects.positions())
        .enumerate()
        .map(|(object, scores)| {
            let mut best: Vec<usize> = Vec::with_capacity(each + 1);
            for (position, score) in scores.iter().enumerate() {
                let place = best.partition_point(|other| scores[*other] >= *score);
                if place < each {
                    best.insert(place, position);
                    best.truncate(each);
                }
            }
            (scores[best[0]], object, best)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().take(count).map(|(_, object, positions)| (object, positions)).collect()
}

/// What regression predicts of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// From all other images [004 eq. 4.6].
    ByOthers,
    /// From all images, its own posterior of the last iteration among them.
    ByAll,
}

/// Regression of posteriors on images.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    kernels: Option<(Kernel, Kernel)>,
    factor: Option<Factor>,
}

impl Learned {
    /// Scores of all objects at all positions (N x H x positions) from the last posteriors; the kernel is fitted anew where it `is_due`.
    pub fn scores(
        &mut self,
        objects: &Objects,
        images: &[f64],
        posteriors: &[Posterior],
        (rank, is_due, told): (usize, bool, Told),
    ) -> Result<Vec<f64>> {
        let dims = objects.canvas * objects.canvas;
        let outputs = objects.count() * objects.positions();
        let mut targets = vec![0.0; posteriors.len() * outputs];
        for (targets, posterior) in targets.chunks_exact_mut(outputs).zip(posteriors) {
            for &(Placed { object, position }, probability) in &posterior.placed {
                targets[object * objects.positions() + position] = probability;
            }
        }
        if is_due || self.factor.is_none() {
            let power = targets.iter().map(|t| t * t).sum::<f64>() / targets.len() as f64;
            let begin = Kernel::new(KernelName::Rbf, images, dims, power);
            let (first, now) = self.kernels.unwrap_or((begin, begin));
            let now = fit(now, &first, images, dims, &targets, outputs);
            self.kernels = Some((first, now));
            self.factor = Factor::new(now, images, dims, rank);
        }
        let (Some(factor), Some((_, kernel))) = (&self.factor, self.kernels) else {
            let what = "the kernel matrix of the images is not positive definite";
            return Err(Error::run(what, "the selection", "rescale the images"));
        };
        Ok(match told {
            Told::ByOthers => factor.affinities(&targets, outputs),
            Told::ByAll => {
                // K (K + white)^-1 S = S - white (K + white)^-1 S.
                let weights = factor.weights(&targets, outputs);
                targets.iter().zip(weights).map(|(target, weight)| target - kernel.white * weight).collect()
            }
        })
    }
}
