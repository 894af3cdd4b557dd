//! The outline of a conditional: where its borders are, how high it is there and how steep, and where it is highest.

use super::{Pieces, Slab};
use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::slices::{exchange, row, set};

/// Borders further out than this are nowhere near any value: what is beyond them is never or always reached.
const FAR: f64 = 1e18;

/// One dimension as latent h sees it: a_d, W_dh, y_d, M_d.
#[derive(Clone, Copy)]
pub(in crate::gibbs) struct Dim<T> {
    pub precision: T,
    pub w: T,
    pub y: T,
    pub others: T,
}

/// Where a dimension changes its maker.
pub(super) enum Border<T> {
    Never,
    Always,
    At(T),
}

impl<T: Real> Dim<T> {
    pub(super) fn border(&self) -> Border<T> {
        let far = T::from_f64(FAR);
        if !(self.w > T::ZERO) {
            return Border::Never;
        }
        let place = self.others / self.w;
        if place > far {
            Border::Never
        } else if place < -far {
            Border::Always
        } else {
            Border::At(place)
        }
    }

    /// Nats by which x explains the dimension better than zero does.
    pub fn gain(&self, x: T) -> T {
        let (with, without) = (self.others.max(x * self.w), self.others.max(T::ZERO));
        self.precision * (with - without) * (self.y - T::HALF * (with + without))
    }
}

impl<T: Real> Pieces<'_, T> {
    /// From the first border to the last, with heights relative to the first: finds about where the highest point is.
    pub(super) fn climb(&mut self) {
        let [precision, mut slope, _] = self.facts.first;
        let (mut height, mut best) = (T::ZERO, T::ZERO);
        (self.facts.anchor, self.facts.peak) = (1, self.place(0));
        if slope < T::ZERO {
            best = T::HALF * slope * slope / precision;
            (self.facts.anchor, self.facts.peak) = (0, self.place(0) + slope / precision);
        }
        for i in 0..self.borders.len() {
            let [place, jump, precision, ..] = row(self.borders, i);
            slope += jump;
            let (top, is_last) = (slope / precision, self.is_last(i + 1));
            let width = self.place(i + 1) - place;
            if slope > T::ZERO && (is_last || top < width) && height + T::HALF * slope * top > best {
                best = height + T::HALF * slope * top;
                (self.facts.anchor, self.facts.peak) = (i + 1, place + top);
            }
            if is_last {
                return;
            }
            height += width * (slope - T::HALF * precision * width);
            slope -= precision * width;
            if height > best {
                best = height;
                (self.facts.anchor, self.facts.peak) = (i + 2, self.place(i + 1));
            }
        }
    }

    /// Slopes and heights of all borders, outward from the anchor.
    pub(super) fn spread(&mut self, dims: impl Iterator<Item = Dim<T>>, slab: Slab<T>) {
        // Of several borders at one place the last: the segments between them have no width.
        while !self.is_last(self.facts.anchor) && self.place(self.facts.anchor) <= self.facts.peak {
            self.facts.anchor += 1;
        }
        let anchor = self.facts.anchor;
        let (precision, peak) = (self.precision(anchor), self.facts.peak);
        let begin = if anchor > 0 { self.place(anchor - 1) } else { T::IMPOSSIBLE };
        let mut slope = -(slab.precision * (peak - slab.mean));
        for dim in dims {
            Count::PieceDims.add(1);
            let is_made = match dim.border() {
                Border::Never => false,
                Border::Always => true,
                Border::At(place) => place <= begin,
            };
            if is_made {
                slope += dim.precision * dim.w * (dim.y - dim.w * peak);
            }
        }
        // To the top of the bell, or as far as the segment goes.
        let mut top = begin.max(peak + slope / precision);
        if !self.is_last(anchor) && top > self.place(anchor) {
            top = self.place(anchor);
        }
        let is_inside = top > begin && (self.is_last(anchor) || top < self.place(anchor));
        self.facts.slope = if is_inside { T::ZERO } else { slope - precision * (top - peak) };
        self.facts.peak = top;

        let (mut x, mut slope, mut height, mut bend) = (top, self.facts.slope, T::ZERO, precision);
        for border in self.borders.iter_mut().skip(anchor) {
            let [place, jump, precision, ..] = *border;
            let width = place - x;
            height += width * (slope - T::HALF * bend * width);
            slope = slope - bend * width + jump;
            *border = [place, jump, precision, slope, height];
            (x, bend) = (place, precision);
        }
        let (mut x, mut slope, mut height) = (top, self.facts.slope, T::ZERO);
        for i in (0..anchor.min(self.borders.len())).rev() {
            let [place, jump, precision, ..] = row(self.borders, i);
            let width = x - place;
            slope += precision * width;
            height -= width * (slope - T::HALF * precision * width);
            set(self.borders, i, [place, jump, precision, slope, height]);
            (x, slope) = (place, slope - jump);
        }
        self.facts.first[1] = if anchor == 0 {
            // The walk above went no further left than the peak.
            self.facts.slope - precision * (self.place(0) - top)
        } else {
            slope
        };
    }

    /// Whether another segment is higher after all: the peak is then there.
    pub(super) fn move_anchor(&mut self) -> bool {
        let (mut best, mut found) = (T::ONE, None);
        for segment in 0..=self.borders.len() {
            for piece in self.cut(segment).into_iter().flatten() {
                if piece.height > best {
                    (best, found) = (piece.height, Some((segment, piece.from)));
                }
            }
        }
        if let Some(found) = found {
            (self.facts.anchor, self.facts.peak) = found;
        }
        found.is_some()
    }
}

/// Heapsort by the first number of each row: no recursion, no more memory, 2 n log2 n comparisons at most.
pub(super) fn sort<T: Real>(rows: &mut [[T; 5]]) {
    for start in (0..rows.len() / 2).rev() {
        sift(rows, start, rows.len());
    }
    for end in (1..rows.len()).rev() {
        exchange(rows, 0, end);
        sift(rows, 0, end);
    }
}

/// Lets the row at `root` sink below larger ones among the first `end`.
fn sift<T: Real>(rows: &mut [[T; 5]], mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && row(rows, child)[0] < row(rows, child + 1)[0] {
            child += 1;
        }
        if !(row(rows, root)[0] < row(rows, child)[0]) {
            return;
        }
        Count::Sorted.add(1);
        exchange(rows, root, child);
        root = child;
    }
}
