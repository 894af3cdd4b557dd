//! Pictures and windows of recordings through `train`, `denoise`, `infer`, `eval` and `inspect`.

use super::Desk;
use clap::Parser;
use spikelet::frame::Form;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Sheet, SheetKind, read_array, write_wav};
use std::fs;

pub const PATCH: Form = Form::Patches { width: 4, height: 4, colours: 1 };

/// Stripes of several directions, and noise that is the same in every run.
pub fn picture(width: usize, height: usize, planes: usize, noise: f64) -> Sheet {
    let mut rng = Rng::new(3);
    let mut plane = |p: usize| {
        let pixel = |i: usize| {
            let (x, y) = (i % width, i / width);
            let stripes = if (x / 8 + y / 8).is_multiple_of(2) { x } else { y };
            let edge = if stripes / 2 % 2 == p % 2 { 170.0 } else { 90.0 };
            edge + noise * rng.normal::<f64>()
        };
        (0..width * height).map(pixel).collect()
    };
    let kind = SheetKind::Picture { fine: false, opacity: None };
    Sheet { kind, width, height, planes: (0..planes).map(&mut plane).collect() }
}

fn desk_with_pictures() -> Desk {
    let desk = Desk::new();
    picture(48, 40, 1, 0.0).write(desk.path("clean.png")).unwrap();
    picture(48, 40, 1, 25.0).write(desk.path("noisy.png")).unwrap();
    desk.good("train --model gsc --latents 16 --selected 8 --max-active 3 --iterations 15 --restarts 1 --patch 4x4 noisy.png --out m.spk");
    desk
}

/// The decibels after a word.
pub fn decibels(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no {word} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn noise_is_removed_from_a_picture() {
    let desk = desk_with_pictures();
    let text = desk.good("denoise m.spk noisy.png out.png --reference clean.png --threads 1");
    let (after, before) = (decibels(&text, "PSNR "), decibels(&text, "before "));
    assert!(after > before + 4.0, "{text}");
    let result = Sheet::read(desk.path("out.png"), PATCH).unwrap();
    let clean = Sheet::read(desk.path("clean.png"), PATCH).unwrap();
    let error = result.mean_square_error(&clean);
    // Rounding to whole pixels is all that is between the file and the figure.
    assert!((10.0 * (255.0f64 * 255.0 / error).log10() - after).abs() < 0.05);
    // The same whatever the number of threads; fewer patches are worse but not bad.
    desk.good("denoise m.spk noisy.png three.png --threads 3");
    assert_eq!(fs::read(desk.path("out.png")).unwrap(), fs::read(desk.path("three.png")).unwrap());
    let coarse = desk.good("denoise m.spk noisy.png coarse.png --reference clean.png --step 3");
    assert!(decibels(&coarse, "PSNR ") > before + 2.0);
    let sampled =
        desk.good("denoise m.spk noisy.png drawn.png --reference clean.png --engine gibbs --sweeps 40");
    assert!((decibels(&sampled, "PSNR ") - after).abs() < 1.0, "{sampled} {text}");
    // eval takes patches as they are. So does denoise where it samples; where it searches, it gains from their overlap.
    let by_itself = |engine: &str| -> f64 {
        let told = desk.good(&format!("eval m.spk noisy.png --reference clean.png --json {engine}"));
        serde_json::from_str::<serde_json::Value>(&told).unwrap()["psnr_db"].as_f64().unwrap()
    };
    assert!(
        (by_itself("--engine gibbs --sweeps 40") - decibels(&sampled, "PSNR ")).abs() < 0.006,
        "{sampled}"
    );
    let apart = by_itself("");
    assert!(apart > before + 4.0 && after > apart - 0.05, "{apart} {after}");
}

#[test]
fn sizes_are_chosen_from_the_picture() {
    let desk = Desk::new();
    picture(96, 80, 1, 0.0).write(desk.path("clean.png")).unwrap();
    picture(96, 80, 1, 25.0).write(desk.path("noisy.png")).unwrap();
    let words = ["train", "noisy.png", "--out", "m.spk", "--iterations", "6"];
    let output = desk.run(&words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("--patch 10x10 --latents 150 were chosen"), "{said}");
    // The noise that is found is that of the model, nearly: sigma^2 of all directions but the mean.
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(desk.path("m.json")).unwrap()).unwrap();
    assert_eq!(json["settings"]["means_off"], 1);
    let sigma2 = json["parameters"]["sigma2"].as_f64().unwrap();
    assert!((20.0 * 20.0..28.0 * 28.0).contains(&sigma2), "{sigma2}");
    let text = desk.good("denoise m.spk noisy.png out.png --reference clean.png");
    assert!(decibels(&text, "PSNR ") > decibels(&text, "before ") + 6.0, "{text}");
    // What a flag says is left as it is.
    let words =
        ["train", "noisy.png", "--out", "n.spk", "--iterations", "1", "--latents", "70", "--patch", "6x6"];
    assert!(!String::from_utf8(desk.run(&words).stderr).unwrap().contains("chosen"));
    // Other kinds are told what lacks.
    desk.array("pixels.npy", &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    for (line, what) in [
        ("train --model nmf --latents 5 noisy.png --out n.spk", "for gsc only: --patch"),
        ("train --model gsc pixels.npy --out n.spk", "--latents"),
        ("train --latents 3 pixels.npy --out n.spk", "--model"),
    ] {
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(what), "{line}: {said}");
    }
}

#[test]
fn colours_are_learned_together() {
    let desk = Desk::new();
    picture(64, 48, 3, 0.0).write(desk.path("clean.png")).unwrap();
    picture(64, 48, 3, 25.0).write(desk.path("noisy.png")).unwrap();
    let train = "train --model gsc --latents 60 --patch 4x4 --iterations 6 --batch 300 noisy.png --out";
    desk.good(&format!("{train} together.spk"));
    desk.good(&format!("{train} apart.spk --colours apart"));
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect together.spk --json")).unwrap();
    assert_eq!(json["frame"], "patches of 4 x 4 pixels in 3 colours without their mean");
    let psnr = |name: &str| {
        let text = desk.good(&format!("denoise {name}.spk noisy.png {name}.png --reference clean.png"));
        (decibels(&text, "PSNR "), decibels(&text, "before "))
    };
    let ((together, before), (apart, _)) = (psnr("together"), psnr("apart"));
    assert!(together > apart + 0.5 && apart > before + 4.0, "{together} {apart} {before}");
    // Goes on from such a model, and refuses grey pictures for it.
    desk.good("train --from together.json --iterations 1 noisy.png --out more.spk");
    picture(64, 48, 1, 0.0).write(desk.path("grey.png")).unwrap();
    let output = desk.run(&["denoise", "together.spk", "grey.png", "out.png"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 colours where patches have 3"));
    desk.good("report together.json --out page.html");
    // An array has colours, too, where sizes are chosen.
    let array = Sheet { kind: SheetKind::Array { colours: true }, ..picture(64, 48, 3, 25.0) };
    array.write(desk.path("noisy.npy")).unwrap();
    desk.good("train --patch auto noisy.npy --iterations 1 --out auto.spk");
    desk.good("denoise auto.spk noisy.npy auto.npy");
}

#[test]
fn the_model_knows_how_its_points_are_made() {
    let desk = desk_with_pictures();
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
    assert_eq!(json["frame"], "patches of 4 x 4 pixels without their mean");
    assert!(json["rate"].is_null());
    desk.good("infer m.spk noisy.png --out-dir out");
    assert_eq!(read_array(desk.path("out/mean.npy")).unwrap().shape, [45 * 37, 16]);
    let text = fs::read_to_string(desk.path("m.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["frame"]["width"], 4);
    // Integers know it too.
    let text =
        desk.good("quantize m.spk --encoding i16 --out q.spk --data noisy.png --reference clean.png --json");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["loss_db"].as_f64().unwrap().abs() < 0.05, "{text}");
    for (at, model) in ["m.spk", "q.spk"].iter().enumerate() {
        let eval = desk.good(&format!("eval {model} noisy.png --reference clean.png --json"));
        let eval: serde_json::Value = serde_json::from_str(&eval).unwrap();
        let [a, b] = [&json["psnr_db"][at], &eval["psnr_db"]].map(|value| value.as_f64().unwrap());
        assert!((a - b).abs() < 1e-6, "{text} {eval}");
    }
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect q.spk --json")).unwrap();
    assert_eq!(json["frame"], "patches of 4 x 4 pixels without their mean");
    desk.good("denoise q.spk noisy.png out.png");
    // Parameters that came from elsewhere, for patches that keep their mean.
    desk.array("W.npy", &[16, 2], &[1.0; 32]);
    desk.good("import --model gsc --w W.npy --sigma2 1 --patch 4x4 --remove-mean off --out w.spk");
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect w.spk --json")).unwrap();
    assert_eq!(json["frame"], "patches of 4 x 4 pixels");
}

#[test]
fn colours_depth_and_transparency_are_kept() {
    let desk = desk_with_pictures();
    for (fine, opaque, planes) in [(false, true, 3), (true, false, 1), (true, true, 3)] {
        let mut sheet = picture(20, 12, planes, 30.0);
        let opacity = opaque.then(|| (0..240).map(f64::from).collect());
        sheet.kind = SheetKind::Picture { fine, opacity };
        sheet.write(desk.path("in.png")).unwrap();
        let read = Sheet::read(desk.path("in.png"), PATCH).unwrap();
        let step = if fine { 0.5 / 257.0 } else { 0.5 };
        let far = |a: &Sheet, b: &Sheet| {
            a.planes.iter().flatten().zip(b.planes.iter().flatten()).any(|(a, b)| (a - b).abs() > step + 1e-9)
        };
        assert!(read.kind == sheet.kind && !far(&read, &sheet));
        desk.good("denoise m.spk in.png out.png");
        let out = Sheet::read(desk.path("out.png"), PATCH).unwrap();
        assert_eq!((out.kind, out.planes.len()), (read.kind, planes));
        desk.good("denoise m.spk in.png out.npy");
        let out = Sheet::read(desk.path("out.npy"), PATCH).unwrap();
        assert_eq!(out.size(), [12, 20, planes]);
    }
}

#[test]
fn windows_of_a_recording() {
    let desk = Desk::new();
    let wave = |i: usize| ((i / 40 % 2) as f32 - 0.5) * (0.3 * i as f32).sin();
    let mut rng = Rng::new(5);
    let clean: Vec<f32> = (0..4000).map(wave).collect();
    let noisy: Vec<f32> = clean.iter().map(|y| y + 0.15 * rng.normal::<f32>()).collect();
    write_wav(desk.path("clean.wav"), 8000, 1, &clean).unwrap();
    write_wav(desk.path("noisy.wav"), 8000, 1, &noisy).unwrap();
    desk.good(
        "train --model gsc --latents 8 --frame 20 --hop 5 --iterations 30 --restarts 2 noisy.wav --out m.spk",
    );
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect m.spk --json")).unwrap();
    assert_eq!((&json["frame"], &json["rate"]), (&"windows of 20 samples every 5".into(), &8000.into()));
    let text = desk.good("denoise m.spk noisy.wav out.wav --reference clean.wav");
    assert!(decibels(&text, "SNR ") > decibels(&text, "before ") + 3.0, "{text}");
}

/// Points that are neither patches nor windows.
#[test]
fn rows_and_samples_one_by_one() {
    let desk = Desk::with_model();
    let text = desk.good("denoise model.spk Y.npy out.npy --reference Y.npy");
    assert!(text.contains("before 300.00 dB"), "{text}");
    assert_eq!(read_array(desk.path("out.npy")).unwrap().shape, [20, 4]);
    write_wav(desk.path("y.wav"), 8000, 4, &[0.25; 40]).unwrap();
    desk.good("denoise model.spk y.wav out.wav");
    assert!(desk.path("out.wav").exists());
}

#[test]
fn hostile_pictures_are_refused() {
    let desk = desk_with_pictures();
    let good = fs::read(desk.path("noisy.png")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(desk.path(name), bytes).unwrap();
    write("cut.png", &good[..good.len() / 2]);
    write("head.png", &good[..20]);
    write("text.png", b"not a picture");
    write("none.png", b"");
    let mut flipped = good.clone();
    flipped[60] ^= 0xff;
    write("flipped.png", &flipped);
    // A header of 100 000 x 100 000 pixels with its checksum, and nothing behind it.
    let mut bomb = good[..33].to_vec();
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let crc = spikelet::blob::crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.to_be_bytes());
    bomb.extend(&good[33..]);
    write("bomb.png", &bomb);
    picture(3, 3, 1, 0.0).write(desk.path("small.png")).unwrap();
    desk.array("nan.npy", &[5, 5], &[f64::NAN; 25]);
    desk.array("flat.npy", &[25], &[1.0; 25]);
    desk.array("none.npy", &[0, 5], &[]);
    let before = desk.content();
    for (line, what) in [
        ("denoise m.spk cut.png out.png", "cannot be read"),
        ("denoise m.spk head.png out.png", "cannot be read"),
        ("denoise m.spk text.png out.png", "cannot be read"),
        ("denoise m.spk none.png out.png", "the file is empty"),
        ("denoise m.spk flipped.png out.png", "cannot be read"),
        ("denoise m.spk bomb.png out.png", "bomb.png"),
        ("denoise m.spk small.png out.png", "3 x 3 pixels are less than a patch of 4 x 4"),
        ("denoise m.spk nan.npy out.npy", "row 0, column 0"),
        ("denoise m.spk flat.npy out.npy", "axes"),
        ("denoise m.spk none.npy out.npy", "no pixels"),
        ("denoise m.spk noisy.png out.jpg", "out.jpg"),
        ("denoise m.spk noisy.png noisy.png", "would replace"),
        ("denoise m.spk noisy.png m.spk", "would replace"),
        ("denoise m.spk noisy.png out.png --reference small.png", "3 x 3 x 1"),
        ("denoise m.spk noisy.png out.png --sweeps 5", "--sweeps"),
        ("denoise m.spk noisy.png out.png --step 5", "--step"),
        ("train --model nmf --latents 4 noisy.png --out x.spk", "--patch 8x8"),
        ("train --model gsc --latents 4 --patch 0x4 noisy.png --out x.spk", "--patch"),
        ("train --model gsc --latents 4 --frame 8 --hop 9 noisy.png --out x.spk", "--hop"),
        ("train --model gsc --latents 4 --frame 8 noisy.png --out x.spk", "no recording"),
        ("train --model nmf --latents 4 --patch 4x4 --remove-mean on noisy.png --out x.spk", "not negative"),
    ] {
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.starts_with("error: ") && text.contains(what), "{line}: {text}");
    }
    assert_eq!(desk.content(), before);
}

#[test]
fn the_experiment_runs() {
    let desk = Desk::new();
    picture(64, 64, 1, 0.0).write(desk.path("stripes.png")).unwrap();
    let path = desk.path("stripes.png");
    let arguments =
        experiment::common::Arguments::parse_from(["pictures", "--quick", path.to_str().unwrap()]);
    experiment::experiment(&arguments).unwrap();
}

#[path = "../../experiments/pictures.rs"]
mod experiment;
