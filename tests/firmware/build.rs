//! Names the board's timer for `src/timer.rs`. The linker script is cortex-m-rt's or riscv-rt's, and the
//! example's build script places memory.x beside it.

use std::env;

fn main() {
    let target = env::var("TARGET").unwrap();
    let timer = match target.split_once('-').unwrap().0 {
        "thumbv6m" => "nrf51",
        "thumbv7em" => "mps2",
        "thumbv8m.main" => "mps2-an505",
        "riscv32imac" | "riscv32imafc" => "minstret",
        _ => panic!("no timer for {target}"),
    };
    println!("cargo::rustc-check-cfg=cfg(timer, values(\"nrf51\", \"mps2\", \"mps2-an505\", \"minstret\"))");
    println!("cargo::rustc-cfg=timer=\"{timer}\"");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SPIKELET_LIB");
    if let Ok(archive) = env::var("SPIKELET_LIB") {
        println!("cargo::rustc-link-arg-bin=spikelet-footprint={archive}");
        println!("cargo::rerun-if-changed={archive}");
    }
}
