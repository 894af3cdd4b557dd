//! The greedy reference, and the candidates around it.
//!
//! In every round r, what the residual of the present state has of each latent, gives the gain of all latents that are
//! off, the best of them become candidates, and the tableau is climbed: it turns on what gains, given all others, and off what
//! no longer does. When nothing gains any more, the best of the others become candidates too.
//!
//! A round adds [`PER_ROUND`] candidates at most. r is b - G_:A kappa where G is stored; otherwise the projection of y - W kappa,
//! D H multiply-adds, in at most [`ROUNDS`] rounds. Gains of latents that are no candidates take g as G_hh, as if the
//! latents that are on left all of it: they order candidates, which the tableau then knows exactly. Where there are no more
//! latents than candidates, all are, and the tableau alone is climbed.

use super::tableau::{Tableau, ones};
use crate::counts::Count;
use crate::kinds::{Family, mca};
use crate::model::{Shape, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut, triangle};
use crate::project::project;
use crate::select::rise;

/// Latents that become candidates in a round, and rounds without G.
pub(crate) const PER_ROUND: usize = 4;
pub(crate) const ROUNDS: usize = 4;

/// Scratch of a search over all latents. (H each)
pub(crate) struct Scratch<'x, T> {
    /// b.
    pub projection: &'x [T],
    /// r, and what is no number for candidates.
    pub seen: &'x mut [T],
    /// Nats gained by turning a latent on.
    pub gains: &'x mut [T],
    /// The latents that gain most, best first.
    pub best: &'x mut [u32],
}

/// Finds the reference and the candidates; the tableau is empty before, and at the reference after it.
pub(crate) fn refer<T: Real>(tableau: &mut Tableau<'_, T>, mut scratch: Scratch<'_, T>) {
    let model = tableau.model;
    let Shape { latents, selected, max_active, .. } = model.shape;
    if latents <= selected {
        tableau.append_all(scratch.projection);
        tableau.climb(max_active);
        return;
    }
    // With G a round is cheap.
    let rounds = if model.gram.is_some() { max_active } else { ROUNDS };
    copy(scratch.seen, scratch.projection);
    evaluate(tableau, &mut scratch);
    for _ in 0..rounds {
        let before = tableau.on;
        let room = selected.saturating_sub(tableau.len() + 1).min(PER_ROUND);
        if append_best(tableau, &mut scratch, room, T::ZERO) == 0 {
            break;
        }
        tableau.climb(max_active);
        if tableau.on == before {
            break;
        }
        look_again(tableau, &mut scratch);
        evaluate(tableau, &mut scratch);
    }
    let beside = selected.saturating_sub(max_active).max(1);
    let off = tableau.len() - tableau.count;
    let room = selected.saturating_sub(tableau.len()).min(beside.saturating_sub(off));
    append_best(tableau, &mut scratch, room, T::IMPOSSIBLE);
    tableau.climb(max_active);
}

/// Up to `count` latents become candidates, those that gain most and more than `least`. Returns how many did.
fn append_best<T: Real>(
    tableau: &mut Tableau<'_, T>,
    scratch: &mut Scratch<'_, T>,
    count: usize,
    least: T,
) -> usize {
    let Scratch { seen, gains, best, .. } = scratch;
    let found = rank(gains, span_mut(tableau.column, 0, count), best, least);
    for &latent in best.iter().take(found) {
        let h = latent as usize;
        tableau.append(latent as u16, at(seen, h));
        // It is one now: no comparison is true of what is no number.
        set(seen, h, T::NAN);
        set(gains, h, T::NAN);
    }
    found
}

/// The latents that gain most and more than `least`, best first, as many as there is room for their gains. Returns how many.
#[inline(never)]
fn rank<T: Real>(gains: &[T], best_gains: &mut [T], best: &mut [u32], mut least: T) -> usize {
    best_gains.fill(least);
    let (count, mut found) = (best_gains.len(), 0);
    for (h, &gain) in (0..).zip(gains) {
        if gain > least && count != 0 {
            rise(best_gains, span_mut(best, 0, count), gain, h);
            least = at(best_gains, count - 1);
            found += 1;
        }
    }
    count.min(found)
}

/// The nats that turning on gains, of all latents that are no candidates.
#[inline(never)]
fn evaluate<T: Real>(tableau: &Tableau<'_, T>, scratch: &mut Scratch<'_, T>) {
    let model = tableau.model;
    let latents = scratch.gains.iter_mut().zip(&*scratch.seen);
    Count::Ranked.add(latents.len());
    let priors = model.prior_logit.iter().zip(model.gram_diagonal);
    match tableau.family() {
        Family::Slab => {
            Count::SlabGains.add(latents.len());
            let slabs = model.slab_precision.iter().zip(model.slab_mean).zip(model.score_offset);
            for (((gain, &r), (&logit, &g)), ((&precision, &mean), &offset)) in
                latents.zip(priors).zip(slabs)
            {
                let mut square = r * r;
                if mean != T::ZERO {
                    Count::MeanGains.add(1);
                    square += precision * mean * (r + r - g * mean);
                }
                *gain = T::HALF * square / (g + precision) + (logit + offset);
            }
        }
        Family::Binary => {
            Count::Gains.add(latents.len());
            for ((gain, &r), (&logit, &g)) in latents.zip(priors) {
                *gain = logit + r - T::HALF * g;
            }
        }
        Family::Maximal => {
            Count::GainDims.add(model.shape.dims * latents.len());
            for (i, ((gain, &r), &logit)) in latents.zip(model.prior_logit).enumerate() {
                // What is no number goes with what is none.
                *gain = logit + r * T::ZERO;
                with_column!(model, i, |column| {
                    let dims = tableau.sample.iter().zip(&*tableau.maxima).zip(column).enumerate();
                    for (d, ((&y, &m), w)) in dims {
                        if w > m {
                            Count::GainsTaken.add(1);
                            *gain += model.precision(d) * mca::gain(y, m, w);
                        }
                    }
                });
            }
        }
    }
}

/// r of all latents that are no candidates, in the present state.
fn look_again<T: Real>(tableau: &mut Tableau<'_, T>, scratch: &mut Scratch<'_, T>) {
    match (tableau.family(), tableau.model.gram) {
        (Family::Maximal, _) => {}
        (Family::Slab | Family::Binary, Some(gram)) => {
            copy(scratch.seen, scratch.projection);
            for i in ones(tableau.on) {
                subtract(gram, tableau.latent(i), tableau.coefficient(i), scratch.seen);
            }
        }
        (Family::Slab | Family::Binary, None) => {
            tableau.leave_roughly();
            project(tableau.model, tableau.weighted, scratch.seen);
        }
    }
    for &latent in &*tableau.latents {
        set(scratch.seen, usize::from(latent), T::NAN);
    }
}

/// Subtracts column `h` of G, times x. (H)
fn subtract<T: Real>(gram: &[T], h: usize, x: T, from: &mut [T]) {
    Count::Subtracted.add(from.len());
    let Some((before, after)) = from.split_at_mut_checked(h + 1) else { return };
    for (r, &g) in before.iter_mut().zip(span(gram, triangle(h), h + 1)) {
        *r -= g * x;
    }
    let (mut place, mut row) = (triangle(h + 1) + h, h + 1);
    for r in after {
        *r -= at(gram, place) * x;
        row += 1;
        place += row;
    }
}
