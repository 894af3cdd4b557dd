//! A monotone part of a Gaussian: its mass and moments, draws from it.

use crate::counts::Count;
use crate::numeric::math::Real;
use crate::numeric::normal::{invert, piece};

/// Runs downhill from `from` to the right or to the left; see [`piece`].
#[derive(Clone, Copy)]
pub(super) struct Piece<T> {
    pub from: T,
    /// 1 to the right, -1 to the left.
    pub direction: T,
    pub height: T,
    pub t: T,
    pub w: T,
    /// 1 / sqrt(precision)
    pub deviation: T,
}

/// One or two pieces.
pub(super) type Cut<T> = [Option<Piece<T>>; 2];

impl<T: Real> Piece<T> {
    /// Moments 0, 1 and 2 of the way from its beginning, times its density there. Zero where it is negligible: in no
    /// bell is another one's width lost by more than rounding allows.
    pub fn moments(&self) -> [T; 3] {
        if self.height < -T::nats(2 * T::WEIGHT_BITS) {
            return [T::ZERO; 3];
        }
        Count::Pieces.add(1);
        let mut scale = self.height.exp() * self.deviation;
        piece(self.t, self.w).map(|moment| {
            let scaled = moment * scale;
            scale *= self.deviation;
            scaled
        })
    }

    pub fn draw(&self, beyond: T) -> T {
        self.from + self.direction * (invert(self.t, self.w, beyond) * self.deviation)
    }

    /// Its mass no further right than `x`.
    pub fn below(&self, x: T) -> T {
        let part = |way: T| {
            let w = if way * self.w < way * way { self.w } else { way };
            Self { w, ..*self }.moments()[0]
        };
        let way = (x - self.from) * self.direction / self.deviation;
        match (self.direction > T::ZERO, way > T::ZERO) {
            (true, true) => part(way),
            (true, false) => T::ZERO,
            (false, true) => self.moments()[0] - part(way),
            (false, false) => self.moments()[0],
        }
    }
}
