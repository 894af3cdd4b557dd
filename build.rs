//! Says how the target multiplies, which no stable `cfg` does: whether two pairs of 16-bit integers at once (Cortex-M's DSP
//! extension, see `src/kernel/dsp.rs`), and whether to one word only (Cortex-M0, see `src/fixed.rs`).

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
    println!("cargo::rustc-check-cfg=cfg(spikelet_narrow)");
    if target.starts_with("thumbv6m") || target.starts_with("thumbv8m.base") {
        println!("cargo::rustc-cfg=spikelet_narrow");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
