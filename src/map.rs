//! The most probable state: the walk keeps only sums, so its coefficients are computed once it is known.

use crate::arena::WorkMemory;
use crate::block::Block;
use crate::capacity::MAX_ACTIVE;
use crate::factor::Factor;
use crate::features::TABLES;
use crate::math::Real;
use crate::model::{Model, States};
use crate::slices::{at, copy, exchange, set, span};
use crate::table::Tabled;
use heapless::Vec;

/// Its coefficients, x0 + M^-1 v.
pub(crate) fn best_values<T: Real>(
    model: &Model<'_, T>,
    block: &Block<'_, T>,
    path: &[u16],
    work: &mut WorkMemory<'_, T>,
    values: &mut [T],
) {
    if TABLES && let States::Table(table) = model.states {
        let mut states = Tabled::new(block, table, model.shape.latents, model.shape.max_active, work);
        copy(values, states.moments_of(path));
        return;
    }
    let missing = block.missing(path);
    let mut factor = Factor { rows: work.rows, pivot_inv: work.pivot_inv, coupling: work.coupling };
    for (k, &position) in path.iter().enumerate() {
        let p = usize::from(position);
        let (row, precision) = (block.gram_row(p), block.precision(p));
        let g = path.iter().take(k).map(|&other| at(row, usize::from(other)));
        factor.couple(k, g, at(row, p), precision);
        let reference = at(block.reference, p);
        let v = block.b_without(p, missing) + precision * (block.mean(p) - reference);
        set(work.v, k, v - factor.explained(k, work.v));
        factor.settle(k);
        set(values, k, reference);
    }
    factor.add_solution(span(work.v, 0, path.len()), values);
}

/// Positions to latents, ascending, their values along with them.
pub(crate) fn to_latents<T: Copy>(map: &mut Vec<u16, MAX_ACTIVE>, values: &mut [T], order: &[u16]) {
    for slot in map.iter_mut() {
        *slot = order.get(usize::from(*slot)).copied().unwrap_or_default();
    }
    for end in (1..map.len()).rev() {
        for i in 0..end {
            if map.get(i) > map.get(i + 1) {
                exchange(map, i, i + 1);
                exchange(values, i, i + 1);
            }
        }
    }
}
