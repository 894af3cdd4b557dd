//! Sums over states to probabilities and moments.
//!
//! **Per expansion** of a state A whose counted neighbours have weights w_i (w_0 for A itself, the first time),
//! W = w_0 + sum w: with u_i the step of flip i, e_i = w_i u_i, C_i = w_i (1 / S_ii + u_i^2), T_ji = -S_ji for j in A and the
//! unit row else, and kappa the coefficients in A,
//!
//! ```text
//! sum <s_j>         += W - w_j (j in A),   w_j (else)
//! sum <x_j>         += kappa_j W + (T e)_j
//! sum <x x^T>       += (Lambda + kappa kappa^T) W + kappa (T e)^T + (T e) kappa^T + T diag(C) T^T
//! ```
//!
//! since in the neighbour by flip i the coefficients are kappa_j + T_ji u_i. The moments of a latent are taken about c, its coefficient
//! in the reference, over the states that have it on: var = a (q - m^2) + (1 - a) (c + m)^2 a with m and q the means of x - c and
//! (x - c)^2 there. So no large numbers cancel for a loud latent.
//!
//! For the activity of a latent the sum is over the states in which it differs from the reference, so that probabilities close to 1
//! keep their digits.
//!
//! Work: 3 |A| multiply-adds for each neighbour; (|A| + 1)^2 with second moments.

mod expand;
mod marginals;
mod outside;
mod pulls;
mod second;

pub(crate) use marginals::{Results, marginal};
pub(crate) use outside::Outside;
pub(crate) use pulls::Pulls;
use second::add_both;

use crate::counts::Count;
use crate::features::DETAIL;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, lower_row, set};
use crate::states::tableau::{Joint, Latents, Path, Tableau, ones};

/// Sums over the states so far, relative to the weight of the reference; by candidate they are in [`Candidate`].
pub(crate) struct Sums<'x, T> {
    anchor: Joint<T>,
    /// Nats relative to it below which states are left out.
    floor: T,
    total: T,
    best_weight: T,
    /// Weight of the state that was expanded first.
    reference_weight: T,
    /// That state, and the best, one bit for each candidate that is on.
    reference: u64,
    best: u64,
    /// The best state: latents, and coefficients.
    map: &'x mut Path,
    map_values: &'x mut [T],
    /// (n x n, or empty)
    second: &'x mut [T],
}

impl<'x, T: Real> Sums<'x, T> {
    /// Nothing yet: see [`Sums::begin`].
    pub fn new(second: &'x mut [T], map: &'x mut Path, map_values: &'x mut [T]) -> Self {
        let (zero, anchor) = (T::ZERO, Joint::new(T::ZERO));
        Self {
            anchor,
            floor: T::NEGLIGIBLE,
            total: zero,
            best_weight: zero,
            reference_weight: zero,
            reference: 0,
            best: 0,
            map,
            map_values,
            second,
        }
    }

    /// Begins with weights relative to this log joint, that of the reference, which the candidates know ([`Tableau::mark`]).
    pub fn begin(&mut self, anchor: Joint<T>, reference: u64) {
        (self.anchor, self.reference, self.best) = (anchor, reference, reference);
        (self.total, self.best_weight, self.reference_weight) = (T::ZERO, T::ZERO, T::ZERO);
        self.map.clear();
        if DETAIL {
            self.second.fill(T::ZERO);
        }
    }

    /// Counts all states up to so many nats below the anchor.
    pub fn reach(&mut self, nats: T) {
        self.floor = if -nats < self.floor { -nats } else { self.floor };
    }

    /// Whether products of latents are asked for.
    pub fn has_second(&self) -> bool {
        DETAIL && !self.second.is_empty()
    }

    /// Where the best state is.
    pub fn best(&self) -> u64 {
        self.best
    }

    /// Whether the reference has a candidate on.
    fn was_on(&self, i: usize) -> bool {
        self.reference >> (i % 64) & 1 != 0
    }

    /// Takes note of the best state, which the tableau is at.
    pub fn note(&mut self, tableau: &Tableau<'_, T>) {
        Count::Noted.add(tableau.count);
        for i in ones(tableau.on) {
            set(self.map_values, self.map.len(), tableau.coefficient(i));
            let _ = self.map.push(tableau.latent(i) as u16); // no more than may be on
        }
    }

    /// Adds one state by itself, as tables of states have them: its candidates, its log joint relative to the anchor's base, and
    /// means, variances and covariances (a lower triangle, or none) of their coefficients. Returns its weight.
    pub fn add_state(
        &mut self,
        candidates: &mut [Candidate<T>],
        (path, latents): (&[u16], &Latents),
        relative: T,
        [mean, variance, covariance]: [&[T]; 3],
    ) -> T {
        Count::TableSteps.add(latents.len());
        let mut below = relative - self.anchor.relative();
        if below > T::HEADROOM {
            self.lift(candidates, below);
            below = T::ZERO;
        }
        if below < T::NEGLIGIBLE {
            return T::ZERO;
        }
        Count::Weights.add(1);
        let weight = below.exp();
        self.total += weight;
        if weight > self.best_weight {
            self.best_weight = weight;
            self.map.clear();
            for (&p, &x) in path.iter().zip(mean) {
                set(self.map_values, self.map.len(), x);
                let latent = latents.get(usize::from(p)).copied().unwrap_or_default();
                let _ = self.map.push(latent); // no more than may be on
            }
        }
        for (i, candidate) in (0u16..).zip(candidates.iter_mut()).take(latents.len()) {
            let k = path.iter().position(|&p| p == i);
            if k.is_some() != self.was_on(usize::from(i)) {
                candidate.apart += weight;
            }
            let Some(k) = k else { continue };
            let away = at(mean, k) - candidate.reference;
            candidate.first += weight * away;
            candidate.square += weight * (at(variance, k) + away * away);
        }
        if self.has_second() {
            for (i, (&p, &x)) in path.iter().zip(mean).enumerate() {
                for ((&q, &other), &lambda) in path.iter().zip(mean).zip(lower_row(covariance, i)) {
                    let value = weight * (lambda + x * other);
                    add_both(self.second, latents.len(), usize::from(p), usize::from(q), value);
                }
            }
        }
        weight
    }

    /// Adds the singleton states of latents that are no candidates; see [`Outside`].
    pub fn take_outside(&mut self, candidates: &mut [Candidate<T>], mass: T, best: Option<(u16, T, T)>) {
        self.total += mass;
        for i in ones(self.reference) {
            if let Some(candidate) = candidates.get_mut(i) {
                candidate.apart += mass;
            }
        }
        if let Some((latent, value, weight)) = best {
            self.best_weight = weight;
            self.map.clear();
            let _ = self.map.push(latent); // room for one: max_active is at least 1
            set(self.map_values, 0, value);
        }
    }

    /// The log joint that weights are relative to.
    pub fn anchor(&self) -> T {
        self.anchor.ln()
    }

    /// A log joint, and by how much ln of the sum of weights is above it.
    pub fn log_total(&self) -> (Joint<T>, T) {
        let ratio = T::ONE;
        (Joint { ratio, ..self.anchor }, (self.total * self.anchor.ratio.sqrt()).ln())
    }

    /// 1 / sum of weights.
    pub fn scale(&self) -> T {
        T::ONE / self.total
    }
}
