//! Recordings without a choice of front end, at wrong rates, and of microphones that are apart.

use crate::desk::Desk;
use crate::train::json;
use spikelet::rng::Rng;
use spikelet_trainer::data::write_wav;
use std::fs;

const SAMPLES: usize = 16_000;

/// Bursts of noise through a resonance, up to half the band.
fn bursts(seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let (pitch, mut x1, mut x2) = (0.2 + 0.3 * seed as f64, 0.0, 0.0);
    let sample = |n: usize| {
        let on = (n as f64 * pitch / 600.0).sin() > 0.2;
        let x = 1.8 * f64::cos(pitch) * x1 - 0.81 * x2 + if on { rng.normal::<f64>() } else { 0.0 };
        (x2, x1) = (x1, x);
        0.02 * x
    };
    (0..SAMPLES).map(sample).collect()
}

/// Two sounds on two microphones, the second of which hears one `late` samples later.
pub fn mix(desk: &Desk, name: &str, rate: u32, late: usize) {
    let (a, b) = (bursts(1), bursts(2));
    let at = |n: usize| if n < late { 0.0 } else { a[n - late] };
    let heard = |n: usize| [a[n] + 0.4 * b[n], 0.5 * at(n) + b[n]].map(|y| y as f32);
    write_wav(desk.path(name), rate, 2, &(0..SAMPLES).flat_map(heard).collect::<Vec<_>>()).unwrap();
}

const TRAIN: &str = "train --model gsc --iterations 2 --restarts 1 --out m.spk --latents";

#[test]
fn recordings_get_a_front_end() {
    let desk = Desk::new();
    mix(&desk, "mix.wav", 16_000, 0);
    let said = desk.said(&format!("{TRAIN} 2 mix.wav"), 0);
    assert!(said.starts_with("note: --transform mdct --bins 512 was chosen, because"), "{said}");
    let frame = &json(&desk, "m.json")["frame"];
    assert_eq!((&frame["form"], &frame["bins"]), (&"transform".into(), &512.into()));
    // Bins by the rate with a transform of the user's choice too, but not against it.
    assert_eq!(desk.said(&format!("{TRAIN} 2 --transform mdct --bins 64 mix.wav"), 0), "");
    desk.said(&format!("{TRAIN} 2 --transform mdct mix.wav"), 0);
    assert_eq!(json(&desk, "m.json")["frame"]["bins"], 512);
    desk.said(&format!("{TRAIN} 2 --bins 64 mix.wav"), 0);
    assert_eq!(json(&desk, "m.json")["frame"]["bins"], 64);
    desk.said(&format!("{TRAIN} 2 --transform none mix.wav"), 0);
    assert_eq!(json(&desk, "m.json")["frame"]["form"], "samples");
    let said = desk.said(&format!("{TRAIN} 2 --transform none --bins 64 mix.wav"), 2);
    assert!(said.contains("there is no transform: --bins"), "{said}");

    let mono: Vec<f32> = bursts(3).into_iter().map(|x| x as f32).collect();
    write_wav(desk.path("mono.wav"), 8000, 1, &mono).unwrap();
    let said = desk.said(&format!("{TRAIN} 3 mono.wav"), 0);
    assert!(said.contains("note: --frame 64 --hop 16 was chosen") && said.contains("one channel"), "{said}");
    assert_eq!(json(&desk, "m.json")["frame"]["form"], "windows");
}

#[test]
fn microphones_that_are_apart_are_refused() {
    let desk = Desk::new();
    mix(&desk, "apart.wav", 8000, 4);
    for choice in ["", "--transform mdct", "--transform none"] {
        let said = desk.said(&format!("{TRAIN} 2 {choice} apart.wav"), 2);
        assert!(said.contains("at different times") && said.contains("--model spatial"), "{said}");
    }
    assert!(!desk.path("m.spk").exists());
    let said = desk.said(&format!("{TRAIN} 2 --ignore-delays apart.wav"), 0);
    assert!(said.contains("warning: apart.wav: sounds reach the microphones"), "{said}");
    assert!(json(&desk, "m.json")["warnings"].to_string().contains("different times"));
}

#[test]
fn bands_that_are_empty_are_left_out_and_copies_told() {
    let desk = Desk::new();
    // Every second sample of nothing in between, smoothed: an octave of silence at the top.
    let (a, b) = (bursts(1), bursts(2));
    let at = |x: &[f64], n: usize| {
        let tap = |k: isize| {
            let t = n as f64 / 4.0 - (n as isize / 4 + k) as f64;
            let sinc =
                if t == 0.0 { 1.0 } else { (std::f64::consts::PI * t).sin() / (std::f64::consts::PI * t) };
            let window = (std::f64::consts::PI * t / 32.0).cos().max(0.0).powi(2);
            x.get((n as isize / 4 + k) as usize).copied().unwrap_or(0.0) * sinc * window
        };
        (-16..=16).map(tap).sum::<f64>()
    };
    let heard = |n: usize| {
        let (a, b) = (at(&a, n), at(&b, n));
        [a + 0.4 * b, 0.5 * a + b].map(|y| y as f32)
    };
    write_wav(desk.path("fast.wav"), 32_000, 2, &(0..SAMPLES).flat_map(heard).collect::<Vec<_>>()).unwrap();
    let said = desk.said(&format!("{TRAIN} 2 fast.wav"), 0);
    assert!(said.contains("note: nothing is recorded above 4") && said.contains("of 1024 bins"), "{said}");
    // The model takes whole spectra all the same.
    assert_eq!(json(&desk, "m.json")["frame"]["gains"].as_array().unwrap().len(), 1024);
    desk.good("separate m.spk fast.wav --out-dir out");

    let twice: Vec<f32> = a.iter().flat_map(|&x| [x as f32, x as f32]).collect();
    write_wav(desk.path("twice.wav"), 8000, 2, &twice).unwrap();
    fs::remove_file(desk.path("m.spk")).unwrap();
    for line in [format!("{TRAIN} 2 twice.wav"), "advise twice.wav".into()] {
        desk.refused(&line, "all 2 channels carry the same sound");
    }
}

#[test]
fn other_rates_are_told_everywhere() {
    let desk = Desk::new();
    mix(&desk, "slow.wav", 8000, 0);
    mix(&desk, "fast.wav", 16_000, 0);
    let said = desk.said(&format!("{TRAIN} 2 --transform mdct --bins 64 slow.wav fast.wav"), 0);
    assert!(said.contains("fast.wav has 16000 samples per second, slow.wav has 8000"), "{said}");
    desk.said(&format!("{TRAIN} 2 --transform mdct --bins 64 slow.wav"), 0);
    for line in [
        "infer m.spk fast.wav --out-dir out",
        "eval m.spk fast.wav",
        "separate m.spk fast.wav --out-dir out",
        "quantize m.spk --encoding i16 --out q.spk --data fast.wav",
        "inspect m.spk --core m4f --data fast.wav",
        "report m.json --data fast.wav --out page.html",
    ] {
        let said = desk.said(line, 0);
        assert!(
            said.contains("warning: fast.wav has 16000 samples per second, the model was trained at 8000"),
            "{line}: {said}"
        );
        assert!(!desk.said(&line.replace("fast", "slow"), 0).contains("per second"), "{line}");
    }
    let said = desk.said("train --from m.json --iterations 1 fast.wav --out n.spk", 0);
    assert!(said.contains("the data has 16000 samples per second, m.json was trained at 8000"), "{said}");
}
