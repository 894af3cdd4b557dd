//! Predictions against what was counted.

use crate::family::Family;
use crate::least_squares::mean;
use crate::measured::{read, stages};
use crate::models::{name, prepared};
use crate::shapes::{Purpose, cases, samples};
use spikelet_trainer::predict::{CORES, Predictor};
use std::path::Path;

/// What is allowed between a mean and its prediction.
const ALLOWED: f64 = 0.15;

/// Whether predictions are good enough. One that says itself that it is a guess may be wrong, but for the worst.
pub fn check(folder: &Path, families: &[Family]) -> bool {
    let costs = CORES.map(|core| read(&folder.join(format!("{}.costs", core.name))));
    let mut wrong = Vec::new();
    println!(
        "| core | kind | D, H, H', gamma | predicted | measured | error | worst predicted | worst measured |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for family in families {
        let count = samples(family, Purpose::Check);
        for (index, case) in cases(family, Purpose::Check).iter().enumerate() {
            let (name, shape) = (name(family, Purpose::Check, index, case), case.shape);
            let prepared = prepared(family, index, case);
            // Of as many samples as were measured.
            let predictor = Predictor::of_first(count, &prepared.model().unwrap(), case.engine).unwrap();
            for (core, costs) in CORES.into_iter().zip(&costs) {
                let predicted = predictor.on(core).unwrap();
                let totals = stages(costs, &name, count).into_iter().map(|stages| stages.iter().sum());
                let totals: Vec<f64> = totals.collect();
                let found = mean(totals.iter().copied());
                let worst = totals.into_iter().fold(0.0, f64::max);
                let error = predicted.instructions() / found - 1.0;
                println!(
                    "| {} | {} | {shape:?} | {:.0} | {found:.0} | {:+.1} %{} | {:.0} | {worst:.0} |",
                    core.name,
                    family.name,
                    predicted.instructions(),
                    100.0 * error,
                    if predicted.beyond.is_some() { " (a guess)" } else { "" },
                    predicted.worst,
                );
                let is_wrong = error.abs() >= ALLOWED && predicted.beyond.is_none();
                if is_wrong || worst > predicted.worst {
                    wrong.push(format!("{name} on {}", core.name));
                }
            }
        }
    }
    if !wrong.is_empty() {
        eprintln!(
            "cost-fit: an error of a mean is above {ALLOWED}, or a sample dearer than the worst; fit again: {}",
            wrong.join(", ")
        );
    }
    wrong.is_empty()
}
