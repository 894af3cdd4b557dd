//! Conditionals where latents add up. Nothing here depends on D.
//!
//! With x = s.z, b = W^T Sigma^-1 y and r = b - G x kept up to date, latent h sees r_h + G_hh x_h of what all others leave:
//!
//! ```text
//! log odds = l_h + 1/2 lam tau^2 - 1/2 K mu^2 - 1/2 ln(lam / K),   x_h ~ N(tau, 1 / lam) if on     [003 eq. 8, 9, corrected factor]
//! lam = G_hh + K,   tau = (r_h + G_hh x_h + K mu) / lam
//! log odds = l_h + r_h + G_hh s_h - G_hh / 2                                                       without a slab [004 eq. 2.8]
//! ```
//!
//! A loud sample has a reference x0 ([`crate::reference`]): then b sees what x0 leaves of the sample, and a chain works with
//! x - x0. Work per latent: about 12 multiply-adds, an exponential, a normal variate if it is on, and H' multiply-adds
//! if its value changes.

use super::chain::{Given, Sampler, on};
use super::logit;
use super::start::climb;
use crate::arena::WorkMemory;
use crate::block::Block;
use crate::factor::Factor;
use crate::map::best_values;
use crate::math::Real;
use crate::model::Model;
use crate::reference::{PASSES, Scratch, leave, refine};
use crate::rng::Rng;
use crate::select::gain;
use crate::single;
use crate::slices::{at, row, set};
use crate::states::Path;

/// What [`refer`] works on and in.
pub(super) struct Room<'x, 'w, T> {
    /// See [`Linear`]. (S)
    pub state: &'x mut [[T; 3]],
    pub work: &'x mut WorkMemory<'w, T>,
    /// Scratch. (S)
    pub rest: &'x mut [T],
    /// Scratch. (A)
    pub values: &'x mut [T],
    pub sample: &'x [T],
    /// Becomes Sigma^-1 times what the reference leaves. (D)
    pub weighted: &'x mut [T],
}

/// Finds a reference if the sample is loud; returns the energy of what it leaves.
pub(super) fn refer<T: Real>(
    model: &Model<'_, T>,
    block: &mut Block<'_, T>,
    room: Room<'_, '_, T>,
    energy: T,
    max_active: usize,
) -> T {
    let Room { state, work, rest, values, sample, weighted } = room;
    let has_slab = model.shape.kind.has_slab();
    let is_loud = block.b.iter().any(|&b| b > T::REFINE_ABOVE);
    let mut energy = energy;
    for _ in 0..PASSES {
        if has_slab {
            let scratch = Scratch {
                factor: Factor { rows: work.rows, pivot_inv: work.pivot_inv, coupling: work.coupling },
                forward: work.v,
                change: values,
                rest,
            };
            let most = max_active.min(block.len());
            energy = refine(model, block, sample, weighted, scratch, energy, most);
        }
        // Of a silent sample every state is as good a reference as any.
        if if has_slab { block.members.is_empty() } else { !is_loud } {
            break;
        }
        let mut path = Path::new();
        let mut sampler = Linear::new(model, block, state, work);
        climb(&mut sampler, max_active);
        on(&sampler, &mut path, values);
        if has_slab {
            if block.is_well_referred(&path, values) {
                break;
            }
            block.refer_to(&path, values);
        } else {
            if path == block.members {
                break;
            }
            block.make_members(&path);
        }
        energy = leave(model, block, sample, weighted);
    }
    energy
}

/// A state of a linear model.
pub(super) struct Linear<'x, 'b, 'w, T> {
    model: &'x Model<'x, T>,
    block: &'x Block<'b, T>,
    /// r, x - x0, and 1 where it is on. (S)
    state: &'x mut [[T; 3]],
    work: &'x mut WorkMemory<'w, T>,
    count: usize,
    /// ln p(y, s), for a slab as long as it is known.
    joint: Option<T>,
}

impl<'x, 'b, 'w, T: Real> Linear<'x, 'b, 'w, T> {
    /// At the reference.
    pub fn new(
        model: &'x Model<'x, T>,
        block: &'x Block<'b, T>,
        state: &'x mut [[T; 3]],
        work: &'x mut WorkMemory<'w, T>,
    ) -> Self {
        let mut linear = Self { model, block, state, work, count: 0, joint: None };
        linear.reset();
        linear
    }

    fn has_slab(&self) -> bool {
        self.model.shape.kind.has_slab()
    }

    /// The latents that are on.
    fn path(&self) -> Path {
        let mut path = Path::new();
        for p in (0..self.block.len()).filter(|&p| self.is_on(p)) {
            let _ = path.push(p as u16); // no more than may be on
        }
        path
    }
}

impl<T: Real> Sampler<T> for Linear<'_, '_, '_, T> {
    fn order(&self) -> &[u16] {
        self.block.order
    }

    fn reset(&mut self) {
        let mut joint = T::ZERO;
        for (p, (state, &b)) in self.state.iter_mut().zip(self.block.b.iter()).enumerate() {
            let is_member = self.block.members.contains(&(p as u16));
            joint += if is_member { logit(self.model, self.block, p) } else { T::ZERO };
            *state = [b, T::ZERO, if is_member { T::ONE } else { T::ZERO }];
        }
        self.count = self.block.members.len();
        self.joint = (!self.has_slab()).then_some(joint);
    }

    fn refresh(&mut self) {
        for p in 0..self.block.len() {
            let mut r = at(self.block.b, p);
            for (&g, &[_, away, _]) in self.block.gram_row(p).iter().zip(self.state.iter()) {
                // Most are off.
                if away != T::ZERO {
                    r -= g * away;
                }
            }
            let [_, away, is_on] = row(self.state, p);
            set(self.state, p, [r, away, is_on]);
        }
    }

    fn count(&self) -> usize {
        self.count
    }

    fn is_on(&self, p: usize) -> bool {
        row(self.state, p)[2] > T::ZERO
    }

    fn reference(&self, p: usize) -> T {
        if self.block.members.contains(&(p as u16)) { at(self.block.reference, p) } else { T::ZERO }
    }

    fn away(&self, p: usize) -> T {
        row(self.state, p)[1]
    }

    fn given(&mut self, p: usize) -> Given<T> {
        let [r, away, _] = row(self.state, p);
        let (x0, g) = (self.reference(p), at(self.block.gram_row(p), p));
        // What all others leave, as seen by this latent.
        let seen = r + g * (x0 + away);
        if !self.has_slab() {
            let log_odds = logit(self.model, self.block, p) + seen - T::HALF * g;
            return Given { log_odds, mean: T::ONE - x0, variance: T::ZERO };
        }
        let [mean, precision, logit, pull, _] = row(self.block.slab, p);
        let variance = T::ONE / (g + precision);
        // -1/2 ln(lam / K)
        let offset = at(self.model.score_offset, super::latent(self.block, p));
        Given {
            log_odds: logit + gain(seen, mean, pull, g, variance) + offset,
            mean: (r + g * away + precision * (mean - x0)) * variance,
            variance,
        }
    }

    fn draw(&mut self, _: usize, given: Given<T>, rng: &mut Rng) -> T {
        if !self.has_slab() {
            return given.mean;
        }
        given.mean + given.variance.sqrt() * rng.standard()
    }

    fn mode(&mut self, _: usize, given: Given<T>) -> T {
        given.mean
    }

    fn prior(&mut self, p: usize, rng: &mut Rng) -> Option<T> {
        let [on, _] = super::chain::odds(logit(self.model, self.block, p));
        if !(rng.unit::<T>() < on) {
            return None;
        }
        let x0 = self.reference(p);
        if !self.has_slab() {
            return Some(T::ONE - x0);
        }
        let [mean, _, _, _, root] = row(self.block.slab, p);
        Some(mean - x0 + rng.standard::<T>() / root)
    }

    fn set(&mut self, p: usize, away: Option<T>) {
        let [_, before, was_on] = row(self.state, p);
        let was_on = was_on > T::ZERO;
        if was_on != away.is_some() {
            // Without a slab the odds are the difference of the joints.
            let odds = if self.has_slab() { T::ZERO } else { self.given(p).log_odds };
            self.joint = self.joint.filter(|_| !self.has_slab());
            self.joint = self.joint.map(|joint| if was_on { joint - odds } else { joint + odds });
            self.count = if was_on { self.count.saturating_sub(1) } else { self.count + 1 };
        }
        let x0 = self.reference(p);
        let now = away.unwrap_or(-x0);
        let change = now - before;
        if change != T::ZERO {
            let states = self.state.iter_mut().zip(self.block.gram_row(p));
            states.for_each(|([r, ..], &g)| *r -= g * change);
        }
        let [r, ..] = row(self.state, p);
        set(self.state, p, [r, now, if away.is_some() { T::ONE } else { T::ZERO }]);
        if x0 != T::ZERO && was_on != away.is_some() {
            // A loud latent comes or goes: what was added up with it has lost digits.
            self.refresh();
        }
    }

    fn settle(&mut self) {
        if !self.has_slab() {
            return;
        }
        let path = self.path();
        let WorkMemory { rows, pivot_inv, coupling, v, mean, variance, covariance } = &mut *self.work;
        let mut work = WorkMemory { rows, pivot_inv, coupling, v, mean: &mut [], variance, covariance };
        best_values(self.model, self.block, &path, &mut work, mean);
        for (k, &p) in path.iter().enumerate() {
            let p = usize::from(p);
            let away = at(self.work.mean, k) - self.reference(p);
            self.set(p, Some(away));
        }
        self.refresh();
    }

    fn joint(&mut self) -> T {
        if let Some(joint) = self.joint {
            return joint;
        }
        let path = self.path();
        let WorkMemory { rows, pivot_inv, coupling, v, .. } = &mut *self.work;
        let mut factor = Factor { rows, pivot_inv, coupling };
        let joint = single::joint(self.block, &path, &mut factor, v);
        let joint = joint.exponent + joint.scale.ln();
        self.joint = Some(joint);
        joint
    }
}
