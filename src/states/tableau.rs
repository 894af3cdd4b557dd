//! The tableau: a state of the candidate latents, from which every state that differs in one of them is one step away.
//!
//! Over the candidates, let S = G + diag(K) and t = b + K mu. Turning latent i on or off is a *sweep* on the pivot d = S_ii,
//! with s the column S_:i before it:
//!
//! ```text
//! S <- S - s s^T / d,  then S_:i = S_i: = s / |d|,  S_ii = -1 / d;        t <- t - s t_i / d,  then t_i <- t_i / |d|
//! ```
//!
//! Swept on the latents A that are on, S_AA = -(G_AA + K)^-1 is minus the posterior covariance of their coefficients and t_A
//! their mean kappa; S_BB and t_B are what A leaves of the others: the Schur complement, and the projection of the residual. So
//! every one-flip neighbour of a state costs a few operations ([`Tableau::evaluate`]), a flip n^2 / 2 multiply-adds
//! ([`Tableau::flip`]), and every log joint is a small number relative to its neighbour's, so that `f32` keeps its digits.
//!
//! **Digits.** The slab's own part is kept apart: off its diagonal S is as above, on it a [`Candidate`] has G's Schur complement g
//! (S_ii = g + K) of a latent that is off, and of one that is on both Lambda (S_ii = -Lambda) and 1/K - Lambda. None of them
//! is ever negative, however rounding goes, and neither narrow nor wide slabs lose digits. Likewise t is kept without K mu, or less
//! mu. Loud samples need one refinement ([`Tableau::refine`]): the residual y - W kappa in double-word arithmetic, projected
//! again.
//!
//! **Other kinds.** Without a slab S stays G, and t is r, which a flip moves by a column of G. Maximal causes have the two
//! largest causes of every dimension instead: D operations a neighbour.

use crate::capacity::MAX_SELECTED;
use crate::counts::Count;
use crate::kinds::gsc::Prior;
use crate::kinds::{Family, Flip, binary, gsc, mca};
use crate::memory::{Candidate, Kept};
use crate::model::{Model, Noise, with_column};
use crate::numeric::math::{Accurate, Real};
use crate::numeric::slices::{at, copy, set, span, span_mut, triangle};
use crate::numeric::words::{Record, records_mut};
use crate::project::{gram_entry, project_some, weigh_in_place};
use heapless::Vec;

/// Some of the latents.
pub(crate) type Latents = Vec<u16, MAX_SELECTED>;

/// Where the log joint of a state is: relative to all that depends neither on the state nor on the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joint<T> {
    /// What all states share.
    pub base: T,
    /// Changes since then, but for determinants.
    pub exponent: T,
    /// The factor of determinants, squared.
    pub ratio: T,
    /// Half of the logarithm of factors that would have left the range of numbers.
    pub settled: T,
}

impl<T: Real> Joint<T> {
    /// The empty state.
    pub fn new(base: T) -> Self {
        Self { base, exponent: T::ZERO, ratio: T::ONE, settled: T::ZERO }
    }

    /// Its logarithm, but for what all states of the same base share and the ratio.
    #[inline(always)]
    pub fn relative(&self) -> T {
        self.exponent + self.settled
    }

    /// By how much it is above another one: what both share, which may be large, does not show.
    pub fn above(&self, other: &Self) -> T {
        let ratio = T::HALF * (self.ratio / other.ratio).ln();
        (self.base - other.base) + (self.relative() - other.relative()) + ratio
    }

    /// Its logarithm.
    pub fn ln(&self) -> T {
        self.base + (self.relative() + T::HALF * self.ratio.ln())
    }

    #[inline(always)]
    fn add(&mut self, flip: &Flip<T>) {
        self.exponent += flip.exponent;
        let ratio = self.ratio * flip.ratio;
        // Before it leaves the range of numbers.
        if ratio > T::from_f64(1e-20) && ratio < T::from_f64(1e20) {
            self.ratio = ratio;
        } else {
            self.settled += T::HALF * (self.ratio.ln() + flip.ratio.ln());
            self.ratio = T::ONE;
        }
    }
}

/// A state of the candidates.
pub(crate) struct Tableau<'x, T> {
    pub model: &'x Model<'x, T>,
    pub sample: &'x [T],
    /// Scratch for a residual. (D)
    pub weighted: &'x mut [T],
    /// Candidate -> latent.
    pub latents: &'x mut Latents,
    pub candidates: &'x mut [Candidate<T>],
    /// S below its diagonal, by rows.
    pub pairs: &'x mut [T],
    /// Scratch. (n)
    pub column: &'x mut [T],
    /// The largest causes, then the next largest. (2 D, or empty)
    pub maxima: &'x mut [T],
    pub joint: Joint<T>,
    /// Whether the sample is so loud that t loses digits when the state changes.
    pub is_loud: bool,
    /// Latents that are on.
    pub count: usize,
    /// The state is only looked at: see [`Glance`].
    pub glance: Option<Glance<T>>,
    /// What a glance changes, to look back: [`Kept`] candidates, then S_:i. (5 n, or empty)
    pub glanced: &'x mut [T],
}

/// A look at the state that one flip leads to, without going there: candidates are in that state, S is not. Entries of S are
/// corrected when they are read, S_jk - S_ji S_ik / d. A flip and the way back would cost n^2 operations, this costs n, and one
/// for every entry that is read.
#[derive(Clone, Copy)]
pub(crate) struct Glance<T> {
    i: usize,
    /// 1 / d, and 1 / |d|.
    inverse: T,
    size: T,
    /// Where it was looked from.
    joint: Joint<T>,
    count: usize,
}

/// Whether a sample of this energy is so far above the noise that log joints lose digits that matter.
#[inline(always)]
pub(crate) fn is_loud<T: Real>(energy: T) -> bool {
    T::HALF * energy > T::REFINE_ABOVE
}

/// Place of row `i` in a strictly lower triangle.
#[inline(always)]
pub(crate) const fn row_start(i: usize) -> usize {
    triangle(i) - i
}

/// Entry (i, j) of a symmetric matrix without its diagonal.
#[inline(always)]
pub(crate) fn pair<T: Real>(pairs: &[T], i: usize, j: usize) -> T {
    at(pairs, if i > j { row_start(i) + j } else { row_start(j) + i })
}

impl<T: Real> Tableau<'_, T> {
    /// Without candidates, all latents off; `base` is the log joint of that state.
    pub fn clear(&mut self, base: T) {
        self.latents.clear();
        self.joint = Joint::new(base);
        self.count = 0;
        self.maxima.fill(T::ZERO);
    }

    /// The same candidates anew, all off, keeping their sums; `projection` is b.
    pub fn rebuild(&mut self, base: T, projection: &[T]) {
        let latents = self.latents.clone();
        self.clear(base);
        for (i, &latent) in latents.iter().enumerate() {
            let kept = self.candidates.get(i).copied().unwrap_or(Candidate::ZERO);
            self.append(latent, at(projection, usize::from(latent)));
            if let Some(candidate) = self.candidates.get_mut(i) {
                let Candidate { reference, on, off, first, square, .. } = kept;
                *candidate = Candidate { reference, on, off, first, square, ..*candidate };
            }
        }
    }

    /// n.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.latents.len()
    }

    pub fn family(&self) -> Family {
        self.model.shape.kind.family()
    }

    pub fn is_on(&self, i: usize) -> bool {
        self.candidates.get(i).is_some_and(|candidate| candidate.sign < T::ZERO)
    }

    /// The latent of a candidate.
    pub fn latent(&self, i: usize) -> usize {
        usize::from(self.latents.get(i).copied().unwrap_or_default())
    }

    /// Its coefficient where it is on.
    pub fn coefficient(&self, i: usize) -> T {
        match (self.family(), self.candidates.get(i)) {
            (Family::Slab, Some(candidate)) => candidate.mean + candidate.seen,
            _ => T::ONE,
        }
    }

    /// One more candidate, off; `seen` is r, what the residual of the present state has of it.
    ///
    /// With k the candidates that are on, S_ij = [j off] G_ij - sum_k G_ik S_kj, and g = G_ii - sum_k G_ik S_ik.
    pub fn append(&mut self, latent: u16, seen: T) {
        let (i, h) = (self.len(), usize::from(latent));
        if self.latents.push(latent).is_err() {
            return;
        }
        let model = self.model;
        Count::Appended.add(1);
        let (logit, diagonal) = (at(model.prior_logit, h), at(model.gram_diagonal, h));
        let mut candidate = Candidate { logit, sign: T::ONE, diagonal, seen, ..Candidate::ZERO };
        match self.family() {
            Family::Slab => {
                candidate.mean = at(model.slab_mean, h);
                candidate.precision = at(model.slab_precision, h);
                candidate.rest = diagonal * T::ROUNDING;
                candidate.least = T::ONE / (diagonal + candidate.precision);
                self.append_row(i, h, &mut candidate);
            }
            Family::Binary => self.append_row(i, h, &mut candidate),
            Family::Maximal => {}
        }
        set(self.candidates, i, candidate);
    }

    fn append_row(&mut self, i: usize, h: usize, candidate: &mut Candidate<T>) {
        let Some((before, rest)) = self.pairs.split_at_mut_checked(row_start(i)) else { return };
        let row = span_mut(rest, 0, i);
        for (entry, &other) in row.iter_mut().zip(self.latents.iter()) {
            *entry = gram_entry(self.model, h, usize::from(other));
        }
        if self.count == 0 || self.model.shape.kind.family() != Family::Slab {
            return;
        }
        // G_ik of those that are on, in `column`; what they leave of the others in the row.
        Count::RowMacs.add(i * self.count);
        let column = span_mut(self.column, 0, i);
        copy(column, row);
        for (entry, other) in row.iter_mut().zip(self.candidates.iter()) {
            if other.sign < T::ZERO {
                *entry *= other.diagonal;
            }
        }
        let mut left = candidate.diagonal;
        for (k, (&g, other)) in column.iter().zip(self.candidates.iter()).enumerate() {
            if other.sign > T::ZERO {
                continue;
            }
            for (entry, &s) in row.iter_mut().zip(span(before, row_start(k), k)) {
                *entry -= g * s;
            }
            let mut place = row_start(k + 1) + k;
            for (j, entry) in row.iter_mut().enumerate().skip(k + 1) {
                *entry -= g * at(before, place);
                place += j;
            }
        }
        for ((&s, &g), other) in row.iter().zip(column.iter()).zip(self.candidates.iter()) {
            if other.sign < T::ZERO {
                left -= s * g;
            }
        }
        candidate.diagonal = candidate.rest.max(left);
    }

    /// What flipping each candidate would do.
    pub fn evaluate(&mut self) {
        let (n, family) = (self.len(), self.family());
        self.count_flips(n);
        if family == Family::Maximal {
            for i in 0..n {
                let flip = self.flip_of_maximal(i);
                if let Some(candidate) = self.candidates.get_mut(i) {
                    take(candidate, &flip);
                }
            }
            return;
        }
        for candidate in span_mut(self.candidates, 0, n) {
            take(candidate, &flip_of(family, candidate));
        }
    }

    #[inline(always)]
    fn count_flips(&self, flips: usize) {
        match self.family() {
            Family::Slab => {
                Count::SlabFlips.add(flips);
                Count::MeanFlips.add(if at(self.model.slab_mean, 0) != T::ZERO { flips } else { 0 });
            }
            Family::Binary => Count::Flips.add(flips),
            Family::Maximal => {
                Count::MaximalFlips.add(flips);
                Count::FlipDims.add(flips * self.sample.len());
            }
        }
    }

    /// The same for one candidate.
    fn flip_at(&self, i: usize) -> Flip<T> {
        match (self.family(), self.candidates.get(i)) {
            (Family::Maximal, _) => self.flip_of_maximal(i),
            (family, Some(candidate)) => flip_of(family, candidate),
            _ => Flip { exponent: T::ZERO, ratio: T::ONE, value: T::ZERO, inverse: T::ONE },
        }
    }

    /// Turns candidate `i` on or off.
    pub fn flip(&mut self, i: usize) {
        self.count_flips(1);
        let flip = self.flip_at(i);
        self.joint.add(&flip);
        let is_on = self.is_on(i);
        self.count = if is_on { self.count.saturating_sub(1) } else { self.count + 1 };
        match self.family() {
            Family::Slab => self.sweep(i, &flip),
            Family::Binary => self.shift(i, flip.value),
            Family::Maximal => {
                if let Some(candidate) = self.candidates.get_mut(i) {
                    candidate.sign = -candidate.sign;
                }
                self.maximise();
            }
        }
    }

    /// Gathers S_:i without its diagonal.
    #[inline(always)]
    pub fn gather(&mut self, i: usize) -> &[T] {
        let n = self.latents.len();
        Count::Gathered.add(n);
        let column = span_mut(self.column, 0, n);
        copy(column, span(self.pairs, row_start(i), i));
        set(column, i, T::ZERO);
        let (mut rest, mut skip) = (self.pairs.get(row_start(i + 1) + i..).unwrap_or(&[]), i + 1);
        for entry in column.iter_mut().skip(i + 1) {
            *entry = rest.first().copied().unwrap_or(T::ZERO);
            rest = rest.get(skip..).unwrap_or(&[]);
            skip += 1;
        }
        let Some(glance) = self.glance else { return column };
        Count::Corrected.add(n);
        let seen = span(self.glanced, self.candidates.len() * <Kept<T> as Record<T>>::LEN, n);
        if i == glance.i {
            for (entry, &s) in column.iter_mut().zip(seen) {
                *entry = s * glance.size;
            }
        } else {
            let own = at(seen, i);
            let step = own * glance.inverse;
            for (entry, &s) in column.iter_mut().zip(seen) {
                *entry -= step * s;
            }
            set(column, i, T::ZERO);
            set(column, glance.i, own * glance.size);
        }
        column
    }

    /// S_ij, i not j.
    pub fn pair(&self, i: usize, j: usize) -> T {
        let s = pair(self.pairs, i, j);
        let Some(glance) = self.glance else { return s };
        let seen = |k: usize| at(self.glanced, self.candidates.len() * <Kept<T> as Record<T>>::LEN + k);
        match (glance.i == i, glance.i == j) {
            (true, _) => seen(j) * glance.size,
            (_, true) => seen(i) * glance.size,
            _ => s - seen(i) * seen(j) * glance.inverse,
        }
    }

    /// Whether t loses digits when candidate `i` is flipped: its coefficient is worth more nats than [`Real::REFINE_ABOVE`].
    pub fn is_loud_flip(&self, i: usize) -> bool {
        let Some(candidate) = self.candidates.get(i) else { return false };
        let worth = match (self.family(), candidate.sign < T::ZERO) {
            (Family::Slab, is_on) => {
                let x = if is_on { candidate.mean + candidate.seen } else { self.flip_at(i).value };
                T::HALF * x * x / candidate.least
            }
            (Family::Binary, _) => T::HALF * candidate.diagonal,
            (Family::Maximal, _) => T::ZERO,
        };
        self.is_loud && !(worth <= T::REFINE_ABOVE)
    }

    /// Looks at the state that flipping candidate `i` leads to; false where that has to be gone to.
    pub fn glance(&mut self, i: usize) -> bool {
        let (flip, n, family) = (self.flip_at(i), self.latents.len(), self.family());
        if family == Family::Maximal || self.is_loud_flip(i) {
            return false;
        }
        self.gather(i);
        self.count_flips(1);
        Count::Glanced.add(n);
        let split = self.candidates.len() * <Kept<T> as Record<T>>::LEN;
        let Some((kept, seen)) = self.glanced.split_at_mut_checked(split) else { return false };
        let column = span(self.column, 0, n);
        copy(seen, column);
        let candidates = span_mut(self.candidates, 0, n);
        for ((candidate, kept), &s) in candidates.iter_mut().zip(records_mut(kept)).zip(column) {
            let Candidate { sign, diagonal, shrunk, seen, .. } = *candidate;
            *kept = Kept { sign, diagonal, shrunk, seen };
            if family == Family::Slab {
                candidate.move_by(s, &flip);
            } else {
                candidate.seen -= s * flip.value;
            }
        }
        let size = if flip.inverse < T::ZERO { -flip.inverse } else { flip.inverse };
        self.glance = match family {
            Family::Slab => {
                Some(Glance { i, inverse: flip.inverse, size, joint: self.joint, count: self.count })
            }
            // S does not change.
            Family::Binary | Family::Maximal => {
                Some(Glance { i: usize::MAX, inverse: T::ZERO, size, joint: self.joint, count: self.count })
            }
        };
        if let Some(own) = candidates.get_mut(i) {
            self.count = if own.sign > T::ZERO { self.count + 1 } else { self.count.saturating_sub(1) };
            match family {
                Family::Slab => *own = own.swept(size),
                Family::Binary | Family::Maximal => {
                    own.seen -= own.diagonal * flip.value;
                    own.sign = -own.sign;
                }
            }
        }
        self.joint.add(&flip);
        true
    }

    /// Ends a glance.
    pub fn look_back(&mut self) {
        let Some(glance) = self.glance.take() else { return };
        let n = self.latents.len();
        for (candidate, kept) in span_mut(self.candidates, 0, n).iter_mut().zip(records_mut(self.glanced)) {
            let &mut Kept { sign, diagonal, shrunk, seen } = kept;
            (candidate.sign, candidate.diagonal) = (sign, diagonal);
            (candidate.shrunk, candidate.seen) = (shrunk, seen);
        }
        (self.joint, self.count) = (glance.joint, glance.count);
    }

    /// The sweep on candidate `i`, whose step is known.
    #[inline(never)]
    fn sweep(&mut self, i: usize, flip: &Flip<T>) {
        self.gather(i);
        let n = self.latents.len();
        Count::Sweeps.add(1);
        Count::SweepRows.add(n);
        Count::SweepMacs.add(n * n / 2);
        let (column, candidates) = (span(self.column, 0, n), span_mut(self.candidates, 0, n));
        let Some(&own) = candidates.get(i) else { return };
        let turns_on = own.sign > T::ZERO;
        let (inverse, size) = (flip.inverse, if turns_on { flip.inverse } else { -flip.inverse });
        let mut rows = &mut *self.pairs;
        for (j, (other, &s)) in candidates.iter_mut().zip(column).enumerate() {
            let Some((row, rest)) = rows.split_at_mut_checked(j) else { return };
            rows = rest;
            let step = s * inverse;
            if j == i {
                for (entry, &s) in row.iter_mut().zip(column) {
                    *entry = s * size;
                }
                continue;
            }
            for (entry, &s) in row.iter_mut().zip(column) {
                *entry -= step * s;
            }
            // Column i of the row, which the loop above has left as it was.
            if j > i {
                set(row, i, s * size);
            }
            other.move_by(s, flip);
        }
        set(candidates, i, own.swept(size));
    }

    /// The same without a slab: the residual of all candidates moves.
    fn shift(&mut self, i: usize, value: T) {
        Count::Shifted.add(self.len());
        self.gather(i);
        let column = span(self.column, 0, self.latents.len());
        for (candidate, &g) in self.candidates.iter_mut().zip(column) {
            candidate.seen -= g * value;
        }
        if let Some(candidate) = self.candidates.get_mut(i) {
            candidate.seen -= candidate.diagonal * value;
            candidate.sign = -candidate.sign;
        }
    }

    /// Makes t exact for a loud sample: with x0 the coefficients as they are, rounded, b0 the projection of y - W x0 and
    /// v = b0 + K (mu - x0) of the latents that are on, kappa = x0 + Lambda v, and r = b0 - S_:A v of those that are off.
    /// The log joint is then that of this state, computed from the residual.
    pub fn refine(&mut self) {
        self.joint = match self.family() {
            Family::Slab | Family::Binary => self.refine_seen(),
            Family::Maximal => self.maximal_joint(),
        };
    }

    /// The same but for the log joint, which flips have found from that of a neighbour: what states share, a large residual that
    /// none of them explains, does not show in it. Returns the one from the residual.
    #[inline(never)]
    pub fn refine_seen(&mut self) -> Joint<T> {
        let n = self.len();
        Count::Refined.add(1);
        Count::RefinedMacs.add(n * self.count);
        let energy = self.leave();
        project_some(self.model, self.latents, self.weighted, span_mut(self.column, 0, n));
        let (has_slab, mut exponent) = (self.family() == Family::Slab, T::ZERO);
        // v where latents are on, in `weight`; b0 in `seen` of those that are off.
        for (candidate, &b) in span_mut(self.candidates, 0, n).iter_mut().zip(&*self.column) {
            if candidate.sign < T::ZERO {
                exponent += candidate.logit;
            }
            if candidate.sign > T::ZERO || !has_slab {
                candidate.seen = b;
                continue;
            }
            let away = (candidate.mean + candidate.seen) - candidate.mean;
            candidate.weight = b - candidate.precision * away;
            candidate.seen = away;
            exponent -= T::HALF * candidate.precision * away * away;
        }
        let mut joint = Joint { base: -(T::HALF * energy), exponent, ..self.joint };
        if !has_slab {
            return joint;
        }
        for k in 0..n {
            let Some(&Candidate { sign, weight, diagonal, .. }) = self.candidates.get(k) else { break };
            if sign > T::ZERO {
                continue;
            }
            self.gather(k);
            let mut moved = diagonal * weight;
            for (candidate, &s) in self.candidates.iter_mut().zip(span(self.column, 0, n)) {
                candidate.seen -= s * weight;
                if candidate.sign < T::ZERO {
                    moved -= s * candidate.weight;
                }
            }
            joint.exponent += T::HALF * moved * weight;
            if let Some(candidate) = self.candidates.get_mut(k) {
                candidate.seen += diagonal * weight;
            }
        }
        joint
    }

    /// Sigma^-1 (y - W x) in `weighted`, the difference of large numbers in double words; returns the energy.
    pub fn leave(&mut self) -> T {
        Count::DoubleWords.add(self.sample.len() * self.count);
        Count::LeftSteps.add(self.sample.len() * self.len());
        for d in 0..self.sample.len() {
            let mut rest = Accurate::new(at(self.sample, d));
            for i in 0..self.len() {
                if self.is_on(i) {
                    rest.subtract_product(self.model.entry(d, self.latent(i)), self.coefficient(i));
                }
            }
            set(self.weighted, d, rest.value());
        }
        weigh_in_place(&self.model.noise, self.weighted)
    }

    /// The same in single words, where it only guides a search.
    pub fn leave_roughly(&mut self) {
        copy(self.weighted, self.sample);
        for i in 0..self.len() {
            if !self.is_on(i) {
                continue;
            }
            Count::Columns.add(self.sample.len());
            let x = self.coefficient(i);
            with_column!(self.model, self.latent(i), |column| {
                for (r, w) in self.weighted.iter_mut().zip(column) {
                    *r -= w * x;
                }
            });
        }
        weigh_in_place(&self.model.noise, self.weighted);
    }

    /// The two largest causes of every dimension.
    fn maximise(&mut self) {
        Count::Filled.add(self.maxima.len());
        self.maxima.fill(T::ZERO);
        for i in 0..self.len() {
            if !self.is_on(i) {
                continue;
            }
            Count::Maxima.add(self.sample.len());
            let Some((largest, next)) = self.maxima.split_at_mut_checked(self.sample.len()) else { return };
            with_column!(
                self.model,
                usize::from(self.latents.get(i).copied().unwrap_or_default()),
                |column| {
                    for ((largest, next), w) in largest.iter_mut().zip(next).zip(column) {
                        if w > *largest {
                            *next = *largest;
                            *largest = w;
                        } else {
                            *next = next.max(w);
                        }
                    }
                }
            );
        }
    }

    fn flip_of_maximal(&self, i: usize) -> Flip<T> {
        let (largest, next) = self.maxima.split_at_checked(self.sample.len()).unwrap_or_default();
        let (logit, is_on) = (self.candidates.get(i).map_or(T::ZERO, |c| c.logit), self.is_on(i));
        let causes = self.sample.iter().zip(largest).zip(next);
        let mut sum = T::ZERO;
        let shared = match self.model.noise {
            Noise::Shared(precision) => precision,
            Noise::Diagonal(_) | Noise::Full(_) => T::ONE,
        };
        let precisions = match self.model.noise {
            Noise::Diagonal(precisions) => precisions,
            Noise::Shared(_) | Noise::Full(_) => &[],
        };
        with_column!(self.model, self.latent(i), |column| {
            for (d, (((&y, &largest), &next), w)) in causes.zip(column).enumerate() {
                let to = match is_on {
                    true => {
                        if w >= largest {
                            next
                        } else {
                            largest
                        }
                    }
                    false => largest.max(w),
                };
                let gained = mca::gain(y, largest, to);
                sum += if precisions.is_empty() { gained } else { gained * at(precisions, d) };
            }
        });
        let exponent = sum * shared + if is_on { -logit } else { logit };
        Flip { exponent, ratio: T::ONE, value: if is_on { -T::ONE } else { T::ONE }, inverse: T::ONE }
    }

    /// The log joint from the residual itself, for maximal causes.
    fn maximal_joint(&self) -> Joint<T> {
        let mut sum = T::ZERO;
        for (d, (&y, &m)) in self.sample.iter().zip(self.maxima.iter()).enumerate() {
            let miss = y - m;
            sum += miss * miss * self.model.precision(d);
        }
        let mut exponent = T::ZERO;
        for candidate in span(self.candidates, 0, self.len()) {
            if candidate.sign < T::ZERO {
                exponent += candidate.logit;
            }
        }
        Joint { exponent, ..Joint::new(-(T::HALF * sum)) }
    }

    /// The memory of level `level`: candidates, pairs, maxima.
    #[allow(clippy::type_complexity)]
    fn level<'l>(
        &self,
        levels: &'l mut [T],
        level: usize,
    ) -> Option<(&'l mut [Kept<T>], &'l mut [T], &'l mut [T])> {
        let kept_len = self.candidates.len() * <Kept<T> as Record<T>>::LEN;
        let len = kept_len + self.pairs.len() + self.maxima.len();
        Count::Copied.add(4 * self.len() + row_start(self.len()) + self.maxima.len());
        let (kept, rest) = levels.get_mut(level * len..(level + 1) * len)?.split_at_mut_checked(kept_len)?;
        let (pairs, maxima) = rest.split_at_mut_checked(self.pairs.len())?;
        Some((records_mut(kept), pairs, maxima))
    }

    /// Copies the state, but for its joint and count, to come back to it.
    pub fn keep(&self, levels: &mut [T], level: usize) {
        let Some((kept, pairs, maxima)) = self.level(levels, level) else { return };
        for (kept, candidate) in kept.iter_mut().zip(span(self.candidates, 0, self.len())) {
            let &Candidate { sign, diagonal, shrunk, seen, .. } = candidate;
            *kept = Kept { sign, diagonal, shrunk, seen };
        }
        copy(pairs, span(self.pairs, 0, row_start(self.len())));
        copy(maxima, self.maxima);
    }

    /// Comes back to a state.
    pub fn restore(&mut self, levels: &mut [T], level: usize) {
        let n = self.len();
        let Some((kept, pairs, maxima)) = self.level(levels, level) else { return };
        for (candidate, kept) in span_mut(self.candidates, 0, n).iter_mut().zip(kept) {
            let &mut Kept { sign, diagonal, shrunk, seen } = kept;
            (candidate.sign, candidate.diagonal) = (sign, diagonal);
            (candidate.shrunk, candidate.seen) = (shrunk, seen);
        }
        copy(span_mut(self.pairs, 0, row_start(n)), pairs);
        copy(self.maxima, maxima);
    }

    /// Whether another reference may make results more exact: maximal causes form every residual anyhow.
    pub fn may_refine(&self) -> bool {
        self.is_loud && self.family() != Family::Maximal
    }

    /// Goes to the state that has these latents on, of candidates that are all off or on; refines t there.
    pub fn turn_to(&mut self, latents: &[u16]) {
        for turns_on in [true, false] {
            for i in 0..self.len() {
                let is_wanted = latents.contains(&(self.latent(i) as u16));
                if is_wanted == turns_on && self.is_on(i) != is_wanted {
                    self.flip(i);
                }
            }
        }
        self.refine();
    }

    /// Whether exactly these latents are the reference's.
    pub fn is_reference(&self, latents: &[u16]) -> bool {
        span(self.candidates, 0, self.len())
            .iter()
            .zip(&*self.latents)
            .all(|(candidate, latent)| (candidate.reference != T::ZERO) == latents.contains(latent))
    }

    /// Makes the present state the reference that sums are about, and clears them.
    pub fn mark(&mut self) {
        let (n, has_slab, zero) = (self.len(), self.family() == Family::Slab, T::ZERO);
        for candidate in span_mut(self.candidates, 0, n) {
            candidate.reference = match (candidate.sign < zero, has_slab) {
                (true, true) => candidate.mean + candidate.seen,
                (true, false) => T::ONE,
                (false, _) => zero,
            };
            (candidate.on, candidate.off, candidate.first, candidate.square) = (zero, zero, zero, zero);
        }
    }

    /// [`Tableau::climb`], and of a loud sample again with exact numbers.
    pub fn settle(&mut self, max_active: usize) {
        self.climb(max_active);
        if self.is_loud {
            self.settle_loud(max_active);
        }
    }

    /// Climbs with exact numbers, at a state that was climbed to with others.
    pub fn settle_loud(&mut self, max_active: usize) {
        for _ in 0..PASSES {
            self.refine();
            let refined = self.joint.exponent;
            self.climb(max_active);
            if self.joint.exponent == refined {
                return;
            }
        }
    }

    /// Flips whatever gains most until nothing does, with at most `max_active` on; leaves all flips evaluated.
    pub fn climb(&mut self, max_active: usize) {
        // Every step gains more than rounding can make up; the bound is for numbers that are no numbers.
        for _ in 0..4 * MAX_SELECTED {
            self.evaluate();
            let (mut best, mut most) = (None, T::from_f64(MARGIN));
            let room = self.count < max_active;
            for (i, candidate) in span(self.candidates, 0, self.len()).iter().enumerate() {
                if candidate.gain > most && (room || candidate.sign < T::ZERO) {
                    (best, most) = (Some(i), candidate.gain);
                }
            }
            match best {
                Some(best) => self.flip(best),
                None => {
                    let Some((off, on)) = self.best_swap() else { return };
                    self.flip(on);
                    self.flip(off);
                }
            }
        }
    }

    /// The latent to turn off and the one to turn on that together gain most, if any do: where no single flip gains, one latent may
    /// stand in for another. Only where coefficients cannot share what there is to explain: without a slab.
    fn best_swap(&mut self) -> Option<(usize, usize)> {
        if self.family() != Family::Binary {
            return None;
        }
        let (n, mut best, mut most) = (self.len(), None, T::from_f64(MARGIN));
        for i in 0..n {
            let Some(&own) = self.candidates.get(i) else { break };
            if own.sign > T::ZERO {
                continue;
            }
            Count::Swaps.add(n);
            self.gather(i);
            let candidates = span(self.candidates, 0, n).iter().zip(&*self.column);
            for (j, (other, &g)) in candidates.enumerate() {
                // With i off, j sees G_ij more.
                let gain = own.gain + other.gain + g;
                if other.sign > T::ZERO && gain > most {
                    (best, most) = (Some((i, j)), gain);
                }
            }
        }
        best
    }
}

impl<T: Real> Candidate<T> {
    /// Moves with the flip of another candidate, whose entry of S with this one is `s`.
    #[inline(always)]
    fn move_by(&mut self, s: T, flip: &Flip<T>) {
        let change = s * s * flip.inverse;
        self.seen -= s * flip.value;
        // Neither vanishes, however nearly parallel latents are: beyond rounding errors nothing is known.
        let least = if self.sign < T::ZERO { self.least } else { self.rest };
        self.diagonal = least.max(self.diagonal - self.sign * change);
        self.shrunk = T::ZERO.max(self.shrunk - change);
    }

    /// After its own flip; `size` is 1 / |d|.
    #[inline(always)]
    fn swept(self, size: T) -> Self {
        let Self { sign, mean, precision, diagonal, shrunk, seen, .. } = self;
        if sign > T::ZERO {
            return Self {
                sign: -sign,
                diagonal: size,
                shrunk: diagonal * size / precision,
                seen: (seen - diagonal * mean) * size,
                ..self
            };
        }
        let left = self.rest.max(precision * shrunk * size);
        Self { sign: -sign, diagonal: left, shrunk: T::ZERO, seen: seen * size + left * mean, ..self }
    }
}

/// Times a loud sample is refined before its states are looked at, at most.
pub(crate) const PASSES: usize = 3;

/// Nats that a flip must gain, roughly computed as they are, for a search to take it.
pub(crate) const MARGIN: f64 = 0.03;

#[inline(always)]
fn prior<T: Real>(candidate: &Candidate<T>) -> Prior<T> {
    let &Candidate { logit, mean, precision, .. } = candidate;
    Prior { logit, mean, precision }
}

#[inline(always)]
fn flip_of<T: Real>(family: Family, candidate: &Candidate<T>) -> Flip<T> {
    let &Candidate { diagonal, shrunk, seen, sign, .. } = candidate;
    match (family, sign > T::ZERO) {
        (Family::Slab, true) => gsc::turn_on(prior(candidate), diagonal, seen),
        (Family::Slab, false) => gsc::turn_off(prior(candidate), diagonal, shrunk, seen),
        _ => binary::flip(candidate.logit, diagonal, seen, sign),
    }
}

#[inline(always)]
fn take<T: Real>(candidate: &mut Candidate<T>, flip: &Flip<T>) {
    let &Flip { exponent, ratio, value, inverse } = flip;
    candidate.exponent = exponent;
    candidate.ratio = ratio;
    candidate.value = value;
    candidate.inverse = inverse;
    candidate.gain = exponent + T::HALF * ratio.ln_rough();
}
