//! How loud the training data was in every bin of a transform: what the gains even out.

use super::page::{figure, section};
use super::plot::{Axis, Plot};
use spikelet::Blob;

/// Nothing unless points are bins of a transform with gains.
pub(super) fn html(blob: &Blob<'_>) -> String {
    let gains = blob.gains();
    if gains.is_empty() {
        return String::new();
    }
    // Bin k of N has its middle at (k + 1/2) / 2N of the rate.
    let rate = blob.frame().map_or(0, |frame| frame.rate);
    let (unit, label) = match rate {
        0 => (1.0, "bin"),
        rate => (f64::from(rate) / (2 * gains.len()) as f64, "Hz"),
    };
    let level = |(bin, &gain): (usize, &f32)| ((bin as f64 + 0.5) * unit, -20.0 * f64::from(gain).log10());
    let levels: Vec<(f64, f64)> = gains.iter().enumerate().map(level).collect();
    let x = Axis::between(0.0, gains.len() as f64 * unit, label);
    let mut plot = Plot::new(x, Axis::over(levels.iter().map(|level| level.1), "level (dB)"));
    plot.curve(&levels, "one");
    let picture = plot.html(&format!("level of the training data in {} bins", gains.len()), "");
    let caption = format!(
        "Points are the coefficients of a lapped transform with {} bins, one of all channels each. Every bin is multiplied with a \
         gain that evens out this spectrum, so that one dictionary fits all of them, and divided by it again after inference.",
        gains.len()
    );
    section("spectrum", "Spectrum", &figure(&picture, &caption))
}
