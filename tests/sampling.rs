//! Gibbs sampling against posteriors known otherwise: enumeration of all states, or integration on a grid.
//!
//! A problem is sampled [`RUNS`] times with different random numbers. The mean of the runs' estimates must lie within
//! [`ERRORS`] of its standard errors, which the runs themselves tell. Of normal estimates a t of 39 degrees of freedom exceeds
//! 6 once in two million: with the 7400 comparisons below, a right sampler would fail for one seed in 270, and the
//! seeds are fixed. `wrong_conditionals_are_noticed` shows that the tests can fail.
//!
//! **What errors do not tell.** Averages of conditionals are given [`ROUNDING`] for `f32` and for what is left of a chain's start.
//! Averages of draws lack states that no draw shows, and have no spread from them. Of N draws, N / tau count as independent, with tau
//! as the runs show it; then such states have a probability of at most [`UNSEEN`] tau / N, but once in ten million problems, and a
//! second moment may lack that times what latents are worth where they are on. With 40 runs of 10 000 sweeps it is 4e-5 tau for
//! latents that are on or off.

mod common;

use common::sampling::{ENUMERABLE, RUNS, Sampled, enumerated, model, numbers, options, sample, sampled};
use spikelet::math::Real;
use spikelet::{Detail, Gibbs, Inference, Start};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{Options, Prepared};

const ERRORS: f64 = 6.0;
const ROUNDING: f64 = 1e-4;
/// exp(-16) is one in ten million.
const UNSEEN: f64 = 16.0;

/// Mean and variance of number `i` over runs.
fn spread(found: &Sampled, i: usize) -> (f64, f64) {
    let n = found.runs.len() as f64;
    let mean = found.runs.iter().map(|run| run[i]).sum::<f64>() / n;
    (mean, found.runs.iter().map(|run| (run[i] - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// tau: how many draws are worth one that is independent of all others. Told by how much more activities vary than those of
/// independent draws would, the worst of those that are neither rare nor certain.
fn correlation(found: &Sampled, exact: &[f64]) -> f64 {
    let each = |i: usize| spread(found, i).1 * found.draws / (exact[i] * (1.0 - exact[i])).max(0.01);
    (0..found.latents).map(each).fold(1.0, f64::max)
}

/// The largest distance of the runs' mean from `exact`, in standard errors, beyond what they do not tell.
fn distance(found: &Sampled, exact: &[f64], detail: Detail) -> f64 {
    let h = found.latents;
    let unseen = UNSEEN * correlation(found, exact) / (found.draws * RUNS as f64);
    // Root mean square where it is on.
    let strength = |k: usize| ((exact[2 * h + k] + exact[h + k].powi(2)) / exact[k]).sqrt();
    // activity, mean, variance, second moments
    let scale = |i: usize| match i / h {
        0 => 1.0,
        1 => strength(i % h),
        2 => strength(i % h).powi(2),
        row => strength(row - 3) * strength(i % h),
    };
    let allowed = |i: usize| if detail == Detail::Marginals { ROUNDING } else { unseen * scale(i) };
    let each = |i: usize| {
        let (mean, square) = spread(found, i);
        ((mean - exact[i]).abs() - allowed(i)).max(0.0) / ((square / RUNS as f64).sqrt() + 1e-12)
    };
    (0..exact.len()).map(each).fold(0.0, f64::max)
}

/// Samples all latents and compares with enumeration.
fn compare<T: Real>(parameters: &Parameters, y: &[f64], settings: Gibbs, detail: Detail, what: &str) {
    let chosen = options(parameters.kind, parameters.latents);
    let prepared = Prepared::<T>::new(parameters, &chosen).unwrap();
    let found = sampled(prepared.model().unwrap(), settings, y, detail);
    let distance = distance(&found, &enumerated(parameters, y, detail), detail);
    assert!(distance < ERRORS, "{:?} {settings:?} {what}: {distance} standard errors", parameters.kind);
}

fn check<T: Real>(kind: ModelKind, start: Start, chains: u32) {
    for seed in 0..12 {
        let (parameters, y) = (model(kind, 5, 6, seed), sample(5, seed));
        let settings = Gibbs { start, chains, seed, ..Gibbs::new(kind.kind(), 400) };
        compare::<T>(&parameters, &y, settings, Detail::Marginals, "marginals");
    }
}

#[test]
fn marginals_are_those_of_enumeration() {
    for kind in ENUMERABLE {
        check::<f64>(kind, Start::Greedy, 1);
        check::<f32>(kind, Start::Greedy, 2);
        check::<f64>(kind, Start::Best, 1);
    }
}

#[test]
fn second_moments_are_those_of_enumeration() {
    for (seed, kind) in (0..5).flat_map(|seed| ENUMERABLE.map(|kind| (seed, kind))) {
        let (parameters, y) = (model(kind, 5, 6, seed), sample(5, seed));
        let settings = Gibbs { seed, burn_in: 100, ..Gibbs::new(kind.kind(), 10_100) };
        compare::<f64>(&parameters, &y, settings, Detail::SecondMoments, "second moments");
    }
}

#[test]
fn chains_that_start_at_random_arrive_too() {
    for kind in ENUMERABLE {
        check::<f64>(kind, Start::Random, 3);
    }
}

/// Chains from a prior that has nearly everything on, with means far from the data or data that need none of it.
#[test]
fn chains_that_start_far_away_arrive_too() {
    for (seed, kind) in (0..6).flat_map(|seed| ENUMERABLE.map(|kind| (seed, kind))) {
        let (mut parameters, mut y) = (model(kind, 5, 6, seed), sample(5, seed));
        parameters.prior = vec![0.9; 6];
        if kind == ModelKind::Gsc {
            parameters.slab_mean = vec![4.0; 6];
            parameters.slab_cov = SlabCov::Diagonal(vec![9.0; 6]);
        } else {
            y.fill(0.0);
        }
        let settings = Gibbs { start: Start::Random, seed, ..Gibbs::new(kind.kind(), 2000) };
        compare::<f64>(&parameters, &y, settings, Detail::Marginals, "far away");
    }
}

/// Latents that are hardly ever on, or nearly always, and one whose column is zero: nothing tells it from its prior.
#[test]
fn certain_and_silent_latents_are_as_enumerated() {
    for (seed, kind) in (0..6).flat_map(|seed| ENUMERABLE.map(|kind| (seed, kind))) {
        let (mut parameters, y) = (model(kind, 5, 6, seed), sample(5, seed));
        parameters.prior = vec![1e-4, 1.0 - 1e-4, 0.02, 0.98, 0.5, 0.3];
        parameters.dictionary.iter_mut().skip(5).step_by(6).for_each(|w| *w = 0.0);
        for start in [Start::Greedy, Start::Random, Start::Best] {
            let settings = Gibbs { start, seed, ..Gibbs::new(kind.kind(), 1000) };
            compare::<f64>(&parameters, &y, settings, Detail::Marginals, "certain and silent");
        }
        let silent = enumerated(&parameters, &y, Detail::Marginals)[5];
        assert!((silent - 0.3).abs() < 1e-9, "{kind:?} {seed}: {silent}");
    }
}

/// With next to no noise the posterior is one state, which two latents made, and a chain that starts there stays.
#[test]
fn without_noise_a_chain_stays_at_the_best_state() {
    for (seed, kind) in (0..12).flat_map(|seed| ENUMERABLE.map(|kind| (seed, kind))) {
        let mut parameters = model(kind, 8, 6, seed);
        parameters.noise = NoiseCov::Shared(1e-6);
        let on = [seed as usize % 6, (seed as usize + 2) % 6];
        let both = |row: &[f64]| match kind.kind().is_maximal() {
            true => row[on[0]].max(row[on[1]]),
            false => row[on[0]] + row[on[1]],
        };
        let y: Vec<f64> = parameters.dictionary.chunks_exact(6).map(both).collect();
        let settings = Gibbs { start: Start::Best, seed, ..Gibbs::new(kind.kind(), 40) };
        compare::<f64>(&parameters, &y, settings, Detail::Marginals, "no noise");
        // Of maximal causes one may hide the other.
        let activity = &enumerated(&parameters, &y, Detail::Marginals)[..6];
        let is_made = |h: usize| (activity[h] > 0.5) == on.contains(&h);
        assert!(kind == ModelKind::Mca || (0..6).all(is_made), "{kind:?} {seed}: {activity:?}");
    }
}

/// The truncated posterior: no more than two on.
#[test]
fn chains_keep_to_the_states_they_may_visit() {
    for kind in ENUMERABLE {
        let (parameters, y) = (model(kind, 5, 6, 3), sample(5, 3));
        let few = Options { max_active: 2, ..options(kind, 6) };
        let prepared = Prepared::<f64>::new(&parameters, &few).unwrap();
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let expected = numbers(&Inference::new(model, &mut memory).unwrap().infer(&y).unwrap());
        let settings = Gibbs { max_active: 2, ..Gibbs::new(kind.kind(), 2000) };
        let found = distance(&sampled(model, settings, &y, Detail::Marginals), &expected, Detail::Marginals);
        assert!(found < ERRORS, "{kind:?}: {found}");
    }
}

/// At another temperature the sampler is far from the posterior of the model.
#[test]
fn wrong_conditionals_are_noticed() {
    for kind in ENUMERABLE {
        let (parameters, y) = (model(kind, 5, 6, 1), sample(5, 1));
        let prepared = Prepared::<f64>::tempered(&parameters, &options(kind, 6), 1.25).unwrap();
        let runs = sampled(prepared.model().unwrap(), Gibbs::new(kind.kind(), 400), &y, Detail::Marginals);
        let found = distance(&runs, &enumerated(&parameters, &y, Detail::Marginals), Detail::Marginals);
        assert!(found > ERRORS, "{kind:?}: only {found}");
    }
}

/// ln N(x; mean, variance)
fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * ((x - mean).powi(2) / variance + variance.ln() + std::f64::consts::TAU.ln())
}

/// activity, mean, variance and second moments of two SSMCA latents, on a grid with the spike as one more place.
fn on_a_grid(parameters: &Parameters, y: &[f64]) -> Vec<f64> {
    const STEPS: usize = 600;
    let (low, high) = (-6.0, 9.0);
    let (variances, sigma2) = (parameters.slab_variances(), parameters.noise_variances());
    let width = (high - low) / STEPS as f64;
    // Value, ln of its prior mass, whether it is on.
    let places = |h: usize| -> Vec<(f64, f64, f64)> {
        let slab = |i: usize| {
            let x = low + (i as f64 + 0.5) * width;
            let mass = (parameters.prior[h] * width).ln();
            (x, mass + log_normal(x, parameters.slab_mean[h], variances[h]), 1.0)
        };
        let off = (0.0, (1.0 - parameters.prior[h]).ln(), 0.0);
        (0..STEPS).map(slab).chain([off]).collect()
    };
    let mut sums = [0.0f64; 10];
    for (x, px, sx) in places(0) {
        for &(z, pz, sz) in &places(1) {
            let fit = |d: usize| {
                let [v, w] = [0, 1].map(|h| parameters.dictionary[2 * d + h]);
                log_normal(y[d], (v * x).max(w * z), sigma2[d])
            };
            let p = (px + pz + (0..y.len()).map(fit).sum::<f64>()).exp();
            let terms = [1.0, sx, sz, x, z, x * x, x * z, z * x, z * z, 0.0];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += p * term);
        }
    }
    let [p, sx, sz, x, z, xx, xz, zx, zz, _] = sums;
    let mean = [x / p, z / p];
    let variance = [xx / p - mean[0] * mean[0], zz / p - mean[1] * mean[1]];
    vec![sx / p, sz / p, mean[0], mean[1], variance[0], variance[1], xx / p, xz / p, zx / p, zz / p]
}

#[test]
fn slabs_of_which_the_strongest_counts_are_as_on_a_grid() {
    for seed in 0..6 {
        let mut parameters = model(ModelKind::Ssmca, 4, 2, seed);
        parameters.prior = vec![0.3, 0.5];
        parameters.slab_mean = vec![1.0, if seed % 2 == 0 { 1.5 } else { -0.5 }];
        if seed % 3 == 0 {
            parameters.dictionary[3] = 0.0;
        }
        let y = sample(4, seed);
        let exact = on_a_grid(&parameters, &y);
        for (detail, count) in [(Detail::Marginals, 6), (Detail::SecondMoments, 10)] {
            let prepared = Prepared::<f64>::new(&parameters, &options(ModelKind::Ssmca, 2)).unwrap();
            let settings = Gibbs { seed, ..Gibbs::new(spikelet::Kind::Ssmca, 1500) };
            let runs = sampled(prepared.model().unwrap(), settings, &y, detail);
            let found = distance(&runs, &exact[..count], detail);
            assert!(found < ERRORS, "{detail:?} seed {seed}: {found}");
            let prepared = Prepared::<f32>::new(&parameters, &options(ModelKind::Ssmca, 2)).unwrap();
            let runs = sampled(prepared.model().unwrap(), settings, &y, detail);
            let found = distance(&runs, &exact[..count], detail);
            assert!(found < ERRORS, "f32 {detail:?} seed {seed}: {found}");
        }
    }
}

/// Averages of conditionals vary less than averages of what was drawn from them.
#[test]
fn averages_of_conditionals_vary_less() {
    let (parameters, y) = (model(ModelKind::Gsc, 5, 6, 2), sample(5, 2));
    let prepared = Prepared::<f64>::new(&parameters, &options(ModelKind::Gsc, 6)).unwrap();
    let varies = |detail| {
        let runs = sampled(prepared.model().unwrap(), Gibbs::new(spikelet::Kind::Gsc, 400), &y, detail);
        (0..12).map(|i| spread(&runs, i).1).sum::<f64>()
    };
    let (averaged, drawn) = (varies(Detail::Marginals), varies(Detail::SecondMoments));
    assert!(averaged < 0.7 * drawn, "{averaged} {drawn}");
}
