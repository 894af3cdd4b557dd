//! Latents that are on or off, through all commands.

use super::Desk;
use spikelet_trainer::data::read_array;

/// With W.npy (4 x 6, not negative), Y.npy (20 x 4).
fn desk() -> Desk {
    let desk = Desk::new();
    let wave = |n: usize| (0..n).map(|i| (1.7 * i as f64).sin().abs()).collect::<Vec<_>>();
    desk.array("W.npy", &[4, 6], &wave(24));
    desk.array("Y.npy", &[20, 4], &wave(80));
    desk
}

#[test]
fn import_infer_inspect_eval_and_export() {
    let desk = desk();
    let json = |line: &str| -> serde_json::Value { serde_json::from_str(&desk.good(line)).unwrap() };
    for (given, kind, score) in [
        ("bsc", "bsc", "cosine"),
        ("linca", "bsc", "cosine"),
        ("nmf", "nmf", "bound"),
        ("mca", "mca", "bound"),
    ] {
        desk.good(&format!(
            "import --model {given} --w W.npy --sigma2 0.05 --selected 4 --max-active 2 --states subsets --out m.spk"
        ));
        assert_eq!(json("inspect m.spk --json")["states"], 13);
        desk.good(&format!(
            "import --model {given} --w W.npy --sigma2 0.05 --selected 4 --max-active 2 --out m.spk"
        ));
        let facts = json("inspect m.spk --json");
        assert_eq!((&facts["kind"], &facts["selection"]), (&kind.into(), &score.into()));
        assert_eq!((&facts["slab"], &facts["states"]), (&"none".into(), &17.into()));
        assert!(facts["table"].is_null() && facts["operations"].as_u64() > Some(0));
        assert!(desk.good("inspect m.spk").contains(&format!("{kind} m.spk")));

        desk.good("infer m.spk Y.npy --out-dir out");
        let [activity, mean, variance] = ["activity.npy", "mean.npy", "variance.npy"]
            .map(|name| read_array(desk.path("out").join(name)).unwrap().values);
        assert_eq!(activity, mean);
        for (a, v) in activity.iter().zip(variance) {
            assert!((a * (1.0 - a) - v).abs() < 1e-6);
        }
        let figures = json("eval m.spk Y.npy --json");
        assert!(figures["quality"].as_f64().unwrap() <= 1.0 && figures["snr_db"].is_number());
        assert!((figures["noise"].as_f64().unwrap() - 0.05).abs() < 1e-6);

        desk.good("export m.spk --format c --out m.h");
        let header = std::fs::read_to_string(desk.path("m.h")).unwrap();
        assert!(header.contains(&format!("Kind {kind}")));
        assert!(header.contains(&format!("#define M_STATE_SIZE {}UL", facts["arena_bytes"])));
    }
}
