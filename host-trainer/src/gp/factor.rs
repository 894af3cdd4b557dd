//! The kernel matrix by incomplete Cholesky, and what follows from it for all latents at once.
//!
//! ```text
//! K ~ L L^T + Lambda        L N x Q, pivots where K is explained worst; Lambda the rest of the diagonal, white included
//! C = I + L^T Lambda^-1 L   (Q x Q)
//! K^-1 S    = Lambda^-1 (S - L C^-1 L^T Lambda^-1 S)
//! [K^-1]_nn = 1/Lambda_n - l_n^T C^-1 l_n / Lambda_n^2
//! ```
//!
//! The factorisation ends before rank Q where nothing is left to explain, and is exact then: for a linear kernel after at
//! most D pivots. Otherwise off-diagonal entries are approximate and the diagonal is exact. Cost: N Q (Q + D) operations, once as long as
//! the kernel stays, and N Q H for every set of targets.

use super::kernel::Kernel;
use crate::linalg::dot;
use faer::linalg::solvers::{Llt, Solve};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Mat, MatRef, Par, Side};

/// Of the diagonal of K; what is left is rounding.
const EXHAUSTED: f64 = 1e-13;

/// K of some points, factored.
#[derive(Clone, Debug)]
pub struct Factor {
    kernel: Kernel,
    /// Which points the pivots are. (Q)
    pivots: Vec<usize>,
    /// L. (N x Q)
    low: Mat<f64>,
    /// Lambda. (N)
    rest: Vec<f64>,
    /// Of C.
    core: Llt<f64>,
    /// Diagonal of K^-1. (N)
    inverse: Vec<f64>,
}

impl Factor {
    /// Of points (N x D), with at most `rank` pivots. `None` where the kernel is not one: it needs a white part.
    pub fn new(kernel: Kernel, points: &[f64], dims: usize, rank: usize) -> Option<Self> {
        let n = points.len() / dims;
        let point = |i: usize| &points[i * dims..][..dims];
        let rank = rank.min(n);
        let mut low = vec![0.0; n * rank];
        let mut left: Vec<f64> = (0..n).map(|i| kernel.between(point(i), point(i))).collect();
        let most = left.iter().fold(0.0f64, |most, left| most.max(*left));
        let mut pivots = Vec::new();
        while pivots.len() < rank {
            let found = pivots.len();
            // Of equals the first.
            let pivot = (0..n).fold(0, |best, i| if left[i] > left[best] { i } else { best });
            if left[pivot] <= EXHAUSTED * most {
                break;
            }
            let scale = left[pivot].sqrt();
            let row = low[pivot * rank..][..found].to_vec();
            for i in 0..n {
                let own = &mut low[i * rank..][..=found];
                let value = (kernel.between(point(i), point(pivot)) - dot(&own[..found], &row)) / scale;
                own[found] = value;
                left[i] = (left[i] - value * value).max(0.0);
            }
            left[pivot] = 0.0;
            pivots.push(pivot);
        }
        let found = pivots.len();
        let low = Mat::from_fn(n, found, |i, q| low[i * rank + q]);
        let rest: Vec<f64> = left.iter().map(|left| left + kernel.white).collect();
        if rest.iter().any(|rest| !(rest.is_finite() && *rest > 0.0)) {
            return None;
        }
        let weighted = Mat::from_fn(n, found, |i, q| low[(i, q)] / rest[i]);
        let core = low.transpose() * &weighted + Mat::<f64>::identity(found, found);
        let core = core.llt(Side::Lower).ok()?;
        // l^T C^-1 l = |V|^2 with V = (factor of C)^-1 l.
        let mut solved = low.transpose().to_owned();
        solve_lower_triangular_in_place(core.L(), solved.as_mut(), Par::Seq);
        let inverse =
            (0..n).map(|i| (1.0 - solved.col(i).squared_norm_l2() / rest[i]) / rest[i]).collect::<Vec<f64>>();
        inverse.iter().all(|v| v.is_finite() && *v > 0.0).then_some(Self {
            kernel,
            pivots,
            low,
            rest,
            core,
            inverse,
        })
    }

    /// How many pivots it has.
    pub fn rank(&self) -> usize {
        self.low.ncols()
    }

    /// Which points the pivots are, in their order. (Q)
    pub fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// K^-1 itself, for targets of which most are zero. (N x N) Costs N^2 Q operations.
    pub fn whole_inverse(&self) -> Mat<f64> {
        let n = self.rest.len();
        let mut solved = self.low.transpose().to_owned();
        solve_lower_triangular_in_place(self.core.L(), solved.as_mut(), Par::Seq);
        let explained = solved.transpose() * &solved;
        Mat::from_fn(n, n, |i, j| {
            let own = if i == j { 1.0 / self.rest[i] } else { 0.0 };
            own - explained[(i, j)] / (self.rest[i] * self.rest[j])
        })
    }

    /// Weights of the pivots alone, by which new points are predicted as sum_q k(y, pivot q) a_q. (Q x H)
    ///
    /// With L_q the rows of the pivots, which are triangular: a = L_q^-T C^-1 L^T Lambda^-1 S. At rank N that is K^-1 S.
    pub fn pivot_weights(&self, targets: &[f64], latents: usize) -> Mat<f64> {
        let n = self.rest.len();
        let targets = MatRef::from_row_major_slice(targets, n, latents);
        let scaled = Mat::from_fn(n, latents, |i, h| targets[(i, h)] / self.rest[i]);
        let mut weights = self.core.solve(self.low.transpose() * &scaled);
        let q = self.pivots.len();
        let triangle = Mat::from_fn(q, q, |i, j| if j <= i { self.low[(self.pivots[i], j)] } else { 0.0 });
        solve_upper_triangular_in_place(triangle.transpose(), weights.as_mut(), Par::Seq);
        weights
    }

    /// K^-1 S of targets. (both N x H)
    pub fn weights(&self, targets: &[f64], latents: usize) -> Vec<f64> {
        let n = self.rest.len();
        let targets = MatRef::from_row_major_slice(targets, n, latents);
        let scaled = Mat::from_fn(n, latents, |i, h| targets[(i, h)] / self.rest[i]);
        let explained = &self.low * self.core.solve(self.low.transpose() * &scaled);
        let entry = |i: usize, h: usize| scaled[(i, h)] - explained[(i, h)] / self.rest[i];
        (0..n * latents).map(|e| entry(e / latents, e % latents)).collect()
    }

    /// What every point's targets are, as told by all others. (N x H)
    pub fn affinities(&self, targets: &[f64], latents: usize) -> Vec<f64> {
        let weights = self.weights(targets, latents);
        let entry = |(e, weight): (usize, &f64)| targets[e] - weight / self.inverse[e / latents];
        weights.iter().enumerate().map(entry).collect()
    }

    /// Of a kernel without other parts than the linear one: M with predictions M^T y. (D x H)
    pub fn linear_scores(&self, points: &[f64], targets: &[f64], latents: usize) -> Vec<f64> {
        let n = self.rest.len();
        let weights = self.weights(targets, latents);
        let weights = MatRef::from_row_major_slice(&weights, n, latents);
        let dims = points.len() / n.max(1);
        let scores = MatRef::from_row_major_slice(points, n, dims).transpose() * weights;
        (0..dims * latents).map(|e| self.kernel.linear * scores[(e / latents, e % latents)]).collect()
    }

    /// Targets of new points, as told by all of `points` with these weights. (M x H)
    pub fn predictions(&self, points: &[f64], weights: &[f64], new: &[f64], dims: usize) -> Vec<f64> {
        let latents = weights.len() / self.rest.len().max(1);
        let mut found = Vec::with_capacity(new.len() / dims * latents);
        for y in new.chunks_exact(dims) {
            let mut sums = vec![0.0; latents];
            for (other, weights) in points.chunks_exact(dims).zip(weights.chunks_exact(latents)) {
                let k = self.kernel.between(y, other);
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += k * weight);
            }
            found.extend(sums);
        }
        found
    }
}
