//! One source per point: this settles which covariance of every bin belongs to which source.
//!
//! Every point y of bin f and frame t is made by one source, or by a diffuse background of covariance I:
//!
//! ```text
//! p(h | y) ~ (1 - pi0_f) r_ht / (det R_hf (y^H R_hf^-1 y)^D),   p(0 | y) ~ pi0_f
//! R_hf <- sum_t p_h / q_h y y^H, its trace set to D;   r_ht <- sum over all bins of p_h;   pi0_f <- mean over frames of p_0
//! ```
//!
//! r_ht is shared by all bins of a frame: a voice is heard in many bins at once, so that bins agree on who is who. With exact
//! updates this is EM; the floors below keep covariances and probabilities away from the border.

#![allow(clippy::needless_range_loop)] // indices as in the equations

use super::Frames;
use super::hermitian::{Coordinates, Matrix, ZERO, accumulate, coordinates, inverse, matrix, scalar, trace};
use super::spectra::Spectra;
use super::threads::each;
use spikelet::spatial::{Complex, MOST_SOURCES};
use std::f64::consts::SQRT_2;

/// Least probabilities, and the part of the identity that is added to covariances.
pub(super) const FLOOR: f64 = 1e-3;
/// Most of the background.
const MOST_SILENCE: f64 = 0.9;
/// Bins that are added up together, whatever the number of threads.
const CHUNK: usize = 16;

/// Parameters of a bin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bin {
    /// R_h.
    pub covariances: Vec<Matrix>,
    /// pi0.
    pub silence: f64,
}

/// Coordinates of y y^H.
pub(super) fn outer<const D: usize>(y: &[Complex<f64>; D]) -> Coordinates {
    let mut z = Coordinates::default();
    for i in 0..D {
        for j in 0..i {
            let ([a, b], [c, d]) = (y[i], y[j]);
            z[i * i + 2 * j] = SQRT_2 * (a * c + b * d);
            z[i * i + 2 * j + 1] = SQRT_2 * (b * c - a * d);
        }
        z[i * i + 2 * i] = y[i][0] * y[i][0] + y[i][1] * y[i][1];
    }
    z
}

/// v . z over D^2 coordinates.
pub(super) fn dot<const D: usize>(v: &Coordinates, z: &Coordinates) -> f64 {
    let mut sum = 0.0;
    for i in 0..D * D {
        sum += v[i] * z[i];
    }
    sum
}

/// The mean of ln p(y) over all points but those of the lowest and highest frequencies, where the sources of a frame are told by the
/// bins that are elsewhere: r_ht is of all chunks of bins but the point's own.
pub(super) fn predicted<const D: usize>(
    spectra: &Spectra,
    bins: &[Bin],
    presence: &Frames,
    threads: usize,
) -> f64 {
    let edge = bins.len() / 16;
    let chunks: Vec<usize> = (edge..bins.len() - edge).step_by(CHUNK).collect();
    let run = |first: usize, presence: &Frames| {
        let (mut sums, mut objective, mut points) = (vec![0.0; presence.values.len()], 0.0, 0);
        for (index, bin) in bins.iter().enumerate().take(bins.len() - edge).skip(first).take(CHUNK) {
            objective += one_bin::<D>(spectra, index, &mut bin.clone(), presence, &mut sums, FLOOR);
            points += spectra.powers(index).iter().filter(|power| **power > 0.0).count();
        }
        (sums, objective, points)
    };
    let heard = each(chunks.clone(), threads, |_, first| run(first, presence).0);
    let mut total = vec![0.0; presence.values.len()];
    heard.iter().for_each(|sums| total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum));
    let parts = each(chunks, threads, |chunk, first| {
        let elsewhere: Vec<f64> = total.iter().zip(&heard[chunk]).map(|(total, own)| total - own).collect();
        let mut others = presence.clone();
        normalised(&mut others, &elsewhere, FLOOR);
        let (_, objective, points) = run(first, &others);
        (objective, points)
    });
    let (objective, points) = parts.iter().fold((0.0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    objective / points.max(1) as f64
}

/// r_ht of sums over bins.
fn normalised(presence: &mut Frames, sums: &[f64], floor: f64) {
    let sources = presence.sources;
    for (r, sums) in presence.values.chunks_exact_mut(sources).zip(sums.chunks_exact(sources)) {
        let total: f64 = sums.iter().sum();
        if total > 0.0 {
            r.iter_mut().zip(sums).for_each(|(r, sum)| *r = (sum / total).max(floor));
        }
    }
}

/// One iteration: new bins, new r (frames x sources) and the sum of ln p(y) before it. `floor` as [`FLOOR`].
pub(super) fn iterate<const D: usize>(
    spectra: &Spectra,
    bins: Vec<Bin>,
    presence: &mut Frames,
    floor: f64,
    threads: usize,
) -> (Vec<Bin>, f64) {
    let mut chunks = Vec::new();
    let mut rest = bins;
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(CHUNK));
        chunks.push(std::mem::replace(&mut rest, tail));
    }
    let shared: &Frames = presence;
    let parts = each(chunks, threads, |chunk, mut bins| {
        let (mut sums, mut objective) = (vec![0.0; shared.values.len()], 0.0);
        for (i, bin) in bins.iter_mut().enumerate() {
            objective += one_bin::<D>(spectra, chunk * CHUNK + i, bin, shared, &mut sums, floor);
        }
        (bins, sums, objective)
    });
    let (mut bins, mut sums, mut objective) = (Vec::new(), vec![0.0; presence.values.len()], 0.0);
    for (some, more, term) in parts {
        bins.extend(some);
        sums.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
        objective += term;
    }
    normalised(presence, &sums, floor);
    (bins, objective)
}

fn one_bin<const D: usize>(
    spectra: &Spectra,
    index: usize,
    bin: &mut Bin,
    presence: &Frames,
    sums: &mut [f64],
    floor: f64,
) -> f64 {
    let sources = presence.sources;
    let mut forms = [(Coordinates::default(), 0.0); MOST_SOURCES];
    for (form, r) in forms.iter_mut().zip(&bin.covariances) {
        // Of a matrix that is not positive definite, which the floor prevents, nothing is learned.
        let Some((p, log_determinant)) = inverse(r, D) else { return 0.0 };
        *form = (coordinates(&p, D), (-log_determinant).exp());
    }
    let mut scatter = [Coordinates::default(); MOST_SOURCES];
    let (mut silence, mut heard, mut objective) = (0.0, 0.0, 0.0);
    for t in 0..spectra.frames {
        if spectra.powers(index)[t] == 0.0 {
            continue;
        }
        let z = outer(&spectra.point::<D>(index, t));
        let (mut weights, mut forces) = ([0.0; MOST_SOURCES], [0.0; MOST_SOURCES]);
        let mut total = bin.silence;
        for h in 0..sources {
            let q = dot::<D>(&forms[h].0, &z).max(1e-12);
            let prior = (1.0 - bin.silence) * presence.values[t * sources + h];
            weights[h] = prior * forms[h].1 / q.powi(D as i32);
            forces[h] = weights[h] / q;
            total += weights[h];
        }
        heard += 1.0;
        silence += bin.silence / total;
        objective += total.ln();
        for h in 0..sources {
            sums[t * sources + h] += weights[h] / total;
            let force = forces[h] / total;
            (0..D * D).for_each(|i| scatter[h][i] += force * z[i]);
        }
    }
    if heard == 0.0 {
        return 0.0;
    }
    for (r, scatter) in bin.covariances.iter_mut().zip(&scatter) {
        let sum = matrix(scatter, D);
        let size = trace(&sum, D);
        if size > 0.0 {
            *r = ZERO;
            accumulate(r, D as f64 / size, &sum);
            accumulate(r, floor, &scalar(1.0));
        }
    }
    bin.silence = (silence / heard).clamp(floor.max(1e-12), MOST_SILENCE);
    objective
}
