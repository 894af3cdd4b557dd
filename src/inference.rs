//! One sample through all stages: project, select, posterior.

use crate::arena::{Arena, Detail, arena_len};
use crate::error::Error;
use crate::found::Found;
use crate::math::Real;
use crate::model::{Kind, Model, Selection};
use crate::project::{project, weigh};
use crate::select::{score, singleton_scores, top};
use crate::slices::copy;
use crate::states::Path;
use crate::{slab, switched};
use core::borrow::BorrowMut;

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
pub struct Inference<'m, T, F = Found<T>> {
    model: Model<'m, T>,
    arena: Arena<'m, T>,
    found: F,
}

/// The posterior of one sample. H entries where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Estimate<'e, T> {
    /// The H' preselected latents, best first.
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
    /// ln of the sum of p(y, s) over the kept states.
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
    /// Puts a model and memory of [`arena_len`] numbers together.
    pub fn new(model: Model<'m, T>, memory: &'m mut [T]) -> Result<Self, Error> {
        Self::with_detail(model, memory, Detail::Marginals)
    }

    /// [`Inference::new`], reporting as much as `detail` says.
    pub fn with_detail(model: Model<'m, T>, memory: &'m mut [T], detail: Detail) -> Result<Self, Error> {
        let arena = Arena::new(memory, model.shape, detail)?;
        Ok(Self { model, arena, found: Found::default() })
    }
}

impl<'m, T: Real, F: BorrowMut<Found<T>>> Inference<'m, T, F> {
    /// [`Inference::new`] over results that live elsewhere, those of an earlier sample for instance:
    /// nothing is copied, so this costs next to nothing per sample.
    pub fn over(model: Model<'m, T>, memory: &'m mut [T], found: F) -> Result<Self, Error> {
        let arena = Arena::new(memory, model.shape, Detail::Marginals)?;
        Ok(Self { model, arena, found })
    }

    /// The model.
    pub fn model(&self) -> &Model<'m, T> {
        &self.model
    }

    /// The whole way for one sample of D entries.
    pub fn infer(&mut self, sample: &[T]) -> Result<Estimate<'_, T>, Error> {
        self.project(sample)?;
        self.select();
        self.posterior()
    }

    /// First stage: checks the sample and projects it on the dictionary.
    pub fn project(&mut self, sample: &[T]) -> Result<(), Error> {
        self.accept(sample)?;
        self.found.borrow_mut().energy = weigh(&self.model.noise, self.arena.sample, self.arena.weighted);
        project(self.model.dictionary, self.arena.weighted, self.arena.projection);
        Ok(())
    }

    /// First stage, its work done elsewhere (for many samples at once, by a matrix product): takes
    /// b = W^T Sigma^-1 y and y^T Sigma^-1 y.
    pub fn projected(&mut self, sample: &[T], projection: &[T], energy: T) -> Result<(), Error> {
        self.accept(sample)?;
        let expected = self.model.shape.latents;
        if projection.len() != expected {
            return Err(Error::SampleLength { expected, found: projection.len() });
        }
        copy(self.arena.projection, projection);
        self.found.borrow_mut().energy = energy;
        Ok(())
    }

    /// Checks and keeps a sample.
    fn accept(&mut self, sample: &[T]) -> Result<(), Error> {
        let expected = self.model.shape.dims;
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
        let (model, arena, found) = (&self.model, &mut self.arena, self.found.borrow_mut());
        score(model, arena.sample, arena.projection, arena.activity);
        top(arena.activity, model.shape.selected, arena.block.b, &mut found.selected);
        found.order.clear();
        if model.shape.singletons && !matches!(model.selection, Selection::Singleton) {
            singleton_scores(model, arena.projection, arena.activity);
        }
    }

    /// Third stage: the posterior over the kept states.
    pub fn posterior(&mut self) -> Result<Estimate<'_, T>, Error> {
        let (model, arena, found) = (&self.model, &mut self.arena, self.found.borrow_mut());
        // The one place that tells kinds apart from here on.
        match model.shape.kind.has_slab() {
            true => slab::posterior(model, arena, found),
            false => switched::posterior(model, arena, found),
        }
        let all = arena.mean.iter().chain(arena.variance.iter()).chain(arena.map_values.iter());
        if !found.evidence.is_finite() || all.into_iter().any(|value| !value.is_finite()) {
            self.forget();
            return Err(Error::OutOfRange);
        }
        Ok(self.estimate())
    }

    /// No results rather than wrong ones.
    fn forget(&mut self) {
        let (arena, found) = (&mut self.arena, self.found.borrow_mut());
        for values in [&mut *arena.activity, arena.mean, arena.variance, arena.map_values, arena.sums.second]
        {
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

    /// Visits every kept state of the last sample, right after [`Inference::posterior`]: the latents that are on, in no
    /// particular order, and its probability. This walks all states once more, without allocating.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// # let mut memory = [0.0f32; 256];
    /// # let mut inference = spikelet::Inference::new(model, &mut memory).unwrap();
    /// inference.infer(&[0.0, 2.0]).unwrap();
    /// let (mut states, mut second_is_on) = (0, 0.0);
    /// inference.for_each_state(|latents, probability| {
    ///     states += 1;
    ///     second_is_on += if latents.contains(&1) { probability } else { 0.0 };
    /// });
    /// assert_eq!(states, 4);
    /// assert!((second_is_on - inference.estimate().activity[1]).abs() < 1e-5);
    /// ```
    pub fn for_each_state(&mut self, mut visit: impl FnMut(&[u16], T)) {
        let (model, arena, found) = (&self.model, &mut self.arena, self.found.borrow());
        if found.order.is_empty() {
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
        match model.shape.kind.has_slab() {
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
    /// (another walk). `out` has D entries.
    pub fn reconstruct(&mut self, out: &mut [T]) -> Result<(), Error> {
        let expected = self.model.shape.dims;
        if out.len() != expected {
            return Err(Error::SampleLength { expected, found: out.len() });
        }
        if self.model.shape.kind != Kind::Mca {
            self.model.reconstruct(self.arena.mean, out);
            return Ok(());
        }
        out.fill(T::ZERO);
        let model = self.model;
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
    /// Numbers of memory that [`Inference::new`] asks for.
    pub fn arena_len(&self) -> usize {
        arena_len(self.shape, Detail::Marginals)
    }
}
