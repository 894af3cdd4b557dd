//! Against the definition in double precision, with inverses by elimination; streams of all lengths of blocks; hostile blobs.
#![allow(clippy::needless_range_loop)] // indices as in the equations

extern crate std;
use super::*;
use crate::blob::SPATIAL;
use crate::blob::assemble::{assemble, bytes, sealed};
use crate::blob::frame::{Form, Frame};
use crate::error::{BlobError, Error, ModelError};
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use std::vec;
use std::vec::Vec;

pub(super) type C = Complex<f64>;

fn mul(a: C, b: C) -> C {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}
fn sum(terms: impl Iterator<Item = C>) -> C {
    terms.fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
}
fn conj(a: C) -> C {
    [a[0], -a[1]]
}

/// The inverse and the determinant of a Hermitian positive matrix, by Gauss and Jordan.
fn inverse(mut a: Vec<Vec<C>>) -> (Vec<Vec<C>>, f64) {
    let d = a.len();
    let mut out: Vec<Vec<C>> =
        (0..d).map(|i| (0..d).map(|j| [f64::from(u8::from(i == j)), 0.0]).collect()).collect();
    let mut determinant = [1.0, 0.0];
    for p in 0..d {
        let pivot = a[p][p];
        determinant = mul(determinant, pivot);
        let size = pivot[0] * pivot[0] + pivot[1] * pivot[1];
        let over = [pivot[0] / size, -pivot[1] / size];
        for j in 0..d {
            (a[p][j], out[p][j]) = (mul(a[p][j], over), mul(out[p][j], over));
        }
        for i in (0..d).filter(|&i| i != p) {
            let factor = a[i][p];
            for j in 0..d {
                let (x, y) = (mul(factor, a[p][j]), mul(factor, out[p][j]));
                a[i][j] = [a[i][j][0] - x[0], a[i][j][1] - x[1]];
                out[i][j] = [out[i][j][0] - y[0], out[i][j][1] - y[1]];
            }
        }
    }
    (out, determinant[0])
}

/// Factors as in a blob, scaled so that traces sum to H D.
pub(super) fn factors(rng: &mut Rng, d: usize, h: usize) -> Vec<f64> {
    let mut numbers: Vec<f64> = (0..h * d * d).map(|_| rng.normal::<f64>()).collect();
    for source in numbers.chunks_exact_mut(d * d) {
        for row in 0..d {
            source[row * row + 2 * row] =
                source[row * row + 2 * row].abs() * if row == 0 { 1.0 } else { 0.2 };
        }
    }
    let energy: f64 = numbers.iter().map(|x| x * x).sum();
    numbers.iter().map(|x| x * libm::sqrt((h * d) as f64 / energy)).collect()
}

/// Of one bin.
pub(super) struct Exact {
    /// ln p(y), up to what does not depend on parameters.
    pub evidence: f64,
    activities: Vec<f64>,
    images: Vec<C>,
    weights: Vec<f64>,
    quadratics: Vec<f64>,
}

/// Straight from the equations of the module.
pub(super) fn definition(bin: &Bin<'_, f64>, constants: &Constants<f64>, y: &[C], expected: &[f64]) -> Exact {
    let (d, h) = (y.len(), bin.activity.len());
    let matrices: Vec<Vec<Vec<C>>> = bin
        .factors
        .chunks_exact(d * d)
        .map(|numbers| {
            let f = |i: usize, j: usize| match j.cmp(&i) {
                core::cmp::Ordering::Less => [numbers[i * i + 2 * j], numbers[i * i + 2 * j + 1]],
                core::cmp::Ordering::Equal => [numbers[i * i + 2 * i], 0.0],
                core::cmp::Ordering::Greater => [0.0; 2],
            };
            let entry = |i, j| sum((0..d).map(|k| mul(f(i, k), conj(f(j, k)))));
            (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect()
        })
        .collect();
    let level = |s: usize, h: usize| if s >> h & 1 == 1 { 1.0 } else { constants.off_level };
    let energy: f64 = y.iter().map(|y| y[0] * y[0] + y[1] * y[1]).sum();
    let (mut total, mut activities, mut images) = (0.0, vec![0.0; h], vec![[0.0; 2]; h]);
    let (mut weights, mut quadratics) = (Vec::new(), Vec::new());
    for s in 0..1usize << h {
        let floor = if s == 0 { 1.0 } else { constants.floor };
        let entry = |i: usize, j: usize| {
            let part = sum((0..h).map(|h| matrices[h][i][j].map(|x| level(s, h) * x)));
            [part[0] + if i == j { floor } else { 0.0 }, part[1]]
        };
        let (p, determinant) = inverse((0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect());
        let py: Vec<C> = p.iter().map(|row| sum(row.iter().zip(y).map(|(&p, &y)| mul(p, y)))).collect();
        let q = sum(y.iter().zip(&py).map(|(&y, &py)| mul(conj(y), py)))[0] / energy;
        let prior = if s == 0 { bin.silence } else { (1.0 - bin.silence) / ((1 << h) - 1) as f64 };
        let on = |h: &usize| s >> h & 1 == 1;
        let odds: f64 = (0..h).filter(on).map(|h| expected[h] - bin.activity[h]).sum();
        let weight = prior * libm::exp(constants.context * odds) / (determinant * libm::pow(q, d as f64));
        total += weight;
        weights.push(weight);
        quadratics.push(q);
        for h in 0..h {
            activities[h] += weight * f64::from(u8::from(on(&h)));
            let image = sum((0..d).map(|j| mul(matrices[h][constants.microphone][j], py[j])));
            for k in 0..2 {
                images[h][k] += weight * level(s, h) * image[k];
            }
        }
    }
    Exact {
        evidence: libm::log(total),
        activities: activities.iter().map(|a| a / total).collect(),
        images: images.iter().map(|x| x.map(|x| x / total)).collect(),
        weights: weights.iter().map(|w| w / total).collect(),
        quadratics,
    }
}

fn compare<T: Real, const D: usize>(tolerance: f64) {
    let mut rng = Rng::new(D as u64);
    for trial in 0..200 {
        let h = 1 + trial % MOST_SOURCES;
        let single = |x: f64| T::from_f64(x).to_f64();
        let numbers: Vec<f64> = factors(&mut rng, D, h).into_iter().map(single).collect();
        let mut draw = || single(0.05 + 0.9 * rng.unit::<f64>());
        let (silence, activity) = (draw(), (0..h).map(|_| draw()).collect::<Vec<f64>>());
        let mut expected = [0.0; MOST_SOURCES].map(|_| draw());
        expected[h..].fill(0.0);
        let constants =
            Constants { off_level: single(0.03), context: 2.0, floor: single(1e-4), microphone: trial % D };
        let loudness = single(libm::exp(10.0 * rng.normal::<f64>()));
        let y: [C; D] = core::array::from_fn(|_| [0; 2].map(|_| single(loudness * rng.normal::<f64>())));
        let bin = Bin { factors: &numbers, silence, activity: &activity };
        let exact = definition(&bin, &constants, &y, &expected);
        let narrow = |numbers: &[f64]| numbers.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        let (numbers, activity) = (narrow(&numbers), narrow(&activity));
        let bin = Bin { factors: &numbers, silence: T::from_f64(silence), activity: &activity };
        let constants = Constants {
            off_level: T::from_f64(constants.off_level),
            context: T::from_f64(constants.context),
            floor: T::from_f64(constants.floor),
            microphone: constants.microphone,
        };
        let mut found = Found::default();
        let (y, expected) = (y.map(|y| y.map(T::from_f64)), expected.map(T::from_f64));
        assert!(bin.infer(&constants, &y, &expected, &mut found));
        let size = y.iter().flatten().map(|x| x.to_f64().abs()).fold(0.0, f64::max);
        for h in 0..h {
            let off = (found.activities[h].to_f64() - exact.activities[h]).abs();
            assert!(off < tolerance, "{D} microphones, {trial}: activity {h} off by {off}");
            for k in 0..2 {
                let off = (found.images[h][k].to_f64() - exact.images[h][k]).abs() / size;
                assert!(off < tolerance, "{D} microphones, {trial}: image {h} off by {off}");
            }
        }
        let posterior = bin.posterior(&constants, &y, &expected).unwrap();
        for s in 0..1 << h {
            let off = (posterior.weights[s].to_f64() - exact.weights[s]).abs();
            assert!(off < tolerance, "{D} microphones, {trial}: state {s} off by {off}");
            let off = posterior.quadratics[s].to_f64() / exact.quadratics[s] - 1.0;
            assert!(off.abs() < tolerance, "{D} microphones, {trial}: q of {s} off by {off}");
        }
        assert!(posterior.weights[1 << h..].iter().all(|&weight| weight == T::ZERO));
    }
}

#[test]
fn bins_are_as_defined() {
    // With two microphones all are sums of squares, and an image is a sum of some dozen terms of the size of y: as many roundings.
    compare::<f32, 2>(1e-5);
    // Covariances of more are factored, as are all in the definition; their condition numbers are up to H D / delta or so, 1e5
    // roundings of 1e-16 and 6e-8.
    compare::<f64, 2>(1e-11);
    compare::<f64, 3>(1e-11);
    compare::<f64, 4>(1e-11);
    compare::<f32, 3>(6e-3);
    compare::<f32, 4>(6e-3);
}

/// Everything that [`SpatialModel::parse`] lets pass gives numbers: factors of rank 1 and 0, of as much energy as there may be, the
/// smallest floor, probabilities next to 0 and 1. And loudness does not matter, from the faintest to the loudest.
fn extremes<const D: usize>() {
    let mut rng = Rng::new(D as u64);
    for trial in 0..300 {
        let h = 1 + trial % MOST_SOURCES;
        let mut numbers: Vec<f64> = factors(&mut rng, D, h);
        for (source, numbers) in numbers.chunks_exact_mut(D * D).enumerate() {
            for row in 0..D {
                let diagonal = &mut numbers[row * row + 2 * row];
                *diagonal *= if row > trial / 4 % D { 0.0 } else { 1.0 };
            }
            if (trial + source) % 5 == 0 {
                numbers.fill(0.0);
            }
        }
        let energy: f64 = numbers.iter().map(|x| x * x).sum();
        let most = if energy == 0.0 { 1.0 } else { libm::sqrt(1.999 * (h * D) as f64 / energy) };
        let numbers: Vec<f32> = numbers.iter().map(|x| (x * most) as f32).collect();
        let ends = [1e-45, 0.5, 1.0 - 6e-8];
        let activity: Vec<f32> = (0..h).map(|h| [0.0, 1.0][(trial + h) % 2]).collect();
        let bin = Bin { factors: &numbers, silence: ends[trial % 3], activity: &activity };
        let constants = Constants {
            off_level: [0.0, 0.03, 0.5][trial / 3 % 3],
            context: [0.0, 4.0][trial % 2],
            floor: [1e-5, 1e-4][trial / 2 % 2],
            microphone: trial % D,
        };
        let expected = [0; MOST_SOURCES].map(|_| rng.unit::<f32>());
        // In the direction of a source, where it is nearly all the covariance, or in any.
        let mut y: [Complex<f32>; D] = core::array::from_fn(|_| [0; 2].map(|_| rng.normal::<f32>()));
        if trial % 2 == 0 {
            (0..D).for_each(|i| y[i] = [numbers[if i == 0 { 0 } else { i * i }], 0.0]);
        }
        let mut before = None;
        for exponent in [-44, -30, 0, 30, 44] {
            let scale = f32::power_of_two(exponent);
            let scaled = y.map(|y| y.map(|y| y * scale));
            let mut found = Found::default();
            assert!(bin.infer(&constants, &scaled, &expected, &mut found), "{D} {trial}");
            let images = found.images.map(|x| x.map(|x| x / scale));
            let found = found.activities.map(f32::to_bits);
            assert!(images.iter().flatten().all(|x| x.is_finite()), "{D} {trial}: {images:?}");
            assert!(found.iter().all(|&a| (0.0..1.0001).contains(&f32::from_bits(a))), "{D} {trial}");
            assert_eq!(*before.get_or_insert((found, images)), (found, images), "{D} {trial} {exponent}");
        }
        // Silence says nothing; what is too loud is an error.
        for (y, is_sound) in [(1e-20, true), (0.0, true), (1e16, false), (f32::MAX, false), (f32::NAN, false)]
        {
            let (mut found, y) = (Found::default(), [[y; 2]; D]);
            (found.activities, found.images) = ([7.0; MOST_SOURCES], [[7.0; 2]; MOST_SOURCES]);
            assert_eq!(bin.infer(&constants, &y, &expected, &mut found), is_sound);
            assert_eq!((&found.activities[..h], found.images), (&activity[..], [[0.0; 2]; MOST_SOURCES]));
            assert!(bin.posterior(&constants, &y, &expected).is_none());
        }
    }
}

#[test]
fn extreme_bins_give_numbers() {
    extremes::<2>();
    extremes::<3>();
    extremes::<4>();
}

/// A model of D microphones and H sources, as bytes on a boundary of 8.
pub(super) fn blob(d: usize, h: usize, length: u32, encoding: u8) -> Vec<u64> {
    let mut rng = Rng::new(1);
    let scale = libm::sqrt((2 * d * h) as f64) / 32767.0;
    let mut records = Vec::new();
    for _ in 0..length / 2 + 1 {
        let factors = factors(&mut rng, d, h);
        let rest = (0..h + 1).map(|_| 0.1 + 0.8 * rng.unit::<f64>()).collect::<Vec<f64>>();
        let integer = |x: f64| (libm::round(x) as i16).to_le_bytes();
        match encoding {
            0 => records.extend(factors.iter().chain(&rest).flat_map(|&x| (x as f32).to_le_bytes())),
            _ => {
                records.extend(factors.iter().flat_map(|&x| integer(x / scale)));
                records.extend(rest.iter().flat_map(|&x| integer(x * 32768.0)));
            }
        }
    }
    let frame = Frame { form: Form::Fourier { length, hop: length / 4 }, rate: 8000, centred: false };
    let scale = if encoding == 0 { 0.0 } else { scale as f32 };
    let room = [1u32, 0.03f32.to_bits(), 2.0f32.to_bits(), 1e-4f32.to_bits(), scale.to_bits(), 0];
    let room: Vec<u8> = room.iter().flat_map(|word| word.to_le_bytes()).collect();
    let sections: [(&[u8; 4], _); 3] =
        [(b"ROOM", room), (b"SPAT", records), (b"fram", frame.bytes().to_vec())];
    assemble([SPATIAL, encoding], d, h, &sections)
}

#[test]
fn any_length_of_blocks_gives_the_same_bits() {
    for (d, h, encoding) in [(2, 2, 0), (2, 3, 1), (3, 2, 0), (4, 4, 1)] {
        let words = blob(d, h, 64, encoding);
        let model = SpatialModel::parse(bytes(&words)).unwrap();
        assert_eq!((model.microphones(), model.sources(), model.length(), model.hop()), (d, h, 64, 16));
        let mut rng = Rng::new(3);
        let input: Vec<f32> = (0..300 * d).map(|_| rng.normal::<f32>()).collect();
        let mut expected = Vec::new();
        for block in [300, 1, 7, 16, 64, 100] {
            let mut memory = vec![f32::NAN; SpatialStream::memory_len(&model)];
            let mut stream = SpatialStream::new(model, &mut memory).unwrap();
            assert_eq!((stream.channels(), stream.groups(), stream.latency()), (d, h, 63));
            let mut found = vec![0.0; 300 * h];
            for (input, output) in input.chunks(block * d).zip(found.chunks_mut(block * h)) {
                stream.process(input, output).unwrap();
            }
            assert!(found.iter().any(|x| *x != 0.0) && found[..63 * h].iter().all(|&x| x == 0.0));
            if expected.is_empty() {
                expected = found.clone();
            }
            assert_eq!(found, expected, "{block}");
            // And again from the beginning.
            stream.reset();
            stream.process(&input, &mut found).unwrap();
            assert_eq!(found, expected);
        }
    }
}

/// Transforms, bins and context from their definitions, in double precision.
#[test]
fn a_stream_is_as_defined() {
    let (d, h, length, hop, frames) = (2, 3, 64, 16, 12);
    let words = blob(d, h, length as u32, 0);
    let model = SpatialModel::parse(bytes(&words)).unwrap();
    let mut rng = Rng::new(4);
    let samples = frames * hop;
    let input: Vec<f32> = (0..samples * d).map(|_| rng.normal::<f32>()).collect();
    let constants = model.constants();
    let constants = Constants {
        off_level: f64::from(constants.off_level),
        context: f64::from(constants.context),
        floor: f64::from(constants.floor),
        microphone: constants.microphone,
    };
    let records: Vec<Vec<f64>> = (0..model.bins())
        .map(|bin| {
            let mut record = vec![0.0; record_len(d, h)];
            model.record(bin, &mut record);
            record.into_iter().map(f64::from).collect()
        })
        .collect();
    let turn = core::f64::consts::TAU / length as f64;
    let window = |n: usize| 0.5 * (1.0 - libm::cos(turn * n as f64));
    let wave = |k: usize, n: usize| {
        let angle = turn * ((k * n) % length) as f64;
        [libm::cos(angle), -libm::sin(angle)]
    };
    let mut before: Vec<Vec<f64>> = records.iter().map(|record| record[h * d * d + 1..].to_vec()).collect();
    let mut expected = vec![vec![0.0; samples + length]; h];
    for end in (hop..=samples).step_by(hop) {
        // Silence goes before the first sample.
        let sample = |n: usize, c: usize| match (end + n).checked_sub(length) {
            Some(t) => f64::from(input[t * d + c]) * window(n),
            None => 0.0,
        };
        let mut now = before.clone();
        for (k, record) in records.iter().enumerate() {
            let y: Vec<C> =
                (0..d).map(|c| sum((0..length).map(|n| wave(k, n).map(|w| w * sample(n, c))))).collect();
            let around = [k.saturating_sub(1), k, (k + 1).min(length / 2)];
            let context: Vec<f64> =
                (0..h).map(|h| around.iter().map(|&k| before[k][h]).sum::<f64>() / 3.0).collect();
            let activity = &record[h * d * d + 1..];
            let bin = Bin { factors: &record[..h * d * d], silence: record[h * d * d], activity };
            if y.iter().flatten().all(|&y| y == 0.0) {
                continue;
            }
            let Exact { activities, images, .. } = definition(&bin, &constants, &y, &context);
            now[k] = activities;
            let both = if k == 0 || k == length / 2 { 1.0 } else { 2.0 };
            for n in 0..length {
                let scale = both / length as f64 * window(n) * 8.0 * hop as f64 / (3.0 * length as f64);
                for (image, out) in images.iter().zip(&mut expected) {
                    out[end + n] += scale * mul(*image, conj(wave(k, n)))[0];
                }
            }
        }
        before = now;
    }
    let mut memory = vec![0.0; SpatialStream::memory_len(&model)];
    let mut stream = SpatialStream::new(model, &mut memory).unwrap();
    let mut output = vec![0.0; samples * h];
    stream.process(&input, &mut output).unwrap();
    for t in length - 1..samples {
        for source in 0..h {
            // Sample t belongs to sample t - (L - 1), which is L further on here.
            let (found, exact) = (f64::from(output[t * h + source]), expected[source][t + 1]);
            assert!((found - exact).abs() < 1e-3, "{t} of {source}: {found}, not {exact}");
        }
    }
}

#[test]
fn wrong_blocks_and_numbers_are_refused() {
    let words = blob(2, 2, 64, 0);
    let model = SpatialModel::parse(bytes(&words)).unwrap();
    let len = SpatialStream::memory_len(&model);
    let mut memory = vec![0.0; len];
    let short = SpatialStream::new(model, &mut memory[..len - 1]).err();
    assert_eq!(short, Some(Error::Memory { needed: len, found: len - 1 }));
    let mut stream = SpatialStream::new(model, &mut memory).unwrap();
    let mut out = [0.0; 4];
    let wrong = Error::BlockLength { channels: 2, groups: 2, input: 3, output: 4 };
    assert_eq!(stream.process(&[0.0; 3], &mut out), Err(wrong));
    let nan = stream.process(&[0.0, 1.0, f32::NAN, 0.0], &mut out);
    assert_eq!(nan, Err(Error::SampleNotFinite { index: 2 }));
    // Too loud: silence, an error, and after it all is as before.
    let (mut loud, mut again) = (vec![0.0; 256], vec![0.0; 256]);
    assert_eq!(stream.process(&[3e38; 256], &mut loud), Err(Error::OutOfRange));
    assert!(loud.iter().all(|x| x.is_finite()));
    // What still overlaps with it is gone after one frame more.
    let _ = stream.process(&[0.0; 256], &mut again);
    assert_eq!(stream.process(&[0.1; 256], &mut again), Ok(()));
    stream.reset();
    assert_eq!(stream.process(&[0.0; 256], &mut again), Ok(()));
    assert!(again.iter().all(|&x| x == 0.0));
}

#[test]
fn hostile_blobs_are_refused() {
    let words = blob(2, 3, 64, 0);
    let sound = bytes(&words);
    assert!(SpatialModel::is_one(sound) && SpatialModel::parse(sound).is_ok());
    assert_eq!(crate::Blob::parse(sound).err(), Some(BlobError::StreamOnly));
    assert!(!SpatialModel::is_one(crate::doc::TWO_SOURCES));
    assert!(SpatialModel::parse(crate::doc::TWO_SOURCES).is_err());
    for len in (0..sound.len()).step_by(8) {
        assert!(SpatialModel::parse(&sound[..len]).is_err(), "{len}");
    }
    let range = |field, index| BlobError::Model(ModelError::Range { field, index });
    let (room, records) = (96, 96 + 24);
    let number = |offset: usize, value: f32| (offset, value.to_le_bytes());
    for ((offset, value), error) in [
        ((17, [2, 0, 0, 0]), BlobError::Unknown { field: "encoding", value: 2 }),
        ((20, [1, 0, 0, 0]), BlobError::Unknown { field: "header", value: 1 }),
        ((24, [1, 0, 0, 0]), range("dims", 0)),
        ((24, [5, 0, 0, 0]), range("dims", 0)),
        ((28, [0, 0, 0, 0]), range("latents", 0)),
        ((28, [5, 0, 0, 0]), range("latents", 0)),
        (
            (28, [2, 0, 0, 0]),
            BlobError::Model(ModelError::Length { field: "bins", expected: 363, found: 528 }),
        ),
        ((48, *b"LOUD"), BlobError::UnknownSection { tag: *b"LOUD" }),
        ((48, *b"loud"), BlobError::MissingSection { tag: *b"ROOM" }),
        ((room, [2, 0, 0, 0]), range("microphone", 0)),
        (number(room + 4, 0.6), range("off level", 0)),
        (number(room + 8, f32::NAN), range("context", 0)),
        (number(room + 12, 0.0), range("floor", 0)),
        (number(room + 16, 1.0), range("scale", 0)),
        (number(records + 64, f32::INFINITY), range("factors", 1)),
        (number(records, -0.1), range("factors", 0)),
        (number(records + 4, 4.0), range("factors", 0)),
        (number(records + 48, 1.0), range("silence", 0)),
        (number(records + 52, -0.1), range("activity", 0)),
    ] {
        let mut bytes_of = sound.to_vec();
        bytes_of[offset..offset + value.len()].copy_from_slice(&value);
        if offset == 17 || offset == 20 {
            bytes_of[offset + 1..offset + 4].copy_from_slice(&sound[offset + 1..offset + 4]);
        }
        let words = sealed(bytes_of);
        assert_eq!(SpatialModel::parse(bytes(&words)).err(), Some(error), "{offset}");
    }
}
