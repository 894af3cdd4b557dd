//! Invariant occluding objects, InvECA [004 sec. 4.5.3, after Dai and Lücke 2012]: objects that may be anywhere in an image and hide each other.
//!
//! The thesis names the parts of the model and refers elsewhere for its equations; this is the form that is implemented. Object h of s x s
//! pixels has a mask m_h(j) in \[0, 1\] and features W_h(j). In an image it is present with probability pi_h, at a position x_h that is uniform
//! over all where it fits. A pixel i belongs to the front-most of the present objects whose masks hold there, each with its probability m = m_h(i - x_h)
//! and at a depth that is uniform and independent for each pixel, or to the background:
//!
//! ```text
//! p(y_i | present, x) = sum_h w_h N(y_i; W_h(i - x_h), sigma^2) + w_0 N(y_i; b, sigma_0^2)
//! w_h = m_h int_0^1 prod_{k != h} (1 - u m_k) du          w_0 = prod_h (1 - m_h)
//! ```
//!
//! The posterior of an image is taken over kept states: every selected object absent, or at one of its candidate positions ([`locate`]).
//! M-step, with r_h the probability that object h owns a pixel and a_h that its mask holds there, sums over images, states and pixels:
//!
//! ```text
//! pi_h = mean present     W_h(j) = sum r_h y / sum r_h     m_h(j) = sum a_h / sum present
//! sigma^2 = sum r_h (y - W_h)^2 / sum r_h                  sigma_0^2 = sum r_0 (y - b)^2 / sum r_0
//! p(owner k, mask of h holds) = m_k m_h int_0^1 (1 - u) prod_{l != k, h} (1 - u m_l) du        h is behind k
//! ```
//!
//! Over all states the likelihood never falls (`tests/inveca.rs`, which also has the shares by enumeration). Work per image: S positions x H x s^2 for a scan, and
//! the product over selected objects of (1 + positions) states of at most H' s^2 pixels each.

pub mod locate;

use spikelet::rng::Rng;

/// Masks stay this far from 0 and 1.
const MARGIN: f64 = 1e-3;
/// States below this probability add nothing to the M-step.
const NEGLIGIBLE: f64 = 1e-9;
/// Most objects in one state.
pub const MOST: usize = 8;

/// The parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// s: an object has s x s pixels.
    pub side: usize,
    /// An image has canvas x canvas pixels.
    pub canvas: usize,
    /// m. (H x s^2)
    pub masks: Vec<f64>,
    /// W. (H x s^2)
    pub features: Vec<f64>,
    /// pi. (H)
    pub prior: Vec<f64>,
    /// sigma^2.
    pub noise: f64,
    /// b.
    pub background: f64,
    /// sigma_0^2.
    pub background_noise: f64,
}

/// An object at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which.
    pub object: usize,
    /// The place of its first pixel: row times positions per row plus column.
    pub position: usize,
}

/// What one image says.
#[derive(Clone, Debug, Default)]
pub struct Posterior {
    /// ln of the sum over kept states.
    pub evidence: f64,
    /// Probability of every candidate.
    pub placed: Vec<(Placed, f64)>,
}

/// Sums for an M-step.
#[derive(Clone, Debug)]
pub struct Sums {
    images: f64,
    present: Vec<f64>,
    owned: Vec<f64>,
    seen: Vec<f64>,
    squares: Vec<f64>,
    held: Vec<f64>,
    background: (f64, f64),
    /// ln p of all images over the kept states.
    pub evidence: f64,
}

/// int_0^1 prod (1 - u f) du.
fn integral(factors: impl Iterator<Item = f64>) -> f64 {
    let mut powers = [0.0; MOST + 2];
    powers[0] = 1.0;
    let mut degree = 0;
    for factor in factors {
        for i in (0..=degree).rev() {
            powers[i + 1] -= factor * powers[i];
        }
        degree += 1;
    }
    (0..=degree).map(|i| powers[i] / (i + 1) as f64).sum()
}

/// w_h of the objects whose masks at a pixel are given, and w_0.
pub fn shares(masks: &[f64]) -> (Vec<f64>, f64) {
    let others = |h: usize| masks.iter().enumerate().filter(move |(k, _)| *k != h).map(|(_, m)| *m);
    let own = masks.iter().enumerate().map(|(h, m)| m * integral(others(h))).collect();
    (own, masks.iter().map(|m| 1.0 - m).product())
}

/// A candidate on one image: for each pixel, its place on the canvas and ln N(y; W, sigma^2) - ln N(y; b, sigma_0^2).
struct Candidate {
    placed: Placed,
    ratios: Vec<f64>,
    /// ln of what the pixels gain if it is alone.
    alone: f64,
}

impl Objects {
    /// H.
    pub fn count(&self) -> usize {
        self.prior.len()
    }

    /// Positions per row.
    pub fn places(&self) -> usize {
        self.canvas + 1 - self.side
    }

    /// Positions of an object.
    pub fn positions(&self) -> usize {
        self.places() * self.places()
    }

    /// Where pixel j of an object lies on the canvas.
    fn pixel(&self, position: usize, j: usize) -> usize {
        let (row, column) = (position / self.places(), position % self.places());
        (row + j / self.side) * self.canvas + column + j % self.side
    }

    /// ln N(y; W_h(j), sigma^2) - ln N(y; b, sigma_0^2).
    fn log_ratio(&self, object: usize, j: usize, y: f64) -> f64 {
        let off = y - self.features[object * self.side * self.side + j];
        let back = y - self.background;
        0.5 * (back * back / self.background_noise - off * off / self.noise
            + (self.background_noise / self.noise).ln())
    }

    /// ln(m e^l + 1 - m): what a pixel gains under one object alone.
    fn alone(&self, object: usize, j: usize, y: f64) -> f64 {
        let m = self.masks[object * self.side * self.side + j];
        let l = self.log_ratio(object, j, y);
        let most = l.max(0.0);
        most + (m * (l - most).exp() + (1.0 - m) * (-most).exp()).ln()
    }

    fn candidate(&self, image: &[f64], placed: Placed) -> Candidate {
        let pixels = 0..self.side * self.side;
        let y = |j: usize| image[self.pixel(placed.position, j)];
        let ratios = pixels.clone().map(|j| self.log_ratio(placed.object, j, y(j))).collect();
        let alone = pixels.map(|j| self.alone(placed.object, j, y(j))).sum();
        Candidate { placed, ratios, alone }
    }

    /// ln of the background alone.
    fn background_log(&self, image: &[f64]) -> f64 {
        let square: f64 = image.iter().map(|y| (y - self.background).powi(2)).sum();
        -0.5 * (square / self.background_noise
            + image.len() as f64 * (std::f64::consts::TAU * self.background_noise).ln())
    }

    fn overlap(&self, a: Placed, b: Placed) -> bool {
        let p = self.places();
        (a.position / p).abs_diff(b.position / p) < self.side
            && (a.position % p).abs_diff(b.position % p) < self.side
    }

    /// The objects of a state at every pixel that one of them covers: (member of the state, pixel j of it).
    fn covered(&self, state: &[&Candidate], cover: &mut [Vec<(usize, usize)>]) -> Vec<usize> {
        let mut pixels = Vec::new();
        for (member, candidate) in state.iter().enumerate() {
            for j in 0..self.side * self.side {
                let i = self.pixel(candidate.placed.position, j);
                if cover[i].is_empty() {
                    pixels.push(i);
                }
                cover[i].push((member, j));
            }
        }
        pixels
    }

    fn mask(&self, state: &[&Candidate], (member, j): (usize, usize)) -> f64 {
        self.masks[state[member].placed.object * self.side * self.side + j]
    }

    /// ln p(y | state) - ln p(y | nothing present).
    fn gain(&self, state: &[&Candidate], cover: &mut [Vec<(usize, usize)>]) -> f64 {
        let apart = |at: usize| state[..at].iter().all(|other| !self.overlap(other.placed, state[at].placed));
        if (1..state.len()).all(apart) {
            return state.iter().map(|candidate| candidate.alone).sum();
        }
        let mut sum = 0.0;
        for i in self.covered(state, cover) {
            let masks: Vec<f64> = cover[i].iter().map(|&at| self.mask(state, at)).collect();
            let (own, none) = shares(&masks);
            let ratio = |&(member, j): &(usize, usize)| state[member].ratios[j];
            let most = cover[i].iter().map(ratio).fold(0.0, f64::max);
            let parts = cover[i].iter().zip(&own).map(|(at, w)| w * (ratio(at) - most).exp()).sum::<f64>();
            sum += most + (parts + none * (-most).exp()).ln();
            cover[i].clear();
        }
        sum
    }

    /// The posterior of an image over states of these candidates, one list of positions for each selected object; sums are added to.
    pub fn infer(
        &self,
        image: &[f64],
        selected: &[(usize, Vec<usize>)],
        mut sums: Option<&mut Sums>,
    ) -> Posterior {
        let selected = &selected[..selected.len().min(MOST)];
        let candidates: Vec<Vec<Candidate>> = selected
            .iter()
            .map(|(object, positions)| {
                positions
                    .iter()
                    .map(|&position| self.candidate(image, Placed { object: *object, position }))
                    .collect()
            })
            .collect();
        let nobody: f64 = self.prior.iter().map(|pi| (1.0 - pi).ln()).sum();
        let base = nobody + self.background_log(image);
        let logit = |object: usize| {
            let pi = self.prior[object];
            pi.ln() - (1.0 - pi).ln() - (self.positions() as f64).ln()
        };
        let mut cover = vec![Vec::new(); self.canvas * self.canvas];
        // Every state is a number with one digit for each object: 0 absent, else which position.
        let count: usize = candidates.iter().map(|positions| 1 + positions.len()).product();
        let state = |mut number: usize| -> Vec<&Candidate> {
            let mut state = Vec::new();
            for positions in &candidates {
                let digit = number % (1 + positions.len());
                number /= 1 + positions.len();
                state.extend(digit.checked_sub(1).map(|digit| &positions[digit]));
            }
            state
        };
        let joints: Vec<f64> = (0..count)
            .map(|number| {
                let state = state(number);
                self.gain(&state, &mut cover) + state.iter().map(|c| logit(c.placed.object)).sum::<f64>()
            })
            .collect();
        let most = joints.iter().fold(f64::NEG_INFINITY, |most, joint| most.max(*joint));
        let total = most + joints.iter().map(|joint| (joint - most).exp()).sum::<f64>().ln();
        let mut placed: Vec<(Placed, f64)> = candidates.iter().flatten().map(|c| (c.placed, 0.0)).collect();
        if let Some(sums) = &mut sums {
            sums.images += 1.0;
            sums.evidence += base + total;
            sums.background.0 += image.iter().map(|y| (y - self.background).powi(2)).sum::<f64>();
            sums.background.1 += image.len() as f64;
        }
        for (number, joint) in joints.iter().enumerate() {
            let q = (joint - total).exp();
            if q < NEGLIGIBLE {
                continue;
            }
            let state = state(number);
            for candidate in &state {
                for (_, sum) in placed.iter_mut().filter(|(placed, _)| *placed == candidate.placed) {
                    *sum += q;
                }
            }
            if let Some(sums) = &mut sums {
                self.add(image, &state, q, &mut cover, sums);
            }
        }
        Posterior { evidence: base + total, placed }
    }

    /// Adds a state of probability q to the sums.
    fn add(
        &self,
        image: &[f64],
        state: &[&Candidate],
        q: f64,
        cover: &mut [Vec<(usize, usize)>],
        sums: &mut Sums,
    ) {
        let size = self.side * self.side;
        state.iter().for_each(|candidate| sums.present[candidate.placed.object] += q);
        for i in self.covered(state, cover) {
            let masks: Vec<f64> = cover[i].iter().map(|&at| self.mask(state, at)).collect();
            let (own, none) = shares(&masks);
            let ratio = |&(member, j): &(usize, usize)| state[member].ratios[j];
            let most = cover[i].iter().map(ratio).fold(0.0, f64::max);
            let parts: Vec<f64> =
                cover[i].iter().zip(&own).map(|(at, w)| w * (ratio(at) - most).exp()).collect();
            let nothing = none * (-most).exp();
            let whole = parts.iter().sum::<f64>() + nothing;
            for (h, &(member, j)) in cover[i].iter().enumerate() {
                let at = state[member].placed.object * size + j;
                let r = q * parts[h] / whole;
                sums.owned[at] += r;
                sums.seen[at] += r * image[i];
                sums.squares[at] += r * image[i] * image[i];
                // Its own pixel, or hidden behind the owner.
                let mut held = r;
                for (k, part) in parts.iter().enumerate().filter(|(k, _)| *k != h) {
                    let rest = masks.iter().enumerate().filter(|(l, _)| *l != k && *l != h).map(|(_, m)| *m);
                    let behind = masks[k] * masks[h] * integral(rest.chain([1.0]));
                    held += q * part / whole * behind / own[k].max(f64::MIN_POSITIVE);
                }
                sums.held[at] += held;
            }
            let owned = q * (1.0 - nothing / whole);
            sums.background.0 -= owned * (image[i] - self.background).powi(2);
            sums.background.1 -= owned;
            cover[i].clear();
        }
    }

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

    /// First objects: windows of the images that stand alone on the background, far from each other (as k-means++ chooses). Windows where little
    /// is to be seen do not count.
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
        let windows: Vec<Vec<f64>> =
            images.chunks_exact(canvas * canvas).filter_map(|image| objects.standing_alone(image)).collect();
        let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let mut nearest = vec![f64::INFINITY; windows.len()];
        for h in 0..count.min(windows.len()) {
            let total: f64 = nearest.iter().filter(|d| d.is_finite()).sum();
            let mut left = rng.uniform::<f64>() * total;
            let past = |d: &f64| {
                left -= d;
                left < 0.0
            };
            let any = ((rng.uniform::<f64>() * windows.len() as f64) as usize).min(windows.len() - 1);
            let chosen = if h == 0 { any } else { nearest.iter().position(past).unwrap_or(any) };
            let window = windows[chosen].clone();
            for (near, other) in nearest.iter_mut().zip(&windows) {
                *near = near.min(apart(other, &window));
            }
            let size = side * side;
            let seen = variance.sqrt();
            for (j, y) in window.iter().enumerate() {
                objects.masks[h * size + j] = if (y - background).abs() > 0.5 * seen { 0.9 } else { 0.1 };
            }
            objects.features[h * size..][..size].copy_from_slice(&window);
        }
        objects
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
