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
pub(crate) mod rings;
mod sizes;
#[cfg(any(feature = "spatial", feature = "spectral"))]
pub mod stft;
mod transform;
mod windows;

use crate::blob::Blob;
use crate::blob::groups::Groups;
use crate::engine::Engine;
use crate::error::Error;
use crate::inference::Inference;
use crate::memory::{Detail, STATE_BASE};
use crate::state::{Held, State};
use mix::Mix;
use rings::Rings;
use sizes::{Sizes, Work};

#[cfg(any(feature = "spatial", feature = "spectral"))]
pub use frames::{FrameModel, FrameStream};
pub use rings::{Extent, Place};

/// The fixed part of [`stream_bytes`]: the C interface checks when it is built that its state fits.
pub const STREAM_BASE: usize = STATE_BASE + 176;

/// Bytes of memory that the C interface asks for per stream, the same on every target; 0 when there can be no stream.
pub fn stream_bytes(blob: &Blob<'_>) -> usize {
    match Stream::memory_len(blob) {
        0 => 0,
        len => len.saturating_add(1).saturating_mul(4).saturating_add(STREAM_BASE) & !7,
    }
}

/// Memory for inference, and for the rest.
fn cut<'m>(
    blob: &Blob<'_>,
    engine: &Engine,
    memory: &'m mut [f32],
) -> Result<(Sizes, &'m mut [f32], &'m mut [f32]), Error> {
    let sizes = Sizes::new(blob)?;
    let arena = engine.arena_len(blob.model_ref().shape, Detail::Marginals);
    let short = Error::Memory { needed: sizes.total().saturating_add(arena), found: memory.len() };
    if memory.len() < sizes.total().saturating_add(arena) {
        return Err(short);
    }
    let (arena, rest) = memory.split_at_mut_checked(arena).ok_or(short)?;
    Ok((sizes, arena, rest))
}

/// One stream of samples, and the signals of its sources.
///
/// ```
/// # let bytes = spikelet::doc::TWO_SOURCES;
/// use spikelet::{Blob, Engine, Stream};
/// let blob = Blob::parse(bytes).unwrap(); // two sensors, a source at each; every sample is a point
/// let mut memory = [0.0; 256];
/// let mut stream = Stream::new(blob, Engine::Truncated, &mut memory).unwrap();
/// assert_eq!((stream.channels(), stream.groups(), stream.latency(), stream.hop()), (2, 2, 0, 1));
/// let mut sources = [0.0; 4];
/// stream.process(&[0.0, 2.0, -3.0, 0.1], &mut sources).unwrap(); // two samples
/// assert!(sources[0].abs() < 0.1 && (sources[1] - 2.0).abs() < 0.1 && (sources[2] + 3.0).abs() < 0.1);
/// ```
#[derive(Debug)]
pub struct Stream<'m> {
    inference: Inference<'m, f32>,
    sizes: Sizes,
    groups: Groups<'m>,
    rate: u32,
    rings: Rings<'m>,
    work: Work<'m>,
}

impl<'m> Stream<'m> {
    /// Numbers of memory that [`Stream::new`] asks for, inferring as models of this kind do by default
    /// ([`Engine::of_kind`]); 0 when there can be no stream.
    pub fn memory_len(blob: &Blob<'_>) -> usize {
        Self::memory_len_for(blob, &Engine::of_kind(blob.kind()))
    }

    /// The same with another engine.
    pub fn memory_len_for(blob: &Blob<'_>, engine: &Engine) -> usize {
        let arena = engine.arena_len(blob.model_ref().shape, Detail::Marginals);
        Sizes::new(blob).map_or(0, |sizes| sizes.total().saturating_add(arena))
    }

    /// A stream at its beginning. Fails without enough memory, where the engine cannot run the model, for models of
    /// patches, and for maximal causes in more than one group.
    pub fn new(blob: Blob<'m>, engine: Engine, memory: &'m mut [f32]) -> Result<Self, Error> {
        let (sizes, arena, rest) = cut(&blob, &engine, memory)?;
        let inference = Inference::with_engine(blob.model(), arena, Detail::Marginals, engine)?;
        let mut stream = Self::of(&blob, inference, sizes, rest, Held::Own(Place::default()))?;
        stream.prepare();
        Ok(stream)
    }

    /// A stream whose state lives elsewhere, like the blob: nothing is copied, so this costs little per block. The first time
    /// [`Stream::prepare`] must follow.
    pub fn over(
        blob: &'m Blob<'m>,
        engine: Engine,
        memory: &'m mut [f32],
        state: &'m mut State<f32>,
        place: &'m mut Place,
    ) -> Result<Self, Error> {
        let (sizes, arena, rest) = cut(blob, &engine, memory)?;
        let inference = Inference::over(blob.model_ref(), engine, arena, state)?;
        Self::of(blob, inference, sizes, rest, Held::Lent(place))
    }

    fn of(
        blob: &Blob<'m>,
        inference: Inference<'m, f32>,
        sizes: Sizes,
        memory: &'m mut [f32],
        place: Held<Place, &'m mut Place>,
    ) -> Result<Self, Error> {
        let short = Error::Memory { needed: sizes.total(), found: memory.len() };
        let (input, output, work) = sizes.cut(blob, memory).ok_or(short)?;
        let Sizes { channels, groups, length, hop, .. } = sizes;
        let rings = Rings { extent: Extent { channels, groups, length, hop }, input, output, place };
        let rate = blob.frame().map_or(0, |frame| frame.rate);
        Ok(Self { inference, sizes, groups: blob.groups(), rate, rings, work })
    }

    /// Fills in the tables, and begins.
    pub fn prepare(&mut self) {
        let Self { inference, groups, work, .. } = self;
        match work {
            Work::Samples(mix) => mix.prepare(inference.model(), groups),
            Work::Windows(windows) => windows.prepare(self.sizes.hop),
            Work::Transform(transform) => transform.prepare(inference.model(), groups),
        }
        self.reset();
    }

    /// Starts over, as if no sample had come in.
    pub fn reset(&mut self) {
        self.inference.reset();
        self.rings.reset();
    }

    /// Numbers of a sample that goes in.
    pub fn channels(&self) -> usize {
        self.sizes.channels
    }

    /// Numbers of a sample that comes out.
    pub fn groups(&self) -> usize {
        self.sizes.groups
    }

    /// What they are called ([`Groups::name`]).
    pub fn names(&self) -> Groups<'m> {
        self.groups
    }

    /// Samples per second, 0 when unknown.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Samples by which sources come later than what they were heard in.
    pub fn latency(&self) -> usize {
        self.sizes.length - 1
    }

    /// Samples from one burst of work to the next.
    pub fn hop(&self) -> usize {
        self.sizes.hop
    }

    /// Takes n samples of all channels, sample by sample, and puts out n of all groups in the same way; n may be 0.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), Error> {
        let (rings, mut work) = self.parts();
        rings.process(input, output, &mut work)
    }

    /// The same with integers, as converters and sound files have them: 32768 is 1. What is louder comes out as the
    /// largest there is.
    pub fn process_i16(&mut self, input: &[i16], output: &mut [i16]) -> Result<(), Error> {
        let (rings, mut work) = self.parts();
        rings.process_i16(input, output, &mut work)
    }

    /// The rings, and what is done whenever K samples have come.
    fn parts(&mut self) -> (&mut Rings<'m>, impl FnMut(&[f32], &mut [f32], usize) -> bool) {
        let Self { inference, groups, rings, work, .. } = self;
        let burst = |input: &[f32], output: &mut [f32], oldest: usize| match work {
            Work::Samples(mix) => mix.infer(inference, input, groups, output, 1, 0),
            Work::Windows(windows) => windows.infer(inference, input, oldest, groups, output),
            Work::Transform(transform) => transform.infer(inference, input, oldest, groups, output),
        };
        (rings, burst)
    }
}
