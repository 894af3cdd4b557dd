//! Sources in a room on bare metal: sound of spaced microphones in, one signal for each source out.
//!
//! Each recording is sent twice, in blocks of one sample and of changing lengths: the digest of what comes out must be the
//! same, and that of the desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::{Aligned, SpatialModel, SpatialStream};
use spikelet_firmware::blocks;
use spikelet_firmware::board::{entry, exit, paint_stack, print};

/// `SpatialStream::memory_len` says how many numbers a model needs.
const MEMORY_LEN: usize = 1700;

static mut MEMORY: [f32; MEMORY_LEN] = [0.0; MEMORY_LEN];

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/conformance/", $name))
    };
}

static FOUR: Aligned<{ file!("room-d2h4.spk").len() }> = Aligned::new(file!("room-d2h4.spk"));
static THREE: Aligned<{ file!("room-d3h3.spk").len() }> = Aligned::new(file!("room-d3h3.spk"));

#[entry]
fn main() -> ! {
    let memory = &raw mut MEMORY;
    // SAFETY: main runs once, and nothing else names MEMORY.
    let memory = unsafe { &mut *memory };
    for (name, blob, recording) in [
        (c"room-d2h4", FOUR.bytes(), &file!("room-d2h4.f32")[..]),
        (c"room-d3h3", THREE.bytes(), &file!("room-d3h3.f32")[..]),
    ] {
        paint_stack();
        if let Err(why) = run(name, blob, recording, memory) {
            print(why);
            print(c"\n");
            exit(1)
        }
    }
    exit(0)
}

fn run(name: &CStr, blob: &'static [u8], recording: &[u8], memory: &mut [f32]) -> Result<(), &'static CStr> {
    let model = SpatialModel::parse(blob).map_err(|_| c"blob refused")?;
    let mut stream = SpatialStream::new(model, memory).map_err(|_| c"MEMORY_LEN is too small")?;
    blocks::run(name, &mut stream, recording, SpatialStream::memory_len(&model))
}
