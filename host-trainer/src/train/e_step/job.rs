//! What all lanes of an E-step share.

use super::super::kinds::mca::Strengths;
use super::super::kinds::{self, Sums};
use super::mixture::Mixture;
use super::{Sets, Task};
use crate::Result;
use crate::linalg::{pack, transposed};
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::prepare::Prepared;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use spikelet::math::Real;
use spikelet::{Detail, Engine};

/// A number that inference and matrix products run in: `f32` or `f64`.
pub trait Scalar: Real + faer::traits::ComplexField {}
impl Scalar for f32 {}
impl Scalar for f64 {}

/// What comes of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Statistics,
    /// Statistics, and `<s>` of every point.
    Activities,
    /// Statistics, and which components of a mixture every point keeps.
    Kept,
    Evidences,
}

/// What is added up besides activities and means.
pub(super) enum Seen<T> {
    Moments,
    /// Of mixtures, whose latents are never on together; in chunks, where nothing is in the way of that.
    Components(Option<Mixture<T>>),
    Shares(Strengths),
    /// With W by latents. (H x D)
    Draws(Vec<f64>),
}

/// What all lanes share: the model, as inference and as matrix products want it.
pub(super) struct Job<'a, T> {
    pub parameters: &'a Parameters,
    pub wanted: Wanted,
    pub engine: Engine,
    pub least_evidence: f64,
    pub sets: Option<Sets<'a>>,
    pub around: Option<Sets<'a>>,
    pub names_worst: bool,
    pub prepared: Prepared<T>,
    /// W in panels.
    pub dictionary: Vec<T>,
    pub weigh: Weigh<T>,
    /// What models other than linear ones add up.
    pub seen: Seen<T>,
}

impl<'a, T: Scalar> Job<'a, T> {
    pub fn new(task: &Task<'a>, wanted: Wanted) -> Result<Self> {
        let Task { parameters, options, engine, temperature, least_evidence, sets, around, names_worst } =
            *task;
        Ok(Self {
            parameters,
            wanted,
            engine,
            least_evidence,
            sets,
            around,
            names_worst,
            prepared: Prepared::tempered(parameters, options, temperature)?,
            dictionary: pack(&parameters.dictionary, parameters.dims, parameters.latents),
            weigh: Weigh::new(&parameters.pooled_noise().scaled(temperature), parameters.dims)?,
            seen: match kinds::of(parameters.kind).sums {
                Sums::Moments => Seen::Moments,
                Sums::Components => Seen::Components(match (sets, temperature == 1.0) {
                    (None, true) => {
                        let all = parameters.latents;
                        Some(Mixture::new(
                            parameters,
                            if options.singletons { all } else { options.selected },
                            around,
                        )?)
                    }
                    _ => None,
                }),
                Sums::Shares => Seen::Shares(Strengths::new(parameters, temperature)),
                Sums::Draws => Seen::Draws(transposed(&parameters.dictionary, parameters.latents)),
            },
        })
    }

    /// How much inference reports.
    pub fn detail(&self) -> Detail {
        match (&self.parameters.slab_cov, self.wanted) {
            _ if !matches!(self.seen, Seen::Moments) => Detail::Marginals,
            (_, Wanted::Evidences) => Detail::Marginals,
            (SlabCov::Full(_), _) => Detail::SlabPull,
            _ => Detail::SecondMoments,
        }
    }
}

/// Sigma^-1, applied to a chunk at once.
pub(super) enum Weigh<T> {
    Each(Vec<T>),
    Full(Mat<T>),
}

impl<T: Scalar> Weigh<T> {
    fn new(noise: &NoiseCov, d: usize) -> Result<Self> {
        let inverse = |v: &f64| T::from_f64(1.0 / v);
        Ok(match noise {
            NoiseCov::Full(sigma) => {
                let factor = crate::linalg::cholesky_inverse(sigma, d)
                    .ok_or_else(|| crate::prepare::not_definite("sigma2"))?;
                let entry = |i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
                let sum = |i: usize, j: usize| (i.max(j)..d).map(|k| entry(k, i) * entry(k, j)).sum();
                Self::Full(Mat::from_fn(d, d, |i, j| T::from_f64(sum(i, j))))
            }
            // Pooled beforehand.
            NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => {
                Self::Each(sigma2.iter().map(inverse).collect())
            }
            NoiseCov::Shared(sigma2) => Self::Each(vec![inverse(sigma2); d]),
        })
    }

    /// Sigma^-1 y of every point of a chunk.
    pub fn apply(&self, chunk: &[T], d: usize, weighted: &mut [T]) {
        match self {
            Self::Each(precision) => {
                for (u, y) in weighted.chunks_exact_mut(d).zip(chunk.chunks_exact(d)) {
                    u.iter_mut().zip(y).zip(precision).for_each(|((u, y), p)| *u = *y * *p);
                }
            }
            Self::Full(precision) => {
                let n = chunk.len() / d;
                let out = MatMut::from_row_major_slice_mut(weighted, n, d);
                let y = MatRef::from_row_major_slice(chunk, n, d);
                matmul(out, Accum::Replace, y, precision.as_ref(), T::from_f64(1.0), Par::Seq);
            }
        }
    }
}
