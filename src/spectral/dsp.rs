//! [`super::distance::bytes`] with Cortex-M's DSP extension, instruction by instruction.
//!
//! USUB8 and SEL take the larger of four pairs of bytes at once, two UQSUB8 and ORR the distance, UXTB16 widens two bytes, SMLAD adds two squares:
//! nine instructions for four bands of a background.
#![allow(unsafe_code)]

use core::arch::naked_asm;

/// See [`super::distance::bytes`].
#[inline(always)]
pub(super) fn bytes(row: &[u8], records: &[u32]) -> [u32; 3] {
    let (quads, records) = (row.as_chunks::<4>().0, records.as_chunks::<4>().0);
    let (len, mut sums) = (quads.len(), [0; 3]);
    if len > 0 && len <= records.len() {
        let (row, records, out) = (quads.as_ptr().cast(), records.as_ptr().cast(), sums.as_mut_ptr());
        // SAFETY: `len` quads of a row, as many records, room for three sums.
        unsafe { three(row, records, len, out) }
    }
    sums
}

/// Adds the squares of four bands: w in r7, v in r8.
macro_rules! add {
    ($sum:literal, $b:literal) => {
        concat!(
            "usub8 r12, r7, ",
            $b,
            "\n",
            "sel r12, r7, ",
            $b,
            "\n",
            "uqsub8 lr, r8, r12\n",
            "uqsub8 r12, r12, r8\n",
            "orr r12, r12, lr\n",
            "uxtb16 lr, r12\n",
            "uxtb16 r12, r12, ror #8\n",
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

#[unsafe(naked)]
unsafe extern "C" fn three(row: *const u8, records: *const u32, quads: usize, out: *mut u32) {
    naked_asm!(
        // The assembler of naked functions knows the target only, not what a chip has beside that.
        #[cfg(spikelet_dsp_is_optional)]
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        "movs r4, #0",
        "movs r5, #0",
        "movs r6, #0",
        "1:",
        "ldr r7, [r0], #4",
        "ldmia r1!, {{r8-r11}}",
        add!("r4", "r9"),
        add!("r5", "r10"),
        add!("r6", "r11"),
        "subs r2, #1",
        "bne 1b",
        "stmia r3!, {{r4-r6}}",
        "pop {{r4-r11, pc}}",
    )
}
