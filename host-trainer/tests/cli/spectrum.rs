//! Sources in one channel: `train --transform spectrum`, `merge`, `separate`.

use super::Desk;
use super::report::{has, page_of};
use spikelet_trainer::data::{Points, write_wav};
use std::f64::consts::TAU;
use std::fs;

const SAMPLES: usize = 24_000;

/// Notes of 0.1 s with harmonics; which of three follows which depends on `turn`.
fn notes(pitches: [f64; 3], turn: usize) -> Vec<f32> {
    let mut phase = 0.0;
    let sample = |t: usize| {
        phase += TAU * pitches[(t / 800 * turn + t / 5600) % 3] / 8000.0;
        (1..6).map(|k| (f64::from(k) * phase).sin() / f64::from(k)).sum::<f64>() as f32 * 0.2
    };
    (0..SAMPLES).map(sample).collect()
}

fn wav(desk: &Desk, name: &str, channels: usize, rate: u32, samples: &[f32]) {
    write_wav(desk.path(name), rate, channels, samples).unwrap();
}

/// Recordings of two sources, others of both, and their sum.
fn desk() -> Desk {
    let desk = Desk::new();
    let (low, high) = ([110.0, 147.0, 196.0], [523.0, 740.0, 988.0]);
    wav(&desk, "low.wav", 1, 8000, &notes(low, 1));
    wav(&desk, "high.wav", 1, 8000, &notes(high, 2));
    let (a, b) = (notes(low, 2), notes(high, 1));
    wav(&desk, "a.wav", 1, 8000, &a);
    wav(&desk, "b.wav", 1, 8000, &b);
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + 0.5 * b).collect();
    wav(&desk, "mix.wav", 1, 8000, &sum);
    desk
}

const TRAIN: &str = "train --model mca --transform spectrum --latents 10 --iterations 15";

#[test]
fn two_sources_come_apart_from_one_channel() {
    let desk = desk();
    let text = desk.good(&format!("{TRAIN} low.wav --out low.spk"));
    assert!(text.starts_with("low.spk: a source of 10 latents from "), "{text}");
    desk.good(&format!("{TRAIN} --copies on high.wav --out high.spk"));
    let told: serde_json::Value = serde_json::from_slice(&fs::read(desk.path("high.json")).unwrap()).unwrap();
    assert_eq!(told["settings"]["copies"], true);
    assert_eq!(told["parameters"]["w"].as_array().unwrap().len(), 96);
    assert_eq!(told["parameters"]["pi"].as_array().unwrap().len(), 10);
    assert!(told["history"][1]["free_energy"].as_f64() > told["history"][0]["free_energy"].as_f64());
    desk.good("merge low.spk high.spk --names low,high --out both.spk");
    desk.good("merge low.spk high.spk --names low,high --encoding i8 --out small.spk");
    let len = |name: &str| fs::metadata(desk.path(name)).unwrap().len();
    assert!(len("small.spk") < len("both.spk"));
    for model in ["both.spk", "small.spk"] {
        let text = desk.good(&format!("separate {model} mix.wav --out-dir out --reference a.wav b.wav"));
        let figures: Vec<f64> = text
            .lines()
            .filter(|line| line.contains(".wav "))
            .filter_map(|line| line.split_whitespace().last()?.parse().ok())
            .collect();
        assert!(figures.len() == 2 && figures.iter().all(|&db| db > 8.0), "{model}: {text}");
    }
    // Parts add up to the mixture; with no reduction each is the mixture.
    let read = |name: &str| Points::read(desk.path(name)).unwrap().values;
    let close = |x: f64, y: f64| (x - y).abs() < 1e-5;
    let (low, high, mix) = (read("out/low.wav"), read("out/high.wav"), read("mix.wav"));
    assert!((0..SAMPLES).all(|t| close(low[t] + high[t], mix[t])));
    desk.good("separate both.spk mix.wav --out-dir same --reduction 0");
    assert!(read("same/low.wav").iter().zip(&mix).all(|(x, y)| close(*x, *y)));
    // The same command gives the same bits.
    let first = fs::read(desk.path("low.spk")).unwrap();
    desk.good(&format!("{TRAIN} --threads 3 low.wav --out low.spk"));
    assert_eq!(fs::read(desk.path("low.spk")).unwrap(), first);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let desk = desk();
    wav(&desk, "stereo.wav", 2, 8000, &notes([110.0; 3], 1));
    wav(&desk, "fast.wav", 1, 16_000, &notes([110.0; 3], 1));
    wav(&desk, "silent.wav", 1, 8000, &[0.0; 9000]);
    wav(&desk, "short.wav", 1, 8000, &notes([110.0; 3], 1)[..600]);
    for (line, what) in [
        ("train --model gsc --transform spectrum --latents 4 low.wav --out x.spk", "use --model mca"),
        ("train --model mca --transform spectrum --latents 300 low.wav --out x.spk", "choose at most 256"),
        ("train --model mca --transform spectrum --latents 4 --selected 2 low.wav --out x.spk", "--selected"),
        (
            "train --model mca --transform spectrum --latents 4 --hop 100 low.wav --out x.spk",
            "choose 128 or 256",
        ),
        ("train --model mca --transform spectrum --latents 4 stereo.wav --out x.spk", "2 channels"),
        ("train --model mca --transform spectrum --latents 4 low.wav fast.wav --out x.spk", "resample it"),
        ("train --model mca --transform spectrum --latents 4 silent.wav --out x.spk", "silent"),
        ("train --model mca --transform spectrum --latents 64 short.wav --out x.spk", "give longer ones"),
        ("train --model mca --latents 4 --copies on low.wav --out x.spk", "--copies"),
        ("train --model gsc --latents 4 --hop 64 low.wav --out x.spk", "there are no windows: --hop"),
        ("train --model spatial --latents 2 --copies on stereo.wav --out x.spk", "--copies"),
        ("train --model mca --transform spectrum --bins 64 --latents 4 low.wav --out x.spk", "--bins"),
        (
            "train --model mca --transform spectrum --states subsets --latents 4 low.wav --out x.spk",
            "--states",
        ),
    ] {
        desk.refused(line, what);
    }
    desk.good(&format!("{TRAIN} low.wav --out low.spk"));
    desk.good(&format!("{TRAIN} --hop 256 high.wav --out half.spk"));
    desk.good(&format!("{TRAIN} fast.wav --out fast.spk"));
    desk.good("train --model gsc --latents 2 --frame 16 --iterations 2 stereo.wav --out other.spk");
    for (line, what) in [
        ("merge low.spk half.spk --out x.spk", "another --hop"),
        ("merge low.spk fast.spk --out x.spk", "another rate"),
        ("merge low.spk other.spk --out x.spk", "train all with --transform spectrum"),
        ("merge low.spk low.spk --names a,a --out x.spk", "two sources are called a"),
        ("merge low.spk low.spk --names a,b --selected 3 --out x.spk", "leave them out"),
        ("merge other.spk other.spk --names a,b --encoding i8 --out x.spk", "use `spikelet quantize`"),
        ("separate low.spk mix.wav --out-dir x", "one source only"),
        ("infer low.spk stereo.wav --out-dir x", "one channel"),
        ("separate other.spk stereo.wav --out-dir x --reduction 10", "no masks"),
    ] {
        desk.refused(line, what);
    }
    desk.good("merge low.spk low.spk --names a,b --out two.spk");
    desk.refused("separate two.spk mix.wav --out-dir x --reduction=-3", "0 to 100");
    desk.refused("merge two.spk low.spk --names a,b --out x.spk", "several sources already");
    // Another rate is warned of, as for every model.
    let output = desk.run(&["separate", "two.spk", "fast.wav", "--out-dir", "fast"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("the model was trained at 8000: resample"), "{text}");
}

/// From two models to a header, a table of events and thresholds.
#[test]
fn a_model_of_one_channel_goes_all_the_way() {
    let desk = desk();
    fs::create_dir(desk.path("voices")).unwrap();
    for name in ["low.wav", "a.wav"] {
        fs::copy(desk.path(name), desk.path(&format!("voices/{name}"))).unwrap();
    }
    fs::write(desk.path("voices/notes.txt"), "not a recording").unwrap();
    desk.good(&format!("{TRAIN} voices --out low.spk"));
    desk.good(&format!("{TRAIN} high.wav --out high.spk"));
    desk.good("merge low.spk high.spk --names low,high --out both.spk");
    desk.good("quantize both.spk --encoding i8 --out small.spk");
    let text = desk.good("inspect small.spk");
    for line in [
        "sources            low (11 latents), high (",
        "levels tracked     5",
        "a hop              128 samples",
        "cortex-m4f         ",
        "encoding           i8",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let facts: serde_json::Value = serde_json::from_str(&desk.good("inspect both.spk --json")).unwrap();
    assert_eq!((&facts["kind"], facts["cores"].as_array().map(Vec::len)), (&"spectral".into(), Some(5)));
    let text = desk.good("inspect small.spk --core m4f --clock 168MHz --data mix.wav");
    assert!(text.contains("if every hop were the worst (62.5 hops a second"), "{text}");
    desk.refused("inspect small.spk --data low.npy", "low.npy");
    desk.refused("inspect small.spk --engine gibbs", "run in one way only");
    let html = page_of(&desk, "small.spk", "");
    has(&html, &["Typical spectra", "spectrum 0 of low", "To hear what the model makes", "cortex-m4f"]);
    let html = page_of(&desk, "low.json", "");
    has(&html, &["Spikelet model report", "free energy by iteration", "Settings", "Typical spectra"]);
    let html = page_of(&desk, "small.spk", "--data mix.wav --reference a.wav b.wav");
    has(
        &html,
        &[
            "<audio",
            "separated as",
            "level of high over time",
            "probability that low is heard",
            "how unusual",
        ],
    );
    let text = desk.good("export small.spk --format c --out model.h");
    assert!(text.contains("features spectral"), "{text}");
    let header = fs::read_to_string(desk.path("model.h")).unwrap();
    for line in [
        "#define MODEL_STREAM_SIZE ",
        "#define MODEL_SOURCES 2 ",
        "#define MODEL_HOP 128 ",
        "Kind spectral: 2 sources",
    ] {
        assert!(header.contains(line), "{line}");
    }
    desk.good("export small.spk --format rust --out model.rs");

    let text = desk.good("denoise small.spk mix.wav clean.wav --reference a.wav --reduction 100");
    assert!(text.starts_with("clean.wav: low; SI-SDR "), "{text}");
    desk.good("separate small.spk mix.wav --out-dir out");
    let read = |name: &str| Points::read(desk.path(name)).unwrap().values;
    let close = |x: &f64, y: &f64| (x - y).abs() < 1e-4;
    assert!(read("clean.wav").iter().zip(&read("out/low.wav")).all(|(x, y)| close(x, y)));
    desk.good("denoise small.spk mix.wav high-only.wav --keep high");

    // Half a second of each, then both: the table says which.
    let (a, b) = (read("a.wav"), read("b.wav"));
    let turns: Vec<f32> = (0..SAMPLES)
        .map(|t| {
            let (low, high) = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)][t / 4000 % 4];
            (low * a[t] + high * b[t]) as f32
        })
        .collect();
    wav(&desk, "turns.wav", 1, 8000, &turns);
    let text = desk.good("infer small.spk turns.wav --out-dir events");
    assert!(text.contains("low ") && text.contains(" of the frames"), "{text}");
    let table = fs::read_to_string(desk.path("events/events.csv")).unwrap();
    assert!(table.starts_with("seconds,\"low\",\"high\",score\n"), "{table}");
    let (mut right, mut count) = (0, 0);
    for line in table.lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
        // Not where one turn ends and the next begins.
        let (turn, place) = ((row[0] / 0.5) as usize % 4, row[0] % 0.5);
        if (0.1..0.4).contains(&place) {
            let truth = [turn == 0 || turn == 2, turn == 1 || turn == 2];
            right += usize::from(row[1] > 0.5) ^ usize::from(!truth[0]);
            right += usize::from(row[2] > 0.5) ^ usize::from(!truth[1]);
            count += 2;
        }
    }
    assert!(right * 10 > count * 9, "{right} of {count}");

    // Usual sound of one source; thresholds hold for more of it, and another sound is above.
    let text = desk.good("eval low.spk a.wav --calibrate low.wav --out alarm.spk");
    assert!(
        text.contains("promised") && text.contains("alarm.spk: the model with these thresholds"),
        "{text}"
    );
    let text = desk.good("eval alarm.spk b.wav --json");
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(facts["rates"][2]["observed"].as_f64() > Some(0.9), "{text}");
    assert!(desk.good("infer alarm.spk b.wav --out-dir alarms").contains("source 0"));
    assert!(desk.good("inspect alarm.spk").contains("known for rates of false alarms down to 0.1"));

    fs::create_dir(desk.path("empty")).unwrap();
    wav(&desk, "brief.wav", 1, 8000, &turns[..800]);
    for (line, what) in [
        (format!("{TRAIN} empty --out x.spk"), "no recording in the folder"),
        ("quantize both.spk --encoding i16 --out x.spk".into(), "use --encoding i8"),
        ("quantize small.spk --encoding i8 --out x.spk".into(), "integers already"),
        ("denoise small.spk mix.wav x.wav --keep middle".into(), "but low, high"),
        ("denoise low.spk mix.wav x.wav".into(), "one source only"),
        ("eval low.spk a.wav --calibrate brief.wav --out x.spk".into(), "too few"),
        ("eval low.spk a.wav --calibrate low.wav --out low.spk".into(), "low.spk"),
        ("eval low.spk a.wav --truth low.wav".into(), "no points to compare"),
        ("eval low.spk brief.wav --calibrate low.wav".into(), "--out"),
    ] {
        desk.refused(&line, what);
    }
}
