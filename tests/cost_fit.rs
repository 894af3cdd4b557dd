//! Fits what `spikelet inspect` predicts to firmware under an emulator, and holds it against shapes that were not
//! fitted. `tests/cost --fit` and `tests/cost --predict` call it:
//!
//! ```text
//! cost-fit models FOLDER KIND fit|check   writes blobs and samples, prints the paths of the blobs joined by colons
//! cost-fit fit FOLDER KIND...             reads FOLDER/CORE.{costs,footprints} and KIND.CORE.text, prints table.rs of predict
//! cost-fit check FOLDER KIND...           reads FOLDER/CORE.costs, prints errors, fails if one is too large
//! ```
//!
//! A KIND is that of a model, `gsc-i16` and the like one with a dictionary of integers.
//!
//! Weights minimise squared errors relative to a model's mean; none is negative, since no work takes time off another.

use spikelet::model::Width;
use spikelet::rng::Rng;
use spikelet::{Inference, Model};
use spikelet_trainer::blob;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::predict::{CORES, Counts, OfSample, Predictor, SAMPLES, SEED, Way, dot, draw};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};
use std::fmt::Write;
use std::path::Path;
use std::{env, fs, process};

/// What is allowed between a mean and its prediction.
const ALLOWED: f64 = 0.15;
/// Samples of a model to fit to; every third is loud.
const FITTED_SAMPLES: u64 = 24;

/// D, H, H', gamma of what is fitted.
const GRID: [[usize; 4]; 25] = [
    [2, 2, 2, 2],
    [2, 4, 4, 2],
    [3, 3, 3, 3],
    [4, 6, 6, 3],
    [4, 8, 4, 2],
    [5, 5, 5, 5],
    [6, 10, 10, 5],
    [8, 8, 8, 3],
    [8, 16, 6, 3],
    [8, 24, 8, 4],
    [10, 12, 12, 3],
    [10, 20, 16, 2],
    [12, 16, 10, 3],
    [16, 16, 8, 5],
    [16, 32, 8, 3],
    [16, 32, 12, 3],
    [16, 48, 5, 2],
    [20, 40, 14, 3],
    [24, 24, 12, 4],
    [24, 40, 6, 3],
    [24, 64, 10, 3],
    [32, 32, 10, 3],
    [48, 16, 6, 4],
    [64, 24, 8, 3],
    [64, 32, 9, 2],
];

/// And of what is predicted.
const UNSEEN: [[usize; 4]; 4] = [[6, 9, 7, 3], [14, 28, 9, 3], [20, 36, 7, 4], [30, 20, 11, 2]];

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["models", folder, kind, purpose] => println!("{}", models(Path::new(folder), kind, purpose)),
        ["fit", folder, ref kinds @ ..] => print!("{}", table(Path::new(folder), kinds)),
        ["check", folder, ref kinds @ ..] => {
            if !check(Path::new(folder), kinds) {
                process::exit(1);
            }
        }
        _ => panic!("see the top of tests/cost_fit.rs"),
    }
}

fn kind(name: &str) -> ModelKind {
    let name = name.split('-').next().unwrap_or_default();
    let kinds = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];
    kinds.into_iter().find(|kind| kind.name() == name).unwrap_or_else(|| panic!("{name}: not fitted"))
}

/// Of the integers.
fn width(name: &str) -> Option<Width> {
    match name.split_once('-') {
        None => None,
        Some((_, "i16")) => Some(Width::I16),
        Some((_, "i8")) => Some(Width::I8),
        Some((_, other)) => panic!("{other}: no such integers"),
    }
}

/// Blobs and samples of a purpose.
fn models(folder: &Path, name: &str, purpose: &str) -> String {
    fs::create_dir_all(folder).unwrap();
    let (shapes, count): (&[_], _) =
        if purpose == "fit" { (&GRID, FITTED_SAMPLES) } else { (&UNSEEN, SAMPLES) };
    let mut paths = Vec::new();
    for (index, &shape) in shapes.iter().enumerate() {
        let path = folder.join(format!("{name}-{purpose}-{index}.spk"));
        let prepared = prepared(name, index, shape);
        fs::write(&path, blob::write(&prepared, &slab(kind(name), index, shape[1]), "").unwrap()).unwrap();
        let model = prepared.model().unwrap();
        let samples = (0..count).flat_map(|number| sample(&model, purpose, number));
        let bytes: Vec<u8> = samples.flat_map(f32::to_le_bytes).collect();
        fs::write(path.with_extension("f32"), bytes).unwrap();
        paths.push(path.display().to_string());
    }
    paths.join(":")
}

/// A sample of the model, or ten to a thousand times one.
fn sample(model: &Model<'_, f32>, purpose: &str, number: u64) -> Vec<f32> {
    let mut sample = draw(model, SEED, number);
    if purpose == "fit" && number % 3 == 2 {
        let factor = 10f32.powi(1 + (number / 3 % 3) as i32);
        sample.iter_mut().for_each(|y| *y *= factor);
    }
    sample
}

/// The slab of model `index`: with and without a mean.
fn slab(kind: ModelKind, index: usize, latents: usize) -> SlabCov {
    if kind.kind().has_slab() && index % 2 == 1 {
        SlabCov::Diagonal(vec![0.5; latents])
    } else {
        SlabCov::Unit
    }
}

/// A random model, with more or less noise; some whose Gram matrix is computed, some with full noise.
fn prepared(name: &str, index: usize, [d, h, selected, max_active]: [usize; 4]) -> Prepared<f32> {
    let kind = kind(name);
    let mut rng = Rng::new(100 * d as u64 + h as u64);
    let is_positive = kind.kind().is_non_negative();
    let mut entry = || {
        let w = rng.normal::<f64>() / (d as f64).sqrt();
        if is_positive { w.abs() } else { w }
    };
    let dictionary = (0..d * h).map(|_| entry()).collect();
    let variance = [0.1, 0.02, 0.3, 0.01, 0.05][index % 5];
    let covariance = |i: usize| if i / d == i % d { variance } else { 0.1 * variance / d as f64 };
    let noise = match index % 6 {
        5 if !is_positive => NoiseCov::Full((0..d * d).map(covariance).collect()),
        0 | 3 => NoiseCov::Diagonal((0..d).map(|i| variance * (1.0 + i as f64 / d as f64)).collect()),
        _ => NoiseCov::Shared(variance),
    };
    let prior = vec![([1.5, 1.0, 2.5][index % 3] / h as f64).min(0.4); h];
    let slab_mean = if kind.kind().has_slab() { vec![(index % 2) as f64; h] } else { Vec::new() };
    let slab_cov = slab(kind, index, h);
    let parameters = Parameters { kind, dims: d, latents: h, dictionary, prior, slab_mean, slab_cov, noise };
    // Computed with the same noise in all dimensions, and with other noise.
    let gram =
        if index % 6 == 4 || matches!(index % 12, 0 | 3) { GramName::Computed } else { GramName::Auto };
    let selection = SelectionName::of_kind(kind);
    let options = Options { selected, max_active, singletons: true, selection, states: None, gram };
    match width(name) {
        Some(width) => Prepared::quantized(&parameters, &options, width),
        None => Prepared::new(&parameters, &options),
    }
    .unwrap()
}

/// A model with what was measured of it, or with what its samples count.
struct Measured {
    counts: Counts,
    shape: [usize; 4],
    /// Of every sample: counts, and the instructions of its three stages.
    samples: Vec<(OfSample, [f64; 3])>,
    stack: f64,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of the lines that begin with `name`.
fn lines(text: &str, name: &str) -> Vec<Vec<f64>> {
    let of_name = text.lines().filter(|line| line.split(' ').next() == Some(name));
    of_name.map(|line| line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect()).collect()
}

/// What a core measured of the models of a kind.
fn measured(folder: &Path, name: &str, core: &str) -> Vec<Measured> {
    let file = |what: &str| read(&folder.join(format!("{core}.{what}")));
    let (costs, footprints) = (file("costs"), file("footprints"));
    let shapes = GRID.iter().enumerate();
    let models = shapes.map(|(index, &shape)| {
        let model_name = format!("{name}-fit-{index}");
        let prepared = prepared(name, index, shape);
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        let found = lines(&costs, &model_name);
        assert!(found.len() as u64 == FITTED_SAMPLES, "{model_name} on {core}: {} samples", found.len());
        let samples = (0..).zip(&found).map(|(number, stages)| {
            let sample = sample(&model, "fit", number);
            (Counts::of_sample(&mut inference, &sample).unwrap(), [stages[1], stages[2], stages[3]])
        });
        let samples = samples.collect();
        let stack = lines(&footprints, &model_name)[0][1];
        Measured { counts: Counts::new(&model), shape, samples, stack }
    });
    models.collect()
}

/// The table of weights, as Rust source.
fn table(folder: &Path, kinds: &[&str]) -> String {
    let mut text = String::from(
        "//! Weights of counts, written by `tests/cost --fit`.\n\nuse super::Weights;\nuse spikelet::Kind;\nuse spikelet::model::Width;\n\n",
    );
    let mut rows = String::new();
    for name in kinds {
        for core in CORES {
            let models = measured(folder, name, core.name);
            let of_kind = name.split('-').next().unwrap_or_default();
            let text_bytes = read(&folder.join(format!("{of_kind}.{}.text", core.name)));
            let kind = kind(name).kind();
            writeln!(rows, "Weights {{ core: {:?}, kind: Kind::{kind:?},", core.name).unwrap();
            let width = width(name).map_or("None".into(), |width| format!("Some(Width::{width:?})"));
            writeln!(rows, "width: {width},").unwrap();
            let fitted = fit(&models);
            eprintln!("{name} on {}: {}", core.name, quality(&models, &fitted));
            for (field, weights) in fitted {
                let weights: Vec<String> = weights.iter().map(|w| format!("{w:.3}")).collect();
                writeln!(rows, "{field}: [{}],", weights.join(", ")).unwrap();
            }
            let range = [0, 1, 2, 3].map(|i| {
                let sizes = models.iter().map(|model| model.shape[i]);
                [sizes.clone().min().unwrap(), sizes.max().unwrap()]
            });
            writeln!(rows, "text_bytes: {}, range: {range:?} }},", text_bytes.trim()).unwrap();
        }
    }
    writeln!(text, "pub(super) static WEIGHTS: [Weights; {}] = [{rows}];", kinds.len() * CORES.len())
        .unwrap();
    text
}

/// Weights by the name of their field.
fn fit(models: &[Measured]) -> [(&'static str, Vec<f64>); 7] {
    let stage = |number: usize, counts: fn(&Counts) -> Vec<f64>| {
        let rows = models.iter().map(|model| {
            let mean = mean(model.samples.iter().map(|(_, stages)| stages[number]));
            (counts(&model.counts), mean, 1.0 / mean)
        });
        non_negative(&rows.collect::<Vec<_>>())
    };
    let posterior = |is_meant: fn(OfSample) -> bool, counts: fn(&Counts, OfSample) -> Vec<f64>| {
        let rows = models.iter().flat_map(|model| {
            let all = model.samples.iter().filter(move |(sample, _)| is_meant(*sample));
            let mean = mean(all.clone().map(|(_, stages)| stages[2]));
            all.map(move |&(sample, stages)| (counts(&model.counts, sample), stages[2], 1.0 / mean))
        });
        // No sample of some kinds goes this way.
        let rows: Vec<_> = rows.collect();
        let width = counts(&models[0].counts, models[0].counts.most()).len();
        if rows.is_empty() { vec![0.0; width] } else { non_negative(&rows) }
    };
    let walked: fn(&Counts, OfSample) -> Vec<f64> = |counts, sample| counts.posterior(sample).to_vec();
    let worst: Vec<_> = models
        .iter()
        .map(|model| {
            let dearest = model.samples.iter().map(|(_, stages)| stages[2]).fold(0.0, f64::max);
            (model.counts.posterior(model.counts.most()).to_vec(), dearest, 1.0 / dearest)
        })
        .collect();
    let stack: Vec<_> =
        models.iter().map(|model| (model.counts.stack.to_vec(), model.stack, 1.0 / model.stack)).collect();
    [
        ("projection", stage(0, |counts| counts.projection.to_vec())),
        ("selection", stage(1, |counts| counts.selection.to_vec())),
        ("kept", posterior(OfSample::is_kept, |counts, sample| counts.kept(sample).to_vec())),
        ("posterior", posterior(|sample| sample.way == Way::Walked, walked)),
        ("loud", posterior(OfSample::is_loud, walked)),
        ("worst", above(non_negative(&worst), &worst)),
        ("stack", above(non_negative(&stack), &stack)),
    ]
}

/// Errors of the means of samples that are kept, walked and loud, in per cent of what was measured; model by model.
fn quality(models: &[Measured], fitted: &[(&'static str, Vec<f64>); 7]) -> String {
    let [(_, projection), (_, selection), (_, kept), (_, walked), (_, loud), ..] = fitted;
    let error = |model: &Measured, is_meant: fn(OfSample) -> bool| {
        let samples = model.samples.iter().filter(|(sample, _)| is_meant(*sample));
        let measured = mean(samples.clone().map(|(_, stages)| stages.iter().sum()));
        let before = dot(projection, &model.counts.projection) + dot(selection, &model.counts.selection);
        let of_sample = |sample: OfSample| match sample.way {
            Way::Kept | Way::Made => dot(kept, &model.counts.kept(sample)),
            Way::Walked => dot(walked, &model.counts.posterior(sample)),
            Way::Loud => dot(loud, &model.counts.posterior(sample)),
        };
        let predicted = mean(samples.map(|&(sample, _)| before + of_sample(sample)));
        if measured > 0.0 { format!("{:+.0}", 100.0 * (predicted / measured - 1.0)) } else { "-".into() }
    };
    let all = models.iter().map(|model| {
        let ways: [fn(OfSample) -> bool; 3] =
            [OfSample::is_kept, |sample| sample.way == Way::Walked, OfSample::is_loud];
        format!("{:?} {}", model.shape, ways.map(|is_meant| error(model, is_meant)).join(" "))
    });
    all.collect::<Vec<_>>().join(", ")
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|value| (sum, count) = (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}

/// Counts, instructions, weight of the error.
type Row = (Vec<f64>, f64, f64);

/// Scaled so that nothing measured lies above.
fn above(weights: Vec<f64>, rows: &[Row]) -> Vec<f64> {
    let factor = rows.iter().map(|(counts, found, _)| found / dot(&weights, counts)).fold(0.0, f64::max);
    weights.iter().map(|weight| weight * factor).collect()
}

/// Least squares with weights that are not negative, one after the other until nothing moves.
fn non_negative(rows: &[Row]) -> Vec<f64> {
    let n = rows.first().map_or(0, |row| row.0.len());
    // Counts are scaled to a mean square of one: then all have the same say.
    let column = |i: usize| rows.iter().map(move |(counts, _, weight)| counts[i] * weight);
    let norms: Vec<f64> = (0..n).map(|i| column(i).map(|c| c * c).sum::<f64>().sqrt()).collect();
    let inverse = |i: usize| if norms[i] > 0.0 { 1.0 / norms[i] } else { 0.0 };
    let product = |i: usize, j: usize| column(i).zip(column(j)).map(|(a, b)| a * b).sum::<f64>();
    let matrix: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| product(i, j) * inverse(i) * inverse(j)).collect()).collect();
    let target = |i: usize| column(i).zip(rows).map(|(c, (_, y, w))| c * y * w).sum::<f64>() * inverse(i);
    let targets: Vec<f64> = (0..n).map(target).collect();
    let mut x = vec![0.0; n];
    for _ in 0..100_000 {
        for i in 0..n {
            if norms[i] > 0.0 {
                x[i] = f64::max(0.0, targets[i] - dot(&matrix[i], &x) + x[i]);
            }
        }
    }
    (0..n).map(|i| x[i] * inverse(i)).collect()
}

/// Whether predictions are good enough.
fn check(folder: &Path, kinds: &[&str]) -> bool {
    let mut is_good = true;
    println!(
        "| core | kind | D, H, H', gamma | predicted | measured | error | worst predicted | worst measured |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for name in kinds {
        for core in CORES {
            let costs = read(&folder.join(format!("{}.costs", core.name)));
            for (index, &shape) in UNSEEN.iter().enumerate() {
                let model_name = format!("{name}-check-{index}");
                let prepared = prepared(name, index, shape);
                let predictor = Predictor::new(&prepared.model().unwrap()).unwrap();
                let predicted = predictor.on(core).unwrap();
                let totals: Vec<f64> =
                    lines(&costs, &model_name).iter().map(|stages| stages[1..4].iter().sum()).collect();
                assert!(totals.len() as u64 == SAMPLES, "{model_name} on {}: {}", core.name, totals.len());
                let (found, worst) =
                    (mean(totals.iter().copied()), totals.iter().copied().fold(0.0, f64::max));
                let error = predicted.instructions() / found - 1.0;
                println!(
                    "| {} | {name} | {shape:?} | {:.0} | {found:.0} | {:+.1} % | {:.0} | {worst:.0} |",
                    core.name,
                    predicted.instructions(),
                    100.0 * error,
                    predicted.worst,
                );
                is_good &= error.abs() < ALLOWED && worst <= predicted.worst;
            }
        }
    }
    if !is_good {
        eprintln!(
            "cost-fit: an error of a mean is above {ALLOWED}, or a sample dearer than the worst: fit again"
        );
    }
    is_good
}
