//! Parameters to what inference multiplies with: the other half of [`spikelet::Model`].
//!
//! The dictionary is rounded to the target precision first, to integers if so wanted ([`crate::quantize`]), and everything
//! else follows from the rounded one in `f64`, so that the numbers of a model agree with each other.

mod fixed;
mod masked;
mod options;
mod table;

pub use masked::{Holes, Masked};
pub(crate) use options::check_truncation;
pub use options::{GramName, Options, SelectionName, StatesName};

use crate::linalg::{cholesky_inverse, gram, gram_diagonal, pack};
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::quantize::{Quantized, quantize};
use crate::{Error, Result};
use options::check_selection;
use spikelet::math::Real;
use spikelet::model::{
    Dictionary, FixedLatent, Integers, Kind, Model, ModelError, Noise, Selection, Shape, StateTable, States,
    Width,
};
use table::state_table;

/// A Gram matrix up to this many bytes (in f32) is stored without asking what else is.
const SMALL_GRAM_BYTES: usize = 8 * 1024;

/// Of more latents than this, the Gram matrix is only made when it is part of the model (128 MiB in f64).
const LARGE_GRAM: usize = 4096;

/// A model that owns its numbers.
#[derive(Clone, Debug)]
pub struct Prepared<T> {
    shape: Shape,
    full_slab: bool,
    dictionary: Packed<T>,
    pub(crate) noise: Vec<T>,
    noise_kind: NoiseKind,
    pub(crate) prior_logit: Vec<T>,
    pub(crate) slab_mean: Vec<T>,
    pub(crate) slab_precision: Vec<T>,
    pub(crate) gram_diagonal: Vec<T>,
    pub(crate) score_offset: Vec<T>,
    pub(crate) gram: Option<Vec<T>>,
    pub(crate) selection: Scores<T>,
    table: Option<Vec<T>>,
    fixed: Option<Vec<FixedLatent>>,
    log_norm: T,
}

/// W as inference reads it.
#[derive(Clone, Debug)]
enum Packed<T> {
    Float(Vec<T>),
    Integer(Quantized<T>),
}

/// What the selection scores need.
#[derive(Clone, Debug)]
pub(crate) enum Scores<T> {
    Singleton,
    Independent { precision: Vec<T>, offset: Vec<T> },
    Cosine { scale: Vec<T> },
    Bound,
    Learned { weights: Vec<T> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum NoiseKind {
    Shared,
    Diagonal,
    Full,
}

impl<T: Real> Prepared<T> {
    /// Precomputes. Fails on parameters that are no model, do not fit the precision, or want more
    /// than the core's capacities.
    pub fn new(parameters: &Parameters, options: &Options) -> Result<Self> {
        Self::tempered(parameters, options, 1.0)
    }

    /// [`Prepared::new`] with a dictionary of integers, whose error becomes part of the noise: see [`crate::quantize`].
    pub fn quantized(parameters: &Parameters, options: &Options, width: Width) -> Result<Self> {
        parameters.check()?;
        let (packed, rounded) = quantize(parameters, width)?;
        Self::from_rounded(&rounded, options, 1.0, Packed::Integer(packed))
    }

    /// The same at a temperature T = 1 / beta (paper 002): 1 / sigma^2 becomes beta / sigma^2, pi becomes pi^beta and 1 - pi
    /// becomes (1 - pi)^beta. Without a slab the posterior is then p(y, s)^beta, and the evidence the logarithm of its sum over
    /// the kept states. A slab stays as it is.
    pub fn tempered(parameters: &Parameters, options: &Options, temperature: f64) -> Result<Self> {
        parameters.check()?;
        if !(temperature.is_finite() && temperature > 0.0) {
            let what = format!("{temperature} cannot be a temperature");
            return Err(Error::input(what, "the temperature", "give a positive number"));
        }
        let h = parameters.latents;
        let rounded = Parameters {
            dictionary: parameters.dictionary.iter().map(|&w| T::from_f64(w).to_f64()).collect(),
            noise: parameters.noise.scaled(temperature),
            ..parameters.clone()
        };
        if let Some(i) = rounded.dictionary.iter().position(|w| !w.is_finite()) {
            let what = format!("{:e} does not fit a 32-bit number", parameters.dictionary[i]);
            let place = format!("W[{}, {}]", i / h, i % h);
            return Err(Error::input(what, place, "rescale data and dictionary"));
        }
        let packed = Packed::Float(pack(&rounded.dictionary, parameters.dims, h));
        Self::from_rounded(&rounded, options, temperature, packed)
    }

    /// From parameters that have the precision of the model, and the temperature in their noise.
    fn from_rounded(
        parameters: &Parameters,
        options: &Options,
        temperature: f64,
        dictionary: Packed<T>,
    ) -> Result<Self> {
        let beta = 1.0 / temperature;
        let kind = parameters.kind.kind();
        let (d, h) = (parameters.dims, parameters.latents);
        let full_slab = kind.has_slab() && matches!(parameters.slab_cov, SlabCov::Full(_));
        let states = states_of(options, kind, full_slab)?;
        let Options { selected, max_active, .. } = *options;
        let singletons = options.singletons && !matches!(states, States::Adaptive { .. });
        let shape = Shape { kind, dims: d, latents: h, selected, max_active, singletons, states };
        check_truncation(shape)?;
        check_selection(parameters, options.selection)?;
        let (noise, noise_kind, log_det_noise) = noise(&parameters.pooled_noise(), d)?;
        let keep_gram = match options.gram {
            _ if kind.is_maximal() || kind.is_mixture() => false,
            GramName::Stored => true,
            GramName::Computed if noise_kind == NoiseKind::Full => {
                let advice = "leave the flag out or use diagonal noise";
                return Err(Error::input("full noise needs the Gram matrix", "--gram computed", advice));
            }
            GramName::Computed => false,
            GramName::Auto => {
                let bytes = h * (h + 1) * 2;
                noise_kind == NoiseKind::Full || bytes <= SMALL_GRAM_BYTES.max(d * h * 4)
            }
        };
        let wants_table = states == States::Table;
        // The whole matrix of 65535 latents would take 34 GB, so it is not made where nothing needs it.
        let (gram, diagonal) = if keep_gram || wants_table || h <= LARGE_GRAM && !kind.is_mixture() {
            let gram = gram(parameters)?;
            let diagonal: Vec<f64> = (0..h).map(|i| gram[i * h + i]).collect();
            (gram, diagonal)
        } else {
            (Vec::new(), gram_diagonal(parameters)?)
        };
        let variances = if kind.has_slab() { parameters.slab_variances() } else { Vec::new() };
        if let (SlabCov::Full(psi), true) = (&parameters.slab_cov, full_slab) {
            cholesky_inverse(psi, h).ok_or_else(|| not_definite("psi2"))?;
        }
        let table = wants_table.then(|| state_table(parameters, &gram, max_active, beta)).transpose()?;
        let selection = match options.selection {
            SelectionName::Singleton => match &parameters.noise {
                NoiseCov::Components(sigma2) => {
                    let (precision, offset) = components(sigma2, h, (beta, log_det_noise));
                    Scores::Independent { precision: pack(&precision, d, h), offset: round(&offset) }
                }
                _ => Scores::Singleton,
            },
            SelectionName::Independent => {
                let (precision, offset) = independent(parameters);
                Scores::Independent { precision: pack(&precision, d, h), offset: round(&offset) }
            }
            SelectionName::Cosine => {
                let scale = |&g: &f64| T::from_f64(if g > 0.0 { 1.0 / g.sqrt() } else { 0.0 });
                Scores::Cosine { scale: diagonal.iter().map(scale).collect() }
            }
            SelectionName::Bound => Scores::Bound,
        };
        // Exactly one component of a mixture is on: their priors sum to 1, and none has a logit.
        let total: f64 = parameters.prior.iter().sum();
        let logit = |p: f64| match kind.is_mixture() {
            true => beta * (p / total).ln(),
            false => beta * (p.ln() - (-p).ln_1p()),
        };
        let log_off: f64 = match kind.is_mixture() {
            true => 0.0,
            false => parameters.prior.iter().map(|&p| (-p).ln_1p()).sum(),
        };
        // The noise without the temperature: the whole joint is raised to the power beta.
        let log_det_noise = log_det_noise - d as f64 * temperature.ln();
        let log_norm = beta * (log_off - 0.5 * (d as f64 * std::f64::consts::TAU.ln() + log_det_noise));
        let offset = |(g, v): (&f64, &f64)| -0.5 * ((g + 1.0 / v) * v).ln();
        let prepared = Self {
            shape,
            full_slab,
            dictionary,
            noise: round(&noise),
            noise_kind,
            prior_logit: parameters.prior.iter().map(|&p| T::from_f64(logit(p))).collect(),
            slab_mean: round(&parameters.slab_mean),
            slab_precision: variances.iter().map(|v| T::from_f64(1.0 / v)).collect(),
            gram_diagonal: round(&diagonal),
            score_offset: diagonal.iter().zip(&variances).map(offset).map(T::from_f64).collect(),
            gram: keep_gram.then(|| triangle(&gram, h)),
            selection,
            table: table.map(|records| round(&records)),
            fixed: None,
            log_norm: T::from_f64(log_norm),
        };
        prepared.model()?;
        Ok(prepared)
    }

    /// The same, selecting latents by scores that were learned: M^T y. (D x H)
    pub fn with_scores(mut self, scores: &[f64]) -> Result<Self> {
        let Shape { dims, latents, .. } = self.shape;
        if scores.len() != dims * latents {
            let what = format!("{} scores where {} are needed", scores.len(), dims * latents);
            return Err(Error::input(what, "the learned selection", "give one per dimension and latent"));
        }
        self.selection = Scores::Learned { weights: pack(scores, dims, latents) };
        self.model()?;
        Ok(self)
    }

    /// The view that inference runs on.
    pub fn model(&self) -> Result<Model<'_, T>> {
        let noise = match (self.noise_kind, self.noise.as_slice()) {
            (NoiseKind::Shared, &[precision]) => Noise::Shared(precision),
            (NoiseKind::Full, factor) => Noise::Full(factor),
            (_, precisions) => Noise::Diagonal(precisions),
        };
        Model::new(Model {
            shape: self.shape,
            dictionary: match &self.dictionary {
                Packed::Float(packed) => Dictionary::Float(packed),
                Packed::Integer(Quantized { width, words, scales }) => {
                    Dictionary::Integer(Integers { width: *width, words, scales, peak: 0 })
                }
            },
            noise,
            prior_logit: &self.prior_logit,
            slab_mean: &self.slab_mean,
            slab_precision: &self.slab_precision,
            gram_diagonal: &self.gram_diagonal,
            score_offset: &self.score_offset,
            gram: self.gram.as_deref(),
            selection: match &self.selection {
                Scores::Singleton => Selection::Singleton,
                Scores::Independent { precision, offset } => Selection::Independent { precision, offset },
                Scores::Cosine { scale } => Selection::Cosine { scale },
                Scores::Bound => Selection::Bound,
                Scores::Learned { weights } => Selection::Learned { weights },
            },
            table: self.table.as_ref().map(|records| StateTable { records, full_slab: self.full_slab }),
            fixed: self.fixed.as_deref(),
            has_slab_mean: false,
            may_lose_digits: false,
            is_transformed: false, // whoever makes it also makes its points
            log_norm: self.log_norm,
        })
        .map_err(|error| match error {
            ModelError::NotFinite { field, index } | ModelError::Range { field, index } => {
                let what = format!("{}[{index}] is beyond the numbers a model can hold", user_name(field));
                Error::input(what, "the model", "rescale data and parameters")
            }
            other => Error::input(other, "the model", "change the sizes"),
        })
    }
}

/// Which states a model has.
pub(crate) fn states_of(options: &Options, kind: Kind, full_slab: bool) -> Result<States> {
    if kind.is_mixture() && options.states == Some(StatesName::Adaptive) {
        let what = "one component of a mixture is on: there is nothing to search for";
        return Err(Error::input(what, "--states adaptive", "leave the flag out"));
    }
    if kind != Kind::Gsc && options.states == Some(StatesName::Table) {
        let what = format!("the states of a model of kind {} have no matrices", kind.spec().name);
        return Err(Error::input(what, "--states table", "leave the flag out"));
    }
    let expansions = u16::try_from(options.expansions).unwrap_or(u16::MAX);
    match (options.states, full_slab) {
        (Some(StatesName::Table), _) | (None, true) => Ok(States::Table),
        (Some(_), true) => {
            let what = "a slab with correlations needs its states' matrices beforehand";
            Err(Error::input(what, "--states", "use --states table, or a diagonal slab"))
        }
        (Some(StatesName::Adaptive), false) => Ok(States::Adaptive { expansions }),
        (Some(StatesName::Subsets) | None, false) => Ok(States::Subsets),
    }
}

/// What users call a field of [`Model`], or how it comes from what they gave.
fn user_name(field: &'static str) -> &'static str {
    match field {
        "dictionary" => "W",
        "noise" => "1 / sigma2",
        "prior" => "logit of pi",
        "slab_mean" => "mu",
        "slab_cov" => "1 / psi2",
        "gram_diagonal" => "W^2 / sigma2",
        "gram" => "W^T Sigma^-1 W",
        other => other,
    }
}

pub(crate) fn not_definite(name: &str) -> Error {
    Error::input("the covariance is not positive definite", name, "add a small multiple of the identity")
}

fn round<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&v| T::from_f64(v)).collect()
}

/// What a symmetric matrix has up to its diagonal, by rows.
fn triangle<T: Real>(matrix: &[f64], n: usize) -> Vec<T> {
    let mut packed = Vec::with_capacity(n * (n + 1) / 2);
    for (i, row) in matrix.chunks_exact(n).enumerate() {
        packed.extend(row[..=i].iter().map(|&v| T::from_f64(v)));
    }
    packed
}

/// 1 / sigma_dc^2, and half the sum of its logarithms relative to that of the pooled noise, which the model's constant has.
fn components(sigma2: &[f64], h: usize, (beta, log_det_noise): (f64, f64)) -> (Vec<f64>, Vec<f64>) {
    let mut offset = vec![0.5 * beta * log_det_noise; h];
    for (i, variance) in sigma2.iter().enumerate() {
        offset[i % h] -= 0.5 * beta * variance.ln();
    }
    (sigma2.iter().map(|v| 1.0 / v).collect(), offset)
}

/// What the projection multiplies the sample with, and ln det Sigma.
fn noise(noise: &NoiseCov, d: usize) -> Result<(Vec<f64>, NoiseKind, f64)> {
    Ok(match noise {
        NoiseCov::Shared(sigma2) => (vec![1.0 / sigma2], NoiseKind::Shared, d as f64 * sigma2.ln()),
        // Pooled beforehand.
        NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => {
            let log_det = sigma2.iter().map(|v| v.ln()).sum();
            (sigma2.iter().map(|v| 1.0 / v).collect(), NoiseKind::Diagonal, log_det)
        }
        NoiseCov::Full(sigma) => {
            let factor = cholesky_inverse(sigma, d).ok_or_else(|| not_definite("sigma2"))?;
            let log_det = (0..d).map(|i| -2.0 * factor[i * (i + 1) / 2 + i].ln()).sum();
            (factor, NoiseKind::Full, log_det)
        }
    })
}

/// 1 / (sigma_d^2 + W_dh^2 psi_h^2) and half the sum of its logarithms [003 eq. 10, corrected factor].
fn independent(parameters: &Parameters) -> (Vec<f64>, Vec<f64>) {
    let h = parameters.latents;
    let (sigma2, psi2) = (parameters.noise_variances(), parameters.slab_variances());
    let entry = |(i, w): (usize, &f64)| 1.0 / (sigma2[i / h] + w * w * psi2[i % h]);
    let precision: Vec<f64> = parameters.dictionary.iter().enumerate().map(entry).collect();
    let mut offset = vec![0.0; h];
    for (i, a) in precision.iter().enumerate() {
        offset[i % h] += 0.5 * a.ln();
    }
    (precision, offset)
}
