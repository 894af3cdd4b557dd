//! First covariances: where sources are, as delays between microphones.
//!
//! A source at delays tau (of microphones 1 to D-1 after microphone 0, in samples) that nothing else overlaps is heard at frequency
//! omega along a(tau) = (1, e^{-i omega tau_1}, ...). For some thousand loud points y, scaled to length 1,
//!
//! ```text
//! ll(tau) = -D ln(1.1 - |a(tau)^H y|^2 / D)
//! ```
//!
//! and the H delays are those with the largest sum over points of max_h ll(tau_h): one after the other, then each again given
//! the others, then in ever smaller steps. No geometry is assumed, so that arrays need not be a line; candidates of each microphone
//! are the peaks of the same sum over pairs, and points between them.
//!
//! The span of delays is that of the spacing, if it is known. Else it comes from the pairs too: whatever is heard, echoes
//! included, arrives within the time that sound takes from one microphone to the other, and the sum falls off beyond it.

#![allow(clippy::needless_range_loop)] // indices as in the equations

use super::hermitian::{Matrix, ZERO, conj, times};
use super::spectra::Spectra;
use super::threads::each;
use spikelet::rng::Rng;
use spikelet::spatial::{Complex, MOST_MICROPHONES};

/// Metres a second.
pub const SPEED_OF_SOUND: f64 = 343.0;
/// Points that are looked at.
const POINTS: usize = 6000;
/// Spread of a source around its direction, in ll.
const SPREAD: f64 = 0.1;
/// Part of the identity in a first covariance.
const DIFFUSE: f64 = 0.1;
/// Samples between delays of a pair.
const STEP: f64 = 1.0 / 16.0;
/// Farthest microphones, in metres, where nothing is known.
const FARTHEST: f64 = 0.5;
/// Candidates of each microphone, by how many microphones have delays.
const CANDIDATES: [usize; MOST_MICROPHONES] = [0, 0, 24, 12];

/// Delays of a source at microphones 1 to D-1, in samples.
pub(super) type Delays = [f64; MOST_MICROPHONES - 1];

/// A loud point.
struct Sample {
    y: [Complex<f64>; MOST_MICROPHONES],
    omega: f64,
}

/// What is known and found about the places of sources.
pub(super) struct Search {
    samples: Vec<Sample>,
    microphones: usize,
    /// Of each pair of microphone 0 and another, in samples.
    pub spans: Vec<f64>,
    candidates: Vec<Delays>,
    /// ll of every candidate, sample after sample.
    scores: Vec<Vec<f32>>,
}

impl Search {
    /// `spacing` of neighbouring microphones, in samples that sound takes.
    pub fn new(spectra: &Spectra, spacing: Option<f64>, rate: f64, seed: u64, threads: usize) -> Self {
        let samples = loud(spectra, seed);
        let d = spectra.microphones;
        let pairs = each((1..d).collect(), threads, |_, k| {
            let farthest = spacing.map_or(FARTHEST * rate / SPEED_OF_SOUND, |s| 1.1 * s * k as f64);
            let grid = Grid::new(farthest.max(2.0 * STEP));
            let sums = grid.delays().map(|tau| pair(&samples, k, tau)).collect::<Vec<f64>>();
            let span = if spacing.is_some() { grid.span } else { span(&grid, &sums) };
            (span, peaks(&grid, &sums, span))
        });
        let spans: Vec<f64> = pairs.iter().map(|(span, _)| *span).collect();
        let lists: Vec<Vec<f64>> = pairs.into_iter().map(|(span, peaks)| list(span, peaks, d)).collect();
        let mut candidates = vec![[0.0; MOST_MICROPHONES - 1]];
        for (k, list) in lists.iter().enumerate() {
            let with = |delays: &Delays, &tau: &f64| {
                let mut delays = *delays;
                delays[k] = tau;
                delays
            };
            candidates = candidates.iter().flat_map(|c| list.iter().map(move |tau| with(c, tau))).collect();
        }
        let scores = each(candidates.clone(), threads, |_, delays| {
            samples.iter().map(|sample| score(sample, &delays, d) as f32).collect()
        });
        Self { samples, microphones: d, spans, candidates, scores }
    }

    /// The delays of H sources, and the mean of max_h ll.
    pub fn best(&self, sources: usize) -> (Vec<Delays>, f64) {
        let mut chosen: Vec<usize> = Vec::new();
        let gain = |top: &[f32], index: usize| -> f64 {
            top.iter().zip(&self.scores[index]).map(|(a, b)| f64::from(a.max(*b))).sum()
        };
        let best_beside = |top: &[f32]| {
            let sums = (0..self.candidates.len()).map(|index| gain(top, index));
            sums.enumerate().fold((0, f64::MIN), |best, now| if now.1 > best.1 { now } else { best }).0
        };
        let top_without = |chosen: &[usize], left_out: usize| {
            let mut top = vec![f32::MIN; self.samples.len()];
            for (_, &index) in chosen.iter().enumerate().filter(|(at, _)| *at != left_out) {
                top.iter_mut().zip(&self.scores[index]).for_each(|(top, score)| *top = top.max(*score));
            }
            top
        };
        for _ in 0..sources {
            chosen.push(best_beside(&top_without(&chosen, usize::MAX)));
        }
        for _ in 0..20 {
            let before = chosen.clone();
            for at in 0..sources {
                chosen[at] = best_beside(&top_without(&chosen, at));
            }
            if before == chosen {
                break;
            }
        }
        let mut delays: Vec<Delays> = chosen.iter().map(|&index| self.candidates[index]).collect();
        let sum = self.refine(&mut delays);
        (delays, sum / self.samples.len().max(1) as f64)
    }

    /// Moves each delay by steps that halve, as long as that helps.
    fn refine(&self, delays: &mut [Delays]) -> f64 {
        let own = |delays: &Delays| -> Vec<f64> {
            self.samples.iter().map(|sample| score(sample, delays, self.microphones)).collect()
        };
        let total = |all: &[Vec<f64>]| -> f64 {
            (0..self.samples.len()).map(|n| all.iter().map(|s| s[n]).fold(f64::MIN, f64::max)).sum()
        };
        let mut scores: Vec<Vec<f64>> = delays.iter().map(own).collect();
        let mut best = total(&scores);
        let widest = self.spans.iter().fold(0.0f64, |a, b| a.max(*b));
        let mut step = if self.microphones == 2 { STEP } else { (widest / 12.0).clamp(STEP, 0.5) };
        while step > STEP / 4.0 {
            let mut moved = false;
            for source in 0..delays.len() {
                for (k, span) in self.spans.iter().enumerate() {
                    for change in [step, -step] {
                        let before = (delays[source], scores[source].clone());
                        delays[source][k] = (delays[source][k] + change).clamp(-span, *span);
                        scores[source] = own(&delays[source]);
                        let now = total(&scores);
                        match now > best {
                            true => (best, moved) = (now, true),
                            false => (delays[source], scores[source]) = before,
                        }
                    }
                }
            }
            step *= if moved { 1.0 } else { 0.5 };
        }
        best
    }
}

/// R = a a^H + 0.1 I at a frequency.
pub(super) fn covariance(delays: &Delays, omega: f64, d: usize) -> Matrix {
    let a = steering(delays, omega);
    let mut r = ZERO;
    for i in 0..d {
        for j in 0..d {
            r[i][j] = times(a[i], conj(a[j]));
        }
        r[i][i][0] += DIFFUSE;
    }
    r
}

fn steering(delays: &Delays, omega: f64) -> [Complex<f64>; MOST_MICROPHONES] {
    let mut a = [[1.0, 0.0]; MOST_MICROPHONES];
    for (a, tau) in a[1..].iter_mut().zip(delays) {
        let (sin, cos) = (-omega * tau).sin_cos();
        *a = [cos, sin];
    }
    a
}

fn score(sample: &Sample, delays: &Delays, d: usize) -> f64 {
    let a = steering(delays, sample.omega);
    let mut sum = [0.0; 2];
    for (a, y) in a.iter().zip(&sample.y).take(d) {
        let [re, im] = times(conj(*a), *y);
        sum = [sum[0] + re, sum[1] + im];
    }
    let along = (sum[0] * sum[0] + sum[1] * sum[1]) / d as f64;
    -(d as f64) * (1.0 + SPREAD - along).ln()
}

/// Points louder than their bin usually is, without the lowest bins, where delays do not show; some at random.
fn loud(spectra: &Spectra, seed: u64) -> Vec<Sample> {
    let mut places = Vec::new();
    for bin in spectra.bins / 16..spectra.bins {
        let powers = spectra.powers(bin);
        let mut sorted = powers.to_vec();
        sorted.sort_unstable_by(f32::total_cmp);
        let median = sorted[sorted.len() / 2];
        places.extend((0..spectra.frames).filter(|&t| powers[t] > median).map(|t| (bin, t)));
    }
    let mut rng = Rng::new(seed);
    let count = places.len().min(POINTS);
    for i in 0..count {
        let j = i + (rng.uniform::<f64>() * (places.len() - i) as f64) as usize;
        let last = places.len() - 1;
        places.swap(i, j.min(last));
    }
    places.truncate(count);
    let length = 2 * (spectra.bins - 1);
    let sample = |(bin, t): (usize, usize)| Sample {
        y: spectra.point(bin, t),
        omega: std::f64::consts::TAU * bin as f64 / length as f64,
    };
    places.into_iter().map(sample).collect()
}

/// Delays from -span to span.
struct Grid {
    span: f64,
    half: usize,
}

impl Grid {
    fn new(span: f64) -> Self {
        Self { span, half: (span / STEP).ceil() as usize }
    }

    fn delays(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=2 * self.half).map(|i| (i as f64 / self.half as f64 - 1.0) * self.span)
    }
}

/// The sum over samples of ll of microphones 0 and k alone.
fn pair(samples: &[Sample], k: usize, tau: f64) -> f64 {
    let two = |sample: &Sample| {
        let (a, b) = (sample.y[0], sample.y[k]);
        let energy = a[0] * a[0] + a[1] * a[1] + b[0] * b[0] + b[1] * b[1];
        if energy < 1e-6 {
            return 0.0;
        }
        let (sin, cos) = (sample.omega * tau).sin_cos();
        let [re, im] = times([cos, sin], b);
        let along = ((a[0] + re) * (a[0] + re) + (a[1] + im) * (a[1] + im)) / (2.0 * energy);
        -2.0 * (1.0 + SPREAD - along).ln()
    };
    samples.iter().map(two).sum()
}

/// The farthest delay at which the sum is well above its usual level, and a little more.
fn span(grid: &Grid, sums: &[f64]) -> f64 {
    let mut sorted = sums.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (usual, most) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    let level = usual + 0.35 * (most - usual);
    let high = grid.delays().zip(sums).filter(|(_, sum)| **sum > level);
    let farthest = high.map(|(tau, _)| tau.abs()).fold(0.0, f64::max);
    (1.1 * farthest + 0.2).min(grid.span)
}

/// Delays of local maxima, the highest first.
fn peaks(grid: &Grid, sums: &[f64], span: f64) -> Vec<f64> {
    let delays: Vec<f64> = grid.delays().collect();
    let is_peak = |&i: &usize| sums[i] > sums[i - 1] && sums[i] >= sums[i + 1] && delays[i].abs() <= span;
    let mut peaks: Vec<usize> = (1..sums.len() - 1).filter(is_peak).collect();
    peaks.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]));
    peaks.into_iter().map(|i| delays[i]).collect()
}

/// Candidates of one microphone: a fine grid where there are two, else peaks and a coarse one.
fn list(span: f64, mut peaks: Vec<f64>, microphones: usize) -> Vec<f64> {
    if microphones == 2 {
        return Grid::new(span).delays().collect();
    }
    let count = CANDIDATES[microphones - 1];
    peaks.truncate(count / 3);
    let rest = count - peaks.len();
    peaks.extend((0..rest).map(|i| span * (2.0 * i as f64 / (rest - 1) as f64 - 1.0)));
    peaks
}
