//! The part of a stream's state that is not numbers in the caller's memory.

use crate::numeric::math::Real;
use crate::states::tableau::{Joint, Latents, Path};

/// What inference keeps between samples beside the numbers in its memory: the candidates, the best state, the evidence. Plain
/// data: with the model and the memory it is all the state there is, and it can be copied.
#[derive(Clone, Debug)]
pub struct State<T> {
    /// Candidate -> latent. Empty unless there are results.
    pub(crate) latents: Latents,
    /// The best state.
    pub(crate) map: Path,
    /// y^T Sigma^-1 y.
    pub(crate) energy: T,
    pub(crate) evidence: T,
    /// What weights of the last sample are relative to, and ln of their sum.
    pub(crate) anchor: Joint<T>,
    pub(crate) log_total: T,
    /// Of the next sample: what its random numbers depend on, beside the seed.
    pub(crate) number: u64,
    /// Where the tableau in memory is.
    pub(crate) joint: Joint<T>,
    /// Which candidates are on in it, one bit each, and how many.
    pub(crate) on: u64,
    pub(crate) count: usize,
    /// Adaptive states: how many were expanded.
    pub(crate) expanded: u16,
    /// Zero, or NaN if a result is not finite.
    pub(crate) sound: T,
    /// Whether the sample was inferred in integers. Then all stages are done, and `projection` holds integers.
    pub(crate) is_fixed: bool,
}

impl<T: Real> Default for State<T> {
    fn default() -> Self {
        let zero = T::ZERO;
        Self {
            latents: Latents::new(),
            map: Path::new(),
            energy: zero,
            evidence: zero,
            anchor: Joint::new(zero),
            log_total: zero,
            number: 0,
            joint: Joint::new(zero),
            on: 0,
            count: 0,
            expanded: 0,
            sound: zero,
            is_fixed: false,
        }
    }
}

/// The tableau over memory, as the state says it is.
macro_rules! tableau {
    ($model:expr, $memory:expr, $latents:expr, $energy:expr, $joint:expr, ($on:expr, $count:expr)) => {
        $crate::states::tableau::Tableau {
            model: $model,
            sample: $memory.sample,
            weighted: $memory.weighted,
            latents: $latents,
            candidates: $crate::numeric::words::records_mut($memory.candidates),
            square: $memory.square,
            column: $memory.column,
            maxima: $memory.maxima,
            joint: $joint,
            is_loud: $crate::states::tableau::is_loud($energy),
            needs_words: $crate::states::tableau::needs_words($energy),
            on: $on,
            count: $count,
            glance: None,
        }
    };
}
pub(crate) use tableau;

/// Something owned, or lent by who keeps it elsewhere.
#[derive(Debug)]
pub(crate) enum Held<O, L> {
    Own(O),
    Lent(L),
}

impl<X> Held<X, &X> {
    #[inline(always)]
    pub fn get(&self) -> &X {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }
}

impl<X> Held<X, &mut X> {
    #[inline(always)]
    pub fn view(&self) -> &X {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }

    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut X {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }
}
