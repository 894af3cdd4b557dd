//! Linear sparse coding with an L1 penalty, learned online (Mairal et al., 2009): the method to compare with.
//!
//! ```text
//! min over W, s of   sum_n 1/2 |y_n - W s_n|^2 + a |s_n|_1,      columns of W no longer than 1
//! ```
//!
//! Codes by coordinate descent; W by one round over its columns after every batch, from sums over codes in which older
//! ones fade.

use spikelet::rng::Rng;

/// Points between two updates of W.
const BATCH: usize = 256;
/// Rounds over the latents of one point, at most.
const ROUNDS: usize = 200;
/// A code is done when no coefficient moves by more, relative to the largest.
const STILL: f64 = 1e-4;

/// A dictionary and its penalty.
pub struct Lasso {
    dims: usize,
    latents: usize,
    penalty: f64,
    /// By latents. (H x D)
    pub columns: Vec<f64>,
}

impl Lasso {
    /// Learns from points (N x D) in `passes` rounds. Columns begin as points.
    pub fn learn(
        points: &[f64],
        dims: usize,
        latents: usize,
        penalty: f64,
        passes: usize,
        rng: &mut Rng,
    ) -> Self {
        let n = points.len() / dims;
        let mut pick = |count: usize| ((rng.uniform::<f64>() * count as f64) as usize).min(count - 1);
        let point = |at: usize| &points[at * dims..][..dims];
        let columns = (0..latents).flat_map(|_| point(pick(n)).to_vec()).collect();
        let mut lasso = Self { dims, latents, penalty, columns };
        lasso.columns.chunks_exact_mut(dims).for_each(shorten);
        // sum s s^T (H x H), sum s y^T (H x D)
        let (mut codes, mut cross) = (vec![0.0; latents * latents], vec![0.0; latents * dims]);
        let mut order: Vec<usize> = (0..n).collect();
        let mut batches = 0.0;
        for _ in 0..passes {
            (1..n).rev().for_each(|i| order.swap(i, pick(i + 1)));
            for batch in order.chunks(BATCH) {
                // Their rule: slow at first, then all batches weigh alike.
                batches += 1.0;
                let size = BATCH as f64;
                let theta = if batches < size { batches * size } else { size * size + batches - size };
                let fade = (theta + 1.0 - size) / (theta + 1.0);
                codes.iter_mut().chain(&mut cross).for_each(|sum| *sum *= fade);
                let gram = lasso.gram();
                for &at in batch {
                    let code = lasso.code(&gram, point(at));
                    for (h, &s) in code.iter().enumerate().filter(|(_, s)| **s != 0.0) {
                        let add = |sums: &mut [f64], values: &[f64]| {
                            sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += s * v);
                        };
                        add(&mut codes[h * latents..][..latents], &code);
                        add(&mut cross[h * dims..][..dims], point(at));
                    }
                }
                lasso.update(&codes, &cross);
            }
        }
        lasso
    }

    /// W^T W. (H x H)
    pub fn gram(&self) -> Vec<f64> {
        let column = |h: usize| &self.columns[h * self.dims..][..self.dims];
        let h = self.latents;
        (0..h * h).map(|e| dot(column(e / h), column(e % h))).collect()
    }

    /// The best code of a point, given W^T W.
    pub fn code(&self, gram: &[f64], y: &[f64]) -> Vec<f64> {
        let (h, mut code) = (self.latents, vec![0.0; self.latents]);
        // W^T (y - W s)
        let mut left: Vec<f64> = self.columns.chunks_exact(self.dims).map(|w| dot(w, y)).collect();
        for _ in 0..ROUNDS {
            let (mut moved, mut largest) = (0.0f64, 0.0f64);
            for k in 0..h {
                let square = gram[k * h + k];
                if square <= 0.0 {
                    continue;
                }
                let pull = left[k] + square * code[k];
                let new = pull.signum() * (pull.abs() - self.penalty).max(0.0) / square;
                let change = new - code[k];
                if change != 0.0 {
                    left.iter_mut().zip(&gram[k * h..][..h]).for_each(|(l, g)| *l -= g * change);
                    code[k] = new;
                }
                (moved, largest) = (moved.max(change.abs()), largest.max(new.abs()));
            }
            if moved <= STILL * largest {
                break;
            }
        }
        code
    }

    /// W s.
    pub fn reconstruct(&self, code: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.dims];
        for (w, s) in self.columns.chunks_exact(self.dims).zip(code) {
            out.iter_mut().zip(w).for_each(|(o, w)| *o += w * s);
        }
        out
    }

    /// Every column in turn to where the sums want it, given the others.
    fn update(&mut self, codes: &[f64], cross: &[f64]) {
        let (d, h) = (self.dims, self.latents);
        for k in (0..h).filter(|k| codes[k * h + k] > 0.0) {
            let explained = self.reconstruct(&codes[k * h..][..h]);
            let column = &mut self.columns[k * d..][..d];
            for ((w, wanted), explained) in column.iter_mut().zip(&cross[k * d..][..d]).zip(explained) {
                *w += (wanted - explained) / codes[k * h + k];
            }
            shorten(column);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// To a length of at most 1.
fn shorten(column: &mut [f64]) {
    let length = dot(column, column).sqrt();
    if length > 1.0 {
        column.iter_mut().for_each(|w| *w /= length);
    }
}
