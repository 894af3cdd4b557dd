//! Spatial models through the functions for streams: the core's bits, a choice of microphone, bad arguments refused.
#![allow(unsafe_code)]

use crate::api::{spk_init, spk_missing_features, spk_state_size};
use crate::stream::*;
use crate::types::*;
use core::ffi::CStr;
use core::ptr::null_mut;
use spikelet::{Aligned, SpatialModel, SpatialStream};
use std::vec;
use std::vec::Vec;

macro_rules! file {
    ($extension:literal) => {
        include_bytes!(concat!("../../tests/conformance/room-d2h4.", $extension))
    };
}

static MODEL: Aligned<{ file!("spk").len() }> = Aligned::new(file!("spk"));
/// A model of another kind.
static OTHER: Aligned<{ include_bytes!("../../tests/conformance/stream-d2h6.spk").len() }> =
    Aligned::new(include_bytes!("../../tests/conformance/stream-d2h6.spk"));

/// A model that follows, and sources that have moved.
static FOLLOWS: Aligned<{ include_bytes!("../../tests/conformance/room-follows-d2h2.spk").len() }> =
    Aligned::new(include_bytes!("../../tests/conformance/room-follows-d2h2.spk"));
static FOLLOWED: &[u8] = include_bytes!("../../tests/conformance/room-follows-d2h2.f32");

const SOURCES: usize = 4;

/// Two channels; fewer samples where every instruction is interpreted.
fn recording() -> Vec<f32> {
    let words = file!("f32").as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    words.take(if cfg!(miri) { 64 } else { 800 }).collect()
}

fn memory(blob: &[u8]) -> Vec<u64> {
    // SAFETY: pointer and length belong together.
    let size = unsafe { spk_stream_size(blob.as_ptr().cast(), blob.len()) };
    assert!(size > 0 && size.is_multiple_of(8));
    vec![0xa5a5_a5a5_a5a5_a5a5; size / 8]
}

fn init(memory: &mut [u64], blob: &[u8]) -> Result<*mut spk_stream, spk_status> {
    let mut stream = null_mut();
    let (bytes, len) = (memory.as_mut_ptr().cast(), memory.len() * 8);
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_stream_init(bytes, len, blob.as_ptr().cast(), blob.len(), &mut stream) };
    if status == SPK_OK { Ok(stream) } else { Err(status) }
}

fn process(stream: *mut spk_stream, input: &[f32], block: usize) -> Vec<u32> {
    let mut output = vec![f32::NAN; input.len() / 2 * SOURCES];
    for (input, output) in input.chunks(2 * block).zip(output.chunks_mut(SOURCES * block)) {
        // SAFETY: pointers and lengths belong together.
        let status =
            unsafe { spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), input.len() / 2) };
        assert_eq!(status, SPK_OK);
    }
    output.iter().map(|value| value.to_bits()).collect()
}

/// By the core, at a microphone.
fn expected(microphone: usize, input: &[f32]) -> Vec<u32> {
    let model = SpatialModel::parse(MODEL.bytes()).unwrap().with_microphone(microphone).unwrap();
    let mut numbers = vec![f32::NAN; SpatialStream::memory_len(&model)];
    let mut output = vec![0.0; input.len() / 2 * SOURCES];
    SpatialStream::new(model, &mut numbers).unwrap().process(input, &mut output).unwrap();
    output.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn it_is_the_stream_of_the_core() {
    let (mut first, input) = (memory(MODEL.bytes()), recording());
    let stream = init(&mut first, MODEL.bytes()).unwrap();
    let mut info = spk_stream_info::default();
    let inspect = |info: &mut spk_stream_info| {
        // SAFETY: a stream, and room for what it is.
        assert_eq!(unsafe { spk_stream_inspect(stream, info) }, SPK_OK);
        (info.channels, info.groups, info.latency, info.hop, info.rate, info.microphone)
    };
    assert_eq!(inspect(&mut info), (2, 4, 127, 16, 8000, 1));
    // SAFETY: a stream.
    unsafe {
        assert_eq!(CStr::from_ptr(spk_stream_group_name(stream, 0)), c"");
        assert_eq!(CStr::from_ptr(spk_stream_group_name(stream, 4)), c"");
    }
    for block in if cfg!(miri) { vec![7] } else { vec![1, 16, 33, 400] } {
        assert_eq!(process(stream, &input, block), expected(1, &input));
        // SAFETY: a stream.
        assert_eq!(unsafe { spk_stream_reset(stream) }, SPK_OK);
    }
    // SAFETY: a stream.
    unsafe {
        assert_eq!(spk_stream_set_microphone(stream, 2), SPK_ERR_SETTING);
        assert_eq!(spk_stream_set_microphone(stream, u32::MAX), SPK_ERR_SETTING);
        assert_eq!(spk_stream_set_microphone(stream, 0), SPK_OK);
    }
    assert_eq!(inspect(&mut info).5, 0);
    assert_eq!(process(stream, &input, 50), expected(0, &input));
    // A reset keeps the choice, and a copied stream is a stream, in the middle of it too.
    // SAFETY: a stream.
    assert_eq!(unsafe { spk_stream_reset(stream) }, SPK_OK);
    let (head, tail) = input.split_at(input.len() / 4 * 2);
    process(stream, head, 50);
    let mut second = first.clone();
    let rest = process(stream, tail, 50);
    first.fill(0);
    assert_eq!(process(second.as_mut_ptr().cast(), tail, 50), rest);
}

/// A model that follows can be held and let go; others have nothing to follow with.
#[test]
fn following() {
    let (mut first, mut second) = (memory(FOLLOWS.bytes()), memory(FOLLOWS.bytes()));
    let stream = init(&mut first, FOLLOWS.bytes()).unwrap();
    let input: Vec<f32> = FOLLOWED.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
    let input = &input[..if cfg!(miri) { 320 } else { 800 }];
    let by_core = |rate: f32| {
        let model = SpatialModel::parse(FOLLOWS.bytes()).unwrap().with_following(Some(rate)).unwrap();
        let mut numbers = vec![0.0; SpatialStream::memory_len(&model)];
        let mut output = vec![0.0; input.len()];
        SpatialStream::new(model, &mut numbers).unwrap().process(input, &mut output).unwrap();
        output
    };
    let run = |stream| {
        let mut output = vec![0.0; input.len()];
        // SAFETY: two sources, as many as there are channels.
        let status =
            unsafe { spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), input.len() / 2) };
        assert_eq!(status, SPK_OK);
        // SAFETY: a stream.
        assert_eq!(unsafe { spk_stream_reset(stream) }, SPK_OK);
        output
    };
    assert_eq!(run(stream), by_core(0.15));
    assert_eq!(run(stream), by_core(0.15), "a reset goes back to what was trained");
    // SAFETY: streams.
    unsafe {
        for wrong in [-0.1, 0.51, f32::NAN] {
            assert_eq!(spk_stream_set_following(stream, wrong), SPK_ERR_SETTING);
        }
        assert_eq!(spk_stream_set_following(stream, 0.0), SPK_OK);
        assert_eq!(run(stream), by_core(0.0));
        assert_eq!(spk_stream_set_following(stream, 0.5), SPK_OK);
        assert_eq!(run(stream), by_core(0.5));
        assert_eq!(spk_stream_set_following(null_mut(), 0.1), SPK_ERR_NULL);
        for (blob, status) in
            [(FOLLOWS.bytes(), SPK_OK), (MODEL.bytes(), SPK_ERR_SETTING), (OTHER.bytes(), SPK_ERR_SETTING)]
        {
            second.resize(memory(blob).len(), 0);
            let stream = init(&mut second, blob).unwrap();
            assert_eq!(spk_stream_set_following(stream, 0.1), status);
        }
    }
}

#[test]
fn integers() {
    let (mut first, mut second) = (memory(MODEL.bytes()), memory(MODEL.bytes()));
    let (stream, twin) =
        (init(&mut first, MODEL.bytes()).unwrap(), init(&mut second, MODEL.bytes()).unwrap());
    let integers: Vec<i16> = recording().iter().map(|y| (y * 32767.0) as i16).collect();
    let numbers: Vec<f32> = integers.iter().map(|&y| f32::from(y) / 32768.0).collect();
    let samples = integers.len() / 2;
    let mut output = vec![0; samples * SOURCES];
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_stream_process_i16(stream, integers.as_ptr(), output.as_mut_ptr(), samples) };
    assert_eq!(status, SPK_OK);
    for (found, exact) in output.iter().zip(process(twin, &numbers, 400)) {
        let exact = 32768.0 * f32::from_bits(exact);
        assert!((f32::from(*found) - exact).abs() <= 0.5 || found.unsigned_abs() >= 32767);
    }
}

#[test]
fn bad_arguments_are_refused() {
    let (mut first, blob) = (memory(MODEL.bytes()), MODEL.bytes());
    let short = first.len() - 1;
    assert_eq!(init(&mut first[..short], blob).err(), Some(SPK_ERR_MEMORY));
    assert_eq!(init(&mut first, &blob[..blob.len() - 8]).err(), Some(SPK_ERR_BLOB_TRUNCATED));
    let mut damaged: Vec<u64> = blob.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    damaged[100] ^= 1;
    // SAFETY: as many bytes.
    let damaged = unsafe { core::slice::from_raw_parts(damaged.as_ptr().cast(), blob.len()) };
    assert_eq!(init(&mut first, damaged).err(), Some(SPK_ERR_BLOB_CHECKSUM));
    let stream = init(&mut first, blob).unwrap();
    let mut state = null_mut();
    let (bytes, len) = (blob.as_ptr().cast(), blob.len());
    let mut other = memory(blob);
    // SAFETY: pointers and lengths belong together; what is wrong is what the library promises to notice.
    unsafe {
        // It is for streams, and nothing is missing to run it.
        assert_eq!(
            spk_init(other.as_mut_ptr().cast(), 8 * other.len(), bytes, len, &mut state),
            SPK_ERR_BLOB_STREAM
        );
        assert_eq!(spk_state_size(bytes, len), 0);
        let mut text = [1u8; 8];
        assert_eq!(spk_missing_features(bytes, len, text.as_mut_ptr().cast(), 8), SPK_OK);
        assert_eq!(text, [0; 8]);
        assert_eq!(spk_stream_set_microphone(null_mut(), 0), SPK_ERR_NULL);
        other.fill(0);
        assert_eq!(spk_stream_set_microphone(other.as_mut_ptr().cast(), 0), SPK_ERR_STATE);
        let (mut input, mut output) = ([0.0; 2], [7.0; SOURCES]);
        input[1] = f32::INFINITY;
        let status = spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), 1);
        assert_eq!((status, output), (SPK_ERR_NOT_FINITE, [7.0; SOURCES]));
        // Too loud: an error, and numbers.
        let mut status = SPK_OK;
        for _ in 0..16 {
            input.fill(f32::MAX);
            status = status.min(spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), 1));
            assert!(output.iter().all(|y| y.is_finite()));
        }
        assert_eq!(status, SPK_ERR_RANGE);
        // Another kind of model has no choice.
        let mut other = memory(OTHER.bytes());
        let stream = init(&mut other, OTHER.bytes()).unwrap();
        assert_eq!(spk_stream_set_microphone(stream, 0), SPK_ERR_SETTING);
    }
}
