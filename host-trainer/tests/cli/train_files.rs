//! The files of `train`: which it refuses to overwrite, which it creates.

use crate::desk::Desk;
use std::fs;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.array("Y.npy", &[40, 2], &(0..80).map(|i| (1.7 * f64::from(i)).sin()).collect::<Vec<_>>());
    desk
}

#[test]
fn results_that_would_replace_each_other_or_an_input_are_refused() {
    let desk = desk();
    fs::copy(desk.path("Y.npy"), desk.path("Y.json")).unwrap();
    fs::copy(desk.path("Y.npy"), desk.path("model.json.npy")).unwrap();
    let train = |rest: &str| format!("train --model gsc --latents 2 --iterations 2 {rest}");
    for (rest, words) in [
        ("Y.npy --out m.json", "overwritten by its own description: m.json: name it MODEL.spk"),
        ("Y.npy --out m.JSON", "overwritten by its own description"),
        ("Y.npy --out Y.npy", "replace a file it is made from: Y.npy"),
        ("Y.npy --out ./Y.npy", "replace a file it is made from"),
        ("model.json.npy --out m.spk --checkpoint model.json.npy", "replace a file it is made from"),
        ("Y.npy --out m.spk --checkpoint m.spk", "overwritten by the result: m.spk"),
        ("Y.npy --out m.spk --checkpoint m.json", "overwritten by the result: m.json"),
        ("Y.npy --out new/m.spk --checkpoint new/m.json", "overwritten by the result"),
    ] {
        desk.refused(&train(rest), words);
    }
}

#[test]
fn the_folder_of_the_model_is_created_and_stays_only_with_a_model() {
    let desk = desk();
    desk.good("train --model gsc --latents 2 --iterations 2 Y.npy --out new/models/m.spk");
    assert!(desk.path("new/models/m.spk").exists() && desk.path("new/models/m.json").exists());
    desk.refused("train --model gsc --latents 2 missing.npy --out other/models/m.spk", "no such file");
    desk.refused("train --model gsc --latents 2 Y.npy --out Y.npy/m.spk", "file");
}
