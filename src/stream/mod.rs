//! Samples in, sources out: for sound and sensors, block by block as they come.
//!
//! ```text
//! samples of all channels ──▶ ring ──every `hop` samples──▶ points ─▶ inference ─▶ parts of groups ──▶ ring ──▶ sources
//! ```
//!
//! The blob's frame says what a point is ([`crate::blob::frame`]); L numbers of each channel make one or more points, every K samples:
//!
//! | form | L | K | points | a group's signal |
//! |---|---|---|---|---|
//! | samples | 1 | 1 | the sample | its part of the sample, where it is loudest |
//! | windows | length | hop | the window | its part of the reconstruction, windows added up by weight |
//! | transform | 2 N | N | N coefficients of all channels | its part of every coefficient, transformed back |
//!
//! With x the posterior means `<s.z>`, the part of group g is sum_{h in g} W_dh x_h; those of all groups add up to the whole
//! reconstruction. Where a point is one number of each channel, d is the channel with the largest sum of W_dh^2 over the
//! group: a source comes out as it is heard at the microphone nearest to it. Maximal causes are not added up, so all latents must be one
//! group then, and its signal is the reconstruction.
//!
//! **Time.** As many samples come out as go in. Sample t of the output belongs to sample t - [`Stream::latency`] of the
//! input, L - 1, and is 0 before there was one. Before its first sample a stream assumes silence; to flush its end, send as many
//! zeros after it. Work is done at once when the last of K samples has come: an audio callback must be given
//! time for all of it, or run `hop` samples at a time. **The bits do not depend on the lengths of blocks.**
//!
//! **Errors.** A block of a wrong length or with a number that is not finite is refused as a whole, and nothing has changed.
//! Numbers that are finite but too large for the model ([`Error::OutOfRange`]) are an error too, but the block was taken and the
//! output is complete: the points that could not be inferred are silence in it.
//!
//! Memory: that of inference, L numbers for each channel and each group, and tables: [`Stream::memory_len`].

pub(crate) mod fourier;
#[cfg(any(feature = "spatial", feature = "spectral"))]
pub(crate) mod frames;
pub mod mdct;
mod mix;
mod points;
pub(crate) mod rings;
#[cfg(any(feature = "spatial", feature = "spectral"))]
pub mod stft;
mod transform;
mod windows;

use crate::blob::Blob;
use crate::blob::groups::Groups;
use crate::error::Error;
use crate::memory::STATE_BASE;
use rings::Rings;

#[cfg(any(feature = "spatial", feature = "spectral"))]
pub use frames::{FrameModel, FrameStream};
pub use points::{Points, Stream};
pub use rings::{Extent, Place};

/// The fixed part of [`stream_bytes`]: the C interface checks when it is built that its state fits.
pub const STREAM_BASE: usize = STATE_BASE + 176;

/// Bytes of memory that the C interface asks for per stream, the same on every target; 0 when there can be no stream.
pub fn stream_bytes(blob: &Blob<'_>) -> usize {
    bytes_of(Stream::memory_len(blob))
}

/// The same from numbers of memory.
pub const fn bytes_of(memory_len: usize) -> usize {
    match memory_len {
        0 => 0,
        len => len.saturating_add(1).saturating_mul(4).saturating_add(STREAM_BASE) & !7,
    }
}

/// What a stream does with the samples in its rings.
pub trait Work {
    /// Fills in the tables.
    fn prepare(&mut self);

    /// As if no sample had come in.
    fn reset(&mut self);

    /// K samples have come, the oldest of the last L is at `oldest` in the rings: infers from the rings of input and adds the
    /// sources to those of output; false where some of it cannot be inferred, which leaves silence.
    fn infer(&mut self, input: &[f32], output: &mut [f32], oldest: usize) -> bool;
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

/// One stream of samples, and the signals of its sources: of points ([`Stream`]) or of frames of a short-time Fourier transform
/// (`SpatialStream`, `SpectralStream`).
#[derive(Debug)]
pub struct SourceStream<'m, W: ?Sized> {
    rings: Rings<'m>,
    names: Groups<'m>,
    rate: u32,
    pub(crate) work: W,
}

impl<'m, W: Work + ?Sized> SourceStream<'m, W> {
    /// Fills in the tables, and begins.
    pub fn prepare(&mut self) {
        self.work.prepare();
        self.reset();
    }

    /// Starts over, as if no sample had come in.
    pub fn reset(&mut self) {
        self.rings.reset();
        self.work.reset();
    }

    /// Numbers of a sample that goes in.
    pub fn channels(&self) -> usize {
        self.rings.extent.channels
    }

    /// Numbers of a sample that comes out.
    pub fn groups(&self) -> usize {
        self.rings.extent.groups
    }

    /// What they are called ([`Groups::name`]).
    pub fn names(&self) -> Groups<'m> {
        self.names
    }

    /// Samples per second, 0 when unknown.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Samples by which sources come later than what they were heard in.
    pub fn latency(&self) -> usize {
        self.rings.extent.length - 1
    }

    /// Samples from one burst of work to the next.
    pub fn hop(&self) -> usize {
        self.rings.extent.hop
    }

    /// Takes n samples of all channels, sample by sample, and puts out n of all groups in the same way; n may be 0.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Error> {
        self.rings.process(input, output, &mut self.work)
    }

    /// The same with integers, as converters and sound files have them: 32768 is 1. What is louder comes out as the
    /// largest there is.
    pub fn process_i16(&mut self, input: &[i16], output: &mut [i16]) -> Result<(), Error> {
        self.rings.process_i16(input, output, &mut self.work)
    }
}
