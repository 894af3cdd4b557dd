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

/// Scratch of a search over all latents.
pub(crate) struct Scratch<'x, T> {
    /// b. (H)
    pub projection: &'x [T],
    /// r, and what is no number for candidates. (H)
    pub seen: &'x mut [T],
    /// The best of them that are no candidates, best first, and their gains; what is left over gains nothing. (H)
    pub best: &'x mut [u32],
    pub best_gains: &'x mut [T],
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
    let beside = selected.saturating_sub(max_active).max(1);
    // With G a round is cheap.
    let rounds = if model.gram.is_some() { max_active } else { ROUNDS };
    copy(scratch.seen, scratch.projection);
    rank(tableau, &mut scratch, beside.max(PER_ROUND));
    // The first of the ranked that is no candidate yet.
    let mut next = 0;
    for _ in 0..rounds {
        let before = tableau.on;
        let room = selected.saturating_sub(tableau.len() + 1).min(PER_ROUND);
        next = append_best(tableau, &mut scratch, 0, room, T::ZERO);
        if next == 0 {
            break;
        }
        tableau.climb(max_active);
        if tableau.on == before {
            break;
        }
        look_again(tableau, &mut scratch);
        rank(tableau, &mut scratch, beside.max(PER_ROUND));
        next = 0;
    }
    let off = tableau.len() - tableau.count;
    let room = selected.saturating_sub(tableau.len()).min(beside.saturating_sub(off));
    append_best(tableau, &mut scratch, next, room, T::IMPOSSIBLE);
    tableau.climb(max_active);
}

/// Up to `count` of the ranked latents, from `next` on, become candidates, as long as they gain more than `least`. Returns
/// which is the first that did not.
fn append_best<T: Real>(
    tableau: &mut Tableau<'_, T>,
    scratch: &mut Scratch<'_, T>,
    mut next: usize,
    count: usize,
    least: T,
) -> usize {
    let last = next + count;
    while next < last && at(scratch.best_gains, next) > least {
        let Some(&latent) = scratch.best.get(next) else { break };
        let h = latent as usize;
        tableau.append(latent as u16, at(scratch.seen, h));
        // It is one now: no comparison is true of what is no number.
        set(scratch.seen, h, T::NAN);
        next += 1;
    }
    next
}

/// Ranks all latents that are no candidates by the nats that turning them on gains, and keeps the `count` best.
#[inline(never)]
fn rank<T: Real>(tableau: &Tableau<'_, T>, scratch: &mut Scratch<'_, T>, count: usize) {
    let (model, seen) = (tableau.model, &*scratch.seen);
    let count = count.min(seen.len());
    let (gains, best) = (span_mut(scratch.best_gains, 0, count), span_mut(scratch.best, 0, count));
    gains.fill(T::IMPOSSIBLE);
    let mut least = T::IMPOSSIBLE;
    let mut offer = |latent: usize, gain: T| {
        if gain > least {
            rise(gains, best, gain, latent as u32);
            least = gains.last().copied().unwrap_or(gain);
        }
    };
    let h = seen.len();
    Count::Ranked.add(h);
    let (Some(grams), Some(logits)) = (model.gram_diagonal.get(..h), model.prior_logit.get(..h)) else {
        return;
    };
    match tableau.family() {
        Family::Slab => {
            Count::SlabGains.add(h);
            let (means, precisions) = (model.slab_mean.get(..h), model.slab_precision.get(..h));
            let (Some(means), Some(precisions), Some(offsets)) =
                (means, precisions, model.score_offset.get(..h))
            else {
                return;
            };
            for (i, &r) in seen.iter().enumerate() {
                let (g, mean, precision) = (at(grams, i), at(means, i), at(precisions, i));
                let mut square = r * r;
                if mean != T::ZERO {
                    Count::MeanGains.add(1);
                    square += precision * mean * (r + r - g * mean);
                }
                offer(i, T::HALF * square / (g + precision) + (at(logits, i) + at(offsets, i)));
            }
        }
        Family::Binary => {
            Count::Gains.add(seen.len());
            for (i, &r) in seen.iter().enumerate() {
                offer(i, at(logits, i) + r - T::HALF * at(grams, i));
            }
        }
        Family::Maximal => {
            Count::GainDims.add(model.shape.dims * seen.len());
            for (i, &r) in seen.iter().enumerate() {
                // What is no number goes with what is none.
                let mut sum = at(logits, i) + r * T::ZERO;
                with_column!(model, i, |column| {
                    let dims = tableau.sample.iter().zip(&*tableau.maxima).zip(column).enumerate();
                    for (d, ((&y, &m), w)) in dims {
                        if w > m {
                            Count::GainsTaken.add(1);
                            sum += model.precision(d) * mca::gain(y, m, w);
                        }
                    }
                });
                offer(i, sum);
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
