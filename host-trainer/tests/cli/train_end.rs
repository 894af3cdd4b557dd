//! How `train` ends: the best iterate is kept, and it says when it should have gone on.

use crate::desk::Desk;
use crate::train::{json, numbers};
use serde_json::Value;
use spikelet::rng::Rng;

/// Twelve sources on six sensors, three or four on at a time: more than a truncated model with two on can explain.
fn desk(points: usize) -> Desk {
    let (desk, mut rng) = (Desk::new(), Rng::new(1));
    let w: Vec<f64> = (0..72).map(|_| rng.normal()).collect();
    let mut data = Vec::new();
    for _ in 0..points {
        let x = [(); 12].map(|()| if rng.uniform::<f64>() < 0.3 { rng.normal::<f64>() } else { 0.0 });
        for row in w.chunks_exact(12) {
            data.push(row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + 0.05 * rng.normal::<f64>());
        }
    }
    desk.array("Y.npy", &[points, 6], &data);
    desk
}

fn figures(model: &Value, key: &str) -> Vec<f64> {
    model["history"].as_array().unwrap().iter().filter_map(|step| step[key].as_f64()).collect()
}

fn warns(model: &Value, words: &str) -> bool {
    model["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(words))
}

/// Truncated EM may end below where it has been.
#[test]
fn the_best_iterate_is_kept_and_the_last_one_told() {
    let desk = desk(1000);
    let mut fell = 0;
    for seed in 1..=4 {
        desk.good(&format!(
            "train --model gsc --latents 12 --selected 5 --max-active 2 --no-singletons --iterations 60 --restarts 1 \
             --tolerance 0 --seed {seed} Y.npy --out m.spk"
        ));
        let model = json(&desk, "m.json");
        let history = figures(&model, "free_energy");
        let kept = model["kept"]["iteration"].as_u64().unwrap() as usize;
        let best = history.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // A millionth of a nat per point is rounding.
        assert!(history[kept] >= best - 1e-3, "{} {best}", history[kept]);
        assert_eq!(model["kept"]["free_energy"].as_f64().unwrap(), history[kept]);
        let last_is_worse = history[60] < best - 1e-3;
        assert_eq!(warns(&model, &format!("the model is that of iteration {kept}")), last_is_worse);
        fell += usize::from(last_is_worse);
        // What was written is what was kept: eval, in 32 bits, finds its free energy.
        let told: Value = serde_json::from_str(&desk.good("eval m.spk Y.npy --json")).unwrap();
        assert!((told["free_energy"].as_f64().unwrap() - history[kept] / 1000.0).abs() < 1e-4, "{told}");
    }
    assert!(fell > 0, "no run ended below its best: choose other data");
}

#[test]
fn a_curve_that_still_climbs_is_told() {
    let desk = desk(400);
    let line = "train --model gsc --latents 6 --restarts 1 Y.npy --out m.spk";
    let said = desk.good(&format!("{line} --iterations 6"));
    assert!(
        said.contains("warning: free energy was still rising") && said.contains("raise --iterations above 6")
    );
    assert!(warns(&json(&desk, "m.json"), "still rising"));
    desk.good(&format!("{line} --iterations 400"));
    assert!(!warns(&json(&desk, "m.json"), "still rising"));
}

/// Few points, many parameters: the points that are held out are explained worse long before the others are.
#[test]
fn held_out_points_end_a_run_that_overfits() {
    let desk = desk(150);
    for flags in ["--engine exact --latents 8", "--latents 8 --batch 30"] {
        let line = format!("train --model gsc {flags} --restarts 1 --iterations 100 --holdout 0.2 Y.npy");
        let said = desk.good(&format!("{line} --out m.spk"));
        assert!(said.contains("from 120 points of 6 dimensions, 30 more held out"), "{said}");
        let model = json(&desk, "m.json");
        let (held_out, kept) = (figures(&model, "held_out"), model["kept"]["iteration"].as_u64().unwrap());
        assert!(held_out.len() < 100, "it did not stop");
        let best = held_out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(held_out[kept as usize], best);
        assert_eq!(
            (&model["settings"]["holdout"], &model["held_out"]),
            (&Value::from(0.2), &Value::from(30))
        );
        // Interrupted or on other threads, the same bits.
        desk.good(&format!("{line} --threads 2 --checkpoint c.json --checkpoint-every 1 --out again.spk"));
        assert_eq!(
            numbers(&json(&desk, "again.json")["parameters"]["w"]),
            numbers(&model["parameters"]["w"])
        );
        desk.good(&format!("{line} --checkpoint c.json --resume --out resumed.spk"));
        assert_eq!(json(&desk, "resumed.json")["parameters"], model["parameters"]);
    }
    for (part, words) in
        [("0", "above 0"), ("0.6", "up to 0.5"), ("-1", "above 0"), ("0.001", "cannot be divided")]
    {
        let line = format!("train --model gsc --latents 2 --holdout {part} Y.npy --out n.spk");
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    }
}

/// Three or four latents are on at a time, where two may be, and all may.
#[test]
fn states_that_are_cut_off_are_told() {
    let desk = desk(400);
    desk.good("train --model gsc --latents 12 --selected 8 --max-active 2 --iterations 10 --restarts 1 Y.npy --out m.spk");
    let model = json(&desk, "m.json");
    assert!(warns(&model, "states are cut off by --max-active 2:"), "{}", model["warnings"]);
    desk.good("train --model gsc --latents 6 --iterations 10 --restarts 1 Y.npy --out m.spk");
    assert!(!warns(&json(&desk, "m.json"), "cut off"));
}
