//! What a sample takes instructions for, counted: how often each piece of the inference runs. A core's instructions are
//! a weighted sum of these counts ([`super::table`] has the weights).
//!
//! Most counts follow from the shape. Two depend on the sample: the way it goes ([`Way`]), and how many states have weight,
//! for the others get no exponential.

use super::draw::is_loud;
use crate::{Error, Result};
use spikelet::math::binomial;
use spikelet::model::{Model, Noise, PANEL, Selection};
use spikelet::{Inference, Shape};

/// Counts of the projection.
pub const PROJECTION: usize = 5;
/// Counts of the selection.
pub const SELECTION: usize = 4;
/// Counts of the posterior, of a quiet sample or of a loud one.
pub const POSTERIOR: usize = 16;
/// Counts of the posterior of a sample whose factors are kept.
pub const KEPT: usize = 13;
/// Counts of the stack.
pub const STACK: usize = 2;

/// A state that is less probable has no weight: 2^-25 for a rounding unit, and room for a thousand of them.
const NO_WEIGHT: f32 = 3e-11;

/// Counts of a model, for any sample.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    shape: Shape,
    /// See [`PROJECTION`].
    pub projection: [f64; PROJECTION],
    /// See [`SELECTION`].
    pub selection: [f64; SELECTION],
    /// See [`STACK`].
    pub stack: [f64; STACK],
    /// Products of the Gram matrix of a sample's latents, where it is not stored: with the same noise in all dimensions, and
    /// with other noise.
    gram: [f64; 2],
}

/// How the posterior of a sample is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// With the factors of the sample before.
    Kept,
    /// With factors that are made for it, and kept.
    Made,
    /// By a walk that makes them on its way.
    Walked,
    /// The same around a reference state.
    Loud,
}

/// What a sample adds to them.
#[derive(Clone, Copy, Debug)]
pub struct OfSample {
    /// Its way.
    pub way: Way,
    /// States with weight.
    pub weighty: f64,
}

impl OfSample {
    /// Whether it needs a reference state.
    pub fn is_loud(self) -> bool {
        self.way == Way::Loud
    }

    /// Whether its factors are kept.
    pub fn is_kept(self) -> bool {
        matches!(self.way, Way::Kept | Way::Made)
    }
}

impl Counts {
    /// Of a model.
    pub fn new(model: &Model<'_, f32>) -> Self {
        let shape = model.shape;
        let [d, h, s] = [shape.dims, shape.latents, shape.selected].map(|n| n as f64);
        let panels = shape.latents.div_ceil(PANEL) as f64;
        let full = if matches!(model.noise, Noise::Full(_)) { d * d } else { 0.0 };
        let scored = match model.selection {
            Selection::Bound | Selection::Independent { .. } => d * panels,
            _ => 0.0,
        };
        // The list is sorted: the first S latents go half way through it, of the others S ln(H / S) come in.
        let moves = s * s * (0.25 + 0.5 * (h / s).ln());
        Self {
            shape,
            projection: [1.0, d, panels, d * panels, full],
            selection: [1.0, h, moves, scored],
            stack: [1.0, shape.max_active.saturating_sub(3) as f64],
            gram: match (model.gram, model.noise) {
                _ if shape.kind.is_maximal() => [0.0; 2],
                (Some(_), _) => [0.0; 2],
                (None, Noise::Shared(_)) => [s * (s - 1.0) / 2.0 * d, 0.0],
                (None, _) => [0.0, s * (s - 1.0) / 2.0 * d],
            },
        }
    }

    /// States with as many latents on as can be, and with fewer.
    fn states(&self) -> [f64; 2] {
        let Shape { selected, max_active, .. } = self.shape;
        let of_size = |k: usize| binomial(selected as u64, k as u64) as f64;
        [of_size(max_active), (0..max_active).map(of_size).sum()]
    }

    /// Of the posterior of a sample whose factors are kept.
    pub fn kept(&self, sample: OfSample) -> [f64; KEPT] {
        let [h, s] = [self.shape.latents, self.shape.selected].map(|n| n as f64);
        let [leaves, inner] = self.states();
        let made = |count: f64| if sample.way == Way::Made { count } else { 0.0 };
        [
            1.0,
            h,
            s,
            s * s,
            leaves,
            inner,
            sample.weighty,
            made(1.0),
            made(s * s),
            made(leaves),
            made(inner),
            made(self.gram[0]),
            made(self.gram[1]),
        ]
    }

    /// Of the posterior of a sample.
    pub fn posterior(&self, sample: OfSample) -> [f64; POSTERIOR] {
        let Shape { kind, max_active, .. } = self.shape;
        let [d, h, s, a] =
            [self.shape.dims, self.shape.latents, self.shape.selected, max_active].map(|n| n as f64);
        let of_size = |k: usize| binomial(self.shape.selected as u64, k as u64) as f64;
        let [leaves, inner] = self.states();
        // States with more than three to come have branches of their own, and pairs of later latents in them.
        let pairs: f64 = (1..max_active.saturating_sub(2)).map(|k| of_size(k + 2)).sum();
        let is_searched = sample.is_loud() || leaves + inner >= s * s * s;
        let on_states = if kind.is_maximal() { d * (leaves + inner) } else { 0.0 };
        let loud = |count: f64| if sample.is_loud() { count } else { 0.0 };
        [
            1.0,
            h,
            s * s,
            self.gram[0],
            self.gram[1],
            leaves,
            inner,
            sample.weighty,
            pairs,
            if is_searched { s * s * s } else { 0.0 },
            on_states,
            loud(1.0),
            loud(d * a),
            loud(d * s),
            // Members of the reference are searched, and every subset of them is a walk of its own.
            loud(a * s * (a + 8.0)),
            loud(a.exp2() * s * s),
        ]
    }

    /// A loud sample all of whose states have weight.
    pub fn most(&self) -> OfSample {
        let way = if self.shape.kind.is_maximal() { Way::Walked } else { Way::Loud };
        OfSample { way, weighty: self.shape.states() as f64 }
    }

    /// Of one sample. `inference` is of the same model, and has seen the samples before.
    pub fn of_sample(inference: &mut Inference<'_, f32>, sample: &[f32]) -> Result<OfSample> {
        let model = *inference.model();
        let before = inference.kept().to_vec();
        inference.infer(sample).map_err(|error| {
            Error::run(
                format_args!("a sample that the model draws cannot be inferred ({error})"),
                "the model",
                "check its noise and slab",
            )
        })?;
        let mut weighty = 0.0;
        inference.for_each_state(|_, probability| weighty += f64::from(u8::from(probability > NO_WEIGHT)));
        let way = match inference.kept() {
            [] if is_loud(&model, sample) => Way::Loud,
            [] => Way::Walked,
            kept if kept == before => Way::Kept,
            _ => Way::Made,
        };
        Ok(OfSample { way, weighty })
    }
}
