//! The gradient against differences, what follows nothing, blocks, reset, a delay that changes, and bounds.

extern crate std;
use super::*;
use crate::blob::assemble::{bytes, sealed};
use crate::error::{BlobError, ModelError};
use crate::numeric::rng::Rng;
use crate::spatial::tests::{C, blob, definition, factors};
use crate::spatial::{Bin, SpatialStream};
use std::vec;
use std::vec::Vec;

const CONSTANTS: Constants<f64> = Constants { off_level: 0.03, context: 2.0, floor: 1e-4, microphone: 0 };

/// A small change of R along any Hermitian S changes ln p(y) by tr(M S), and a phase by its own gradient.
#[test]
fn pulls_are_gradients() {
    let mut rng = Rng::new(9);
    for trial in 0..60 {
        let h = 1 + trial % MOST_SOURCES;
        let numbers = factors(&mut rng, 2, h);
        let activity: Vec<f64> = (0..h).map(|_| rng.unit::<f64>()).collect();
        let expected = [0; MOST_SOURCES].map(|_| rng.unit::<f64>());
        let y: [C; 2] = [[0.0; 2]; 2].map(|y| y.map(|_: f64| rng.normal::<f64>()));
        let evidence = |factors: &[f64]| {
            let bin = Bin { factors, silence: 0.2, activity: &activity };
            definition(&bin, &CONSTANTS, &y, &expected).evidence
        };
        let bin = Bin { factors: &numbers, silence: 0.2, activity: &activity };
        let mut found = Found::default();
        assert!(bin.infer(&CONSTANTS, &y, &expected, &mut found));
        let pulls = pulls(&found.pair, h, &CONSTANTS, &y);
        for (source, &pull) in pulls.iter().enumerate().take(h) {
            let factor = *numbers.as_chunks::<FACTOR>().0.get(source).unwrap();
            let ([a, re, im, c], [m00, x10, y10, m11]) = (factor, seen(factor, pull));
            let m10 = [x10, y10];
            let along = |change: &dyn Fn(f64) -> [f64; 4]| {
                let at = |size: f64| {
                    let mut moved = numbers.clone();
                    moved[4 * source..][..4].copy_from_slice(&change(size));
                    evidence(&moved)
                };
                (at(1e-5) - at(-1e-5)) / 2e-5
            };
            let [s00, s11] = [0; 2].map(|_| rng.normal::<f64>());
            let s10: C = [0; 2].map(|_| rng.normal::<f64>());
            let exact = along(&|size| {
                let first = libm::sqrt(1.0 + size * s00);
                let below = s10.map(|s| size * s / first);
                let last = libm::sqrt(1.0 + size * s11 - square(below));
                [a * first, re * first + c * below[0], im * first + c * below[1], c * last]
            });
            let found = m00 * s00 + m11 * s11 + 2.0 * (m10[0] * s10[0] + m10[1] * s10[1]);
            // Third derivatives times 1e-10, and roundings of 1e-16 / 1e-5; both where covariances are far from round.
            assert!((found - exact).abs() < 1e-4 * (1.0 + exact.abs()), "{trial}: {found}, not {exact}");
            let exact = along(&|angle| {
                let turned = times([re, im], [libm::cos(angle), -libm::sin(angle)]);
                [a, turned[0], turned[1], c]
            });
            let found = of_phase(factor, pull);
            assert!((found - exact).abs() < 1e-4 * (1.0 + exact.abs()), "{trial}: {found}, not {exact}");
        }
    }
}

fn heard(model: SpatialModel<'_>, input: &[f32], block: usize) -> Vec<f32> {
    let mut memory = vec![f32::NAN; SpatialStream::memory_len(&model)];
    let mut stream = SpatialStream::new(model, &mut memory).unwrap();
    let mut run = || {
        let mut output = vec![0.0; input.len() / 2 * model.sources()];
        for (input, output) in input.chunks(2 * block).zip(output.chunks_mut(block * model.sources())) {
            stream.process(input, output).unwrap();
        }
        stream.reset();
        output
    };
    let first = run();
    assert!(first == run(), "reset does not go back");
    first
}

/// What two microphones hear of noise that reaches the second one later and later.
fn walking(samples: usize) -> Vec<f32> {
    let mut rng = Rng::new(6);
    let noise: Vec<f32> = (0..samples).map(|_| rng.normal::<f32>()).collect();
    let late = |n: usize| {
        let at = n as f32 - 4.0 * n as f32 / samples as f32;
        let (whole, part) = (at as usize, at - (at as usize) as f32);
        (1.0 - part) * noise[whole] + part * noise.get(whole + 1).unwrap_or(&0.0)
    };
    (0..samples).flat_map(|n| [noise[n], late(n)]).collect()
}

#[test]
fn blocks_and_rates() {
    let input = walking(3000);
    for (h, encoding) in [(2, 0), (3, 1)] {
        let words = blob(2, h, 64, encoding);
        let model = SpatialModel::parse(bytes(&words)).unwrap();
        assert!(model.following().is_none());
        let at = |rate| model.with_following(Some(rate)).unwrap();
        let fixed = heard(model, &input, 3000);
        assert!(heard(at(0.0), &input, 3000) == fixed);
        let moved = heard(at(0.15), &input, 3000);
        assert!(moved != fixed);
        for block in [1, 7, 16, 100] {
            assert!(heard(at(0.15), &input, block) == moved, "{block}");
        }
        for rate in [-0.1, 0.6, f32::NAN] {
            assert!(model.with_following(Some(rate)).is_none());
        }
    }
    let words = blob(3, 2, 64, 0);
    let model = SpatialModel::parse(bytes(&words)).unwrap();
    assert!(model.with_following(Some(0.1)).is_none() && model.with_following(None).is_some());
}

/// The rate in the blob.
#[test]
fn blobs_say_whether_they_follow() {
    let words = |d: usize, rate: f32| {
        let mut bytes = bytes(&blob(d, 2, 64, 0)).to_vec();
        let entry = bytes.windows(4).position(|tag| tag == b"ROOM").unwrap();
        let room = u32::from_le_bytes(*bytes[entry + 4..].first_chunk().unwrap()) as usize;
        bytes[room + 20..][..4].copy_from_slice(&rate.to_le_bytes());
        sealed(bytes)
    };
    let parsed = |d, rate| SpatialModel::parse(bytes(&words(d, rate))).map(|model| model.following());
    assert_eq!(parsed(2, 0.0), Ok(None));
    assert_eq!(parsed(2, 0.25), Ok(Some(0.25)));
    let refused = Err(BlobError::Model(ModelError::Range { field: "following", index: 0 }));
    for (d, rate) in [(2, -0.1), (2, 0.51), (2, f32::NAN), (2, f32::INFINITY), (3, 0.1)] {
        assert_eq!(parsed(d, rate), refused, "{d} {rate}");
    }
}

/// Whatever comes in, factors stay numbers of the energy that training gives them, and their diagonals positive.
#[test]
fn parameters_stay_bounded() {
    let words = blob(2, 3, 64, 0);
    let model = SpatialModel::parse(bytes(&words)).unwrap().with_following(Some(0.0)).unwrap();
    let mut memory = vec![0.0; SpatialStream::memory_len(&model)];
    let mut stream = SpatialStream::new(model, &mut memory).unwrap();
    assert!(!stream.follow(0.7) && stream.follow(0.5));
    let mut rng = Rng::new(8);
    for scale in [1.0, 1e-12, 1e12, 0.0, 3e38, 1e-38, 1.0] {
        for kind in 0..3 {
            let sample = |n: usize| match kind {
                0 => scale * (rng.unit::<f32>() - 0.5),
                1 => scale,
                _ if n.is_multiple_of(2) => scale,
                _ => -scale,
            };
            let input: Vec<f32> = (0..4000).map(sample).collect();
            // Too loud is an error, and nothing else is.
            let _ = stream.process(&input, &mut vec![0.0; 6000]);
        }
        for bin in stream.work.memory.moved.factors.chunks_exact(12) {
            let energy: f32 = bin.iter().map(|x| x * x).sum();
            assert!(energy.is_finite() && energy < 6.1, "{scale}: {bin:?}");
            assert!(bin.as_chunks::<4>().0.iter().all(|f| f[0] > 0.0 && f[3] > 0.0), "{scale}: {bin:?}");
        }
    }
    let fixed = SpatialModel::parse(bytes(&words)).unwrap();
    let mut memory = vec![0.0; SpatialStream::memory_len(&fixed)];
    assert!(memory.len() < SpatialStream::memory_len(&model));
    assert!(!SpatialStream::new(fixed, &mut memory).unwrap().follow(0.1));
}
