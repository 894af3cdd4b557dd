//! A recording through a stream, block by block, and the line that is printed about it.

use crate::board::{print, print_hex, print_value, stack_used};
use crate::digest::Digest;
use crate::signals::Signals;
use core::ffi::CStr;
use spikelet::Stream;

/// Samples of the longest block, and the most channels or sources of any model here.
const LONGEST: usize = 64;
const WIDEST: usize = 4;

/// What all streams have.
pub trait Blocks {
    /// Microphones.
    fn channels(&self) -> usize;
    /// Sources.
    fn groups(&self) -> usize;
    /// By how many samples sources come late.
    fn latency(&self) -> usize;
    /// Begins anew.
    fn reset(&mut self);
    /// Samples of all microphones in, as many of all sources out.
    fn process(&mut self, input: &[f32], sources: &mut [f32]) -> Result<(), spikelet::Error>;
}

macro_rules! blocks {
    ($stream:ident) => {
        impl Blocks for $stream<'_> {
            fn channels(&self) -> usize {
                self.channels()
            }
            fn groups(&self) -> usize {
                self.groups()
            }
            fn latency(&self) -> usize {
                self.latency()
            }
            fn reset(&mut self) {
                self.reset();
            }
            fn process(&mut self, input: &[f32], sources: &mut [f32]) -> Result<(), spikelet::Error> {
                self.process(input, sources)
            }
        }
    };
}

blocks!(Stream);
blocks!(Signals);

/// Sends a recording twice, in blocks of one sample and of changing lengths: what comes out must be the same. Prints its digest.
pub fn run(
    name: &CStr,
    stream: &mut impl Blocks,
    recording: &[u8],
    memory_len: usize,
) -> Result<(), &'static CStr> {
    let first = digest(stream, recording, &[1])?;
    if first != digest(stream, recording, &[LONGEST, 7, 16, 33])? {
        return Err(c"the length of blocks matters");
    }
    print(name);
    print(c" digest=");
    print_hex(first);
    print_value(c" latency=", stream.latency() as u32);
    print_value(c" stack=", stack_used());
    print_value(c" arena=", 4 * memory_len as u32);
    print(c"\n");
    Ok(())
}

/// Of the whole recording from the beginning, in blocks of these lengths in turn.
fn digest(stream: &mut impl Blocks, recording: &[u8], blocks: &[usize]) -> Result<u64, &'static CStr> {
    let (channels, groups) = (stream.channels(), stream.groups());
    let (mut input, mut sources) = ([0.0; WIDEST * LONGEST], [0.0; WIDEST * LONGEST]);
    let mut digest = Digest::EMPTY;
    let mut words = recording.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
    stream.reset();
    for &block in blocks.iter().cycle() {
        let mut filled = 0;
        let room = input.get_mut(..block * channels).ok_or(c"WIDEST is too small")?;
        for (y, word) in room.iter_mut().zip(&mut words) {
            *y = word;
            filled += 1;
        }
        let samples = filled / channels.max(1);
        let sources = sources.get_mut(..samples * groups).ok_or(c"WIDEST is too small")?;
        stream.process(room.get(..filled).unwrap_or(&[]), sources).map_err(|_| c"block refused")?;
        digest.floats(sources);
        if samples < block {
            break;
        }
    }
    Ok(digest.0)
}
