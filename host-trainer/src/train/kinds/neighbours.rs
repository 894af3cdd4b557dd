//! Moments of many latents, of which few are ever on together: sparse rows instead of an H x H matrix.

use super::super::statistics::Statistics;

/// The entries of `sum <x x^T>` that are not zero, row by row, the diagonal apart.
pub(super) struct Neighbours {
    pub diagonal: Vec<f64>,
    /// Where each row begins, and after the last one where it ends. (H + 1)
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Neighbours {
    /// Entries that are less than `least` of what they could be, sqrt(M_ii M_jj), are left out as well.
    pub fn new(sums: &Statistics, least: f64) -> Self {
        let h = sums.mean.len();
        let scale: Vec<f64> = (0..h).map(|i| sums.second_moment(i, i).max(0.0).sqrt()).collect();
        let below = |i: usize| &sums.second[Statistics::place(i, 0)..][..i];
        let counts = |i: usize, j: usize, m: f64| m.abs() > least * scale[i] * scale[j];
        let mut starts = vec![0; h + 1];
        for i in 0..h {
            for (j, &m) in below(i).iter().enumerate() {
                let counts = usize::from(counts(i, j, m));
                starts[i + 1] += counts;
                starts[j + 1] += counts;
            }
        }
        for i in 0..h {
            starts[i + 1] += starts[i];
        }
        let (mut next, mut entries) = (starts.clone(), vec![(0, 0.0); starts[h]]);
        for i in 0..h {
            for (j, &m) in below(i).iter().enumerate() {
                if counts(i, j, m) {
                    for (row, other) in [(i, j), (j, i)] {
                        entries[next[row]] = (other as u32, m);
                        next[row] += 1;
                    }
                }
            }
        }
        let diagonal = (0..h).map(|i| sums.second_moment(i, i)).collect();
        Self { diagonal, starts, entries }
    }

    /// `sum_j M_hj W_j` over the others, added to `total`; W by latents. (H x D)
    pub fn add_row(&self, h: usize, by_latents: &[f64], factor: f64, total: &mut [f64]) {
        let d = total.len();
        for &(j, m) in &self.entries[self.starts[h]..self.starts[h + 1]] {
            let column = &by_latents[j as usize * d..][..d];
            let m = factor * m;
            total.iter_mut().zip(column).for_each(|(sum, w)| *sum += m * w);
        }
    }

    /// W M, by latents. (H x D)
    pub fn product(&self, by_latents: &[f64], d: usize) -> Vec<f64> {
        let mut product: Vec<f64> =
            (0..by_latents.len()).map(|e| self.diagonal[e / d] * by_latents[e]).collect();
        for (h, row) in product.chunks_exact_mut(d).enumerate() {
            self.add_row(h, by_latents, 1.0, row);
        }
        product
    }

    /// Improves W (by latents) one column after the other, each to its best given the others; `sweeps` times all.
    /// Latents that are `dead` stay.
    pub fn improve(&self, by_latents: &mut [f64], cross: &[f64], dead: &[bool], sweeps: usize) {
        let d = by_latents.len() / dead.len();
        let mut column = vec![0.0; d];
        for _ in 0..sweeps {
            for h in (0..dead.len()).filter(|&h| !dead[h] && self.diagonal[h] > 0.0) {
                column.copy_from_slice(&cross[h * d..][..d]);
                self.add_row(h, by_latents, -1.0, &mut column);
                let own = &mut by_latents[h * d..][..d];
                own.iter_mut().zip(&column).for_each(|(w, c)| *w = c / self.diagonal[h]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linear;
    use super::*;
    use crate::linalg::transposed;
    use crate::parameters::{ModelKind, NoiseCov, Parameters};
    use crate::train::{Guard, Learned, Update};
    use spikelet::rng::Rng;

    #[test]
    fn the_same_optimum_and_product_as_with_the_whole_matrix() {
        let (d, h, mut rng) = (3, 5, Rng::new(4));
        let mut random = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.normal()).collect() };
        let model = Parameters::binary(ModelKind::Bsc, random(d * h), d, vec![0.2; h], NoiseCov::Shared(1.0));
        let mut sums = Statistics::new(&model);
        let points = random(20 * h);
        for x in points.chunks_exact(h) {
            (0..h).for_each(|i| (0..=i).for_each(|j| sums.second[Statistics::place(i, j)] += x[i] * x[j]));
        }
        // A pair that is never on together.
        sums.second[Statistics::place(4, 1)] = 0.0;
        sums.cross = random(d * h);
        let dead = [false, false, true, false, false];
        let start = transposed(&model.dictionary, h);
        for (e, value) in Neighbours::new(&sums, 0.0).product(&start, d).into_iter().enumerate() {
            let direct: f64 = (0..h).map(|j| sums.second_moment(e / d, j) * start[j * d + e % d]).sum();
            assert!((value - direct).abs() < 1e-12);
        }
        // The exact solver takes a dead latent as never on together with others.
        (0..h).filter(|&i| i != 2).for_each(|i| sums.second[Statistics::place(2, i)] = 0.0);
        let mut improved = start;
        Neighbours::new(&sums, 0.0).improve(&mut improved, &transposed(&sums.cross, h), &dead, 500);
        let free = Guard { noise_floor: 0.0, prior_margin: 0.0, slab_floor: 0.0 };
        let update = Update::new(Learned::NOTHING, free);
        let exact = linear::dictionary(&model, &sums, &dead, &update, &mut Vec::new());
        improved
            .iter()
            .zip(transposed(&exact, h))
            .for_each(|(a, b)| assert!((a - b).abs() < 1e-9, "{a} {b}"));
    }
}
