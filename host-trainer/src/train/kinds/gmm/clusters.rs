//! K-means: means, and which points are nearest to each.

use crate::linalg::{dot, pack, product, transposed};
use spikelet::rng::Rng;

/// Steps of k-means from there, at most, and the part of the distances by which a step must shorten them for another.
const LLOYD: usize = 50;
const SETTLED: f64 = 1e-4;
/// Points per matrix product.
const AT_ONCE: usize = 256;
/// Of more means than so many, most steps look for the nearest mean of a point among that many next to the mean it had.
const FEW: usize = 128;
const NEXT: usize = 32;
/// Looks at all means in between, at most.
const LOOKS: usize = 2;
/// How many of the widest clusters are tried as places for a mean that moves.
const WIDEST: usize = 4;

/// Means, and which points are nearest to each.
pub(super) struct Clusters {
    pub d: usize,
    /// (H x D)
    pub means: Vec<f64>,
    /// The nearest mean of every point, the squared distance from it, and from the second nearest. (N)
    pub nearest: Vec<(usize, f64, f64)>,
    /// Sum of squared distances.
    pub inertia: f64,
}

impl Clusters {
    /// K-means from these means, of each of which the points nearest to it are given.
    pub fn new(drawn: &[f64], d: usize, (means, nearest): (Vec<f64>, Vec<(f64, usize)>)) -> Self {
        let nearest: Vec<_> = nearest.iter().map(|near| (near.1, near.0, f64::INFINITY)).collect();
        let inertia = nearest.iter().map(|near| near.1).sum();
        let mut clusters = Self { d, means, nearest, inertia };
        if !clusters.are_many() {
            clusters.assign(drawn);
            clusters.settle(drawn);
            return clusters;
        }
        // At all means it looks once these have settled, and goes on if that brings points closer.
        for _ in 0..LOOKS {
            clusters.settle(drawn);
            let before = clusters.inertia;
            clusters.assign(drawn);
            if clusters.is_settled(before) {
                break;
            }
        }
        clusters
    }

    fn are_many(&self) -> bool {
        self.means.len() / self.d > FEW
    }

    /// Also where there is no distance left at all.
    fn is_settled(&self, before: f64) -> bool {
        self.inertia.is_nan() || self.inertia >= (1.0 - SETTLED) * before
    }

    /// Steps of k-means; of many means a step looks at some for each point, which shortens distances all the same.
    fn settle(&mut self, drawn: &[f64]) {
        for _ in 0..LLOYD {
            let before = self.inertia;
            self.centre(drawn);
            if self.are_many() {
                self.assign_next(drawn)
            } else {
                self.assign(drawn)
            }
            if self.is_settled(before) {
                break;
            }
        }
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

    /// Nearest means, and second nearest, among those next to the one that a point had, by one matrix product for the points of each.
    fn assign_next(&mut self, drawn: &[f64]) {
        let (d, h) = (self.d, self.means.len() / self.d);
        let panels: Vec<f64> = pack(&transposed(&self.means, d), d, h);
        let squares: Vec<f64> = self.means.chunks_exact(d).map(|mean| dot(mean, mean)).collect();
        let mut of_mean = vec![Vec::new(); h];
        self.nearest.iter().enumerate().for_each(|(n, near)| of_mean[near.0].push(n));
        let (mut products, mut order) = (vec![0.0; h.max(AT_ONCE * NEXT)], Vec::with_capacity(h));
        let (mut next, mut some) = (vec![0.0; NEXT * d], Vec::with_capacity(AT_ONCE * d));
        for (mean, points) in self.means.chunks_exact(d).zip(&of_mean) {
            product(mean, &panels, d, h, &mut products[..h]);
            order.clear();
            order.extend(
                products.iter().zip(&squares).map(|(product, square)| square - 2.0 * product).zip(0..),
            );
            order.select_nth_unstable_by(NEXT, |a: &(f64, usize), b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let near = &mut order[..NEXT];
            near.sort_unstable_by_key(|near| near.1);
            for (at, &(_, k)) in near.iter().enumerate() {
                (0..d).for_each(|i| next[i * NEXT + at] = self.means[k * d + i]);
            }
            let panels: Vec<f64> = pack(&next, d, NEXT);
            for points in points.chunks(AT_ONCE) {
                some.clear();
                points.iter().for_each(|n| some.extend_from_slice(&drawn[n * d..][..d]));
                let products = &mut products[..points.len() * NEXT];
                product(&some, &panels, d, NEXT, products);
                for ((&n, y), products) in
                    points.iter().zip(some.chunks_exact(d)).zip(products.chunks_exact(NEXT))
                {
                    let distances = products
                        .iter()
                        .zip(near.iter())
                        .map(|(product, near)| squares[near.1] - 2.0 * product);
                    let mut best = (0, f64::INFINITY, f64::INFINITY);
                    for (distance, near) in distances.zip(near.iter()) {
                        if distance < best.1 {
                            best = (near.1, distance, best.1);
                        } else if distance < best.2 {
                            best.2 = distance;
                        }
                    }
                    let own = dot(y, y);
                    self.nearest[n] = (best.0, (best.1 + own).max(0.0), (best.2 + own).max(0.0));
                }
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
    pub fn moved(&self, drawn: &[f64], trial: usize, rng: &mut Rng) -> Self {
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
        let mut tried = Self { d, means: self.means.clone(), nearest: self.nearest.clone(), inertia: 0.0 };
        tried.means[spare * d..][..d].copy_from_slice(&drawn[at * d..][..d]);
        if self.are_many() {
            tried.find_again(drawn, spare);
        } else {
            tried.assign(drawn);
        }
        tried.settle(drawn);
        tried
    }

    /// Nearest means after this one has gone elsewhere.
    fn find_again(&mut self, drawn: &[f64], gone: usize) {
        let d = self.d;
        let place = &self.means[gone * d..][..d];
        for (y, near) in drawn.chunks_exact(d).zip(&mut self.nearest) {
            let to_place = apart(y, place);
            if near.0 == gone {
                *near = (gone, to_place, f64::INFINITY);
                for (k, mean) in self.means.chunks_exact(d).enumerate().filter(|(k, _)| *k != gone) {
                    let distance = apart(y, mean);
                    if distance < near.1 {
                        *near = (k, distance, near.1);
                    } else if distance < near.2 {
                        near.2 = distance;
                    }
                }
            } else if to_place < near.1 {
                *near = (gone, to_place, near.1);
            } else if to_place < near.2 {
                near.2 = to_place;
            }
        }
        self.inertia = self.nearest.iter().map(|near| near.1).sum();
    }
}

/// |a - b|^2.
pub(super) fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::far::far_means;
    use super::*;

    const D: usize = 4;

    /// Points around 200 means.
    fn drawn() -> Vec<f64> {
        let mut rng = Rng::new(1);
        let means: Vec<f64> = (0..200 * D).map(|_| 3.0 * rng.normal::<f64>()).collect();
        (0..6000 * D).map(|e| means[e / D % 200 * D + e % D] + rng.normal::<f64>()).collect()
    }

    /// Every point's nearest mean and the distance from the second nearest, by looking at all.
    fn is_nearest(clusters: &Clusters, drawn: &[f64]) -> bool {
        drawn.chunks_exact(D).zip(&clusters.nearest).all(|(y, near)| {
            let mut distances: Vec<f64> = clusters.means.chunks_exact(D).map(|mean| apart(y, mean)).collect();
            let own = distances[near.0];
            distances.sort_by(f64::total_cmp);
            (own - distances[0]).abs() < 1e-9
                && (near.1 - distances[0]).abs() < 1e-9
                && (near.2 - distances[1]).abs() < 1e-9
        })
    }

    fn from(means: Vec<f64>, drawn: &[f64]) -> Clusters {
        let mut clusters = Clusters { d: D, means, nearest: Vec::new(), inertia: f64::INFINITY };
        clusters.assign(drawn);
        clusters
    }

    #[test]
    fn looking_next_door_is_about_as_good_as_looking_everywhere() {
        let (drawn, h) = (drawn(), FEW + 72);
        let (means, nearest) = far_means(&drawn, D, h, &mut Rng::new(2));
        let mut full = from(means.clone(), &drawn);
        let begun = full.inertia;
        let fast = Clusters::new(&drawn, D, (means, nearest));
        assert!(fast.are_many() && is_nearest(&fast, &drawn));
        for _ in 0..LLOYD {
            full.centre(&drawn);
            full.assign(&drawn);
        }
        assert!(full.inertia < 0.95 * begun, "{} {begun}", full.inertia);
        assert!(fast.inertia < 1.005 * full.inertia, "{} {}", fast.inertia, full.inertia);
    }

    #[test]
    fn a_step_next_door_never_lengthens_distances() {
        let drawn = drawn();
        let mut clusters = from(drawn[..200 * D].to_vec(), &drawn);
        for _ in 0..10 {
            let before = clusters.inertia;
            clusters.centre(&drawn);
            clusters.assign_next(&drawn);
            assert!(clusters.inertia <= before * (1.0 + 1e-12), "{} {before}", clusters.inertia);
        }
    }

    #[test]
    fn points_of_a_mean_that_has_gone_find_another() {
        let drawn = drawn();
        let mut clusters = from(drawn[..200 * D].to_vec(), &drawn);
        clusters.means[..D].copy_from_slice(&drawn[5000 * D..][..D]);
        clusters.find_again(&drawn, 0);
        let known = from(clusters.means.clone(), &drawn);
        assert!(clusters.nearest.iter().zip(&known.nearest).all(|(found, known)| found.0 == known.0));
        assert!((clusters.inertia - known.inertia).abs() < 1e-9 * known.inertia);
    }

    #[test]
    fn groups_are_the_points_nearest_to_each_first_mean() {
        let drawn = drawn();
        let (means, nearest) = far_means(&drawn, D, 150, &mut Rng::new(3));
        let known = from(means, &drawn);
        for (found, known) in nearest.iter().zip(&known.nearest) {
            assert_eq!(found.1, known.0);
            assert!((found.0 - known.1).abs() < 1e-9, "{found:?} {known:?}");
        }
    }
}
