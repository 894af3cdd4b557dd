//! [`super::kernel`] and `many` for desktops, in the widest vectors that the processor has.
//!
//! A sum by itself waits for its own result: an addition takes four cycles, and the next one needs it. Four panels side by side, or four
//! rows, fill that time. Every entry is still summed from its first product on, so the bits are those of the portable code.
#![allow(unsafe_code)]

use super::kernel::portable;
#[cfg(feature = "training")]
use super::many;
use crate::model::PANEL;
use crate::numeric::math::Real;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

/// Panels side by side.
const WIDE: usize = 4;

/// See [`super::kernel::project`].
pub fn project<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    if vectors() >= Vectors::Avx {
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

/// See [`many::product`]. As many sums as there are registers for: two panels of singles, or one of doubles, two with AVX-512.
#[cfg(feature = "training")]
pub fn product<T: Real>(a: &[T], panels: &[T], k: usize, columns: usize, out: &mut [T]) {
    let is_single = size_of::<T>() == size_of::<f32>();
    match vectors() {
        // SAFETY: the processor has AVX-512, and the operating system saves its registers.
        Vectors::Avx512 => unsafe { product_avx512(a, panels, k, columns, out) },
        // SAFETY: the processor has AVX, and the operating system saves its registers.
        Vectors::Avx if is_single => unsafe { product_avx::<T, 2>(a, panels, k, columns, out) },
        // SAFETY: the same.
        Vectors::Avx => unsafe { product_avx::<T, 1>(a, panels, k, columns, out) },
        Vectors::Few => many::portable::<T, 1>(a, panels, k, columns, out),
    }
}

#[cfg(feature = "training")]
#[target_feature(enable = "avx")]
fn product_avx<T: Real, const SIDE: usize>(a: &[T], panels: &[T], k: usize, columns: usize, out: &mut [T]) {
    many::portable::<T, SIDE>(a, panels, k, columns, out);
}

#[cfg(feature = "training")]
#[target_feature(enable = "avx512f")]
fn product_avx512<T: Real>(a: &[T], panels: &[T], k: usize, columns: usize, out: &mut [T]) {
    many::portable::<T, 2>(a, panels, k, columns, out);
}

/// What the processor has that is used here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Vectors {
    Few = 1,
    Avx = 2,
    Avx512 = 3,
}

/// The processor is asked once: in a virtual machine that takes microseconds.
fn vectors() -> Vectors {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    let known = [Vectors::Few, Vectors::Avx, Vectors::Avx512];
    let of = |known_as: u8| known.into_iter().find(|&vectors| vectors as u8 == known_as);
    of(KNOWN.load(Ordering::Relaxed)).unwrap_or_else(|| {
        let found = if cfg!(miri) { Vectors::Few } else { detect() }; // Miri knows no CPUID
        KNOWN.store(found as u8, Ordering::Relaxed);
        found
    })
}

fn detect() -> Vectors {
    // AVX, and XGETBV, which tells which registers the operating system saves: bits 1 and 2 for AVX, 5 to 7 for AVX-512.
    const NEEDED: u32 = 1 << 28 | 1 << 27;
    const AVX: u64 = 0b110;
    const AVX_512: u64 = 0b1110_0110;
    const AVX_512F: u32 = 1 << 16;
    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: only called where CPUID says that XGETBV is there.
        unsafe { _xgetbv(0) }
    }
    // Every 64-bit x86 has CPUID.
    if __cpuid(1).ecx & NEEDED != NEEDED {
        return Vectors::Few;
    }
    // SAFETY: CPUID says that XGETBV is there.
    let saved = unsafe { saved() };
    let has_512 = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & AVX_512F != 0;
    match saved {
        _ if has_512 && saved & AVX_512 == AVX_512 => Vectors::Avx512,
        _ if saved & AVX == AVX => Vectors::Avx,
        _ => Vectors::Few,
    }
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

    /// Every way of multiplying that this processor has, against sums one by one.
    #[cfg(feature = "training")]
    #[test]
    fn bits_of_products_do_not_depend_on_the_processor() {
        fn check<T: Real>() {
            for (n, k, columns) in [(1usize, 1usize, 1usize), (4, 3, 8), (5, 7, 9), (13, 2, 33), (70, 64, 40)]
            {
                let packed = k * columns.next_multiple_of(PANEL);
                let number = |i: usize| T::from_f64(((i * 7919 % 1000) as f64 - 500.0) * 0.013);
                let a: Vec<T> = (0..n * k).map(number).collect();
                let panels: Vec<T> = (0..packed).map(|i| number(i + 31)).collect();
                let entry = |row: usize, column: usize| {
                    let start = column / PANEL * PANEL * k + column % PANEL;
                    (0..k).fold(T::ZERO, |sum, i| sum + a[row * k + i] * panels[start + i * PANEL])
                };
                let expected: Vec<T> = (0..n * columns).map(|e| entry(e / columns, e % columns)).collect();
                let test = |name: &str, work: &dyn Fn(&mut [T])| {
                    let mut found = std::vec![T::ZERO; n * columns];
                    work(&mut found);
                    assert_eq!(found, expected, "{name}: {n} x {k} x {columns}");
                };
                test("one panel", &|out| many::portable::<T, 1>(&a, &panels, k, columns, out));
                test("two panels", &|out| many::portable::<T, 2>(&a, &panels, k, columns, out));
                test("as chosen", &|out| product(&a, &panels, k, columns, out));
                if vectors() >= Vectors::Avx {
                    // SAFETY: there is AVX.
                    test("AVX, one", &|out| unsafe { product_avx::<T, 1>(&a, &panels, k, columns, out) });
                    // SAFETY: the same.
                    test("AVX, two", &|out| unsafe { product_avx::<T, 2>(&a, &panels, k, columns, out) });
                }
                if vectors() == Vectors::Avx512 {
                    // SAFETY: there is AVX-512.
                    test("AVX-512", &|out| unsafe { product_avx512(&a, &panels, k, columns, out) });
                }
            }
        }
        check::<f32>();
        check::<f64>();
    }
}
