//! What `inspect` predicts for cores and processors. How near it comes is for `tests/cost --predict` to say.

use super::Desk;
use serde_json::Value;

fn inspected(desk: &Desk, line: &str) -> Value {
    serde_json::from_str(&desk.good(&format!("inspect {line} --json"))).unwrap()
}

#[test]
fn every_core_has_its_costs() {
    let desk = Desk::with_model();
    // So much noise that no sample is loud.
    desk.good("import --model gsc --w W.npy --sigma2 0.2 --max-active 3 --out quiet.spk");
    let facts = inspected(&desk, "quiet.spk");
    assert_eq!(facts["loud"], 0.0);
    let cores = facts["cores"].as_array().unwrap();
    let names: Vec<_> = cores.iter().map(|core| core["core"].as_str().unwrap()).collect();
    assert_eq!(names, ["cortex-m0", "cortex-m4f", "cortex-m7", "cortex-m33", "riscv32imac"]);
    for core in cores {
        let number = |key: &str| core[key].as_u64().unwrap();
        let stages = core["instructions_by_stage"].as_array().unwrap();
        let sum: u64 = stages.iter().map(|stage| stage.as_u64().unwrap()).sum();
        assert!(sum.abs_diff(number("instructions")) <= 2, "{core}"); // each is rounded
        assert!(number("instructions_worst") > number("instructions"), "{core}");
        assert_eq!(number("flash_bytes"), number("text_bytes") + facts["blob_bytes"].as_u64().unwrap());
        assert_eq!(core["arena_bytes"], facts["arena_bytes"]);
        assert!(number("stack_bytes") > 0 && core["within_fit"] == true);
    }
    // A core without a float unit takes ten times as many.
    assert!(cores[0]["instructions"].as_u64() > cores[1]["instructions"].as_u64().map(|m4f| 5 * m4f));
    assert_eq!(facts["load"], Value::Null);
    assert!(desk.good("inspect quiet.spk").contains("cortex-m33"));
}

/// Sources in one channel: figures of tests/COST.md, and those of `tests/cost --signals` for the stack.
#[test]
fn a_hop_of_one_channel_is_not_below_what_was_measured() {
    let desk = Desk::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance/channel-d96h192.spk");
    let facts = inspected(&desk, &format!("{model} --core m4f --clock 168MHz"));
    let core = &facts["cores"][0];
    let is_within = |key: &str, measured: u64, room: u64| {
        let predicted = core[key].as_u64().unwrap();
        assert!((measured..measured + room).contains(&predicted), "{key}: {predicted} for {measured}");
    };
    is_within("instructions", 1_027_728, 100_000);
    // The worst of all signals that are tried, of which the measured one is not the most expensive.
    is_within("instructions_worst", 1_145_452, 300_000);
    is_within("stack_bytes", 6280, 600);
    assert!(core["text_bytes"].as_u64() > Some(20_000) && core["within_fit"] == true);
    assert!(facts["load"]["share_worst"].as_f64() > facts["load"]["share"].as_f64());
}

#[test]
fn a_stream_takes_a_share_of_the_processor() {
    let desk = Desk::with_model();
    let facts = inspected(&desk, "model.spk --core m4f --clock 168MHz --rate 16kHz");
    let cores = facts["cores"].as_array().unwrap();
    assert_eq!(cores.len(), 1);
    let instructions = cores[0]["instructions"].as_f64().unwrap();
    let share = facts["load"]["share"].as_f64().unwrap();
    // Instructions are rounded in the output.
    assert!((share / (16e3 * instructions * 1.5 / 168e6) - 1.0).abs() < 1e-3);
    let other = inspected(&desk, "model.spk --core cortex-m4f --clock 84000000Hz --rate 16000 --cpi 3");
    assert!((other["load"]["share"].as_f64().unwrap() / (4.0 * share) - 1.0).abs() < 1e-9);
    assert!(desk.good("inspect model.spk --core m4f --clock 168MHz --rate 16000").contains("% of 168 MHz"));

    // Windows every three samples: a third as many points, each of which is copied and added up.
    let windows = "import --model gsc --w W.npy --sigma2 0.01 --frame 4 --hop 3 --out w.spk";
    desk.good(windows);
    let third = inspected(&desk, "w.spk --core m4f --clock 168MHz --rate 16000");
    let third = third["load"]["share"].as_f64().unwrap();
    assert!((share / 3.0..share / 2.0).contains(&third), "{share} {third}");

    // A transform takes more than its points, and the user's data may take something else than draws.
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --transform mdct --bins 16 --out t.spk");
    let core = &inspected(&desk, "t.spk --core m4f")["cores"][0];
    assert!(core["instructions_streamed"].as_u64() > core["instructions"].as_u64(), "{core}");
    let on_data = inspected(&desk, "model.spk --core m4f --data Y.npy");
    assert_ne!(on_data["cores"][0]["instructions"], cores[0]["instructions"]);
}

/// Instructions on a Cortex-M4F.
fn on_m4f(desk: &Desk, line: &str) -> [u64; 2] {
    let facts = inspected(desk, &format!("{line} --core m4f"));
    ["instructions", "instructions_worst"].map(|key| facts["cores"][0][key].as_u64().unwrap())
}

#[test]
fn draws_take_as_long_as_there_are_sweeps() {
    let desk = Desk::with_model();
    let sampled = |rest: &str| on_m4f(&desk, &format!("model.spk --engine gibbs {rest}"));
    let ([few, few_at_worst], [many, _]) = (sampled("--sweeps 20"), sampled("--sweeps 200"));
    assert!(few_at_worst > few && (5 * few..10 * few).contains(&many), "{few} {many}");
    // Each chain has a start and sweeps of its own.
    let [two, _] = sampled("--sweeps 20 --chains 2");
    assert!((3 * few / 2..2 * few).contains(&two), "{few} {two}");
    let facts = inspected(&desk, "model.spk --engine gibbs --sweeps 20");
    assert_eq!(facts["gibbs"]["sweeps"], 20);
    assert_eq!(facts["cores"][0]["arena_bytes"], facts["gibbs"]["arena_bytes"]);

    // What can only be sampled is, with the usual settings.
    desk.array("positive.npy", &[4, 6], &(0..24).map(|i| f64::from(i % 5) + 0.1).collect::<Vec<_>>());
    desk.good("import --model ssmca --w positive.npy --sigma2 0.1 --out ssmca.spk");
    assert_eq!(on_m4f(&desk, "ssmca.spk"), on_m4f(&desk, "ssmca.spk --sweeps 100"));
    assert!(!desk.run(&["inspect", "model.spk", "--sweeps", "20"]).status.success());
}

#[test]
fn every_encoding_and_source_of_states_has_its_costs() {
    let desk = Desk::with_model();
    desk.array("positive.npy", &[4, 6], &(0..24).map(|i| f64::from(i % 5) + 0.1).collect::<Vec<_>>());
    for kind in ["gsc", "bsc", "nmf", "mca", "ssmca"] {
        desk.good(&format!("import --model {kind} --w positive.npy --sigma2 0.2 --out f32.spk"));
        for encoding in ["i16", "i8"] {
            desk.good(&format!("quantize f32.spk --encoding {encoding} --out {encoding}.spk"));
            for engine in ["", "--engine gibbs --sweeps 10"] {
                let line = format!("{encoding}.spk {engine}");
                let facts = inspected(&desk, &line);
                assert_eq!(facts["cores"].as_array().unwrap().len(), 5, "{kind} {line}");
            }
            std::fs::remove_file(desk.path(&format!("{encoding}.spk"))).unwrap();
        }
        std::fs::remove_file(desk.path("f32.spk")).unwrap();
    }
    desk.good("import --model gsc --w W.npy --sigma2 0.2 --max-active 2 --out grown.spk");
    desk.good("import --model gsc --w W.npy --sigma2 0.2 --max-active 2 --states table --out table.spk");
    assert_ne!(on_m4f(&desk, "grown.spk"), on_m4f(&desk, "table.spk"));
    // Chains do not look at the table.
    let chains = "--engine gibbs --sweeps 10";
    assert_eq!(on_m4f(&desk, &format!("grown.spk {chains}")), on_m4f(&desk, &format!("table.spk {chains}")));
}

#[test]
fn what_is_larger_than_all_that_was_measured_is_called_a_guess() {
    let desk = Desk::with_model();
    desk.array("wide.npy", &[2, 500], &(0..1000).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    desk.good("import --model gsc --w wide.npy --sigma2 0.2 --out wide.spk");
    let core = &inspected(&desk, "wide.spk --core m7")["cores"][0];
    assert_eq!(core["within_fit"], false);
    assert!(core["beyond"].as_str().unwrap().starts_with("500 latents, where "), "{core}");
    assert!(desk.good("inspect wide.spk").contains("(a guess: 500 latents, where "));
    // Beside the measured shapes, a prediction still grows with the shape.
    desk.array("half.npy", &[2, 250], &(0..500).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    desk.good("import --model gsc --w half.npy --sigma2 0.2 --out half.spk");
    assert!(on_m4f(&desk, "wide.spk") > on_m4f(&desk, "half.spk"));
}
