//! What must hold for every model: against enumeration straight from the definition, and invariants.

mod common;

use proptest::prelude::*;
use spikelet::math::Real;
use spikelet::rng::Rng;
use spikelet::{Detail, Inference, arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};

/// A random model of a random kind, and a sample of it.
#[derive(Clone, Debug)]
struct Problem {
    parameters: Parameters,
    options: Options,
    sample: Vec<f64>,
}

fn problems() -> impl Strategy<Value = Problem> {
    (1..6usize, 1..7usize, any::<u64>(), 0..3u8, 0..3u8, any::<[bool; 3]>(), -3.0..1.0f64).prop_map(
        |(d, h, seed, noise, slab, [singletons, independent, table], log_noise)| {
            let mut rng = Rng::new(seed);
            let mut normals = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.normal()).collect() };
            let sigma2 = 10f64.powf(log_noise);
            let parameters = Parameters {
                kind: ModelKind::Gsc,
                dims: d,
                latents: h,
                dictionary: normals(d * h),
                prior: normals(h).iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
                slab_mean: normals(h),
                slab_cov: match slab {
                    0 => SlabCov::Unit,
                    1 => SlabCov::Diagonal(normals(h).iter().map(|x| x.exp()).collect()),
                    _ => SlabCov::Full(covariance(&normals(h * h), h, 1.0)),
                },
                noise: match noise {
                    0 => NoiseCov::Shared(sigma2),
                    1 => NoiseCov::Diagonal(normals(d).iter().map(|x| sigma2 * x.exp()).collect()),
                    _ => NoiseCov::Full(covariance(&normals(d * d), d, sigma2)),
                },
            };
            let selected = 1 + (seed % h as u64) as usize;
            let max_active = 1 + (seed / 7 % selected as u64) as usize;
            let options = Options {
                selected,
                max_active,
                singletons,
                selection: if independent { SelectionName::Independent } else { SelectionName::Singleton },
                states: (table || slab == 2).then_some(StatesName::Table),
                expansions: Options::EXPANSIONS,
                gram: GramName::Auto,
            };
            Problem { parameters, options, sample: normals(d).iter().map(|y| 2.0 * y).collect() }
        },
    )
}

/// A A^T + 0.1 I, scaled: symmetric and positive definite.
fn covariance(a: &[f64], n: usize, scale: f64) -> Vec<f64> {
    let entry = |i: usize, j: usize| -> f64 {
        let product: f64 = (0..n).map(|k| a[i * n + k] * a[j * n + k]).sum();
        scale * (product + if i == j { 0.1 } else { 0.0 })
    };
    (0..n * n).map(|i| entry(i / n, i % n)).collect()
}

/// Posterior from the definition: one D-dimensional Gaussian per state, no Gram matrix anywhere.
struct Enumeration {
    activity: Vec<f64>,
    mean: Vec<f64>,
    second: Vec<f64>,
    evidence: f64,
}

fn enumerate(problem: &Problem, selected: &[u16]) -> Enumeration {
    let Problem { parameters, options, sample } = problem;
    let (d, h) = (parameters.dims, parameters.latents);
    let psi = |i: usize, j: usize| match &parameters.slab_cov {
        SlabCov::Full(psi) => psi[i * h + j],
        _ if i == j => parameters.slab_variances()[i],
        _ => 0.0,
    };
    let sigma = |i: usize, j: usize| match &parameters.noise {
        NoiseCov::Full(sigma) => sigma[i * d + j],
        _ if i == j => parameters.noise_variances()[i],
        _ => 0.0,
    };
    let w = |i: usize, j: usize| parameters.dictionary[i * h + j];
    let mut found =
        Enumeration { activity: vec![0.0; h], mean: vec![0.0; h], second: vec![0.0; h * h], evidence: 0.0 };
    // Log joint, active latents, posterior mean and covariance.
    type State = (f64, Vec<usize>, Vec<f64>, Vec<f64>);
    let mut states: Vec<State> = Vec::new();
    for bits in 0..1usize << h {
        let active: Vec<usize> = (0..h).filter(|i| bits >> i & 1 == 1).collect();
        let kept =
            active.len() <= options.max_active && active.iter().all(|&i| selected.contains(&(i as u16)));
        if !(kept || options.singletons && active.len() == 1) {
            continue;
        }
        // y | s ~ N(W mu, Sigma + W Psi W^T) over the active latents
        let c: Vec<f64> = (0..d * d)
            .map(|e| {
                let (i, j) = (e / d, e % d);
                let spread: f64 = active
                    .iter()
                    .map(|&a| active.iter().map(|&b| w(i, a) * psi(a, b) * w(j, b)).sum::<f64>())
                    .sum();
                sigma(i, j) + spread
            })
            .collect();
        let miss: Vec<f64> = (0..d)
            .map(|i| sample[i] - active.iter().map(|&a| w(i, a) * parameters.slab_mean[a]).sum::<f64>())
            .collect();
        let (inverse, log_det) = invert(&c, d);
        let solved: Vec<f64> = (0..d).map(|i| (0..d).map(|j| inverse[i * d + j] * miss[j]).sum()).collect();
        let quadratic: f64 = miss.iter().zip(&solved).map(|(a, b)| a * b).sum();
        let prior: f64 = (0..h)
            .map(|i| {
                if active.contains(&i) { parameters.prior[i].ln() } else { (1.0 - parameters.prior[i]).ln() }
            })
            .sum();
        let log_joint = prior - 0.5 * (d as f64 * std::f64::consts::TAU.ln() + log_det + quadratic);
        // z | y, s by conditioning: mu + Psi W^T C^-1 miss, Psi - Psi W^T C^-1 W Psi
        let cross = |a: usize, i: usize| -> f64 { active.iter().map(|&b| psi(a, b) * w(i, b)).sum() };
        let kappa: Vec<f64> = active
            .iter()
            .map(|&a| parameters.slab_mean[a] + (0..d).map(|i| cross(a, i) * solved[i]).sum::<f64>())
            .collect();
        let lambda: Vec<f64> = active
            .iter()
            .flat_map(|&a| {
                let (inverse, cross) = (&inverse, &cross);
                active.iter().map(move |&b| {
                    let explained: f64 =
                        (0..d * d).map(|e| cross(a, e / d) * inverse[e] * cross(b, e % d)).sum();
                    psi(a, b) - explained
                })
            })
            .collect();
        states.push((log_joint, active, kappa, lambda));
    }
    let largest = states.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = states.iter().map(|s| (s.0 - largest).exp()).sum();
    found.evidence = largest + total.ln();
    for (log_joint, active, kappa, lambda) in states {
        let q = (log_joint - found.evidence).exp();
        for (i, &a) in active.iter().enumerate() {
            found.activity[a] += q;
            found.mean[a] += q * kappa[i];
            for (j, &b) in active.iter().enumerate() {
                found.second[a * h + b] += q * (lambda[i * active.len() + j] + kappa[i] * kappa[j]);
            }
        }
    }
    found
}

/// Inverse and ln det of a symmetric positive definite matrix, by Gauss-Jordan.
fn invert(matrix: &[f64], n: usize) -> (Vec<f64>, f64) {
    let (mut a, mut log_det) = (matrix.to_vec(), 0.0);
    for k in 0..n {
        let pivot = a[k * n + k];
        log_det += pivot.ln();
        a[k * n + k] = 1.0;
        (0..n).for_each(|j| a[k * n + j] /= pivot);
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i * n + k];
            a[i * n + k] = 0.0;
            (0..n).for_each(|j| a[i * n + j] -= factor * a[k * n + j]);
        }
    }
    (a, log_det)
}

/// Largest deviation from enumeration, and the evidence. With second moments and without, which go different ways.
fn compare<T: Real>(problem: &Problem) -> (f64, f64) {
    let (marginals, _) = compare_with::<T>(problem, Detail::Marginals);
    let (second, evidence) = compare_with::<T>(problem, Detail::SecondMoments);
    (marginals.max(second), evidence)
}

fn compare_with<T: Real>(problem: &Problem, detail: Detail) -> (f64, f64) {
    let prepared = Prepared::<T>::new(&problem.parameters, &problem.options).unwrap();
    let model = prepared.model().unwrap();
    let mut memory = vec![T::ZERO; arena_len(model.shape, detail)];
    let mut inference = Inference::with_detail(model, &mut memory, detail).unwrap();
    let sample: Vec<T> = problem.sample.iter().map(|&y| T::from_f64(y)).collect();
    let found = inference.infer(&sample).unwrap();
    let exact = enumerate(problem, found.selected);
    let h = problem.parameters.latents;
    let mut worst = (found.evidence.to_f64() - exact.evidence).abs() / exact.evidence.abs().max(1.0);
    let scale = exact.second.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for i in 0..h {
        let variance = exact.second[i * h + i] - exact.mean[i].powi(2);
        worst = worst
            .max((found.activity[i].to_f64() - exact.activity[i]).abs())
            .max((found.mean[i].to_f64() - exact.mean[i]).abs() / scale.sqrt())
            .max((found.variance[i].to_f64() - variance).abs() / scale);
        assert!(found.variance[i] >= T::ZERO);
    }
    let s = found.selected.len();
    for (p, &i) in found.selected.iter().enumerate().take(found.second.len()) {
        for (q, &j) in found.selected.iter().enumerate() {
            let miss = found.second[p * s + q].to_f64() - exact.second[usize::from(i) * h + usize::from(j)];
            worst = worst.max(miss.abs() / scale);
        }
    }
    let evidence = found.evidence.to_f64();
    // State by state the probabilities say the same.
    let (mut states, mut total, mut on) = (0, 0.0, vec![0.0; h]);
    inference.for_each_state(|latents, probability| {
        states += 1;
        total += probability.to_f64();
        latents.iter().for_each(|&i| on[usize::from(i)] += probability.to_f64());
    });
    assert_eq!(states, model.shape.states());
    worst = worst.max((total - 1.0).abs());
    for (on, exact) in on.iter().zip(&exact.activity) {
        worst = worst.max((on - exact).abs());
    }
    (worst, evidence)
}

/// Marginals are within `allowed` of those that come with second moments.
fn the_same_in_every_detail<T: Real>(problem: &Problem, allowed: f64) {
    let prepared = Prepared::<T>::new(&problem.parameters, &problem.options).unwrap();
    let model = prepared.model().unwrap();
    let sample: Vec<T> = problem.sample.iter().map(|&y| T::from_f64(y)).collect();
    let [alone, beside] = [Detail::Marginals, Detail::SecondMoments].map(|detail| {
        let mut memory = vec![T::ZERO; arena_len(model.shape, detail)];
        let mut inference = Inference::with_detail(model, &mut memory, detail).unwrap();
        let found = inference.infer(&sample).unwrap();
        let scale = found.mean.iter().fold(1.0, |scale: f64, mean| scale.max(mean.to_f64().abs()));
        let mut numbers: Vec<f64> = found.activity.iter().map(|a| a.to_f64()).collect();
        numbers.extend(found.mean.iter().map(|mean| mean.to_f64() / scale));
        numbers.extend(found.variance.iter().map(|variance| variance.to_f64() / scale / scale));
        numbers.push(found.evidence.to_f64() / found.evidence.to_f64().abs().max(1.0));
        numbers
    });
    for (a, b) in alone.iter().zip(beside) {
        assert!((*a - b).abs() <= allowed, "{a} instead of {b}");
    }
}

proptest! {
    #![proptest_config(common::the_same_cases_every_time(400))]

    /// f64: the enumeration itself loses digits in C^-1, whose condition number reaches 1e6 here.
    #[test]
    fn f64_is_enumeration(problem in problems()) {
        let (worst, _) = compare::<f64>(&problem);
        prop_assert!(worst < 1e-8, "off by {worst:e}");
    }

    /// f32: rounding W to 2^-24 at noise 1e-3 and y of a few units moves log joints by up to 1e-2;
    /// most of that is common to all states.
    #[test]
    fn f32_is_close_to_enumeration(problem in problems()) {
        let (worst, _) = compare::<f32>(&problem);
        prop_assert!(worst < 5e-3, "off by {worst:e}");
    }

    /// More states, more probability.
    #[test]
    fn raising_max_active_never_lowers_the_evidence(problem in problems()) {
        let mut problem = problem;
        let mut last = f64::NEG_INFINITY;
        for max_active in 1..=problem.options.selected {
            problem.options.max_active = max_active;
            let (_, evidence) = compare::<f64>(&problem);
            prop_assert!(evidence >= last - 1e-9 * evidence.abs().max(1.0), "{evidence} after {last}");
            last = evidence;
        }
    }

    /// The order of the latents does not matter (beyond rounding).
    #[test]
    fn reversing_the_latents_reverses_the_answer(problem in problems()) {
        let mut problem = problem;
        let h = problem.parameters.latents;
        problem.options.selected = h; // ties and near-ties in selection aside
        problem.options.max_active = problem.options.max_active.min(h);
        let reversed = {
            let mut reversed = problem.clone();
            let p = &mut reversed.parameters;
            p.dictionary.chunks_exact_mut(h).for_each(<[f64]>::reverse);
            p.prior.reverse();
            p.slab_mean.reverse();
            match &mut p.slab_cov {
                SlabCov::Unit => {}
                SlabCov::Diagonal(psi) | SlabCov::Full(psi) => psi.reverse(),
            }
            reversed
        };
        let infer = |problem: &Problem| {
            let prepared = Prepared::<f64>::new(&problem.parameters, &problem.options).unwrap();
            let mut memory = vec![0.0; prepared.model().unwrap().arena_len()];
            let mut inference = Inference::new(prepared.model().unwrap(), &mut memory).unwrap();
            inference.infer(&problem.sample).unwrap().mean.to_vec()
        };
        let (forward, backward) = (infer(&problem), infer(&reversed));
        for (a, b) in forward.iter().zip(backward.iter().rev()) {
            prop_assert!((a - b).abs() < 1e-7 * (1.0 + a.abs()), "{a} {b}");
        }
    }

    /// Bit for bit: what one sample leaves in memory does not show in the next.
    #[test]
    fn earlier_samples_do_not_show(problem in problems(), scales in prop::collection::vec(-2..4i32, 2..8)) {
        let prepared = Prepared::<f32>::new(&problem.parameters, &problem.options).unwrap();
        let model = prepared.model().unwrap();
        let samples = scales.iter().enumerate().map(|(n, &scale)| -> Vec<f32> {
            let scale = 10f64.powi(scale) * if n % 2 == 0 { 1.0 } else { -1.0 };
            problem.sample.iter().map(|&y| (scale * y + 0.1 * n as f64) as f32).collect()
        });
        let (mut memory, mut fresh_memory) = (vec![0.0; model.arena_len()], vec![0.0; model.arena_len()]);
        let mut inference = Inference::new(model, &mut memory).unwrap();
        for sample in samples {
            let mut fresh = Inference::new(model, &mut fresh_memory).unwrap();
            let (found, alone) = (inference.infer(&sample), fresh.infer(&sample));
            prop_assert_eq!(format!("{:?}", found), format!("{:?}", alone));
        }
    }

    /// Second moments are computed beside the marginals and change none of their bits, however loud the sample.
    #[test]
    fn marginals_do_not_depend_on_detail(problem in problems(), log_scale in 0.0..5.0f64) {
        let (mut problem, scale) = (problem, 10f64.powf(log_scale));
        problem.sample.iter_mut().for_each(|y| *y *= scale);
        the_same_in_every_detail::<f64>(&problem, 0.0);
        the_same_in_every_detail::<f32>(&problem, 0.0);
    }

    /// Whatever finite numbers come in: an answer that is a posterior, or an error.
    #[test]
    fn any_sample_gives_a_posterior_or_an_error(
        problem in problems(),
        wild in prop::collection::vec(any::<f32>(), 1..6),
    ) {
        common::posterior_or_error(&problem.parameters, &problem.options, &wild, 1e15);
    }
}

fn simple(dims: usize, latents: usize, selected: usize, max_active: usize) -> (Parameters, Options) {
    let mut rng = Rng::new(3);
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary: (0..dims * latents).map(|_| rng.normal::<f64>()).collect(),
        prior: vec![0.1; latents],
        slab_mean: vec![0.0; latents],
        slab_cov: SlabCov::Unit,
        noise: NoiseCov::Shared(0.1),
    };
    let (selection, gram) = (SelectionName::Singleton, GramName::Auto);
    (
        parameters,
        Options {
            selected,
            max_active,
            singletons: true,
            selection,
            states: None,
            expansions: Options::EXPANSIONS,
            gram,
        },
    )
}

#[test]
fn twenty_latents_exactly_and_a_thousand_singletons() {
    for (dims, latents, selected, max_active) in [(10, 20, 20, 20), (8, 1000, 1, 1)] {
        let (parameters, options) = simple(dims, latents, selected, max_active);
        let prepared = Prepared::<f32>::new(&parameters, &options).unwrap();
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let sample: Vec<f32> =
            parameters.dictionary.iter().step_by(latents).map(|&w| 2.0 * w as f32).collect();
        let found = inference.infer(&sample).unwrap();
        assert!(found.evidence.is_finite() && found.selected[0] == 0 && found.activity[0] > 0.9);
        // A few numbers per latent, and per pair of selected ones and active latent: nothing per state.
        assert!(model.arena_len() < 2 * dims + 5 * latents + 3 * max_active * selected * selected);
    }
}

#[test]
fn narrow_slabs_keep_their_digits() {
    // mu = 10, psi = 1e-4: K mu^2 = 1e10 nats would drown everything in f32 if it were formed.
    let (mut parameters, options) = simple(6, 5, 5, 3);
    parameters.slab_mean = vec![10.0; 5];
    parameters.slab_cov = SlabCov::Diagonal(vec![1e-8; 5]);
    parameters.noise = NoiseCov::Shared(25.0);
    let sample: Vec<f64> = parameters.dictionary.iter().step_by(5).map(|w| 9.0 * w).collect();
    for states in [None, Some(StatesName::Table)] {
        let options = Options { states, ..options };
        let problem = Problem { parameters: parameters.clone(), options, sample: sample.clone() };
        assert!(compare::<f32>(&problem).0 < 1e-4, "{states:?}: {:e}", compare::<f32>(&problem).0);
    }
}

/// 100 dB above the noise and like nothing the model can make: log joints of 1e11 nats, whose rounding errors are
/// thousands, and still one of the states must be the best.
#[test]
fn samples_that_no_state_explains_have_a_posterior() {
    let (dims, latents) = (12, 8);
    let mut rng = Rng::new(21);
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary: (0..dims * latents).map(|_| rng.normal()).collect(),
        prior: vec![0.3; latents],
        slab_mean: (0..latents).map(|_| 60.0 * rng.normal::<f64>()).collect(),
        slab_cov: SlabCov::Diagonal(vec![1e4; latents]),
        noise: NoiseCov::Shared(1e-6),
    };
    let options = Options { selected: 6, max_active: 4, ..common::exact(latents) };
    let prepared = Prepared::<f32>::new(&parameters, &options).unwrap();
    let model = prepared.model().unwrap();
    let mut memory = vec![0.0; model.arena_len()];
    let mut inference = Inference::new(model, &mut memory).unwrap();
    for _ in 0..300 {
        let sample: Vec<f32> = (0..dims).map(|_| 300.0 * rng.normal::<f32>()).collect();
        let estimate = inference.infer(&sample).unwrap();
        assert!(estimate.activity.iter().all(|a| (0.0..=1.000_01).contains(a)));
        assert!(!estimate.map_latents.is_empty());
    }
}

/// The walk on the tableau, from state to state, and matrices that were computed for each state by itself.
#[test]
fn subsets_and_tables_say_the_same() {
    let (dims, latents) = (6, 8);
    let mut rng = Rng::new(33);
    for noise in [1e-1, 1e-2, 1e-3, 1e-4] {
        let parameters = Parameters {
            kind: ModelKind::Gsc,
            dims,
            latents,
            dictionary: (0..dims * latents).map(|_| rng.normal()).collect(),
            prior: vec![0.2; latents],
            slab_mean: (0..latents).map(|h| if h % 2 == 0 { 0.0 } else { rng.normal() }).collect(),
            slab_cov: SlabCov::Diagonal(vec![1.0; latents]),
            noise: NoiseCov::Shared(noise),
        };
        let [walked, tabled] = [StatesName::Subsets, StatesName::Table].map(|states| {
            let options =
                Options { selected: 7, max_active: 3, states: Some(states), ..common::exact(latents) };
            let prepared = Prepared::<f64>::new(&parameters, &options).unwrap();
            move |sample: &[f64]| {
                let model = prepared.model().unwrap();
                let mut memory = vec![0.0; model.arena_len()];
                let mut inference = Inference::new(model, &mut memory).unwrap();
                let estimate = inference.infer(sample).unwrap();
                (estimate.evidence, estimate.activity.to_vec(), estimate.mean.to_vec())
            }
        });
        for _ in 0..100 {
            let x: Vec<f64> =
                (0..latents).map(|_| if rng.uniform::<f64>() < 0.25 { rng.normal() } else { 0.0 }).collect();
            let clean = parameters.dictionary.chunks_exact(latents);
            let clean = clean.map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>());
            let sample: Vec<f64> = clean.map(|y| y + noise.sqrt() * rng.normal::<f64>()).collect();
            let (a, b) = (walked(&sample), tabled(&sample));
            assert!((a.0 - b.0).abs() < 1e-11 * b.0.abs().max(100.0), "{} {}", a.0, b.0);
            let pairs = a.1.iter().zip(&b.1).chain(a.2.iter().zip(&b.2));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-11, "{a} {b}, noise {noise}"));
        }
    }
}
