//! `train --model spatial` and what works on its models, in a small room made here.

use super::report::{has, page_of};
use crate::desk::Desk;
use serde_json::Value;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Points, write_wav};
use spikelet_trainer::metrics::si_sdr_db;
use spikelet_trainer::spatial::simulate::{Shoebox, Walk};
use std::fs;

const RATE: u32 = 8000;

/// Bursts of noise of a colour, on and off by turns that differ.
fn sound(rng: &mut Rng, colour: f64, samples: usize) -> Vec<f64> {
    let (mut state, mut is_on) = (0.0, true);
    let mut next = |n: usize| {
        if n.is_multiple_of(900) {
            is_on = rng.uniform::<f64>() < 0.5;
        }
        state = colour * state + rng.normal::<f64>();
        if is_on { state } else { 0.0 }
    };
    (0..samples).map(&mut next).collect()
}

/// With mix.wav: two sources on so many microphones; their images at the first one are returned.
fn desk(microphones: usize, seconds: f64) -> (Desk, Vec<Vec<f64>>) {
    let mut rng = Rng::new(7);
    let samples = (seconds * f64::from(RATE)) as usize;
    let sounds = [sound(&mut rng, 0.7, samples), sound(&mut rng, -0.3, samples)];
    let room = Shoebox::random(microphones, 2, 0.06, 0.1, &mut rng);
    let heard = room.record(&[&sounds[0], &sounds[1]], RATE, &mut rng);
    let desk = Desk::new();
    write_wav(desk.path("mix.wav"), RATE, microphones, &heard.mixture).unwrap();
    for (name, image) in ["a.wav", "b.wav"].iter().zip(&heard.images) {
        let image: Vec<f32> = image.iter().map(|&x| x as f32).collect();
        write_wav(desk.path(name), RATE, 1, &image).unwrap();
    }
    (desk, heard.images)
}

fn json(desk: &Desk, name: &str) -> Value {
    serde_json::from_slice(&fs::read(desk.path(name)).unwrap()).unwrap()
}

const SHORT: &str = "--frame 256 --iterations 6";

#[test]
fn from_a_recording_to_its_sources() {
    let (desk, images) = desk(2, 4.0);
    let said = desk.good("train --model spatial --latents 2 --frame 512 mix.wav --out room.spk");
    assert!(said.contains("2 sources on 2 microphones"), "{said}");
    let told = json(&desk, "room.json");
    assert_eq!((&told["settings"]["model"], &told["settings"]["latents"]), (&"spatial".into(), &2.into()));
    assert_eq!(told["parameters"]["r"].as_array().unwrap().len(), 257);
    assert_eq!(told["history"].as_array().unwrap().len(), 50);
    assert!(told["history"][49]["free_energy"].as_f64().unwrap().is_finite());
    assert!(told["warnings"].as_array().unwrap()[0].as_str().unwrap().contains("4.0 s are little"));

    let said = desk.good("separate room.spk mix.wav --out-dir out --reference a.wav b.wav");
    assert!(said.contains("separated"), "{said}");
    let mixture = Points::read(desk.path("mix.wav")).unwrap();
    let first: Vec<f64> = mixture.values.iter().step_by(2).copied().collect();
    let parts: Vec<Vec<f64>> = ["source_0.wav", "source_1.wav"]
        .map(|name| Points::read(desk.path("out").join(name)).unwrap().values)
        .into();
    for image in &images {
        let best = parts.iter().filter_map(|part| si_sdr_db(part, image)).fold(f64::MIN, f64::max);
        let before = si_sdr_db(&first, image).unwrap();
        // Twice the amplitude of what is wanted over the rest, at least; the mixture has as much of either.
        assert!(best > before + 8.0, "{best} dB after {before} dB");
    }

    let facts: Value = serde_json::from_str(&desk.good("inspect room.spk --json")).unwrap();
    assert_eq!(
        (&facts["kind"], &facts["dims"], &facts["latents"]),
        (&"spatial".into(), &2.into(), &2.into())
    );
    assert_eq!(facts["blob_bytes"], fs::metadata(desk.path("room.spk")).unwrap().len());
    assert!(desk.good("inspect room.spk").contains("Fourier frames of 512 samples every 128, 8000 a second"));
    desk.good("quantize room.spk --encoding i16 --out small.spk");
    desk.good("quantize room.spk --encoding f32 --out same.spk");
    assert_eq!(fs::read(desk.path("room.spk")).unwrap(), fs::read(desk.path("same.spk")).unwrap());
    let sizes = ["room.spk", "small.spk"].map(|name| fs::metadata(desk.path(name)).unwrap().len());
    assert!(sizes[1] * 100 < sizes[0] * 55, "{sizes:?}");
    desk.good("separate small.spk mix.wav --out-dir small");
    let small = Points::read(desk.path("small/source_0.wav")).unwrap().values;
    // Of the same source, 40 dB above the difference.
    assert!(si_sdr_db(&small, &parts[0]).unwrap() > 40.0);
    desk.good("export small.spk --format c --out room.h");
    let header = fs::read_to_string(desk.path("room.h")).unwrap();
    assert!(header.contains("#define ROOM_SOURCES 2") && header.contains("spk_stream_init"));
    desk.good("export room.spk --format rust --out room.rs");
    assert!(fs::read_to_string(desk.path("room.rs")).unwrap().contains("spikelet::SpatialStream::new"));
    desk.good("export room.spk --format bin --out room.bin");
    assert_eq!(fs::read(desk.path("room.spk")).unwrap(), fs::read(desk.path("room.bin")).unwrap());

    let html = page_of(&desk, "room.json", "--data mix.wav --reference a.wav b.wav");
    has(
        &html,
        &[
            "free energy by iteration",
            "Where sources are",
            "microphone 2",
            "how often source_1 is on",
            "<audio",
        ],
    );
    let html = page_of(&desk, "small.spk", "");
    has(&html, &["it does not lie beside this model", "cortex-m4f", "train --model spatial on"]);

    for (line, words) in [
        ("infer room.spk mix.wav --out-dir x", "use `spikelet separate`"),
        ("eval room.spk mix.wav", "use `spikelet separate`"),
        ("denoise room.spk mix.wav x.wav", "use `spikelet separate`"),
        ("merge room.spk room.spk --names a,b --out x.spk", "has all sources of its room already"),
        ("train --from room.json mix.wav --out x.spk", "a spatial model has no dictionary"),
        ("quantize room.spk --encoding i8 --out x.spk", "use --encoding i16"),
        ("quantize small.spk --encoding i16 --out x.spk", "integers already"),
        ("quantize room.spk --encoding i16 --fixed-point --out x.spk", "in floats"),
        ("quantize room.spk --encoding i16 --data mix.wav --out x.spk", "separate --reference"),
        ("separate room.spk a.wav --out-dir x", "the recording has 1 channel, the model is for 2"),
    ] {
        desk.refused(line, words);
    }
}

/// One source walks 45 degrees after the 4 s that a model is learned from: where the model follows, sources stay apart.
#[test]
fn sources_that_walk_are_followed() {
    let mut rng = Rng::new(7);
    let at = |seconds: usize| seconds * RATE as usize;
    let (stands, arrives, end) = (at(4), at(12), at(15));
    let sounds = [sound(&mut rng, 0.7, end), sound(&mut rng, -0.3, end)];
    let room = Shoebox::random(2, 2, 0.06, 0.1, &mut rng);
    let walk = Walk { source: 0, degrees: 45.0, start: 4.0, seconds: 8.0 };
    let heard = room.record_walk(&[&sounds[0], &sounds[1]], Some(walk), RATE, &mut rng);
    let desk = Desk::new();
    write_wav(desk.path("stands.wav"), RATE, 2, &heard.mixture[..2 * stands]).unwrap();
    write_wav(desk.path("walks.wav"), RATE, 2, &heard.mixture).unwrap();
    let train = "train --model spatial --latents 2 --frame 512 stands.wav";
    desk.good(&format!("{train} --out stays.spk"));
    desk.good(&format!("{train} --follow --out follows.spk"));

    let parts = |line: &str, folder: &str| -> Vec<Vec<f64>> {
        desk.good(&format!("separate {line} walks.wav --out-dir {folder}"));
        let read = |name| Points::read(desk.path(folder).join(name)).unwrap().values;
        ["source_0.wav", "source_1.wav"].map(read).into()
    };
    let stays = parts("stays.spk", "stays");
    let follows = parts("follows.spk", "follows");
    assert!(parts("stays.spk --follow", "asked") == follows, "the model or the flag: the same stream");
    assert!(parts("follows.spk --follow=0", "held") == stays, "a rate of 0 holds parameters still");
    let after = |parts: &[Vec<f64>]| {
        let image = |image: &Vec<f64>| {
            let of = |part: &Vec<f64>| si_sdr_db(&part[arrives..], &image[arrives..]);
            parts.iter().filter_map(of).fold(f64::MIN, f64::max)
        };
        heard.images.iter().map(image).sum::<f64>() / 2.0
    };
    let [lost, kept] = [&stays, &follows].map(|parts| after(parts));
    assert!(kept > lost + 2.0, "{kept} dB by a model that follows, {lost} dB by one that does not");

    let facts = |name: &str| -> Value {
        serde_json::from_str(&desk.good(&format!("inspect {name} --json"))).unwrap()
    };
    desk.good("quantize follows.spk --encoding i16 --out small.spk");
    for name in ["follows.spk", "small.spk"] {
        let facts = facts(name);
        assert!((facts["following"].as_f64().unwrap() - 0.15).abs() < 1e-6, "{name}");
        assert_eq!(facts["features"][0], "following");
    }
    assert!(facts("stays.spk")["following"].is_null());
    assert!(facts("follows.spk")["stream_bytes"].as_u64() > facts("stays.spk")["stream_bytes"].as_u64());
    assert!(desk.good("inspect follows.spk").contains("at a rate of 0.15"));
    desk.refused(&format!("{train} --follow=0.6 --out x.spk"), "give a number from 0 to 0.5");
    desk.refused("separate stays.spk walks.wav --follow=x --out-dir x", "give a number from 0 to 0.5");
    desk.refused("train --model gsc --latents 2 --follow stands.wav --out x.spk", "--follow");
}

#[test]
fn threads_and_checkpoints_give_the_same_bits() {
    let (desk, _) = desk(3, 2.0);
    let line = format!("train --model spatial --latents 2 {SHORT} --spacing 6 mix.wav");
    desk.good(&format!("{line} --threads 1 --out one.spk"));
    desk.good(&format!("{line} --threads 3 --out three.spk"));
    desk.refused(&format!("{line} --follow --out x.spk"), "on 3 microphones no source is followed");
    desk.refused("separate one.spk mix.wav --follow --out-dir x", "on two microphones are followed");
    let model = |name: &str| fs::read(desk.path(name)).unwrap();
    assert!(model("one.spk") == model("three.spk"));
    let less = line.replace("--iterations 6", "--iterations 3");
    desk.good(&format!("{less} --checkpoint c --out half.spk"));
    desk.good(&format!("{line} --checkpoint c --resume --out again.spk"));
    assert!(model("one.spk") == model("again.spk") && model("one.spk") != model("half.spk"));
    desk.refused(&format!("{line} --seed 2 --checkpoint c --resume --out x.spk"), "other data or settings");
    desk.refused(&format!("{less} --checkpoint c --resume --out x.spk"), "--iterations 6, more than 3");
}

#[test]
fn the_number_of_sources_is_suggested() {
    let (desk, _) = desk(2, 3.0);
    desk.good(&format!("train --model spatial --latents auto {SHORT} mix.wav --out auto.spk"));
    assert_eq!(json(&desk, "auto.json")["settings"]["latents"], 2);
    let words: Vec<String> = format!("train --model spatial --latents 4 {SHORT} mix.wav --out four.spk")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let output = desk.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("warning: 4 sources on 2 microphones"), "{said}");
}

#[test]
fn wrong_inputs_are_refused() {
    let (desk, _) = desk(2, 2.0);
    let samples = Points::read(desk.path("mix.wav")).unwrap().values;
    let wav = |name: &str, channels: usize, samples: &[f64]| {
        let samples: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        write_wav(desk.path(name), RATE, channels, &samples[..samples.len() / channels * channels]).unwrap();
    };
    wav("five.wav", 5, &samples);
    wav("three.wav", 3, &samples);
    wav("short.wav", 2, &samples[..4000]);
    wav("silent.wav", 2, &vec![0.0; samples.len()]);
    let half: Vec<f64> = samples.iter().enumerate().map(|(i, x)| if i % 2 == 0 { *x } else { 0.0 }).collect();
    wav("half.wav", 2, &half);
    let copy: Vec<f64> = samples.iter().step_by(2).flat_map(|x| [*x, *x]).collect();
    wav("copy.wav", 2, &copy);
    let scaled: Vec<f64> = samples.iter().step_by(2).flat_map(|x| [*x, -0.5 * x]).collect();
    wav("scaled.wav", 2, &scaled);
    let faint: Vec<f64> = samples.iter().enumerate().map(|(i, x)| x * [1.0, 1e-4][i % 2]).collect();
    wav("faint.wav", 2, &faint);
    wav("huge.wav", 2, &samples.iter().map(|x| x * 1e20).collect::<Vec<f64>>());
    let fast: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
    write_wav(desk.path("fast.wav"), 16_000, 2, &fast).unwrap();
    desk.array("y.npy", &[4, 2], &[0.5; 8]);
    let line = "train --model spatial --out x.spk --latents";
    for (rest, words) in [
        ("2 a.wav", "the recording has one channel"),
        ("2 five.wav", "5 microphones are more than"),
        ("2 short.wav", "too short to learn a room from"),
        ("2 silent.wav", "the recording is silent"),
        ("2 half.wav", "channel 2 is silent"),
        ("2 copy.wav", "channel 2 is a copy of channel 1"),
        ("2 scaled.wav", "channel 2 is a copy of channel 1, as loud or scaled"),
        ("2 faint.wav", "dB below the loudest one: faint.wav: check that microphone"),
        ("2 huge.wav", "full scale is 1: huge.wav: scale the recording down"),
        ("2 mix.wav fast.wav", "16000 samples per second where the first recording has 8000"),
        ("2 mix.wav three.wav", "3 channels where the first recording has 2"),
        ("2 y.npy", "learned from recordings"),
        ("2 missing.wav", "there is no such file"),
        ("5 mix.wav", "5 sources are more than"),
        ("0 mix.wav", "give a number from 1"),
        ("two mix.wav", "give a number from 1"),
        ("2 mix.wav --frame 1000", "frames cannot have 1000 samples"),
        ("2 mix.wav --frame 512 --hop 256", "choose 128 or 64"),
        ("2 mix.wav --microphone 3", "there is no microphone 3: --microphone: choose 1 to 2"),
        ("2 mix.wav --microphone 0", "choose 1 to 2"),
        ("2 mix.wav --spacing -3", "-3 cm is no distance"),
        ("2 mix.wav --spacing 1000", "1000 cm is no distance"),
        ("2 mix.wav --engine gibbs", "--engine: leave it out for --model spatial"),
        ("2 mix.wav --transform mdct", "a Fourier transform of their own"),
        ("2 mix.wav --iterations 0", "nothing would be learned"),
    ] {
        desk.refused(&format!("{line} {rest}"), words);
    }
    desk.refused("train --model gsc --latents auto mix.wav --out x.spk", "only spatial models find");
    desk.refused("train --model gsc --latents 2 --spacing 5 mix.wav --out x.spk", "only spatial models know");
}

/// Microphones need not be a line: a triangle and a tetrahedron, 6 cm to a side.
#[test]
fn arrays_of_any_shape() {
    for microphones in [3, 4] {
        let mut rng = Rng::new(11);
        let samples = 4 * RATE as usize;
        let sounds = [sound(&mut rng, 0.7, samples), sound(&mut rng, -0.3, samples)];
        let mut room = Shoebox::random(microphones, 2, 0.06, 0.1, &mut rng);
        let [x, y, z] = room.microphones[0];
        let corners = [[0.0, 0.0, 0.0], [0.06, 0.0, 0.0], [0.03, 0.052, 0.0], [0.03, 0.017, 0.049]];
        for (place, [dx, dy, dz]) in room.microphones.iter_mut().zip(corners) {
            *place = [x + dx, y + dy, z + dz];
        }
        let heard = room.record(&[&sounds[0], &sounds[1]], RATE, &mut rng);
        let desk = Desk::new();
        write_wav(desk.path("mix.wav"), RATE, microphones, &heard.mixture).unwrap();
        desk.good("train --model spatial --latents 2 --frame 512 --iterations 15 mix.wav --out room.spk");
        desk.good("separate room.spk mix.wav --out-dir out");
        let parts =
            ["source_0.wav", "source_1.wav"].map(|name| Points::read(desk.path("out").join(name)).unwrap());
        for image in &heard.images {
            let best =
                parts.iter().filter_map(|part| si_sdr_db(&part.values, image)).fold(f64::MIN, f64::max);
            assert!(best > 8.0, "{microphones} microphones: {best} dB");
        }
    }
}

/// A model meets what it was not learned from: silence, a dead channel, equal channels, clipping, and less than a frame.
#[test]
fn odd_recordings_give_numbers() {
    let (desk, _) = desk(2, 2.0);
    desk.good(&format!("train --model spatial --latents 2 {SHORT} mix.wav --out room.spk"));
    let samples = Points::read(desk.path("mix.wav")).unwrap().values;
    let silent = vec![0.0; samples.len()];
    let dead = samples.iter().enumerate().map(|(i, x)| if i % 2 == 0 { *x } else { 0.0 }).collect();
    let equal = samples.iter().step_by(2).flat_map(|x| [*x, *x]).collect();
    let clipped = samples.iter().map(|x| (20.0 * x).clamp(-1.0, 1.0)).collect();
    let short = samples[..20].to_vec();
    for (name, samples) in
        [("silent", silent), ("dead", dead), ("equal", equal), ("clipped", clipped), ("short", short)]
    {
        let numbers: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        write_wav(desk.path("odd.wav"), RATE, 2, &numbers).unwrap();
        if name == "clipped" {
            desk.good(&format!("train --model spatial --latents 2 {SHORT} odd.wav --out odd.spk"));
            let told = json(&desk, "odd.json");
            assert!(told["warnings"].to_string().contains("odd.wav: "), "{}", told["warnings"]);
            assert!(told["warnings"].to_string().contains("at full scale"), "{}", told["warnings"]);
        }
        desk.good(&format!("separate room.spk odd.wav --out-dir {name}"));
        let read = |source: &str| Points::read(desk.path(name).join(source)).unwrap().values;
        let (first, second) = (read("source_0.wav"), read("source_1.wav"));
        assert!(first.len() == samples.len() / 2 && second.len() == first.len(), "{name}");
        // sum_h x_h = (I - sum_s p_s delta_s P_s) y, and these eigenvalues are in [0, 1): all sources together have no more energy than
        // all microphones, however much each is amplified.
        let energy = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
        let together = energy(&mut first.iter().zip(&second).map(|(a, b)| a + b));
        let heard = energy(&mut samples.iter().copied());
        assert!(together <= 1.0001 * heard, "{name}: {together} of {heard}");
    }
}

#[test]
fn the_demo_has_a_room() {
    let desk = Desk::new();
    let text = desk.good("demo --room");
    let rows = text.lines().skip_while(|line| !line.starts_with("Separation in dB")).skip(2).take(3);
    for row in rows.map(|row| row.split_whitespace().skip(1).map(|x| x.parse::<f64>().unwrap())) {
        let [single, float, i16] = row.collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(float > single + 8.0 && (i16 - float).abs() < 0.5, "{text}");
    }
    for name in
        ["mixture.wav", "true-knocks.wav", "room.json", "room-i16.spk", "model.h", "separated/source_2.wav"]
    {
        assert!(desk.path("spikelet-demo").join(name).is_file(), "{name}");
    }
}
