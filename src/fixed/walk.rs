//! All states: how good they are, then sums over those that show.
//!
//! The first walk only finds the largest exponents below every pair. They tell the others, which visit states, what they can
//! pass by.

use super::factors::{Factors, Link, shift_of, times_c, times_d};
use super::numbers::{mul_high, mul_wide, mul_wide_signed, square};
use super::state::State;
use super::{MAX_ACTIVE, MAX_SELECTED, NEGLIGIBLE, ONE_BIT};
use crate::counts::Count;

/// Sums over the states that have a latent on, of s, x and x^2, x about the reference.
#[derive(Clone, Copy, Default)]
pub(super) struct Latent {
    pub reference: i32,
    pub on: u32,
    pub first: i64,
    pub square: u64,
}

/// What is found.
#[derive(Default)]
pub(super) struct Walk {
    /// Whether states are summed; the last visited becomes the reference otherwise.
    is_sum: bool,
    /// The exponent that weights are relative to.
    pub anchor: i32,
    /// The best state.
    pub best: State,
    pub best_weight: u32,
    pub best_values: [i32; MAX_ACTIVE],
    pub total: u32,
    pub latents: [Latent; MAX_SELECTED],
    /// Something was too large for the sums.
    pub is_lost: bool,
}

/// A latent after another: its part of exponents, less what [`shift_of`] adds, and what the other leaves of its u.
type Given = [i32; 2];

/// t and the exponent of a state that has one latent more.
#[inline(always)]
fn grow(exponent: i32, [offset, given]: Given, d: i32) -> (i32, i32) {
    let (t, shift) = (times_d(given, d), shift_of(d) as i32 * ONE_BIT);
    (t, exponent.wrapping_add(offset).wrapping_add(shift).wrapping_add(mul_high(t, t)))
}

/// The latents after i, given that it is on.
#[inline(always)]
fn given<'g>(
    i: usize,
    u: &[i32; MAX_SELECTED],
    factors: &Factors<'_>,
    c_i: &[i32],
    memory: &'g mut [Given; MAX_SELECTED],
) -> &'g [Given] {
    let t_i = u.get(i).copied().unwrap_or_default();
    let later = factors.offsets.iter().zip(u).skip(i + 1).zip(c_i);
    for (slot, ((&offset, &u), &c)) in memory.iter_mut().zip(later) {
        *slot = [offset.wrapping_sub(2 * ONE_BIT), u.wrapping_sub(times_c(t_i, c))];
    }
    memory.get(..c_i.len()).unwrap_or(&[])
}

/// The largest exponent of all states; `tops` become those of the states that begin with each pair.
#[inline(never)]
pub(super) fn measure(u: &[i32; MAX_SELECTED], factors: &Factors<'_>, tops: &mut [i32]) -> i32 {
    let &Factors { offsets, pairs: [mut c, mut d], mut triples, .. } = factors;
    let (mut tops, mut memory, mut largest) = (tops.iter_mut(), [[0; 2]; MAX_SELECTED], 0);
    for (i, (&offset, &t_i)) in offsets.iter().zip(u).enumerate() {
        let exponent_i = offset.wrapping_add(mul_high(t_i, t_i));
        largest = largest.max(exponent_i);
        let c_i;
        (c_i, c) = c.split_at_checked(offsets.len() - i - 1).unwrap_or_default();
        let mut rest = given(i, u, factors, c_i, &mut memory);
        while let Some((&given, after)) = rest.split_first()
            && let Some((&d_j, after_d)) = d.split_first()
            && let Some(slot) = tops.next()
        {
            (rest, d) = (after, after_d);
            Count::FixedStates.add(1 + if triples.is_empty() { 0 } else { after.len() });
            let (t_j, exponent_j) = grow(exponent_i, given, d_j);
            let mut top = exponent_j;
            for &[offset, given] in after {
                let Some((&[e, d_k], after_triple)) = triples.split_first() else { break };
                triples = after_triple;
                let (_, exponent) = grow(exponent_j, [offset, given.wrapping_sub(times_c(t_j, e))], d_k);
                top = top.max(exponent);
            }
            *slot = top;
            largest = largest.max(top);
        }
    }
    largest
}

impl Walk {
    /// The best state, whose exponent is known, becomes the reference.
    pub fn seek(&mut self, u: &[i32; MAX_SELECTED], factors: &Factors<'_>, tops: &[i32], largest: i32) {
        self.visit_from(largest, u, factors, tops);
        self.best_values = self.best.coefficients().unwrap_or_default();
        for (&p, &value) in self.best.positions().iter().zip(&self.best_values) {
            if let Some(latent) = self.latents.get_mut(usize::from(p)) {
                latent.reference = value;
            }
        }
    }

    /// Sums over all states, once there is a reference; `anchor` is no less than the largest exponent.
    pub fn sum(&mut self, u: &[i32; MAX_SELECTED], factors: &Factors<'_>, tops: &[i32], anchor: i32) {
        (self.is_sum, self.anchor) = (true, anchor);
        self.visit_from(anchor.saturating_sub(NEGLIGIBLE), u, factors, tops);
    }

    /// Visits all states whose exponents are at least `floor`.
    #[inline(never)]
    fn visit_from(&mut self, floor: i32, u: &[i32; MAX_SELECTED], factors: &Factors<'_>, tops: &[i32]) {
        let &Factors { offsets, pairs: [mut c, mut d], mut triples, max_active } = factors;
        let (mut tops, mut memory) = (tops, [[0; 2]; MAX_SELECTED]);
        let mut state = State::default();
        if 0 >= floor {
            self.visit(0, &state);
        }
        for (i, (&offset, &t_i)) in offsets.iter().zip(u).enumerate() {
            let exponent_i = offset.wrapping_add(mul_high(t_i, t_i));
            (state.count, state.positions[0], state.t[0]) = (1, i as u8, t_i);
            if exponent_i >= floor {
                self.visit(exponent_i, &state);
            }
            let later = offsets.len() - i - 1;
            let (c_i, d_i, tops_i);
            (c_i, c) = c.split_at_checked(later).unwrap_or_default();
            (d_i, d) = d.split_at_checked(later).unwrap_or_default();
            (tops_i, tops) = tops.split_at_checked(later).unwrap_or_default();
            let seen = if tops_i.iter().any(|&top| top >= floor) {
                given(i, u, factors, c_i, &mut memory)
            } else {
                &[]
            };
            for (from, ((&d_j, &top), &c_ij)) in d_i.iter().zip(tops_i).zip(c_i).enumerate() {
                let links: &[Link];
                let below = if max_active > 2 { later - from - 1 } else { 0 };
                (links, triples) = triples.split_at_checked(below).unwrap_or_default();
                if top < floor {
                    continue;
                }
                let Some((&given, after)) = seen.get(from..).and_then(<[_]>::split_first) else { return };
                Count::FixedPassed.add(1 + links.len());
                let (t_j, exponent_j) = grow(exponent_i, given, d_j);
                (state.count, state.positions[1], state.t[1]) = (2, (i + 1 + from) as u8, t_j);
                (state.c, state.d) = (c_ij, d_j);
                if exponent_j >= floor {
                    self.visit(exponent_j, &state);
                }
                state.count = 3;
                for (n, (&[offset, given], &[e, d_k])) in after.iter().zip(links).enumerate() {
                    let (t_k, exponent) =
                        grow(exponent_j, [offset, given.wrapping_sub(times_c(t_j, e))], d_k);
                    if exponent >= floor {
                        let k = from + 1 + n;
                        (state.positions[2], state.t[2]) = ((i + 1 + k) as u8, t_k);
                        state.third = [c_i.get(k).copied().unwrap_or_default(), e, d_k];
                        self.visit(exponent, &state);
                    }
                }
            }
        }
    }

    /// A state that shows.
    #[inline(never)]
    fn visit(&mut self, exponent: i32, state: &State) {
        if !self.is_sum {
            self.best = *state;
            return;
        }
        Count::FixedVisits.add(1 + state.count);
        let weight = state.weight(self.anchor.wrapping_sub(exponent));
        if weight == 0 {
            return;
        }
        let Some(values) = state.coefficients() else {
            self.is_lost = true;
            return;
        };
        self.total = self.total.wrapping_add(weight);
        if weight > self.best_weight {
            self.note(weight, state, values);
        }
        let ([p_i, p_j, p_k], [i, j, k], of) = (state.positions, values, state.variances());
        if state.count > 0 {
            self.add(p_i, weight, i, of[0]);
        }
        if state.count > 1 {
            self.add(p_j, weight, j, of[1]);
        }
        if state.count > 2 {
            self.add(p_k, weight, k, of[2]);
        }
    }

    /// Takes note of the best state so far.
    #[cold]
    #[inline(never)]
    fn note(&mut self, weight: u32, state: &State, values: [i32; MAX_ACTIVE]) {
        (self.best_weight, self.best, self.best_values) = (weight, *state, values);
    }

    /// Adds what a state says about a latent that is on there.
    #[inline(never)]
    fn add(&mut self, position: u8, weight: u32, value: i32, variance: u64) {
        let Some(latent) = self.latents.get_mut(usize::from(position)) else { return };
        let away = value.wrapping_sub(latent.reference);
        let square = variance + square(away);
        // Large ones need not keep all of their digits.
        let product = match u32::try_from(square) {
            Ok(square) => mul_wide(weight, square),
            Err(_) => mul_wide(weight, (square >> 16) as u32) << 16,
        };
        latent.on = latent.on.wrapping_add(weight);
        latent.first = latent.first.wrapping_add(mul_wide_signed(weight as i32, away));
        latent.square = latent.square.wrapping_add(product);
        self.is_lost |= latent.square >> 63 != 0 || square >> 39 != 0;
    }
}
