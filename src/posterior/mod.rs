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
//! Work: |A| operations for each neighbour that shows; (|A| + 1)^2 with second moments.

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
use crate::numeric::slices::{at, lower_row, set, span, span_mut};
use crate::states::search::Found;
use crate::states::tableau::{Joint, Latents, Path, Tableau};

/// Sums over the states so far, relative to the weight of the reference; by candidate they are in [`Candidate`].
pub(crate) struct Sums<'x, T> {
    anchor: Joint<T>,
    /// Nats relative to it below which states are passed by.
    floor: T,
    total: T,
    best_weight: T,
    /// Weight of the state that was expanded first.
    reference_weight: T,
    /// The best state: latents, and coefficients.
    map: &'x mut Path,
    map_values: &'x mut [T],
    /// (n x n, or empty)
    second: &'x mut [T],
}

impl<'x, T: Real> Sums<'x, T> {
    /// Begins with weights relative to this log joint; the candidates know the reference ([`Tableau::mark`]).
    pub fn new(anchor: Joint<T>, second: &'x mut [T], map: &'x mut Path, map_values: &'x mut [T]) -> Self {
        map.clear();
        if DETAIL {
            second.fill(T::ZERO);
        }
        let floor = T::NEGLIGIBLE;
        Self {
            anchor,
            floor,
            total: T::ZERO,
            reference_weight: T::ZERO,
            best_weight: T::ZERO,
            map,
            map_values,
            second,
        }
    }

    /// Passes by no state that is less than so many nats below the anchor.
    pub fn reach(&mut self, nats: T) {
        self.floor = if -nats < self.floor { -nats } else { self.floor };
    }

    /// Whether the best state is no more exact than what it was compared with: see [`Tableau::is_beside_reference`].
    pub fn is_settled(&self, tableau: &Tableau<'_, T>) -> bool {
        tableau.is_beside_reference(self.map, self.map_values)
    }

    /// Whether products of latents are asked for.
    pub fn has_second(&self) -> bool {
        DETAIL && !self.second.is_empty()
    }

    /// Adds the neighbours of the tableau's state by the flips in `counted`, one bit each, and the state itself if it `is_new`.
    /// Their weights are left with the candidates.
    pub fn expand(&mut self, tableau: &mut Tableau<'_, T>, is_new: bool, counted: u64) -> Found<T> {
        let n = tableau.len();
        Count::Expanded.add(1);
        Count::ExpandedCells.add(n);
        let mut here =
            tableau.joint.relative() - self.anchor.relative() + (tableau.joint.base - self.anchor.base);
        let mut scale = T::ONE;
        let highest = highest(span(tableau.candidates, 0, n), counted);
        let above = here + highest;
        if above > T::HEADROOM {
            scale = self.lift(tableau.candidates, above);
            // here - above, but not as a difference of numbers that may be so large that rounding errors are thousands of nats.
            here = -highest;
        }
        let ratio = tableau.joint.ratio / self.anchor.ratio;
        let mut mass = T::ZERO;
        if is_new {
            mass = here.exp() * ratio.sqrt();
            self.reference_weight = mass;
            if mass > self.best_weight {
                self.note(tableau, None, mass);
            }
        }
        let floor = self.floor - here;
        let mut best = (self.best_weight, None);
        let mut rest = counted;
        for (i, candidate) in span_mut(tableau.candidates, 0, n).iter_mut().enumerate() {
            let counts = rest & 1 != 0;
            rest >>= 1;
            // NaN goes on: it must reach the total and be reported.
            if candidate.gain < floor || !counts {
                candidate.weight = T::ZERO;
                continue;
            }
            Count::Weights.add(1);
            let weight = (here + candidate.exponent).exp() * (ratio * candidate.ratio).sqrt();
            candidate.weight = weight;
            mass += weight;
            if weight > best.0 {
                best = (weight, Some(i));
            }
        }
        if let (weight, Some(i)) = best {
            self.note(tableau, Some(i), weight);
        }
        self.total += mass;
        match tableau.family() {
            _ if mass <= T::ZERO => {}
            Family::Slab => self.add_slab(tableau, mass),
            Family::Binary | Family::Maximal => self.add_binary(tableau, mass),
        }
        Found { scale, best: self.best_weight, total: self.total, reference: self.reference_weight }
    }

    /// Makes a state that is far above the anchor the new one. Returns the factor for all weights so far.
    #[cold]
    #[inline(never)]
    fn lift(&mut self, candidates: &mut [Candidate<T>], nats: T) -> T {
        let factor = (-nats).exp();
        self.anchor.exponent += nats;
        self.total *= factor;
        self.best_weight *= factor;
        for candidate in candidates.iter_mut() {
            let Candidate { on, off, first, square, .. } = candidate;
            for sum in [on, off, first, square] {
                *sum *= factor;
            }
        }
        if DETAIL {
            self.second.iter_mut().for_each(|sum| *sum *= factor);
        }
        factor
    }

    /// Takes note of the best state so far: the tableau's, or its neighbour by one flip.
    #[inline(never)]
    fn note(&mut self, tableau: &Tableau<'_, T>, flip: Option<usize>, weight: T) {
        Count::Noted.add(tableau.len());
        self.best_weight = weight;
        self.map.clear();
        let value = flip.and_then(|i| tableau.candidates.get(i)).map_or(T::ZERO, |candidate| candidate.value);
        for j in 0..tableau.len() {
            if tableau.is_on(j) == (flip == Some(j)) {
                continue;
            }
            let mut x = T::ONE;
            if tableau.family() == Family::Slab {
                x = if flip == Some(j) { value } else { tableau.coefficient(j) };
                if let Some(i) = flip.filter(|&i| i != j) {
                    x -= tableau.pair(i, j) * value;
                }
            }
            set(self.map_values, self.map.len(), x);
            let _ = self.map.push(tableau.latent(j) as u16); // no more than may be on
        }
    }

    #[inline(never)]
    fn add_slab(&mut self, tableau: &mut Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        Count::SlabCells.add(n);
        Count::Pairs.add(tableau.count * n);
        // Each latent by itself: in the state, and in those that its own flip leads to or from.
        for candidate in span_mut(tableau.candidates, 0, n) {
            let weight = candidate.weight;
            candidate.push = weight * candidate.value;
            candidate.spread = weight * candidate.inverse + candidate.push * candidate.value;
            let (on, off, x, variance) = match candidate.sign > T::ZERO {
                true => (weight, mass - weight, candidate.value, candidate.inverse),
                false => (mass - weight, weight, candidate.mean + candidate.seen, candidate.diagonal),
            };
            candidate.off += off;
            if on > T::ZERO {
                let away = x - candidate.reference;
                let first = on * away;
                candidate.on += on;
                candidate.first += first;
                candidate.square += on * variance + first * away;
            }
        }
        // Those that are on, in the states that the others' flips lead to.
        for j in 0..n {
            if !tableau.is_on(j) {
                continue;
            }
            tableau.gather(j);
            let (mut moved, mut spread) = (T::ZERO, T::ZERO);
            for (candidate, &s) in span(tableau.candidates, 0, n).iter().zip(&*tableau.column) {
                moved += s * candidate.push;
                spread += s * s * candidate.spread;
            }
            if let Some(candidate) = tableau.candidates.get_mut(j) {
                let away = candidate.mean + candidate.seen - candidate.reference;
                candidate.first -= moved;
                candidate.square += spread - (away + away) * moved;
            }
        }
        if self.has_second() {
            self.add_second(tableau, mass);
        }
    }

    /// Latents that are on or off: coefficients are 1.
    fn add_binary(&mut self, tableau: &mut Tableau<'_, T>, mass: T) {
        let n = tableau.len();
        for candidate in span_mut(tableau.candidates, 0, n) {
            let (weight, others) = (candidate.weight, mass - candidate.weight);
            let (on, off) = if candidate.sign > T::ZERO { (weight, others) } else { (others, weight) };
            candidate.on += on;
            candidate.off += off;
        }
        if self.has_second() {
            self.add_products(tableau, mass);
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

    /// What weights are relative to, and ln of their sum.
    pub fn log_total(&self) -> (Joint<T>, T) {
        (self.anchor, self.total.ln())
    }

    /// 1 / sum of weights.
    pub fn scale(&self) -> T {
        T::ONE / self.total
    }
}

/// The most nats that a flip of these gains, no less than none.
#[inline(always)]
fn highest<T: Real>(candidates: &[Candidate<T>], counted: u64) -> T {
    let (mut highest, mut rest) = (T::ZERO, counted);
    for candidate in candidates {
        if candidate.gain > highest && rest & 1 != 0 {
            highest = candidate.gain;
        }
        rest >>= 1;
    }
    highest
}
