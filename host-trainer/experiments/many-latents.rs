//! How training by select and sample grows with the number of latents (003 goes up to 10 000).
//!
//! D = 256, H' = 20, 50 sweeps, diagonal noise, inference in 32 bits, one thread: an E-step and an M-step on 2000 points of
//! ten latents each. Projection and selection grow with H; what is drawn does not. The moments of all pairs of latents,
//! one packed triangle of 64-bit numbers, are the largest thing in memory.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example many-latents -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::mixtures::{add_noise, normal_matrix};
use common::table::Table;
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, InitForm, NoiseForm, Precision};
use spikelet_trainer::train::{Next, Points, Settings, State};
use std::process::ExitCode;
use std::time::Instant;

const DIMS: usize = 256;
const POINTS: usize = 2000;
const ON: usize = 10;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    println!("{POINTS} points of {DIMS} dimensions, H' = 20, 50 sweeps, one thread\n");
    let columns = ["H", "E-step (s)", "points a second", "M-step (s)", "moments (MB)", "most memory (MB)"];
    let table = Table::new(&columns);
    let sizes: &[usize] = if arguments.quick { &[500, 1000] } else { &[1000, 2000, 5000, 10_000] };
    for &latents in sizes {
        let (e_step, iteration) = times(latents)?;
        table.row(&[
            latents.to_string(),
            format!("{e_step:.2}"),
            format!("{:.0}", POINTS as f64 / e_step),
            format!("{:.2}", iteration - e_step),
            format!("{:.0}", (latents * (latents + 1) / 2 * 8) as f64 / 1e6),
            // Only grows: the largest H comes last.
            most_memory().map_or("-".into(), |kilobytes| format!("{:.0}", kilobytes / 1e3)),
        ]);
    }
    Ok(())
}

/// Seconds of an E-step, and of an E-step with its M-step.
fn times(latents: usize) -> Result<(f64, f64)> {
    let mut points = Points::new(data(latents), DIMS);
    let settings = Settings {
        engine: Engine::Gibbs,
        selected: 20,
        max_active: 4,
        noise: NoiseForm::Diagonal,
        precision: Precision::F32,
        init: InitForm::Data,
        iterations: 1,
        ..Settings::new(ModelKind::Gsc, latents)
    };
    let mut state = State::new(settings, &mut points)?;
    let begun = Instant::now();
    let mut ends = Vec::new();
    state.run(&mut points, 1, |_| {
        ends.push(begun.elapsed().as_secs_f64());
        Ok(Next::Continue)
    })?;
    // E-step and M-step, then the E-step that tells the last free energy.
    let (first, all) = (ends[0], ends[1]);
    Ok((all - first, first))
}

/// Sums of a few random directions, and a little noise.
fn data(latents: usize) -> Vec<f64> {
    let mut rng = Rng::new(common::seed(50, latents));
    let directions = normal_matrix(&mut rng, latents, DIMS);
    let mut data = vec![0.0; POINTS * DIMS];
    for point in data.chunks_exact_mut(DIMS) {
        for _ in 0..ON {
            let strength: f64 = rng.normal();
            let latent = ((rng.uniform::<f64>() * latents as f64) as usize).min(latents - 1);
            let direction = &directions[latent * DIMS..][..DIMS];
            point.iter_mut().zip(direction).for_each(|(y, w)| *y += strength * w / 16.0);
        }
    }
    add_noise(&mut rng, &mut data, 0.05);
    data
}

/// The most memory this process has had (kB), where the system tells.
fn most_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
