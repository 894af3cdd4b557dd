//! `train` that is interrupted, and the signs of life it gives.
#![cfg(unix)]

use crate::desk::Desk;
use crate::train::desk;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts a run, sends it a signal once it trains, and waits for its end.
fn interrupted(desk: &Desk, line: &str, signal: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let child = desk.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    // The first checkpoint shows that it has begun to train.
    while !desk.path("c.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap()
}

#[test]
fn signals_leave_a_checkpoint_and_status_130() {
    let desk = desk(2000);
    let line = "train --model gsc --latents 7 --restarts 2 --iterations 25 --tolerance 0 Y.npy";
    desk.good(&format!("{line} --out whole.spk"));
    for signal in ["INT", "TERM"] {
        let parts = format!("{line} --checkpoint c.json --checkpoint-every 1 --out parts.spk");
        let output = interrupted(&desk, &parts, signal);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{signal}: {said}");
        assert!(
            said.contains("stopping: this iteration is finished first, then c.json is written"),
            "{said}"
        );
        assert!(said.contains("error: stopped before the end: start 1/2, iteration"), "{said}");
        assert!(!desk.path("parts.spk").exists() && !desk.path("c.json.lock").exists());
        desk.good(&format!("{parts} --resume"));
        assert_eq!(fs::read(desk.path("whole.spk")).unwrap(), fs::read(desk.path("parts.spk")).unwrap());
        fs::remove_file(desk.path("c.json")).unwrap();
        fs::remove_file(desk.path("parts.spk")).unwrap();
    }
}

/// One iteration that takes long shows that it is at work.
#[test]
fn a_long_iteration_gives_signs_of_life() {
    let desk = Desk::new();
    desk.array("Y.npy", &[30_000, 4], &(0..120_000).map(|i| f64::from(i).sin()).collect::<Vec<_>>());
    let line = "train --model gsc --latents 16 --engine exact --restarts 1 --iterations 1 --threads 1 Y.npy --out m.spk";
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut child = desk.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(8));
    child.kill().unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("training: 0 of 2 (0%): iteration 0: ") && said.contains("%\n"), "{said}");
}
