//! Lines that cannot be parsed, and slips that are easily made: one line each, `error: what: where: what to do`.

use crate::desk::Desk;
use crate::front_end::mix;
use spikelet_trainer::data::{Points, write_wav};
use std::fs;

/// A message of three parts on one line.
fn is_in_form(said: &str) -> bool {
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    lines.len() == 1 && lines[0].starts_with("error: ") && lines[0].matches(": ").count() >= 3
}

#[test]
fn every_line_is_refused_in_one_form() {
    let desk = Desk::with_model();
    for (line, words) in [
        ("", "no command was given: spikelet"),
        ("hlep", "there is no such command: hlep: did you mean help?"),
        ("-x", "there is no such flag: -x: see `spikelet --help`"),
        ("train", "these are missing: --out <MODEL.spk>, <DATA>...: add them; see `spikelet train --help`"),
        ("export model.spk --format c", "this is missing: --out <FILE>"),
        ("infer model.spk Y.npy other.npy --out-dir new", "one argument too many: other.npy"),
        ("inspect model.spk --jsn", "there is no such flag: --jsn: did you mean --json?"),
        ("inspect model.spk --json --json", "given more than once: --json: give it once"),
        ("import --model gsc --w W.npy --out", "its value is missing: --out <MODEL.spk>"),
        (
            "train --model ica --latents 2 Y.npy --out n.spk",
            "it has no value 'ica': --model <KIND>: choose one of gsc",
        ),
        ("export model.spk --format cpp --out n.h", "choose one of c, rust, bin; did you mean c?"),
        (
            "train --model gsc --latents none Y.npy --out n.spk",
            "'none' is not valid: --latents <COUNT>: give a number from 1",
        ),
        ("train --model gsc --latents -1 Y.npy --out n.spk", "--latents <COUNT>: give a number from 1"),
        ("train --model gsc --latents 2 --iterations -1 Y.npy --out n.spk", "'-1' is negative: --iterations"),
        (
            "train --model gsc --latents 2 --iterations 1e3 Y.npy --out n.spk",
            "give a whole number, in digits",
        ),
        ("train --model gsc --latents 2 --batch -1 Y.npy --out n.spk", "'-1' is negative: --batch"),
        (
            "train --model gsc --latents 2 --holdout 10% Y.npy --out n.spk",
            "'10%' is not a number: --holdout <FRACTION>",
        ),
        (
            "train --model gsc --latents 2 --restarts 0 Y.npy --out n.spk",
            "'0' is out of range: --restarts <COUNT>: give 1 or more",
        ),
        (
            "train --model gsc --latents 2 --threads 2000 Y.npy --out n.spk",
            "--threads <COUNT>: give 1 to 1024",
        ),
        (
            "train --model gsc --latents 2 --seed 99999999999999999999 Y.npy --out n.spk",
            "is too large: --seed",
        ),
        ("train --model gsc --latents 2 --temperature 0 Y.npy --out n.spk", "such as 3:1"),
        ("advise Y.npy --clock 168", "a clock needs its unit: --clock <HERTZ>: write 168MHz"),
        ("advise Y.npy --clock -5MHz", "neither a flag nor a value that is allowed here: -5"),
        ("advise Y.npy --latency 20", "a time needs its unit: --latency <TIME>: write 20ms"),
        ("inspect model.spk --core m4f --cpi -1", "'-1' is not valid: --cpi <CYCLES>: choose 0.1 to 1000"),
        (
            "demo --room --one-channel",
            "these exclude each other: --room and --one-channel: leave one of them out",
        ),
        ("merge model.spk --out n.spk", "1 given where 2 are needed: <MODEL.spk>"),
        ("infer", "these are missing: --out-dir <DIR>, <MODEL.spk>, <DATA>: add them"),
        (
            "eval model.spk Y.npy --against old.spk",
            "there is no such flag: --against: see `spikelet eval --help`",
        ),
        (
            "separate model.spk mix.wav --out-dir n --microphone 2",
            "there is no such flag: --microphone: it belongs to `spikelet train`",
        ),
        ("train -1.npy --out n.spk", "neither a flag nor a value that is allowed here: -1.npy"),
        (
            "train --model gsc --latents 2 --temperature 1:3 Y.npy --out n.spk",
            "the temperature would rise: --temperature <FIRST[:LAST]>: begin with the higher one, as in 3:1",
        ),
        (
            "train --model gsc --latents 2 --expansions 8 Y.npy --out n.spk",
            "only adaptive states are expanded: --expansions",
        ),
        (
            "train --model gsc --latents 2 --tolerance -1 Y.npy --out n.spk",
            "-1 is neither 0 nor a positive number: --tolerance",
        ),
        (
            "inspect model.spk --core m4f --clock 1MHz --rate 0",
            "--rate <HERTZ>: give samples a second, 1 or more, such as 16000",
        ),
        ("report Y.npy --out n.html", "this is neither a model nor its description: Y.npy: give MODEL.json"),
    ] {
        let said = desk.refused(line, words);
        assert!(is_in_form(&said), "{line}: {said}");
    }
}

/// Only `train` writes a description; no other result may take its place, or look like one.
#[test]
fn descriptions_are_not_written_over() {
    let desk = Desk::with_model();
    desk.good("train --model gsc --latents 2 --iterations 1 --restarts 1 Y.npy --out m.spk");
    let wave: Vec<f32> = (0..16_000).map(|n| (0.3 * n as f32).sin() * (n as f32 / 900.0).sin()).collect();
    write_wav(desk.path("tone.wav"), 8000, 1, &wave).unwrap();
    for name in ["a", "b"] {
        desk.good(&format!(
            "train --model mca --latents 4 --transform spectrum --iterations 2 tone.wav --out {name}.spk"
        ));
    }
    for (line, other) in [
        ("train --model gsc --latents 2 Y.npy --out m.json", "MODEL.spk"),
        ("quantize m.spk --encoding i8 --out m.json", "m.spk"),
        ("import --model gsc --w W.npy --sigma2 1 --out m.json", "m.spk"),
        ("export m.spk --format c --out m.json", "m.h"),
        ("export m.spk --format rust --out m.json", "m.rs"),
        ("merge a.spk b.spk --out m.json", "m.spk"),
        ("eval a.spk tone.wav --calibrate tone.wav --out m.JSON", "m.spk"),
        ("advise Y.npy --out m.json", "m.spk"),
        ("report m.spk --out m.json", "another file"),
    ] {
        let said = desk.refused(line, ": name ");
        assert!(is_in_form(&said) && said.contains(other), "{line}: {said}");
    }
    // Nor is it taken for the model, nor sound written under a name that players do not know.
    desk.refused(
        "inspect m.json",
        "a description is no model: m.json: give the model that lies beside it, such as m.spk",
    );
    desk.good("merge a.spk b.spk --out both.spk");
    desk.refused("denoise both.spk tone.wav clean.mp3", "clean.mp3: give the name of a .wav");
}

/// Arrays that are channels x time are told before anything of the size of their square is computed.
#[test]
fn transposed_and_immense_data_is_refused_at_once() {
    let desk = Desk::new();
    let wave: Vec<f64> = (0..40_000).map(|n| (1.7 * f64::from(n)).sin()).collect();
    desk.array("channels.npy", &[4, 10_000], &wave);
    desk.array("large.npy", &[1000, 4], &wave[..4000].iter().map(|y| 1e30 * y).collect::<Vec<_>>());
    for (line, words) in [
        (
            "train --model gsc --latents 2 channels.npy --out n.spk",
            "4 points of 10000 dimensions are too few",
        ),
        ("train --model gsc --latents 2 large.npy --out n.spk", "beyond the variances that a model can hold"),
    ] {
        let said = desk.refused(line, words);
        assert!(is_in_form(&said), "{line}: {said}");
    }
}

#[test]
fn slips_are_told_as_what_they_are() {
    let desk = Desk::new();
    mix(&desk, "mix.wav", 8000, 0);
    let stereo = Points::read(desk.path("mix.wav")).unwrap().values;
    let mono: Vec<f32> = stereo.iter().step_by(2).map(|&y| y as f32).collect();
    write_wav(desk.path("mono.wav"), 8000, 1, &mono).unwrap();
    let wave: Vec<f64> = (0..600).map(|n| (1.7 * f64::from(n)).sin()).collect();
    desk.array("Y.npy", &[200, 3], &wave);
    desk.array("turned.npy", &[3, 200], &wave);
    desk.array("single.npy", &[600], &wave);
    fs::write(desk.path("photo.jpg"), "no matter what").unwrap();
    let brief = "--iterations 2 --restarts 1";
    desk.good(&format!("train --model gsc --latents 2 {brief} Y.npy --out points.spk"));
    desk.good(&format!("train --model gmm --latents 3 {brief} Y.npy --out clusters.spk"));
    desk.good("train --model spatial --latents 2 --frame 256 --iterations 2 mix.wav --out room.spk");
    desk.good("train --model mca --latents 4 --transform spectrum --iterations 2 mono.wav --out voice.spk");
    for (line, words) in [
        ("train photo.jpg --out n.spk", "is not one of .npy, .npz, .csv, .wav, .png: photo.jpg"),
        (
            "train Y.npy --out n.spk",
            "nothing says what to learn: --model: name a kind, such as gsc; `spikelet advise DATA`",
        ),
        (
            "train --from voice.json mono.wav --out n.spk",
            "learned anew, which takes seconds: voice.json: leave --from out",
        ),
        (
            "infer points.spk turned.npy --out-dir n",
            "3 rows of 200 numbers, the model 3 dimensions: turned.npy and points.spk: transpose it",
        ),
        (
            "infer clusters.spk Y.npy --out-dir n --engine gibbs",
            "nothing is drawn: --engine gibbs: leave it out",
        ),
        (
            "infer clusters.spk Y.npy --out-dir n --states adaptive",
            "exactly one component of a mixture is on: --states",
        ),
        ("eval clusters.spk Y.npy --engine gibbs", "nothing is drawn: --engine gibbs"),
        ("inspect clusters.spk --engine gibbs", "nothing is drawn: --engine gibbs"),
        (
            "quantize clusters.spk --encoding i8 --states adaptive --out n.spk",
            "exactly one component of a mixture is on",
        ),
        ("merge room.spk room.spk --out n.spk", "has all sources of its room already: room.spk"),
        ("merge voice.spk voice.spk --names a, --out n.spk", "a source cannot be called '': --names"),
        ("advise single.npy --model ssmca", "how it is sampled: --model ssmca"),
        ("advise Y.npy --model nmf", "nmf has no negative numbers, and the data has: --model nmf"),
        ("advise mix.wav --model gmm", "say themselves which kind of model they need: --model gmm"),
        (
            "separate room.spk mix.wav --out-dir n --reference mix.wav mono.wav --format i12",
            "choose one of i16, i24, f32",
        ),
    ] {
        let said = desk.refused(line, words);
        assert!(is_in_form(&said), "{line}: {said}");
    }
    // A channel of a reference by its number, counted from 1.
    write_wav(desk.path("shorter.wav"), 8000, 2, &[0.5; 400]).unwrap();
    let line = "separate room.spk mix.wav --out-dir n --reference shorter.wav";
    desk.refused(line, "200 samples where the mixture has 16000: shorter, channel 1");
    write_wav(desk.path("slower.wav"), 4000, 2, &[0.5; 400]).unwrap();
    let line = "separate room.spk mix.wav --out-dir n --reference slower.wav";
    desk.refused(line, "4000 samples per second where the mixture has 8000: slower, channel 1");
    // Warned of, not refused.
    let said = desk.said(&format!("train --model gsc --latents 2 {brief} single.npy --out n.spk"), 0);
    assert!(said.contains("warning: every point is a single number"), "{said}");
    let line = format!("train --model gsc --latents 2 {brief} --transform mdct mono.wav --out n.spk");
    assert!(desk.said(&line, 0).contains("warning: mono.wav: one channel, and a transform"));
    assert!(desk.good("advise single.npy").contains("WARNING: every point is a single number"));
}

/// A folder in which no file can be made, though nothing about it says so: found before the work, not after it.
#[cfg(target_os = "linux")]
#[test]
fn places_that_cannot_be_written_are_refused_at_once() {
    let desk = Desk::with_model();
    for (line, words) in [
        (
            "train --model gsc --latents 2 Y.npy --out /proc/n.spk",
            "no files can be made in this folder: /proc/n.spk",
        ),
        ("import --model gsc --w W.npy --sigma2 1 --out /proc/n.spk", "no files can be made in this folder"),
        ("export model.spk --format c --out /proc/n.h", "no files can be made in this folder"),
        (
            "infer model.spk Y.npy --out-dir /proc/n",
            "no folder can be made here: /proc/n: name another place",
        ),
    ] {
        assert!(is_in_form(&desk.refused(line, words)), "{line}");
    }
}
