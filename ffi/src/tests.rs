//! Good arguments accepted, bad ones refused, by every function.
#![allow(unsafe_code)]

use crate::api::*;
use crate::types::*;
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use spikelet::doc::TWO_SOURCES;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

/// Memory for a state of the example model, aligned by its element type.
fn memory() -> Vec<u64> {
    // SAFETY: a valid blob.
    let size = unsafe { spk_state_size(TWO_SOURCES.as_ptr().cast(), TWO_SOURCES.len()) };
    assert!(size > 0 && size.is_multiple_of(8));
    vec![0xa5a5_a5a5_a5a5_a5a5; size / 8]
}

fn init(memory: &mut [u64], blob: &[u8]) -> (spk_status, *mut spk_state) {
    let mut state = null_mut();
    let (bytes, len) = (memory.as_mut_ptr().cast(), memory.len() * 8);
    // SAFETY: pointers and lengths belong together.
    (unsafe { spk_init(bytes, len, blob.as_ptr().cast(), blob.len(), &mut state) }, state)
}

fn empty_estimate() -> spk_estimate {
    spk_estimate {
        activity: null(),
        mean: null(),
        variance: null(),
        selected: null(),
        map_latents: null(),
        map_values: null(),
        latents: 0,
        selected_len: 0,
        map_len: 0,
        evidence: 0.0,
    }
}

fn process(state: *mut spk_state, sample: &[f32]) -> (spk_status, spk_estimate) {
    let mut estimate = empty_estimate();
    // SAFETY: pointers and lengths belong together.
    (unsafe { spk_process(state, sample.as_ptr(), sample.len(), &mut estimate) }, estimate)
}

fn floats<'a>(pointer: *const f32, len: u32) -> &'a [f32] {
    // SAFETY: as the estimate says.
    unsafe { core::slice::from_raw_parts(pointer, len as usize) }
}

#[test]
fn two_sources() {
    let mut memory = memory();
    let (status, state) = init(&mut memory, TWO_SOURCES);
    assert_eq!(status, SPK_OK);
    let (status, estimate) = process(state, &[0.0, 2.0]);
    assert_eq!(status, SPK_OK);
    assert_eq!((estimate.latents, estimate.selected_len, estimate.map_len), (2, 2, 1));
    // Copied: the arrays are valid until the next call.
    let [activity, mean] = [estimate.activity, estimate.mean].map(|values| floats(values, 2).to_vec());
    assert!(activity[0] < 0.1 && activity[1] > 0.99 && (mean[1] - 2.0).abs() < 0.05);
    assert_eq!(floats(estimate.map_values, 1)[0], 2.0 / 1.01);
    let mut out = [9.0; 2];
    // SAFETY: pointers and lengths belong together.
    assert_eq!(unsafe { spk_reconstruct(state, out.as_mut_ptr(), 2) }, SPK_OK);
    assert_eq!(&out, &mean[..]);
    // SAFETY: a state.
    assert_eq!(unsafe { spk_reset(state) }, SPK_OK);
    // SAFETY: as above.
    assert_eq!(unsafe { spk_reconstruct(state, out.as_mut_ptr(), 2) }, SPK_OK);
    assert_eq!(out, [0.0; 2]);
}

#[test]
fn a_copied_state_is_a_state() {
    let mut first = memory();
    let (_, state) = init(&mut first, TWO_SOURCES);
    process(state, &[1.0, -1.0]);
    let mut second = first.clone();
    let copy = second.as_mut_ptr().cast::<spk_state>();
    let (_, a) = process(state, &[0.3, 0.7]);
    let expected = floats(a.mean, 2).to_vec();
    first.fill(0);
    let (status, b) = process(copy, &[0.3, 0.7]);
    assert_eq!((status, floats(b.mean, 2)), (SPK_OK, &expected[..]));
}

#[test]
fn bad_arguments_are_refused() {
    let mut memory = memory();
    let (blob, len) = (TWO_SOURCES.as_ptr().cast::<c_void>(), TWO_SOURCES.len());
    let (_, state) = init(&mut memory, TWO_SOURCES);
    let mut other = memory.clone();
    let bytes = other.as_mut_ptr().cast::<c_void>();
    let size = other.len() * 8;
    let (mut out, mut info, mut estimate) = (null_mut(), spk_info::default(), empty_estimate());
    let mut numbers = [0.0f32; 3];
    let sample = numbers.as_mut_ptr();
    let odd = sample.cast::<u8>().wrapping_add(1).cast::<f32>();
    let mut zeros = vec![0u64; other.len()];
    let nowhere = zeros.as_mut_ptr().cast::<spk_state>();
    // SAFETY: what is wrong with each call is what the library promises to notice.
    unsafe {
        assert_eq!(spk_inspect(null(), len, &mut info), SPK_ERR_NULL);
        assert_eq!(spk_inspect(blob, len, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_inspect(blob.byte_add(4), len - 4, &mut info), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_inspect(blob, usize::MAX, &mut info), SPK_ERR_LENGTH);
        assert_eq!(spk_inspect(blob, len, &mut info), SPK_OK);
        assert_eq!((info.dims, info.latents, info.states, info.state_size), (2, 2, 4, size));
        assert_eq!((spk_state_size(null(), 0), spk_state_size(blob, 47)), (0, 0));

        assert_eq!(spk_init(null_mut(), size, blob, len, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_init(bytes, size, null(), len, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_init(bytes, size, blob, len, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_init(bytes.byte_add(4), size - 4, blob, len, &mut out), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_init(bytes, size - 1, blob, len, &mut out), SPK_ERR_MEMORY);
        assert_eq!(spk_init(bytes, 0, blob, len, &mut out), SPK_ERR_MEMORY);
        assert!(out.is_null());

        assert_eq!(spk_process(null_mut(), sample, 2, &mut estimate), SPK_ERR_NULL);
        assert_eq!(spk_process(state, null(), 2, &mut estimate), SPK_ERR_NULL);
        assert_eq!(spk_process(state, sample, 2, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_process(state, odd, 2, &mut estimate), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_process(state.byte_add(4), sample, 2, &mut estimate), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_process(nowhere, sample, 2, &mut estimate), SPK_ERR_STATE);
        assert_eq!(spk_process(state, sample, 3, &mut estimate), SPK_ERR_LENGTH);
        assert_eq!(spk_process(state, sample, usize::MAX, &mut estimate), SPK_ERR_LENGTH);

        assert_eq!(spk_reconstruct(null_mut(), sample, 2), SPK_ERR_NULL);
        assert_eq!(spk_reconstruct(state, null_mut(), 2), SPK_ERR_NULL);
        assert_eq!(spk_reconstruct(state, odd, 2), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_reconstruct(state, sample, 1), SPK_ERR_LENGTH);
        assert_eq!(spk_reset(null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_reset(nowhere), SPK_ERR_STATE);
    }
}

fn settings() -> spk_gibbs {
    let mut settings = spk_gibbs::default();
    // SAFETY: a valid blob.
    let status =
        unsafe { spk_gibbs_settings(TWO_SOURCES.as_ptr().cast(), TWO_SOURCES.len(), 50, &mut settings) };
    assert_eq!((status, settings.sweeps, settings.burn_in, settings.chains), (SPK_OK, 50, 25, 1));
    settings
}

fn init_gibbs(memory: &mut [u64], settings: &spk_gibbs) -> (spk_status, *mut spk_state) {
    let mut state = null_mut();
    let (blob, len) = (TWO_SOURCES.as_ptr().cast(), TWO_SOURCES.len());
    // SAFETY: pointers and lengths belong together.
    let status = unsafe {
        spk_init_gibbs(memory.as_mut_ptr().cast(), memory.len() * 8, blob, len, settings, &mut state)
    };
    (status, state)
}

fn gibbs_memory() -> Vec<u64> {
    // SAFETY: a valid blob.
    let size = unsafe { spk_gibbs_state_size(TWO_SOURCES.as_ptr().cast(), TWO_SOURCES.len()) };
    assert!(size > 0 && size.is_multiple_of(8));
    vec![0xa5a5_a5a5_a5a5_a5a5; size / 8]
}

#[test]
fn sampling_depends_on_seed_and_number() {
    let mut memory = gibbs_memory();
    let (status, state) = init_gibbs(&mut memory, &settings());
    assert_eq!(status, SPK_OK);
    let run = |sample: &[f32]| {
        let (status, estimate) = process(state, sample);
        assert_eq!(status, SPK_OK);
        floats(estimate.mean, 2).to_vec()
    };
    let all: Vec<_> = (0..3).map(|_| run(&[0.4, 2.0])).collect();
    assert!((all[0][1] - 2.0).abs() < 0.1 && all[0] != all[1]);
    // SAFETY: a state.
    assert_eq!(unsafe { spk_seek(state, 1) }, SPK_OK);
    assert_eq!(run(&[0.4, 2.0]), all[1]);
    // SAFETY: a state.
    assert_eq!(unsafe { spk_reset(state) }, SPK_OK);
    assert_eq!(run(&[0.4, 2.0]), all[0]);
    let mut other = gibbs_memory();
    let (_, state) = init_gibbs(&mut other, &spk_gibbs { seed: 9, ..settings() });
    assert_ne!(floats(process(state, &[0.4, 2.0]).1.mean, 2), all[0]);
}

#[test]
fn bad_settings_are_refused() {
    let mut memory = gibbs_memory();
    let good = settings();
    for bad in [
        spk_gibbs { sweeps: 0, ..good },
        spk_gibbs { burn_in: 50, ..good },
        spk_gibbs { burn_in: u32::MAX, ..good },
        spk_gibbs { thinning: 0, ..good },
        spk_gibbs { chains: 0, ..good },
        spk_gibbs { start: 3, ..good },
        spk_gibbs { extra: 2, ..good },
        spk_gibbs { extra: u32::MAX, ..good },
        spk_gibbs { max_active: 0, ..good },
        spk_gibbs { max_active: 65536, ..good },
    ] {
        assert_eq!(init_gibbs(&mut memory, &bad), (SPK_ERR_SETTING, null_mut()), "{bad:?}");
    }
    assert_eq!(init_gibbs(&mut memory[1..], &good).0, SPK_ERR_MEMORY);
    let (blob, len, bytes) = (TWO_SOURCES.as_ptr().cast::<c_void>(), TWO_SOURCES.len(), memory.len() * 8);
    let mut out = null_mut();
    let start = memory.as_mut_ptr().cast::<c_void>();
    let mut zeros = vec![0u64; memory.len()];
    // SAFETY: what is wrong with each call is what the library promises to notice.
    unsafe {
        assert_eq!(spk_init_gibbs(start, bytes, blob, len, null(), &mut out), SPK_ERR_NULL);
        assert_eq!(spk_init_gibbs(null_mut(), bytes, blob, len, &good, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_init_gibbs(start, bytes, null(), len, &good, &mut out), SPK_ERR_NULL);
        assert_eq!(spk_init_gibbs(start, bytes, blob, len, &good, null_mut()), SPK_ERR_NULL);
        let odd = (&raw const good).cast::<u8>().wrapping_add(1).cast::<spk_gibbs>();
        assert_eq!(spk_init_gibbs(start, bytes, blob, len, odd, &mut out), SPK_ERR_ALIGNMENT);
        assert_eq!(spk_gibbs_settings(blob, len, 5, null_mut()), SPK_ERR_NULL);
        assert_eq!(spk_gibbs_settings(null(), len, 5, &mut settings()), SPK_ERR_NULL);
        assert_eq!((spk_gibbs_state_size(null(), 0), spk_gibbs_state_size(blob, 47)), (0, 0));
        assert_eq!(spk_seek(null_mut(), 0), SPK_ERR_NULL);
        assert_eq!(spk_seek(zeros.as_mut_ptr().cast(), 0), SPK_ERR_STATE);
    }
    assert!(out.is_null());
}

#[test]
fn bad_samples_are_refused_and_leave_the_state_usable() {
    let mut memory = memory();
    let (_, state) = init(&mut memory, TWO_SOURCES);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(process(state, &[0.0, bad]).0, SPK_ERR_NOT_FINITE);
    }
    assert_eq!(process(state, &[f32::MAX, f32::MAX]).0, SPK_ERR_RANGE);
    assert_eq!(process(state, &[0.0, 2.0]).0, SPK_OK);
}

#[test]
fn damaged_blobs_are_refused_with_the_reason() {
    let mut memory = memory();
    let mut aligned: Vec<u64> = vec![0; TWO_SOURCES.len() / 8];
    let mut with = |change: &dyn Fn(&mut [u8])| {
        for (word, bytes) in aligned.iter_mut().zip(TWO_SOURCES.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        // SAFETY: u64s are bytes too.
        let blob =
            unsafe { core::slice::from_raw_parts_mut(aligned.as_mut_ptr().cast::<u8>(), TWO_SOURCES.len()) };
        change(blob);
        init(&mut memory, blob).0
    };
    assert_eq!(with(&|_| {}), SPK_OK);
    assert_eq!(with(&|blob| blob[0] = b'x'), SPK_ERR_BLOB_MAGIC);
    assert_eq!(with(&|blob| blob[4] = 2), SPK_ERR_BLOB_VERSION);
    assert_eq!(with(&|blob| blob[8] = 0xff), SPK_ERR_BLOB_TRUNCATED);
    assert_eq!(with(&|blob| blob[100] ^= 1), SPK_ERR_BLOB_CHECKSUM);
    let sealed = |blob: &mut [u8]| {
        let crc = spikelet::blob::crc32(&blob[16..]).to_le_bytes();
        blob[12..16].copy_from_slice(&crc);
    };
    let change = |offset: usize, value: u8| {
        move |blob: &mut [u8]| {
            blob[offset] = value;
            sealed(blob);
        }
    };
    assert_eq!(with(&change(16, 9)), SPK_ERR_BLOB_UNKNOWN); // kind
    assert_eq!(with(&change(17, 3)), SPK_ERR_BLOB_UNKNOWN); // encoding
    assert_eq!(with(&change(17, 1)), SPK_ERR_BLOB_SECTION); // integers, of which there are none
    assert_eq!(with(&change(48, b'Z')), SPK_ERR_BLOB_UNKNOWN); // section tag
    assert_eq!(with(&change(52, 0xff)), SPK_ERR_BLOB_SECTION); // section offset
    assert_eq!(with(&change(24, 3)), SPK_ERR_BLOB_MODEL); // dims
    assert_eq!(with(&change(33, 1)), SPK_ERR_BLOB_MODEL); // selected > latents
}

#[test]
fn every_status_has_words_of_its_own() {
    let text = |status| {
        // SAFETY: a static string.
        unsafe { CStr::from_ptr(spk_status_str(status)) }.to_str().unwrap()
    };
    let texts: BTreeSet<&str> = TEXTS.iter().map(|(code, _)| text(*code)).collect();
    assert_eq!(texts.len(), TEXTS.len());
    assert_eq!(text(1), "not a status of this library");
    assert_eq!(u32::from(spikelet::blob::VERSION), spk_blob_version());
    assert_eq!(spk_api_version(), SPK_API_VERSION);
}
