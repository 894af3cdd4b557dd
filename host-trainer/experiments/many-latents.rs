//! How training by select and sample grows with the number of latents (003 goes up to 10 000); with `--figure 10`, how truncated
//! EM does (000, figure 10: H from 16 to 1024, in the end close to linear).
//!
//! D = 256, H' = 20, 50 sweeps, diagonal noise, inference in 32 bits, one thread: an E-step and an M-step on 2000 points of ten
//! latents each. Projection and selection grow with H; what is drawn does not. The moments of all pairs of latents, one packed
//! triangle of 64-bit numbers, are the largest thing in memory. Truncated EM has H' = 10 and gamma = 5. Seconds are CPU seconds,
//! or those that passed where the system does not tell them.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example many-latents -- [--quick] [--figure 10]
//! ```

mod common;

use common::mixtures::{add_noise, normal_matrix};
use common::table::Table;
use common::{Arguments, cpu_seconds};
use spikelet::rng::Rng;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, InitForm, NoiseForm, Precision};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

const DIMS: usize = 256;
const POINTS: usize = 2000;
const ON: usize = 10;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (is_truncated, name) = match arguments.figure.as_deref() {
        None => (false, "H' = 20, 50 sweeps"),
        Some("10") => (true, "H' = 10, gamma = 5"),
        Some(other) => {
            let what = format!("there is no figure {other}");
            return Err(Error::input(what, "--figure", "use 10, or leave it out"));
        }
    };
    println!("{POINTS} points of {DIMS} dimensions, {name}, one thread, CPU seconds\n");
    let columns = ["H", "E-step (s)", "points a second", "M-step (s)", "moments (MB)", "most memory (MB)"];
    let table = Table::new(&columns);
    let sizes: &[usize] = match (arguments.quick, is_truncated) {
        (true, false) => &[500, 1000],
        (true, true) => &[16, 64],
        (false, false) => &[1000, 2000, 5000, 10_000],
        (false, true) => &[16, 32, 64, 128, 256, 512, 1024],
    };
    for &latents in sizes.iter().skip(arguments.skip) {
        let (e_step, iteration) = times(latents, is_truncated)?;
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

/// CPU seconds of an E-step, and of an E-step with its M-step.
fn times(latents: usize, is_truncated: bool) -> Result<(f64, f64)> {
    let mut points = Points::new(data(latents), DIMS);
    let engine = match is_truncated {
        true => Settings {
            engine: Engine::Truncated,
            selected: 10,
            max_active: 5,
            ..Settings::new(ModelKind::Gsc, latents)
        },
        false => Settings {
            engine: Engine::Gibbs,
            selected: 20,
            max_active: 4,
            ..Settings::new(ModelKind::Gsc, latents)
        },
    };
    let settings = Settings {
        noise: NoiseForm::Diagonal,
        precision: Precision::F32,
        init: InitForm::Data,
        iterations: 1,
        ..engine
    };
    let mut state = State::new(settings, &mut points)?;
    let begun = cpu_seconds();
    let mut ends = Vec::new();
    state.run(&mut points, 1, |_| {
        ends.push(cpu_seconds() - begun);
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
