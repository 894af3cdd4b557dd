//! `spikelet infer --engine gibbs`, and models that can only be sampled.

use super::Desk;
use spikelet_trainer::data::read_array;
use std::fs;

const NAMES: [&str; 6] = ["selected", "activity", "mean", "variance", "evidence", "map"];

fn array(desk: &Desk, folder: &str, name: &str) -> Vec<f64> {
    read_array(desk.path(folder).join(name).with_extension("npy")).unwrap().values
}

fn bytes(desk: &Desk, folder: &str) -> Vec<Vec<u8>> {
    NAMES.map(|name| fs::read(desk.path(folder).join(name).with_extension("npy")).unwrap()).into()
}

/// Results depend on the seed, not on the threads; they are near those of all states.
#[test]
fn sampled_posteriors_are_near_those_of_all_states() {
    let desk = Desk::with_model();
    desk.good("import --model gsc --w W.npy --sigma2 0.3 --no-singletons --out noisy.spk");
    desk.good("infer noisy.spk Y.npy --out-dir all");
    let gibbs = "infer noisy.spk Y.npy --engine gibbs --sweeps 4000 --chains 2";
    desk.good(&format!("{gibbs} --seed 1 --threads 1 --out-dir one"));
    desk.good(&format!("{gibbs} --seed 1 --threads 3 --out-dir three"));
    desk.good(&format!("{gibbs} --seed 2 --burn-in 0.25 --thinning 2 --start random --out-dir other"));
    assert!(bytes(&desk, "one") == bytes(&desk, "three"));
    assert!(bytes(&desk, "one") != bytes(&desk, "other"));
    for name in ["activity", "mean"] {
        for folder in ["one", "other"] {
            let pairs = array(&desk, "all", name).into_iter().zip(array(&desk, folder, name));
            let worst = pairs.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
            // 0.5 / sqrt(4000) for an activity of 1/2, four times for chains that mix slowly, five errors
            assert!(worst < 0.15, "{folder} {name}: {worst}");
        }
    }
    let pairs = array(&desk, "one", "evidence").into_iter().zip(array(&desk, "all", "evidence"));
    assert!(pairs.into_iter().all(|(bound, evidence)| bound <= evidence + 1e-3));
}

/// Figures of data by sampling are those of all states, as far as they are averages.
#[test]
fn eval_by_sampling() {
    let desk = Desk::with_model();
    desk.good("import --model gsc --w W.npy --sigma2 0.3 --no-singletons --out noisy.spk");
    let eval = |flags: &str| -> serde_json::Value {
        serde_json::from_str(&desk.good(&format!("eval noisy.spk Y.npy --json {flags}"))).unwrap()
    };
    let (all, drawn) = (eval(""), eval("--engine gibbs --sweeps 2000 --seed 1"));
    let figure = |facts: &serde_json::Value, name: &str| facts[name].as_f64().unwrap();
    assert!(figure(&drawn, "free_energy") < figure(&all, "free_energy"));
    // 20 points and 6 latents: errors of activities (0.5 / sqrt(1000), twice that for slow chains) mostly cancel.
    assert!((figure(&drawn, "sparsity") - figure(&all, "sparsity")).abs() < 0.1);
    assert!((figure(&drawn, "snr_db") - figure(&all, "snr_db")).abs() < 0.2);
    assert!(drawn["quality"].is_null() && !all["quality"].is_null());
}

/// More latents than any enumeration could look at.
#[test]
fn forty_latents_at_once() {
    let desk = Desk::new();
    let wave = |n: usize, f: f64| (0..n).map(|i| (f * (i * i) as f64).sin()).collect::<Vec<_>>();
    desk.array("W.npy", &[30, 50], &wave(1500, 1.1));
    desk.array("Y.npy", &[5, 30], &wave(150, 0.7));
    desk.good("import --model gsc --w W.npy --sigma2 0.05 --states subsets --selected 40 --out m.spk");
    desk.good("infer m.spk Y.npy --engine gibbs --sweeps 60 --extra 2 --out-dir out");
    assert_eq!(array(&desk, "out", "selected").len(), 5 * 40);
    assert!(array(&desk, "out", "mean").iter().all(|v| v.is_finite()));
    // Not held to the three that the model's list of states has.
    let on = array(&desk, "out", "map").chunks(50).map(|row| row.iter().sum::<f64>()).fold(0.0, f64::max);
    assert!(on > 3.0, "{on}");
    // Where it is held to them, a chain that starts at the best one finds no other.
    desk.good("infer m.spk Y.npy --engine gibbs --sweeps 1 --max-active 3 --start best --out-dir best");
    desk.good("infer m.spk Y.npy --out-dir listed");
    assert_eq!(array(&desk, "best", "map"), array(&desk, "listed", "map"));
    desk.good("infer m.spk Y.npy --engine gibbs --sweeps 60 --max-active 2 --out-dir two");
    assert!(array(&desk, "two", "map").chunks(50).all(|row| row.iter().sum::<f64>() <= 2.0));
}

#[test]
fn ssmca_through_all_commands() {
    let desk = Desk::new();
    let wave = |n: usize| (0..n).map(|i| (1.7 * i as f64).sin().abs()).collect::<Vec<_>>();
    desk.array("W.npy", &[4, 6], &wave(24));
    desk.array("Y.npy", &[20, 4], &wave(80));
    let told =
        desk.good("import --model ssmca --w W.npy --mu 1 --psi2 0.5 --sigma2 0.05 --selected 4 --out m.spk");
    assert!(told.contains("100 sweeps"), "{told}");
    let json = |line: &str| -> serde_json::Value { serde_json::from_str(&desk.good(line)).unwrap() };
    let facts = json("inspect m.spk --json");
    assert_eq!((&facts["kind"], &facts["selection"]), (&"ssmca".into(), &"cosine".into()));
    assert_eq!(facts["operations"], facts["gibbs"]["operations"]);
    assert_eq!(facts["arena_bytes"], facts["gibbs"]["arena_bytes"]);
    assert!(desk.good("inspect m.spk").contains("multiply-adds with 100 sweeps"));
    // Sampled without being asked, and the same when asked.
    desk.good("infer m.spk Y.npy --out-dir out");
    desk.good("infer m.spk Y.npy --out-dir same --engine gibbs --sweeps 100 --seed 0");
    assert!(bytes(&desk, "out") == bytes(&desk, "same"));
    assert!(array(&desk, "out", "activity").iter().all(|a| (0.0..=1.0).contains(a)));
    let refused = desk.run(&["infer", "m.spk", "Y.npy", "--out-dir", "new", "--start", "best"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(2)
            && told.contains("ssmca cannot be listed: --start best: choose greedy or random"),
        "{told}"
    );
    let figures = json("eval m.spk Y.npy --json");
    assert!(figures["snr_db"].as_f64().unwrap() > 3.0 && figures["quality"].is_null(), "{figures}");
    desk.good("export m.spk --format c --out m.h");
    let header = fs::read_to_string(desk.path("m.h")).unwrap();
    assert!(header.contains("Kind ssmca"));
    assert!(header.contains(&format!("#define M_STATE_SIZE {}UL", facts["arena_bytes"])));
}

#[test]
fn inspect_bounds_the_work_of_sampling() {
    let desk = Desk::with_model();
    let facts: serde_json::Value = serde_json::from_str(&desk.good("inspect model.spk --json")).unwrap();
    let number = |key: &str| facts["gibbs"][key].as_u64().unwrap();
    assert_eq!(number("sweeps"), 100);
    assert!(
        number("operations") > 100 * number("operations_per_sweep") && number("operations_per_sweep") > 36
    );
    assert!(number("arena_bytes") > 0 && number("operations_refinement") > 0);
}
