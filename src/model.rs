//! Parameters, checked once and then only read: what every later stage works on.
//!
//! A [`Model`] borrows its numbers, from a blob in flash ([`crate::Blob`]) or from vectors of a
//! trainer ([`Model::new`]); it is small, immutable and can be copied, and any number of
//! [`crate::Inference`]s can share the numbers behind it.
//!
//! Notation (the papers' letters, used inside functions): D `dims`, H `latents`, H' `selected`,
//! gamma `max_active`, W `dictionary`, pi `prior`, mu `slab_mean`, Psi `slab_cov`, Sigma `noise`,
//! G = W^T Sigma^-1 W the Gram matrix, K = Psi^-1 (restricted to the active latents), s and z the
//! binary and continuous latents, x = s.z their elementwise product.

mod check;
mod dictionary;

use crate::fixed::fits;
use crate::math::{Real, binomial};
use crate::slices::{span, triangle};

pub use crate::error::ModelError;
pub(crate) use check::positive;
pub use dictionary::{Dictionary, Integers, QUAD, Width};
pub(crate) use dictionary::{float_column, float_columns, with_column};

/// Latents per panel of the packed dictionary.
pub const PANEL: usize = 8;

/// More states per sample than this are refused: nobody waits that long for one sample.
pub const MAX_STATES: u64 = 1 << 32;

/// What latents are, and how they add up to a sample. The numbers are those of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Kind {
    /// Gaussian sparse coding: spike-and-slab latents, y ~ N(W (s.z), Sigma).
    Gsc = 1,
    /// Binary sparse coding, also known as LinCA: latents are on or off, y ~ N(W s, Sigma).
    Bsc = 2,
    /// The same with W >= 0: non-negative matrix factorisation with binary latents.
    Nmf = 3,
    /// Maximal causes: y_d ~ N(max_h s_h W_dh, sigma_d^2), W >= 0.
    Mca = 4,
    /// Maximal causes with strengths: spike-and-slab latents, y_d ~ N(max_h s_h z_h W_dh, sigma_d^2), W >= 0. Sampled only.
    Ssmca = 5,
}

impl Kind {
    /// Whether a latent that is on has a coefficient of its own (otherwise it is 1).
    pub const fn has_slab(self) -> bool {
        matches!(self, Self::Gsc | Self::Ssmca)
    }

    /// Whether W must not be negative.
    pub const fn is_non_negative(self) -> bool {
        matches!(self, Self::Nmf | Self::Mca | Self::Ssmca)
    }

    /// Whether in each dimension the strongest latent counts, instead of their sum.
    pub const fn is_maximal(self) -> bool {
        matches!(self, Self::Mca | Self::Ssmca)
    }

    /// Whether states have no closed form, so that their posterior can only be sampled.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::Ssmca)
    }
}

/// Kind and sizes: all that decides memory and work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// What is inferred.
    pub kind: Kind,
    /// D, observed dimensions.
    pub dims: usize,
    /// H, latents.
    pub latents: usize,
    /// H', latents preselected per sample.
    pub selected: usize,
    /// gamma, most latents on at once.
    pub max_active: usize,
    /// Whether the states with a single latent on are kept for all H latents, selected or not.
    pub singletons: bool,
}

impl Shape {
    /// Number of states kept per sample, |K_n|; `u64::MAX` when it does not fit.
    ///
    /// ```
    /// # use spikelet::{Shape, model::Kind};
    /// let (dims, latents, selected, max_active) = (16, 32, 8, 3);
    /// let shape = Shape { kind: Kind::Gsc, dims, latents, selected, max_active, singletons: true };
    /// assert_eq!(shape.states(), 93 + 24);
    /// ```
    pub const fn states(&self) -> u64 {
        let mut states = if self.singletons { self.latents.saturating_sub(self.selected) as u64 } else { 0 };
        let mut k = 0;
        while k <= self.max_active {
            states = states.saturating_add(binomial(self.selected as u64, k as u64));
            k += 1;
        }
        states
    }

    /// Whether models of this shape can be inferred in integers: see [`Model::fixed`].
    ///
    /// ```
    /// # use spikelet::{Shape, model::Kind};
    /// let shape = Shape { kind: Kind::Gsc, dims: 4, latents: 6, selected: 6, max_active: 3, singletons: true };
    /// assert!(shape.fits_integers() && !Shape { max_active: 4, ..shape }.fits_integers());
    /// ```
    pub const fn fits_integers(&self) -> bool {
        fits(self)
    }

    /// There are at most 2 to this power states: cheap to tell, and close enough to say which of them matter.
    pub(crate) const fn state_bits(&self) -> u32 {
        const fn digits(n: usize) -> u32 {
            usize::BITS - n.leading_zeros()
        }
        let (subsets, words) = (self.selected as u32, self.max_active as u32 * digits(self.selected));
        let walked = if subsets < words { subsets } else { words };
        let outside = digits(self.latents);
        1 + if walked > outside { walked } else { outside }
    }
}

/// Sigma, stored as what the projection multiplies with.
#[derive(Clone, Copy, Debug)]
pub enum Noise<'a, T> {
    /// sigma^2 I: the precision 1 / sigma^2.
    Shared(T),
    /// One variance per dimension: the D precisions.
    Diagonal(&'a [T]),
    /// Any covariance: the inverse of its lower Cholesky factor, packed by rows, D (D + 1) / 2.
    Full(&'a [T]),
}

/// How latents are scored before any state is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a, T> {
    /// ln p(y | only h on), without what all h share [000 eq. 25].
    Singleton,
    /// The D dimensions taken as independent given h on [003 eq. 10, corrected: W^2 psi^2].
    Independent {
        /// 1 / (sigma_d^2 + W_dh^2 psi_h^2) in the layout of the dictionary.
        precision: &'a [T],
        /// 1/2 sum_d ln of these precisions, one per latent.
        offset: &'a [T],
    },
    /// W_h . y / |W_h|, lengths and products measured by Sigma^-1. Not for [`Kind::Gsc`]: it knows no sign.
    Cosine {
        /// 1 / sqrt(G_hh), 0 for a column of zeros.
        scale: &'a [T],
    },
    /// ln of the most that states with h on can reach, -1/2 sum_d max(W_dh - y_d, 0)^2 / sigma_d^2: where W >= 0 the
    /// other latents only add to what h alone has too much. Noise shared or diagonal.
    Bound,
}

/// Where the matrices of a state come from.
#[derive(Clone, Copy, Debug)]
pub enum States<'a, T> {
    /// Grown along the walk, one row of the factor per latent added. Diagonal slab only.
    Grown,
    /// Precomputed for every subset of the H latents of size 1 to gamma: see [`StateTable`].
    Table(StateTable<'a, T>),
}

/// Precomputed factors of every state, ordered by number of active latents k, then by
/// colexicographic rank of the subset.
///
/// A record holds ln(prior odds) - 1/2 ln det M - 1/2 ln det Psi_AA, then L^-1 packed by rows
/// (L L^T = M, latents ascending), then, with a full slab, K = Psi_AA^-1 packed by rows.
#[derive(Clone, Copy, Debug)]
pub struct StateTable<'a, T> {
    /// All records, one after the other.
    pub records: &'a [T],
    /// Whether K is stored (full slab); otherwise it is the diagonal of the slab precisions.
    pub full_slab: bool,
}

impl<T> StateTable<'_, T> {
    /// Numbers in the record of a state with `k` latents on.
    pub const fn record_len(k: usize, full_slab: bool) -> usize {
        1 + triangle(k) * if full_slab { 2 } else { 1 }
    }

    /// Numbers in the records of all states of `latents` with 1 to `max_active` on; `None` when
    /// that is more than a 32-bit offset reaches.
    pub const fn len(latents: usize, max_active: usize, full_slab: bool) -> Option<usize> {
        let mut sum: u64 = 0;
        let mut k = 1;
        while k <= max_active {
            let record = Self::record_len(k, full_slab) as u64;
            sum = sum.saturating_add(binomial(latents as u64, k as u64).saturating_mul(record));
            k += 1;
        }
        if sum > (u32::MAX / 8) as u64 { None } else { Some(sum as usize) }
    }
}

/// What inference in integers needs of a latent (`fixed`), s = 1 / sqrt(G + K): s, as a mantissa with 30 digits behind the
/// point and an exponent; -1/2 ln((G + K) Psi) - 1/2 K mu^2, and the prior's logit, in bits with 13 digits behind the point;
/// sqrt(log2 e) K mu s with 22; K / (G + K) with 30.
pub type FixedLatent = [i32; 6];

/// A model, ready for inference. See [`Model::new`] for the checks it has passed.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a, T> {
    /// Sizes.
    pub shape: Shape,
    /// W.
    pub dictionary: Dictionary<'a, T>,
    /// Observation noise.
    pub noise: Noise<'a, T>,
    /// l_h = ln pi_h - ln(1 - pi_h).
    pub prior_logit: &'a [T],
    /// mu_h. Like the other two of the slab, empty where latents have none ([`Kind::has_slab`]).
    pub slab_mean: &'a [T],
    /// 1 / Psi_hh.
    pub slab_precision: &'a [T],
    /// Diagonal of G.
    pub gram_diagonal: &'a [T],
    /// -1/2 ln((G_hh + 1 / Psi_hh) Psi_hh), the part of the singleton score that no sample changes.
    pub score_offset: &'a [T],
    /// G packed by rows, H (H + 1) / 2; without it the H' x H' block is computed per sample. Maximal causes need none.
    pub gram: Option<&'a [T]>,
    /// How latents are preselected.
    pub selection: Selection<'a, T>,
    /// How the matrices of a state come about.
    pub states: States<'a, T>,
    /// Where samples are inferred in integers: the latents as such.
    pub fixed: Option<&'a [FixedLatent]>,
    /// -D/2 ln(2 pi) - 1/2 ln det Sigma + sum_h ln(1 - pi_h).
    pub log_norm: T,
}

impl<'a, T: Real> Model<'a, T> {
    /// The same model with another truncation. A table of states must reach as far.
    pub fn with_truncation(mut self, selected: usize, max_active: usize) -> Result<Self, ModelError> {
        if let States::Table(table) = &mut self.states {
            // Records are ordered by size, so fewer active latents read a prefix of the table.
            match StateTable::<T>::len(self.shape.latents, max_active, table.full_slab) {
                Some(len) if len <= table.records.len() => table.records = span(table.records, 0, len),
                _ => return Err(ModelError::Size { field: "max_active" }),
            }
        }
        self.shape.selected = selected;
        self.shape.max_active = max_active;
        self.shape.check()?;
        self.fixed = self.fixed.filter(|_| fits(&self.shape));
        Ok(self)
    }

    /// W_h, from dimension 0 on.
    pub fn column(&self, latent: usize) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        self.dictionary.column(self.shape.dims, latent)
    }

    /// W_dh.
    pub fn entry(&self, dim: usize, latent: usize) -> T {
        self.dictionary.entry(self.shape.dims, dim, latent)
    }

    /// W x into `out`, for instance a denoised sample from posterior means: D multiply-adds per
    /// nonzero entry of `x`.
    pub fn reconstruct(&self, x: &[T], out: &mut [T]) {
        out.fill(T::ZERO);
        for (h, &x) in x.iter().enumerate() {
            if x != T::ZERO {
                with_column!(self, h, |column| {
                    for (out, w) in out.iter_mut().zip(column) {
                        *out += w * x;
                    }
                });
            }
        }
    }
}
