//! Many small curves as a picture (SVG).

use std::fmt::Write;

/// Room for a curve, margins included.
const WIDTH: usize = 60;
const HEIGHT: usize = 40;
/// Heights a curve can have, above and below its middle.
const LEVELS: f64 = 16.0;

/// Curves in rows of `columns`, each scaled to its cell.
pub fn curves(curves: &[Vec<f64>], columns: usize) -> String {
    let rows = curves.len().div_ceil(columns);
    let (width, height) = (columns * WIDTH, rows * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <g fill=\"none\" stroke=\"#146\">\n"
    );
    for (at, curve) in curves.iter().enumerate() {
        let (x, y) = (at % columns * WIDTH + 3, at / columns * HEIGHT + HEIGHT / 2);
        let across = (WIDTH - 6) as f64 / curve.len().saturating_sub(1).max(1) as f64;
        let up = (HEIGHT / 2 - 4) as f64 / LEVELS;
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path transform=\"translate({x} {y})scale({across:.3} {up:.2})\" vector-effect=\"non-scaling-stroke\" d=\"{}\"/>",
            path(curve)
        );
    }
    svg + "</g>\n</svg>\n"
}

/// One unit across per value; lines that go on in the same direction are one.
fn path(curve: &[f64]) -> String {
    let largest = curve.iter().fold(0.0, |m: f64, v| m.max(v.abs())).max(f64::MIN_POSITIVE);
    let levels: Vec<i32> = curve.iter().map(|v| (-v / largest * LEVELS).round() as i32).collect();
    let mut path = format!("M0 {}l", levels.first().unwrap_or(&0));
    let mut lines: Vec<(i32, i32)> = Vec::new();
    for pair in levels.windows(2) {
        let rise = pair[1] - pair[0];
        match lines.last_mut() {
            Some((length, all)) if *all == rise * *length => (*length, *all) = (*length + 1, *all + rise),
            _ => lines.push((1, rise)),
        }
    }
    for (at, (length, rise)) in lines.iter().enumerate() {
        let before = if at == 0 { "" } else { " " };
        let between = if *rise < 0 { "" } else { " " };
        let _ = write!(path, "{before}{length}{between}{rise}");
    }
    path
}
