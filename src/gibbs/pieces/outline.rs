//! The outline of a conditional: where its borders are, how high it is there and how steep, and where it is highest.

use super::{Facts, Pieces, Slab};
use crate::counts::Count;
use crate::memory::Border;
use crate::numeric::math::Real;
use crate::numeric::slices::{exchange, set};

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

/// The dimensions of a conditional. Each loop over them takes a few instructions more this way, and the code for columns of floats
/// and of integers is there once.
pub(in crate::gibbs) trait Dims<T> {
    fn each(&self, visit: &mut dyn FnMut(Dim<T>));
}

/// Border `i`, or zeros past the end.
pub(super) fn border<T: Real>(borders: &[Border<T>], i: usize) -> Border<T> {
    borders.get(i).copied().unwrap_or(Border::ZERO)
}

/// Where a dimension changes its maker.
pub(super) enum Turn<T> {
    Never,
    Always,
    At(T),
}

impl<T: Real> Dim<T> {
    pub(super) fn border(&self) -> Turn<T> {
        let far = T::from_f64(FAR);
        if !(self.w > T::ZERO) {
            return Turn::Never;
        }
        let place = self.others / self.w;
        if place > far {
            Turn::Never
        } else if place < -far {
            Turn::Always
        } else {
            Turn::At(place)
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
        let Facts { precision, slope_at_first: mut slope, .. } = self.facts;
        let (mut height, mut best) = (T::ZERO, T::ZERO);
        (self.facts.anchor, self.facts.peak) = (1, self.place(0));
        if slope < T::ZERO {
            best = T::HALF * slope * slope / precision;
            (self.facts.anchor, self.facts.peak) = (0, self.place(0) + slope / precision);
        }
        for i in 0..self.borders.len() {
            let Border { place, jump, precision, .. } = border(self.borders, i);
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
    pub(super) fn spread(&mut self, dims: &dyn Dims<T>, slab: Slab<T>) {
        // Of several borders at one place the last: the segments between them have no width.
        while !self.is_last(self.facts.anchor) && self.place(self.facts.anchor) <= self.facts.peak {
            self.facts.anchor += 1;
        }
        let anchor = self.facts.anchor;
        let (precision, peak) = (self.precision(anchor), self.facts.peak);
        let begin = if anchor > 0 { self.place(anchor - 1) } else { T::IMPOSSIBLE };
        let mut slope = -(slab.precision * (peak - slab.mean));
        dims.each(&mut |dim| {
            Count::PieceDims.add(1);
            let is_made = match dim.border() {
                Turn::Never => false,
                Turn::Always => true,
                Turn::At(place) => place <= begin,
            };
            if is_made {
                slope += dim.precision * dim.w * (dim.y - dim.w * peak);
            }
        });
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
            let Border { place, jump, precision, .. } = *border;
            let width = place - x;
            height += width * (slope - T::HALF * bend * width);
            slope = slope - bend * width + jump;
            (border.slope, border.height) = (slope, height);
            (x, bend) = (place, precision);
        }
        let (mut x, mut slope, mut height) = (top, self.facts.slope, T::ZERO);
        for i in (0..anchor.min(self.borders.len())).rev() {
            let Border { place, jump, precision, .. } = border(self.borders, i);
            let width = x - place;
            slope += precision * width;
            height -= width * (slope - T::HALF * precision * width);
            set(self.borders, i, Border { place, jump, precision, slope, height });
            (x, slope) = (place, slope - jump);
        }
        self.facts.slope_at_first = if anchor == 0 {
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

/// Heapsort by place: no recursion, no more memory, 2 n log2 n comparisons at most.
pub(super) fn sort<T: Real>(borders: &mut [Border<T>]) {
    for start in (0..borders.len() / 2).rev() {
        sift(borders, start, borders.len());
    }
    for end in (1..borders.len()).rev() {
        exchange(borders, 0, end);
        sift(borders, 0, end);
    }
}

/// Lets the border at `root` sink below larger ones among the first `end`.
fn sift<T: Real>(borders: &mut [Border<T>], mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && border(borders, child).place < border(borders, child + 1).place {
            child += 1;
        }
        if !(border(borders, root).place < border(borders, child).place) {
            return;
        }
        Count::Sorted.add(1);
        exchange(borders, root, child);
        root = child;
    }
}
