//! Models of one channel through the functions for streams: the core's bits, reduction, activities and scores, bad arguments refused.
#![allow(unsafe_code)]

use crate::spectral::*;
use crate::stream::*;
use crate::types::*;
use core::ffi::CStr;
use core::ptr::null_mut;
use spikelet::{Aligned, SpectralModel, SpectralStream};
use std::vec;
use std::vec::Vec;

macro_rules! file {
    ($extension:literal) => {
        include_bytes!(concat!("../../tests/conformance/channel-d8h12.", $extension))
    };
}

static MODEL: Aligned<{ file!("spk").len() }> = Aligned::new(file!("spk"));
/// A model of another kind.
static OTHER: Aligned<{ include_bytes!("../../tests/conformance/room-d3h3.spk").len() }> =
    Aligned::new(include_bytes!("../../tests/conformance/room-d3h3.spk"));

const SOURCES: usize = 2;

/// Fewer samples where every instruction is interpreted.
fn recording() -> Vec<f32> {
    let words = file!("f32").as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    words.take(if cfg!(miri) { 20 } else { 400 }).collect()
}

/// Memory and a stream in it.
fn init(blob: &[u8]) -> (Vec<u64>, *mut spk_stream) {
    // SAFETY: pointer and length belong together.
    let size = unsafe { spk_stream_size(blob.as_ptr().cast(), blob.len()) };
    assert!(size > 0 && size.is_multiple_of(8));
    let (mut memory, mut stream) = (vec![0xa5a5_a5a5_a5a5_a5a5u64; size / 8], null_mut());
    let (bytes, len) = (memory.as_mut_ptr().cast(), memory.len() * 8);
    // SAFETY: pointers and lengths belong together.
    let status = unsafe { spk_stream_init(bytes, len, blob.as_ptr().cast(), blob.len(), &mut stream) };
    assert_eq!(status, SPK_OK);
    (memory, stream)
}

fn process(stream: *mut spk_stream, input: &[f32], block: usize) -> Vec<f32> {
    let mut output = vec![f32::NAN; input.len() * SOURCES];
    for (input, output) in input.chunks(block).zip(output.chunks_mut(SOURCES * block)) {
        // SAFETY: pointers and lengths belong together.
        let status = unsafe { spk_stream_process(stream, input.as_ptr(), output.as_mut_ptr(), input.len()) };
        assert_eq!(status, SPK_OK);
    }
    output
}

#[test]
fn it_is_the_stream_of_the_core() {
    let ((_memory, stream), input) = (init(MODEL.bytes()), recording());
    let model = SpectralModel::parse(MODEL.bytes()).unwrap();
    let mut numbers = vec![f32::NAN; SpectralStream::memory_len(&model)];
    let mut twin = SpectralStream::new(model, &mut numbers).unwrap();
    let mut info = spk_stream_info::default();
    // SAFETY: a stream, and room for what it is.
    unsafe {
        assert_eq!(spk_stream_inspect(stream, &mut info), SPK_OK);
        assert_eq!(CStr::from_ptr(spk_stream_group_name(stream, 1)), c"source 1");
    }
    assert_eq!((info.channels, info.groups, info.latency, info.hop, info.rate), (1, 2, 63, 16, 8000));
    for (block, reduction) in [(1, None), (33, Some(12.0)), (400, Some(0.0))] {
        let mut expected = vec![0.0; input.len() * SOURCES];
        if let Some(decibels) = reduction {
            twin.set_reduction(decibels);
            // SAFETY: a stream.
            assert_eq!(unsafe { spk_stream_set_reduction(stream, decibels) }, SPK_OK);
        }
        twin.reset();
        twin.process(&input, &mut expected).unwrap();
        // SAFETY: a stream.
        assert_eq!(unsafe { spk_stream_reset(stream) }, SPK_OK);
        assert_eq!(process(stream, &input, block), expected);
        let (mut activity, mut score) = (f32::NAN, spk_stream_score::default());
        for group in 0..2 {
            // SAFETY: a stream, and room for a number.
            assert_eq!(unsafe { spk_stream_get_activity(stream, group, &mut activity) }, SPK_OK);
            assert!(activity == twin.activity(group as usize) && (0.0..=1.001).contains(&activity));
        }
        // SAFETY: a stream, and room for a score.
        assert_eq!(unsafe { spk_stream_get_score(stream, 0.1, &mut score) }, SPK_OK);
        assert_eq!((score.score, Some(score.threshold)), (twin.score(), model.threshold(0.1)));
        assert!(score.score != 0.0 && score.is_above == u32::from(score.score > score.threshold));
    }
}

#[test]
fn bad_arguments_are_refused() {
    let (_memory, stream) = init(MODEL.bytes());
    let (_other_memory, other) = init(OTHER.bytes());
    let (mut activity, mut score) = (7.0, spk_stream_score::default());
    // SAFETY: what is wrong is what the library promises to notice.
    unsafe {
        for decibels in [-1.0, f32::NAN, f32::NEG_INFINITY] {
            assert_eq!(spk_stream_set_reduction(stream, decibels), SPK_ERR_SETTING);
        }
        assert_eq!(spk_stream_set_reduction(stream, f32::INFINITY), SPK_OK);
        assert_eq!(spk_stream_set_reduction(null_mut(), 10.0), SPK_ERR_NULL);
        assert_eq!(spk_stream_set_reduction(other, 10.0), SPK_ERR_SETTING);
        assert_eq!(spk_stream_get_activity(stream, 2, &mut activity), SPK_ERR_SETTING);
        assert_eq!(spk_stream_get_activity(other, 0, &mut activity), SPK_ERR_SETTING);
        assert_eq!(spk_stream_get_activity(stream, 0, null_mut()), SPK_ERR_NULL);
        assert_eq!(activity, 7.0);
        // Rates that the recordings of usual sound do not tell.
        for rate in [0.001, 0.6, 0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(spk_stream_get_score(stream, rate, &mut score), SPK_ERR_SETTING);
        }
        assert_eq!(spk_stream_get_score(stream, 0.01, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_stream_get_score(other, 0.1, &mut score), SPK_ERR_SETTING);
        assert_eq!(spk_stream_set_microphone(stream, 0), SPK_ERR_SETTING);
    }
}
