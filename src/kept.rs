//! Models with few states: factors are kept as long as the same latents are selected, as in streams, which repeat themselves,
//! and always where all latents are.
//!
//! With M = G_AA + diag(K) for the latents A that are on, a state's factor is its parent's and one more row, the last of
//! L^-1 (L L^T = M). No sample shows in it. So a sample only needs, with v = b + K mu and t = L^-1 v,
//!
//! ```text
//! ln p(y, s) = sum over A of (l - 1/2 K mu^2 + ln(sqrt(K) row)) + t.t / 2        (row: the last entry of its row)
//! kappa = L^-T t        Lambda = L^-T L^-1
//! ```
//!
//! A loud sample is seen around a reference, as in [`crate::reference`]. Its members need no guess: a walk without
//! exponentials finds the state with the largest exponent, and the loud ones of its latents are taken. What they leave is
//! walked again, until no coefficient of the best state is loud any more.
//!
//! | module | |
//! |---|---|
//! | `factors` | the rows, of a block |
//! | `view` | v, of a sample and its reference |
//! | `quiet` | sums over all states, without a reference |
//! | `around` | the best state, or sums over all states, around one |
//! | `best`, `state` | the best state, its coefficients |
//!
//! Work per state of k latents: 6 k + 8 multiply-adds and an exponential, k (k + 5) + 8 around a reference; the factors about
//! 10 more and a division when other latents are selected. Up to three latents on ([`MAX_ACTIVE`]) of ten
//! ([`MAX_SELECTED`]). Narrow slabs, whose 1/2 K mu^2 would drown everything else, go the general way ([`crate::grown`]).

mod around;
mod best;
mod factors;
mod quiet;
mod state;
mod view;

use crate::arena::{Arena, BlockMemory};
use crate::block::Block;
use crate::conclude::{Results, conclude};
use crate::features::DETAIL;
use crate::found::{Found, Latents};
use crate::math::Real;
use crate::model::{Model, Shape, States};
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::reference::{PASSES, ROUNDS, leave};
use crate::select::singleton_of;
use crate::slices::at;
use around::Walk;
use best::Best;
use factors::{factorize, is_tame, rows_len};
use state::coefficients;
use view::{SETS, View};

/// Most latents on at once.
pub(crate) const MAX_ACTIVE: usize = 3;
/// Most latents to choose them from: more states take too much memory.
pub(crate) const MAX_SELECTED: usize = 10;
/// Nats that states may exceed the anchor by, their priors aside: no product with their weights overflows.
const ROOM: f64 = 50.0;
/// Nats that the best state known may fall short of it: no sum underflows.
const DEPTH: f64 = 40.0;

/// Most references of one sample: those that take away what the digits of coefficients can and then what is left, and those for
/// a best state that turned out to be another.
pub(crate) const MAX_ROUNDS: usize = ROUNDS + PASSES;

/// A latent: l - 1/2 K mu^2 and sqrt(K), the sums of s, x and x^2 over the states that have it on, and v by [`View`].
type Latent<T> = [T; 5 + SETS];

/// Numbers kept for a shape, its latents and the rows of its states; zero if its factors are not kept.
pub(crate) const fn kept_len(selected: usize, max_active: usize) -> usize {
    match rows_len(selected, max_active) {
        1.. if selected > MAX_SELECTED => 0,
        0 => 0,
        rows => rows + (5 + SETS) * selected,
    }
}

/// Whether all samples of a model but extreme ones are inferred here.
pub(crate) fn serves<T: Real>(model: &Model<'_, T>) -> bool {
    let Shape { selected, max_active, latents, .. } = model.shape;
    kept_len(selected, max_active) > 0
        && matches!(model.states, States::Grown)
        && (0..latents).all(|latent| is_tame(model, latent))
}

/// The posterior of the sample in `arena`, whose largest log joint outside the block is known; false, and nothing done
/// but to kept factors, where only the general way leads to it.
pub(crate) fn posterior<T: Real>(
    model: &Model<'_, T>,
    arena: &mut Arena<'_, T>,
    found: &mut Found<T>,
    largest_outside: T,
) -> bool {
    let Shape { selected, max_active, .. } = model.shape;
    let has_detail = DETAIL && !arena.sums.second.is_empty();
    if has_detail || !matches!(model.states, States::Grown) {
        return false;
    }
    let Some(kept) = arena.walk.get_mut(..kept_len(selected, max_active)) else { return false };
    let Some((latents, rows)) = kept.split_at_mut_checked((5 + SETS) * selected) else { return false };
    let latents = latents.as_chunks_mut().0;

    if found.are_fixed {
        found.kept.clear();
        found.are_fixed = false;
    }
    found.order_ascending(model.shape.latents);
    let Found { order, kept, .. } = found;
    let memory = arena.block.reborrow();
    let Some(mut block) = block(model, (order, kept), arena.projection, memory, (latents, rows)) else {
        return false;
    };

    let state_bits = model.shape.state_bits();
    let (mut energy, mut rounds, mut searches) = (found.energy, 0, 0u8);
    let (view, mut sums) = loop {
        let mut view = View::new(&block, latents);
        let (empty, most) = (view.bases[0] + largest_outside, T::HALF * energy);
        // The latent that was selected first is the best by itself, or nearly; no state explains more than there is.
        let first = usize::from(found.selected.first().copied().unwrap_or_default());
        let alone = singleton_of(model, arena.projection, first).score + at(model.prior_logit, first);
        let mut known = empty.max(alone);
        let mut anchor = known.max(most - T::from_f64(ROOM));
        let is_quiet = most <= T::REFINE_ABOVE && anchor - known <= T::from_f64(DEPTH);
        if !is_quiet || !block.members.is_empty() {
            let mut walk = Walk::new(&view, Best::new(T::IMPOSSIBLE, T::ZERO));
            walk.search(latents, rows, max_active);
            searches += 1;
            let best = walk.best;
            coefficients(best.path(), (&block, &view), latents, rows, max_active, arena.map_values);
            if rounds < ROUNDS && !block.is_settled(best.path(), arena.map_values) {
                rounds += 1;
                block.refer_to_loud(best.path(), arena.map_values);
                energy = leave(model, &mut block, arena.sample, arena.weighted);
                continue;
            }
            (known, anchor) = (empty.max(best.joint.ln_below()), empty.max(best.joint.exponent));
        }
        let mut sums = Sums::to_be_taken(&block, anchor, state_bits, arena.sums.reborrow(), &mut found.map);
        sums.know(known);
        let mut best = Best::new(sums.floor() - anchor, sums.negligible());
        let total = if block.members.is_empty() {
            quiet::sum(latents, rows, max_active, -anchor, &mut best)
        } else {
            view.bases.iter_mut().for_each(|base| *base -= anchor);
            let mut walk = Walk::new(&view, best);
            let total = walk.sum(latents, rows, max_active);
            sums.take_off(|bit| walk.lacking(bit));
            best = walk.best;
            total
        };
        let totals = latents.iter().map(|&[_, _, on, first, square, ..]| [on, first, square]);
        sums.take_walk(totals, total, best.weight, best.path());
        coefficients(best.path(), (&block, &view), latents, rows, max_active, arena.map_values);
        if block.is_well_referred(best.path(), arena.map_values) {
            break (view, sums);
        }
        rounds = ROUNDS.max(rounds + 1);
        if rounds > MAX_ROUNDS {
            return false;
        }
        block.refer_to_loud(best.path(), arena.map_values);
        energy = leave(model, &mut block, arena.sample, arena.weighted);
    };
    let empty = if view.full == 0 { T::ZERO } else { view.bases[0] + sums.anchor() };
    let Arena { projection, activity, mean, variance, .. } = arena;
    let outside = Outside { model, selected: &found.selected };
    let results = Results { projection, activity, mean, variance };
    let mut conclusion = conclude(&outside, empty, &block, &mut sums, results);
    conclusion.log_sum += view.constant;
    found.rounds = [searches, rounds as u8];
    found.settle(model, arena.projection, arena.map_values, energy, conclusion);
    true
}

/// The block of the selected latents, as it is kept or made anew with its rows; none if one of them is out of proportion.
fn block<'x, T: Real>(
    model: &Model<'_, T>,
    (order, kept): (&'x mut Latents, &mut Latents),
    projection: &[T],
    memory: BlockMemory<'x, T>,
    (latents, rows): (&mut [Latent<T>], &mut [T]),
) -> Option<Block<'x, T>> {
    if kept.len() == model.shape.latents || order == kept {
        let mut block = Block::restore(order, memory);
        block.see(projection);
        return Some(block);
    }
    kept.clear();
    if !order.iter().all(|&latent| is_tame(model, usize::from(latent))) {
        return None;
    }
    let block = Block::gather(model, order, projection, memory);
    factorize(&block, latents, rows, model.shape.max_active)?;
    kept.clone_from(block.order);
    Some(block)
}
