//! Adaptive states: the posterior over the states that were kept is the one that the definitions give over exactly these,
//! whatever the model; and the states are good ones.
//!
//! **The oracle** reads the numbers of the model as it is, `f32` or `f64`, and knows of no tableau, no Gram matrix and no
//! sweep: a Gaussian with a D x D covariance for each state (gsc), or the misses of its sum or maximum (bsc, nmf, mca), in
//! numbers of 31 digits.
//!
//! **What is possible.** G is known to u = 2^-24 (f32) or 2^-53 (f64) of its entries. A pivot, what the latents that are on
//! leave of G_ii plus the slab's own K_i, is then off by u |a|^T |G| |a|, with a the coefficients of these latents in column i (1
//! for i itself): c times u in parts of it, c the largest of these ratios. So much is lost of what a flip is worth, which among
//! states that matter is part of what the best state costs, or tens of nats of the prior. What is explained before samples
//! are refined (256 nats in f32, 2^20 in f64) is known to u of it. D + n roundings each: [`allowed`]. Where c u nears 1 the
//! numbers of the model do not say what the posterior is; it must only be one.

mod common;

use common::twofold::{Twofold, ZERO};
use common::{Case, the_same_cases_every_time};
use proptest::prelude::*;
use spikelet::math::Real;
use spikelet::model::{Model, Noise, States};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference, Kind, arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};
use std::collections::HashMap;

/// Kinds that have adaptive states.
const KINDS: [ModelKind; 4] = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];

/// A model and a sample, hard in the ways that are set.
#[derive(Clone, Debug)]
struct Problem {
    parameters: Parameters,
    options: Options,
    sample: Vec<f64>,
    is_hard: bool,
}

/// What is hard about a problem.
#[derive(Clone, Copy, Debug, Default)]
struct Hard {
    /// Noise 100 dB below the signal.
    quiet_noise: bool,
    /// Columns that differ by a thousandth.
    parallel: bool,
    /// Slabs far narrower than their means.
    narrow: bool,
    /// Priors of 1e-12 and 1 - 1e-12.
    certain: bool,
    /// A sample 1000 times louder than the model's, in no direction of its own.
    outlier: bool,
    /// Nothing at all.
    silent: bool,
}

impl Hard {
    fn any(self) -> bool {
        let Self { quiet_noise, parallel, narrow, certain, outlier, silent } = self;
        quiet_noise || parallel || narrow || certain || outlier || silent
    }
}

fn problem(kind: ModelKind, d: usize, h: usize, seed: u64, hard: Hard) -> Problem {
    let mut rng = Rng::new(seed);
    let is_positive = kind.kind().is_non_negative();
    let mut dictionary: Vec<f64> =
        (0..d * h).map(|_| rng.normal::<f64>()).map(|w| if is_positive { w.abs() } else { w }).collect();
    if hard.parallel {
        for column in (1..h).step_by(2) {
            for row in dictionary.chunks_exact_mut(h) {
                row[column] = row[column - 1] * (1.0 + 1e-3 * rng.uniform::<f64>());
            }
        }
    }
    let uniform = |rng: &mut Rng, low: f64, high: f64| low + (high - low) * rng.uniform::<f64>();
    let sigma2 = if hard.quiet_noise { 1e-10 } else { 10f64.powf(uniform(&mut rng, -1.5, 0.0)) };
    let noise = match seed % 3 {
        0 => NoiseCov::Shared(sigma2),
        2 if !kind.kind().is_maximal() => {
            let a: Vec<f64> = (0..d * d).map(|_| rng.normal()).collect();
            let entry =
                |i: usize, j: usize| (0..d).map(|k| a[i * d + k] * a[j * d + k]).sum::<f64>() / d as f64;
            let entries = (0..d * d).map(|at| (at / d, at % d));
            NoiseCov::Full(
                entries.map(|(i, j)| sigma2 * (0.3 * entry(i, j) + f64::from(u8::from(i == j)))).collect(),
            )
        }
        _ => NoiseCov::Diagonal((0..d).map(|_| sigma2 * uniform(&mut rng, 0.5, 2.0)).collect()),
    };
    let prior: Vec<f64> = (0..h)
        .map(|i| match (hard.certain, i % 3) {
            (true, 0) => 1e-12,
            (true, 1) => 1.0 - 1e-12,
            _ => uniform(&mut rng, 0.05, 0.4),
        })
        .collect();
    let has_mean = hard.narrow || seed % 5 > 1;
    let slab_mean: Vec<f64> = (0..h)
        .map(|_| {
            if hard.narrow {
                10.0 * rng.normal::<f64>()
            } else if has_mean {
                rng.normal()
            } else {
                0.0
            }
        })
        .collect();
    let slab: Vec<f64> =
        (0..h).map(|_| uniform(&mut rng, 0.3, 3.0) * if hard.narrow { 1e-8 } else { 1.0 }).collect();
    let x: Vec<f64> = (0..h)
        .map(|i| match (rng.uniform::<f64>() < 0.35, kind.kind().has_slab()) {
            (true, true) => slab_mean[i] + slab[i].sqrt() * rng.normal::<f64>(),
            (on, _) => f64::from(u8::from(on)),
        })
        .collect();
    let sample = dictionary.chunks_exact(h).map(|row| {
        let parts = row.iter().zip(&x).map(|(w, x)| w * x);
        let clean = if kind.kind().is_maximal() { parts.fold(0.0, f64::max) } else { parts.sum() };
        let outlier = if hard.outlier { 1e3 * rng.normal::<f64>() } else { 0.0 };
        let noisy = clean + outlier + sigma2.sqrt() * rng.normal::<f64>();
        if hard.silent { 0.0 } else { noisy }
    });
    let sample = sample.collect();
    let parameters = if kind.kind().has_slab() {
        let (dims, latents, slab_cov) = (d, h, SlabCov::Diagonal(slab));
        Parameters { kind, dims, latents, dictionary, prior, slab_mean, slab_cov, noise }
    } else {
        Parameters::binary(kind, dictionary, d, prior, noise)
    };
    let selected = 1 + (seed / 7 % h as u64) as usize;
    let max_active = 1 + (seed / 91 % selected as u64) as usize;
    let is_full = matches!(parameters.noise, NoiseCov::Full(_));
    let options = Options {
        selected,
        max_active,
        singletons: false,
        selection: if is_full { SelectionName::Singleton } else { SelectionName::of_kind(kind) },
        states: Some(StatesName::Adaptive),
        expansions: [1, 2, 4, 8, 64][(seed / 13 % 5) as usize],
        gram: if seed.is_multiple_of(2) || is_full { GramName::Stored } else { GramName::Computed },
    };
    let options = if is_full && kind == ModelKind::Gsc {
        options
    } else if is_full {
        Options { selection: SelectionName::Cosine, ..options }
    } else {
        options
    };
    Problem { parameters, options, sample, is_hard: hard.any() }
}

fn problems(hard: bool) -> impl Strategy<Value = Problem> {
    let hardness = prop::collection::vec(prop::bool::weighted(0.3), 6);
    (0..4usize, 2..9usize, 1..11usize, any::<u64>(), hardness).prop_map(move |(kind, d, h, seed, bits)| {
        let [quiet_noise, parallel, narrow, certain, outlier, silent] = bits[..] else { unreachable!() };
        let silent = silent && seed.is_multiple_of(2);
        let chosen = Hard { quiet_noise, parallel, narrow, certain, outlier, silent };
        problem(KINDS[kind], d, h, seed, if hard { chosen } else { Hard::default() })
    })
}

/// A state by its definition.
struct Defined {
    /// ln p(y, s).
    joint: Twofold,
    /// E[x] and Cov[x] of the latents that are on, in the order they were given.
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

/// The model's own numbers with 31 digits: rows of W and the sample are whitened where noise has correlations.
struct Oracle {
    kind: Kind,
    d: usize,
    /// W by rows, D x H.
    w: Vec<Twofold>,
    y: Vec<Twofold>,
    variance: Vec<Twofold>,
    logit: Vec<f64>,
    mean: Vec<f64>,
    slab: Vec<Twofold>,
    /// What all states share.
    log_norm: f64,
}

impl Oracle {
    fn new<T: Real>(model: &Model<'_, T>, sample: &[T]) -> Self {
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

    fn w(&self, i: usize, latent: u16) -> Twofold {
        self.w[i * self.logit.len() + usize::from(latent)]
    }

    /// ln p(y, s) without what all states share, and moments.
    fn state(&self, on: &[u16]) -> Defined {
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
struct Exact {
    activity: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    second: Vec<f64>,
    evidence: f64,
    /// E[x] in each state.
    means: Vec<Vec<f64>>,
    /// Of each state.
    probability: Vec<f64>,
    /// Of each state, relative to the best.
    nats: Vec<f64>,
    /// Nats that the best state costs: half of the energy it leaves, and more.
    best: f64,
}

fn exact(oracle: &Oracle, states: &[Vec<u16>]) -> Exact {
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

/// How far results may be from the definitions, in nats and in parts of the largest: see the top.
fn allowed<T: Real>(
    problem: &Problem,
    oracle: &Oracle,
    exact: &Exact,
    best: &[u16],
    selected: &[u16],
) -> f64 {
    let is_single = size_of::<T>() == 4;
    let ordinary = if is_single { 1e-4 } else { 1e-9 };
    if !problem.is_hard {
        return ordinary;
    }
    let (unit, refined_above) =
        if is_single { (2f64.powi(-24), 256.0) } else { (2f64.powi(-53), 2f64.powi(20)) };
    let energy = oracle.y.iter().zip(&oracle.variance).fold(ZERO, |sum, (&y, &v)| sum + y * y / v).value();
    let explained = (0.5 * energy).min(refined_above);
    let at_stake = (exact.best.abs() + 30.0) * cancellation(oracle, best, selected);
    ordinary.max((oracle.d + selected.len()) as f64 * unit * (explained + at_stake))
}

/// c: how many times the rounding of G that of a pivot is, beside the latents of the best state.
fn cancellation(oracle: &Oracle, best: &[u16], selected: &[u16]) -> f64 {
    // Latents without a slab have no pivots: they see only what is left of the sample.
    if !oracle.kind.has_slab() {
        return 1.0;
    }
    let gram = |a: u16, b: u16| {
        let products = (0..oracle.d).map(|i| oracle.w(i, a) * oracle.w(i, b) / oracle.variance[i]);
        products.fold(ZERO, |sum, p| sum + p)
    };
    let own = |a: u16| Twofold::from(1.0) / oracle.slab[usize::from(a)];
    let ratio = |&i: &u16| {
        let on: Vec<u16> = best.iter().copied().filter(|&a| a != i).collect();
        let k = on.len();
        // (G + K)_AA a = G_Ai
        let row = |a: u16| {
            let entries = on.iter().map(move |&b| if a == b { gram(a, b) + own(a) } else { gram(a, b) });
            entries.chain([gram(a, i)]).collect::<Vec<_>>()
        };
        let mut m: Vec<Vec<Twofold>> = on.iter().map(|&a| row(a)).collect();
        for p in 0..k {
            let pivot = m[p].clone();
            for (_, other) in m.iter_mut().enumerate().filter(|(q, _)| *q != p) {
                let factor = other[p] / pivot[p];
                other.iter_mut().zip(&pivot).for_each(|(entry, &above)| *entry -= factor * above);
            }
        }
        let solved = (0..k).map(|p| m[p][k] / m[p][p]);
        let parts: Vec<(u16, Twofold)> = on.iter().copied().zip(solved).collect();
        let left = parts.iter().fold(gram(i, i) + own(i), |left, &(a, x)| left - x * gram(a, i));
        let all = || parts.iter().map(|&(a, x)| (a, x.value().abs())).chain([(i, 1.0)]);
        let spread: f64 =
            all().flat_map(|(a, x)| all().map(move |(b, y)| x * y * gram(a, b).value().abs())).sum();
        spread / left.value().abs()
    };
    selected.iter().map(ratio).fold(1.0, f64::max)
}

/// A state as latents in order, and its probability.
type Kept = (Vec<u16>, f64);

fn states<T: Real>(inference: &mut Inference<'_, T>) -> Vec<Kept> {
    let mut kept = Vec::new();
    inference.for_each_state(|latents, probability| {
        let mut latents = latents.to_vec();
        latents.sort_unstable();
        kept.push((latents, probability.to_f64()));
    });
    kept
}

fn convert<T: Real>(sample: &[f64]) -> Vec<T> {
    sample.iter().map(|&y| T::from_f64(y)).collect()
}

/// Errors above this say that the numbers of the model do not determine the posterior.
const UNKNOWN: f64 = 0.1;

/// Everything that inference says against the definitions. Returns the worst error in parts of what is allowed.
fn compare<T: Real>(problem: &Problem) -> f64 {
    let prepared = Prepared::<T>::new(&problem.parameters, &problem.options).unwrap();
    let model = prepared.model().unwrap();
    assert!(matches!(model.shape.states, States::Adaptive { .. }));
    let sample = convert::<T>(&problem.sample);
    let mut memory = vec![T::ZERO; arena_len(model.shape, Detail::SecondMoments)];
    let mut inference = Inference::with_detail(model, &mut memory, Detail::SecondMoments).unwrap();
    inference.infer(&sample).unwrap();
    let kept = states(&mut inference);
    let found = inference.estimate();
    let h = model.shape.latents;

    // Every state once, as many as there may be, of candidates only.
    let distinct: HashMap<&[u16], f64> = kept.iter().map(|(on, q)| (on.as_slice(), *q)).collect();
    assert_eq!(distinct.len(), kept.len(), "a state was visited twice");
    assert!(kept.len() as u64 <= model.shape.states() && !kept.is_empty());
    assert!(kept.iter().all(|(on, _)| on.len() <= model.shape.max_active));
    assert!(kept.iter().flat_map(|(on, _)| on).all(|latent| found.selected.contains(latent)));

    let oracle = Oracle::new(&model, &sample);
    let list: Vec<Vec<u16>> = kept.iter().map(|(on, _)| on.clone()).collect();
    let exact = exact(&oracle, &list);
    let best = exact.nats.iter().position(|&nats| nats == 0.0).expect("a best state");
    let allowed = allowed::<T>(problem, &oracle, &exact, &list[best], found.selected);

    let mut worst: (f64, &str) = (0.0, "");
    let mut see = |error: f64, what: &'static str| {
        // NaN counts.
        if error.abs() > worst.0 || error.is_nan() {
            worst = (error.abs(), what);
        }
    };
    see(kept.iter().map(|(_, q)| q).sum::<f64>() - 1.0, "sum of probabilities");
    for ((_, q), exact) in kept.iter().zip(&exact.probability) {
        see(q - exact, "probability of a state");
    }
    // Relative to the largest, or to what a latent that is on has before any sample.
    let slabs = oracle.mean.iter().zip(&oracle.slab).map(|(mu, psi)| mu * mu + psi.value());
    let least = if oracle.kind.has_slab() { slabs.fold(0.0, f64::max) } else { 1.0 };
    let second_scale = exact.second.iter().fold(least, |m, v| m.max(v.abs()));
    for i in 0..h {
        see(found.activity[i].to_f64() - exact.activity[i], "activity");
        see((found.mean[i].to_f64() - exact.mean[i]) / second_scale.sqrt(), "mean");
        see((found.variance[i].to_f64() - exact.variance[i]) / second_scale, "variance");
        assert!(found.variance[i] >= T::ZERO);
    }
    let n = found.selected.len();
    assert_eq!(found.second.len(), n * n);
    for (p, &i) in found.selected.iter().enumerate() {
        for (q, &j) in found.selected.iter().enumerate() {
            let exact = exact.second[usize::from(i) * h + usize::from(j)];
            see((found.second[p * n + q].to_f64() - exact) / second_scale, "second moment");
        }
    }
    // As in tests/golden.rs: 1e-3 nats or 1e-5 of it in f32.
    let scale = (exact.evidence.abs() / 100.0).max(1.0) * if size_of::<T>() == 4 { 10.0 } else { 1.0 };
    see((found.evidence.to_f64() - exact.evidence) / scale, "evidence");
    // The best state is one of the best, with the coefficients that it has.
    let map =
        list.iter().position(|on| on == found.map_latents).expect("the best state is one that was kept");
    see(exact.nats[map].max(-1.0), "best state");
    for (value, exact) in found.map_values.iter().zip(&exact.means[map]) {
        see((value.to_f64() - exact) / second_scale.sqrt(), "coefficient of the best state");
    }
    let (worst, what) = worst;
    if allowed > UNKNOWN {
        let sum: f64 = kept.iter().map(|(_, q)| q).sum();
        assert!((sum - 1.0).abs() < 1e-3, "probabilities add up to {sum}");
        assert!(found.activity.iter().all(|a| (0.0..=1.0 + 1e-5).contains(&a.to_f64())));
        return 0.0;
    }
    assert!(worst <= allowed, "{what} is off by {worst:e}, allowed {allowed:e}");
    worst / allowed
}

proptest! {
    #![proptest_config(the_same_cases_every_time(300))]

    #[test]
    fn ordinary_models_in_f64(problem in problems(false)) {
        compare::<f64>(&problem);
    }

    #[test]
    fn ordinary_models_in_f32(problem in problems(false)) {
        compare::<f32>(&problem);
    }

    /// All that is hard at once.
    #[test]
    fn hard_models_in_f64(problem in problems(true)) {
        compare::<f64>(&problem);
    }

    #[test]
    fn hard_models_in_f32(problem in problems(true)) {
        compare::<f32>(&problem);
    }

    /// Bit for bit, whatever was inferred before and whether its states were looked at.
    #[test]
    fn earlier_samples_do_not_show(problem in problems(true), scales in prop::collection::vec(-2..4i32, 2..8)) {
        let prepared = Prepared::<f32>::new(&problem.parameters, &problem.options).unwrap();
        let model = prepared.model().unwrap();
        let (mut memory, mut other) = (vec![0.0; model.arena_len()], vec![f32::NAN; model.arena_len()]);
        let mut inference = Inference::new(model, &mut memory).unwrap();
        for (n, scale) in scales.into_iter().enumerate() {
            let sample: Vec<f32> =
                problem.sample.iter().map(|y| (y * 10f64.powi(scale) + 0.1 * n as f64) as f32).collect();
            let mut fresh = Inference::new(model, &mut other).unwrap();
            let (found, alone) = (inference.infer(&sample).map(|e| format!("{e:?}")), fresh.infer(&sample).map(|e| format!("{e:?}")));
            prop_assert_eq!(found, alone);
            if n % 2 == 0 {
                prop_assert_eq!(states(&mut inference), states(&mut fresh));
                let again = (format!("{:?}", inference.estimate()), format!("{:?}", fresh.estimate()));
                prop_assert_eq!(again.0, again.1);
            }
        }
    }

    /// More expansions keep all states of fewer ones.
    #[test]
    fn raising_expansions_never_lowers_the_evidence(problem in problems(false)) {
        let mut last = f64::NEG_INFINITY;
        for expansions in [1, 2, 3, 4, 6, 8, 16, 64] {
            let options = Options { expansions, ..problem.options };
            let prepared = Prepared::<f64>::new(&problem.parameters, &options).unwrap();
            let model = prepared.model().unwrap();
            let mut memory = vec![0.0; model.arena_len()];
            let mut inference = Inference::new(model, &mut memory).unwrap();
            let evidence = inference.infer(&problem.sample).unwrap().evidence;
            prop_assert!(evidence >= last - 1e-12 * evidence.abs().max(1.0), "{evidence} after {last}, {expansions}");
            last = evidence;
        }
    }

    /// All latents candidates and no end of expansions: exact inference.
    #[test]
    fn with_enough_expansions_it_is_exact(problem in problems(false)) {
        let h = problem.parameters.latents;
        if h > 7 {
            return Ok(());
        }
        let [adaptive, subsets] = [StatesName::Adaptive, StatesName::Subsets].map(|states| {
            let options = Options { selected: h, max_active: h, expansions: 1024, states: Some(states), ..problem.options };
            let prepared = Prepared::<f64>::new(&problem.parameters, &options).unwrap();
            let model = prepared.model().unwrap();
            let mut memory = vec![0.0; model.arena_len()];
            let mut inference = Inference::new(model, &mut memory).unwrap();
            let found = inference.infer(&problem.sample).unwrap();
            (found.evidence, found.activity.to_vec(), found.mean.to_vec())
        });
        prop_assert!((adaptive.0 - subsets.0).abs() < 1e-9 * subsets.0.abs().max(1.0), "{} {}", adaptive.0, subsets.0);
        for (a, b) in adaptive.1.iter().zip(&subsets.1).chain(adaptive.2.iter().zip(&subsets.2)) {
            prop_assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
        }
    }
}

#[test]
fn thirty_digits() {
    let third = Twofold::from(1.0) / 3.0.into();
    let rest = third * 3.0.into() - 1.0.into();
    assert!(rest.value().abs() < 1e-31, "{rest:?}");
    let large = Twofold::from(1e20) + third;
    assert!(((large - 1e20.into()) - third).value().abs() < 1e-11);
}

/// One thing that is hard at a time, in every size up to D = 8 and H = 10.
fn each_size(kind: ModelKind, hard: Hard) -> impl Iterator<Item = Problem> {
    (0..400u64).map(move |seed| {
        let (d, h) = (2 + (seed % 7) as usize, 1 + (seed / 7 % 10) as usize);
        problem(kind, d, h, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), hard)
    })
}

fn compare_all(kinds: &[ModelKind], hard: Hard) {
    for &kind in kinds {
        for problem in each_size(kind, hard) {
            compare::<f64>(&problem);
            compare::<f32>(&problem);
        }
    }
}

#[test]
fn parallel_columns() {
    compare_all(&KINDS, Hard { parallel: true, ..Hard::default() });
}

#[test]
fn narrow_slabs() {
    compare_all(&KINDS, Hard { narrow: true, ..Hard::default() });
    compare_all(&KINDS, Hard { narrow: true, certain: true, ..Hard::default() });
}

#[test]
fn priors_that_are_certain() {
    compare_all(&KINDS, Hard { certain: true, ..Hard::default() });
}

#[test]
fn silence() {
    compare_all(&KINDS, Hard { silent: true, ..Hard::default() });
}

/// 100 dB, in f32 as in f64: what is left of a sample is exact.
#[test]
fn little_noise_without_a_slab() {
    compare_all(&[ModelKind::Bsc, ModelKind::Nmf], Hard { quiet_noise: true, ..Hard::default() });
}

#[test]
fn outliers() {
    for kind in KINDS {
        each_size(kind, Hard { outlier: true, ..Hard::default() }).for_each(|problem| {
            compare::<f64>(&problem);
        });
    }
    compare_all(&[ModelKind::Bsc], Hard { outlier: true, ..Hard::default() });
}

/// A model of gsc with the same prior, slab and noise everywhere.
fn alike(dictionary: Vec<f64>, d: usize, prior: f64, mean: f64, noise: f64) -> Parameters {
    let h = dictionary.len() / d;
    Parameters {
        kind: ModelKind::Gsc,
        dims: d,
        latents: h,
        dictionary,
        prior: vec![prior; h],
        slab_mean: vec![mean; h],
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(noise),
    }
}

/// A sample of such a model, and the same without noise.
fn draw(p: &Parameters, rng: &mut Rng) -> (Vec<f64>, Vec<f64>) {
    let h = p.latents;
    let on: Vec<bool> = (0..h).map(|i| rng.uniform::<f64>() < p.prior[i]).collect();
    let x: Vec<f64> =
        (0..h).map(|i| if on[i] { p.slab_mean[i] + rng.normal::<f64>() } else { 0.0 }).collect();
    let clean: Vec<f64> =
        p.dictionary.chunks_exact(h).map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum()).collect();
    let deviation = p.noise_variances()[0].sqrt();
    (clean.iter().map(|y| y + deviation * rng.normal::<f64>()).collect(), clean)
}

fn options(selected: usize, max_active: usize, states: StatesName, expansions: usize) -> Options {
    let (selection, states, gram) = (SelectionName::Singleton, Some(states), GramName::Auto);
    Options { selected, max_active, singletons: false, selection, states, expansions, gram }
}

/// Bars of 000 fig. 3: 5 x 5, the ten bars of strength 10 that are on with probability 0.2, mu = psi = sigma = 1.
fn bars() -> Parameters {
    let bar = |at: usize| (at / 10 / 5 == at % 10) || (at / 10 % 5 + 5 == at % 10);
    let dictionary = (0..250).map(|at| if bar(at) { 10.0 } else { 0.0 }).collect();
    alike(dictionary, 25, 0.2, 1.0, 1.0)
}

/// Evidence and number of kept states of every sample.
fn evidence<T: Real>(parameters: &Parameters, options: &Options, samples: &[Vec<f64>]) -> Vec<(f64, usize)> {
    let prepared = Prepared::<T>::new(parameters, options).unwrap();
    let model = prepared.model().unwrap();
    let mut memory = vec![T::ZERO; model.arena_len()];
    let mut inference = Inference::new(model, &mut memory).unwrap();
    let each = samples.iter().map(|sample| {
        let evidence = inference.infer(&convert::<T>(sample)).unwrap().evidence.to_f64();
        let mut kept = 0;
        inference.for_each_state(|_, _| kept += 1);
        (evidence, kept)
    });
    each.collect()
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

/// Mean Q, and states on average.
fn quality(found: &[(f64, usize)], exact: &[(f64, usize)]) -> (f64, f64) {
    let parts = found.iter().zip(exact).map(|(found, exact)| (found.0 - exact.0).exp());
    (mean(parts), mean(found.iter().map(|found| found.1 as f64)))
}

/// The papers' sets have Q of .67 to .85 here [000 fig. 3].
#[test]
fn bars_with_few_states() {
    let (parameters, mut rng) = (bars(), Rng::new(204));
    let samples: Vec<Vec<f64>> = (0..1000).map(|_| draw(&parameters, &mut rng).0).collect();
    let exact = evidence::<f64>(&parameters, &options(10, 10, StatesName::Subsets, 1), &samples);
    let mut reached = None;
    for expansions in 1..=8 {
        let found =
            evidence::<f32>(&parameters, &options(10, 10, StatesName::Adaptive, expansions), &samples);
        let (quality, states) = quality(&found, &exact);
        println!("{expansions} expansions: {states:.1} states, Q {quality:.4}");
        if quality >= 0.99 && reached.is_none() {
            reached = Some((expansions, states));
        }
    }
    let (expansions, states) = reached.expect("a mean Q of 0.99");
    assert!(states <= 35.0, "{states} states with {expansions} expansions");
    let subsets = evidence::<f64>(&parameters, &options(7, 2, StatesName::Subsets, 1), &samples);
    println!("subsets, 7 of which 2 on: {:?}", quality(&subsets, &exact));
}

/// Every golden case of gsc with a diagonal slab: with as many states the search has no less evidence than the papers' sets.
#[test]
fn golden_cases_have_more_evidence() {
    for name in [
        "gsc_audio",
        "gsc_diag_independent",
        "gsc_diag_plain",
        "gsc_diag_singletons",
        "gsc_exact_d4",
        "gsc_exact_d6",
        "gsc_hard_low_noise",
        "gsc_hard_parallel",
        "gsc_hard_prior",
        "gsc_overcomplete",
        "gsc_scalar",
    ] {
        let case = Case::load(name);
        let parameters = common::parameters(&case);
        let data = case.array("Y").unwrap();
        let samples: Vec<Vec<f64>> = data.chunks_exact(parameters.dims).map(<[f64]>::to_vec).collect();
        let subsets = Options { states: Some(StatesName::Subsets), ..common::options(&case) };
        let listed = evidence::<f64>(&parameters, &subsets, &samples);
        // Candidates: all, or as the command line has them.
        let selected = parameters.latents.min(20);
        let states = |values: &[(f64, usize)]| mean(values.iter().map(|v| v.1 as f64));
        // As many expansions as keep no more states.
        let searched = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 1024].map(|expansions| {
            let search = options(selected, selected.min(12), StatesName::Adaptive, expansions);
            evidence::<f64>(&parameters, &search, &samples)
        });
        let no_more = searched.into_iter().filter(|found| states(found) <= states(&listed));
        let found =
            no_more.max_by(|a, b| states(a).total_cmp(&states(b))).expect("one expansion keeps fewer");
        let of = |values: &[(f64, usize)]| {
            (mean(values.iter().map(|v| v.0)), mean(values.iter().map(|v| v.1 as f64)))
        };
        let worse = found.iter().zip(&listed).filter(|(found, listed)| found.0 < listed.0 - 1e-9).count();
        let (found, listed) = (of(&found), of(&listed));
        println!("{name}: {found:?} against {listed:?}, worse on {worse} of {}", samples.len());
        assert!(found.0 >= listed.0 - 1e-6, "{name}: {found:?} against {listed:?}");
    }
}

/// D = 64, H = 256, three latents on on average, noise 0.1: `gsc_d64_h256`, drawn by our own generator.
#[test]
fn many_latents_that_hide_each_other() {
    let (d, h, mut rng) = (64, 256, Rng::new(203));
    let mut dictionary: Vec<f64> = (0..d * h).map(|_| rng.normal()).collect();
    for column in 0..h {
        let length = dictionary.iter().skip(column).step_by(h).map(|w| w * w).sum::<f64>().sqrt();
        dictionary.iter_mut().skip(column).step_by(h).for_each(|w| *w *= 8.0 / length);
    }
    let parameters = alike(dictionary, d, 3.0 / 256.0, 0.0, 0.1);
    let samples: Vec<(Vec<f64>, Vec<f64>)> = (0..1000).map(|_| draw(&parameters, &mut rng)).collect();
    let signal: f64 = samples.iter().flat_map(|(_, clean)| clean).map(|y| y * y).sum();
    let snr = |options: &Options| {
        let prepared = Prepared::<f32>::new(&parameters, options).unwrap();
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let (mut missed, mut evidence, mut out) = (0.0, 0.0, vec![0.0; d]);
        for (noisy, clean) in &samples {
            evidence += f64::from(inference.infer(&convert::<f32>(noisy)).unwrap().evidence);
            inference.reconstruct(&mut out).unwrap();
            missed += out.iter().zip(clean).map(|(x, y)| (f64::from(*x) - y).powi(2)).sum::<f64>();
        }
        (10.0 * (signal / missed).log10(), evidence / samples.len() as f64)
    };
    let listed = snr(&options(10, 3, StatesName::Subsets, 1));
    for gram in [GramName::Stored, GramName::Computed] {
        let found = snr(&Options { gram, ..options(20, 12, StatesName::Adaptive, 4) });
        println!("{gram:?}: {found:?} dB and nats, subsets {listed:?}");
        assert!(found.0 >= 25.5 && found.0 >= listed.0 + 10.0, "{gram:?}: {found:?}, subsets {listed:?}");
        assert!(found.1 > listed.1);
    }
}
