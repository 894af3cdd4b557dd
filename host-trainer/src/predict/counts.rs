//! What a sample takes instructions for, counted: how often each piece of the inference runs. A core's instructions are
//! a weighted sum of these counts ([`super::table`] has the weights).
//!
//! | module | counts of the posterior |
//! |---|---|
//! | `fixed` | all states in integers |
//! | `kept` | all states, their factors kept for the next sample |
//! | `grown` | all states, their matrices made on the way |
//! | `tabled` | all states, their matrices in a table |
//! | `chains` | draws |
//! | `segments` | what such a draw takes where only the strongest spike-and-slab latent counts |
//!
//! Projection and selection are the same for all of them.

mod chains;
mod fixed;
mod grown;
mod kept;
mod segments;
mod tabled;

use super::draw::{is_far, is_loud};
use crate::{Error, Result};
use chains::Chains;
use grown::Seen;
use spikelet::math::{Real, binomial};
use spikelet::model::{Dictionary, Model, Noise, PANEL, Selection, States};
use spikelet::{Detail, Engine, Gibbs, Inference, Shape};

/// A state that is less probable has no weight: 2^-25 for a rounding unit, and room for a thousand of them.
const NO_WEIGHT: f32 = 3e-11;

/// A latent that is as probable is on in all states with weight.
const SURELY: f32 = 1.0 - 1e-6;

/// How posteriors are found: each has weights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All states, in integers.
    Fixed,
    /// All states, their factors kept for the next sample.
    Kept,
    /// All states, their matrices made on the way.
    Grown,
    /// All states, their matrices in a table.
    Table,
    /// Draws.
    Chains,
}

impl Method {
    /// That of a model with an engine.
    pub fn of(model: &Model<'_, f32>, engine: Engine) -> Self {
        match (engine, model.states) {
            (Engine::Gibbs(_), _) => Self::Chains,
            (Engine::Truncated, _) if model.fixed.is_some() => Self::Fixed,
            (Engine::Truncated, States::Table(_)) => Self::Table,
            (Engine::Truncated, States::Grown) if model.keeps_factors() => Self::Kept,
            (Engine::Truncated, States::Grown) => Self::Grown,
        }
    }
}

/// How the posterior of a sample is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As most are.
    Walked,
    /// Around a reference state, where that changes much, or in floats where others are in integers.
    Loud,
}

/// The posterior of one sample.
#[derive(Clone, Debug)]
pub struct OfSample {
    /// Its way.
    pub way: Way,
    /// Counts of that way.
    pub counts: Vec<f64>,
}

/// Counts of a model, for any sample.
#[derive(Clone, Debug)]
pub struct Counts {
    /// How posteriors are found.
    pub method: Method,
    /// Of the projection.
    pub projection: Vec<f64>,
    /// Of the selection.
    pub selection: Vec<f64>,
    /// Of the stack.
    pub stack: Vec<f64>,
    /// Of the dearest posterior.
    pub most: Vec<f64>,
    /// Sizes that tell whether a shape is like others: names and numbers.
    pub sizes: Vec<(&'static str, u64)>,
    facts: Facts,
    engine: Engine,
}

/// What the modules count from.
#[derive(Clone, Copy, Debug)]
struct Facts {
    shape: Shape,
    full_slab: bool,
    /// Whether slabs have a mean other than zero.
    has_mean: bool,
    /// Whether every dimension has noise of its own.
    diagonal_noise: bool,
    /// Products of the Gram matrix of a sample's latents, where it is not stored: with the same noise in all dimensions,
    /// and with other noise.
    gram: [f64; 2],
}

impl Facts {
    /// D, H, H', gamma.
    fn sizes(&self) -> [f64; 4] {
        let Shape { dims, latents, selected, max_active, .. } = self.shape;
        [dims, latents, selected, max_active].map(|n| n as f64)
    }

    /// States with `k` on of the preselected but `some`.
    fn of_size(&self, k: usize, some: usize) -> f64 {
        binomial(self.shape.selected.saturating_sub(some) as u64, k as u64) as f64
    }

    /// Latents that results are made for beside the preselected ones: singletons or, without, zeros.
    fn outside(&self) -> [f64; 2] {
        let [_, h, ..] = self.sizes();
        if self.shape.singletons { [h, 0.0] } else { [0.0, h] }
    }
}

impl Counts {
    /// Of a model.
    pub fn new(model: &Model<'_, f32>, engine: Engine) -> Self {
        let shape = model.shape;
        let facts = Facts {
            shape,
            full_slab: matches!(model.states, States::Table(table) if table.full_slab),
            has_mean: model.slab_mean.iter().any(|&mean| mean != 0.0),
            diagonal_noise: matches!(model.noise, Noise::Diagonal(_)),
            gram: gram(model),
        };
        let [d, h, s, _] = facts.sizes();
        let panels = shape.latents.div_ceil(PANEL) as f64;
        let full = if matches!(model.noise, Noise::Full(_)) { d } else { 0.0 };
        let scored = match (model.selection, model.dictionary) {
            (Selection::Bound | Selection::Independent { .. }, Dictionary::Float(_)) => d * panels,
            // Latent by latent: none is there to fill a panel.
            (Selection::Bound | Selection::Independent { .. }, Dictionary::Integer(_)) => d * h,
            _ => 0.0,
        };
        let method = Method::of(model, engine);
        // The list is sorted: the first S latents go half way through it, of the others S ln(H / S) come in.
        let moves = s * s * (0.25 + 0.5 * (h / s).ln());
        let mut selection = vec![1.0, h, moves, scored];
        let mut sizes = vec![
            ("dimensions", shape.dims as u64),
            ("latents", shape.latents as u64),
            ("selected", shape.selected as u64),
        ];
        let most = match engine {
            Engine::Gibbs(settings) => {
                // Each one chosen at random is looked for among those in order.
                selection.push(f64::from(settings.extra) * s);
                Chains::most(&facts, &settings)
            }
            Engine::Truncated => {
                sizes.extend([("on at once", shape.max_active as u64), ("states", shape.states())]);
                match method {
                    Method::Table => tabled::most(&facts),
                    Method::Fixed => fixed::most(&facts),
                    Method::Kept => kept::most(&facts),
                    _ => grown::most(&facts),
                }
            }
        };
        let stack =
            vec![1.0, if method == Method::Grown { shape.max_active.saturating_sub(3) as f64 } else { 0.0 }];
        // In fixed point it is floats that a sample with other noise in every dimension is weighed in.
        let weighed = if method == Method::Fixed && facts.diagonal_noise { d } else { 0.0 };
        let projection = vec![1.0, d, panels, d * panels, full, full * d, weighed];
        Self { method, projection, selection, stack, most, sizes, facts, engine }
    }

    /// An inference to count samples of, in memory that is made as long as it takes.
    pub fn inference<'m>(
        &self,
        model: &Model<'m, f32>,
        memory: &'m mut Vec<f32>,
    ) -> Result<Inference<'m, f32>> {
        let engine = match self.engine {
            // Every sweep shows its state, and draws the same as if it did not count.
            Engine::Gibbs(settings) => Engine::Gibbs(Gibbs { burn_in: 0, thinning: 1, ..settings }),
            Engine::Truncated => Engine::Truncated,
        };
        *memory = vec![0.0; engine.arena_len(model.shape, Detail::Marginals)];
        Inference::with_engine(*model, memory, Detail::Marginals, engine)
            .map_err(|error| Error::run(error, "the model", "report this as a bug"))
    }

    /// Of one sample. `inference` is that of [`Counts::inference`], and has seen the samples before.
    pub fn of_sample(&self, inference: &mut Inference<'_, f32>, sample: &[f32]) -> Result<OfSample> {
        let refused = |error: spikelet::Error| {
            Error::run(
                format_args!("a sample that the model draws cannot be inferred ({error})"),
                "the model",
                "check its noise and slab",
            )
        };
        let is_loud = is_loud(inference.model(), sample);
        if let Engine::Gibbs(settings) = self.engine {
            inference.project(sample).map_err(refused)?;
            inference.select();
            let counts =
                Chains::of_sample(&self.facts, &settings, inference, sample, is_loud).map_err(refused)?;
            // A chain is the same around a reference.
            return Ok(OfSample { way: Way::Walked, counts });
        }
        let before = (inference.kept().to_vec(), inference.is_fixed());
        inference.infer(sample).map_err(refused)?;
        let is_loud = is_loud || is_found_loud(inference);
        let way = if is_loud { Way::Loud } else { Way::Walked };
        if self.method == Method::Table {
            return Ok(OfSample { way, counts: tabled::of_sample(&self.facts, inference, is_loud) });
        }
        // Factors of floats are of no use to integers, nor the other way round.
        let is_new = inference.kept() != before.0 || inference.is_fixed() != before.1;
        if inference.is_fixed() {
            let counts = fixed::counts(&self.facts, fixed::Seen::new(inference), is_new);
            return Ok(OfSample { way: Way::Walked, counts });
        }
        let estimate = inference.estimate();
        let on = estimate.map_latents.len();
        let surely = estimate.activity.iter().filter(|&&activity| activity >= SURELY).count();
        let mut weighty = 0.0;
        inference.for_each_state(|_, probability| weighty += f64::from(u8::from(probability > NO_WEIGHT)));
        let seen = Seen { weighty, on, surely };
        if self.method == Method::Fixed {
            let made = kept::Made { is_new, rounds: inference.rounds() };
            let counts = kept::counts(&self.facts, seen, made);
            return Ok(OfSample { way: Way::Loud, counts: fixed::loud(&self.facts, counts) });
        }
        if self.method == Method::Kept {
            let made = kept::Made { is_new, rounds: inference.rounds() };
            return Ok(OfSample { way: Way::Walked, counts: kept::counts(&self.facts, seen, made) });
        }
        let kind = self.facts.shape.kind;
        let counts = match (kind.has_slab(), kind.is_maximal()) {
            (true, _) => grown::walked(&self.facts, seen, is_loud),
            (_, false) => grown::switched(&self.facts, seen, is_loud),
            (_, true) => grown::maximal(&self.facts, seen, is_far(inference.model(), sample)),
        };
        Ok(OfSample { way, counts })
    }
}

/// Whether the best state of a sample has a latent that is loud, which none is alone where latents cancel each other: the states
/// are then walked once more.
fn is_found_loud(inference: &Inference<'_, f32>) -> bool {
    let (model, estimate) = (inference.model(), inference.estimate());
    let mut on = estimate.map_latents.iter().zip(estimate.map_values);
    on.any(|(&latent, &value)| {
        let h = usize::from(latent);
        let precision = model.slab_precision.get(h);
        precision.is_some_and(|&precision| {
            0.5 * value * value * (model.gram_diagonal[h] + precision) > f32::REFINE_ABOVE
        })
    })
}

fn gram(model: &Model<'_, f32>) -> [f64; 2] {
    let [d, s] = [model.shape.dims, model.shape.selected].map(|n| n as f64);
    let products = s * (s - 1.0) / 2.0 * d;
    match (model.gram, model.noise) {
        _ if model.shape.kind.is_maximal() => [0.0; 2],
        (Some(_), _) => [0.0; 2],
        (None, Noise::Shared(_)) => [products, 0.0],
        (None, _) => [0.0, products],
    }
}
