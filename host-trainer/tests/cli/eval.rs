//! `spikelet eval` against golden vectors and figures computed here from their definitions.

use crate::GOLDEN;
use crate::common::{Case, options, parameters};
use crate::desk::Desk;
use serde_json::Value;
use spikelet_trainer::blob;
use spikelet_trainer::data::{read_array, write_wav};
use spikelet_trainer::metrics::{amari, si_sdr_db};
use spikelet_trainer::prepare::Prepared;
use std::fs;

impl Desk {
    fn eval(&self, rest: &str) -> Value {
        serde_json::from_str(&self.good(&format!("eval {rest} --json"))).unwrap()
    }

    /// The model of a golden case, m.spk.
    fn golden_model(&self, case: &Case) {
        let parameters = parameters(case);
        let prepared = Prepared::new(&parameters, &options(case)).unwrap();
        fs::write(self.path("m.spk"), blob::write(&prepared, &parameters.slab_cov, "").unwrap()).unwrap();
    }

    /// What `infer` writes, for the same points.
    fn inferred(&self, model: &str, data: &str, name: &str) -> Vec<f64> {
        self.good(&format!("infer {model} {data} --out-dir inferred"));
        read_array(self.path("inferred").join(name)).unwrap().values
    }
}

fn number(json: &Value, key: &str) -> f64 {
    json[key].as_f64().unwrap_or_else(|| panic!("{key} of {json}"))
}

fn numbers(json: &Value, key: &str) -> Vec<f64> {
    json[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} where {expected} is expected");
}

/// Free energy: the tolerance of single points in `tests/golden.rs`, relative where rounding y and W to 32 bits shows.
#[test]
fn golden_quality_and_free_energy() {
    for name in GOLDEN {
        let case = Case::load(name);
        let desk = Desk::new();
        desk.golden_model(&case);
        let json = desk.eval(&format!("m.spk {}", case.path("Y").display()));
        assert_eq!(json["points"], case.number("points"), "{name}");
        let golden = |name: &str| mean(&case.array(name).unwrap());
        let allowed = match name {
            "gsc_hard_low_noise" => 4e-3 * golden("evidence").abs(),
            "gsc_hard_parallel" => 2e-2,
            _ => 1e-4,
        };
        close(number(&json, "free_energy"), golden("evidence"), allowed);
        match name {
            // All states are too many, or not in the table.
            "gsc_overcomplete" | "gsc_full" => {
                assert!(json.get("quality").is_none(), "{name}");
                assert!(json["notes"][0].as_str().unwrap().starts_with("no quality: "), "{name}");
            }
            _ => close(number(&json, "quality"), golden("quality"), 1e-4),
        }
        let sum = case.array("activity").unwrap().iter().sum::<f64>() / case.number("points") as f64;
        close(number(&json, "sparsity"), sum, if name.contains("hard") { 2e-2 } else { 1e-4 });
    }
}

#[test]
fn golden_amari() {
    let case = Case::load("amari");
    let (h, desk) = (case.number("latents"), Desk::new());
    let [w, truth, index] = ["W", "W_true", "index"].map(|name| case.array(name).unwrap());
    desk.array("Y.npy", &[1, h], &vec![1.0; h]);
    for (n, &expected) in index.iter().enumerate() {
        let [w, truth] = [&w, &truth].map(|values| &values[n * h * h..][..h * h]);
        close(amari(w, truth, h, h).unwrap(), expected, 1e-9);
        desk.array("W.npy", &[h, h], w);
        desk.array("truth.npy", &[h, h], truth);
        desk.good("import --model gsc --w W.npy --sigma2 0.01 --out m.spk");
        // The model holds W in 32 bits.
        close(number(&desk.eval("m.spk Y.npy --truth truth.npy"), "amari"), expected, 1e-5);
    }
}

#[test]
fn figures_follow_from_what_infer_writes() {
    let desk = Desk::with_model();
    desk.array("sigma2.npy", &[4], &[0.01, 0.02, 0.03, 0.04]);
    desk.good("import --model gsc --w W.npy --sigma2 sigma2.npy --max-active 2 --states subsets --out m.spk");
    let json = desk.eval("m.spk Y.npy");
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["free_energy", "noise", "points", "quality", "snr_db", "sparsity", "usage"]);
    let (w, y) =
        (read_array(desk.path("W.npy")).unwrap().values, read_array(desk.path("Y.npy")).unwrap().values);

    let evidence = desk.inferred("m.spk", "Y.npy", "evidence.npy");
    close(number(&json, "free_energy"), mean(&evidence), 1e-9);
    let all = desk.inferred("m.spk --max-active 6", "Y.npy", "evidence.npy");
    let quality: Vec<f64> = evidence.iter().zip(all).map(|(kept, all)| (kept - all).exp()).collect();
    assert!(mean(&quality) < 0.999);
    close(number(&json, "quality"), mean(&quality), 1e-6);
    // Adaptive states are compared with all states, too.
    let flags = "--states adaptive --max-active 6 --expansions 1";
    let found = desk.inferred(&format!("m.spk {flags}"), "Y.npy", "evidence.npy");
    let all = desk.inferred("m.spk --max-active 6", "Y.npy", "evidence.npy");
    let of_search: Vec<f64> = found.iter().zip(all).map(|(kept, all)| (kept - all).exp()).collect();
    close(number(&desk.eval(&format!("m.spk Y.npy {flags}")), "quality"), mean(&of_search), 1e-6);

    let activity = desk.inferred("m.spk", "Y.npy", "activity.npy");
    let usage = numbers(&json, "usage");
    for (h, usage) in usage.iter().enumerate() {
        close(*usage, activity.iter().skip(h).step_by(6).sum::<f64>() / 20.0, 1e-12);
    }
    close(number(&json, "sparsity"), usage.iter().sum(), 1e-12);
    for (found, expected) in numbers(&json, "noise").into_iter().zip([0.01, 0.02, 0.03, 0.04]) {
        close(found, expected, 1e-8);
    }
    let x = desk.inferred("m.spk", "Y.npy", "mean.npy");
    let rebuilt = product(&w, &x, 4, 6);
    close(number(&json, "snr_db"), snr(&y, &rebuilt), 1e-4);

    // A table of states says the same, though it does not reach all of them.
    desk.good("import --model gsc --w W.npy --sigma2 sigma2.npy --max-active 2 --states table --out t.spk");
    close(number(&desk.eval("t.spk Y.npy"), "quality"), mean(&quality), 1e-5);
    // Exact inference; and a truncation chosen here.
    assert_eq!(desk.eval("model.spk Y.npy --states subsets")["quality"], 1.0);
    close(
        number(&desk.eval("m.spk Y.npy --selected 6 --max-active 6"), "free_energy"),
        mean(&desk.inferred("m.spk --max-active 6", "Y.npy", "evidence.npy")),
        1e-9,
    );
    close(
        number(&desk.eval("model.spk Y.npy --selected 3"), "free_energy"),
        mean(&desk.inferred("model.spk --selected 3", "Y.npy", "evidence.npy")),
        1e-9,
    );
    close(number(&desk.eval("model.spk Y.npy"), "noise"), 0.01, 1e-9);
}

/// W x for every row of x.
fn product(w: &[f64], x: &[f64], d: usize, h: usize) -> Vec<f64> {
    let row = |x: &[f64]| (0..d).map(|i| (0..h).map(|k| w[i * h + k] * x[k]).sum()).collect::<Vec<f64>>();
    x.chunks(h).flat_map(row).collect()
}

fn snr(signal: &[f64], estimate: &[f64]) -> f64 {
    let error: f64 = signal.iter().zip(estimate).map(|(a, b)| (a - b).powi(2)).sum();
    10.0 * (signal.iter().map(|a| a * a).sum::<f64>() / error).log10()
}

/// 3 sources that take turns on 2 sensors: sources.npy, clean.npy, noisy.npy and a model of them, m.spk.
fn scene(points: usize) -> Desk {
    let desk = Desk::new();
    let w = [1.0, 0.0, 0.7, 0.0, 1.0, 0.7];
    let wave = |n: usize, k: usize| (0.37 * (n + 5 * k) as f64).sin() + 2.0;
    let sources: Vec<f64> =
        (0..3 * points).map(|at| if at / 3 % 3 == at % 3 { wave(at / 3, at % 3) } else { 0.0 }).collect();
    let clean = product(&w, &sources, 2, 3);
    let noisy: Vec<f64> = clean.iter().enumerate().map(|(n, y)| y + 0.03 * (1.9 * n as f64).sin()).collect();
    desk.array("W.npy", &[2, 3], &w);
    desk.array("sources.npy", &[points, 3], &sources);
    desk.array("clean.npy", &[points, 2], &clean);
    desk.array("noisy.npy", &[points, 2], &noisy);
    desk.good("import --model gsc --w W.npy --pi 0.1 --psi2 4 --sigma2 0.0005 --out m.spk");
    desk
}

#[test]
fn references() {
    let desk = scene(300);
    let read = |name: &str| read_array(desk.path(name)).unwrap().values;
    let (clean, noisy) = (read("clean.npy"), read("noisy.npy"));
    let rebuilt = product(&read("W.npy"), &desk.inferred("m.spk", "noisy.npy", "mean.npy"), 2, 3);

    let json = desk.eval("m.spk noisy.npy --reference clean.npy");
    close(number(&json, "reference_snr_db"), snr(&clean, &rebuilt), 1e-3);
    close(number(&json, "noisy_snr_db"), snr(&clean, &noisy), 1e-9);
    assert!(number(&json, "reference_snr_db") > number(&json, "noisy_snr_db"), "{json}");
    let error = clean.iter().zip(&rebuilt).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 600.0;
    let range = clean.iter().fold(0.0f64, |largest, &y| largest.max(y)); // the smallest is 0
    close(number(&json, "psnr_db"), 10.0 * (range * range / error).log10(), 1e-3);
    assert!(json.get("si_sdr_db").is_none());
    let peak = desk.eval("m.spk noisy.npy --reference clean.npy --peak 10");
    close(number(&peak, "psnr_db"), 10.0 * (100.0 / error).log10(), 1e-3);

    // Sources in another order, negated; the model's are 0 1 2.
    let sources = read("sources.npy");
    let shuffled: Vec<f64> = sources.chunks(3).flat_map(|x| [-x[2], 9.0 * x[0], x[1]]).collect();
    desk.array("shuffled.npy", &[300, 3], &shuffled);
    let json = desk.eval("m.spk noisy.npy --reference shuffled.npy");
    assert_eq!(numbers(&json, "si_sdr_latents"), [2.0, 0.0, 1.0]);
    assert!(numbers(&json, "si_sdr_db").iter().all(|&ratio| ratio > 25.0), "{json}");
    assert!(["psnr_db", "reference_snr_db", "notes"].iter().all(|key| json.get(key).is_none()), "{json}");

    // Fewer sources than latents, one of them silent.
    let two: Vec<f64> = sources.chunks(3).flat_map(|x| [0.0, x[1]]).collect();
    desk.array("two.npy", &[300, 2], &two);
    let json = desk.eval("m.spk noisy.npy --reference two.npy --reference-is sources");
    assert_eq!((&json["si_sdr_db"][0], &json["si_sdr_latents"][0]), (&Value::Null, &Value::Null));
    assert_eq!(json["si_sdr_latents"][1], 1);
    let text = desk.good("eval m.spk noisy.npy --reference two.npy --reference-is sources");
    assert!(text.contains("source 0           silent\n") && text.contains("dB (latent 1)\n"), "{text}");

    // As many sources as dimensions: both, and a note; or what was asked for.
    desk.array("square.npy", &[2, 2], &[1.0, 0.0, 0.0, 1.0]);
    desk.good("import --model gsc --w square.npy --sigma2 0.01 --out square.spk");
    let both = desk.eval("square.spk noisy.npy --reference clean.npy");
    assert!(both["notes"][0].as_str().unwrap().contains("--reference-is"), "{both}");
    for (flag, there, absent) in
        [("clean", "reference_snr_db", "si_sdr_db"), ("sources", "si_sdr_db", "psnr_db")]
    {
        assert!(both.get(there).is_some() && both.get(absent).is_some(), "{both}");
        let json = desk.eval(&format!("square.spk noisy.npy --reference clean.npy --reference-is {flag}"));
        assert!(json.get(there).is_some() && json.get(absent).is_none(), "{json}");
        assert!(json.get("notes").is_none());
    }

    // Recordings have no peak ratio, unless asked for.
    let wav = |name: &str, values: &[f64]| {
        let samples: Vec<f32> = values.iter().map(|&y| 0.25 * y as f32).collect();
        write_wav(desk.path(name), 8000, 2, &samples).unwrap();
    };
    wav("clean.wav", &clean);
    wav("noisy.wav", &noisy);
    let json = desk.eval("m.spk noisy.wav --reference clean.wav");
    assert!(json.get("psnr_db").is_none() && number(&json, "reference_snr_db") > 10.0, "{json}");
    assert!(desk.eval("m.spk noisy.wav --reference clean.wav --peak 1").get("psnr_db").is_some());
}

/// More points than one thread takes at once.
#[test]
fn the_figures_do_not_depend_on_threads() {
    let desk = scene(9000);
    for reference in ["clean", "sources"] {
        let line = format!("eval m.spk noisy.npy --max-active 2 --json --reference {reference}.npy");
        let alone = desk.good(&format!("{line} --threads 1"));
        for threads in [2, 3, 7] {
            assert_eq!(alone, desk.good(&format!("{line} --threads {threads}")), "{threads} threads");
        }
    }
    let json = desk.eval("m.spk noisy.npy --reference sources.npy");
    let x = desk.inferred("m.spk", "noisy.npy", "mean.npy");
    let sources = read_array(desk.path("sources.npy")).unwrap().values;
    let column = |values: &[f64], k: usize| values.iter().skip(k).step_by(3).copied().collect::<Vec<_>>();
    for (k, ratio) in numbers(&json, "si_sdr_db").into_iter().enumerate() {
        close(ratio, si_sdr_db(&column(&x, k), &column(&sources, k)).unwrap(), 1e-6);
    }
}

#[test]
fn what_does_not_apply_is_absent_and_a_note_says_why() {
    let desk = Desk::with_model();
    let note = |rest: &str, key: &str, expected: &str| {
        let json = desk.eval(rest);
        assert!(json.get(key).is_none(), "{json}");
        let note = json["notes"][0].as_str().unwrap();
        assert!(note.starts_with(&format!("no {key}: ")) && note.contains(expected), "{note}");
        assert!(desk.good(&format!("eval {rest}")).contains(&format!("note: {note}\n")));
    };
    note("model.spk Y.npy --truth W.npy", "amari", "4 dimensions for 6 latents");
    desk.array("twice.npy", &[4, 2], &[1.0, 2.0, 1.0, 2.0, 3.0, 6.0, 0.0, 0.0]);
    desk.good("import --model gsc --w twice.npy --sigma2 1 --out twice.spk");
    note("twice.spk Y.npy --truth twice.npy", "amari", "depend on each other");
    desk.array("one.npy", &[4, 1], &[1.0; 4]);
    desk.good("import --model gsc --w one.npy --sigma2 1 --out one.spk");
    note("one.spk Y.npy --truth one.npy", "amari", "at least two latents");
    desk.array("wide.npy", &[4, 13], &[0.5; 52]);
    desk.good("import --model gsc --w wide.npy --sigma2 1 --max-active 2 --out wide.spk");
    note("wide.spk Y.npy", "quality", "beyond 12 latents");
    desk.array("zero.npy", &[20, 4], &[0.0; 80]);
    note("model.spk Y.npy --reference zero.npy", "reference_snr_db", "zero");

    // Points of zeros have no signal to explain.
    let json = desk.eval("model.spk zero.npy");
    assert!(json.get("snr_db").is_none() && number(&json, "sparsity") < 1.0, "{json}");
    // More dimensions than latents: through the pseudo-inverse, whatever the order and length of the columns.
    desk.array("tall.npy", &[4, 2], &[1.0, 2.0, -1.0, 2.0, 3.0, 6.0, 0.0, 1.0]);
    desk.array("truth.npy", &[4, 2], &[-2.0, 5.0, -2.0, -5.0, -6.0, 15.0, -1.0, 0.0]);
    desk.good("import --model gsc --w tall.npy --sigma2 1 --out tall.spk");
    close(number(&desk.eval("tall.spk Y.npy --truth truth.npy"), "amari"), 0.0, 1e-7);
    // Full noise: the diagonal.
    let sigma: Vec<f64> = (0..16).map(|at| if at % 5 == 0 { 0.1 * (at + 1) as f64 } else { 0.02 }).collect();
    desk.array("sigma.npy", &[4, 4], &sigma);
    desk.good("import --model gsc --w W.npy --sigma2 sigma.npy --out full.spk");
    for (found, at) in numbers(&desk.eval("full.spk Y.npy"), "noise").into_iter().zip([0, 5, 10, 15]) {
        close(found, sigma[at], 1e-6);
    }
}

#[test]
fn the_table_has_a_bar_for_every_latent() {
    let desk = scene(300);
    let text = desk.good("eval m.spk noisy.npy --reference clean.npy");
    for expected in ["points             300\n", "free energy", "quality            0.99", "before: "] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let exact = desk.good("eval m.spk noisy.npy --states subsets");
    assert!(exact.contains("quality            1.000000 (exact)"), "{exact}");
    let bars: Vec<&str> = text.lines().filter(|line| line.ends_with('#')).collect();
    assert_eq!(bars.len(), 3, "{text}");
    assert!(bars[0].ends_with(&"#".repeat(40)), "{text}");
    assert!(!text.contains('{'));

    desk.array("wide.npy", &[2, 30], &(0..60).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    desk.good("import --model gsc --w wide.npy --sigma2 0.01 --pi 0.0001 --out wide.spk");
    let text = desk.good("eval wide.spk noisy.npy");
    assert!(
        text.contains("... and 10 latents more\n") && text.contains(" of 30 latents are on at less"),
        "{text}"
    );
}

#[test]
fn bad_input_is_refused() {
    let desk = Desk::with_model();
    desk.array("Y3.npy", &[5, 3], &[1.0; 15]);
    desk.array("Y_short.npy", &[19, 4], &[1.0; 76]);
    desk.array("Y_five.npy", &[20, 5], &[1.0; 100]);
    desk.array("Y_nan.npy", &[20, 4], &[f64::NAN; 80]);
    desk.array("Y_loud.npy", &[3, 4], &[1.0, 1.0, 1.0, 1.0, 1e30, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    desk.array("none.npy", &[0, 4], &[]);
    desk.array("vector.npy", &[4], &[1.0; 4]);
    desk.array("turned.npy", &[6, 4], &[1.0; 24]);
    fs::write(desk.path("empty.npy"), []).unwrap();
    let whole = fs::read(desk.path("Y.npy")).unwrap();
    fs::write(desk.path("cut.npy"), &whole[..whole.len() - 8]).unwrap();
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --max-active 2 --states table --out table.spk");
    let model = fs::read(desk.path("model.spk")).unwrap();
    fs::write(desk.path("cut.spk"), &model[..model.len() - 8]).unwrap();
    let good = |rest: &str| format!("eval model.spk Y.npy {rest}");
    let cases = [
        ("eval".into(), "<MODEL.spk>"),
        ("eval model.spk".into(), "<DATA>"),
        ("eval missing.spk Y.npy".into(), "there is no such file: missing.spk"),
        ("eval cut.spk Y.npy".into(), "the model is damaged"),
        ("eval Y.npy Y.npy".into(), "this is not a Spikelet model"),
        ("eval model.spk missing.npy".into(), "there is no such file: missing.npy"),
        ("eval model.spk empty.npy".into(), "the file is empty"),
        ("eval model.spk cut.npy".into(), "cut.npy"),
        ("eval model.spk none.npy".into(), "none.npy"),
        ("eval model.spk Y_nan.npy".into(), "Y_nan.npy, point 0, dimension 0"),
        ("eval model.spk Y_loud.npy".into(), "Y_loud.npy, point 1 (counted from 0)"),
        ("eval model.spk Y_loud.npy --threads 3".into(), "Y_loud.npy, point 1 (counted from 0)"),
        (
            "eval model.spk Y3.npy".into(),
            "the points have 3 dimensions, the model 4: Y3.npy and model.spk: give N points",
        ),
        (good("--truth missing.npy"), "there is no such file: missing.npy"),
        (good("--truth vector.npy"), "shape (4) is no dictionary: vector.npy"),
        (
            good("--truth turned.npy"),
            "the true dictionary is 6 x 4, that of the model 4 x 6: turned.npy and model.spk: save it",
        ),
        (good("--reference missing.npy"), "there is no such file: missing.npy"),
        (
            good("--reference Y_short.npy"),
            "the reference has 19 points, the data 20: Y_short.npy and Y.npy: give the reference",
        ),
        (good("--reference Y_five.npy"), "give 4 for clean data or 6 for sources, or --reference-is sources"),
        (good("--reference Y_five.npy --reference-is clean"), "give 4, the dimensions"),
        (
            "eval model.spk Y3.npy --reference Y3.npy --reference-is sources".into(),
            "the points have 3 dimensions",
        ),
        (good("--reference Y_nan.npy"), "Y_nan.npy, point 0, dimension 0"),
        (good("--reference Y.npy --reference-is truth"), "--reference-is"),
        (good("--reference-is clean"), "--reference"),
        (good("--peak 1"), "--reference"),
        (good("--reference Y.npy --peak 0"), "0 cannot be a peak: --peak: give"),
        (good("--reference Y.npy --peak nan"), "NaN cannot be a peak"),
        (good("--reference Y.npy --peak loud"), "--peak"),
        (good("--threads 0"), "--threads"),
        (good("--selected 7"), "--selected: choose 1 to 6"),
        (good("--selected 2 --max-active 3"), "--max-active: choose 1 to 2"),
        ("eval table.spk Y.npy --max-active 3".into(), "table of states with up to 2 latents on"),
    ];
    let before = desk.content();
    for (line, expected) in &cases {
        for json in ["", " --json"] {
            let output = desk.run(&format!("{line}{json}").split_whitespace().collect::<Vec<_>>());
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
            assert!(errors.starts_with("error: ") && errors.contains(expected), "{line}: {errors}");
            assert!(output.stdout.is_empty(), "{line}");
        }
    }
    assert!(desk.content() == before);
}
