//! Streams of models of points: their memory, how it is divided, and what becomes of a point.

use super::mix::Mix;
use super::rings::{Extent, Place, Rings};
use super::transform::Transform;
use super::windows::Windows;
use super::{Pieces, SourceStream, Work};
use crate::blob::Blob;
use crate::blob::frame::{Form, Frame};
use crate::blob::groups::Groups;
use crate::engine::Engine;
use crate::error::Error;
use crate::inference::Inference;
use crate::memory::Detail;
use crate::state::{Held, State};
use crate::stream::mdct::Mdct;

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
pub type Stream<'m> = SourceStream<'m, Points<'m>>;

/// Inference, and what points are made of.
#[derive(Debug)]
pub struct Points<'m> {
    inference: Inference<'m, f32>,
    groups: Groups<'m>,
    form: Made<'m>,
    hop: usize,
}

/// What the three forms of points need beside the rings.
#[derive(Debug)]
enum Made<'m> {
    Samples(Mix<'m>),
    Windows(Windows<'m>),
    Transform(Transform<'m>),
}

impl Work for Points<'_> {
    fn prepare(&mut self) {
        let Self { inference, groups, form, hop } = self;
        match form {
            Made::Samples(mix) => mix.prepare(inference.model(), groups),
            Made::Windows(windows) => windows.prepare(*hop),
            Made::Transform(transform) => transform.prepare(inference.model(), groups),
        }
    }

    fn reset(&mut self) {
        self.inference.reset();
    }

    fn infer(&mut self, input: &[f32], output: &mut [f32], oldest: usize) -> bool {
        let Self { inference, groups, form, .. } = self;
        match form {
            Made::Samples(mix) => mix.infer(inference, input, groups, output, 1, 0),
            Made::Windows(windows) => windows.infer(inference, input, oldest, groups, output),
            Made::Transform(transform) => transform.infer(inference, input, oldest, groups, output),
        }
    }
}

/// How much memory a stream takes beside that of inference.
struct Sizes {
    extent: Extent,
    /// Numbers that [`Mix`] needs.
    mix: usize,
    /// Tables and scratch memory.
    rest: usize,
}

impl Sizes {
    /// Fails where there can be no stream.
    fn new(blob: &Blob<'_>) -> Result<Self, Error> {
        let (shape, groups) = (&blob.model_ref().shape, blob.groups().len());
        let is_maximal = shape.kind.is_maximal();
        let mix = if is_maximal { 2 * shape.dims } else { shape.latents };
        let Frame { form, centred, .. } = frame(blob);
        let (channels, length, hop, mix, rest) = match form {
            _ if is_maximal && groups != 1 => {
                return Err(Error::Setting { field: "more than one group of maximal causes" });
            }
            Form::Samples if centred => {
                return Err(Error::Setting { field: "taking the mean off single samples" });
            }
            Form::Samples => (shape.dims, 1, 1, mix, 0),
            Form::Windows { length, hop } => (1, length as usize, hop as usize, 0, 3 * length as usize),
            Form::Transform { bins, channels } => {
                let (hop, channels) = (bins as usize, channels as usize);
                let rows = hop.saturating_mul(groups.saturating_add(channels));
                let rest = rows.saturating_add(channels).saturating_add(Mdct::table_len(hop));
                (channels, 2 * hop, hop, mix, rest)
            }
            Form::Patches { .. } => return Err(Error::Setting { field: "a stream of patches" }),
            Form::Fourier { .. } => {
                return Err(Error::Setting { field: "the short-time Fourier transform" });
            }
        };
        Ok(Self { extent: Extent { channels, groups, length, hop }, mix, rest })
    }

    /// Numbers, beside those of inference.
    fn total(&self) -> usize {
        self.extent.rings_len().saturating_add(self.mix).saturating_add(self.rest)
    }
}

/// Where the blob says nothing, every sample is a point.
fn frame(blob: &Blob<'_>) -> Frame {
    blob.frame().unwrap_or(Frame { form: Form::Samples, rate: 0, centred: false })
}

/// The sizes, memory for inference, and the rest.
fn cut<'m>(
    blob: &Blob<'_>,
    engine: &Engine,
    memory: &'m mut [f32],
) -> Result<(Sizes, &'m mut [f32], Pieces<'m>), Error> {
    let sizes = Sizes::new(blob)?;
    let arena = engine.arena_len(blob.model_ref().shape, Detail::Marginals);
    let (needed, found) = (sizes.total().saturating_add(arena), memory.len());
    let mut pieces = Pieces(memory);
    match pieces.take(arena) {
        Some(arena) if needed <= found => Ok((sizes, arena, pieces)),
        _ => Err(Error::Memory { needed, found }),
    }
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
        mut memory: Pieces<'m>,
        place: Held<Place, &'m mut Place>,
    ) -> Result<Self, Error> {
        let short = Error::Memory { needed: sizes.total(), found: memory.0.len() };
        let Sizes { extent: extent @ Extent { channels, groups, length, hop }, mix, .. } = sizes;
        let rings = Rings::cut(extent, &mut memory, place).ok_or(short)?;
        let Frame { form, centred, rate } = frame(blob);
        let clean = if blob.kind().is_maximal() { mix / 2 } else { 0 };
        let mut take = |len: usize| memory.take(len).ok_or(short);
        let mix = Mix { weights: take(mix - clean)?, clean: take(clean)? };
        let form = match form {
            Form::Windows { .. } => Made::Windows(Windows {
                weights: take(length)?,
                frame: take(length)?,
                part: take(length)?,
                centred,
            }),
            Form::Transform { .. } => Made::Transform(Transform {
                mix,
                table: take(Mdct::table_len(hop))?,
                spectra: take(channels * hop)?,
                parts: take(groups * hop)?,
                point: take(channels)?,
                gains: blob.gains(),
            }),
            _ => Made::Samples(mix),
        };
        let groups = blob.groups();
        Ok(Self { rings, names: groups, rate, work: Points { inference, groups, form, hop } })
    }
}
