//! Each stage against its definition, written out slowly; objectives that may not fall; the same bits on any number of threads.
#![allow(clippy::needless_range_loop)] // indices as in the equations

use super::hermitian::{Matrix, ZERO, accumulate, adjoint, conj, inverse, product, scalar, times, trace};
use super::*;
use spikelet::rng::Rng;
use spikelet::spatial::{Complex, MOST_STATES};
use spikelet::stft::Stft;
use std::f64::consts::PI;

/// Two sources that come and go, on microphones at delays of their own (whole samples), and a little noise.
fn mixture(microphones: usize, delays: &[[usize; 3]], samples: usize) -> Vec<f32> {
    let mut rng = Rng::new(5);
    let mut out = vec![0.0f32; samples * microphones];
    for (source, delays) in delays.iter().enumerate() {
        let mut signal = vec![0.0f64; samples];
        let mut is_on = true;
        for (n, x) in signal.iter_mut().enumerate() {
            if n % 700 == 0 {
                is_on = rng.uniform::<f64>() < 0.5;
            }
            // Of different colours, so that bins are not all alike.
            let tone = (n as f64 * (0.3 + 0.4 * source as f64)).sin();
            *x = if is_on { rng.normal::<f64>() * (1.2 + tone) } else { 0.0 };
        }
        for n in 0..samples {
            for c in 0..microphones {
                let delay = 3 + if c == 0 { 0 } else { delays[c - 1] };
                out[n * microphones + c] += n.checked_sub(delay).map_or(0.0, |n| signal[n] as f32);
            }
        }
    }
    out.iter_mut().for_each(|x| *x += 0.01 * rng.normal::<f32>());
    out
}

fn settings(latents: usize) -> Settings {
    Settings { length: 64, hop: 16, alignment: 6, iterations: 8, ..Settings::new(latents, 8000) }
}

fn small(latents: usize, microphones: usize) -> (Spectra, Training) {
    let places = [[1, 2, 3], [0, 1, 0], [2, 0, 1]];
    let spectra = Spectra::new(&mixture(microphones, &places[..latents], 6000), microphones, 64, 16);
    let training = Training::new(settings(latents), &spectra, 8000, 1);
    (spectra, training)
}

#[test]
fn frames_are_those_of_a_stream() {
    let samples = mixture(2, &[[1, 0, 0]], 200);
    let spectra = Spectra::new(&samples, 2, 64, 16);
    assert_eq!((spectra.bins, spectra.frames), (33, 17));
    let mut table = vec![0.0; Stft::table_len(64)];
    Stft::prepare(&mut table);
    // Frame 5 ends with sample 96.
    let mut spectrum = vec![[0.0; 2]; 33];
    let channel: Vec<f32> = samples.iter().skip(1).step_by(2).copied().collect();
    Stft::over(&table).forward(&channel[32..96], 0, &mut spectrum);
    for (bin, exact) in spectrum.iter().enumerate() {
        let scale = f64::from(spectra.powers(bin)[5]).sqrt();
        let y = spectra.point::<2>(bin, 5);
        for k in 0..2 {
            // Single precision of numbers of this size.
            assert!((y[1][k] * scale - f64::from(exact[k])).abs() < 1e-6 * scale);
        }
        assert!((y.as_flattened().iter().map(|y| y * y).sum::<f64>() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn delays_are_found_with_and_without_a_spacing() {
    for (microphones, places) in [(2, [[2, 0, 0], [0, 0, 0]]), (3, [[1, 2, 0], [2, 0, 0]])] {
        let spectra = Spectra::new(&mixture(microphones, &places, 16_000), microphones, 256, 64);
        for spacing in [None, Some(12.0)] {
            let settings = Settings { spacing, length: 256, hop: 64, ..settings(2) };
            let training = Training::new(settings, &spectra, 8000, 2);
            for place in places {
                let off = |found: &Vec<f64>| {
                    found.iter().zip(place).map(|(f, p)| (f - p as f64).abs()).fold(0.0, f64::max)
                };
                let delays = training.delays();
                // Steps are a sixteenth of a sample, and halve.
                assert!(delays.iter().any(|found| off(found) < 0.1), "{place:?} is not in {delays:?}");
            }
        }
    }
}

fn outer(y: &[Complex<f64>], d: usize) -> Matrix {
    let mut out = ZERO;
    for i in 0..d {
        for j in 0..d {
            out[i][j] = times(y[i], conj(y[j]));
        }
    }
    out
}

/// y^H A y.
fn form(a: &Matrix, y: &[Complex<f64>], d: usize) -> f64 {
    trace(&product(a, &outer(y, d), d), d)
}

fn off(a: &Matrix, b: &Matrix) -> f64 {
    let pairs = a.as_flattened().as_flattened().iter().zip(b.as_flattened().as_flattened());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn alignment_is_as_defined() {
    let (spectra, mut training) = small(2, 3);
    training.step(&spectra, 1);
    let before = training.clone();
    training.step(&spectra, 1);
    let (d, h, mut objective) = (3, 2, 0.0);
    let mut frames = vec![[0.0; 2]; spectra.frames];
    for (index, bin) in before.bins.iter().enumerate() {
        let (mut sums, mut silence, mut heard) = ([ZERO; 2], 0.0, 0.0);
        let forms: Vec<(Matrix, f64)> = bin.covariances.iter().map(|r| inverse(r, d).unwrap()).collect();
        for t in 0..spectra.frames {
            if spectra.powers(index)[t] == 0.0 {
                continue;
            }
            let y = spectra.point::<3>(index, t);
            let q: Vec<f64> = forms.iter().map(|(p, _)| form(p, &y, d)).collect();
            let weight = |k: usize| {
                let prior = (1.0 - bin.silence) * before.presence.values[t * h + k];
                prior / (forms[k].1.exp() * q[k].powi(d as i32))
            };
            let total = bin.silence + weight(0) + weight(1);
            for k in 0..h {
                accumulate(&mut sums[k], weight(k) / total / q[k], &outer(&y, d));
                frames[t][k] += weight(k) / total;
            }
            silence += bin.silence / total;
            heard += 1.0;
            objective += total.ln();
        }
        for k in 0..h {
            let mut expected = ZERO;
            accumulate(&mut expected, d as f64 / trace(&sums[k], d), &sums[k]);
            accumulate(&mut expected, 1e-3, &scalar(1.0));
            let found = &training.bins[index].covariances[k];
            // Roundings of 1e-16 in sums over some hundred points, divided by covariances down to 1e-3.
            assert!((0..d).all(|i| (0..d).all(|j| (found[i][j][0] - expected[i][j][0]).abs() < 1e-10
                && (found[i][j][1] - expected[i][j][1]).abs() < 1e-10)));
        }
        assert!((training.bins[index].silence - (silence / heard).clamp(1e-3, 0.9)).abs() < 1e-12);
    }
    for (t, sums) in frames.iter().enumerate().filter(|(_, sums)| sums[0] + sums[1] > 0.0) {
        let expected = (sums[0] / (sums[0] + sums[1])).max(1e-3);
        assert!((training.presence.values[t * h] - expected).abs() < 1e-10);
    }
    let found = training.history[1].objective;
    assert!((found - objective).abs() < 1e-9 * objective.abs(), "{found}, not {objective}");
}

/// The sweep that follows the first one with all states, from its equations: inverses of every state, sums, R A R = R B R.
#[test]
fn states_are_as_defined() {
    let (spectra, mut training) = small(2, 2);
    (0..7).for_each(|_| training.step(&spectra, 1));
    let before = training.clone();
    training.step(&spectra, 1);
    let (d, h, constants) = (2, 2, training.settings.constants());
    let mut objective = 0.0;
    for (index, bin) in before.bins.iter().enumerate() {
        let level = |s: usize, k: usize| if s >> k & 1 == 1 { 1.0 } else { constants.off_level };
        let states: Vec<(Matrix, f64)> = (0..4)
            .map(|s| {
                let mut c = scalar(if s == 0 { 1.0 } else { constants.floor });
                (0..h).for_each(|k| accumulate(&mut c, level(s, k), &bin.covariances[k]));
                inverse(&c, d).unwrap()
            })
            .collect();
        let (mut a, mut b) = ([0.0; MOST_STATES], [ZERO; MOST_STATES]);
        let (mut activity, mut heard) = ([0.0; 2], 0.0);
        for t in 0..spectra.frames {
            let around = |i: usize, n: usize| [i.saturating_sub(1), i, (i + 1).min(n - 1)];
            let mean = |k: usize| {
                let mut sum = 0.0;
                for f in around(index, spectra.bins) {
                    for t in around(t, spectra.frames) {
                        sum += before.activities[f].values[t * h + k];
                    }
                }
                sum / 9.0
            };
            if spectra.powers(index)[t] == 0.0 {
                continue;
            }
            let y = spectra.point::<2>(index, t);
            let energy = form(&scalar(1.0), &y, d);
            let weights: Vec<(f64, f64)> = (0..4)
                .map(|s| {
                    let q = form(&states[s].0, &y, d) / energy;
                    let prior = if s == 0 { bin.silence } else { (1.0 - bin.silence) / 3.0 };
                    let on = (0..h).filter(|k| s >> k & 1 == 1);
                    let odds: f64 = on.map(|k| constants.context * (mean(k) - bin.activity[k])).sum();
                    (prior * odds.exp() / (states[s].1.exp() * q * q), q)
                })
                .collect();
            let total: f64 = weights.iter().map(|(w, _)| w).sum();
            objective += total.ln();
            heard += 1.0;
            for s in 0..4 {
                let p = weights[s].0 / total;
                a[s] += p;
                accumulate(&mut b[s], p * d as f64 / weights[s].1, &outer(&y, d));
                (0..h).for_each(|k| activity[k] += if s >> k & 1 == 1 { p } else { 0.0 });
            }
            let found = &training.activities[index].values[t * h..][..h];
            let exact = (weights[1].0 + weights[3].0) / total;
            // Condition numbers up to 1e4 and roundings of 1e-16, squared in the weights.
            assert!((found[0] - exact).abs() < 1e-8, "bin {index}, frame {t}: {} not {exact}", found[0]);
        }
        let now = &training.bins[index];
        assert!((now.silence - (a[0] / heard).clamp(1e-3, 0.9)).abs() < 1e-9);
        // Up to the scale, R A R = R_old B R_old.
        let scale = |r: &Matrix, k: usize| {
            let (mut ah, mut bh) = (ZERO, ZERO);
            for s in 0..4 {
                accumulate(&mut ah, level(s, k) * a[s], &states[s].0);
                let pbp = product(&product(&states[s].0, &b[s], d), &states[s].0, d);
                accumulate(&mut bh, level(s, k), &pbp);
            }
            let left = product(&product(r, &ah, d), r, d);
            let right = product(&product(&bin.covariances[k], &bh, d), &bin.covariances[k], d);
            let factor = trace(&left, d) / trace(&right, d);
            let mut scaled = ZERO;
            accumulate(&mut scaled, factor, &right);
            // Products of inverses: condition numbers up to 1e4, twice.
            assert!(off(&left, &scaled) < 1e-7 * trace(&left, d), "bin {index}, source {k}");
            factor
        };
        let factors: Vec<f64> = (0..h).map(|k| scale(&now.covariances[k], k)).collect();
        assert!((factors[0] / factors[1] - 1.0).abs() < 1e-7);
        let traces: f64 = now.covariances.iter().map(|r| trace(r, d)).sum();
        assert!((traces - 4.0).abs() < 1e-12);
    }
    let found = training.history[7].objective;
    assert!((found - objective).abs() < 1e-8 * objective.abs(), "{found}, not {objective}");
}

/// Without floors the first stage is EM, and EM may not lower the likelihood.
#[test]
fn alignment_never_lowers_the_likelihood() {
    let (spectra, training) = small(2, 2);
    let mut bins: Vec<align::Bin> = training
        .bins
        .iter()
        .map(|bin| align::Bin { covariances: bin.covariances.clone(), silence: bin.silence })
        .collect();
    let (mut presence, mut last) = (training.presence.clone(), f64::MIN);
    for iteration in 0..25 {
        let (now, objective) = align::iterate::<2>(&spectra, bins, &mut presence, 0.0, 1);
        assert!(objective >= last - 1e-9 * last.abs(), "{iteration}: {objective} after {last}");
        (bins, last) = (now, objective);
    }
}

/// Nor may the second one, as long as context, probabilities and scale stay what they are.
#[test]
fn covariances_never_lower_the_likelihood() {
    let (spectra, mut training) = small(3, 2);
    (0..6).for_each(|_| training.step(&spectra, 1));
    let constants = training.settings.constants();
    let expected = vec![0.5; spectra.frames * 3];
    for index in [3, 10, 20, 31] {
        let (mut bin, mut last) = (training.bins[index].clone(), f64::MIN);
        let mut activities = expected.clone();
        let mut first = None;
        for iteration in 0..20 {
            let sums = states::infer::<2>(&spectra, index, &bin, &constants, &expected, &mut activities);
            assert!(
                sums.objective >= last - 1e-9 * last.abs(),
                "{iteration}: {} after {last}",
                sums.objective
            );
            last = sums.objective;
            first.get_or_insert(last);
            bin.covariances = states::covariances(&bin, &sums, &constants, 2);
        }
        assert!(first.is_some_and(|first| last > first + 0.1), "bin {index} learned nothing");
    }
}

#[test]
fn threads_do_not_change_bits() {
    let run = |threads: usize| {
        let (spectra, _) = small(2, 3);
        let mut training = Training::new(settings(2), &spectra, 8000, threads);
        while !training.is_finished() {
            training.step(&spectra, threads);
        }
        training.history.iter_mut().for_each(|step| step.seconds = 0.0);
        training
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}

/// A checkpoint goes on with the same bits, and only with its own recording.
#[test]
fn checkpoints_go_on() {
    let (spectra, mut training) = small(2, 2);
    (0..9).for_each(|_| training.step(&spectra, 1));
    let text = serde_json::to_string(&training).unwrap();
    let mut again: Training = serde_json::from_str(&text).unwrap();
    assert!(again.fits(&spectra) && again == training);
    for training in [&mut training, &mut again] {
        while !training.is_finished() {
            training.step(&spectra, 1);
        }
    }
    assert_eq!(training.bins, again.bins);
    assert!(!again.fits(&Spectra::new(&mixture(2, &[[1, 0, 0]], 5000), 2, 64, 16)));
}

/// Both encodings hold what was trained.
#[test]
fn blobs_hold_what_was_trained() {
    for (latents, microphones) in [(1, 2), (3, 2), (2, 3), (2, 4)] {
        let (spectra, mut training) = small(latents, microphones);
        (0..8).for_each(|_| training.step(&spectra, 2));
        let room = training.room("a test");
        for (bytes, tolerance) in [(room.floats(), 0.0), (room.integers(), 1e-4)] {
            let mut memory = vec![0u8; bytes.len() + 8];
            let start = memory.as_ptr().align_offset(8);
            memory[start..][..bytes.len()].copy_from_slice(&bytes);
            let model = spikelet::SpatialModel::parse(&memory[start..]).unwrap();
            assert_eq!((model.sources(), model.microphones(), model.rate()), (latents, microphones, 8000));
            assert_eq!((model.length(), model.hop(), model.provenance()), (64, 16, "a test"));
            let back = Room::of(&model);
            assert_eq!((back.frame, back.constants), (room.frame, room.constants));
            for (found, exact) in back.records.iter().zip(&room.records) {
                // Half a step of 2^-15 of the largest, which is below 3.
                assert!((found - exact).abs() <= tolerance, "{found}, not {exact}");
            }
        }
        // Factors are those of the covariances.
        let r = &training.bins[5].covariances[0];
        let factors = states::factors(std::slice::from_ref(r), microphones);
        let mut l = ZERO;
        let mut next = factors.iter();
        for i in 0..microphones {
            for j in 0..i {
                l[i][j] = [*next.next().unwrap(), *next.next().unwrap()];
            }
            l[i][i][0] = *next.next().unwrap();
        }
        let mut square = product(&l, &adjoint(&l), microphones);
        for i in 0..microphones {
            for j in 0..microphones {
                square[i][j] = [square[i][j][0] - r[i][j][0], square[i][j][1] - r[i][j][1]];
            }
        }
        assert!(square.as_flattened().as_flattened().iter().all(|x| x.abs() < 1e-12));
    }
}

/// Without echoes bins share delays, and their covariances are what those say; a second path, half as loud, ends that.
#[test]
fn rooms_without_echoes_are_found() {
    let straight = mixture(2, &[[1, 0, 0], [0, 0, 0]], 24_000);
    let mut echoed = straight.clone();
    for n in 7..24_000 {
        // Later at the second microphone by another delay than the first path is.
        echoed[2 * n] += 0.5 * straight[2 * (n - 5)];
        echoed[2 * n + 1] += 0.5 * straight[2 * (n - 7) + 1];
    }
    for (samples, is_direct) in [(straight, true), (echoed, false)] {
        let spectra = Spectra::new(&samples, 2, 256, 64);
        let settings = Settings { length: 256, hop: 64, iterations: 20, ..settings(2) };
        let mut training = Training::new(settings, &spectra, 8000, 1);
        while !training.is_finished() {
            assert!(!training.is_direct(), "before the last iteration");
            training.step(&spectra, 1);
        }
        assert_eq!(training.is_direct(), is_direct);
        if is_direct {
            let turns = [0.0, 1.0].map(|delay| (-PI * 40.0 / 128.0 * delay).sin_cos());
            for covariance in training.covariances(40) {
                let [re, im] = covariance[1][0].map(|x| x / covariance[0][0][0]);
                let off = turns.iter().map(|(sin, cos)| (re - cos).hypot(im - sin)).fold(1.0, f64::min);
                assert!(off < 0.02, "{re} {im}");
            }
        }
    }
}
