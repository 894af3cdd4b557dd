//! One sample through all stages: project, select, posterior.

use crate::arena::{Arena, BlockMemory, Detail, SumMemory, arena_len};
use crate::block::Block;
use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::core_set::CoreSet;
use crate::error::Error;
use crate::factor::Factor;
use crate::grown::{BranchMemory, Grown};
use crate::map::{best_values, to_latents};
use crate::math::Real;
use crate::model::{Model, Selection, States};
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::project::{project, weigh};
use crate::reference::{PASSES, Scratch, leave, refine};
use crate::select::{score, singletons, top};
use crate::slices::{copy, set};
use crate::table::Tabled;
use core::borrow::BorrowMut;
use heapless::Vec;

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

/// The part of the results that is not in the memory. Plain data: with the model and the memory it is
/// all the state there is, and it can be copied.
#[derive(Clone, Debug)]
pub struct Found<T> {
    selected: Vec<u16, MAX_SELECTED>,
    order: Vec<u16, MAX_SELECTED>,
    map: Vec<u16, MAX_ACTIVE>,
    energy: T,
    evidence: T,
}

impl<T: Real> Default for Found<T> {
    fn default() -> Self {
        let (selected, order, map) = (Vec::new(), Vec::new(), Vec::new());
        Self { selected, order, map, energy: T::ZERO, evidence: T::ZERO }
    }
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
        if model.shape.singletons && !matches!(model.selection, Selection::Singleton) {
            for (score, state) in arena.activity.iter_mut().zip(singletons(model, arena.projection)) {
                *score = state.score;
            }
        }
    }

    /// Third stage: the posterior over the kept states.
    pub fn posterior(&mut self) -> Result<Estimate<'_, T>, Error> {
        let (model, arena, found) = (&self.model, &mut self.arena, self.found.borrow_mut());
        let order = match model.states {
            // Siblings are visited from the last position down: the best latents go last.
            States::Grown => reversed(&found.selected),
            States::Table(_) => sorted(&found.selected),
        };
        let mut block = Block::gather(model, order, arena.projection, reborrow_block(&mut arena.block));
        let outside = Outside { model, selected: &found.selected };
        let largest_outside = outside.log_joints(arena.activity);
        let mut energy = found.energy;
        let mut pass = 1;
        let mut sums = loop {
            let work = &mut arena.work;
            let scratch = Scratch {
                factor: Factor { rows: work.rows, pivot_inv: work.pivot_inv, coupling: work.coupling },
                forward: work.v,
                change: arena.map_values,
                rest: arena.sums.first,
            };
            energy = refine(model, &mut block, arena.sample, arena.weighted, scratch, energy);
            let (mut always, mut known) = (0, block.energy_without(u32::MAX));
            if matches!(model.states, States::Grown) {
                let core = CoreSet::find(&block, &model.shape, &mut arena.branches, arena.sums.first);
                (always, known) = (block.add_members(&core.positions), core.known);
                block.put_members_first();
            }
            let anchor = (block.energy_without(u32::MAX) + largest_outside).max(known);
            let mut sums = Sums::new(
                &block,
                anchor,
                model.shape.state_bits(),
                reborrow_sums(&mut arena.sums),
                &mut found.map,
            );
            let max_active = model.shape.max_active;
            match model.states {
                States::Grown => {
                    let BranchMemory { latents, pairs } = &mut arena.branches;
                    let memory = BranchMemory { latents, pairs };
                    Grown::walk_all(&block, always, max_active, memory, &mut sums);
                }
                States::Table(table) => {
                    let latents = model.shape.latents;
                    let mut states = Tabled::new(&block, table, latents, max_active, &mut arena.work);
                    states.walk_all(max_active, &mut sums);
                }
            }
            best_values(model, &block, sums.best_path(), &mut arena.work, arena.map_values);
            if pass >= PASSES || block.is_well_referred(sums.best_path(), arena.map_values) {
                break sums;
            }
            pass += 1;
            block.refer_to(&found.map, arena.map_values);
            energy = leave(model, &mut block, arena.sample, arena.weighted);
        };
        let empty = block.energy_without(u32::MAX);
        let best_outside = outside.add(arena.activity, empty, &mut sums);
        outside.moments(arena.projection, arena.activity, arena.mean, arena.variance, sums.scale());
        for (p, &latent) in block.order.iter().enumerate() {
            let (h, marginal) = (usize::from(latent), sums.marginal(p));
            set(arena.activity, h, marginal.activity);
            set(arena.mean, h, marginal.mean);
            set(arena.variance, h, marginal.variance);
        }
        sums.finish_second();
        found.evidence = model.log_norm - T::HALF * energy + sums.log_sum();
        match best_outside {
            Some(latent) => {
                found.map.clear();
                let _ = found.map.push(latent); // room for one: max_active is at least 1
                if let Some(state) = singletons(model, arena.projection).nth(usize::from(latent)) {
                    set(arena.map_values, 0, state.mean);
                }
            }
            None => to_latents(&mut found.map, arena.map_values, &block.order),
        }
        found.order = block.order;
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

    /// W `<s.z>` of the last sample: the sample without noise. `out` has D entries.
    pub fn reconstruct(&self, out: &mut [T]) -> Result<(), Error> {
        let expected = self.model.shape.dims;
        if out.len() != expected {
            return Err(Error::SampleLength { expected, found: out.len() });
        }
        self.model.reconstruct(self.arena.mean, out);
        Ok(())
    }
}

impl<T: Real> Model<'_, T> {
    /// Numbers of memory that [`Inference::new`] asks for.
    pub fn arena_len(&self) -> usize {
        arena_len(self.shape, Detail::Marginals)
    }
}

/// Ascending copy (H' is small).
fn sorted(latents: &[u16]) -> Vec<u16, MAX_SELECTED> {
    let mut ascending: Vec<u16, MAX_SELECTED> = Vec::new();
    for &latent in latents {
        let mut carried = latent;
        for slot in ascending.iter_mut() {
            if carried < *slot {
                core::mem::swap(slot, &mut carried);
            }
        }
        let _ = ascending.push(carried); // same capacity
    }
    ascending
}

/// Worst first.
fn reversed(latents: &[u16]) -> Vec<u16, MAX_SELECTED> {
    let mut reversed = Vec::new();
    for &latent in latents.iter().rev() {
        let _ = reversed.push(latent); // same capacity
    }
    reversed
}

fn reborrow_block<'x, T>(memory: &'x mut BlockMemory<'_, T>) -> BlockMemory<'x, T> {
    let BlockMemory { gram, b, slab, resting, reference } = memory;
    BlockMemory { gram, b, slab, resting, reference }
}

fn reborrow_sums<'x, T>(memory: &'x mut SumMemory<'_, T>) -> SumMemory<'x, T> {
    let SumMemory { on, off, first, square, second, pull, pull_second, pull_of_state, solved } = memory;
    SumMemory { on, off, first, square, second, pull, pull_second, pull_of_state, solved }
}
