//! `train`: what it learns, that it repeats itself, and that it survives being killed.

use crate::desk::Desk;
use serde_json::Value;
use spikelet::rng::Rng;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Three sparse sources on three sensors with known mixing and little noise.
const MIXING: [f64; 9] = [1.0, 0.4, -0.3, -0.2, 1.0, 0.5, 0.3, -0.4, 1.0];

pub fn desk(points: usize) -> Desk {
    let desk = Desk::new();
    let mut rng = Rng::new(11);
    let mut data = Vec::new();
    for _ in 0..points {
        let x = [(); 3].map(|()| if rng.uniform::<f64>() < 0.25 { rng.normal::<f64>() } else { 0.0 });
        for row in MIXING.chunks_exact(3) {
            let clean: f64 = row.iter().zip(x).map(|(w, x)| w * x).sum();
            data.push(clean + 0.05 * rng.normal::<f64>());
        }
    }
    desk.array("Y.npy", &[points, 3], &data);
    desk
}

pub fn json(desk: &Desk, name: &str) -> Value {
    serde_json::from_slice(&fs::read(desk.path(name)).unwrap()).unwrap()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

#[test]
fn finds_the_mixing_the_sparsity_and_the_noise() {
    let desk = desk(3000);
    let said =
        desk.good("train --model gsc --latents 3 --slab unit --restarts 2 --iterations 60 Y.npy --out m.spk");
    assert!(said.contains("3 latents from 3000 points of 3 dimensions"), "{said}");
    let model = json(&desk, "m.json");
    let parameters = &model["parameters"];
    // 0.05^2, and 0.25 of 3000 points: within five standard errors each.
    let sigma2 = parameters["sigma2"].as_f64().unwrap();
    assert!((sigma2 - 0.0025).abs() < 0.0004, "{sigma2}");
    assert!(numbers(&parameters["pi"]).iter().all(|pi| (pi - 0.25).abs() < 0.05), "{}", parameters["pi"]);
    // Every learned column is a mixing column up to order and sign.
    let w = numbers(&parameters["w"]);
    for h in 0..3 {
        let learned = [w[h], w[3 + h], w[6 + h]];
        let match_of = |k: usize| {
            let truth = [MIXING[k], MIXING[3 + k], MIXING[6 + k]];
            let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(learned, truth).abs() / (dot(learned, learned) * dot(truth, truth)).sqrt()
        };
        assert!((0..3).map(match_of).fold(0.0, f64::max) > 0.999, "{learned:?}");
    }
    let history: Vec<f64> = model["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["free_energy"].as_f64().unwrap())
        .collect();
    assert!(history.len() > 10);
    assert!(history.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()));
    let inspected: Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
    assert_eq!((&inspected["latents"], &inspected["states"]), (&Value::from(3), &Value::from(8)));
}

#[test]
fn truncated_training_with_every_form_of_noise() {
    let desk = desk(600);
    for noise in ["shared", "diagonal", "full"] {
        let line = format!(
            "train --model gsc --latents 5 --selected 3 --max-active 2 --noise {noise} --iterations 5 Y.npy --out m.spk"
        );
        desk.good(&line);
        let sigma2 = numbers(&json(&desk, "m.json")["parameters"]["sigma2"]);
        assert_eq!(
            sigma2.len(),
            [("shared", 1), ("diagonal", 3), ("full", 9)].iter().find(|f| f.0 == noise).unwrap().1
        );
        desk.good("infer m.spk Y.npy --out-dir out");
    }
}

#[test]
fn the_same_bits_whatever_the_threads() {
    let desk = desk(2000);
    let line = "train --model gsc --latents 3 --iterations 8 --restarts 2 --seed 5 Y.npy";
    desk.good(&format!("{line} --threads 1 --out one.spk"));
    desk.good(&format!("{line} --threads 2 --out two.spk"));
    assert_eq!(fs::read(desk.path("one.spk")).unwrap(), fs::read(desk.path("two.spk")).unwrap());
    assert_eq!(json(&desk, "one.json")["parameters"], json(&desk, "two.json")["parameters"]);
    desk.good(&format!("{line} --out other.spk").replace("--seed 5", "--seed 6"));
    assert_ne!(json(&desk, "one.json")["parameters"], json(&desk, "other.json")["parameters"]);
}

#[test]
fn killed_and_resumed_it_ends_in_the_same_bits() {
    let desk = desk(6000);
    let line = "train --model gsc --latents 6 --iterations 12 --restarts 2 --tolerance 0 Y.npy";
    desk.good(&format!("{line} --out whole.spk"));
    let arguments = format!("{line} --checkpoint c.json --checkpoint-every 1 --resume --out parts.spk");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    // Killed as soon as it has written something new, until it gets to the end.
    let mut kills = 0;
    loop {
        let before = fs::read(desk.path("c.json")).ok();
        let mut child = desk.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let finished = loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                break true;
            }
            if kills < 6 && fs::read(desk.path("c.json")).ok() != before {
                child.kill().unwrap();
                child.wait().unwrap();
                break false;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "no progress");
            std::thread::sleep(Duration::from_millis(2));
        };
        if finished {
            break;
        }
        kills += 1;
    }
    assert!(kills > 0, "it finished before it could be killed: make the run longer");
    assert_eq!(fs::read(desk.path("whole.spk")).unwrap(), fs::read(desk.path("parts.spk")).unwrap());
    // A finished run resumes to the same result, and other settings are refused.
    desk.good_with(&arguments);
    let other = desk.run(&[&arguments[..], &["--seed", "9"]].concat());
    assert!(String::from_utf8_lossy(&other.stderr).contains("--seed 1, not 9"));
}

/// All starts are kept until the end, also in a checkpoint: resumed, a run ends in the same bits.
#[test]
fn the_most_orthogonal_start_is_kept() {
    let desk = desk(300);
    let line = "train --model gsc --latents 3 --restarts 6 --iterations 6 --slab unit Y.npy";
    desk.good(&format!("{line} --prefer orthogonal --out angles.spk"));
    desk.good(&format!("{line} --out energy.spk"));
    let deviation = |name: &str| {
        let w = numbers(&json(&desk, name)["parameters"]["w"]);
        let column = |k: usize| [w[k], w[3 + k], w[6 + k]];
        let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = |a: [f64; 3], b: [f64; 3]| dot(a, b).abs() / (dot(a, a) * dot(b, b)).sqrt();
        [(0, 1), (0, 2), (1, 2)].map(|(a, b)| cosine(column(a), column(b))).into_iter().fold(0.0, f64::max)
    };
    assert!(deviation("angles.json") <= deviation("energy.json"));
    assert_eq!(json(&desk, "angles.json")["settings"]["prefer"], "orthogonal");
    let resumed = format!("{line} --prefer orthogonal --checkpoint c.json --checkpoint-every 1 --resume");
    desk.good(&format!("{resumed} --out first.spk"));
    desk.good(&format!("{resumed} --out again.spk"));
    assert_eq!(fs::read(desk.path("angles.spk")).unwrap(), fs::read(desk.path("again.spk")).unwrap());
}

#[test]
fn angles_that_cannot_be_are_refused() {
    let desk = desk(50);
    for (flags, word) in [
        ("--latents 3", "--restarts"),
        ("--latents 4 --restarts 3", "cannot be orthogonal"),
        ("--latents 1 --restarts 3", "no angles"),
    ] {
        let line = format!("train --model gsc --prefer orthogonal {flags} Y.npy --out m.spk");
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(word), "{said}");
    }
}

/// A model of whitened data is one of the raw data: `eval` needs to know nothing of it.
#[test]
fn whitened_training_makes_a_model_of_raw_data() {
    let desk = desk(3000);
    desk.array("W.npy", &[3, 3], &MIXING);
    desk.good("train --model gsc --latents 3 --whiten --restarts 3 --iterations 60 Y.npy --out m.spk");
    let model = json(&desk, "m.json");
    assert_eq!((&model["settings"]["whiten"], numbers(&model["whitening"]).len()), (&Value::from(true), 9));
    assert_eq!(numbers(&model["parameters"]["sigma2"]).len(), 9);
    let told: Value = serde_json::from_str(&desk.good("eval m.spk Y.npy --truth W.npy --json")).unwrap();
    assert!(told["amari"].as_f64().unwrap() < 0.03, "{told}");
    let last = model["history"].as_array().unwrap().last().unwrap()["free_energy"].as_f64().unwrap();
    // eval computes in 32 bits.
    assert!((told["free_energy"].as_f64().unwrap() - last / 3000.0).abs() < 1e-3, "{told} {last}");
}

/// Plain EM for small models, stepwise EM for large ones, unless the user says otherwise.
#[test]
fn the_default_batch_follows_the_size() {
    let desk = desk(1200);
    for (flags, batch, init, states) in [
        ("--latents 3", 0, "random", "subsets"),
        // More latents than dimensions: by search, in batches of a tenth.
        ("--latents 40", 120, "data", "adaptive"),
        ("--latents 40 --states subsets", 100, "data", "subsets"),
        ("--latents 40 --selected 8", 100, "data", "subsets"),
        ("--latents 40 --batch 0", 0, "random", "adaptive"),
        ("--latents 3 --batch 64 --init random", 64, "random", "subsets"),
    ] {
        desk.good(&format!("train --model gsc {flags} --iterations 1 Y.npy --out m.spk"));
        let settings = &json(&desk, "m.json")["settings"];
        assert_eq!(
            (&settings["batch"], &settings["init"], &settings["states"]),
            (&Value::from(batch), &Value::from(init), &Value::from(states)),
            "{flags}"
        );
        let told: Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
        assert_eq!(told["state_source"], states, "{flags}");
    }
}

/// A search is for gsc with a slab that has no correlations, by the truncated engine.
#[test]
fn searches_that_there_are_not_are_refused() {
    let desk = desk(50);
    for (flags, said) in [
        ("--model bsc --latents 12", "use --model gsc"),
        ("--model gsc --latents 3", "add --engine truncated"),
        ("--model gsc --latents 12 --engine gibbs", "add --engine truncated"),
        ("--model gsc --latents 12 --slab full", "use --slab diagonal"),
    ] {
        let line = format!("train {flags} --states adaptive Y.npy --out m.spk");
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    }
}
