//! Counts what the product of a sample with the dictionary costs, and prints a line for each encoding and shape:
//!
//! ```text
//! encoding dims latents instructions
//! ```
//!
//! Before that it compares every kernel with its portable reference, bit for bit, on random shapes and numbers.
#![no_std]
#![no_main]

mod timer;

use core::ffi::CStr;
use spikelet::model::Width;
use spikelet::project::integer;
use spikelet::project::kernel::{self, portable};
use spikelet::rng::Rng;
use spikelet_firmware::board::{entry, exit, print, print_value};
use timer::{Clock, now};

/// Dims and latents that are measured.
const SHAPES: &[(usize, usize)] = if SMALL {
    &[(64, 32), (16, 32), (13, 7)]
} else {
    &[(64, 256), (64, 64), (200, 200), (16, 32), (129, 31), (13, 7)]
};
/// 16 KiB of RAM.
const SMALL: bool = cfg!(timer = "nrf51");
const MOST_WEIGHTS: usize = if SMALL { 64 * 32 } else { 200 * 200 };
const MOST_DIMS: usize = 200;
const MOST_LATENTS: usize = 256;
/// Shapes that are compared.
const COMPARED: usize = if SMALL { 100 } else { 1000 };
/// Most dims and latents of those.
const MOST_COMPARED: usize = 40;
const COMPARED_WEIGHTS: usize = MOST_COMPARED * MOST_COMPARED;

/// In flash, as a dictionary is.
static FLOATS: [f32; MOST_WEIGHTS] = {
    let mut numbers = [0.0; MOST_WEIGHTS];
    let (mut i, mut state) = (0, 1u32);
    while i < MOST_WEIGHTS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        numbers[i] = (state >> 8) as f32 / 16_777_216.0 - 0.5;
        i += 1;
    }
    numbers
};

/// Integers small enough that no sum leaves 32 bits.
static WORDS: [u32; MOST_WEIGHTS / 2] = {
    let mut numbers = [0; MOST_WEIGHTS / 2];
    let (mut i, mut state) = (0, 1u32);
    while i < numbers.len() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        numbers[i] = state >> 8 & 0x07ff_07ff;
        i += 1;
    }
    numbers
};

static mut WEIGHTS: [f32; COMPARED_WEIGHTS + 4] = [0.0; COMPARED_WEIGHTS + 4];

#[entry]
fn main() -> ! {
    let weights = &raw mut WEIGHTS;
    // SAFETY: main runs once, and nothing else names WEIGHTS.
    let weights = unsafe { &mut *weights };
    let result = Clock::new()
        .ok_or(c"the clock does not count instructions\n")
        .and_then(|clock| compare(weights).map(|()| clock));
    match result {
        Ok(clock) => measure(&clock),
        Err(why) => {
            print(why);
            exit(1)
        }
    }
    exit(0)
}

fn measure(clock: &Clock) {
    let mut sample = [0.0; MOST_DIMS];
    let mut out = [0.0; MOST_LATENTS];
    for (u, &w) in sample.iter_mut().zip(FLOATS.iter().rev()) {
        *u = w;
    }
    for &(dims, latents) in SHAPES {
        let len = dims * latents.next_multiple_of(8);
        let (Some(w), Some(u), Some(b)) = (FLOATS.get(..len), sample.get(..dims), out.get_mut(..latents))
        else {
            continue;
        };
        let start = now();
        project(w, u, b);
        let done = now();
        report(c"f32", dims, latents, clock.between(start, done));
        let (Some(v), Some(scales)) = (WORDS.get(..integer::sample_words(dims)), FLOATS.get(..latents))
        else {
            continue;
        };
        for (name, width) in [(c"i16", Width::I16), (c"i8", Width::I8)] {
            let Some(w) = width.words(dims, latents).and_then(|len| WORDS.get(..len)) else { continue };
            let start = now();
            project_integers(width, w, v, scales, b);
            let done = now();
            report(name, dims, latents, clock.between(start, done));
        }
        // Without the floats at the end.
        for (name, width) in [(c"i16-sums", Width::I16), (c"i8-sums", Width::I8)] {
            let Some(w) = width.words(dims, latents).and_then(|len| WORDS.get(..len)) else { continue };
            let start = now();
            sums(width, w, v, integer::words_mut(b));
            let done = now();
            report(name, dims, latents, clock.between(start, done));
        }
    }
}

fn report(encoding: &CStr, dims: usize, latents: usize, instructions: u32) {
    print(encoding);
    print_value(c" ", dims as u32);
    print_value(c" ", latents as u32);
    print_value(c" ", instructions);
    print(c"\n");
}

#[inline(never)]
fn project(w: &[f32], u: &[f32], b: &mut [f32]) {
    kernel::project(w, u, b);
}

#[inline(never)]
fn sums(width: Width, w: &[u32], v: &[u32], sums: &mut [u32]) {
    integer::sums(width, w, v, sums);
}

#[inline(never)]
fn project_integers(width: Width, w: &[u32], v: &[u32], scales: &[f32], b: &mut [f32]) {
    integer::project(width, w, v, scales, 0.5, b);
}

/// Numbers of all sizes: ordinary ones, zeros of both signs, subnormal ones, and such that products nearly overflow.
fn number(rng: &mut Rng) -> f32 {
    let value = rng.normal::<f32>();
    match rng.below(16) {
        0 => 0.0 * value,
        1 => value * 1e-41,
        2 => value * 1e-20,
        3 => value * 1e17,
        _ => value,
    }
}

fn compare(weights: &mut [f32]) -> Result<(), &'static CStr> {
    let mut rng = Rng::new(1);
    let (mut sample, mut out) = ([0.0; MOST_COMPARED + 4], [[0.0; MOST_COMPARED + 1]; 2]);
    compare_integers(weights, &mut out, &mut rng)?;
    weights.iter_mut().chain(&mut sample).for_each(|w| *w = number(&mut rng));
    for _ in 0..COMPARED {
        let [dims, latents] = [(); 2].map(|()| 1 + rng.below(MOST_COMPARED as u16) as usize);
        let [first, second] = [(); 2].map(|()| rng.below(4) as usize); // where the slices begin
        let w = weights.get(first..first + dims * latents.next_multiple_of(8)).ok_or(c"no room\n")?;
        let u = sample.get(second..second + dims).ok_or(c"no room\n")?;
        let [fast, reference] = &mut out;
        // One more than the kernel may write.
        fast.fill(7.0);
        reference.fill(7.0);
        kernel::project(w, u, fast.get_mut(..latents).unwrap_or_default());
        portable(w, u, reference.get_mut(..latents).unwrap_or_default());
        if fast.iter().zip(reference).any(|(a, b)| a.to_bits() != b.to_bits()) {
            print_value(c"f32: another result than the reference has: dims ", dims as u32);
            print_value(c", latents ", latents as u32);
            return Err(c"\n");
        }
    }
    Ok(())
}

/// The same for integers: words of any bits, as long as no sum leaves 32 bits.
fn compare_integers(
    weights: &mut [f32],
    out: &mut [[f32; MOST_COMPARED + 1]; 2],
    rng: &mut Rng,
) -> Result<(), &'static CStr> {
    let packed = integer::words_mut(weights);
    for n in 0..COMPARED {
        let [dims, latents] = [(); 2].map(|()| 1 + rng.below(MOST_COMPARED as u16) as usize);
        let width = if n % 2 == 0 { Width::I16 } else { Width::I8 };
        // 40 products of at most 2^15 and 2^10 in size, or 2^7 and 2^15; now and then all as large as that.
        let bits = if n % 2 == 0 { 10 } else { 15 };
        let mut half = |most: u32| match rng.below(8) {
            0 => -(1i32 << most) as u16,
            1 => ((1i32 << most) - 1) as u16,
            _ => ((i32::from(rng.below(u16::MAX)) - (1 << 15)) >> (15 - most)) as u16,
        };
        let mut sample = [0u32; integer::sample_words(MOST_COMPARED)];
        for word in sample.iter_mut() {
            *word = u32::from(half(bits)) | u32::from(half(bits)) << 16;
        }
        for word in packed.iter_mut() {
            *word = u32::from(half(15)) | u32::from(half(15)) << 16;
        }
        let first = rng.below(4) as usize;
        let len = width.words(dims, latents).unwrap_or_default();
        let w = packed.get(first..first + len).ok_or(c"no room\n")?;
        let v = sample.get(..integer::sample_words(dims)).unwrap_or_default();
        let [fast, reference] = &mut *out;
        fast.fill(7.0);
        reference.fill(7.0);
        let [a, b] = [&mut *fast, &mut *reference].map(|out| out.get_mut(..latents).unwrap_or_default());
        integer::sums(width, w, v, integer::words_mut(a));
        integer::portable(width, w, v, integer::words_mut(b));
        if fast.iter().zip(reference).any(|(a, b)| a.to_bits() != b.to_bits()) {
            print_value(c"integers: another result than the reference has: dims ", dims as u32);
            print_value(c", latents ", latents as u32);
            return Err(c"\n");
        }
    }
    Ok(())
}
