//! Learned sources take their mixture apart; EM never lowers the likelihood; what is written is what is read.

use super::*;
use crate::metrics::si_sdr_db;
use crate::streaming::separate_channel;
use spikelet::SpectralModel;
use spikelet::rng::Rng;

/// Tones of one of several notes each, with harmonics; notes last 0.1 s.
fn notes(pitches: &[f64], samples: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let (mut pitch, mut phase) = (pitches[0], 0.0);
    (0..samples)
        .map(|t| {
            if t % 800 == 0 {
                pitch = pitches[(rng.uniform::<f64>() * pitches.len() as f64) as usize % pitches.len()];
            }
            phase += std::f64::consts::TAU * pitch / 8000.0;
            (1..6).map(|k| (f64::from(k) * phase).sin() / f64::from(k)).sum::<f64>()
                + 0.02 * rng.normal::<f64>()
        })
        .collect()
}

fn source(pitches: &[f64], geometry: &Geometry, threads: usize) -> Learned {
    let settings = Settings { latents: 12, iterations: 30, copies: Some(false), seed: 3, threads };
    learn(&[notes(pitches, 32_000, 1)], geometry, &settings, |_, _| {}).unwrap()
}

/// Bytes where the core can read them.
fn aligned(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut memory = vec![0; bytes.len() + 8];
    let offset = memory.as_ptr().align_offset(8);
    memory[offset..][..bytes.len()].copy_from_slice(bytes);
    (memory, offset)
}

const LOW: [f64; 3] = [110.0, 147.0, 196.0];
const HIGH: [f64; 3] = [523.0, 740.0, 988.0];

#[test]
fn sources_come_apart() {
    for is_half in [false, true] {
        let geometry = Geometry::new(8000, is_half);
        let parts = [&LOW, &HIGH].map(|pitches| Parts::of(&source(pitches, &geometry, 1), &geometry));
        let merged = Parts::merge(&parts, vec!["low".into(), "high".into()]).unwrap();
        // Ten times as quiet as what was learned, and the second 6 dB below the first.
        let truths = [notes(&LOW, 24_000, 7), notes(&HIGH, 24_000, 8)];
        let mixture: Vec<f32> =
            truths[0].iter().zip(&truths[1]).map(|(a, b)| (0.1 * a + 0.05 * b) as f32).collect();
        for encoding in [Encoding::F32, Encoding::I8] {
            let (memory, offset) = aligned(&merged.bytes(encoding, "test").unwrap());
            let model = SpectralModel::parse(&memory[offset..]).unwrap();
            let found = separate_channel(model, &mixture, None, |_| {}).unwrap();
            for (truth, found) in truths.iter().zip(&found) {
                let found: Vec<f64> = found.iter().map(|&x| f64::from(x)).collect();
                let db = si_sdr_db(&found, truth).unwrap();
                assert!(db > 9.0, "{db:.1} dB, half {is_half}, {encoding:?}");
            }
        }
    }
}

/// Converters have an offset: neither what is learned nor what comes apart depends on it.
#[test]
fn offsets_cost_nothing() {
    let geometry = Geometry::new(8000, false);
    let offset = |x: Vec<f64>, offset: f64| x.into_iter().map(|x| x + offset).collect::<Vec<f64>>();
    let settings = Settings { latents: 12, iterations: 30, copies: Some(false), seed: 3, threads: 1 };
    let parts = [&LOW, &HIGH].map(|pitches| {
        let learned = learn(&[offset(notes(pitches, 32_000, 1), 2.0)], &geometry, &settings, |_, _| {});
        let (learned, plain) = (learned.unwrap(), source(pitches, &geometry, 1));
        assert!((learned.level / plain.level - 1.0).abs() < 1e-3, "{} {}", learned.level, plain.level);
        Parts::of(&learned, &geometry)
    });
    let merged = Parts::merge(&parts, vec!["low".into(), "high".into()]).unwrap();
    let (memory, place) = aligned(&merged.bytes(Encoding::I8, "test").unwrap());
    let truths = [notes(&LOW, 24_000, 7), notes(&HIGH, 24_000, 8)];
    for constant in [0.0, 0.3, -3.0] {
        let mixture: Vec<f32> =
            truths[0].iter().zip(&truths[1]).map(|(a, b)| (a + b + constant) as f32).collect();
        let model = SpectralModel::parse(&memory[place..]).unwrap();
        let found = separate_channel(model, &mixture, None, |_| {}).unwrap();
        for (truth, found) in truths.iter().zip(&found) {
            // The first frames hear an edge.
            let found: Vec<f64> = found[2000..].iter().map(|&x| f64::from(x) - constant / 2.0).collect();
            let db = si_sdr_db(&found, &truth[2000..]).unwrap();
            assert!(db > 9.0, "{db:.1} dB, offset {constant}");
        }
    }
}

/// Levels from -10 to 10 dB, clipping, a source that is absent, silence: nothing that a device would choke on, and each within
/// what can be expected of it.
#[test]
fn hard_inputs() {
    let geometry = Geometry::new(8000, false);
    let parts = [&LOW, &HIGH].map(|pitches| Parts::of(&source(pitches, &geometry, 1), &geometry));
    let merged = Parts::merge(&parts, vec!["low".into(), "high".into()]).unwrap();
    let (memory, offset) = aligned(&merged.bytes(Encoding::I8, "test").unwrap());
    let model = SpectralModel::parse(&memory[offset..]).unwrap();
    let truths = [notes(&LOW, 24_000, 7), notes(&HIGH, 24_000, 8)];
    let mixed = |low: f64, high: f64, limit: f64| -> Vec<f32> {
        let sums = truths[0].iter().zip(&truths[1]).map(|(a, b)| low * a + high * b);
        sums.map(|x| x.clamp(-limit, limit) as f32).collect()
    };
    let separated = |input: &[f32]| -> Vec<Vec<f64>> {
        let found = separate_channel(model, input, None, |_| {}).unwrap();
        let found: Vec<Vec<f64>> =
            found.iter().map(|signal| signal.iter().map(|&x| f64::from(x)).collect()).collect();
        assert!(found.iter().flatten().all(|x| x.is_finite()));
        found
    };
    let gains = |input: &[f32]| -> [f64; 2] {
        let (found, input) = (separated(input), input.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        [0, 1].map(|k| si_sdr_db(&found[k], &truths[k]).unwrap() - si_sdr_db(&input, &truths[k]).unwrap())
    };
    for decibels in [-10.0, -3.0, 3.0, 10.0] {
        let gained = gains(&mixed(0.1 * 10f64.powf(decibels / 20.0), 0.1, 9.0));
        assert!(gained.iter().all(|&gain| gain > 4.0), "{decibels} dB: {gained:.1?}");
    }
    // At half of the peaks' height.
    let gained = gains(&mixed(1.0, 1.0, 2.0));
    assert!(gained.iter().all(|&gain| gain > 4.0), "clipped: {gained:.1?}");
    let power = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
    for (there, absent, input) in [(0, 1, mixed(0.1, 0.0, 9.0)), (1, 0, mixed(0.0, 0.1, 9.0))] {
        let found = separated(&input);
        let leak = 10.0 * (power(&found[absent]) / power(&found[there])).log10();
        assert!(leak < -12.0, "{absent} is absent: {leak:.1} dB");
    }
    assert!(separated(&[0.0; 5000]).iter().flatten().all(|&x| x == 0.0));
    // A silence, then sound: as good as at once.
    let mut late = vec![0.0; 16_000];
    late.extend(mixed(0.1, 0.1, 9.0));
    let found = separated(&late);
    let db = [0, 1].map(|k| si_sdr_db(&found[k][16_000..], &truths[k]).unwrap());
    assert!(db.iter().all(|&db| db > 9.0), "after silence: {db:.1?}");
}

#[test]
fn what_is_written_is_read() {
    let geometry = Geometry::new(8000, false);
    let parts = Parts::of(&source(&LOW, &geometry, 1), &geometry);
    let merged = Parts::merge(&[parts.clone(), parts.clone()], vec!["a".into(), "b".into()]).unwrap();
    for whole in [&parts, &merged] {
        let (memory, offset) = aligned(&whole.bytes(Encoding::F32, "test").unwrap());
        let model = SpectralModel::parse(&memory[offset..]).unwrap();
        assert_eq!(Parts::read(&model), *whole);
        assert_eq!(model.provenance(), "test");
    }
    assert!(Parts::merge(&vec![parts; 5], vec!["x".into(); 5]).is_err());
}

#[test]
fn em_rises_whatever_the_threads() {
    let geometry = Geometry::new(8000, false);
    let [one, three] = [1, 3].map(|threads| source(&HIGH, &geometry, threads));
    assert_eq!(one.mixture.means, three.mixture.means);
    assert_eq!(one.mixture.history, three.mixture.history);
    assert!(one.mixture.history.len() > 2);
    for pair in one.mixture.history.windows(2) {
        // Means are rounded to single precision.
        assert!(pair[1] > pair[0] - 1e-6 * pair[0].abs(), "{pair:?}");
    }
    let total: f64 = one.mixture.prior.iter().sum();
    assert!((total - 1.0).abs() < 1e-9);
    for row in one.transitions.chunks(12) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn gains_have_mean_power_one() {
    for sources in 2..5 {
        for gains in gains(sources, &[-10.0, 0.0, 7.0]).chunks(sources) {
            let power: f32 = gains.iter().map(|g| g * g).sum();
            assert!((power - sources as f32).abs() < 1e-5);
        }
    }
}

#[test]
fn silence_and_too_little_are_refused() {
    let geometry = Geometry::new(8000, false);
    let settings = Settings { latents: 12, iterations: 5, copies: None, seed: 1, threads: 1 };
    let fails =
        |samples: Vec<f64>| learn(&[samples], &geometry, &settings, |_, _| {}).unwrap_err().to_string();
    assert!(fails(vec![0.0; 20_000]).contains("silent"));
    assert!(fails(notes(&LOW, 1000, 1)).contains("frames cannot teach 12 latents"));
}
