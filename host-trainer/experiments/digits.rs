//! Handwritten digits explained by parts that add up (paper 002, section 4.1.2): NMF with latents that are on or off,
//! against classical NMF.
//!
//! The paper takes N = 1000 images of MNIST, 28 x 28 pixels, H = 12, H' = 10, gamma = 5, pi = 0.3 and sigma = 0.73, both
//! given, 120 iterations with a falling temperature. The error of the mean reconstruction, 1 / (N D) sum |y - W <s>|^2, is
//! less than 5 % above that of standard NMF with as many parts. It does not say what range pixels have, nor how long its
//! NMF ran.
//!
//! Here pixels are in [0, 1] and images are drawn from those of the array, another part of MNIST. The baseline is the
//! multiplicative updates of Lee and Seung for the squared error, 500 iterations, the better of two starts. Its
//! coefficients are real numbers. Those of the model are 0 or 1, but a mean over states can be anything between;
//! the more noise the model is given, the more of that. So there is also another sigma, a learned one, and the error of
//! the most probable state, where nothing is between 0 and 1. `multiply` is the other rule of the paper for W >= 0. By
//! default points that may need more than gamma parts are left out in the end, as in the paper; `all points count` does not,
//! nor does `all states`.
//!
//! The second table says what parts that are on or off can do at all where an image is one state: of every image the best of all
//! 4096 states, and parts that fit these best, in turn until nothing is gained. They begin with the parts of NMF, times a
//! percentile of their coefficients, or with images.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example digits -- [--quick] PATH
//! ```
//!
//! PATH is an array (.npy) with one image per row, 0 to 255.

mod common;

use common::Arguments;
use common::reconstruct::explained;
use common::switches;
use common::table::{Table, mean_and_spread};
use faer::Mat;
use spikelet::rng::Rng;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, Fixed, Rule};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Result, data};
use std::process::ExitCode;

const LATENTS: usize = 12;
const POINTS: usize = 1000;
const PRIOR: f64 = 0.3;
/// Of the baseline.
const STEPS: usize = 500;
/// Of coefficients, which scale parts that are on or off.
const PERCENTILES: [usize; 5] = [60, 70, 80, 90, 100];
/// Starts from images.
const IMAGES: usize = 15;

fn main() -> ExitCode {
    common::main(experiment)
}

/// What is tried.
fn methods(iterations: usize) -> Vec<(String, Settings)> {
    let learned = Settings {
        selected: 10,
        max_active: 5,
        engine: Engine::Truncated,
        iterations,
        first_prior: Some(PRIOR),
        ..Settings::new(ModelKind::Nmf, LATENTS)
    };
    let given = |sigma: f64| Settings {
        first_noise: Some(sigma * sigma),
        fixed: vec![Fixed::Pi, Fixed::Sigma2],
        ..learned.clone()
    };
    let exact = |settings: Settings| Settings {
        selected: LATENTS,
        max_active: LATENTS,
        engine: Engine::Exact,
        ..settings
    };
    let mut methods = Vec::new();
    for sigma in [0.73, 1.0] {
        methods.push((format!("sigma {sigma}"), given(sigma)));
    }
    let mut more = |name: &str, settings| methods.push((name.to_owned(), settings));
    let paper = given(0.73);
    more("0.73, T from 13", Settings { temperature: (13.0, 1.0), ..paper.clone() });
    more("0.73, multiply", Settings { rule: Rule::Multiply, ..paper.clone() });
    more("0.73, all points count", Settings { cut: false, ..paper.clone() });
    more("0.73, all states", exact(paper.clone()));
    more("0.73, all states, multiply", exact(Settings { rule: Rule::Multiply, ..paper.clone() }));
    more("0.73, all points, H = 24", Settings { latents: 24, cut: false, ..paper });
    more("all learned", learned.clone());
    more("all learned, multiply", Settings { rule: Rule::Multiply, ..learned });
    methods
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (points, iterations, starts) = if arguments.quick { (300, 30, 1) } else { (POINTS, 120, 2) };
    let images =
        data::Points::read(arguments.path("name the array (.npy) that holds the images, one per row")?)?;
    let (values, dims) = (draw(&images, points), images.dims);
    let square = values.iter().map(|y| y * y).sum::<f64>() / values.len() as f64;
    let found = arguments.trials(starts, |start| Ok(factorised(&values, dims, start)))?;
    let errors: Vec<f64> = found.iter().map(|found| found.0).collect();
    let classical = errors.iter().fold(f64::INFINITY, |best, &e| best.min(e));
    println!(
        "N = {points}, D = {dims}, H = {LATENTS}, {starts} starts, {iterations} iterations; the data's mean square is {square:.4}\n\
         classical NMF: error {classical:.5}, worst of {starts} starts {:.5}\n",
        errors.iter().fold(0.0, |worst: f64, &e| worst.max(e))
    );
    let names = [
        "method                         ",
        "error, mean",
        "best",
        "above NMF, mean",
        "best",
        "of one state",
        "on",
        "pi",
        "sigma",
    ];
    let table = Table::new(&names);
    for (name, settings) in methods(iterations) {
        let runs = arguments.trials(starts, |start| run(&settings, &values, dims, start))?;
        let mean = |k: usize| mean_and_spread(&runs.iter().map(|run| run[k]).collect::<Vec<f64>>()).0;
        let best = runs.iter().fold(f64::INFINITY, |best, run| best.min(run[0]));
        let above = |error: f64| format!("{:+.1} %", 100.0 * (error / classical - 1.0));
        table.row(&[
            name,
            format!("{:.5}", mean(0)),
            format!("{best:.5}"),
            above(mean(0)),
            above(best),
            above(mean(1)),
            format!("{:.2}", mean(2)),
            format!("{:.2}", mean(3)),
            format!("{:.3}", mean(4)),
        ]);
    }
    println!("\nThe best states by exhaustive search\n");
    let table = Table::new(&["first parts                     ", "above NMF", "improved in turn"]);
    let images = if arguments.quick { 1 } else { IMAGES };
    let (_, codes, parts) = found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("a start");
    let mut begin: Vec<(String, Vec<f64>)> = Vec::new();
    for percentile in PERCENTILES {
        begin.push((format!("of NMF, times percentile {percentile}"), scaled(&codes, &parts, percentile)));
    }
    begin.extend((0..images).map(|start| (format!("images, draw {start}"), some(&values, dims, start))));
    let results =
        arguments.trials(begin.len(), |at| Ok(switches::errors(&values, dims, begin[at].1.clone())))?;
    for ((name, _), (first, last)) in begin.into_iter().zip(results) {
        let above = |error: f64| format!("{:+.1} %", 100.0 * (error / classical - 1.0));
        table.row(&[name, above(first), above(last)]);
    }
    Ok(())
}

/// Parts of NMF, each times this percentile of its coefficients. (H x D)
fn scaled(codes: &Mat<f64>, parts: &Mat<f64>, percentile: usize) -> Vec<f64> {
    let strength = |part: usize| {
        let mut seen: Vec<f64> = (0..codes.nrows()).map(|i| codes[(i, part)]).collect();
        seen.sort_by(f64::total_cmp);
        seen[(seen.len() - 1) * percentile / 100]
    };
    (0..LATENTS).flat_map(|part| (0..parts.ncols()).map(move |d| strength(part) * parts[(part, d)])).collect()
}

/// Some images, less bright, as first parts.
fn some(values: &[f64], dims: usize, start: usize) -> Vec<f64> {
    let mut rng = Rng::new(common::seed(43, start));
    let images = values.len() / dims;
    let mut one = || (rng.uniform::<f64>() * images as f64) as usize % images;
    (0..LATENTS).flat_map(|_| values[one() * dims..][..dims].iter().map(|y| 0.7 * y)).collect()
}

/// Different images in random order, in [0, 1].
fn draw(images: &data::Points, count: usize) -> Vec<f64> {
    let mut rng = Rng::new(common::seed(40, 0));
    let mut order: Vec<usize> = (0..images.points).collect();
    let mut values = Vec::new();
    for at in 0..count.min(images.points) {
        let other = at + (rng.uniform::<f64>() * (images.points - at) as f64) as usize;
        order.swap(at, other.min(images.points - 1));
        values.extend(images.point(order[at]).iter().map(|y| y / 255.0));
    }
    values
}

/// Error of the mean, error of one state, latents on, pi, sigma.
fn run(settings: &Settings, values: &[f64], dims: usize, start: usize) -> Result<[f64; 5]> {
    let settings = Settings { seed: common::seed(41, start), ..settings.clone() };
    let options = settings.options();
    let mut points = Points::new(values.to_vec(), dims);
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    let model = state.model();
    let found = explained(&model, &options, values)?;
    Ok([found.error, found.map_error, found.on, model.prior[0], model.noise_variances()[0].sqrt()])
}

/// The error that the multiplicative updates of Lee and Seung come to, their coefficients and parts.
fn factorised(values: &[f64], dims: usize, start: usize) -> (f64, Mat<f64>, Mat<f64>) {
    let mut rng = Rng::new(common::seed(42, start));
    let n = values.len() / dims;
    let data = Mat::from_fn(n, dims, |i, j| values[i * dims + j]);
    let mut codes = Mat::from_fn(n, LATENTS, |_, _| 0.1 + rng.uniform::<f64>());
    let mut parts = Mat::from_fn(LATENTS, dims, |_, _| 0.1 + rng.uniform::<f64>());
    let improve = |old: &mut Mat<f64>, ought: Mat<f64>, is: Mat<f64>| {
        for j in 0..old.ncols() {
            for i in 0..old.nrows() {
                old[(i, j)] *= ought[(i, j)] / is[(i, j)].max(1e-12);
            }
        }
    };
    for _ in 0..STEPS {
        let (ought, is) = (&data * parts.transpose(), &codes * (&parts * parts.transpose()));
        improve(&mut codes, ought, is);
        let (ought, is) = (codes.transpose() * &data, (codes.transpose() * &codes) * &parts);
        improve(&mut parts, ought, is);
    }
    let rest = &data - &codes * &parts;
    (rest.squared_norm_l2() / values.len() as f64, codes, parts)
}
