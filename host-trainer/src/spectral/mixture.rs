//! A mixture of Gaussians of one variance, by expectation maximisation: one group of latents of which exactly one is on [004].

use super::{Heard, Settings};
use crate::{Error, Result};
use spikelet::rng::Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames that one thread takes at a time: sums are made of these pieces in order, whatever the number of threads.
const PIECE: usize = 512;
/// EM ends when the free energy changes by less than this fraction.
const TOLERANCE: f64 = 1e-6;
/// Latents expected less often than this many frames begin again where frames are explained worst.
const RARE: f64 = 0.5;
/// No prior is smaller.
const LEAST_PRIOR: f64 = 1e-5;

/// W, prior, variance, and how it was found.
#[derive(Clone, Debug)]
pub struct Mixture {
    /// W. (K x D)
    pub means: Vec<f32>,
    /// Probabilities of latents.
    pub prior: Vec<f64>,
    /// Of all dimensions.
    pub variance: f64,
    /// Free energy of all frames before each iteration.
    pub history: Vec<f64>,
    /// Seconds from the start to each.
    pub seconds: Vec<f64>,
    dims: usize,
}

/// Sums over frames of one piece.
struct Sums {
    weight: Vec<f64>,
    first: Vec<f64>,
    off: f64,
    free_energy: f64,
    /// The frame that is explained worst, and its distance.
    worst: (f64, usize),
}

impl Mixture {
    /// From frames; begins at some of them, chosen with probabilities that grow with the distance to those chosen before.
    pub fn learn(heard: &Heard, settings: &Settings, mut progress: impl FnMut(usize, f64)) -> Result<Self> {
        let (n, k, d) = (heard.len(), settings.latents, heard.dims);
        if n < 2 * k {
            let what = format!("{n} frames cannot teach {k} latents");
            return Err(Error::input(what, "the recordings", "give longer ones, or fewer --latents"));
        }
        let start = std::time::Instant::now();
        let mut rng = Rng::new(settings.seed);
        let (means, off) = spread(heard, k, &mut rng);
        let variance = (off / (n * d) as f64).max(1e-8);
        let mut mixture = Self {
            means,
            prior: vec![1.0 / k as f64; k],
            variance,
            history: Vec::new(),
            seconds: Vec::new(),
            dims: d,
        };
        for iteration in 0..settings.iterations {
            let pieces = mixture.e_step(heard, settings.threads);
            let free_energy: f64 = pieces.iter().map(|sums| sums.free_energy).sum();
            mixture.history.push(free_energy);
            mixture.seconds.push(start.elapsed().as_secs_f64());
            progress(iteration, free_energy);
            let before = mixture.history.iter().rev().nth(1);
            if before.is_some_and(|before| (free_energy - before).abs() < TOLERANCE * free_energy.abs()) {
                break;
            }
            mixture.m_step(heard, &pieces);
        }
        Ok(mixture)
    }

    fn m_step(&mut self, heard: &Heard, pieces: &[Sums]) {
        let (n, k, d) = (heard.len(), self.prior.len(), self.dims);
        let (mut weight, mut first, mut off) = (vec![0.0; k], vec![0.0; k * d], 0.0);
        for sums in pieces {
            weight.iter_mut().zip(&sums.weight).for_each(|(to, x)| *to += x);
            first.iter_mut().zip(&sums.first).for_each(|(to, x)| *to += x);
            off += sums.off;
        }
        let mut worst: Vec<(f64, usize)> = pieces.iter().map(|sums| sums.worst).collect();
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut worst = worst.into_iter();
        for (h, mean) in self.means.chunks_exact_mut(d).enumerate() {
            if weight[h] > RARE {
                mean.iter_mut().zip(&first[h * d..]).for_each(|(to, sum)| *to = (sum / weight[h]) as f32);
            } else if let Some((_, frame)) = worst.next() {
                mean.copy_from_slice(&heard.bands[frame * d..][..d]);
            }
        }
        let total: f64 = weight.iter().map(|w| w / n as f64 + LEAST_PRIOR).sum();
        self.prior = weight.iter().map(|w| (w / n as f64 + LEAST_PRIOR) / total).collect();
        self.variance = (off / (n * d) as f64).max(1e-8);
    }

    /// Posterior probabilities of a frame, its free energy, and its expected and its least squared distance.
    fn posterior(&self, frame: &[f32], weights: &mut [f64]) -> (f64, f64, f64) {
        let half = 0.5 / self.variance;
        let mut least = f64::INFINITY;
        let mut most = f64::NEG_INFINITY;
        let mut offs = vec![0.0; weights.len()];
        for (h, mean) in self.means.chunks_exact(self.dims).enumerate() {
            offs[h] = f64::from(squared(frame, mean));
            weights[h] = self.prior[h].ln() - half * offs[h];
            (least, most) = (least.min(offs[h]), most.max(weights[h]));
        }
        let mut total = 0.0;
        for weight in weights.iter_mut() {
            *weight = (*weight - most).exp();
            total += *weight;
        }
        let mut off = 0.0;
        for (weight, distance) in weights.iter_mut().zip(&offs) {
            *weight /= total;
            off += *weight * distance;
        }
        let norm = -0.5 * self.dims as f64 * (std::f64::consts::TAU * self.variance).ln();
        (norm + most + total.ln(), off, least)
    }

    fn e_step(&self, heard: &Heard, threads: usize) -> Vec<Sums> {
        let (k, d) = (self.prior.len(), self.dims);
        in_pieces(heard.len(), threads, |range| {
            let mut sums = Sums {
                weight: vec![0.0; k],
                first: vec![0.0; k * d],
                off: 0.0,
                free_energy: 0.0,
                worst: (0.0, range.start),
            };
            let mut weights = vec![0.0; k];
            for n in range {
                let frame = &heard.bands[n * d..][..d];
                let (free_energy, off, least) = self.posterior(frame, &mut weights);
                sums.free_energy += free_energy;
                sums.off += off;
                if least > sums.worst.0 {
                    sums.worst = (least, n);
                }
                for (h, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 1e-12) {
                    sums.weight[h] += weight;
                    let first = sums.first[h * d..][..d].iter_mut();
                    first.zip(frame).for_each(|(to, &v)| *to += weight * f64::from(v));
                }
            }
            sums
        })
    }

    /// U (K x bins) and transitions (K x K) over so many frames.
    pub fn statistics(&self, heard: &Heard, lag: usize) -> (Vec<f64>, Vec<f64>) {
        let (k, d, bins) = (self.prior.len(), self.dims, heard.power.len() / heard.len().max(1));
        let (mut power, mut weight) = (vec![0.0; k * bins], vec![0.0; k]);
        let mut transitions = vec![0.0; k * k];
        let mut start = 0;
        for &end in &heard.ends {
            let mut all: Vec<Vec<f64>> = Vec::with_capacity(end - start);
            for n in start..end {
                let mut weights = vec![0.0; k];
                self.posterior(&heard.bands[n * d..][..d], &mut weights);
                for (h, &q) in weights.iter().enumerate().filter(|(_, q)| **q > 1e-6) {
                    weight[h] += q;
                    let row = power[h * bins..][..bins].iter_mut();
                    row.zip(&heard.power[n * bins..]).for_each(|(to, &a)| *to += q * f64::from(a));
                    if let Some(before) = all.len().checked_sub(lag) {
                        for (i, &p) in all[before].iter().enumerate().filter(|(_, p)| **p > 1e-6) {
                            transitions[i * k + h] += p * q;
                        }
                    }
                }
                all.push(weights);
            }
            start = end;
        }
        for (row, weight) in power.chunks_exact_mut(bins.max(1)).zip(&weight) {
            row.iter_mut().for_each(|u| *u /= weight.max(1e-9));
        }
        for row in transitions.chunks_exact_mut(k) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|t| *t /= sum.max(1e-9));
        }
        (power, transitions)
    }

    /// The rms distance, per dimension, of frames to the nearest latent.
    pub fn distance(&self, heard: &Heard) -> f64 {
        let nearest = |frame: &[f32]| {
            let offs = self.means.chunks_exact(self.dims).map(|mean| squared(frame, mean));
            f64::from(offs.fold(f32::INFINITY, f32::min))
        };
        let sum: f64 = heard.bands.chunks_exact(self.dims).map(nearest).sum();
        (sum / heard.bands.len().max(1) as f64).sqrt()
    }
}

/// |a - b|^2, in eight interleaved sums.
fn squared(a: &[f32], b: &[f32]) -> f32 {
    let ((a8, a1), (b8, b1)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0f32; 8];
    for (a, b) in a8.iter().zip(b8) {
        for i in 0..8 {
            sums[i] += (a[i] - b[i]) * (a[i] - b[i]);
        }
    }
    let rest: f32 = a1.iter().zip(b1).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f32>() + rest
}

/// First means [Arthur and Vassilvitskii 2007], and the sum of squared distances to the nearest.
fn spread(heard: &Heard, k: usize, rng: &mut Rng) -> (Vec<f32>, f64) {
    let (n, d) = (heard.len(), heard.dims);
    let frame = |i: usize| &heard.bands[i * d..][..d];
    let mut means = Vec::with_capacity(k * d);
    let mut nearest = vec![f32::INFINITY; n];
    let mut chosen = ((rng.uniform::<f64>() * n as f64) as usize).min(n - 1);
    let mut total = 0.0;
    for _ in 0..k {
        means.extend(frame(chosen));
        let latest = frame(chosen);
        total = 0.0;
        for (i, near) in nearest.iter_mut().enumerate() {
            *near = near.min(squared(frame(i), latest));
            total += f64::from(*near);
        }
        let mut left = rng.uniform::<f64>() * total;
        chosen = n - 1;
        for (i, &near) in nearest.iter().enumerate() {
            left -= f64::from(near);
            if left < 0.0 {
                chosen = i;
                break;
            }
        }
    }
    (means, total)
}

/// Results of all pieces of `n` frames, in order.
fn in_pieces<T: Send>(n: usize, threads: usize, work: impl Fn(std::ops::Range<usize>) -> T + Sync) -> Vec<T> {
    let count = n.div_ceil(PIECE);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let result = work(at * PIECE..((at + 1) * PIECE).min(n));
            done.lock().unwrap_or_else(|broken| broken.into_inner()).push((at, result));
        }
    };
    std::thread::scope(|scope| (0..threads.clamp(1, count.max(1))).for_each(|_| drop(scope.spawn(run))));
    let mut results = done.into_inner().unwrap_or_else(|broken| broken.into_inner());
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
