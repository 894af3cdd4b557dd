//! Where chains begin. The same for all kinds of models.
//!
//! | start | at | work |
//! |---|---|---|
//! | greedy | a state that no latent alone can improve | 32 sweeps at most |
//! | best | the most probable of all states with at most gamma on, as the truncated engine would find it | each state: a conditional, its joint |
//! | random | a draw from the prior | half a sweep |
//!
//! The best state is found by moving the chain itself from state to state, which takes no extra memory; the truncated engine is
//! faster, but keeps sums for every level of its walk.

use super::chain::Sampler;
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::states::table::each_path;
use crate::states::tableau::Path;

/// Latents that a greedy start switches, at most. Each costs no more than two sweeps.
pub(crate) const CLIMBS: u32 = 16;

/// Switches whichever latent gains most, on with its most probable value or off, until none gains; values settle in between.
pub(super) fn climb<T: Real>(sampler: &mut dyn Sampler<T>, max_active: usize) {
    let positions = sampler.order().len();
    for _ in 0..CLIMBS {
        let (mut best, mut most) = (None, T::ZERO);
        for p in 0..positions {
            let (odds, is_on) = (sampler.given(p).log_odds, sampler.is_on(p));
            let gain = if is_on { -odds } else { odds };
            if gain > most && (is_on || sampler.count() < max_active) {
                (best, most) = (Some(p), gain);
            }
        }
        let Some(best) = best else { return };
        for p in 0..positions {
            if sampler.is_on(p) != (p == best) {
                switch_on(sampler, p);
            } else if p == best {
                sampler.set(p, None);
            }
        }
    }
}

/// Looks at all states with at most `max_active` on and stays at the most probable one, the first of equals.
pub(super) fn list<T: Real>(sampler: &mut dyn Sampler<T>, max_active: usize) {
    let positions = sampler.order().len();
    let (mut most, mut best) = (None, Path::new());
    each_path(positions, max_active, &mut |path| {
        visit(sampler, path);
        let joint = sampler.joint();
        if most.is_none_or(|most| joint > most) {
            most = Some(joint);
            best.clear();
            let _ = best.extend_from_slice(path); // same capacity
        }
    });
    visit(sampler, &best);
    sampler.settle();
}

/// Switches to a state. Between one of [`each_path`]'s and the next, one latent is switched on, and one off on average.
fn visit<T: Real>(sampler: &mut dyn Sampler<T>, path: &[u16]) {
    for p in 0..sampler.order().len() {
        match (sampler.is_on(p), path.contains(&(p as u16))) {
            (true, false) => sampler.set(p, None),
            (false, true) => switch_on(sampler, p),
            _ => {}
        }
    }
}

/// On, with its most probable value given all others.
fn switch_on<T: Real>(sampler: &mut dyn Sampler<T>, p: usize) {
    let given = sampler.given(p);
    let mode = sampler.mode(p, given);
    sampler.set(p, Some(mode));
}

/// Draws all latents from the prior.
pub(super) fn scatter<T: Real>(sampler: &mut dyn Sampler<T>, max_active: usize, rng: &mut Rng) {
    for p in 0..sampler.order().len() {
        sampler.set(p, None);
        let away = sampler.prior(p, rng);
        sampler.set(p, away.filter(|_| sampler.count() < max_active));
    }
    sampler.refresh();
}
