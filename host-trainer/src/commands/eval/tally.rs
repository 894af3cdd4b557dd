//! Sums over points, block by block on several threads.
//!
//! In come blocks of points with their reference, out go the sums over each, in order. What a block holds does not depend
//! on the number of threads, so neither do the sums.

use super::reference::Reference;
use crate::commands::engine::{self, Extra};
use crate::metrics::{quality, si_sdr_db_of_sums};
use crate::{Error, Result};
use spikelet::{Engine, Model};
use std::thread;

/// What is done with every block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub model: Model<'a, f32>,
    pub engine: Engine,
    /// The same over all states, where the quality is asked for.
    pub exact: Option<Model<'a, f32>>,
    /// Of the data, for errors.
    pub name: &'a str,
    /// Whether reconstructions are wanted.
    pub keep: bool,
}

/// Consecutive points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// N x D.
    points: &'a [f64],
    /// N x D.
    clean: Option<&'a [f64]>,
    /// N x K, and K.
    sources: Option<(&'a [f64], usize)>,
    /// Number of the first point.
    first: usize,
}

/// Sums over points. Energies are sums of squares.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub evidence: f64,
    pub quality: f64,
    /// <s> of each latent. (H)
    pub activity: Vec<f64>,
    /// Energy of the data.
    pub data: f64,
    /// Energy of what the reconstruction leaves of them.
    pub residual: f64,
    pub clean: Option<CleanTally>,
    pub sources: Option<SourceTally>,
    /// The points without noise, of one block and if asked for. (N x D)
    pub reconstruction: Vec<f32>,
    /// How much each of them counts where they overlap.
    pub weight: Vec<f32>,
}

/// Comparison with clean data.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleanTally {
    /// Energy of the clean data.
    pub energy: f64,
    /// Energy of its difference to the reconstruction.
    pub error: f64,
    /// Energy of its difference to the data.
    pub noise: f64,
    pub smallest: f64,
    pub largest: f64,
}

/// Comparison with true sources.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct SourceTally {
    /// Energy of each posterior mean. (H)
    pub estimates: Vec<f64>,
    /// Energy of each source. (K)
    pub sources: Vec<f64>,
    /// Sums of products. (K x H)
    pub products: Vec<f64>,
}

impl Tally {
    /// Adds the sums over other points.
    pub fn add(&mut self, other: &Self) {
        self.evidence += other.evidence;
        self.quality += other.quality;
        add_all(&mut self.activity, &other.activity);
        self.data += other.data;
        self.residual += other.residual;
        match (&mut self.clean, &other.clean) {
            (Some(sums), Some(other)) => {
                sums.energy += other.energy;
                sums.error += other.error;
                sums.noise += other.noise;
                sums.smallest = sums.smallest.min(other.smallest);
                sums.largest = sums.largest.max(other.largest);
            }
            (sums @ None, other) => *sums = *other,
            _ => {}
        }
        match (&mut self.sources, &other.sources) {
            (Some(sums), Some(other)) => sums.add(other),
            (sums @ None, other) => *sums = other.clone(),
            _ => {}
        }
    }
}

impl SourceTally {
    /// Adds the sums over other points.
    pub fn add(&mut self, other: &Self) {
        add_all(&mut self.estimates, &other.estimates);
        add_all(&mut self.sources, &other.sources);
        add_all(&mut self.products, &other.products);
    }

    /// SI-SDR in dB of every latent as every source; NaN for a source that is silent. (K x H)
    pub fn si_sdr_db(&self) -> Vec<f64> {
        let h = self.estimates.len();
        let score = |(at, &product): (usize, &f64)| {
            si_sdr_db_of_sums(self.estimates[at % h], self.sources[at / h], product).unwrap_or(f64::NAN)
        };
        self.products.iter().enumerate().map(score).collect()
    }
}

fn add_all(sums: &mut Vec<f64>, other: &[f64]) {
    sums.resize(other.len(), 0.0);
    sums.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
}

impl Task<'_> {
    /// Points and what belongs to them in blocks of `block` points.
    pub fn blocks<'x>(
        &self,
        points: &'x [f64],
        reference: Option<(&Reference, &'x [f64])>,
        block: usize,
        first: usize,
    ) -> Vec<Block<'x>> {
        let dims = self.model.shape.dims;
        let cut = |values: &'x [f64], columns: usize, at: usize| {
            values.chunks(block * columns).nth(at).unwrap_or_default()
        };
        let make = |(at, points): (usize, &'x [f64])| {
            let clean = reference.filter(|(kind, _)| kind.clean).map(|(_, values)| cut(values, dims, at));
            let sources = reference.filter(|(kind, _)| kind.sources).map(|(kind, values)| {
                let columns = kind.source.dims();
                (cut(values, columns, at), columns)
            });
            Block { points, clean, sources, first: first + at * block }
        };
        points.chunks(block * dims).enumerate().map(make).collect()
    }

    fn block(&self, block: Block<'_>) -> Result<Tally> {
        let h = self.model.shape.latents;
        let infer = |model: Model<'_, f32>, engine, extra| {
            engine::infer_part(model, engine, block.points, block.first, self.name, extra)
        };
        let posteriors = infer(self.model, self.engine, Extra::Reconstruction)?;
        let mut sums = Tally { activity: vec![0.0; h], ..Tally::default() };
        sums.evidence = posteriors.evidence.iter().map(|&value| f64::from(value)).sum();
        if let Some(exact) = self.exact {
            let exact = infer(exact, Engine::Truncated, Extra::Nothing)?;
            let pairs = posteriors.evidence.iter().zip(&exact.evidence);
            sums.quality = pairs.map(|(&kept, &all)| quality(kept.into(), all.into())).sum();
        }
        for activity in posteriors.activity.chunks_exact(h) {
            sums.activity.iter_mut().zip(activity).for_each(|(sum, &s)| *sum += f64::from(s));
        }
        let reconstructed: Vec<f64> = posteriors.reconstruction.iter().map(|&value| value.into()).collect();
        sums.data = energy(block.points);
        sums.residual = distance(block.points, &reconstructed);
        sums.clean = block.clean.map(|clean| CleanTally {
            energy: energy(clean),
            error: distance(clean, &reconstructed),
            noise: distance(clean, block.points),
            smallest: clean.iter().copied().fold(f64::INFINITY, f64::min),
            largest: clean.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        });
        sums.sources = block.sources.map(|(sources, k)| source_tally(sources, k, &posteriors.mean, h));
        if self.keep {
            sums.reconstruction = posteriors.reconstruction;
            sums.weight = posteriors.weight;
        }
        Ok(sums)
    }
}

/// The sums over points with true sources (N x K) and posterior means (N x H).
pub(in crate::commands) fn source_tally(sources: &[f64], k: usize, means: &[f32], h: usize) -> SourceTally {
    let mut sums = SourceTally { estimates: vec![0.0; h], sources: vec![0.0; k], products: vec![0.0; k * h] };
    for (truth, mean) in sources.chunks_exact(k).zip(means.chunks_exact(h)) {
        sums.estimates.iter_mut().zip(mean).for_each(|(sum, &x)| *sum += f64::from(x).powi(2));
        sums.sources.iter_mut().zip(truth).for_each(|(sum, &x)| *sum += x * x);
        for (row, &x) in sums.products.chunks_exact_mut(h).zip(truth) {
            if x != 0.0 {
                row.iter_mut().zip(mean).for_each(|(sum, &mean)| *sum += x * f64::from(mean));
            }
        }
    }
    sums
}

fn energy(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The sums of all blocks, each on a thread of its own; there are at most `threads` of them.
pub(super) fn all(task: &Task<'_>, blocks: Vec<Block<'_>>, threads: usize) -> Result<Vec<Tally>> {
    if threads == 1 {
        return blocks.into_iter().map(|block| task.block(block)).collect();
    }
    thread::scope(|scope| {
        let spawn = |block| {
            thread::Builder::new().spawn_scoped(scope, move || task.block(block)).map_err(|cause| {
                Error::run(format_args!("no more threads ({cause})"), "--threads", "ask for fewer")
            })
        };
        let running = blocks.into_iter().map(spawn).collect::<Result<Vec<_>>>()?;
        // In order: of several refused points the first is told, whatever the number of threads.
        running.into_iter().map(|thread| thread.join().expect("sums do not panic")).collect()
    })
}
