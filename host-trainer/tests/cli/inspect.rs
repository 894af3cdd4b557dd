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
    let other = inspected(&desk, "model.spk --core cortex-m4f --clock 84000000 --rate 16000 --cpi 3");
    assert!((other["load"]["share"].as_f64().unwrap() / (4.0 * share) - 1.0).abs() < 1e-9);
    assert!(desk.good("inspect model.spk --core m4f --clock 168MHz --rate 16000").contains("% of 168 MHz"));

    // Windows every three samples: a third as many points.
    let windows = "import --model gsc --w W.npy --sigma2 0.01 --frame 4 --hop 3 --out w.spk";
    desk.good(windows);
    let third = inspected(&desk, "w.spk --core m4f --clock 168MHz --rate 16000");
    assert!((third["load"]["share"].as_f64().unwrap() / (share / 3.0) - 1.0).abs() < 1e-9);
}

#[test]
fn what_was_not_fitted_is_not_guessed() {
    let desk = Desk::with_model();
    desk.good("import --model gsc --w W.npy --sigma2 0.01 --states table --max-active 2 --out table.spk");
    let facts = inspected(&desk, "table.spk");
    assert_eq!(facts["cores"].as_array().unwrap().len(), 0);
    assert!(desk.good("inspect table.spk").contains("no cost is known of tables of states"));
}
