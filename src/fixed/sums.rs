//! Sums over states: see [`crate::posterior`].
//!
//! In the neighbour of a state by flip i, with w = S_ij / sqrt(|S_ii|), a latent j that is on has the coefficient t_j - w tau_i and
//! the variance Lambda_j + w^2 where i turns on, with the other signs where it turns off. Weights are relative to the best state.

use super::numbers::{exp2, mul_high, mul_wide, mul_wide_signed, square};
use super::tableau::{Candidate, Cell, Tableau, View};
use super::{LOG_DIGITS, NEGLIGIBLE, ONE_BIT, ROOT_BITS};
use crate::capacity::MAX_CANDIDATES;
use crate::counts::Count;
use crate::states::tableau::Path;
use heapless::Vec;

/// sqrt(log2 e), the deviation of a latent by itself, Q30, and its square.
const DEVIATION: i32 = (ROOT_BITS * (1 << 30) as f64) as i32;
const VARIANCE: i32 = (ROOT_BITS * ROOT_BITS * (1 << 30) as f64) as i32;
/// Coefficients and deviations are below this, for sums of squares to have room. (16 digits)
const MOST: u32 = 1 << 29;

/// What is known of all states so far; by candidate it is in [`Candidate`].
pub(super) struct Sums<'x> {
    /// The log joint of the best state, which weights are relative to, or nearly.
    anchor: i32,
    /// Digits that weights have less than [`super::WEIGHT_DIGITS`], for those of all states to fit a word.
    fewer: u32,
    pub total: u32,
    pub best: i32,
    /// The best state: candidates, and coefficients.
    pub map: &'x mut Path,
    pub map_values: &'x mut [i32],
    /// Something was too large.
    pub is_lost: bool,
}

/// What a state says about a latent that is on.
struct Value {
    /// Its coefficient, less that of the reference, and the variance.
    away: i32,
    variance: u64,
}

/// Sums of a candidate.
pub(super) struct Found {
    pub on: u32,
    pub first: i64,
    pub square: u64,
}

impl Candidate {
    pub fn sums(&self) -> Found {
        let wide = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
        Found {
            on: self.on as u32,
            first: wide(self.first_low, self.first_high) as i64,
            square: wide(self.square_low, self.square_high),
        }
    }

    /// Adds a state of this weight that has it on; says whether there is room.
    #[inline(never)]
    fn add(&mut self, weight: u32, value: Value) -> bool {
        Count::FixedVisits.add(1);
        let square = value.variance + square(value.away);
        // Large ones need not keep all of their digits.
        let product = match u32::try_from(square) {
            Ok(square) => mul_wide(weight, square),
            Err(_) => mul_wide(weight, (square >> 16) as u32) << 16,
        };
        self.on = self.on.wrapping_add(weight as i32);
        self.add_moments(mul_wide_signed(weight as i32, value.away), product as i64) && square >> 39 == 0
    }

    /// Adds to the sums of x and x^2; says whether there is room.
    #[inline(always)]
    fn add_moments(&mut self, first: i64, square: i64) -> bool {
        let sums = self.sums();
        self.set_first(sums.first.wrapping_add(first));
        let square = sums.square.wrapping_add_signed(square);
        self.set_square(square);
        // Below zero it can only be on the way.
        square >> 62 != 1
    }

    fn set_first(&mut self, sum: i64) {
        (self.first_low, self.first_high) = (sum as i32, (sum >> 32) as i32);
    }

    fn set_square(&mut self, sum: u64) {
        (self.square_low, self.square_high) = (sum as i32, (sum >> 32) as i32);
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

/// The coefficient of a latent that is on. (16 digits)
#[inline(always)]
pub(super) fn coefficient(cell: &Cell) -> i32 {
    shifted(cell.seen, cell.shift - 5)
}

/// Where a latent moves to, by w times 2^-`power`, Q26, of a flip of tau.
#[inline(always)]
fn moved(w: i32, tau: i32, power: i32) -> i32 {
    shifted(mul_high(w, tau), power)
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
        Self { anchor: tableau.joint, fewer, total: 0, best: i32::MIN, map, map_values, is_lost: false }
    }

    /// Bits that weights are relative to, and the digits of these.
    pub fn anchor(&self) -> (i32, i32) {
        (self.anchor, super::WEIGHT_DIGITS - self.fewer as i32)
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
        for candidate in tableau.candidates.iter_mut() {
            let sums = candidate.sums();
            candidate.on = sums.on.checked_shr(bits).unwrap_or_default() as i32;
            candidate.set_first(sums.first >> bits.min(63));
            candidate.set_square(sums.square.checked_shr(bits).unwrap_or_default());
        }
    }

    /// Adds the neighbours of the tableau's state but those in `left_out`, and the state itself if it `is_new`. Their weights are
    /// left in the cells.
    #[inline(never)]
    pub fn expand(&mut self, tableau: &mut Tableau<'_>, is_new: bool, left_out: u32) {
        let (n, here) = (tableau.len(), tableau.joint);
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
        self.is_lost |= !add_all(tableau, mass);
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
                Some((i, flip)) if i == j => turned_on(flip, 0).away,
                Some((i, flip)) => beside(cell, flip, view.pair(i, j), coefficient(cell), 0).away,
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
    fn new(index: usize, cell: &Cell) -> Option<Self> {
        if cell.power > 2 || cell.tau.unsigned_abs() >= 32 << 22 {
            return None;
        }
        let (turns_on, tau) = (cell.on == 0, (cell.tau >> 12) as i16);
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

/// Adds a state and its neighbours, whose weights are in the cells, all together `mass`; says whether there is room.
fn add_all(tableau: &mut Tableau<'_>, mass: u32) -> bool {
    let (view, cells, candidates) = tableau.parts();
    let (mut flips, mut large, mut has_room) = (Flips::new(), 0u32, true);
    for (i, cell) in cells.iter().enumerate() {
        if cell.weight != 0 {
            match Small::new(i, cell) {
                Some(small) => drop(flips.push(small)), // one for each candidate
                None => large |= 1 << (i % 32),
            }
        }
    }
    for (j, (cell, candidate)) in cells.iter().zip(candidates.iter_mut()).enumerate() {
        if cell.on == 0 {
            if cell.weight != 0 {
                has_room &= candidate.add(cell.weight as u32, turned_on(cell, candidate.reference));
            }
            continue;
        }
        let away = coefficient(cell).wrapping_sub(candidate.reference);
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
                has_room &= candidate.add(flip.weight as u32, beside(cell, flip, s, away, variance));
            }
        }
        // What small flips take off is less than this.
        has_room &= candidate.add(rest, Value { away, variance });
    }
    has_room
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

/// A latent that is off, in the state that has it on.
#[inline(always)]
fn turned_on(cell: &Cell, reference: i32) -> Value {
    let value = shifted(mul_high(cell.tau, cell.root), cell.power - 4);
    let deviation = shifted(mul_high(DEVIATION, cell.root), cell.power - 12);
    Value { away: value.wrapping_sub(reference), variance: square(deviation) }
}

/// A latent that is on, in the state that another flip leads to.
#[inline(always)]
fn beside(cell: &Cell, flip: &Cell, s: i32, away: i32, variance: u64) -> Value {
    let (w, power) = (mul_high(s, flip.root), flip.power + cell.shift);
    let (step, spread) = (moved(w, flip.tau, power), square(shifted(mul_high(w, DEVIATION), power - 8)));
    match flip.on == 0 {
        true => Value { away: away.wrapping_sub(step), variance: variance + spread },
        false => Value { away: away.wrapping_add(step), variance: variance.saturating_sub(spread) },
    }
}
