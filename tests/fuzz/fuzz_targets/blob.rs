//! Any byte string gives a model or an error, and a model that was accepted can be run.
//!
//! The bytes are tried as they are, and again with length and checksum set right, so that the
//! fuzzer reaches what lies behind the checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spikelet::blob::crc32;
use spikelet::{Blob, Engine, Inference, Model, SpatialModel, SpatialStream, Stream};

fuzz_target!(|data: &[u8]| {
    let mut words = vec![0u64; data.len().div_ceil(8)];
    for (word, bytes) in words.iter_mut().zip(data.chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    run(&words, data.len());
    if data.len() >= 16 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let len = bytes.len() as u64;
        words[1] = (words[1] & !0xffff_ffff) | len;
        words[1] = (words[1] & 0xffff_ffff) | u64::from(crc32(&bytes[16..])) << 32;
        run(&words, bytes.len());
    }
});

fn run(words: &[u64], len: usize) {
    // SAFETY: `words` holds at least `len` bytes, and any byte is valid.
    let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), len) };
    if let Ok(model) = SpatialModel::parse(bytes) {
        room(model);
    }
    let Ok(blob) = Blob::parse(bytes) else { return };
    let model = blob.model();
    let _ = (model.operations(), blob.provenance(), blob.kind(), blob.slab(), blob.revision());
    if model.operations().total() > 10_000_000 || model.shape.states() > 2000 || model.arena_len() > 100_000 {
        return;
    }
    let mut memory = vec![0.0f32; model.arena_len()];
    // Coefficients of a transform are made by streams only; here the sample stands for them.
    let model = Model { is_transformed: false, ..model };
    let mut inference = Inference::new(model, &mut memory).expect("memory of the stated size");
    let mut out = vec![0.0; model.shape.dims];
    for scale in [0.0, 1.0, -1e3, 1e18] {
        let sample: Vec<f32> = (0..model.shape.dims).map(|d| scale * (1.0 + d as f32)).collect();
        if let Ok(found) = inference.infer(&sample) {
            assert!(found.evidence.is_finite());
        }
        inference.reconstruct(&mut out).expect("D entries");
    }
    stream(blob);
}

/// Sources of a room, whatever is in it.
fn room(model: SpatialModel<'_>) {
    assert!((2..=4).contains(&model.microphones()) && (1..=4).contains(&model.sources()));
    let mut memory = vec![f32::NAN; SpatialStream::memory_len(&model)];
    let mut stream = SpatialStream::new(model, &mut memory).expect("memory of the stated size");
    let samples = stream.hop() + 3;
    let mut output = vec![f32::NAN; samples * stream.groups()];
    for scale in [1.0, 0.0, 1e-20, 1e9, 1e30, f32::MAX / 7.0] {
        let input: Vec<f32> = (0..samples * stream.channels()).map(|i| scale * (i % 7) as f32).collect();
        let is_loud = scale > 1e9;
        assert!(stream.process(&input, &mut output).is_ok() || is_loud);
        assert!(output.iter().all(|y| y.is_finite()));
    }
}

/// Names that C can read, and a stream, if there can be one, that gives numbers whatever it is given.
fn stream(blob: Blob<'_>) {
    let groups = blob.groups();
    assert!((0..blob.model().shape.latents).all(|latent| groups.of(latent) < groups.len()));
    assert!((0..groups.len().min(100)).all(|group| groups.is_named() != groups.name(group).is_empty()));
    assert!(blob.gains().iter().all(|&gain| gain > 0.0));
    let (len, engine) = (Stream::memory_len(&blob), Engine::of_kind(blob.kind()));
    if len > 100_000 {
        return;
    }
    let mut memory = vec![0.0; len];
    let Ok(mut stream) = Stream::new(blob, engine, &mut memory) else { return };
    // A burst of work may be thousands of points: few of them say as much.
    let samples = (stream.hop() + 3).min(100);
    let mut output = vec![f32::NAN; samples * stream.groups()];
    for scale in [1.0, 1e30] {
        let input: Vec<f32> = (0..samples * stream.channels()).map(|i| scale * (i % 7) as f32).collect();
        let _ = stream.process(&input, &mut output);
        assert!(output.iter().all(|y| y.is_finite()));
    }
}
