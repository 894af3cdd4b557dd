//! The functions of `include/spikelet.h` for streams.
#![allow(unsafe_code)] // exported names; every dereference is in `pointers`
#![allow(clippy::missing_safety_doc)] // the documentation is the C header's: it says what callers promise
#![allow(non_camel_case_types)] // C's names

use crate::api::{done, parse};
use crate::pointers::{Header, check, create, open, put, slice, slice_mut};
#[cfg(any(feature = "spatial", feature = "spectral"))]
use crate::types::{SPK_ERR_BLOB_STREAM, blob_status};
use crate::types::{SPK_ERR_LENGTH, SPK_ERR_OVERLAP, SPK_ERR_SETTING, SPK_ERR_STATE, SPK_STATE_ALIGN};
use crate::types::{spk_status, status};
use core::ffi::{c_char, c_void};
use spikelet::stream::{Place, STREAM_BASE, SourceStream, Work, bytes_of};
use spikelet::{Blob, Engine, Error, Features, State, Stream};
#[cfg(feature = "spatial")]
use spikelet::{SpatialModel, SpatialStream};
#[cfg(feature = "spectral")]
use spikelet::{SpectralModel, SpectralStream};

/// One stream of sound or of sensors. Opaque; lives in memory of the caller. It may be copied or moved as bytes (to memory
/// with the same alignment) as long as the blob stays where it is.
#[repr(C, align(8))]
pub struct spk_stream {
    magic: u32,
    separator: Separator,
    place: Place,
}

/// What separates sources, and what it remembers outside the numbers.
#[allow(clippy::large_enum_variant)] // there is no heap
enum Separator {
    Points {
        blob: Blob<'static>,
        engine: Engine,
        state: State<f32>,
    },
    #[cfg(feature = "spatial")]
    Spatial(SpatialModel<'static>),
    #[cfg(feature = "spectral")]
    Spectral(SpectralModel<'static>),
}

impl Separator {
    /// # Safety
    /// Unless NULL, `blob` points to `len` bytes that stay as they are.
    unsafe fn parse(blob: *const c_void, len: usize) -> Result<Self, spk_status> {
        // SAFETY: promised by the caller.
        match unsafe { parse(blob, len) } {
            #[cfg(any(feature = "spatial", feature = "spectral"))]
            Err(SPK_ERR_BLOB_STREAM) => {
                // SAFETY: as above.
                let bytes = unsafe { slice(blob.cast::<u8>(), len)? };
                #[cfg(feature = "spectral")]
                if SpectralModel::is_one(bytes) {
                    return SpectralModel::parse(bytes).map(Self::Spectral).map_err(blob_status);
                }
                #[cfg(feature = "spatial")]
                return SpatialModel::parse(bytes).map(Self::Spatial).map_err(blob_status);
                #[cfg(not(feature = "spatial"))]
                Err(SPK_ERR_BLOB_STREAM)
            }
            parsed => {
                let blob = parsed?;
                Ok(Self::Points { blob, engine: Engine::of_kind(blob.kind()), state: State::default() })
            }
        }
    }

    /// Numbers of memory; 0 when there can be no stream.
    fn memory_len(&self) -> usize {
        match self {
            Self::Points { blob, engine, .. } if Features::HAS_POINTS => Stream::memory_len_for(blob, engine),
            Self::Points { .. } => 0, // was refused
            #[cfg(feature = "spatial")]
            Self::Spatial(model) => SpatialStream::memory_len(model),
            #[cfg(feature = "spectral")]
            Self::Spectral(model) => SpectralStream::memory_len(model),
        }
    }

    fn microphone(&self) -> usize {
        match self {
            Self::Points { .. } => 0,
            #[cfg(feature = "spatial")]
            Self::Spatial(model) => model.constants().microphone,
            #[cfg(feature = "spectral")]
            Self::Spectral(_) => 0,
        }
    }

    /// The model of a room, which alone has settings here.
    #[cfg(feature = "spatial")]
    fn room(&mut self) -> Result<&mut SpatialModel<'static>, spk_status> {
        match self {
            Self::Spatial(model) => Ok(model),
            _ => Err(SPK_ERR_SETTING),
        }
    }

    #[cfg(feature = "spatial")]
    fn choose(&mut self, microphone: usize) -> Result<(), spk_status> {
        let model = self.room()?;
        *model = model.with_microphone(microphone).ok_or(SPK_ERR_SETTING)?;
        Ok(())
    }

    #[cfg(feature = "spatial")]
    fn follow(&mut self, rate: f32) -> Result<(), spk_status> {
        let model = self.room()?;
        // Another model has no memory for it.
        let changed = model.following().and_then(|_| model.with_following(Some(rate)));
        *model = changed.ok_or(SPK_ERR_SETTING)?;
        Ok(())
    }

    #[cfg(not(feature = "spatial"))]
    fn choose(&mut self, _: usize) -> Result<(), spk_status> {
        Err(SPK_ERR_SETTING)
    }

    #[cfg(not(feature = "spatial"))]
    fn follow(&mut self, _: f32) -> Result<(), spk_status> {
        Err(SPK_ERR_SETTING)
    }
}

impl Header for spk_stream {
    const MAGIC: u32 = 0x5350_4b02;
    const BASE: usize = STREAM_BASE;

    fn magic(&self) -> u32 {
        self.magic
    }

    fn arena_len(&self) -> usize {
        self.separator.memory_len()
    }
}

const _: () = assert!(size_of::<spk_stream>() <= STREAM_BASE, "raise spikelet::stream::STREAM_BASE");
const _: () =
    assert!(align_of::<spk_stream>() == SPK_STATE_ALIGN && STREAM_BASE.is_multiple_of(SPK_STATE_ALIGN));

/// What goes in and comes out of a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct spk_stream_info {
    /// Numbers of a sample that goes in.
    pub channels: u32,
    /// Numbers of a sample that comes out, one for each source (group of latents).
    pub groups: u32,
    /// Samples by which sources come later than what they were heard in.
    pub latency: u32,
    /// Samples from one burst of work to the next: blocks of this many take the same time each.
    pub hop: u32,
    /// Samples per second that the model was made for, 0 when unknown.
    pub rate: u32,
    /// The channel that sources come out as they are heard at: see spk_stream_set_microphone(). 0 for models that have no
    /// choice.
    pub microphone: u32,
}

/// A stream of any sort.
type AnyStream<'x> = SourceStream<'x, dyn Work + 'x>;

/// A block through a stream.
trait Run: Sized {
    fn run(stream: &mut AnyStream<'_>, input: &[Self], output: &mut [Self]) -> Result<(), Error>;
}

impl Run for f32 {
    fn run(stream: &mut AnyStream<'_>, input: &[f32], output: &mut [f32]) -> Result<(), Error> {
        stream.process(input, output)
    }
}

impl Run for i16 {
    fn run(stream: &mut AnyStream<'_>, input: &[i16], output: &mut [i16]) -> Result<(), Error> {
        stream.process_i16(input, output)
    }
}

/// Does something with a stream.
///
/// # Safety
/// As for [`open`].
unsafe fn with_stream(
    stream: *mut spk_stream,
    act: &mut dyn FnMut(&mut AnyStream<'_>) -> Result<(), spk_status>,
) -> Result<(), spk_status> {
    // SAFETY: promised by the caller.
    let (header, memory) = unsafe { open(stream)? };
    let spk_stream { separator, place, .. } = header;
    match separator {
        Separator::Points { .. } if !Features::HAS_POINTS => Err(SPK_ERR_STATE),
        Separator::Points { blob, engine, state } => {
            act(&mut Stream::over(blob, *engine, memory, state, place).map_err(status)?)
        }
        #[cfg(feature = "spatial")]
        Separator::Spatial(model) => act(&mut SpatialStream::over(model, memory, place).map_err(status)?),
        #[cfg(feature = "spectral")]
        Separator::Spectral(model) => act(&mut SpectralStream::over(model, memory, place).map_err(status)?),
    }
}

/// A stream of sources in one channel.
///
/// # Safety
/// As for [`open`].
#[cfg(feature = "spectral")]
pub(crate) unsafe fn spectral_stream<'a>(stream: *mut spk_stream) -> Result<SpectralStream<'a>, spk_status> {
    // SAFETY: promised by the caller.
    let (header, memory) = unsafe { open(stream)? };
    match &header.separator {
        Separator::Spectral(model) => SpectralStream::over(model, memory, &mut header.place).map_err(status),
        _ => Err(SPK_ERR_SETTING),
    }
}

/// Bytes of memory that spk_stream_init() needs for this blob; 0 when the blob is refused (spk_inspect() says why) or no stream
/// can be made of it, as of models of patches of pictures. The same on every target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_size(blob: *const c_void, blob_len: usize) -> usize {
    // SAFETY: promised by the caller: `blob` is NULL or points to `blob_len` readable bytes.
    unsafe { Separator::parse(blob, blob_len) }.map_or(0, |separator| bytes_of(separator.memory_len()))
}

/// Checks a blob and makes a stream: samples in, one signal for each source out. What becomes of samples, single ones of all
/// channels, windows, coefficients of a lapped transform, or spectra for sources in a room or in one channel, is in the blob.
///
/// @param memory      memory for the stream, aligned to SPK_STATE_ALIGN bytes; it belongs to the stream from now on.
///                    There is nothing to free: when done, just reuse it.
/// @param memory_len  bytes there, at least spk_stream_size()
/// @param blob        the blob, aligned to SPK_STATE_ALIGN bytes. It is not copied: it must stay in
///                    place and unchanged as long as the stream is used.
/// @param blob_len    bytes readable there
/// @param stream      set on success
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_MEMORY, SPK_ERR_SETTING (no stream can be made of this model) or a
///         SPK_ERR_BLOB_ code
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_init(
    memory: *mut c_void,
    memory_len: usize,
    blob: *const c_void,
    blob_len: usize,
    stream: *mut *mut spk_stream,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller, as documented above.
        unsafe {
            put(stream, core::ptr::null_mut())?;
            let separator = Separator::parse(blob, blob_len)?;
            if separator.memory_len() == 0 {
                return Err(SPK_ERR_SETTING);
            }
            let header = spk_stream { magic: spk_stream::MAGIC, separator, place: Place::default() };
            let made = create(memory, memory_len, header)?;
            with_stream(made, &mut |stream| {
                stream.prepare();
                Ok(())
            })?;
            put(stream, made)
        }
    })())
}

/// Says what goes in and comes out of a stream.
///
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or SPK_ERR_STATE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_inspect(
    stream: *mut spk_stream,
    info: *mut spk_stream_info,
) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        let (mut found, microphone) =
            unsafe { (spk_stream_info::default(), open(stream)?.0.separator.microphone()) };
        // SAFETY: as above.
        unsafe {
            with_stream(stream, &mut |stream| {
                found = spk_stream_info {
                    channels: stream.channels() as u32,
                    groups: stream.groups() as u32,
                    latency: stream.latency() as u32,
                    hop: stream.hop() as u32,
                    rate: stream.rate(),
                    microphone: microphone as u32,
                };
                Ok(())
            })?;
        }
        // SAFETY: as above.
        unsafe { put(info, found) }
    })())
}

/// What a source is called: NUL-terminated UTF-8 in the blob, never NULL; empty when it has no name, and for what is no
/// source or no stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_group_name(stream: *mut spk_stream, group: u32) -> *const c_char {
    // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
    let mut name = c"".as_ptr();
    let mut find = |stream: &mut AnyStream<'_>| {
        name = stream.names().c_name(group as usize).as_ptr();
        Ok(())
    };
    // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
    let _ = unsafe { with_stream(stream, &mut find) };
    name
}

/// Chooses the channel that sources come out as they are heard at, for models of spaced microphones; the blob says which it is
/// at first. Takes effect with the next frame, without a click in between, and stays until it is changed.
///
/// @param stream      from spk_stream_init()
/// @param microphone  below the stream's `channels`
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, or SPK_ERR_SETTING (no such channel, or another kind of model)
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_set_microphone(stream: *mut spk_stream, microphone: u32) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        unsafe { open(stream)? }.0.separator.choose(microphone as usize)
    })())
}

/// How fast the parameters of a room follow sources that move slowly, for models of two microphones that were trained to
/// follow (`spikelet train --follow`); the blob says the rate at first. Takes effect with the next frame and stays until it is
/// changed; spk_stream_reset() goes back to the parameters that were trained.
///
/// @param stream  from spk_stream_init()
/// @param rate    0 to 0.5; 0 holds parameters as they are now
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, or SPK_ERR_SETTING (no such rate, or a model that does not
///         follow)
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_set_following(stream: *mut spk_stream, rate: f32) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        unsafe { open(stream)? }.0.separator.follow(rate)
    })())
}

/// Takes samples and puts out as many of every source. Sample t that comes out, counted from the beginning of the stream,
/// belongs to sample t - latency that went in, and is 0 before there was one. Whatever the lengths of blocks, the bits are the
/// same. To get the end of a recording, send `latency` samples of zeros after it. Allocates nothing and does not block; the
/// work is done at once whenever `hop` samples are complete.
///
/// @param stream   from spk_stream_init()
/// @param input    `samples` times `channels` finite numbers, in the units the model was trained in: all channels of one
///                 sample, then of the next
/// @param output   filled with `samples` times `groups` numbers in the same way; must not overlap `input`
/// @param samples  how many samples; may be 0
/// @return SPK_OK; SPK_ERR_NULL, SPK_ERR_ALIGNMENT, SPK_ERR_STATE, SPK_ERR_LENGTH, SPK_ERR_OVERLAP or SPK_ERR_NOT_FINITE, and
///         nothing has changed; SPK_ERR_RANGE when some numbers were too large for the model: `output` is complete, with silence
///         where they would be
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_process(
    stream: *mut spk_stream,
    input: *const f32,
    output: *mut f32,
    samples: usize,
) -> spk_status {
    // SAFETY: promised by the caller, as documented above.
    done(unsafe { process(stream, input, output, samples) })
}

/// spk_stream_process() for 16-bit integers, as converters and sound files have them: 32768 is 1. What comes out louder is the
/// largest there is.
///
/// @param stream   from spk_stream_init()
/// @param input    `samples` times `channels` integers
/// @param output   filled with `samples` times `groups` integers; must not overlap `input`
/// @param samples  how many samples; may be 0
/// @return as spk_stream_process()
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_process_i16(
    stream: *mut spk_stream,
    input: *const i16,
    output: *mut i16,
    samples: usize,
) -> spk_status {
    // SAFETY: promised by the caller, as documented above.
    done(unsafe { process(stream, input, output, samples) })
}

/// Both of them.
///
/// # Safety
/// As spk_stream_process() documents.
unsafe fn process<T: Run>(
    stream: *mut spk_stream,
    input: *const T,
    output: *mut T,
    samples: usize,
) -> Result<(), spk_status> {
    let mut act = |stream: &mut AnyStream<'_>| {
        let numbers = |each: usize| samples.checked_mul(each).ok_or(SPK_ERR_LENGTH);
        let (read, written) = (numbers(stream.channels())?, numbers(stream.groups())?);
        check(input, read)?;
        check(output, written)?;
        let (from, to) = (input.addr(), output.addr());
        // Neither is longer than memory can be.
        let end = |start: usize, numbers: usize| start.saturating_add(numbers * size_of::<T>());
        if from < end(to, written) && to < end(from, read) {
            return Err(SPK_ERR_OVERLAP);
        }
        // SAFETY: promised by the caller, and they do not overlap.
        unsafe { T::run(stream, slice(input, read)?, slice_mut(output, written)?).map_err(status) }
    };
    // SAFETY: promised by the caller.
    unsafe { with_stream(stream, &mut act) }
}

/// Starts over, as if the stream had just been initialised.
///
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or SPK_ERR_STATE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_reset(stream: *mut spk_stream) -> spk_status {
    let mut reset = |stream: &mut AnyStream<'_>| {
        stream.reset();
        Ok(())
    };
    // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
    done(unsafe { with_stream(stream, &mut reset) })
}
