//! [`super::kernel::portable`] for cores of Arm with a float unit, instruction by instruction.
//!
//! A turn takes eight dimensions of a panel: VLDM brings eight u at once and the weights of two dimensions at a time (16
//! registers), 64 VMLA do the sums, so a multiply-add costs little more than itself. VMLA rounds twice, as the portable
//! code does.
#![allow(unsafe_code)]

use crate::model::PANEL;
use core::arch::naked_asm;

/// See [`super::kernel::project`].
pub fn project(dictionary: &[f32], weighted: &[f32], projection: &mut [f32]) {
    let dims = weighted.len();
    let (whole, last) = projection.as_chunks_mut::<PANEL>();
    let Some((packed, rest)) = dictionary.split_at_checked(whole.len() * dims * PANEL) else { return };
    if !whole.is_empty() {
        // SAFETY: `packed` has `dims` x PANEL numbers for each of the panels that `whole` has room for.
        unsafe { panels(packed.as_ptr(), weighted.as_ptr(), dims, whole.as_mut_ptr().cast(), whole.len()) };
    }
    if !last.is_empty() && rest.len() >= dims * PANEL {
        let mut sums = [0.0; PANEL];
        // SAFETY: one more panel, checked, into room for one.
        unsafe { panels(rest.as_ptr(), weighted.as_ptr(), dims, sums.as_mut_ptr(), 1) };
        crate::numeric::slices::copy(last, &sums);
    }
}

/// Adds u times eight weights to the sums in s0 to s7; the first weight is in s16 or s24.
macro_rules! add {
    (16, $u:literal) => {
        add!($u, "16", "17", "18", "19", "20", "21", "22", "23")
    };
    (24, $u:literal) => {
        add!($u, "24", "25", "26", "27", "28", "29", "30", "31")
    };
    ($u:literal, $a:literal, $b:literal, $c:literal, $d:literal, $e:literal, $f:literal, $g:literal, $h:literal) => {
        concat!(
            add!(one "0", $a, $u), add!(one "1", $b, $u), add!(one "2", $c, $u), add!(one "3", $d, $u),
            add!(one "4", $e, $u), add!(one "5", $f, $u), add!(one "6", $g, $u), add!(one "7", $h, $u),
        )
    };
    (one $sum:literal, $w:literal, $u:literal) => {
        concat!("vmla.f32 s", $sum, ", s", $w, ", s", $u, "\n")
    };
}

/// `panels` sums of PANEL latents each to `out`; at least one of each, and of `dims`.
#[unsafe(naked)]
unsafe extern "C" fn panels(
    packed: *const f32,
    weighted: *const f32,
    dims: usize,
    out: *mut f32,
    panels: usize,
) {
    naked_asm!(
        ".fpu fpv4-sp-d16", // the assembler of naked functions does not know the features of the target
        "push {{r4, r5, r6, lr}}",
        "vpush {{s16-s31}}",
        "ldr r4, [sp, #80]",
        "1:",
        "movs r5, #0",
        "vmov d0, r5, r5",
        "vmov d1, r5, r5",
        "vmov d2, r5, r5",
        "vmov d3, r5, r5",
        "mov r6, r1",
        "lsrs r5, r2, #3",
        "beq 3f",
        "2:",
        "vldmia r6!, {{s8-s15}}",
        "vldmia r0!, {{s16-s31}}",
        add!(16, "8"),
        add!(24, "9"),
        "vldmia r0!, {{s16-s31}}",
        add!(16, "10"),
        add!(24, "11"),
        "vldmia r0!, {{s16-s31}}",
        add!(16, "12"),
        add!(24, "13"),
        "vldmia r0!, {{s16-s31}}",
        add!(16, "14"),
        add!(24, "15"),
        "subs r5, #1",
        "bne 2b",
        "3:",
        "ands r5, r2, #7",
        "beq 5f",
        "4:",
        "vldmia r6!, {{s8}}",
        "vldmia r0!, {{s16-s23}}",
        add!(16, "8"),
        "subs r5, #1",
        "bne 4b",
        "5:",
        "vstmia r3!, {{s0-s7}}",
        "subs r4, #1",
        "bne 1b",
        "vpop {{s16-s31}}",
        "pop {{r4, r5, r6, pc}}",
    )
}
