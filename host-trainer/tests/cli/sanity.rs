//! Data that cannot be meant: refused or told, with advice that fits.

use crate::desk::Desk;
use crate::train::json;
use std::fs;

#[test]
fn data_that_cannot_be_learned_from() {
    let desk = Desk::new();
    let wave: Vec<f64> = (0..120).map(|i| (1.7 * f64::from(i)).sin()).collect();
    desk.array("zero.npy", &[40, 3], &[0.0; 120]);
    desk.array("signed.npy", &[40, 3], &wave);
    desk.array(
        "some.npy",
        &[40, 3],
        &wave.iter().map(|y| if *y < 0.0 { 0.3 * y } else { *y }).collect::<Vec<_>>(),
    );
    desk.array("positive.npy", &[40, 3], &wave.iter().map(|y| y.abs()).collect::<Vec<_>>());
    let train = |rest: &str| format!("train --iterations 2 --restarts 1 --out m.spk {rest}");
    let said = desk.said(&train("--model gsc --latents 2 zero.npy"), 2);
    assert!(said.starts_with("error: all numbers are zero: zero.npy: check"), "{said}");
    for kind in ["nmf", "mca", "ssmca"] {
        let said = desk.said(&train(&format!("--model {kind} --latents 2 signed.npy")), 2);
        assert!(
            said.contains("% of the power of the data is below zero") && said.contains("--model"),
            "{said}"
        );
        let said = desk.said(&train(&format!("--model {kind} --latents 2 some.npy")), 0);
        assert!(said.starts_with("warning: ") && said.contains("as noise only"), "{said}");
        assert!(json(&desk, "m.json")["warnings"][0].as_str().unwrap().contains("as noise only"));
        assert_eq!(desk.said(&train(&format!("--model {kind} --latents 2 positive.npy")), 0), "");
    }
    let said = desk.said(&train("--model gsc --latents 60 --selected 4 --max-active 2 signed.npy"), 0);
    assert!(
        said.contains("warning: 40 points for 60 latents") && said.contains("ask for 4 or fewer"),
        "{said}"
    );
    assert!(!desk.path("n.spk").exists());
}

#[test]
fn data_on_another_scale_than_the_model() {
    let desk = Desk::with_model();
    assert_eq!(desk.said("infer model.spk Y.npy --out-dir out", 0), "");
    let values = spikelet_trainer::data::read_array(desk.path("Y.npy")).unwrap().values;
    for (factor, words) in [(1000.0, "times stronger"), (1e-3, "times weaker"), (0.0, "all numbers are zero")]
    {
        let scaled: Vec<f64> = values.iter().map(|y| factor * y).collect();
        desk.array("scaled.npy", &[20, 4], &scaled);
        for line in ["infer model.spk scaled.npy --out-dir out", "eval model.spk scaled.npy"] {
            let said = desk.said(line, 0);
            assert!(said.starts_with("warning: scaled.npy: ") && said.contains(words), "{line}: {said}");
        }
        let told: serde_json::Value =
            serde_json::from_str(&desk.good("eval model.spk scaled.npy --json")).unwrap();
        assert!(told["notes"].to_string().contains(words), "{told}");
    }
}

#[test]
fn one_is_not_several() {
    let desk = Desk::new();
    fs::write(desk.path("one.csv"), "1\n2\n-1\n-3\n1\n0.5\n").unwrap();
    let said = desk.good("train --model gsc --latents 1 --iterations 1 --restarts 1 one.csv --out m.spk");
    assert!(
        said.contains("1 latent from 6 points of 1 dimension\n") && said.contains("after 1 iteration;"),
        "{said}"
    );
    assert!(desk.good("inspect m.spk").contains("train on 6 points of 1 dimension,"));
    assert!(desk.good("infer m.spk one.csv --out-dir out").contains("6 points, 1 latent:"));
    assert!(desk.good("eval m.spk one.csv").contains("1 dimension, 1 latent\n"));
}

/// Three sources on two sensors, the noise 60 dB below them.
#[test]
fn states_without_digits() {
    let desk = Desk::new();
    desk.array("w.npy", &[2, 3], &[1.0, 0.5, -0.3, 0.2, 0.9, 1.1]);
    desk.array("y.npy", &[2, 2], &[1.0, -0.4, 0.3, 2.0]);
    let import = |states: &str, noise: &str| {
        format!("import --model gsc --w w.npy --pi 0.3 --sigma2 {noise} --states {states} --out m.spk")
    };
    let warned = "warning: the noise is 48 dB or more below some latents";
    for (states, noise, is_warned) in [
        ("subsets", "1e-6", true),
        ("table", "1e-6", true),
        ("subsets", "1e-3", false),
        ("adaptive", "1e-6", false),
    ] {
        for line in [&import(states, noise), "infer m.spk y.npy --out-dir out"] {
            let said = desk.said(line, 0);
            assert_eq!(said.contains(warned), is_warned, "{line}: {said}");
        }
    }
    assert!(desk.said("infer m.spk y.npy --states subsets --out-dir out", 0).contains(warned));
}
