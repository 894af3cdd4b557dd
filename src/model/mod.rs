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
mod fixed;
mod needs;

use crate::counts::Count;
use crate::numeric::math::{Real, binomial};
use crate::numeric::slices::{at, span, triangle};

pub use crate::error::ModelError;
pub use crate::kinds::Kind;
pub(crate) use check::{Sign, numbers};
pub use dictionary::{Dictionary, Integers, QUAD, Width};
pub(crate) use dictionary::{float_column, float_columns, with_column};
pub use fixed::FixedLatent;
use needs::left_out;

/// Latents per panel of the packed dictionary.
pub const PANEL: usize = 8;

/// Models with more states per sample are refused.
pub const MAX_STATES: u64 = 1 << 32;

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
    /// Whether the states with a single latent on are kept for all H latents, selected or not. Not with adaptive states. Of a
    /// mixture these are all states there are.
    pub singletons: bool,
    /// Which states are evaluated.
    pub states: States,
}

/// Which states of a sample are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum States {
    /// Those that a search around a greedy reference finds, among at most H' candidates, the reference's latents included: see
    /// `src/states`. Diagonal slab.
    Adaptive {
        /// X: states whose neighbours are evaluated.
        expansions: u16,
    },
    /// The papers': all with at most gamma of the H' latents on that have the best scores. Diagonal slab.
    Subsets,
    /// The same, with matrices that were computed beforehand for every state ([`Model::table`]). Any slab.
    Table,
}

impl Shape {
    /// Number of states kept per sample, |K_n|, at most; `u64::MAX` when it does not fit.
    ///
    /// ```
    /// # use spikelet::{Kind, Shape, model::States};
    /// let (kind, dims, latents, selected, max_active) = (Kind::Gsc, 16, 32, 8, 3);
    /// let shape = Shape { kind, dims, latents, selected, max_active, singletons: true, states: States::Subsets };
    /// assert_eq!(shape.states(), 93 + 24);
    /// assert_eq!(Shape { states: States::Adaptive { expansions: 4 }, ..shape }.states(), 1 + 4 * 8);
    /// ```
    pub const fn states(&self) -> u64 {
        if let States::Adaptive { expansions } = self.states {
            return 1 + self.selected as u64 * expansions as u64;
        }
        if self.kind.is_mixture() {
            return if self.singletons { self.latents as u64 } else { self.selected as u64 };
        }
        let mut states = if self.singletons { self.latents.saturating_sub(self.selected) as u64 } else { 0 };
        let mut k = 0;
        while k <= self.max_active {
            states = states.saturating_add(binomial(self.selected as u64, k as u64));
            k += 1;
        }
        states
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

/// How latents are scored before any state is evaluated.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a, T> {
    /// ln p(y | only h on), without what all h share [000 eq. 25].
    Singleton,
    /// The D dimensions taken as independent given h on [003 eq. 10, corrected: W^2 psi^2].
    Independent {
        /// 1 / (sigma_d^2 + W_dh^2 psi_h^2) in the layout of the dictionary; of a mixture 1 / sigma_dh^2, whose components then
        /// have variances of their own.
        precision: &'a [T],
        /// 1/2 sum_d ln of these precisions, one per latent; of a mixture relative to that of Sigma.
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
    /// M_h . y with a matrix learned beside the model [004 ch. 4, linear kernel]. Any kind; with adaptive states the first candidates.
    Learned {
        /// M in the layout of a dictionary of floats.
        weights: &'a [T],
    },
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

/// A model, ready for inference. See [`Model::new`] for the checks it has passed.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a, T> {
    /// Sizes.
    pub shape: Shape,
    /// W.
    pub dictionary: Dictionary<'a, T>,
    /// Observation noise.
    pub noise: Noise<'a, T>,
    /// l_h = ln pi_h - ln(1 - pi_h); ln pi_h of a mixture.
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
    /// The matrices of all states, with [`States::Table`].
    pub table: Option<StateTable<'a, T>>,
    /// Where samples are inferred in integers: the latents as such.
    pub fixed: Option<&'a [FixedLatent]>,
    /// Whether points are coefficients of a transform, which a stream makes of samples, rather than samples.
    pub is_transformed: bool,
    /// Whether any mu_h is other than zero; found out by [`Model::new`].
    pub has_slab_mean: bool,
    /// Whether the noise is so far below some slab that rounding errors of G_hh are no less than K_h; found out by [`Model::new`].
    pub may_lose_digits: bool,
    /// -D/2 ln(2 pi) - 1/2 ln det Sigma + sum_h ln(1 - pi_h); of a mixture without the last.
    pub log_norm: T,
}

impl<'a, T: Real> Model<'a, T> {
    /// The same model with other states. A table of states must reach as far. Where integers do not serve them, it is one of floats.
    pub fn with_states(
        mut self,
        selected: usize,
        max_active: usize,
        states: States,
    ) -> Result<Self, ModelError> {
        if let Some(table) = &mut self.table {
            // Records are ordered by size, so fewer active latents read a prefix of the table.
            match StateTable::<T>::len(self.shape.latents, max_active, table.full_slab) {
                Some(len) if len <= table.records.len() => table.records = span(table.records, 0, len),
                _ => return Err(ModelError::Size { field: "max_active" }),
            }
        }
        let singletons = self.shape.singletons && !matches!(states, States::Adaptive { .. });
        self.shape = Shape { selected, max_active, states, singletons, ..self.shape };
        self.shape.check()?;
        self.check_states()?;
        self.fixed = self.fixed.filter(|_| self.shape.fits_integers());
        match left_out(&self) {
            Some(features) => Err(ModelError::LeftOut { features }),
            None => Ok(self),
        }
    }

    /// Whether the slab has correlations, which only a table of states knows.
    pub fn has_full_slab(&self) -> bool {
        self.table.is_some_and(|table| table.full_slab)
    }

    /// W_h, from dimension 0 on.
    pub fn column(&self, latent: usize) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        self.dictionary.column(self.shape.dims, latent)
    }

    /// W_dh.
    pub fn entry(&self, dim: usize, latent: usize) -> T {
        self.dictionary.entry(self.shape.dims, dim, latent)
    }

    /// 1 / sigma_d^2 where noise has no correlations.
    pub(crate) fn precision(&self, dim: usize) -> T {
        match self.noise {
            Noise::Shared(precision) => precision,
            Noise::Diagonal(precisions) | Noise::Full(precisions) => at(precisions, dim),
        }
    }

    /// W x into `out`, for instance a denoised sample from posterior means: D multiply-adds per
    /// nonzero entry of `x`.
    pub fn reconstruct(&self, x: &[T], out: &mut [T]) {
        out.fill(T::ZERO);
        for (h, &x) in x.iter().enumerate() {
            if x != T::ZERO {
                Count::Columns.add(out.len());
                with_column!(self, h, |column| {
                    for (out, w) in out.iter_mut().zip(column) {
                        *out += w * x;
                    }
                });
            }
        }
    }
}
