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

/// Vowels of a voice of some pitch in Hz, one after the other, with pauses.
pub(super) fn voice(len: usize, pitch: f64, rng: &mut Rng) -> Vec<f64> {
    /// Resonances in Hz.
    const VOWELS: [[f64; 3]; 5] = [
        [730.0, 1090.0, 2440.0],
        [530.0, 1840.0, 2480.0],
        [270.0, 2290.0, 3010.0],
        [570.0, 840.0, 2410.0],
        [300.0, 870.0, 2240.0],
    ];
    let rate = f64::from(RATE);
    // Longer mouths have lower resonances.
    let size = 0.85 + 0.25 * (pitch - 95.0) / 105.0;
    let (mut vowel, mut left, mut loud, mut phase) = (VOWELS[0], 0usize, 0.0, 0.0);
    let (mut states, mut envelope) = ([[0.0f64; 2]; 3], 0.0);
    (0..len)
        .map(|_| {
            if left == 0 {
                left = (rate * (0.1 + 0.2 * rng.uniform::<f64>())) as usize;
                vowel = VOWELS[(5.0 * rng.uniform::<f64>()) as usize % 5];
                loud = if rng.uniform::<f64>() < 0.2 { 0.0 } else { 0.6 + 0.8 * rng.uniform::<f64>() };
            }
            left -= 1;
            envelope += (loud - envelope) * 0.004;
            phase += pitch * (1.0 + 0.15 * (left as f64 / rate - 0.1)) / rate;
            let pulse = if phase >= 1.0 { 1.0 } else { 0.0 };
            phase %= 1.0;
            let source = pulse + 0.02 * rng.normal::<f64>();
            let mut sum = 0.0;
            for ((state, resonance), gain) in states.iter_mut().zip(vowel).zip([1.0, 0.6, 0.3]) {
                let (angle, radius) = (TAU * resonance * size / rate, 0.97f64);
                let y = source + 2.0 * radius * angle.cos() * state[0] - radius * radius * state[1];
                *state = [y, state[0]];
                sum += gain * y;
            }
            0.06 * envelope * sum
        })
        .collect()
}
