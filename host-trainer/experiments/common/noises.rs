//! Noises of machines, made up: a fan, parts that knock and ring, people talking at once.

use spikelet::rng::Rng;
use std::f64::consts::TAU;

const RATE: f64 = 8000.0;

/// Of mean power 1.
pub fn unit(mut samples: Vec<f64>) -> Vec<f64> {
    let power = samples.iter().map(|x| x * x).sum::<f64>() / samples.len().max(1) as f64;
    samples.iter_mut().for_each(|x| *x /= power.sqrt().max(f64::MIN_POSITIVE));
    samples
}

/// Noise that falls by about 3 dB an octave: white noise through low passes an octave or two apart (P. Kellet's filter).
fn pink(len: usize, rng: &mut Rng) -> Vec<f64> {
    const POLES: [(f64, f64); 6] = [
        (0.99886, 0.0555179),
        (0.99332, 0.0750759),
        (0.96900, 0.1538520),
        (0.86650, 0.3104856),
        (0.55000, 0.5329522),
        (-0.7616, -0.0168980),
    ];
    let mut states = [0.0; POLES.len()];
    let next = |_| {
        let white = rng.normal::<f64>();
        for (state, (pole, gain)) in states.iter_mut().zip(POLES) {
            *state = pole * *state + gain * white;
        }
        states.iter().sum::<f64>() + 0.5362 * white
    };
    unit((0..len).map(next).collect())
}

/// White noise through a low pass, of mean power 1: something that drifts.
fn drift(len: usize, hertz: f64, rng: &mut Rng) -> Vec<f64> {
    let pole = (-TAU * hertz / RATE).exp();
    let mut state = 0.0;
    let next = |_| {
        state = pole * state + rng.normal::<f64>();
        state
    };
    unit((0..len).map(next).collect())
}

/// A resonance of quality q.
fn peak(samples: &[f64], hertz: f64, q: f64) -> Vec<f64> {
    let (turn, radius) = (TAU * hertz / RATE, 1.0 - TAU * hertz / RATE / (2.0 * q));
    let (mut y1, mut y2) = (0.0, 0.0);
    let next = |x: &f64| {
        let y = (1.0 - radius) * x + 2.0 * radius * turn.cos() * y1 - radius * radius * y2;
        (y1, y2) = (y, y1);
        y
    };
    unit(samples.iter().map(next).collect())
}

/// Ten harmonics of blades whose speed drifts by less than a percent, and air through two resonances.
pub fn fan(len: usize, seed: u64) -> Vec<f64> {
    const HARMONICS: [f64; 10] = [1.0, 0.8, 0.3, 0.5, 0.2, 0.25, 0.1, 0.15, 0.08, 0.1];
    let mut rng = Rng::new(seed);
    let speed = drift(len, 0.5, &mut rng);
    let mut phase = 0.0;
    let tone = speed.iter().map(|w| {
        phase += TAU * 92.0 * (1.0 + 0.006 * w) / RATE;
        let harmonic = |(k, a): (usize, &f64)| a * ((k + 1) as f64 * (phase + 1.0)).cos();
        HARMONICS.iter().enumerate().map(harmonic).sum()
    });
    let tone = unit(tone.collect());
    let air = pink(len, &mut rng);
    let (low, high) = (peak(&air, 420.0, 3.0), peak(&air, 1300.0, 2.0));
    let air: Vec<f64> = (0..len).map(|t| 0.4 * air[t] + 0.5 * low[t] + 0.5 * high[t]).collect();
    let (air, swell) = (unit(air), drift(len, 0.8, &mut rng));
    unit((0..len).map(|t| 0.8 * tone[t] + air[t] * (1.0 + 0.15 * swell[t])).collect())
}

/// Five parts of a machine, each with five resonances, knock at random.
pub fn impacts(len: usize, seed: u64) -> Vec<f64> {
    const RINGING: usize = 2400;
    let mut machine = Rng::new(77);
    let parts: Vec<[[f64; 3]; 5]> = (0..5)
        .map(|_| {
            [(); 5].map(|()| {
                let mut between = |low: f64, high: f64| low + (high - low) * machine.uniform::<f64>();
                [between(250.0, 3400.0), between(0.006, 0.06), between(0.3, 1.0)]
            })
        })
        .collect();
    let mut rng = Rng::new(seed);
    let (mut samples, mut start) = (vec![0.0; len], 0);
    loop {
        start += (RATE * (0.03 - 0.12 * rng.uniform::<f64>().ln())) as usize;
        if start + RINGING >= len {
            break;
        }
        let part = parts[(rng.uniform::<f64>() * 5.0) as usize % 5];
        let strength = (0.5 * rng.normal::<f64>()).exp();
        for [hertz, seconds, gain] in part {
            let (turn, phase) =
                (TAU * hertz * (1.0 + 0.003 * rng.normal::<f64>()) / RATE, TAU * rng.uniform::<f64>());
            for (t, x) in samples[start..start + RINGING].iter_mut().enumerate() {
                let t = t as f64;
                *x += strength * gain * (-t / (RATE * seconds)).exp() * (turn * t + phase).sin();
            }
        }
        for x in &mut samples[start..start + 16] {
            *x += 0.5 * strength * rng.normal::<f64>();
        }
    }
    let (samples, air) = (unit(samples), pink(len, &mut rng));
    unit(samples.iter().zip(&air).map(|(x, air)| x + 0.1 * air).collect())
}

/// People who all talk at once, each from another place of their recording on, and air.
pub fn babble(people: &[Vec<f64>], seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let len = people.iter().map(Vec::len).min().unwrap_or(0);
    let mut samples = vec![0.0; len];
    for person in people {
        let start = (rng.uniform::<f64>() * person.len() as f64) as usize;
        let turned = person.iter().cycle().skip(start);
        samples.iter_mut().zip(turned).for_each(|(x, y)| *x += y);
    }
    let (samples, air) = (unit(samples), pink(len, &mut rng));
    unit(samples.iter().zip(&air).map(|(x, air)| x + 0.35 * air).collect())
}
