//! The table of weights, fitted to what was measured.

use crate::family::Family;
use crate::least_squares::{above, mean, non_negative};
use crate::measured::{Measured, Sample, measured, read};
use spikelet_trainer::predict::{CORES, Counts, Method, Way, dot};
use std::fmt::Write;
use std::path::Path;

/// The ways of a posterior, each with weights of its own.
const WAYS: [Way; 2] = [Way::Walked, Way::Loud];

/// The dearest of a few samples is not the dearest there can be: so much is added.
const MARGIN: f64 = 1.3;

/// Weights of one family on one core.
struct Fitted {
    projection: Vec<f64>,
    selection: Vec<f64>,
    /// By [`WAYS`]; empty where no sample goes.
    ways: [Vec<f64>; 2],
    worst: Vec<f64>,
    stack: Vec<f64>,
}

/// All of them as Rust source.
pub fn table(folder: &Path, families: &[Family]) -> String {
    let (mut rows, mut count) = (String::new(), 0);
    for family in families {
        for core in CORES.into_iter().filter(|core| core.measured_as() == core.name) {
            let models = measured(folder, family, core.name);
            let fitted = Fitted::new(&models);
            eprintln!("{} on {}: {}", family.name, core.name, fitted.quality(&models));
            rows += &fitted.row(folder, family, core.name, &models);
            count += 1;
        }
    }
    format!(
        "//! Weights of counts, written by `tests/cost --fit`.\n\n#![allow(clippy::approx_constant)] // some look like pi\n\nuse super::{{Method, Weights}};\nuse spikelet::Kind;\n\
         use spikelet::model::Width;\n\npub(super) static WEIGHTS: [Weights; {count}] = [{rows}];\n"
    )
}

impl Fitted {
    fn new(models: &[Measured]) -> Self {
        let stage = |number: usize, counts: fn(&Counts) -> &Vec<f64>| {
            let rows = models.iter().map(|model| {
                let own = model.samples.iter().filter(|sample| sample.is_own);
                let mean = mean(own.map(|sample| sample.stages[number]));
                (counts(&model.counts).clone(), mean, 1.0 / mean)
            });
            non_negative(&rows.collect::<Vec<_>>())
        };
        let way = |way: Way| {
            let rows = models.iter().flat_map(|model| {
                let all = of_way(model, way);
                let mean = mean(all.clone().map(|sample| sample.stages[2]));
                all.map(move |sample| (sample.counted.counts.clone(), sample.stages[2], 1.0 / mean))
            });
            non_negative(&rows.collect::<Vec<_>>())
        };
        let worst: Vec<_> = { models.iter() }
            .map(|model| {
                let dearest = model.samples.iter().map(|sample| sample.stages[2]).fold(0.0, f64::max);
                (model.counts.most.clone(), dearest, 1.0 / dearest)
            })
            .collect();
        let stack: Vec<_> =
            models.iter().map(|model| (model.counts.stack.clone(), model.stack, 1.0 / model.stack)).collect();
        Self {
            projection: stage(0, |counts| &counts.projection),
            selection: stage(1, |counts| &counts.selection),
            ways: WAYS.map(way),
            worst: above(non_negative(&worst), &worst, MARGIN),
            stack: above(non_negative(&stack), &stack, 1.0),
        }
    }

    /// An element of the table.
    fn row(&self, folder: &Path, family: &Family, core: &str, models: &[Measured]) -> String {
        let kind = family.kind.kind();
        let width = family.width.map_or("None".into(), |width| format!("Some(Width::{width:?})"));
        let mut row = format!("Weights {{ core: {core:?}, kind: Kind::{kind:?}, width: {width},");
        write!(row, "method: Method::{:?},", family.method).unwrap();
        let [walked, loud] = &self.ways;
        for (field, weights) in [
            ("projection", &self.projection),
            ("selection", &self.selection),
            ("walked", walked),
            ("loud", loud),
            ("worst", &self.worst),
            ("stack", &self.stack),
        ] {
            let weights: Vec<String> = weights.iter().map(|weight| format!("{weight:.3}")).collect();
            write!(row, "{field}: &[{}],", weights.join(", ")).unwrap();
        }
        let range = (0..models[0].counts.sizes.len()).map(|i| {
            let sizes = models.iter().map(|model| model.counts.sizes[i].1);
            [sizes.clone().min().unwrap(), sizes.max().unwrap()]
        });
        let range: Vec<_> = range.collect();
        let text_bytes = read(&folder.join(format!("{}.{core}.text", family.name)));
        writeln!(row, "text_bytes: {}, range: &{range:?} }},", text_bytes.trim()).unwrap();
        row
    }

    /// Errors of the means of each way, in per cent of what was measured; model by model.
    fn quality(&self, models: &[Measured]) -> String {
        let error = |model: &Measured, way: Way, weights: &[f64]| {
            let samples = of_way(model, way);
            let measured = mean(samples.clone().map(|sample| sample.stages.iter().sum()));
            let before = dot(&self.projection, &model.counts.projection)
                + dot(&self.selection, &model.counts.selection);
            let predicted = mean(samples.map(|sample| before + dot(weights, &sample.counted.counts)));
            if measured > 0.0 { format!("{:+.0}", 100.0 * (predicted / measured - 1.0)) } else { "-".into() }
        };
        let all = models.iter().map(|model| {
            let errors = WAYS.iter().zip(&self.ways).map(|(&way, weights)| error(model, way, weights));
            format!("{:?} {}", model.shape, errors.collect::<Vec<_>>().join(" "))
        });
        all.collect::<Vec<_>>().join(", ")
    }
}

/// The samples of a model that go this way and that the model draws itself: those that are scaled have errors in them that no
/// latent explains, so that many more states are looked at. Hardly a model draws samples that are too loud for integers, though.
fn of_way(model: &Measured, way: Way) -> impl Iterator<Item = &Sample> + Clone {
    let all = way == Way::Loud && model.counts.method == Method::Fixed;
    model.samples.iter().filter(move |sample| (all || sample.is_own) && sample.counted.way == way)
}
