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

mod climb;
mod joint;
mod levels;
mod maximal;
mod refine;

pub(crate) use climb::MARGIN;
pub(crate) use joint::Joint;
pub(crate) use refine::{PASSES, is_loud};

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::counts::Count;
use crate::kinds::gsc::Prior;
use crate::kinds::{Family, Flip, binary, gsc};
use crate::memory::Candidate;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut, triangle};
use crate::project::gram_entry;
use heapless::Vec;

/// The latents of a state.
pub(crate) type Path = Vec<u16, MAX_ACTIVE>;

/// Some of the latents.
pub(crate) type Latents = Vec<u16, MAX_SELECTED>;

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

    /// The candidates it has, all off, in a sample of this energy; `projection` is b.
    pub fn begin(&mut self, projection: &[T], energy: T) {
        let latents = self.latents.clone();
        self.clear(-(T::HALF * energy));
        for &latent in &latents {
            self.append(latent, at(projection, usize::from(latent)));
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
        let (model, family) = (self.model, self.family());
        Count::Appended.add(1);
        let Some(candidate) = self.candidates.get_mut(i) else { return };
        // Its sums begin with [`Tableau::mark`].
        candidate.logit = at(model.prior_logit, h);
        candidate.diagonal = at(model.gram_diagonal, h);
        candidate.seen = seen;
        candidate.sign = T::ONE;
        if family == Family::Slab {
            candidate.mean = at(model.slab_mean, h);
            candidate.precision = at(model.slab_precision, h);
            candidate.rest = candidate.diagonal * T::ROUNDING;
            candidate.least = T::ONE / (candidate.diagonal + candidate.precision);
            candidate.shrunk = T::ZERO;
        }
        match family {
            Family::Slab | Family::Binary => self.append_row(i, h),
            Family::Maximal => {}
        }
    }

    /// All latents become candidates, off; `projection` is b.
    pub fn append_all(&mut self, projection: &[T]) {
        for (h, &b) in (0u16..).zip(projection) {
            self.append(h, b);
        }
    }

    fn append_row(&mut self, i: usize, h: usize) {
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
        let mut taken = T::ZERO;
        for ((&s, &g), other) in row.iter().zip(column.iter()).zip(self.candidates.iter()) {
            if other.sign < T::ZERO {
                taken += s * g;
            }
        }
        if let Some(candidate) = self.candidates.get_mut(i) {
            candidate.diagonal = candidate.rest.max(candidate.diagonal - taken);
        }
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

    /// S_:i with a zero on its diagonal, in `column`.
    #[inline(always)]
    pub fn gather(&mut self, i: usize) {
        let n = self.latents.len();
        Count::Gathered.add(n);
        let (before, after) = self.pairs.split_at_checked(row_start(i + 1)).unwrap_or_default();
        let Some((head, tail)) = span_mut(self.column, 0, n).split_at_mut_checked(i + 1) else { return };
        copy(head, span(before, row_start(i), i));
        set(head, i, T::ZERO);
        let mut place = i;
        for (step, entry) in (i + 1..).zip(tail) {
            *entry = at(after, place);
            place += step;
        }
    }

    /// S_ij, i not j.
    pub fn pair(&self, i: usize, j: usize) -> T {
        pair(self.pairs, i, j)
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
        let Some(own) = candidates.get_mut(i) else { return };
        let (inverse, size) = (flip.inverse, own.sign * flip.inverse);
        own.turn(size);
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

    /// Its own flip; `size` is 1 / |d|.
    #[inline(always)]
    fn turn(&mut self, size: T) {
        if self.sign > T::ZERO {
            self.seen = (self.seen - self.diagonal * self.mean) * size;
            self.shrunk = self.diagonal * size / self.precision;
            self.diagonal = size;
        } else {
            self.diagonal = self.rest.max(self.precision * self.shrunk * size);
            self.seen = self.seen * size + self.diagonal * self.mean;
            self.shrunk = T::ZERO;
        }
        self.sign = -self.sign;
    }
}

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
