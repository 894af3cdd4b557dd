//! Compile-time capacities. D and H are limited only by the memory given to inference; the number
//! of preselected and of active latents also by these two constants.
//!
//! Raise them by environment variables when building:
//! `SPIKELET_MAX_SELECTED=128 SPIKELET_MAX_ACTIVE=64 cargo build ...`. Each preselected latent costs
//! 4 bytes of RAM per stream and as much of stack, each active one 2, whether a model uses it or not.

/// Largest H', 64 unless `SPIKELET_MAX_SELECTED` says otherwise.
pub const MAX_SELECTED: usize = number(option_env!("SPIKELET_MAX_SELECTED"), 64);

/// Largest gamma, 32 unless `SPIKELET_MAX_ACTIVE` says otherwise.
pub const MAX_ACTIVE: usize = number(option_env!("SPIKELET_MAX_ACTIVE"), 32);

/// Most latents in the reference state (one bit each in a `u32`).
pub(crate) const MAX_REFERENCE: usize = 30;

const fn number(text: Option<&str>, default: usize) -> usize {
    let Some(text) = text else { return default };
    let digits = text.as_bytes();
    let mut value = 0;
    let mut i = 0;
    while i < digits.len() {
        assert!(digits[i].is_ascii_digit(), "SPIKELET_MAX_SELECTED and SPIKELET_MAX_ACTIVE take a number");
        value = value * 10 + (digits[i] - b'0') as usize;
        i += 1;
    }
    assert!(value > 0 && value <= 4096, "SPIKELET_MAX_SELECTED and SPIKELET_MAX_ACTIVE go from 1 to 4096");
    value
}
