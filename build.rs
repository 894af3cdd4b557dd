//! Says whether the target multiplies two pairs of 16-bit integers at once (Cortex-M's DSP extension), which no stable
//! `cfg` does: see `src/kernel/dsp.rs`.

use std::env;

fn main() {
    let target = env::var("TARGET").unwrap_or_default();
    // Every Cortex-M4 and M7 does. On a Cortex-M33 it is an option of the chip, so the user has to say so.
    let is_optional = target.starts_with("thumbv8m.main") && env::var_os("CARGO_FEATURE_DSP").is_some();
    println!("cargo::rustc-check-cfg=cfg(spikelet_dsp)");
    println!("cargo::rustc-check-cfg=cfg(spikelet_dsp_is_optional)");
    if target.starts_with("thumbv7em") || is_optional {
        println!("cargo::rustc-cfg=spikelet_dsp");
    }
    if is_optional {
        println!("cargo::rustc-cfg=spikelet_dsp_is_optional");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
