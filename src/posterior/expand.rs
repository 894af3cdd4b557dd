//! One expansion: the weights of a state's neighbours, and what they add to the sums.

use super::Sums;
use crate::counts::Count;
use crate::features::DETAIL;
use crate::kinds::Family;
use crate::memory::Candidate;
use crate::numeric::math::Real;
use crate::numeric::slices::span;
use crate::states::search::Found;
use crate::states::tableau::{Joint, Tableau, ones};

/// Where an expansion is: what its weights follow from, and their sum.
struct Weighing<T> {
    /// Nats of the state relative to the anchor, without determinants; their factor, squared.
    here: T,
    ratio: T,
    /// Nats below which neighbours are left out.
    floor: T,
    mass: T,
    best_weight: T,
    /// The flip to the best neighbour, if that is better than all before.
    best: Option<usize>,
}

/// A neighbour that is far above the anchor: its nats, and how much of them its flip gains.
struct Raised<T> {
    above: T,
    exponent: T,
}

/// Determinants whose square is above this are worth nats that count before a neighbour is left out.
const MOST_RATIO: f64 = 1e4;

impl<T: Real> Weighing<T> {
    /// Counts determinants among the nats where they are large: after many flips, or where [`Joint`] had to settle them.
    #[inline(always)]
    fn settle(&mut self) {
        if self.ratio > T::from_f64(MOST_RATIO) {
            self.here += T::HALF * self.ratio.ln();
            self.ratio = T::ONE;
        }
    }

    /// The weight of a neighbour, zero if that does not show.
    #[inline(always)]
    fn weigh(&mut self, i: usize, exponent: T, ratio: T, floor: T) -> Result<T, Raised<T>> {
        let above = self.here + exponent;
        // NaN goes on: it must reach the total and be reported.
        if above < floor {
            return Ok(T::ZERO);
        }
        if above > T::HEADROOM {
            return Err(Raised { above, exponent });
        }
        Count::Weights.add(1);
        let weight = above.exp_in_range() * (self.ratio * ratio).sqrt();
        self.mass += weight;
        if weight > self.best_weight {
            (self.best_weight, self.best) = (weight, Some(i));
        }
        Ok(weight)
    }
}

impl<T: Real> Sums<'_, T> {
    /// Adds the neighbours of the tableau's state by the flips in `counted`, one bit each, and the state itself if it is the
    /// reference. Their weights are left with the candidates.
    #[inline(never)]
    pub fn expand(&mut self, tableau: &mut Tableau<'_, T>, is_reference: bool, counted: u64) -> Found<T> {
        let (n, has_slab, counted) =
            (tableau.len(), tableau.family() == Family::Slab, tableau.with_digits(counted));
        Count::Expanded.add(1);
        Count::ExpandedCells.add(n);
        let Joint { base, ratio, .. } = tableau.joint;
        if is_reference {
            (self.reference_weight, self.best_weight) = (T::ONE, T::ONE);
        }
        let mut weighing = Weighing {
            here: tableau.joint.relative() - self.anchor.relative() + (base - self.anchor.base),
            ratio: ratio / self.anchor.ratio,
            floor: self.floor,
            mass: if is_reference { T::ONE } else { T::ZERO },
            best_weight: self.best_weight,
            best: None,
        };
        weighing.settle();
        let (mut scale, mut first) = (T::ONE, 0);
        loop {
            let done = match has_slab {
                true => weighing.slabs(tableau, counted, first),
                false => weighing.switches(tableau, counted, first),
            };
            let Err((i, Raised { above, exponent })) = done else { break };
            let factor = self.lift(tableau.candidates, above);
            // here - above, but not as a difference of large numbers, whose rounding errors may be thousands of nats.
            weighing.here = -exponent;
            weighing.mass *= factor;
            weighing.best_weight *= factor;
            (scale, first) = (scale * factor, i);
        }
        let mass = weighing.mass;
        self.best_weight = weighing.best_weight;
        if let Some(i) = weighing.best {
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
                add_slab(tableau, mass);
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
    pub(super) fn lift(&mut self, candidates: &mut [Candidate<T>], nats: T) -> T {
        let factor = (-nats).exp();
        self.anchor.exponent += nats;
        for sum in [&mut self.total, &mut self.best_weight, &mut self.reference_weight] {
            *sum *= factor;
        }
        for candidate in candidates.iter_mut() {
            let Candidate { weight, push, spread, apart, first, square, .. } = candidate;
            for sum in [weight, push, spread, apart, first, square] {
                *sum *= factor;
            }
        }
        if DETAIL {
            self.second.iter_mut().for_each(|sum| *sum *= factor);
        }
        factor
    }
}

impl<T: Real> Weighing<T> {
    /// The flips of spike-and-slab latents, from candidate `first` on: w, e and C of each, and what it adds to the sums of its own
    /// latent. Stops at one that is far above the anchor.
    #[inline(never)]
    fn slabs(
        &mut self,
        tableau: &mut Tableau<'_, T>,
        counted: u64,
        first: usize,
    ) -> Result<(), (usize, Raised<T>)> {
        let (n, glance) = (tableau.len(), tableau.glance.as_ref());
        let flipped = span(tableau.square, tableau.flipped() * tableau.candidates.len(), n);
        let (mut counted, mut on) = (counted >> (first % 64), tableau.on >> (first % 64));
        let Some(candidates) = tableau.candidates.get_mut(first..n) else { return Ok(()) };
        for (i, candidate) in (first..).zip(candidates) {
            let (is_counted, is_on) = (counted & 1 != 0, on & 1 != 0);
            (counted, on) = (counted >> 1, on >> 1);
            (candidate.weight, candidate.push, candidate.spread) = (T::ZERO, T::ZERO, T::ZERO);
            if !(is_counted || is_on) {
                continue;
            }
            let place = candidate.seen_from(i, flipped, glance, Family::Slab);
            if is_on {
                (candidate.x, candidate.variance) = (candidate.mean + place.seen, place.diagonal);
                if !is_counted {
                    continue;
                }
            }
            // Determinants add to what turning off gains, by no more than so many nats.
            let (flip, floor) = match is_on {
                true => (candidate.turn_off(place), self.floor - T::FARTHEST_RATIO),
                false => (candidate.turn_on(place), self.floor),
            };
            let weight = self.weigh(i, flip.exponent, flip.ratio, floor).map_err(|raised| (i, raised))?;
            Count::SlabCells.add(1);
            let (push, slab) = (weight * flip.value, weight * flip.inverse);
            candidate.weight = weight;
            candidate.apart += weight;
            (candidate.push, candidate.spread) = (push, slab + push * flip.value);
            if !is_on {
                let away = flip.value - candidate.reference;
                let first = weight * away;
                candidate.first += first;
                candidate.square += slab + first * away;
            }
        }
        Ok(())
    }

    /// The same of latents that are on or off.
    #[inline(never)]
    fn switches(
        &mut self,
        tableau: &mut Tableau<'_, T>,
        counted: u64,
        first: usize,
    ) -> Result<(), (usize, Raised<T>)> {
        let (n, family, glance) = (tableau.len(), tableau.family(), tableau.glance.as_ref());
        // Maximal causes have no couplings, and are never only looked at.
        let flipped = span(tableau.square, tableau.flipped() * tableau.candidates.len(), n);
        let Some(candidates) = tableau.candidates.get_mut(first..n) else { return Ok(()) };
        for (i, candidate) in (first..).zip(candidates) {
            candidate.weight = T::ZERO;
            if counted >> (i % 64) & 1 == 0 {
                continue;
            }
            let flip = candidate.flip(candidate.seen_from(i, flipped, glance, family), family);
            let weight = self.weigh(i, flip.exponent, T::ONE, self.floor).map_err(|raised| (i, raised))?;
            candidate.weight = weight;
            candidate.apart += weight;
        }
        Ok(())
    }
}

/// Latents that are on, in the state and in those that the others' flips lead to.
fn add_slab<T: Real>(tableau: &mut Tableau<'_, T>, mass: T) {
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
