//! The greedy reference, and the candidates around it.
//!
//! In every round the residual of the present state, projected on each latent (r), gives the gain of all latents that are off. The
//! best of them become candidates, and the tableau climbs: it turns on latents that gain, given all others, and turns off those that no
//! longer do. When no latent gains any more, the best of the others become candidates too.
//!
//! A round adds [`PER_ROUND`] candidates at most. r is b - G_:A kappa where G is stored; otherwise the projection of y - W kappa,
//! D H multiply-adds, in at most [`ROUNDS`] rounds. Gains of latents that are not candidates use G_hh in place of g,
//! as if the latents that are on explained none of it: they only rank latents, and the tableau then has exact gains. If there are
//! no more latents than candidates, all of them are candidates and only the tableau climbs.
//!
//! With learned scores ([`Selection::Learned`]) the first candidates are the latents of the best scores instead, D H
//! multiply-adds more: a regression sees what latents explain together, gains see each alone.

use super::tableau::{Tableau, ones};
use crate::counts::Count;
use crate::kinds::{Family, mca};
use crate::model::{Selection, Shape, with_column};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut, triangle};
use crate::project::project;
use crate::select::rise;
use crate::select::scores::learned;

/// Latents that become candidates in a round, and rounds without G.
pub(crate) const PER_ROUND: usize = 4;
pub(crate) const ROUNDS: usize = 4;

/// Scratch of a search over all latents. (H each)
pub(crate) struct Scratch<'x, T> {
    /// b.
    pub projection: &'x [T],
    /// r; NaN for candidates.
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
    if let Some(seen) = scratch.seen.get_mut(..scratch.projection.len()) {
        seen.copy_from_slice(scratch.projection);
    }
    let is_learned = matches!(model.selection, Selection::Learned { .. });
    let mut found = match model.selection {
        Selection::Learned { weights } => {
            learned(weights, tableau.sample, scratch.gains);
            rank(tableau, &mut scratch, PER_ROUND)
        }
        _ => evaluate(tableau, &mut scratch),
    };
    for round in 0..rounds {
        let (before, room) = (tableau.on, selected.saturating_sub(tableau.len() + 1));
        if !append_best(tableau, &mut scratch, found.min(room)) {
            break;
        }
        tableau.climb(max_active);
        // Learned scores may name latents none of which gains.
        if tableau.on == before && (round > 0 || !is_learned) {
            break;
        }
        look_again(tableau, &mut scratch);
        found = evaluate(tableau, &mut scratch);
    }
    let beside = selected.saturating_sub(max_active).max(1);
    let off = tableau.len() - tableau.count;
    let room = selected.saturating_sub(tableau.len()).min(beside.saturating_sub(off));
    found = rank(tableau, &mut scratch, room);
    append_best(tableau, &mut scratch, found);
    tableau.climb(max_active);
}

/// Ranks the latents that gain most, whatever it is; how many there are.
fn rank<T: Real>(tableau: &mut Tableau<'_, T>, scratch: &mut Scratch<'_, T>, room: usize) -> usize {
    let room = tableau.column.len().min(room);
    let mut ranking = Ranking::new(span_mut(tableau.column, 0, room), scratch.best, T::IMPOSSIBLE);
    Count::Ranked.add(scratch.gains.len());
    for (h, &gain) in (0..).zip(&*scratch.gains) {
        ranking.offer(h, gain);
    }
    ranking.found()
}

/// The first of the ranked latents become candidates. Returns whether there are any.
fn append_best<T: Real>(tableau: &mut Tableau<'_, T>, scratch: &mut Scratch<'_, T>, count: usize) -> bool {
    for &latent in scratch.best.iter().take(count) {
        let h = latent as usize;
        tableau.append(latent as u16, at(scratch.seen, h));
        // NaN marks a candidate: it compares as less than nothing.
        set(scratch.seen, h, T::NAN);
        set(scratch.gains, h, T::NAN);
    }
    count != 0
}

/// The latents that gain most, best first.
struct Ranking<'x, T> {
    gains: &'x mut [T],
    latents: &'x mut [u32],
    /// What a latent must gain more than to be one of them.
    least: T,
    found: usize,
}

impl<'x, T: Real> Ranking<'x, T> {
    /// As many as there is room for gains, none that gains less than `least`.
    fn new(gains: &'x mut [T], latents: &'x mut [u32], least: T) -> Self {
        gains.fill(least);
        let latents = span_mut(latents, 0, gains.len());
        Self { least: if gains.is_empty() { T::NAN } else { least }, gains, latents, found: 0 }
    }

    #[inline(always)]
    fn offer(&mut self, latent: u32, gain: T) {
        if gain > self.least {
            self.add(latent, gain);
        }
    }

    #[inline(never)]
    fn add(&mut self, latent: u32, gain: T) {
        rise(self.gains, self.latents, gain, latent);
        self.least = self.gains.last().copied().unwrap_or(gain);
        self.found += 1;
    }

    /// How many there are.
    fn found(&self) -> usize {
        self.found.min(self.gains.len())
    }
}

/// The nats that turning on gains, of all latents that are no candidates; ranks the first of those that gain something. Returns how
/// many that are.
#[inline(never)]
fn evaluate<T: Real>(tableau: &mut Tableau<'_, T>, scratch: &mut Scratch<'_, T>) -> usize {
    let (model, family) = (tableau.model, tableau.family());
    let latents = scratch.gains.iter_mut().zip(&*scratch.seen);
    let room = tableau.column.len().min(PER_ROUND);
    let mut ranking = Ranking::new(span_mut(tableau.column, 0, room), scratch.best, T::ZERO);
    let priors = model.prior_logit.iter().zip(model.gram_diagonal);
    match family {
        Family::Slab => {
            Count::SlabGains.add(latents.len());
            let slabs = model.slab_precision.iter().zip(model.score_offset);
            let latents = latents.zip(priors);
            let mut offer = |h, slot: &mut T, square: T, d: T, cost: T| {
                let gain = T::HALF * square / d + cost;
                *slot = gain;
                ranking.offer(h, gain);
            };
            if model.has_slab_mean {
                Count::MeanGains.add(latents.len());
                let slabs = model.slab_mean.iter().zip(slabs);
                for (h, (((slot, &r), (&logit, &g)), (&mean, (&k, &offset)))) in (0..).zip(latents.zip(slabs))
                {
                    offer(h, slot, r * r + k * mean * (r + r - g * mean), g + k, logit + offset);
                }
            } else {
                for (h, (((slot, &r), (&logit, &g)), (&k, &offset))) in (0..).zip(latents.zip(slabs)) {
                    offer(h, slot, r * r, g + k, logit + offset);
                }
            }
        }
        Family::Binary => {
            Count::Gains.add(latents.len());
            for (h, ((slot, &r), (&logit, &g))) in (0..).zip(latents.zip(priors)) {
                let gain = logit + r - T::HALF * g;
                *slot = gain;
                ranking.offer(h, gain);
            }
        }
        Family::Maximal => {
            Count::GainDims.add(model.shape.dims * latents.len());
            for (h, ((slot, &r), &logit)) in (0..).zip(latents.zip(model.prior_logit)) {
                // NaN marks candidates: it must survive where no dimension gains.
                let mut gain = logit + r * T::ZERO;
                with_column!(model, h as usize, |column| {
                    let dims = tableau.sample.iter().zip(&*tableau.maxima).zip(column).enumerate();
                    for (d, ((&y, &m), w)) in dims {
                        if w > m {
                            Count::GainsTaken.add(1);
                            gain += model.precision(d) * mca::gain(y, m, w);
                        }
                    }
                });
                *slot = gain;
                ranking.offer(h, gain);
            }
        }
    }
    ranking.found()
}

/// r of all latents that are no candidates, in the present state.
fn look_again<T: Real>(tableau: &mut Tableau<'_, T>, scratch: &mut Scratch<'_, T>) {
    match (tableau.family(), tableau.model.gram) {
        (Family::Maximal, _) => {}
        (Family::Slab | Family::Binary, Some(gram)) => {
            Count::SeenAgain.add(scratch.seen.len());
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
