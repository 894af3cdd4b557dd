//! A chunk of points to statistics, on one thread.

use super::super::kinds::gmm;
use super::super::kinds::mca::Shares;
use super::super::kinds::ssmca::Drawn;
use super::super::statistics::Statistics;
use super::holes::Hollow;
use super::job::{Job, Scalar, Seen, Wanted};
use super::mixture::Sheet;
use super::restricted::Restricted;
use super::scatter::{add_products, add_selected_products};
use crate::linalg::product;
use crate::parameters::Parameters;
use crate::{Error, Result};
use spikelet::gibbs::Draw;
use spikelet::model::States;
use spikelet::{Detail, Inference};
use std::mem::take;

pub(super) const ADVICE: &str = "remove the point, subtract the mean of the data, or use --precision f64";

/// One in so many points is told to be explained badly, with adaptive states.
const ONE_IN: usize = 16;

/// A point that the model explains badly.
#[derive(Clone, Debug, PartialEq)]
pub struct Poor {
    /// ln p(y) over the kept states.
    pub evidence: f64,
    /// `y - W <x>`. (D)
    pub residual: Vec<f64>,
}

/// One of the sums that are kept apart.
pub(super) struct Lane {
    pub sums: Statistics,
    /// Of every chunk one, or a few, where these are wanted.
    pub poor: Vec<Poor>,
    /// Of every point, where these are wanted.
    pub evidences: Vec<f64>,
    /// The number of the first point of every chunk, and `<s>` of its points, where these are wanted. (points x H)
    pub activities: Vec<(usize, Vec<f64>)>,
    /// The same of the components that points keep. (points x C')
    pub kept: Vec<(usize, Vec<u16>)>,
    /// `sum <x> y^T`, or what models have in its place; grows by whole rows. (H x D)
    pub cross: Shares,
}

/// What computing needs, one for each thread.
#[derive(Default)]
pub(super) struct Desk<T> {
    restricted: Restricted<T>,
    hollow: Hollow<T>,
    memory: Vec<T>,
    sample: Vec<T>,
    weighted: Vec<T>,
    projection: Vec<T>,
    /// Points of the chunk that count.
    pub counted: Vec<f64>,
    /// Draws of a point.
    drawn: Drawn,
    /// The points of the chunk that are explained worst, worst first, with their `<x>`. (H)
    pub worst: Vec<(f64, usize, Vec<T>)>,
    /// For mixtures.
    pub sheet: Sheet<T>,
}

impl Lane {
    pub fn new(parameters: &Parameters) -> Self {
        let mut sums = Statistics::new(parameters);
        // Summed by rows of the other way round until the end.
        let cross = Shares { seen: take(&mut sums.cross), share: take(&mut sums.share) };
        let (activities, kept) = (Vec::new(), Vec::new());
        Self { sums, poor: Vec::new(), evidences: Vec::new(), activities, kept, cross }
    }

    /// Adds a chunk of points, the first of which is number `first`.
    pub fn run<T: Scalar>(
        &mut self,
        job: &Job<'_, T>,
        desk: &mut Desk<T>,
        (chunk, missing): (&[f64], Option<(&[bool], usize)>),
        first: usize,
    ) -> Result<()> {
        if let Seen::Components(Some(mixture)) = &job.seen {
            return self.run_mixture(job, mixture, desk, chunk, first);
        }
        let model = job.prepared.model()?;
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let detail = job.detail();
        desk.project(job, chunk);
        desk.memory.resize(job.engine.arena_len(model.shape, detail), T::from_f64(0.0));
        let mut inference = Inference::with_engine(model, &mut desk.memory, detail, job.engine)
            .map_err(|error| Error::input(error, "the E-step", "change --engine or its settings"))?;
        inference.seek(first as u64);

        let searches = matches!(model.shape.states, States::Adaptive { .. });
        // Searches are cheap, and their schedule replaces more latents.
        let most = match job.names_worst {
            true if searches => (chunk.len() / d / ONE_IN).max(1),
            names => usize::from(names),
        };
        desk.worst.clear();
        let mut activities = Vec::new();
        desk.counted.clear();
        for (i, (sample, u)) in desk.sample.chunks_exact(d).zip(desk.weighted.chunks_exact(d)).enumerate() {
            let energy: f64 = sample.iter().zip(u).map(|(y, u)| y.to_f64() * u.to_f64()).sum();
            let refused = |error| Error::input(error, format_args!("point {}", first + i), ADVICE);
            let (y, b) = (&chunk[i * d..][..d], &desk.projection[i * h..][..h]);
            if let Some((missing, planes)) = missing.map(|(all, planes)| (&all[i * d..][..d], planes))
                && missing.contains(&true)
            {
                let point = (first + i, y, missing, planes);
                let evidence = desk.hollow.add(job, &model, point, &mut self.sums, &mut self.cross)?;
                match job.wanted {
                    Wanted::Evidences => self.evidences.push(evidence),
                    _ => self.sums.free_energy += evidence,
                }
                self.sums.counted += evidence;
                continue;
            }
            desk.drawn.clear();
            let keep = |draw: Draw<'_, T>| {
                if let Seen::Draws(w) = &job.seen {
                    desk.drawn.add(w, &draw, y);
                }
            };
            let estimate = match job.sets {
                Some(sets) => {
                    let (latents, energy) = (sets.of(first + i), T::from_f64(energy));
                    desk.restricted.infer(
                        job,
                        &model,
                        latents,
                        (first + i, sample, b, energy),
                        detail,
                        keep,
                    )?
                }
                None => {
                    inference.projected(sample, b, T::from_f64(energy)).map_err(refused)?;
                    inference.select();
                    inference.draw(keep).map_err(refused)?
                }
            };
            let evidence = estimate.evidence.to_f64();
            if job.wanted == Wanted::Evidences {
                self.evidences.push(evidence);
                continue;
            }
            if job.wanted == Wanted::Activities {
                activities.extend(estimate.activity.iter().map(|s| s.to_f64()));
            }
            self.sums.free_energy += evidence;
            if evidence < job.least_evidence {
                continue;
            }
            self.sums.counted += evidence;
            if desk.worst.len() < most || desk.worst.last().is_some_and(|last| evidence < last.0) {
                note(&mut desk.worst, most, evidence, i, estimate.mean);
            }
            match searches {
                true => self.sums.add_selected(&estimate),
                false => self.sums.add(&estimate),
            }
            match &job.seen {
                Seen::Moments => {}
                Seen::Components(_) => gmm::add_squares(y, estimate.activity, &mut self.cross.share),
                Seen::Shares(strengths) => {
                    self.cross.add(strengths, &mut inference, y, &mut self.sums.power);
                    continue;
                }
                Seen::Draws(_) => {
                    desk.drawn.add_to(&mut self.cross, &mut self.sums.power);
                    continue;
                }
            }
            desk.counted.extend_from_slice(y);
            match searches {
                true => add_selected_products(y, &estimate, &mut self.cross.seen),
                false => add_products(y, estimate.mean, &mut self.cross.seen),
            }
            if detail == Detail::SlabPull {
                self.sums.add_pull(&estimate, b, &model);
            }
        }

        self.finish_chunk(job, desk, chunk, (first, activities));
        Ok(())
    }

    /// What a chunk adds as a whole: its power, `<s>` of its points and those that are explained worst.
    pub fn finish_chunk<T: Scalar>(
        &mut self,
        job: &Job<'_, T>,
        desk: &Desk<T>,
        chunk: &[f64],
        (first, activities): (usize, Vec<f64>),
    ) {
        if job.wanted == Wanted::Activities {
            self.activities.push((first, activities));
        }
        if !desk.counted.is_empty() {
            self.sums.add_power(&desk.counted, job.parameters.dims);
            for (evidence, point, mean) in &desk.worst {
                let residual = residual(job.parameters, chunk, *point, mean);
                self.poor.push(Poor { evidence: *evidence, residual });
            }
        }
    }

    /// The sums of all chunks; those of products with the data the other way round, H x D.
    pub fn finish(mut self) -> (Statistics, Vec<Poor>) {
        self.sums.cross = self.cross.seen;
        self.sums.share = self.cross.share;
        (self.sums, self.poor)
    }
}

impl<T: Scalar> Desk<T> {
    /// Sigma^-1 y and b = W^T Sigma^-1 y of all points of a chunk.
    fn project(&mut self, job: &Job<'_, T>, chunk: &[f64]) {
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let n = chunk.len() / d;
        let zero = T::from_f64(0.0);
        self.weighted.resize(n * d, zero);
        self.projection.resize(n * h, zero);
        self.sample.clear();
        self.sample.extend(chunk.iter().map(|&y| T::from_f64(y)));
        job.weigh.apply(&self.sample, d, &mut self.weighted);
        product(&self.weighted, &job.dictionary, d, h, &mut self.projection);
    }
}

/// Puts a point where it belongs among those that are explained worst; of equals the first stays first.
pub(super) fn note<T: Scalar>(
    worst: &mut Vec<(f64, usize, Vec<T>)>,
    most: usize,
    evidence: f64,
    point: usize,
    mean: &[T],
) {
    let mut own = if worst.len() == most { worst.pop().map(|last| last.2) } else { None }.unwrap_or_default();
    own.clear();
    own.extend_from_slice(mean);
    let place = worst.partition_point(|other| other.0 <= evidence);
    worst.insert(place, (evidence, point, own));
}

/// What the model leaves of a point of the chunk.
fn residual<T: Scalar>(parameters: &Parameters, chunk: &[f64], point: usize, mean: &[T]) -> Vec<f64> {
    let (d, h) = (parameters.dims, parameters.latents);
    let y = &chunk[point * d..][..d];
    // Few latents have a mean.
    let means = mean.iter().enumerate().map(|(j, x)| (j, x.to_f64()));
    let on: Vec<(usize, f64)> = means.filter(|(_, x)| *x != 0.0).collect();
    let explained = |row: &[f64]| on.iter().map(|&(j, x)| row[j] * x).sum::<f64>();
    y.iter().zip(parameters.dictionary.chunks_exact(h)).map(|(y, row)| y - explained(row)).collect()
}
