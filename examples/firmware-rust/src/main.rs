//! Spikelet on bare metal: trained models in flash, one block of static memory, a loop over samples.
//!
//! ```text
//! blob (flash) --Inference::new--> state (RAM) --infer, once a sample--> estimate
//! ```
//!
//! Prints a digest of every output bit, which `examples/firmware-c/desktop.c` prints on a desktop.
#![no_std]
#![no_main]

use spikelet::{Blob, Error, Inference};
use spikelet_firmware::board::{entry, exit, paint_stack, print, print_hex, print_value, stack_used};
use spikelet_firmware::digest::Digest;
use spikelet_firmware::recording::{RECORDINGS, Recording};

/// Floats for the inference state; `Model::arena_len` says how many a model needs.
const ARENA_LEN: usize = 2560;
const MAX_DIMS: usize = 64;

static mut ARENA: [f32; ARENA_LEN] = [0.0; ARENA_LEN];

#[entry]
fn main() -> ! {
    // SAFETY: main runs once, and nothing else names ARENA.
    let arena = unsafe { &mut *(&raw mut ARENA) };

    for recording in RECORDINGS {
        if run(recording, arena).is_err() {
            print(recording.name);
            print(c": refused\n");
            exit(1)
        }
    }
    exit(0)
}

fn run(recording: &Recording, arena: &mut [f32]) -> Result<(), Error> {
    paint_stack();
    let mut digest = Digest::new();
    let mut buffers = ([0.0; MAX_DIMS], [0.0; MAX_DIMS]);

    let model = Blob::parse(recording.blob)?.model();
    let samples = recording.count(model.dims());
    let arena_len = model.arena_len();
    let (Some(sample), Some(reconstruction)) =
        (buffers.0.get_mut(..model.dims()), buffers.1.get_mut(..model.dims()))
    else {
        print(c"MAX_DIMS is too small\n");
        exit(1)
    };
    let mut inference = Inference::new(model, arena)?;

    for n in 0..samples {
        recording.read(n, sample);
        digest.estimate(&inference.infer(sample)?);
        inference.reconstruct(reconstruction)?;
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
