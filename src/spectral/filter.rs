//! One frame: which latent of each group is on, for one vector of gains.
#![allow(clippy::needless_range_loop)] // a group has an index in several arrays

use super::distance::{BACKGROUNDS, Beside, Unit};
use super::model::{MOST_LATENTS, MOST_SOURCES, SpectralModel};
use crate::counts::Count;
use crate::math::Real;
use crate::numeric::slices::{at, copy, set, span, span_mut};
use crate::select::rise;

/// Latents kept of a group, at most.
const MOST_KEPT: usize = 8;
/// States whose posterior is computed, at most: 8^2, 5^3 or 3^4.
const MOST_STATES: usize = 128;
/// Latents less probable than this leave their successors to the prior.
pub(super) const IMPROBABLE: f32 = 1e-4;
/// The most probable states, which masks are made of; and of a filter with a weight of at most `OFTEN`.
pub(super) const PICKS: usize = 8;
pub(super) const FEW_PICKS: usize = 4;
pub(super) const OFTEN: f32 = 0.5;
/// The latent of each group that explains a frame best without the others.
type Alone = [usize; MOST_SOURCES];
/// The best latents of each group.
type Chosen = [Best; MOST_SOURCES];

/// Latents kept of each of so many groups.
const fn kept(groups: usize) -> usize {
    match groups {
        0..=2 => MOST_KEPT,
        3 => 5,
        _ => 3,
    }
}

/// A state that masks are made of: its probability, and the latent that is on in each group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pick {
    pub weight: f32,
    pub latents: [u16; MOST_SOURCES],
}

/// What is found with the gains of one filter and helps the next ones.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Serves all of them.
    alone: Option<Alone>,
    chosen: Chosen,
}

/// The best so far, the first of equals first.
#[derive(Clone, Copy, Debug, Default)]
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
        if self.len < self.most || score > self.least() {
            self.insert(index, score);
        }
    }

    /// The score of the last, once there are as many as are kept.
    #[inline]
    fn least(&self) -> f32 {
        if self.len < self.most { f32::NEG_INFINITY } else { at(&self.score, self.len.wrapping_sub(1)) }
    }

    #[inline(never)]
    fn insert(&mut self, index: usize, score: f32) {
        self.len = (self.len + 1).min(self.most);
        let (scores, items) =
            (span_mut(&mut self.score, 0, self.len), span_mut(&mut self.index, 0, self.len));
        rise(scores, items, score, index as u16);
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
    /// ln prior. (H)
    prior: &'m mut [f32],
    pub beside: Beside<'m>,
}

impl Scratch<'_> {
    /// Numbers of all of it.
    pub fn len(model: &SpectralModel<'_>) -> usize {
        2 * model.latents() + Beside::len(model.dims(), model.is_integer())
    }
}

impl<'m> Scratch<'m> {
    pub fn cut(memory: &'m mut [f32], model: &SpectralModel<'_>) -> Option<Self> {
        let (expected, rest) = memory.split_at_mut_checked(model.latents())?;
        let (prior, rest) = rest.split_at_mut_checked(model.latents())?;
        let (beside, _) = rest.split_at_mut_checked(Beside::len(model.dims(), model.is_integer()))?;
        Some(Self { expected, prior, beside: Beside::over(beside, model.is_integer()) })
    }

    /// Logarithms of what does not change.
    pub fn prepare(&mut self, model: &SpectralModel<'_>) {
        self.prior.iter_mut().zip(model.priors()).for_each(|(to, &prior)| *to = Real::ln(prior));
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
    /// One frame with the gains of a filter, g^p in `gains`. `posterior` holds q of all latents, of the frame before and then of
    /// this one. The result is ln sum_s e^{l_s}, nothing where that is not finite.
    pub fn step(
        &self,
        gains: &[f32; MOST_SOURCES],
        posterior: &mut [f32],
        scratch: &mut Scratch<'_>,
        found: &mut Found,
        picks: &mut [Pick; PICKS],
    ) -> Option<f32> {
        self.predict(posterior, scratch);
        let Found { alone, chosen } = found;
        let alone = alone.get_or_insert_with(|| self.alone(gains, scratch));
        self.select(gains, alone, chosen, scratch);
        let mut scores = [0.0; MOST_STATES];
        let count = self.score(gains, chosen, scratch, &mut scores);
        Count::ChannelLatents.add(self.model.latents());
        Count::ChannelStates.add(count);
        let scores = span_mut(&mut scores, 0, count);
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
        for (state, score) in scores.iter_mut().enumerate() {
            *score /= total;
            self.each(chosen, state, |_, latent| set(posterior, latent, at(posterior, latent) + *score));
        }
        let mut best = Best::of(PICKS);
        scores.iter().enumerate().for_each(|(state, &score)| best.offer(state, score));
        for (i, pick) in picks.iter_mut().enumerate().take(best.len) {
            *pick = Pick { weight: at(&best.score, i), ..Pick::default() };
            self.each(chosen, best.latent(i), |h, latent| set(&mut pick.latents, h, latent as u16));
        }
        Some(evidence)
    }

    /// ln alpha = ln((1 - lambda) prior + lambda T^T q).
    fn predict(&self, posterior: &[f32], scratch: &mut Scratch<'_>) {
        let Scratch { expected, prior, .. } = scratch;
        let (model, persistence) = (self.model, self.model.persistence());
        expected.fill(0.0);
        for source in model.sources() {
            // What successors leave goes to the prior.
            let mut left = 1.0;
            let expected = span_mut(expected, source.first, source.latents);
            for (k, &q) in span(posterior, source.first, source.latents).iter().enumerate() {
                if q > IMPROBABLE {
                    let share = persistence * q;
                    let mut given = 0;
                    Count::ChannelSuccessors.add(model.successors());
                    for &[to, probability] in model.next(source.first + k) {
                        let to = usize::from(to);
                        set(
                            expected,
                            to,
                            at(expected, to) + share * (f32::from(probability) * (1.0 / 255.0)),
                        );
                        given += u32::from(probability);
                    }
                    left -= share * (given as f32 * (1.0 / 255.0));
                }
            }
            // Most latents succeed none that is probable.
            let (priors, ln_left) = (span(prior, source.first, source.latents), Real::ln(left));
            for ((k, expected), prior) in expected.iter_mut().enumerate().zip(priors) {
                *expected = if *expected > 0.0 {
                    Count::ChannelLogarithms.add(1);
                    Real::ln(*expected + left * model.prior(source.first + k))
                } else {
                    ln_left + prior
                };
            }
        }
    }

    /// The latent of each group that is on in a state: its number has a digit for each group, that of the last group fastest.
    #[inline]
    fn each(&self, chosen: &Chosen, state: usize, mut latent: impl FnMut(usize, usize)) {
        let mut rest = state;
        for (h, (source, chosen)) in self.model.sources().iter().zip(chosen).enumerate().rev() {
            latent(h, source.first + chosen.latent(rest.checked_rem(chosen.len).unwrap_or_default()));
            rest = rest.checked_div(chosen.len).unwrap_or_default();
        }
    }

    /// What distances of a group's spectra are measured in.
    fn unit(&self, gain: f32) -> Unit {
        let gain = gain * self.model.unit();
        Unit { inverse: 1.0 / gain, precision: self.precision * (gain * gain) }
    }

    /// Of each group but the first, the latent that fits best where nothing else is on.
    fn alone(&self, gains: &[f32; MOST_SOURCES], scratch: &mut Scratch<'_>) -> Alone {
        let (rows, dims) = (self.model.rows(), self.model.dims());
        let Scratch { expected, beside, .. } = scratch;
        let mut alone = Alone::default();
        for (h, (source, alone)) in self.model.sources().iter().zip(&mut alone).enumerate().skip(1) {
            let unit = self.unit(at(gains, h));
            beside.set_frame(self.bands, unit);
            beside.clear(0, self.floor, unit);
            let mut best = Best::of(1);
            for k in 0..source.latents {
                let expected = at(expected, source.first + k);
                let limit = (expected - best.least()) / unit.precision;
                // The other backgrounds are not there.
                let limits = [limit, -1.0, -1.0];
                if let Some([off, ..]) = beside.distances(rows, dims, source.first + k, limits) {
                    best.offer(k, expected - unit.precision * off);
                }
            }
            *alone = best.latent(0);
        }
        alone
    }

    /// The latents of each group that fit best beside those of the others, in place of those that were found with other gains.
    fn select(
        &self,
        gains: &[f32; MOST_SOURCES],
        alone: &Alone,
        chosen: &mut Chosen,
        scratch: &mut Scratch<'_>,
    ) {
        let (sources, rows, dims) = (self.model.sources(), self.model.rows(), self.model.dims());
        let Scratch { expected, beside, .. } = scratch;
        let mut partners = [[0; BACKGROUNDS]; MOST_SOURCES];
        for ((source, partners), &alone) in sources.iter().zip(&mut partners).zip(alone).skip(1) {
            let mut likely = Best::of(BACKGROUNDS - 1);
            for (k, &prior) in span(expected, source.first, source.latents).iter().enumerate() {
                likely.offer(k, prior);
            }
            *partners = [likely.latent(0), likely.latent(1), alone];
        }
        for (h, (source, chosen)) in sources.iter().zip(chosen).enumerate() {
            let before = core::mem::replace(chosen, Best::of(kept(sources.len())));
            let unit = self.unit(at(gains, h));
            beside.set_frame(self.bands, unit);
            let mut weights = [0.0; BACKGROUNDS];
            for (i, weight) in weights.iter_mut().enumerate() {
                beside.clear(i, self.floor, unit);
                for (o, (other, partners)) in
                    sources.iter().zip(&partners).enumerate().filter(|&(o, _)| o != h)
                {
                    let partner = other.first + partners.get(i).copied().unwrap_or_default();
                    beside.raise(i, rows, dims, partner, at(gains, o) / at(gains, h));
                    *weight += at(expected, partner);
                }
            }
            let scale = 1.0 / unit.precision;
            let mut offer = |k: usize| {
                let expected = at(expected, source.first + k);
                let spare = expected - chosen.least();
                let limit = |weight: f32| (weight + spare) * scale;
                let limits = [limit(weights[0]), limit(weights[1]), limit(weights[2])];
                if let Some(offs) = beside.distances(rows, dims, source.first + k, limits) {
                    let score = |weight: f32, off: f32| weight - unit.precision * off;
                    let larger = |a: f32, b: f32| if a > b { a } else { b };
                    let first = larger(score(weights[0], offs[0]), score(weights[1], offs[1]));
                    chosen.offer(k, larger(first, score(weights[2], offs[2])) + expected);
                }
            };
            // Those of the filter before first: beside good ones others can be given up early.
            let mut seen = [0u32; MOST_LATENTS / 32];
            for place in 0..before.len {
                let k = before.latent(place);
                offer(k);
                if let Some(word) = seen.get_mut(k / 32) {
                    *word |= 1 << (k % 32);
                }
            }
            let is_new = |k: &usize| seen.get(k / 32).is_some_and(|word| word >> (k % 32) & 1 == 0);
            (0..source.latents).filter(is_new).for_each(offer);
            // Where there are fewer, the best once more.
            let best = [0, 1, 2].map(|i| chosen.latent(if i < chosen.len { i } else { 0 }));
            set(&mut partners, h, best);
        }
    }

    /// l_s of all states of the chosen latents, numbered as in [`Frame::each`]. How many there are.
    fn score(
        &self,
        gains: &[f32; MOST_SOURCES],
        chosen: &Chosen,
        scratch: &mut Scratch<'_>,
        scores: &mut [f32; MOST_STATES],
    ) -> usize {
        let model = self.model;
        let (rows, dims) = (model.rows(), model.dims());
        let Scratch { expected, beside, .. } = scratch;
        let Some((end, before)) = model.sources().split_last() else { return 0 };
        let last = before.len();
        let (Some(kept), mut others) = (chosen.get(last), 1) else { return 0 };
        chosen.iter().take(last).for_each(|best| others *= best.len);
        let (unit, places) = (self.unit(at(gains, last)), kept.len);
        // The frame is there already, in the unit of the last group. The groups before the last are the background, three of
        // their states at a time.
        for first in (0..others).step_by(BACKGROUNDS) {
            let mut weights = [0.0; BACKGROUNDS];
            for (i, weight) in weights.iter_mut().enumerate() {
                beside.clear(i, self.floor, unit);
                self.each(chosen, (first + i) * places, |o, latent| {
                    if o != last {
                        beside.raise(i, rows, dims, latent, at(gains, o) / at(gains, last));
                        *weight += at(expected, latent);
                    }
                });
            }
            for place in 0..places {
                let latent = end.first + kept.latent(place);
                let limits = [f32::INFINITY; BACKGROUNDS];
                let offs = beside.distances(rows, dims, latent, limits).unwrap_or_default();
                for (i, (weight, off)) in weights.iter().zip(offs).enumerate() {
                    if first + i < others {
                        let score = weight + at(expected, latent) - unit.precision * off;
                        set(scores, (first + i) * places + place, score);
                    }
                }
            }
        }
        (others * places).min(MOST_STATES)
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
    let add = if model.count() == 2 { add_of_two } else { add };
    let Some(powers) = powers.first_chunk() else { return };
    let others = model.count().saturating_sub(1) * model.mask_len();
    let Some((parts, last)) = masks.split_at_mut_checked(others) else { return };
    parts.fill(0.0);
    for (filter, (&weight, picks)) in weights.iter().zip(picks).enumerate().filter(|of| *of.1.0 > 0.0) {
        let mut squares = [0.0; MOST_SOURCES];
        for (h, square) in squares.iter_mut().enumerate().take(model.count()) {
            let gain = model.gain(filter, h);
            *square = gain * gain;
        }
        // Filters that hardly count need fewer states.
        let few = if weight > OFTEN { PICKS } else { FEW_PICKS };
        let picks = span(picks, 0, few);
        let mut sum = 0.0;
        picks.iter().for_each(|pick| sum += pick.weight);
        for pick in picks.iter().filter(|pick| pick.weight > 0.0) {
            add(model, &pick.latents, &squares, weight / sum * pick.weight, powers, parts);
        }
    }
    // The last has what the others leave.
    for (m, left) in last.iter_mut().enumerate() {
        let mut sum = 0.0;
        parts.iter().skip(m).step_by(model.mask_len().max(1)).for_each(|part| sum += part);
        *left = if sum < 1.0 { 1.0 - sum } else { 0.0 };
    }
}

/// Adds `share` times the part of the first of two groups in one state.
fn add_of_two(
    model: &SpectralModel<'_>,
    &[first, second, ..]: &[u16; MOST_SOURCES],
    &[g, h, ..]: &[f32; MOST_SOURCES],
    share: f32,
    powers: &[f32; 256],
    parts: &mut [f32],
) {
    Count::ChannelPairs.add(parts.len());
    let rows = model.mask(first.into()).iter().zip(model.mask(second.into()));
    for (part, (&a, &b)) in parts.iter_mut().zip(rows) {
        let (a, b) = (powers[usize::from(a)] * g, powers[usize::from(b)] * h);
        *part += share / (a + b) * a;
    }
}

/// The same for any number of groups; the last has no part here.
fn add(
    model: &SpectralModel<'_>,
    latents: &[u16; MOST_SOURCES],
    squares: &[f32; MOST_SOURCES],
    share: f32,
    powers: &[f32; 256],
    parts: &mut [f32],
) {
    let len = model.mask_len();
    Count::ChannelMasks.add(len * model.count());
    for m in 0..len {
        let (mut each, mut sum) = ([0.0; MOST_SOURCES], 0.0);
        let latents = latents.iter().take(model.count());
        for ((each, &latent), square) in each.iter_mut().zip(latents).zip(squares) {
            let code = model.mask(latent.into()).get(m).copied().unwrap_or_default();
            *each = powers[usize::from(code)] * square;
            sum += *each;
        }
        let share = share / sum;
        let places = parts.iter_mut().skip(m).step_by(len.max(1));
        places.zip(each).for_each(|(part, each)| *part += share * each);
    }
}

/// Copies q of the first frame: the prior.
#[inline(never)]
pub(super) fn begin(model: &SpectralModel<'_>, posteriors: &mut [f32]) {
    for posterior in posteriors.chunks_exact_mut(model.latents().max(1)) {
        copy(posterior, model.priors());
    }
}
