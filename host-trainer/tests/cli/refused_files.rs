//! Files that a command cannot take: what the message says, and that nothing is left behind.

use crate::desk::Desk;
use crate::front_end::mix;
use spikelet_trainer::data::{Points, write_wav};
use std::fs;

/// Files of another kind than a command takes, files that are cut off or empty, recordings of another shape, flags that
/// contradict each other: for every command.
#[test]
fn files_that_do_not_fit_are_refused() {
    let desk = Desk::new();
    let wave = |n: usize, f: f64| (f * n as f64).sin() * if n % 700 < 350 { 0.4 } else { 0.01 };
    mix(&desk, "mix.wav", 8000, 0);
    let stereo: Vec<f32> =
        Points::read(desk.path("mix.wav")).unwrap().values.iter().map(|&y| y as f32).collect();
    let mono: Vec<f32> = stereo.iter().step_by(2).copied().collect();
    write_wav(desk.path("mono.wav"), 8000, 1, &mono).unwrap();
    write_wav(desk.path("short.wav"), 8000, 2, &stereo[4000..4020]).unwrap();
    write_wav(desk.path("silent.wav"), 8000, 2, &[0.0; 8000]).unwrap();
    let mut bytes = fs::read(desk.path("mix.wav")).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(desk.path("nan.wav"), &bytes).unwrap();
    fs::write(desk.path("cut.wav"), &bytes[..5001]).unwrap();
    fs::write(desk.path("head.wav"), &bytes[..30]).unwrap();
    fs::write(desk.path("empty.wav"), []).unwrap();
    fs::write(desk.path("text.wav"), "this is text and no sound, as anyone can see").unwrap();
    fs::write(desk.path("picture.png"), "no matter what").unwrap();
    fs::create_dir(desk.path("folder.wav")).unwrap();
    desk.array("Y.npy", &[200, 3], &(0..600).map(|n| wave(n, 1.3)).collect::<Vec<_>>());
    desk.array("Y4.npy", &[100, 4], &(0..400).map(|n| wave(n, 1.3)).collect::<Vec<_>>());
    desk.array("large.npy", &[50, 3], &(0..150).map(|n| 1e200 * wave(n, 1.3)).collect::<Vec<_>>());
    let bytes = fs::read(desk.path("Y.npy")).unwrap();
    fs::write(desk.path("cut.npy"), &bytes[..200]).unwrap();
    fs::write(desk.path("ragged.csv"), "1,2,3\n4,5\n").unwrap();
    fs::write(desk.path("half.json"), "{\"settings\": {").unwrap();
    let brief = "--iterations 2 --restarts 1";
    desk.good(&format!("train --model gsc --latents 2 {brief} Y.npy --out points.spk"));
    desk.good(&format!("train --model gsc --latents 2 {brief} mix.wav --out sound.spk"));
    desk.good(&format!("train --model gsc --latents 4 --frame 8 {brief} mono.wav --out windows.spk"));
    desk.good("train --model spatial --latents 2 --frame 256 --iterations 2 mix.wav --out room.spk");
    desk.good("train --model mca --latents 4 --transform spectrum --iterations 2 mono.wav --out voice.spk");
    let train = |rest: &str| format!("train --model gsc --latents 2 {rest} --out new.spk");
    let separate = |rest: &str| format!("separate {rest} --out-dir new");
    let cases = [
        (train("cut.wav"), "bytes of samples but the file holds"),
        (train("head.wav"), "ends within its header: head.wav"),
        (train("empty.wav"), "the file is empty: empty.wav"),
        (train("text.wav"), "not a WAV file: text.wav"),
        (train("folder.wav"), "this is a folder, not a file: folder.wav"),
        (train("nan.wav"), "NaN is not a finite number: nan.wav"),
        (train("silent.wav"), "all numbers are zero: silent.wav"),
        (train("short.wav"), "10 samples are less than a block of 256: short.wav: give a longer"),
        (train("large.npy"), "so large that their squares overflow: large.npy"),
        (train("cut.npy"), "the file holds 72 bytes of numbers: cut.npy"),
        (train("ragged.csv"), "2 cells instead of 3: ragged.csv, line 2"),
        (train("Y.npy Y4.npy"), "4 dimensions here, 3 in Y.npy: Y4.npy"),
        (train("mix.wav mono.wav"), "mono.wav"),
        (train("sound.spk"), "the ending of the name"),
        (train("--transform mdct Y.npy"), "only recordings can be transformed: Y.npy"),
        (train("--bins 100 mix.wav"), "--bins: choose 16, 32"),
        (train("--transform mdct --frame 64 mix.wav"), "exclude each other"),
        (train("--frame 64 --hop 65 mono.wav"), "--hop: choose 1 to 64"),
        (train("--engine exact --selected 1 Y.npy"), "leave them out, or use --engine truncated"),
        (
            train("--from half.json Y.npy").replace("--model gsc --latents 2 ", ""),
            "half.json: give the MODEL.json",
        ),
        (train("--resume --checkpoint Y.npy Y.npy"), "would replace a file it is made from"),
        (train("Y.npy").replace("new.spk", "new/"), "this is a folder, not a file: new/"),
        (train("Y.npy").replace("new.spk", "new.json"), "its own description"),
        (train("--latents 5 mix.wav").replace("gsc --latents 2", "spatial"), "--latents: ask for 1 to 4"),
        (train("mono.wav").replace("gsc", "spatial"), "the recording has one channel"),
        (train("--transform spectrum mono.wav"), "use --model mca"),
        (train("--transform spectrum mix.wav").replace("gsc", "mca"), "2 channels where spectra have one"),
        (separate("points.spk mix.wav"), "2 channels, the model is for 3: mix.wav and points.spk"),
        (separate("sound.spk mono.wav"), "1 channel, the model is for 2: mono.wav and sound.spk"),
        (separate("sound.spk Y.npy"), "this is no recording: Y.npy"),
        (separate("sound.spk picture.png"), "this is no recording: picture.png"),
        (separate("sound.spk cut.wav"), "the file holds"),
        (separate("voice.spk mono.wav"), "knows one source only"),
        (separate("room.spk mono.wav"), "1 channel, the model is for 2: mono.wav and room.spk"),
        (
            separate("sound.json mix.wav"),
            "a description is no model: sound.json: give the model that lies beside it",
        ),
        (
            separate("sound.spk mix.wav --reference mono.wav short.wav"),
            "10 samples where the mixture has 16000",
        ),
        ("separate sound.spk mix.wav --out-dir mix.wav".into(), "a file is in the way of the folder"),
        ("infer room.spk mix.wav --out-dir new".into(), "a spatial model has no points to infer"),
        ("eval voice.spk mono.wav --truth mono.wav".into(), "no points to compare"),
        ("denoise sound.spk mix.wav mix.wav".into(), "would replace a file it is made from"),
        ("inspect sound.spk --data Y.npy".into(), "only recordings can be transformed: Y.npy"),
        ("inspect sound.spk --data mono.wav".into(), "1 channel where there should be 2: mono.wav"),
        ("inspect room.spk --engine gibbs".into(), "run in one way only"),
        ("quantize room.spk --encoding i8 --out new.spk".into(), "use --encoding i16"),
        (
            "quantize room.spk --encoding i16 --states adaptive --out new.spk".into(),
            "has no choice of states",
        ),
        ("quantize sound.spk --encoding i8 --out sound.spk".into(), "would replace a file it is made from"),
        ("merge windows.spk windows.spk --out new.spk".into(), "two sources are called windows: --names"),
        ("merge windows.spk windows.spk --names a,a --out new.spk".into(), "two sources are called a"),
        ("merge windows.spk voice.spk --out new.spk".into(), "train"),
        ("report room.spk --patch 2x2 --out new.html".into(), "have no patches: --patch"),
        ("inspect room.spk --data mono.wav".into(), "the same work whatever is heard: --data"),
        ("report sound.json --out sound.spk".into(), "would replace a file it is made from"),
        ("report sound.json --data mono.wav --out new.html".into(), "mono.wav"),
        ("demo --wav short.wav --sources 2 --out-dir new".into(), "less than a block of 128: short.wav"),
        ("advise short.wav".into(), "less than a block of 256: short.wav"),
        ("advise folder.wav".into(), "this is a folder, not a file: folder.wav"),
    ];
    for (line, words) in &cases {
        desk.refused(line, words);
    }
}
