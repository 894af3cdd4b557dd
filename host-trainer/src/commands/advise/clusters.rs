//! Whether points lie in clusters that are apart, as those of a Gaussian mixture, and in how many.
//!
//! For each number of clusters k-means finds centres. A point is the better inside its own cluster the nearer its centre is
//! compared with the next one: 1 - own / next. Where that is high on average in every cluster, and no cluster has few points,
//! they stand apart. Points that are sums of sources crowd around zero and along lines, which gives small or badly separated
//! clusters. The limits were set on mixtures of Gaussians, draws from gsc models, and recordings of hearts, brains and movements,
//! none of which looked like clusters.

use crate::Result;
use crate::train::Points;
use crate::train::kinds::gmm::seeds;
use spikelet::rng::Rng;

/// Points that are looked at, and most clusters that are looked for.
const MOST_POINTS: usize = 1500;
const MOST: usize = 12;
/// Starts of k-means.
const STARTS: u64 = 4;
/// The mean of 1 - own / next that every cluster must reach.
const INSIDE: f64 = 0.65;
/// Part of its even share of points that every cluster must have.
const SHARE: f64 = 0.5;

/// How many, where they stand apart.
pub(super) fn clusters(values: &[f64], dims: usize) -> Result<Option<usize>> {
    let count = values.len() / dims;
    let step = count.div_ceil(MOST_POINTS).max(1);
    let drawn: Vec<f64> = values.chunks_exact(dims).step_by(step).flatten().copied().collect();
    let mut best: Option<(f64, usize)> = None;
    for k in 2..=MOST.min(drawn.len() / dims / 10) {
        for start in 0..STARTS {
            let mut points = Points::new(drawn.clone(), dims);
            let centres = seeds(&mut points, k, &mut Rng::new(start))?.means;
            let inside = worst_cluster(&drawn, dims, &centres, k);
            if inside >= INSIDE && best.is_none_or(|(other, _)| inside > other) {
                best = Some((inside, k));
            }
        }
    }
    Ok(best.map(|(_, k)| k))
}

/// The smallest mean over a cluster of 1 - own / next; 0 where one has too few points. Centres are D x K.
fn worst_cluster(points: &[f64], dims: usize, centres: &[f64], k: usize) -> f64 {
    let (mut sums, mut counts) = (vec![0.0; k], vec![0usize; k]);
    for point in points.chunks_exact(dims) {
        let distance =
            |c: usize| point.iter().enumerate().map(|(d, y)| (y - centres[d * k + c]).powi(2)).sum::<f64>();
        let (mut own, mut next) = ((f64::INFINITY, 0), f64::INFINITY);
        for c in 0..k {
            let found = distance(c);
            if found < own.0 {
                (next, own) = (own.0, (found, c));
            } else if found < next {
                next = found;
            }
        }
        sums[own.1] += if next > 0.0 { 1.0 - (own.0 / next).sqrt() } else { 0.0 };
        counts[own.1] += 1;
    }
    let least = SHARE * (points.len() / dims) as f64 / k as f64;
    let mean = |(sum, &count): (&f64, &usize)| if count as f64 >= least { sum / count as f64 } else { 0.0 };
    sums.iter().zip(&counts).map(mean).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(points: usize, dims: usize, mut point: impl FnMut(&mut Rng) -> Vec<f64>) -> Vec<f64> {
        let mut rng = Rng::new(3);
        let values: Vec<f64> = (0..points).flat_map(|_| point(&mut rng)).collect();
        assert_eq!(values.len(), points * dims);
        values
    }

    #[test]
    fn clusters_are_found_and_sums_of_sources_are_none() {
        let corners = [[5.0, 0.0, 1.0], [-5.0, 2.0, 0.0], [0.0, -6.0, 4.0], [1.0, 5.0, -6.0]];
        let mixture = draw(2000, 3, |rng| {
            let corner = corners[rng.below(4) as usize];
            corner.iter().map(|c| c + rng.normal::<f64>()).collect()
        });
        assert_eq!(clusters(&mixture, 3).unwrap(), Some(4));
        let columns = [[1.0, 0.2, -0.5], [0.1, -1.0, 0.6], [0.7, 0.7, 0.1], [-0.3, 0.5, 1.0]];
        for prior in [0.1, 0.3, 0.6] {
            let sources = draw(2000, 3, |rng| {
                let on: Vec<f64> = columns
                    .iter()
                    .map(|_| if rng.uniform::<f64>() < prior { rng.normal() } else { 0.0 })
                    .collect();
                (0..3)
                    .map(|d| {
                        let sum: f64 = columns.iter().zip(&on).map(|(column, z)| column[d] * z).sum();
                        sum + 0.05 * rng.normal::<f64>()
                    })
                    .collect()
            });
            assert_eq!(clusters(&sources, 3).unwrap(), None, "{prior}");
        }
        let cloud = draw(2000, 2, |rng| vec![rng.normal(), rng.normal()]);
        assert_eq!(clusters(&cloud, 2).unwrap(), None);
    }
}
