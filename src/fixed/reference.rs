//! The greedy reference and the candidates around it, as in [`crate::states::reference`].

use super::numbers::{Scaled, mul_high};
use super::results::UNIT;
use super::sample::{Part, project_rest};
use super::tableau::Tableau;
use super::{T_DIGITS, scale};
use crate::counts::Count;
use crate::model::{Dictionary, FixedLatent, Model, Shape};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span_mut, triangle};
use crate::numeric::words::integers_mut;
use crate::select::top;
use crate::states::reference::{PER_ROUND, ROUNDS};
use crate::states::tableau::Latents;

/// A gain that is never chosen.
const NEVER: i32 = i32::MIN;

/// Scratch of a search over all latents.
pub(super) struct Scratch<'x, T> {
    pub sample: &'x [T],
    /// Of a residual. (D)
    pub weighted: &'x mut [T],
    /// u. (H)
    pub projection: &'x [i32],
    /// t. (H integers)
    pub seen: &'x mut [T],
    /// Gains. (H)
    pub gains: &'x mut [i32],
    /// Gains of the best. (H')
    pub best: &'x mut [i32],
}

/// Finds the reference and the candidates; the tableau is empty before, and at the reference after it, its flips evaluated.
#[inline(never)]
pub(super) fn refer<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    mut scratch: Scratch<'_, T>,
) {
    let Shape { latents, selected, max_active, .. } = model.shape;
    if latents <= selected {
        for (h, &u) in (0u16..).zip(scratch.projection) {
            tableau.append(model, fixed, h, u);
        }
        return tableau.climb(max_active);
    }
    let beside = selected.saturating_sub(max_active).max(1);
    let rounds = if model.gram.is_some() { max_active } else { ROUNDS };
    copy(integers_mut(scratch.seen), scratch.projection);
    for _ in 0..rounds {
        let before = (tableau.len(), tableau.mask());
        let room = selected.saturating_sub(before.0 + 1).min(PER_ROUND);
        add_best(tableau, model, fixed, &mut scratch, room, 0);
        if tableau.len() == before.0 {
            break;
        }
        tableau.climb(max_active);
        if tableau.mask() == before.1 {
            break;
        }
        look_again(tableau, model, fixed, &mut scratch);
    }
    let off = tableau.len() - tableau.count;
    let room = selected.saturating_sub(tableau.len()).min(beside.saturating_sub(off));
    add_best(tableau, model, fixed, &mut scratch, room, NEVER);
    tableau.climb(max_active);
}

/// The most promising latents that are no candidates become such, as long as they gain more than `least`.
fn add_best<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &mut Scratch<'_, T>,
    count: usize,
    least: i32,
) {
    if count == 0 {
        return;
    }
    Count::FixedScores.add(fixed.len());
    // Candidates are never chosen.
    for &latent in &*tableau.latents {
        set(integers_mut(scratch.seen), usize::from(latent), NEVER);
    }
    let gains = integers_mut(scratch.seen).iter().zip(fixed).map(|(&t, latent)| match t {
        NEVER => NEVER,
        _ => latent.offset.wrapping_add(latent.logit).wrapping_add(mul_high(t, t)),
    });
    let mut chosen = Latents::new();
    let best = span_mut(scratch.best, 0, count);
    if count == 1 {
        let mut most = (0, NEVER);
        for (latent, gain) in (0u16..).zip(gains) {
            if gain > most.1 {
                most = (latent, gain);
            }
        }
        let _ = chosen.push(most.0); // room for one
        set(best, 0, most.1);
    } else {
        for (slot, gain) in scratch.gains.iter_mut().zip(gains) {
            *slot = gain;
        }
        top(scratch.gains, count, best, &mut chosen);
    }
    for (&latent, &gain) in chosen.iter().zip(&*best).take(count) {
        if gain > least {
            let u = scratch.projection.get(usize::from(latent)).copied().unwrap_or_default();
            tableau.append(model, fixed, latent, u);
        }
    }
}

/// t of all latents in the present state, u - s_h sum_j G_hj s_j t_j: roughly, since it only orders candidates.
#[inline(never)]
fn look_again<T: Real>(
    tableau: &Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &mut Scratch<'_, T>,
) {
    let parts = tableau.cells.iter().zip(tableau.latents.iter()).filter(|(cell, _)| cell.on != 0);
    let parts = parts.filter_map(|(cell, &latent)| {
        let latent = usize::from(latent);
        let s = scale(fixed.get(latent)?);
        Some(Part { latent, value: Scaled::of(cell.seen, T_DIGITS - 1 - cell.shift).times(s).normal() })
    });
    let Some(gram) = model.gram else {
        let Dictionary::Integer(integers) = model.dictionary.known() else { return };
        let parts = parts.map(|Part { latent, value }| {
            let scale = Scaled::new(at(integers.scales, latent));
            Part { latent, value: value.times(scale).times(UNIT) }
        });
        return project_rest(model, scratch.sample, scratch.weighted, parts, scratch.seen);
    };
    let seen = integers_mut(scratch.seen);
    copy(seen, scratch.projection);
    for Part { latent: j, value } in parts {
        // Row j, then the rest of the column.
        Count::FixedSubtracted.add(fixed.len());
        let (mut place, mut step) = (triangle(j), 1);
        for (h, (seen, of_h)) in seen.iter_mut().zip(fixed).enumerate() {
            let product = Scaled::new(at(gram, place)).times(value).times(scale(of_h));
            *seen = seen.wrapping_sub(product.to_fixed(T_DIGITS));
            if h >= j {
                step = h + 1;
            }
            place += step;
        }
    }
}
