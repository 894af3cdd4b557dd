//! The functions of `include/spikelet.h` for streams.
#![allow(unsafe_code)] // exported names; every dereference is in `pointers`
#![allow(clippy::missing_safety_doc)] // the documentation is the C header's: it says what callers promise
#![allow(non_camel_case_types)] // C's names

use crate::api::{done, parse};
use crate::pointers::{Header, check, create, open, put, slice, slice_mut};
use crate::types::{SPK_ERR_LENGTH, SPK_ERR_OVERLAP, SPK_ERR_SETTING, SPK_STATE_ALIGN, spk_status, status};
use core::ffi::{c_char, c_void};
use spikelet::stream::{Place, STREAM_BASE, stream_bytes};
use spikelet::{Blob, Engine, State, Stream};

/// One stream of sound or of sensors. Opaque; lives in memory of the caller. It may be copied or moved as bytes (to memory
/// with the same alignment) as long as the blob stays where it is.
#[repr(C, align(8))]
pub struct spk_stream {
    magic: u32,
    blob: Blob<'static>,
    engine: Engine,
    state: State<f32>,
    place: Place,
}

impl Header for spk_stream {
    const MAGIC: u32 = 0x5350_4b02;
    const BASE: usize = STREAM_BASE;

    fn magic(&self) -> u32 {
        self.magic
    }

    fn arena_len(&self) -> usize {
        Stream::memory_len_for(&self.blob, &self.engine)
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
}

/// # Safety
/// As for [`open`].
unsafe fn opened<'a>(stream: *mut spk_stream) -> Result<Stream<'a>, spk_status> {
    // SAFETY: promised by the caller.
    let (header, memory) = unsafe { open(stream)? };
    let spk_stream { blob, engine, state, place, .. } = header;
    Stream::over(blob, *engine, memory, state, place).map_err(status)
}

/// Bytes of memory that spk_stream_init() needs for this blob; 0 when the blob is refused (spk_inspect() says why) or no stream
/// can be made of it, as of models of patches of pictures. The same on every target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_size(blob: *const c_void, blob_len: usize) -> usize {
    // SAFETY: promised by the caller: `blob` is NULL or points to `blob_len` readable bytes.
    unsafe { parse(blob, blob_len) }.map_or(0, |blob| stream_bytes(&blob))
}

/// Checks a blob and makes a stream: samples in, one signal for each source out. What becomes of samples, single ones of all
/// channels, windows, or coefficients of a lapped transform, is in the blob.
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
            let (blob, state, place) = (parse(blob, blob_len)?, State::default(), Place::default());
            if stream_bytes(&blob) == 0 {
                return Err(SPK_ERR_SETTING);
            }
            let engine = Engine::of_kind(blob.kind());
            let made = create(
                memory,
                memory_len,
                spk_stream { magic: spk_stream::MAGIC, blob, engine, state, place },
            )?;
            opened(made)?.prepare();
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
        let stream = unsafe { opened(stream)? };
        let found = spk_stream_info {
            channels: stream.channels() as u32,
            groups: stream.groups() as u32,
            latency: stream.latency() as u32,
            hop: stream.hop() as u32,
            rate: stream.rate(),
        };
        // SAFETY: as above.
        unsafe { put(info, found) }
    })())
}

/// What a source is called: NUL-terminated UTF-8 in the blob, never NULL; empty when it has no name, and for what is no
/// source or no stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_group_name(stream: *mut spk_stream, group: u32) -> *const c_char {
    // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
    let stream = unsafe { open(stream) };
    stream.map_or(c"", |(stream, _)| stream.blob.groups().c_name(group as usize)).as_ptr()
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
    done(unsafe {
        process(stream, input, output, samples, |stream, input, output| stream.process(input, output))
    })
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
    done(unsafe {
        process(stream, input, output, samples, |stream, input, output| stream.process_i16(input, output))
    })
}

/// Both of them.
///
/// # Safety
/// As spk_stream_process() documents.
unsafe fn process<T>(
    stream: *mut spk_stream,
    input: *const T,
    output: *mut T,
    samples: usize,
    run: impl FnOnce(&mut Stream<'_>, &[T], &mut [T]) -> Result<(), spikelet::Error>,
) -> Result<(), spk_status> {
    // SAFETY: promised by the caller.
    let mut stream = unsafe { opened(stream)? };
    let numbers = |each: usize| each.checked_mul(samples).ok_or(SPK_ERR_LENGTH);
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
    unsafe { run(&mut stream, slice(input, read)?, slice_mut(output, written)?).map_err(status) }
}

/// Begins anew, as if the stream had just been made.
///
/// @return SPK_OK, SPK_ERR_NULL, SPK_ERR_ALIGNMENT or SPK_ERR_STATE
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spk_stream_reset(stream: *mut spk_stream) -> spk_status {
    done((|| {
        // SAFETY: promised by the caller: `stream` is NULL or comes from spk_stream_init().
        unsafe { opened(stream)? }.reset();
        Ok(())
    })())
}
