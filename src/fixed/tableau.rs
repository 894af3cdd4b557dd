//! The tableau of [`crate::states::tableau`] in integers: a state of the candidates, and what every flip would do.
//!
//! Latents that are off keep the units of [`super`]: S_ii = d is the part of 1 that the latents that are on do not explain, at
//! least K / (G + K). Of a latent that is on, S_ii = -Lambda_ii can be large, so it has a power of two of its own: row and column
//! are smaller by 2^e, Lambda by 4^e, which is then from 1 to 4. Since S is a Schur complement, these bounds hold for everything
//! else:
//!
//! | | at most | digits |
//! |---|--:|--:|
//! | S between latents that are off | 1 | 28 |
//! | one of them on | sqrt(Lambda) 2^-e < 2 | 28 |
//! | both on | < 4 | 28 |
//! | t of one that is off; tau = t / sqrt(d) | sqrt(2 E), E the unexplained energy | 21; 22 |
//! | t of one that is on, its coefficient | sqrt(2 E Lambda) 2^-e | 21 |
//!
//! A flip on the pivot d or Lambda needs w = S_:i / sqrt(|S_ii|) and tau: S <- S - w w^T, t <- t - w tau where it turns on, with
//! plus signs where it turns off. So no product overflows, and there are no divisions.

use super::numbers::{Scaled, inverse_root, log2, mul_high, mul_wide_signed};
use super::{LOG_DIGITS, MARGIN, scale};
use crate::capacity::MAX_CANDIDATES;
use crate::counts::Count;
use crate::model::{Dictionary, FixedLatent, Integers, Model, Noise, Width};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set, span, span_mut, triangle};
use crate::numeric::words::integer_record;
use crate::project::gram_entry;
use crate::states::tableau::Latents;

/// Digits of S.
const S_DIGITS: i32 = 28;
/// One in S.
const ONE: i32 = 1 << S_DIGITS;
/// Least that others leave of a latent, 60 dB below it: beyond the rounding of S nothing is known. A block exponent k adds the
/// rounding of t, 4^(k - 15): tau is then known to 2^-5.
const LEAST: i32 = ONE >> 20;
/// Most that w may be, of a latent that is on: Lambda, below 4, stays below 8 with its square.
const MOST_STEP: i32 = 3 << (S_DIGITS - 1);

integer_record! {
    /// A candidate in the present state.
    Cell {
        /// 1 where it is on.
        on,
        /// e; zero where it is off.
        shift,
        /// d or Lambda.
        diagonal,
        /// t.
        seen,
        /// 1 / sqrt(diagonal): a mantissa from 1 to 2, Q30, and an exponent.
        root,
        power,
        /// t times it.
        tau,
        /// Bits that its flip gains.
        gain,
        /// The weight of the state that the flip leads to.
        weight,
    }
}

integer_record! {
    /// A candidate, and sums over states.
    Candidate {
        /// Bits that it costs to be on, and d at least.
        prior,
        least,
        /// Its coefficient in the reference.
        reference,
        /// Sums over the states that have it on, of s, x and x^2, x about the reference; two words each but the first.
        on,
        first_low,
        first_high,
        square_low,
        square_high,
    }
}

/// A state of the candidates.
pub(super) struct Tableau<'x> {
    /// Candidate -> latent.
    pub latents: &'x mut Latents,
    pub candidates: &'x mut [Candidate],
    pub cells: &'x mut [Cell],
    /// S below its diagonal, by rows.
    pub pairs: &'x mut [i32],
    /// Scratch. (n)
    pub column: &'x mut [i32],
    /// Digits that t and tau have less.
    pub block: u32,
    /// Digits that gains have less, while the reference of a loud sample is climbed.
    pub coarse: u32,
    /// The log joint, in bits more than that of the empty state.
    pub joint: i64,
    /// Latents that are on.
    pub count: usize,
}

/// Place of row `i` in a strictly lower triangle.
#[inline(always)]
const fn row_start(i: usize) -> usize {
    triangle(i) - i
}

/// Most that entries of latents that are on may be for this flip.
#[inline(always)]
fn most_step(own: &Cell) -> u32 {
    (MOST_STEP >> (own.power + 1)) as u32
}

/// Adds `a` times `others`, upper halves of products.
#[inline(never)]
fn add_products(row: &mut [i32], others: &[i32], a: i32) {
    for (entry, &b) in row.iter_mut().zip(others) {
        *entry = entry.wrapping_add(mul_high(a, b));
    }
}

/// Subtracts column k of S, whose rows are in `before`, times c, Q31, and 2^`shift`, except entry k.
#[inline(never)]
fn subtract_column(row: &mut [i32], before: &[i32], k: usize, c: i32, shift: u32) {
    let Some((head, tail)) = row.split_at_mut_checked(k) else { return };
    for (entry, &s) in head.iter_mut().zip(span(before, row_start(k), k)) {
        *entry = entry.wrapping_sub((mul_high(c, s) << 1).wrapping_shl(shift));
    }
    let (mut place, mut step) = (row_start(k + 1) + k, k + 1);
    for entry in tail.iter_mut().skip(1) {
        let Some(&s) = before.get(place) else { return };
        *entry = entry.wrapping_sub((mul_high(c, s) << 1).wrapping_shl(shift));
        place += step;
        step += 1;
    }
}

/// Bits that a flip gains from the determinant.
#[inline(always)]
fn determinant(cell: &Cell) -> i32 {
    log2(cell.root) + ((cell.power - cell.shift) << LOG_DIGITS)
}

/// What flipping a candidate would do; tau has `louder` digits less than gains ask for.
#[inline(never)]
fn evaluate(cell: &mut Cell, prior: i32, louder: u32, coarse: u32) {
    // 1 / sqrt(X 4^-n) = 2^(n - 1) (2 / sqrt(X)), X from 1 to 4.
    let pivot = (cell.diagonal as u32) << 2;
    let twos = match pivot {
        0x4000_0000.. => 0,
        0x1000_0000.. => 1,
        _ => (pivot.leading_zeros() >> 1).min(15),
    };
    cell.root = inverse_root(pivot << (2 * twos));
    cell.power = twos as i32 - 1;
    // Of a latent that is nearly explained t is as small as the root is large.
    cell.tau = mul_high(cell.seen << twos, cell.root) << 2;
    let mut tau = cell.tau;
    if louder > 0 {
        tau = if tau.unsigned_abs() >> (31 - louder) == 0 { tau << louder } else { i32::MAX };
    }
    let (sign, gained) = (if cell.on != 0 { -1 } else { 1 }, mul_high(tau, tau));
    cell.gain = ((sign * prior + determinant(cell)) >> coarse) + sign * gained;
}

/// sum_d q_dh q_dj / sigma_d^2.
fn weighted<T: Real>(integers: Integers<'_, T>, precisions: &[T], dims: usize, h: usize, j: usize) -> Scaled {
    let most = precisions.iter().fold(i32::MIN, |most, precision| most.max(precision.parts().1));
    // Products have 30 bits, and so many of precisions leave room for the sum.
    let digits = (dims.leading_zeros() as i32 - 2).min(30) - 1;
    let (mut sum, mut weights) = (0i64, precisions.iter());
    integers.each_product(dims, h, j, |product| {
        if let Some(&precision) = weights.next() {
            let weight = Scaled::new(precision).to_fixed(digits - most);
            sum = sum.wrapping_add(mul_wide_signed(product, weight));
        }
    });
    Scaled::of_wide(sum, digits - most)
}

/// A correlation, Q31: s_h G_hj s_j.
fn correlation<T: Real>(model: &Model<'_, T>, fixed: &[FixedLatent], h: usize, j: usize) -> i32 {
    let (Some(of_h), Some(of_j)) = (fixed.get(h), fixed.get(j)) else { return 0 };
    let gram = match (model.gram, model.dictionary.known(), model.noise) {
        (Some(stored), ..) => Scaled::new(at(stored, if h > j { triangle(h) + j } else { triangle(j) + h })),
        (None, Dictionary::Integer(integers), noise @ (Noise::Shared(_) | Noise::Diagonal(_))) => {
            let dims = model.shape.dims;
            if integers.width == Width::I16 {
                Count::GramI16.add(dims)
            } else {
                Count::GramI8.add(dims)
            }
            let product = match noise {
                Noise::Diagonal(precisions) => weighted(integers, precisions, dims, h, j),
                _ => Scaled::of_wide(integers.sum(dims, h, j), 0)
                    .times(Scaled::new(model.precision(0)))
                    .normal(),
            };
            let [c, d] = [h, j].map(|h| Scaled::new(at(integers.scales, h)));
            product.times(c).times(d).normal()
        }
        _ => Scaled::new(gram_entry(model, h, j)),
    };
    gram.times(scale(of_h)).times(scale(of_j)).to_fixed(31)
}

impl Tableau<'_> {
    /// n.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.latents.len()
    }

    /// The state as a mask over candidates.
    #[inline(never)]
    pub fn mask(&self) -> u32 {
        let mut mask = 0;
        for (i, cell) in self.cells.iter().enumerate().take(self.len()) {
            mask |= (cell.on as u32) << (i % 32);
        }
        mask
    }

    /// One more candidate, off, whose u is given: S_ij = [j off] c_ij - sum_k c_ik S_kj and t = u - sum_k c_ik t_k, with k the
    /// candidates that are on. Terms may be larger than there is room for; their sums are not, so that wrapping does no harm.
    pub fn append<T: Real>(&mut self, model: &Model<'_, T>, fixed: &[FixedLatent], latent: u16, u: i32) {
        let (i, h) = (self.len(), usize::from(latent));
        let Some(known) = fixed.get(h) else { return };
        if self.latents.push(latent).is_err() {
            return;
        }
        Count::FixedRows.add(1 + i);
        Count::FixedMacs.add(i * self.count);
        let least = (known.least >> 2).max(LEAST).max((1 << (2 * self.block)) >> 4);
        let candidate =
            Candidate { prior: known.offset.wrapping_add(known.logit), least, ..Candidate::default() };
        let mut cell = Cell { diagonal: ONE, seen: u >> 1, ..Cell::default() };
        let Some((before, rest)) = self.pairs.split_at_mut_checked(row_start(i)) else { return };
        let (row, column) = (span_mut(rest, 0, i), span_mut(self.column, 0, i));
        for ((c, entry), &other) in column.iter_mut().zip(row.iter_mut()).zip(self.latents.iter()) {
            *c = correlation(model, fixed, h, usize::from(other));
            *entry = *c >> 3;
        }
        if self.count > 0 {
            for (entry, own) in row.iter_mut().zip(self.cells.iter()) {
                if own.on != 0 {
                    *entry = 0;
                }
            }
            for (k, (&c, own)) in column.iter().zip(self.cells.iter()).enumerate() {
                if own.on == 0 {
                    continue;
                }
                let times_c = |x: i32| (mul_high(c, x) << 1).wrapping_shl(own.shift as u32);
                cell.seen = cell.seen.wrapping_sub(times_c(own.seen));
                subtract_column(row, before, k, c, own.shift as u32);
                if let Some(entry) = row.get_mut(k) {
                    *entry = entry.wrapping_add(times_c(own.diagonal));
                }
            }
            for ((&c, &s), own) in column.iter().zip(row.iter()).zip(self.cells.iter()) {
                if own.on != 0 {
                    let left = (mul_high(c, s) << 1).wrapping_shl(own.shift as u32);
                    cell.diagonal = cell.diagonal.wrapping_sub(left);
                }
            }
            cell.diagonal = cell.diagonal.max(least).min(ONE);
        }
        set(self.candidates, i, candidate);
        set(self.cells, i, cell);
    }

    /// Digits that tau has less than gains ask for.
    #[inline(always)]
    fn louder(&self) -> u32 {
        self.block - self.coarse / 2
    }

    /// What flipping each candidate would do.
    #[inline(never)]
    pub fn evaluate(&mut self) {
        let n = self.len();
        Count::FixedFlips.add(n);
        let (louder, coarse) = (self.louder(), self.coarse);
        for (cell, candidate) in self.cells.iter_mut().zip(self.candidates.iter()).take(n) {
            evaluate(cell, candidate.prior, louder, coarse);
        }
    }

    /// Gathers S_:i without its diagonal.
    pub fn gather(&mut self, i: usize) {
        let n = self.len();
        Count::FixedFlipped.add(1);
        Count::FixedGathered.add(n);
        for (to, &from) in self.column.iter_mut().zip(span(self.pairs, row_start(i), i)) {
            *to = from;
        }
        set(self.column, i, 0);
        let mut place = row_start(i + 1) + i;
        for (j, entry) in self.column.iter_mut().enumerate().take(n).skip(i + 1) {
            *entry = self.pairs.get(place).copied().unwrap_or_default();
            place += j;
        }
    }

    /// Changes e of a candidate that is on by one.
    #[cold]
    #[inline(never)]
    fn rescale(&mut self, j: usize, is_up: bool) {
        let n = self.len();
        Count::FixedRescaled.add(n);
        let by = |x: &mut i32, digits: u32| *x = if is_up { *x << digits } else { *x >> digits };
        for k in (0..n).filter(|&k| k != j) {
            let place = if j > k { row_start(j) + k } else { row_start(k) + j };
            if let Some(entry) = self.pairs.get_mut(place) {
                by(entry, 1);
            }
        }
        if let Some(cell) = self.cells.get_mut(j) {
            by(&mut cell.diagonal, 2);
            by(&mut cell.seen, 1);
            cell.shift += if is_up { -1 } else { 1 };
        }
    }

    /// Latents that are on and whose entries in `column` are larger than `most` get a smaller unit.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, most: u32) {
        for j in 0..self.len() {
            while let (Some(&s), Some(cell)) = (self.column.get(j), self.cells.get(j))
                && cell.on != 0
                && s.unsigned_abs() > most
                && cell.shift < MOST_SHIFT
            {
                self.rescale(j, false);
                set(self.column, j, s >> 1);
            }
        }
    }

    /// Units in which Lambda is from 1 to 4.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        for j in 0..self.len() {
            while let Some(cell) = self.cells.get(j)
                && cell.on != 0
            {
                match cell.diagonal {
                    ..ONE if cell.shift > 0 => self.rescale(j, true),
                    FOUR.. if cell.shift < MOST_SHIFT => self.rescale(j, false),
                    _ => break,
                }
            }
        }
    }

    /// Turns candidate `i` on or off.
    #[inline(never)]
    pub fn flip(&mut self, i: usize) {
        let n = self.len();
        let (Some(&own), Some(candidate)) = (self.cells.get(i), self.candidates.get(i)) else { return };
        let (mut own, prior) = (own, candidate.prior);
        evaluate(&mut own, prior, self.louder(), self.coarse);
        self.gather(i);
        let most = most_step(&own);
        if self.is_large(most) {
            self.make_room(most);
        }
        let turns_on = own.on == 0;
        Count::FixedSweeps.add(n);
        Count::FixedMacs.add(n * n / 2);
        self.weigh(&own, prior);
        let column = span(self.column, 0, n);
        let mut rows = &mut *self.pairs;
        for (j, &w) in column.iter().enumerate() {
            let Some((row, rest)) = rows.split_at_mut_checked(j) else { return };
            rows = rest;
            add_products(row, column, if turns_on { w.wrapping_neg() } else { w });
        }
        let is_off = self.move_cells(turns_on, own.tau);
        let less = self.turn(i, &own);
        self.put_column(i, own.root, less);
        if is_off {
            self.settle();
        }
    }

    /// Whether entries of `column` of latents that are on are larger than this.
    #[inline(always)]
    fn is_large(&self, most: u32) -> bool {
        let mut entries = self.column.iter().zip(self.cells.iter()).take(self.latents.len());
        entries.any(|(&s, cell)| s.unsigned_abs() > most && cell.on != 0)
    }

    /// S_:i in `column` to w, Q30, which is zero for i itself; and the log joint.
    #[inline(never)]
    fn weigh(&mut self, own: &Cell, prior: i32) {
        let (twos, root, n) = ((own.power + 1) as u32, own.root, self.len());
        for s in self.column.iter_mut().take(n) {
            *s = mul_high(*s << twos, root) << 3;
        }
        let gained = (mul_wide_signed(own.tau, own.tau) >> (32 - 2 * self.block)) + i64::from(prior);
        let gained = if own.on == 0 { gained } else { -gained };
        self.joint = self.joint.wrapping_add(gained + i64::from(determinant(own)));
        self.count = if own.on == 0 { self.count + 1 } else { self.count.saturating_sub(1) };
    }

    /// The cell that flips itself. Returns by how much its column is smaller in its new unit.
    #[inline(never)]
    fn turn(&mut self, i: usize, own: &Cell) -> u32 {
        let turns_on = own.on == 0;
        let shift = if turns_on { own.power.max(0) } else { 0 };
        let less = ((own.shift + shift - own.power) as u32).min(15);
        let (mut diagonal, seen) =
            (mul_high(own.root, own.root) >> (2 * less), mul_high(own.tau, own.root) << 1);
        if !turns_on {
            let least = self.candidates.get(i).map_or(1, |candidate| candidate.least);
            diagonal = diagonal.max(least).min(ONE);
        }
        set(self.cells, i, Cell { on: i32::from(turns_on), shift, diagonal, seen: seen >> less, ..*own });
        less
    }

    /// What a flip of `tau` does to the other candidates, with w in `column`; says whether a unit does not fit any more.
    #[inline(never)]
    fn move_cells(&mut self, turns_on: bool, tau: i32) -> bool {
        let (mut is_off, n) = (false, self.len());
        let tau = if turns_on { tau.wrapping_neg() } else { tau };
        let cells = self.cells.iter_mut().zip(self.candidates.iter());
        for ((cell, candidate), &w) in cells.zip(self.column.iter()).take(n) {
            let change = mul_high(w, w);
            cell.seen = cell.seen.wrapping_add(mul_high(w, tau) << 1);
            // Lambda grows where another turns on, d becomes less.
            let signed = if turns_on == (cell.on != 0) { change } else { -change };
            cell.diagonal = cell.diagonal.wrapping_add(signed);
            if cell.on == 0 {
                cell.diagonal = cell.diagonal.max(candidate.least).min(ONE);
            } else {
                cell.diagonal = cell.diagonal.max(1);
                is_off |= !(ONE..FOUR).contains(&cell.diagonal);
            }
        }
        is_off
    }

    /// The new column i of S, from w in `column`.
    #[inline(never)]
    fn put_column(&mut self, i: usize, root: i32, less: u32) {
        let mut place = row_start(i);
        for (j, &w) in self.column.iter().enumerate().take(self.latents.len()) {
            if j != i
                && let Some(entry) = self.pairs.get_mut(place)
            {
                *entry = mul_high(w, root) >> less;
            }
            // Along the row, then down the column.
            place += if j < i { 1 } else { j };
        }
    }

    /// Recomputes t from v, the projection of the residual of x0 on each latent of the model; `gain` holds x0 minus the coefficients.
    pub fn refine(&mut self, fixed: &[FixedLatent], seen: &[i32]) {
        let n = self.len();
        for (cell, &latent) in span_mut(self.cells, 0, n).iter_mut().zip(self.latents.iter()) {
            let h = usize::from(latent);
            let v = seen.get(h).copied().unwrap_or_default() >> 1;
            if cell.on == 0 {
                cell.seen = v;
                continue;
            }
            let x = (i64::from(cell.seen) << cell.shift) + i64::from(cell.gain);
            let least = fixed.get(h).map_or(0, |latent| i64::from(latent.least));
            cell.weight = v.wrapping_sub((x.wrapping_mul(least) >> 30) as i32);
            cell.seen = (x >> cell.shift) as i32;
        }
        for j in 0..n {
            let Some(&Cell { on, shift, diagonal, weight, .. }) = self.cells.get(j) else { return };
            if on == 0 {
                continue;
            }
            self.gather(j);
            let times_v = |s: i32| ((mul_wide_signed(s, weight) << shift) >> S_DIGITS) as i32;
            for (cell, &s) in self.cells.iter_mut().zip(self.column.iter()).take(n) {
                cell.seen = cell.seen.wrapping_sub(times_v(s));
            }
            if let Some(cell) = self.cells.get_mut(j) {
                cell.seen = cell.seen.wrapping_add(times_v(diagonal));
            }
        }
    }

    /// Flips whatever gains most until nothing does, with at most `max_active` on; leaves all flips evaluated.
    pub fn climb(&mut self, max_active: usize) {
        for _ in 0..4 * MAX_CANDIDATES {
            self.evaluate();
            // Where gains have fewer digits, more than their rounding.
            let margin = if self.coarse == 0 { MARGIN } else { (MARGIN >> self.coarse) + 2 };
            let (mut best, mut most, room) = (None, margin, self.count < max_active);
            for (i, cell) in self.cells.iter().enumerate().take(self.len()) {
                if cell.gain > most && (room || cell.on != 0) {
                    (best, most) = (Some(i), cell.gain);
                }
            }
            let Some(best) = best else { return };
            self.flip(best);
        }
    }
}

/// Four in S.
const FOUR: i32 = 4 * ONE;
/// Most that e can be: 1 / Lambda is at least [`LEAST`], up to rounding.
const MOST_SHIFT: i32 = 14;
