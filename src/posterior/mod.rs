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
//! since in the neighbour by flip i the coefficients are kappa_j + T_ji u_i. Of each latent, x is taken about its coefficient in
//! the reference, over the states that have it on: var = a (q - m^2) + (1 - a) (c + m)^2 a with m and q the mean of x - c and
//! of its square there. So nothing large cancels for a loud latent.
//!
//! What is summed of a latent's activity is the weight of the states that differ from the reference in it: for a neighbour that is w_i,
//! whatever the state. The best state is a mask until the end.
//!
//! Work: 3 |A| multiply-adds for each neighbour; (|A| + 1)^2 with second moments.

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
use crate::kinds::Family;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, lower_row, set};
use crate::states::search::Found;
use crate::states::tableau::{Joint, Latents, Path, Tableau, ones};

/// Sums over the states so far, relative to the weight of the reference; by candidate they are in [`Candidate`].
pub(crate) struct Sums<'x, T> {
    anchor: Joint<T>,
    /// Nats relative to it below which states are passed by.
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
    /// Begins with weights relative to this log joint, that of the reference, which the candidates know ([`Tableau::mark`]).
    pub fn new(
        anchor: Joint<T>,
        reference: u64,
        second: &'x mut [T],
        map: &'x mut Path,
        map_values: &'x mut [T],
    ) -> Self {
        map.clear();
        if DETAIL {
            second.fill(T::ZERO);
        }
        let (zero, floor) = (T::ZERO, T::NEGLIGIBLE);
        Self {
            anchor,
            floor,
            total: zero,
            best_weight: zero,
            reference_weight: zero,
            reference,
            best: reference,
            map,
            map_values,
            second,
        }
    }

    /// Passes by no state that is less than so many nats below the anchor.
    pub fn reach(&mut self, nats: T) {
        self.floor = if -nats < self.floor { -nats } else { self.floor };
    }

    /// Whether products of latents are asked for.
    pub fn has_second(&self) -> bool {
        DETAIL && !self.second.is_empty()
    }

    /// Adds the neighbours of the tableau's state by the flips in `counted`, one bit each, and the state itself if it is the
    /// reference. Their weights are left with the candidates.
    #[inline(never)]
    pub fn expand(&mut self, tableau: &mut Tableau<'_, T>, is_reference: bool, counted: u64) -> Found<T> {
        let (n, has_slab) = (tableau.len(), tableau.family() == Family::Slab);
        Count::Expanded.add(1);
        Count::ExpandedCells.add(n);
        let Joint { base, ratio, .. } = tableau.joint;
        let mut here = tableau.joint.relative() - self.anchor.relative() + (base - self.anchor.base);
        let ratio = ratio / self.anchor.ratio;
        let (mut scale, mut mass, mut rest) = (T::ONE, T::ZERO, counted);
        let mut best = None;
        if is_reference {
            (mass, self.reference_weight, self.best_weight) = (T::ONE, T::ONE, T::ONE);
        }
        let Some(candidates) = tableau.candidates.get_mut(..n) else { return Found::default() };
        let (floor, mut best_weight) = (self.floor, self.best_weight);
        for i in 0..n {
            let Some(candidate) = candidates.get_mut(i) else { break };
            let is_counted = rest & 1 != 0;
            rest >>= 1;
            let (is_off, mut above) = (candidate.sign > T::ZERO, here + candidate.exponent);
            // Determinants take from what turning on gains, and add to what turning off does, by no more than so many nats. NaN goes
            // on: it must reach the total and be reported.
            let low = if is_off { floor } else { floor - T::FARTHEST_RATIO };
            if !is_counted || above < low {
                (candidate.weight, candidate.push, candidate.spread) = (T::ZERO, T::ZERO, T::ZERO);
                continue;
            }
            if above > T::HEADROOM {
                // here - above, but not as a difference of large numbers, whose rounding errors may be thousands of nats.
                here = -candidate.exponent;
                let factor = self.lift(candidates, above);
                (scale, mass, above) = (scale * factor, mass * factor, T::ZERO);
                best_weight *= factor;
            }
            let Some(candidate) = candidates.get_mut(i) else { break };
            Count::Weights.add(1);
            let weight = above.exp_in_range() * (ratio * candidate.ratio).sqrt();
            mass += weight;
            if weight > best_weight {
                (best_weight, best) = (weight, Some(i));
            }
            candidate.weight = weight;
            candidate.apart += weight;
            if has_slab {
                Count::SlabCells.add(1);
                let push = weight * candidate.value;
                candidate.push = push;
                candidate.spread = weight * candidate.inverse + push * candidate.value;
                if is_off {
                    let away = candidate.x - candidate.reference;
                    let first = weight * away;
                    candidate.first += first;
                    candidate.square += weight * candidate.variance + first * away;
                }
            }
        }
        self.best_weight = best_weight;
        if let Some(i) = best {
            self.best = tableau.on ^ 1 << (i % 64);
        }
        self.total += mass;
        // NaN goes on.
        if !(mass <= T::ZERO) {
            // In the state itself it is apart, in its own neighbour it is not.
            for i in ones(tableau.on ^ self.reference) {
                if let Some(candidate) = tableau.candidates.get_mut(i) {
                    candidate.apart += mass - (candidate.weight + candidate.weight);
                }
            }
            if has_slab {
                self.add_slab(tableau, mass);
            }
            if self.has_second() {
                match has_slab {
                    true => self.add_second(tableau, mass),
                    false => self.add_products(tableau, mass),
                }
            }
        }
        Found { scale, best: self.best_weight, total: self.total, reference: self.reference_weight }
    }

    /// Makes a state that is far above the anchor the new one. Returns the factor for all weights so far.
    #[cold]
    #[inline(never)]
    fn lift(&mut self, candidates: &mut [Candidate<T>], nats: T) -> T {
        let factor = (-nats).exp();
        self.anchor.exponent += nats;
        for sum in [&mut self.total, &mut self.best_weight, &mut self.reference_weight] {
            *sum *= factor;
        }
        for candidate in candidates.iter_mut() {
            let Candidate { weight, push, spread, apart, on, off, first, square, .. } = candidate;
            for sum in [weight, push, spread, apart, on, off, first, square] {
                *sum *= factor;
            }
        }
        if DETAIL {
            self.second.iter_mut().for_each(|sum| *sum *= factor);
        }
        factor
    }

    /// Latents that are on, in the state and in those that the others' flips lead to.
    fn add_slab(&mut self, tableau: &mut Tableau<'_, T>, mass: T) {
        Count::Pairs.add(tableau.count * tableau.len());
        for j in ones(tableau.on) {
            let (moved, spread) = tableau.pushed(j);
            if let Some(candidate) = tableau.candidates.get_mut(j) {
                let (on, away) = (mass - candidate.weight, candidate.x - candidate.reference);
                let first = on * away;
                candidate.first += first - moved;
                candidate.square += on * candidate.variance + first * away + (spread - (away + away) * moved);
            }
        }
    }

    /// The sums of all candidates, once the tableau has left the last state; and where the best state is.
    pub fn settle(&self, candidates: &mut [Candidate<T>]) -> u64 {
        for (i, candidate) in candidates.iter_mut().enumerate() {
            let (apart, others) = (candidate.apart, self.total - candidate.apart);
            let was_on = self.reference >> (i % 64) & 1 != 0;
            (candidate.on, candidate.off) = if was_on { (others, apart) } else { (apart, others) };
        }
        self.best
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
            let Some(k) = path.iter().position(|&p| p == i) else {
                candidate.off += weight;
                continue;
            };
            let away = at(mean, k) - candidate.reference;
            candidate.on += weight;
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
        candidates.iter_mut().for_each(|candidate| candidate.off += mass);
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
