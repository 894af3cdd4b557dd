//! `train` for every kind of model and engine, and flags that do not go together.

use super::Desk;
use super::train::{json, numbers};

/// With Y.npy: 200 points of 6 dimensions, none of them negative.
fn desk() -> Desk {
    let desk = Desk::new();
    let wave: Vec<f64> = (0..1200).map(|i| (1.7 * f64::from(i)).sin().abs() + f64::from(i % 7 / 5)).collect();
    desk.array("Y.npy", &[200, 6], &wave);
    desk
}

#[test]
fn every_kind_trains_and_runs() {
    let desk = desk();
    // Kind, whether it begins hot, flags.
    for (kind, is_hot, flags) in [
        ("bsc", true, "--selected 3 --max-active 2"),
        ("linca", true, "--engine exact --prior each --noise full"),
        ("bsc", true, "--engine gibbs --selected 3 --sweeps 6 --extra 1"),
        ("nmf", true, "--selected 3 --max-active 2 --rule multiply --temperature 13:1"),
        ("nmf", false, "--cut off --parameter-noise 0 --temperature 1"),
        ("mca", true, "--selected 3 --max-active 2 --noise diagonal"),
        ("mca", true, "--batch 50 --pi 0.3 --sigma2 0.1 --fix pi,sigma2"),
        ("ssmca", false, "--selected 3 --sweeps 6"),
        ("ssmca", false, "--selected 3 --sweeps 6 --mu 1 --psi2 0.01 --fix-slab"),
        ("gmm", false, ""),
        ("gmm", false, "--noise components --selected 3"),
        ("gmm", false, "--noise full --selected 4 --selection gp --kernel linear"),
        ("gsc", true, "--selected 3 --max-active 2 --cut on --temperature 3 --parameter-noise 0.01"),
        ("gsc", false, "--engine gibbs --selected 3 --sweeps 6 --chains 2 --prior shared --noise diagonal"),
    ] {
        let line =
            format!("train --model {kind} --latents 5 {flags} --iterations 4 --restarts 2 Y.npy --out m.spk");
        desk.good(&line);
        let model = json(&desk, "m.json");
        let parameters = &model["parameters"];
        assert!(numbers(&parameters["w"]).iter().all(|w| w.is_finite()), "{line}");
        let has_slab = kind == "gsc" || kind == "ssmca";
        assert_eq!(parameters["mu"].is_array(), has_slab, "{line}");
        if flags.contains("--fix pi") {
            assert_eq!(numbers(&parameters["pi"]), [0.3; 5]);
            assert_eq!(parameters["sigma2"], 0.1);
        }
        if flags.contains("--fix-slab") {
            assert_eq!(
                (numbers(&parameters["mu"]), numbers(&parameters["psi2"])),
                (vec![1.0; 5], vec![0.01; 5])
            );
        }
        // The last free energy is that of the model itself, whatever the temperature was on the way.
        let history = model["history"].as_array().unwrap();
        assert!(history.last().unwrap()["temperature"].is_null(), "{line}");
        assert_eq!(history[0]["temperature"].as_f64().is_some(), is_hot, "{line}");
        desk.good("infer m.spk Y.npy --out-dir out");
        desk.good("inspect m.spk --json");
    }
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let desk = desk();
    for (flags, said) in [
        ("--model pca", "pca"),
        ("--model bsc --slab unit", "no slab"),
        ("--model bsc --mu 1", "no slab"),
        ("--model mca --noise full", "--noise full"),
        ("--model nmf --whiten", "--whiten"),
        ("--model bsc --rule clamp", "only nmf"),
        ("--model bsc --temperature 0", "positive"),
        ("--model bsc --temperature hot", "hot"),
        ("--model bsc --pi 1", "--pi"),
        ("--model bsc --sigma2 -1", "--sigma2"),
        ("--model bsc --parameter-noise -1", "--parameter-noise"),
        ("--model bsc --sweeps 9", "--engine gibbs"),
        ("--model ssmca --engine truncated", "--engine gibbs"),
        ("--model mca --engine gibbs", "--engine truncated"),
        ("--model gsc --engine gibbs --slab full", "full slab"),
        ("--model gsc --engine gibbs --selected 3 --extra 3", "extra"),
    ] {
        let line = format!("train --latents 5 {flags} --iterations 2 Y.npy --out m.spk");
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.starts_with("error: ") && text.contains(said), "{line}: {text}");
        assert!(!desk.path("m.spk").exists(), "{line}");
    }
}
