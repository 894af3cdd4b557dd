//! Pictures with missing pixels through `train` and `denoise`.

use super::Desk;
use super::pictures::{PATCH, decibels, picture};
use spikelet::rng::Rng;
use spikelet_trainer::data::Sheet;
use std::fs;

/// A picture without noise, its mask with this part of the pixels missing, and the picture with rubbish in them.
fn desk_with_holes(planes: usize, part: f64) -> Desk {
    let desk = Desk::new();
    let clean = picture(48, 40, planes, 0.0);
    clean.write(desk.path("clean.png")).unwrap();
    let mut rng = Rng::new(11);
    let mut mask = picture(48, 40, 1, 0.0);
    mask.planes[0].iter_mut().for_each(|m| *m = if rng.uniform::<f64>() < part { 255.0 } else { 0.0 });
    mask.write(desk.path("mask.png")).unwrap();
    let mut holes = clean;
    for plane in &mut holes.planes {
        for (value, missing) in plane.iter_mut().zip(&mask.planes[0]) {
            if *missing > 0.0 {
                *value = 255.0 * rng.uniform::<f64>();
            }
        }
    }
    holes.write(desk.path("holes.png")).unwrap();
    desk
}

const TRAIN: &str = "train --model gsc --latents 40 --patch 6x6 --batch 300 --iterations 8 holes.png --mask mask.png --out m.spk";

#[test]
fn missing_pixels_are_filled() {
    for planes in [1, 3] {
        let desk = desk_with_holes(planes, 0.5);
        desk.good(TRAIN);
        let fill = "denoise m.spk holes.png out.png --mask mask.png --fill-only --reference clean.png";
        let text = desk.good(fill);
        assert!(text.contains("% of the pixels were missing"), "{text}");
        let (after, neighbours) = (decibels(&text, "PSNR "), decibels(&text, "in their place "));
        assert!(after > neighbours + 4.0, "{text}");
        // What is known stays as it is, and whatever is where a pixel is missing does not matter.
        let [out, holes, mask] =
            ["out.png", "holes.png", "mask.png"].map(|name| Sheet::read(desk.path(name), PATCH).unwrap());
        let known = |i: usize| mask.planes[0][i] == 0.0;
        for (out, holes) in out.planes.iter().zip(&holes.planes) {
            assert!((0..out.len()).all(|i| !known(i) || out[i] == holes[i]));
        }
        if planes > 1 {
            continue;
        }
        let bytes = fs::read(desk.path("out.png")).unwrap();
        let model = fs::read(desk.path("m.spk")).unwrap();
        let mut other = holes;
        for plane in &mut other.planes {
            (0..plane.len()).filter(|&i| !known(i)).for_each(|i| plane[i] = 0.0);
        }
        other.write(desk.path("holes.png")).unwrap();
        desk.good(&format!("{TRAIN} --threads 1"));
        assert_eq!(fs::read(desk.path("m.spk")).unwrap(), model);
        desk.good(&format!("{fill} --threads 3"));
        assert_eq!(fs::read(desk.path("out.png")).unwrap(), bytes);
        // Without --fill-only known pixels are those of the model.
        desk.good("denoise m.spk holes.png all.png --mask mask.png");
        assert_ne!(fs::read(desk.path("all.png")).unwrap(), bytes);
    }
}

#[test]
fn sizes_are_chosen_where_pixels_are_missing() {
    let desk = desk_with_holes(1, 0.8);
    let output =
        desk.run(&["train", "holes.png", "--mask", "mask.png", "--out", "m.spk", "--iterations", "2"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("were chosen"), "{said}");
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let desk = desk_with_holes(1, 0.5);
    desk.good("train --model gsc --latents 4 --patch 4x4 --iterations 1 --restarts 1 holes.png --out m.spk");
    picture(20, 12, 1, 0.0).write(desk.path("small.png")).unwrap();
    picture(48, 40, 3, 0.0).write(desk.path("colours.png")).unwrap();
    let mut all = picture(48, 40, 1, 0.0);
    all.planes[0].fill(1.0);
    all.write(desk.path("all.png")).unwrap();
    desk.array("W.npy", &[16, 2], &(0..32).map(f64::from).collect::<Vec<_>>());
    desk.good("import --model gsc --w W.npy --sigma2 1 --states table --patch 4x4 --out table.spk");
    desk.good("import --model gsc --w W.npy --sigma2 1 --out rows.spk");
    let before = desk.content();
    for (line, what) in [
        (
            "train holes.png --mask small.png --out x.spk",
            "the mask has 20 x 12 pixels in grey, the picture 48 x 40",
        ),
        ("train holes.png --mask colours.png --out x.spk", "colours"),
        ("train holes.png --mask all.png --out x.spk", "all pixels are missing: all.png"),
        ("train holes.png --mask none.png --out x.spk", "none.png"),
        ("train holes.png clean.png --mask mask.png --out x.spk", "a mask is that of one picture: --mask"),
        ("train holes.png --mask mask.png --model nmf --latents 4 --out x.spk", "--model"),
        ("train holes.png --mask mask.png --whiten --out x.spk", "--whiten"),
        ("train holes.png --mask mask.png --holdout 0.1 --out x.spk", "--holdout"),
        ("train holes.png --mask mask.png --states subsets --out x.spk", "--states subsets"),
        ("train holes.png --mask mask.png --engine gibbs --out x.spk", "--engine"),
        ("train holes.png --mask mask.png --noise full --out x.spk", "--noise full"),
        (
            "train --model gsc --latents 4 --frame 8 holes.png --mask mask.png --out x.spk",
            "recordings have no mask: --mask",
        ),
        ("train --model gsc --latents 4 W.npy --mask W.npy --out x.spk", "there are no patches: --mask"),
        (
            "train --model gsc --latents 4 --patch 4x4 holes.png --mask mask.png --out mask.png",
            "would replace",
        ),
        ("denoise m.spk holes.png x.png --mask small.png", "20 x 12"),
        ("denoise m.spk holes.png x.png --mask all.png", "all pixels are missing"),
        ("denoise m.spk holes.png x.png --fill-only", "nothing says which pixels are missing: --fill-only"),
        ("denoise m.spk holes.png mask.png --mask mask.png", "would replace"),
        ("denoise m.spk holes.png x.png --mask mask.png --engine gibbs", "missing pixels do not go with it"),
        ("denoise table.spk holes.png x.png --mask mask.png", "missing pixels do not go with it: table.spk"),
        ("denoise rows.spk W.npy x.npy --mask mask.png", "the model has no patches of pictures: --mask"),
        ("denoise m.spk holes.png x.png --mask mask.png --reference small.png", "12 x 20 x 1"),
    ] {
        let output = desk.run(&line.split_whitespace().collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.starts_with("error: ") && text.contains(what), "{line}: {text}");
    }
    assert_eq!(desk.content(), before);
}
