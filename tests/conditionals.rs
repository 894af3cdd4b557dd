//! The exact conditionals that Gibbs sampling draws from, against vectors computed by integration from the definitions.

mod common;

use common::{Case, exact, parameters};
use spikelet::math::Real;
use spikelet::{Detail, Engine, Gibbs, Inference, gibbs_arena_len};
use spikelet_trainer::prepare::{Options, Prepared, SelectionName};

/// One problem of a case: what was found.
struct Found {
    log_odds: f64,
    mean: f64,
    variance: f64,
    below: Vec<f64>,
}

/// The conditionals of all problems of a case; the latent's own entry of X is replaced and must not matter.
fn conditionals<T: Real>(case: &Case, temperature: f64) -> Vec<Found> {
    let parameters = parameters(case);
    let options = Options { selection: SelectionName::of_kind(parameters.kind), ..exact(parameters.latents) };
    let prepared = Prepared::<T>::tempered(&parameters, &options, temperature).unwrap();
    let model = prepared.model().unwrap();
    let mut memory = vec![T::ZERO; gibbs_arena_len(model.shape, Detail::Marginals)];
    let engine = Engine::Gibbs(Gibbs::new(model.shape.kind, 1));
    let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
    let (d, h, n) = (parameters.dims, parameters.latents, case.number("points"));
    let [data, states] = ["Y", "X"].map(|name| case.array(name).unwrap());
    let grid = case.array("grid").unwrap_or_else(|| vec![0.0; n]);
    let points = grid.len() / n;
    let round = |values: &[f64]| -> Vec<T> { values.iter().map(|&v| T::from_f64(v)).collect() };
    let problem = |(i, &latent): (usize, &i64)| {
        let mut x = round(&states[i * h..][..h]);
        let mut below = vec![T::ZERO; points];
        let (y, grid) = (round(&data[i * d..][..d]), round(&grid[i * points..][..points]));
        let [first, found] = [T::from_f64(-7.5), T::ZERO].map(|own| {
            x[latent as usize] = own;
            inference.conditional(&y, &x, latent as u16, &grid, &mut below).unwrap()
        });
        assert!(first.log_odds == found.log_odds && first.mean == found.mean);
        let below = below.iter().map(|p| p.to_f64()).collect();
        let [log_odds, mean, variance] = [found.log_odds, found.mean, found.variance].map(T::to_f64);
        Found { log_odds, mean, variance, below }
    };
    case.integers("coordinate").iter().enumerate().map(problem).collect()
}

/// Largest distance of the found numbers from the golden ones, each of the golden one or of `least`.
fn worst(found: impl Iterator<Item = f64>, golden: &[f64], least: f64) -> f64 {
    found.zip(golden).fold(0.0, |worst, (a, b)| worst.max((a - b).abs() / b.abs().max(least)))
}

fn linear<T: Real>(name: &str, tolerance: f64) {
    let case = Case::load(name);
    let golden = |name: &str| case.array(name).unwrap();
    if name == "gibbs_bsc" {
        for (temperature, expected) in [(1.0, "log_odds"), (1.0 / case.real("beta"), "log_odds_tempered")] {
            let found = conditionals::<T>(&case, temperature);
            let miss = worst(found.iter().map(|f| f.log_odds), &golden(expected), 1.0);
            assert!(miss < tolerance, "{name}: {expected} off by {miss:e}");
        }
        return;
    }
    let found = conditionals::<T>(&case, 1.0);
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let odds = worst(found.iter().map(|f| f.log_odds), &golden("log_odds"), 1.0);
    let tau = worst(found.iter().map(|f| f.mean), &golden("tau"), largest(&golden("tau")));
    let variance = worst(found.iter().map(|f| f.variance), &golden("variance"), 0.0);
    println!("{name} {}: {odds:e} {tau:e} {variance:e}", core::any::type_name::<T>());
    assert!(
        odds < tolerance && tau < tolerance && variance < tolerance,
        "{name}: {odds:e} {tau:e} {variance:e}"
    );
}

#[test]
fn latents_that_add_up() {
    for name in ["gibbs_bsc", "gibbs_gsc_scalar", "gibbs_gsc_diagonal", "gibbs_gsc_full"] {
        linear::<f64>(name, 1e-9);
        linear::<f32>(name, 1e-4);
    }
}

/// Log odds relative to themselves (or absolute below 1), probabilities absolute, mean and variance (spike included) in terms
/// of the conditional's own standard deviation, which is what a draw can tell.
fn maximal<T: Real>(name: &str, tolerance: f64) {
    let case = Case::load(name);
    let golden = |name: &str| case.array(name).unwrap();
    let found = conditionals::<T>(&case, 1.0);
    let odds = worst(found.iter().map(|f| f.log_odds), &golden("log_odds"), 1.0);
    let on = |f: &Found| 1.0 / (1.0 + (-f.log_odds).exp());
    let atom = worst(found.iter().map(|f| 1.0 - on(f)), &golden("atom"), 1.0);
    let below = worst(found.iter().flat_map(|f| f.below.iter().copied()), &golden("cdf"), 1.0);
    let (means, variances) = (golden("conditional_mean"), golden("conditional_variance"));
    let (mut mean, mut variance) = (0.0f64, 0.0f64);
    for ((f, m), v) in found.iter().zip(means).zip(variances) {
        let (p, scale) = (on(f), v.sqrt().max(f.variance.sqrt() * on(f)).max(1e-300));
        mean = mean.max((p * f.mean - m).abs() / scale);
        let own = p * f.variance + p * (1.0 - p) * f.mean * f.mean;
        variance = variance.max((own - v).abs() / v.max(1e-300));
    }
    println!("{name} {}: {odds:e} {atom:e} {below:e} {mean:e} {variance:e}", core::any::type_name::<T>());
    for (what, miss) in
        [("odds", odds), ("atom", atom), ("cdf", below), ("mean", mean), ("variance", variance)]
    {
        assert!(miss < tolerance, "{name}: {what} off by {miss:e}");
    }
}

#[test]
fn latents_of_which_the_strongest_counts() {
    for name in ["ssmca_basic", "ssmca_negative", "ssmca_zeros", "ssmca_hard"] {
        maximal::<f64>(name, 1e-9);
    }
    for name in ["ssmca_basic", "ssmca_negative", "ssmca_zeros"] {
        maximal::<f32>(name, 1e-4);
    }
    maximal::<f32>("ssmca_hard", 1e-2);
}
