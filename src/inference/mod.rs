//! One sample through all stages: project, select, posterior.

mod adaptive;
mod mixture;
mod subsets;

use crate::counts::Count;
use crate::engine::Engine;
use crate::error::Error;
use crate::features::{DETAIL, FIXED, FLOATS, GIBBS, SUBSETS};
use crate::fixed;
use crate::gibbs::{self, Conditional, Draw};
use crate::kinds::Family;
use crate::memory::{Detail, Memory, Method, arena_len};
use crate::model::{Model, States};
use crate::numeric::math::Real;
use crate::numeric::slices::copy;
use crate::project::{project_sample, weigh};
use crate::select::scores::score;
use crate::select::top;
use crate::state::{Held, State};
use crate::states::tableau::Path;

/// Inference for one stream of samples: a model, an engine, and a state with its memory.
///
/// ```
/// # let bytes = spikelet::doc::TWO_SOURCES;
/// use spikelet::{Blob, Inference};
/// let model = Blob::parse(bytes).unwrap().model();
/// let mut memory = [0.0f32; 256];
/// let mut inference = Inference::new(model, &mut memory).unwrap();
/// let estimate = inference.infer(&[0.0, 2.0]).unwrap();
/// assert!(estimate.activity[0] < 0.1 && estimate.activity[1] > 0.9);
/// ```
#[derive(Debug)]
pub struct Inference<'m, T> {
    model: Held<Model<'m, T>, &'m Model<'m, T>>,
    engine: Engine,
    memory: Memory<'m, T>,
    state: Held<State<T>, &'m mut State<T>>,
}

/// The posterior of one sample. H entries where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Estimate<'e, T> {
    /// The candidates: the H' preselected latents, best first (those that a sampler chose at random come last); with adaptive states
    /// those of the reference, then the others.
    pub selected: &'e [u16],
    /// `<s>`: probability that each latent is on.
    pub activity: &'e [T],
    /// `<s.z>`: posterior mean of each source.
    pub mean: &'e [T],
    /// Posterior variance of each source.
    pub variance: &'e [T],
    /// Latents that are on in the most probable state, ascending.
    pub map_latents: &'e [u16],
    /// Their coefficients in that state.
    pub map_values: &'e [T],
    /// ln of the sum of p(y, s) over the kept states; of a sampled posterior a lower bound, that of the best state alone:
    /// see [`crate::gibbs`].
    pub evidence: T,
    /// Of a mixture the squared distance of the sample from each component, (y - W_c)^T Sigma_c^-1 (y - W_c): exact for `selected`, for
    /// the others as far as their scores tell; empty for other kinds.
    pub distance: &'e [T],
    /// `<(s.z)(s.z)^T>` over `selected`, a square; empty unless asked for ([`Detail::SecondMoments`]).
    pub second: &'e [T],
    /// `<g>` with g = W^T Sigma^-1 (y - W (s.z)) where s is on, over `selected`: how a slab's mean would have to move;
    /// empty unless asked for ([`Detail::SlabPull`]).
    pub pull: &'e [T],
    /// `<g g^T>` less what the noise alone would give, W^T C^-1 W with C = Sigma + W Psi W^T, a square.
    pub pull_second: &'e [T],
}

impl<'m, T: Real> Inference<'m, T> {
    /// Puts a model and memory of [`arena_len`] numbers together. Kinds that can only be sampled are, with the settings of
    /// [`Engine::of_kind`]. A model whose points are coefficients of a transform is refused: samples mean nothing to it, and
    /// [`crate::stream::Stream`] makes its points of them. The other constructors take it, for coefficients made elsewhere.
    pub fn new(model: Model<'m, T>, memory: &'m mut [T]) -> Result<Self, Error> {
        if model.is_transformed {
            return Err(Error::Transformed);
        }
        Self::with_detail(model, memory, Detail::Marginals)
    }

    /// [`Inference::new`], reporting as much as `detail` says.
    pub fn with_detail(model: Model<'m, T>, memory: &'m mut [T], detail: Detail) -> Result<Self, Error> {
        Self::with_engine(model, memory, detail, Engine::of_kind(model.shape.kind))
    }

    /// [`Inference::with_detail`] by another engine. Sampling needs [`crate::gibbs_arena_len`] numbers, and a slab without
    /// correlations.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// use spikelet::{Detail, Engine, Gibbs, Inference, Kind};
    /// let mut memory = [0.0f32; 256];
    /// let engine = Engine::Gibbs(Gibbs { seed: 1, ..Gibbs::new(Kind::Gsc, 200) });
    /// let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
    /// let estimate = inference.infer(&[0.0, 2.0]).unwrap();
    /// assert!(estimate.activity[0] < 0.1 && estimate.activity[1] > 0.9);
    /// ```
    pub fn with_engine(
        model: Model<'m, T>,
        memory: &'m mut [T],
        detail: Detail,
        engine: Engine,
    ) -> Result<Self, Error> {
        let memory = cut(&model, memory, detail, engine)?;
        Ok(Self { model: Held::Own(model), engine, memory, state: Held::Own(State::default()) })
    }

    /// [`Inference::new`] over a model and a state that live elsewhere, those of an earlier sample for instance: neither is
    /// copied, so this costs little per sample.
    #[inline(never)]
    pub fn over(
        model: &'m Model<'m, T>,
        engine: Engine,
        memory: &'m mut [T],
        state: &'m mut State<T>,
    ) -> Result<Self, Error> {
        let memory = cut(model, memory, Detail::Marginals, engine)?;
        Ok(Self { model: Held::Lent(model), engine, memory, state: Held::Lent(state) })
    }

    /// How it infers.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Makes the next sample number `number`. They are counted from 0; a sampler's random numbers depend on the seed and on
    /// this, so that any sample of a stream can be inferred by itself.
    pub fn seek(&mut self, number: u64) {
        self.state.get_mut().number = number;
    }

    /// The model.
    pub fn model(&self) -> &Model<'m, T> {
        self.model.get()
    }

    /// The whole way for one sample of D entries.
    pub fn infer(&mut self, sample: &[T]) -> Result<Estimate<'_, T>, Error> {
        self.project(sample)?;
        self.select();
        self.posterior()
    }

    /// [`Inference::infer`] for a sample of integers, `step` times these: see [`Inference::project_i16`].
    pub fn infer_i16(&mut self, sample: &[i16], step: T) -> Result<Estimate<'_, T>, Error> {
        self.project_i16(sample, step)?;
        self.select();
        self.posterior()
    }

    /// First stage: checks the sample and projects it on the dictionary.
    pub fn project(&mut self, sample: &[T]) -> Result<(), Error> {
        self.accept(sample)?;
        self.work(None);
        Ok(())
    }

    /// [`Inference::project`] for a sample of integers, from an ADC or a sound file: `step` times these. Where the
    /// dictionary is one of integers too and the noise is the same in all dimensions, they are multiplied as they are, as
    /// far as they fit ([`crate::model::Integers`]).
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// # let mut memory = [0.0f32; 256];
    /// # let mut inference = spikelet::Inference::new(model, &mut memory).unwrap();
    /// inference.project_i16(&[0, 16384], 1.0 / 8192.0).unwrap(); // the sample [0.0, 2.0]
    /// inference.select();
    /// assert!(inference.posterior().unwrap().activity[1] > 0.9);
    /// ```
    pub fn project_i16(&mut self, sample: &[i16], step: T) -> Result<(), Error> {
        let expected = self.model.get().shape.dims;
        if sample.len() != expected {
            return Err(Error::SampleLength { expected, found: sample.len() });
        }
        // The largest there can be: whether a step is possible does not depend on the sample.
        if !(step > T::ZERO && (step * T::from_i32(-32768)).is_finite()) {
            return Err(Error::Setting { field: "step" });
        }
        for (y, &integer) in self.memory.sample.iter_mut().zip(sample) {
            *y = T::from_i32(i32::from(integer)) * step;
        }
        self.work(Some((sample, step)));
        Ok(())
    }

    /// The projection of the sample in memory; or all that there is to infer from it, where that is done in integers.
    #[inline(always)]
    fn work(&mut self, given: Option<(&[i16], T)>) {
        Count::Samples.add(1);
        let wants_integers = self.wants_integers();
        let (model, state) = (self.model.get(), self.state.get_mut());
        // The one place that tells integers from floats: a sample goes all of its way in one of them.
        state.is_fixed = wants_integers && fixed::infer(model, &mut self.memory, state, given);
        if FIXED && state.is_fixed || !FLOATS {
            return;
        }
        let Memory { sample, weighted, projection, .. } = &mut self.memory;
        state.energy = weigh(&model.noise, sample, weighted);
        project_sample(model, sample, given, weighted, projection);
    }

    /// Whether samples are inferred in integers, as far as they can be. (More than marginals needs floats.)
    #[inline(always)]
    fn wants_integers(&self) -> bool {
        FIXED
            && self.model.get().fixed.is_some()
            && matches!(self.engine, Engine::Truncated)
            && self.memory.second.is_empty()
    }

    /// For tests: whether the last sample was inferred in integers.
    #[doc(hidden)]
    pub fn is_fixed(&self) -> bool {
        self.state.view().is_fixed
    }

    /// First stage, its work done elsewhere (for many samples at once, by a matrix product): takes
    /// b = W^T Sigma^-1 y and y^T Sigma^-1 y. Where samples are inferred in integers, it is done all the same.
    pub fn projected(&mut self, sample: &[T], projection: &[T], energy: T) -> Result<(), Error> {
        self.accept(sample)?;
        let expected = self.model.get().shape.latents;
        if projection.len() != expected {
            return Err(Error::SampleLength { expected, found: projection.len() });
        }
        if self.wants_integers() {
            self.work(None);
            return Ok(());
        }
        copy(self.memory.projection, projection);
        let state = self.state.get_mut();
        (state.energy, state.is_fixed) = (energy, false);
        Ok(())
    }

    /// Checks and keeps a sample.
    #[inline(always)]
    fn accept(&mut self, sample: &[T]) -> Result<(), Error> {
        let expected = self.model.get().shape.dims;
        if sample.len() != expected {
            return Err(Error::SampleLength { expected, found: sample.len() });
        }
        Count::Accepted.add(sample.len());
        for (index, (slot, &y)) in self.memory.sample.iter_mut().zip(sample).enumerate() {
            if !y.is_finite() {
                return Err(Error::SampleNotFinite { index });
            }
            *slot = y;
        }
        Ok(())
    }

    /// Second stage: the latents that the sample speaks for, and with adaptive states the reference.
    pub fn select(&mut self) {
        let (model, memory, state) = (self.model.get(), &mut self.memory, self.state.get_mut());
        if FIXED && state.is_fixed || !FLOATS {
            return;
        }
        state.expanded = 0;
        if model.shape.kind.is_mixture() {
            return mixture::select(model, memory, state);
        }
        let is_sampled = GIBBS && matches!(self.engine, Engine::Gibbs(_));
        if !is_sampled && (!SUBSETS || matches!(model.shape.states, States::Adaptive { .. })) {
            return adaptive::select(model, memory, state);
        }
        score(model, memory.sample, memory.projection, memory.activity);
        top(memory.activity, model.shape.selected, memory.column, &mut state.latents);
        if GIBBS && let Engine::Gibbs(settings) = &self.engine {
            gibbs::select_extra(model, settings, state);
        }
    }

    /// Third stage: the posterior over the kept states.
    #[inline(always)]
    pub fn posterior(&mut self) -> Result<Estimate<'_, T>, Error> {
        self.draw(|_| {})
    }

    /// [`Inference::posterior`], showing every draw that counts; there are none where all states are looked at.
    #[inline(always)]
    pub fn draw(&mut self, mut visit: impl FnMut(Draw<'_, T>)) -> Result<Estimate<'_, T>, Error> {
        let (model, memory, state) = (self.model.get(), &mut self.memory, self.state.get_mut());
        if FIXED && state.is_fixed {
            state.number = state.number.wrapping_add(1);
            return Ok(self.estimate());
        }
        if !FLOATS {
            self.forget();
            return Err(Error::OutOfRange);
        }
        // The one place that tells engines apart.
        match (&self.engine, model.shape.states) {
            _ if model.shape.kind.is_mixture() => mixture::posterior(model, memory, state),
            (Engine::Gibbs(settings), _) if GIBBS => {
                gibbs::posterior(model, settings, memory, state, &mut visit)
            }
            (_, States::Subsets | States::Table) if SUBSETS => subsets::posterior(model, memory, state),
            _ => adaptive::posterior(model, memory, state),
        }
        state.number = state.number.wrapping_add(1);
        Count::Cleared.add(model.shape.latents);
        let rest = state.sound + state.evidence * T::ZERO;
        if rest != T::ZERO {
            self.forget();
            return Err(Error::OutOfRange);
        }
        Ok(self.estimate())
    }

    /// Resets the state: the next sample is number 0, and there are no results.
    pub fn reset(&mut self) {
        self.forget();
        *self.state.get_mut() = State::default();
    }

    /// No results rather than wrong ones.
    fn forget(&mut self) {
        let Memory { activity, mean, variance, distance, map_values, second, clean, .. } = &mut self.memory;
        for values in [activity, mean, variance, distance, map_values, second, clean] {
            values.fill(T::ZERO);
        }
        let state = self.state.get_mut();
        state.map.clear();
        state.latents.clear();
        (state.evidence, state.expanded) = (T::ZERO, 0);
    }

    /// The results of the last sample.
    #[inline(always)]
    pub fn estimate(&self) -> Estimate<'_, T> {
        let (memory, state) = (&self.memory, self.state.view());
        let n = state.latents.len();
        Estimate {
            selected: &state.latents,
            activity: memory.activity,
            mean: memory.mean,
            variance: memory.variance,
            map_latents: &state.map,
            map_values: memory.map_values.get(..state.map.len()).unwrap_or(&[]),
            evidence: state.evidence,
            distance: memory.distance,
            second: memory.second.get(..n * n).unwrap_or(&[]),
            pull: memory.pull,
            pull_second: memory.pull_second,
        }
    }

    /// The exact conditional of one latent of a sample with the others at `values` (H, zero where they are off), as a
    /// sampler draws from it; `below` becomes the probability of a value no larger than each of `points`. For looking at: a
    /// sampler uses no more than a few numbers of it. At most H' of the values may be other than zero. What was inferred is
    /// forgotten.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// # use spikelet::{Detail, Engine, Gibbs, Inference, Kind};
    /// # let mut memory = [0.0f32; 256];
    /// # let engine = Engine::Gibbs(Gibbs::new(Kind::Gsc, 1));
    /// # let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
    /// let mut below = [0.0];
    /// let found = inference.conditional(&[0.0, 2.0], &[0.0, 0.0], 1, &[0.0], &mut below).unwrap();
    /// assert!((found.mean - 2.0 / 1.01).abs() < 1e-6 && found.log_odds > 100.0 && below[0] < 1e-6);
    /// ```
    pub fn conditional(
        &mut self,
        sample: &[T],
        values: &[T],
        latent: u16,
        points: &[T],
        below: &mut [T],
    ) -> Result<Conditional<T>, Error> {
        let expected = self.model.get().shape.latents;
        if !GIBBS || matches!(self.engine, Engine::Truncated) {
            return Err(Error::Setting { field: "engine" });
        }
        if values.len() != expected || usize::from(latent) >= expected {
            return Err(Error::SampleLength { expected, found: values.len() });
        }
        self.project(sample)?;
        self.forget();
        gibbs::conditional(self.model.get(), &mut self.memory, values, latent, points, below)
    }

    /// Visits every kept state of the last sample, right after [`Inference::posterior`]: the latents that are on, in no
    /// particular order, and its probability. This walks all states once more, without allocating. A sampled posterior has no
    /// list of states ([`Inference::draw`] shows draws): nothing is visited.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// # let mut memory = [0.0f32; 256];
    /// # let mut inference = spikelet::Inference::new(model, &mut memory).unwrap();
    /// inference.infer(&[0.3, 0.4]).unwrap();
    /// let (mut states, mut second_is_on) = (0, 0.0);
    /// inference.for_each_state(|latents, probability| {
    ///     states += 1;
    ///     second_is_on += if latents.contains(&1) { probability } else { 0.0 };
    /// });
    /// assert_eq!(states, 4);
    /// assert!((second_is_on - inference.estimate().activity[1]).abs() < 1e-5);
    /// ```
    pub fn for_each_state(&mut self, mut visit: impl FnMut(&[u16], T)) {
        self.visit_states::<false>(&mut visit);
    }

    /// The same. `MAXIMAL`: the caller knows that latents are maximal causes, so that firmware links neither tables nor fixed point for it.
    fn visit_states<const MAXIMAL: bool>(&mut self, visit: &mut dyn FnMut(&[u16], T)) {
        let (model, memory, state) = (self.model.get(), &mut self.memory, self.state.get_mut());
        if !FLOATS || state.latents.is_empty() || GIBBS && matches!(self.engine, Engine::Gibbs(_)) {
            return;
        }
        if model.shape.kind.is_mixture() {
            return mixture::each_state(model, memory, state, visit);
        }
        if FIXED && !MAXIMAL && state.is_fixed {
            // States are looked at in floats, which this sample has none of yet.
            weigh(&model.noise, memory.sample, memory.weighted);
            project_sample(model, memory.sample, None, memory.weighted, memory.projection);
            if matches!(model.shape.states, States::Adaptive { .. }) {
                adaptive::begin_anew(model, memory, state);
            }
        }
        let mut path = Path::new();
        match model.shape.states {
            States::Subsets | States::Table if SUBSETS => {
                subsets::each_state::<T, MAXIMAL>(model, memory, state, &mut path, visit)
            }
            _ => adaptive::each_state(model, memory, state, &mut path, visit),
        }
    }

    /// The last sample without its noise: W `<s.z>`, or the mean of the maximum over all states for maximal causes
    /// (another walk, unless it was sampled). `out` has D entries.
    pub fn reconstruct(&mut self, out: &mut [T]) -> Result<(), Error> {
        let expected = self.model.get().shape.dims;
        if out.len() != expected {
            return Err(Error::SampleLength { expected, found: out.len() });
        }
        if !self.memory.clean.is_empty() {
            copy(out, self.memory.clean);
            return Ok(());
        }
        if self.model.get().shape.kind.family() != Family::Maximal {
            self.model.get().reconstruct(self.memory.mean, out);
            return Ok(());
        }
        out.fill(T::ZERO);
        let model = *self.model.get();
        self.visit_states::<true>(&mut |latents, probability| {
            if !(probability > T::ZERO) {
                return;
            }
            for (d, out) in out.iter_mut().enumerate() {
                let strengths = latents.iter().map(|&latent| model.entry(d, usize::from(latent)));
                *out += probability * strengths.fold(T::ZERO, T::max);
            }
        });
        Ok(())
    }
}

/// Memory for an engine that fits the model. In line: its many slices are then put where they stay.
#[inline(always)]
fn cut<'m, T: Real>(
    model: &Model<'m, T>,
    memory: &'m mut [T],
    detail: Detail,
    engine: Engine,
) -> Result<Memory<'m, T>, Error> {
    if !DETAIL && detail != Detail::Marginals {
        return Err(Error::Setting { field: "detail" });
    }
    let is_sampled = match engine {
        Engine::Truncated if model.shape.kind.is_sampled() => return Err(Error::Setting { field: "engine" }),
        Engine::Gibbs(_)
            if !GIBBS
                || model.has_full_slab()
                || model.shape.kind.is_mixture()
                || detail == Detail::SlabPull =>
        {
            return Err(Error::Setting { field: "engine" });
        }
        Engine::Gibbs(settings) => {
            settings.check(&model.shape)?;
            true
        }
        Engine::Truncated => false,
    };
    let method = if GIBBS && is_sampled { Method::Sampled } else { Method::Enumerated };
    Memory::new(memory, model.shape, detail, method)
}

impl<T: Real> Model<'_, T> {
    /// Numbers of memory that [`Inference::new`] asks for.
    pub fn arena_len(&self) -> usize {
        arena_len(self.shape, Detail::Marginals)
    }
}
