//! The C interface: nothing but translation between C's pointers and the core crate.
//!
//! `include/spikelet.h` is generated from this crate and is its documentation for C users. The
//! functions are in [`api`] and, for streams, in `stream` and `spectral`, what they exchange in [`types`]; raw pointers are touched in `pointers`
//! only.
#![no_std]

// On a desktop std brings the panic handler; nothing else of it is used.
#[cfg(not(target_os = "none"))]
extern crate std;

pub mod api;
mod pointers;
#[cfg(feature = "spectral")]
pub mod spectral;
#[cfg(feature = "stream")]
pub mod stream;
pub mod types;

#[cfg(all(test, feature = "spatial"))]
mod spatial_tests;
#[cfg(all(test, feature = "spectral"))]
mod spectral_tests;
#[cfg(all(test, feature = "stream"))]
mod stream_tests;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "none", feature = "panic-handler"))]
#[allow(unsafe_code)]
mod panic {
    #[cfg(feature = "panic-gate")]
    unsafe extern "C" {
        fn spikelet_panic_path_survives() -> !;
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo) -> ! {
        #[cfg(feature = "panic-gate")]
        // SAFETY: never runs: the function does not exist, and linking fails if this is reachable.
        unsafe {
            spikelet_panic_path_survives()
        }
        #[cfg(not(feature = "panic-gate"))]
        loop {
            core::hint::spin_loop();
        }
    }
}
