//! What an iteration of expectation maximisation costs per point, on one core:
//!
//! ```sh
//! cargo bench -p spikelet-trainer
//! ```
//!
//! `plain` is an E-step over all points and an M-step that solves for all columns; `stepwise` a pass in batches as `spikelet train` takes
//! them, each with an M-step of its own. The last column is the cheaper of them over the bare matrix product Y W of the same data in
//! the same run, which is the least an iteration can do. Adaptive states are searched as passes do: two candidates beside the
//! reference, which alone is expanded. Times are the shortest of several runs, in CPU time of the thread where the system tells it.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::Options;
use spikelet_trainer::train::settings::{Engine, Precision, StatesForm};
use spikelet_trainer::train::{Guard, Learned, Next, Points, Settings, State, Task, Update, m_step};
use std::time::Instant;

/// D, H, H', gamma.
const SIZES: [[usize; 4]; 3] = [[25, 10, 5, 3], [64, 64, 10, 5], [64, 256, 10, 5]];
const POINTS: usize = 5000;
const RUNS: usize = 5;
const LEAST_SECONDS: f64 = 0.05;

fn main() {
    println!(
        "| D, H | states | numbers | E-step | M-step | plain | points per batch | stepwise | Y W | ratio |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for [d, h, selected, max_active] in SIZES {
        let papers = Settings { selected, max_active, engine: Engine::Truncated, ..settings(h) };
        row(d, &Settings { batch: (POINTS / 50).max(h * h / 600), ..papers.clone() });
        let max_active = h.min(Options::ACTIVE);
        for precision in [Precision::F64, Precision::F32] {
            row(
                d,
                &Settings {
                    states: StatesForm::Adaptive,
                    selected: h.min(max_active + 2),
                    max_active,
                    expansions: 1,
                    precision,
                    batch: (POINTS / 10).max(2 * h),
                    ..papers.clone()
                },
            );
        }
    }
    println!("\nmicroseconds per point, {POINTS} points, one core");
}

fn settings(h: usize) -> Settings {
    Settings { iterations: RUNS + 1, ..Settings::new(ModelKind::Gsc, h) }
}

fn row(d: usize, settings: &Settings) {
    let h = settings.latents;
    let parameters = model(d, h);
    let data = sample(&parameters, POINTS);
    let y = MatRef::from_row_major_slice(&data, POINTS, d);
    let w = MatRef::from_row_major_slice(&parameters.dictionary, d, h);
    let mut product = Mat::<f64>::zeros(POINTS, h);
    let bare = shortest(|| matmul(product.as_mut(), Accum::Replace, y, w, 1.0, Par::Seq));
    let mut points = Points::new(data.clone(), d);
    let options = settings.options();
    let task = Task::new(&parameters, &options);
    let mut statistics = None;
    let e_time = shortest(|| statistics = task.run(&mut points, 1, settings.precision).ok());
    let (statistics, _) = statistics.expect("the model is sound");
    let learned = Learned { dictionary: true, prior: true, slab: true, noise: true };
    let guard = Guard { noise_floor: 1e-9, prior_margin: 1e-9, slab_floor: 1e-9 };
    let m_time = shortest(|| {
        let _ = m_step(&parameters, &statistics, &Update::new(learned, guard));
    });
    let (plain, stepwise) = (e_time + m_time, pass(&parameters, settings, &mut points));
    let states = if settings.is_adaptive() { "adaptive" } else { "papers'" };
    println!(
        "| {d}, {h} | {states} | {} | {e_time:.2} | {m_time:.2} | {plain:.2} | {} | {stepwise:.2} | {bare:.2} | {:.1} |",
        if settings.precision == Precision::F32 { "f32" } else { "f64" },
        settings.batch,
        plain.min(stepwise) / bare,
    );
}

/// The fastest pass of stepwise EM, from a dictionary that has been learned.
fn pass(parameters: &Parameters, settings: &Settings, points: &mut Points) -> f64 {
    let state = State::from(settings.clone(), points, Some(parameters.clone()));
    let mut state = state.expect("the model is sound");
    let (mut shortest, mut before) = (f64::INFINITY, cpu_seconds());
    let finished = state.run(points, 1, |state| {
        let now = cpu_seconds();
        // The first one has what comes before all passes in it; the last ones look at all points at once.
        if (2..RUNS).contains(&state.current.history.len()) {
            shortest = f64::min(shortest, now - before);
        }
        before = now;
        Ok(if state.current.history.len() < RUNS { Next::Continue } else { Next::Stop })
    });
    finished.expect("the model is sound");
    shortest * 1e6 / POINTS as f64
}

/// Microseconds per point. The system tells CPU time in steps of a few milliseconds, so short work is repeated.
fn shortest(mut work: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let (begun, mut repeats) = (cpu_seconds(), 0.0);
        while repeats == 0.0 || cpu_seconds() - begun < LEAST_SECONDS {
            work();
            repeats += 1.0;
        }
        (cpu_seconds() - begun) / repeats
    });
    times.fold(f64::INFINITY, f64::min) * 1e6 / POINTS as f64
}

/// Of this thread, from any beginning; where the system does not tell it, time that has passed.
fn cpu_seconds() -> f64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed().as_secs_f64(), |ns| ns * 1e-9)
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
