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
//! | sigma / contrast | patch | latents | why |
//! |---|---|---|---|
//! | below 1/2 | 8 x 8 | one for 30 patches, up to 2048 | a latent may have what few patches show: what is seldom is kept |
//! | above | 10 x 10 | one for 60 patches, up to 1024 | noise can only be averaged over more pixels, and few patches teach a latent noise |
//!
//! Both rows were chosen on two pictures (cameraman and peppers), the experiment `pictures` reports others. Where patches are more than `MOST`, every
//! second one or fewer is learned from: neighbours say nearly the same.

use crate::data::Sheet;

/// Patches to learn from, about.
const MOST: usize = 100_000;

/// Relative noise from which on it counts as strong.
const STRONG: f64 = 0.5;

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

impl Sizes {
    /// For these pictures, the noise being that of the noisiest; with patches of this size if one is given.
    pub fn of(pictures: &[Sheet], side: Option<u32>) -> Self {
        let noise = pictures.iter().map(deviation).fold(0.0, f64::max);
        let variance = pictures.iter().map(variance).fold(0.0, f64::max);
        // A picture of noise alone has a contrast too, or there would be nothing to divide by.
        let contrast = (variance - noise * noise).max(1e-4 * variance).sqrt();
        let is_strong = noise > STRONG * contrast;
        let smallest = pictures.iter().map(|picture| picture.width.min(picture.height)).min().unwrap_or(1);
        let side = side.unwrap_or(if is_strong { 10 } else { 8 }).min(smallest as u32).max(1);
        let count = |step: usize| -> usize {
            let along = |extent: usize| extent.saturating_sub(side as usize) / step + 1;
            pictures.iter().map(|picture| along(picture.width) * along(picture.height)).sum()
        };
        let step = (1..side.max(2) / 2).find(|&step| count(step as usize) <= MOST).unwrap_or(side.max(2) / 2);
        let planes = pictures.iter().map(|picture| picture.planes.len()).max().unwrap_or(1);
        let dims = (side * side) as usize * planes;
        let (for_each, most) = if is_strong { (60, 1024) } else { (30, 2048) };
        let patches = count(step as usize);
        let latents = ((patches / for_each).min(most) / 64 * 64).max((dims * 3 / 2).min(most));
        // Many small steps find more than few large ones, but each takes as long as the patches of about as many latents do.
        let batch = (patches / 40).max(latents).min(patches / 5).max(1);
        Self { noise, contrast, side, step, latents: latents as u16, batch }
    }
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
    seen.retain(|r| !r.is_nan());
    if seen.is_empty() {
        return 0.0;
    }
    let middle = seen.len() / 2;
    *seen.select_nth_unstable_by(middle, f64::total_cmp).1 / (0.674_489_750_196_081_7 * 6.0)
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
        for units in [1.0, 1.0 / 255.0, 1000.0] {
            let weak = Sizes::of(&[squares(256, 10.0, units)], None);
            assert_eq!((weak.side, weak.step, weak.latents), (8, 1, 2048));
            let strong = Sizes::of(&[squares(256, 60.0, units)], None);
            assert_eq!((strong.side, strong.step, strong.latents), (10, 1, 960));
        }
        // A large picture is learned from a part of its patches, a small one has few latents, a tiny one small patches.
        assert_eq!(Sizes::of(&[squares(512, 10.0, 1.0)], None).step, 2);
        assert_eq!(Sizes::of(&[squares(48, 10.0, 1.0)], None).latents, 96);
        assert_eq!(Sizes::of(&[squares(5, 10.0, 1.0)], None).side, 5);
        assert_eq!(Sizes::of(&[squares(256, 10.0, 1.0)], Some(12)).side, 12);
    }
}
