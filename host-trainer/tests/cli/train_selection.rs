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
    for (name, more) in [("bsc", ""), ("gsc", ""), ("ssmca", " --sweeps 6")] {
        desk.good(&format!(
            "train --model {name} --latents 8 --selected 4 --max-active 3 --selection gp --kernel linear --iterations 4 \
             --restarts 1 points.npy --out m.spk{more}"
        ));
        assert_eq!(json(&desk, "m.json")["settings"]["gp"]["kernel"], "linear");
        assert_eq!(kind(&desk), name);
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
    ] {
        desk.refused(&format!("{train} {extra}"), place);
    }
    desk.refused(&format!("{} --selection gp", train.replace("gsc", "mca")), "--selection gp");
}
