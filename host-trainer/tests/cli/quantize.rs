//! `spikelet quantize`: what it writes runs everywhere, and the figures are those of both models.

use crate::common::{Case, options, parameters};
use crate::desk::Desk;
use serde_json::Value;
use spikelet_trainer::blob;
use spikelet_trainer::data::read_array;
use spikelet_trainer::prepare::Prepared;
use std::fs;

/// A folder with the model of a golden case.
fn desk(case: &Case) -> Desk {
    let desk = Desk::new();
    let parameters = parameters(case);
    let prepared = Prepared::new(&parameters, &options(case)).unwrap();
    fs::write(desk.path("m.spk"), blob::write(&prepared, &parameters.slab_cov, "from here").unwrap())
        .unwrap();
    desk
}

#[test]
fn every_kind_of_model_can_be_quantized() {
    // Of every kind of superposition, noise and slab. The loss is that of a few dozen points.
    for (name, most_kl) in [
        ("gsc_diag_plain", 0.05),
        ("gsc_diag_independent", 0.05),
        ("gsc_full", 0.05),
        ("gsc_scalar", 0.05),
        ("gsc_overcomplete", 0.05),
        ("bsc_truncated", 0.05),
        ("nmf_bars", 0.05),
        ("mca_bars", 0.05),
    ] {
        let case = Case::load(name);
        let desk = desk(&case);
        let data = case.path("Y");
        for encoding in ["i16", "i8"] {
            let text = desk.good(&format!(
                "quantize m.spk --encoding {encoding} --out q.spk --data {} --json",
                data.display()
            ));
            let json: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["encoding"], encoding);
            assert_eq!(json["blob_bytes"], fs::metadata(desk.path("q.spk")).unwrap().len());
            let number = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{name}: {key} of {json}"));
            assert!(number("kl") < most_kl && number("kl") >= 0.0, "{name} {encoding}: {json}");
            assert!(number("map_agreement") > 0.8, "{name} {encoding}: {json}");
            assert!(number("loss_db") < 0.5, "{name} {encoding}: {json}");
            let inspected: Value = serde_json::from_str(&desk.good("inspect q.spk --json")).unwrap();
            assert_eq!(inspected["encoding"], encoding);
            assert_eq!(inspected["provenance"], "from here");
            desk.good(&format!("infer q.spk {} --out-dir out", data.display()));
            let activity = read_array(desk.path("out").join("activity.npy")).unwrap().values;
            assert!(activity.iter().all(|a| (0.0..=1.00001).contains(a)));
            desk.good(&format!("eval q.spk {} --json", data.display()));
            desk.good("export q.spk --format c --out q.h");
        }
    }
}

/// Kinds that can only be sampled have no states to compare: there it is the probabilities of being on.
#[test]
fn sampled_models() {
    let desk = Desk::new();
    let wave = |n: usize| (0..n).map(|i| (1.7 * i as f64).sin().abs() + 0.3).collect::<Vec<_>>();
    desk.array("W.npy", &[4, 6], &wave(24));
    desk.array("Y.npy", &[20, 4], &wave(80));
    desk.good("import --model ssmca --w W.npy --sigma2 0.1 --out m.spk");
    let text = desk.good("quantize m.spk --encoding i8 --out q.spk --data Y.npy --json");
    let json: Value = serde_json::from_str(&text).unwrap();
    // Draws take other turns after the smallest change: 20 points of 100 sweeps tell probabilities to a tenth or so.
    assert!((0.0..1.0).contains(&json["kl"].as_f64().unwrap()), "{json}");
}

#[test]
fn figures_are_those_of_eval() {
    let case = Case::load("gsc_overcomplete");
    let desk = desk(&case);
    let data = case.path("Y");
    let run = |command: String| -> Value { serde_json::from_str(&desk.good(&command)).unwrap() };
    let json = run(format!("quantize m.spk --encoding i8 --out q.spk --data {} --json", data.display()));
    for (at, model) in ["m.spk", "q.spk"].iter().enumerate() {
        let eval = run(format!("eval {model} {} --json", data.display()));
        let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-4;
        assert!(close(&json["snr_db"][at], &eval["snr_db"]), "{json} {eval}");
        assert!(close(&json["free_energy"][at], &eval["free_energy"]), "{json} {eval}");
    }
    // f32 is the model itself: nothing is lost.
    let same = run(format!("quantize m.spk --encoding f32 --out f.spk --data {} --json", data.display()));
    assert_eq!(fs::read(desk.path("f.spk")).unwrap(), fs::read(desk.path("m.spk")).unwrap());
    assert_eq!((same["loss_db"].as_f64(), same["map_agreement"].as_f64()), (Some(0.0), Some(1.0)));
    assert!(same["kl"].as_f64().unwrap().abs() < 1e-9);
    // Against the data themselves, as without a reference.
    let named = run(format!(
        "quantize m.spk --encoding i8 --out q.spk --data {0} --reference {0} --json",
        data.display()
    ));
    assert_eq!(named["loss_db"], json["loss_db"]);
}

#[test]
fn true_sources_are_compared_with_the_means() {
    let desk = Desk::new();
    // Three sources on two channels, one at a time.
    let sources: Vec<f64> =
        (0..900).map(|at| if at % 3 == at / 3 % 3 { (1.7 * at as f64).sin() } else { 0.0 }).collect();
    let w = [[1.0, 0.1, 0.613], [0.021, 1.0, 0.702]];
    let mixed = |x: &[f64]| w.map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>());
    desk.array("W.npy", &[2, 3], w.as_flattened());
    desk.array("S.npy", &[300, 3], &sources);
    desk.array("Y.npy", &[300, 2], &sources.chunks_exact(3).flat_map(mixed).collect::<Vec<f64>>());
    desk.good("import --model gsc --w W.npy --sigma2 1e-4 --pi 0.3 --out m.spk");
    let run = |line: &str| -> Value { serde_json::from_str(&desk.good(line)).unwrap() };
    let json = run("quantize m.spk --encoding i8 --out q.spk --data Y.npy --reference S.npy --json");
    let mut means = Vec::new();
    for model in ["m.spk", "q.spk"] {
        let eval = run(&format!("eval {model} Y.npy --reference S.npy --json"));
        let each: Vec<f64> =
            eval["si_sdr_db"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        means.push(each);
    }
    for (at, each) in means.iter().enumerate() {
        let found = json["si_sdr_db"][at].as_f64().unwrap();
        assert!((found - each.iter().sum::<f64>() / 3.0).abs() < 1e-6, "{json}");
    }
    for (k, loss) in json["si_sdr_loss_db"].as_array().unwrap().iter().enumerate() {
        assert!((loss.as_f64().unwrap() - (means[0][k] - means[1][k])).abs() < 1e-6, "{json}");
    }
    assert!(json.get("psnr_db").is_none() && json.get("notes").is_none(), "{json}");
    let text = desk.good("quantize m.spk --encoding i8 --out q.spk --data Y.npy --reference S.npy");
    assert!(text.contains("SI-SDR") && text.contains("largest loss"), "{text}");
    // Some of the sources, if that is said.
    let two: Vec<f64> = sources.chunks_exact(3).flat_map(|x| [x[0], x[1]]).collect();
    desk.array("two.npy", &[300, 2], &two);
    let line = "quantize m.spk --encoding i8 --out q.spk --data Y.npy --reference two.npy --json";
    assert!(run(line).get("si_sdr_db").is_none());
    assert_eq!(run(&format!("{line} --reference-is sources"))["si_sdr_loss_db"].as_array().unwrap().len(), 2);
    desk.refused(
        "quantize m.spk --encoding i8 --out q.spk --data Y.npy --reference W.npy",
        "the reference has 2 points, the data 300",
    );
}

#[test]
fn what_a_stream_needs_is_carried_on() {
    let desk = Desk::new();
    let model = crate::common::tests_dir().join("conformance/stream-d2h6.spk");
    desk.good(&format!("quantize {} --encoding i16 --out q.spk", model.display()));
    let [before, after] = [model, desk.path("q.spk")].map(|path| {
        let json: Value =
            serde_json::from_str(&desk.good(&format!("inspect {} --json", path.display()))).unwrap();
        let blob = crate::common::streams::parse(&fs::read(path).unwrap()).unwrap();
        assert_eq!(blob.gains()[15], 8.5);
        assert_eq!((blob.groups().of(3), blob.groups().of(4)), (1, 2));
        [&json["groups"], &json["rate"], &json["frame"], &json["stream_bytes"]].map(Value::clone)
    });
    assert_eq!(before, after);
    assert_eq!(after[0], serde_json::json!(["left", "middle", "right"]));
    assert_eq!(after[1], 8000);
    let text = desk.good("inspect q.spk");
    assert!(text.contains("left, middle, right") && text.contains("16 bins, 2 channels"), "{text}");
    desk.good("export q.spk --format c --name duo --out duo.h");
    let size = format!("#define DUO_STREAM_SIZE {}UL", after[3]);
    let header = fs::read_to_string(desk.path("duo.h")).unwrap();
    assert!(header.contains(&size), "{size}");
    // What it shows is what works: a state of coefficients would take samples and mean nothing.
    for shown in
        ["spk_stream_init(memory", "spk_stream_process_i16(stream", "#define DUO_CHANNELS 2", "stream."]
    {
        assert!(header.contains(shown), "{shown}: {header}");
    }
    assert!(!header.contains("STATE_SIZE") && !header.contains("spk_init("), "{header}");
    let needed = desk.good("export q.spk --format rust --name duo --out duo.rs");
    assert!(needed.contains("needs the features gsc") && needed.contains("stream"), "{needed}");
    let module = fs::read_to_string(desk.path("duo.rs")).unwrap();
    assert!(module.contains("Stream::new") && !module.contains("ARENA_LEN"), "{module}");
    assert!(text.contains("\nfeatures ") && text.contains("stream"), "{text}");
}

/// Whole inference in integers: what it changes, what it costs, and which models it is not for.
#[test]
fn fixed_point() {
    let desk = Desk::new();
    let wave = |n: usize| (0..n).map(|i| (1.7 * i as f64).sin()).collect::<Vec<_>>();
    desk.array("W.npy", &[4, 12], &wave(48));
    desk.array("Y.npy", &[200, 4], &wave(800));
    let run = |line: &str| -> Value { serde_json::from_str(&desk.good(line)).unwrap() };
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --selected 6 --max-active 3 --out m.spk");
    for encoding in ["i16", "i8"] {
        let line = |rest: &str| format!("quantize m.spk --encoding {encoding} --data Y.npy --json {rest}");
        let floats = run(&line("--out f.spk"));
        let fixed = run(&line("--fixed-point --out q.spk"));
        assert_eq!((&floats["fixed_point"], &fixed["fixed_point"]), (&false.into(), &true.into()));
        let number = |json: &Value, name: &str| json[name].as_f64().unwrap();
        assert!((number(&floats, "loss_db") - number(&fixed, "loss_db")).abs() < 0.001, "{floats} {fixed}");
        assert!(number(&fixed, "map_agreement") > number(&floats, "map_agreement") - 0.02);
        let [floats, fixed] = ["f.spk", "q.spk"].map(|model| run(&format!("inspect {model} --json")));
        assert_eq!((&floats["arithmetic"], &fixed["arithmetic"]), (&"floats".into(), &"integers".into()));
        let on_m0 = |json: &Value| json["cores"][0]["instructions"].as_u64().unwrap();
        assert_eq!(fixed["cores"][0]["core"], "cortex-m0");
        assert!(2 * on_m0(&fixed) < on_m0(&floats), "{} {}", on_m0(&fixed), on_m0(&floats));
        desk.good("infer q.spk Y.npy --out-dir out");
        desk.good("eval q.spk Y.npy");
        desk.good("export q.spk --format c --out q.h");
    }
    assert!(desk.good("inspect q.spk").contains("i8, inferred in integers"));

    let error = desk.refused("quantize m.spk --encoding f32 --fixed-point --out r.spk", "");
    assert!(
        error.contains("needs a dictionary of integers") && error.contains("use --encoding i16"),
        "{error}"
    );
    // The papers' set, of any depth, makes way for a search; tables are for full slabs, which integers do not have.
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --selected 12 --max-active 4 --states subsets --out deep.spk");
    desk.good("quantize deep.spk --encoding i16 --fixed-point --out searched.spk");
    assert_eq!(run("inspect searched.spk --json")["state_source"], "adaptive");
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --selected 6 --max-active 2 --states table --out table.spk");
    desk.refused("quantize table.spk --encoding i16 --fixed-point --out r.spk", "not inferred in integers");
    desk.good("import --model bsc --w W.npy --sigma2 0.01 --out bsc.spk");
    desk.refused("quantize bsc.spk --encoding i16 --fixed-point --out r.spk", "only models of kind gsc");
    assert!(!desk.path("r.spk").exists());
}

#[test]
fn what_cannot_be_quantized() {
    let desk = desk(&Case::load("gsc_exact_d4"));
    desk.good("quantize m.spk --encoding i16 --out q.spk");
    desk.refused(
        "quantize q.spk --encoding i8 --out r.spk",
        "the model has integers already: q.spk: give the model in f32",
    );
    assert!(!desk.path("r.spk").exists());
    let error = desk.refused("quantize m.spk --encoding i4 --out r.spk", "");
    assert!(error.contains("i4") && error.contains("i16"), "{error}");
    fs::write(desk.path("d.csv"), "1,2\n3,4\n").unwrap();
    desk.refused(
        "quantize m.spk --encoding i8 --out r.spk --data d.csv",
        "the points have 2 dimensions, the model 4",
    );
    desk.refused("quantize m.spk --encoding i8 --out m.spk", "m.spk");
    assert!(!desk.path("r.spk").exists());
}

/// A model that looks at all states becomes one that searches, in any encoding: what is asked for is what `inspect` shows, and
/// more expansions come closer to all states.
#[test]
fn states_are_replaced() {
    let desk = Desk::with_model();
    desk.good(
        "import --model gsc --w W.npy --sigma2 0.1 --states subsets --selected 6 --max-active 6 --out m.spk",
    );
    let mut losses = Vec::new();
    for expansions in [1, 64] {
        let line = format!("quantize m.spk --encoding f32 --states adaptive --expansions {expansions}");
        let text = desk.good(&format!("{line} --out q.spk --data Y.npy --json"));
        losses.push(serde_json::from_str::<Value>(&text).unwrap()["kl"].as_f64().unwrap());
        let inspected: Value = serde_json::from_str(&desk.good("inspect q.spk --json")).unwrap();
        assert_eq!((&inspected["state_source"], &inspected["encoding"]), (&"adaptive".into(), &"f32".into()));
    }
    assert!(losses[1] < losses[0] && losses[1] < 1e-3, "{losses:?}");
    desk.good("quantize m.spk --encoding i8 --states adaptive --max-active 2 --out q.spk");
    let inspected: Value = serde_json::from_str(&desk.good("inspect q.spk --json")).unwrap();
    assert_eq!((&inspected["max_active"], &inspected["encoding"]), (&2.into(), &"i8".into()));
    for (flags, words) in [
        ("--states subsets --expansions 3", "only adaptive states are expanded"),
        ("--states table", "the model has no table of states"),
        ("--max-active 0", "--max-active: choose 1 to"),
        ("--fixed-point --states subsets", "take adaptive states"),
    ] {
        desk.refused(&format!("quantize m.spk --encoding i16 {flags} --out new.spk"), words);
    }
}
