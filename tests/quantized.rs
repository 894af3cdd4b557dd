//! Dictionaries of integers: sums against exact ones, posteriors against those of the same numbers as floats, noise against
//! draws, and blobs that are refused.

mod common;

use common::the_same_cases_every_time;
use proptest::prelude::*;
use spikelet::blob::{BlobError, crc32};

use spikelet::model::{Dictionary, Integers, Model, ModelError, QUAD, Width};
use spikelet::project::integer::{pack, project, sample_words, sum_of_one};
use spikelet::rng::Rng;
use spikelet::{Blob, Inference};
use spikelet_trainer::blob;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};

const WIDTHS: [Width; 2] = [Width::I16, Width::I8];

/// A random model of any kind.
fn model(kind: ModelKind, d: usize, h: usize, sigma2: f64, seed: u64) -> (Parameters, Options) {
    let mut rng = Rng::new(seed);
    let mut normals = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.normal()).collect() };
    let scale = 1.0 / (d as f64).sqrt();
    let sign = |w: f64| if kind.kind().is_non_negative() { w.abs() } else { w };
    let dictionary = normals(d * h).into_iter().map(|w| scale * sign(w)).collect();
    let noise = match seed % 3 {
        0 => NoiseCov::Shared(sigma2),
        1 => NoiseCov::Diagonal(normals(d).iter().map(|x| sigma2 * (0.3 * x).exp()).collect()),
        _ if kind.kind().is_maximal() || SelectionName::of_kind(kind) == SelectionName::Bound => {
            NoiseCov::Shared(sigma2)
        }
        _ => NoiseCov::Full(
            (0..d * d)
                .map(|at| ((at / d) as f64, (at % d) as f64))
                .map(|(i, j)| sigma2 * (-(i - j).abs()).exp())
                .collect(),
        ),
    };
    let prior = vec![(1.5 / h as f64).min(0.4); h];
    let parameters = match kind.kind().has_slab() {
        false => Parameters::binary(kind, dictionary, d, prior, noise),
        true => Parameters {
            kind,
            dims: d,
            latents: h,
            dictionary,
            prior,
            slab_mean: vec![0.5; h],
            slab_cov: SlabCov::Diagonal(normals(h).iter().map(|x| (0.5 * x).exp()).collect()),
            noise,
        },
    };
    let selected = h.min(8);
    let options = Options {
        selected,
        max_active: selected.min(3),
        singletons: true,
        selection: SelectionName::of_kind(kind),
        states: None,
        expansions: Options::EXPANSIONS,
        gram: if seed.is_multiple_of(2) { GramName::Stored } else { GramName::Auto },
    };
    (parameters, options)
}

/// A sample of the model; x is what its latents were.
fn draw(p: &Parameters, rng: &mut Rng) -> (Vec<f64>, Vec<f64>) {
    let psi2 = p.slab_variances();
    let x: Vec<f64> = (0..p.latents)
        .map(|k| match (rng.uniform::<f64>() < p.prior[k], p.kind.kind().has_slab()) {
            (true, true) => p.slab_mean[k] + psi2[k].sqrt() * rng.normal::<f64>(),
            (on, _) => f64::from(u8::from(on)),
        })
        .collect();
    let y = p.dictionary.chunks_exact(p.latents).zip(p.noise_variances()).map(|(row, variance)| {
        let parts = row.iter().zip(&x).map(|(w, x)| w * x);
        let signal = if p.kind.kind().is_maximal() { parts.fold(0.0, f64::max) } else { parts.sum() };
        signal + variance.sqrt() * rng.normal::<f64>()
    });
    (y.collect(), x)
}

fn integers<'a, T>(model: &Model<'a, T>) -> Integers<'a, T>
where
    T: spikelet::math::Real,
{
    match model.dictionary {
        Dictionary::Integer(integers) => integers,
        Dictionary::Float(_) => panic!("no integers"),
    }
}

/// The words that numbers hold, in the order of memory.
fn words_of_f64(numbers: &[f64]) -> Vec<u32> {
    let words = |number: &f64| [number.to_bits() as u32, (number.to_bits() >> 32) as u32];
    numbers.iter().flat_map(words).collect()
}

fn words_of_f32(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

proptest! {
    #![proptest_config(the_same_cases_every_time(300))]

    /// Whatever the words are, the sums are those of 128-bit arithmetic over W and the sample, rounded once.
    #[test]
    fn sums_are_exact(d in 2..40usize, h in 1..20usize, seed in any::<u64>(), eight in any::<bool>(), large in any::<bool>()) {
        let (parameters, options) = model(ModelKind::Gsc, d, h, 0.1, 3 * (seed / 3));
        let width = WIDTHS[usize::from(eight)];
        let prepared = Prepared::<f64>::quantized(&parameters, &options, width).unwrap();
        let model = prepared.model().unwrap();
        let Integers { words: packed, scales, peak, .. } = integers(&model);
        let mut rng = Rng::new(seed);
        // With all numbers at the peak, the sums come closest to what 32 bits hold.
        let number = |rng: &mut Rng| if large { rng.normal::<f64>().signum() } else { rng.normal() };
        let y: Vec<f64> = (0..d).map(|_| number(&mut rng) * f64::from(peak)).collect();
        let mut memory = y.clone();
        let step = pack(&mut memory, peak);
        let v: Vec<i128> = y.iter().map(|y| (y / step).round_ties_even() as i128).collect();
        prop_assert!(v.iter().all(|v| v.unsigned_abs() <= peak.into()));
        prop_assert!(!large || v.iter().any(|v| v.unsigned_abs() == u128::from(peak)), "the peak is not used");
        let sample = &words_of_f64(&memory)[..sample_words(d)];
        let mut found = vec![0.0; h];
        project(width, packed, sample, scales, 1.0, &mut found);
        let (mut single, mut half) = (vec![0.0f32; h], vec![0.0f32; h]);
        scales.iter().zip(&mut half).for_each(|(c, half)| *half = *c as f32);
        project(width, packed, sample, &half, 0.5, &mut single);
        for k in 0..h {
            let q = |i: usize| (model.entry(i, k) / scales[k]).round() as i128;
            let exact: i128 = (0..d).map(|i| q(i) * v[i]).sum();
            let quad = &packed[k / QUAD * packed.len() / h.div_ceil(QUAD)..][..packed.len() / h.div_ceil(QUAD)];
            prop_assert_eq!(i128::from(sum_of_one(width, quad, sample, k % QUAD)), exact);
            prop_assert_eq!(found[k], exact as f64 * scales[k]);
            prop_assert_eq!(single[k], exact as f32 * (half[k] * 0.5));
            prop_assert!(model.column(k).enumerate().all(|(i, w)| w == model.entry(i, k)));
        }
    }

    /// A sample is rounded by half a step at most, and not at all if it was integers already.
    #[test]
    fn samples_keep_their_digits(seed in any::<u64>(), d in 2..30usize, peak in 1..32768u16, exponent in -90..100i32) {
        let mut rng = Rng::new(seed);
        let size = 2f32.powi(exponent);
        let y: Vec<f32> = (0..d).map(|_| size * rng.normal::<f32>()).collect();
        let mut memory = y.clone();
        let step = pack(&mut memory, peak);
        let most = y.iter().fold(0.0f32, |most, y| most.max(y.abs()));
        prop_assert!(most / step <= f32::from(peak) && most / step > f32::from(peak) / 2.0 - 1.0);
        let integer = |words: &[u32], i: usize| (words[i / 2] >> (16 * (i % 2))) as i16;
        for (i, &y) in y.iter().enumerate() {
            prop_assert!((f32::from(integer(&words_of_f32(&memory), i)) - y / step).abs() <= 0.5);
        }
        let whole: Vec<f32> = (0..d).map(|_| (rng.normal::<f32>() * 3000.0).round()).collect();
        let mut memory = whole.clone();
        let step = pack(&mut memory, 16384);
        prop_assert!(whole.iter().enumerate().all(|(i, y)| f32::from(integer(&words_of_f32(&memory), i)) * step == *y));
    }
}

/// The same W' and noise as floats, with more digits: what is left is rounding of the sample, t / 2 at most where the
/// loudest number has `peak` t.
#[test]
fn integers_infer_what_floats_do() {
    let kinds = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Nmf, ModelKind::Mca];
    let mut rng = Rng::new(5);
    for (seed, kind) in (0..24u64).zip(kinds.into_iter().cycle()) {
        let width = WIDTHS[(seed / 4 % 2) as usize];
        let (parameters, options) = model(kind, 16, 24, 0.05, seed);
        let prepared = Prepared::<f64>::quantized(&parameters, &options, width).unwrap();
        let quantized = prepared.model().unwrap();
        let h = parameters.latents;
        let float = Parameters {
            dictionary: (0..16 * h).map(|at| quantized.entry(at / h, at % h)).collect(),
            noise: match quantized.noise {
                spikelet::model::Noise::Shared(p) => NoiseCov::Shared(1.0 / p),
                spikelet::model::Noise::Diagonal(p) => {
                    NoiseCov::Diagonal(p.iter().map(|p| 1.0 / p).collect())
                }
                spikelet::model::Noise::Full(_) => continue, // below
            },
            ..parameters.clone()
        };
        let other = Prepared::<f64>::new(&float, &options).unwrap();
        let mut memory = [vec![0.0; quantized.arena_len()], vec![0.0; quantized.arena_len()]];
        let [first, second] = &mut memory;
        let mut quantized = Inference::new(quantized, first).unwrap();
        let mut float = Inference::new(other.model().unwrap(), second).unwrap();
        for _ in 0..20 {
            let (y, _) = draw(&parameters, &mut rng);
            let a = quantized.infer(&y).unwrap();
            let b = float.infer(&y).unwrap();
            // b_h is off by sum_d |W_dh| a_d t / 2: with peaks above 5000 and W x of about 1 that is 0.003 nats at most,
            // and an activity moves by a quarter of the nats between its states. Maximal causes have exact samples.
            for (a, b) in a.activity.iter().zip(b.activity) {
                assert!((a - b).abs() < 0.003, "{kind:?} {width:?}: {a} {b}");
            }
        }
    }
}

/// What rounding adds to the noise is what it does to samples: with E known, <(E x)_d^2> over draws.
#[test]
fn noise_grows_by_what_rounding_adds() {
    for (kind, seed) in [(ModelKind::Gsc, 0), (ModelKind::Gsc, 1), (ModelKind::Gsc, 2), (ModelKind::Bsc, 1)] {
        let (d, h, draws) = (12, 20, 20_000);
        let (parameters, options) = model(kind, d, h, 1e-6, seed);
        let prepared = Prepared::<f64>::quantized(&parameters, &options, Width::I8).unwrap();
        let quantized = prepared.model().unwrap();
        let mut rng = Rng::new(seed);
        let mut sums = vec![0.0; d];
        for _ in 0..draws {
            let (_, x) = draw(&parameters, &mut rng);
            for (i, sum) in sums.iter_mut().enumerate() {
                let error = |k: usize| (quantized.entry(i, k) - parameters.dictionary[i * h + k]) * x[k];
                *sum += (0..h).map(error).sum::<f64>().powi(2) / f64::from(draws);
            }
        }
        let before = parameters.noise_variances();
        let found: f64 = sums.iter().sum::<f64>() / d as f64;
        let added = match quantized.noise {
            spikelet::model::Noise::Shared(p) => 1.0 / p - before[0],
            spikelet::model::Noise::Diagonal(p) => {
                p.iter().zip(&before).map(|(p, v)| 1.0 / p - v).sum::<f64>() / d as f64
            }
            spikelet::model::Noise::Full(factor) => {
                // Sigma = F^-1 F^-T, by forward substitution.
                let mut rows: Vec<Vec<f64>> = Vec::new();
                for i in 0..d {
                    let f = &factor[i * (i + 1) / 2..][..=i];
                    let mut row = vec![0.0; d];
                    row[i] = 1.0;
                    for (j, above) in rows.iter().enumerate() {
                        row.iter_mut().zip(above).for_each(|(x, l)| *x -= f[j] * l);
                    }
                    rows.push(row.into_iter().map(|x| x / f[i]).collect());
                }
                let trace: f64 = rows.iter().flatten().map(|l| l * l).sum();
                (trace - before.iter().sum::<f64>()) / d as f64
            }
        };
        // A mean over 20 000 draws of a sparse x: its kurtosis (about 3 h / 1.5) makes one standard error 4 %; four of them,
        // and the rounding of samples of 60 dB, which is a few per cent of 1e-6.
        assert!((added / found - 1.0).abs() < 0.16, "{kind:?} {seed}: {added:e} {found:e}");
    }
}

/// Integers are what the same numbers as floats are, bit for bit, when the step is a power of two; any other step is close.
#[test]
fn samples_of_integers() {
    for (seed, width) in [(0, Some(Width::I16)), (1, Some(Width::I8)), (3, Some(Width::I8)), (0, None)] {
        let (parameters, options) = model(ModelKind::Gsc, 16, 24, 0.01, seed);
        let prepared = match width {
            Some(width) => Prepared::<f32>::quantized(&parameters, &options, width).unwrap(),
            None => Prepared::<f32>::new(&parameters, &options).unwrap(),
        };
        let model = prepared.model().unwrap();
        let mut memory = [vec![0.0; model.arena_len()], vec![0.0; model.arena_len()]];
        let [first, second] = &mut memory;
        let (mut a, mut b) = (Inference::new(model, first).unwrap(), Inference::new(model, second).unwrap());
        let mut rng = Rng::new(seed);
        for (n, step) in (0..200).zip([1.0 / 8192.0, 1.0 / 256.0, 1.0 / 6000.0].into_iter().cycle()) {
            let scale = if n % 9 == 0 { 300.0 } else { 1.0 };
            let y: Vec<i16> =
                draw(&parameters, &mut rng).0.iter().map(|y| (scale * y / step) as i16).collect();
            let floats: Vec<f32> = y.iter().map(|&y| f32::from(y) * step as f32).collect();
            let a = a.infer_i16(&y, step as f32).unwrap();
            let b = b.infer(&floats).unwrap();
            if step == 1.0 / 6000.0 {
                // Half a step of rounding in one of them.
                assert!((a.evidence - b.evidence).abs() < 0.02 + 1e-4 * b.evidence.abs());
            } else {
                assert_eq!(a.evidence.to_bits(), b.evidence.to_bits());
                assert_eq!((a.activity, a.mean, a.map_latents), (b.activity, b.mean, b.map_latents));
            }
        }
        let wrong = a.infer_i16(&[1; 16], f32::NAN).unwrap_err();
        assert!(matches!(wrong, spikelet::Error::Setting { field: "step" }), "{wrong}");
        assert!(a.infer_i16(&[1; 16], 0.0).is_err() && a.infer_i16(&[1; 15], 1.0).is_err());
    }
}

/// Far above the noise the reference path subtracts what is explained and rounds the rest again.
#[test]
fn loud_samples() {
    let (mut parameters, options) = model(ModelKind::Gsc, 16, 24, 1e-6, 0);
    parameters.slab_cov = SlabCov::Diagonal(vec![1.0; 24]);
    let mut rng = Rng::new(1);
    for width in WIDTHS {
        let prepared = Prepared::<f32>::quantized(&parameters, &options, width).unwrap();
        let model = prepared.model().unwrap();
        let mut memory = vec![0.0; model.arena_len()];
        let mut inference = Inference::new(model, &mut memory).unwrap();
        for _ in 0..50 {
            // One latent, of the dictionary that the model has.
            let (k, z) = (usize::from(rng.below(24)), 3.0 + rng.uniform::<f32>());
            let y: Vec<f32> = model.column(k).map(|w| w * z + 1e-3 * rng.normal::<f32>()).collect();
            let found = inference.infer(&y).unwrap();
            assert_eq!(found.map_latents, [k as u16]);
            assert!((found.mean[k] - z).abs() < 0.005, "{} {z}", found.mean[k]);
        }
    }
}

fn with(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    let crc = crc32(&bytes[16..]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    bytes
}

fn parse(bytes: &[u8]) -> Result<(), BlobError> {
    let mut memory = vec![0u64; bytes.len().div_ceil(8)];
    for (word, bytes) in memory.iter_mut().zip(bytes.chunks(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    // SAFETY: as many bytes as there are words, and any byte is valid.
    #[allow(unsafe_code)]
    let aligned = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), bytes.len()) };
    Blob::parse(aligned).map(|_| ())
}

#[test]
fn hostile_blobs_are_refused() {
    let (parameters, options) = model(ModelKind::Nmf, 6, 5, 0.1, 0);
    for width in WIDTHS {
        let prepared = Prepared::<f32>::quantized(&parameters, &options, width).unwrap();
        let bytes = blob::write(&prepared, &parameters.slab_cov, "").unwrap();
        assert_eq!(parse(&bytes), Ok(()));
        let section = |tag: &[u8]| {
            let entry = (48..).step_by(16).find(|&at| bytes[at..].starts_with(tag)).unwrap();
            (entry, u32::from_le_bytes(bytes[entry + 4..entry + 8].try_into().unwrap()) as usize)
        };
        let (dictionary, integers) = section(b"DICT");
        let (scales, first_scale) = section(b"DSCL");
        let len = |entry: usize| u32::from_le_bytes(bytes[entry + 8..entry + 12].try_into().unwrap());
        let unknown = BlobError::Unknown { field: "encoding", value: 3 };
        assert_eq!(parse(&with(&bytes, 17, &[3])), Err(unknown));
        // The other width, and floats: the lengths do not fit.
        for other in [0, 3 - width as u8] {
            let error = parse(&with(&bytes, 17, &[other])).unwrap_err();
            assert!(
                matches!(error, BlobError::Model(ModelError::Length { field: "dictionary", .. })),
                "{error}"
            );
        }
        for (entry, field) in [(dictionary, "dictionary"), (scales, "scales")] {
            let shorter = (len(entry) - 4).to_le_bytes();
            let error = parse(&with(&bytes, entry + 8, &shorter)).unwrap_err();
            assert!(
                matches!(error, BlobError::Model(ModelError::Length { field: f, .. }) if f == field),
                "{error}"
            );
            let odd = (len(entry) - 1).to_le_bytes();
            assert!(matches!(parse(&with(&bytes, entry + 8, &odd)), Err(BlobError::SectionLength { .. })));
            assert!(matches!(parse(&with(&bytes, entry, b"xxxx")), Err(BlobError::MissingSection { .. })));
        }
        for scale in [f32::NAN, f32::INFINITY, -1.0, 1e38] {
            let error = parse(&with(&bytes, first_scale + 4, &scale.to_le_bytes())).unwrap_err();
            assert_eq!(error, BlobError::Model(ModelError::Range { field: "scales", index: 1 }));
        }
        // W >= 0 in this kind.
        let error = parse(&with(&bytes, integers, &[0xff; 2])).unwrap_err();
        assert!(matches!(error, BlobError::Model(ModelError::Range { field: "dictionary", .. })), "{error}");
    }
    let (parameters, options) = model(ModelKind::Gsc, 1, 2, 0.1, 0);
    assert!(Prepared::<f32>::quantized(&parameters, &options, Width::I8).is_err());
}
