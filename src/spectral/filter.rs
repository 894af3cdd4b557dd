//! One frame: which latent of each group is on, for one vector of gains.
#![allow(clippy::needless_range_loop)] // a group has an index in several arrays

use super::model::{MOST_SOURCES, SpectralModel};
use crate::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};

/// Backgrounds that latents are tried beside.
const PARTNERS: usize = 3;
/// Latents kept of a group, at most.
const MOST_KEPT: usize = 8;
/// States whose posterior is computed, at most: 8^2, 5^3 or 3^4.
const MOST_STATES: usize = 128;
/// The most probable states, which masks are made of.
pub(super) const PICKS: usize = 12;

/// Latents kept of each of so many groups.
const fn kept(groups: usize) -> usize {
    match groups {
        0..=2 => MOST_KEPT,
        3 => 5,
        _ => 3,
    }
}

/// A state that masks are made of: its weight among them, and the latent that is on in each group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pick {
    pub weight: f32,
    pub latents: [u16; MOST_SOURCES],
}

/// The best so far, the first of equals first.
#[derive(Clone, Copy, Debug)]
struct Best {
    index: [u16; MOST_KEPT],
    score: [f32; MOST_KEPT],
    len: usize,
    most: usize,
}

impl Best {
    fn of(most: usize) -> Self {
        Self { index: [0; MOST_KEPT], score: [0.0; MOST_KEPT], len: 0, most: most.min(MOST_KEPT) }
    }

    #[inline]
    fn offer(&mut self, index: usize, score: f32) {
        if self.len == self.most && !(score > at(&self.score, self.len.wrapping_sub(1))) {
            return;
        }
        let mut place = self.len.min(self.most.saturating_sub(1));
        while place > 0 && score > at(&self.score, place - 1) {
            let (index, score) = (self.latent(place - 1) as u16, at(&self.score, place - 1));
            set(&mut self.index, place, index);
            set(&mut self.score, place, score);
            place -= 1;
        }
        set(&mut self.index, place, index as u16);
        set(&mut self.score, place, score);
        self.len = (self.len + 1).min(self.most);
    }

    #[inline]
    fn latent(&self, place: usize) -> usize {
        self.index.get(place).copied().unwrap_or_default().into()
    }
}

/// Memory that every frame and filter works in.
#[derive(Debug)]
pub(super) struct Scratch<'m> {
    /// ln alpha of all latents. (H)
    pub expected: &'m mut [f32],
    /// W of one latent with its gain. (D)
    pub row: &'m mut [f32],
    /// What a latent is tried beside. (3 D)
    pub backgrounds: &'m mut [f32],
    /// W of the kept latents of the last group. (8 D)
    pub last: &'m mut [f32],
}

impl Scratch<'_> {
    /// Numbers of all of it.
    pub const fn len(dims: usize, latents: usize) -> usize {
        latents + (1 + PARTNERS + MOST_KEPT) * dims
    }
}

impl<'m> Scratch<'m> {
    pub fn cut(memory: &'m mut [f32], dims: usize, latents: usize) -> Option<Self> {
        let (expected, rest) = memory.split_at_mut_checked(latents)?;
        let (row, rest) = rest.split_at_mut_checked(dims)?;
        let (backgrounds, rest) = rest.split_at_mut_checked(PARTNERS * dims)?;
        let (last, _) = rest.split_at_mut_checked(MOST_KEPT * dims)?;
        Some(Self { expected, row, backgrounds, last })
    }
}

/// sum_d (v_d - max(w_d, background_d))^2, in four interleaved sums.
#[inline]
fn distance(v: &[f32], w: &[f32], background: &[f32]) -> f32 {
    let square = |v: f32, w: f32, b: f32| {
        let off = v - if w > b { w } else { b };
        off * off
    };
    let ((v4, v1), (w4, w1), (b4, b1)) =
        (v.as_chunks::<4>(), w.as_chunks::<4>(), background.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for ((v, w), b) in v4.iter().zip(w4).zip(b4) {
        for i in 0..4 {
            sums[i] += square(v[i], w[i], b[i]);
        }
    }
    for ((&v, &w), &b) in v1.iter().zip(w1).zip(b1) {
        sums[0] += square(v, w, b);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// The maximum, in place.
#[inline]
fn raise(to: &mut [f32], by: &[f32]) {
    for (to, &by) in to.iter_mut().zip(by) {
        if by > *to {
            *to = by;
        }
    }
}

/// What all of a frame shares.
#[derive(Debug)]
pub(super) struct Frame<'f> {
    pub model: &'f SpectralModel<'f>,
    /// v. (D)
    pub bands: &'f [f32],
    /// floor^p.
    pub floor: f32,
    /// 1 / (2 sigma^2).
    pub precision: f32,
}

impl Frame<'_> {
    /// One frame with the gains of a filter, g^p in `gains`. `posterior` holds q of all latents, of the frame before and then of this one. The
    /// result is ln sum_s e^{l_s}, nothing where that is not finite.
    pub fn step(
        &self,
        gains: &[f32; MOST_SOURCES],
        posterior: &mut [f32],
        scratch: &mut Scratch<'_>,
        picks: &mut [Pick; PICKS],
    ) -> Option<f32> {
        self.predict(posterior, scratch.expected);
        let chosen = self.select(gains, scratch);
        let (mut scores, mut digits) = ([0.0; MOST_STATES], [[0u8; MOST_SOURCES]; MOST_STATES]);
        let count = self.score(gains, &chosen, scratch, &mut scores, &mut digits);
        let (scores, digits) = (span_mut(&mut scores, 0, count), span(&digits, 0, count));
        let mut most = at(scores, 0);
        scores.iter().for_each(|&score| most = if score > most { score } else { most });
        let mut total = 0.0;
        for score in scores.iter_mut() {
            *score = Real::exp(*score - most);
            total += *score;
        }
        let evidence = most + Real::ln(total);
        if !evidence.is_finite() {
            return None;
        }
        posterior.fill(0.0);
        let sources = self.model.sources();
        let latent = |h: usize, digits: &[u8; MOST_SOURCES]| chosen[h].latent(digits[h].into());
        for (score, digits) in scores.iter_mut().zip(digits) {
            *score /= total;
            for (h, source) in sources.iter().enumerate().take(MOST_SOURCES) {
                let index = source.first + latent(h, digits);
                set(posterior, index, at(posterior, index) + *score);
            }
        }
        let mut sum = 0.0;
        for pick in picks.iter_mut() {
            let (mut place, mut weight) = (0, 0.0);
            for (i, &score) in scores.iter().enumerate() {
                if score > weight {
                    (place, weight) = (i, score);
                }
            }
            *pick = Pick { weight, ..Pick::default() };
            if let Some(digits) = digits.get(place) {
                for (h, source) in sources.iter().enumerate().take(MOST_SOURCES) {
                    pick.latents[h] = (source.first + latent(h, digits)) as u16;
                }
            }
            set(scores, place, 0.0);
            sum += weight;
        }
        picks.iter_mut().for_each(|pick| pick.weight /= sum);
        Some(evidence)
    }

    /// ln alpha = ln((1 - lambda) prior + lambda T^T q).
    fn predict(&self, posterior: &[f32], expected: &mut [f32]) {
        let (model, persistence) = (self.model, self.model.persistence());
        expected.fill(0.0);
        for source in model.sources() {
            // What successors leave goes to the prior.
            let mut left = 1.0 - persistence;
            let expected = span_mut(expected, source.first, source.latents);
            for (k, &q) in span(posterior, source.first, source.latents).iter().enumerate() {
                if q > 0.0 {
                    let share = persistence * q;
                    let mut given = 0;
                    for &[to, probability] in model.next(source.first + k) {
                        let to = usize::from(to);
                        set(
                            expected,
                            to,
                            at(expected, to) + share * (f32::from(probability) * (1.0 / 255.0)),
                        );
                        given += u32::from(probability);
                    }
                    left += share * (255u32.saturating_sub(given) as f32 * (1.0 / 255.0));
                }
            }
            for (k, expected) in expected.iter_mut().enumerate() {
                *expected = Real::ln(*expected + left * model.prior(source.first + k));
            }
        }
    }

    /// The latents of each group that fit best beside those of the others.
    fn select(&self, gains: &[f32; MOST_SOURCES], scratch: &mut Scratch<'_>) -> [Best; MOST_SOURCES] {
        let (model, dims) = (self.model, self.model.dims());
        let sources = model.sources();
        let Scratch { expected, row, backgrounds, .. } = scratch;
        let mut partners = [[0; PARTNERS]; MOST_SOURCES];
        for (h, source) in sources.iter().enumerate().take(MOST_SOURCES).skip(1) {
            span_mut(backgrounds, 0, dims).fill(self.floor);
            let (mut likely, mut alone) = (Best::of(PARTNERS - 1), Best::of(1));
            for k in 0..source.latents {
                let prior = at(expected, source.first + k);
                likely.offer(k, prior);
                model.row(source.first + k, gains[h], row);
                let off = distance(self.bands, row, span(backgrounds, 0, dims));
                alone.offer(k, prior - self.precision * off);
            }
            partners[h] = [likely.latent(0), likely.latent(1), alone.latent(0)];
        }
        let mut chosen = [Best::of(kept(sources.len())); MOST_SOURCES];
        for (h, source) in sources.iter().enumerate().take(MOST_SOURCES) {
            let mut weights = [0.0; PARTNERS];
            for (i, weight) in weights.iter_mut().enumerate() {
                let background = span_mut(backgrounds, i * dims, dims);
                background.fill(self.floor);
                for (o, other) in sources.iter().enumerate().take(MOST_SOURCES).filter(|&(o, _)| o != h) {
                    let partner = other.first + partners[o][i];
                    model.row(partner, gains[o], row);
                    raise(background, row);
                    *weight += at(expected, partner);
                }
            }
            for k in 0..source.latents {
                model.row(source.first + k, gains[h], row);
                let mut most = f32::NEG_INFINITY;
                for (i, &weight) in weights.iter().enumerate() {
                    let off = distance(self.bands, row, span(backgrounds, i * dims, dims));
                    let score = weight - self.precision * off;
                    most = if score > most { score } else { most };
                }
                chosen[h].offer(k, most + at(expected, source.first + k));
            }
            // Where there are fewer, the best once more.
            let len = chosen[h].len;
            partners[h] = [0, 1, 2].map(|i| chosen[h].latent(if i < len { i } else { 0 }));
        }
        chosen
    }

    /// l_s of all states of the chosen latents; digits say which of each group is on. How many there are.
    fn score(
        &self,
        gains: &[f32; MOST_SOURCES],
        chosen: &[Best; MOST_SOURCES],
        scratch: &mut Scratch<'_>,
        scores: &mut [f32; MOST_STATES],
        digits: &mut [[u8; MOST_SOURCES]; MOST_STATES],
    ) -> usize {
        let (model, dims) = (self.model, self.model.dims());
        let sources = model.sources();
        let Scratch { expected, row, backgrounds, last } = scratch;
        let Some((end, before)) = sources.split_last() else { return 0 };
        let h = before.len().min(MOST_SOURCES - 1);
        for place in 0..chosen[h].len {
            model.row(end.first + chosen[h].latent(place), gains[h], span_mut(last, place * dims, dims));
        }
        let (mut count, mut state) = (0, [0u8; MOST_SOURCES]);
        loop {
            let background = span_mut(backgrounds, 0, dims);
            background.fill(self.floor);
            let mut weight = 0.0;
            for (o, other) in before.iter().enumerate().take(MOST_SOURCES) {
                let latent = other.first + chosen[o].latent(state[o].into());
                model.row(latent, gains[o], row);
                raise(background, row);
                weight += at(expected, latent);
            }
            for place in 0..chosen[h].len {
                let off = distance(self.bands, span(last, place * dims, dims), span(backgrounds, 0, dims));
                let prior = at(expected, end.first + chosen[h].latent(place));
                state[h] = place as u8;
                set(scores, count, weight + prior - self.precision * off);
                set(digits, count, state);
                count += 1;
            }
            // The next state of the groups before the last, the last of them fastest.
            let mut o = h;
            loop {
                let Some(next) = o.checked_sub(1) else { return count.min(MOST_STATES) };
                o = next;
                state[o] += 1;
                if usize::from(state[o]) < chosen[o].len {
                    break;
                }
                state[o] = 0;
            }
        }
    }
}

/// Writes the parts of all groups, averaged over filters by their weights: G rows of M.
pub(super) fn masks(
    model: &SpectralModel<'_>,
    weights: &[f32],
    picks: &[[Pick; PICKS]],
    powers: &[f32],
    masks: &mut [f32],
) {
    let (groups, len) = (model.count().min(MOST_SOURCES), model.mask_len());
    masks.fill(0.0);
    let Some((parts, rest)) = masks.split_at_mut_checked(groups.saturating_sub(1) * len) else { return };
    for (filter, (&weight, picks)) in weights.iter().zip(picks).enumerate() {
        if weight == 0.0 {
            continue;
        }
        let mut squares = [0.0; MOST_SOURCES];
        for (h, square) in squares.iter_mut().enumerate().take(groups) {
            let gain = model.gain(filter, h);
            *square = gain * gain;
        }
        for pick in picks {
            let share = weight * pick.weight;
            if share == 0.0 {
                continue;
            }
            let rows = pick.latents.map(|latent| model.mask(latent.into()));
            for m in 0..len {
                let (mut each, mut sum) = ([0.0; MOST_SOURCES], 0.0);
                for h in 0..groups {
                    let code = rows[h].get(m).copied().unwrap_or_default();
                    each[h] = at(powers, code.into()) * squares[h];
                    sum += each[h];
                }
                let share = share / sum;
                for h in 0..groups.saturating_sub(1) {
                    let place = h * len + m;
                    set(parts, place, at(parts, place) + share * each[h]);
                }
            }
        }
    }
    // The last has what the others leave.
    for (m, left) in rest.iter_mut().enumerate() {
        let mut sum = 0.0;
        for h in 0..groups.saturating_sub(1) {
            sum += at(parts, h * len + m);
        }
        *left = if sum < 1.0 { 1.0 - sum } else { 0.0 };
    }
}

/// Copies q of the first frame: the prior.
pub(super) fn begin(model: &SpectralModel<'_>, posteriors: &mut [f32]) {
    for posterior in posteriors.chunks_exact_mut(model.latents().max(1)) {
        copy(posterior, model.priors());
    }
}
