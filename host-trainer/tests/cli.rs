//! The `spikelet` command as its users call it: files in a folder of their own, arguments, exit status.

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/desk.rs"]
mod desk;
#[path = "cli/eval.rs"]
mod eval;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/kinds.rs"]
mod kinds;
#[path = "cli/pictures.rs"]
mod pictures;
#[path = "cli/quantize.rs"]
mod quantize;
#[path = "cli/refused.rs"]
mod refused;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/sampling.rs"]
mod sampling;
#[path = "cli/sanity.rs"]
mod sanity;
#[path = "cli/separate.rs"]
mod separate;
#[path = "cli/train.rs"]
mod train;
#[path = "cli/train_data.rs"]
mod train_data;
#[path = "cli/train_end.rs"]
mod train_end;
#[path = "cli/train_files.rs"]
mod train_files;
#[path = "cli/train_kinds.rs"]
mod train_kinds;
#[path = "cli/train_resume.rs"]
mod train_resume;
#[path = "cli/train_signals.rs"]
mod train_signals;

use common::Case;
use desk::Desk;
use spikelet_trainer::data::{read_array, write_wav};
use std::fs;
use std::process::Stdio;

const GOLDEN: [&str; 21] = [
    "bsc_exact",
    "bsc_prior_per_latent",
    "bsc_truncated",
    "gsc_audio",
    "gsc_diag_independent",
    "gsc_diag_plain",
    "gsc_diag_singletons",
    "gsc_exact_d4",
    "gsc_exact_d6",
    "gsc_full",
    "gsc_full_exact",
    "gsc_hard_low_noise",
    "gsc_hard_parallel",
    "gsc_hard_prior",
    "gsc_overcomplete",
    "gsc_scalar",
    "linca_bars",
    "mca_bars",
    "mca_random",
    "nmf_bars",
    "nmf_random",
];

/// The tolerances of `tests/golden.rs`, where they are derived.
#[test]
fn golden_cases_through_import_and_infer() {
    for name in GOLDEN {
        let case = Case::load(name);
        let desk = Desk::new();
        let input = |names: [&str; 2]| {
            let path = names.map(|name| case.path(name)).into_iter().find(|path| path.exists()).unwrap();
            path.to_str().unwrap().to_string()
        };
        let [selected, max_active] = ["selected", "max_active"].map(|key| case.number(key).to_string());
        let (w, pi, sigma2) = (input(["W"; 2]), input(["pi"; 2]), input(["sigma2", "Sigma"]));
        let model = case.text("model");
        let slab = if model == "gsc" { Some((input(["mu"; 2]), input(["psi2", "Psi"]))) } else { None };
        let mut arguments = vec!["import", "--model", model, "--w", &w, "--pi", &pi];
        if let Some((mu, psi2)) = &slab {
            arguments.extend(["--mu", mu, "--psi2", psi2]);
        }
        arguments.extend(["--sigma2", &sigma2, "--selected", &selected, "--max-active", &max_active]);
        arguments.extend(["--selection", case.text("selection"), "--out", "m.spk"]);
        if !case.flag("singletons") {
            arguments.push("--no-singletons");
        }
        desk.good_with(&arguments);
        desk.good_with(&["infer", "m.spk", &input(["Y"; 2]), "--out-dir", "out"]);

        let (n, h) = (case.number("points"), case.number("latents"));
        let result = |name: &str, shape: &[usize]| {
            let array = read_array(desk.path("out").join(name)).unwrap();
            assert_eq!(array.shape, shape, "{name}");
            array.values
        };
        let worst = |found: &[f64], golden: &[f64], scale: &dyn Fn(f64) -> f64| {
            found.iter().zip(golden).fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs() / scale(*b)))
        };
        let (tolerance, for_evidence) = match name {
            "gsc_hard_low_noise" => (1e-2, 0.4),
            "gsc_hard_parallel" => (2e-2, 0.4),
            _ => (1e-4, 1e-3),
        };
        let golden = |name: &str| case.array(name).unwrap();
        let largest = golden("mean").iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let activity = worst(&result("activity.npy", &[n, h]), &golden("activity"), &|_| 1.0);
        let mean = worst(&result("mean.npy", &[n, h]), &golden("mean"), &|_| largest);
        let evidence =
            worst(&result("evidence.npy", &[n]), &golden("evidence"), &|v| (v.abs() / 100.0).max(1.0));
        assert!(activity <= tolerance && mean <= tolerance, "{name}: <s> {activity:e}, <s.z> {mean:e}");
        assert!(evidence <= for_evidence, "{name}: evidence {evidence:e}");
        let integers = |values: Vec<f64>| values.into_iter().map(|v| v as i64).collect::<Vec<_>>();
        let kept = result("selected.npy", &[n, case.number("selected")]);
        assert_eq!(integers(kept), case.integers("selected"), "{name}");
        let map = integers(result("map.npy", &[n, h]));
        assert!(name.contains("hard") || map == case.integers("map_state"), "{name}: MAP state");
        assert!(result("variance.npy", &[n, h]).iter().all(|&v| v >= 0.0), "{name}");
    }
}

#[test]
fn help_shows_an_example() {
    let desk = Desk::new();
    for command in ["", "import ", "infer ", "inspect ", "eval ", "export ", "report ", "demo "] {
        let help = desk.good(&format!("{command}--help"));
        assert!(help.contains("Example") && help.contains(&format!("spikelet {command}")), "{command}");
    }
    assert!(desk.good("--version").starts_with("spikelet "));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let desk = Desk::with_model();
    for line in [&["inspect", "model.spk"][..], &["--help"]] {
        let mut child = desk.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{line:?}");
    }
}

#[test]
fn defaults_are_exact_for_few_latents_and_truncated_for_many() {
    let desk = Desk::with_model();
    desk.array("wide.npy", &[2, 100], &(0..200).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    desk.good("import --model gsc --w wide.npy --sigma2 0.01 --out wide.spk");
    for (model, expected) in [("model.spk", [6, 6, 64]), ("wide.spk", [8, 3, 93 + 92])] {
        let json: serde_json::Value =
            serde_json::from_str(&desk.good(&format!("inspect {model} --json"))).unwrap();
        assert_eq!(["selected", "max_active", "states"].map(|key| json[key].as_u64().unwrap()), expected);
    }
}

#[test]
fn inspect_names_what_the_contract_names() {
    let desk = Desk::with_model();
    let bytes = fs::metadata(desk.path("model.spk")).unwrap().len();
    let text = desk.good("inspect model.spk --json");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, value) in [("dims", 4), ("latents", 6), ("blob_bytes", bytes), ("version", 1)] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!((&json["kind"], &json["encoding"]), (&"gsc".into(), &"f32".into()));
    assert_eq!((&json["groups"], &json["rate"]), (&serde_json::json!([]), &serde_json::Value::Null));
    assert_eq!(json["provenance"], format!("spikelet {} import of W.npy", env!("CARGO_PKG_VERSION")));
    assert!(json["arena_bytes"].as_u64().unwrap() > 0 && json["operations"].as_u64().unwrap() > 0);

    let human = desk.good("inspect model.spk");
    assert!(human.contains(&format!("{bytes} bytes")) && human.contains("import of W.npy"), "{human}");
    assert!(!human.contains('{'));
}

/// What inspect says about the other way to make the states is what that way costs when it is chosen.
#[test]
fn inspect_foretells_the_other_source_of_states() {
    let desk = Desk::with_model();
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --states table --out table.spk");
    let inspect = |model: &str| -> serde_json::Value {
        serde_json::from_str(&desk.good(&format!("inspect {model} --json"))).unwrap()
    };
    let (grown, table) = (inspect("model.spk"), inspect("table.spk"));
    assert_eq!((&grown["state_source"], &table["state_source"]), (&"grown".into(), &"table".into()));
    for key in ["grown", "table"] {
        assert_eq!(grown[key], table[key]);
    }
    for (model, key) in [(&grown, "grown"), (&table, "table")] {
        assert_eq!(model[key]["blob_bytes"], model["blob_bytes"]);
        assert_eq!(model[key]["operations"], model["operations"]);
    }
    // A full slab has only one way.
    desk.array("psi.npy", &[6, 6], &(0..36).map(|i| if i % 7 == 0 { 1.0 } else { 0.1 }).collect::<Vec<_>>());
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --psi2 psi.npy --out full.spk");
    assert!(inspect("full.spk")["grown"].is_null());
}

#[test]
fn threads_and_truncation() {
    let desk = Desk::with_model();
    for (folder, flags) in
        [("one", "--threads 1"), ("two", "--threads 2"), ("seven", "--threads 7"), ("all", "")]
    {
        desk.good(&format!("infer model.spk Y.npy --out-dir {folder} {flags}"));
    }
    for name in ["selected", "activity", "mean", "variance", "evidence", "map"] {
        let read = |folder: &str| fs::read(desk.path(folder).join(name).with_extension("npy")).unwrap();
        for folder in ["two", "seven", "all"] {
            assert!(read("one") == read(folder), "{name} differs with {folder} threads");
        }
    }
    // Fewer latents kept: the same as a model imported that way; --max-active follows --selected.
    desk.good("infer model.spk Y.npy --out-dir fewer --selected 3");
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --selected 3 --max-active 3 --out fewer.spk");
    desk.good("infer fewer.spk Y.npy --out-dir imported");
    for name in ["selected.npy", "mean.npy", "evidence.npy"] {
        let read = |folder: &str| fs::read(desk.path(folder).join(name)).unwrap();
        assert!(read("fewer") == read("imported"), "{name}");
    }
    let evidence = |folder: &str| read_array(desk.path(folder).join("evidence.npy")).unwrap().values;
    let mut pairs = evidence("one").into_iter().zip(evidence("fewer"));
    assert!(pairs.all(|(all, fewer)| all >= fewer - 1e-5));
}

#[test]
fn tables_and_recordings_are_data_too() {
    let desk = Desk::with_model();
    let values: Vec<f32> =
        read_array(desk.path("Y.npy")).unwrap().values.iter().map(|&y| 0.5 * y as f32).collect();
    desk.array("Y.npy", &[20, 4], &values.iter().map(|&y| f64::from(y)).collect::<Vec<_>>());
    let rows: Vec<String> =
        values.chunks(4).map(|row| format!("{},{},{},{}\n", row[0], row[1], row[2], row[3])).collect();
    fs::write(desk.path("Y.csv"), rows.concat()).unwrap();
    write_wav(desk.path("Y.wav"), 8000, 4, &values).unwrap();
    let mut answers = Vec::new();
    for ending in ["npy", "csv", "wav"] {
        desk.good(&format!("infer model.spk Y.{ending} --out-dir {ending}"));
        answers.push(fs::read(desk.path(ending).join("mean.npy")).unwrap());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}
