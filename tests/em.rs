//! Steps of expectation maximisation against brute force, and what must hold for every run.

mod common;

use common::{Case, options, parameters};
use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::Options;
use spikelet_trainer::train::{Guard, Learned, Points, Update, e_step, m_step};

/// No guard acts on the golden cases.
const FREE: Guard = Guard { noise_floor: 0.0, prior_margin: 0.0, slab_floor: 0.0 };

fn update(case: &Case) -> Update {
    let lists = |word| case.lists("learned", word);
    let learned =
        Learned { dictionary: lists("W"), prior: lists("pi"), slab: lists("mu"), noise: lists("sigma") };
    Update::new(learned, FREE)
}

/// Relative to the largest entry.
fn close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * scale, "{what}: {a} instead of {b}");
    }
}

fn compare(name: &str, new: &Parameters, case: &Case) {
    let new_array = |key: &str| case.array(&format!("{key}_new"));
    close(name, &new.dictionary, &new_array("W").unwrap(), 1e-9);
    close(name, &new.prior, &new_array("pi").unwrap(), 1e-9);
    if let Some(mu) = new_array("mu") {
        close(name, &new.slab_mean, &mu, 1e-9);
        match &new.slab_cov {
            SlabCov::Full(psi) => close(name, psi, &new_array("Psi").unwrap(), 1e-9),
            _ => close(name, &new.slab_variances(), &new_array("psi2").unwrap(), 1e-9),
        }
    }
    match &new.noise {
        NoiseCov::Shared(sigma2) => close(name, &[*sigma2], &new_array("sigma2").unwrap(), 1e-9),
        NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => {
            close(name, sigma2, &new_array("sigma2").unwrap(), 1e-9)
        }
        NoiseCov::Full(sigma) => close(name, sigma, &new_array("Sigma").unwrap(), 1e-9),
    }
}

#[test]
fn one_step() {
    for name in [
        "em_gsc_001",
        "em_gsc_scalar",
        "em_gsc_diagonal",
        "em_gsc_full_noise",
        "em_gsc_full",
        "em_gsc_truncated",
    ] {
        let case = Case::load(name);
        let (old, options, data) = (parameters(&case), options(&case), case.array("Y").unwrap());
        let statistics = e_step(&old, &options, &mut Points::new(data, old.dims), 2).unwrap();
        let before = case.array("free_energy").or_else(|| case.array("loglik_before")).unwrap();
        close(name, &[statistics.free_energy], &before, 1e-9);
        let (new, warnings) = m_step(&old, &statistics, &update(&case)).unwrap();
        assert_eq!(warnings, [], "{name}");
        compare(name, &new, &case);
    }
}

#[test]
fn thirty_steps() {
    let case = Case::load("em_gsc_run");
    let (mut now, options) = (parameters(&case), options(&case));
    let mut points = Points::new(case.array("Y").unwrap(), now.dims);
    let trajectory = case.array("trajectory").unwrap();
    for expected in &trajectory[..30] {
        let statistics = e_step(&now, &options, &mut points, 1).unwrap();
        close("trajectory", &[statistics.free_energy], &[*expected], 1e-9);
        now = m_step(&now, &statistics, &update(&case)).unwrap().0;
    }
    close(
        "trajectory",
        &[e_step(&now, &options, &mut points, 1).unwrap().free_energy],
        &trajectory[30..],
        1e-9,
    );
    compare("em_gsc_run", &now, &case);
}

/// Data of a random model, more points than one chunk.
fn data(rng: &mut Rng, truth: &Parameters, points: usize) -> Vec<f64> {
    let h = truth.latents;
    let sigma: Vec<f64> = truth.noise_variances().iter().map(|v| v.sqrt()).collect();
    let mut data = Vec::new();
    for _ in 0..points {
        let x: Vec<f64> = (0..h)
            .map(|i| {
                if rng.uniform::<f64>() < truth.prior[i] {
                    truth.slab_mean[i] + rng.normal::<f64>()
                } else {
                    0.0
                }
            })
            .collect();
        for (row, sigma) in truth.dictionary.chunks_exact(h).zip(&sigma) {
            data.push(row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + sigma * rng.normal::<f64>());
        }
    }
    data
}

fn random(rng: &mut Rng, dims: usize, latents: usize, noise: NoiseCov) -> Parameters {
    Parameters {
        kind: ModelKind::Gsc,
        dims,
        latents,
        dictionary: (0..dims * latents).map(|_| rng.normal()).collect(),
        prior: vec![0.3; latents],
        slab_mean: (0..latents).map(|_| rng.normal()).collect(),
        slab_cov: SlabCov::Diagonal(vec![1.0; latents]),
        noise,
    }
}

const ALL: Learned = Learned { dictionary: true, prior: true, slab: true, noise: true };

#[test]
fn exact_em_never_lowers_the_likelihood() {
    let sigma = vec![0.3, 0.1, 0.0, 0.1, 0.4, 0.1, 0.0, 0.1, 0.2];
    let noises = [NoiseCov::Shared(0.2), NoiseCov::Diagonal(vec![0.1, 0.2, 0.3]), NoiseCov::Full(sigma)];
    let slabs = [SlabCov::Diagonal(vec![1.0; 4]), SlabCov::Full(correlated(4))];
    for (noise, slab_cov) in noises.iter().flat_map(|noise| slabs.iter().map(move |slab| (noise, slab))) {
        let mut rng = Rng::new(5);
        let data = data(&mut rng, &random(&mut Rng::new(6), 3, 4, noise.clone()), 700);
        let mut points = Points::new(data, 3);
        let mut now = Parameters { slab_cov: slab_cov.clone(), ..random(&mut rng, 3, 4, noise.clone()) };
        let options = common::exact(4);
        let mut last = f64::NEG_INFINITY;
        for iteration in 0..40 {
            let statistics = e_step(&now, &options, &mut points, 2).unwrap();
            let gain = statistics.free_energy - last;
            assert!(gain >= -1e-9 * last.abs(), "iteration {iteration}: {gain:e}");
            last = statistics.free_energy;
            now = m_step(&now, &statistics, &Update::new(ALL, FREE)).unwrap().0;
        }
    }
}

/// A covariance with all entries 0.3 except the diagonal, which is 1.
fn correlated(n: usize) -> Vec<f64> {
    (0..n * n).map(|e| if e / n == e % n { 1.0 } else { 0.3 }).collect()
}

/// With one latent on at a time, which are preselected makes no difference.
#[test]
fn a_full_slab_hears_of_latents_that_were_not_selected() {
    let mut rng = Rng::new(11);
    let truth = Parameters {
        slab_cov: SlabCov::Full(correlated(5)),
        ..random(&mut rng, 3, 5, NoiseCov::Diagonal(vec![0.1, 0.2, 0.3]))
    };
    let mut points = Points::new(data(&mut rng, &truth, 300), 3);
    let mut run = |selected| {
        let options = Options { selected, max_active: 1, ..common::exact(5) };
        e_step(&truth, &options, &mut points, 1).unwrap()
    };
    let (all, two) = (run(5), run(2));
    close("<z>", &two.slab, &all.slab, 1e-12);
    close("<z z^T>", &two.slab_second, &all.slab_second, 1e-12);
    close("<x>", &two.mean, &all.mean, 1e-12);
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut rng = Rng::new(8);
    let truth = random(&mut rng, 5, 7, NoiseCov::Shared(0.1));
    let mut points = Points::new(data(&mut rng, &truth, 9000), 5);
    let options = common::exact(7);
    let one = e_step(&truth, &options, &mut points, 1).unwrap();
    for threads in [2, 3, 16, 40] {
        assert!(one == e_step(&truth, &options, &mut points, threads).unwrap(), "{threads} threads");
    }
}

#[test]
fn what_data_cannot_support_is_guarded_and_said() {
    use spikelet_trainer::train::m_step::Warning;
    let guard = Guard { noise_floor: 1e-6, prior_margin: 1e-9, slab_floor: 1e-9 };
    let mut rng = Rng::new(9);
    // Two equal columns in both channels, no noise at all, fewer points than latents.
    let mut now = random(&mut rng, 2, 6, NoiseCov::Shared(0.1));
    let mut points = Points::new((0..4).flat_map(|i| [f64::from(i), f64::from(i)]).collect(), 2);
    let mut said = Vec::new();
    for _ in 0..60 {
        let statistics = e_step(&now, &common::exact(6), &mut points, 1).unwrap();
        let (new, warnings) = m_step(&now, &statistics, &Update::new(ALL, guard)).unwrap();
        new.check().unwrap();
        said.extend(warnings);
        now = new;
    }
    assert!(said.contains(&Warning::NoiseFloor));
    assert_eq!(now.noise, NoiseCov::Shared(1e-6));
}
