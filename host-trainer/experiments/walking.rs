//! Voices in a room, one of which walks 45 degrees in ten seconds: what becomes of a model that was trained before, of one whose parameters
//! follow, and of one that is trained again on what is heard after the walk; and what following costs where nobody moves.
//!
//! With a folder of voices (WAV files of one rate), or without one with made-up sounds; ten rooms of each kind, which take five minutes of
//! one core; `--quick` one room of one kind.

mod common;

use common::recordings;
use common::rooms::{Case, best_pairs, made_up};
use common::table::{Table, mean_and_spread};
use common::{Arguments, seed};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::spatial::FOLLOWING;
use spikelet_trainer::spatial::simulate::{Shoebox, Walk};
use std::process::ExitCode;

/// Seconds until the walk begins, which models are trained on, until it ends, and of the recording.
const STANDS: usize = 8;
const ARRIVES: usize = 18;
const SECONDS: usize = 24;
/// To the left.
const DEGREES: f64 = 45.0;

/// Sources on two microphones, and RT60 in seconds.
const ROOMS: [(usize, f64); 3] = [(2, 0.0), (2, 0.15), (3, 0.15)];

/// SI-SDR in dB, mean over sources.
struct Figures {
    /// Before the walk, in its second half, and after it, of the model as it was trained.
    stays: [f64; 3],
    /// The same where it follows.
    follows: [f64; 3],
    /// What following gains or loses after training where nobody moves.
    still: f64,
    /// After the walk, of a model that is trained there.
    again: f64,
}

fn main() -> ExitCode {
    common::main(run)
}

fn run(arguments: &Arguments) -> Result<()> {
    let voices = arguments.given_path().map_or_else(|| Ok(made_up()), recordings::read)?;
    let columns = [
        "room",
        "before",
        "walking",
        "after",
        "following: before",
        "walking",
        "after",
        "still",
        "trained again",
    ];
    let table = Table::new(&columns);
    let (kinds, trials) = if arguments.quick { (1, 1) } else { (ROOMS.len(), 10) };
    for (number, &(sources, rt60)) in ROOMS.iter().enumerate().take(kinds).skip(arguments.skip) {
        let all = arguments.trials(trials, |trial| {
            let mut rng = Rng::new(seed(140 + number as u64, trial));
            figures(sources, rt60, &voices, &mut rng)
        })?;
        let cell = |of: &dyn Fn(&Figures) -> f64| {
            let (mean, spread) = mean_and_spread(&all.iter().map(of).collect::<Vec<f64>>());
            format!("{mean:.1} ({spread:.1})")
        };
        table.row(&[
            format!("{sources} on 2, {rt60} s"),
            cell(&|room| room.stays[0]),
            cell(&|room| room.stays[1]),
            cell(&|room| room.stays[2]),
            cell(&|room| room.follows[0]),
            cell(&|room| room.follows[1]),
            cell(&|room| room.follows[2]),
            cell(&|room| room.still),
            cell(&|room| room.again),
        ]);
    }
    Ok(())
}

fn figures(sources: usize, rt60: f64, voices: &[recordings::Recording], rng: &mut Rng) -> Result<Figures> {
    let room = Shoebox::random(2, sources, 0.05, rt60, rng);
    // The first source is at the right. It walks towards the other one, as far as there is room between them.
    let walk = Walk {
        source: 0,
        degrees: if sources == 2 { DEGREES } else { -DEGREES },
        start: STANDS as f64,
        seconds: (ARRIVES - STANDS) as f64,
    };
    let mut same = rng.clone();
    let case = Case::walked(&room, Some(walk), SECONDS, voices, rng)?;
    let stands = Case::walked(&room, None, SECONDS, voices, &mut same)?;
    let at = |seconds: usize| seconds * case.rate as usize;
    let model = case.trained(0..at(STANDS), 1);
    let again = case.separated(&case.trained(at(ARRIVES)..at(SECONDS), 1))?;
    let mean = |parts: &[Vec<f64>], case: &Case, from: usize, to: usize| {
        mean_and_spread(&best_pairs(parts, &case.images, at(from)..at(to))).0
    };
    let pieces = [(0, STANDS), ((STANDS + ARRIVES) / 2, ARRIVES), (ARRIVES, SECONDS)];
    let of = |parts: &[Vec<f64>]| pieces.map(|(from, to)| mean(parts, &case, from, to));
    let unseen = |parts: &[Vec<f64>]| mean(parts, &stands, STANDS, SECONDS);
    Ok(Figures {
        stays: of(&case.separated(&model)?),
        follows: of(&case.followed(&model, FOLLOWING)?),
        still: unseen(&stands.followed(&model, FOLLOWING)?) - unseen(&stands.separated(&model)?),
        again: mean(&again, &case, ARRIVES, SECONDS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_quick_run() {
        run(&Arguments::parse_from(["walking", "--quick", "--threads", "1"])).unwrap();
    }
}
