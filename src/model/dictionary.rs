//! W as it lies in flash: numbers, or integers of 16 or 8 bits with one scale per latent.
//!
//! **Integers.** W_dh = q_dh c_h with a scale c_h > 0 for each column. Four latents stand side by side, and four dimensions
//! make a group, so that one word holds what Cortex-M's dual multiply (SMLAD) takes at once:
//!
//! ```text
//! i16, group g of quad k: the words  q_0 q_1 of latents 4k .. 4k + 3, then q_2 q_3 of the same   (lower half first)
//! i8,  group g of quad k: the words  q_0 q_2 q_1 q_3 of latents 4k .. 4k + 3                     (lower byte first)
//! ```
//!
//! with q_i short for dimension 4g + i. SXTB16 takes the bytes 0 and 2 of a word, rotated by eight bits the bytes 1 and 3:
//! the pairs come out in order. D and H are filled up to multiples of four with zeros.
//!
//! **Exact sums.** A sample becomes integers v_d with |v_d| <= `peak` (see [`crate::kernel`]), where `peak` is the largest
//! number, up to 32767, such that `peak` times sum_d |q_dh| is below 2^31 for every latent. So no partial sum of
//! q_dh v_d can leave 32 bits, in whatever order it is made: every core and vector unit gives the same integer. For 8 bits
//! `peak` is 32767 up to D = 516, whatever W is; for 16 bits the exporter chooses c_h so that both factors keep about as
//! many digits (14 bits and a sign for D = 16, 12 for D = 256, where columns are normal).

use super::{ModelError, PANEL};
use crate::counts::Count;
use crate::features::INTEGERS;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, span};

/// Latents side by side, and dimensions in a group, of a dictionary of integers.
pub const QUAD: usize = 4;

/// How wide the integers of a dictionary are. The numbers are those of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Width {
    /// 16 bits.
    I16 = 1,
    /// 8 bits.
    I8 = 2,
}

impl Width {
    /// Words that a group of four dimensions of four latents takes.
    pub const fn group(self) -> usize {
        match self {
            Self::I16 => 2 * QUAD,
            Self::I8 => QUAD,
        }
    }

    /// Words of a whole dictionary; `None` when that does not fit.
    pub const fn words(self, dims: usize, latents: usize) -> Option<usize> {
        match dims.div_ceil(QUAD).checked_mul(self.group()) {
            Some(quad) => latents.div_ceil(QUAD).checked_mul(quad),
            None => None,
        }
    }

    /// Dimension `dim` of a latent in the groups of a quad.
    #[inline(always)]
    fn integer(self, quad: &[u32], dim: usize, lane: usize) -> i32 {
        // 2 or 4 to a word; one formula for both, so that no loop asks for the width.
        let width = self as usize;
        let word = quad.get(QUAD * (dim >> width) + lane).copied().unwrap_or_default();
        let (above, shift) = (8 + 8 * width, 16 * (dim % 2) + (8 * width - 8) * (dim / 2 % 2));
        (word << (above - shift)) as i32 >> above
    }

    /// The pairs of dimensions (0, 1) and (2, 3) of a latent in a group.
    #[inline(always)]
    pub(crate) fn pairs(self, group: &[u32], lane: usize) -> [[i32; 2]; 2] {
        let word = |i: usize| group.get(i).copied().unwrap_or_default() as i32;
        match self {
            Self::I16 => [lane, lane + QUAD].map(|i| [i32::from(word(i) as i16), word(i) >> 16]),
            Self::I8 => {
                let w = word(lane);
                let byte = |shift: u32| w << (24 - shift) >> 24;
                [[byte(0), byte(16)], [byte(8), byte(24)]]
            }
        }
    }
}

/// A dictionary of integers: see the top of the module.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'a, T> {
    /// How wide they are.
    pub width: Width,
    /// The integers, packed.
    pub words: &'a [u32],
    /// c_h.
    pub scales: &'a [T],
    /// The largest integer of a sample; 0 until [`super::Model::new`] has found it.
    pub peak: u16,
}

impl<'a, T: Real> Integers<'a, T> {
    /// The groups of the quad that has this latent.
    #[inline(never)]
    pub(crate) fn quad(&self, dims: usize, latent: usize) -> &'a [u32] {
        let len = dims.div_ceil(QUAD) * self.width.group();
        span(self.words, latent / QUAD * len, len)
    }

    /// W_h.
    pub(crate) fn column(self, dims: usize, latent: usize) -> IntegerColumn<'a, T> {
        if self.width == Width::I16 {
            Count::DecodedI16.add(dims)
        } else {
            Count::DecodedI8.add(dims)
        }
        let (quad, scale) = (self.quad(dims, latent), at(self.scales, latent));
        IntegerColumn { width: self.width, quad, lane: latent % QUAD, scale, dims: 0..dims }
    }

    /// q_dh.
    pub(crate) fn integer(&self, dims: usize, dim: usize, latent: usize) -> i32 {
        self.width.integer(self.quad(dims, latent), dim, latent % QUAD)
    }

    /// q_dh q_dj, dimension by dimension, with zeros after the last.
    #[inline(always)]
    pub(crate) fn each_product(&self, dims: usize, latent: usize, other: usize, mut visit: impl FnMut(i32)) {
        let rows = |latent: usize| self.quad(dims, latent).as_chunks::<QUAD>().0.iter();
        let words = rows(latent).zip(rows(other));
        let words = words.map(|(row, others)| (row[latent % QUAD] as i32, others[other % QUAD] as i32));
        match self.width {
            Width::I8 => words.for_each(|(w, v)| {
                // q_0 q_2 q_1 q_3, the lower byte first.
                for shift in [24, 8, 16, 0] {
                    visit((w << shift >> 24) * (v << shift >> 24));
                }
            }),
            // Each product has 30 bits at most.
            Width::I16 => words.for_each(|(w, v)| {
                visit(i32::from(w as i16) * i32::from(v as i16));
                visit((w >> 16) * (v >> 16));
            }),
        }
    }

    /// sum_d q_dh q_dj, exact: below 2^46, since the integers of a column sum up to less than 2^31.
    pub(crate) fn sum(&self, dims: usize, latent: usize, other: usize) -> i64 {
        let mut sum = 0i64;
        self.each_product(dims, latent, other, |product| sum += i64::from(product));
        sum
    }

    /// W_h^T W_j: an exact sum, rounded when it becomes a number.
    pub(crate) fn product(&self, dims: usize, latent: usize, other: usize) -> T {
        let sum = self.sum(dims, latent, other);
        // In two parts, neither of which is rounded.
        let (high, low) = ((sum >> 24) as i32, (sum & 0xff_ffff) as i32);
        (T::from_i32(high) * T::from_i32(1 << 24) + T::from_i32(low))
            * (at(self.scales, latent) * at(self.scales, other))
    }

    /// Checks sizes and ranges, and finds the peak.
    pub(super) fn checked(
        mut self,
        dims: usize,
        latents: usize,
        non_negative: bool,
    ) -> Result<Self, ModelError> {
        let field = "dictionary";
        let (Some(expected), true) = (self.width.words(dims, latents), dims > 1) else {
            return Err(ModelError::Size { field: "dims" });
        };
        if self.words.len() != expected {
            return Err(ModelError::Length { field, expected, found: self.words.len() });
        }
        if self.scales.len() != latents {
            return Err(ModelError::Length { field: "scales", expected: latents, found: self.scales.len() });
        }
        // The largest integer there is times the scale must be a number too.
        let most = T::from_i32(32768);
        if let Some(index) = self.scales.iter().position(|&c| !(c >= T::ZERO && (c * most).is_finite())) {
            return Err(ModelError::Range { field: "scales", index });
        }
        let mut largest = 1u32;
        for latent in 0..latents.next_multiple_of(QUAD) {
            // A sum that leaves the range leaves no peak either, and is refused.
            let mut sum = 0u32;
            for (g, group) in self.quad(dims, latent).chunks_exact(self.width.group()).enumerate() {
                for q in self.width.pairs(group, latent % QUAD).as_flattened() {
                    if *q < 0 && non_negative {
                        let index = g * QUAD * latents + latent;
                        return Err(ModelError::Range { field, index });
                    }
                    sum = sum.saturating_add(q.unsigned_abs());
                }
            }
            largest = largest.max(sum);
        }
        let peak = (i32::MAX as u32).checked_div(largest).unwrap_or_default();
        self.peak = peak.min(i16::MAX as u32) as u16;
        if self.peak == 0 { Err(ModelError::Size { field }) } else { Ok(self) }
    }
}

/// W.
#[derive(Clone, Copy, Debug)]
pub enum Dictionary<'a, T> {
    /// In panels of [`PANEL`] latents: panel by panel, dimension by dimension, one number per latent of the panel; the
    /// last panel is filled up with zeros.
    Float(&'a [T]),
    /// As integers with scales.
    Integer(Integers<'a, T>),
}

impl<'a, T: Real> Dictionary<'a, T> {
    /// The same, and where this build has no integers, the compiler knows that there are none.
    #[inline(always)]
    pub(crate) fn known(self) -> Self {
        match self {
            Self::Integer(_) if !INTEGERS => Self::Float(&[]),
            known => known,
        }
    }

    /// W_h, from dimension 0 on.
    pub(super) fn column(&self, dims: usize, latent: usize) -> Column<'a, T> {
        match self.known() {
            Self::Float(packed) => {
                Column::Float(FloatColumn { rows: panel(packed, dims, latent).iter(), latent })
            }
            Self::Integer(integers) => Column::Integer(integers.column(dims, latent)),
        }
    }

    /// W_dh.
    pub(super) fn entry(&self, dims: usize, dim: usize, latent: usize) -> T {
        match self.known() {
            Self::Float(packed) => at(packed, (latent / PANEL * dims + dim) * PANEL + latent % PANEL),
            Self::Integer(integers) => {
                T::from_i32(integers.integer(dims, dim, latent)) * at(integers.scales, latent)
            }
        }
    }
}

/// W_h of a packed dictionary of floats. An iterator of the standard library's: zipped with other slices it needs one
/// count for all of them.
#[inline(always)]
pub(crate) fn float_column<T: Real>(
    packed: &[T],
    dims: usize,
    latent: usize,
) -> impl Iterator<Item = T> + Clone + use<'_, T> {
    // The remainder tells the compiler that there is no bound to check.
    panel(packed, dims, latent).iter().map(move |row| row[latent % PANEL])
}

/// W_h and W_j, entry by entry.
#[inline(always)]
pub(crate) fn float_columns<T: Real>(
    packed: &[T],
    dims: usize,
    h: usize,
    j: usize,
) -> impl Iterator<Item = (T, T)> {
    let rows = panel(packed, dims, h).iter().zip(panel(packed, dims, j));
    rows.map(move |(row, other)| (row[h % PANEL], other[j % PANEL]))
}

/// The panel that has this latent.
#[inline(always)]
fn panel<T>(packed: &[T], dims: usize, latent: usize) -> &[[T; PANEL]] {
    let stride = dims * PANEL;
    span(packed, latent / PANEL * stride, stride).as_chunks().0
}

/// One latent of a panel, dimension by dimension.
#[derive(Clone, Debug)]
pub(crate) struct FloatColumn<'a, T> {
    rows: core::slice::Iter<'a, [T; PANEL]>,
    latent: usize,
}

impl<T: Real> Iterator for FloatColumn<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        Some(self.rows.next()?[self.latent % PANEL])
    }
}

/// The same of integers.
#[derive(Clone, Debug)]
pub(crate) struct IntegerColumn<'a, T> {
    width: Width,
    quad: &'a [u32],
    lane: usize,
    scale: T,
    dims: core::ops::Range<usize>,
}

impl<T: Real> Iterator for IntegerColumn<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let q = self.width.integer(self.quad, self.dims.next()?, self.lane);
        Some(T::from_i32(q) * self.scale)
    }
}

impl<T: Real> IntegerColumn<'_, T> {
    /// `next`, once for all loops over [`Column`]s: they are short, or about floats.
    #[inline(never)]
    fn next_apart(&mut self) -> Option<T> {
        self.next()
    }
}

/// A column of W, whatever it is stored as; for loops that take long see [`with_column`].
#[derive(Clone, Debug)]
pub(crate) enum Column<'a, T> {
    Float(FloatColumn<'a, T>),
    Integer(IntegerColumn<'a, T>),
}

impl<T: Real> Iterator for Column<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        match self {
            Self::Float(column) => column.next(),
            Self::Integer(column) => column.next_apart(),
        }
    }
}

/// An expression with a column of W, once for each way to store it: the loop in it need not ask in every turn.
macro_rules! with_column {
    ($model:expr, $latent:expr, |$column:ident| $body:expr) => {
        match $model.dictionary.known() {
            $crate::model::Dictionary::Float(packed) => {
                let $column = $crate::model::float_column(packed, $model.shape.dims, $latent);
                $body
            }
            $crate::model::Dictionary::Integer(integers) => {
                let $column = integers.column($model.shape.dims, $latent);
                $body
            }
        }
    };
}
pub(crate) use with_column;
