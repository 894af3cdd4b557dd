//! Streams against their definition, written out slowly; time, block lengths, and what is not finite.

mod common;

use common::streams::{all_forms, blob_of, dealt, frame, in_blocks, parameters, recording, stream};
use spikelet::frame::{Form, Frame};
use spikelet::{Blob, Engine, Error, Inference, Model, Stream};
use spikelet_trainer::blob::About;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use std::f64::consts::PI;

/// `<s.z>` of a point.
fn means(blob: &Blob<'_>, point: &[f32]) -> Vec<f64> {
    // The point is one of coefficients already.
    let model = Model { is_transformed: false, ..blob.model() };
    let mut memory = vec![0.0; model.arena_len()];
    let mut inference = Inference::new(model, &mut memory).unwrap();
    inference.infer(point).unwrap().mean.iter().map(|&x| f64::from(x)).collect()
}

/// The part of a group in dimension `dim`.
fn part(blob: &Blob<'_>, means: &[f64], group: usize, dim: usize) -> f64 {
    let members = (0..means.len()).filter(|&latent| blob.groups().of(latent) == group);
    members.map(|latent| f64::from(blob.model().entry(dim, latent)) * means[latent]).sum()
}

/// The channel where a group is loudest.
fn nearest(blob: &Blob<'_>, group: usize) -> usize {
    let model = blob.model();
    let energy = |dim: usize| -> f32 {
        let members = (0..model.shape.latents).filter(|&latent| blob.groups().of(latent) == group);
        members.map(|latent| model.entry(dim, latent).powi(2)).sum()
    };
    (0..model.shape.dims).max_by(|&a, &b| energy(a).total_cmp(&energy(b))).unwrap()
}

/// Compares numbers of the size of 1; both sides round in f32, in another order.
fn same(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let most = 3e-5 * (1.0 + expected.abs());
        assert!((f64::from(found) - expected).abs() < most, "{what}: {i} is {found}, not {expected}");
    }
}

#[test]
fn samples_by_definition() {
    let grouping = dealt(5, 2);
    let about = About { frame: frame(Form::Samples), groups: Some(&grouping), ..About::default() };
    let blob = blob_of(&parameters(ModelKind::Gsc, 3, 5), about);
    let mut stream = stream(blob, Engine::Truncated).unwrap();
    assert_eq!((stream.channels(), stream.groups(), stream.latency(), stream.hop()), (3, 2, 0, 1));
    assert_eq!((stream.rate(), stream.names().name(1)), (8000, "source 1"));
    let input = recording(200, 3);
    let expected: Vec<f64> = input
        .chunks(3)
        .flat_map(|point| {
            let means = means(&blob, point);
            [0, 1].map(|group| part(&blob, &means, group, nearest(&blob, group)))
        })
        .collect();
    same(&in_blocks(&mut stream, &input, &[17]), &expected, "samples");
}

/// Every window of the recording, silence before and after it, each put back by its weight.
fn windows_by_definition(blob: &Blob<'_>, input: &[f32], length: usize, hop: usize) -> Vec<f64> {
    let groups = blob.groups().len();
    let centred = blob.frame().unwrap().centred;
    let v = |n: usize| (PI * (n as f64 + 0.5) / length as f64).sin().powi(2);
    let mut output = vec![0.0; (input.len() + length - 1) * groups];
    let last = input.len() + length - 1;
    for end in (hop..=last).step_by(hop) {
        // Time t of the recording is sample t - (length - 1) of the output.
        let begin = end as isize - length as isize;
        let sample = |n: usize| usize::try_from(begin + n as isize).ok().and_then(|t| input.get(t)).copied();
        let mut window: Vec<f32> = (0..length).map(|n| sample(n).unwrap_or(0.0)).collect();
        let mean = if centred { window.iter().sum::<f32>() / length as f32 } else { 0.0 };
        window.iter_mut().for_each(|y| *y -= mean);
        let means = means(blob, &window);
        for n in 0..length {
            let weight = v(n) / (n % hop..length).step_by(hop).map(v).sum::<f64>();
            let Ok(t) = usize::try_from(begin + n as isize) else { continue };
            for group in 0..groups {
                let part = part(blob, &means, group, n) + f64::from(mean) / groups as f64;
                if let Some(out) = output.get_mut((t + length - 1) * groups + group) {
                    *out += weight * part;
                }
            }
        }
    }
    output
}

#[test]
fn windows_by_the_definition() {
    for (length, hop, groups, centred) in
        [(16, 8, 0, false), (15, 4, 3, true), (10, 10, 2, true), (9, 8, 2, false), (12, 1, 0, true)]
    {
        let grouping = (groups > 0).then(|| dealt(10, groups));
        let form = Form::Windows { length, hop };
        let frame = Some(Frame { form, rate: 0, centred });
        let about = About { frame, groups: grouping.as_ref(), ..About::default() };
        let blob = blob_of(&parameters(ModelKind::Gsc, length as usize, 10), about);
        let mut stream = stream(blob, Engine::Truncated).unwrap();
        let (length, hop) = (length as usize, hop as usize);
        assert_eq!((stream.channels(), stream.groups(), stream.hop()), (1, groups.max(1), hop));
        assert_eq!(stream.latency(), length - 1);
        let mut input = recording(230, 1);
        let expected = windows_by_definition(&blob, &input, length, hop);
        input.resize(input.len() + stream.latency(), 0.0);
        same(&in_blocks(&mut stream, &input, &[31]), &expected, &format!("windows of {length} every {hop}"));
    }
}

/// Coefficient k of 2 N samples, without the window.
fn cosine(n: usize, k: usize, bins: usize) -> f64 {
    let bins = bins as f64;
    (2.0 / bins).sqrt() * (PI / bins * (n as f64 + 0.5 + bins / 2.0) * (k as f64 + 0.5)).cos()
}

#[test]
fn the_transform_by_definition() {
    const N: usize = 16;
    let grouping = dealt(5, 3);
    let gains: Vec<f32> = (0..N).map(|k| 0.5 + 0.25 * k as f32).collect();
    let form = Form::Transform { bins: N as u32, channels: 2 };
    let about = About { frame: frame(form), gains: &gains, groups: Some(&grouping), ..About::default() };
    let blob = blob_of(&parameters(ModelKind::Gsc, 2, 5), about);
    let mut stream = stream(blob, Engine::Truncated).unwrap();
    assert_eq!((stream.channels(), stream.groups(), stream.hop(), stream.latency()), (2, 3, N, 2 * N - 1));

    let mut input = recording(20 * N, 2);
    let window = |n: usize| (PI / (2 * N) as f64 * (n as f64 + 0.5)).sin();
    let mut expected = vec![0.0; 3 * (input.len() / 2 + 2 * N - 1)];
    for end in (N..input.len() / 2 + 2 * N).step_by(N) {
        let time = |n: usize| (end + n).checked_sub(2 * N);
        for (k, &gain) in gains.iter().enumerate() {
            let coefficient = |channel: usize| -> f64 {
                let sample = |n: usize| time(n).and_then(|t| input.get(2 * t + channel)).copied();
                (0..2 * N).map(|n| window(n) * f64::from(sample(n).unwrap_or(0.0)) * cosine(n, k, N)).sum()
            };
            let gain = f64::from(gain);
            let means = means(&blob, &[0, 1].map(|channel| (gain * coefficient(channel)) as f32));
            for group in 0..3 {
                let part = part(&blob, &means, group, nearest(&blob, group)) / gain;
                for n in 0..2 * N {
                    let out = time(n).and_then(|t| expected.get_mut(3 * (t + 2 * N - 1) + group));
                    out.into_iter().for_each(|out| *out += window(n) * cosine(n, k, N) * part);
                }
            }
        }
    }
    input.resize(input.len() + 2 * stream.latency(), 0.0);
    same(&in_blocks(&mut stream, &input, &[5]), &expected, "transform");
}

#[test]
fn what_a_model_keeps_comes_back() {
    // Every latent is on, its strength free, the noise 70 dB below: the posterior mean of each channel is the channel.
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims: 2,
        latents: 2,
        dictionary: vec![1.0, 0.0, 0.0, 1.0],
        prior: vec![0.999; 2],
        slab_mean: vec![0.0; 2],
        slab_cov: SlabCov::Diagonal(vec![100.0; 2]),
        noise: NoiseCov::Shared(1e-7),
    };
    let gains: Vec<f32> = (0..64).map(|k| 1.0 + k as f32).collect();
    let form = Form::Transform { bins: 64, channels: 2 };
    let about = About { frame: frame(form), gains: &gains, ..About::default() };
    let mut stream = stream(blob_of(&parameters, about), Engine::Truncated).unwrap();
    let mut input = recording(1000, 2);
    let delay = 2 * stream.latency();
    input.resize(input.len() + delay, 0.0);
    let output = in_blocks(&mut stream, &input, &[100]);
    assert!(output[..delay].iter().all(|&y| y == 0.0));
    for (i, (found, exact)) in output[delay..].iter().zip(&input).enumerate() {
        assert!((found - exact).abs() < 2e-3, "{i}: {found}, not {exact}");
    }
}

#[test]
fn more_sources_than_microphones() {
    // Three tones from three directions on two channels, far apart in frequency.
    let directions = [[1.0, 0.1], [0.7, 0.7], [0.1, 1.0]];
    let parameters = Parameters {
        kind: ModelKind::Gsc,
        dims: 2,
        latents: 3,
        dictionary: (0..2).flat_map(|c| directions.map(|direction| direction[c])).collect(),
        prior: vec![0.1; 3],
        slab_mean: vec![0.0; 3],
        slab_cov: SlabCov::Diagonal(vec![10.0; 3]),
        noise: NoiseCov::Shared(1e-4),
    };
    let about = About { frame: frame(Form::Transform { bins: 128, channels: 2 }), ..About::default() };
    let mut stream = stream(blob_of(&parameters, about), Engine::Truncated).unwrap();
    let tone = |source: usize, t: usize| (t as f64 * [0.2, 0.7, 1.9][source]).sin();
    let mixed = |t: usize, c: usize| (0..3).map(|h| directions[h][c] * tone(h, t)).sum::<f64>() as f32;
    let input: Vec<f32> = (0..4000).flat_map(|t| [mixed(t, 0), mixed(t, 1)]).collect();
    let output = in_blocks(&mut stream, &input, &[333]);
    for h in 0..3 {
        let loudest = directions[h][0].max(directions[h][1]);
        let (mut signal, mut error) = (0.0, 0.0);
        for t in 500..3500 {
            let exact = loudest * tone(h, t);
            signal += exact * exact;
            error += (f64::from(output[3 * (t + stream.latency()) + h]) - exact).powi(2);
        }
        let ratio = 10.0 * (signal / error).log10();
        assert!(ratio > 20.0, "source {h}: {ratio:.1} dB"); // a mixture itself has about 0 dB
    }
}

#[test]
fn the_bits_do_not_depend_on_blocks() {
    for (name, blob, engine) in all_forms() {
        let mut stream = stream(blob, engine).unwrap();
        let input = recording(if name.ends_with("drawn") { 60 } else { 4200 }, stream.channels());
        let whole = in_blocks(&mut stream, &input, &[usize::MAX >> 1]);
        assert!(whole.iter().any(|&y| y != 0.0), "{name}");
        assert!(whole[..stream.latency() * stream.groups()].iter().all(|&y| y == 0.0), "{name}");
        for blocks in [&[1][..], &[2], &[7, 0, 64], &[128], &[4096]] {
            stream.reset();
            let found = in_blocks(&mut stream, &input, blocks);
            assert!(found.iter().zip(&whole).all(|(a, b)| a.to_bits() == b.to_bits()), "{name} {blocks:?}");
        }
    }
}

#[test]
fn refused_blocks_change_nothing() {
    for (name, blob, engine) in all_forms() {
        let [mut stream, mut other] = [(); 2].map(|()| stream(blob, engine).unwrap());
        let (c, g) = (stream.channels(), stream.groups());
        let input = recording(60, c);
        let whole = in_blocks(&mut other, &input, &[60]);
        let mut output = vec![0.0; 60 * g];
        stream.process(&input[..33 * c], &mut output[..33 * g]).unwrap();
        let mut bad = input[33 * c..].to_vec();
        for (index, value) in [(c, f32::NAN), (0, f32::INFINITY), (27 * c - 1, f32::NEG_INFINITY)] {
            let good = std::mem::replace(&mut bad[index], value);
            let refused = stream.process(&bad, &mut output[33 * g..]);
            assert_eq!(refused, Err(Error::SampleNotFinite { index }), "{name}");
            bad[index] = good;
        }
        let short = stream.process(&bad, &mut output[33 * g..60 * g - 1]).unwrap_err();
        let (n, m) = (27 * c, 27 * g - 1);
        assert_eq!(short, Error::BlockLength { channels: c, groups: g, input: n, output: m }, "{name}");
        assert!(stream.process(&[], &mut [0.0]).is_err() && stream.process(&[0.0], &mut []).is_err());
        stream.process(&[], &mut []).unwrap();
        stream.process(&bad, &mut output[33 * g..]).unwrap();
        assert!(output.iter().zip(&whole).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
    }
}

#[test]
fn integers_are_numbers_of_full_scale_one() {
    for (name, blob, engine) in all_forms() {
        let [mut stream, mut other] = [(); 2].map(|()| stream(blob, engine).unwrap());
        let whole = recording(60, stream.channels());
        let integers: Vec<i16> = whole.iter().map(|y| (y * 32768.0) as i16).collect();
        let numbers: Vec<f32> = integers.iter().map(|&y| f32::from(y) / 32768.0).collect();
        let mut output = vec![0; 60 * stream.groups()];
        stream.process_i16(&integers, &mut output).unwrap();
        for (found, exact) in output.iter().zip(in_blocks(&mut other, &numbers, &[60])) {
            let exact = (f64::from(exact) * 32768.0).round().clamp(-32768.0, 32767.0);
            assert_eq!(f64::from(*found), exact, "{name}");
        }
        assert!(stream.process_i16(&[0; 7], &mut [0; 100]).is_err(), "{name}");
    }
}

#[test]
fn what_is_too_large_is_silence_and_an_error() {
    for (name, blob, engine) in all_forms() {
        let mut stream = stream(blob, engine).unwrap();
        let (c, g, settled) = (stream.channels(), stream.groups(), 2 * stream.latency() + 1);
        let input = recording(200, c);
        for huge in [1e30, f32::MAX, -f32::MAX] {
            let mut output = vec![f32::NAN; g];
            let mut block = vec![0.0; c];
            block[0] = huge;
            // It may come out much later; whenever it does, there is an output.
            let mut refused = stream.process(&block, &mut output).is_err();
            for _ in 0..settled {
                refused |= stream.process(&vec![0.0; c], &mut output).is_err();
                assert!(output.iter().all(|y| y.is_finite()), "{name}");
            }
            assert!(refused, "{name} {huge}");
        }
        // Nothing of it is left.
        in_blocks(&mut stream, &input, &[200]);
        stream.process(&vec![0.0; settled * c], &mut vec![0.0; settled * g]).unwrap();
    }
    assert_eq!(Stream::memory_len(&all_forms()[0].1), 3 + 2 + 3 + all_forms()[0].1.model().arena_len());
}
