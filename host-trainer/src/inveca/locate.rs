//! Candidate positions of the objects in an image: by a scan of all positions, or by regression from the image [004 sec. 4.5.3].
//!
//! The scan scores every object at every position by what its pixels gain if it is alone, sum_j ln(m e^l + 1 - m); pixels are
//! rounded to [`LEVELS`] values, for which these are tabulated: s^2 additions a position. The same at a few positions only is a
//! second look ([`Scan::look_again`]) at what regression found. Regression ([`crate::gp`]) takes the image as input and has one
//! output for every object and position: one factorisation serves all of them.

use super::{Objects, Posterior};
use crate::gp::fit::SUBSET;
use crate::gp::{Factor, Kernel, KernelName, fit};
use crate::{Error, Result};
use faer::Mat;

/// Values that a scan tells apart.
pub const LEVELS: usize = 64;

/// What every pixel of every object gains alone, for each of [`LEVELS`] values.
#[derive(Clone, Debug)]
pub struct Scan {
    low: f64,
    step: f64,
    /// (H x s^2 x LEVELS)
    table: Vec<f64>,
}

impl Scan {
    /// For images with the values of these.
    pub fn new(objects: &Objects, images: &[f64]) -> Self {
        let (low, high) =
            images.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(*y), h.max(*y)));
        let step = ((high - low) / (LEVELS - 1) as f64).max(f64::MIN_POSITIVE);
        let size = objects.side * objects.side;
        let entry = |e: usize| {
            let (h, j, level) = (e / (size * LEVELS), e / LEVELS % size, e % LEVELS);
            objects.alone(h, j, low + step * level as f64)
        };
        Self { low, step, table: (0..objects.count() * size * LEVELS).map(entry).collect() }
    }

    /// Scores of all objects at all positions of an image. (H x positions)
    pub fn scores(&self, objects: &Objects, image: &[f64]) -> Vec<f64> {
        let (levels, positions) = (self.levels(image), objects.positions());
        let score = |at: usize| self.score(objects, &levels, at / positions, at % positions);
        (0..objects.count() * positions).map(score).collect()
    }

    /// The scan's scores where these (H x positions) are largest, at `count` positions of every object; nowhere else.
    pub fn look_again(&self, objects: &Objects, image: &[f64], scores: &mut [f64], count: usize) {
        let levels = self.levels(image);
        let mut order: Vec<usize> = Vec::with_capacity(objects.positions());
        for (object, scores) in scores.chunks_exact_mut(objects.positions()).enumerate() {
            order.clear();
            order.extend(0..scores.len());
            if count < order.len() {
                let better = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
                order.select_nth_unstable_by(count, better);
            }
            scores.fill(f64::NEG_INFINITY);
            for &position in order.iter().take(count) {
                scores[position] = self.score(objects, &levels, object, position);
            }
        }
    }

    /// Which of the values every pixel is nearest to.
    fn levels(&self, image: &[f64]) -> Vec<usize> {
        let level = |y: &f64| (((y - self.low) / self.step).round() as usize).min(LEVELS - 1);
        image.iter().map(level).collect()
    }

    fn score(&self, objects: &Objects, levels: &[usize], object: usize, position: usize) -> f64 {
        let size = objects.side * objects.side;
        let first = objects.pixel(position, 0);
        let pi = objects.prior[object];
        let mut sum = (pi / (1.0 - pi)).ln();
        let table = &self.table[object * size * LEVELS..][..size * LEVELS];
        for (row, table) in table.chunks_exact(objects.side * LEVELS).enumerate() {
            let levels = &levels[first + row * objects.canvas..][..objects.side];
            for (level, table) in levels.iter().zip(table.chunks_exact(LEVELS)) {
                sum += table[*level];
            }
        }
        sum
    }
}

/// Scores of all objects at all positions of every image. (N x H x positions)
pub fn scan(objects: &Objects, images: &[f64]) -> Vec<f64> {
    let tables = Scan::new(objects, images);
    images
        .chunks_exact(objects.canvas * objects.canvas)
        .flat_map(|image| tables.scores(objects, image))
        .collect()
}

/// The same without tables, as its definition says: an exponential and a logarithm for every pixel of every object at every position.
pub fn plain_scan(objects: &Objects, images: &[f64]) -> Vec<f64> {
    let size = objects.side * objects.side;
    let mut scores = Vec::new();
    for image in images.chunks_exact(objects.canvas * objects.canvas) {
        for (h, pi) in objects.prior.iter().enumerate() {
            scores.extend((0..objects.positions()).map(|position| {
                let gain = |j: usize| objects.alone(h, j, image[objects.pixel(position, j)]);
                (pi / (1.0 - pi)).ln() + (0..size).map(gain).sum::<f64>()
            }));
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
///
/// Of the N x H x positions targets few are not zero, the candidates of an image; with K^-1 made once, scores of an image cost
/// one row of it times these, N times candidates operations, whatever the rank.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    kernels: Option<(Kernel, Kernel)>,
    inverse: Option<Mat<f64>>,
}

impl Learned {
    /// Fits the kernel to the last posteriors, with at most so many images of them, and factors it with at most `rank` pivots.
    pub fn fit(
        &mut self,
        objects: &Objects,
        images: &[f64],
        posteriors: &[Posterior],
        (name, rank): (KernelName, usize),
    ) -> Result<()> {
        let dims = objects.canvas * objects.canvas;
        let outputs = objects.count() * objects.positions();
        // The images that the fit looks at.
        let n = posteriors.len();
        let chosen: Vec<usize> = (0..n.min(SUBSET)).map(|k| k * n / n.min(SUBSET)).collect();
        let some: Vec<f64> =
            chosen.iter().flat_map(|&n| images[n * dims..][..dims].iter().copied()).collect();
        let mut targets = vec![0.0; chosen.len() * outputs];
        for (targets, &n) in targets.chunks_exact_mut(outputs).zip(&chosen) {
            for &(placed, probability) in &posteriors[n].placed {
                targets[objects.output(placed)] = probability;
            }
        }
        let power = targets.iter().map(|t| t * t).sum::<f64>() / targets.len() as f64;
        let begin = Kernel::new(name, images, dims, power);
        let (first, now) = self.kernels.unwrap_or((begin, begin));
        let now = fit(now, &first, &some, dims, &targets, outputs);
        self.kernels = Some((first, now));
        self.inverse = Factor::new(now, images, dims, rank).map(|factor| factor.whole_inverse());
        match self.inverse {
            Some(_) => Ok(()),
            None => {
                let what = "the kernel matrix of the images is not positive definite";
                Err(Error::run(what, "the selection", "rescale the images"))
            }
        }
    }

    /// The kernel as fitted last.
    pub fn kernel(&self) -> Option<Kernel> {
        self.kernels.map(|(_, now)| now)
    }

    /// Scores of all objects at all positions of image n (H x positions), with these posteriors. Nothing where nothing is fitted.
    pub fn scores(&self, objects: &Objects, posteriors: &[Posterior], n: usize, told: Told) -> Vec<f64> {
        let mut scores = vec![0.0; objects.count() * objects.positions()];
        let (Some(inverse), Some((_, kernel))) = (&self.inverse, self.kernels) else { return scores };
        // Of others: S - K^-1 S / [K^-1]_nn. Of all: (K - white) K^-1 S = S - white K^-1 S.
        let scale = match told {
            Told::ByOthers => 1.0 / inverse[(n, n)],
            Told::ByAll => kernel.white,
        };
        for (m, posterior) in posteriors.iter().enumerate() {
            let weight = f64::from(u8::from(m == n)) - scale * inverse[(m, n)];
            for &(placed, probability) in &posterior.placed {
                scores[objects.output(placed)] += weight * probability;
            }
        }
        scores
    }

    /// Scores of an image that was not learned from: sum_m k(y, y_m) K^-1 S.
    pub fn predicted(
        &self,
        objects: &Objects,
        images: &[f64],
        posteriors: &[Posterior],
        image: &[f64],
    ) -> Vec<f64> {
        let mut scores = vec![0.0; objects.count() * objects.positions()];
        let (Some(inverse), Some((_, kernel))) = (&self.inverse, self.kernels) else { return scores };
        let near: Vec<f64> =
            images.chunks_exact(image.len()).map(|other| kernel.between(image, other)).collect();
        for (m, posterior) in posteriors.iter().enumerate() {
            let weight: f64 = near.iter().enumerate().map(|(i, k)| k * inverse[(i, m)]).sum();
            for &(placed, probability) in &posterior.placed {
                scores[objects.output(placed)] += weight * probability;
            }
        }
        scores
    }
}
