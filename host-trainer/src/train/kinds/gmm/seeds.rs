//! Where a mixture begins: k-means, with moves of means that are hardly missed.

use super::super::super::points::Points;
use super::clusters::Clusters;
use super::far::far_means;
use crate::Result;
use crate::linalg::{dot, transposed};
use spikelet::rng::Rng;

/// Points that first means are chosen from: so many for each, and this many at least.
const POINTS_PER_MEAN: usize = 50;
const LEAST_POINTS: usize = 2000;

/// Moves of a mean that must fail one after the other, but of many components at most one for so many distances; and the part of
/// the distances that a move must gain.
const MOST_FAILURES: usize = 12;
const MOST_DISTANCES: usize = 1 << 20;
const LEAST_GAIN: f64 = 1e-4;
/// Points that a cluster's variances count as having of those of all clusters.
const PULL: f64 = 2.0;

/// Where a mixture begins.
pub struct Seeds {
    /// Means. (D x H)
    pub means: Vec<f64>,
    /// How much of the data is nearest to each. (H)
    pub weights: Vec<f64>,
    /// Variances about them, each in its own cluster, pulled a little towards those of all. (D x H)
    pub variances: Vec<f64>,
    /// Covariance about the nearest mean. (D x D)
    pub covariance: Vec<f64>,
    /// Mean of its diagonal.
    pub variance: f64,
}

/// First means, drawn from the data with probabilities that grow with the squared distance from those drawn already (k-means++),
/// then k-means; then means that are hardly missed move to the widest clusters, as long as that brings points closer to their
/// means.
pub fn seeds(points: &mut Points, h: usize, rng: &mut Rng) -> Result<Seeds> {
    let (d, n) = (points.dims(), points.len());
    let most = (POINTS_PER_MEAN * h).max(LEAST_POINTS);
    let mut drawn = Vec::new();
    if n <= most {
        points.read(0, n, &mut drawn)?;
    } else {
        let mut point = Vec::new();
        for _ in 0..most {
            points.read(((rng.uniform::<f64>() * n as f64) as usize).min(n - 1), 1, &mut point)?;
            drawn.extend_from_slice(&point);
        }
    }
    let mut clusters = Clusters::new(&drawn, d, far_means(&drawn, d, h, rng));
    // A trial costs some H distances of every point; of very many components fewer are tried.
    let mut failures = 0;
    while h > 1 && failures < MOST_FAILURES.min(MOST_DISTANCES / (h * h)) {
        let tried = clusters.moved(&drawn, failures, rng);
        if tried.inertia < (1.0 - LEAST_GAIN) * clusters.inertia {
            clusters = tried;
            failures = 0;
        } else {
            failures += 1;
        }
    }
    Ok(clusters.seeds(&drawn))
}

impl Clusters {
    fn seeds(&self, drawn: &[f64]) -> Seeds {
        let (d, h) = (self.d, self.means.len() / self.d);
        let n = self.nearest.len() as f64;
        let (mut counts, mut variances) = (vec![0.0; h], vec![0.0; d * h]);
        let mut covariance = vec![0.0; d * d];
        for (y, &(k, ..)) in drawn.chunks_exact(d).zip(&self.nearest) {
            counts[k] += 1.0;
            let off: Vec<f64> = y.iter().zip(&self.means[k * d..][..d]).map(|(y, mean)| y - mean).collect();
            for i in 0..d {
                variances[i * h + k] += off[i] * off[i];
                (0..d).for_each(|j| covariance[i * d + j] += off[i] * off[j] / n);
            }
        }
        // With a mean for every point there is no distance left.
        let floor = f64::MIN_POSITIVE.max(1e-3 * dot(drawn, drawn) / drawn.len() as f64);
        (0..d).for_each(|i| covariance[i * d + i] = covariance[i * d + i].max(floor));
        for (e, sum) in variances.iter_mut().enumerate() {
            let pooled = covariance[e / h * d + e / h];
            *sum = (*sum + PULL * pooled) / (counts[e % h] + PULL);
        }
        let weights = counts.iter().map(|count| (count + 1.0) / (n + h as f64)).collect();
        let variance = (0..d).map(|i| covariance[i * d + i]).sum::<f64>() / d as f64;
        Seeds { means: transposed(&self.means, d), weights, variances, covariance, variance }
    }
}
