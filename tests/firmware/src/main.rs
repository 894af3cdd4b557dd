//! Counts what one inference costs, stage by stage, and prints a line for each model in flash:
//!
//! ```text
//! name samples projection selection posterior total worst blob-bytes
//! ```
//!
//! A model of a room or of one channel is a stream: `name hops hop rate mean worst blob-bytes`, of a hop.
//!
//! Instructions are means over the samples, `worst` is the most expensive sample's total. With the feature `each` there is a line
//! for each sample instead: `name number projection selection posterior`; a model with a frame is a stream there, with a line for
//! each block, `name number instructions`, and one for its transform alone, `name@transform 0 forward inverse`. The stages are
//! called as a program would call them, each behind a function that is not inlined, so that no work moves across the marks; its
//! call and return are counted.
#![no_std]
#![no_main]

mod settings;
mod timer;

use core::ffi::CStr;
use settings::sampling;
use spikelet::frame::Form;
use spikelet::mdct::Mdct;
use spikelet::{Blob, Detail, Engine, Gibbs, Inference, Kind, Start, Stream};
use spikelet_firmware::board::{entry, exit, print, print_value};
use spikelet_firmware::recording::{RECORDINGS, Recording};
use spikelet_firmware::signals::Signals;
use timer::{Clock, now};

/// The smallest core has 16 KiB for these and for the stack: no room for rooms of full size.
const IS_SMALL: bool = cfg!(timer = "nrf51");
const ARENA_LEN: usize = if IS_SMALL { 1856 } else { 22_000 };
const MAX_DIMS: usize = 64;
const MAX_BLOCK: usize = if IS_SMALL { 192 } else { 384 };
/// Of all channels or sources.
const MAX_SIGNALS: usize = if IS_SMALL { 192 } else { 1536 };

static mut ARENA: [f32; ARENA_LEN] = [0.0; ARENA_LEN];

#[entry]
fn main() -> ! {
    let arena = &raw mut ARENA;
    // SAFETY: main runs once, and nothing else names ARENA.
    let arena = unsafe { &mut *arena };
    let Some(clock) = Clock::new() else {
        print(c"the clock does not count instructions\n");
        exit(1)
    };

    for recording in RECORDINGS {
        if let Err(why) = measure(recording, arena, &clock) {
            print(recording.name);
            print(c": ");
            print(why);
            print(c"\n");
            exit(1)
        }
    }
    exit(0)
}

fn measure(recording: &Recording, arena: &mut [f32], clock: &Clock) -> Result<(), &'static CStr> {
    if Signals::is_one(recording.blob) {
        return measure_signals(recording, arena, clock);
    }
    let mut buffer = [0.0; MAX_DIMS];
    let blob = Blob::parse(recording.blob).map_err(|_| c"blob refused")?;
    if cfg!(feature = "each") && blob.frame().is_some() {
        return measure_stream(recording, blob, arena, clock);
    }
    let model = blob.model();
    let dims = model.shape.dims;
    let sample = buffer.get_mut(..dims).ok_or(c"MAX_DIMS is too small")?;
    let engine = engine(recording, model.shape.kind);
    let mut inference = Inference::with_engine(model, arena, Detail::Marginals, engine)
        .map_err(|_| c"ARENA_LEN is too small")?;

    let mut sums = [0u64; 3];
    let mut worst = 0;
    let samples = recording.count(dims);
    for n in 0..samples {
        recording.read(n, sample);

        let start = now();
        project(&mut inference, sample)?;
        let projected = now();
        select(&mut inference);
        let selected = now();
        posterior(&mut inference)?;
        let done = now();

        let stages = [(start, projected), (projected, selected), (selected, done)]
            .map(|(first, second)| clock.between(first, second));
        if cfg!(feature = "each") {
            print(recording.name);
            print_value(c" ", n as u32);
            stages.iter().for_each(|&stage| print_value(c" ", stage));
            print(c"\n");
        }
        worst = worst.max(stages.iter().sum());
        for (sum, stage) in sums.iter_mut().zip(stages) {
            *sum += u64::from(stage);
        }
    }

    if cfg!(feature = "each") {
        return Ok(());
    }
    let mean = |sum: u64| ((sum + samples as u64 / 2) / (samples as u64).max(1)) as u32;
    print(recording.name);
    print_value(c" ", samples as u32);
    for sum in sums {
        print_value(c" ", mean(sum));
    }
    print_value(c" ", mean(sums.iter().sum()));
    print_value(c" ", worst);
    print_value(c" ", recording.blob.len() as u32);
    print(c"\n");
    Ok(())
}

#[inline(never)] // its buffers would be on everyone's stack
fn measure_stream(
    recording: &Recording,
    blob: Blob<'static>,
    arena: &mut [f32],
    clock: &Clock,
) -> Result<(), &'static CStr> {
    let engine = engine(recording, blob.kind());
    if IS_SMALL && !fits(&blob) {
        return Ok(()); // some of the models to fit are too large for the smallest core
    }
    let (mut input, mut output) = ([0.0; MAX_BLOCK], [0.0; MAX_BLOCK]);
    if let Some(Form::Transform { bins, .. }) = blob.frame().map(|frame| frame.form) {
        measure_transform(recording, bins as usize, arena, &mut input, clock)?;
    }
    let mut stream = Stream::new(blob, engine, arena).map_err(|_| c"ARENA_LEN is too small")?;
    if IS_SMALL && stream.hop() * stream.channels().max(stream.groups()) > MAX_BLOCK {
        return Ok(());
    }
    let input = input.get_mut(..stream.hop() * stream.channels()).ok_or(c"MAX_BLOCK is too small")?;
    let output = output.get_mut(..stream.hop() * stream.groups()).ok_or(c"MAX_BLOCK is too small")?;
    for n in 0..recording.count(input.len()) {
        recording.read(n, input);
        let start = now();
        let _ = stream.process(input, output);
        let done = now();
        print(recording.name);
        print_value(c" ", n as u32);
        print_value(c" ", clock.between(start, done));
        print(c"\n");
    }
    Ok(())
}

/// Whether there is memory for a stream.
fn fits(blob: &Blob<'_>) -> bool {
    let Some(frame) = blob.frame() else { return false };
    let block = match frame.form {
        Form::Transform { bins, .. } => 3 * bins as usize,
        _ => 0,
    };
    Stream::memory_len(blob) <= ARENA_LEN && block <= MAX_BLOCK
}

/// One block forth and back.
fn measure_transform(
    recording: &Recording,
    bins: usize,
    arena: &mut [f32],
    signal: &mut [f32],
    clock: &Clock,
) -> Result<(), &'static CStr> {
    let table = arena.get_mut(..Mdct::table_len(bins)).ok_or(c"ARENA_LEN is too small")?;
    Mdct::prepare(table);
    let mdct = Mdct::over(table);
    let block = signal.get_mut(..3 * bins).ok_or(c"MAX_BLOCK is too small")?;
    recording.read(0, block);
    let (older, rest) = block.split_at_mut_checked(bins).ok_or(c"MAX_BLOCK is too small")?;
    let (newer, spectrum) = rest.split_at_mut_checked(bins).ok_or(c"MAX_BLOCK is too small")?;
    let start = now();
    mdct.forward(older, newer, spectrum);
    let done = now();
    mdct.inverse(spectrum, older, newer);
    let back = now();
    print(recording.name);
    print_value(c"@transform ", 0);
    print_value(c" ", clock.between(start, done));
    print_value(c" ", clock.between(done, back));
    print(c"\n");
    Ok(())
}

#[inline(never)] // its buffers would be on everyone's stack
fn measure_signals(recording: &Recording, arena: &mut [f32], clock: &Clock) -> Result<(), &'static CStr> {
    // As above; on the smallest core frames take so much stack that the end of the arena must stay free for it.
    let most = if IS_SMALL { arena.len() - 448 } else { arena.len() };
    if cfg!(feature = "each") && Signals::memory_len(recording.blob)? > most {
        return Ok(());
    }
    let mut stream = Signals::new(recording.blob, arena)?;
    if cfg!(feature = "each") && stream.hop() * stream.channels().max(stream.groups()) > MAX_SIGNALS {
        return Ok(());
    }
    let (mut input, mut output) = ([0.0; MAX_SIGNALS], [0.0; MAX_SIGNALS]);
    let input = input.get_mut(..stream.hop() * stream.channels()).ok_or(c"MAX_SIGNALS is too small")?;
    let output = output.get_mut(..stream.hop() * stream.groups()).ok_or(c"MAX_SIGNALS is too small")?;
    let (mut sum, mut worst) = (0, 0);
    let hops = recording.count(input.len());
    for n in 0..hops {
        recording.read(n, input);
        let start = now();
        stream.process(input, output).map_err(|_| c"block refused")?;
        let taken = clock.between(start, now());
        sum += u64::from(taken);
        worst = worst.max(taken);
        if cfg!(feature = "each") {
            print(recording.name);
            print_value(c" ", n as u32);
            print_value(c" ", taken);
            print(c"\n");
        }
    }
    if cfg!(feature = "each") {
        return Ok(());
    }
    print(recording.name);
    let mean = (sum / (hops as u64).max(1)) as u32;
    for value in [hops as u32, stream.hop() as u32, stream.rate(), mean, worst, recording.blob.len() as u32] {
        print_value(c" ", value);
    }
    print(c"\n");
    Ok(())
}

fn engine(recording: &Recording, kind: Kind) -> Engine {
    let Some(sampling) = sampling(recording) else { return Engine::Truncated };
    Engine::Gibbs(Gibbs {
        chains: sampling.chains,
        start: if sampling.is_random { Start::Random } else { Start::Greedy },
        extra: sampling.extra as u16,
        seed: 1,
        ..Gibbs::new(kind, sampling.sweeps)
    })
}

#[inline(never)]
fn project(inference: &mut Inference<f32>, sample: &[f32]) -> Result<(), &'static CStr> {
    inference.project(sample).map_err(|_| c"sample refused")
}

#[inline(never)]
fn select(inference: &mut Inference<f32>) {
    inference.select();
}

#[inline(never)]
fn posterior(inference: &mut Inference<f32>) -> Result<(), &'static CStr> {
    inference.posterior().map(|_| ()).map_err(|_| c"sample out of range")
}
