//! Simulated rooms: sounds on spaced microphones between walls, by the image-source method.
//!
//! A shoebox whose walls reflect a part beta of the pressure is the free field of all mirror images of a source, each at its
//! distance r, weighed by beta^reflections / (4 pi r) and late by r / c (Allen and Berkley 1979). beta follows from the reverberation
//! time by Sabine's formula, as in pyroomacoustics, so that figures compare. Delays are not whole samples: each image is a windowed sinc.

use super::SPEED_OF_SOUND;
use spikelet::rng::Rng;
use std::f64::consts::PI;

/// Samples of a windowed sinc on each side.
const SIDE: isize = 40;
/// Seconds after the direct sound, or the reverberation time, that a response goes on.
const TAIL: f64 = 0.01;
/// Root of the mean power of a source at the first microphone.
const LEVEL: f64 = 0.1;

/// A place or a size, in metres.
pub type Place = [f64; 3];

/// A room with its microphones and sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Shoebox {
    /// Its sides.
    pub size: Place,
    /// Reverberation time in seconds; 0 for no walls.
    pub rt60: f64,
    /// Places of microphones.
    pub microphones: Vec<Place>,
    /// Places of sources.
    pub sources: Vec<Place>,
    /// White noise, in dB below the mixture.
    pub noise: Option<f64>,
}

/// What is heard there.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Interleaved by microphone.
    pub mixture: Vec<f32>,
    /// Image of each source at the first microphone.
    pub images: Vec<Vec<f64>>,
}

impl Shoebox {
    /// About 5 x 4 x 3 m, with a line of microphones near the middle and sources 0.8 to 1.4 m away from it, in directions of 20 to
    /// 160 degrees that are well apart.
    pub fn random(microphones: usize, sources: usize, spacing: f64, rt60: f64, rng: &mut Rng) -> Self {
        let mut about = |middle: f64, spread: f64| middle + spread * (rng.uniform::<f64>() - 0.5);
        let size = [about(5.0, 0.6), about(4.0, 0.6), about(3.0, 0.6)];
        let centre = [about(size[0] / 2.0, 0.4), size[1] / 2.0 - 0.5, 1.3];
        let first = -0.5 * (microphones - 1) as f64;
        let microphone = |i: usize| [centre[0] + (first + i as f64) * spacing, centre[1], centre[2]];
        // Evenly spread, moved by up to a fifth of what is between two.
        let step = 140.0 / sources as f64;
        let source = |i: usize| {
            let degrees = about(20.0 + step * (i as f64 + 0.5), 0.4 * step);
            let (sin, cos) = (degrees * PI / 180.0).sin_cos();
            let distance = about(1.1, 0.6);
            [centre[0] + distance * cos, centre[1] + distance * sin, about(1.4, 0.3)]
        };
        Self {
            size,
            rt60,
            sources: (0..sources).map(source).collect(),
            microphones: (0..microphones).map(microphone).collect(),
            noise: None,
        }
    }

    /// Sounds of equal power at the first microphone, as long as the shortest of them, and noise.
    pub fn record(&self, sounds: &[&[f64]], rate: u32, rng: &mut Rng) -> Heard {
        let samples = sounds.iter().map(|sound| sound.len()).min().unwrap_or(0);
        let mut channels = vec![vec![0.0; samples]; self.microphones.len()];
        let mut images = Vec::new();
        for (sound, source) in sounds.iter().zip(&self.sources) {
            let at =
                |microphone: &Place| convolved(&sound[..samples], &self.response(*source, *microphone, rate));
            let mut heard: Vec<Vec<f64>> = self.microphones.iter().map(at).collect();
            let gain = LEVEL / power(&heard[0]).sqrt().max(f64::MIN_POSITIVE);
            heard.iter_mut().flatten().for_each(|x| *x *= gain);
            for (channel, heard) in channels.iter_mut().zip(&heard) {
                channel.iter_mut().zip(heard).for_each(|(sum, x)| *sum += x);
            }
            images.push(heard.swap_remove(0));
        }
        let sigma = self.noise.map_or(0.0, |db| (power(&channels[0]) / 10f64.powf(db / 10.0)).sqrt());
        let mut mixture = Vec::with_capacity(samples * channels.len());
        for n in 0..samples {
            for channel in &channels {
                let noise = if sigma > 0.0 { sigma * rng.normal::<f64>() } else { 0.0 };
                mixture.push((channel[n] + noise) as f32);
            }
        }
        Heard { mixture, images }
    }

    /// The impulse response from a source to a microphone.
    pub fn response(&self, source: Place, microphone: Place, rate: u32) -> Vec<f64> {
        let rate = f64::from(rate);
        let longest = self.rt60.max(distance(source, microphone) / SPEED_OF_SOUND) + TAIL;
        let reach = longest * SPEED_OF_SOUND;
        let reflection = self.reflection();
        let images =
            |i: usize| if reflection > 0.0 { (reach / (2.0 * self.size[i])).ceil() as i32 } else { 0 };
        let mut out = vec![0.0; (longest * rate) as usize + SIDE as usize + 1];
        for x in -images(0)..=images(0) {
            for y in -images(1)..=images(1) {
                for z in -images(2)..=images(2) {
                    for mirrored in 0..8 {
                        let (mut image, mut reflections) = ([0.0; 3], 0);
                        for (i, n) in [x, y, z].into_iter().enumerate() {
                            let is_mirrored = mirrored >> i & 1;
                            let side = f64::from(1 - 2 * is_mirrored);
                            image[i] = side * source[i] + 2.0 * f64::from(n) * self.size[i];
                            reflections += (n - is_mirrored).abs() + n.abs();
                        }
                        let r = distance(image, microphone);
                        let strength = reflection.powi(reflections) / (4.0 * PI * r);
                        if r < reach && strength > 0.0 {
                            add_impulse(&mut out, r / SPEED_OF_SOUND * rate, strength);
                        }
                    }
                }
            }
        }
        out
    }

    /// beta, from RT60 = 24 ln(10) V / (c S a) and beta^2 = 1 - a; 0 without walls.
    fn reflection(&self) -> f64 {
        let [x, y, z] = self.size;
        let (volume, surface) = (x * y * z, 2.0 * (x * y + y * z + z * x));
        match self.rt60 > 0.0 {
            true => {
                (1.0 - 24.0 * 10f64.ln() * volume / (SPEED_OF_SOUND * surface * self.rt60)).max(0.0).sqrt()
            }
            false => 0.0,
        }
    }
}

fn power(signal: &[f64]) -> f64 {
    signal.iter().map(|x| x * x).sum::<f64>() / signal.len().max(1) as f64
}

fn distance(a: Place, b: Place) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// An impulse between samples.
fn add_impulse(out: &mut [f64], delay: f64, strength: f64) {
    let whole = delay.round() as isize;
    for n in whole - SIDE..=whole + SIDE {
        let t = n as f64 - delay;
        let sinc = if t.abs() < 1e-9 { 1.0 } else { (PI * t).sin() / (PI * t) };
        let window = 0.5 + 0.5 * (PI * t / (SIDE + 1) as f64).cos();
        if let Some(x) = usize::try_from(n).ok().and_then(|n| out.get_mut(n)) {
            *x += strength * sinc * window;
        }
    }
}

/// As long as the signal.
fn convolved(signal: &[f64], response: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; signal.len()];
    for (delay, &r) in response.iter().enumerate().filter(|(_, r)| **r != 0.0) {
        out.iter_mut().skip(delay).zip(signal).for_each(|(y, x)| *y += r * x);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(rt60: f64) -> Shoebox {
        let (size, microphones, sources) = ([5.0, 4.0, 3.0], vec![[2.5, 1.5, 1.3]], vec![[3.0, 2.5, 1.4]]);
        Shoebox { size, rt60, microphones, sources, noise: None }
    }

    #[test]
    fn without_walls_there_is_one_impulse() {
        let room = room(0.0);
        let response = room.response(room.sources[0], room.microphones[0], 8000);
        let r = (0.25f64 + 1.0 + 0.01).sqrt();
        let delay = r / SPEED_OF_SOUND * 8000.0;
        let loudest = (0..response.len()).max_by(|a, b| response[*a].total_cmp(&response[*b])).unwrap();
        assert_eq!(loudest, delay.round() as usize);
        // A sinc sums to 1 at frequency 0, its window takes 1 % at most.
        assert!((response.iter().sum::<f64>() * 4.0 * PI * r - 1.0).abs() < 0.01);
    }

    /// Sound in direction u meets c t sum_i |u_i| / L_i walls. The mean over directions gives Eyring's formula, and by Jensen's inequality
    /// energy fades no faster than that; nor slower than along the longest side.
    #[test]
    fn echoes_fade_as_asked() {
        for rt60 in [0.2, 0.4] {
            let room = room(rt60);
            let kept = room.reflection().powi(2);
            let fastest = rt60 * (1.0 - kept) / -kept.ln();
            let slowest = -6.0 / kept.log10() * room.size[0] / SPEED_OF_SOUND;
            let response = room.response(room.sources[0], room.microphones[0], 8000);
            let left = |seconds: f64| {
                10.0 * response[(seconds * 8000.0) as usize..].iter().map(|x| x * x).sum::<f64>().log10()
            };
            let (from, to) = (0.1 * rt60 + 0.01, 0.5 * rt60 + 0.01);
            let found = 60.0 * (to - from) / (left(from) - left(to));
            assert!((fastest..slowest).contains(&found), "{found} s, not {fastest} to {slowest} s");
        }
    }
}
