//! Mixtures through `train --transform`, `separate` and `merge`.

use super::Desk;
use spikelet_trainer::data::{Points, write_wav};
use std::f64::consts::TAU;
use std::fs;

const RATE: u32 = 8000;
const SAMPLES: usize = 12_000;

/// Tones that come and go, at pitches of their own.
fn tones(pitch: f64, every: usize, length: usize) -> Vec<f64> {
    let tone = |n: usize| {
        let (number, at) = (n / every, n % every);
        let time = n as f64 / f64::from(RATE);
        let envelope = if at < length { (TAU / 2.0 * at as f64 / length as f64).sin() } else { 0.0 };
        let step = [1.0, 1.25, 1.5][number % 3];
        envelope * ((TAU * pitch * step * time).sin() + 0.3 * (TAU * 3.0 * pitch * step * time).sin())
    };
    (0..SAMPLES).map(tone).collect()
}

fn sounds() -> [Vec<f64>; 3] {
    [tones(310.0, 900, 700), tones(523.0, 1300, 900), tones(741.0, 700, 500)]
}

fn wav(desk: &Desk, name: &str, channels: usize, samples: impl Iterator<Item = f64>) {
    let samples: Vec<f32> = samples.map(|x| (0.3 * x) as f32).collect();
    write_wav(desk.path(name), RATE, channels, &samples).unwrap();
}

/// mix.wav (two channels), s0.wav to s2.wav, and a model.
fn desk() -> Desk {
    let (desk, sounds) = (Desk::new(), sounds());
    for (k, sound) in sounds.iter().enumerate() {
        wav(&desk, &format!("s{k}.wav"), 1, sound.iter().copied());
    }
    let gains = [[1.0, 0.7, 0.1], [0.1, 0.7, 1.0]];
    let heard = |n: usize| gains.map(|row| row.iter().zip(&sounds).map(|(w, x)| w * x[n]).sum::<f64>());
    wav(&desk, "mix.wav", 2, (0..SAMPLES).flat_map(heard));
    desk.good("train --model gsc --latents 3 --transform mdct --bins 64 --iterations 15 --restarts 2 mix.wav --out m.spk");
    desk
}

/// SI-SDR of mixture and result, row by row.
fn decibels(text: &str) -> Vec<[f64; 2]> {
    let figures = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [.., file, before, after] if file.ends_with(".wav") => {
                Some([before.parse().unwrap(), after.parse().unwrap()])
            }
            _ => None,
        }
    };
    text.lines().skip(2).filter_map(figures).collect()
}

#[test]
fn three_sounds_come_apart_from_two_channels() {
    let desk = desk();
    let text = desk.good("separate m.spk mix.wav --out-dir out --reference s0.wav s1.wav s2.wav");
    let found = decibels(&text);
    assert_eq!(found.len(), 3, "{text}");
    assert!(found.iter().all(|[before, after]| *after > before + 8.0 && *after > 10.0), "{text}");
    for k in 0..3 {
        let source = Points::read(desk.path(&format!("out/source_{k}.wav"))).unwrap();
        assert_eq!((source.points, source.dims, source.rate), (SAMPLES, 1, Some(RATE)));
    }
    // Again the same, and with integers nearly.
    let first = fs::read(desk.path("out/source_1.wav")).unwrap();
    desk.good("separate m.spk mix.wav --out-dir out");
    assert_eq!(fs::read(desk.path("out/source_1.wav")).unwrap(), first);
    desk.good("quantize m.spk --encoding i16 --out small.spk --data mix.wav");
    let small = desk.good("separate small.spk mix.wav --out-dir small --reference s0.wav s1.wav s2.wav");
    for (a, b) in decibels(&small).iter().zip(&found) {
        assert!((a[1] - b[1]).abs() < 0.1, "{small}");
    }
    // The blob says how it is done.
    let inspect: serde_json::Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
    assert_eq!(inspect["rate"], RATE);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(desk.path("m.json")).unwrap()).unwrap();
    assert_eq!((&json["frame"]["form"], &json["frame"]["bins"]), (&"transform".into(), &64.into()));
    assert_eq!(json["frame"]["gains"].as_array().unwrap().len(), 64);
    desk.good("report m.json --data mix.wav --out page.html");
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(page.contains("level of the training data in 64 bins") && !page.contains("NaN"));
    // Every bin of every block is a point.
    desk.good("infer m.spk mix.wav --out-dir points");
    let points = (SAMPLES.div_ceil(64) + 1) * 64;
    assert!(desk.good("eval m.spk mix.wav").contains(&points.to_string()));
}

/// With as many channels as sounds there is an exact solution, up to how well directions are learned.
#[test]
fn two_sounds_come_apart_from_two_channels() {
    let (desk, [first, _, second]) = (Desk::new(), sounds());
    wav(&desk, "s0.wav", 1, first.iter().copied());
    wav(&desk, "s1.wav", 1, second.iter().copied());
    wav(&desk, "mix.wav", 2, first.iter().zip(&second).flat_map(|(a, b)| [a + 0.6 * b, 0.5 * a + b]));
    let line =
        "train --model gsc --latents 2 --transform mdct --bins 64 --iterations 30 --restarts 2 mix.wav --out";
    let separate = |flags: &str| {
        desk.good(&format!("{line} m.spk {flags}"));
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(desk.path("m.json")).unwrap()).unwrap();
        let text = desk.good("separate m.spk mix.wav --out-dir out --reference s0.wav s1.wav");
        let worst = decibels(&text).iter().map(|[_, after]| *after).fold(f64::INFINITY, f64::min);
        (worst, json["settings"]["weak"].clone())
    };
    let (with_weak, weak) = separate("");
    assert_eq!(weak, "sources");
    let (without, weak) = separate("--weak noise");
    assert_eq!(weak, "noise");
    assert!(with_weak > 25.0 && with_weak > without, "{with_weak} {without}");
    for (flags, what) in [
        ("--latents 3 --transform mdct --weak sources", "3 latents are more than 2 channels: --weak sources"),
        ("--latents 2 --noise shared --weak sources", "use --noise full"),
        ("--latents 2 --model bsc --weak sources", "--weak sources"),
    ] {
        let kind = if flags.contains("bsc") { "" } else { "--model gsc" };
        desk.refused(&format!("train {kind} {flags} mix.wav --out x.spk"), what);
    }
}

#[test]
fn what_is_short_or_silent_is_separated_too() {
    let desk = desk();
    for (name, samples) in [("one.wav", 1), ("block.wav", 64), ("odd.wav", 4097)] {
        wav(&desk, name, 2, (0..2 * samples).map(|_| 0.0));
        desk.good(&format!("separate m.spk {name} --out-dir quiet"));
        let source = Points::read(desk.path("quiet/source_0.wav")).unwrap();
        assert!(source.points == samples && source.values.iter().all(|&x| x == 0.0), "{name}");
    }
}

/// Two sources after three: the third must not be taken for one of the second run.
#[test]
fn formats_and_what_an_earlier_run_left() {
    let desk = desk();
    desk.good("train --model gsc --latents 2 --transform mdct --iterations 2 mix.wav --out two.spk");
    let names = || -> Vec<String> {
        let files = std::fs::read_dir(desk.path("out")).unwrap().map(|f| f.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".wav"));
        names.sort();
        names
    };
    for (format, bits) in [("i16", 16), ("i24", 24), ("f32", 32)] {
        desk.good(&format!("separate m.spk mix.wav --out-dir out --format {format}"));
        let bytes = std::fs::read(desk.path("out/source_0.wav")).unwrap();
        assert_eq!(bytes[34], bits);
        assert_eq!(names().len(), 3);
        // A recording of the user's stays, whatever it is called.
        std::fs::write(desk.path("out/source_9.wav"), b"mine").unwrap();
        desk.good(&format!("separate two.spk mix.wav --out-dir out --format {format}"));
        assert_eq!(names(), ["source_0.wav", "source_1.wav", "source_9.wav"]);
        std::fs::remove_file(desk.path("out/source_9.wav")).unwrap();
    }
    // Changed since, it is the user's too.
    desk.good("separate m.spk mix.wav --out-dir out");
    let mut bytes = std::fs::read(desk.path("out/source_2.wav")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(desk.path("out/source_2.wav"), &bytes).unwrap();
    let output = desk.run(&["separate", "two.spk", "mix.wav", "--out-dir", "out"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("changed since"));
    assert_eq!(names().len(), 3);
    // A list that names files elsewhere removes nothing.
    std::fs::write(desk.path("out/.spikelet-separate"), "0 0 ../mix.wav\nwhatever\n").unwrap();
    desk.good("separate two.spk mix.wav --out-dir out");
    assert!(desk.path("mix.wav").exists());
    let output = desk.run(&["separate", "m.spk", "mix.wav", "--out-dir", "out", "--format", "i8"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_does_not_fit_is_refused() {
    let desk = desk();
    desk.array("points.npy", &[4, 2], &[0.5; 8]);
    for (line, what) in [
        (
            "separate m.spk s0.wav --out-dir o",
            "the recording has 1 channel, the model is for 2: s0.wav and m.spk",
        ),
        ("separate m.spk points.npy --out-dir o", "this is no recording: points.npy"),
        ("separate m.spk none.wav --out-dir o", "none.wav"),
        ("separate mix.wav mix.wav --out-dir o", "mix.wav"),
        ("denoise m.spk mix.wav clean.wav", "use spikelet separate"),
        ("eval m.spk mix.wav --reference s0.wav", "use spikelet separate --reference"),
        ("infer m.spk s0.wav --out-dir o", "1 channel where there should be 2"),
        (
            "train --model gsc --latents 3 --transform mdct --bins 100 mix.wav --out x.spk",
            "cannot have 100 bins",
        ),
        ("train --model mca --latents 3 --transform mdct mix.wav --out x.spk", "use --model gsc"),
        ("train --model gsc --latents 3 --transform mdct points.npy --out x.spk", "only recordings can be"),
        ("train --model gsc --latents 3 --bins 64 --frame 64 mix.wav --out x.spk", "--bins"),
    ] {
        desk.refused(line, what);
    }
}

#[test]
fn merged_dictionaries_take_one_channel_apart() {
    let desk = Desk::new();
    let [low, _, _] = sounds();
    let high = tones(1900.0, 500, 400);
    for (name, sound) in [("low", &low), ("high", &high)] {
        wav(&desk, &format!("{name}.wav"), 1, sound.iter().copied());
        desk.good(&format!(
            "train --model gsc --latents 12 --selected 6 --max-active 3 --frame 32 --hop 8 --iterations 20 --restarts 1 \
             {name}.wav --out {name}.spk"
        ));
    }
    wav(&desk, "mix.wav", 1, low.iter().zip(&high).map(|(a, b)| a + b));
    let text =
        desk.good("merge low.spk high.spk --names voice,engine --selected 8 --max-active 4 --out both.spk");
    assert!(text.contains("24 latents (voice 12, engine 12)"), "{text}");
    let inspect: serde_json::Value = serde_json::from_str(&desk.good("inspect both.spk --json")).unwrap();
    assert_eq!(inspect["groups"], serde_json::json!(["voice", "engine"]));
    let text = desk.good("separate both.spk mix.wav --out-dir out --reference low.wav high.wav");
    let found = decibels(&text);
    assert!(found.len() == 2 && found.iter().all(|[before, after]| *after > before + 6.0), "{text}");
    assert!(desk.path("out/voice.wav").is_file() && desk.path("out/engine.wav").is_file());
    // Channels of a recording go through one by one.
    wav(&desk, "stereo.wav", 2, low.iter().zip(&high).flat_map(|(a, b)| [a + b, a + b]));
    desk.good("separate both.spk stereo.wav --out-dir two");
    let (one, two) = (
        Points::read(desk.path("out/voice.wav")).unwrap(),
        Points::read(desk.path("two/voice.wav")).unwrap(),
    );
    assert_eq!(two.dims, 2);
    assert!(two.values.chunks_exact(2).zip(&one.values).all(|(pair, &x)| pair[0] == x && pair[1] == x));

    desk.good("train --model gsc --latents 4 --frame 16 --iterations 2 --restarts 1 low.wav --out short.spk");
    desk.good("train --model bsc --latents 4 --frame 32 --hop 8 --iterations 2 --restarts 1 low.wav --out onoff.spk");
    for (line, what) in [
        ("merge low.spk high.spk --names one --out x.spk", "1 name for 2 models: --names"),
        ("merge low.spk high.spk --names a,a --out x.spk", "two sources are called a"),
        ("merge low.spk --out x.spk", "MODEL.spk"),
        ("merge low.spk short.spk --out x.spk", "16 dimensions here, 32 in the first: short.spk"),
        ("merge low.spk onoff.spk --out x.spk", "this is a bsc model, the first a gsc one: onoff.spk"),
        ("merge low.spk high.spk --out low.spk", "would replace a file it is made from"),
        ("merge low.spk mix.wav --out x.spk", "mix.wav"),
        ("merge low.spk high.spk --selected 100 --out x.spk", "100"),
    ] {
        desk.refused(line, what);
    }
}
