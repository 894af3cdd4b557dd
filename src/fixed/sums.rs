//! Sums over states: see [`crate::posterior`].
//!
//! In the neighbour of a state by flip i, with w = S_ij / sqrt(|S_ii|), a latent j that is on has the coefficient t_j - w tau_i and
//! the variance Lambda_j + w^2 where i turns on, with the other signs where it turns off. Weights are relative to the best state.

use super::numbers::{exp2, mul_high, mul_wide, mul_wide_signed, square};
use super::results::Summary;
use super::tableau::{Candidate, Cell, Tableau};
use super::{AWAY_DIGITS, LOG_DIGITS, NEGLIGIBLE, ONE_BIT, ROOT_BITS, VALUE_DIGITS};
use crate::counts::Count;
use crate::numeric::slices::set;
use crate::states::tableau::Path;

/// sqrt(log2 e), the deviation of a latent by itself, Q30, and its square.
const DEVIATION: i32 = (ROOT_BITS * (1 << 30) as f64) as i32;
const VARIANCE: i32 = (ROOT_BITS * ROOT_BITS * (1 << 30) as f64) as i32;
/// Coefficients and deviations are below this, for sums of squares to have room. (16 digits)
const MOST: u32 = 1 << 29;

/// Digits that differences of coefficients have more than these.
const MORE: i32 = AWAY_DIGITS - VALUE_DIGITS;

/// What is known of all states so far; by candidate it is in [`Candidate`].
pub(super) struct Sums<'x> {
    /// The log joint of the reference.
    reference: i64,
    /// Bits above it that weights are relative to: those of the best state, or nearly.
    anchor: i32,
    /// Digits that weights have less than [`super::WEIGHT_DIGITS`], for those of all states to fit a word.
    fewer: u32,
    pub total: u32,
    /// Weight of the reference.
    pub reference_weight: u32,
    /// The log joint of the best state, relative to the reference.
    pub best: i32,
    /// The best state: candidates, and coefficients.
    pub map: &'x mut Path,
    pub map_values: &'x mut [i32],
}

/// What a state says about a latent that is on.
struct Value {
    /// Its coefficient, less that of the reference, and the variance.
    away: i32,
    variance: u64,
}

/// Variances and squares are at most this.
const MOST_SQUARE: u64 = 1 << 39;
impl Candidate {
    /// Sum of x.
    pub fn first(&self) -> i64 {
        i64::from(self.first_high) << 32 | i64::from(self.first_low as u32)
    }

    /// Sum of x^2.
    pub fn square(&self) -> i64 {
        i64::from(self.square_high) << 32 | i64::from(self.square_low as u32)
    }

    /// Adds a state of this weight that has it on.
    #[inline(never)]
    fn add(&mut self, weight: u32, value: Value) {
        Count::FixedVisits.add(1);
        let square = (value.variance + square(value.away)).min(MOST_SQUARE);
        // Large ones need not keep all of their digits.
        let product = match u32::try_from(square) {
            Ok(square) => mul_wide(weight, square).min(i64::MAX as u64),
            Err(_) => mul_wide(weight, (square >> 16) as u32).min(1 << 46) << 16,
        };
        self.on = self.on.wrapping_add(weight as i32);
        let first = self.first().wrapping_add(mul_wide_signed(weight as i32, value.away));
        self.set_sums(first, self.square().saturating_add(product as i64));
    }

    #[inline(always)]
    fn set_sums(&mut self, first: i64, square: i64) {
        (self.first_low, self.first_high) = (first as i32, (first >> 32) as i32);
        (self.square_low, self.square_high) = (square as i32, (square >> 32) as i32);
    }
}

/// x 2^shift, or the most there may be.
#[inline(never)]
fn shifted(x: i32, shift: i32) -> i32 {
    if shift <= 0 {
        return x >> (-shift).min(31);
    }
    if x.unsigned_abs() >= MOST >> shift.min(31) {
        return if x < 0 { -(MOST as i32) } else { MOST as i32 };
    }
    x << shift
}

/// The coefficient of a latent that is on. (13 digits, less those of the block)
#[inline(always)]
pub(super) fn coefficient(cell: &Cell) -> i32 {
    shifted(cell.seen, cell.shift - 8)
}

/// Where a latent that is on moves to with the flip of another, S between them, less its `block`'s digits.
#[inline(always)]
fn step(cell: &Cell, flip: &Cell, s: i32, shift: i32) -> i32 {
    let step = shifted(mul_high(mul_high(s, flip.root), flip.tau), flip.power + cell.shift + shift);
    if flip.on == 0 { -step } else { step }
}

impl<'x> Sums<'x> {
    /// Begins at a state that becomes the reference.
    pub fn new(tableau: &mut Tableau<'_>, states: u32, map: &'x mut Path, map_values: &'x mut [i32]) -> Self {
        let n = tableau.len();
        for (candidate, cell) in tableau.candidates.iter_mut().zip(tableau.cells.iter()).take(n) {
            let &mut Candidate { prior, least, .. } = candidate;
            let reference = if cell.on != 0 { coefficient(cell) } else { 0 };
            *candidate = Candidate { prior, least, reference, ..Candidate::default() };
        }
        map.clear();
        let fewer = (32 - states.leading_zeros()).saturating_sub(10);
        let reference = tableau.joint;
        Self { reference, anchor: 0, fewer, total: 0, reference_weight: 0, best: i32::MIN, map, map_values }
    }

    /// What is known of all states.
    pub fn summary(&self, block: u32) -> Summary {
        let &Self { reference, anchor, total, fewer, .. } = self;
        Summary { reference, anchor, total, digits: super::WEIGHT_DIGITS - fewer as i32, block }
    }

    /// The log joint of the state that a flip of this gain leads to, relative to the reference.
    #[inline(always)]
    pub fn relative(&self, tableau: &Tableau<'_>, gain: i32) -> i32 {
        (tableau.joint.wrapping_sub(self.reference) as i32).wrapping_add(gain)
    }

    /// The weight of a state.
    #[inline(never)]
    fn weight(&self, joint: i32) -> u32 {
        let below = self.anchor.wrapping_sub(joint);
        if below > NEGLIGIBLE {
            return 0;
        }
        let shift = 4 + self.fewer + (below >> LOG_DIGITS) as u32;
        ((exp2(below) >> shift.min(31)) + 1) as u32 >> 1
    }

    /// Makes weights relative to a better state.
    #[cold]
    #[inline(never)]
    fn lift(&mut self, tableau: &mut Tableau<'_>, joint: i32) {
        let bits = joint.wrapping_sub(self.anchor).wrapping_add(ONE_BIT - 1) >> LOG_DIGITS;
        self.anchor = self.anchor.wrapping_add(bits << LOG_DIGITS);
        let bits = bits as u32;
        self.total = self.total.checked_shr(bits).unwrap_or_default();
        self.reference_weight = self.reference_weight.checked_shr(bits).unwrap_or_default();
        for candidate in tableau.candidates.iter_mut() {
            candidate.on = (candidate.on as u32).checked_shr(bits).unwrap_or_default() as i32;
            candidate.set_sums(candidate.first() >> bits.min(63), candidate.square() >> bits.min(63));
        }
    }

    /// Adds the neighbours of the tableau's state but those in `left_out`, and the state itself if it `is_new`. Their weights are
    /// left in the cells.
    #[inline(never)]
    pub fn expand(&mut self, tableau: &mut Tableau<'_>, is_new: bool, left_out: u32) {
        let (n, here) = (tableau.len(), self.relative(tableau, 0));
        Count::FixedExpanded.add(1);
        Count::FixedCells.add(n);
        let mut largest = here;
        for (i, cell) in tableau.cells.iter().enumerate().take(n) {
            if left_out >> (i % 32) & 1 == 0 {
                largest = largest.max(here.wrapping_add(cell.gain));
            }
        }
        if largest > self.anchor {
            self.lift(tableau, largest);
        }
        let (mut mass, mut best) = (0u32, None);
        if is_new {
            mass = self.weight(here);
            self.reference_weight = mass;
            if here > self.best {
                self.note(tableau, None, here);
            }
        }
        for (i, cell) in tableau.cells.iter_mut().enumerate().take(n) {
            cell.weight = 0;
            let joint = here.wrapping_add(cell.gain);
            if left_out >> (i % 32) & 1 == 0 {
                let weight = self.weight(joint);
                cell.weight = weight as i32;
                mass = mass.wrapping_add(weight);
                if joint > self.best {
                    (self.best, best) = (joint, Some(i));
                }
            }
        }
        if best.is_some() {
            self.note(tableau, best, self.best);
        }
        self.total = self.total.wrapping_add(mass);
        add_all(tableau, mass);
    }

    /// Takes note of the best state so far: the tableau's, or its neighbour by one flip.
    #[inline(never)]
    fn note(&mut self, tableau: &mut Tableau<'_>, flip: Option<usize>, joint: i32) {
        Count::FixedNoted.add(tableau.len());
        self.best = joint;
        self.map.clear();
        if let Some(i) = flip {
            tableau.gather(i);
        }
        let by = flip.and_then(|i| tableau.cells.get(i));
        for (j, (cell, &s)) in tableau.cells.iter().zip(tableau.column.iter()).enumerate().take(tableau.len())
        {
            if (cell.on != 0) == (flip == Some(j)) {
                continue;
            }
            let value = match by {
                Some(by) if flip == Some(j) => own_value(by),
                Some(by) => coefficient(cell).wrapping_add(step(cell, by, s, -MORE)),
                None => coefficient(cell),
            };
            if let Some(slot) = self.map_values.get_mut(self.map.len()) {
                *slot = value;
            }
            let _ = self.map.push(j as u16); // no more than may be on
        }
    }
}

/// Adds a state and its neighbours, whose weights are in the cells, all together `mass`.
fn add_all(tableau: &mut Tableau<'_>, mass: u32) {
    let (n, block) = (tableau.len(), tableau.block as i32);
    for j in 0..n {
        let (Some(&cell), Some(&candidate)) = (tableau.cells.get(j), tableau.candidates.get(j)) else {
            return;
        };
        let mut candidate = candidate;
        // From the digits of coefficients to those of sums.
        let away = |value: i32| shifted(value.wrapping_sub(candidate.reference), block + MORE);
        if cell.on != 0 {
            tableau.gather(j);
            let away = away(coefficient(&cell));
            let variance =
                (mul_high(cell.diagonal, VARIANCE) as u64 >> 12) << (2 * cell.shift as u32).min(28);
            Count::FixedPairs.add(n);
            let mut rest = mass.wrapping_sub(cell.weight as u32);
            for (i, (flip, &s)) in tableau.cells.iter().zip(tableau.column.iter()).enumerate().take(n) {
                if flip.weight == 0 || i == j {
                    continue;
                }
                rest = rest.wrapping_sub(flip.weight as u32);
                let power = flip.power + cell.shift - 8;
                let spread = square(shifted(mul_high(mul_high(s, flip.root), DEVIATION), power));
                let variance = match flip.on == 0 {
                    true => variance + spread,
                    false => variance.saturating_sub(spread),
                };
                let away = away.saturating_add(step(&cell, flip, s, block));
                candidate.add(flip.weight as u32, Value { away, variance });
            }
            candidate.add(rest, Value { away, variance });
        } else if cell.weight != 0 {
            let deviation = shifted(mul_high(DEVIATION, cell.root), cell.power - 12);
            let value = Value { away: away(own_value(&cell)), variance: square(deviation) };
            candidate.add(cell.weight as u32, value);
        }
        set(tableau.candidates, j, candidate);
    }
}

/// The coefficient of a latent that is off, in the state that has it on. (As [`coefficient`])
#[inline(always)]
fn own_value(cell: &Cell) -> i32 {
    shifted(mul_high(cell.tau, cell.root), cell.power - 7)
}
