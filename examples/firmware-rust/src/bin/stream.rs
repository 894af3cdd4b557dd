//! A stream on bare metal: sound of two microphones in, one signal for each of three sources out.
//!
//! The recording is sent twice, in blocks of one sample and of changing lengths: the digest of what comes out must be the
//! same, and that of the desktop.
#![no_std]
#![no_main]

use core::ffi::CStr;
use spikelet::{Aligned, Blob, Engine, Stream};
use spikelet_firmware::board::{entry, exit, paint_stack, print, print_hex, print_value, stack_used};
use spikelet_firmware::digest::Digest;

/// `Stream::memory_len` says how many numbers a model needs.
const MEMORY_LEN: usize = 512;
const LONGEST: usize = 64;
const MOST_GROUPS: usize = 4;

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
    let digest = digest(&mut stream, &[1])?;
    if digest != self::digest(&mut stream, &[LONGEST, 7, 16, 33])? {
        return Err(c"the length of blocks matters");
    }
    print(c"stream-d2h6 digest=");
    print_hex(digest);
    print_value(c" latency=", stream.latency() as u32);
    print_value(c" stack=", stack_used());
    print_value(c" arena=", 4 * Stream::memory_len(&blob) as u32);
    print(c"\n");
    Ok(())
}

/// Of the whole recording from the beginning, in blocks of these lengths in turn.
fn digest(stream: &mut Stream, blocks: &[usize]) -> Result<u64, &'static CStr> {
    let (channels, groups) = (stream.channels(), stream.groups());
    let (mut input, mut sources) = ([0.0; 2 * LONGEST], [0.0; MOST_GROUPS * LONGEST]);
    let mut digest = Digest::EMPTY;
    let mut words = RECORDING.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    stream.reset();
    for &block in blocks.iter().cycle() {
        let mut filled = 0;
        let room = input.get_mut(..block * channels).ok_or(c"LONGEST is too small")?;
        for (y, word) in room.iter_mut().zip(&mut words) {
            *y = word;
            filled += 1;
        }
        let samples = filled / channels.max(1);
        let sources = sources.get_mut(..samples * groups).ok_or(c"MOST_GROUPS is too small")?;
        stream.process(room.get(..filled).unwrap_or(&[]), sources).map_err(|_| c"block refused")?;
        digest.floats(sources);
        if samples < block {
            break;
        }
    }
    Ok(digest.0)
}
