//! One conditional by itself, for those who want to look at it.

use super::chain::{Given, Sampler, odds};
use super::linear::Linear;
use super::maximal::Maximal;
use crate::arena::Arena;
use crate::block::Block;
use crate::error::Error;
use crate::math::Real;
use crate::model::Model;
use crate::normal::mills;
use crate::slices::at;
use heapless::Vec;

/// The distribution of one latent given all others: see [`crate::Inference::conditional`].
#[derive(Clone, Copy, Debug)]
pub struct Conditional<T> {
    /// ln P(on) - ln P(off).
    pub log_odds: T,
    /// Mean of the value if on; 1 without a slab.
    pub mean: T,
    /// Variance of the value if on; 0 without a slab.
    pub variance: T,
}

/// The conditional of `latent` with the others at `values` (H); the probabilities of values no larger than `points` into
/// `below`. The sample was projected.
pub(crate) fn conditional<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    values: &[T],
    latent: u16,
    points: &[T],
    below: &mut [T],
) -> Result<Conditional<T>, Error> {
    let mut order = Vec::new();
    let _ = order.push(latent); // room for one
    for (other, &value) in (0u16..).zip(values) {
        let is_on = other != latent && value != T::ZERO;
        if is_on && (order.len() >= model.shape.selected || order.push(other).is_err()) {
            return Err(Error::Setting { field: "values" });
        }
    }
    let block = Block::gather(model, &mut order, arena.projection, arena.block.reborrow());
    let Arena { sample, chain, work, .. } = arena;
    let value = |p: usize| at(values, super::latent(&block, p));
    if model.shape.kind.is_maximal() {
        let mut sampler =
            Maximal::new(model, &block, sample, chain.state, chain.maxima, chain.borders, chain.clean);
        (1..block.len()).for_each(|p| sampler.set(p, Some(value(p))));
        let given = sampler.given(0);
        if model.shape.kind.has_slab() {
            let pieces = sampler.pieces(0);
            return Ok(tell(given, points, below, |x| pieces.below(x)));
        }
        return Ok(tell(given, points, below, |x| step(x, given.mean)));
    }
    let mut sampler = Linear::new(model, &block, chain.state, work);
    (1..block.len()).for_each(|p| sampler.set(p, Some(value(p))));
    let given = sampler.given(0);
    let deviation = given.variance.sqrt();
    Ok(tell(given, points, below, |x| match deviation > T::ZERO {
        true => cdf((x - given.mean) / deviation),
        false => step(x, given.mean),
    }))
}

/// Adds the atom at zero.
fn tell<T: Real>(given: Given<T>, points: &[T], below: &mut [T], if_on: impl Fn(T) -> T) -> Conditional<T> {
    let [on, off] = odds(given.log_odds);
    for (below, &x) in below.iter_mut().zip(points) {
        *below = on * if_on(x) + step(x, T::ZERO) * off;
    }
    let Given { log_odds, mean, variance } = given;
    Conditional { log_odds, mean, variance }
}

fn step<T: Real>(x: T, at: T) -> T {
    if x < at { T::ZERO } else { T::ONE }
}

/// Standard normal.
fn cdf<T: Real>(x: T) -> T {
    let away = if x < T::ZERO { -x } else { x };
    // 1 / sqrt(2 pi)
    let tail = T::from_f64(0.398_942_280_401_432_7) * (-(T::HALF * x * x)).exp() * mills(away);
    if x < T::ZERO { tail } else { T::ONE - tail }
}
