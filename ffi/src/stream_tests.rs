//! Streams through the functions of the C interface: good arguments accepted, bad ones refused.
#![allow(unsafe_code)]

use crate::api::{spk_init, spk_missing_features, spk_status_str};
use crate::stream::*;
use crate::types::*;
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use spikelet::{Aligned, Blob, Engine, Stream};
use std::vec;
use std::vec::Vec;

macro_rules! file {
    ($extension:literal) => {
        include_bytes!(concat!("../../tests/conformance/stream-d2h6.", $extension))
    };
}

static MODEL: Aligned<{ file!("spk").len() }> = Aligned::new(file!("spk"));

/// The recording, 500 samples of two channels; fewer where every instruction is interpreted.
fn recording() -> Vec<f32> {
    let words = file!("f32").as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    words.take(if cfg!(miri) { 64 } else { 1000 }).collect()
}

fn size(blob: &[u8]) -> usize {
    // SAFETY: pointer and length belong together.
    unsafe { spk_stream_size(blob.as_ptr().cast(), blob.len()) }
}

fn memory() -> Vec<u64> {
    assert!(size(MODEL.bytes()).is_multiple_of(8));
    vec![0xa5a5_a5a5_a5a5_a5a5; size(MODEL.bytes()) / 8]
}

fn init(memory: &mut [u64]) -> *mut spk_stream {
    let (mut stream, blob) = (null_mut(), MODEL.bytes());
    let (bytes, len) = (memory.as_mut_ptr().cast(), memory.len() * 8);
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_stream_init(bytes, len, blob.as_ptr().cast(), blob.len(), &mut stream) };
    assert_eq!(status, SPK_OK);
    stream
}

fn process(stream: *mut spk_stream, input: &[f32], block: usize) -> Vec<f32> {
    let mut output = vec![f32::NAN; input.len() / 2 * 3];
    for (input, output) in input.chunks(2 * block).zip(output.chunks_mut(3 * block)) {
        // SAFETY: pointers and lengths belong together.
        let status =
            unsafe { spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), input.len() / 2) };
        assert_eq!(status, SPK_OK);
    }
    output
}

/// Samples mean nothing to a model of coefficients, so that no state is made of it.
#[test]
fn a_transform_is_for_streams_only() {
    let (mut memory, blob, mut state) = (memory(), MODEL.bytes(), null_mut());
    let (bytes, len) = (memory.as_mut_ptr().cast(), memory.len() * 8);
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_init(bytes, len, blob.as_ptr().cast(), blob.len(), &mut state) };
    assert_eq!(status, SPK_ERR_BLOB_STREAM);
    assert!(state.is_null());
}

#[test]
fn missing_features_are_named() {
    let blob = MODEL.bytes();
    let mut text = [1u8; 8];
    let mut missing = |blob: &[u8], len| {
        // SAFETY: pointers and lengths belong together.
        let status =
            unsafe { spk_missing_features(blob.as_ptr().cast(), blob.len(), text.as_mut_ptr().cast(), len) };
        (status, text)
    };
    // This library has all; what else is wrong with a blob is said as ever.
    assert_eq!(missing(blob, 8), (SPK_OK, [0; 8]));
    assert_eq!(missing(blob, 0).0, SPK_ERR_LENGTH);
    assert_eq!(missing(&blob[..16], 8).0, SPK_ERR_BLOB_TRUNCATED);
    // SAFETY: NULL is refused.
    unsafe {
        assert_eq!(spk_missing_features(null(), 8, text.as_mut_ptr().cast(), 8), SPK_ERR_NULL);
        assert_eq!(spk_missing_features(blob.as_ptr().cast(), blob.len(), null_mut(), 8), SPK_ERR_NULL);
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn it_is_the_stream_of_the_core() {
    let (mut first, input) = (memory(), recording());
    let stream = init(&mut first);
    let blob = Blob::parse(MODEL.bytes()).unwrap();
    let mut numbers = vec![0.0; Stream::memory_len(&blob)];
    let mut core = Stream::new(blob, Engine::Truncated, &mut numbers).unwrap();
    let mut expected = vec![0.0; input.len() / 2 * 3];
    core.process(&input, &mut expected).unwrap();
    // Where every instruction is interpreted, one length has to do.
    let blocks: &[usize] = if cfg!(miri) { &[7] } else { &[1, 7, 500] };
    for &block in blocks {
        assert_eq!(bits(&process(stream, &input, block)), bits(&expected));
        // SAFETY: a stream.
        assert_eq!(unsafe { spk_stream_reset(stream) }, SPK_OK);
    }
    let mut info = spk_stream_info::default();
    // SAFETY: a stream, and room for what it is.
    unsafe {
        assert_eq!(spk_stream_inspect(stream, &mut info), SPK_OK);
        assert_eq!((info.channels, info.groups, info.latency, info.hop, info.rate), (2, 3, 31, 16, 8000));
        let name = |group| CStr::from_ptr(spk_stream_group_name(stream, group));
        assert_eq!([name(0), name(1), name(2), name(3)], [c"left", c"middle", c"right", c""]);
        assert_eq!(CStr::from_ptr(spk_stream_group_name(null_mut(), 0)), c"");
    }
    // A copied stream is a stream, in the middle of it too.
    let (head, tail) = input.split_at(input.len() / 2);
    process(stream, head, 50);
    let mut second = first.clone();
    let copy = second.as_mut_ptr().cast::<spk_stream>();
    let rest = process(stream, tail, 50);
    first.fill(0);
    assert_eq!(bits(&process(copy, tail, 50)), bits(&rest));
}

#[test]
fn integers() {
    let (mut memory, mut other) = (memory(), memory());
    let (stream, twin) = (init(&mut memory), init(&mut other));
    let integers: Vec<i16> = recording().iter().map(|y| (y * 32767.0) as i16).collect();
    let numbers: Vec<f32> = integers.iter().map(|&y| f32::from(y) / 32768.0).collect();
    let mut output = vec![0; integers.len() / 2 * 3];
    let samples = integers.len() / 2;
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_stream_process_i16(stream, integers.as_ptr(), output.as_mut_ptr(), samples) };
    assert_eq!(status, SPK_OK);
    for (found, exact) in output.iter().zip(process(twin, &numbers, 500)) {
        assert!((f32::from(*found) - 32768.0 * exact).abs() <= 0.5 || found.unsigned_abs() >= 32767);
    }
}

#[test]
fn bad_arguments_are_refused() {
    let mut memory = memory();
    let stream = init(&mut memory);
    let (blob, len) = (MODEL.bytes().as_ptr().cast::<c_void>(), MODEL.bytes().len());
    let mut other = memory.clone();
    let (bytes, size) = (other.as_mut_ptr().cast::<c_void>(), other.len() * 8);
    let (mut out, mut info) = (null_mut(), spk_stream_info::default());
    let mut numbers = [0.0f32; 64];
    let input = numbers.as_mut_ptr();
    let mut sources = [7.0f32; 30];
    let output = sources.as_mut_ptr();
    let odd = input.cast::<u8>().wrapping_add(1).cast::<f32>();
    let mut zeros = vec![0u64; other.len()];
    let nowhere = zeros.as_mut_ptr().cast::<spk_stream>();
    // SAFETY: what is wrong with each call is what the library promises to notice.
    unsafe {
        assert_eq!((spk_stream_size(null(), 0), spk_stream_size(blob, 47)), (0, 0));
        assert_eq!(spk_stream_init(null_mut(), size, blob, len, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_stream_init(bytes, size, null(), len, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_stream_init(bytes, size, blob, len, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_stream_init(bytes.byte_add(4), size - 4, blob, len, &mut out), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_stream_init(bytes, size - 1, blob, len, &mut out), SPK_ERR_MEMORY);
        assert_eq!(spk_stream_init(bytes, 0, blob, len, &mut out), SPK_ERR_MEMORY);
        assert_eq!(spk_stream_init(bytes, size, blob, len - 8, &mut out), SPK_ERR_BLOB_TRUNCATED);
        assert!(out.is_null());
        assert_eq!(spk_stream_inspect(null_mut(), &mut info), SPK_ERR_NULL);
        assert_eq!(spk_stream_inspect(nowhere, &mut info), SPK_ERR_STATE);
        assert_eq!(spk_stream_inspect(stream, null_mut()), SPK_ERR_NULL);
        assert_eq!((spk_stream_reset(null_mut()), spk_stream_reset(nowhere)), (SPK_ERR_NULL, SPK_ERR_STATE));
        for (stream, input, output, samples, status) in [
            (null_mut(), input, output, 10, SPK_ERR_NULL),
            (nowhere, input, output, 10, SPK_ERR_STATE),
            (stream, null_mut(), output, 10, SPK_ERR_NULL),
            (stream, input, null_mut(), 10, SPK_ERR_NULL),
            (stream, odd, output, 10, SPK_ERR_ALIGNMENT),
            (stream, input, odd, 10, SPK_ERR_ALIGNMENT),
            (stream, input, input, 10, SPK_ERR_OVERLAP),
            (stream, input, input.add(19), 10, SPK_ERR_OVERLAP),
            (stream, input.add(29), input, 10, SPK_ERR_OVERLAP),
            (stream, input, output, usize::MAX, SPK_ERR_LENGTH),
            (stream, input, output, usize::MAX / 8, SPK_ERR_LENGTH),
            (stream, input, output, 0, SPK_OK),
            (stream, input, input.add(20), 10, SPK_OK),
        ] {
            assert_eq!(spk_stream_process(stream, input, output, samples), status);
        }
        assert_eq!(sources, [7.0; 30]);
        *input.add(19) = f32::NAN;
        assert_eq!(spk_stream_process(stream, input, output, 10), SPK_ERR_NOT_FINITE);
        assert_eq!(sources, [7.0; 30]);
        assert_eq!(spk_stream_process_i16(stream, null(), null_mut(), 1), SPK_ERR_NULL);
        // Too loud for the model: an error, and silence.
        numbers.fill(f32::MAX);
        let mut status = SPK_OK;
        for _ in 0..16 {
            status = status.min(spk_stream_process(stream, numbers.as_ptr(), output, 10));
        }
        assert_eq!(status, SPK_ERR_RANGE);
        assert!(sources.iter().all(|y| y.is_finite()));
        assert_eq!(CStr::from_ptr(spk_status_str(SPK_ERR_OVERLAP)), c"input and output overlap");
    }
}
