//! The demo keeps its word: figures, files and commands.

use crate::desk::Desk;
use std::fs;

#[test]
fn the_demo_separates_and_its_advice_works() {
    let desk = Desk::new();
    let text = desk.good("demo");
    let folder = desk.path("spikelet-demo");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let mut sounds = 0;
    for row in &rows {
        // number, name, best single, best linear, spikelet, gain
        if let [number, _, figures @ ..] = &row[..]
            && number.parse() == Ok(sounds)
            && figures.len() == 4
        {
            let [single, linear, ours, gain] = [0, 1, 2, 3].map(|i| figures[i].parse::<f64>().unwrap());
            assert!(ours > linear + 5.0 && ours > single + 10.0, "{row:?}");
            assert!((ours - single - gain).abs() < 0.11, "{row:?}");
            sounds += 1;
        }
    }
    assert_eq!(sounds, 4, "{text}");

    // Every file it speaks of is there, and no other.
    let start = text.lines().position(|line| line.starts_with("Files in")).unwrap();
    let mut named: Vec<&str> = text
        .lines()
        .skip(start + 1)
        .take_while(|line| line.starts_with("  "))
        .flat_map(str::split_whitespace)
        .collect();
    let mut found: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    named.sort_unstable();
    found.sort_unstable();
    assert_eq!(named, found);
    for name in
        ["model.spk", "model.h", "mixture.wav", "source_0.wav", "estimate_3.wav", "activity.npy", "map.npy"]
    {
        assert!(named.contains(&name), "{name}");
    }

    // Its commands do what it did, to the bit; again with the same seed, and other numbers with another.
    let first = desk.content();
    let prefix = format!("  {} ", env!("CARGO_BIN_EXE_spikelet"));
    let steps: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
    assert_eq!(steps.len(), 4, "{text}");
    for step in steps {
        desk.good(step);
    }
    let mut again = desk.content();
    for name in ["model.spk", "model.h"] {
        again.insert(folder.join(name), first[&folder.join(name)].clone()); // the provenance differs
    }
    assert!(again == first);
    assert_eq!(desk.good("demo"), text);
    assert!(desk.content() == first);
    assert_ne!(desk.good("demo --seed 2 --out-dir other"), text);
}
