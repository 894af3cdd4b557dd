//! `spikelet report`: pages for every kind of dictionary, parsed, and descriptions that are none.

use super::Desk;
use roxmltree::{Document, ParsingOptions};
use serde_json::{Value, json};
use spikelet_trainer::data::write_wav;
use std::fs;

/// Numbers without a pattern, the same in every run.
fn wave(count: usize) -> Vec<f64> {
    (0..count).map(|i| (1.7 * i as f64).sin() + 0.1).collect()
}

/// m.json of a model with W = `wave`, as `train` would have written it.
fn description(kind: &str, dims: usize, latents: usize) -> Value {
    let w: Vec<f64> = wave(dims * latents).iter().map(|w| if kind == "gsc" { *w } else { w.abs() }).collect();
    let mut value = json!({
        "settings": { "model": kind, "latents": latents, "engine": "truncated", "max_active": 2 },
        "points": 100,
        "frame": null,
        "parameters": {
            "w": w.chunks(latents).collect::<Vec<_>>(),
            "pi": (0..latents).map(|h| 0.5 / (h + 1) as f64).collect::<Vec<_>>(),
            "sigma2": 0.25,
        },
        "history": [
            { "iteration": 0, "free_energy": -500.0, "seconds": 0.5 },
            { "iteration": 1, "free_energy": -250.0, "seconds": 1.0 },
        ],
        "warnings": [],
        "version": "0.0.0",
    });
    if kind.ends_with("gsc") || kind == "ssmca" {
        value["parameters"]["mu"] = json!(vec![0.5; latents]);
        value["parameters"]["psi2"] = json!(vec![2.0; latents]);
    }
    value
}

fn write(desk: &Desk, value: &Value) {
    fs::write(desk.path("m.json"), value.to_string()).unwrap();
}

/// m.spk with the parameters of m.json.
fn import(desk: &Desk, kind: &str, value: &Value, flags: &str) {
    let rows = value["parameters"]["w"].as_array().unwrap();
    let numbers =
        |row: &Value| row.as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect::<Vec<_>>();
    let w: Vec<f64> = rows.iter().flat_map(numbers).collect();
    desk.array("W.npy", &[rows.len(), w.len() / rows.len()], &w);
    desk.good(&format!("import --model {kind} --w W.npy --sigma2 0.25 {flags} --out m.spk"));
}

/// The page about m.json.
fn page(desk: &Desk, line: &str) -> String {
    page_of(desk, "m.json", line)
}

/// The page about a model, which is well-formed, asks for nothing from elsewhere and has no number that is none.
pub fn page_of(desk: &Desk, model: &str, line: &str) -> String {
    desk.good(&format!("report {model} --out report.html {line}"));
    let html = fs::read_to_string(desk.path("report.html")).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&html, options).unwrap_or_else(|error| panic!("{error}"));
    for node in document.descendants().filter(|node| node.is_element()) {
        let name = node.tag_name().name();
        assert!(
            !["script", "link", "img", "iframe", "object", "use", "image", "base"].contains(&name),
            "{name}"
        );
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            let is_sound = name == "src" && value.starts_with("data:audio/wav;base64,UklGR");
            assert!(
                is_sound || !name.starts_with("on") && !["src", "href", "srcset", "data"].contains(&name),
                "{name}"
            );
            assert!(is_sound || !value.contains("NaN") && !value.contains("inf "), "{name}: {value}");
        }
        let is_named =
            || node.attribute("aria-hidden").is_some() || node.children().any(|c| c.has_tag_name("title"));
        assert!(name != "svg" || is_named(), "a drawing without a title");
    }
    // Base64 has slashes of its own.
    let html: String = html
        .split("data:audio/wav;base64,")
        .enumerate()
        .map(|(part, text)| if part == 0 { text } else { &text[text.find('"').unwrap()..] })
        .collect();
    for elsewhere in ["http:", "https:", "url(", "@import", "//"] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("name=\"viewport\""));
    html
}

pub fn has(html: &str, words: &[&str]) {
    for word in words {
        assert!(html.contains(word), "no {word:?} in the page");
    }
}

#[test]
fn directions_waveforms_and_pictures() {
    let desk = Desk::new();
    let mut plane = description("gsc", 2, 3);
    write(&desk, &plane);
    import(&desk, "gsc", &plane, "");
    let html = page(&desk, "");
    has(&html, &["the 3 mixing directions", "Spikelet model report", "strength when on", "nats per point"]);
    has(&html, &["To see what the model makes of single points", "−2.500", "Settings", "Flash"]);
    plane["parameters"]["w"].as_array_mut().unwrap().truncate(1);
    fs::remove_file(desk.path("m.spk")).unwrap();
    write(&desk, &plane);
    has(&page(&desk, ""), &["direction of latent 0", "does not lie beside"]);

    let mut windows = description("gsc", 16, 4);
    windows["frame"] = json!({ "form": "windows", "length": 16, "hop": 4, "rate": 8000, "centred": false });
    write(&desk, &windows);
    import(&desk, "gsc", &windows, "--frame 16 --hop 4");
    let sound: Vec<f32> = wave(400).iter().map(|&y| 0.5 * y as f32).collect();
    write_wav(desk.path("y.wav"), 8000, 1, &sound).unwrap();
    let html = page(&desk, "--data y.wav");
    has(
        &html,
        &[
            "waveform of latent 3",
            "2.000 ms at 8000 samples",
            "data and explanation of point",
            "same best state",
        ],
    );

    let mut patches = description("gsc", 12, 4);
    patches["frame"] = json!({ "form": "patches", "width": 4, "height": 3, "centred": true });
    write(&desk, &patches);
    import(&desk, "gsc", &patches, "--patch 4x3");
    desk.array("pixels.npy", &[20, 30], &wave(600));
    let html = page(&desk, "--data pixels.npy");
    has(
        &html,
        &["picture of latent 3", "viewBox=\"0 0 4 3\"", "explained of point", "i8", "Blue is above zero"],
    );
}

/// Kinds with and without strengths, of which the strongest counts or not, sampled or not.
#[test]
fn every_kind() {
    for kind in ["bsc", "nmf", "mca", "ssmca", "gsc"] {
        let desk = Desk::new();
        let value = description(kind, 9, 5);
        write(&desk, &value);
        import(&desk, kind, &value, "");
        desk.array("Y.npy", &[30, 9], &wave(270));
        let html = page(&desk, "--data Y.npy --patch 3x3");
        has(&html, &["viewBox=\"0 0 3 3\"", "of its energy explained", "same best state", kind]);
        let slab = kind == "gsc" || kind == "ssmca";
        assert_eq!(html.contains("how strong they are"), slab, "{kind}");
        assert_eq!(html.contains("Latents are on or off;"), !slab, "{kind}");
    }
}

/// The figures of integers are those of `quantize` where all points are taken.
#[test]
fn losses_are_those_of_quantize() {
    let desk = Desk::new();
    let value = description("gsc", 6, 4);
    write(&desk, &value);
    import(&desk, "gsc", &value, "");
    desk.array("Y.npy", &[50, 6], &wave(300));
    let html = page(&desk, "--data Y.npy");
    for encoding in ["i16", "i8"] {
        let text =
            desk.good(&format!("quantize m.spk --encoding {encoding} --out q.spk --data Y.npy --json"));
        let json: Value = serde_json::from_str(&text).unwrap();
        let agreement = 100.0 * json["map_agreement"].as_f64().unwrap();
        let loss = json["loss_db"].as_f64().unwrap();
        let row = html.split(&format!("<th scope=\"row\">{encoding}</th>")).nth(1).unwrap();
        let row = row.split("</tr>").next().unwrap();
        let loss = format!("{loss:.3} dB").replace('-', "−").replace("−0.000", "0.000");
        assert!(
            row.contains(&loss) && row.contains(&format!("{} bytes", json["blob_bytes"])),
            "{row} {json}"
        );
        let agreement = if agreement > 99.95 { "100 %".into() } else { format!("{agreement:.1} %") };
        assert!(row.contains(&agreement), "{row} {json}");
    }
}

#[test]
fn a_real_run() {
    let desk = Desk::with_model();
    desk.good("train --model gsc --latents 3 --iterations 5 --noise full --slab full Y.npy --out m.spk");
    let html = page(&desk, "--data Y.npy");
    has(
        &html,
        &["Of 4 starts this is number", "may be correlated", "depend on each other", "train on 20 points"],
    );
    // The same page again, bit for bit.
    let first = fs::read(desk.path("report.html")).unwrap();
    desk.good("report m.json --out again.html --data Y.npy");
    assert!(first == fs::read(desk.path("again.html")).unwrap());
}

#[test]
fn extremes_draw() {
    let desk = Desk::new();
    let mut one = description("gsc", 1, 1);
    one["history"] = json!([{ "iteration": 0, "free_energy": 0.0, "seconds": 0.0 }]);
    write(&desk, &one);
    import(&desk, "gsc", &one, "");
    desk.array("Y.npy", &[1, 1], &[0.0]);
    // Integers need two dimensions; the page says so.
    has(&page(&desk, "--data Y.npy"), &["all zero", "i8 is not possible"]);
    fs::remove_file(desk.path("m.spk")).unwrap();
    one["history"] = json!([]);
    write(&desk, &one);
    has(&page(&desk, ""), &["has no history"]);

    let mut flat = description("bsc", 2, 2);
    flat["parameters"]["w"] = json!([[0.0, 1e308], [1e-320, -1e308]]);
    flat["parameters"]["sigma2"] = json!([1e-300, 1e300]);
    let step =
        |i: usize| json!({ "iteration": i, "free_energy": -1e308, "seconds": 1e308, "temperature": 2.0 });
    flat["history"] = (0..5000).map(step).collect();
    write(&desk, &flat);
    has(&page(&desk, ""), &["Dotted: annealed"]);

    write(&desk, &description("gsc", 2000, 3));
    assert!(page(&desk, "").len() < 100_000);
    let mut many = description("gsc", 4, 10_000);
    many["warnings"] = json!(vec!["the same again"; 10_000]);
    write(&desk, &many);
    let html = page(&desk, "");
    has(&html, &["9744 more are in the model", "9950 more warnings"]);
    assert!(html.len() < 300_000, "{}", html.len());
}

#[test]
fn hostile_text_stays_text() {
    let desk = Desk::new();
    let attack = "</style></title><script>alert(1)</script>\" onload='x' \u{202e}\u{0}&amp;";
    let mut value = description("gsc", 2, 2);
    value["settings"]["note"] = json!({ attack: [attack, { attack: attack }] });
    value["settings"][attack] = json!(attack);
    value["warnings"] = json!([attack]);
    value["version"] = json!(attack);
    write(&desk, &value);
    import(&desk, "gsc", &value, "");
    desk.good_with(&[
        "import",
        "--model",
        "gsc",
        "--w",
        "W.npy",
        "--sigma2",
        "0.25",
        "--provenance",
        &attack.replace('\u{0}', ""),
        "--out",
        "m.spk",
    ]);
    let html = page(&desk, "");
    assert!(
        !html.contains("<script") && !html.contains('\u{202e}') && html.contains("&lt;script&gt;alert(1)")
    );
    // Names of files are text as well.
    let name = "<b onclick='x'>&.json";
    fs::copy(desk.path("m.json"), desk.path(name)).unwrap();
    desk.good_with(&["report", name, "--out", "report.html"]);
    let html = fs::read_to_string(desk.path("report.html")).unwrap();
    assert!(html.contains("&lt;b onclick=&#39;x&#39;&gt;&amp;") && !html.contains("<b onclick"));
}

#[test]
fn what_is_no_description() {
    let desk = Desk::new();
    let good = description("gsc", 4, 3);
    import(&desk, "gsc", &good, "");
    write(&desk, &good);
    desk.array("Y.npy", &[5, 4], &wave(20));
    desk.array("short.npy", &[5, 3], &wave(15));
    fs::create_dir(desk.path("folder.json")).unwrap();
    fs::write(desk.path("bytes.json"), [0xff, 0xfe, 0]).unwrap();
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        fs::write(desk.path(name), value.to_string()).unwrap();
    };
    fs::write(desk.path("text.json"), "not JSON").unwrap();
    fs::write(desk.path("empty.json"), "").unwrap();
    fs::write(desk.path("deep.json"), "[".repeat(100_000)).unwrap();
    fs::write(desk.path("cut.json"), &good.to_string()[..200]).unwrap();
    changed("lacks.json", &|v| drop(v.as_object_mut().unwrap().remove("history")));
    changed("lacks-w.json", &|v| drop(v["parameters"].as_object_mut().unwrap().remove("w")));
    changed("lacks-kind.json", &|v| drop(v["settings"].as_object_mut().unwrap().remove("model")));
    changed("kind.json", &|v| v["settings"]["model"] = json!("ica"));
    changed("null.json", &|v| v["parameters"]["w"][1][2] = Value::Null);
    changed("ragged.json", &|v| drop(v["parameters"]["w"][2].as_array_mut().unwrap().pop()));
    changed("none.json", &|v| v["parameters"]["w"] = json!([]));
    changed("pi.json", &|v| v["parameters"]["pi"][1] = json!(1.5));
    changed("mu.json", &|v| v["parameters"]["mu"] = json!([1.0]));
    changed("noise.json", &|v| v["parameters"]["sigma2"] = json!("loud"));
    changed("points.json", &|v| v["points"] = json!(0));
    changed("patches.json", &|v| v["frame"] = json!({ "form": "patches", "width": 3, "height": 2 }));
    changed("vast.json", &|v| v["frame"] = json!({ "form": "patches", "width": 1u64 << 63, "height": 2 }));
    changed("windows.json", &|v| v["frame"] = json!({ "form": "windows" }));
    changed("other.json", &|v| v["parameters"]["w"][1][1] = json!(9.0));
    fs::copy(desk.path("m.spk"), desk.path("other.spk")).unwrap();
    fs::write(desk.path("smaller.json"), description("gsc", 4, 2).to_string()).unwrap();
    fs::copy(desk.path("m.spk"), desk.path("smaller.spk")).unwrap();
    let mut binary = description("bsc", 4, 3);
    binary["parameters"]["w"] = good["parameters"]["w"].clone();
    fs::write(desk.path("binary.json"), binary.to_string()).unwrap();
    fs::copy(desk.path("m.spk"), desk.path("binary.spk")).unwrap();
    fs::copy(desk.path("m.json"), desk.path("damaged.json")).unwrap();
    fs::write(desk.path("damaged.spk"), &fs::read(desk.path("m.spk")).unwrap()[..100]).unwrap();
    fs::copy(desk.path("m.json"), desk.path("alone.json")).unwrap();
    let before = desk.content();
    for (line, what) in [
        ("absent.json --out r.html", "there is no such file: absent.json"),
        ("folder.json --out r.html", "this is not a file: folder.json"),
        ("bytes.json --out r.html", "this is not text: bytes.json: give the MODEL.json"),
        ("text.json --out r.html", "line 1 column 2"),
        ("empty.json --out r.html", "EOF"),
        ("deep.json --out r.html", "deep.json: give the MODEL.json that `spikelet train` wrote"),
        ("cut.json --out r.html", "this is no description of a model"),
        ("lacks.json --out r.html", "missing field `history`"),
        ("lacks-w.json --out r.html", "missing field `w`"),
        ("lacks-kind.json --out r.html", "`settings` lacks the key `model`"),
        ("kind.json --out r.html", "knows no model \"ica\""),
        ("null.json --out r.html", "null"),
        ("ragged.json --out r.html", "parameters.w[2] has 2 numbers where 3 are needed"),
        ("none.json --out r.html", "no dimensions"),
        ("pi.json --out r.html", "pi[1]"),
        ("mu.json --out r.html", "1 numbers where 3 are needed: mu"),
        ("noise.json --out r.html", "neither a number"),
        ("points.json --out r.html", "`points` is 0"),
        ("patches.json --out r.html", "patches of 3 x 2 pixels, but 4 dimensions"),
        ("vast.json --out r.html", "but 4 dimensions"),
        ("windows.json --out r.html", "how large its windows are"),
        (
            "other.json --out r.html",
            "W[1, 1] of the description is not that of the model: other.json and other.spk",
        ),
        ("smaller.json --out r.html", "4 dimensions and 2 latents, the model 4 and 3"),
        ("binary.json --out r.html", "kind bsc, the model gsc"),
        ("damaged.json --out r.html", "the model is damaged"),
        ("alone.json --out r.html --data Y.npy", "there is no model to infer with: alone.spk"),
        ("m.json --out r.html --data short.npy", "the points have 3 dimensions, the model 4"),
        ("m.json --out r.html --data absent.npy", "there is no such file"),
        ("m.json --out r.html --patch 3x3", "4 dimensions are no 3 x 3 pixels"),
        ("m.json --out r.html --patch 3", "--patch"),
        ("m.json --out m.json", "would replace"),
        ("m.json --out m.spk", "would replace"),
        ("m.json --out Y.npy --data Y.npy", "would replace"),
        ("m.json --out absent/r.html", "the folder does not exist"),
        ("m.json", "--out"),
    ] {
        let arguments: Vec<_> = ["report"].into_iter().chain(line.split_whitespace()).collect();
        let output = desk.run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.starts_with("error: ") && text.contains(what), "{line}: {text}");
    }
    assert!(desk.content() == before, "something was written");
}

/// Players, figures, names of channels and scales.
#[test]
fn a_recording_can_be_heard() {
    let desk = Desk::new();
    crate::front_end::mix(&desk, "mix.wav", 8000, 0);
    let line = "train --model gsc --latents 2 --bins 32 --transform mdct --iterations 8 --restarts 1 mix.wav --out m.spk";
    desk.good(line);
    desk.good("separate m.spk mix.wav --out-dir out");
    let html = page(&desk, "--data mix.wav --reference out/source_0.wav out/source_1.wav");
    // The mixture and two sources; of a result against itself nothing is missing.
    assert_eq!(html.matches("<audio controls").count(), 3);
    assert!(html.contains("media-src data:") && html.contains(">300.0 dB<"), "SI-SDR, at its limit");
    for words in [">channel 1<", ">channel 2<", "class=\"top\"", " Hz, "] {
        assert!(html.contains(words), "{words}");
    }
    assert!(page(&desk, "--data mix.wav").contains("shows with <code>--reference</code>"));
    // References of other lengths, or of data that is no recording.
    let bad = |line: &str, words: &str| {
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{line}: {said}");
    };
    write_wav(desk.path("short.wav"), 8000, 1, &[0.5; 100]).unwrap();
    bad(
        "report m.json --data mix.wav --reference short.wav --out x.html",
        "100 samples where the mixture has",
    );
    bad("report m.json --reference out/source_0.wav --out x.html", "--data");

    fs::write(desk.path("table.csv"), "left,right\n1,2\n2,1\n-1,1\n0.5,3\n").unwrap();
    desk.good("train --model gsc --latents 2 --iterations 2 --restarts 1 table.csv --out m.spk");
    let html = page(&desk, "--data table.csv");
    assert!(html.contains(">left<") && html.contains(">right<"));
    bad("report m.json --data table.csv --reference short.wav --out x.html", "only recordings have sources");
}
