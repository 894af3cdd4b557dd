//! `train` with other ways to look at states: independent latents, and selection that is learned.

use crate::desk::Desk;
use crate::train::json;
use serde_json::Value;

fn desk() -> Desk {
    let desk = Desk::new();
    let wave: Vec<f64> = (0..1920).map(|i| (1.7 * f64::from(i)).sin().abs()).collect();
    desk.array("points.npy", &[120, 16], &wave);
    desk
}

fn kind(desk: &Desk) -> Value {
    serde_json::from_str::<Value>(&desk.good("inspect m.spk --json")).unwrap()["kind"].clone()
}

#[test]
fn independent_latents_make_an_ordinary_model() {
    let desk = desk();
    let train =
        "train --model gsc --latents 3 --engine factored --iterations 5 --restarts 1 points.npy --out m.spk";
    desk.good(train);
    assert_eq!(kind(&desk), "gsc");
    for (extra, place) in [
        ("--batch 50", "--batch"),
        ("--slab full", "--slab full"),
        ("--temperature 3", "--temperature"),
        ("--sweeps 9", "--sweeps"),
        ("--cut on", "--cut on"),
        ("--precision f32", "--precision f32"),
    ] {
        desk.refused(&format!("{train} {extra}"), place);
    }
    desk.refused(&train.replace("gsc", "bsc"), "factored");
}

#[test]
fn selection_is_learned() {
    let desk = desk();
    for (name, more) in [
        ("bsc", "--max-active 3"),
        ("gsc", "--max-active 3"),
        ("ssmca", "--max-active 3 --sweeps 6"),
        ("gmm", ""),
    ] {
        for kernel in ["linear", "rbf", "sum"] {
            desk.good(&format!(
                "train --model {name} --latents 8 --selected 4 {more} --selection gp --kernel {kernel} --iterations 4 --restarts 1 \
                 points.npy --out m.spk"
            ));
            assert_eq!(json(&desk, "m.json")["settings"]["gp"]["kernel"], kernel);
            let found: Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
            assert_eq!(found["kind"], name);
            // The scores of a linear kernel are part of the model, and only those.
            assert_eq!(found["selection"] == "learned", kernel == "linear", "{name} {kernel}: {found}");
        }
    }
    let train =
        "train --model gsc --latents 8 --selected 4 --max-active 3 --iterations 4 points.npy --out m.spk";
    for (extra, place) in [
        ("--kernel rbf", "--kernel"),
        ("--kernel-rank 9", "--kernel-rank"),
        ("--selection gp --engine factored", "--selection gp"),
        ("--selection gp --batch 20", "--batch"),
        ("--selection gp --slab full", "--slab full"),
        ("--selection gp --holdout 0.1", "--holdout"),
        ("--selection gp --kernel cubic", "--kernel"),
        ("--selection gp --kernel rbf --states adaptive", "--states adaptive"),
    ] {
        desk.refused(&format!("{train} {extra}"), place);
    }
    desk.refused(&format!("{} --selection gp", train.replace("gsc", "mca")), "--selection gp");
}

/// The search of the model begins with learned scores, the model is otherwise what it is without them.
#[test]
fn searches_begin_with_learned_scores() {
    let desk = desk();
    let train = "train --model gsc --latents 24 --selected 10 --max-active 4 --states adaptive --iterations 4 points.npy";
    desk.good(&format!("{train} --out own.spk"));
    desk.good(&format!("{train} --selection gp --kernel linear --out m.spk"));
    assert_eq!(json(&desk, "m.json")["parameters"], json(&desk, "own.json")["parameters"]);
    let found: Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
    assert_eq!(found["selection"], "learned");
    desk.good("infer m.spk points.npy --out-dir found");
    desk.good("quantize m.spk --encoding i16 --out small.spk");
    let small: Value = serde_json::from_str(&desk.good("inspect small.spk --json")).unwrap();
    assert_eq!(small["selection"], "learned");
}
