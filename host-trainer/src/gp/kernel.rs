//! k(y, y') = linear y.y' + radial exp(-|y - y'|^2 / (2 length^2)) + bias; white is added on the diagonal of K.
//!
//! With P parts the radial part is a mean over as many pieces of y of equal length, radial / P sum_p exp(-|y_p - y'_p|^2 / (2
//! length^2)): points are alike where some pieces are, whatever covers the others.

use crate::linalg::dot;
use serde::{Deserialize, Serialize};

/// Which parts a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelName {
    /// Linear in the data, plus white noise
    Linear,
    /// Radial basis functions, plus white noise
    Rbf,
    /// Both, a bias and white noise: parts that do not help fall towards zero
    Sum,
}

/// A kernel with its hyperparameters; parts that it does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Variance of the linear part.
    pub linear: f64,
    /// Variance of the radial part.
    pub radial: f64,
    /// Length scale of the radial part.
    pub length: f64,
    /// Variance of the bias.
    pub bias: f64,
    /// Variance of what the data does not explain.
    pub white: f64,
    /// P: pieces of a point that are compared each by itself.
    #[serde(default = "one")]
    pub parts: usize,
}

fn one() -> usize {
    1
}

/// How many hyperparameters there are.
pub const PARTS: usize = 5;

impl Kernel {
    /// Of the scale of the data (N x D) and of targets with this mean square, before anything is fitted.
    pub fn new(name: KernelName, points: &[f64], dims: usize, power: f64) -> Self {
        let n = (points.len() / dims.max(1)).max(1) as f64;
        let energy = dot(points, points) / n;
        let mut mean = vec![0.0; dims];
        for y in points.chunks_exact(dims.max(1)) {
            mean.iter_mut().zip(y).for_each(|(mean, y)| *mean += y / n);
        }
        // Two independent points are this far apart, in the mean square.
        let distance = (2.0 * (energy - dot(&mean, &mean))).max(1e-12 * energy).max(f64::MIN_POSITIVE);
        let power = power.max(1e-6);
        let [has_linear, has_radial] = [name != KernelName::Rbf, name != KernelName::Linear];
        let part = |present: bool, variance: f64| if present { variance } else { 0.0 };
        Self {
            linear: part(has_linear, power / energy.max(f64::MIN_POSITIVE)),
            radial: part(has_radial, power),
            length: (0.5 * distance).sqrt(),
            bias: part(name == KernelName::Sum, power),
            white: 0.1 * power,
            parts: 1,
        }
    }

    /// k(y, y') without the white part.
    pub fn between(&self, y: &[f64], other: &[f64]) -> f64 {
        let mut sum = self.bias;
        if self.linear > 0.0 {
            sum += self.linear * dot(y, other);
        }
        if self.radial > 0.0 {
            sum += self.pieces(y, other).map(|apart| self.radial_part(apart)).sum::<f64>();
        }
        sum
    }

    /// k(y, y') and its derivatives by the logarithms of linear, radial, length, bias and white.
    pub(super) fn slopes(&self, y: &[f64], other: &[f64], is_same: bool) -> (f64, [f64; PARTS]) {
        let linear = if self.linear > 0.0 { self.linear * dot(y, other) } else { 0.0 };
        let (mut radial, mut by_length) = (0.0, 0.0);
        if self.radial > 0.0 {
            for apart in self.pieces(y, other) {
                radial += self.radial_part(apart);
                by_length += self.radial_part(apart) * apart;
            }
        }
        let white = if is_same { self.white } else { 0.0 };
        (linear + radial + self.bias + white, [linear, radial, by_length, self.bias, white])
    }

    /// |y_p - y'_p|^2 / length^2 of every piece.
    fn pieces<'a>(&self, y: &'a [f64], other: &'a [f64]) -> impl Iterator<Item = f64> + use<'a> {
        let (each, square) = (y.len() / self.parts, self.length * self.length);
        y.chunks(each.max(1)).zip(other.chunks(each.max(1))).map(move |(a, b)| distance(a, b) / square)
    }

    /// What a piece adds.
    fn radial_part(&self, apart: f64) -> f64 {
        self.radial / self.parts as f64 * (-0.5 * apart).exp()
    }

    pub(super) fn values(&self) -> [f64; PARTS] {
        [self.linear, self.radial, self.length, self.bias, self.white]
    }

    pub(super) fn with_values(&self, [linear, radial, length, bias, white]: [f64; PARTS]) -> Self {
        Self { linear, radial, length, bias, white, parts: self.parts }
    }
}

/// |y - y'|^2.
fn distance(y: &[f64], other: &[f64]) -> f64 {
    y.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}
