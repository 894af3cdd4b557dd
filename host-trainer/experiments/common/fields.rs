//! What a field of pixels looks like: a Gabor function, a difference of Gaussians, or neither.

use std::f64::consts::{PI, TAU};

/// A fit must explain so much of the energy.
const LEAST: f64 = 0.5;
/// Deviations of envelopes, in pixels.
const WIDTHS: [f64; 5] = [1.0, 1.5, 2.25, 3.4, 5.0];
/// Cycles a pixel.
const FREQUENCIES: [f64; 6] = [0.05, 0.08, 0.12, 0.18, 0.26, 0.36];
const DIRECTIONS: usize = 8;

/// The better fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Gabor,
    Globular,
    Neither,
}

/// The shape of a square field, and the part of its energy that the better fit explains.
pub fn shape(field: &[f64], side: usize) -> (Shape, f64) {
    let mean = field.iter().sum::<f64>() / field.len() as f64;
    let field: Vec<f64> = field.iter().map(|w| w - mean).collect();
    let energy: f64 = field.iter().map(|w| w * w).sum();
    let place = |i: usize| ((i % side) as f64, (i / side) as f64);
    // Squares of squares: the middle of what is strong.
    let weight: f64 = field.iter().map(|w| w.powi(4)).sum::<f64>().max(f64::MIN_POSITIVE);
    let middle = |axis: fn((f64, f64)) -> f64| {
        field.iter().enumerate().map(|(i, w)| w.powi(4) * axis(place(i))).sum::<f64>() / weight
    };
    let (cx, cy) = (middle(|p| p.0), middle(|p| p.1));
    let explained = |pair: &dyn Fn(f64, f64) -> (f64, f64)| -> f64 {
        let mut sums = [0.0; 5];
        for (i, w) in field.iter().enumerate() {
            let (x, y) = place(i);
            let (a, b) = pair(x - cx, y - cy);
            for (sum, add) in sums.iter_mut().zip([a * a, a * b, b * b, a * w, b * w]) {
                *sum += add;
            }
        }
        let [aa, ab, bb, aw, bw] = sums;
        let det = (aa * bb - ab * ab).max(1e-9 * aa * bb).max(f64::MIN_POSITIVE);
        (aw * aw * bb - 2.0 * aw * bw * ab + bw * bw * aa) / det / energy.max(f64::MIN_POSITIVE)
    };
    let mut gabor: f64 = 0.0;
    for direction in 0..DIRECTIONS {
        let (sin, cos) = (PI * direction as f64 / DIRECTIONS as f64).sin_cos();
        for (along, across) in WIDTHS.iter().flat_map(|a| WIDTHS.iter().map(move |b| (*a, *b))) {
            // Less than half a cycle under the envelope is a blob, not a wave.
            for frequency in FREQUENCIES.into_iter().filter(|f| f * along >= 0.15) {
                let wave = |x: f64, y: f64| {
                    let (u, v) = (cos * x + sin * y, cos * y - sin * x);
                    let envelope = (-0.5 * ((u / along).powi(2) + (v / across).powi(2))).exp();
                    let (s, c) = (TAU * frequency * u).sin_cos();
                    (envelope * c, envelope * s)
                };
                gabor = gabor.max(explained(&wave));
            }
        }
    }
    let mut globular: f64 = 0.0;
    for (narrow, ratio) in WIDTHS.iter().flat_map(|n| [1.4, 2.0, 3.0].into_iter().map(move |r| (*n, r))) {
        let blobs = |x: f64, y: f64| {
            let square = x * x + y * y;
            let around = |width: f64| (-0.5 * square / (width * width)).exp();
            (around(narrow), around(narrow * ratio))
        };
        globular = globular.max(explained(&blobs));
    }
    let best = gabor.max(globular);
    let shape = match best >= LEAST {
        true if globular >= gabor => Shape::Globular,
        true => Shape::Gabor,
        false => Shape::Neither,
    };
    (shape, best)
}
