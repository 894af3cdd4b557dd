//! Supervised non-negative matrix factorisation of magnitude spectra by Kullback-Leibler divergence: what is usually done with
//! two known sources in one channel.

use spikelet::rng::Rng;
use spikelet::stft::Stft;
use spikelet_trainer::spectral::resampled;

const LENGTH: usize = 1024;
const HOP: usize = 256;
const BINS: usize = LENGTH / 2 + 1;
const ITERATIONS: usize = 150;
/// Frames that are learned from, at most.
const MOST_FRAMES: usize = 2500;

type Spectrum = Vec<[f32; 2]>;

fn table() -> Vec<f32> {
    let mut table = vec![0.0; Stft::table_len(LENGTH)];
    Stft::prepare(&mut table);
    table
}

fn spectra(samples: &[f64]) -> Vec<Spectrum> {
    let table = table();
    let mut padded = vec![0.0f32; LENGTH];
    padded.extend(samples.iter().map(|&x| x as f32));
    padded.resize(padded.len() + LENGTH, 0.0);
    (0..=padded.len() - LENGTH)
        .step_by(HOP)
        .map(|start| {
            let mut spectrum = vec![[0.0; 2]; BINS];
            Stft::over(&table).forward(&padded[start..start + LENGTH], 0, &mut spectrum);
            spectrum
        })
        .collect()
}

fn signal(mut spectra: Vec<Spectrum>, len: usize) -> Vec<f64> {
    let table = table();
    let mut samples = vec![0.0f32; spectra.len() * HOP + LENGTH];
    for (spectrum, start) in spectra.iter_mut().zip((0..).step_by(HOP)) {
        Stft::over(&table).inverse(spectrum, HOP, &mut samples[start..start + LENGTH], 0);
    }
    samples[LENGTH..LENGTH + len].iter().map(|&x| f64::from(x)).collect()
}

fn magnitudes(spectra: &[Spectrum]) -> Vec<Vec<f32>> {
    let scale = 2.0 / LENGTH as f32;
    let magnitude = |&[re, im]: &[f32; 2]| scale * (re * re + im * im).sqrt();
    spectra.iter().map(|spectrum| spectrum.iter().map(magnitude).collect()).collect()
}

/// Strengths of spectra in frames, and better spectra where these are to be learned.
fn factorise(frames: &[Vec<f32>], w: &mut [Vec<f32>], learns: bool, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = Rng::new(seed);
    let k = w.len();
    let mut h: Vec<Vec<f32>> =
        frames.iter().map(|_| (0..k).map(|_| rng.uniform::<f32>() + 0.1).collect()).collect();
    let ratio = |frame: &[f32], w: &[Vec<f32>], h: &[f32], out: &mut [f32]| {
        out.fill(1e-7);
        for (w, &h) in w.iter().zip(h) {
            out.iter_mut().zip(w).for_each(|(sum, w)| *sum += h * w);
        }
        out.iter_mut().zip(frame).for_each(|(sum, v)| *sum = v / *sum);
    };
    let mut r = vec![0.0f32; BINS];
    for _ in 0..ITERATIONS {
        let sums: Vec<f32> = w.iter().map(|w| w.iter().sum::<f32>() + 1e-7).collect();
        for (frame, h) in frames.iter().zip(&mut h) {
            ratio(frame, w, h, &mut r);
            for ((w, h), sum) in w.iter().zip(h.iter_mut()).zip(&sums) {
                let (w8, r8) = (w.as_chunks::<8>(), r.as_chunks::<8>());
                let mut lanes = [0.0f32; 8];
                for (w, r) in w8.0.iter().zip(r8.0) {
                    (0..8).for_each(|i| lanes[i] += w[i] * r[i]);
                }
                let rest: f32 = w8.1.iter().zip(r8.1).map(|(w, r)| w * r).sum();
                *h *= (lanes.iter().sum::<f32>() + rest) / sum;
            }
        }
        if learns {
            let mut better = vec![vec![0.0f32; BINS]; k];
            let mut totals = vec![1e-7f32; k];
            for (frame, h) in frames.iter().zip(&h) {
                ratio(frame, w, h, &mut r);
                for ((sums, &h), total) in better.iter_mut().zip(h).zip(&mut totals) {
                    sums.iter_mut().zip(&r).for_each(|(sum, r)| *sum += h * r);
                    *total += h;
                }
            }
            for ((w, sums), total) in w.iter_mut().zip(better).zip(totals) {
                w.iter_mut().zip(sums).for_each(|(w, sum)| *w *= sum / total);
                let all = w.iter().sum::<f32>() + 1e-9;
                w.iter_mut().for_each(|w| *w /= all);
            }
        }
    }
    h
}

/// How many spectra a source has, and whether copies resampled by small factors are learned from, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub spectra: usize,
    pub copies: bool,
}

/// The spectra of a source.
pub fn learn(recordings: &[Vec<f64>], setting: Setting, seed: u64) -> Vec<Vec<f32>> {
    let factors: &[(usize, usize)] =
        if setting.copies { &[(1, 1), (17, 16), (16, 17), (9, 8), (8, 9)] } else { &[(1, 1)] };
    let copies = |recording: &Vec<f64>| -> Vec<Vec<f64>> {
        factors.iter().map(|&(up, down)| resampled(recording, up, down)).collect()
    };
    let recordings: Vec<Vec<f64>> = recordings.iter().flat_map(copies).collect();
    let frames: Vec<Vec<f32>> = recordings.iter().flat_map(|x| magnitudes(&spectra(x))).collect();
    let every = (frames.len() / MOST_FRAMES).max(1);
    let frames: Vec<Vec<f32>> = frames.into_iter().step_by(every).collect();
    let mut rng = Rng::new(seed);
    let mut w: Vec<Vec<f32>> =
        (0..setting.spectra).map(|_| (0..BINS).map(|_| rng.uniform::<f32>() + 0.1).collect()).collect();
    factorise(&frames, &mut w, true, seed);
    w
}

/// Two sources of a mixture, by the square of their magnitudes.
pub fn separate(mixture: &[f64], sources: [&[Vec<f32>]; 2], seed: u64) -> [Vec<f64>; 2] {
    let spectra = spectra(mixture);
    let mut w: Vec<Vec<f32>> = sources.concat();
    let h = factorise(&magnitudes(&spectra), &mut w, false, seed);
    let mut parts = [spectra.clone(), spectra];
    for (n, h) in h.iter().enumerate() {
        let mut models = [vec![0.0f32; BINS], vec![0.0f32; BINS]];
        for (k, (w, &h)) in w.iter().zip(h).enumerate() {
            let model = &mut models[usize::from(k >= sources[0].len())];
            model.iter_mut().zip(w).for_each(|(sum, w)| *sum += h * w);
        }
        for f in 0..BINS {
            let squares = [models[0][f] * models[0][f], models[1][f] * models[1][f]];
            let mask = squares[0] / (squares[0] + squares[1] + 1e-12);
            parts[0][n][f] = parts[0][n][f].map(|x| x * mask);
            parts[1][n][f] = parts[1][n][f].map(|x| x * (1.0 - mask));
        }
    }
    parts.map(|part| signal(part, mixture.len()))
}
