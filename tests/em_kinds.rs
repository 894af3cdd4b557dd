//! Steps of expectation maximisation for latents that are on or off, against brute force.

mod common;

use common::{Case, options, parameters};
use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet_trainer::train::kinds::nmf;
use spikelet_trainer::train::settings::{Precision, PriorForm, Rule};
use spikelet_trainer::train::{Guard, Learned, Points, Statistics, Task, Update, m_step};

/// No guard acts here.
const FREE: Guard = Guard { noise_floor: 0.0, prior_margin: 0.0, slab_floor: 0.0 };

fn update(case: &Case) -> Update {
    let lists = |word| case.lists("learned", word);
    let learned = Learned { dictionary: lists("W"), prior: lists("pi"), slab: false, noise: lists("sigma") };
    Update {
        prior: PriorForm::Shared,
        truncated_at: Some(case.number("max_active")),
        rule: if case.text("rule") == "multiply" { Rule::Multiply } else { Rule::Clamp },
        ..Update::new(learned, FREE)
    }
}

fn close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-9 * scale, "{what}: {a} instead of {b}");
    }
}

/// Statistics of a case at its temperature, of the points it keeps.
fn statistics(case: &Case, threads: usize) -> Statistics {
    let (old, options) = (parameters(case), options(case));
    let mut points = Points::new(case.array("Y").unwrap(), old.dims);
    let temperature = case.optional("temperature").unwrap_or(1.0);
    let mut task = Task { temperature, ..Task::new(&old, &options) };
    let kept = case.number("points_kept");
    if kept < points.len() {
        let mut evidences = task.evidences(&mut points, threads, Precision::F64).unwrap();
        evidences.sort_by(f64::total_cmp);
        task.least_evidence = evidences[points.len() - kept];
    }
    let statistics = task.run(&mut points, threads, Precision::F64).unwrap().0;
    assert_eq!(statistics.points, kept);
    statistics
}

#[test]
fn one_step() {
    let names = ["em_bsc_exact", "em_bsc_truncated", "em_nmf_clamped", "em_mca", "em_mca_cold"];
    for name in names {
        let case = Case::load(name);
        let sums = statistics(&case, 2);
        let evidence = case.array("evidence_tempered").or_else(|| case.array("evidence")).unwrap();
        close(name, &[sums.free_energy], &[evidence.iter().sum()]);
        let (new, warnings) = m_step(&parameters(&case), &sums, &update(&case)).unwrap();
        assert_eq!(warnings, [], "{name}");
        // The vectors keep negative means, which a dictionary of maximal causes cannot have.
        let least = if new.kind == ModelKind::Mca { 0.0 } else { f64::NEG_INFINITY };
        let expected: Vec<f64> = case.array("W_new").unwrap().iter().map(|w| w.max(least)).collect();
        close(name, &new.dictionary, &expected);
        if let Some(prior) = case.array("pi_new") {
            close(name, &new.prior, &prior);
            close(name, &new.noise_variances()[..1], &case.array("sigma2_new").unwrap());
        }
    }
}

#[test]
fn one_multiplication_and_twenty() {
    let case = Case::load("em_nmf_multiplicative");
    let (old, sums) = (parameters(&case), statistics(&case, 1));
    let once = nmf::multiplied(&old.dictionary, &sums, &[false; 6]);
    close("one step", &once, &case.array("W_new").unwrap());
    let (new, _) = m_step(&old, &sums, &update(&case)).unwrap();
    close("twenty steps", &new.dictionary, &case.array("W_new_20").unwrap());
}

/// Points of a random model and other random parameters of its kind to start from.
fn scene(kind: ModelKind, seed: u64) -> (Points, Parameters) {
    let (d, h, mut rng) = (5, 4, Rng::new(seed));
    let mut random = || {
        let sign = |w: f64| if kind == ModelKind::Bsc { w } else { w.abs() };
        let dictionary: Vec<f64> = (0..d * h).map(|_| sign(2.0 * rng.normal::<f64>())).collect();
        Parameters::binary(kind, dictionary, d, vec![0.3; h], NoiseCov::Shared(0.3))
    };
    let (truth, start) = (random(), random());
    let mut data = Vec::new();
    for _ in 0..700 {
        let on: Vec<bool> = (0..h).map(|_| rng.uniform::<f64>() < 0.3).collect();
        for row in truth.dictionary.chunks_exact(h) {
            let seen = row.iter().zip(&on).filter(|(_, on)| **on).map(|(w, _)| *w);
            let clean = if kind == ModelKind::Mca { seen.fold(0.0, f64::max) } else { seen.sum() };
            data.push(clean + 0.5 * rng.normal::<f64>());
        }
    }
    (Points::new(data, d), start)
}

/// The log-likelihoods of 40 iterations from `now` on.
fn likelihoods(points: &mut Points, mut now: Parameters, update: &Update) -> Vec<f64> {
    let options = common::exact(now.latents);
    let mut iterate = || {
        let task = Task::new(&now, &options);
        let sums = task.run(points, 2, Precision::F64).unwrap().0;
        now = m_step(&now, &sums, update).unwrap().0;
        sums.free_energy
    };
    (0..40).map(|_| iterate()).collect()
}

#[test]
fn exact_em_never_lowers_the_likelihood() {
    let learned = Learned { dictionary: true, prior: true, slab: false, noise: true };
    for prior in [PriorForm::Shared, PriorForm::Each] {
        let update =
            Update { prior, truncated_at: Some(4), rule: Rule::Multiply, ..Update::new(learned, FREE) };
        // Clamping is no maximum, and the shares of maximal causes are those of a soft one, so neither need rise.
        for kind in [ModelKind::Bsc, ModelKind::Nmf] {
            let (mut points, start) = scene(kind, 7);
            let found = likelihoods(&mut points, start, &update);
            for pair in found.windows(2) {
                assert!(pair[1] - pair[0] >= -1e-9 * pair[0].abs(), "{kind:?}: {pair:?}");
            }
            assert!(found[39] > found[0]);
        }
    }
}

#[test]
fn truncation_is_corrected_for_in_the_prior() {
    // 2000 points of 8 latents with pi = 0.3; those with more than 2 on are left out. pi is found all the same.
    let (h, pi, most) = (8, 0.3, 2);
    let mut rng = Rng::new(3);
    let dictionary: Vec<f64> = (0..h * h).map(|e| if e / h == e % h { 10.0 } else { 0.0 }).collect();
    let mut data = Vec::new();
    while data.len() < 2000 * h {
        let on: Vec<f64> = (0..h).map(|_| if rng.uniform::<f64>() < pi { 10.0 } else { 0.0 }).collect();
        if on.iter().filter(|on| **on > 0.0).count() <= most {
            data.extend(on.iter().map(|on| on + 0.1 * rng.normal::<f64>()));
        }
    }
    let mut points = Points::new(data, h);
    let mut options = common::exact(h);
    options.max_active = most;
    for prior in [PriorForm::Shared, PriorForm::Each] {
        let learned = Learned { dictionary: false, prior: true, slab: false, noise: false };
        let update = Update { prior, truncated_at: Some(most), ..Update::new(learned, FREE) };
        let mut now =
            Parameters::binary(ModelKind::Bsc, dictionary.clone(), h, vec![0.1; h], NoiseCov::Shared(0.01));
        for _ in 0..200 {
            let sums = Task::new(&now, &options).run(&mut points, 2, Precision::F64).unwrap().0;
            now = m_step(&now, &sums, &update).unwrap().0;
        }
        let mean = now.prior.iter().sum::<f64>() / h as f64;
        // p(s_h = 1 given |s| <= 2) is 0.19; its standard error over 16 000 bits, 0.003, grows by d pi / d p = 4 at 0.3.
        assert!((mean - pi).abs() < 0.04, "{prior:?}: {mean}");
    }
}
