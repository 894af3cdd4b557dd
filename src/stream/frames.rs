//! Streams of models that work on frames of a short-time Fourier transform: rings, the transform, and what a model makes of a frame.

use crate::blob::groups::Groups;
use crate::error::Error;
use crate::state::Held;
use crate::stream::STREAM_BASE;
use crate::stream::rings::{Extent, Place, Rings};
use crate::stream::stft::Stft;
use core::fmt::Debug;

/// Bytes of memory that the C interface asks for per stream, the same on every target.
pub fn stream_bytes<'m, M: FrameModel<'m>>(model: &M) -> usize {
    FrameStream::memory_len(model).saturating_add(1).saturating_mul(4).saturating_add(STREAM_BASE) & !7
}

/// What a stream asks of a model.
pub trait FrameModel<'m>: Copy + Debug {
    /// Memory beside the rings and the table of the transform.
    type Work: Debug;

    /// Channels, sources, L and K.
    fn extent(&self) -> Extent;

    /// Samples per second, 0 when unknown.
    fn rate(&self) -> u32;

    /// What sources are called.
    fn names(&self) -> Groups<'m>;

    /// Numbers of memory for the work.
    fn work_len(&self) -> usize;

    /// Divides that memory; nothing where it is too short.
    fn work(&self, memory: &'m mut [f32]) -> Option<Self::Work>;

    /// Fills in the tables.
    fn prepare(&self, work: &mut Self::Work);

    /// As if nothing had been heard.
    fn reset(&self, work: &mut Self::Work);

    /// Infers the frame whose first sample is at `oldest` in the rings and adds the sources to `output`; false where some of it cannot be
    /// inferred, which leaves silence.
    fn infer(
        &self,
        work: &mut Self::Work,
        stft: Stft<'_>,
        input: &[f32],
        output: &mut [f32],
        oldest: usize,
    ) -> bool;
}

/// Cuts memory into pieces, one after the other.
pub(crate) struct Pieces<'m>(pub &'m mut [f32]);

impl<'m> Pieces<'m> {
    pub fn take(&mut self, len: usize) -> Option<&'m mut [f32]> {
        let (head, tail) = core::mem::take(&mut self.0).split_at_mut_checked(len)?;
        self.0 = tail;
        Some(head)
    }
}

/// One stream of samples and the signals of its sources, like [`crate::Stream`] for points. Time, lengths of blocks and errors are as
/// there; the latency is L - 1 samples.
#[derive(Debug)]
pub struct FrameStream<'m, M: FrameModel<'m>> {
    pub(crate) model: M,
    pub(crate) work: M::Work,
    rings: Rings<'m>,
    /// Of the transform. (L)
    table: &'m mut [f32],
}

impl<'m, M: FrameModel<'m>> FrameStream<'m, M> {
    /// Numbers of memory that [`FrameStream::new`] asks for.
    pub fn memory_len(model: &M) -> usize {
        let Extent { channels, groups, length, .. } = model.extent();
        length * (channels + groups) + Stft::table_len(length) + model.work_len()
    }

    /// A stream at its beginning. Fails without enough memory.
    pub fn new(model: M, memory: &'m mut [f32]) -> Result<Self, Error> {
        let mut stream = Self::of(model, memory, Held::Own(Place::default()))?;
        stream.prepare();
        Ok(stream)
    }

    /// A stream whose state lives elsewhere. The first time [`FrameStream::prepare`] must follow.
    pub fn over(model: &M, memory: &'m mut [f32], place: &'m mut Place) -> Result<Self, Error> {
        Self::of(*model, memory, Held::Lent(place))
    }

    fn of(model: M, memory: &'m mut [f32], place: Held<Place, &'m mut Place>) -> Result<Self, Error> {
        let short = Error::Memory { needed: Self::memory_len(&model), found: memory.len() };
        let extent = model.extent();
        let Extent { channels, groups, length, .. } = extent;
        let mut pieces = Pieces(memory);
        let mut take = |len: usize| pieces.take(len).ok_or(short);
        let (input, output) = (take(length * channels)?, take(length * groups)?);
        let table = take(Stft::table_len(length))?;
        let work = model.work(take(model.work_len())?).ok_or(short)?;
        Ok(Self { model, work, rings: Rings { extent, input, output, place }, table })
    }

    /// Fills in the tables, and begins.
    pub fn prepare(&mut self) {
        Stft::prepare(self.table);
        self.model.prepare(&mut self.work);
        self.reset();
    }

    /// Starts over, as if no sample had come in.
    pub fn reset(&mut self) {
        self.rings.reset();
        self.model.reset(&mut self.work);
    }

    /// Numbers of a sample that goes in.
    pub fn channels(&self) -> usize {
        self.rings.extent.channels
    }

    /// Numbers of a sample that comes out.
    pub fn groups(&self) -> usize {
        self.rings.extent.groups
    }

    /// What they are called.
    pub fn names(&self) -> Groups<'m> {
        self.model.names()
    }

    /// Samples per second, 0 when unknown.
    pub fn rate(&self) -> u32 {
        self.model.rate()
    }

    /// Samples by which sources come later than what they were heard in.
    pub fn latency(&self) -> usize {
        self.rings.extent.length - 1
    }

    /// Samples from one burst of work to the next.
    pub fn hop(&self) -> usize {
        self.rings.extent.hop
    }

    /// Takes n samples of all channels, sample by sample, and puts out n of all sources in the same way; n may be 0.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Error> {
        let (rings, mut infer) = self.parts();
        rings.process(input, output, &mut infer)
    }

    /// The same with integers: 32768 is 1. What is louder comes out as the largest there is.
    pub fn process_i16(&mut self, input: &[i16], output: &mut [i16]) -> Result<(), Error> {
        let (rings, mut infer) = self.parts();
        rings.process_i16(input, output, &mut infer)
    }

    /// The rings, and what is done whenever K samples have come.
    fn parts(&mut self) -> (&mut Rings<'m>, impl FnMut(&[f32], &mut [f32], usize) -> bool) {
        let Self { model, work, rings, table } = self;
        (rings, |input: &[f32], output: &mut [f32], oldest: usize| {
            model.infer(work, Stft::over(table), input, output, oldest)
        })
    }
}
