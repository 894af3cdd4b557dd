//! The greedy reference and the candidates around it, as in [`crate::states::reference`].

use super::numbers::{Scaled, mul_high};
use super::results::UNIT;
use super::sample::{Part, grid, project_rest};
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

/// A gain that is never chosen, and t of candidates.
const NEVER: i32 = i32::MIN;

/// Scratch of a search over all latents.
pub(super) struct Scratch<'x, T> {
    pub sample: &'x [T],
    /// Of a residual. (D)
    pub weighted: &'x mut [T],
    /// u. (H)
    pub projection: &'x [i32],
    /// t, and [`NEVER`] for candidates. (H integers)
    pub seen: &'x mut [T],
    /// Gains. (H integers)
    pub gains: &'x mut [T],
    /// The best latents that are no candidates, best first, and their gains. (H')
    pub best: Latents,
    pub best_gains: &'x mut [i32],
}

/// Finds the reference and the candidates; the tableau is empty before, and at the reference after it, its flips evaluated.
#[inline(never)]
pub(super) fn refer<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &mut Scratch<'_, T>,
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
    rank(tableau, fixed, scratch, beside.max(PER_ROUND));
    // The first of the ranked that is no candidate yet.
    let mut next = 0;
    for _ in 0..rounds {
        let before = tableau.mask();
        let room = selected.saturating_sub(tableau.len() + 1).min(PER_ROUND);
        next = append_best(tableau, model, fixed, scratch, 0, room, 0);
        if next == 0 {
            break;
        }
        tableau.climb(max_active);
        if tableau.mask() == before {
            break;
        }
        look_again(tableau, model, fixed, scratch);
        rank(tableau, fixed, scratch, beside.max(PER_ROUND));
        next = 0;
    }
    let off = tableau.len() - tableau.count;
    let room = selected.saturating_sub(tableau.len()).min(beside.saturating_sub(off));
    append_best(tableau, model, fixed, scratch, next, room, NEVER);
    tableau.climb(max_active);
}

/// Up to `count` of the ranked latents, from `next` on, become candidates, as long as they gain more than `least`. Returns
/// which is the first that did not.
fn append_best<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &Scratch<'_, T>,
    mut next: usize,
    count: usize,
    least: i32,
) -> usize {
    let last = next + count;
    while next < last
        && let (Some(&latent), Some(&gain)) = (scratch.best.get(next), scratch.best_gains.get(next))
        && gain > least
    {
        let u = scratch.projection.get(usize::from(latent)).copied().unwrap_or_default();
        tableau.append(model, fixed, latent, u);
        next += 1;
    }
    next
}

/// Ranks all latents that are no candidates by the bits that turning them on gains, and keeps the `count` best.
fn rank<T: Real>(tableau: &Tableau<'_>, fixed: &[FixedLatent], scratch: &mut Scratch<'_, T>, count: usize) {
    Count::FixedScores.add(fixed.len());
    let seen = integers_mut(scratch.seen);
    for &latent in &*tableau.latents {
        set(seen, usize::from(latent), NEVER);
    }
    let gains = span_mut(integers_mut(scratch.gains), 0, fixed.len());
    for ((gain, &t), latent) in gains.iter_mut().zip(&*seen).zip(fixed) {
        *gain = match t {
            NEVER => NEVER,
            _ => (latent.offset.wrapping_add(latent.logit) >> tableau.coarse).wrapping_add(mul_high(t, t)),
        };
    }
    top(gains, count, scratch.best_gains, &mut scratch.best);
}

/// t of all latents in the present state, u - s_h sum_j G_hj s_j t_j: roughly, since it only orders candidates.
#[inline(never)]
fn look_again<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &mut Scratch<'_, T>,
) {
    let digits = T_DIGITS - tableau.block as i32;
    let Some(gram) = model.gram else {
        let parts = on_grid(tableau, model, fixed, scratch.sample);
        let (sample, weighted, seen) = (scratch.sample, &mut *scratch.weighted, &mut *scratch.seen);
        return project_rest(model, sample, weighted, parts, digits, seen, None);
    };
    let seen = integers_mut(scratch.seen);
    copy(seen, scratch.projection);
    for (cell, &latent) in tableau.cells.iter().zip(tableau.latents.iter()) {
        let j = usize::from(latent);
        let Some(of_j) = fixed.get(j).filter(|_| cell.on != 0) else { continue };
        let value = Scaled::of(cell.seen, digits - 1 - cell.shift).times(scale(of_j)).normal();
        // Row j, then the rest of the column.
        Count::FixedSubtracted.add(fixed.len());
        let (mut place, mut step) = (triangle(j), 1);
        for (h, (seen, of_h)) in seen.iter_mut().zip(fixed).enumerate() {
            let product = Scaled::new(at(gram, place)).times(value).times(scale(of_h));
            *seen = seen.wrapping_sub(product.to_fixed(digits));
            if h >= j {
                step = h + 1;
            }
            place += step;
        }
    }
}

/// The latents that are on, with coefficients on the grid of the sample. What rounding adds to them is left in `gain`, with the
/// digits of t.
fn on_grid<'x, T: Real>(
    tableau: &'x mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    sample: &[T],
) -> impl Iterator<Item = Part> + Clone + use<'x, T> {
    let (grid, digits) = (grid(sample), T_DIGITS - 1 - tableau.block as i32);
    let n = tableau.len();
    let cells = span_mut(tableau.cells, 0, n);
    for (cell, &latent) in cells.iter_mut().zip(tableau.latents.iter()) {
        let h = usize::from(latent);
        if let (Some(latent), Dictionary::Integer(integers)) = (fixed.get(h), model.dictionary.known())
            && cell.on != 0
        {
            let unit = scale(latent).times(UNIT).times(Scaled::new(at(integers.scales, h))).normal();
            let value = Scaled::of(cell.seen, digits - cell.shift).times(unit);
            cell.weight = value.to_fixed(grid);
            let Scaled { mantissa, exponent } = Scaled::of(cell.weight, grid);
            let added = Scaled { mantissa, exponent }.plus(Scaled { mantissa: -value.mantissa, ..value });
            cell.gain = added.normal().times(unit.inverse()).to_fixed(digits);
        }
    }
    let parts = cells.iter().zip(tableau.latents.iter()).filter(|(cell, _)| cell.on != 0);
    parts.map(|(cell, &latent)| Part { latent: usize::from(latent), steps: cell.weight })
}

/// Makes t of a loud sample exact: see [`crate::states::tableau`]. With x0 the coefficients on a grid, what the residual y - W x0 has
/// of every latent is v, less K x0 where it is on; then kappa = x0 + Lambda v, and t = v - S_:A v of those that are off.
#[inline(never)]
pub(super) fn refine<T: Real>(
    tableau: &mut Tableau<'_>,
    model: &Model<'_, T>,
    fixed: &[FixedLatent],
    scratch: &mut Scratch<'_, T>,
) {
    let digits = T_DIGITS - tableau.block as i32;
    let parts = on_grid(tableau, model, fixed, scratch.sample);
    let Scratch { sample, weighted, seen, gains, .. } = scratch;
    project_rest(model, sample, weighted, parts, digits, seen, Some(gains));
    tableau.refine(fixed, integers_mut(seen));
}
