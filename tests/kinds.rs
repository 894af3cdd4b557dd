//! Latents that are on or off, against enumeration straight from the definition; what blobs of these kinds may hold.

mod common;

use proptest::prelude::*;
use spikelet::blob::{BlobError, crc32};
use spikelet::math::Real;
use spikelet::rng::Rng;
use spikelet::{Blob, Detail, Inference, Kind, ModelError, arena_len};
use spikelet_trainer::blob;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};

/// A random model of one of the kinds, and a sample.
#[derive(Clone, Debug)]
struct Problem {
    parameters: Parameters,
    options: Options,
    sample: Vec<f64>,
}

const KINDS: [ModelKind; 3] = [ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];

/// Numbers are rounded to f32, so that both precisions have the same problem.
fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

fn problem(kind: usize, d: usize, h: usize, seed: u64, noise: u8, sigma2: f64, singletons: bool) -> Problem {
    let kind = KINDS[kind];
    let mut rng = Rng::new(seed);
    let mut normals = |n: usize| -> Vec<f64> { (0..n).map(|_| rounded(rng.normal())).collect() };
    let sign = |w: f64| if kind == ModelKind::Bsc { w } else { w.abs() };
    let dictionary: Vec<f64> = normals(d * h).into_iter().map(sign).collect();
    let prior = normals(h).iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
    let noise = match noise {
        0 => NoiseCov::Shared(sigma2),
        _ => NoiseCov::Diagonal(normals(d).iter().map(|x| sigma2 * x.exp()).collect()),
    };
    let selected = 1 + (seed % h as u64) as usize;
    let max_active = 1 + (seed / 7 % selected as u64) as usize;
    let selections = [SelectionName::of_kind(kind), SelectionName::Cosine, SelectionName::Singleton];
    let options = Options {
        selected,
        max_active,
        singletons,
        selection: selections[(seed / 11 % 3) as usize],
        states: None,
        expansions: Options::EXPANSIONS,
        gram: if seed.is_multiple_of(2) && kind != ModelKind::Mca {
            GramName::Computed
        } else {
            GramName::Auto
        },
    };
    // Of a few latents that are on, and noise.
    let on: Vec<bool> = normals(h).iter().map(|x| *x > 0.3).collect();
    let parameters = Parameters::binary(kind, dictionary, d, prior, noise);
    let state: Vec<usize> = (0..h).filter(|&i| on[i]).collect();
    let noise: Vec<f64> = parameters.noise_variances().iter().map(|v| v.sqrt()).collect();
    let sample = (0..d).map(|i| rounded(mean(&parameters, &state, i) + noise[i] * normals(1)[0])).collect();
    Problem { parameters, options, sample }
}

fn problems(log_noise: core::ops::Range<f64>) -> impl Strategy<Value = Problem> {
    (0..3usize, 1..6usize, 1..9usize, any::<u64>(), 0..2u8, log_noise, any::<bool>()).prop_map(
        |(kind, d, h, seed, noise, log_noise, singletons)| {
            problem(kind, d, h, seed, noise, 10f64.powf(log_noise), singletons)
        },
    )
}

/// The mean of dimension `d` in a state.
fn mean(parameters: &Parameters, state: &[usize], d: usize) -> f64 {
    let parts = state.iter().map(|&i| parameters.dictionary[d * parameters.latents + i]);
    if parameters.kind == ModelKind::Mca { parts.fold(0.0, f64::max) } else { parts.sum() }
}

/// All kept states, with their log joints.
fn enumerate(problem: &Problem, selected: &[u16]) -> Vec<(Vec<usize>, f64)> {
    let Problem { parameters, options, sample } = problem;
    let h = parameters.latents;
    let variances = parameters.noise_variances();
    let states = (0..1usize << h).map(|mask| (0..h).filter(|&i| mask >> i & 1 == 1).collect::<Vec<_>>());
    let inside = |state: &[usize]| state.iter().all(|&i| selected.contains(&(i as u16)));
    let kept = states.filter(|state| {
        state.len() <= options.max_active && inside(state) || options.singletons && state.len() == 1
    });
    kept.map(|state| {
        let prior = |i: usize| {
            let pi: f64 = parameters.prior[i];
            if state.contains(&i) { pi.ln() } else { (1.0 - pi).ln() }
        };
        let density = |d: usize| {
            let miss = sample[d] - mean(parameters, &state, d);
            -0.5 * (miss * miss / variances[d] + (core::f64::consts::TAU * variances[d]).ln())
        };
        let log_joint = (0..h).map(prior).sum::<f64>() + (0..sample.len()).map(density).sum::<f64>();
        (state, log_joint)
    })
    .collect()
}

/// Largest deviation from enumeration: probabilities absolute, evidence relative where it is large.
fn compare<T: Real>(problem: &Problem) -> f64 {
    let prepared = Prepared::<T>::new(&problem.parameters, &problem.options).unwrap();
    let model = prepared.model().unwrap();
    let (d, h) = (model.shape.dims, model.shape.latents);
    let mut memory = vec![T::ZERO; arena_len(model.shape, Detail::SecondMoments)];
    let mut inference = Inference::with_detail(model, &mut memory, Detail::SecondMoments).unwrap();
    let sample: Vec<T> = problem.sample.iter().map(|&y| T::from_f64(y)).collect();
    let found = inference.infer(&sample).unwrap();
    let states = enumerate(problem, found.selected);
    let largest = states.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
    let evidence = largest + states.iter().map(|s| (s.1 - largest).exp()).sum::<f64>().ln();
    let mut worst = (found.evidence.to_f64() - evidence).abs() / evidence.abs().max(1.0);

    let (mut second, mut clean) = (vec![0.0; h * h], vec![0.0; d]);
    for (state, log_joint) in &states {
        let q = (log_joint - evidence).exp();
        state.iter().for_each(|&i| state.iter().for_each(|&j| second[i * h + j] += q));
        (0..d).for_each(|d| clean[d] += q * mean(&problem.parameters, state, d));
    }
    for i in 0..h {
        let a = second[i * h + i];
        assert_eq!(found.mean[i], found.activity[i]);
        worst = worst
            .max((found.activity[i].to_f64() - a).abs())
            .max((found.variance[i].to_f64() - a * (1.0 - a)).abs());
    }
    let s = found.selected.len();
    for (p, &i) in found.selected.iter().enumerate() {
        for (q, &j) in found.selected.iter().enumerate() {
            let exact = second[usize::from(i) * h + usize::from(j)];
            worst = worst.max((found.second[p * s + q].to_f64() - exact).abs());
        }
    }
    // The best state, unless another is as good.
    let map: Vec<usize> = found.map_latents.iter().map(|&i| usize::from(i)).collect();
    assert!(found.map_values.iter().all(|&v| v == T::ONE));
    let of_map = states.iter().find(|(state, _)| *state == map).expect("a kept state").1;
    worst = worst.max((largest - of_map) / largest.abs().max(1.0));

    let mut visited = vec![];
    inference.for_each_state(|latents, probability| {
        let mut state: Vec<usize> = latents.iter().map(|&i| usize::from(i)).collect();
        state.sort_unstable();
        visited.push((state, probability.to_f64()));
    });
    assert_eq!(visited.len(), states.len());
    visited.sort_by(|a, b| a.0.cmp(&b.0));
    let mut states = states;
    states.sort_by(|a, b| a.0.cmp(&b.0));
    for ((state, probability), (expected, log_joint)) in visited.iter().zip(&states) {
        assert_eq!(state, expected);
        worst = worst.max((probability - (log_joint - evidence).exp()).abs());
    }
    let mut reconstruction = vec![T::ZERO; d];
    inference.reconstruct(&mut reconstruction).unwrap();
    let scale = clean.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (found, exact) in reconstruction.iter().zip(&clean) {
        worst = worst.max((found.to_f64() - exact).abs() / scale);
    }
    worst
}

proptest! {
    #![proptest_config(common::the_same_cases_every_time(400))]

    #[test]
    fn f64_is_enumeration(problem in problems(-3.0..1.0)) {
        let worst = compare::<f64>(&problem);
        prop_assert!(worst < 1e-9, "off by {worst:e}");
    }

    /// Log joints are sums of a few numbers of up to 256 nats (louder samples have a reference), each off by 2^-24 of it.
    #[test]
    fn f32_is_close_to_enumeration(problem in problems(-3.0..1.0)) {
        let worst = compare::<f32>(&problem);
        prop_assert!(worst < 1e-3, "off by {worst:e}");
    }

    /// 60 to 80 dB: log joints of up to 1e9 nats. Beyond that the enumeration itself has lost too many digits.
    #[test]
    fn low_noise_in_f64(problem in problems(-8.0..-6.0)) {
        let worst = compare::<f64>(&problem);
        prop_assert!(worst < 1e-6, "off by {worst:e}");
    }

    /// Whatever finite numbers come in: an answer that is a posterior, or an error.
    #[test]
    fn any_sample_gives_a_posterior_or_an_error(
        problem in problems(-6.0..1.0),
        wild in prop::collection::vec(any::<f32>(), 1..6),
    ) {
        common::posterior_or_error(&problem.parameters, &problem.options, &wild, 1e12);
    }
}

/// At low noise what is on is certain, also in f32: the evidence shows whether digits were lost.
#[test]
fn low_noise_in_f32() {
    let mut worst: f64 = 0.0;
    for seed in 0..300u64 {
        let problem = problem(seed as usize % 3, 12, 6, seed * 6 * 7 * 11 + 5, 0, 1e-8, seed % 2 == 0);
        let options = Options { selected: 6, max_active: 6, ..problem.options };
        worst = worst.max(compare::<f32>(&Problem { options, ..problem }));
    }
    // W and y are f32 numbers, so residuals are exact up to their last digit, and so is all that follows. Without a
    // reference it would be 2^-24 of an energy of 1e9.
    assert!(worst < 1e-5, "off by {worst:e}");
}

fn build(kind: ModelKind, selection: SelectionName) -> Vec<u8> {
    let dictionary = vec![1.0, 0.5, 0.0, 0.25, 0.0, 2.0];
    let mut parameters = Parameters::binary(kind, dictionary, 2, vec![0.2; 3], NoiseCov::Shared(0.1));
    if kind.kind().has_slab() {
        parameters.slab_mean = vec![1.0; 3];
    }
    let (states, gram) = (None, GramName::Auto);
    let options = Options {
        selected: 2,
        max_active: 2,
        singletons: true,
        selection,
        states,
        expansions: Options::EXPANSIONS,
        gram,
    };
    let prepared = Prepared::<f32>::new(&parameters, &options).unwrap();
    blob::write(&prepared, &SlabCov::Unit, "").unwrap()
}

/// What the reader says about these bytes, their checksum set right.
fn refused(mut bytes: Vec<u8>) -> Option<BlobError> {
    let crc = crc32(&bytes[16..]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    // A vector of bytes may start anywhere.
    let mut memory = vec![0; bytes.len() + 8];
    let start = memory.as_ptr().addr().next_multiple_of(8) - memory.as_ptr().addr();
    memory[start..start + bytes.len()].copy_from_slice(&bytes);
    Blob::parse(&memory[start..start + bytes.len()]).err()
}

#[test]
fn blobs_whose_parts_do_not_go_together_are_refused() {
    let with = |bytes: &[u8], at: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        refused(bytes)
    };
    let (bsc, mca) =
        (build(ModelKind::Bsc, SelectionName::Cosine), build(ModelKind::Mca, SelectionName::Bound));
    assert_eq!((refused(bsc.clone()), refused(mca.clone())), (None, None));
    // W >= 0 here, so the same bytes do for the other linear kind.
    assert_eq!(with(&bsc, 16, Kind::Nmf as u8), None);
    let unknown = |field, value| Some(BlobError::Unknown { field, value });
    assert_eq!(with(&bsc, 16, 9), unknown("kind", 9));
    assert_eq!(with(&bsc, 16, 6), Some(BlobError::Model(ModelError::Size { field: "max_active" })));
    assert_eq!(with(&bsc, 16, 5), unknown("slab", 3));
    assert_eq!(with(&bsc, 16, 1), unknown("slab", 3));
    assert_eq!(with(&bsc, 20, 0), unknown("slab", 0));
    assert_eq!(with(&bsc, 18, 5), unknown("selection", 5));
    assert_eq!(with(&bsc, 18, 4), Some(BlobError::MissingSection { tag: *b"SELP" }));
    let unfit = |field| Some(BlobError::Model(ModelError::Unfit { field }));
    assert_eq!(with(&bsc, 18, 3), unfit("selection"));
    assert_eq!(with(&bsc, 18, 1), Some(BlobError::MissingSection { tag: *b"SELP" }));
    assert_eq!(with(&bsc, 21, 1), Some(BlobError::MissingSection { tag: *b"STAT" }));
    assert_eq!(with(&mca, 18, 2), Some(BlobError::MissingSection { tag: *b"SELO" }));
    assert_eq!(with(&mca, 19, 2), unfit("noise"));
    // The sign of the first number of the dictionary, which follows the table of sections.
    let dictionary = 48 + 16 * usize::from(mca[40]);
    let negative = ModelError::Range { field: "dictionary", index: 0 };
    assert_eq!(with(&mca, dictionary + 3, 0xbf), Some(BlobError::Model(negative)));
    // Spike-and-slab latents of which the strongest counts: no correlations, W >= 0.
    let ssmca = build(ModelKind::Ssmca, SelectionName::Cosine);
    assert_eq!(refused(ssmca.clone()), None);
    assert_eq!(with(&ssmca, 20, 2), unknown("slab", 2));
    assert_eq!(with(&ssmca, 20, 3), unknown("slab", 3));
    assert_eq!(with(&ssmca, 18, 3), unfit("selection"));
    assert_eq!(with(&ssmca, 19, 2), unfit("noise"));
    assert_eq!(with(&ssmca, 16, Kind::Gsc as u8), unfit("selection"));
    // A blob of spike-and-slab latents says the same thing of itself.
    assert_eq!(with(spikelet::doc::TWO_SOURCES, 20, 3), unknown("slab", 3));
    assert_eq!(with(spikelet::doc::TWO_SOURCES, 18, 3), unfit("selection"));
}
