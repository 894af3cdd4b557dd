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

/// A source that walks on a circle around the microphones, then stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Its number.
    pub source: usize,
    /// How far it goes, to the left.
    pub degrees: f64,
    /// When it begins, in seconds.
    pub start: f64,
    /// How long it takes.
    pub seconds: f64,
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
        self.record_walk(sounds, None, rate, rng)
    }

    /// The same with a source that walks.
    pub fn record_walk(&self, sounds: &[&[f64]], walk: Option<Walk>, rate: u32, rng: &mut Rng) -> Heard {
        let samples = sounds.iter().map(|sound| sound.len()).min().unwrap_or(0);
        let mut channels = vec![vec![0.0; samples]; self.microphones.len()];
        let mut images = Vec::new();
        for (number, (sound, source)) in sounds.iter().zip(&self.sources).enumerate() {
            let sound = &sound[..samples];
            let at = |microphone: &Place| match walk.filter(|walk| walk.source == number) {
                Some(walk) => self.walked(sound, walk, *microphone, rate),
                None => convolved(sound, &self.response(*source, *microphone, rate)),
            };
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

    /// A source that walks, as a microphone hears it: places a degree apart, faded over from one to the next.
    fn walked(&self, sound: &[f64], walk: Walk, microphone: Place, rate: u32) -> Vec<f64> {
        let count = self.microphones.len() as f64;
        let centre: [f64; 2] =
            std::array::from_fn(|i| self.microphones.iter().map(|place| place[i]).sum::<f64>() / count);
        let from = self.sources[walk.source];
        let (x, y) = (from[0] - centre[0], from[1] - centre[1]);
        let steps = walk.degrees.abs().ceil().max(1.0) as usize;
        let (begin, length) = (walk.start * f64::from(rate), walk.seconds * f64::from(rate) / steps as f64);
        let mut heard = vec![0.0; sound.len()];
        for step in 0..=steps {
            let (sin, cos) = (walk.degrees.to_radians() * step as f64 / steps as f64).sin_cos();
            let place = [centre[0] + x * cos - y * sin, centre[1] + x * sin + y * cos, from[2]];
            // How much of the sound is made here: all before the first place and after the last, else a triangle.
            let weight = |n: usize| {
                let late = (n as f64 - begin) / length - step as f64;
                let stands = (step == 0 && late < 0.0) || (step == steps && late > 0.0);
                if stands { 1.0 } else { (1.0 - late.abs()).max(0.0) }
            };
            let first = if step == 0 { 0 } else { (begin + (step as f64 - 1.0) * length).max(0.0) as usize };
            let end =
                if step == steps { sound.len() } else { (begin + (step as f64 + 1.0) * length) as usize + 1 };
            let (first, end) = (first.min(sound.len()), end.min(sound.len()));
            let piece: Vec<f64> = (first..end).map(|n| sound[n] * weight(n)).collect();
            let response = self.response(place, microphone, rate);
            for (delay, &r) in response.iter().enumerate().filter(|(_, r)| **r != 0.0) {
                heard.iter_mut().skip(first + delay).zip(&piece).for_each(|(y, x)| *y += r * x);
            }
        }
        heard
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

/// An impulse between samples. Over whole steps the sine of the sinc only changes its sign, and the cosine of the window turns by a
/// constant angle.
fn add_impulse(out: &mut [f64], delay: f64, strength: f64) {
    let first = delay.round() as isize - SIDE;
    let start = first as f64 - delay;
    let mut sine = strength * (PI * start).sin() / PI;
    let (turn_sin, turn_cos) = (PI / (SIDE + 1) as f64).sin_cos();
    let (mut window_sin, mut window_cos) = (PI * start / (SIDE + 1) as f64).sin_cos();
    for step in 0..=2 * SIDE {
        let t = start + step as f64;
        if let Some(x) = usize::try_from(first + step).ok().and_then(|n| out.get_mut(n)) {
            let sinc = if t.abs() < 1e-9 { strength } else { sine / t };
            *x += sinc * (0.5 + 0.5 * window_cos);
        }
        sine = -sine;
        (window_sin, window_cos) =
            (window_sin * turn_cos + window_cos * turn_sin, window_cos * turn_cos - window_sin * turn_sin);
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

    /// Without walls a walk ends with the delay and the strength of its last place, and begins with those of the first.
    #[test]
    fn a_walk_ends_where_it_leads() {
        let mut room = room(0.0);
        room.microphones.push([2.6, 1.5, 1.3]);
        let walk = Walk { source: 0, degrees: 90.0, start: 0.05, seconds: 0.1 };
        let mut sound = vec![0.0; 2400];
        (sound[100], sound[2000]) = (1.0, 1.0);
        let heard = room.walked(&sound, walk, room.microphones[1], 8000);
        let (x, y) = (0.45, 1.0);
        for (begin, place) in [(100, room.sources[0]), (2000, [2.55 - y, 1.5 + x, 1.4])] {
            let alone = room.response(place, room.microphones[1], 8000);
            for (n, exact) in alone.iter().enumerate().take(300) {
                assert!((heard[begin + n] - exact).abs() < 1e-12, "{begin} {n}");
            }
        }
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
