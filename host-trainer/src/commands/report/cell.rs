//! Many small pictures of D numbers each: curves, bars or pixels, by what the numbers are.
//!
//! Blue is above zero, orange below, and the ground is zero: in a dark scheme that is dark. Pixels have one of a few shades, and
//! pixels of one shade are one path, so that a patch takes about as many bytes as it has pixels.

use super::description::Look;
use super::page::escaped;
use super::plot::{MOST_POINTS, UNITS, path, thinned};
use std::fmt::Write;

/// Shades of either colour.
const SHADES: i32 = 12;

/// Bars up to this many numbers, then a curve.
const MOST_BARS: usize = 64;

/// Longest side of a picture that is drawn pixel by pixel; of a larger one blocks of pixels are.
const LONGEST_SIDE: usize = 32;

/// How numbers are drawn: as what, and on which scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    pub look: Look,
    /// Whether there is anything below zero.
    pub signed: bool,
}

/// Where a curve or bar of a point lies beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// In front, in colour.
    Front,
    /// Behind, in grey.
    Behind,
}

impl Cells {
    /// Whether two sets of numbers fit in one picture, one over the other.
    pub fn overlay(&self) -> bool {
        !matches!(self.look, Look::Picture { .. })
    }

    /// Least width of a cell where there are so many, in rem.
    pub fn least_width(&self, count: usize, dims: usize) -> f64 {
        match (self.look, count) {
            (Look::Picture { .. }, 0..=12) => 6.0,
            (Look::Picture { .. }, 13..=64) => 4.6,
            (Look::Picture { .. }, _) => 3.4,
            (_, 0..=12) => 8.5,
            _ if dims <= 8 => 5.0,
            _ => 6.6,
        }
    }

    /// Numbers that are drawn of a point of `dims`.
    pub fn numbers(&self, dims: usize) -> usize {
        match self.look {
            Look::Picture { width, height } => width.min(LONGEST_SIDE) * height.min(LONGEST_SIDE),
            _ => dims.min(MOST_POINTS),
        }
    }

    /// SVG of numbers, scaled so that `largest` fills the cell; `title` says in words what it is.
    pub fn draw(&self, layers: &[(Layer, &[f64])], largest: f64, title: &str) -> String {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let title = escaped(title);
        let marks = |one: &dyn Fn(Layer, &[f64]) -> String| -> String {
            layers.iter().map(|(layer, values)| one(*layer, values)).collect()
        };
        if let Look::Picture { width, height } = self.look {
            let values = layers.first().map_or(&[][..], |layer| layer.1);
            let (values, width, height) = shrunk(values, width, height);
            let pixels = pixels(&values, width, largest);
            return format!(
                "<svg class=\"pixels\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {width} {height}\"><title>{title}</title>{pixels}</svg>"
            );
        }
        let bars = self.look == Look::Direction && layers.iter().all(|layer| layer.1.len() <= MOST_BARS);
        let marks = match bars {
            true => marks(&|layer, values| self.bars(layer, values, largest)),
            false => marks(&|layer, values| self.curve(layer, values, largest)),
        };
        let ground = self.height(0.0, largest);
        format!(
            "<svg class=\"curve\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\"><title>{title}</title>\
             <path class=\"rule\" d=\"M0 {ground:.0}H1000\"/>{marks}</svg>"
        )
    }

    /// From the top, with a margin.
    fn height(&self, value: f64, largest: f64) -> f64 {
        let part = (value / largest).clamp(-1.0, 1.0);
        match self.signed {
            true => UNITS * (0.5 - 0.44 * part),
            false => UNITS * (0.94 - 0.88 * part),
        }
    }

    fn curve(&self, layer: Layer, values: &[f64], largest: f64) -> String {
        let step = 0.96 * UNITS / values.len().saturating_sub(1).max(1) as f64;
        let points: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(at, &value)| (0.02 * UNITS + step * at as f64, self.height(value, largest)))
            .collect();
        let class = if layer == Layer::Front { "thin" } else { "data" };
        format!("<path class=\"{class}\" d=\"{}\"/>", path(&thinned(&points, |point| point.1)))
    }

    fn bars(&self, layer: Layer, values: &[f64], largest: f64) -> String {
        let room = 0.94 * UNITS / values.len().max(1) as f64;
        let width = room * if layer == Layer::Front { 0.5 } else { 0.86 };
        let ground = self.height(0.0, largest);
        let [mut up, mut down] = [String::new(), String::new()];
        for (at, &value) in values.iter().enumerate() {
            let (x, y) = (0.03 * UNITS + room * (at as f64 + 0.5) - 0.5 * width, self.height(value, largest));
            let side = if value < 0.0 { &mut down } else { &mut up };
            let _ = write!(side, "M{x:.1} {ground:.1}V{y:.1}h{width:.1}V{ground:.1}z");
        }
        match layer {
            Layer::Front => {
                format!("<path class=\"bar\" d=\"{up}\"/><path class=\"bar down\" d=\"{down}\"/>")
            }
            Layer::Behind => format!("<path class=\"ghost\" d=\"{up}{down}\"/>"),
        }
    }
}

/// The largest number, whatever its sign.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// Runs of pixels of one shade, one path for all of them.
fn pixels(values: &[f64], width: usize, largest: f64) -> String {
    let shade = |value: &f64| ((value / largest * f64::from(SHADES)).round() as i32).clamp(-SHADES, SHADES);
    let mut paths = vec![String::new(); 2 * SHADES as usize + 1];
    for (y, row) in values.chunks_exact(width).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|a, b| shade(a) == shade(b)) {
            let length = run.len();
            let _ = write!(paths[(shade(&run[0]) + SHADES) as usize], "M{x} {y}h{length}v1h-{length}z");
            x += length;
        }
    }
    let mut svg = String::new();
    for (at, d) in paths.iter().enumerate().filter(|(_, d)| !d.is_empty()) {
        let shade = at as i32 - SHADES;
        let class = if shade > 0 { "up" } else { "down" };
        if shade != 0 {
            let opacity = f64::from(shade.abs()) / f64::from(SHADES);
            let _ = write!(svg, "<path class=\"{class}\" opacity=\"{opacity:.2}\" d=\"{d}\"/>");
        }
    }
    svg
}

/// A picture of at most 32 x 32, each pixel the mean of a block.
fn shrunk(values: &[f64], width: usize, height: usize) -> (Vec<f64>, usize, usize) {
    let block = width.max(height).div_ceil(LONGEST_SIDE);
    if block == 1 {
        return (values.to_vec(), width, height);
    }
    let (across, down) = (width.div_ceil(block), height.div_ceil(block));
    let mut sums = vec![(0.0, 0.0); across * down];
    for (at, value) in values.iter().enumerate() {
        let sum = &mut sums[at / width / block * across + at % width / block];
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    (sums.into_iter().map(|(sum, count)| sum / count).collect(), across, down)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_one_shade_are_one_path() {
        assert_eq!(
            pixels(&[1.0, 1.0, 0.0, 1.0], 2, 1.0),
            "<path class=\"up\" opacity=\"1.00\" d=\"M0 0h2v1h-2zM1 1h1v1h-1z\"/>"
        );
        assert_eq!(pixels(&[-0.5], 1, 1.0), "<path class=\"down\" opacity=\"0.50\" d=\"M0 0h1v1h-1z\"/>");
        let values: Vec<f64> = (0..100 * 64).map(|at| f64::from(at % 100)).collect();
        let (small, width, height) = shrunk(&values, 100, 64);
        assert_eq!((width, height, small[0], small[width - 1]), (25, 16, 1.5, 97.5));
    }

    #[test]
    fn numbers_of_any_size_draw() {
        for look in [Look::Direction, Look::Waveform, Look::Picture { width: 3, height: 1 }] {
            for values in [[0.0; 3], [1e308, -1e308, 1e-320], [5.0; 3]] {
                let cells = Cells { look, signed: true };
                let svg = cells.draw(&[(Layer::Front, &values)], largest(&values), "a<b");
                assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("a&lt;b"), "{svg}");
            }
        }
    }
}
