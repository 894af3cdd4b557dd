//! The square root, correctly rounded: one instruction where the core has it.
//!
//! `core` has no square root and `libm` computes it in software, some 40 instructions, which gives the same bits.

/// Square root in single precision.
#[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    let mut bits = x.to_bits();
    // SAFETY: VSQRT touches nothing but the register, and targets with the hard-float ABI have it.
    unsafe {
        core::arch::asm!(
            "vmov s0, {0}", "vsqrt.f32 s0, s0", "vmov {0}, s0",
            inout(reg) bits, out("s0") _, options(pure, nomem, nostack, preserves_flags)
        );
    }
    f32::from_bits(bits)
}

/// Square root in single precision.
#[cfg(not(all(target_arch = "arm", target_abi = "eabihf")))]
#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    libm::sqrtf(x)
}
