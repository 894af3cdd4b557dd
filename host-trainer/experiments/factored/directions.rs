//! Directions of Cauchy and Laplace sources through an oblique W (paper 000, section 5.3 and figure 4).
//!
//! The paper has H = D of 20 to 100, N = 5000 points with noise of variance 1, 50 iterations, 15 trials, H' = gamma = H / 10;
//! truncated posteriors give the lower index everywhere, for both kinds of sources. Here W is a matrix of normal entries; there
//! are fewer trials, and adaptive states beside both. Sources have the scale of their standard distributions.

use crate::common::mixtures::{Source, add_noise, mix, normal_matrix};
use crate::common::table::{Table, mean_and_spread, spread};
use crate::common::{self, Arguments, cpu_seconds, gsc};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::train::settings::{Engine, StatesForm};
use spikelet_trainer::train::{Points, Settings};

const ITERATIONS: usize = 50;

pub fn experiment(arguments: &Arguments) -> Result<()> {
    let (sizes, points): (&[(usize, usize)], usize) =
        if arguments.quick { (&[(20, 1)], 1000) } else { (&[(20, 5), (40, 5), (100, 2)], 5000) };
    println!(
        "N = {points}, {ITERATIONS} iterations; mean (standard deviation) over trials, CPU seconds of one\n"
    );
    let table = Table::new(&["sources", "H = D", "trials", "engine   ", "Amari        ", "seconds"]);
    let rows = sizes.iter().flat_map(|&size| {
        let sources = [("Cauchy", Source::Cauchy), ("Laplace", Source::Laplace)];
        sources
            .into_iter()
            .flat_map(move |source| engines(size.0).into_iter().map(move |e| (size, source, e)))
    });
    for ((h, trials), (name, source), (engine, settings)) in rows.skip(arguments.skip).take(arguments.rows) {
        let runs = arguments.trials(trials, |trial| run(source, points, &settings, trial))?;
        let column = |k: usize| runs.iter().map(|run| run[k]).collect::<Vec<f64>>();
        table.row(&[
            name.to_owned(),
            h.to_string(),
            trials.to_string(),
            engine.to_owned(),
            spread(&column(0)),
            format!("{:.1}", mean_and_spread(&column(1)).0),
        ]);
    }
    Ok(())
}

fn engines(h: usize) -> [(&'static str, Settings); 3] {
    let all = Settings { iterations: ITERATIONS, ..Settings::new(ModelKind::Gsc, h) };
    let few = Settings { engine: Engine::Truncated, selected: h / 10, max_active: h / 10, ..all.clone() };
    let adaptive = Settings {
        engine: Engine::Truncated,
        states: StatesForm::Adaptive,
        selected: 10,
        max_active: 10,
        ..all.clone()
    };
    [("factored", Settings { engine: Engine::Factored, ..all }), ("truncated", few), ("adaptive", adaptive)]
}

/// Amari index and seconds.
fn run(source: Source, n: usize, settings: &Settings, trial: usize) -> Result<[f64; 2]> {
    let h = settings.latents;
    let mut rng = Rng::new(common::seed(43, trial));
    let mixing = normal_matrix(&mut rng, h, h);
    let mut values = mix(&source.points(&mut rng, n, h), &mixing, h);
    add_noise(&mut rng, &mut values, 1.0);
    let mut points = Points::new(values, h);
    let settings = Settings { seed: common::seed(44, trial), ..settings.clone() };
    let begun = cpu_seconds();
    let learned = gsc::train(&settings, &mut points)?.model().dictionary;
    Ok([amari(&learned, &mixing, h, h).unwrap_or(1.0), cpu_seconds() - begun])
}
