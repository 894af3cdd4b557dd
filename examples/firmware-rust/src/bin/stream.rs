//! A stream on bare metal: sound of two microphones in, one signal for each of three sources out.
//!
//! The recording is sent twice, in blocks of one sample and of changing lengths: the digest of what comes out must be the
//! same, and that of the desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::{Aligned, Blob, Engine, Stream};
use spikelet_firmware::blocks;
use spikelet_firmware::board::{entry, exit, paint_stack, print};

/// `Stream::memory_len` says how many numbers a model needs.
const MEMORY_LEN: usize = 512;

static mut MEMORY: [f32; MEMORY_LEN] = [0.0; MEMORY_LEN];

macro_rules! file {
    ($extension:literal) => {
        include_bytes!(concat!("../../../../tests/conformance/stream-d2h6.", $extension))
    };
}

static MODEL: Aligned<{ file!("spk").len() }> = Aligned::new(file!("spk"));
static RECORDING: &[u8] = file!("f32");

#[entry]
fn main() -> ! {
    let memory = &raw mut MEMORY;
    // SAFETY: main runs once, and nothing else names MEMORY.
    let memory = unsafe { &mut *memory };
    paint_stack();
    if let Err(why) = run(memory) {
        print(why);
        print(c"\n");
        exit(1)
    }
    exit(0)
}

fn run(memory: &mut [f32]) -> Result<(), &'static CStr> {
    let blob = Blob::parse(MODEL.bytes()).map_err(|_| c"blob refused")?;
    let mut stream =
        Stream::new(blob, Engine::Truncated, memory).map_err(|_| c"MEMORY_LEN is too small, or no stream")?;
    blocks::run(c"stream-d2h6", &mut stream, RECORDING, Stream::memory_len(&blob))
}
