//! Shows that the panic gate of `ship` (lib.sh) can fail: indexing beyond an array panics, `get` does not.
#![no_std]

#[cfg(panicky)]
#[unsafe(no_mangle)]
pub extern "C" fn spk_process(values: &[f32; 4], n: usize) -> f32 {
    values[n]
}

#[cfg(not(panicky))]
#[unsafe(no_mangle)]
pub extern "C" fn spk_process(values: &[f32; 4], n: usize) -> f32 {
    values.get(n).copied().unwrap_or(f32::NAN)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe extern "C" {
        safe fn spikelet_panic_path_survives() -> !;
    }
    spikelet_panic_path_survives()
}
