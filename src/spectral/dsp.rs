//! `super::distance::bytes` with Cortex-M's DSP extension, instruction by instruction.
//!
//! QSUB8 takes four differences at once, as far as they are bytes with a sign; SSUB8 and SEL the smaller of four pairs of them;
//! SXTB16 widens two, SMLAD adds two squares: six instructions for four bands of a background.
#![allow(unsafe_code)]

use super::distance::SIGNS;
use core::arch::naked_asm;

/// See [`super::distance`].
#[inline(always)]
pub(super) fn add(row: &[[u8; 4]], records: &[[u32; 4]], sums: &mut [i32; 3]) -> bool {
    let len = row.len();
    // SAFETY: `len` quads of a row, as many records, three sums.
    len > 0
        && len <= records.len()
        && unsafe { three(row.as_ptr(), records.as_ptr(), sums.as_mut_ptr(), len) }
}

/// See [`super::distance`].
#[inline(always)]
pub(super) fn clear(records: &mut [[u32; 4]], place: usize, floor: u32) {
    let len = records.len();
    if len > 0 && place < 4 {
        // SAFETY: `len` records of four words, the place is one of them.
        unsafe { clear_all(records.as_mut_ptr(), 4 * place, len, floor ^ SIGNS) }
    }
}

/// See [`super::distance`].
#[inline(always)]
pub(super) fn raise(row: &[[u8; 4]], records: &mut [[u32; 4]], place: usize, ratio: u32) {
    let len = row.len();
    if len > 0 && len <= records.len() && place < 4 {
        // SAFETY: `len` quads of a row, as many records of four words, the place is one of them.
        unsafe { raise_all(row.as_ptr(), records.as_mut_ptr(), 4 * place, ratio, len) }
    }
}

/// Adds the squares of four bands: v - w in r7, what the background leaves in `$b`.
macro_rules! add {
    ($sum:literal, $b:literal) => {
        concat!(
            "ssub8 r12, r7, ",
            $b,
            "\n",
            "sel r12, ",
            $b,
            ", r7\n",
            "sxtb16 lr, r12\n",
            "sxtb16 r12, r12, ror #8\n",
            "smlad ",
            $sum,
            ", lr, lr, ",
            $sum,
            "\n",
            "smlad ",
            $sum,
            ", r12, r12, ",
            $sum,
            "\n",
        )
    };
}

/// One byte of a row in `$to`, times the ratio; the bits below 4096 are rounded off.
macro_rules! scaled {
    ($to:literal, $shift:literal) => {
        concat!(
            "uxtb ",
            $to,
            ", r5, ror #",
            $shift,
            "\n",
            "mla ",
            $to,
            ", ",
            $to,
            ", r3, r9\n",
            "usat ",
            $to,
            ", #8, ",
            $to,
            ", asr #12\n",
        )
    };
}

#[unsafe(naked)]
unsafe extern "C" fn three(
    row: *const [u8; 4],
    records: *const [u32; 4],
    sums: *mut i32,
    quads: usize,
) -> bool {
    naked_asm!(
        // The assembler of naked functions knows the target only, not what a chip has beside that.
        #[cfg(spikelet_dsp_is_optional)]
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "ldmia r2, {{r4-r6}}",
        "1:",
        "ldr r7, [r0], #4",
        "ldmia r1!, {{r8-r11}}",
        "eor r7, r7, #0x80808080",
        "qsub8 r7, r8, r7",
        add!("r4", "r9"),
        add!("r5", "r10"),
        add!("r6", "r11"),
        // Is any of the sums below 0?
        "orr r12, r4, r5",
        "orrs r12, r12, r6",
        "bpl 2f",
        "subs r3, #1",
        "bne 1b",
        "stmia r2!, {{r4-r6}}",
        "movs r0, #0",
        "pop {{r4-r11, pc}}",
        "2:",
        "movs r0, #1",
        "pop {{r4-r11, pc}}",
    )
}

#[unsafe(naked)]
unsafe extern "C" fn clear_all(records: *mut [u32; 4], offset: usize, len: usize, floor: u32) {
    naked_asm!(
        #[cfg(spikelet_dsp_is_optional)]
        ".cpu cortex-m33",
        "1:",
        "ldr r12, [r0]",
        "qsub8 r12, r12, r3",
        "str r12, [r0, r1]",
        "adds r0, #16",
        "subs r2, #1",
        "bne 1b",
        "bx lr",
    )
}

#[unsafe(naked)]
unsafe extern "C" fn raise_all(
    row: *const [u8; 4],
    records: *mut [u32; 4],
    offset: usize,
    ratio: u32,
    quads: usize,
) {
    naked_asm!(
        #[cfg(spikelet_dsp_is_optional)]
        ".cpu cortex-m33",
        "push {{r4-r10, lr}}",
        "ldr r4, [sp, #32]",
        "mov r9, #2048",
        "1:",
        "ldr r5, [r0], #4",
        "ldr r6, [r1]",
        "ldr r7, [r1, r2]",
        "uxtb r8, r5\nmla r8, r8, r3, r9\nusat r8, #8, r8, asr #12",
        scaled!("r10", "8"),
        scaled!("r12", "16"),
        scaled!("lr", "24"),
        "orr r8, r8, r10, lsl #8",
        "orr r8, r8, r12, lsl #16",
        "orr r8, r8, lr, lsl #24",
        "eor r8, r8, #0x80808080",
        "qsub8 r8, r6, r8",
        "ssub8 r6, r7, r8",
        "sel r7, r8, r7",
        "str r7, [r1, r2]",
        "adds r1, #16",
        "subs r4, #1",
        "bne 1b",
        "pop {{r4-r10, pc}}",
    )
}
