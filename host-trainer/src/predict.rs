//! What a model costs on a core, before there is any firmware: instructions of a sample, bytes of flash and stack.
//!
//! Instructions are a weighted sum of counts (`counts`), stage by stage; the weights were fitted to firmware under an
//! emulator that counts instructions (`tests/cost --fit` writes `table`, `tests/cost --predict` holds it against
//! shapes it was not fitted to). The counts of a sample are averages over samples that the model itself draws
//! ([`draw()`]).
//!
//! What was not fitted is not guessed: tables of states, sampling, scores other than a kind's own, dictionaries of integers of
//! kinds other than gsc.

mod counts;
mod draw;
mod table;

use crate::{Error, Result};
use spikelet::model::{Dictionary, Kind, Model, Selection, States, Width};
use spikelet::{Inference, state_bytes};

pub use counts::{Counts, KEPT, OfSample, POSTERIOR, PROJECTION, SELECTION, STACK, Way};
pub use draw::{draw, is_loud};

/// Samples that a prediction is made of.
pub const SAMPLES: u64 = 100;
/// What they are drawn with.
pub const SEED: u64 = 1;
/// A larger share of loud samples makes a prediction uncertain: how often the reference of such a sample is improved
/// depends on the sample, and single shapes are off by 40 %.
const MOST_LOUD: f64 = 0.2;
/// States of all of these samples together that are looked at, at most: fewer samples of large models.
const PATIENCE: u64 = 4_000_000;

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
    /// [`Core::name`].
    pub core: &'static str,
    /// As in a blob.
    pub kind: Kind,
    /// Of the integers of its dictionary, if it is one of integers.
    pub width: Option<Width>,
    /// Instructions for each count.
    pub projection: [f64; PROJECTION],
    /// Instructions for each count.
    pub selection: [f64; SELECTION],
    /// Instructions for each count, of a sample whose factors are kept.
    pub kept: [f64; KEPT],
    /// Of one that is walked, but not loud.
    pub posterior: [f64; POSTERIOR],
    /// Of one that is.
    pub loud: [f64; POSTERIOR],
    /// Of the dearest of all, as if it had as many counts as it can: above all that were measured.
    pub worst: [f64; POSTERIOR],
    /// Bytes for each count, above all that were measured.
    pub stack: [f64; STACK],
    /// Flash of a library for this kind alone, as far as `spk_init` and `spk_process` need it, in bytes.
    pub text_bytes: u32,
    /// The shapes it was fitted to: smallest and largest D, H, H', gamma.
    pub range: [[usize; 2]; 4],
}

/// What a model takes on one core.
#[derive(Clone, Copy, Debug)]
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
    /// Whether the shape is among those that were measured, not beyond them, and most samples are not loud.
    pub is_within_fit: bool,
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
    shape: spikelet::Shape,
}

impl Predictor {
    /// Draws samples of the model and counts what they take; the error says why nothing can be predicted.
    ///
    /// ```
    /// use spikelet_trainer::predict::{Core, Predictor};
    /// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// let predictor = Predictor::new(&model).unwrap();
    /// let found = predictor.on(Core::find("m4f").unwrap()).unwrap();
    /// assert!(found.instructions() < 5000.0 && found.worst > found.instructions());
    /// ```
    pub fn new(model: &Model<'_, f32>) -> Result<Self> {
        if let Some(what) = not_fitted(model) {
            let advice = "measure it: examples/firmware-rust says how to put a model in firmware";
            return Err(Error::input(format_args!("no cost is known of {what}"), "the model", advice));
        }
        let states = model.shape.states();
        let count = (PATIENCE / states.max(1)).min(SAMPLES);
        if count < 10 {
            let what = format!("{states} states are too many to predict what a sample costs");
            return Err(Error::input(what, "the model", "use a smaller --selected or --max-active"));
        }
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(*model, &mut memory)
            .map_err(|error| Error::run(error, "the model", "report this as a bug"))?;
        let samples: Result<Vec<_>> =
            (0..count).map(|number| Counts::of_sample(&mut inference, &draw(model, SEED, number))).collect();
        let weights = weights(model).copied().collect();
        Ok(Self { counts: Counts::new(model), samples: samples?, weights, shape: model.shape })
    }

    /// The share of loud samples.
    pub fn loud(&self) -> f64 {
        self.samples.iter().filter(|sample| sample.is_loud()).count() as f64 / self.samples.len() as f64
    }

    /// On this core.
    pub fn on(&self, core: Core) -> Option<Prediction> {
        let weights = self.weights.iter().find(|weights| weights.core == core.name)?;
        let counts = &self.counts;
        let posteriors = self.samples.iter().map(|&sample| match sample.way {
            Way::Kept | Way::Made => dot(&weights.kept, &counts.kept(sample)),
            Way::Walked => dot(&weights.posterior, &counts.posterior(sample)),
            Way::Loud => dot(&weights.loud, &counts.posterior(sample)),
        });
        let posterior = posteriors.sum::<f64>() / self.samples.len() as f64;
        let stages = [
            dot(&weights.projection, &counts.projection),
            dot(&weights.selection, &counts.selection),
            posterior,
        ];
        let worst = stages[0] + stages[1] + dot(&weights.worst, &counts.posterior(counts.most()));
        let spikelet::Shape { dims, latents, selected, max_active, .. } = self.shape;
        let sizes = [dims, latents, selected, max_active].into_iter().zip(weights.range);
        let is_within = { sizes }.all(|(n, [least, most])| (least..=most).contains(&n));
        Some(Prediction {
            core,
            stages,
            worst,
            text_bytes: weights.text_bytes,
            arena_bytes: state_bytes(self.shape),
            stack_bytes: dot(&weights.stack, &counts.stack).ceil() as u32,
            is_within_fit: is_within && self.loud() <= MOST_LOUD,
        })
    }
}

fn weights(model: &Model<'_, f32>) -> impl Iterator<Item = &'static Weights> + use<> {
    let (kind, width) = (model.shape.kind, width(model));
    table::WEIGHTS.iter().filter(move |weights| weights.kind == kind && weights.width == width)
}

fn width(model: &Model<'_, f32>) -> Option<Width> {
    match model.dictionary {
        Dictionary::Float(_) => None,
        Dictionary::Integer(integers) => Some(integers.width),
    }
}

/// Why nothing is known of a model, in words that follow "no cost is known of".
fn not_fitted(model: &Model<'_, f32>) -> Option<String> {
    let kind = model.shape.kind;
    if kind.is_sampled() {
        return Some("models that can only be sampled".into());
    }
    if weights(model).next().is_none() {
        let integers = if width(model).is_some() { ", whose dictionary is one of integers" } else { "" };
        return Some(format!("models of kind {}{integers}", format!("{kind:?}").to_lowercase()));
    }
    if matches!(model.states, States::Table(_)) {
        return Some("tables of states".into());
    }
    let is_own = match kind {
        Kind::Gsc => matches!(model.selection, Selection::Singleton),
        Kind::Bsc => matches!(model.selection, Selection::Cosine { .. }),
        _ => matches!(model.selection, Selection::Bound),
    };
    (!is_own).then(|| "this way of preselecting".into())
}

/// Instructions, from their weights and counts.
pub fn dot(weights: &[f64], counts: &[f64]) -> f64 {
    weights.iter().zip(counts).map(|(weight, count)| weight * count).sum()
}
