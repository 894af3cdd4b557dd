//! The caller's memory, cut into the arrays that inference works in. Nothing else is allocated.
//!
//! One list says what there is and how long each array is: its sum is the length to ask for ([`arena_len`], a `const fn` of the
//! shape), and cutting follows the same list.

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::error::Error;
use crate::features::{DETAIL, GIBBS, SUBSETS};
use crate::kinds::Family;
use crate::model::{Shape, States};
use crate::numeric::math::Real;
use crate::numeric::slices::triangle;
use crate::numeric::words::{Record, record};

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

/// How states are looked at, as far as memory is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// As the shape's states say.
    Enumerated,
    /// By Gibbs sampling.
    Sampled,
}

/// Numbers (of the model's precision) that inference needs as memory.
///
/// ```
/// use spikelet::{Detail, Kind, Shape, arena_len, model::States};
/// const SIZES: Shape = Shape {
///     kind: Kind::Gsc,
///     dims: 4,
///     latents: 6,
///     selected: 6,
///     max_active: 3,
///     singletons: false,
///     states: States::Adaptive { expansions: 4 },
/// };
/// let memory = [0.0f32; arena_len(SIZES, Detail::Marginals)];
/// assert!(memory.len() < 300);
/// ```
pub const fn arena_len(shape: Shape, detail: Detail) -> usize {
    let method = if shape.kind.is_sampled() { Method::Sampled } else { Method::Enumerated };
    len(shape, detail, method)
}

/// The same for Gibbs sampling ([`crate::Engine::Gibbs`]), whatever its settings. gamma does not matter.
///
/// ```
/// use spikelet::{Detail, Kind, Shape, gibbs_arena_len, model::States};
/// let (kind, dims, latents, selected, max_active) = (Kind::Gsc, 256, 10_000, 20, 3);
/// let shape = Shape { kind, dims, latents, selected, max_active, singletons: false, states: States::Subsets };
/// assert!(gibbs_arena_len(shape, Detail::Marginals) < 2 * dims + 4 * latents + 1600);
/// ```
pub const fn gibbs_arena_len(shape: Shape, detail: Detail) -> usize {
    len(shape, detail, Method::Sampled)
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
pub const STATE_BASE: usize = 464 + (2 * MAX_SELECTED + 2 * MAX_ACTIVE).next_multiple_of(8);

record! {
    /// A candidate latent: its prior, its place in the present state of the tableau ([`crate::states::tableau`]), what flipping it
    /// would do, and sums over states ([`crate::posterior`]).
    Candidate {
        /// l_h.
        logit,
        /// mu_h.
        mean,
        /// K_h = 1 / psi_h^2.
        precision,
        /// Least of `diagonal` where it is off: what rounding leaves of G_hh where others explain all of it.
        rest,
        /// Least of it where it is on: 1 / (G_hh + K_h).
        least,
        /// 1 where it is off, -1 where it is on.
        sign,
        /// Off: g, what the latents that are on leave of G_hh. On: Lambda_hh, the variance of its coefficient.
        diagonal,
        /// On: how much smaller that is than the slab's.
        shrunk,
        /// Off: r, what the residual has of it. On: its coefficient less the slab's mean.
        seen,
        /// Maximal causes: the change of the log joint by its flip.
        exponent,
        /// Where it is on: its coefficient and the variance of that.
        x,
        variance,
        /// The weight w of the state that the flip leads to, or zero if that is not counted; w u, and w (1 / S_ii + u^2).
        weight,
        push,
        spread,
        /// Weights of the states that differ from the reference in it.
        apart,
        /// Its coefficient in the reference state, zero where it is off: sums are about it, so that nothing large cancels.
        reference,
        /// Sums over the states that have it on of x - reference and of its square.
        first,
        square,
        /// Of draws: how many have it on, and off.
        on,
        off,
    }
}

record! {
    /// What is kept of a candidate to come back to a state.
    Kept {
        sign,
        diagonal,
        shrunk,
        seen,
    }
}

record! {
    /// A latent of a chain.
    Link {
        /// r, what the residual has of it.
        seen,
        /// x - x0, or x.
        away,
        /// 1 where it is on.
        on,
        /// r in the reference state, or with all latents off.
        base,
    }
}

record! {
    /// A border between two pieces of a conditional: see [`crate::gibbs`].
    Border {
        /// Where it is.
        place,
        /// The jump of the slope there; later the mass of the piece that begins there.
        jump,
        /// The precision of the bell after it.
        precision,
        /// Slope and height there.
        slope,
        height,
    }
}

/// Lengths that the list is made of.
struct Sizes {
    /// D, H, H' and the most latents that can be on.
    d: usize,
    h: usize,
    n: usize,
    a: usize,
    /// H' where latents become candidates of a tableau, H where they have distances instead.
    tableau: usize,
    distances: usize,
    /// H'^2 where candidates have couplings.
    square: usize,
    /// The same where G is needed beside the tableau.
    gram: usize,
    /// D where maxima of states are kept.
    maxima: usize,
    /// States of the walk over subsets that are kept at a time.
    levels: usize,
    /// X.
    expansions: usize,
    /// H' where chains are drawn; D where they have maxima; D + 1 where conditionals have borders.
    chain: usize,
    chain_maxima: usize,
    borders: usize,
    /// A where a state has a factor of its own; 0 elsewhere.
    table: usize,
    covariance: usize,
    second: usize,
    pull: usize,
}

impl Sizes {
    /// What the build leaves out is zero where the compiler sees it, so that nothing is cut for it.
    #[inline(always)]
    const fn new(shape: Shape, detail: Detail, method: Method) -> Self {
        let Shape { kind, dims: d, latents: h, selected: n, max_active, .. } = shape;
        let (is_maximal, has_slab) = (matches!(kind.family(), Family::Maximal), kind.has_slab());
        let is_sampled = GIBBS && matches!(method, Method::Sampled);
        // Chains may have as many on as there is room for.
        let a = match is_sampled {
            true if n < MAX_ACTIVE => n,
            true => MAX_ACTIVE,
            false => max_active,
        };
        let is_table = SUBSETS && matches!(shape.states, States::Table) && !is_sampled;
        let has_second = DETAIL && !matches!(detail, Detail::Marginals);
        let is_mixture = kind.is_mixture();
        let square = if is_maximal || is_mixture { 0 } else { n * n };
        Self {
            d,
            h,
            n,
            a,
            tableau: if is_mixture { 0 } else { n },
            distances: if is_mixture { h } else { 0 },
            square,
            gram: if is_table || is_sampled { square } else { 0 },
            maxima: if is_maximal && !is_sampled { d } else { 0 },
            levels: match shape.states {
                States::Subsets if SUBSETS && !is_sampled && !is_mixture => levels(n, max_active),
                _ => 0,
            },
            expansions: match shape.states {
                States::Adaptive { expansions } if !is_sampled => expansions as usize,
                _ => 0,
            },
            chain: if is_sampled { n } else { 0 },
            chain_maxima: if is_sampled && is_maximal { d } else { 0 },
            borders: if is_sampled && is_maximal && has_slab { d + 1 } else { 0 },
            table: if is_table { a } else { 0 },
            covariance: if is_table && has_second { triangle(a) } else { 0 },
            second: if has_second { n * n } else { 0 },
            pull: if is_table && matches!(detail, Detail::SlabPull) { n } else { 0 },
        }
    }

    /// Numbers of one level of the walk over subsets.
    const fn level(&self) -> usize {
        self.n * <Kept<f32> as Record<f32>>::LEN + self.square + 2 * self.maxima
    }
}

/// States that the walk over subsets returns to: it flips members of the reference first, then others.
pub(crate) const fn levels(selected: usize, max_active: usize) -> usize {
    let flips = 2 * max_active;
    if flips < selected { flips } else { selected }
}

/// The list: what there is, and how long it is.
macro_rules! arrays {
    ($sizes:ident; $($(#[$doc:meta])* $name:ident: $len:expr,)*) => {
        /// The arrays, named by what they hold.
        #[derive(Debug)]
        pub(crate) struct Memory<'m, T> {
            $($(#[$doc])* pub $name: &'m mut [T],)*
        }

        const fn len(shape: Shape, detail: Detail, method: Method) -> usize {
            let $sizes = &Sizes::new(shape, detail, method);
            0 $(+ $len)*
        }

        impl<'m, T: Real> Memory<'m, T> {
            #[inline(always)]
            fn cut(memory: &'m mut [T], $sizes: &Sizes) -> Option<Self> {
                let mut rest = memory;
                let mut take = |len: usize| {
                    let (head, tail) = core::mem::take(&mut rest).split_at_mut_checked(len)?;
                    rest = tail;
                    Some(head)
                };
                Some(Self { $($name: take($len)?,)* })
            }
        }
    };
}

arrays! { sizes;
    /// The sample y. (D)
    sample: sizes.d,
    /// Sigma^-1 times it, or times what a state leaves of it. (D)
    weighted: sizes.d,
    /// b = W^T Sigma^-1 y. (H)
    projection: sizes.h,
    /// Selection scores, then `<s>`. (H)
    activity: sizes.h,
    /// What the residual has of each latent, then `<s.z>`. (H)
    mean: sizes.h,
    /// Posterior variance of s.z. (H)
    variance: sizes.h,
    /// [`Candidate`]s. (H')
    candidates: sizes.tableau * <Candidate<f32> as Record<f32>>::LEN,
    /// The tableau, rows of H' entries, with zeros on its diagonal.
    square: sizes.square,
    /// Squared distances from the components of a mixture. (H)
    distance: sizes.distances,
    /// One column of the tableau; scratch. (H')
    column: sizes.n,
    /// The largest and the next largest cause of each dimension. (2 D)
    maxima: 2 * sizes.maxima,
    /// States of the walk over subsets: [`Kept`] candidates, tableau and maxima of each. Or factors of [`crate::fixed`], which need
    /// less.
    levels: sizes.levels * sizes.level(),
    /// States that were expanded, and those that wait to be: masks, and weights.
    expanded: sizes.expansions,
    waiting: sizes.expansions,
    waiting_weights: sizes.expansions,
    /// G of the candidates as `square`, where the tableau is something else.
    gram: sizes.gram,
    /// [`Link`]s of a chain, its values, maxima, their sums, [`Border`]s.
    links: sizes.chain * <Link<f32> as Record<f32>>::LEN,
    values: sizes.chain,
    chain_maxima: sizes.chain_maxima,
    clean: sizes.chain_maxima,
    borders: sizes.borders * <Border<f32> as Record<f32>>::LEN,
    /// Of one state, with a table: right-hand side, expansion point, mean, variance, covariance. (A)
    right: sizes.table,
    point: sizes.table,
    state_mean: sizes.table,
    state_variance: sizes.table,
    covariance: sizes.covariance,
    /// `<(s.z)(s.z)^T>` of the candidates. (H' x H', or empty)
    second: sizes.second,
    /// The slab's pull and its products; scratch: the pull in one state, G_AA Lambda.
    pull: sizes.pull,
    pull_second: sizes.pull * sizes.n,
    pull_of_state: if sizes.pull > 0 { sizes.a } else { 0 },
    solved: if sizes.pull > 0 { sizes.a * sizes.a } else { 0 },
    /// Coefficients of the best state. (A)
    map_values: sizes.a,
}

impl<'m, T: Real> Memory<'m, T> {
    #[inline(always)]
    pub fn new(memory: &'m mut [T], shape: Shape, detail: Detail, method: Method) -> Result<Self, Error> {
        let found = memory.len();
        Self::cut(memory, &Sizes::new(shape, detail, method))
            .ok_or_else(|| Error::Memory { needed: len(shape, detail, method), found })
    }
}
