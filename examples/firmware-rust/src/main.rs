//! Spikelet on bare metal: trained models in flash, one block of static memory, a loop over samples.
//!
//! ```text
//! blob (flash) --Inference::new--> state (RAM) --infer, once a sample--> estimate
//! ```
//!
//! Prints a digest of every output bit, which `examples/firmware-c/desktop.c` prints on a desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::{Blob, Detail, Inference};
use spikelet_firmware::board::{entry, exit, paint_stack, print, print_hex, print_value, stack_used};
use spikelet_firmware::digest::Digest;
use spikelet_firmware::recording::{RECORDINGS, Recording};

/// Floats for the inference state; `Model::arena_len` says how many a model needs.
const ARENA_LEN: usize = 2048;
const MAX_DIMS: usize = 64;

static mut ARENA: [f32; ARENA_LEN] = [0.0; ARENA_LEN];

#[entry]
fn main() -> ! {
    let arena = &raw mut ARENA;
    // SAFETY: main runs once, and nothing else names ARENA.
    let arena = unsafe { &mut *arena };

    for recording in RECORDINGS {
        if let Err(why) = run(recording, arena) {
            print(recording.name);
            print(c": ");
            print(why);
            print(c"\n");
            exit(1)
        }
    }
    exit(0)
}

/// Errors are named here, not formatted: `core::fmt` would add 4 KiB of flash.
fn run(recording: &Recording, arena: &mut [f32]) -> Result<(), &'static CStr> {
    paint_stack();
    let mut digest = Digest::EMPTY;
    let mut buffers = [[0.0; MAX_DIMS]; 2];

    let model = Blob::parse(recording.blob).map_err(|_| c"blob refused")?.model();
    let dims = model.shape.dims;
    let engine = recording.engine(model.shape.kind);
    let arena_len = engine.arena_len(model.shape, Detail::Marginals);
    let [sample, reconstruction] = buffers.each_mut().map(|buffer| buffer.get_mut(..dims));
    let sample = sample.ok_or(c"MAX_DIMS is too small")?;
    let reconstruction = reconstruction.ok_or(c"MAX_DIMS is too small")?;
    let mut inference = Inference::with_engine(model, arena, Detail::Marginals, engine)
        .map_err(|_| c"ARENA_LEN is too small")?;

    let samples = recording.count(dims);
    for n in 0..samples {
        recording.read(n, sample);
        let estimate = inference.infer(sample).map_err(|_| c"sample refused")?;
        digest.estimate(&estimate);
        inference.reconstruct(reconstruction).map_err(|_| c"reconstruction refused")?;
        digest.floats(reconstruction);
    }

    print(recording.name);
    print(c" digest=");
    print_hex(digest.0);
    print_value(c" samples=", samples as u32);
    print_value(c" stack=", stack_used());
    print_value(c" arena=", 4 * arena_len as u32);
    print(c"\n");
    Ok(())
}
