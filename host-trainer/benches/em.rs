//! What an iteration of expectation maximisation costs per point, by stage, on one core:
//!
//! ```sh
//! cargo bench -p spikelet-trainer
//! ```
//!
//! The figure to compare is the last column: the time of the whole iteration over that of the bare matrix product Y W of
//! the same data in the same run, which is the least an iteration can do. Times are the shortest of several
//! runs. `moments` is what the E-step takes beyond the stages before it: back-substitution, the scatter into the
//! H x H and D x H sums.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference, arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};
use spikelet_trainer::train::{Guard, Learned, Points, Update, e_step, m_step};
use std::time::Instant;

/// D, H, H', gamma.
const SETTINGS: [[usize; 4]; 3] = [[25, 10, 5, 3], [64, 64, 10, 5], [64, 256, 10, 5]];
const POINTS: usize = 5000;
const RUNS: usize = 5;

fn main() {
    println!(
        "| D, H, H', gamma | states | projection | selection | walk | moments | M-step | iteration | Y W | ratio |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for setting in SETTINGS {
        row(setting);
    }
    println!("\nmicroseconds per point, {POINTS} points, f64, one core");
}

fn row([d, h, selected, max_active]: [usize; 4]) {
    let parameters = model(d, h);
    let data = sample(&parameters, POINTS);
    let options = Options {
        selected,
        max_active,
        singletons: true,
        selection: SelectionName::Singleton,
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Stored,
    };
    let y = MatRef::from_row_major_slice(&data, POINTS, d);
    let w = MatRef::from_row_major_slice(&parameters.dictionary, d, h);
    let mut product = Mat::<f64>::zeros(POINTS, h);
    let bare = shortest(|| matmul(product.as_mut(), Accum::Replace, y, w, 1.0, Par::Seq));
    let stages = stages(&parameters, &options, &data);
    let mut points = Points::new(data.clone(), d);
    let mut statistics = None;
    let e_time = shortest(|| statistics = e_step(&parameters, &options, &mut points, 1).ok());
    let statistics = statistics.expect("the model is sound");
    let learned = Learned { dictionary: true, prior: true, slab: true, noise: true };
    let guard = Guard { noise_floor: 1e-9, prior_margin: 1e-9, slab_floor: 1e-9 };
    let m_time = shortest(|| {
        let _ = m_step(&parameters, &statistics, &Update::new(learned, guard));
    });
    let [selection, walk] = stages;
    let states =
        Prepared::<f64>::new(&parameters, &options).and_then(|p| p.model().map(|m| m.shape.states()));
    println!(
        "| {d}, {h}, {selected}, {max_active} | {} | {bare:.2} | {selection:.2} | {walk:.2} | {:.2} | {m_time:.2} | {:.2} | {bare:.2} | {:.1} |",
        states.unwrap_or(0),
        e_time - bare - selection - walk,
        e_time + m_time,
        (e_time + m_time) / bare,
    );
}

/// Microseconds per point.
fn shortest(mut work: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min) * 1e6 / POINTS as f64
}

/// Selection and walk without second moments, as a device does them.
fn stages(parameters: &Parameters, options: &Options, data: &[f64]) -> [f64; 2] {
    let prepared = Prepared::<f64>::new(parameters, options).expect("the model is sound");
    let model = prepared.model().expect("the model is sound");
    let mut memory = vec![0.0; arena_len(model.shape, Detail::Marginals)];
    let mut inference = Inference::new(model, &mut memory).expect("memory is sized for the model");
    let NoiseCov::Shared(sigma2) = parameters.noise else { unreachable!("the model of this file") };
    let h = parameters.latents;
    let mut projections = vec![0.0; data.len() / parameters.dims * h];
    let points = || data.chunks_exact(parameters.dims);
    for (y, b) in points().zip(projections.chunks_exact_mut(h)) {
        for (w, y) in parameters.dictionary.chunks_exact(h).zip(y) {
            b.iter_mut().zip(w).for_each(|(b, w)| *b += w * y / sigma2);
        }
    }
    let mut run = |walk: bool| {
        shortest(|| {
            for (y, b) in points().zip(projections.chunks_exact(h)) {
                let energy = y.iter().map(|y| y * y / sigma2).sum();
                inference.projected(y, b, energy).expect("finite points");
                inference.select();
                if walk {
                    std::hint::black_box(inference.posterior().expect("a sound posterior").evidence);
                }
            }
        })
    };
    let selection = run(false);
    [selection, run(true) - selection]
}

/// Columns of length 1 and three latents on at a time, as in a dictionary that has been learned.
fn model(d: usize, h: usize) -> Parameters {
    let mut rng = Rng::new(1);
    Parameters {
        kind: ModelKind::Gsc,
        dims: d,
        latents: h,
        dictionary: (0..d * h).map(|_| rng.normal::<f64>() / (d as f64).sqrt()).collect(),
        prior: vec![3.0 / h as f64; h],
        slab_mean: vec![0.0; h],
        slab_cov: SlabCov::Diagonal(vec![1.0; h]),
        noise: NoiseCov::Shared(0.01),
    }
}

fn sample(parameters: &Parameters, points: usize) -> Vec<f64> {
    let mut rng = Rng::new(2);
    let h = parameters.latents;
    let mut data = Vec::with_capacity(points * parameters.dims);
    for _ in 0..points {
        let draw = |rng: &mut Rng, p: f64| if rng.uniform::<f64>() < p { rng.normal() } else { 0.0 };
        let x: Vec<f64> = parameters.prior.iter().map(|&p| draw(&mut rng, p)).collect();
        for w in parameters.dictionary.chunks_exact(h) {
            let clean: f64 = w.iter().zip(&x).map(|(w, x)| w * x).sum();
            data.push(clean + 0.1 * rng.normal::<f64>());
        }
    }
    data
}
