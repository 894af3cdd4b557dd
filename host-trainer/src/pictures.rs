//! What a picture asks of a model that shall take its noise away: how strong the noise is, and from that the size of patches and how
//! many latents to learn.
//!
//! The noise is read off the second differences in both directions,
//!
//! ```text
//!      1 -2  1
//! r = -2  4 -2  (y)      sigma = median |r| / (0.6745 * 6)
//!      1 -2  1
//! ```
//!
//! of which smooth parts of a picture leave nothing, and the median forgets edges. What else is chosen depends on the noise relative to the
//! contrast (the standard deviation of the picture without noise), so units do not matter:
//!
//! | sigma / contrast | latents | why |
//! |---|---|---|
//! | up to 4/5 | one for 60 patches, up to 1024 | a latent may have what few patches show |
//! | above | one for 120 patches, up to 512 | few patches teach a latent noise |
//!
//! Which size of patches is best depends on what is on the picture, too: large areas and long edges ask for large patches, much
//! that is small for small ones. So `train` tries sizes one after the other, from the smallest, as long as they get better. Where
//! patches are more than `MOST`, every second one or fewer is learned from: neighbours say nearly the same.
//!
//! Where patches overlap, every pixel is a mean of many estimates. That takes most of their variance away but nothing of what all
//! of them lose alike, so each should lose less than is best for a patch by itself: noise is taken out with `OVERLAP` times the
//! variance that was learned, and slabs `SPREAD` times as wide. On cameraman with noise of 15 this gains 0.22 dB, of 25 0.10, on
//! peppers with 25 0.02, with 50 0.11; on house it gains nothing with 25, 0.03 with 50. Weights from joint variances gain 0.05
//! and 0.02 on peppers. More states gain nothing, two dictionaries averaged 0.03 dB for twice the time.
//!
//! All of this was chosen on cameraman and peppers.
//!
//! Pixels may be missing: see [`Mask`].

mod mask;

pub use mask::Mask;

use crate::data::Sheet;
use crate::parameters::{Parameters, SlabCov};
use crate::prepare::{GramName, Options};

/// Patches to learn from, about.
const MOST: usize = 100_000;

/// Columns and rows of patches that are tried.
const SIDES: [u32; 5] = [8, 10, 12, 14, 16];

/// Patches that fit beside each other in a picture, at least, for sizes other than the first.
const LEAST_SIDES: usize = 8;

/// Numbers of a patch, at most, for sizes other than the first.
const MOST_DIMS: usize = 300;

/// What the variances of noise and slab are multiplied with where pieces overlap.
const OVERLAP: f64 = 0.75;
const SPREAD: f64 = 2.0;

/// Latents whose Gram matrix is held as a whole, at most.
const STORED_UP_TO: usize = 2048;

/// Differences that noise can be told from.
const FEW: usize = 1000;

/// What to do with pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Of the pictures without it.
    pub contrast: f64,
    /// Columns and rows of a patch.
    pub side: u32,
    /// Pixels from one patch to the next.
    pub step: u32,
    /// H.
    pub latents: u16,
    /// Patches between two M-steps.
    pub batch: usize,
}

/// Patches for a latent, and latents at most.
type Row = (usize, usize);

/// What suits noise up to this part of the contrast.
const ROWS: [(f64, Row); 2] = [(0.8, (60, 1024)), (f64::INFINITY, (120, 512))];

/// Sides of patches, and the same, where pixels are missing, up to this part of them: the fewer are known, the larger a patch
/// must be to tell what is on it.
const HOLES: [(f64, (u32, Row)); 2] = [(0.65, (12, (120, 512))), (1.0, (16, (120, 512)))];

/// What takes the noise out of overlapping pieces, on a desktop: with the whole Gram matrix, which weights need, where it is not too large.
pub fn for_overlapping(parameters: Parameters, options: Options) -> (Parameters, Options) {
    let slab_cov = SlabCov::Diagonal(parameters.slab_variances().iter().map(|psi2| SPREAD * psi2).collect());
    let noise = parameters.noise.scaled(OVERLAP);
    let gram = if parameters.latents <= STORED_UP_TO { GramName::Stored } else { options.gram };
    (Parameters { noise, slab_cov, ..parameters }, Options { gram, ..options })
}

impl Sizes {
    /// What may suit these pictures best, from the smallest patches on. One at least.
    pub fn candidates(pictures: &[Sheet]) -> Vec<Self> {
        let smallest = pictures.iter().map(|picture| picture.width.min(picture.height)).min().unwrap_or(1);
        let planes = pictures.iter().map(|picture| picture.planes.len()).max().unwrap_or(1);
        let fits = |side: u32| {
            let side = side as usize;
            side * LEAST_SIDES <= smallest && side * side * planes <= MOST_DIMS
        };
        let sides = SIDES.into_iter().enumerate().filter(|&(at, side)| at == 0 || fits(side));
        sides.map(|(_, side)| Self::of(pictures, side)).collect()
    }

    /// For these pictures with patches of this size; the noise is that of the noisiest.
    pub fn of(pictures: &[Sheet], side: u32) -> Self {
        let (noise, contrast) = noise_and_contrast(pictures);
        let row = ROWS.iter().find(|(most, _)| noise <= most * contrast);
        Self::with(pictures, side, row.map_or(ROWS[1].1, |(_, row)| *row))
    }

    /// For a picture with NaN for pixels that are missing, with patches of this size if one is given.
    pub fn with_holes(pictures: &[Sheet], side: Option<u32>) -> Self {
        let all = || pictures.iter().flat_map(|picture| &picture.planes).flatten();
        let missing = all().filter(|value| value.is_nan()).count() as f64 / all().count().max(1) as f64;
        let row = HOLES.iter().find(|(most, _)| missing <= *most);
        let (by_default, row) = row.map_or(HOLES[1].1, |(_, row)| *row);
        Self::with(pictures, side.unwrap_or(by_default), row)
    }

    /// With a latent for so many patches, but no more than `most`.
    fn with(pictures: &[Sheet], side: u32, (for_each, most): Row) -> Self {
        let (noise, contrast) = noise_and_contrast(pictures);
        let smallest = pictures.iter().map(|picture| picture.width.min(picture.height)).min().unwrap_or(1);
        let side = side.min(smallest as u32).max(1);
        let count = |step: usize| -> usize {
            let along = |extent: usize| extent.saturating_sub(side as usize) / step + 1;
            pictures.iter().map(|picture| along(picture.width) * along(picture.height)).sum()
        };
        let step = (1..side.max(2) / 2).find(|&step| count(step as usize) <= MOST).unwrap_or(side.max(2) / 2);
        let planes = pictures.iter().map(|picture| picture.planes.len()).max().unwrap_or(1);
        let dims = (side * side) as usize * planes;
        let patches = count(step as usize);
        let latents = ((patches / for_each).min(most) / 64 * 64).max((dims * 3 / 2).min(most));
        // Many small steps find more than few large ones, but each takes as long as the patches of about as many latents do.
        let batch = (patches / 40).max(latents).min(patches / 5).max(1);
        Self { noise, contrast, side, step, latents: latents as u16, batch }
    }
}

/// Standard deviations of the noise, and of the pictures without it.
fn noise_and_contrast(pictures: &[Sheet]) -> (f64, f64) {
    let noise = pictures.iter().map(deviation).fold(0.0, f64::max);
    let variance = pictures.iter().map(variance).fold(0.0, f64::max);
    // A picture of noise alone has a contrast too, or there would be nothing to divide by.
    (noise, (variance - noise * noise).max(1e-4 * variance).sqrt())
}

/// Standard deviation of white noise in a picture: the median over all of its planes; 0 where there are no 3 x 3 pixels.
pub fn deviation(picture: &Sheet) -> f64 {
    let (width, height) = (picture.width, picture.height);
    let mut seen = Vec::new();
    for plane in &picture.planes {
        for y in 1..height.saturating_sub(1) {
            for x in 1..width.saturating_sub(1) {
                let at = |dx: usize, dy: usize| plane[(y + dy - 1) * width + x + dx - 1];
                let along = |dy: usize| at(0, dy) - 2.0 * at(1, dy) + at(2, dy);
                seen.push((along(0) - 2.0 * along(1) + along(2)).abs());
            }
        }
    }
    // Where pixels are missing there is no difference.
    let is_punched = seen.iter().any(|r| r.is_nan());
    seen.retain(|r| !r.is_nan());
    let mut length = 6.0;
    if is_punched && seen.len() < FEW {
        // Of most pixels: first differences, which smooth parts leave something of.
        seen.clear();
        length = 2.0f64.sqrt();
        for plane in &picture.planes {
            seen.extend(
                plane.chunks_exact(width).flat_map(|row| row.windows(2).map(|w| (w[1] - w[0]).abs())),
            );
            seen.extend(plane.iter().zip(plane.iter().skip(width)).map(|(a, b)| (b - a).abs()));
        }
        seen.retain(|r| !r.is_nan());
    }
    if seen.is_empty() {
        return 0.0;
    }
    let middle = seen.len() / 2;
    *seen.select_nth_unstable_by(middle, f64::total_cmp).1 / (0.674_489_750_196_081_7 * length)
}

/// Variance of all pixels about the mean of their plane.
fn variance(picture: &Sheet) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for plane in &picture.planes {
        let seen = || plane.iter().filter(|value| !value.is_nan());
        let mean = seen().sum::<f64>() / seen().count().max(1) as f64;
        sum += seen().map(|value| (value - mean).powi(2)).sum::<f64>();
        count += seen().count();
    }
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SheetKind;
    use spikelet::rng::Rng;

    /// Squares of two greys, with noise.
    fn squares(size: usize, noise: f64, units: f64) -> Sheet {
        let mut rng = Rng::new(5);
        let value = |i: usize| if (i % size / 16 + i / size / 16).is_multiple_of(2) { 60.0 } else { 180.0 };
        let plane = (0..size * size).map(|i| units * (value(i) + noise * rng.normal::<f64>())).collect();
        let kind = SheetKind::Array { colours: false };
        Sheet { kind, width: size, height: size, planes: vec![plane] }
    }

    #[test]
    fn noise_is_told_from_edges() {
        for noise in [0.0, 5.0, 20.0, 60.0] {
            let found = deviation(&squares(128, noise, 1.0));
            assert!((found - noise).abs() <= 0.06 * noise, "{found} for {noise}");
        }
    }

    #[test]
    fn sizes_follow_the_noise_in_any_units() {
        let found = |pictures: &[Sheet]| -> Vec<_> {
            let sizes = Sizes::candidates(pictures);
            sizes.iter().map(|sizes| (sizes.side, sizes.step, sizes.latents)).collect()
        };
        for units in [1.0, 1.0 / 255.0, 1000.0] {
            let sides = SIDES.map(|side| (side, 1));
            for (noise, latents) in [(10.0, 960), (40.0, 960), (70.0, 448)] {
                let expected = sides.map(|(side, step)| (side, step, latents)).to_vec();
                let found = found(&[squares(256, noise, units)]);
                assert_eq!(found[1..], expected[1..]);
                assert_eq!(found[0].0, 8);
            }
        }
        // A large picture is learned from a part of its patches, a small one has few latents and one size, a tiny one small patches.
        assert_eq!(found(&[squares(512, 10.0, 1.0)])[0].1, 2);
        assert_eq!(found(&[squares(48, 10.0, 1.0)]), [(8, 1, 96)]);
        assert_eq!(found(&[squares(5, 10.0, 1.0)])[0].0, 5);
        assert_eq!(Sizes::of(&[squares(256, 10.0, 1.0)], 12).side, 12);
        // Colours make patches larger by themselves.
        let mut colours = squares(256, 10.0, 1.0);
        colours.planes = vec![colours.planes[0].clone(); 3];
        assert_eq!(found(&[colours]).len(), 2);
    }

    #[test]
    fn noise_is_told_where_pixels_are_missing() {
        let mut rng = Rng::new(9);
        for part in [0.3, 0.8] {
            let mut picture = squares(128, 20.0, 1.0);
            picture.planes[0].iter_mut().filter(|_| rng.uniform::<f64>() < part).for_each(|v| *v = f64::NAN);
            let found = deviation(&picture);
            assert!((found / 20.0 - 1.0).abs() < 0.15, "{found}");
        }
    }
}
