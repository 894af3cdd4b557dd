//! `train` that goes on: from a checkpoint with more iterations, or from a model.

use crate::train::{desk, json, numbers};
use serde_json::Value;
use spikelet_trainer::data::write_wav;
use std::fs;
use std::process::Stdio;

/// Without a schedule a run that was resumed with more iterations ends where one that had them from the start does.
#[test]
fn more_iterations_go_on_from_a_checkpoint() {
    let desk = desk(400);
    let line = "train --model gsc --latents 3 --restarts 1 --tolerance 0 Y.npy --checkpoint c.json";
    desk.good(&format!("{line} --iterations 5 --out first.spk"));
    assert_eq!(json(&desk, "first.json")["kept"]["iteration"], 5);
    desk.good(&format!("{line} --iterations 12 --resume --out more.spk"));
    desk.good(
        "train --model gsc --latents 3 --restarts 1 --tolerance 0 Y.npy --iterations 12 --out whole.spk",
    );
    assert_eq!(fs::read(desk.path("more.spk")).unwrap(), fs::read(desk.path("whole.spk")).unwrap());
    let figures = |name: &str| -> Vec<Value> {
        json(&desk, name)["history"].as_array().unwrap().iter().map(|s| s["free_energy"].clone()).collect()
    };
    assert_eq!(figures("more.json"), figures("whole.json"));
    desk.refused(&format!("{line} --iterations 4 --resume --out n.spk"), "--iterations 12, more than 4");
}

/// Of several starts the preferred one goes on; a schedule stays at its end.
#[test]
fn restarts_schedules_and_batches_go_on_too() {
    let desk = desk(300);
    for flags in
        ["--model gsc --restarts 3", "--model bsc --restarts 2", "--model gsc --batch 50 --tolerance 0"]
    {
        let line = format!("train {flags} --latents 3 Y.npy --checkpoint c.json --out m.spk");
        desk.good(&format!("{line} --iterations 6"));
        let before = json(&desk, "m.json");
        desk.good(&format!("{line} --iterations 15 --resume"));
        let after = json(&desk, "m.json");
        assert_eq!(before["start"], after["start"], "{flags}");
        let last = |model: &Value| model["history"].as_array().unwrap().last().unwrap()["iteration"].clone();
        assert_eq!((last(&before), last(&after)), (Value::from(6), Value::from(15)), "{flags}");
        let scheduled = flags.contains("bsc") || flags.contains("batch");
        assert_eq!(after["settings"]["schedule"], if scheduled { Value::from(6) } else { Value::Null });
        // And once more.
        desk.good(&format!("{line} --iterations 18 --resume"));
        fs::remove_file(desk.path("c.json")).unwrap();
    }
}

#[test]
fn a_refused_resume_names_the_setting() {
    let desk = desk(100);
    let line = "train --model gsc --restarts 1 --iterations 2 Y.npy --checkpoint c.json --out m.spk";
    desk.good(&format!("{line} --latents 3"));
    for (flags, words) in [
        ("--latents 3 --seed 9", "the checkpoint was written with --seed 1, not 9: c.json: repeat that"),
        ("--latents 4", "--latents 3, not 4"),
        ("--latents 3 --noise full", "--noise shared, not full"),
        ("--latents 3 --sigma2 0.5", "--sigma2 by default, not 0.5"),
        ("--latents 3 --holdout 0.1", "--holdout 0.0, not 0.1"),
    ] {
        desk.refused(&format!("{line} {flags} --resume"), words);
    }
    // Nor is another file written over, or taken for a checkpoint.
    for (file, resume) in [("m.spk", ""), ("m.json", " --resume"), ("Z.npy", "")] {
        fs::copy(desk.path("Y.npy"), desk.path("Z.npy")).unwrap();
        let line = format!("train --model gsc --latents 2 Y.npy --checkpoint {file} --out n.spk{resume}");
        desk.refused(&line, "this file is no checkpoint, and one would replace it");
        fs::remove_file(desk.path("Z.npy")).unwrap();
    }
    // Nothing to go on from is told, since it may be a slip.
    let output = desk.run(
        &"train --model gsc --latents 2 --iterations 1 Y.npy --out n.spk --resume"
            .split_whitespace()
            .collect::<Vec<_>>(),
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("no checkpoint n.spk.checkpoint"), "{said}");
}

#[test]
fn two_trainings_cannot_share_a_checkpoint() {
    let desk = desk(3000);
    let line =
        "train --model gsc --latents 8 --iterations 100000 --tolerance 0 Y.npy --checkpoint c.json --out";
    let arguments: Vec<&str> = line.split_whitespace().chain(["m.spk"]).collect();
    let mut first = desk.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !desk.path("c.json.lock").exists() {
        assert!(first.try_wait().unwrap().is_none(), "it ended too soon");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // The lock follows the file at once.
    std::thread::sleep(std::time::Duration::from_millis(50));
    desk.refused(&format!("{line} n.spk"), "another training is using this checkpoint: c.json: wait");
    first.kill().unwrap();
    first.wait().unwrap();
    // What a killed run leaves does no harm.
    desk.good("train --model gsc --latents 2 --iterations 1 Y.npy --checkpoint c.json --out n.spk");
    assert!(!desk.path("c.json.lock").exists());
}

#[test]
fn a_model_goes_on_from_its_parameters() {
    let desk = desk(600);
    desk.good("train --model gsc --latents 3 --restarts 1 --iterations 6 --noise diagonal --tolerance 0 Y.npy --out a.spk");
    desk.good("train --from a.json --iterations 4 --tolerance 0 Y.npy --out b.spk");
    desk.good("train --model gsc --latents 3 --restarts 1 --iterations 10 --noise diagonal --tolerance 0 Y.npy --out c.spk");
    let figure = |name: &str, at: usize| json(&desk, name)["history"][at]["free_energy"].as_f64().unwrap();
    // Parameters are written in full, so this is the same way.
    assert_eq!(figure("b.json", 0), figure("a.json", 6));
    assert_eq!(figure("b.json", 4), figure("c.json", 10));
    assert_eq!(json(&desk, "b.json")["parameters"], json(&desk, "c.json")["parameters"]);
    let loud: Vec<f64> = (0..600).map(|n| 1e4 * (0.7 * f64::from(n)).sin()).collect();
    desk.array("loud.npy", &[200, 3], &loud);
    let said = desk.said("train --from a.json --iterations 1 loud.npy --out loud.spk", 0);
    assert!(said.contains("times stronger than what the model was made for"), "{said}");
    let settings = &json(&desk, "b.json")["settings"];
    assert_eq!((&settings["from"], &settings["noise"]), (&"a.json".into(), &"diagonal".into()));
    // Flags change what they name.
    desk.good("train --from a.json --noise full --slab full --iterations 1 Y.npy --out full.spk");
    assert_eq!(numbers(&json(&desk, "full.json")["parameters"]["sigma2"]).len(), 9);
    desk.good("train --from full.json --noise shared --slab diagonal --iterations 1 Y.npy --out shared.spk");
    assert_eq!(numbers(&json(&desk, "shared.json")["parameters"]["sigma2"]).len(), 1);
    desk.array("two.npy", &[10, 2], &[1.0; 20]);
    fs::write(desk.path("other.json"), "{}").unwrap();
    for (line, words) in [
        ("--from a.json Y.npy --out a.spk", "replace a file it is made from: a.json"),
        ("--from a.json --model bsc Y.npy --out n.spk", "is of kind gsc, not bsc: --model"),
        ("--from a.json --latents 4 Y.npy --out n.spk", "has 3 latents, not 4: --latents"),
        ("--from a.json --restarts 2 Y.npy --out n.spk", "would be the same: --restarts"),
        ("--from a.json --slab unit Y.npy --out n.spk", "--slab unit"),
        ("--from a.json two.npy --out n.spk", "points of 3 dimensions, the data has 2: a.json"),
        ("--from other.json Y.npy --out n.spk", "no description of a model"),
        ("--from missing.json Y.npy --out n.spk", "no such file: missing.json"),
        ("--from a.json --init data Y.npy --out n.spk", "exclude each other"),
        ("Y.npy --out n.spk", "--model"),
    ] {
        desk.refused(&format!("train {line}"), words);
    }
}

/// The way points are made goes along, with the gains of the bins.
#[test]
fn kinds_and_front_ends_go_on() {
    let desk = desk(200);
    let samples: Vec<f32> = (0..8000).map(|i| 0.3 * (0.01 * f64::from(i * i % 977)).sin() as f32).collect();
    write_wav(desk.path("mix.wav"), 8000, 2, &samples).unwrap();
    desk.good("train --model gsc --latents 3 --transform mdct --bins 64 --iterations 3 --restarts 1 mix.wav --out t.spk");
    desk.good("train --from t.json --iterations 2 mix.wav --out u.spk");
    let (before, after) = (json(&desk, "t.json"), json(&desk, "u.json"));
    assert_eq!(before["frame"], after["frame"]);
    let last = before["history"].as_array().unwrap().last().unwrap()["free_energy"].as_f64().unwrap();
    assert!((after["history"][0]["free_energy"].as_f64().unwrap() - last).abs() < 1e-6 * last.abs());
    let values: Vec<f64> = (0..600).map(|i| f64::from(i * 37 % 11)).collect();
    desk.array("P.npy", &[200, 3], &values);
    for kind in ["bsc", "nmf", "mca", "ssmca"] {
        desk.good(&format!("train --model {kind} --latents 3 --iterations 4 --restarts 1 P.npy --out k.spk"));
        desk.good("train --from k.json --iterations 2 P.npy --out l.spk");
        let settings = &json(&desk, "l.json")["settings"];
        assert_eq!((&settings["model"], &settings["temperature"][0]), (&kind.into(), &1.0.into()));
    }
}
