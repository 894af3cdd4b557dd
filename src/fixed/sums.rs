//! Sums over states: see [`crate::posterior`].
//!
//! In the neighbour of a state by flip i, with w = S_ij / sqrt(|S_ii|), a latent j that is on has the coefficient t_j - w tau_i and
//! the variance Lambda_j + w^2 where i turns on, with the other signs where it turns off. Weights are relative to the best state.

use super::numbers::{exp2, mul_high, mul_wide, mul_wide_signed, square};
use super::results::Summary;
use super::tableau::{Candidate, Cell, Tableau, View};
use super::{AWAY_DIGITS, LOG_DIGITS, NEGLIGIBLE, ONE_BIT, ROOT_BITS, VALUE_DIGITS};
use crate::capacity::MAX_CANDIDATES;
use crate::counts::Count;
use crate::states::tableau::Path;
use heapless::Vec;

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
        self.add_moments(mul_wide_signed(weight as i32, value.away), product as i64);
    }

    /// Adds to the sums of x and x^2.
    #[inline(always)]
    fn add_moments(&mut self, first: i64, square: i64) {
        self.set_sums(self.first().wrapping_add(first), self.square().saturating_add(square));
    }

    #[inline(always)]
    fn set_sums(&mut self, first: i64, square: i64) {
        (self.first_low, self.first_high) = (first as i32, (first >> 32) as i32);
        (self.square_low, self.square_high) = (square as i32, (square >> 32) as i32);
    }
}

/// x 2^shift, or the most there may be.
#[inline(always)]
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
    pub fn new(tableau: &mut Tableau<'_>, states: u64, map: &'x mut Path, map_values: &'x mut [i32]) -> Self {
        let n = tableau.len();
        for (candidate, cell) in tableau.candidates.iter_mut().zip(tableau.cells.iter()).take(n) {
            let &mut Candidate { prior, least, .. } = candidate;
            let reference = if cell.on != 0 { coefficient(cell) } else { 0 };
            *candidate = Candidate { prior, least, reference, ..Candidate::default() };
        }
        map.clear();
        let fewer = (64 - states.leading_zeros()).saturating_sub(10);
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
    #[inline(always)]
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
        let (view, cells, _) = tableau.parts();
        let by = flip.and_then(|i| cells.get(i).map(|cell| (i, cell)));
        for (j, cell) in cells.iter().enumerate() {
            if (cell.on != 0) == (flip == Some(j)) {
                continue;
            }
            let value = match by {
                Some((i, flip)) if i == j => own_value(flip),
                Some((i, flip)) => coefficient(cell).wrapping_add(step(cell, flip, view.pair(i, j), -MORE)),
                None => coefficient(cell),
            };
            if let Some(slot) = self.map_values.get_mut(self.map.len()) {
                *slot = value;
            }
            let _ = self.map.push(j as u16); // no more than may be on
        }
    }
}

/// A flip with few digits, where these do.
#[derive(Clone, Copy)]
struct Small {
    index: u8,
    turns_on: bool,
    /// 15 digits.
    weight: u16,
    /// 1 / sqrt(|S_ii|), below 8. (12 digits)
    root: u16,
    /// tau, below 32, so signed that latents that are on move by w times it. (10 digits)
    tau: i16,
}

impl Small {
    #[inline(always)]
    fn new(index: usize, cell: &Cell, block: u32) -> Option<Self> {
        if cell.power > 2 || cell.tau.unsigned_abs() >= (32 << 22) >> block {
            return None;
        }
        let (turns_on, tau) = (cell.on == 0, (cell.tau >> (12 - block)) as i16);
        Some(Self {
            index: index as u8,
            turns_on,
            weight: ((cell.weight + 32) >> 6) as u16,
            root: (cell.root >> (18 - cell.power)) as u16,
            tau: if turns_on { tau.wrapping_neg() } else { tau },
        })
    }
}

/// The small flips that show.
type Flips = Vec<Small, MAX_CANDIDATES>;

/// Adds a state and its neighbours, whose weights are in the cells, all together `mass`.
fn add_all(tableau: &mut Tableau<'_>, mass: u32) {
    let block = tableau.block;
    let (view, cells, candidates) = tableau.parts();
    let (mut flips, mut large) = (Flips::new(), 0u32);
    for (i, cell) in cells.iter().enumerate() {
        if cell.weight != 0 {
            match Small::new(i, cell, block) {
                Some(small) => drop(flips.push(small)), // one for each candidate
                None => large |= 1 << (i % 32),
            }
        }
    }
    for (j, (cell, candidate)) in cells.iter().zip(candidates.iter_mut()).enumerate() {
        // From the digits of coefficients to those of sums.
        let away = |value: i32| shifted(value.wrapping_sub(candidate.reference), block as i32 + MORE);
        if cell.on == 0 {
            if cell.weight != 0 {
                let deviation = shifted(mul_high(DEVIATION, cell.root), cell.power - 12);
                let value = Value { away: away(own_value(cell)), variance: square(deviation) };
                candidate.add(cell.weight as u32, value);
            }
            continue;
        }
        let away = away(coefficient(cell));
        let variance = (mul_high(cell.diagonal, VARIANCE) as u64 >> 12) << (2 * cell.shift as u32).min(28);
        let (mut rest, mut large) = (mass.wrapping_sub(cell.weight as u32), large);
        if cell.shift == 0 && (away >> 6).unsigned_abs() < 1 << 12 {
            large |= add_small(candidate, view, &flips, j, away >> 6);
        } else {
            large = !0;
        }
        // The others need all digits.
        for (i, flip) in cells.iter().enumerate().take(if large == 0 { 0 } else { cells.len() }) {
            if flip.weight != 0 && i != j && large >> (i % 32) & 1 != 0 {
                let s = view.pair(i, j);
                rest = rest.wrapping_sub(flip.weight as u32);
                let power = flip.power + cell.shift - 8;
                let spread = square(shifted(mul_high(mul_high(s, flip.root), DEVIATION), power));
                let variance = match flip.on == 0 {
                    true => variance + spread,
                    false => variance.saturating_sub(spread),
                };
                let away = away.saturating_add(step(cell, flip, s, block as i32));
                candidate.add(flip.weight as u32, Value { away, variance });
            }
        }
        // What small flips take off is less than this.
        candidate.add(rest, Value { away, variance });
    }
}

/// Sums of the latent j that is on, `far` from the reference, over small flips: what they change of what the state itself would
/// give for all of them, by 16-bit products. Returns the flips that are not small enough.
///
/// | | digits |
/// |---|--:|
/// | w, below 2 | 13 |
/// | moves, and how far it is from the reference, below 4 | 10 |
/// | weights | 15 |
#[inline(never)]
fn add_small(candidate: &mut Candidate, view: View<'_>, flips: &[Small], j: usize, far: i32) -> u32 {
    let (mut moves, mut squares, mut spread, mut large) = (0i32, 0i32, 0i32, 0u32);
    Count::FixedPairs.add(flips.len());
    for flip in flips {
        let i = usize::from(flip.index);
        if i == j {
            continue;
        }
        let w = (view.pair_roughly(i, j) * i32::from(flip.root)) >> 12;
        let step = (w * i32::from(flip.tau)) >> 13;
        if w.unsigned_abs() >= 1 << 14 || step.unsigned_abs() >= 1 << 12 {
            large |= 1 << (i % 32);
            continue;
        }
        let weight = i32::from(flip.weight);
        moves += (weight * step) >> 5;
        squares += (weight * ((step * (step + 2 * far)) >> 10)) >> 5;
        let change = (weight * ((w * w) >> 13)) >> 5;
        spread += if flip.turns_on { change } else { -change };
    }
    let more = (i64::from(squares) << 15) + (mul_wide_signed(spread, VARIANCE) >> 18);
    candidate.add_moments(i64::from(moves) << 17, more);
    large
}

/// The coefficient of a latent that is off, in the state that has it on. (As [`coefficient`])
#[inline(always)]
fn own_value(cell: &Cell) -> i32 {
    shifted(mul_high(cell.tau, cell.root), cell.power - 7)
}
