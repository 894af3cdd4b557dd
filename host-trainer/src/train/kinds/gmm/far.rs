//! First means, far from each other (k-means++).

use super::clusters::apart;
use spikelet::rng::Rng;

/// Candidates for every first mean, of which the one that leaves the least distance is taken.
const CANDIDATES: usize = 4;

/// Points of one mean, the farthest first: which, and their squared distances; and the sum of these.
struct Group {
    points: Vec<(usize, f64)>,
    sum: f64,
}

impl Group {
    fn new(mut points: Vec<(usize, f64)>) -> Self {
        points.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let sum = points.iter().map(|point| point.1).sum();
        Self { points, sum }
    }

    /// Those that are farther than this.
    fn beyond(&self, square: f64) -> &[(usize, f64)] {
        &self.points[..self.points.partition_point(|point| point.1 > square)]
    }
}

/// Means far from each other (H x D), and of every point the squared distance from the nearest and which that is.
///
/// A candidate is nearer to a point than the point's mean only if it is less than twice as far from that mean as the point is:
/// others need not be looked at.
pub(super) fn far_means(drawn: &[f64], d: usize, h: usize, rng: &mut Rng) -> (Vec<f64>, Vec<(f64, usize)>) {
    let count = drawn.len() / d;
    let point = |n: usize| &drawn[n * d..][..d];
    let first = ((rng.uniform::<f64>() * count as f64) as usize).min(count - 1);
    let mut means = point(first).to_vec();
    let mut groups = vec![Group::new((0..count).map(|n| (n, apart(point(n), point(first)))).collect())];
    let mut reach = Vec::with_capacity(h);
    for _ in 1..h {
        let mut best = (f64::NEG_INFINITY, 0);
        for _ in 0..CANDIDATES {
            let at = far_point(&groups, count, rng);
            let gain = |(group, mean): (&Group, &[f64])| -> f64 {
                let beyond = group.beyond(reach_of(mean, point(at)));
                beyond.iter().map(|&(n, near)| (near - apart(point(n), point(at))).max(0.0)).sum()
            };
            let gain: f64 = groups.iter().zip(means.chunks_exact(d)).map(gain).sum();
            if gain > best.0 {
                best = (gain, at);
            }
        }
        let own = point(best.1);
        reach.clear();
        reach.extend(means.chunks_exact(d).map(|mean| reach_of(mean, own)));
        let mut points = Vec::new();
        for (group, reach) in groups.iter_mut().zip(&reach) {
            let far = group.beyond(*reach).len();
            let (before, mut at) = (points.len(), 0);
            group.points.retain(|&(n, near)| {
                at += 1;
                let distance = if at > far { near } else { apart(point(n), own) };
                if distance < near {
                    points.push((n, distance));
                }
                distance >= near
            });
            if points.len() > before {
                group.sum = group.points.iter().map(|point| point.1).sum();
            }
        }
        groups.push(Group::new(points));
        means.extend_from_slice(own);
    }
    let mut nearest = vec![(0.0, 0); count];
    for (k, group) in groups.iter().enumerate() {
        group.points.iter().for_each(|&(n, near)| nearest[n] = (near, k));
    }
    (means, nearest)
}

/// The squared distance from a mean up to which its points cannot be nearer to the candidate: a quarter of theirs, a little less
/// for rounding.
fn reach_of(mean: &[f64], candidate: &[f64]) -> f64 {
    0.2499 * apart(mean, candidate)
}

/// A point drawn with a probability that grows with its squared distance.
fn far_point(groups: &[Group], count: usize, rng: &mut Rng) -> usize {
    let total: f64 = groups.iter().map(|group| group.sum).sum();
    let drawn = rng.uniform::<f64>();
    let mut left = drawn * total;
    let mut last = None;
    for group in groups.iter().filter(|group| group.sum > 0.0) {
        if left >= group.sum {
            left -= group.sum;
            last = group.points.last();
            continue;
        }
        for point in &group.points {
            left -= point.1;
            last = Some(point);
            if left < 0.0 {
                break;
            }
        }
        break;
    }
    // Where there is no distance left, any will do.
    last.map_or(((drawn * count as f64) as usize).min(count - 1), |point| point.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: usize = 4;

    /// Points that are all the same leave nothing to draw by.
    #[test]
    fn equal_points_have_equal_means() {
        let (means, nearest) = far_means(&[1.0; 40 * D], D, 3, &mut Rng::new(4));
        assert!(means == [1.0; 3 * D] && nearest.iter().all(|near| near.0 == 0.0));
    }
}
