//! A reference state for loud samples.
//!
//! Log joints are differences of numbers as large as the signal-to-noise ratio: at 100 dB they reach
//! 1e10 nats, and `f32` has seven digits. What matters are differences of a few nats between states
//! that explain the sample equally well. So when a sample is loud ([`Real::REFINE_ABOVE`]), a few
//! latents that explain most of it are found greedily, their share W x0 is subtracted *from the
//! sample*, the rest is projected again, and every state is evaluated relative to that: the numbers
//! stay small for all states that matter, and inexact only for those that do not.
//!
//! The search is greedy and can be wrong: when the most probable state lacks a member of the reference,
//! or has another loud latent on, that state becomes the reference and everything is done once more, at
//! most [`PASSES`] times in all.
//!
//! Work, only when needed: per round, about H' gamma + gamma^3 multiply-adds to find the members and
//! D (25 gamma + H') to project again, at most [`ROUNDS`] rounds a pass.

use crate::block::Block;
use crate::capacity::MAX_REFERENCE;
use crate::factor::Factor;
use crate::math::{Accurate, Real};
use crate::model::Model;
use crate::project::{project_some, weigh_in_place};
use crate::select::gain;
use crate::slices::{at, set, span_mut};

/// The first round removes what six digits of the coefficients can; the others what is left.
pub(crate) const ROUNDS: usize = 3;

/// Most times the states of one sample are walked.
pub(crate) const PASSES: usize = 3;

/// Scratch that the reference search shares with later stages.
pub(crate) struct Scratch<'a, T> {
    pub factor: Factor<'a, T>,
    pub forward: &'a mut [T],
    /// Change of the members' coefficients. (A)
    pub change: &'a mut [T],
    /// b of every position after that change. (S)
    pub rest: &'a mut [T],
}

/// Finds a reference if the sample is loud, or improves the one the block has. Returns the energy of
/// what it leaves of the sample (the given one if nothing was done). It has `most` members at most.
pub(crate) fn refine<T: Real>(
    model: &Model<'_, T>,
    block: &mut Block<'_, T>,
    sample: &[T],
    weighted: &mut [T],
    mut scratch: Scratch<'_, T>,
    energy: T,
    most: usize,
) -> T {
    let mut energy = energy;
    for _ in 0..ROUNDS {
        if !(loudest(block, block.b).1 > T::REFINE_ABOVE) {
            break;
        }
        find_members(block, most.min(MAX_REFERENCE), &mut scratch);
        for (&member, &change) in block.members.iter().zip(scratch.change.iter()) {
            let p = usize::from(member);
            set(block.reference, p, at(block.reference, p) + change);
        }
        energy = leave(model, block, sample, weighted);
    }
    energy
}

/// What the reference leaves of the sample, y - W x0, weighted and projected into `block.b`; returns its
/// energy. The difference of large numbers is computed with twice the digits.
pub(crate) fn leave<T: Real>(
    model: &Model<'_, T>,
    block: &mut Block<'_, T>,
    sample: &[T],
    weighted: &mut [T],
) -> T {
    for (d, (r, &y)) in weighted.iter_mut().zip(sample).enumerate() {
        let mut rest = Accurate::new(y);
        for &member in &block.members {
            let p = usize::from(member);
            let latent = usize::from(block.order.get(p).copied().unwrap_or_default());
            rest.subtract_product(model.entry(d, latent), at(block.reference, p));
        }
        *r = rest.value();
    }
    let energy = weigh_in_place(&model.noise, weighted);
    project_some(model, block.order, weighted, block.b);
    energy
}

/// The position whose coefficient, changed alone, would gain most, and the gain in nats; `b` is
/// what each position sees in the residual.
fn loudest<T: Real>(block: &Block<'_, T>, b: &[T]) -> (u16, T) {
    let mut best = (0, T::ZERO);
    let mut diagonal = 0;
    for (p, (&b, &[mean, precision, _, pull, _])) in
        (0u16..).zip(b.iter().zip(&*block.slab)).take(block.len())
    {
        let gram = at(block.gram, diagonal);
        diagonal += block.len() + 1;
        let variance = T::ONE / (gram + precision);
        let gain = if block.members.contains(&p) {
            // Already on: what moving its coefficient gains.
            let v = b + precision * (mean - at(block.reference, usize::from(p)));
            T::HALF * v * v * variance
        } else {
            gain(b, mean, pull, gram, variance)
        };
        if gain > best.1 {
            best = (p, gain);
        }
    }
    best
}

/// Solves for the members' coefficients together and adds the loudest of the others, until none is
/// loud or `most` are in (orthogonal matching pursuit, with the slab as a ridge).
fn find_members<T: Real>(block: &mut Block<'_, T>, most: usize, scratch: &mut Scratch<'_, T>) {
    let mut k = 0;
    loop {
        // Couple the members that are not in the factor yet.
        while let Some(&member) = block.members.get(k) {
            let p = usize::from(member);
            let (row, precision) = (block.gram_row(p), block.precision(p));
            let g = block.members.iter().take(k).map(|&m| at(row, usize::from(m)));
            scratch.factor.couple(k, g, at(row, p), precision);
            let v = at(block.b, p) + precision * (block.mean(p) - at(block.reference, p));
            let t = v - scratch.factor.explained(k, scratch.forward);
            set(scratch.forward, k, t);
            scratch.factor.settle(k);
            k += 1;
        }
        let change = span_mut(scratch.change, 0, k);
        change.fill(T::ZERO);
        scratch.factor.add_solution(span_mut(scratch.forward, 0, k), change);
        for p in 0..block.len() {
            let row = block.gram_row(p);
            let mut rest = at(block.b, p);
            for (&m, &change) in block.members.iter().zip(change.iter()) {
                rest -= at(row, usize::from(m)) * change;
            }
            set(scratch.rest, p, rest);
        }
        let (p, gain) = loudest(block, scratch.rest);
        if k >= most
            || !(gain > T::REFINE_ABOVE)
            || block.members.contains(&p)
            || block.members.push(p).is_err()
        {
            return;
        }
    }
}
