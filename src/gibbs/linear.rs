//! Conditionals where latents add up. Nothing here depends on D.
//!
//! With x = s.z, b = W^T Sigma^-1 y and r = b - G x kept up to date, the residual without latent h projects on it as r_h + G_hh x_h:
//!
//! ```text
//! log odds = l_h + 1/2 lam tau^2 - 1/2 K mu^2 - 1/2 ln(lam / K),   x_h ~ N(tau, 1 / lam) if on     [003 eq. 8, 9, corrected factor]
//! lam = G_hh + K,   tau = (r_h + G_hh x_h + K mu) / lam
//! log odds = l_h + r_h + G_hh s_h - G_hh / 2                                                       without a slab [004 eq. 2.8]
//! ```
//!
//! A loud sample has a reference x0 ([`crate::states::tableau`]): b is then the projection of the residual of x0, and a chain works with
//! x - x0. Work per latent: about 12 multiply-adds, an exponential, a normal variate if it is on, and H' multiply-adds
//! if its value changes.

use super::chain::{Given, Sampler};
use crate::counts::Count;
use crate::kinds::Family;
use crate::kinds::gsc::gain;
use crate::memory::{Candidate, Link};
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::numeric::slices::{at, copy, set};
use crate::project::project_some;
use crate::states::tableau::{Latents, Tableau, pair};

/// A state of a linear model: its draws, and a tableau that follows which latents are on.
pub(super) struct Linear<'x, 't, T> {
    pub tableau: &'x mut Tableau<'t, T>,
    /// Candidate -> latent, as the tableau has them.
    latents: Latents,
    /// b. (H)
    projection: &'x [T],
    /// G off its diagonal.
    gram: &'x [T],
    /// (n)
    links: &'x mut [Link<T>],
    /// Members of the reference.
    members: usize,
    count: usize,
    energy: T,
    is_loud: bool,
}

impl<'x, 't, T: Real> Linear<'x, 't, T> {
    /// At the reference; the tableau has the selected latents, all off.
    pub fn new(
        tableau: &'x mut Tableau<'t, T>,
        gram: &'x mut [T],
        links: &'x mut [Link<T>],
        projection: &'x [T],
        (energy, max_active): (T, usize),
    ) -> Self {
        copy(gram, tableau.square);
        let (n, is_loud) = (tableau.len(), tableau.is_loud);
        for i in 0..n {
            let base = at(projection, tableau.latent(i));
            set(links, i, Link { base, ..Link::ZERO });
        }
        if is_loud {
            tableau.settle(max_active);
            tableau.leave();
            let Tableau { model, latents, weighted, column, .. } = tableau;
            project_some(model, latents, weighted, column);
            for (link, &base) in links.iter_mut().zip(tableau.column.iter()) {
                link.base = base;
            }
        }
        tableau.mark();
        for candidate in tableau.candidates.iter_mut() {
            (candidate.on, candidate.off) = (T::ZERO, T::ZERO);
        }
        let latents = tableau.latents.clone();
        let members = tableau.count;
        let mut linear =
            Self { tableau, latents, projection, gram, links, members, count: 0, energy, is_loud };
        linear.reset();
        linear
    }

    fn is_on(&self, p: usize) -> bool {
        self.link(p).on > T::ZERO
    }

    fn reference(&self, p: usize) -> T {
        self.candidate(p).reference
    }

    fn candidate(&self, p: usize) -> Candidate<T> {
        self.tableau.candidates.get(p).copied().unwrap_or(Candidate::ZERO)
    }

    fn link(&self, p: usize) -> Link<T> {
        self.links.get(p).copied().unwrap_or(Link::ZERO)
    }

    fn diagonal(&self, p: usize) -> T {
        at(self.tableau.model.gram_diagonal, self.tableau.latent(p))
    }

    /// G_pj.
    fn coupling(&self, p: usize, j: usize) -> T {
        if p == j { self.diagonal(p) } else { pair(self.gram, self.tableau.candidates.len(), p, j) }
    }

    /// Brings the tableau to the latents that are on, turning on first.
    fn follow(&mut self) {
        let mut has_moved = false;
        for turns_on in [true, false] {
            for i in 0..self.latents.len() {
                let is_on = self.is_on(i);
                if is_on == turns_on && self.tableau.is_on(i) != is_on {
                    self.tableau.flip(i);
                    has_moved = true;
                }
            }
        }
        if has_moved && self.is_loud {
            self.tableau.refine();
        }
    }

    /// Rebuilds the tableau, so that rounding errors of its flips do not accumulate.
    fn gather(&mut self) {
        self.tableau.rebuild(-(T::HALF * self.energy), self.projection);
    }

    /// The coefficients of a state, by candidate.
    pub fn coefficients(&mut self, path: &[u16], values: &mut [T]) {
        for i in 0..self.latents.len() {
            let is_on = path.contains(&(i as u16));
            if let Some(link) = self.links.get_mut(i) {
                link.on = if is_on { T::ONE } else { T::ZERO };
            }
        }
        self.follow();
        for (slot, &i) in values.iter_mut().zip(path) {
            *slot = self.tableau.coefficient(usize::from(i));
        }
    }
}

impl<T: Real> Sampler<T> for Linear<'_, '_, T> {
    fn order(&self) -> &[u16] {
        &self.latents
    }

    fn tally(&mut self) -> &mut [Candidate<T>] {
        self.tableau.candidates
    }

    fn latents(&self) -> (&[Candidate<T>], &[Link<T>]) {
        (self.tableau.candidates, self.links)
    }

    fn has_slab(&self) -> bool {
        self.tableau.family() == Family::Slab
    }

    fn reset(&mut self) {
        for (p, link) in self.links.iter_mut().enumerate().take(self.latents.len()) {
            let is_member = self.tableau.candidates.get(p).is_some_and(|c| c.reference != T::ZERO);
            let on = if is_member { T::ONE } else { T::ZERO };
            *link = Link { seen: link.base, away: T::ZERO, on, ..*link };
        }
        self.count = self.members;
        self.gather();
    }

    fn refresh(&mut self) {
        Count::Refreshed.add(self.latents.len() * self.latents.len());
        for p in 0..self.latents.len() {
            let mut seen = self.link(p).base;
            for j in 0..self.latents.len() {
                let away = self.link(j).away;
                // Most are off.
                if away != T::ZERO {
                    seen -= self.coupling(p, j) * away;
                }
            }
            if let Some(link) = self.links.get_mut(p) {
                link.seen = seen;
            }
        }
        self.gather();
    }

    fn count(&self) -> usize {
        self.count
    }

    fn given(&mut self, p: usize) -> Given<T> {
        let (Link { seen, away, .. }, x0, g) = (self.link(p), self.reference(p), self.diagonal(p));
        let Candidate { logit, mean, precision, .. } = self.candidate(p);
        // What all others leave, as seen by this latent.
        let alone = seen + g * (x0 + away);
        if !self.has_slab() {
            Count::Givens.add(1);
            let log_odds = logit + alone - T::HALF * g;
            return Given { log_odds, mean: T::ONE - x0, variance: T::ZERO };
        }
        Count::SlabGivens.add(1);
        let variance = T::ONE / (g + precision);
        // -1/2 ln(lam / K)
        let offset = at(self.tableau.model.score_offset, self.tableau.latent(p));
        Given {
            log_odds: logit + gain(alone, g, mean, precision * mean, variance) + offset,
            mean: (seen + g * away + precision * (mean - x0)) * variance,
            variance,
        }
    }

    fn draw(&mut self, _: usize, given: Given<T>, rng: &mut Rng) -> T {
        if !self.has_slab() {
            return given.mean;
        }
        Count::Normals.add(1);
        given.mean + given.variance.sqrt() * rng.standard()
    }

    fn mode(&mut self, _: usize, given: Given<T>) -> T {
        given.mean
    }

    fn set(&mut self, p: usize, away: Option<T>) {
        let (before, was_on, x0) = (self.link(p), self.is_on(p), self.reference(p));
        if was_on != away.is_some() {
            self.count = if was_on { self.count.saturating_sub(1) } else { self.count + 1 };
        }
        let now = away.unwrap_or(-x0);
        let change = now - before.away;
        if change != T::ZERO {
            Count::Moved.add(self.latents.len());
            for j in 0..self.latents.len() {
                let g = self.coupling(p, j);
                if let Some(link) = self.links.get_mut(j) {
                    link.seen -= g * change;
                }
            }
        }
        if let Some(link) = self.links.get_mut(p) {
            link.away = now;
            link.on = if away.is_some() { T::ONE } else { T::ZERO };
        }
        if x0 != T::ZERO && was_on != away.is_some() {
            // A loud latent comes or goes: what was added up with it has lost digits.
            self.refresh();
        }
    }

    fn settle(&mut self) {
        if !self.has_slab() {
            return;
        }
        self.follow();
        for p in 0..self.latents.len() {
            if self.is_on(p) {
                let away = self.tableau.coefficient(p) - self.reference(p);
                self.set(p, Some(away));
            }
        }
        self.refresh();
    }

    fn joint(&mut self) -> T {
        self.follow();
        self.tableau.joint.ln()
    }
}
