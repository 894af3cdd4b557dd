//! What one model says about data, beside what another says: the price of an encoding.
//!
//! - KL = sum_s q(s) ln(q(s) / q'(s)) with q the posterior of the first model over the states it keeps and q' that of the
//!   second. Preselection may differ, so a state that the second one does not keep counts with the least probability that
//!   `f32` tells from none, 2^-24, and no probability counts as less. The sum has the terms q' - q too: they cancel except for
//!   the rounding of probabilities that add up to 1 nearly, and no term is negative with them. Sampled posteriors have no
//!   list of states: there it is the sum over latents of the KL between their probabilities of being on.
//! - How often both find the same most probable state.
//! - How well W<s.z> explains the data, or the data without noise if that is known, in dB.

use crate::data::Mosaic;
use crate::metrics::snr_db;
use crate::{Error, Result};
use spikelet::math::Real;
use spikelet::{Detail, Engine, Inference, Model};
use std::collections::HashMap;

/// A state that is not kept has at most this probability.
const LEAST: f64 = 1.0 / 16_777_216.0;

/// What a model says of several points.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// Posterior means. (N x H)
    pub means: Vec<f32>,
    /// W<s.z>. (N x D)
    pub reconstruction: Vec<f32>,
    /// How much each point counts where they overlap. (N)
    pub weight: Vec<f32>,
}

/// Sums over points.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    points: usize,
    kl: f64,
    same_best: usize,
    signal: f64,
    /// Squared error of each model's reconstruction.
    errors: [f64; 2],
    /// Sum of ln p(y) by each model.
    evidence: [f64; 2],
}

impl Comparison {
    /// Mean KL per point, in nats.
    pub fn kl(&self) -> f64 {
        self.kl / self.points as f64
    }

    /// Part of the points whose most probable state is the same.
    pub fn map_agreement(&self) -> f64 {
        self.same_best as f64 / self.points as f64
    }

    /// Signal over error of both reconstructions; `None` without an error.
    pub fn snr_db(&self) -> [Option<f64>; 2] {
        self.errors.map(|error| snr_db(self.signal, error))
    }

    /// By how much the second is worse, in dB.
    pub fn loss_db(&self) -> Option<f64> {
        let [first, second] = self.snr_db();
        Some(first? - second?)
    }

    /// Mean of ln p(y) per point, by both.
    pub fn free_energy(&self) -> [f64; 2] {
        self.evidence.map(|sum| sum / self.points as f64)
    }

    /// Adds points (N x D); `clean` are the same without noise, if they are known. `name` and `first`, the number of the
    /// first point, are for errors. Returns what both models say of them.
    pub fn add(
        &mut self,
        models: [Model<'_, f32>; 2],
        points: &[f64],
        clean: Option<&[f64]>,
        name: &str,
        first: usize,
    ) -> Result<[Outputs; 2]> {
        let dims = models[0].shape.dims;
        let detail = Detail::Marginals;
        let engine = Engine::of_kind(models[0].shape.kind);
        let mut memory = models.map(|model| vec![0.0f32; engine.arena_len(model.shape, detail)]);
        let [a, b] = &mut memory;
        let make = |model, memory| {
            Inference::with_engine(model, memory, detail, engine).expect("memory of the length it asked for")
        };
        let mut both = [make(models[0], a), make(models[1], b)];
        let mut found: [Found; 2] = Default::default();
        let mut outputs: [Outputs; 2] = Default::default();
        for (n, point) in points.chunks_exact(dims).enumerate() {
            let sample: Vec<f32> = point.iter().map(|&y| y as f32).collect();
            let clean = clean.map_or(point, |clean| &clean[n * dims..][..dims]);
            for (m, (inference, found)) in both.iter_mut().zip(&mut found).enumerate() {
                inference.seek((first + n) as u64);
                found.take(inference, &sample).map_err(|error| {
                    let place = format!("{name}, point {} (counted from 0)", first + n);
                    Error::input(error, place, "remove the point, or rescale data and model")
                })?;
                let error = |(y, x): (&f64, &f32)| (y - f64::from(*x)).powi(2);
                self.errors[m] += clean.iter().zip(&found.reconstruction).map(error).sum::<f64>();
                self.evidence[m] += found.evidence;
                outputs[m].means.extend_from_slice(&found.means);
                outputs[m].reconstruction.extend_from_slice(&found.reconstruction);
                outputs[m].weight.push(found.weight);
            }
            self.signal += clean.iter().map(|y| y * y).sum::<f64>();
            self.kl += found[0].divergence(&found[1]);
            self.same_best += usize::from(found[0].best == found[1].best);
            self.points += 1;
        }
        Ok(outputs)
    }
}

/// What a model says about a point.
#[derive(Default)]
struct Found {
    states: HashMap<Vec<u16>, f64>,
    activity: Vec<f32>,
    best: Vec<u16>,
    means: Vec<f32>,
    reconstruction: Vec<f32>,
    weight: f32,
    evidence: f64,
}

impl Found {
    fn take(&mut self, inference: &mut Inference<'_, f32>, sample: &[f32]) -> Result<(), spikelet::Error> {
        let estimate = inference.infer(sample)?;
        self.best = estimate.map_latents.to_vec();
        self.activity = estimate.activity.to_vec();
        self.means = estimate.mean.to_vec();
        self.evidence = estimate.evidence.to_f64();
        let variance = estimate.variance.to_vec();
        self.weight = Mosaic::weight(inference.model(), &variance);
        self.reconstruction.resize(sample.len(), 0.0);
        inference.reconstruct(&mut self.reconstruction)?;
        self.states.clear();
        inference.for_each_state(|latents, probability| {
            let mut latents = latents.to_vec();
            latents.sort_unstable();
            self.states.insert(latents, f64::from(probability));
        });
        Ok(())
    }

    fn divergence(&self, other: &Self) -> f64 {
        let term = |p: f64, q: f64| {
            let (p, q) = (p.max(LEAST), q.max(LEAST));
            p * (p / q).ln() + (q - p)
        };
        if self.states.is_empty() {
            let of = |(&p, &q): (&f32, &f32)| {
                let (p, q) = (f64::from(p), f64::from(q));
                term(p, q) + term(1.0 - p, 1.0 - q)
            };
            return self.activity.iter().zip(&other.activity).map(of).sum();
        }
        let get = |found: &Self, state| found.states.get(state).copied().unwrap_or(0.0);
        let shared: f64 = self.states.iter().map(|(state, &p)| term(p, get(other, state))).sum();
        let others = other.states.iter().filter(|(state, _)| !self.states.contains_key(*state));
        shared + others.map(|(_, &q)| term(0.0, q)).sum::<f64>()
    }
}
