//! Sources in a room on bare metal: sound of spaced microphones in, one signal for each source out.
//!
//! Each recording is sent twice, in blocks of one sample and of changing lengths: the digest of what comes out must be the
//! same, and that of the desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::{Aligned, SpatialModel, SpatialStream};
use spikelet_firmware::board::{entry, exit, paint_stack, print, print_hex, print_value, stack_used};
use spikelet_firmware::digest::Digest;

/// `SpatialStream::memory_len` says how many numbers a model needs.
const MEMORY_LEN: usize = 1700;
const LONGEST: usize = 64;

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
    let digest = digest(&mut stream, recording, &[1])?;
    if digest != self::digest(&mut stream, recording, &[LONGEST, 7, 16, 33])? {
        return Err(c"the length of blocks matters");
    }
    print(name);
    print(c" digest=");
    print_hex(digest);
    print_value(c" latency=", stream.latency() as u32);
    print_value(c" stack=", stack_used());
    print_value(c" arena=", 4 * SpatialStream::memory_len(&model) as u32);
    print(c"\n");
    Ok(())
}

/// Of the whole recording from the beginning, in blocks of these lengths in turn.
fn digest(stream: &mut SpatialStream, recording: &[u8], blocks: &[usize]) -> Result<u64, &'static CStr> {
    let (channels, groups) = (stream.channels(), stream.groups());
    let (mut input, mut sources) = ([0.0; 4 * LONGEST], [0.0; 4 * LONGEST]);
    let mut digest = Digest::EMPTY;
    let mut words = recording.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    stream.reset();
    for &block in blocks.iter().cycle() {
        let mut filled = 0;
        let room = input.get_mut(..block * channels).ok_or(c"LONGEST is too small")?;
        for (y, word) in room.iter_mut().zip(&mut words) {
            *y = word;
            filled += 1;
        }
        let samples = filled / channels.max(1);
        let sources = sources.get_mut(..samples * groups).ok_or(c"LONGEST is too small")?;
        stream.process(room.get(..filled).unwrap_or(&[]), sources).map_err(|_| c"block refused")?;
        digest.floats(sources);
        if samples < block {
            break;
        }
    }
    Ok(digest.0)
}
