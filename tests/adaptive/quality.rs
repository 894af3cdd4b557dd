//! How good the states are that a search finds.

use crate::common::{self, Case};
use crate::convert;
use spikelet::Inference;
use spikelet::math::Real;
use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName, StatesName};

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
