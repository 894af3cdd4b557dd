//! Sounds that come and go, and a noisy recording of them.

use spikelet::rng::Rng;
use std::f64::consts::{PI, TAU};

/// Samples per second.
pub(super) const RATE: u32 = 8000;
/// Length of the recording.
pub(super) const SECONDS: usize = 6;
/// Power of all sounds at the microphones over that of the noise.
pub(super) const SNR_DB: f64 = 20.0;
/// The sounds.
pub(super) const NAMES: [&str; 4] = ["beeps", "knocks", "chirps", "rattle"];

/// The truth and what the microphones hear of it.
#[derive(Debug)]
pub(super) struct Scene {
    /// One sound each.
    pub sources: Vec<Vec<f64>>,
    /// Interleaved by microphone.
    pub mixture: Vec<f32>,
}

impl Scene {
    pub fn new<const H: usize>(mixing: &[[f64; H]], seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut sources = sources(&mut rng);
        let mix = |row: &[f64; H], n: usize| -> f64 { row.iter().zip(&sources).map(|(w, x)| w * x[n]).sum() };
        let samples = SECONDS * RATE as usize;
        let mut clean: Vec<f64> = (0..samples)
            .flat_map(|n| mixing.iter().map(move |row| (row, n)))
            .map(|(row, n)| mix(row, n))
            .collect();
        // A level that players do not clip.
        let peak = clean.iter().fold(0.0f64, |peak, y| peak.max(y.abs()));
        let level = 0.8 / peak;
        clean.iter_mut().for_each(|y| *y *= level);
        sources.iter_mut().flatten().for_each(|x| *x *= level);
        let power = clean.iter().map(|y| y * y).sum::<f64>() / clean.len() as f64;
        let sigma2 = power / 10f64.powf(SNR_DB / 10.0);
        let mixture = clean.iter().map(|y| (y + sigma2.sqrt() * rng.normal::<f64>()) as f32).collect();
        Self { sources, mixture }
    }
}

/// The sounds, all equally loud on the whole, so that none is easy.
pub(super) fn sources(rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut sources = vec![beeps(rng), knocks(rng), chirps(rng), rattle(rng)];
    for source in &mut sources {
        let power = source.iter().map(|x| x * x).sum::<f64>() / source.len() as f64;
        source.iter_mut().for_each(|x| *x /= power.sqrt());
    }
    sources
}

/// One event about every `every` seconds, `length` seconds long. `sound` says what it is like at a time in seconds,
/// with the number of the event.
fn events(rng: &mut Rng, every: f64, length: f64, sound: impl Fn(&mut Rng, usize, f64) -> f64) -> Vec<f64> {
    let rate = f64::from(RATE);
    let mut source = vec![0.0; SECONDS * RATE as usize];
    let mut begin = every * rng.uniform::<f64>();
    let mut number = 0;
    while begin + length < SECONDS as f64 {
        let from = (begin * rate) as usize;
        for (n, x) in source[from..from + (length * rate) as usize].iter_mut().enumerate() {
            *x = sound(rng, number, n as f64 / rate);
        }
        number += 1;
        begin += length.max(every * (0.6 + 0.8 * rng.uniform::<f64>()));
    }
    source
}

fn beeps(rng: &mut Rng) -> Vec<f64> {
    const NOTES: [f64; 4] = [440.0, 554.4, 659.3, 880.0];
    events(rng, 0.36, 0.11, |_, number, t| {
        (TAU * NOTES[number % NOTES.len()] * t).sin() * (PI * t / 0.11).sin().max(0.0).sqrt()
    })
}

fn knocks(rng: &mut Rng) -> Vec<f64> {
    events(rng, 0.25, 0.08, |rng, _, t| rng.normal::<f64>() * (-t / 0.02).exp())
}

fn chirps(rng: &mut Rng) -> Vec<f64> {
    // 300 Hz rising to 2500 Hz
    events(rng, 0.51, 0.15, |_, _, t| {
        (TAU * (300.0 + 0.5 * 2200.0 / 0.15 * t) * t).sin() * (PI * t / 0.15).sin()
    })
}

fn rattle(rng: &mut Rng) -> Vec<f64> {
    // 160 strokes a second, each of them ringing at 1200 Hz
    events(rng, 0.83, 0.2, |_, _, t| {
        let t = t % (1.0 / 160.0);
        (TAU * 1200.0 * t).cos() * (-t / 0.000_75).exp()
    })
}
