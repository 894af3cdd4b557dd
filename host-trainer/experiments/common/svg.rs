//! Many small curves or images as a picture (SVG).

use std::fmt::Write;

/// Room for a curve, margins included.
const WIDTH: usize = 60;
const HEIGHT: usize = 40;
/// Heights a curve can have, above and below its middle.
const LEVELS: f64 = 16.0;
/// Shades of a pixel, of either sign.
const SHADES: i32 = 8;

/// Width of a long curve.
const LONG: usize = 800;

/// Curves in rows of `columns`, each scaled to its cell.
pub fn curves(curves: &[Vec<f64>], columns: usize) -> String {
    drawn(curves, columns, WIDTH)
}

/// Long curves, one below the other.
pub fn long_curves(curves: &[Vec<f64>]) -> String {
    drawn(curves, 1, LONG)
}

fn drawn(curves: &[Vec<f64>], columns: usize, cell: usize) -> String {
    let rows = curves.len().div_ceil(columns);
    let (width, height) = (columns * cell, rows * HEIGHT);
    let mut svg = head(width, height, [width, height]) + "<g fill=\"none\" stroke=\"#146\">\n";
    for (at, curve) in curves.iter().enumerate() {
        let (x, y) = (at % columns * cell + 3, at / columns * HEIGHT + HEIGHT / 2);
        let across = (cell - 6) as f64 / curve.len().saturating_sub(1).max(1) as f64;
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

/// White paper of so many units, and so many pixels.
fn head(width: usize, height: usize, pixels: [usize; 2]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{}\" height=\"{}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        pixels[0], pixels[1]
    )
}

/// Square images of `side` x `side` values in rows of `columns`, each scaled to its largest: blue above zero, red below.
pub fn images(images: &[Vec<f64>], side: usize, columns: usize) -> String {
    let cell = side + 1;
    let (width, height) = (columns * cell + 1, images.len().div_ceil(columns) * cell + 1);
    let corner = |at: usize| (at % columns * cell + 1, at / columns * cell + 1);
    let frames: String = (0..images.len())
        .map(|at| format!("M{} {}h{side}v{side}h-{side}z", corner(at).0, corner(at).1))
        .collect();
    let mut svg = head(width, height, [4 * width, 4 * height]);
    let _ = writeln!(svg, "<path fill=\"none\" stroke=\"#ccc\" stroke-width=\".3\" d=\"{frames}\"/>");
    for shade in (-SHADES..=SHADES).filter(|&shade| shade != 0) {
        let mut pixels = String::new();
        for (at, image) in images.iter().enumerate() {
            let largest = image.iter().fold(0.0, |m: f64, v| m.max(v.abs())).max(f64::MIN_POSITIVE);
            let is_here = |e: usize| (image[e] / largest * f64::from(SHADES)).round() == f64::from(shade);
            for e in (0..side * side).filter(|&e| is_here(e)) {
                let (left, top) = corner(at);
                let _ = write!(pixels, "M{} {}h1v1h-1z", left + e % side, top + e / side);
            }
        }
        let (colour, opacity) =
            (if shade > 0 { "#146" } else { "#a22" }, f64::from(shade.abs()) / f64::from(SHADES));
        let _ = writeln!(svg, "<path fill=\"{colour}\" fill-opacity=\"{opacity:.2}\" d=\"{pixels}\"/>");
    }
    svg + "</svg>\n"
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
