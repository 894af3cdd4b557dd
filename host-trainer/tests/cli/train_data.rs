//! `train` on data that nobody would choose: it says what is wrong, or goes on with a guard that it names once.

use crate::desk::Desk;
use crate::train::{json, numbers};
use std::fs;

const WAYS: [&str; 6] =
    ["", "--whiten", "--noise full", "--batch 16", "--precision f32", "--whiten --batch 16 --init data"];

/// Trains; everything that was written must be finite.
fn trains(desk: &Desk, name: &str, flags: &str) {
    let line = format!("train --model gsc --latents 4 --iterations 12 {flags} {name} --out m.spk");
    desk.good(&line);
    let model = json(desk, "m.json");
    // A number that is not finite would be null.
    for part in ["w", "pi", "mu", "psi2", "sigma2"] {
        assert!(numbers(&model["parameters"][part]).iter().all(|v| v.is_finite()), "{line}: {part}");
    }
    for step in model["history"].as_array().unwrap() {
        assert!(step["free_energy"].as_f64().is_some_and(f64::is_finite), "{line}");
    }
    let warnings: Vec<&str> =
        model["warnings"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
    assert!(warnings.iter().all(|w| warnings.iter().filter(|v| v == &w).count() == 1), "{warnings:?}");
    // 32 bits may not hold what 64 did; then it says so.
    let output = desk.run(&["infer", "m.spk", name, "--out-dir", "out"]);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{line}");
}

/// Refused with exit status 2 and `word` in what it says; nothing is written.
fn refused(desk: &Desk, arguments: &str, word: &str) {
    let line = format!("train --model gsc --latents 3 {arguments} --out refused.spk");
    let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{line}: {said}");
    assert!(said.contains("error: ") && said.contains(word) && !said.contains("panicked"), "{line}: {said}");
    assert!(!desk.path("refused.spk").exists() && !desk.path("refused.json").exists(), "{line}");
}

#[test]
fn strange_data_trains_with_finite_numbers() {
    let desk = Desk::new();
    let wave = |i: usize| (0.7 * i as f64).sin();
    let twins: Vec<f64> = (0..200).flat_map(|i| [wave(i), wave(i), wave(3 * i)]).collect();
    let all: [(&str, &[usize], Vec<f64>); 8] = [
        ("nearly_zero.npy", &[50, 3], (0..150).map(|i| f64::from(u8::from(i == 70))).collect()),
        ("one.npy", &[1, 3], vec![1.0, 2.0, 3.0]),
        ("few.npy", &[2, 3], vec![1.0, 2.0, 3.0, -1.0, 0.5, 2.0]),
        ("constant.npy", &[40, 2], vec![7.0; 80]),
        ("dead_channel.npy", &[100, 2], (0..100).flat_map(|i| [wave(i), 0.0]).collect()),
        ("tiny.npy", &[200, 3], twins.iter().map(|y| 1e-12 * y).collect()),
        ("offset.npy", &[200, 3], twins.iter().map(|y| 100.0 + y).collect()),
        ("twins.npy", &[200, 3], twins),
    ];
    for (name, shape, values) in all {
        desk.array(name, shape, &values);
        for flags in WAYS {
            trains(&desk, name, flags);
        }
    }
}

#[test]
fn hopeless_data_is_refused() {
    let desk = Desk::new();
    desk.array("nan.npy", &[3, 2], &[1.0, 2.0, f64::NAN, 1.0, 0.0, 1.0]);
    desk.array("infinite.npy", &[3, 2], &[1.0, 2.0, f64::INFINITY, 1.0, 0.0, 1.0]);
    desk.array("none.npy", &[0, 2], &[]);
    desk.array("good.npy", &[3, 2], &[1.0, 2.0, 0.5, 1.0, 0.0, 1.0]);
    desk.array("wide.npy", &[1, 3], &[1.0, 2.0, 0.5]);
    let whole = fs::read(desk.path("good.npy")).unwrap();
    fs::write(desk.path("cut.npy"), &whole[..whole.len() - 5]).unwrap();
    fs::write(desk.path("empty.npy"), b"").unwrap();
    fs::write(desk.path("words.csv"), "a,b\n1,2\n3,four\n").unwrap();
    for scale in ["1e30", "1e200", "1e300"] {
        let factor: f64 = scale.parse().unwrap();
        let values: Vec<f64> = (0..60).map(|i| factor * (1.3 * f64::from(i)).sin()).collect();
        desk.array(&format!("{scale}.npy"), &[30, 2], &values);
    }
    for flags in ["", "--whiten", "--batch 2", "--precision f32"] {
        for (name, word) in [
            ("nan.npy", "not a finite number"),
            ("infinite.npy", "not a finite number"),
            ("none.npy", "none.npy"),
            ("cut.npy", "cut.npy"),
            ("empty.npy", "empty"),
            ("words.csv", "words.csv"),
            ("missing.npy", "missing.npy"),
            ("good.npy wide.npy", "dimensions"),
            ("1e200.npy", "rescale"),
            ("1e300.npy", "rescale"),
        ] {
            refused(&desk, &format!("{flags} {name}"), word);
        }
    }
    // Whitened, the model holds square roots of precisions, and these fit.
    refused(&desk, "1e30.npy", "rescale");
    trains(&desk, "1e30.npy", "--whiten");
}

/// 134 MB, all but the first points zeros that take no room on the disk: as numbers of 64 bits they would be twice that in memory.
/// Stepwise EM reads batches in an order of its own, what comes before and after it reads the file from beginning to end.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_file() {
    let desk = Desk::new();
    let (points, dims) = (524_288u64, 64u64);
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({points}, {dims}), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    let header_len = bytes.len() as u64;
    let wave = |i: u32| ((i * i % 1009) as f32 * 0.7).sin() * (1 + i % 5) as f32;
    bytes.extend((0..64 * 512).flat_map(|i| wave(i).to_le_bytes()));
    fs::write(desk.path("large.npy"), &bytes).unwrap();
    let file = fs::OpenOptions::new().write(true).open(desk.path("large.npy")).unwrap();
    file.set_len(header_len + points * dims * 4).unwrap();
    let line = "train --model gsc --latents 33 --states subsets --selected 2 --max-active 1 --batch 4000 --iterations 1 \
                large.npy --out m.spk";
    let mut child = desk.command(&line.split_whitespace().collect::<Vec<_>>()).spawn().unwrap();
    let mut peak_kib = 0u64;
    let status = loop {
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(status.success());
    assert!((1..100 * 1024).contains(&peak_kib), "{peak_kib} KiB");
}
