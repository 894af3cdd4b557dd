//! Samples of one channel in, one signal for each source out.

use super::bands::{compress, frame_power};
use super::filter::{self, Frame, PICKS, Pick, Scratch};
use super::level::Levels;
use super::model::{MASK_BASE, MASK_STEP, MOST_FILTERS, MOST_SOURCES, SpectralModel};
use crate::blob::groups::Groups;
use crate::error::Error;
use crate::math::Real;
use crate::numeric::slices::{at, set, span, span_mut};
use crate::state::Held;
use crate::stream::STREAM_BASE;
use crate::stream::rings::{Extent, Place, Rings};
use crate::stream::stft::Stft;

/// Powers that bytes of `MASK` stand for.
const POWERS: usize = 256;

/// Bytes of memory that the C interface asks for per stream, the same on every target.
pub fn stream_bytes(model: &SpectralModel<'_>) -> usize {
    SpectralStream::memory_len(model).saturating_add(1).saturating_mul(4).saturating_add(STREAM_BASE) & !7
}

/// One stream of samples of one microphone, and the signals of its sources: [`crate::Stream`] for one channel. Time, lengths of blocks and
/// errors are as there; the latency is L - 1 samples.
#[derive(Debug)]
pub struct SpectralStream<'m> {
    model: SpectralModel<'m>,
    rings: Rings<'m>,
    work: Work<'m>,
}

#[derive(Debug)]
struct Work<'m> {
    /// Of the transform. (L)
    table: &'m mut [f32],
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
}

impl<'m> SpectralStream<'m> {
    /// Numbers of memory that [`SpectralStream::new`] asks for.
    pub fn memory_len(model: &SpectralModel<'_>) -> usize {
        let (groups, filters, dims, latents) =
            (model.count(), model.filters(), model.dims(), model.latents());
        model.length() * (2 + groups)
            + 4 * model.bins()
            + POWERS
            + groups * model.mask_len()
            + dims
            + Scratch::len(dims, latents)
            + filters * latents
            + Levels::len(filters)
    }

    /// A stream at its beginning. Fails without enough memory.
    pub fn new(model: SpectralModel<'m>, memory: &'m mut [f32]) -> Result<Self, Error> {
        let mut stream = Self::of(model, memory, Held::Own(Place::default()))?;
        stream.prepare();
        Ok(stream)
    }

    /// A stream whose state lives elsewhere. The first time [`SpectralStream::prepare`] must follow.
    pub fn over(
        model: &SpectralModel<'m>,
        memory: &'m mut [f32],
        place: &'m mut Place,
    ) -> Result<Self, Error> {
        Self::of(*model, memory, Held::Lent(place))
    }

    fn of(
        model: SpectralModel<'m>,
        memory: &'m mut [f32],
        place: Held<Place, &'m mut Place>,
    ) -> Result<Self, Error> {
        let short = Error::Memory { needed: Self::memory_len(&model), found: memory.len() };
        let (groups, length, hop, bins) = (model.count(), model.length(), model.hop(), model.bins());
        let (dims, latents, filters) = (model.dims(), model.latents(), model.filters());
        let mut rest = memory;
        let mut take = |len: usize| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut_checked(len).ok_or(short)?;
            rest = tail;
            Ok(head)
        };
        let (input, output) = (take(length)?, take(length * groups)?);
        let work = Work {
            table: take(Stft::table_len(length))?,
            spectrum: take(2 * bins)?.as_chunks_mut().0,
            part: take(2 * bins)?.as_chunks_mut().0,
            powers: take(POWERS)?,
            masks: take(groups * model.mask_len())?,
            bands: take(dims)?,
            scratch: Scratch::cut(take(Scratch::len(dims, latents))?, dims, latents).ok_or(short)?,
            posteriors: take(filters * latents)?,
            levels: Levels::over(take(Levels::len(filters))?),
        };
        let rings = Rings { extent: Extent { channels: 1, groups, length, hop }, input, output, place };
        Ok(Self { model, rings, work })
    }

    /// Fills in the tables, and begins.
    pub fn prepare(&mut self) {
        Stft::prepare(self.work.table);
        let (base, step) = (MASK_BASE as f32, (MASK_STEP * core::f64::consts::LN_10) as f32);
        for (code, power) in self.work.powers.iter_mut().enumerate() {
            *power = base * Real::exp(step * code as f32);
        }
        self.work.levels.set_residue(0.0);
        self.reset();
    }

    /// Begins anew, as if nothing had been heard: at the level of the recordings that sources were learned from.
    pub fn reset(&mut self) {
        self.rings.reset();
        filter::begin(&self.model, self.work.posteriors);
        self.work.levels.reset(&self.model);
    }

    /// Says what the mean power of the input is, where that is known better than from the recordings that sources were learned from.
    /// The stream follows changes. Nothing happens where it is not a positive number.
    pub fn set_level(&mut self, power: f32) {
        if power > 0.0 && power.is_finite() {
            self.work.levels.know(&self.model, power);
        }
    }

    /// By how many dB other sources are reduced in the signal of one, at most; at first all of what is recognised as theirs. A little of them hides
    /// errors: 10 to 15 dB sound more natural than all. Stays over [`SpectralStream::reset`].
    pub fn set_reduction(&mut self, decibels: f32) {
        let residue: f32 =
            if decibels > 0.0 { Real::exp(decibels * (-core::f32::consts::LN_10 / 20.0)) } else { 1.0 };
        self.work.levels.set_residue(residue);
    }

    /// Numbers of a sample that goes in: 1.
    pub fn channels(&self) -> usize {
        1
    }

    /// Numbers of a sample that comes out.
    pub fn groups(&self) -> usize {
        self.model.count()
    }

    /// What they are called.
    pub fn names(&self) -> Groups<'m> {
        self.model.groups()
    }

    /// Samples per second, 0 when unknown.
    pub fn rate(&self) -> u32 {
        self.model.rate()
    }

    /// Samples by which sources come later than what they were heard in.
    pub fn latency(&self) -> usize {
        self.model.length() - 1
    }

    /// Samples from one burst of work to the next.
    pub fn hop(&self) -> usize {
        self.model.hop()
    }

    /// Takes n samples, and puts out n of all sources, sample by sample; n may be 0.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Error> {
        let Self { model, rings, work } = self;
        rings.process(input, output, |input, output, oldest| work.infer(model, input, output, oldest))
    }

    /// The same with integers: 32768 is 1. What is louder comes out as the largest there is.
    pub fn process_i16(&mut self, input: &[i16], output: &mut [i16]) -> Result<(), Error> {
        let Self { model, rings, work } = self;
        rings.process_i16(input, output, |input, output, oldest| work.infer(model, input, output, oldest))
    }
}

impl Work<'_> {
    /// The frame whose first sample is at `oldest` in the rings; false where it cannot be inferred, which leaves silence.
    fn infer(&mut self, model: &SpectralModel<'_>, input: &[f32], output: &mut [f32], oldest: usize) -> bool {
        // The newest K samples end at the oldest of the ring.
        let (length, hop) = (model.length(), model.hop());
        let start = if oldest >= hop { oldest - hop } else { oldest + length - hop };
        let mut energy = 0.0;
        span(input, start, hop).iter().for_each(|x| energy += x * x);
        let power = energy / hop as f32;
        Stft::over(self.table).forward(input, oldest, self.spectrum);
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
            for (f, (part, &[re, im])) in self.part.iter_mut().zip(self.spectrum.iter()).enumerate() {
                let m = if f < single { f } else { single + (f - single) / 2 };
                let gain = residue + (1.0 - residue) * at(mask, m);
                *part = [re * gain, im * gain];
            }
            Stft::over(self.table).inverse(self.part, hop, ring, oldest);
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
        let mut evidences = [0.0; MOST_FILTERS];
        let posteriors = self.posteriors.chunks_exact_mut(model.latents().max(1));
        for (f, (posterior, picks)) in posteriors.zip(&mut picks).enumerate() {
            let mut gains = [0.0; MOST_SOURCES];
            for (h, gain) in gains.iter_mut().enumerate().take(model.count()) {
                *gain = Real::exp(exponent * Real::ln(model.gain(f, h)));
            }
            match frame.step(&gains, posterior, &mut self.scratch, picks) {
                Some(evidence) => set(&mut evidences, f, evidence),
                None => return false,
            }
        }
        let mut weights = [0.0; MOST_FILTERS];
        self.levels.weigh(span(&evidences, 0, filters), &mut weights);
        filter::masks(model, &weights, &picks, self.powers, self.masks);
        true
    }
}
