//! Strokes that cover each other: patches of a picture, how many strokes each of them shows, and what looks like one.

use super::mixtures::add_noise;
use spikelet::rng::Rng;

/// Pixels along a side of the picture, and of a patch.
const PICTURE: usize = 256;
pub const SIDE: usize = 9;
pub const DIMS: usize = SIDE * SIDE;
/// Most strokes in a patch.
pub const MOST: usize = 5;
/// Drawn one over the other.
const STROKES: usize = 300;
/// Longest and shortest stroke, in pixels.
const LENGTHS: (f64, f64) = (5.0, 60.0);
/// Standard deviation of what is added to every patch.
pub const NOISE: f64 = 25.0;

/// A straight stroke.
struct Stroke {
    /// Where it begins, its direction (length 1), how far it goes.
    from: [f64; 2],
    along: [f64; 2],
    length: f64,
    width: f64,
}

impl Stroke {
    /// Whether the middle of the pixel in this row and column is on it.
    fn covers(&self, row: usize, column: usize) -> bool {
        let [x, y] = [column as f64 + 0.5 - self.from[0], row as f64 + 0.5 - self.from[1]];
        let along = x * self.along[0] + y * self.along[1];
        let across = y * self.along[0] - x * self.along[1];
        (0.0..=self.length).contains(&along) && across.abs() <= 0.5 * self.width
    }
}

/// Patches. (N x D)
pub struct Patches {
    pub clean: Vec<f64>,
    pub noisy: Vec<f64>,
    /// Strokes of which at least one pixel is seen. (N)
    pub strokes: Vec<usize>,
}

impl Patches {
    /// `count` patches at random places, from a picture that depends on `rng` only.
    pub fn new(count: usize, rng: &mut Rng) -> Self {
        let (values, labels) = picture(rng);
        let (mut clean, mut strokes) = (Vec::with_capacity(count * DIMS), Vec::new());
        while strokes.len() < count {
            let mut place = || (rng.uniform::<f64>() * (PICTURE - SIDE) as f64) as usize;
            let (top, left) = (place(), place());
            let pixels = |e: usize| (top + e / SIDE) * PICTURE + left + e % SIDE;
            let mut seen: Vec<usize> = (0..DIMS).filter_map(|e| labels[pixels(e)]).collect();
            seen.sort_unstable();
            seen.dedup();
            if seen.len() <= MOST {
                clean.extend((0..DIMS).map(|e| values[pixels(e)]));
                strokes.push(seen.len());
            }
        }
        let mut noisy = clean.clone();
        add_noise(rng, &mut noisy, NOISE);
        Self { clean, noisy, strokes }
    }
}

/// Values, and which stroke is on top.
fn picture(rng: &mut Rng) -> (Vec<f64>, Vec<Option<usize>>) {
    let (mut values, mut labels) = (vec![0.0; PICTURE * PICTURE], vec![None; PICTURE * PICTURE]);
    let mut between = |low: f64, high: f64| low + (high - low) * rng.uniform::<f64>();
    for label in 0..STROKES {
        let angle = between(0.0, std::f64::consts::TAU);
        let side = PICTURE as f64;
        let stroke = Stroke {
            from: [between(0.0, side), between(0.0, side)],
            along: [angle.cos(), angle.sin()],
            length: between(LENGTHS.0, LENGTHS.1),
            width: between(2.0, 5.0).floor(),
        };
        let value = between(1.0, 256.0).floor();
        for e in (0..PICTURE * PICTURE).filter(|e| stroke.covers(e / PICTURE, e % PICTURE)) {
            (values[e], labels[e]) = (value, Some(label));
        }
    }
    (values, labels)
}

/// Single strokes as a patch may show them, each of length 1: all directions in steps of 7.5 degrees, all places in steps of half
/// a pixel, through the whole patch or ending in the middle of it. (M x D)
pub fn templates() -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    let (middle, reach) = (SIDE as f64 / 2.0, 2.0 * SIDE as f64);
    for step in 0..48 {
        let angle = f64::from(step) * std::f64::consts::TAU / 48.0;
        let along = [angle.cos(), angle.sin()];
        for (offset, width) in (-8..=8).flat_map(|offset| [2.0, 3.0, 4.0].map(|width| (offset, width))) {
            let across = f64::from(offset) * 0.5;
            let start = [middle - along[1] * across, middle + along[0] * across];
            for back in [0.0, reach] {
                let from = [start[0] - along[0] * back, start[1] - along[1] * back];
                let stroke = Stroke { from, along, length: 2.0 * reach, width };
                let on = |e: usize| if stroke.covers(e / SIDE, e % SIDE) { 1.0 } else { 0.0 };
                let values: Vec<f64> = (0..DIMS).map(on).collect();
                let length = values.iter().sum::<f64>().sqrt();
                if length > 0.0 {
                    all.push(values.iter().map(|v| v / length).collect());
                }
            }
        }
    }
    all
}

/// The largest cosine of a field with a stroke of either sign.
pub fn likeness(field: &[f64], templates: &[Vec<f64>]) -> f64 {
    let length = field.iter().map(|w| w * w).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let cosine = |stroke: &Vec<f64>| stroke.iter().zip(field).map(|(s, w)| s * w).sum::<f64>().abs() / length;
    templates.iter().map(cosine).fold(0.0, f64::max)
}
