//! Gaussian process regression of posterior probabilities: golden vectors, definitions, slopes by finite differences.

mod common;

use common::Case;
use spikelet::rng::Rng;
use spikelet_trainer::gp::fit::likelihood;
use spikelet_trainer::gp::{Factor, Kernel, KernelName, fit};

fn kernel(case: &Case) -> Kernel {
    let value = |name: &str| case.nested("hyperparameters", name).unwrap_or(0.0);
    Kernel {
        linear: value("linear_variance"),
        radial: value("rbf_variance"),
        length: case.nested("hyperparameters", "rbf_lengthscale").unwrap_or(1.0),
        bias: value("bias_variance"),
        white: value("white_variance"),
        parts: 1,
    }
}

/// Absolute; affinities are about 1. With a smallest eigenvalue of K of 0.05 and a largest below 1000 rounding is amplified
/// by 2e4.
fn close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{what} is off by {worst:e}");
}

#[test]
fn golden_affinities() {
    for name in ["gp_linear", "gp_rbf", "gp_sum"] {
        let case = Case::load(name);
        let (dims, latents) = (case.number("dims"), case.number("latents"));
        let [points, targets, new, affinity, affinity_new] =
            ["Y", "activity", "Y_new", "affinity", "affinity_new"].map(|name| case.array(name).unwrap());
        let factor = Factor::new(kernel(&case), &points, dims, case.number("points")).unwrap();
        // A linear kernel has no more than D directions.
        assert!(name != "gp_linear" || factor.rank() == dims, "{}", factor.rank());
        close(name, &factor.affinities(&targets, latents), &affinity, 1e-10);
        let weights = factor.weights(&targets, latents);
        close(name, &factor.predictions(&points, &weights, &new, dims), &affinity_new, 1e-10);
    }
}

/// Points, and targets that depend on them.
fn data(
    seed: u64,
    points: usize,
    dims: usize,
    target: impl Fn(&[f64], usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let values: Vec<f64> = (0..points * dims).map(|_| rng.normal()).collect();
    let targets = values
        .chunks_exact(dims)
        .flat_map(|y| [0, 1, 2].map(|h| target(y, h)))
        .map(|target| target + 0.05 * rng.normal::<f64>())
        .collect();
    (values, targets)
}

#[test]
fn leaving_a_point_out_is_predicting_it_from_the_others() {
    let (points, targets) = data(1, 30, 4, |y, h| (y[h] + 0.3 * y[3]).tanh());
    let kernel = Kernel { linear: 0.1, radial: 0.7, length: 1.5, bias: 0.2, white: 0.01, parts: 1 };
    let all = Factor::new(kernel, &points, 4, 30).unwrap().affinities(&targets, 3);
    for out in [0, 13, 29] {
        let without = |values: &[f64], width: usize| {
            let others = values.chunks_exact(width).enumerate().filter(|(n, _)| *n != out);
            others.flat_map(|(_, row)| row.to_vec()).collect::<Vec<f64>>()
        };
        let (others, known) = (without(&points, 4), without(&targets, 3));
        let factor = Factor::new(kernel, &others, 4, 29).unwrap();
        let weights = factor.weights(&known, 3);
        let predicted = factor.predictions(&others, &weights, &points[out * 4..][..4], 4);
        close("affinity", &all[out * 3..][..3], &predicted, 1e-10);
    }
}

#[test]
fn few_pivots_do_nearly_as_well() {
    let (points, targets) = data(2, 400, 3, |y, h| f64::from(y[h] > 0.5));
    let kernel = Kernel { linear: 0.0, radial: 0.5, length: 1.5, bias: 0.0, white: 0.05, parts: 1 };
    let full = Factor::new(kernel, &points, 3, 400).unwrap().affinities(&targets, 3);
    let mut before = f64::INFINITY;
    for rank in [20, 60, 180] {
        let factor = Factor::new(kernel, &points, 3, rank).unwrap();
        assert_eq!(factor.rank(), rank);
        let found = factor.affinities(&targets, 3);
        let off = found.iter().zip(&full).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        assert!(off < before, "{rank}: {off} after {before}");
        before = off;
    }
    // Root mean square of the last, of targets that are 0 or 1.
    assert!(before / (1200.0f64).sqrt() < 0.01, "{before}");
}

#[test]
fn slopes_are_those_of_the_likelihood() {
    let (points, targets) = data(3, 25, 3, |y, h| (y[h] * y[0]).sin());
    let kernel = Kernel { linear: 0.3, radial: 0.6, length: 1.2, bias: 0.4, white: 0.05, parts: 1 };
    let (_, gradient) = likelihood(&kernel, &points, 3, &targets, 3).unwrap();
    let shifted = |part: usize, factor: f64| {
        let mut k = kernel;
        *[&mut k.linear, &mut k.radial, &mut k.length, &mut k.bias, &mut k.white][part] *= factor;
        likelihood(&k, &points, 3, &targets, 3).unwrap().0
    };
    for (part, slope) in gradient.into_iter().enumerate() {
        let step: f64 = 1e-5;
        let numeric = (shifted(part, step.exp()) - shifted(part, (-step).exp())) / (2.0 * step);
        // The third derivative times step^2 and rounding (1e-13 of a value of about 100) over step: both below 1e-5.
        assert!((slope - numeric).abs() < 1e-5 * (1.0 + slope.abs()), "part {part}: {slope} {numeric}");
    }
}

#[test]
fn fits_rise_and_drop_the_parts_that_do_not_help() {
    let (points, targets) = data(4, 300, 5, |y, h| 0.3 * y[h] + 0.1 * y[4]);
    let first = Kernel::new(KernelName::Sum, &points, 5, 0.1);
    let value = |kernel: &Kernel| likelihood(kernel, &points, 5, &targets, 3).unwrap().0;
    let (mut kernel, mut before) = (first, value(&first));
    for _ in 0..4 {
        kernel = fit(kernel, &first, &points, 5, &targets, 3);
        // The fit looks at 160 of the 300 points.
        assert!(value(&kernel) > before - 10.0);
        before = value(&kernel);
    }
    // A linear function of the data: neither the radial part nor the bias is of use, and what is left is the noise.
    // Its coefficients have a mean square of (0.3^2 + 0.1^2) / 5.
    assert!((0.5..2.0).contains(&(kernel.linear / 0.02)), "{kernel:?}");
    assert!(kernel.radial < 1e-3 && kernel.bias < 1e-3, "{kernel:?}");
    assert!((0.5..2.0).contains(&(kernel.white / 0.0025)), "{kernel:?}");
    let linear = Kernel::new(KernelName::Linear, &points, 5, 0.1);
    assert_eq!((linear.radial, linear.bias), (0.0, 0.0));
    let fitted = fit(linear, &linear, &points, 5, &targets, 3);
    assert_eq!((fitted.radial, fitted.bias), (0.0, 0.0));
}
