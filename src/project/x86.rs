//! [`super::kernel::portable`] for desktops: four panels side by side, in vectors of eight where the processor has them.
//!
//! A panel by itself waits for its own sums: an addition takes four cycles, and the next one needs its result. Four panels fill that
//! time. Every latent is still summed from dimension 0 up, so the bits are those of the portable code.
#![allow(unsafe_code)]

use super::kernel::portable;
use crate::model::PANEL;
use crate::numeric::math::Real;
use core::arch::x86_64::{__cpuid, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

/// Panels side by side.
const WIDE: usize = 4;

/// See [`super::kernel::project`].
pub fn project<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    if has_avx() {
        // SAFETY: the processor has AVX, and the operating system saves its registers.
        unsafe { project_avx(dictionary, weighted, projection) }
    } else {
        wide(dictionary, weighted, projection);
    }
}

#[target_feature(enable = "avx")]
fn project_avx<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    wide(dictionary, weighted, projection);
}

#[inline(always)]
fn wide<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    let panel_len = weighted.len() * PANEL;
    let (mut rest, mut left) = (dictionary, projection);
    while panel_len > 0 && left.len() >= WIDE * PANEL {
        let Some((panels, others)) = rest.split_at_checked(WIDE * panel_len) else { break };
        let (b, behind) = core::mem::take(&mut left).split_at_mut(WIDE * PANEL);
        let mut sums = [[T::ZERO; PANEL]; WIDE];
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|panel| {
            panels.get(panel * panel_len..(panel + 1) * panel_len).unwrap_or(&[]).as_chunks::<PANEL>().0
        });
        for ((((w0, w1), w2), w3), &u) in first.iter().zip(second).zip(third).zip(fourth).zip(weighted) {
            for (sums, w) in sums.iter_mut().zip([w0, w1, w2, w3]) {
                for (sum, &w) in sums.iter_mut().zip(w) {
                    *sum += w * u;
                }
            }
        }
        for (b, &sum) in b.iter_mut().zip(sums.as_flattened()) {
            *b = sum;
        }
        (rest, left) = (others, behind);
    }
    portable(rest, weighted, left);
}

/// Whether there are vectors of eight. The processor is asked once: in a virtual machine that takes microseconds.
fn has_avx() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let has = !cfg!(miri) && detect(); // Miri knows no CPUID
            KNOWN.store(if has { YES } else { NO }, Ordering::Relaxed);
            has
        }
        known => known == YES,
    }
}

fn detect() -> bool {
    // AVX, and XGETBV, which tells whether the operating system saves its registers (bits 1 and 2).
    const NEEDED: u32 = 1 << 28 | 1 << 27;
    #[target_feature(enable = "xsave")]
    fn saved() -> bool {
        // SAFETY: only called where CPUID says that XGETBV is there.
        let registers = unsafe { _xgetbv(0) };
        registers & 6 == 6
    }
    // SAFETY: every 64-bit x86 has CPUID; for the second see the first.
    __cpuid(1).ecx & NEEDED == NEEDED && unsafe { saved() }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn bits_are_those_of_the_portable_kernel() {
        for (dims, latents) in [(1usize, 1usize), (3, 8), (16, 32), (64, 256), (7, 100), (5, 33), (40, 90)] {
            let packed = dims * latents.div_ceil(PANEL) * PANEL;
            let number = |i: usize| ((i * 7919 % 1000) as f32 - 500.0) * 0.013;
            let dictionary: Vec<f32> = (0..packed).map(number).collect();
            let weighted: Vec<f32> = (0..dims).map(|d| number(d + 17)).collect();
            let (mut expected, mut plain, mut found) =
                (std::vec![0.0; latents], std::vec![0.0; latents], std::vec![0.0; latents]);
            portable(&dictionary, &weighted, &mut expected);
            wide(&dictionary, &weighted, &mut plain);
            project(&dictionary, &weighted, &mut found);
            assert_eq!(expected, plain, "D = {dims}, H = {latents}");
            assert_eq!(expected, found, "D = {dims}, H = {latents}, vectors");
        }
    }
}
