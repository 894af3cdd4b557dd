//! One sample through all stages: project, select, posterior.

use crate::arena::{Arena, Detail, arena_len};
use crate::engine::Engine;
use crate::error::Error;
use crate::features::{DEEP, DETAIL, FIXED, FLOAT_SLAB, FLOATS, GIBBS, has_slab, is_maximal, is_sampled};
use crate::fixed;
use crate::found::Found;
use crate::gibbs::{self, Conditional, Draw};
use crate::kept::serves;
use crate::math::Real;
use crate::model::{Kind, Model, Selection, States};
use crate::select::{score, singleton_scores, top};
use crate::slices::copy;
use crate::states::Path;
use crate::{slab, switched};
use core::borrow::{Borrow, BorrowMut};

/// Inference for one stream of samples: a model, memory, and the results of the last sample.
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
pub struct Inference<'m, T, F = Found<T>, M = Model<'m, T>> {
    model: M,
    engine: Engine,
    arena: Arena<'m, T>,
    found: F,
}

/// The posterior of one sample. H entries where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Estimate<'e, T> {
    /// The H' preselected latents, best first; those that a sampler chose at random come last.
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
    /// The preselected latents in the order of `second`.
    pub order: &'e [u16],
    /// `<(s.z)(s.z)^T>` over `order`, H' x H'; empty unless asked for ([`Detail::SecondMoments`]).
    pub second: &'e [T],
    /// `<g>` with g = W^T Sigma^-1 (y - W (s.z)) where s is on, over `order`: how a slab's mean would have to move;
    /// empty unless asked for ([`Detail::SlabPull`]).
    pub pull: &'e [T],
    /// `<g g^T>` less what the noise alone would give, W^T C^-1 W with C = Sigma + W Psi W^T, H' x H'.
    pub pull_second: &'e [T],
}

impl<'m, T: Real> Inference<'m, T> {
    /// Puts a model and memory of [`arena_len`] numbers together. Kinds that can only be sampled are, with the settings of
    /// [`Engine::of_kind`].
    pub fn new(model: Model<'m, T>, memory: &'m mut [T]) -> Result<Self, Error> {
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
        let arena = cut(&model, memory, detail, engine)?;
        Ok(Self { model, engine, arena, found: Found::default() })
    }
}

/// Memory for an engine that fits the model. In line: its many slices are then put where they stay.
#[inline(always)]
fn cut<'m, T: Real>(
    model: &Model<'m, T>,
    memory: &'m mut [T],
    detail: Detail,
    engine: Engine,
) -> Result<Arena<'m, T>, Error> {
    if !DETAIL && detail != Detail::Marginals {
        return Err(Error::Setting { field: "detail" });
    }
    let is_full = matches!(model.states, States::Table(table) if table.full_slab);
    match engine {
        Engine::Truncated if is_sampled(model.shape.kind) => return Err(Error::Setting { field: "engine" }),
        Engine::Gibbs(_) if !GIBBS || is_full || detail == Detail::SlabPull => {
            return Err(Error::Setting { field: "engine" });
        }
        Engine::Gibbs(settings) => settings.check(&model.shape)?,
        Engine::Truncated if GIBBS && !DEEP && has_slab(model.shape.kind) && !serves(model) => {
            return Err(Error::Setting { field: "engine" });
        }
        Engine::Truncated => {}
    }
    Arena::new(memory, model.shape, detail, GIBBS && matches!(engine, Engine::Gibbs(_)))
}

impl<'m, T: Real, F: BorrowMut<Found<T>>, M: Borrow<Model<'m, T>>> Inference<'m, T, F, M> {
    /// [`Inference::new`] over results, and a model, that live elsewhere, those of an earlier sample for instance:
    /// neither is copied, so this costs little per sample.
    pub fn over(model: M, engine: Engine, memory: &'m mut [T], found: F) -> Result<Self, Error> {
        let arena = cut(model.borrow(), memory, Detail::Marginals, engine)?;
        Ok(Self { model, engine, arena, found })
    }

    /// How it infers.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Makes the next sample number `number`. They are counted from 0; a sampler's random numbers depend on the seed and on
    /// this, so that any sample of a stream can be inferred by itself.
    pub fn seek(&mut self, number: u64) {
        self.found.borrow_mut().number = number;
    }

    /// The model.
    pub fn model(&self) -> &Model<'m, T> {
        self.model.borrow()
    }

    /// The latents whose factors are kept for the next sample (`kept`), for those who count what a sample costs.
    #[doc(hidden)]
    pub fn kept(&self) -> &[u16] {
        &self.found.borrow().kept
    }

    /// For them, too: how often its last sample was searched for the best state, and given a reference.
    #[doc(hidden)]
    pub fn rounds(&self) -> [u8; 2] {
        self.found.borrow().rounds
    }

    /// For them, too: whether its last sample was inferred in integers.
    #[doc(hidden)]
    pub fn is_fixed(&self) -> bool {
        self.found.borrow().is_fixed
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
        let expected = self.model.borrow().shape.dims;
        if sample.len() != expected {
            return Err(Error::SampleLength { expected, found: sample.len() });
        }
        // The largest there can be: whether a step is possible does not depend on the sample.
        if !(step > T::ZERO && (step * T::from_i32(-32768)).is_finite()) {
            return Err(Error::Setting { field: "step" });
        }
        for (y, &integer) in self.arena.sample.iter_mut().zip(sample) {
            *y = T::from_i32(i32::from(integer)) * step;
        }
        self.work(Some((sample, step)));
        Ok(())
    }

    /// Whether samples are inferred in integers, as far as they can be. (More than marginals needs floats.)
    fn wants_integers(&self) -> bool {
        FIXED
            && self.model.borrow().fixed.is_some()
            && matches!(self.engine, Engine::Truncated)
            && self.arena.sums.second.is_empty()
    }

    /// The projection of the sample in the arena.
    fn work(&mut self, integers: Option<(&[i16], T)>) {
        let wants_integers = self.wants_integers();
        let (model, found) = (self.model.borrow(), self.found.borrow_mut());
        found.is_fixed = false;
        if wants_integers && let Some(energy) = fixed::project(model, &mut self.arena, integers) {
            (found.is_fixed, found.energy) = (true, energy);
        } else if FLOATS {
            found.energy = self.arena.project(model, integers);
        }
    }

    /// First stage, its work done elsewhere (for many samples at once, by a matrix product): takes
    /// b = W^T Sigma^-1 y and y^T Sigma^-1 y. Where samples are inferred in integers, it is done all the same.
    pub fn projected(&mut self, sample: &[T], projection: &[T], energy: T) -> Result<(), Error> {
        self.accept(sample)?;
        let expected = self.model.borrow().shape.latents;
        if projection.len() != expected {
            return Err(Error::SampleLength { expected, found: projection.len() });
        }
        if self.wants_integers() {
            self.work(None);
            return Ok(());
        }
        copy(self.arena.projection, projection);
        let found = self.found.borrow_mut();
        (found.energy, found.is_fixed) = (energy, false);
        Ok(())
    }

    /// Checks and keeps a sample.
    fn accept(&mut self, sample: &[T]) -> Result<(), Error> {
        let expected = self.model.borrow().shape.dims;
        if sample.len() != expected {
            return Err(Error::SampleLength { expected, found: sample.len() });
        }
        if let Some(index) = sample.iter().position(|y| !y.is_finite()) {
            return Err(Error::SampleNotFinite { index });
        }
        copy(self.arena.sample, sample);
        Ok(())
    }

    /// Second stage: the H' latents that the sample speaks for most.
    pub fn select(&mut self) {
        let (model, arena, found) = (self.model.borrow(), &mut self.arena, self.found.borrow_mut());
        if FIXED && found.is_fixed {
            return fixed::select(model, arena, found);
        }
        if !FLOATS {
            return;
        }
        score(model, arena.sample, arena.projection, arena.activity);
        top(arena.activity, model.shape.selected, arena.block.b, &mut found.selected);
        found.order.clear();
        if GIBBS && let Engine::Gibbs(settings) = &self.engine {
            gibbs::select_extra(model, settings, found);
            return;
        }
        if model.shape.singletons && !matches!(model.selection, Selection::Singleton) {
            singleton_scores(model, arena.projection, arena.activity);
        }
    }

    /// Third stage: the posterior over the kept states.
    pub fn posterior(&mut self) -> Result<Estimate<'_, T>, Error> {
        self.draw(|_| {})
    }

    /// [`Inference::posterior`], showing every draw that counts; there are none where all states are looked at.
    pub fn draw(&mut self, visit: impl FnMut(Draw<'_, T>)) -> Result<Estimate<'_, T>, Error> {
        if FIXED && self.found.borrow().is_fixed && self.is_found_in_integers() {
            let found = self.found.borrow_mut();
            found.number = found.number.wrapping_add(1);
            return Ok(self.estimate());
        }
        let (model, arena, found) = (self.model.borrow(), &mut self.arena, self.found.borrow_mut());
        // The one place that tells engines and kinds apart from here on.
        let mut is_found = true;
        match (&self.engine, has_slab(model.shape.kind)) {
            (Engine::Gibbs(settings), _) if GIBBS => gibbs::posterior(model, settings, arena, found, visit),
            (_, true) => is_found = FLOAT_SLAB && slab::posterior(model, arena, found),
            (_, false) => switched::posterior(model, arena, found),
        }
        found.number = found.number.wrapping_add(1);
        // Zero times what is not finite is not zero.
        let mut rest = found.evidence * T::ZERO;
        let map_values = arena.map_values.get(..found.map.len()).unwrap_or(&[]);
        for values in [&*arena.mean, arena.variance, map_values] {
            values.iter().for_each(|&value| rest += value * T::ZERO);
        }
        if rest != T::ZERO || !is_found {
            self.forget();
            return Err(Error::OutOfRange);
        }
        Ok(self.estimate())
    }

    /// The posterior in integers; if a sample turns out to be nothing for them, it is projected and selected in floats.
    #[inline(never)]
    fn is_found_in_integers(&mut self) -> bool {
        let (model, arena, found) = (self.model.borrow(), &mut self.arena, self.found.borrow_mut());
        if fixed::posterior(model, arena, found) {
            return true;
        }
        found.is_fixed = false;
        if FLOATS {
            found.energy = arena.project(model, None);
            self.select();
        }
        false
    }

    /// Begins anew: the next sample is number 0, and there are no results.
    pub fn reset(&mut self) {
        self.forget();
        *self.found.borrow_mut() = Found::default();
    }

    /// No results rather than wrong ones.
    fn forget(&mut self) {
        let (arena, found) = (&mut self.arena, self.found.borrow_mut());
        let Arena { activity, mean, variance, map_values, sums, chain, .. } = arena;
        for values in [activity, mean, variance, map_values, &mut sums.second, &mut chain.clean] {
            values.fill(T::ZERO);
        }
        found.map.clear();
        found.order.clear();
        found.evidence = T::ZERO;
    }

    /// The results of the last sample.
    pub fn estimate(&self) -> Estimate<'_, T> {
        let found = self.found.borrow();
        Estimate {
            selected: &found.selected,
            activity: self.arena.activity,
            mean: self.arena.mean,
            variance: self.arena.variance,
            map_latents: &found.map,
            map_values: self.arena.map_values.get(..found.map.len()).unwrap_or(&[]),
            evidence: found.evidence,
            order: &found.order,
            second: self.arena.sums.second,
            pull: self.arena.sums.pull,
            pull_second: self.arena.sums.pull_second,
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
        let expected = self.model.borrow().shape.latents;
        if !GIBBS || matches!(self.engine, Engine::Truncated) {
            return Err(Error::Setting { field: "engine" });
        }
        if values.len() != expected || usize::from(latent) >= expected {
            return Err(Error::SampleLength { expected, found: values.len() });
        }
        self.project(sample)?;
        self.forget();
        gibbs::conditional(self.model.borrow(), &mut self.arena, values, latent, points, below)
    }

    /// Visits every kept state of the last sample, right after [`Inference::posterior`]: the latents that are on, in no
    /// particular order, and its probability. This walks all states once more, without allocating. A sampled posterior has no
    /// list of states ([`Inference::draw`] shows draws): nothing is visited. After a sample in integers this is in floats: of loud
    /// ones the probabilities add up to one but for 0.02.
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
        let (model, arena, found) = (self.model.borrow(), &mut self.arena, self.found.borrow());
        if found.order.is_empty() || GIBBS && matches!(self.engine, Engine::Gibbs(_)) {
            return;
        }
        let visit_positions = |path: &[u16], log_joint: T| {
            let latent = |&p: &u16| found.order.get(usize::from(p)).copied().unwrap_or_default();
            let mut latents = Path::new();
            for position in path {
                let _ = latents.push(latent(position)); // no longer than the path
            }
            visit(&latents, (log_joint - found.log_sum).exp());
        };
        match has_slab(model.shape.kind) {
            true => slab::each_state(model, arena, found, visit_positions),
            false => switched::each_state(model, arena, found, visit_positions),
        }
        if model.shape.singletons {
            // A latent that was not selected is on in one state only.
            for (latent, &probability) in (0u16..).zip(arena.activity.iter()) {
                if !found.order.contains(&latent) {
                    visit(&[latent], probability);
                }
            }
        }
    }

    /// The last sample without its noise: W `<s.z>`, or the mean of the maximum over all states for maximal causes
    /// (another walk, unless it was sampled). `out` has D entries.
    pub fn reconstruct(&mut self, out: &mut [T]) -> Result<(), Error> {
        let expected = self.model.borrow().shape.dims;
        if out.len() != expected {
            return Err(Error::SampleLength { expected, found: out.len() });
        }
        if !self.arena.chain.clean.is_empty() {
            copy(out, self.arena.chain.clean);
            return Ok(());
        }
        if !is_maximal(self.model.borrow().shape.kind) {
            self.model.borrow().reconstruct(self.arena.mean, out);
            return Ok(());
        }
        out.fill(T::ZERO);
        let model = *self.model.borrow();
        self.for_each_state(|latents, probability| {
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

impl<T: Real> Model<'_, T> {
    /// Whether factors of states are kept for the next sample, as they are where states are few.
    pub fn keeps_factors(&self) -> bool {
        self.shape.kind == Kind::Gsc && serves(self)
    }

    /// Numbers of memory that [`Inference::new`] asks for.
    pub fn arena_len(&self) -> usize {
        arena_len(self.shape, Detail::Marginals)
    }
}
