//! The posterior of an image: every selected object is absent or at one of its candidate positions.
//!
//! Pixels that one object covers gain what they gain if it is alone, which is computed once for each candidate; only pixels under
//! two or more are looked at again in every state.

use super::{MOST, Objects, Placed, Posterior, Sums, integral, shares};

/// States below this probability add nothing to the M-step.
const NEGLIGIBLE: f64 = 1e-9;

/// A candidate on one image, pixel by pixel of the object.
struct Candidate {
    placed: Placed,
    /// Where the pixel lies on the canvas.
    pixels: Vec<usize>,
    /// ln N(y; W, sigma^2) - ln N(y; b, sigma_0^2).
    ratios: Vec<f64>,
    /// What the pixel gains if the object is alone, and their sum.
    gains: Vec<f64>,
    alone: f64,
    /// ln of the odds that it is here.
    logit: f64,
}

/// Which members of a state cover each pixel, and which pixel of theirs it is.
struct Cover {
    counts: Vec<u8>,
    members: Vec<[(u8, u16); MOST]>,
    /// Pixels with a cover.
    touched: Vec<usize>,
}

impl Cover {
    fn new(pixels: usize) -> Self {
        Self { counts: vec![0; pixels], members: vec![[(0, 0); MOST]; pixels], touched: Vec::new() }
    }

    fn fill(&mut self, state: &[&Candidate]) {
        for (member, candidate) in state.iter().enumerate() {
            for (j, &i) in candidate.pixels.iter().enumerate() {
                let count = usize::from(self.counts[i]);
                if count == 0 {
                    self.touched.push(i);
                }
                self.members[i][count] = (member as u8, j as u16);
                self.counts[i] += 1;
            }
        }
    }

    fn at(&self, pixel: usize) -> &[(u8, u16)] {
        &self.members[pixel][..usize::from(self.counts[pixel])]
    }

    fn clear(&mut self) {
        self.touched.drain(..).for_each(|i| self.counts[i] = 0);
    }
}

/// A pixel under some members of a state: e^-most times the density ratios of its owners and of the background.
struct Pixel {
    masks: [f64; MOST],
    own: [f64; MOST],
    parts: [f64; MOST],
    nothing: f64,
    whole: f64,
    most: f64,
}

impl Objects {
    fn candidate(&self, image: &[f64], placed: Placed) -> Candidate {
        let size = self.side * self.side;
        let pixels: Vec<usize> = (0..size).map(|j| self.pixel(placed.position, j)).collect();
        let ratios =
            pixels.iter().enumerate().map(|(j, &i)| self.log_ratio(placed.object, j, image[i])).collect();
        let gains: Vec<f64> =
            pixels.iter().enumerate().map(|(j, &i)| self.alone(placed.object, j, image[i])).collect();
        let pi = self.prior[placed.object];
        let logit = pi.ln() - (1.0 - pi).ln() - (self.positions() as f64).ln();
        Candidate { placed, pixels, ratios, alone: gains.iter().sum(), gains, logit }
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

    fn mixed(&self, state: &[&Candidate], members: &[(u8, u16)]) -> Pixel {
        let size = self.side * self.side;
        let mut masks = [0.0; MOST];
        let mut parts = [0.0; MOST];
        let mut most: f64 = 0.0;
        for (at, &(member, j)) in members.iter().enumerate() {
            let candidate = state[usize::from(member)];
            masks[at] = self.masks[candidate.placed.object * size + usize::from(j)];
            parts[at] = candidate.ratios[usize::from(j)];
            most = most.max(parts[at]);
        }
        let (own, none) = shares(&masks[..members.len()]);
        let mut whole = none * (-most).exp();
        let nothing = whole;
        for (part, w) in parts.iter_mut().zip(&own).take(members.len()) {
            *part = w * (*part - most).exp();
            whole += *part;
        }
        Pixel { masks, own, parts, nothing, whole, most }
    }

    /// ln p(y | state) - ln p(y | nothing present).
    fn gain(&self, state: &[&Candidate], cover: &mut Cover) -> f64 {
        let mut sum: f64 = state.iter().map(|candidate| candidate.alone).sum();
        let apart = |at: usize| state[..at].iter().all(|other| !self.overlap(other.placed, state[at].placed));
        if (1..state.len()).all(apart) {
            return sum;
        }
        cover.fill(state);
        for members in cover.touched.iter().map(|&i| cover.at(i)).filter(|members| members.len() > 1) {
            let pixel = self.mixed(state, members);
            let alone = |&(member, j): &(u8, u16)| state[usize::from(member)].gains[usize::from(j)];
            sum += pixel.most + pixel.whole.ln() - members.iter().map(alone).sum::<f64>();
        }
        cover.clear();
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
        let mut cover = Cover::new(self.canvas * self.canvas);
        // Every state is a number with one digit for each object: 0 absent, else which position.
        let count: usize = candidates.iter().map(|positions| 1 + positions.len()).product();
        let state = |mut number: usize| -> Vec<&Candidate> {
            let mut state = Vec::with_capacity(candidates.len());
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
                self.gain(&state, &mut cover) + state.iter().map(|c| c.logit).sum::<f64>()
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
    fn add(&self, image: &[f64], state: &[&Candidate], q: f64, cover: &mut Cover, sums: &mut Sums) {
        let size = self.side * self.side;
        state.iter().for_each(|candidate| sums.present[candidate.placed.object] += q);
        cover.fill(state);
        for &i in &cover.touched {
            let members = cover.at(i);
            let Pixel { masks, own, parts, nothing, whole, .. } = self.mixed(state, members);
            let masks = &masks[..members.len()];
            for (h, &(member, j)) in members.iter().enumerate() {
                let at = state[usize::from(member)].placed.object * size + usize::from(j);
                let r = q * parts[h] / whole;
                sums.owned[at] += r;
                sums.seen[at] += r * image[i];
                sums.squares[at] += r * image[i] * image[i];
                // Its own pixel, or hidden behind the owner.
                let mut held = r;
                for k in (0..members.len()).filter(|&k| k != h) {
                    let rest = masks.iter().enumerate().filter(|(l, _)| *l != k && *l != h).map(|(_, m)| *m);
                    let behind = masks[k] * masks[h] * integral(rest.chain([1.0]));
                    held += q * parts[k] / whole * behind / own[k].max(f64::MIN_POSITIVE);
                }
                sums.held[at] += held;
            }
            let owned = q * (1.0 - nothing / whole);
            sums.background.0 -= owned * (image[i] - self.background).powi(2);
            sums.background.1 -= owned;
        }
        cover.clear();
    }
}
