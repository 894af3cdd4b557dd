//! The `spikelet` command as its users call it: files in a folder of their own, arguments, exit status.

#[path = "cli/advise.rs"]
mod advise;
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
#[path = "cli/front_end.rs"]
mod front_end;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/kinds.rs"]
mod kinds;
#[path = "cli/masks.rs"]
mod masks;
#[path = "cli/pictures.rs"]
mod pictures;
#[path = "cli/quantize.rs"]
mod quantize;
#[path = "cli/refused.rs"]
mod refused;
#[path = "cli/refused_files.rs"]
mod refused_files;
#[path = "cli/refused_lines.rs"]
mod refused_lines;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/sampling.rs"]
mod sampling;
#[path = "cli/sanity.rs"]
mod sanity;
#[path = "cli/separate.rs"]
mod separate;
#[path = "cli/spatial.rs"]
mod spatial;
#[path = "cli/spectrum.rs"]
mod spectrum;
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
#[path = "cli/train_selection.rs"]
mod train_selection;
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
fn defaults_are_adaptive_and_subsets_exact_for_few_latents() {
    let desk = Desk::with_model();
    desk.array("wide.npy", &[2, 100], &(0..200).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    // Adaptive: four expansions of as many candidates, and the reference.
    for (w, states, expected) in [
        ("W.npy", "", [6, 6, 1 + 4 * 6]),
        ("wide.npy", "", [20, 12, 1 + 4 * 20]),
        ("wide.npy", "--expansions 2", [20, 12, 1 + 2 * 20]),
        ("W.npy", "--states subsets", [6, 6, 64]),
        ("wide.npy", "--states subsets", [8, 3, 93 + 92]),
    ] {
        desk.good(&format!("import --model gsc --w {w} --sigma2 0.01 {states} --out m.spk"));
        let json: serde_json::Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
        let sizes = ["selected", "max_active", "states"].map(|key| json[key].as_u64().unwrap());
        assert_eq!(sizes, expected, "{w} {states}");
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

#[test]
fn inspect_names_the_source_of_states() {
    let desk = Desk::with_model();
    let psi: Vec<f64> = (0..36).map(|i| if i % 7 == 0 { 1.0 } else { 0.1 }).collect();
    desk.array("psi.npy", &[6, 6], &psi);
    for (flags, source) in [
        ("", "adaptive"),
        ("--states adaptive", "adaptive"),
        ("--states subsets", "subsets"),
        ("--states table", "table"),
        // A full slab has only one way; these flags are about the papers' sets.
        ("--psi2 psi.npy", "table"),
        ("--no-singletons", "subsets"),
        ("--selection independent", "subsets"),
    ] {
        desk.good(&format!("import --model gsc --w W.npy --sigma2 0.01 {flags} --out m.spk"));
        let json: serde_json::Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
        assert_eq!(json["state_source"], source, "{flags}");
        assert!(json.get("grown").is_none() && json.get("table").is_none(), "{flags}");
    }
}

/// The states that infer lists, and the posterior over exactly these.
mod states {
    use super::*;
    use spikelet_trainer::data::Array;

    fn read(desk: &Desk, folder: &str, name: &str) -> Array {
        read_array(desk.path(folder).join(name)).unwrap()
    }

    /// Latents of a mask over a row of selected.npy.
    fn latents(mask: f64, row: &[f64]) -> Vec<usize> {
        let mask = mask as u64;
        (0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| row[bit] as usize).collect()
    }

    /// ln p(y, s) of spike-and-slab latents with mu = 0, psi = 1, without what all states share: -1/2 (ln det M - v^T M^-1 v)
    /// over the latents that are on, by elimination.
    fn joint(w: &[f64], h: usize, y: &[f64], noise: f64, logit: f64, on: &[usize]) -> f64 {
        let entry = |d: usize, i: usize| w[d * h + i];
        let k = on.len();
        let mut m: Vec<Vec<f64>> = on
            .iter()
            .map(|&a| {
                let g = |&b: &usize| (0..y.len()).map(|d| entry(d, a) * entry(d, b)).sum::<f64>() / noise;
                let own = (0..y.len()).map(|d| entry(d, a) * y[d]).sum::<f64>() / noise;
                on.iter().map(|b| g(b) + f64::from(u8::from(a == *b))).chain([own]).collect()
            })
            .collect();
        let mut sum = logit * k as f64;
        for p in 0..k {
            let pivot = m[p].clone();
            sum += 0.5 * (pivot[k] * pivot[k] / pivot[p] - pivot[p].ln());
            for row in &mut m[p + 1..] {
                let factor = row[p] / pivot[p];
                row.iter_mut().zip(&pivot).for_each(|(entry, above)| *entry -= factor * above);
            }
        }
        sum
    }

    #[test]
    fn posteriors_are_over_exactly_those_that_are_listed() {
        let desk = Desk::new();
        let wave = |n: usize, f: f64| (0..n).map(|i| (f * (i * i) as f64).sin()).collect::<Vec<_>>();
        let (d, h, n, noise, pi) = (8, 24, 40, 0.05, 0.1f64);
        desk.array("W.npy", &[d, h], &wave(d * h, 1.1));
        desk.array("Y.npy", &[n, d], &wave(n * d, 0.7));
        desk.good(
            "import --model gsc --w W.npy --pi 0.1 --sigma2 0.05 --selected 12 --max-active 4 --out m.spk",
        );
        desk.good("import --model gsc --w W.npy --pi 0.1 --sigma2 0.05 --selected 5 --max-active 3 --states table --no-singletons --out t.spk");
        let (w, y) =
            (read_array(desk.path("W.npy")).unwrap().values, read_array(desk.path("Y.npy")).unwrap().values);
        for (model, flags, most) in [
            ("m.spk", "", 1 + 4 * 12),
            ("m.spk", "--expansions 1 --threads 1", 13),
            ("m.spk", "--expansions 16 --threads 3", 1 + 16 * 12),
            ("m.spk", "--states subsets --selected 6 --max-active 3", 42),
            ("t.spk", "", 26),
        ] {
            desk.good(&format!("infer {model} Y.npy --out-dir out --write-states {flags}"));
            let [selected, activity, evidence, states] =
                ["selected.npy", "activity.npy", "evidence.npy", "states.npy"]
                    .map(|name| read(&desk, "out", name));
            let width = selected.shape[1];
            assert_eq!(states.shape, [states.values.len() / 2, 2]);
            let rows: Vec<(usize, f64)> =
                states.values.chunks_exact(2).map(|row| (row[0] as usize, row[1])).collect();
            assert!(rows.is_sorted_by_key(|row| row.0), "{flags}");
            let constant = h as f64 * (1.0 - pi).ln() - 0.5 * d as f64 * (std::f64::consts::TAU * noise).ln();
            for point in 0..n {
                let row = &selected.values[point * width..][..width];
                let sample = &y[point * d..][..d];
                let listed: Vec<Vec<usize>> =
                    rows.iter().filter(|(at, _)| *at == point).map(|(_, mask)| latents(*mask, row)).collect();
                assert!(!listed.is_empty() && listed.len() <= most, "{flags}: {}", listed.len());
                let mut distinct = listed.clone();
                distinct.sort();
                distinct.dedup();
                assert_eq!(distinct.len(), listed.len(), "{flags}: listed twice");
                let logit = (pi / (1.0 - pi)).ln();
                let joints: Vec<f64> =
                    listed.iter().map(|on| joint(&w, h, sample, noise, logit, on)).collect();
                let top = joints.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = joints.iter().map(|joint| (joint - top).exp()).sum();
                let energy = sample.iter().map(|y| y * y).sum::<f64>() / noise;
                let expected = constant - 0.5 * energy + top + total.ln();
                assert!(
                    (evidence.values[point] - expected).abs() < 1e-3 * expected.abs().max(1.0),
                    "{flags} {point}"
                );
                for latent in 0..h {
                    let on = listed.iter().zip(&joints).filter(|(on, _)| on.contains(&latent));
                    let exact = on.map(|(_, joint)| (joint - top).exp()).sum::<f64>() / total;
                    assert!(
                        (activity.values[point * h + latent] - exact).abs() < 1e-4,
                        "{flags} {point} {latent}"
                    );
                }
            }
        }
        // The same with any number of threads, in as many pieces as it takes.
        for threads in [1, 5] {
            desk.good(&format!(
                "infer m.spk Y.npy --out-dir threads{threads} --write-states --threads {threads}"
            ));
        }
        let bytes = |folder: &str| fs::read(desk.path(folder).join("states.npy")).unwrap();
        assert!(bytes("threads1") == bytes("threads5"));
        desk.good("infer m.spk Y.npy --out-dir without");
        assert!(!desk.path("without").join("states.npy").exists());
    }

    #[test]
    fn what_masks_cannot_say_is_refused() {
        let desk = Desk::new();
        let wave = |n: usize| (0..n).map(|i| (1.1 * (i * i) as f64).sin()).collect::<Vec<_>>();
        desk.array("W.npy", &[8, 80], &wave(640));
        desk.array("Y.npy", &[3, 8], &wave(24));
        let import = |flags: &str| {
            desk.good(&format!("import --model gsc --w W.npy --sigma2 0.1 {flags} --out m.spk"))
        };
        for (flags, infer, why) in [
            ("", "--engine gibbs --sweeps 10", "a sampled posterior has draws, not a list of states"),
            ("--states subsets", "", "states of latents that are not selected have no place"),
            (
                "--no-singletons --selected 64 --max-active 1",
                "",
                "64 selected latents are more than the 63 bits of a mask",
            ),
            ("--no-singletons --selected 60 --max-active 6", "", "states a point are too many to write"),
        ] {
            import(flags);
            let line = format!("infer m.spk Y.npy --out-dir new --write-states {infer}");
            let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{flags}: {errors}");
            assert!(errors.contains(why) && errors.contains("--write-states"), "{flags}: {errors}");
            assert!(!desk.path("new").exists());
        }
    }
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
