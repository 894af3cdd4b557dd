//! Noisy mixtures: where independent component analysis has no noise model, and spike-and-slab has.
//!
//! Four spike-and-slab sources (on with probability 0.2), four sensors, a mixing matrix of independent normal entries,
//! sensor noise 5 dB below the mixtures. Columns are as drawn, or scaled to length 1: as drawn, some sources are much
//! weaker than others, and the index depends on this choice. GSC is exact EM with everything learned and four
//! starts, of which the best free energy counts; FastICA has four starts too, of which the best contrast counts.
//!
//! Neither paper has this experiment. On similar data (the median over mixtures, N = 500 and 5000) FastICA had Amari
//! indices of 0.134 and 0.138, the GSC of the toolbox ProSper 0.120 and 0.070, exact EM in NumPy 0.11 and 0.043.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example noisy-mixtures -- [--quick]
//! ```

mod common;

use common::Arguments;
use common::fast_ica::fast_ica;
use common::gsc;
use common::mixtures::{Source, add_noise, mean_square, mix, normal_matrix, unit_columns};
use common::table::{Table, median, quantile};
use spikelet::rng::Rng;
use spikelet_trainer::Result;
use spikelet_trainer::metrics::amari;
use spikelet_trainer::train::settings::SlabForm;
use spikelet_trainer::train::{Points, Settings};
use std::process::ExitCode;

/// H = D.
const SOURCES: usize = 4;
/// How often a source is on.
const PRIOR: f64 = 0.2;
/// Power of the mixtures over that of the noise.
const SNR_DB: f64 = 5.0;
/// Starts of both methods.
const STARTS: usize = 4;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let (mixtures, sizes): (usize, &[usize]) = if arguments.quick { (5, &[500]) } else { (20, &[500, 5000]) };
    println!(
        "Amari index over {mixtures} mixtures of {SOURCES} sources, {SNR_DB} dB, median and quartiles\n"
    );
    let methods = ["FastICA", "GSC, unit slab", "GSC, learned slab"].map(|name| format!("{name:<19}"));
    let table = Table::new(&["N", "columns", &methods[0], &methods[1], &methods[2], "unit slab wins"]);
    for (n, equal) in sizes.iter().flat_map(|&n| [(n, true), (n, false)]) {
        let indices = arguments.trials(mixtures, |trial| compare(n, equal, trial))?;
        let column = |k: usize| indices.iter().map(|row| row[k]).collect::<Vec<f64>>();
        let quartiles = |k: usize| {
            let [low, high] = [0.25, 0.75].map(|fraction| quantile(&column(k), fraction));
            format!("{:.3} ({low:.3}-{high:.3})", median(&column(k)))
        };
        let wins = indices.iter().filter(|row| row[1] < row[0]).count();
        let columns = if equal { "length 1" } else { "as drawn" };
        let [ica, unit, learned] = [0, 1, 2].map(quartiles);
        table.row(&[n.to_string(), columns.into(), ica, unit, learned, format!("{wins} of {mixtures}")]);
    }
    Ok(())
}

/// Amari indices on one mixture: FastICA, GSC with a unit slab, GSC with a learned one.
fn compare(n: usize, equal: bool, trial: usize) -> Result<[f64; 3]> {
    let mut rng = Rng::new(common::seed(5, trial));
    let drawn = normal_matrix(&mut rng, SOURCES, SOURCES);
    let mixing = if equal { unit_columns(&drawn, SOURCES) } else { drawn };
    let sources = Source::SpikeAndSlab(PRIOR).points(&mut rng, n, SOURCES);
    let mut data = mix(&sources, &mixing, SOURCES);
    let noise = mean_square(&data) / 10f64.powf(SNR_DB / 10.0);
    add_noise(&mut rng, &mut data, noise.sqrt());

    // Without an index (columns that depend on each other) nothing was found.
    let index = |w: &[f64]| amari(w, &mixing, SOURCES, SOURCES).unwrap_or(1.0);
    let ica = fast_ica(&data, SOURCES, STARTS, common::seed(6, trial))?;
    let trained = |slab: SlabForm| -> Result<f64> {
        let exact = gsc::exact(SOURCES, 300, common::seed(7, trial));
        let settings = Settings { slab, restarts: STARTS, tolerance: 1e-7, ..exact };
        Ok(index(&gsc::train(&settings, &mut Points::new(data.clone(), SOURCES))?.model().dictionary))
    };
    Ok([index(&ica), trained(SlabForm::Unit)?, trained(SlabForm::Diagonal)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The experiment in small, so that it cannot rot.
    #[test]
    fn noise_is_easier_on_a_model_that_knows_of_it() {
        let indices = [0, 1, 2].map(|trial| compare(300, true, trial).unwrap());
        let sum = |k: usize| indices.iter().map(|row| row[k]).sum::<f64>();
        assert!(sum(1) < sum(0), "{indices:?}");
    }
}
