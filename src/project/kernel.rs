//! The one loop whose work grows with D H: products of a sample with a packed dictionary.
//!
//! Each kernel is written once in plain Rust, the portable reference. On Cortex-M with a float unit, or with
//! the DSP extension, the same sums are a few lines of assembly (`cortex_m`, `dsp`), which give the same bits: `tests/cost
//! --projection` counts their instructions and compares them with the reference on random shapes. On desktops they are vectors
//! (`x86`).
//!
//! **Floats.** b_h = sum_d W_dh u_d, from dimension 0 up, every product and every sum rounded: [`PANEL`] latents side by
//! side, so that one load of u_d serves a whole panel. Vector units and single accumulators give the same bits.
//! Nothing is fused: VMLA rounds the product before it adds, VFMA would not.
//!
//! **Integers.** Exact, so that their order does not matter: see [`super::integer`].

use crate::model::PANEL;
use crate::numeric::math::Real;

/// b = W^T u for all latents, W in panels of [`PANEL`].
#[inline(always)]
pub fn project<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    #[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
    if let (Some(dictionary), Some(weighted)) = (T::single(dictionary), T::single(weighted))
        && let Some(projection) = T::single_mut(projection)
    {
        return super::cortex_m::project(dictionary, weighted, projection);
    }
    #[cfg(target_arch = "x86_64")]
    return super::x86::project(dictionary, weighted, projection);
    #[cfg(not(target_arch = "x86_64"))]
    portable(dictionary, weighted, projection);
}

/// The panels of a packed matrix with `dims` rows. (`chunks_exact` with a length only known at run
/// time would bring a panic path.)
pub(crate) fn panels<T>(packed: &[T], dims: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = packed;
    core::iter::from_fn(move || {
        let (panel, tail) = rest.split_at_checked(dims * PANEL)?;
        rest = tail;
        Some(panel)
    })
}

/// The reference of [`project`].
pub fn portable<T: Real>(dictionary: &[T], weighted: &[T], projection: &mut [T]) {
    for (panel, b) in panels(dictionary, weighted.len()).zip(projection.chunks_mut(PANEL)) {
        let mut sums = [T::ZERO; PANEL];
        let [s0, s1, s2, s3, s4, s5, s6, s7] = &mut sums;
        // Written out, so that the eight sums stay in registers also when optimising for size.
        for (&[w0, w1, w2, w3, w4, w5, w6, w7], &u) in panel.as_chunks().0.iter().zip(weighted) {
            *s0 += w0 * u;
            *s1 += w1 * u;
            *s2 += w2 * u;
            *s3 += w3 * u;
            *s4 += w4 * u;
            *s5 += w5 * u;
            *s6 += w6 * u;
            *s7 += w7 * u;
        }
        for (b, sum) in b.iter_mut().zip(sums) {
            *b = sum;
        }
    }
}
