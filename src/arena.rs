//! The caller's memory, cut into the arrays that inference works in. Nothing else is allocated.
//!
//! Its length is known from the shape alone ([`arena_len`], a `const fn`), grows with D, H and
//! gamma H'^2 (and gamma^3 with second moments), and never with the number of states.

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::error::Error;
use crate::grown::{BranchMemory, branch_len};
use crate::math::Real;
use crate::model::Shape;
use crate::slices::triangle;

/// What inference reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Detail {
    /// Activity, mean and variance of each latent, the best state, the evidence.
    Marginals,
    /// Also `<(s.z)(s.z)^T>` over the selected latents, as a trainer needs it.
    SecondMoments,
    /// Also the slab's pull and its products, as learning a full slab needs them; with tables of states only.
    SlabPull,
}

/// Numbers (of the model's precision) that inference needs as memory.
///
/// ```
/// use spikelet::{Detail, Shape, arena_len};
/// const SHAPE: Shape = Shape { dims: 4, latents: 6, selected: 6, max_active: 3, singletons: true };
/// let memory = [0.0f32; arena_len(SHAPE, Detail::Marginals)];
/// assert_eq!(memory.len(), 328);
/// ```
pub const fn arena_len(shape: Shape, detail: Detail) -> usize {
    let Shape { dims: d, latents: h, selected: s, max_active: a, .. } = shape;
    let block = s * s + 8 * s;
    let (latents, pairs) = branch_len(s, a);
    let work = triangle(a - 1) + 5 * a;
    let marginals = 2 * d + 4 * h + block + 7 * latents + 2 * pairs + work + 4 * s + a;
    match detail {
        Detail::Marginals => marginals,
        Detail::SecondMoments => marginals + s * s + triangle(a),
        Detail::SlabPull => marginals + 2 * s * s + s + triangle(a) + a * a + a,
    }
}

/// Bytes of memory that the C interface asks for per stream, the same on every target: a fixed part
/// for the model view and the lists of latents, then [`arena_len`] numbers.
pub const fn state_bytes(shape: Shape) -> usize {
    STATE_BASE + 4 * arena_len(shape, Detail::Marginals).next_multiple_of(2)
}

/// The fixed part of [`state_bytes`]: the C interface checks when it is built that its state fits.
pub const STATE_BASE: usize = 384 + (4 * MAX_SELECTED + 2 * MAX_ACTIVE).next_multiple_of(8);

/// The arrays, named by what they hold. Sizes: D `dims`, H `latents`, S `selected`, A `max_active`.
#[derive(Debug)]
pub(crate) struct Arena<'m, T> {
    /// The sample y, later what the reference state leaves of it. (D)
    pub sample: &'m mut [T],
    /// Sigma^-1 times it. (D)
    pub weighted: &'m mut [T],
    /// b = W^T Sigma^-1 y. (H)
    pub projection: &'m mut [T],
    /// Selection scores, then `<s>`. (H)
    pub activity: &'m mut [T],
    /// Log joints of the singleton states, then `<s.z>`. (H)
    pub mean: &'m mut [T],
    /// Posterior variance of s.z. (H)
    pub variance: &'m mut [T],
    pub block: BlockMemory<'m, T>,
    /// The branches of the walk: see [`crate::grown`].
    pub branches: BranchMemory<'m, T>,
    pub work: WorkMemory<'m, T>,
    pub sums: SumMemory<'m, T>,
    /// Coefficients of the best state. (A)
    pub map_values: &'m mut [T],
}

/// What belongs to the selected latents: see [`crate::block`]. (S each, `gram` S x S)
#[derive(Debug)]
pub(crate) struct BlockMemory<'m, T> {
    pub gram: &'m mut [T],
    pub b: &'m mut [T],
    pub slab: &'m mut [[T; 5]],
    pub resting: &'m mut [T],
    pub reference: &'m mut [T],
}

/// A small linear system and the moments of one state. (A each; `rows` A (A - 1) / 2, `covariance`
/// A (A + 1) / 2 or empty)
#[derive(Debug)]
pub(crate) struct WorkMemory<'m, T> {
    pub rows: &'m mut [T],
    pub pivot_inv: &'m mut [T],
    pub coupling: &'m mut [T],
    pub v: &'m mut [T],
    pub mean: &'m mut [T],
    pub variance: &'m mut [T],
    pub covariance: &'m mut [T],
}

/// Sums over states. (S each, `second` and `pull_second` S x S; the last five may be empty)
#[derive(Debug)]
pub(crate) struct SumMemory<'m, T> {
    pub on: &'m mut [T],
    pub off: &'m mut [T],
    pub first: &'m mut [T],
    pub square: &'m mut [T],
    pub second: &'m mut [T],
    pub pull: &'m mut [T],
    pub pull_second: &'m mut [T],
    /// Scratch: the pull in one state (A), G_AA Lambda (A x A).
    pub pull_of_state: &'m mut [T],
    pub solved: &'m mut [T],
}

impl<'m, T: Real> Arena<'m, T> {
    pub fn new(memory: &'m mut [T], shape: Shape, detail: Detail) -> Result<Self, Error> {
        let (needed, found) = (arena_len(shape, detail), memory.len());
        Self::cut(memory, shape, detail).ok_or(Error::Memory { needed, found })
    }

    fn cut(memory: &'m mut [T], shape: Shape, detail: Detail) -> Option<Self> {
        let Shape { dims: d, latents: h, selected: s, max_active: a, .. } = shape;
        let (second, covariance, pull) = match detail {
            Detail::Marginals => (0, 0, 0),
            Detail::SecondMoments => (s * s, triangle(a), 0),
            Detail::SlabPull => (s * s, triangle(a), s),
        };
        let (pull_of_state, solved) = if pull > 0 { (a, a * a) } else { (0, 0) };
        let (latents, pairs) = branch_len(s, a);
        let mut rest = memory;
        let mut take = |len: usize| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut_checked(len)?;
            rest = tail;
            Some(head)
        };
        Some(Self {
            sample: take(d)?,
            weighted: take(d)?,
            projection: take(h)?,
            activity: take(h)?,
            mean: take(h)?,
            variance: take(h)?,
            block: BlockMemory {
                gram: take(s * s)?,
                b: take(s)?,
                slab: take(5 * s)?.as_chunks_mut().0,
                resting: take(s)?,
                reference: take(s)?,
            },
            branches: BranchMemory {
                latents: take(7 * latents)?.as_chunks_mut().0,
                pairs: take(2 * pairs)?.as_chunks_mut().0,
            },
            work: WorkMemory {
                rows: take(triangle(a - 1))?,
                pivot_inv: take(a)?,
                coupling: take(a)?,
                v: take(a)?,
                mean: take(a)?,
                variance: take(a)?,
                covariance: take(covariance)?,
            },
            sums: SumMemory {
                on: take(s)?,
                off: take(s)?,
                first: take(s)?,
                square: take(s)?,
                second: take(second)?,
                pull: take(pull)?,
                pull_second: take(pull * s)?,
                pull_of_state: take(pull_of_state)?,
                solved: take(solved)?,
            },
            map_values: take(a)?,
        })
    }
}
