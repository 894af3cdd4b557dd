//! What a model costs on a core, before there is any firmware: instructions of a sample, bytes of flash and stack.
//!
//! Instructions are a weighted sum of counts (`counts`), stage by stage; the weights were fitted to firmware under an
//! emulator that counts instructions (`tests/cost --fit` writes `table`, `tests/cost --predict` holds it against
//! shapes it was not fitted to). The counts of a sample are averages over samples that the model itself draws
//! ([`draw()`]).
//!
//! What was not fitted is not guessed: scores other than a kind's own, chains that start at the best of all states. What is
//! larger than all that was fitted is predicted, and said to be so ([`Prediction::beyond`]).

mod counts;
mod draw;
mod table;

use crate::{Error, Result};
use spikelet::model::{Dictionary, Kind, Model, Selection, Width};
use spikelet::{Engine, Start};

pub use counts::{Counts, Method, OfSample, Way};
pub use draw::{draw, is_loud};

/// Samples that a prediction is made of.
pub const SAMPLES: u64 = 100;
/// What they are drawn with.
pub const SEED: u64 = 1;
/// A larger share of loud samples makes a prediction uncertain where latents have a slab and all states are walked: how often
/// the reference of such a sample is improved depends on the sample, and single shapes are off by 40 %.
const MOST_LOUD: f64 = 0.1;
/// States of all of these samples together that are looked at, at most: fewer samples of large models.
const PATIENCE: u64 = 4_000_000;
/// The same for multiply-adds of draws.
const PATIENCE_OF_DRAWS: u64 = 1_000_000_000;
/// Fewer say little about an average.
const FEWEST_SAMPLES: u64 = 10;

/// A processor core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// As `tests/cost` calls it.
    pub name: &'static str,
    /// As users do.
    pub short: &'static str,
    /// Cycles of an average instruction: an assumption, with memory that does not make the core wait. Emulators count
    /// instructions only.
    pub cycles_per_instruction: f64,
}

/// The cores that were measured.
pub const CORES: [Core; 5] = [
    Core { name: "cortex-m0", short: "m0", cycles_per_instruction: 1.6 },
    Core { name: "cortex-m4f", short: "m4f", cycles_per_instruction: 1.5 },
    Core { name: "cortex-m7", short: "m7", cycles_per_instruction: 1.0 },
    Core { name: "cortex-m33", short: "m33", cycles_per_instruction: 1.5 },
    Core { name: "riscv32imac", short: "rv32", cycles_per_instruction: 1.5 },
];

impl Core {
    /// The name of the core whose weights it has: firmware for a Cortex-M4F takes as many instructions on a Cortex-M7.
    pub fn measured_as(&self) -> &'static str {
        if self.name == "cortex-m7" { "cortex-m4f" } else { self.name }
    }

    /// The core of this name, long or short.
    ///
    /// ```
    /// use spikelet_trainer::predict::Core;
    /// assert_eq!(Core::find("m4f"), Core::find("cortex-m4f"));
    /// assert!(Core::find("m4").is_none());
    /// ```
    pub fn find(name: &str) -> Option<Self> {
        CORES.into_iter().find(|core| core.name == name || core.short == name)
    }
}

/// Weights of the counts of one kind of model on one core.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// [`Core::measured_as`].
    pub core: &'static str,
    /// As in a blob.
    pub kind: Kind,
    /// Of the integers of its dictionary, if it is one of integers.
    pub width: Option<Width>,
    /// How posteriors are found.
    pub method: Method,
    /// Instructions for each count.
    pub projection: &'static [f64],
    /// Instructions for each count.
    pub selection: &'static [f64],
    /// Instructions for each count, of most samples.
    pub walked: &'static [f64],
    /// Of those that are loud, where that changes much.
    pub loud: &'static [f64],
    /// Of the dearest of all, as if it had as many counts as it can: above all that were measured.
    pub worst: &'static [f64],
    /// Bytes for each count, above all that were measured.
    pub stack: &'static [f64],
    /// Flash of a library for this kind and method alone, as far as setting up and `spk_process` need it, in bytes.
    pub text_bytes: u32,
    /// The shapes it was fitted to: the smallest and the largest of [`Counts::sizes`].
    pub range: &'static [[u64; 2]],
}

impl Weights {
    fn of_way(&self, way: Way) -> &'static [f64] {
        match way {
            Way::Walked => self.walked,
            Way::Loud => self.loud,
        }
    }
}

/// What a model takes on one core.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Where.
    pub core: Core,
    /// Instructions of an average sample: projection, selection, posterior.
    pub stages: [f64; 3],
    /// Instructions of the dearest sample, however loud.
    pub worst: f64,
    /// Flash for code, in bytes.
    pub text_bytes: u32,
    /// RAM of a stream, in bytes.
    pub arena_bytes: usize,
    /// Deepest stack, in bytes.
    pub stack_bytes: u32,
    /// What is unlike all that was measured, in words; nothing if the prediction is as good as others.
    pub beyond: Option<String>,
}

impl Prediction {
    /// Instructions of an average sample.
    pub fn instructions(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// What there is to predict from.
#[derive(Clone, Debug)]
pub struct Predictor {
    counts: Counts,
    samples: Vec<OfSample>,
    weights: Vec<Weights>,
    arena_bytes: usize,
}

impl Predictor {
    /// Draws samples of the model and counts what they take; the error says why nothing can be predicted.
    ///
    /// ```
    /// use spikelet::{Engine, Gibbs, Kind};
    /// use spikelet_trainer::predict::{Core, Predictor};
    /// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// let on = |engine| Predictor::new(&model, engine).unwrap().on(Core::find("m4f").unwrap()).unwrap();
    /// let found = on(Engine::Truncated);
    /// assert!(found.instructions() < 5000.0 && found.worst > found.instructions());
    /// let drawn = on(Engine::Gibbs(Gibbs::new(Kind::Gsc, 50)));
    /// assert!(drawn.instructions() > 5.0 * found.instructions());
    /// ```
    pub fn new(model: &Model<'_, f32>, engine: Engine) -> Result<Self> {
        let count = match engine {
            Engine::Truncated => (PATIENCE / model.shape.states().max(1)).min(SAMPLES),
            Engine::Gibbs(settings) => {
                let each = model.gibbs_operations(&settings).total().max(1);
                (PATIENCE_OF_DRAWS / each).clamp(FEWEST_SAMPLES, SAMPLES)
            }
        };
        if count < FEWEST_SAMPLES {
            let what = format!("{} states are too many to predict what a sample costs", model.shape.states());
            let advice = "use a smaller --selected or --max-active, or --engine gibbs";
            return Err(Error::input(what, "the model", advice));
        }
        Self::of_first(count, model, engine)
    }

    /// The same from the first `count` samples that the model draws.
    pub fn of_first(count: u64, model: &Model<'_, f32>, engine: Engine) -> Result<Self> {
        if let Some(what) = not_fitted(model, engine) {
            let advice = "measure it: examples/firmware-rust says how to put a model in firmware";
            return Err(Error::input(format_args!("no cost is known of {what}"), "the model", advice));
        }
        let (counts, mut memory) = (Counts::new(model, engine), Vec::new());
        let mut inference = counts.inference(model, &mut memory)?;
        let samples: Result<Vec<_>> =
            (0..count).map(|number| counts.of_sample(&mut inference, &draw(model, SEED, number))).collect();
        let weights = weights(model, engine).copied().collect();
        Ok(Self { counts, samples: samples?, weights, arena_bytes: engine.state_bytes(model.shape) })
    }

    /// The share of loud samples.
    pub fn loud(&self) -> f64 {
        self.samples.iter().filter(|sample| sample.way == Way::Loud).count() as f64
            / self.samples.len() as f64
    }

    /// On this core.
    pub fn on(&self, core: Core) -> Option<Prediction> {
        let weights = self.weights.iter().find(|weights| weights.core == core.measured_as())?;
        let counts = &self.counts;
        let posteriors = self.samples.iter().map(|sample| dot(weights.of_way(sample.way), &sample.counts));
        let posterior = posteriors.clone().sum::<f64>() / self.samples.len() as f64;
        // Far from all that was measured, what was fitted to the dearest may lie below a sample.
        let dearest = posteriors.fold(dot(weights.worst, &counts.most), f64::max);
        let stages = [
            dot(weights.projection, &counts.projection),
            dot(weights.selection, &counts.selection),
            posterior,
        ];
        let worst = stages[0] + stages[1] + dearest;
        Some(Prediction {
            core,
            stages,
            worst,
            text_bytes: weights.text_bytes,
            arena_bytes: self.arena_bytes,
            stack_bytes: dot(weights.stack, &counts.stack).ceil() as u32,
            beyond: self.beyond(weights),
        })
    }

    /// What is unlike all that was measured.
    fn beyond(&self, weights: &Weights) -> Option<String> {
        let sizes = self.counts.sizes.iter().zip(weights.range);
        let far = { sizes }.find_map(|(&(name, size), &[least, most])| {
            let is_like = (least..=most).contains(&size);
            (!is_like).then(|| format!("{size} {name}, where {least} to {most} were measured"))
        });
        let is_uncertain = weights.kind.has_slab() && weights.method == Method::Grown;
        let is_loud = is_uncertain && self.loud() > MOST_LOUD;
        far.or_else(|| is_loud.then(|| "many samples of its own are loud".into()))
    }
}

fn weights(model: &Model<'_, f32>, engine: Engine) -> impl Iterator<Item = &'static Weights> + use<> {
    let (kind, width, method) = (model.shape.kind, width(model), Method::of(model, engine));
    { table::WEIGHTS.iter() }
        .filter(move |weights| weights.kind == kind && weights.width == width && weights.method == method)
}

fn width(model: &Model<'_, f32>) -> Option<Width> {
    match model.dictionary {
        Dictionary::Float(_) => None,
        Dictionary::Integer(integers) => Some(integers.width),
    }
}

/// Why nothing is known of a model, in words that follow "no cost is known of".
fn not_fitted(model: &Model<'_, f32>, engine: Engine) -> Option<String> {
    let kind = model.shape.kind;
    if weights(model, engine).next().is_none() {
        let integers = if width(model).is_some() { ", whose dictionary is one of integers" } else { "" };
        let method = match Method::of(model, engine) {
            Method::Fixed => ", inferred in integers",
            Method::Kept => "",
            Method::Grown => ", with as many states",
            Method::Table => ", whose states are in a table",
            Method::Chains => ", sampled",
        };
        return Some(format!("models of kind {}{integers}{method}", format!("{kind:?}").to_lowercase()));
    }
    if matches!(engine, Engine::Gibbs(settings) if settings.start == Start::Best) {
        return Some("chains that start at the best of all states".into());
    }
    let is_own = match kind {
        Kind::Gsc => matches!(model.selection, Selection::Singleton),
        Kind::Bsc | Kind::Ssmca => matches!(model.selection, Selection::Cosine { .. }),
        _ => matches!(model.selection, Selection::Bound),
    };
    (!is_own).then(|| "this way of preselecting".into())
}

/// Instructions, from their weights and counts.
pub fn dot(weights: &[f64], counts: &[f64]) -> f64 {
    debug_assert_eq!(weights.len(), counts.len(), "weights of other counts: fit again");
    weights.iter().zip(counts).map(|(weight, count)| weight * count).sum()
}
