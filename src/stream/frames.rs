//! Streams of models that work on frames of a short-time Fourier transform: rings, the transform, and what a model makes of a frame.

use crate::blob::groups::Groups;
use crate::error::Error;
use crate::state::Held;
use crate::stream::rings::{Extent, Place, Rings};
use crate::stream::stft::Stft;
use crate::stream::{Pieces, SourceStream, Work, bytes_of};
use core::fmt::Debug;

/// Bytes of memory that the C interface asks for per stream, the same on every target.
pub fn stream_bytes<'m, M: FrameModel<'m>>(model: &M) -> usize {
    bytes_of(FrameStream::memory_len(model))
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

/// One stream of samples and the signals of its sources, like [`crate::Stream`] for points. Time, lengths of blocks and errors are as
/// there; the latency is L - 1 samples.
pub type FrameStream<'m, M> = SourceStream<'m, Frames<'m, M>>;

/// A model, the transform, and memory of the model.
#[derive(Debug)]
pub struct Frames<'m, M: FrameModel<'m>> {
    pub(crate) model: M,
    pub(crate) memory: M::Work,
    /// Of the transform. (L)
    table: &'m mut [f32],
}

impl<'m, M: FrameModel<'m>> Work for Frames<'m, M> {
    fn prepare(&mut self) {
        Stft::prepare(self.table);
        self.model.prepare(&mut self.memory);
    }

    fn reset(&mut self) {
        self.model.reset(&mut self.memory);
    }

    fn infer(&mut self, input: &[f32], output: &mut [f32], oldest: usize) -> bool {
        self.model.infer(&mut self.memory, Stft::over(self.table), input, output, oldest)
    }
}

impl<'m, M: FrameModel<'m>> FrameStream<'m, M> {
    /// Numbers of memory that [`FrameStream::new`] asks for.
    pub fn memory_len(model: &M) -> usize {
        let extent = model.extent();
        extent.rings_len() + Stft::table_len(extent.length) + model.work_len()
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
        let (extent, mut memory) = (model.extent(), Pieces(memory));
        let rings = Rings::cut(extent, &mut memory, place).ok_or(short)?;
        let table = memory.take(Stft::table_len(extent.length)).ok_or(short)?;
        let (names, rate) = (model.names(), model.rate());
        let work = memory.take(model.work_len()).and_then(|memory| model.work(memory)).ok_or(short)?;
        Ok(Self { rings, names, rate, work: Frames { model, memory: work, table } })
    }
}
