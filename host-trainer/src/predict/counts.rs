//! What a sample takes instructions for, counted: how often each piece of the inference runs. A core's instructions are
//! a weighted sum of these counts ([`super::table`] has the weights).
//!
//! Most counts follow from the shape. Two depend on the sample: whether it is loud, which makes a reference state
//! necessary, and how many states have weight, for the others get no exponential.

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
pub const POSTERIOR: usize = 15;
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
    gram_is_computed: bool,
}

/// What a sample adds to them.
#[derive(Clone, Copy, Debug)]
pub struct OfSample {
    /// Whether it needs a reference state.
    pub is_loud: bool,
    /// States with weight.
    pub weighty: f64,
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
            gram_is_computed: model.gram.is_none() && !shape.kind.is_maximal(),
        }
    }

    /// Of the posterior of a sample.
    pub fn posterior(&self, sample: OfSample) -> [f64; POSTERIOR] {
        let Shape { kind, max_active, .. } = self.shape;
        let [d, h, s, a] =
            [self.shape.dims, self.shape.latents, self.shape.selected, max_active].map(|n| n as f64);
        let of_size = |k: usize| binomial(self.shape.selected as u64, k as u64) as f64;
        let leaves = of_size(max_active);
        let inner: f64 = (0..max_active).map(of_size).sum();
        // States with more than three to come have branches of their own, and pairs of later latents in them.
        let pairs: f64 = (1..max_active.saturating_sub(2)).map(|k| of_size(k + 2)).sum();
        let is_searched = sample.is_loud || leaves + inner >= s * s * s;
        let gram = if self.gram_is_computed { s * (s - 1.0) / 2.0 * d } else { 0.0 };
        let on_states = if kind.is_maximal() { d * (leaves + inner) } else { 0.0 };
        let loud = |count: f64| if sample.is_loud { count } else { 0.0 };
        [
            1.0,
            h,
            s * s,
            gram,
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
        OfSample { is_loud: !self.shape.kind.is_maximal(), weighty: self.shape.states() as f64 }
    }

    /// Of one sample. `inference` is of the same model.
    pub fn of_sample(inference: &mut Inference<'_, f32>, sample: &[f32]) -> Result<OfSample> {
        let model = *inference.model();
        inference.infer(sample).map_err(|error| {
            Error::run(
                format_args!("a sample that the model draws cannot be inferred ({error})"),
                "the model",
                "check its noise and slab",
            )
        })?;
        let mut weighty = 0.0;
        inference.for_each_state(|_, probability| weighty += f64::from(u8::from(probability > NO_WEIGHT)));
        Ok(OfSample { is_loud: is_loud(&model, sample), weighty })
    }
}
