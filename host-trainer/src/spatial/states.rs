//! All states: which sources are on at every point, by the core, and covariances that explain them.
//!
//! The posterior over the 2^H states of a point is that of the device ([`spikelet::spatial::Bin::posterior`]), in `f64`. Context is
//! the activities of the sweep before, averaged over three bins and three frames. With p_s and q_s of all points of a bin,
//!
//! ```text
//! A_s = sum_t p_s,   B_s = sum_t p_s D / q_s y y^H,   A_h = sum_s l(s_h) A_s P_s,   B_h = sum_s l(s_h) P_s B_s P_s
//! R_h <- the positive solution of R A_h R = R_h B_h R_h
//! ```
//!
//! This minorises the likelihood under the context as it is: ln det C_s and ln q_s are bounded by their tangents, q_s by shares of
//! the sources. It never lowers it, until each bin is scaled so that traces sum to H D.

#![allow(clippy::needless_range_loop)] // indices as in the equations

use super::align::outer;
use super::hermitian::{
    Coordinates, Matrix, ZERO, accumulate, cholesky, coordinates, inverse, matrix, product, riccati, scalar,
    trace,
};
use super::spectra::Spectra;
use super::threads::each;
use super::{Bin, Frames};
use spikelet::spatial::{Bin as CoreBin, Constants, MOST_SOURCES, MOST_STATES};

/// Least and most probability that all sources are off.
const SILENCE: std::ops::RangeInclusive<f64> = 1e-3..=0.9;

/// Cholesky factors of covariances as a blob has them.
pub(super) fn factors(covariances: &[Matrix], d: usize) -> Vec<f64> {
    let mut numbers = Vec::with_capacity(covariances.len() * d * d);
    for r in covariances {
        let l = factor(r, d);
        for (i, row) in l.iter().enumerate().take(d) {
            row[..i].iter().for_each(|x| numbers.extend(x));
            numbers.push(row[i][0]);
        }
    }
    numbers
}

/// L with R = L L^H. A source that comes from one direction has a covariance of rank 1, up to rounding: then a little more is put on
/// the diagonal, far below delta.
fn factor(r: &Matrix, d: usize) -> Matrix {
    let size = trace(r, d);
    for part in [0.0, 1e-12, 1e-9, 1e-6] {
        let mut more = *r;
        accumulate(&mut more, part * size, &scalar(1.0));
        if let Some(l) = cholesky(&more, d) {
            return l;
        }
    }
    scalar((size / d as f64).max(0.0).sqrt())
}

/// C_s^-1 and ln det C_s of all states.
pub(super) fn precisions(
    covariances: &[Matrix],
    constants: &Constants<f64>,
    d: usize,
) -> Option<Vec<(Matrix, f64)>> {
    let state = |s: usize| {
        let mut c = scalar(if s == 0 { 1.0 } else { constants.floor });
        for (h, r) in covariances.iter().enumerate() {
            accumulate(&mut c, level(constants, s, h), r);
        }
        inverse(&c, d)
    };
    (0..1 << covariances.len()).map(state).collect()
}

/// l(s_h).
fn level(constants: &Constants<f64>, s: usize, h: usize) -> f64 {
    if s >> h & 1 == 1 { 1.0 } else { constants.off_level }
}

/// Sums over the points of a bin.
pub(super) struct Sums {
    /// A_s.
    weights: [f64; MOST_STATES],
    /// B_s, as coordinates.
    scatters: [Coordinates; MOST_STATES],
    /// Points that are not silent.
    pub points: f64,
    /// Of ln p(y).
    pub objective: f64,
}

/// The E-step of a bin. `expected` (frames x sources) is the context, `activities` are set to <s_h>.
pub(super) fn infer<const D: usize>(
    spectra: &Spectra,
    index: usize,
    bin: &Bin,
    constants: &Constants<f64>,
    expected: &[f64],
    activities: &mut [f64],
) -> Sums {
    let sources = bin.covariances.len();
    let factors = factors(&bin.covariances, D);
    let core = CoreBin { factors: &factors, silence: bin.silence, activity: &bin.activity };
    let mut sums = Sums {
        weights: [0.0; MOST_STATES],
        scatters: [Coordinates::default(); MOST_STATES],
        points: 0.0,
        objective: 0.0,
    };
    let Some(precisions) = precisions(&bin.covariances, constants, D) else { return sums };
    let states = 1 << sources;
    let some = ((1.0 - bin.silence) / (states - 1) as f64).ln();
    for t in 0..spectra.frames {
        let mut context = [0.0; MOST_SOURCES];
        context[..sources].copy_from_slice(&expected[t * sources..][..sources]);
        let y = spectra.point::<D>(index, t);
        let now = &mut activities[t * sources..][..sources];
        let Some(posterior) = core.posterior(constants, &y, &context) else {
            now.copy_from_slice(&bin.activity);
            continue;
        };
        let z = outer(&y);
        now.fill(0.0);
        let mut likely = 0;
        for s in 0..states {
            let p = posterior.weights[s];
            sums.weights[s] += p;
            let force = p * D as f64 / posterior.quadratics[s].max(1e-12);
            (0..D * D).for_each(|i| sums.scatters[s][i] += force * z[i]);
            now.iter_mut().enumerate().for_each(|(h, a)| *a += if s >> h & 1 == 1 { p } else { 0.0 });
            likely = if p > posterior.weights[likely] { s } else { likely };
        }
        // ln p(y) = ln p(y, s) - ln p(s | y), for any s.
        let on = (0..sources).filter(|h| likely >> h & 1 == 1);
        let odds: f64 = on.map(|h| constants.context * (context[h] - bin.activity[h])).sum();
        let prior = if likely == 0 { bin.silence.ln() } else { some + odds };
        let fit = precisions[likely].1 + D as f64 * posterior.quadratics[likely].max(1e-12).ln();
        sums.objective += prior - fit - posterior.weights[likely].ln();
        sums.points += 1.0;
    }
    sums
}

/// The M-step of a bin, without its scale.
pub(super) fn covariances(bin: &Bin, sums: &Sums, constants: &Constants<f64>, d: usize) -> Vec<Matrix> {
    let Some(precisions) = precisions(&bin.covariances, constants, d) else {
        return bin.covariances.clone();
    };
    let terms = precisions.iter().enumerate().map(|(s, (p, _))| {
        let b = matrix(&sums.scatters[s], d);
        (p, sums.weights[s], product(&product(p, &b, d), p, d))
    });
    let terms: Vec<(&Matrix, f64, Matrix)> = terms.collect();
    let update = |(h, r): (usize, &Matrix)| {
        let (mut a, mut b) = (ZERO, ZERO);
        for (s, (p, weight, pbp)) in terms.iter().enumerate() {
            let level = level(constants, s, h);
            accumulate(&mut a, level * weight, p);
            accumulate(&mut b, level, pbp);
        }
        let from = product(&product(r, &b, d), r, d);
        // Hermitian up to rounding, which must not grow.
        riccati(&a, &from, d).map_or(*r, |r| matrix(&coordinates(&r, d), d))
    };
    bin.covariances.iter().enumerate().map(update).collect()
}

/// Scales covariances so that their traces sum to H D.
pub(super) fn normalise(covariances: &mut [Matrix], d: usize) {
    let size: f64 = covariances.iter().map(|r| trace(r, d)).sum();
    let factor = (covariances.len() * d) as f64 / size;
    if size > 0.0 && factor.is_finite() {
        for r in covariances {
            let whole = *r;
            *r = ZERO;
            accumulate(r, factor, &whole);
        }
    }
}

/// The mean of activities over three bins and three frames; those at the ends count twice.
pub(super) fn context(activities: &[Frames], bin: usize, out: &mut [f64]) {
    let sources = activities[bin].sources;
    let frames = activities[bin].values.len() / sources;
    let around = |i: usize, count: usize| [i.saturating_sub(1), i, (i + 1).min(count - 1)];
    let rows = around(bin, activities.len()).map(|bin| activities[bin].values.as_slice());
    for t in 0..frames {
        for h in 0..sources {
            let mut sum = 0.0;
            for t in around(t, frames) {
                rows.iter().for_each(|row| sum += row[t * sources + h]);
            }
            out[t * sources + h] = sum / 9.0;
        }
    }
}

/// One sweep over all bins: new bins and activities, and the sum of ln p(y) before it.
pub(super) fn iterate<const D: usize>(
    spectra: &Spectra,
    bins: &mut [Bin],
    activities: &mut Vec<Frames>,
    constants: &Constants<f64>,
    threads: usize,
) -> f64 {
    let before: &[Frames] = activities;
    let parts = each(bins.iter_mut().collect(), threads, |index, bin| {
        let mut expected = before[index].values.clone();
        let mut now = before[index].clone();
        context(before, index, &mut expected);
        let sums = infer::<D>(spectra, index, bin, constants, &expected, &mut now.values);
        if sums.points > 0.0 {
            bin.covariances = covariances(bin, &sums, constants, D);
            normalise(&mut bin.covariances, D);
            bin.silence = (sums.weights[0] / sums.points).clamp(*SILENCE.start(), *SILENCE.end());
            let frames = now.values.len() / now.sources;
            for (h, mean) in bin.activity.iter_mut().enumerate() {
                let all = now.values.iter().skip(h).step_by(now.sources);
                *mean = (all.sum::<f64>() / frames as f64).clamp(0.0, 1.0);
            }
        }
        (now, sums.objective)
    });
    let objective = parts.iter().map(|(_, objective)| objective).sum();
    *activities = parts.into_iter().map(|(now, _)| now).collect();
    objective
}
