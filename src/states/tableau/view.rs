//! What each flip would do: in the present state, or in one beside it that is only looked at.
//!
//! A state that differs in candidate i needs no sweep to be expanded. Its flips follow from the diagonal of S and from t, which
//! take one column of S, n operations instead of n^2 / 2:
//!
//! ```text
//! S'_jj = S_jj - s_j^2 / d,     t'_j = t_j - s_j t_i / d,     S'_jk = S_jk - s_j s_k / d where an entry is asked for
//! ```

use super::{Joint, Tableau, places, row_start};
use crate::counts::Count;
use crate::kinds::gsc::Prior;
use crate::kinds::{Family, Flip, binary, gsc};
use crate::memory::{Candidate, Kept};
use crate::numeric::math::Real;
use crate::numeric::slices::{at, set, span, span_mut};

/// A flip that is looked at but not made.
#[derive(Clone, Copy)]
pub(crate) struct Glance<T> {
    /// Its candidate; the column of S is in [`Candidate`]s.
    i: usize,
    /// 1 / S_ii, and its size.
    inverse: T,
    size: T,
    /// The log joint of the state that the tableau has.
    joint: Joint<T>,
}

impl<T: Real> Tableau<'_, T> {
    /// What flipping each candidate would do.
    pub fn evaluate(&mut self) {
        self.look(None);
    }

    /// The same in the state that differs in candidate `i`, until [`Tableau::look_back`].
    #[inline(never)]
    pub fn glance(&mut self, i: usize) {
        let flip = self.flip_at(i);
        let size = if self.is_on(i) { -flip.inverse } else { flip.inverse };
        self.glance = Some(Glance { i, inverse: flip.inverse, size, joint: self.joint });
        self.joint.add(&flip);
        let (mut places, n) = (places(i), self.latents.len());
        Count::Gathered.add(n);
        for candidate in span_mut(self.candidates, 0, n) {
            candidate.beside = at(self.pairs, places.next());
        }
        self.look(Some((i, size, &flip)));
        self.toggle(i);
    }

    /// Leaves a state that is only looked at.
    #[inline(always)]
    pub fn look_back(&mut self) {
        if let Some(Glance { i, joint, .. }) = self.glance.take() {
            self.toggle(i);
            self.joint = joint;
            if let Some(own) = self.candidates.get_mut(i) {
                own.sign = -own.sign;
            }
        }
    }

    /// What the flips that are counted push candidate `j` by, which is on in the state that is looked at: sum_k S_jk e_k and
    /// sum_k S_jk^2 C_k over all others.
    pub fn pushed(&self, j: usize) -> (T, T) {
        let (mut moved, mut spread) = (T::ZERO, T::ZERO);
        self.each_pair(j, |_, candidate, s| {
            moved += s * candidate.push;
            spread += s * s * candidate.spread;
        });
        (moved, spread)
    }

    /// Visits all candidates k but `j`, in order, with S_jk of the state that is looked at.
    #[inline(always)]
    pub fn each_pair(&self, j: usize, mut visit: impl FnMut(usize, &Candidate<T>, T)) {
        let candidates = span(self.candidates, 0, self.latents.len());
        if self.glance.is_some() {
            for (k, candidate) in candidates.iter().enumerate() {
                if k != j {
                    visit(k, candidate, self.seen_pair(j, k));
                }
            }
            return;
        }
        // Row j, then the rest of the column.
        let (Some((before, after)), mut place) = (candidates.split_at_checked(j), row_start(j + 1) + j)
        else {
            return;
        };
        for (k, (candidate, &s)) in before.iter().zip(span(self.pairs, row_start(j), j)).enumerate() {
            visit(k, candidate, s);
        }
        let mut k = j;
        for candidate in after.get(1..).unwrap_or_default() {
            k += 1;
            visit(k, candidate, at(self.pairs, place));
            place += k;
        }
    }

    /// S_:i of the state that is looked at, with a zero on its diagonal, in `column`.
    pub fn gather_seen(&mut self, i: usize) {
        if self.glance.is_none() {
            return self.gather(i);
        }
        for k in 0..self.len() {
            set(self.column, k, if k == i { T::ZERO } else { self.seen_pair(i, k) });
        }
    }

    /// S_jk of the state that is looked at, j not k.
    pub fn seen_pair(&self, j: usize, k: usize) -> T {
        let s = self.pair(j, k);
        match self.glance {
            Some(Glance { i, size, .. }) if i == j || i == k => s * size,
            Some(Glance { inverse, .. }) => {
                let beside = |i: usize| self.candidates.get(i).map_or(T::ZERO, |candidate| candidate.beside);
                s - beside(j) * inverse * beside(k)
            }
            None => s,
        }
    }

    /// All flips; those after the flip of candidate i, if there is one, given 1 / |d| and what it does. Its sign changes for good.
    fn look(&mut self, beside: Option<(usize, T, &Flip<T>)>) {
        let (n, family) = (self.len(), self.family());
        self.count_flips(n);
        match family {
            Family::Slab | Family::Binary => {
                for (k, candidate) in span_mut(self.candidates, 0, n).iter_mut().enumerate() {
                    let mut place = candidate.place();
                    if let Some((i, size, flip)) = beside {
                        place = match (family, i == k) {
                            (Family::Slab, false) => candidate.moved(candidate.beside, flip),
                            (Family::Slab, true) => candidate.turned(size),
                            (_, is_own) => candidate.shifted(candidate.beside, flip.value, is_own),
                        };
                        candidate.sign = place.sign;
                    }
                    candidate.show(place, family);
                }
            }
            Family::Maximal => {
                for i in 0..n {
                    let flip = self.flip_of_maximal(i);
                    if let Some(candidate) = self.candidates.get_mut(i) {
                        candidate.take(&flip);
                    }
                }
            }
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

    /// The flip of one candidate.
    pub(super) fn flip_at(&self, i: usize) -> Flip<T> {
        self.count_flips(1);
        match (self.family(), self.candidates.get(i)) {
            (Family::Maximal, _) => self.flip_of_maximal(i),
            (family, Some(candidate)) => candidate.flip(candidate.place(), family),
            _ => Flip { exponent: T::ZERO, ratio: T::ONE, value: T::ZERO, inverse: T::ONE },
        }
    }
}

impl<T: Real> Candidate<T> {
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

    /// What its flip does where it is there.
    #[inline(always)]
    fn flip(&self, place: Kept<T>, family: Family) -> Flip<T> {
        let Kept { sign, diagonal, shrunk, seen } = place;
        let &Self { logit, mean, precision, .. } = self;
        match (family, sign > T::ZERO) {
            (Family::Slab, true) => gsc::turn_on(Prior { logit, mean, precision }, diagonal, seen),
            (Family::Slab, false) => gsc::turn_off(Prior { logit, mean, precision }, diagonal, shrunk, seen),
            _ => binary::flip(logit, diagonal, seen, sign),
        }
    }

    /// The same, kept, with its coefficient.
    #[inline(always)]
    fn show(&mut self, place: Kept<T>, family: Family) {
        let flip = self.flip(place, family);
        if family == Family::Slab {
            let is_off = place.sign > T::ZERO;
            self.x = if is_off { flip.value } else { self.mean + place.seen };
            self.variance = if is_off { flip.inverse } else { place.diagonal };
        }
        self.take(&flip);
    }

    #[inline(always)]
    fn take(&mut self, flip: &Flip<T>) {
        let &Flip { exponent, ratio, value, inverse } = flip;
        (self.exponent, self.ratio, self.value, self.inverse) = (exponent, ratio, value, inverse);
    }

    /// The change of the log joint, roughly.
    #[inline(always)]
    pub fn gain(&self) -> T {
        self.exponent + T::HALF * self.ratio.ln_rough()
    }
}
