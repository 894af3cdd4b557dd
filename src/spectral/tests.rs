//! Against the definition in double precision, written out slowly; streams of all lengths of blocks; hostile blobs.
#![allow(clippy::needless_range_loop)] // indices as in the equations

extern crate std;
use super::filter::{FEW_PICKS, Found, Frame as FilterFrame, IMPROBABLE, OFTEN, PICKS, Pick, Scratch};
use super::*;
use crate::blob::SPECTRAL;
use crate::blob::assemble::{assemble, bytes, sealed};
use crate::blob::frame::{Form, Frame};
use crate::error::{BlobError, Error};
use crate::numeric::rng::Rng;
use std::vec;
use std::vec::Vec;

mod definition;
use definition::definition;

/// A model of random spectra.
#[derive(Clone)]
struct Random {
    length: usize,
    hop: usize,
    dims: usize,
    single: usize,
    /// Latents of each group.
    latents: Vec<usize>,
    successors: usize,
    gains: Vec<f32>,
    rows: Vec<f32>,
    masks: Vec<u8>,
    prior: Vec<f32>,
    next: Vec<u8>,
    /// Bytes with this scale, or f32.
    scale: f32,
}

const FLOOR: f32 = 0.1;
const POWER: f32 = 0.3;
const SIGMA: f32 = 0.4;
const LAMBDA: f32 = 0.5;

impl Random {
    fn new(latents: &[usize], dims: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut unit = || rng.uniform::<f32>();
        let (length, hop, single) = (64, 16, 9);
        let h: usize = latents.iter().sum();
        let successors = 3.min(*latents.iter().min().unwrap());
        let mut next = Vec::new();
        for &k in latents {
            for _ in 0..k {
                let first = (unit() * k as f32) as usize % k;
                for i in 0..successors {
                    next.extend([((first + i) % k) as u8, (unit() * 80.0) as u8]);
                }
            }
        }
        let mut prior: Vec<f32> = (0..h).map(|_| 0.2 + unit()).collect();
        let mut start = 0;
        for &k in latents {
            let sum: f32 = prior[start..start + k].iter().sum();
            prior[start..start + k].iter_mut().for_each(|p| *p /= sum);
            start += k;
        }
        let g = latents.len();
        let mut gains = vec![1.0; g];
        gains.extend((0..2 * g).map(|_| 0.4 + 1.2 * unit()));
        Self {
            length,
            hop,
            dims,
            single,
            latents: latents.to_vec(),
            successors,
            gains,
            rows: (0..h * dims).map(|_| 0.5 + 1.5 * unit() * unit()).collect(),
            masks: (0..h * mask_len(length / 2 + 1, single)).map(|_| (unit() * 255.0) as u8).collect(),
            prior,
            next,
            scale: 0.0,
        }
    }

    fn bands(&self) -> Vec<[f32; 4]> {
        let width = (self.length / 2) as f32 / self.dims as f32;
        let edge = |d: usize| d as f32 * width;
        (0..self.dims).map(|d| [edge(d) - 0.5, 0.7 / width, edge(d + 1) + 0.5, 0.9 / width]).collect()
    }

    fn sections(&self) -> Vec<(&'static [u8; 4], Vec<u8>)> {
        let floats = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut spec = floats(&[FLOOR, POWER, LAMBDA]);
        spec.extend((self.successors as u32).to_le_bytes());
        spec.extend((self.single as u32).to_le_bytes());
        spec.extend(self.scale.to_le_bytes());
        let mut sources = Vec::new();
        for &k in &self.latents {
            sources.extend((k as u32).to_le_bytes());
            sources.extend(floats(&[SIGMA, 0.5]));
        }
        let rows = match self.scale {
            0.0 => floats(&self.rows),
            scale => self.rows.iter().map(|w| libm::roundf(w / scale) as u8).collect(),
        };
        let h: usize = self.latents.iter().sum();
        let mut groups: Vec<u8> = Vec::new();
        for (g, &k) in self.latents.iter().enumerate() {
            (0..k).for_each(|_| groups.extend((g as u16).to_le_bytes()));
        }
        groups.resize(groups.len() + h % 2 * 2, 0);
        for g in 0..self.latents.len() {
            groups.extend([b'a' + g as u8, 0]);
        }
        let form = Form::Fourier { length: self.length as u32, hop: self.hop as u32 };
        vec![
            (b"SPEC", spec),
            (b"SRCS", sources),
            (b"GAIN", floats(&self.gains)),
            (b"BAND", floats(self.bands().as_flattened())),
            (b"CODE", rows),
            (b"MASK", self.masks.clone()),
            (b"PRIO", floats(&self.prior)),
            (b"NEXT", self.next.clone()),
            (b"fram", Frame { form, rate: 8000, centred: false }.bytes().to_vec()),
            (b"grps", groups),
        ]
    }

    fn blob(&self) -> Vec<u64> {
        let encoding = if self.scale == 0.0 { 0 } else { 2 };
        let latents: usize = self.latents.iter().sum();
        assemble([SPECTRAL, encoding], self.dims, latents, &self.sections())
    }

    fn model(&self) -> SpectralModel<'static> {
        SpectralModel::parse(bytes(self.blob().leak())).unwrap()
    }
}

/// Noise whose level and colour change.
fn sound(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    let (mut slow, mut level) = (0.0f32, 1.0f32);
    (0..len)
        .map(|t| {
            if t % 40 == 0 {
                level = if rng.uniform::<f32>() < 0.2 { 0.01 } else { 2.0 * rng.uniform::<f32>() };
            }
            slow = 0.8 * slow + rng.normal::<f32>();
            0.5 * level * slow
        })
        .collect()
}

/// A stream at its beginning.
fn started(model: SpectralModel<'_>) -> SpectralStream<'_> {
    SpectralStream::new(model, vec![0.0; SpectralStream::memory_len(&model)].leak()).unwrap()
}

fn run(model: SpectralModel<'_>, input: &[f32], block: usize) -> Vec<f32> {
    process(&mut started(model), input, block)
}

fn process(stream: &mut SpectralStream<'_>, input: &[f32], block: usize) -> Vec<f32> {
    let mut output = vec![0.0; input.len() * stream.groups()];
    for (x, y) in input.chunks(block).zip(output.chunks_mut(block * stream.groups())) {
        stream.process(x, y).unwrap();
    }
    output
}

#[test]
fn as_defined() {
    for (latents, scale, seed) in
        [(&[5, 7][..], 0.0, 1), (&[8, 3], 0.01, 2), (&[3, 5, 4], 0.0, 3), (&[2, 3, 3, 2], 0.008, 4)]
    {
        let random = Random { scale, ..Random::new(latents, 12, seed) };
        let model = random.model();
        assert_eq!((model.count(), model.filters(), model.is_integer()), (latents.len(), 3, scale > 0.0));
        let input = sound(1500, seed);
        let (found, expected) = (run(model, &input, 100), definition(&random, &input));
        // Scores of about 100 nats are off by 1e-5, which the sum over frames with 0.98 makes 15 times as much: weights, and
        // with them masks, by 2e-4; samples are below 8.
        for (t, parts) in found.chunks(latents.len()).enumerate().skip(random.length) {
            for (group, &part) in parts.iter().enumerate() {
                let off = (f64::from(part) - expected[group][t]).abs();
                assert!(
                    off < 2e-3,
                    "{latents:?}: sample {t} of {group} is {part}, not {}",
                    expected[group][t]
                );
            }
        }
    }
}

/// With many latents the best of all pairs is found.
#[test]
fn selection_finds_the_best() {
    let random = Random { gains: vec![1.0, 1.0], ..Random::new(&[60, 40], 32, 5) };
    let model = random.model();
    let mut rng = Rng::new(6);
    let mut memory = vec![0.0; Scratch::len(&model)];
    let mut scratch = Scratch::cut(&mut memory, &model).unwrap();
    scratch.prepare(&model);
    let floor = compress(0.0, FLOOR, POWER);
    let precision = 0.5 / model.variance();
    let mut hits = 0;
    for _ in 0..200 {
        let mut draw = |k: usize| (rng.uniform::<f64>() * k as f64) as usize;
        let (a, b) = (draw(60), 60 + draw(40));
        let pair = |a: usize, b: usize| -> Vec<f32> {
            let (a, b) = (&random.rows[a * 32..][..32], &random.rows[b * 32..][..32]);
            a.iter().zip(b).map(|(a, b)| a.max(*b).max(floor)).collect()
        };
        let v: Vec<f32> = pair(a, b).iter().map(|v| v + 0.2 * rng.normal::<f32>()).collect();
        let mut posterior = random.prior.clone();
        let mut picks = [Pick::default(); PICKS];
        let frame = FilterFrame { model: &model, bands: &v, floor, precision };
        let evidence = frame
            .step(&[1.0; MOST_SOURCES], &mut posterior, &mut scratch, &mut Found::default(), &mut picks)
            .unwrap();
        assert!(evidence.is_finite());
        let sums = [&posterior[..60], &posterior[60..]].map(|q| q.iter().sum::<f32>());
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
        let score = |a: usize, b: usize| {
            let off: f32 = pair(a, b).iter().zip(&v).map(|(w, v)| (v - w) * (v - w)).sum();
            scratch.expected[a] + scratch.expected[b] - precision * off
        };
        let mut best = (0, 60);
        for a in 0..60 {
            for b in 60..100 {
                if score(a, b) > score(best.0, best.1) {
                    best = (a, b);
                }
            }
        }
        let [a, b, ..] = picks[0].latents.map(usize::from);
        hits += usize::from((a, b) == best);
    }
    assert!(hits >= 190, "{hits} of 200");
}

#[test]
fn lengths_of_blocks_do_not_matter() {
    for (latents, hop) in [(&[20, 12][..], 16), (&[9, 5], 32), (&[4, 6, 9], 8), (&[7], 16)] {
        let random = Random { hop, ..Random::new(latents, 12, 7) };
        let model = random.model();
        let input = sound(2000, 8);
        let whole = run(model, &input, 2000);
        for block in [1, 7, 16, 31, 1000] {
            assert_eq!(run(model, &input, block), whole, "{latents:?} {block}");
        }
        let mut stream = started(model);
        process(&mut stream, &input, 100);
        stream.reset();
        assert_eq!(process(&mut stream, &input, 64), whole);
        // Parts add up to what went in.
        let latency = stream.latency();
        for t in 64 + latency..2000 {
            let sum: f32 = whole[t * latents.len()..][..latents.len()].iter().sum();
            assert!((sum - input[t - latency]).abs() < 1e-5 * 8.0, "{latents:?}: {t}");
        }
    }
}

#[test]
fn reduction_is_limited() {
    let random = Random::new(&[10, 10], 12, 9);
    let model = random.model();
    let input = sound(1000, 10);
    let all = run(model, &input, 50);
    let mut stream = started(model);
    stream.set_reduction(20.0);
    stream.reset();
    let limited = process(&mut stream, &input, 50);
    stream.set_reduction(0.0);
    stream.reset();
    let none = process(&mut stream, &input, 50);
    for t in 128..1000 {
        let [a, b] = [all[2 * t], all[2 * t + 1]];
        assert!(
            (limited[2 * t] - (a + 0.1 * b)).abs() < 1e-5
                && (limited[2 * t + 1] - (b + 0.1 * a)).abs() < 1e-5
        );
        assert!((none[2 * t] - (a + b)).abs() < 1e-5 && (none[2 * t] - none[2 * t + 1]).abs() < 1e-6);
    }
}

/// A constant in the input is divided evenly and changes nothing else, once frames are full of it.
#[test]
fn offsets_do_not_matter() {
    for scale in [0.0, 0.01] {
        let random = Random { scale, ..Random::new(&[10, 10], 12, 21) };
        let model = random.model();
        let input = sound(4000, 22);
        let offset: Vec<f32> = input.iter().map(|x| x + 20.0).collect();
        let (plain, offset) = (run(model, &input, 50), run(model, &offset, 50));
        let mut off = 0.0;
        for t in 1000..4000 {
            for source in 0..2 {
                off += (offset[2 * t + source] - 10.0 - plain[2 * t + source]).abs() / 6000.0;
            }
        }
        // The first frames are louder by an edge.
        assert!(off < 0.03, "{off}");
    }
}

#[test]
fn any_level_is_followed() {
    let random = Random::new(&[10, 10], 12, 11);
    let model = random.model();
    let input = sound(1000, 12);
    let scaled = |scale: f32| {
        let mut stream = started(model);
        stream.set_level(scale * scale);
        let scaled: Vec<f32> = input.iter().map(|x| x * scale).collect();
        process(&mut stream, &scaled, 50)
    };
    // Powers of two change no digit.
    let (plain, quiet) = (scaled(1.0), scaled(1.0 / 1024.0));
    assert!(plain.iter().zip(&quiet).all(|(x, y)| *x == y * 1024.0));
    // What makes no sense changes nothing.
    let mut stream = started(model);
    [f32::NAN, -1.0, 0.0, f32::INFINITY].iter().for_each(|&power| stream.set_level(power));
    assert_eq!(process(&mut stream, &input, 50), run(model, &input, 50));
}

#[test]
fn silence_and_excess() {
    let random = Random::new(&[10, 10], 12, 13);
    let model = random.model();
    assert!(run(model, &[0.0; 3000], 64).iter().all(|&x| x == 0.0));
    let mut stream = started(model);
    let mut out = [0.0; 128];
    assert_eq!(stream.process(&[f32::NAN; 64], &mut out), Err(Error::SampleNotFinite { index: 0 }));
    assert_eq!(stream.process(&[3e38; 64], &mut out), Err(Error::OutOfRange));
    assert!(out.iter().all(|x| x.is_finite()));
    assert!(matches!(stream.process(&[0.0; 64], &mut [0.0; 64]), Err(Error::BlockLength { .. })));
    // It goes on.
    for _ in 0..4 {
        let _ = stream.process(&[0.0; 64], &mut out);
    }
    assert_eq!(stream.process(&[0.1; 64], &mut out), Ok(()));
    let short = SpectralStream::memory_len(&model) - 1;
    let refused = SpectralStream::new(model, &mut vec![0.0; short]).map(|_| ());
    assert_eq!(refused, Err(Error::Memory { needed: short + 1, found: short }));
}

#[test]
fn hostile_bytes_end_at_the_border() {
    let random = Random { scale: 0.01, ..Random::new(&[4, 3], 8, 15) };
    let words = random.blob();
    let sound_bytes = bytes(&words).to_vec();
    assert!(SpectralModel::is_one(&sound_bytes));
    assert_eq!(crate::Blob::parse(bytes(&words)).err(), Some(BlobError::StreamOnly));
    for len in (0..sound_bytes.len()).step_by(8) {
        assert!(SpectralModel::parse(bytes(&words[..len / 8])).is_err());
    }
    // Any byte changed, with a checksum that fits: refused, or a model that runs.
    let input = sound(200, 16);
    let (mut refused, mut run) = (0, 0);
    for at in 16..sound_bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = sound_bytes.clone();
            changed[at] = value;
            let words = sealed(changed);
            match SpectralModel::parse(bytes(&words)) {
                Err(_) => refused += 1,
                Ok(model) => {
                    let mut stream = started(model);
                    let mut out = vec![0.0; input.len() * stream.groups()];
                    let _ = stream.process(&input, &mut out);
                    assert!(out.iter().all(|x| x.is_finite()), "{at} {value}");
                    run += 1;
                }
            }
        }
    }
    assert!(refused > 500 && run > 500, "{refused} {run}");
    // Every section is needed, names too where there are several sources.
    let sections = random.sections();
    for left_out in 0..sections.len() {
        let mut fewer = sections.clone();
        fewer.remove(left_out);
        let words = assemble([SPECTRAL, 2], 8, 7, &fewer);
        let error = SpectralModel::parse(bytes(&words)).err();
        assert!(matches!(error, Some(BlobError::MissingSection { .. })), "{left_out}: {error:?}");
    }
}
