//! What each flip would do: in the present state, or in one beside it that is only looked at.
//!
//! A state that differs in candidate i needs no sweep to be expanded. Its flips follow from the diagonal of S and from t, which
//! take one row of S, n operations instead of n^2:
//!
//! ```text
//! S'_jj = S_jj - s_j^2 / d,     t'_j = t_j - s_j t_i / d,     S'_jk = S_jk - s_j s_k / d where an entry is asked for
//! ```

use super::{Joint, Tableau, ones};
use crate::counts::Count;
use crate::kinds::gsc::Prior;
use crate::kinds::{Family, Flip, binary, gsc};
use crate::memory::{Candidate, Kept};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set, span};

/// A flip that is looked at but not made.
#[derive(Clone, Copy)]
pub(crate) struct Glance<T> {
    /// Its candidate.
    i: usize,
    flip: Flip<T>,
    /// 1 / |S_ii|.
    size: T,
    /// The log joint of the state that the tableau has.
    joint: Joint<T>,
}

impl<T: Real> Tableau<'_, T> {
    /// Looks at the state that differs in candidate `i`, until [`Tableau::look_back`].
    pub fn glance(&mut self, i: usize) {
        let flip = self.flip_at(i);
        let size = if self.is_on(i) { -flip.inverse } else { flip.inverse };
        self.glance = Some(Glance { i, flip, size, joint: self.joint });
        self.joint.add(&flip);
        self.toggle(i);
    }

    /// The candidate whose flip is looked at, or any.
    #[inline(always)]
    pub fn flipped(&self) -> usize {
        self.glance.as_ref().map_or(0, |glance| glance.i)
    }

    /// Leaves a state that is only looked at.
    #[inline(always)]
    pub fn look_back(&mut self) {
        if let Some(Glance { i, joint, .. }) = self.glance.take() {
            self.toggle(i);
            self.joint = joint;
        }
    }

    /// What the flips that are counted push candidate `j` by, which is on in the state that is looked at: sum_k S_jk e_k and
    /// sum_k S_jk^2 C_k over all others.
    #[inline(always)]
    pub fn pushed(&self, j: usize) -> (T, T) {
        let (mut moved, mut spread) = (T::ZERO, T::ZERO);
        self.each_pair(j, |_, candidate, s| {
            moved += s * candidate.push;
            spread += s * s * candidate.spread;
        });
        (moved, spread)
    }

    /// Visits all candidates k, in order, with S_jk of the state that is looked at: S_jk / |d| where j or k is the candidate
    /// that is flipped, S_jk - s_j s_k / d elsewhere, zero for k = j.
    #[inline(always)]
    pub fn each_pair(&self, j: usize, mut visit: impl FnMut(usize, &Candidate<T>, T)) {
        let candidates = span(self.candidates, 0, self.latents.len());
        let entries = candidates.iter().zip(self.row(j)).enumerate();
        match &self.glance {
            Some(Glance { i, flip, size, .. }) if *i != j => {
                let flipped = self.row(*i);
                let step = at(flipped, j) * flip.inverse;
                for ((k, (candidate, &entry)), &s) in entries.zip(flipped) {
                    let seen = match k {
                        _ if k == *i => entry * *size,
                        _ if k == j => continue,
                        _ => entry - step * s,
                    };
                    visit(k, candidate, seen);
                }
            }
            glance => {
                let size = glance.as_ref().map_or(T::ONE, |glance| glance.size);
                for (k, (candidate, &entry)) in entries {
                    visit(k, candidate, entry * size);
                }
            }
        }
    }

    /// S_:i of the state that is looked at, with a zero on its diagonal, in `column`.
    pub fn gather_seen(&mut self, i: usize) {
        let column = core::mem::take(&mut self.column);
        set(column, i, T::ZERO);
        self.each_pair(i, |k, _, s| set(column, k, s));
        self.column = column;
    }

    /// Evaluates the flips of maximal causes, whose work depends on D; those of other kinds follow from where candidates are.
    pub fn evaluate(&mut self) {
        if self.family() != Family::Maximal {
            return;
        }
        self.count_flips(self.len());
        for i in 0..self.len() {
            let exponent = self.flip_of_maximal(i).exponent;
            if let Some(candidate) = self.candidates.get_mut(i) {
                candidate.exponent = exponent;
            }
        }
    }

    #[inline(always)]
    pub(super) fn count_flips(&self, flips: usize) {
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

    /// Whether the state that the flip of candidate `i` leads to, from the one that is looked at, has digits: see [`gsc::is_resolved`].
    #[inline(always)]
    pub fn may_flip(&self, i: usize) -> bool {
        !self.model.may_lose_digits || self.has_pivot(i)
    }

    #[cold]
    #[inline(never)]
    fn has_pivot(&self, i: usize) -> bool {
        let Some(candidate) = self.candidates.get(i) else { return false };
        let mut left = candidate.diagonal;
        if let Some(Glance { i: flipped, flip, .. }) = &self.glance {
            let s = at(self.row(*flipped), i);
            left -= s * s * flip.inverse;
        }
        // As many latents as there are dimensions leave nothing. What is on may go off, also where that is only looked at.
        let left = if self.count < self.sample.len() { left } else { T::ZERO };
        candidate.sign < T::ZERO || gsc::is_resolved(left + candidate.precision, candidate.rest)
    }

    /// Those of some flips, one bit each, that lead to states with digits.
    pub fn with_digits(&self, flips: u64) -> u64 {
        if !self.model.may_lose_digits {
            return flips;
        }
        let lost = ones(flips).filter(|&i| i < self.len() && !self.has_pivot(i));
        lost.fold(flips, |flips, i| flips & !(1 << (i % 64)))
    }

    /// The flip of one candidate in the present state.
    pub(super) fn flip_at(&self, i: usize) -> Flip<T> {
        self.count_flips(1);
        match (self.family(), self.candidates.get(i)) {
            (Family::Maximal, _) => self.flip_of_maximal(i),
            (family, Some(candidate)) => candidate.flip(candidate.place(), family),
            _ => Flip::NONE,
        }
    }

    /// The change of the log joint by the flip of a candidate in the state that is looked at.
    pub fn change(&self, i: usize) -> T {
        let Some(candidate) = self.candidates.get(i) else { return T::ZERO };
        let (family, flipped) = (self.family(), self.row(self.flipped()));
        let flip = candidate.flip(candidate.seen_from(i, flipped, self.glance.as_ref(), family), family);
        flip.exponent + T::HALF * flip.ratio.ln()
    }
}

impl<T: Real> Candidate<T> {
    /// Off, with all others off: r, G_hh and l; without sums.
    #[inline(always)]
    pub(super) fn begin(&mut self, seen: T, diagonal: T, logit: T) {
        Count::Appended.add(1);
        (self.logit, self.diagonal, self.seen, self.sign) = (logit, diagonal, seen, T::ONE);
        self.clear();
    }

    /// Resets its sums, and their reference to zero.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.apart, self.reference, self.first, self.square) = (T::ZERO, T::ZERO, T::ZERO, T::ZERO);
    }

    /// The same of its slab: mu and K.
    #[inline(always)]
    pub(super) fn begin_slab(&mut self, mean: T, precision: T) {
        (self.mean, self.precision, self.rest) = (mean, precision, self.diagonal * T::ROUNDING);
        (self.least, self.shrunk) = (T::ONE / (self.diagonal + precision), T::ZERO);
    }

    /// Where it is.
    #[inline(always)]
    pub fn place(&self) -> Kept<T> {
        let &Self { sign, diagonal, shrunk, seen, .. } = self;
        Kept { sign, diagonal, shrunk, seen }
    }

    /// Puts it somewhere else.
    #[inline(always)]
    pub fn put(&mut self, place: Kept<T>) {
        let Kept { sign, diagonal, shrunk, seen } = place;
        (self.sign, self.diagonal, self.shrunk, self.seen) = (sign, diagonal, shrunk, seen);
    }

    /// Where candidate `k`, this one, is in the state that is looked at; `flipped` is the row of S of the candidate that is flipped.
    #[inline(always)]
    pub fn seen_from(&self, k: usize, flipped: &[T], glance: Option<&Glance<T>>, family: Family) -> Kept<T> {
        let Some(Glance { i, flip, size, .. }) = glance else { return self.place() };
        match (family, *i == k) {
            (Family::Slab, false) => self.moved(at(flipped, k), flip),
            (Family::Slab, true) => self.turned(*size),
            (_, is_own) => self.shifted(at(flipped, k), flip.value, is_own),
        }
    }

    /// Where it is after the flip of another candidate, whose entry of S with this one is `s`.
    #[inline(always)]
    pub(super) fn moved(&self, s: T, flip: &Flip<T>) -> Kept<T> {
        let (change, seen) = (s * s * flip.inverse, self.seen - s * flip.value);
        // Neither vanishes, however nearly parallel latents are: beyond rounding errors nothing is known.
        match self.sign > T::ZERO {
            true => Kept { diagonal: self.rest.max(self.diagonal - change), seen, ..self.place() },
            false => Kept {
                diagonal: self.least.max(self.diagonal + change),
                shrunk: T::ZERO.max(self.shrunk - change),
                seen,
                sign: self.sign,
            },
        }
    }

    /// The same without a slab, also of its own flip.
    #[inline(always)]
    pub(super) fn shifted(&self, s: T, value: T, is_own: bool) -> Kept<T> {
        let (sign, s) = if is_own { (-self.sign, self.diagonal) } else { (self.sign, s) };
        Kept { sign, seen: self.seen - s * value, ..self.place() }
    }

    /// Where it is after its own flip; `size` is 1 / |d|.
    #[inline(always)]
    pub(super) fn turned(&self, size: T) -> Kept<T> {
        let &Self { sign, diagonal, shrunk, seen, mean, precision, .. } = self;
        if sign > T::ZERO {
            let (seen, shrunk) = ((seen - diagonal * mean) * size, diagonal * size / precision);
            Kept { sign: -sign, diagonal: size, shrunk, seen }
        } else {
            let diagonal = self.rest.max(precision * shrunk * size);
            Kept { sign: -sign, diagonal, shrunk: T::ZERO, seen: seen * size + diagonal * mean }
        }
    }

    /// What turning it on does where it is there, off.
    #[inline(always)]
    pub fn turn_on(&self, place: Kept<T>) -> Flip<T> {
        let &Self { logit, mean, precision, .. } = self;
        gsc::turn_on(Prior { logit, mean, precision }, place.diagonal, place.seen)
    }

    /// What turning it off does where it is there, on.
    #[inline(always)]
    pub fn turn_off(&self, place: Kept<T>) -> Flip<T> {
        let &Self { logit, mean, precision, .. } = self;
        gsc::turn_off(Prior { logit, mean, precision }, place.diagonal, place.shrunk, place.seen)
    }

    /// What its flip does where it is there.
    #[inline(always)]
    pub fn flip(&self, place: Kept<T>, family: Family) -> Flip<T> {
        match (family, place.sign > T::ZERO) {
            (Family::Slab, true) => self.turn_on(place),
            (Family::Slab, false) => self.turn_off(place),
            (Family::Binary, _) => binary::flip(self.logit, place.diagonal, place.seen, place.sign),
            (Family::Maximal, _) => Flip { exponent: self.exponent, ..Flip::NONE },
        }
    }
}
