//! The demo keeps its word: figures, files and commands.

use crate::desk::Desk;
use std::fs;

/// f32, i16 and i8 beside the best microphone, for each sound.
fn figures(text: &str) -> Vec<Vec<f64>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("Separation in dB")).skip(2);
    let rows = rows.take_while(|line| !line.starts_with("mean"));
    rows.map(|row| row.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect()).collect()
}

#[test]
fn the_demo_separates_and_its_commands_work() {
    let desk = Desk::new();
    let text = desk.good("demo");
    let sounds = figures(&text);
    assert_eq!(sounds.len(), 4, "{text}");
    for row in &sounds {
        let [single, float, i16, i8] = row[..] else { panic!("{text}") };
        // All states, and a search for those that matter.
        assert!(float > single + 10.0 && (i16 - float).abs() < 0.6 && (i8 - i16).abs() < 0.3, "{text}");
    }
    let folder = desk.path("spikelet-demo");
    // 16-bit integers after a header of 44 bytes: what examples/firmware-c/realtime.c reads.
    let wav = fs::read(folder.join("mixture.wav")).unwrap();
    assert_eq!((&wav[8..21], wav[34], &wav[36..40]), (&b"WAVEfmt \x10\0\0\0\x01"[..], 16, &b"data"[..]));
    // Nothing is cut.
    let extreme = |bytes: &[u8]| matches!(i16::from_le_bytes([bytes[0], bytes[1]]), i16::MIN | i16::MAX);
    assert!(!wav[44..].chunks_exact(2).any(extreme));
    for name in [
        "mixture.wav",
        "true-beeps.wav",
        "model.spk",
        "model.json",
        "model-i8.spk",
        "model.h",
        "separated/source_3.wav",
        "report.html",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    // What it tells firmware to use is in the header.
    let header = fs::read_to_string(folder.join("model.h")).unwrap();
    for name in ["MODEL_ALIGNED", "MODEL_STREAM_SIZE", "model_blob"] {
        assert!(text.contains(name) && header.contains(name), "{name}");
    }
    // The first of its processors is fast enough, the worst block included, as `inspect` has it.
    let advised = text.lines().find(|line| line.contains("% in the worst block")).unwrap();
    assert!(
        advised.starts_with("Cortex-M4F at 168 MHz:") && advised.ends_with("in the worst block."),
        "{advised}"
    );
    let load = desk.good(
        "inspect spikelet-demo/model-i16.spk --core m4f --clock 168MHz --data spikelet-demo/mixture.wav --json",
    );
    let load: serde_json::Value = serde_json::from_str(&load).unwrap();
    let [mean, block, worst] =
        ["share", "share_worst_block", "share_worst"].map(|key| load["load"][key].as_f64().unwrap());
    assert!(mean < block && block < worst && block < 1.0, "{mean} {block} {worst}");
    // The commands it prints do what it did, to the bit.
    let first = desk.content();
    let steps: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ spikelet ")).collect();
    assert_eq!(steps.len(), 6, "{text}");
    for step in steps {
        desk.good(step);
    }
    let timed = ["model.json", "report.html"]; // they say how long it took
    let again = desk.content();
    for (path, bytes) in &first {
        assert!(timed.iter().any(|name| path.ends_with(name)) || again[path] == *bytes, "{}", path.display());
    }
}

#[test]
fn the_demo_takes_the_users_mixture() {
    let desk = Desk::new();
    let sample = |n: usize| [(0.2 * n as f32).sin() * 0.5, (0.7 * n as f32).sin() * 0.3];
    let samples: Vec<f32> = (0..4000).flat_map(sample).collect();
    spikelet_trainer::data::write_wav(desk.path("own.wav"), 8000, 2, &samples).unwrap();
    let text = desk.good("demo --wav own.wav --sources 2 --out-dir own");
    assert!(
        !text.contains("Separation in dB") && desk.path("own/separated/source_1.wav").is_file(),
        "{text}"
    );
    assert!(fs::read_dir(desk.path("own")).unwrap().count() > 5);
    spikelet_trainer::data::write_wav(desk.path("mono.wav"), 8000, 1, &samples).unwrap();
    desk.array("own.npy", &[10, 2], &[0.5; 20]);
    for (name, words) in [
        ("mono.wav", "one channel"),
        ("own.npy", "not a recording"),
        ("missing.wav", "no such file: missing.wav"),
    ] {
        let output = desk.run(&["demo", "--wav", name, "--sources", "2", "--out-dir", "refused"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
        assert!(output.stdout.is_empty() && !desk.path("refused").exists());
    }
    let output = desk.run(&["demo", "--wav", "own.wav"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--sources"));
}
