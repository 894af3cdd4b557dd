//! Where a mixture begins: k-means, with moves of means that are hardly missed.

use super::super::super::points::Points;
use crate::Result;
use crate::linalg::{dot, pack, product, transposed};
use spikelet::rng::Rng;

/// Points that first means are chosen from: so many for each, and this many at least.
const POINTS_PER_MEAN: usize = 50;
const LEAST_POINTS: usize = 2000;

/// Candidates for every first mean, of which the one that leaves the least distance is taken.
const CANDIDATES: usize = 4;
/// Steps of k-means from there, at most, and the part of the distances by which a step must shorten them for another.
const LLOYD: usize = 50;
const SETTLED: f64 = 1e-4;
/// Points per matrix product.
const AT_ONCE: usize = 256;
/// Moves of a mean that must fail one after the other, but of many components at most one for so many distances; how many of the widest clusters are tried; and the part of the distances that a move must gain.
const MOST_FAILURES: usize = 12;
const MOST_DISTANCES: usize = 1 << 20;
const WIDEST: usize = 4;
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

/// First means, drawn from the data with probabilities that grow with the squared distance from those drawn already (k-means++), then k-means;
/// then means that are hardly missed move to the widest clusters, as long as that brings points closer to their means.
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
    let mut clusters = Clusters::new(&drawn, d, plus_plus(&drawn, d, h, rng), LLOYD);
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

/// Means, and which points are nearest to each.
struct Clusters {
    d: usize,
    /// (H x D)
    means: Vec<f64>,
    /// The nearest mean of every point, the squared distance from it, and from the second nearest. (N)
    nearest: Vec<(usize, f64, f64)>,
    /// Sum of squared distances.
    inertia: f64,
}

impl Clusters {
    /// From these means, after so many steps of k-means at most.
    fn new(drawn: &[f64], d: usize, means: Vec<f64>, steps: usize) -> Self {
        let mut clusters = Self { d, means, nearest: Vec::new(), inertia: f64::INFINITY };
        for _ in 0..=steps {
            let before = clusters.inertia;
            clusters.assign(drawn);
            // Also where there is no distance left at all.
            if clusters.inertia.is_nan() || clusters.inertia >= (1.0 - SETTLED) * before {
                break;
            }
            clusters.centre(drawn);
        }
        clusters
    }

    /// Nearest means, by one matrix product for some points at a time.
    fn assign(&mut self, drawn: &[f64]) {
        let (d, h) = (self.d, self.means.len() / self.d);
        let panels: Vec<f64> = pack(&transposed(&self.means, d), d, h);
        let squares: Vec<f64> = self.means.chunks_exact(d).map(|mean| dot(mean, mean)).collect();
        let mut products = vec![0.0; AT_ONCE * h];
        self.nearest.clear();
        for chunk in drawn.chunks(AT_ONCE * d) {
            let products = &mut products[..chunk.len() / d * h];
            product(chunk, &panels, d, h, products);
            for (y, products) in chunk.chunks_exact(d).zip(products.chunks_exact(h)) {
                let mut best = (0, f64::INFINITY, f64::INFINITY);
                for (k, (product, square)) in products.iter().zip(&squares).enumerate() {
                    let distance = square - 2.0 * product;
                    if distance < best.1 {
                        best = (k, distance, best.1);
                    } else if distance < best.2 {
                        best.2 = distance;
                    }
                }
                let own = dot(y, y);
                self.nearest.push((best.0, (best.1 + own).max(0.0), (best.2 + own).max(0.0)));
            }
        }
        self.inertia = self.nearest.iter().map(|near| near.1).sum();
    }

    /// Means of their points; one without points stays.
    fn centre(&mut self, drawn: &[f64]) {
        let d = self.d;
        let mut counts = vec![0.0; self.means.len() / d];
        let mut sums = vec![0.0; self.means.len()];
        for (y, near) in drawn.chunks_exact(d).zip(&self.nearest) {
            counts[near.0] += 1.0;
            sums[near.0 * d..][..d].iter_mut().zip(y).for_each(|(sum, y)| *sum += y);
        }
        for (e, mean) in self.means.iter_mut().enumerate().filter(|(e, _)| counts[e / d] > 0.0) {
            *mean = sums[e] / counts[e / d];
        }
    }

    /// With the mean that is missed least at a point of one of the widest clusters instead, far points more often.
    fn moved(&self, drawn: &[f64], trial: usize, rng: &mut Rng) -> Self {
        let (d, h) = (self.d, self.means.len() / self.d);
        let (mut missed, mut wide) = (vec![0.0; h], vec![0.0; h]);
        for &(k, first, second) in &self.nearest {
            missed[k] += second - first;
            wide[k] += first;
        }
        let rank = |values: &[f64], sign: f64| -> Vec<usize> {
            let mut order: Vec<usize> = (0..h).collect();
            order.sort_by(|a, b| (sign * values[*a]).total_cmp(&(sign * values[*b])).then(a.cmp(b)));
            order
        };
        let spare = rank(&missed, 1.0)[trial / WIDEST % h];
        let target = rank(&wide, -1.0)[trial % WIDEST.min(h)];
        let mut left = rng.uniform::<f64>() * wide[target];
        let mut past = |near: &(usize, f64, f64)| {
            left -= if near.0 == target { near.1 } else { 0.0 };
            near.0 == target && left <= 0.0
        };
        let at = self.nearest.iter().position(&mut past).unwrap_or(0);
        let mut means = self.means.clone();
        means[spare * d..][..d].copy_from_slice(&drawn[at * d..][..d]);
        Self::new(drawn, d, means, LLOYD)
    }

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

/// |a - b|^2.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Means far from each other. (H x D)
fn plus_plus(drawn: &[f64], d: usize, h: usize, rng: &mut Rng) -> Vec<f64> {
    let count = drawn.len() / d;
    let mut nearest = vec![f64::INFINITY; count];
    let mut means = Vec::with_capacity(h * d);
    for k in 0..h {
        let total: f64 = nearest.iter().sum();
        let mut best = (f64::INFINITY, Vec::new(), 0);
        for _ in 0..if k > 0 { CANDIDATES } else { 1 } {
            let mut left = rng.uniform::<f64>() * total;
            let past = |distance: &f64| {
                left -= distance;
                left < 0.0
            };
            let at = match k > 0 && total > 0.0 {
                true => nearest.iter().position(past).unwrap_or(count - 1),
                false => ((rng.uniform::<f64>() * count as f64) as usize).min(count - 1),
            };
            let mean = &drawn[at * d..][..d];
            let closer: Vec<f64> =
                nearest.iter().zip(drawn.chunks_exact(d)).map(|(near, y)| near.min(apart(y, mean))).collect();
            let sum: f64 = closer.iter().sum();
            if best.1.is_empty() || sum < best.0 {
                best = (sum, closer, at);
            }
        }
        nearest = best.1;
        means.extend_from_slice(&drawn[best.2 * d..][..d]);
    }
    means
}
