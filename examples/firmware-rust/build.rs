//! Chooses the memory map for the target, and places models and samples in flash.
//!
//! `SPIKELET_MODELS` lists the blobs, separated as in `PATH`; beside each `name.spk` lies `name.f32`,
//! its samples.

use std::{env, fs, path::PathBuf};

const CONFORMANCE: &str = "../../tests/conformance";
const DEFAULT: [&str; 19] = [
    "d4h6",
    "d16h32",
    "d64h256",
    "bsc-d16h32",
    "mca-d16h32",
    "gsc-gibbs",
    "bsc-gibbs",
    "ssmca-gibbs",
    "i16-d16h32",
    "i8-d32h64",
    "i8-mca-d16h32",
    "nmf-d16h32",
    "quiet-d4h6",
    "subsets-d12h16",
    "fixed-d16h32",
    "fixed-d4h6",
    "gmm-d16h64",
    "own-d8h16",
    "learned-d12h16",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());

    let target = env::var("TARGET").unwrap();
    let map = match target.split_once('-').unwrap().0 {
        "thumbv6m" => "microbit",
        "thumbv7em" => "mps2",
        "thumbv8m.main" => "mps2-an505",
        "riscv32imac" | "riscv32imafc" => "virt",
        _ => panic!("no board for {target}"),
    };
    let map = here.join("memory").join(map).with_extension("x");
    fs::copy(&map, out.join("memory.x")).unwrap();
    println!("cargo::rerun-if-changed={}", map.display());
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rustc-link-arg-bins=-Tlink.x");

    println!("cargo::rerun-if-env-changed=SPIKELET_MODELS");
    let blobs: Vec<PathBuf> = match env::var_os("SPIKELET_MODELS") {
        Some(list) => env::split_paths(&list).collect(),
        None => DEFAULT.iter().map(|name| here.join(CONFORMANCE).join(name).with_extension("spk")).collect(),
    };
    let models: String = blobs.iter().map(|blob| recording(&here.join(blob))).collect();
    fs::write(out.join("recordings.rs"), format!("&[{models}]")).unwrap();
}

/// One element of the table in `src/recording.rs`, as Rust source.
fn recording(blob: &PathBuf) -> String {
    let samples = blob.with_extension("f32");
    for file in [blob, &samples] {
        assert!(file.is_file(), "{}: no such file", file.display());
        println!("cargo::rerun-if-changed={}", file.display());
    }
    format!(
        "Recording {{ name: c{:?}, blob: aligned!({blob:?}), samples: aligned!({samples:?}) }},",
        blob.file_stem().unwrap()
    )
}
