//! The fit behind what `spikelet inspect` predicts: see tests/cost, which measures between its steps.
//!
//! ```text
//! cost-fit models FOLDER fit|check     writes blobs and samples, and prints their paths
//! cost-fit fit FOLDER CORE...          weights, from CORE.costs in the folder; CSV on standard output
//! cost-fit check FOLDER CORE...        predictions against CORE.costs; fails above 15 %
//! cost-fit method BLOB                 kind and states, as the table has them
//! ```
//!
//! Weights minimise squared errors relative to what a sample takes; none is negative, since no work takes time off another.

mod models;

use models::{Input, Made, SAMPLES, made, names};
use spikelet::counts::{Count, Counts};
use spikelet::{Blob, Detail, Engine, Gibbs, Inference};
use spikelet_trainer::predict::{
    ALLOWED, Core, Prediction, Predictor, SEED, channels, count, count_blocks, count_transform, dot, draw,
    loud, method, rooms,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["models", folder, purpose] => names(purpose).iter().for_each(|name| write(Path::new(folder), name)),
        ["fit", folder, ref cores @ ..] => fit(Path::new(folder), cores),
        ["check", folder, ref cores @ ..] => {
            if !check(Path::new(folder), cores) {
                std::process::exit(1);
            }
        }
        ["method", blob] => {
            let bytes = fs::read(blob).unwrap();
            let model = Blob::parse(&bytes).unwrap().model();
            let is_sampled = blob.ends_with("-gibbs.spk") || model.shape.kind.is_sampled();
            let usual = Engine::Gibbs(Gibbs::new(model.shape.kind, Gibbs::SWEEPS));
            println!("{}", method(&model, if is_sampled { usual } else { Engine::Truncated }));
        }
        _ => panic!("see tests/cost_fit/main.rs"),
    }
}

/// The samples of a model; every third is a loud one. A stream has them one after the other.
fn samples(made: &Made) -> Vec<Vec<f32>> {
    if let (Input::Room | Input::Channel, Some(recording)) = (made.input, &made.samples) {
        return vec![recording.clone()];
    }
    let blob = made.blob();
    let model = blob.model();
    if let Some(samples) = &made.samples {
        return samples.chunks_exact(model.shape.dims).map(<[f32]>::to_vec).collect();
    }
    let sample = |number| if number % 3 == 2 { loud(&model, number / 3) } else { draw(&model, SEED, number) };
    (0..SAMPLES * made.draws.max(1) as u64).map(sample).collect()
}

fn write(folder: &Path, name: &str) {
    let made = made(name);
    let path = folder.join(name).with_extension("spk");
    fs::write(&path, &made.bytes).unwrap();
    let samples: Vec<u8> = samples(&made).into_iter().flatten().flat_map(f32::to_le_bytes).collect();
    fs::write(path.with_extension("f32"), samples).unwrap();
    println!("{}", path.display());
}

/// Instructions by model.
type Measured = BTreeMap<String, Vec<Vec<f64>>>;

/// Reads them: a line for each sample or block, and a number for each stage.
fn measured(folder: &Path, core: &str) -> Measured {
    let path = folder.join(format!("{core}.costs"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = Measured::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_string();
        found.entry(name).or_default().push(words.skip(1).map(|word| word.parse().unwrap()).collect());
    }
    found
}

/// Counts in the same order.
fn counted(made: &Made) -> Vec<Vec<Counts>> {
    let samples = samples(made);
    let each = |blocks: Vec<Counts>| blocks.into_iter().map(|counts| vec![counts]).collect();
    match made.input {
        Input::Points => {}
        Input::Room => return each(rooms::count_hops(&made.room(), &samples.concat()).unwrap()),
        Input::Channel => return each(channels::count_hops(&made.channel(), &samples.concat()).unwrap()),
    }
    let blob = made.blob();
    if made.draws > 0 {
        return each(count_blocks(&blob, made.engine, &samples.concat()).unwrap());
    }
    let mut memory = vec![0.0; made.engine.arena_len(blob.model().shape, Detail::Marginals)];
    let mut inference =
        Inference::with_engine(blob.model(), &mut memory, Detail::Marginals, made.engine).unwrap();
    samples.iter().map(|sample| count(&mut inference, sample).unwrap().to_vec()).collect()
}

/// Counts by model, as instructions are; transforms by themselves, after the models they belong to.
type Counted = BTreeMap<String, Vec<Vec<Counts>>>;

fn all_counted(models: &[(String, Made)]) -> Counted {
    let transforms = models.iter().filter_map(|(name, made)| {
        Some((format!("{name}@transform"), vec![count_transform(made.bins()?).to_vec()]))
    });
    models.iter().map(|(name, made)| (name.clone(), counted(made))).chain(transforms).collect()
}

/// Counts, instructions, weight of the error.
type Row = (Vec<f64>, f64, f64);

fn fit(folder: &Path, cores: &[&str]) {
    let models: Vec<(String, Made)> =
        names("fit").into_iter().map(|name| (name.clone(), made(&name))).collect();
    let counts = all_counted(&models);
    for core in cores {
        let costs = measured(folder, core);
        let mut rows: Vec<Row> = Vec::new();
        for (name, found) in &costs {
            // A model has the same say however many samples it was measured with.
            let say = (found.len() as f64).sqrt().recip();
            for (stages, counts) in found.iter().zip(&counts[name]) {
                let total: f64 = stages.iter().sum();
                rows.extend(stages.iter().zip(counts).map(|(&found, counts)| {
                    let counts = counts.iter().map(|&count| count as f64).collect();
                    (counts, found, say / (found + 0.2 * total))
                }));
            }
        }
        let weights = non_negative(&rows);
        tell(core, &weights, &costs, &counts);
        for (count, weight) in Count::ALL.iter().zip(weights) {
            if rows.iter().any(|(counts, ..)| counts[*count as usize] > 0.0) {
                println!("{core},{},{weight:.3}", count.name());
            }
        }
        for (i, what) in ["dimensions", "latents", "selected"].iter().enumerate() {
            let most =
                models.iter().filter(|(name, _)| costs.contains_key(name)).map(|(_, made)| made.shape[i]);
            println!("{core},most:{what},{}", most.max().unwrap());
        }
        let channels =
            models.iter().filter(|(name, made)| made.input == Input::Channel && costs.contains_key(name));
        println!("{core},most:bands,{}", channels.map(|(_, made)| made.channel().dims()).max().unwrap());
    }
}

/// Says on standard error how far means are off that were fitted.
fn tell(core: &str, weights: &[f64], costs: &Measured, counts: &Counted) {
    let of = |counts: &Counts| weights.iter().zip(counts).map(|(w, &n)| w * n as f64).sum::<f64>();
    let error = |name: &String, found: &[Vec<f64>]| {
        let expected: f64 = counts[name].iter().flatten().map(of).sum();
        expected / found.iter().flatten().sum::<f64>() - 1.0
    };
    let errors = costs.iter().map(|(name, found)| (error(name, found), name));
    let (largest, name) = errors.clone().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap();
    let square: f64 = errors.map(|(error, _)| error * error).sum();
    let usual = 100.0 * (square / costs.len() as f64).sqrt();
    eprintln!("{core}: off by {usual:.1} % (root mean square), at most {:+.1} % ({name})", 100.0 * largest);
}

/// Least squares with weights that are not negative, one after the other until nothing moves.
fn non_negative(rows: &[Row]) -> Vec<f64> {
    let n = Count::ALL.len();
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
    for _ in 0..20_000 {
        for i in (0..n).filter(|&i| norms[i] > 0.0) {
            let explained: f64 = matrix[i].iter().zip(&x).map(|(a, x)| a * x).sum();
            // A little is taken off: what always comes together shares its weight.
            x[i] = f64::max(0.0, (targets[i] - explained + x[i]) / (1.0 + RIDGE));
        }
    }
    (0..n).map(|i| x[i] * inverse(i)).collect()
}

const RIDGE: f64 = 1e-5;

/// What `spikelet inspect` says about a core.
fn predictor(made: &Made) -> Box<dyn Fn(Core) -> Prediction + '_> {
    match made.input {
        Input::Points => {
            let predictor = Predictor::new(&made.blob().model(), made.engine).unwrap();
            let predictor = predictor.with_stream(&made.blob(), made.engine).unwrap();
            Box::new(move |core| predictor.on(core).unwrap())
        }
        Input::Room => Box::new(|core| rooms::predict(core, &made.room()).unwrap().unwrap()),
        Input::Channel => {
            let hop = channels::Hop::new(&made.channel()).unwrap();
            Box::new(move |core| hop.on(core).unwrap())
        }
    }
}

/// Whether predictions are good enough.
fn check(folder: &Path, cores: &[&str]) -> bool {
    let mut wrong = Vec::new();
    println!("| core | model | predicted | measured | error | worst predicted | worst measured |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for name in names("check") {
        let made = &made(&name);
        let counts = counted(made);
        let predict = predictor(made);
        for core in cores {
            let costs = measured(folder, core);
            let Some(found) = costs.get(&name) else { continue };
            let core = Core::find(core).unwrap();
            let weights = core.weights();
            let totals: Vec<f64> = found.iter().map(|stages| stages.iter().sum()).collect();
            // Of the samples that were measured.
            let of = |counts: &Counts| dot(&weights, counts.iter().map(|&count| count as f64));
            let predicted: Vec<f64> = counts.iter().map(|stages| stages.iter().map(of).sum()).collect();
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (expected, measured) = (mean(&predicted), mean(&totals));
            let error = expected / measured - 1.0;
            let worst = totals.iter().copied().fold(0.0, f64::max);
            let prediction = predict(core);
            // Of a block of a stream all points may be the worst.
            let points = made.bins().unwrap_or(1) as f64;
            let beside = prediction.streamed.map_or(0.0, |streamed| streamed - prediction.instructions());
            let bound = points * (prediction.worst + beside.max(0.0));
            // Of one channel `inspect` promises not to be below.
            let is_short =
                worst > bound || (made.input == Input::Channel && channels::room(core) * expected < measured);
            println!(
                "| {} | {name} | {expected:.0} | {measured:.0} | {:+.1} % | {:.0} | {worst:.0} |",
                core.name,
                100.0 * error,
                bound
            );
            if error.abs() > ALLOWED || is_short {
                wrong.push(format!("{name} on {}", core.name));
            }
        }
    }
    if !wrong.is_empty() {
        eprintln!(
            "cost-fit: off by more than {ALLOWED}, or above what `inspect` says; run tests/cost --fit: {}",
            wrong.join(", ")
        );
    }
    wrong.is_empty()
}
