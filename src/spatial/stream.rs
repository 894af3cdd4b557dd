//! Samples of all microphones in, one signal for each source out.

use super::bin::{Bin, Complex, Found, MOST_MICROPHONES, MOST_SOURCES};
use super::follow::{self, Moving};
use super::model::{LONGEST_RECORD, SpatialModel};
use crate::blob::groups::Groups;
use crate::numeric::slices::{copy, row, set, span};
use crate::stream::Pieces;
use crate::stream::frames::{FrameModel, FrameStream};
use crate::stream::rings::Extent;
use crate::stream::stft::Stft;

/// One stream of samples of spaced microphones, and the signals of its sources. After [`FrameStream::reset`] sources are expected as often
/// as they were on in training, and where they were then.
pub type SpatialStream<'m> = FrameStream<'m, SpatialModel<'m>>;

/// Memory of a stream of a room.
#[derive(Debug)]
pub struct Work<'m> {
    /// Spectra of all channels, one after the other, which those of sources take the place of. (max(D, H) (L/2 + 1))
    spectra: &'m mut [Complex<f32>],
    /// Activities of the frame before, those of all sources bin by bin. (H (L/2 + 1))
    activities: &'m mut [f32],
    /// Parameters that follow, if they do.
    pub(super) moved: follow::Memory<'m>,
}

impl SpatialModel<'_> {
    /// Numbers of the spectra, and of the activities.
    fn lens(&self) -> [usize; 2] {
        let (channels, sources, bins) = (self.microphones(), self.sources(), self.bins());
        [2 * bins * channels.max(sources), bins * sources]
    }
}

impl<'m> FrameModel<'m> for SpatialModel<'m> {
    type Work = Work<'m>;

    fn extent(&self) -> Extent {
        let (channels, groups) = (self.microphones(), self.sources());
        Extent { channels, groups, length: self.length(), hop: self.hop() }
    }

    fn rate(&self) -> u32 {
        self.rate()
    }

    fn names(&self) -> Groups<'m> {
        self.groups()
    }

    fn work_len(&self) -> usize {
        let [spectra, activities] = self.lens();
        spectra + activities + follow::memory_len(self)
    }

    fn work(&self, memory: &'m mut [f32]) -> Option<Work<'m>> {
        let [spectra, activities] = self.lens();
        let mut pieces = Pieces(memory);
        Some(Work {
            spectra: pieces.take(spectra)?.as_chunks_mut().0,
            activities: pieces.take(activities)?,
            moved: follow::Memory::cut(self, &mut pieces)?,
        })
    }

    fn prepare(&self, _: &mut Work<'m>) {}

    fn reset(&self, work: &mut Work<'m>) {
        let mut buffer = [0.0; LONGEST_RECORD];
        for (index, activities) in work.activities.chunks_exact_mut(self.sources().max(1)).enumerate() {
            copy(activities, self.bin(index, &mut buffer).activity);
        }
        work.moved.reset(self);
    }

    fn infer(
        &self,
        work: &mut Work<'m>,
        stft: Stft<'_>,
        input: &[f32],
        output: &mut [f32],
        oldest: usize,
    ) -> bool {
        let (length, bins) = (self.length().max(1), self.bins().max(1));
        let spectra = work.spectra.chunks_exact_mut(bins);
        for (ring, spectrum) in input.chunks_exact(length).zip(spectra) {
            stft.forward(ring, oldest, spectrum);
        }
        let mut moving = Moving::new(self, &mut work.moved);
        let is_whole = infer_bins(self, moving.as_mut(), work.spectra, work.activities);
        if let Some(moving) = moving {
            moving.turn();
        }
        let spectra = work.spectra.chunks_exact_mut(bins);
        for (ring, spectrum) in output.chunks_exact_mut(length).zip(spectra) {
            stft.inverse(spectrum, self.hop(), ring, oldest);
        }
        is_whole
    }
}

impl<'m> FrameStream<'m, SpatialModel<'m>> {
    /// Follows sources that move at another rate from the next frame on, 0 to 1/2; 0 holds parameters as they are. False for other rates
    /// and for models that do not follow ([`SpatialModel::following`]), which changes nothing.
    pub fn follow(&mut self, rate: f32) -> bool {
        let model = &mut self.work.model;
        let changed = model.following().and_then(|_| model.with_following(Some(rate)));
        *model = changed.unwrap_or(*model);
        changed.is_some()
    }
}

/// All bins, in order. abar_h is the mean over three bins of the frame before; those at the ends count twice.
#[inline(never)]
fn infer_bins(
    model: &SpatialModel<'_>,
    mut moving: Option<&mut Moving<'_, '_>>,
    spectra: &mut [Complex<f32>],
    activities: &mut [f32],
) -> bool {
    let (sources, bins, constants) = (model.sources(), model.bins(), model.constants());
    let mut buffer = [0.0; LONGEST_RECORD];
    // By itself: out of a tuple it would be copied, and take the stack twice.
    let mut found = Found::default();
    let (mut y, mut expected) = ([[0.0; 2]; MOST_MICROPHONES], [0.0; MOST_SOURCES]);
    // Of the bin below, as they were in the frame before.
    let mut below = [0.0; MOST_SOURCES];
    copy(&mut below, span(activities, 0, sources));
    let (mut rest, mut is_whole) = (activities, true);
    for index in 0..bins {
        let Some((here, above)) = rest.split_at_mut_checked(sources) else { break };
        let next = if above.is_empty() { &*here } else { &*above };
        for (((expected, below), &here), &above) in expected.iter_mut().zip(&mut below).zip(&*here).zip(next)
        {
            *expected = (*below + here + above) * (1.0 / 3.0);
            *below = here;
        }
        for (channel, y) in y.iter_mut().enumerate().take(model.microphones()) {
            *y = row(spectra, channel * bins + index);
        }
        let y = span(&y, 0, model.microphones());
        let mut bin = model.bin(index, &mut buffer);
        if let Some(moving) = &moving {
            bin = Bin { factors: moving.factors(index), ..bin };
        }
        is_whole &= bin.infer(&constants, y, &expected, &mut found);
        if let Some(moving) = &mut moving {
            moving.heard(index, &constants, y, &found);
        }
        copy(here, &found.activities);
        rest = above;
        for (h, image) in found.images.iter().enumerate().take(sources) {
            set(spectra, h * bins + index, *image);
        }
    }
    is_whole
}
