//! A single conditional, for tests and for inspection.

use super::chain::{Given, Sampler, odds};
use super::linear::Linear;
use super::maximal::Maximal;
use super::priors;
use crate::error::Error;
use crate::kinds::Family;
use crate::memory::Memory;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::normal::mills;
use crate::numeric::slices::at;
use crate::numeric::words::records_mut;
use crate::state::tableau;
use crate::states::tableau::{Joint, Latents};

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
    memory: &mut Memory<'_, T>,
    values: &[T],
    latent: u16,
    points: &[T],
    below: &mut [T],
) -> Result<Conditional<T>, Error> {
    let mut latents = Latents::new();
    let _ = latents.push(latent); // room for one
    for (other, &value) in (0u16..).zip(values) {
        let is_on = other != latent && value != T::ZERO;
        if is_on && (latents.len() >= model.shape.selected || latents.push(other).is_err()) {
            return Err(Error::Setting { field: "values" });
        }
    }
    let others = latents.clone();
    let value = |p: usize| at(values, usize::from(others.get(p).copied().unwrap_or_default()));
    if model.shape.kind.family() == Family::Maximal {
        let Memory { sample, candidates, links, chain_maxima, borders, clean, .. } = memory;
        let (candidates, links) = (records_mut(candidates), records_mut(links));
        priors(model, &latents, candidates);
        let borders = records_mut(borders);
        let mut sampler =
            Maximal::new(model, &latents, candidates, sample, links, chain_maxima, borders, clean);
        (1..latents.len()).for_each(|p| sampler.set(p, Some(value(p))));
        let given = sampler.given(0);
        if model.shape.kind.has_slab() {
            let pieces = sampler.pieces(0);
            return Ok(tell(given, points, below, |x| pieces.below(x)));
        }
        return Ok(tell(given, points, below, |x| step(x, given.mean)));
    }
    let origin = Joint::new(T::ZERO);
    let mut tableau = tableau!(model, memory, &mut latents, T::ZERO, origin, (0, 0));
    tableau.begin(memory.projection, T::ZERO);
    let links = records_mut(memory.links);
    let mut sampler = Linear::new(&mut tableau, memory.gram, links, memory.projection, (T::ZERO, 0));
    (1..others.len()).for_each(|p| sampler.set(p, Some(value(p))));
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
