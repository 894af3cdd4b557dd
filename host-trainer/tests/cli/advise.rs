//! `spikelet advise`: what it sees, what it says, and that its commands work.

use crate::desk::Desk;
use crate::front_end::mix;
use serde_json::Value;
use spikelet_trainer::data::write_wav;

fn row<'t>(text: &'t str, key: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {text}"))
}

#[test]
fn sound_on_two_channels() {
    let desk = Desk::new();
    mix(&desk, "mix.wav", 8000, 0);
    let text = desk.good("advise mix.wav --core m7 --clock 480MHz --ram 64K --flash 256K");
    assert!(row(&text, "data").contains("2 channels, 8000 Hz, 2.0 s, without delays"), "{text}");
    assert!(row(&text, "front end").contains("--transform mdct --bins 256"), "{text}");
    assert!(row(&text, "fits").contains("yes") && row(&text, "states").contains("exact"), "{text}");
    // Its commands work as they are printed.
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  spikelet ")).collect();
    assert_eq!(commands.len(), 4, "{text}");
    for command in commands {
        desk.good(&command.replace("train ", "train --iterations 1 --restarts 1 "));
    }
    assert!(desk.path("model.h").is_file() && desk.path("model.sources/source_1.wav").is_file());
    // What it costs is told before training as `inspect` tells it after.
    desk.good("train --model gsc --latents 2 --iterations 30 --restarts 2 mix.wav --out long.spk");
    let text = desk.good("advise mix.wav --sources 2 --core m4f");
    assert!(text.contains("inspect model.spk --core m4f --data mix.wav"), "{text}");
    let stated: f64 = row(&text, "cost").split_whitespace().nth(1).unwrap().parse().unwrap();
    let told: Value =
        serde_json::from_str(&desk.good("inspect long.spk --core m4f --data mix.wav --json")).unwrap();
    let found = told["cores"][0]["instructions_streamed"].as_f64().unwrap();
    assert!((stated / found - 1.0).abs() < 0.15, "{stated} stated, {found} found");
    // Less latency takes shorter blocks; too little of everything says what comes closest.
    let text = desk.good("advise mix.wav --latency 20ms --sources 2");
    assert!(
        row(&text, "front end").contains("--bins 64:")
            && row(&text, "latents").contains("2: as --sources says"),
        "{text}"
    );
    let text = desk.good("advise mix.wav --core m0 --clock 1MHz --ram 1K");
    assert!(
        row(&text, "fits").contains("NO, this comes closest") && text.contains("--fixed-point"),
        "{text}"
    );
    assert!(row(&text, "fits").contains("RAM is") && row(&text, "fits").contains("processor is"), "{text}");
}

#[test]
fn other_data() {
    let desk = Desk::new();
    mix(&desk, "apart.wav", 8000, 4);
    let text = desk.good("advise apart.wav --sources 2");
    assert!(text.contains("spikelet train --model spatial --latents 2 apart.wav --out model.spk"), "{text}");
    assert!(row(&text, "cost").contains("instructions a hop"), "{text}");
    // What it says is what `inspect` says of the trained model.
    desk.good("train --model spatial --latents 2 --iterations 1 apart.wav --out model.spk");
    let told = desk.good("inspect model.spk --core m4f");
    let predicted = row(&told, "cortex-m4f").split_whitespace().nth(1).unwrap();
    assert!(row(&text, "cost").contains(&format!(" {predicted} instructions a hop")), "{text} {told}");
    // Half of the flash where there is little; shorter frames where latency counts.
    let text = desk.good("advise apart.wav --sources 2 --core m4f --clock 168MHz --latency 40ms");
    assert!(
        text.contains("--latents 2 --frame 256 apart.wav") && row(&text, "fits").contains("yes"),
        "{text}"
    );
    desk.refused("advise apart.wav --sources 5", "--sources: ask for 1 to 4");

    let wave: Vec<f64> = (0..1200).map(|i| (1.7 * f64::from(i)).sin()).collect();
    desk.array("signed.npy", &[400, 3], &wave);
    assert!(row(&desk.good("advise signed.npy"), "model").contains("gsc"));
    desk.array("positive.npy", &[400, 3], &wave.iter().map(|y| y.abs()).collect::<Vec<_>>());
    assert!(row(&desk.good("advise positive.npy"), "model").contains("nmf"));
    desk.array("wide.npy", &[3, 40], &wave[..120]);
    assert!(desk.good("advise wide.npy").contains("transpose it if it is channels x time"));
    let mono: Vec<f32> = wave.iter().map(|&y| y as f32).collect();
    write_wav(desk.path("mono.wav"), 8000, 1, &mono).unwrap();
    let text = desk.good("advise mono.wav");
    assert!(row(&text, "front end").contains("--transform spectrum"), "{text}");
    assert!(text.contains("spikelet train --model mca --latents 64 --transform spectrum mono.wav"), "{text}");
    assert!(text.contains("spikelet merge A.spk B.spk"), "{text}");

    assert!(row(&text, "cost").contains("not known from so short or silent a recording"), "{text}");
    let long: Vec<f32> = (0..24_000).map(|n| (0.3 * n as f32).sin() * (n as f32 / 3000.0).sin()).collect();
    write_wav(desk.path("long.wav"), 8000, 1, &long).unwrap();
    let text = desk.good("advise long.wav --core m4f --clock 168MHz --ram 4K");
    assert!(row(&text, "cost").contains("instructions a hop"), "{text}");
    assert!(text.contains("of two sources like this one"), "{text}");
    assert!(row(&text, "fits").contains("NO, this comes closest: RAM is"), "{text}");

    // Points in clusters, and who asks for them.
    let corner = |n: usize| [[9.0, 0.0, 1.0], [-7.0, 8.0, 0.0], [0.0, -9.0, 8.0]][n % 3];
    let points: Vec<f64> = (0..300).flat_map(|n| corner(n).map(|c| c + wave[n])).collect();
    desk.array("clusters.npy", &[300, 3], &points);
    let text = desk.good("advise clusters.npy");
    assert!(row(&text, "model").contains("gmm: points lie in clusters"), "{text}");
    assert!(row(&text, "latents").contains("3: as many clusters stand apart"), "{text}");
    assert!(text.contains("spikelet train --model gmm --latents 3 clusters.npy"), "{text}");
    assert!(row(&desk.good("advise clusters.npy --model gsc"), "model").contains("gsc"));
    let text = desk.good("advise signed.npy --model gmm --sources 5 --core m0");
    assert!(row(&text, "latents").contains("5: as --sources says"), "{text}");

    // And runs them.
    let text = desk.good("advise signed.npy --sources 2 --train --out here/m.spk");
    assert!(text.contains("$ spikelet train") && desk.path("here/m.h").is_file(), "{text}");

    desk.array("zero.npy", &[40, 3], &[0.0; 120]);
    for (line, words) in [
        ("advise missing.wav", "there is no such file"),
        ("advise zero.npy", "all numbers are zero"),
        ("advise signed.npy --core m5", "choose one of m0"),
        ("advise signed.npy --clock 168", "a clock needs its unit"),
        ("advise signed.npy --ram 64", "256 bytes or more"),
        ("advise signed.npy --flash much", "such as 65536, 64K or 1M"),
        ("advise signed.npy --latency 20", "a time needs its unit"),
        ("advise signed.npy --sources 0", "'0' is out of range: --sources <COUNT>: give 1 to 1024"),
        ("advise", "this is missing: <DATA>"),
    ] {
        let said = desk.said(line, 2);
        assert!(said.contains(words), "{line}: {said}");
    }
}
