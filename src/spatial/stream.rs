//! Samples of all microphones in, one signal for each source out.
#![allow(clippy::needless_range_loop)] // a source has an index in several arrays

use super::bin::{Complex, MOST_SOURCES};
use super::model::{LONGEST_RECORD, SpatialModel};
use crate::blob::groups::Groups;
use crate::error::Error;
use crate::numeric::slices::{copy, row, set, span, span_mut};
use crate::state::Held;
use crate::stream::STREAM_BASE;
use crate::stream::rings::{Extent, Place, Rings};
use crate::stream::stft::Stft;

/// Bytes of memory that the C interface asks for per stream, the same on every target.
pub fn stream_bytes(model: &SpatialModel<'_>) -> usize {
    SpatialStream::memory_len(model).saturating_add(1).saturating_mul(4).saturating_add(STREAM_BASE) & !7
}

/// One stream of samples of spaced microphones, and the signals of its sources: [`crate::Stream`] for rooms. Time, lengths of blocks and
/// errors are as there; the latency is L - 1 samples.
#[derive(Debug)]
pub struct SpatialStream<'m> {
    model: SpatialModel<'m>,
    rings: Rings<'m>,
    work: Work<'m>,
}

#[derive(Debug)]
struct Work<'m> {
    /// Of the transform. (L)
    table: &'m mut [f32],
    /// Spectra of all channels, one after the other, which those of sources take the place of. (max(D, H) (L/2 + 1))
    spectra: &'m mut [Complex<f32>],
    /// Activities of the frame before, those of all sources bin by bin. (H (L/2 + 1))
    activities: &'m mut [f32],
}

impl<'m> SpatialStream<'m> {
    /// Numbers of memory that [`SpatialStream::new`] asks for.
    pub fn memory_len(model: &SpatialModel<'_>) -> usize {
        let (channels, sources, length, bins) =
            (model.microphones(), model.sources(), model.length(), model.bins());
        length * (channels + sources + 1) + bins * (2 * channels.max(sources) + sources)
    }

    /// A stream at its beginning. Fails without enough memory.
    pub fn new(model: SpatialModel<'m>, memory: &'m mut [f32]) -> Result<Self, Error> {
        let mut stream = Self::of(model, memory, Held::Own(Place::default()))?;
        stream.prepare();
        Ok(stream)
    }

    /// A stream whose state lives elsewhere. The first time [`SpatialStream::prepare`] must follow.
    pub fn over(
        model: &SpatialModel<'m>,
        memory: &'m mut [f32],
        place: &'m mut Place,
    ) -> Result<Self, Error> {
        Self::of(*model, memory, Held::Lent(place))
    }

    fn of(
        model: SpatialModel<'m>,
        memory: &'m mut [f32],
        place: Held<Place, &'m mut Place>,
    ) -> Result<Self, Error> {
        let short = Error::Memory { needed: Self::memory_len(&model), found: memory.len() };
        let (channels, groups) = (model.microphones(), model.sources());
        let (length, hop, bins) = (model.length(), model.hop(), model.bins());
        let mut rest = memory;
        let mut take = |len: usize| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut_checked(len).ok_or(short)?;
            rest = tail;
            Ok(head)
        };
        let (input, output) = (take(length * channels)?, take(length * groups)?);
        let work = Work {
            table: take(Stft::table_len(length))?,
            spectra: take(2 * bins * channels.max(groups))?.as_chunks_mut().0,
            activities: take(bins * groups)?,
        };
        let rings = Rings { extent: Extent { channels, groups, length, hop }, input, output, place };
        Ok(Self { model, rings, work })
    }

    /// Fills in the tables, and begins.
    pub fn prepare(&mut self) {
        Stft::prepare(self.work.table);
        self.reset();
    }

    /// Begins anew, as if nothing had been heard: sources are expected as often as they were on in training.
    pub fn reset(&mut self) {
        self.rings.reset();
        let mut buffer = [0.0; LONGEST_RECORD];
        let sources = self.model.sources();
        for (index, activities) in self.work.activities.chunks_exact_mut(sources.max(1)).enumerate() {
            copy(activities, self.model.bin(index, &mut buffer).activity);
        }
    }

    /// Numbers of a sample that goes in.
    pub fn channels(&self) -> usize {
        self.model.microphones()
    }

    /// Numbers of a sample that comes out.
    pub fn groups(&self) -> usize {
        self.model.sources()
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

    /// Takes n samples of all channels, sample by sample, and puts out n of all sources in the same way; n may be 0.
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
    /// The frame whose first sample is at `oldest` in the rings; false where some of it cannot be inferred.
    fn infer(&mut self, model: &SpatialModel<'_>, input: &[f32], output: &mut [f32], oldest: usize) -> bool {
        let (length, bins) = (model.length(), model.bins());
        let stft = Stft::over(self.table);
        let spectra = self.spectra.chunks_exact_mut(bins.max(1));
        for (ring, spectrum) in input.chunks_exact(length.max(1)).zip(spectra) {
            stft.forward(ring, oldest, spectrum);
        }
        // Code for each number of microphones, and of sources on two.
        let infer = match (model.microphones(), model.sources()) {
            (2, 1) => bins_of::<2, 1>,
            (2, 2) => bins_of::<2, 2>,
            (2, 3) => bins_of::<2, 3>,
            (2, _) => bins_of::<2, 4>,
            (3, _) => bins_of::<3, MOST_SOURCES>,
            _ => bins_of::<4, MOST_SOURCES>,
        };
        let is_whole = infer(model, self.spectra, self.activities);
        let spectra = self.spectra.chunks_exact_mut(bins.max(1));
        for (ring, spectrum) in output.chunks_exact_mut(length.max(1)).zip(spectra) {
            stft.inverse(spectrum, model.hop(), ring, oldest);
        }
        is_whole
    }
}

/// All bins, in order, of D microphones and H sources, at most H for D > 2. abar_h is the mean over three bins of the frame before;
/// those at the ends count twice.
#[inline(never)]
fn bins_of<const D: usize, const H: usize>(
    model: &SpatialModel<'_>,
    spectra: &mut [Complex<f32>],
    activities: &mut [f32],
) -> bool {
    let sources = if D == 2 { H } else { model.sources().min(H) };
    let (bins, constants) = (model.bins(), model.constants());
    let mut buffer = [0.0; LONGEST_RECORD];
    // Of the bins below, here and above, as they were in the frame before.
    let mut here = [0.0; H];
    copy(&mut here, span(activities, 0, sources));
    let mut below = here;
    let mut is_whole = true;
    for index in 0..bins {
        let parameters = model.bin(index, &mut buffer);
        let mut above = here;
        copy(&mut above, span(activities, (index + 1) * sources, sources));
        let mut expected = [0.0; MOST_SOURCES];
        for h in 0..sources.min(H) {
            expected[h & 3] = (below[h] + here[h] + above[h]) * (1.0 / 3.0);
        }
        (below, here) = (here, above);
        let mut y = [[0.0; 2]; D];
        for (channel, y) in y.iter_mut().enumerate() {
            *y = row(spectra, channel * bins + index);
        }
        let (mut activity, mut images) = ([0.0; MOST_SOURCES], [[0.0; 2]; MOST_SOURCES]);
        is_whole &= parameters.infer_of::<D, H>(&constants, &y, &expected, &mut activity, &mut images);
        copy(span_mut(activities, index * sources, sources), &activity);
        for (h, image) in images.iter().enumerate().take(sources) {
            set(spectra, h * bins + index, *image);
        }
    }
    is_whole
}
