//! The caller's memory, cut into the arrays that inference works in. Nothing else is allocated.
//!
//! Its length is known from the shape alone ([`arena_len`], a `const fn`), grows with D, H and
//! gamma H'^2 (and gamma^3 with second moments); with the number of states only where these are few ([`crate::kept`]).

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::error::Error;
use crate::features::DETAIL;
use crate::grown::branch_len;
use crate::kept::kept_len;
use crate::math::Real;
use crate::model::Shape;
use crate::slices::triangle;
use crate::switched::{SwitchMemory, switch_len};

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
/// use spikelet::{Detail, Shape, arena_len, model::Kind};
/// const SIZES: Shape =
///     Shape { kind: Kind::Gsc, dims: 4, latents: 6, selected: 6, max_active: 3, singletons: true };
/// let memory = [0.0f32; arena_len(SIZES, Detail::Marginals)];
/// assert_eq!(memory.len(), 335);
/// ```
pub const fn arena_len(shape: Shape, detail: Detail) -> usize {
    len(shape, detail, shape.kind.is_sampled())
}

/// The same for Gibbs sampling ([`crate::Engine::Gibbs`]), whatever its settings. gamma does not matter.
///
/// ```
/// use spikelet::{Detail, Kind, Shape, gibbs_arena_len};
/// let (dims, latents, selected, max_active) = (256, 10_000, 20, 3);
/// let shape = Shape { kind: Kind::Gsc, dims, latents, selected, max_active, singletons: false };
/// assert!(gibbs_arena_len(shape, Detail::Marginals) < 2 * dims + 4 * latents + 1200);
/// ```
pub const fn gibbs_arena_len(shape: Shape, detail: Detail) -> usize {
    len(shape, detail, true)
}

const fn len(shape: Shape, detail: Detail, sampled: bool) -> usize {
    let Shape { dims: d, latents: h, selected: s, .. } = shape;
    let Sizes {
        active: a,
        gram,
        slab,
        factor,
        branches,
        switches,
        chain,
        maxima,
        borders,
        second,
        covariance,
        pull,
    } = Sizes::new(shape, detail, sampled);
    let block = gram + 2 * s + 5 * slab + slab;
    let walk = branches + switches.0 + switches.1;
    let work = triangle(factor.saturating_sub(1)) + 5 * factor + covariance;
    let sums = 2 * s + 2 * slab + second + pull + pull * s + if pull > 0 { a + a * a } else { 0 };
    let chains = 4 * chain + 2 * maxima + 5 * borders;
    2 * d + 4 * h + block + walk + chains + work + sums + a
}

/// Lengths that depend on the kind or the detail.
struct Sizes {
    /// A: most latents on at once.
    active: usize,
    gram: usize,
    /// S with a slab.
    slab: usize,
    /// A with a slab.
    factor: usize,
    /// What [`crate::grown`] and [`crate::kept`] share.
    branches: usize,
    /// Rows and sums of [`SwitchMemory`].
    switches: (usize, usize),
    /// S where chains are drawn.
    chain: usize,
    /// D where maxima are kept for them.
    maxima: usize,
    /// D + 1 where conditionals have pieces.
    borders: usize,
    second: usize,
    covariance: usize,
    pull: usize,
}

impl Sizes {
    const fn new(shape: Shape, detail: Detail, sampled: bool) -> Self {
        let Shape { kind, dims, selected: s, .. } = shape;
        let has_slab = kind.has_slab();
        let second = if matches!(detail, Detail::Marginals) { 0 } else { s * s };
        // Chains may have as many on as there is room for.
        let most = if s < MAX_ACTIVE { s } else { MAX_ACTIVE };
        let a = if sampled { most } else { shape.max_active };
        let is_walked = has_slab && !sampled;
        Self {
            active: a,
            gram: if kind.is_maximal() { 0 } else { s * s },
            slab: if has_slab { s } else { 0 },
            factor: if has_slab && !kind.is_maximal() { a } else { 0 },
            branches: if is_walked { walk_len(s, a) } else { 0 },
            switches: if has_slab || sampled { (0, 0) } else { switch_len(kind, dims, s, a) },
            chain: if sampled { s } else { 0 },
            maxima: if sampled && kind.is_maximal() { dims } else { 0 },
            borders: if sampled && kind.is_maximal() && has_slab { dims + 1 } else { 0 },
            second,
            covariance: if is_walked && second > 0 { triangle(a) } else { 0 },
            pull: if is_walked && matches!(detail, Detail::SlabPull) { s } else { 0 },
        }
    }
}

/// Numbers for the branches of a walk, or for factors that are kept instead.
const fn walk_len(selected: usize, max_active: usize) -> usize {
    let (latents, pairs) = branch_len(selected, max_active);
    let (branches, kept) = (7 * latents + 2 * pairs, kept_len(selected, max_active));
    if kept > branches { kept } else { branches }
}

/// Bytes of memory that the C interface asks for per stream, the same on every target: a fixed part
/// for the model view and the lists of latents, then [`arena_len`] numbers.
pub const fn state_bytes(shape: Shape) -> usize {
    STATE_BASE + 4 * arena_len(shape, Detail::Marginals).next_multiple_of(2)
}

/// [`state_bytes`] of a stream that is sampled.
pub const fn gibbs_state_bytes(shape: Shape) -> usize {
    STATE_BASE + 4 * gibbs_arena_len(shape, Detail::Marginals).next_multiple_of(2)
}

/// The fixed part of [`state_bytes`]: the C interface checks when it is built that its state fits.
pub const STATE_BASE: usize = 472 + (6 * MAX_SELECTED + 2 * MAX_ACTIVE).next_multiple_of(8);

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
    /// The branches of the walk, [`crate::grown::BranchMemory`], or factors that are kept: see [`crate::kept`].
    pub walk: &'m mut [T],
    /// The same without a slab: see [`crate::switched`].
    pub switches: SwitchMemory<'m, T>,
    /// The chains of a sampler: see [`crate::gibbs`].
    pub chain: ChainMemory<'m, T>,
    pub work: WorkMemory<'m, T>,
    pub sums: SumMemory<'m, T>,
    /// Coefficients of the best state. (A)
    pub map_values: &'m mut [T],
}

/// What belongs to the selected latents: see [`crate::block`]. (S each, `gram` S x S; `gram`, `slab` and `resting` empty
/// where the kind needs none)
#[derive(Debug)]
pub(crate) struct BlockMemory<'m, T> {
    pub gram: &'m mut [T],
    pub b: &'m mut [T],
    pub slab: &'m mut [[T; 5]],
    pub resting: &'m mut [T],
    pub reference: &'m mut [T],
}

/// What belongs to the state of a chain. (S; `maxima` and `clean` D, `borders` D + 1, or empty)
#[derive(Debug)]
pub(crate) struct ChainMemory<'m, T> {
    pub state: &'m mut [[T; 3]],
    pub values: &'m mut [T],
    pub maxima: &'m mut [T],
    pub clean: &'m mut [T],
    pub borders: &'m mut [[T; 5]],
}

/// A small linear system and the moments of one state. (A each; `rows` A (A - 1) / 2, `covariance`
/// A (A + 1) / 2 or empty; all empty without a slab)
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

/// Sums over states. (S each, `second` and `pull_second` S x S; `first` and `square` empty without a slab; the last five
/// may be empty)
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

impl<T> BlockMemory<'_, T> {
    pub fn reborrow(&mut self) -> BlockMemory<'_, T> {
        let BlockMemory { gram, b, slab, resting, reference } = self;
        BlockMemory { gram, b, slab, resting, reference }
    }
}

impl<T> SumMemory<'_, T> {
    /// All sums, one array after the other.
    pub fn each(&mut self, mut visit: impl FnMut(&mut [T])) {
        let SumMemory { on, off, first, square, second, pull, pull_second, .. } = self;
        for sums in [&mut **on, off, first, square] {
            visit(sums);
        }
        if DETAIL {
            for sums in [&mut **second, pull, pull_second] {
                visit(sums);
            }
        }
    }

    pub fn reborrow(&mut self) -> SumMemory<'_, T> {
        let SumMemory { on, off, first, square, second, pull, pull_second, pull_of_state, solved } = self;
        SumMemory { on, off, first, square, second, pull, pull_second, pull_of_state, solved }
    }
}

impl<'m, T: Real> Arena<'m, T> {
    /// `sampled`: for Gibbs sampling.
    #[inline(always)]
    pub fn new(memory: &'m mut [T], shape: Shape, detail: Detail, sampled: bool) -> Result<Self, Error> {
        let found = memory.len();
        Self::cut(memory, shape, detail, sampled)
            .ok_or_else(|| Error::Memory { needed: len(shape, detail, sampled), found })
    }

    #[inline(always)]
    fn cut(memory: &'m mut [T], shape: Shape, detail: Detail, sampled: bool) -> Option<Self> {
        let Shape { dims: d, latents: h, selected: s, .. } = shape;
        let Sizes {
            active: a,
            gram,
            slab,
            factor,
            branches,
            switches,
            chain,
            maxima,
            borders,
            second,
            covariance,
            pull,
        } = Sizes::new(shape, detail, sampled);
        let (pull_of_state, solved) = if pull > 0 { (a, a * a) } else { (0, 0) };
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
                gram: take(gram)?,
                b: take(s)?,
                slab: take(5 * slab)?.as_chunks_mut().0,
                resting: take(slab)?,
                reference: take(s)?,
            },
            walk: take(branches)?,
            switches: SwitchMemory { rows: take(switches.0)?, sums: take(switches.1)? },
            chain: ChainMemory {
                state: take(3 * chain)?.as_chunks_mut().0,
                values: take(chain)?,
                maxima: take(maxima)?,
                clean: take(maxima)?,
                borders: take(5 * borders)?.as_chunks_mut().0,
            },
            work: WorkMemory {
                rows: take(triangle(factor.saturating_sub(1)))?,
                pivot_inv: take(factor)?,
                coupling: take(factor)?,
                v: take(factor)?,
                mean: take(factor)?,
                variance: take(factor)?,
                covariance: take(covariance)?,
            },
            sums: SumMemory {
                on: take(s)?,
                off: take(s)?,
                first: take(slab)?,
                square: take(slab)?,
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
