//! [`super::integer::portable`] with Cortex-M's DSP extension, instruction by instruction.
//!
//! SMLAD multiplies two pairs of 16-bit integers and adds both products to a sum: four sums of a quad stay in registers, LDM
//! brings four words of the dictionary and two of the sample at once. Bytes are widened two at a time by SXTB16. A turn takes
//! 16 dimensions.
#![allow(unsafe_code)]

use crate::model::{QUAD, Width};
use core::arch::naked_asm;

/// See [`super::integer::sums`].
pub fn sums(width: Width, packed: &[u32], sample: &[u32], sums: &mut [u32]) {
    let groups = sample.len() / 2;
    let kernel = match width {
        Width::I16 => quads_i16,
        Width::I8 => quads_i8,
    };
    let (whole, last) = sums.as_chunks_mut::<QUAD>();
    let Some((front, rest)) = packed.split_at_checked(whole.len() * groups * width.group()) else { return };
    if !whole.is_empty() && groups > 0 {
        // SAFETY: `front` has `groups` groups for each of the quads that `whole` has room for, the sample two words a group.
        unsafe { kernel(front.as_ptr(), sample.as_ptr(), groups, whole.as_mut_ptr().cast(), whole.len()) };
    }
    if !last.is_empty() && groups > 0 && rest.len() >= groups * width.group() {
        let mut found = [0; QUAD];
        // SAFETY: one more quad, checked, into room for one.
        unsafe { kernel(rest.as_ptr(), sample.as_ptr(), groups, found.as_mut_ptr(), 1) };
        crate::numeric::slices::copy(last, &found);
    }
}

/// Four SMLAD: the words in r8 to r11 times a word of the sample.
macro_rules! multiply {
    ($v:literal) => {
        concat!(
            "smlad r4, r8, ",
            $v,
            ", r4\n",
            "smlad r5, r9, ",
            $v,
            ", r5\n",
            "smlad r6, r10, ",
            $v,
            ", r6\n",
            "smlad r7, r11, ",
            $v,
            ", r7\n",
        )
    };
}

/// A group of four dimensions.
macro_rules! group {
    (i16) => {
        concat!(
            "ldmia r1!, {{r12, lr}}\n",
            "ldmia r0!, {{r8-r11}}\n",
            multiply!("r12"),
            "ldmia r0!, {{r8-r11}}\n",
            multiply!("lr"),
        )
    };
    (i8) => {
        concat!(
            "ldmia r1!, {{r12, lr}}\n",
            "ldmia r0!, {{r8-r11}}\n",
            group!("r4", "r8"),
            group!("r5", "r9"),
            group!("r6", "r10"),
            group!("r7", "r11"),
        )
    };
    ($sum:literal, $w:literal) => {
        concat!(
            "sxtb16 r2, ",
            $w,
            "\n",
            "smlad ",
            $sum,
            ", r2, r12, ",
            $sum,
            "\n",
            "sxtb16 ",
            $w,
            ", ",
            $w,
            ", ror #8\n",
            "smlad ",
            $sum,
            ", ",
            $w,
            ", lr, ",
            $sum,
            "\n",
        )
    };
}

/// A function that leaves `quads` times QUAD sums in `out`; at least one group and one quad.
macro_rules! kernel {
    ($name:ident, $width:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(
            packed: *const u32,
            sample: *const u32,
            groups: usize,
            out: *mut u32,
            quads: usize,
        ) {
            naked_asm!(
                // The assembler of naked functions knows the target only, not what a chip has beside that.
                #[cfg(spikelet_dsp_is_optional)]
                ".cpu cortex-m33",
                "push {{r4-r11, lr}}",
                "push {{r1, r2, r3}}", // the sample, groups, out; quads lies at sp + 48
                "1:",
                "ldrd r1, r3, [sp]",
                "movs r4, #0",
                "movs r5, #0",
                "movs r6, #0",
                "movs r7, #0",
                "lsrs r3, r3, #2",
                "beq 3f",
                "2:",
                group!($width),
                group!($width),
                group!($width),
                group!($width),
                "subs r3, #1",
                "bne 2b",
                "3:",
                "ldr r3, [sp, #4]",
                "ands r3, r3, #3",
                "beq 5f",
                "4:",
                group!($width),
                "subs r3, #1",
                "bne 4b",
                "5:",
                "ldr r2, [sp, #8]",
                "ldr r3, [sp, #48]",
                "stmia r2!, {{r4-r7}}",
                "str r2, [sp, #8]",
                "subs r3, #1",
                "str r3, [sp, #48]",
                "bne 1b",
                "add sp, #12",
                "pop {{r4-r11, pc}}",
            )
        }
    };
}

kernel!(quads_i16, i16);
kernel!(quads_i8, i8);
