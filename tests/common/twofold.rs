//! Double-double arithmetic, 31 digits, for oracles that f64 is not enough for.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// The larger part and what it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twofold(f64, f64);

pub const ZERO: Twofold = Twofold(0.0, 0.0);

/// Knuth's two-sum.
fn sum(a: f64, b: f64) -> Twofold {
    let sum = a + b;
    let part = sum - a;
    Twofold(sum, (a - (sum - part)) + (b - part))
}

impl Twofold {
    pub fn value(self) -> f64 {
        self.0 + self.1
    }

    /// Correct to 1e-16 of the logarithm: nothing more is asked of it.
    pub fn ln(self) -> f64 {
        self.0.ln() + self.1 / self.0
    }
}

impl From<f64> for Twofold {
    fn from(value: f64) -> Self {
        Self(value, 0.0)
    }
}

impl Add for Twofold {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, low) = (sum(self.0, other.0), sum(self.1, other.1));
        let middle = sum(high.0, high.1 + low.0);
        sum(middle.0, middle.1 + low.1)
    }
}

impl Neg for Twofold {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Sub for Twofold {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Twofold {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product) + (self.0 * other.1 + self.1 * other.0);
        sum(product, rest)
    }
}

impl Div for Twofold {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let rest = self - other * first.into();
        let second = rest.0 / other.0;
        let rest = rest - other * second.into();
        sum(first, second) + (rest.0 / other.0).into()
    }
}

impl AddAssign for Twofold {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Twofold {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
