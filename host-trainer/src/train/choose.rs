//! Which of several starts to keep.
//!
//! The free energy says which start explains the data best. For mixtures that are known to be orthogonal
//! (whitened data), paper 001 knows better: of all starts it takes the cluster with the most orthogonal W.
//! Its measure is the largest deviation of two columns from a right angle,
//!
//! ```text
//! delta(W) = max over h < k of |90 degrees - angle(W_h, W_k)| = asin max |cos(W_h, W_k)|
//! ```
//!
//! and the cluster ends at the first gap in the histogram of delta. Here the gap is where two classes of
//! ln delta have the least variance within them (Otsu's threshold), which needs no bins and works for few
//! starts as well as for hundreds. Of the starts in the cluster the best free energy is kept.

use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// What a run prefers among its starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// The best free energy
    #[default]
    FreeEnergy,
    /// The best free energy among the starts whose columns are closest to right angles
    Orthogonal,
}

/// A start that is finished.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its parameters.
    pub parameters: &'a Parameters,
    /// Their free energy.
    pub free_energy: f64,
}

/// Deviations below this many degrees count as equal: they are errors of estimation, and ln 0 is none.
const SMALL: f64 = 1.0;

/// The candidate to keep, the first of equals; `None` when there are none.
///
/// ```
/// use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
/// use spikelet_trainer::train::choose::{Candidate, Prefer, choose};
/// let model = |tilt: f64| Parameters {
///     kind: ModelKind::Gsc,
///     dims: 2,
///     latents: 2,
///     dictionary: vec![1.0, tilt, 0.0, 1.0],
///     prior: vec![0.5; 2],
///     slab_mean: vec![0.0; 2],
///     slab_cov: SlabCov::Unit,
///     noise: NoiseCov::Shared(1.0),
/// };
/// let (straight, tilted) = (model(0.05), model(2.0));
/// let starts = [(&tilted, -1.0), (&straight, -2.0)]
///     .map(|(parameters, free_energy)| Candidate { parameters, free_energy });
/// assert_eq!(choose(Prefer::FreeEnergy, &starts), Some(0));
/// assert_eq!(choose(Prefer::Orthogonal, &starts), Some(1));
/// ```
pub fn choose(prefer: Prefer, candidates: &[Candidate<'_>]) -> Option<usize> {
    let eligible = match prefer {
        Prefer::FreeEnergy => (0..candidates.len()).collect(),
        Prefer::Orthogonal => {
            let deviations: Vec<f64> = candidates.iter().map(|c| deviation(c.parameters)).collect();
            most_orthogonal(&deviations)
        }
    };
    let best = |kept: usize, other: usize| {
        if candidates[other].free_energy > candidates[kept].free_energy { other } else { kept }
    };
    eligible.into_iter().reduce(best)
}

/// delta(W) in degrees: 0 when all columns are at right angles, 90 when two are parallel or one is zero.
pub fn deviation(parameters: &Parameters) -> f64 {
    let (d, h) = (parameters.dims, parameters.latents);
    let column = |k: usize| (0..d).map(move |i| parameters.dictionary[i * h + k]);
    let norms: Vec<f64> = (0..h).map(|k| column(k).map(|w| w * w).sum::<f64>().sqrt()).collect();
    let mut largest = 0.0f64;
    for a in 0..h {
        for b in 0..a {
            let product: f64 = column(a).zip(column(b)).map(|(x, y)| x * y).sum();
            let cosine = (product / (norms[a] * norms[b])).abs();
            // A column of zeros has no direction to be at a right angle with.
            largest = largest.max(if cosine.is_nan() { 1.0 } else { cosine.min(1.0) });
        }
    }
    largest.asin().to_degrees()
}

/// Indices of the cluster of smallest deviations (in degrees), ascending; all of them when they are equal.
pub fn most_orthogonal(deviations: &[f64]) -> Vec<usize> {
    let logs: Vec<f64> = deviations.iter().map(|delta| delta.max(SMALL).ln()).collect();
    let mut sorted = logs.clone();
    sorted.sort_by(f64::total_cmp);
    let spread = |class: &[f64]| {
        let mean = class.iter().sum::<f64>() / class.len() as f64;
        class.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>()
    };
    let (mut last, mut least) = (f64::INFINITY, f64::INFINITY);
    for cut in (1..sorted.len()).filter(|&cut| sorted[cut - 1] < sorted[cut]) {
        let within = spread(&sorted[..cut]) + spread(&sorted[cut..]);
        if within < least {
            (last, least) = (sorted[cut - 1], within);
        }
    }
    (0..logs.len()).filter(|&i| logs[i] <= last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ModelKind, NoiseCov, SlabCov};

    fn model(dims: usize, latents: usize, dictionary: &[f64]) -> Parameters {
        Parameters {
            kind: ModelKind::Gsc,
            dims,
            latents,
            dictionary: dictionary.to_vec(),
            prior: vec![0.5; latents],
            slab_mean: vec![0.0; latents],
            slab_cov: SlabCov::Unit,
            noise: NoiseCov::Shared(1.0),
        }
    }

    #[test]
    fn deviation_is_the_worst_angle() {
        // Columns at 0, 90 and 60 degrees in a plane: the last is 30 degrees off twice over; 60 at worst.
        let w = [1.0, 0.0, 0.5, 0.0, 2.0, 0.75f64.sqrt(), 0.0, 0.0, 0.0];
        assert!((deviation(&model(3, 3, &w)) - 60.0).abs() < 1e-9);
        assert_eq!(deviation(&model(2, 2, &[3.0, 0.0, 0.0, -1.0])), 0.0);
        assert_eq!(deviation(&model(2, 2, &[1.0, 0.0, 1.0, 0.0])), 90.0);
        assert_eq!(deviation(&model(2, 1, &[1.0, 1.0])), 0.0);
    }

    #[test]
    fn the_cluster_ends_at_the_gap() {
        assert_eq!(most_orthogonal(&[30.0, 4.0, 55.0, 5.0, 6.0, 25.0]), [1, 3, 4]);
        assert_eq!(most_orthogonal(&[3.0, 2.0]), [1]);
        // One far out on the other side does not hide the gap.
        assert_eq!(most_orthogonal(&[4.0, 4.5, 5.0, 20.0, 21.0, 22.0, 23.0, 89.0]), [0, 1, 2]);
        // Below a degree all are the same.
        assert_eq!(most_orthogonal(&[1e-9, 0.5, 0.0, 40.0]), [0, 1, 2]);
        assert_eq!(most_orthogonal(&[7.0, 7.0]), [0, 1]);
        assert_eq!(most_orthogonal(&[7.0]), [0]);
        assert_eq!(most_orthogonal(&[]), [] as [usize; 0]);
    }

    #[test]
    fn the_best_of_the_cluster_is_chosen() {
        let models = [60.0f64, 3.0, 4.0].map(|degrees| {
            let (sin, cos) = degrees.to_radians().sin_cos();
            model(2, 2, &[1.0, sin, 0.0, cos])
        });
        let candidates: Vec<Candidate<'_>> = models
            .iter()
            .zip([-1.0, -3.0, -2.0])
            .map(|(parameters, free_energy)| Candidate { parameters, free_energy })
            .collect();
        assert_eq!(choose(Prefer::Orthogonal, &candidates), Some(2));
        assert_eq!(choose(Prefer::FreeEnergy, &candidates), Some(0));
        assert_eq!(choose(Prefer::Orthogonal, &[]), None);
    }
}
