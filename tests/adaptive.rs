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
//! are refined (256 nats in f32, 2^20 in f64) is known to u of it. D + n roundings each: [`allowed`]. Where c u nears 1
//! latents are not turned on ([`MOST`]).

mod common;
#[path = "adaptive/oracle.rs"]
mod oracle;
#[path = "adaptive/problem.rs"]
mod problem;
#[path = "adaptive/quality.rs"]
mod quality;

use common::the_same_cases_every_time;
use common::twofold::{Twofold, ZERO};
use oracle::{Exact, Oracle, exact};
use problem::{Hard, KINDS, Problem, problem, problems};
use proptest::prelude::*;
use spikelet::math::Real;
use spikelet::model::States;
use spikelet::{Detail, Inference, arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet_trainer::prepare::{Options, Prepared, StatesName};
use std::collections::HashMap;

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

/// Whatever the model: latents of which others leave nothing but rounding errors are not turned on.
const MOST: f64 = 0.02;

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
    let allowed = allowed.min(MOST);
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

/// As many latents on as there are dimensions, far above the noise: determinants of their states leave the range of `f32`.
#[test]
fn many_latents_on() {
    for seed in 0..60u64 {
        let (d, h) = (6 + (seed % 9) as usize, 20 + (seed % 13) as usize);
        let Problem { parameters, options, sample, .. } =
            problem(ModelKind::Gsc, d, h, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), Hard::default());
        let problem = Problem {
            parameters: Parameters { noise: NoiseCov::Shared(0.01), ..parameters },
            options: Options { selected: h.min(20), max_active: 12, expansions: 4, ..options },
            sample,
            is_hard: true,
        };
        compare::<f64>(&problem);
        compare::<f32>(&problem);
    }
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
