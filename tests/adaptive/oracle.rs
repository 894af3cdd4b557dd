//! The definitions, in numbers of 31 digits.

use crate::common::twofold::{Twofold, ZERO};
use spikelet::Kind;
use spikelet::math::Real;
use spikelet::model::{Model, Noise};

/// A state by its definition.
pub struct Defined {
    /// ln p(y, s).
    pub joint: Twofold,
    /// E[x] and Cov[x] of the latents that are on, in the order they were given.
    pub mean: Vec<f64>,
    pub covariance: Vec<f64>,
}

/// The model's own numbers with 31 digits: rows of W and the sample are whitened where noise has correlations.
pub struct Oracle {
    pub kind: Kind,
    pub d: usize,
    /// W by rows, D x H.
    pub w: Vec<Twofold>,
    pub y: Vec<Twofold>,
    pub variance: Vec<Twofold>,
    pub logit: Vec<f64>,
    pub mean: Vec<f64>,
    pub slab: Vec<Twofold>,
    /// What all states share.
    pub log_norm: f64,
}

impl Oracle {
    pub fn new<T: Real>(model: &Model<'_, T>, sample: &[T]) -> Self {
        let (d, h) = (model.shape.dims, model.shape.latents);
        let exact = |value: T| Twofold::from(value.to_f64());
        let mut w: Vec<Twofold> = (0..d * h).map(|at| exact(model.entry(at / h, at % h))).collect();
        let mut y: Vec<Twofold> = sample.iter().map(|&y| exact(y)).collect();
        let one = Twofold::from(1.0);
        let mut log_det = 0.0;
        let variance = match model.noise {
            Noise::Shared(precision) => vec![one / exact(precision); d],
            Noise::Diagonal(precisions) => precisions.iter().map(|&p| one / exact(p)).collect(),
            Noise::Full(factor) => {
                let row = |i: usize| &factor[i * (i + 1) / 2..][..i + 1];
                let whiten = |column: &dyn Fn(usize) -> Twofold, i: usize| {
                    row(i).iter().enumerate().fold(ZERO, |sum, (j, &l)| sum + exact(l) * column(j))
                };
                w = (0..d * h).map(|at| whiten(&|j| w[j * h + at % h], at / h)).collect();
                y = (0..d).map(|i| whiten(&|j| y[j], i)).collect();
                log_det = (0..d).map(|i| -2.0 * exact(row(i)[i]).ln()).sum();
                vec![one; d]
            }
        };
        log_det += variance.iter().map(|v| v.ln()).sum::<f64>();
        let logit: Vec<f64> = model.prior_logit.iter().map(|l| l.to_f64()).collect();
        // ln(1 - pi) = -ln(1 + exp(l))
        let off: f64 = logit.iter().map(|&l| -(l.max(0.0) + (-l.abs()).exp().ln_1p())).sum();
        Self {
            kind: model.shape.kind,
            d,
            w,
            y,
            variance,
            logit,
            mean: model.slab_mean.iter().map(|m| m.to_f64()).collect(),
            slab: model.slab_precision.iter().map(|&k| one / exact(k)).collect(),
            log_norm: off - 0.5 * (d as f64 * std::f64::consts::TAU.ln() + log_det),
        }
    }

    pub fn w(&self, i: usize, latent: u16) -> Twofold {
        self.w[i * self.logit.len() + usize::from(latent)]
    }

    /// ln p(y, s) without what all states share, and moments.
    pub fn state(&self, on: &[u16]) -> Defined {
        let prior: f64 = on.iter().map(|&a| self.logit[usize::from(a)]).sum();
        if !self.kind.has_slab() {
            let mut energy = ZERO;
            for i in 0..self.d {
                let parts = on.iter().map(|&a| self.w(i, a));
                let clean = match self.kind.is_maximal() {
                    true => parts.fold(ZERO, |m, w| if w.value() > m.value() { w } else { m }),
                    false => parts.fold(ZERO, |sum, w| sum + w),
                };
                let miss = self.y[i] - clean;
                energy += miss * miss / self.variance[i];
            }
            let joint = Twofold::from(prior) - energy * 0.5.into();
            return Defined { joint, mean: vec![1.0; on.len()], covariance: vec![0.0; on.len() * on.len()] };
        }
        let (d, k) = (self.d, on.len());
        let psi = |a: u16| self.slab[usize::from(a)];
        let mu = |a: u16| Twofold::from(self.mean[usize::from(a)]);
        // C = Sigma + W Psi W^T and y - W mu, W Psi beside it; Cholesky without square roots, C = L diag(p) L^T.
        let mut c: Vec<Twofold> = (0..d * d)
            .map(|at| {
                let (i, j) = (at / d, at % d);
                let own = if i == j { self.variance[i] } else { ZERO };
                on.iter().fold(own, |sum, &a| sum + self.w(i, a) * psi(a) * self.w(j, a))
            })
            .collect();
        let width = 1 + k;
        let mut right: Vec<Twofold> = (0..d)
            .flat_map(|i| {
                let miss = on.iter().fold(self.y[i], |rest, &a| rest - self.w(i, a) * mu(a));
                [miss].into_iter().chain(on.iter().map(move |&a| self.w(i, a) * psi(a))).collect::<Vec<_>>()
            })
            .collect();
        let mut log_det = 0.0;
        for p in 0..d {
            let pivot = c[p * d + p];
            log_det += pivot.ln();
            for i in p + 1..d {
                let factor = c[i * d + p] / pivot;
                for j in p + 1..d {
                    let step = factor * c[p * d + j];
                    c[i * d + j] -= step;
                }
                for j in 0..width {
                    let step = factor * right[p * width + j];
                    right[i * width + j] -= step;
                }
            }
        }
        // a^T C^-1 b for columns a, b of what was at the right.
        let product = |a: usize, b: usize| {
            (0..d).fold(ZERO, |sum, p| sum + right[p * width + a] * right[p * width + b] / c[p * d + p])
        };
        let base = self.variance.iter().map(|v| v.ln()).sum::<f64>();
        Defined {
            joint: Twofold::from(prior - 0.5 * (log_det - base)) - product(0, 0) * 0.5.into(),
            mean: (0..k).map(|i| (mu(on[i]) + product(1 + i, 0)).value()).collect(),
            covariance: (0..k * k)
                .map(|at| {
                    let (i, j) = (at / k, at % k);
                    let own = if i == j { psi(on[i]) } else { ZERO };
                    (own - product(1 + i, 1 + j)).value()
                })
                .collect(),
        }
    }
}

/// What the definitions say over a list of states.
pub struct Exact {
    pub activity: Vec<f64>,
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
    pub second: Vec<f64>,
    pub evidence: f64,
    /// E[x] in each state.
    pub means: Vec<Vec<f64>>,
    /// Of each state.
    pub probability: Vec<f64>,
    /// Of each state, relative to the best.
    pub nats: Vec<f64>,
    /// Nats that the best state costs: half of the energy it leaves, and more.
    pub best: f64,
}

pub fn exact(oracle: &Oracle, states: &[Vec<u16>]) -> Exact {
    let h = oracle.logit.len();
    let defined: Vec<Defined> = states.iter().map(|on| oracle.state(on)).collect();
    let top = defined.iter().map(|s| s.joint).fold(None, |top: Option<Twofold>, joint| match top {
        Some(top) if top.value() >= joint.value() => Some(top),
        _ => Some(joint),
    });
    let top = top.expect("at least one state");
    let nats: Vec<f64> = defined.iter().map(|s| (s.joint - top).value()).collect();
    let total: f64 = nats.iter().map(|n| n.exp()).sum();
    let probability: Vec<f64> = nats.iter().map(|n| n.exp() / total).collect();
    let (mut activity, mut mean, mut second) = (vec![0.0; h], vec![0.0; h], vec![0.0; h * h]);
    for ((on, state), &q) in states.iter().zip(&defined).zip(&probability) {
        for (i, a) in on.iter().map(|&a| usize::from(a)).enumerate() {
            activity[a] += q;
            mean[a] += q * state.mean[i];
            for (j, b) in on.iter().map(|&b| usize::from(b)).enumerate() {
                second[a * h + b] += q * (state.covariance[i * on.len() + j] + state.mean[i] * state.mean[j]);
            }
        }
    }
    // About the mean, so that nothing cancels.
    let mut variance: Vec<f64> =
        activity.iter().zip(&mean).map(|(on, m)| (1.0 - on).max(0.0) * m * m).collect();
    for ((on, state), &q) in states.iter().zip(&defined).zip(&probability) {
        for (i, a) in on.iter().map(|&a| usize::from(a)).enumerate() {
            variance[a] += q * (state.covariance[i * on.len() + i] + (state.mean[i] - mean[a]).powi(2));
        }
    }
    let evidence = oracle.log_norm + (top + total.ln().into()).value();
    let means = defined.into_iter().map(|state| state.mean).collect();
    Exact { activity, mean, variance, second, evidence, probability, nats, means, best: -top.value() }
}
