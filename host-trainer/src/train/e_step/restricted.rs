//! A point with the latents it is looked at with given: the model restricted to these goes through the core, and what
//! comes out is told of all latents. The others are off, so this is exact: ln(1 - pi) of all of them is in the model's constant.

use super::job::{Job, Scalar};
use crate::{Error, Result};
use spikelet::gibbs::Draw;
use spikelet::model::{Dictionary, PANEL, Selection, Shape, States};
use spikelet::{Detail, Engine, Estimate, Gibbs, Inference, Model};

/// The latents of every point, chosen beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// (N x H')
    pub latents: &'a [u16],
    /// H'.
    pub each: usize,
}

impl<'a> Sets<'a> {
    /// Of one point.
    pub(super) fn of(&self, point: usize) -> &'a [u16] {
        &self.latents[point * self.each..][..self.each]
    }
}

/// The parts of the model that belong to some latents, and room for results of all.
pub(super) struct Restricted<T> {
    memory: Vec<T>,
    dictionary: Vec<T>,
    prior_logit: Vec<T>,
    slab_mean: Vec<T>,
    slab_precision: Vec<T>,
    gram_diagonal: Vec<T>,
    score_offset: Vec<T>,
    gram: Vec<T>,
    scale: Vec<T>,
    projection: Vec<T>,
    /// What the core said, of the latents in the order of `selected`.
    selected: Vec<u16>,
    second: Vec<T>,
    /// Of all latents. (H)
    activity: Vec<T>,
    mean: Vec<T>,
    variance: Vec<T>,
}

impl<T> Default for Restricted<T> {
    fn default() -> Self {
        let [memory, dictionary, prior_logit, slab_mean, slab_precision, gram_diagonal, score_offset] =
            [(); 7].map(|()| Vec::new());
        let [gram, scale, projection, second, activity, mean, variance] = [(); 7].map(|()| Vec::new());
        Self {
            memory,
            dictionary,
            prior_logit,
            slab_mean,
            slab_precision,
            gram_diagonal,
            score_offset,
            gram,
            scale,
            projection,
            selected: Vec::new(),
            second,
            activity,
            mean,
            variance,
        }
    }
}

impl<T: Scalar> Restricted<T> {
    /// The posterior of point number `point` over states of `latents`.
    pub fn infer(
        &mut self,
        job: &Job<'_, T>,
        model: &Model<'_, T>,
        latents: &[u16],
        (point, sample, b, energy): (usize, &[T], &[T], T),
        detail: Detail,
        mut visit: impl FnMut(Draw<'_, T>),
    ) -> Result<Estimate<'_, T>, Error> {
        let zero = T::from_f64(0.0);
        let h = model.shape.latents;
        // Maximal causes never exceed what is off, which is 0: beside the latents there is one that is never seen.
        let unseen = usize::from(model.shape.kind.is_maximal() && latents.len() < h);
        let shape = Shape {
            latents: latents.len() + unseen,
            selected: latents.len() + unseen,
            max_active: model.shape.max_active.min(latents.len() + unseen),
            singletons: false,
            states: States::Subsets,
            ..model.shape
        };
        self.gather(job, model, latents, b, shape);
        let restricted = Model {
            shape,
            dictionary: Dictionary::Float(&self.dictionary),
            prior_logit: &self.prior_logit,
            slab_mean: &self.slab_mean,
            slab_precision: &self.slab_precision,
            gram_diagonal: &self.gram_diagonal,
            score_offset: &self.score_offset,
            gram: model.gram.map(|_| self.gram.as_slice()),
            // All are selected; scores decide on their order only.
            selection: match model.selection {
                Selection::Cosine { .. } => Selection::Cosine { scale: &self.scale },
                Selection::Bound => Selection::Bound,
                Selection::Singleton | Selection::Independent { .. } | Selection::Learned { .. } => {
                    Selection::Singleton
                }
            },
            table: None,
            fixed: None,
            ..*model
        };
        let engine = match job.engine {
            Engine::Gibbs(settings) => Engine::Gibbs(Gibbs { extra: 0, ..settings }),
            other => other,
        };
        let refused = |error| Error::input(error, format_args!("point {point}"), super::lane::ADVICE);
        self.memory.resize(engine.arena_len(shape, detail), zero);
        let restricted = Model::new(restricted)
            .map_err(|error| Error::run(error, "the selected latents", "change --selected"))?;
        let mut inference =
            Inference::with_engine(restricted, &mut self.memory, detail, engine).map_err(refused)?;
        inference.seek(point as u64);
        inference.projected(sample, &self.projection, energy).map_err(refused)?;
        inference.select();
        let mut order = Vec::new();
        let mut values = Vec::new();
        let estimate = inference
            .draw(|draw| {
                order.clear();
                values.clear();
                for (&at, &value) in draw.order.iter().zip(draw.values) {
                    if let Some(&latent) = latents.get(usize::from(at)) {
                        order.push(latent);
                        values.push(value);
                    }
                }
                visit(Draw { order: &order, values: &values });
            })
            .map_err(refused)?;
        let evidence = estimate.evidence;
        for all in [&mut self.activity, &mut self.mean, &mut self.variance] {
            all.clear();
            all.resize(h, zero);
        }
        for (at, &latent) in latents.iter().enumerate() {
            let latent = usize::from(latent);
            self.activity[latent] = estimate.activity[at];
            self.mean[latent] = estimate.mean[at];
            self.variance[latent] = estimate.variance[at];
        }
        let kept = |at: &u16| latents.get(usize::from(*at)).copied();
        self.selected.clear();
        self.selected.extend(estimate.selected.iter().filter_map(kept));
        self.second.clear();
        self.second.extend_from_slice(estimate.second);
        Ok(Estimate {
            selected: &self.selected,
            activity: &self.activity,
            mean: &self.mean,
            variance: &self.variance,
            map_latents: &[],
            map_values: &[],
            evidence,
            distance: &[],
            second: &self.second,
            pull: &[],
            pull_second: &[],
        })
    }

    /// Copies what belongs to the latents: D H' numbers of W, H' (H' + 1) / 2 of G.
    fn gather(&mut self, job: &Job<'_, T>, model: &Model<'_, T>, latents: &[u16], b: &[T], shape: Shape) {
        let zero = T::from_f64(0.0);
        let count = shape.latents;
        let pick = |to: &mut Vec<T>, from: &[T], unseen: f64| {
            to.clear();
            if !from.is_empty() {
                to.extend(latents.iter().map(|&latent| from[usize::from(latent)]));
                to.resize(count, T::from_f64(unseen));
            }
        };
        pick(&mut self.prior_logit, model.prior_logit, -30.0);
        pick(&mut self.slab_mean, model.slab_mean, 0.0);
        pick(&mut self.slab_precision, model.slab_precision, 1.0);
        pick(&mut self.gram_diagonal, model.gram_diagonal, 0.0);
        pick(&mut self.score_offset, model.score_offset, 0.0);
        pick(&mut self.projection, b, 0.0);
        if let Selection::Cosine { scale } = model.selection {
            pick(&mut self.scale, scale, 0.0);
        }
        self.dictionary.clear();
        self.dictionary.resize(model.shape.dims * count.next_multiple_of(PANEL), zero);
        // Both in panels.
        let place = |at: usize, d: usize| (at / PANEL * model.shape.dims + d) * PANEL + at % PANEL;
        for (at, &latent) in latents.iter().enumerate() {
            for d in 0..model.shape.dims {
                self.dictionary[place(at, d)] = job.dictionary[place(usize::from(latent), d)];
            }
        }
        self.gram.clear();
        let Some(gram) = model.gram else { return };
        for (at, &i) in latents.iter().enumerate() {
            let entry = |&j: &u16| {
                let (high, low) = (usize::from(i.max(j)), usize::from(i.min(j)));
                gram[high * (high + 1) / 2 + low]
            };
            self.gram.extend(latents[..=at].iter().map(entry));
        }
    }
}
