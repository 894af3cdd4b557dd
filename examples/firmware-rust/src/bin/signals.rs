//! Sources in a room, or in one channel, on bare metal: sound in, one signal for each source out.
//!
//! Each recording is sent twice, in blocks of one sample and of changing lengths: the digest of what comes out must be the
//! same, and that of the desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::Aligned;
use spikelet_firmware::blocks;
use spikelet_firmware::board::{entry, exit, paint_stack, print};
use spikelet_firmware::signals::Signals;

/// `SpatialStream::memory_len` and `SpectralStream::memory_len` say how many numbers a model needs.
const MEMORY_LEN: usize = 1700;

static mut MEMORY: [f32; MEMORY_LEN] = [0.0; MEMORY_LEN];

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/conformance/", $name))
    };
}

static FOUR: Aligned<{ file!("room-d2h4.spk").len() }> = Aligned::new(file!("room-d2h4.spk"));
static THREE: Aligned<{ file!("room-d3h3.spk").len() }> = Aligned::new(file!("room-d3h3.spk"));
static FOLLOWS: Aligned<{ file!("room-follows-d2h2.spk").len() }> =
    Aligned::new(file!("room-follows-d2h2.spk"));
static FLOATS: Aligned<{ file!("channel-d8h12.spk").len() }> = Aligned::new(file!("channel-d8h12.spk"));
static BYTES: Aligned<{ file!("channel-d12h14.spk").len() }> = Aligned::new(file!("channel-d12h14.spk"));

#[entry]
fn main() -> ! {
    let memory = &raw mut MEMORY;
    // SAFETY: main runs once, and nothing else names MEMORY.
    let memory = unsafe { &mut *memory };
    for (name, blob, recording) in [
        (c"room-d2h4", FOUR.bytes(), &file!("room-d2h4.f32")[..]),
        (c"room-d3h3", THREE.bytes(), &file!("room-d3h3.f32")[..]),
        (c"room-follows-d2h2", FOLLOWS.bytes(), &file!("room-follows-d2h2.f32")[..]),
        (c"channel-d8h12", FLOATS.bytes(), &file!("channel-d8h12.f32")[..]),
        (c"channel-d12h14", BYTES.bytes(), &file!("channel-d12h14.f32")[..]),
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
    let needed = Signals::memory_len(blob)?;
    blocks::run(name, &mut Signals::new(blob, memory)?, recording, needed)
}
