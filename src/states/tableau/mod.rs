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
//! every one-flip neighbour of a state costs a few operations ([`Candidate::flip`]), all neighbours of such a neighbour cost n
//! more ([`Tableau::glance`]), and a flip n^2 multiply-adds ([`Tableau::flip`]). Every log joint is a small number relative to that
//! of its neighbour, so `f32` keeps its digits.
//!
//! S is symmetric and stored as a square: twice the multiply-adds of a triangle, but every row is contiguous. On average that takes as
//! many instructions, fewer where many latents are on, and no column has to be gathered.
//!
//! **Digits.** The slab's own part is kept apart: off its diagonal S is as above, on it a [`Candidate`] has G's Schur complement g
//! (S_ii = g + K) of a latent that is off, and of one that is on both Lambda (S_ii = -Lambda) and 1/K - Lambda. None of them
//! is ever negative, however rounding goes, and neither narrow nor wide slabs lose digits. Likewise t is kept without K mu, or less
//! mu. Where latents that are on explain all of another one (D of them, or a parallel column), its g is nothing but rounding errors;
//! if K is no more than these it stays off ([`Tableau::may_flip`]). Loud samples need one refinement ([`Tableau::refine`]): the
//! residual y - W kappa, in double-word arithmetic where the sample is very loud, projected again.
//!
//! **Other kinds.** Without a slab S stays G, and t is r, which a flip moves by a column of G. Maximal causes have the two
//! largest causes of every dimension instead: D operations a neighbour.

mod climb;
mod joint;
mod levels;
mod maximal;
mod refine;
mod view;

pub(crate) use climb::MARGIN;
pub(crate) use joint::Joint;
pub(crate) use refine::{PASSES, is_loud, needs_words};

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::counts::Count;
use crate::kinds::{Family, Flip};
use crate::memory::Candidate;
use crate::model::Model;
use crate::numeric::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::project::gram_row;
use heapless::Vec;
use view::Glance;

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
    /// S off its diagonal, which is with the candidates and zero here: rows with room for all candidates that there may be.
    pub square: &'x mut [T],
    /// Scratch. (n)
    pub column: &'x mut [T],
    /// The largest causes, then the next largest. (2 D, or empty)
    pub maxima: &'x mut [T],
    pub joint: Joint<T>,
    /// Whether the sample is so loud that t loses digits when the state changes.
    pub is_loud: bool,
    /// Whether it is so loud that its residuals need double words.
    pub needs_words: bool,
    /// Candidates that are on, one bit each, and how many.
    pub on: u64,
    pub count: usize,
    /// Where it is, if that is only looked at: see [`Tableau::glance`].
    pub glance: Option<Glance<T>>,
}

/// Entry (i, j) of a square with rows of that length.
#[inline(always)]
pub(crate) fn pair<T: Real>(square: &[T], row_len: usize, i: usize, j: usize) -> T {
    at(square, i * row_len + j)
}

impl<T: Real> Tableau<'_, T> {
    /// Without candidates, all latents off; `base` is the log joint of that state.
    pub fn clear(&mut self, base: T) {
        self.latents.clear();
        self.joint = Joint::new(base);
        (self.on, self.count) = (0, 0);
        if self.family() == Family::Maximal {
            self.maxima.fill(T::ZERO);
        }
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

    #[inline(always)]
    pub fn is_on(&self, i: usize) -> bool {
        self.on >> (i % 64) & 1 != 0
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
        let (i, h, family) = (self.len(), usize::from(latent), self.family());
        if !self.admit(i, latent, seen) || family == Family::Maximal {
            return;
        }
        let row_len = self.candidates.len();
        let Some((before, rest)) = self.square.split_at_mut_checked(i * row_len) else { return };
        let row = span_mut(rest, 0, i);
        gram_row(self.model, h, self.latents, row);
        if self.count != 0 && family == Family::Slab {
            Count::RowMacs.add(i * self.count);
            let Some((known, own)) = self.candidates.split_at_mut_checked(i) else { return };
            let column = span_mut(self.column, 0, i);
            for ((candidate, entry), g) in known.iter().zip(&mut *row).zip(&mut *column) {
                *g = *entry;
                if candidate.sign < T::ZERO {
                    *entry *= candidate.diagonal;
                }
            }
            for k in ones(self.on) {
                let g = at(column, k);
                for (entry, &s) in row.iter_mut().zip(span(before, k * row_len, i)) {
                    *entry -= g * s;
                }
            }
            let mut taken = T::ZERO;
            for ((candidate, &entry), &g) in known.iter().zip(&*row).zip(&*column) {
                if candidate.sign < T::ZERO {
                    taken += entry * g;
                }
            }
            if let Some(candidate) = own.first_mut() {
                candidate.diagonal = candidate.rest.max(candidate.diagonal - taken);
            }
        }
        reflect(before, row, row_len);
        set(rest, i, T::ZERO);
    }

    /// The part of that which is not a row of S: the prior of candidate `i`, and what all off leave of it.
    #[inline(always)]
    fn admit(&mut self, i: usize, latent: u16, seen: T) -> bool {
        let (model, h) = (self.model, usize::from(latent));
        let Some(candidate) = self.candidates.get_mut(i).filter(|_| self.latents.push(latent).is_ok()) else {
            return false;
        };
        candidate.begin(seen, at(model.gram_diagonal, h), at(model.prior_logit, h));
        if model.shape.kind.family() == Family::Slab {
            candidate.begin_slab(at(model.slab_mean, h), at(model.slab_precision, h));
        }
        true
    }

    /// All latents become candidates, off; `projection` is b. With G stored, S is a copy of it.
    pub fn append_all(&mut self, projection: &[T]) {
        let Some(gram) = self.model.gram.filter(|_| self.family() != Family::Maximal) else {
            return (0u16..).zip(projection).for_each(|(h, &b)| self.append(h, b));
        };
        let n = projection.len();
        Count::GramRead.add(n * n / 2);
        let mut from = gram;
        for i in 0..n {
            let Some((whole, later)) = from.split_at_checked(i + 1) else { return };
            let Some((before, rest)) = self.square.split_at_mut_checked(i * self.candidates.len()) else {
                return;
            };
            let row = span_mut(rest, 0, i);
            copy(row, whole);
            reflect(before, row, self.candidates.len());
            set(rest, i, T::ZERO);
            from = later;
        }
        let model = self.model;
        let candidates = self.candidates.iter_mut().zip(projection);
        let mut slabs = model.slab_mean.iter().zip(model.slab_precision);
        for (h, ((candidate, &b), (&g, &logit))) in
            (0..).zip(candidates.zip(model.gram_diagonal.iter().zip(model.prior_logit)))
        {
            candidate.begin(b, g, logit);
            if let Some((&mean, &precision)) = slabs.next() {
                candidate.begin_slab(mean, precision);
            }
            let _ = self.latents.push(h); // no more than may be selected
        }
    }

    /// Turns candidate `i` on or off.
    pub fn flip(&mut self, i: usize) {
        let flip = self.flip_at(i);
        self.joint.add(&flip);
        self.toggle(i);
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

    /// Notes that candidate `i` is flipped.
    fn toggle(&mut self, i: usize) {
        self.on ^= 1 << (i % 64);
        self.count = if self.is_on(i) { self.count + 1 } else { self.count.saturating_sub(1) };
    }

    /// Entries of the square that there are candidates for.
    fn used(&self) -> usize {
        self.len() * self.candidates.len()
    }

    /// S_i:, with a zero on its diagonal.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[T] {
        span(self.square, i * self.candidates.len(), self.latents.len())
    }

    /// The sweep on candidate `i`, whose flip is known.
    #[inline(never)]
    fn sweep(&mut self, i: usize, flip: &Flip<T>) {
        let (n, row_len) = (self.latents.len(), self.candidates.len());
        Count::Sweeps.add(1);
        Count::SweepRows.add(n);
        Count::SweepMacs.add(n * n);
        let column = span_mut(self.column, 0, n);
        copy(column, span(self.square, i * row_len, n));
        let Some(candidates) = self.candidates.get_mut(..n) else { return };
        let Some(own) = candidates.get_mut(i) else { return };
        let (inverse, size) = (flip.inverse, own.sign * flip.inverse);
        own.put(own.turned(size));
        let mut rest = &mut *self.square;
        for (j, (other, &s)) in candidates.iter_mut().zip(&*column).enumerate() {
            let Some((row, rows)) = rest.split_at_mut_checked(row_len) else { return };
            rest = rows;
            if j == i {
                row.iter_mut().zip(&*column).for_each(|(entry, &s)| *entry = s * size);
                continue;
            }
            let step = s * inverse;
            row.iter_mut().zip(&*column).for_each(|(entry, &s)| *entry -= step * s);
            set(row, j, T::ZERO);
            set(row, i, s * size);
            other.put(other.moved(s, flip));
        }
    }

    /// The same without a slab: the residual of all candidates moves.
    fn shift(&mut self, i: usize, value: T) {
        Count::Shifted.add(self.len());
        let column = span(self.square, i * self.candidates.len(), self.latents.len());
        for (j, (candidate, &g)) in self.candidates.iter_mut().zip(column).enumerate() {
            candidate.put(candidate.shifted(g, value, i == j));
        }
    }

    /// Makes the present state the reference that sums are about, where these have not begun.
    pub fn mark(&mut self) {
        for i in ones(self.on) {
            let coefficient = self.coefficient(i);
            if let Some(candidate) = self.candidates.get_mut(i) {
                candidate.reference = coefficient;
            }
        }
    }

    /// The same again: clears all sums.
    pub fn mark_anew(&mut self) {
        for candidate in span_mut(self.candidates, 0, self.latents.len()) {
            candidate.clear();
        }
        self.mark();
    }
}

/// Writes a row of a symmetric matrix into the rows before it, as their last entry.
#[inline(always)]
fn reflect<T: Real>(before: &mut [T], row: &[T], row_len: usize) {
    let mut place = row.len();
    for &entry in row {
        set(before, place, entry);
        place += row_len;
    }
}

/// The bits that are set, lowest first.
#[inline(always)]
pub(crate) fn ones(mask: u64) -> impl Iterator<Item = usize> {
    // In words of 32 bits, which is what small processors have.
    let (mut rest, mut high, mut base) = (mask as u32, (mask >> 32) as u32, 0);
    core::iter::from_fn(move || {
        if rest == 0 {
            (rest, high, base) = (high, 0, 32);
            if rest == 0 {
                return None;
            }
        }
        let i = base + rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        Some(i)
    })
}
