//! Samples of one channel in, one signal for each source out.

use super::bands::{compress, frame_power, take_offset};
use super::filter::{self, Found, Frame, PICKS, Pick, Scratch};
use super::level::Levels;
use super::model::{MASK_BASE, MASK_STEP, MOST_FILTERS, MOST_SOURCES, SpectralModel};
use super::watch::Watch;
use crate::blob::groups::Groups;
use crate::counts::Count;
use crate::math::Real;
use crate::numeric::slices::{at, set, span, span_mut};
use crate::stream::Pieces;
use crate::stream::frames::{FrameModel, FrameStream};
use crate::stream::rings::Extent;
use crate::stream::stft::Stft;

/// Powers that bytes of `MASK` stand for.
const POWERS: usize = 256;

/// One stream of samples of one microphone, and the signals of its sources. After [`FrameStream::reset`] the level is that of the
/// recordings that sources were learned from.
pub type SpectralStream<'m> = FrameStream<'m, SpectralModel<'m>>;

/// Memory of a stream of one channel.
#[derive(Debug)]
pub struct Work<'m> {
    /// Of the mixture, and of one source. (L/2 + 1 each)
    spectrum: &'m mut [[f32; 2]],
    part: &'m mut [[f32; 2]],
    /// (256)
    powers: &'m mut [f32],
    /// Parts of all sources. (G M)
    masks: &'m mut [f32],
    /// v. (D)
    bands: &'m mut [f32],
    scratch: Scratch<'m>,
    /// q of each filter. (F H)
    posteriors: &'m mut [f32],
    levels: Levels<'m>,
    watch: Watch<'m>,
}

impl<'m> FrameModel<'m> for SpectralModel<'m> {
    type Work = Work<'m>;

    fn extent(&self) -> Extent {
        Extent { channels: 1, groups: self.count(), length: self.length(), hop: self.hop() }
    }

    fn rate(&self) -> u32 {
        self.rate()
    }

    fn names(&self) -> Groups<'m> {
        self.groups()
    }

    fn work_len(&self) -> usize {
        let (dims, latents, filters) = (self.dims(), self.latents(), self.filters());
        4 * self.bins()
            + POWERS
            + self.count() * self.mask_len()
            + dims
            + Scratch::len(self)
            + filters * latents
            + Levels::len(filters)
            + Watch::len(self.count(), latents)
    }

    fn work(&self, memory: &'m mut [f32]) -> Option<Work<'m>> {
        let (dims, latents, filters) = (self.dims(), self.latents(), self.filters());
        let mut pieces = Pieces(memory);
        let mut take = |len: usize| pieces.take(len);
        Some(Work {
            spectrum: take(2 * self.bins())?.as_chunks_mut().0,
            part: take(2 * self.bins())?.as_chunks_mut().0,
            powers: take(POWERS)?,
            masks: take(self.count() * self.mask_len())?,
            bands: take(dims)?,
            scratch: Scratch::cut(take(Scratch::len(self))?, self)?,
            posteriors: take(filters * latents)?,
            levels: Levels::over(take(Levels::len(filters))?),
            watch: Watch::cut(take(Watch::len(self.count(), latents))?, self.count())?,
        })
    }

    fn prepare(&self, work: &mut Work<'m>) {
        let (base, step) = (MASK_BASE as f32, (MASK_STEP * core::f64::consts::LN_10) as f32);
        for (code, power) in work.powers.iter_mut().enumerate() {
            *power = base * Real::exp(step * code as f32);
        }
        work.scratch.prepare(self);
        work.watch.prepare(self, work.powers);
        work.levels.set_residue(0.0);
    }

    fn reset(&self, work: &mut Work<'m>) {
        filter::begin(self, work.posteriors);
        work.levels.reset(self);
        work.watch.reset();
    }

    fn infer(
        &self,
        work: &mut Work<'m>,
        stft: Stft<'_>,
        input: &[f32],
        output: &mut [f32],
        oldest: usize,
    ) -> bool {
        work.infer(self, stft, input, output, oldest)
    }
}

impl<'m> SpectralStream<'m> {
    /// Says what the mean power of the input is, where that is known better than from the recordings that sources were learned from.
    /// The stream follows changes. Nothing happens where it is not a positive number.
    pub fn set_level(&mut self, power: f32) {
        if power > 0.0 && power.is_finite() {
            self.work.memory.levels.know(&self.work.model, power);
        }
    }

    /// By how many dB other sources are reduced in the signal of one, at most; at first all of what is recognised as theirs. A
    /// little of them hides errors: 10 to 15 dB sound more natural than all. Stays over [`SpectralStream::reset`].
    pub fn set_reduction(&mut self, decibels: f32) {
        let residue: f32 =
            if decibels > 0.0 { Real::exp(decibels * (-core::f32::consts::LN_10 / 20.0)) } else { 1.0 };
        self.work.memory.levels.set_residue(residue);
    }

    /// What it runs.
    pub fn model(&self) -> &SpectralModel<'m> {
        &self.work.model
    }

    /// The probability that a source was to be heard in the last frame: that its latent is none of those that are 10 dB below the
    /// mean power of the source. 0 before the first frame and for what is no source.
    pub fn activity(&self, group: usize) -> f32 {
        self.work.memory.watch.activity(group)
    }

    /// How badly the model explains what was heard last: minus the evidence of a frame in nats, averaged over the last eight
    /// frames or so, 0 before the first. What is usual shows in recordings only: see [`SpectralModel::threshold`].
    pub fn score(&self) -> f32 {
        self.work.memory.watch.score()
    }
}

impl Work<'_> {
    /// The frame whose first sample is at `oldest` in the rings; false where it cannot be inferred, which leaves silence. Not in line:
    /// streams of other models would have its stack.
    #[inline(never)]
    fn infer(
        &mut self,
        model: &SpectralModel<'_>,
        stft: Stft<'_>,
        input: &[f32],
        output: &mut [f32],
        oldest: usize,
    ) -> bool {
        // The newest K samples end at the oldest of the ring.
        let (length, hop) = (model.length(), model.hop());
        Count::ChannelFrames.add(1);
        let start = if oldest >= hop { oldest - hop } else { oldest + length - hop };
        stft.forward(input, oldest, self.spectrum);
        // The window sums to L/2.
        let offset = self.levels.offset(model, self.spectrum.first().map_or(0.0, |&[zero, _]| zero));
        take_offset(self.spectrum, offset);
        let (constant, mut energy) = (offset * (2.0 / length as f32), 0.0);
        span(input, start, hop).iter().for_each(|x| energy += (x - constant) * (x - constant));
        let power = energy / hop as f32;
        if !(power <= 1e30) {
            return false;
        }
        let scale = self.levels.hear(model, power);
        let powers = span_mut(self.part.as_flattened_mut(), 0, model.bins());
        frame_power(self.spectrum, length, scale, powers);
        let (floor, exponent) = (model.floor(), model.compression());
        for (d, v) in self.bands.iter_mut().enumerate() {
            *v = compress(model.band(d).energy(powers), floor, exponent);
        }
        if !self.mask(model) {
            filter::begin(model, self.posteriors);
            return false;
        }
        let residue = self.levels.residue();
        let (len, single) = (model.mask_len().max(1), model.single());
        let rows = self.masks.chunks_exact(len);
        for (ring, mask) in output.chunks_exact_mut(length.max(1)).zip(rows) {
            Count::ChannelBins.add(self.part.len());
            for (f, (part, &[re, im])) in self.part.iter_mut().zip(self.spectrum.iter()).enumerate() {
                let m = if f < single { f } else { single + (f - single) / 2 };
                let gain = residue + (1.0 - residue) * at(mask, m);
                *part = [re * gain, im * gain];
            }
            let offset = offset * (residue + (1.0 - residue) / model.count().max(1) as f32);
            take_offset(self.part, -offset);
            stft.inverse(self.part, hop, ring, oldest);
        }
        true
    }

    /// The parts of all sources in this frame.
    fn mask(&mut self, model: &SpectralModel<'_>) -> bool {
        let exponent = model.compression();
        let frame = Frame {
            model,
            bands: self.bands,
            floor: compress(0.0, model.floor(), exponent),
            precision: 0.5 / model.variance(),
        };
        let filters = model.filters().min(MOST_FILTERS);
        let mut picks = [[Pick::default(); PICKS]; MOST_FILTERS];
        let (mut evidences, mut found) = ([0.0; MOST_FILTERS], Found::default());
        let posteriors = self.posteriors.chunks_exact_mut(model.latents().max(1));
        for (f, (posterior, picks)) in posteriors.zip(&mut picks).enumerate() {
            let mut gains = [0.0; MOST_SOURCES];
            for (h, gain) in gains.iter_mut().enumerate().take(model.count()) {
                *gain = Real::exp(exponent * Real::ln(model.gain(f, h)));
            }
            match frame.step(&gains, posterior, &mut self.scratch, &mut found, picks) {
                Some(evidence) => set(&mut evidences, f, evidence),
                None => return false,
            }
        }
        let mut weights = [0.0; MOST_FILTERS];
        let evidences = span(&evidences, 0, filters);
        self.levels.weigh(model, evidences, &mut weights);
        self.watch.see(model, evidences, &weights, self.posteriors);
        filter::masks(model, &weights, &picks, self.powers, self.masks);
        true
    }
}
