//! All states in integers: the best of them, then sums over those that show beside it.

use super::factors::{Factors, times_c, times_d};
use super::state::State;
use crate::fixed::{LOG_DIGITS, add_product, mul_high, mul_wide, square};
use crate::kept::{MAX_ACTIVE, MAX_SELECTED};

/// Digits of weights: the best state's is about 2^21, those of all together have 31.
pub(super) const WEIGHT_DIGITS: i32 = 21;
/// States this many bits below the best have no weight.
const NEGLIGIBLE: i32 = 24 << LOG_DIGITS;
/// From the digits of a product of coefficients to those of squares in sums.
const FEWER: u32 = 18;

/// Sums over the states that have a latent on, of s, x and x^2, x about the reference.
#[derive(Clone, Copy, Default)]
pub(super) struct Latent {
    pub reference: i32,
    pub on: u32,
    pub first: i64,
    pub square: u64,
}

/// What is sought and found.
#[derive(Default)]
pub(super) struct Walk {
    /// Whether states are summed, or the best is sought.
    is_sum: bool,
    /// Exponents below this are passed by.
    threshold: i32,
    /// The exponent that weights are relative to.
    pub anchor: i32,
    /// The best state: by exponent, then by weight.
    pub best: State,
    pub best_weight: u32,
    pub best_values: [i32; MAX_ACTIVE],
    pub total: u32,
    pub latents: [Latent; MAX_SELECTED],
    /// Some coefficient is too large to be summed.
    pub is_lost: bool,
}

impl Walk {
    /// The state with the largest exponent, which becomes the reference and, if `other` is not above it, the anchor.
    pub fn search(&mut self, u: &[i32; MAX_SELECTED], factors: &Factors<'_>, other: i32) {
        self.threshold = i32::MIN;
        self.states(u, factors);
        self.best_values = self.best.coefficients();
        for (&p, &value) in self.best.positions().iter().zip(&self.best_values) {
            if let Some(latent) = self.latents.get_mut(usize::from(p)) {
                latent.reference = value;
            }
        }
        self.anchor = self.threshold.max(other);
    }

    /// Sums over all states, once the best is known.
    pub fn sum(&mut self, u: &[i32; MAX_SELECTED], factors: &Factors<'_>) {
        self.is_sum = true;
        self.threshold = self.anchor.saturating_sub(NEGLIGIBLE);
        self.states(u, factors);
    }

    /// All states whose exponents are not below the threshold, one after the other.
    #[inline(never)]
    fn states(&mut self, u: &[i32; MAX_SELECTED], factors: &Factors<'_>) {
        let &Factors { heads, pairs: [mut c, mut d], triples, max_active } = factors;
        let count = heads.len();
        let mut triples = triples.iter();
        let mut given = [0; MAX_SELECTED];
        if 0 >= self.threshold {
            self.visit(0, State::default());
        }
        for (i, (&[_, _, offset, _], &t_i)) in heads.iter().zip(u).enumerate() {
            let exponent_i = offset.wrapping_add(mul_high(t_i, t_i));
            let (mut positions, mut t) = ([i as u8, 0, 0], [t_i, 0, 0]);
            if exponent_i >= self.threshold {
                self.visit(exponent_i, State { count: 1, positions, t, ..State::default() });
            }
            if max_active < 2 {
                continue;
            }
            let (Some((c_i, more_c)), Some((d_i, more_d))) =
                (c.split_at_checked(count - i - 1), d.split_at_checked(count - i - 1))
            else {
                return;
            };
            (c, d) = (more_c, more_d);
            // What i leaves of the others.
            for ((given, &u), &c) in given.iter_mut().zip(u.iter().skip(i + 1)).zip(c_i) {
                *given = u.wrapping_sub(times_c(t_i, c));
            }
            let later = heads.iter().skip(i + 1).zip(&given).zip(c_i);
            let mut rest = later.clone();
            for (((&[_, _, offset, _], &given), &c), &d) in later.zip(d_i) {
                rest.next();
                let j = i + 1 + (c_i.len() - 1 - rest.len());
                let t_j = times_d(given, d);
                let exponent_j = exponent_i
                    .wrapping_add(offset)
                    .wrapping_add(State::exponent_of(d))
                    .wrapping_add(mul_high(t_j, t_j));
                (positions[1], t[1]) = (j as u8, t_j);
                if exponent_j >= self.threshold {
                    self.visit(exponent_j, State { count: 2, positions, t, c, d, third: [0; 3] });
                }
                if max_active < 3 {
                    continue;
                }
                for (k, ((&[_, _, offset, _], &given), &c_ik)) in (j + 1..).zip(rest.clone()) {
                    let Some(&[e, d_k]) = triples.next() else { return };
                    let t_k = times_d(given.wrapping_sub(times_c(t_j, e)), d_k);
                    let exponent = exponent_j
                        .wrapping_add(offset)
                        .wrapping_add(State::exponent_of(d_k))
                        .wrapping_add(mul_high(t_k, t_k));
                    if exponent >= self.threshold {
                        (positions[2], t[2]) = (k as u8, t_k);
                        let third = [c_ik, e, d_k];
                        self.visit(exponent, State { count: 3, positions, t, c, d, third });
                    }
                }
            }
        }
    }

    /// A state that is not below the threshold.
    #[inline(never)]
    fn visit(&mut self, exponent: i32, state: State) {
        if !self.is_sum {
            (self.threshold, self.best) = (exponent, state);
            return;
        }
        let weight = state.weight(self.anchor.wrapping_sub(exponent));
        let (values, variances) = (state.coefficients(), state.variances());
        self.total = self.total.wrapping_add(weight);
        if weight > self.best_weight {
            (self.best_weight, self.best, self.best_values) = (weight, state, values);
        }
        for ((&p, value), variance) in state.positions().iter().zip(values).zip(variances) {
            let Some(latent) = self.latents.get_mut(usize::from(p)) else { return };
            let away = value.wrapping_sub(latent.reference);
            let square = variance.wrapping_add(square(away)) >> FEWER;
            self.is_lost |= square >> 32 != 0;
            latent.on = latent.on.wrapping_add(weight);
            add_product(&mut latent.first, weight, away);
            latent.square = latent.square.wrapping_add(mul_wide(weight, square as u32));
        }
    }
}
