//! What was counted in firmware.

use crate::family::Family;
use crate::least_squares::mean;
use crate::models::{is_scaled, name, prepared, sample};
use crate::shapes::{Purpose, cases, samples};
use spikelet_trainer::predict::{Counts, Method, OfSample, Way};
use std::fs;
use std::path::Path;

/// A model, what its samples count, and what was measured of it.
pub struct Measured {
    pub counts: Counts,
    pub shape: [usize; 4],
    pub samples: Vec<Sample>,
    pub stack: f64,
}

/// One of its samples.
pub struct Sample {
    pub counted: OfSample,
    /// Instructions of its three stages.
    pub stages: [f64; 3],
    /// Whether the model itself draws such samples.
    pub is_own: bool,
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The instructions of the three stages of every sample of a model, in the lines that begin with its name.
pub fn stages(costs: &str, model: &str, count: u64) -> Vec<[f64; 3]> {
    let found: Vec<_> = lines(costs, model).iter().map(|line| [line[1], line[2], line[3]]).collect();
    assert!(found.len() as u64 == count, "{model}: {} samples", found.len());
    found
}

fn lines(text: &str, name: &str) -> Vec<Vec<f64>> {
    let of_name = text.lines().filter(|line| line.split(' ').next() == Some(name));
    of_name.map(|line| line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect()).collect()
}

/// Where some samples are inferred in floats instead of integers: what their projection and selection take more than those of the
/// others becomes part of the posterior, which is all that counts tell apart.
fn count_floats_last(samples: &mut [Sample]) {
    let is_whole = |sample: &&Sample| sample.counted.way == Way::Walked;
    let [projection, selection] =
        [0, 1].map(|stage| mean(samples.iter().filter(is_whole).map(|sample| sample.stages[stage])));
    for sample in samples.iter_mut().filter(|sample| sample.counted.way == Way::Loud) {
        let total: f64 = sample.stages.iter().sum();
        sample.stages = [projection, selection, total - projection - selection];
    }
}

/// What a core measured of the models of a family that is fitted.
pub fn measured(folder: &Path, family: &Family, core: &str) -> Vec<Measured> {
    let file = |what: &str| read(&folder.join(format!("{core}.{what}")));
    let (costs, footprints) = (file("costs"), file("footprints"));
    let models = cases(family, Purpose::Fit).into_iter().enumerate().map(|(index, case)| {
        let model_name = name(family, Purpose::Fit, index, &case);
        let prepared = prepared(family, index, &case);
        let model = prepared.model().unwrap();
        let (counts, mut memory) = (Counts::new(&model, case.engine), Vec::new());
        let mut inference = counts.inference(&model, &mut memory).unwrap();
        let found = stages(&costs, &model_name, samples(family, Purpose::Fit));
        let of_sample = |(number, stages)| {
            let counted = counts.of_sample(&mut inference, &sample(&model, Purpose::Fit, number)).unwrap();
            Sample { counted, stages, is_own: !is_scaled(Purpose::Fit, number) }
        };
        let mut samples: Vec<Sample> = (0..).zip(found).map(of_sample).collect();
        if counts.method == Method::Fixed {
            count_floats_last(&mut samples);
        }
        let stack = lines(&footprints, &model_name)[0][1];
        Measured { counts, shape: case.shape, samples, stack }
    });
    models.collect()
}
