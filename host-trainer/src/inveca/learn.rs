//! Sums over posteriors, the M-step, and objects to begin with.

use super::Objects;
use spikelet::rng::Rng;

/// Windows that every first object is chosen from.
const TRIED: usize = 8;
/// Squared distance, of an object's own square, below which another one looks like it.
const ALIKE: f64 = 0.1;
/// Masks stay this far from 0 and 1.
const MARGIN: f64 = 1e-3;

/// Sums for an M-step.
#[derive(Clone, Debug)]
pub struct Sums {
    pub(super) images: f64,
    pub(super) present: Vec<f64>,
    pub(super) owned: Vec<f64>,
    pub(super) seen: Vec<f64>,
    pub(super) squares: Vec<f64>,
    pub(super) held: Vec<f64>,
    pub(super) background: (f64, f64),
    /// ln p of all images over the kept states.
    pub evidence: f64,
}

impl Objects {
    /// Nothing summed yet.
    pub fn sums(&self) -> Sums {
        let pixels = || vec![0.0; self.masks.len()];
        Sums {
            images: 0.0,
            present: vec![0.0; self.count()],
            owned: pixels(),
            seen: pixels(),
            squares: pixels(),
            held: pixels(),
            background: (0.0, 0.0),
            evidence: 0.0,
        }
    }

    /// The M-step, with variances of at least `floor`. Objects that are hardly ever present stay.
    pub fn learn(&mut self, sums: &Sums, floor: f64) {
        let size = self.side * self.side;
        for at in 0..self.masks.len() {
            let present = sums.present[at / size];
            if present > 1e-3 {
                self.masks[at] = (sums.held[at] / present).clamp(MARGIN, 1.0 - MARGIN);
            }
            if sums.owned[at] > 1e-6 {
                self.features[at] = sums.seen[at] / sums.owned[at];
            }
        }
        let (mut miss, mut owned) = (0.0, 0.0);
        for at in 0..self.masks.len() {
            let w = self.features[at];
            miss += sums.squares[at] - 2.0 * w * sums.seen[at] + w * w * sums.owned[at];
            owned += sums.owned[at];
        }
        if owned > 0.0 {
            self.noise = (miss / owned).max(floor);
        }
        if sums.background.1 > 0.0 {
            self.background_noise = (sums.background.0 / sums.background.1).max(floor);
        }
        for (pi, present) in self.prior.iter_mut().zip(&sums.present) {
            *pi = (present / sums.images).clamp(1e-4, 0.9);
        }
    }

    /// First objects: windows of the images that stand alone on the background, far from each other (as k-means++ chooses), of a
    /// few that are drawn the one that most others are near: two objects in one window are far from all others, too, but nothing
    /// is near them. Windows where little is to be seen do not count.
    pub fn first(
        images: &[f64],
        canvas: usize,
        side: usize,
        count: usize,
        background: f64,
        rng: &mut Rng,
    ) -> Self {
        let variance = images.iter().map(|y| (y - background).powi(2)).sum::<f64>() / images.len() as f64;
        let mut objects = Self {
            side,
            canvas,
            masks: vec![0.5; count * side * side],
            features: vec![background; count * side * side],
            prior: vec![0.2; count],
            noise: 0.1 * variance,
            background,
            background_noise: 0.1 * variance,
        };
        let windows = objects.windows(images);
        let mut nearest = vec![f64::INFINITY; windows.len()];
        for h in 0..count.min(windows.len()) {
            let window = choose(&windows, &mut nearest, rng);
            objects.begin(h, window, variance.sqrt());
        }
        objects
    }

    /// Begins anew with objects that are present in less than `least` of the images, or look like another one: they get windows
    /// that no object looks like. How many there were.
    pub fn replace_unused(&mut self, images: &[f64], least: f64, rng: &mut Rng) -> usize {
        let size = self.side * self.side;
        let looks = |h: usize| -> Vec<f64> {
            let seen = |at: usize| self.background + self.masks[at] * (self.features[at] - self.background);
            (h * size..(h + 1) * size).map(seen).collect()
        };
        let all: Vec<Vec<f64>> = (0..self.count()).map(looks).collect();
        let power = |looks: &[f64]| looks.iter().map(|y| (y - self.background).powi(2)).sum::<f64>();
        let is_spare = |h: usize| {
            let before = all[..h].iter().any(|other| self.apart(other, &all[h]) < ALIKE * power(&all[h]));
            self.prior[h] < least || before
        };
        let spare: Vec<usize> = (0..self.count()).filter(|&h| is_spare(h)).collect();
        let windows = self.windows(images);
        let others = || all.iter().enumerate().filter(|(h, _)| !spare.contains(h));
        let near =
            |window: &Vec<f64>| others().map(|(_, o)| self.apart(o, window)).fold(f64::INFINITY, f64::min);
        let mut nearest: Vec<f64> = windows.iter().map(near).collect();
        let variance =
            images.iter().map(|y| (y - self.background).powi(2)).sum::<f64>() / images.len() as f64;
        for &h in spare.iter().take(windows.len()) {
            let window = choose(&windows, &mut nearest, rng);
            self.begin(h, window, variance.sqrt());
            self.prior[h] = 0.2;
        }
        spare.len()
    }

    /// Windows that stand alone, of every image that has one.
    fn windows(&self, images: &[f64]) -> Vec<Vec<f64>> {
        images
            .chunks_exact(self.canvas * self.canvas)
            .filter_map(|image| self.standing_alone(image))
            .collect()
    }

    /// Makes a window an object, opaque where it differs from the background by half of `seen`.
    fn begin(&mut self, h: usize, window: &[f64], seen: f64) {
        let size = self.side * self.side;
        for (j, y) in window.iter().enumerate() {
            self.masks[h * size + j] = if (y - self.background).abs() > 0.5 * seen { 0.9 } else { 0.1 };
        }
        self.features[h * size..][..size].copy_from_slice(window);
    }

    /// Squared distance of what two objects look like, one of them moved by at most a pixel.
    fn apart(&self, a: &[f64], b: &[f64]) -> f64 {
        let side = self.side as i64;
        let value = |looks: &[f64], row: i64, column: i64| match (0..side).contains(&row)
            && (0..side).contains(&column)
        {
            true => looks[(row * side + column) as usize],
            false => self.background,
        };
        let moved = |down: i64, right: i64| -> f64 {
            let pixels = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
            pixels.map(|(r, c)| (value(a, r, c) - value(b, r + down, c + right)).powi(2)).sum()
        };
        let shifts = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right)));
        shifts.map(|(down, right)| moved(down, right)).fold(f64::INFINITY, f64::min)
    }

    /// The window of an image with the most to see inside and the least around it, if there is one worth it.
    fn standing_alone(&self, image: &[f64]) -> Option<Vec<f64>> {
        let power = |i: usize| (image[i] - self.background).powi(2);
        let mut best = (0.0, None);
        let total: f64 = (0..image.len()).map(power).sum::<f64>() / image.len() as f64;
        for position in 0..self.positions() {
            let inside: f64 = (0..self.side * self.side).map(|j| power(self.pixel(position, j))).sum();
            let (row, column) = (position / self.places(), position % self.places());
            let mut around = 0.0;
            for r in row.saturating_sub(1)..(row + self.side + 1).min(self.canvas) {
                for c in column.saturating_sub(1)..(column + self.side + 1).min(self.canvas) {
                    let is_inside =
                        (row..row + self.side).contains(&r) && (column..column + self.side).contains(&c);
                    around += if is_inside { 0.0 } else { power(r * self.canvas + c) };
                }
            }
            let merit = inside - 10.0 * around;
            if merit > best.0 && inside > 0.3 * total * (self.side * self.side) as f64 {
                best = (merit, Some(position));
            }
        }
        let position = best.1?;
        Some((0..self.side * self.side).map(|j| image[self.pixel(position, j)]).collect())
    }
}

/// A window far from those chosen already, as k-means++ draws it; of a few the one that most others are near. `nearest` is the
/// squared distance of each from the nearest that was chosen.
fn choose<'a>(windows: &'a [Vec<f64>], nearest: &mut Vec<f64>, rng: &mut Rng) -> &'a [f64] {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let is_first = nearest.iter().all(|d| d.is_infinite());
    let total: f64 = nearest.iter().filter(|d| d.is_finite()).sum();
    let mut best = (f64::INFINITY, 0, Vec::new());
    for _ in 0..if is_first { 1 } else { TRIED } {
        let mut left = rng.uniform::<f64>() * total;
        let past = |d: &f64| {
            left -= d;
            left < 0.0
        };
        let any = ((rng.uniform::<f64>() * windows.len() as f64) as usize).min(windows.len() - 1);
        let at = if is_first { any } else { nearest.iter().position(past).unwrap_or(any) };
        let to = |(near, other): (&f64, &Vec<f64>)| near.min(apart(other, &windows[at]));
        let closer: Vec<f64> = nearest.iter().zip(windows).map(to).collect();
        let sum: f64 = closer.iter().sum();
        if best.2.is_empty() || sum < best.0 {
            best = (sum, at, closer);
        }
    }
    *nearest = best.2;
    &windows[best.1]
}
