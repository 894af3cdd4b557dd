//! Electrocardiograms: without noise, and of two hearts.
//!
//! **Noise.** White noise is added to stretches of a recording. GSC learns windows of the noisy stretch alone, the noise too; every
//! sample of the result is the mean of the posterior means of the windows it lies in. Beside it two filters that are given
//! what they cannot know: a Savitzky-Golay filter of the degree and length that come closest to the truth in this very stretch, and a
//! Wiener filter that knows the spectrum of the clean stretch and the noise.
//!
//! **Two hearts.** Eight electrodes on a pregnant woman, five of them on the abdomen. There is no truth; what is printed of a
//! signal are the beats of the fetus in it (at least 60 samples apart), their rate if there are 250 samples a second, the
//! standard deviation of their intervals over the mean, and how much stronger it is at beats of the fetus than at those of the
//! mother. The mother's beats are those of the last thoracic lead. Of the signals of a method that beat at least 1.25 times as
//! fast as the mother the most regular one is taken. GSC learns eight latents from whitened samples (four starts, as `train
//! --whiten` has by default); its signals are posterior means.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example ecg -- FOLDER [--quick] [--picture FILE.svg]
//! ```
//!
//! FOLDER has `mitbih208_part1.npy` (one lead) and `fetal_ecg8.npy` (8 leads x samples).

mod common;

use common::beats::{beats, contrast_db, rhythm, without_drift};
use common::fast_ica::fast_ica;
use common::lapped::{filtered, power};
use common::mixtures::{add_noise, mean_square, unmixed};
use common::pieces::denoised;
use common::table::{Table, mean_and_spread};
use common::{Arguments, gsc, seed, svg};
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet::{Detail, Inference};
use spikelet_trainer::data::{Pieces, Sheet, SheetKind, read_array};
use spikelet_trainer::metrics::snr_db;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::prepare::Prepared;
use spikelet_trainer::train::settings::{Engine, InitForm, Precision, SlabForm};
use spikelet_trainer::train::{Next, Points, Settings, State};
use spikelet_trainer::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

/// Samples of a stretch: 40 s.
const STRETCH: usize = 14_400;
const FRAME: Frame = Frame { form: Form::Windows { length: 64, hop: 1 }, rate: 360, centred: true };
/// Bins of the Wiener filter.
const BINS: usize = 256;
const LEVELS: [f64; 3] = [0.0, 5.0, 10.0];

const LEADS: usize = 8;
const ABDOMEN: usize = 5;
/// Samples a second of the two hearts, as one public copy has it.
const RATE: f64 = 250.0;
/// Least samples between beats of the fetus and of the mother.
const FETUS: usize = 60;
const MOTHER: usize = 100;

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder with mitbih208_part1.npy and fetal_ecg8.npy")?;
    if arguments.skip == 0 {
        noise(arguments, &folder.join("mitbih208_part1.npy"))?;
    }
    hearts(arguments, &folder.join("fetal_ecg8.npy"))
}

fn noise(arguments: &Arguments, path: &Path) -> Result<()> {
    let samples = read_array(path)?.values;
    let count = (samples.len() / STRETCH).min(if arguments.quick { 1 } else { usize::MAX });
    if count == 0 {
        return Err(Error::input("the recording is too short", path.display(), "give 40 s"));
    }
    println!("SNR in dB over {count} stretches of 40 s, mean (standard deviation)\n");
    let columns = ["noisy   ", "Savitzky-Golay", "Wiener     ", "spikelet   ", "gain       "];
    let table = Table::new(&columns);
    for (level, db) in LEVELS.into_iter().enumerate() {
        let passes = if arguments.quick { 5 } else { 20 };
        let figures = arguments.trials(count, |number| {
            let clean = &samples[number * STRETCH..][..STRETCH];
            let mean = clean.iter().sum::<f64>() / STRETCH as f64;
            let clean: Vec<f64> = clean.iter().map(|x| x - mean).collect();
            one_stretch(&clean, db, passes, seed(100 + level as u64, number))
        })?;
        let column = |of: &dyn Fn(&[f64; 4]) -> f64| {
            let (mean, spread) = mean_and_spread(&figures.iter().map(of).collect::<Vec<f64>>());
            format!("{mean:.1} ({spread:.1})")
        };
        table.row(&[
            column(&|row| row[0]),
            column(&|row| row[1]),
            column(&|row| row[2]),
            column(&|row| row[3]),
            column(&|row| row[3] - row[0]),
        ]);
    }
    println!();
    Ok(())
}

/// SNR of the noisy stretch, of both filters and of the model.
fn one_stretch(clean: &[f64], db: f64, passes: usize, seed: u64) -> Result<[f64; 4]> {
    let variance = mean_square(clean) * 10f64.powf(-db / 10.0);
    let mut noisy = clean.to_vec();
    add_noise(&mut Rng::new(seed), &mut noisy, variance.sqrt());
    let snr = |result: &[f64]| {
        let error = result.iter().zip(clean).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        snr_db(mean_square(clean), error / clean.len() as f64).unwrap_or(f64::NAN)
    };
    let polynomial = |degree: usize, half: usize| snr(&smoothed(&noisy, degree, half));
    let settings = (2..=5).flat_map(|degree| (degree..=30).map(move |half| (degree, half)));
    let savitzky = settings.map(|(degree, half)| polynomial(degree, half)).fold(f64::NEG_INFINITY, f64::max);
    // The transform keeps the power of white noise.
    let gains: Vec<f64> = power(clean, BINS).iter().map(|s| s / (s + variance)).collect();

    let sheet = Sheet {
        kind: SheetKind::Recording(FRAME.rate),
        width: noisy.len(),
        height: 1,
        planes: vec![noisy.clone()],
    };
    let pieces =
        Pieces::new(sheet, &FRAME, 1).map_err(|what| Error::input(what, "a stretch", "give more"))?;
    let mut values = Vec::new();
    pieces.read(0, pieces.len(), &mut values);
    let settings = Settings {
        engine: Engine::Truncated,
        selected: 8,
        max_active: 4,
        precision: Precision::F32,
        init: InitForm::Data,
        batch: pieces.len() / 20,
        iterations: passes,
        seed,
        ..Settings::new(ModelKind::Gsc, 64)
    };
    let mut points = Points::new(values, pieces.dims());
    let mut state = State::new(settings, &mut points)?;
    state.run(&mut points, 1, |_| Ok(Next::Continue))?;
    let (result, _) = denoised(&state, &pieces)?;
    Ok([snr(&noisy), savitzky, snr(&filtered(&noisy, &gains)), snr(&result.planes[0])])
}

/// Savitzky-Golay: the middle of the polynomial of this degree that fits `half` samples on either side best.
fn smoothed(samples: &[f64], degree: usize, half: usize) -> Vec<f64> {
    let place = |j: usize| (j as f64 - half as f64) / half as f64;
    let width = 2 * half + 1;
    let moment = |a: usize, b: usize| (0..width).map(|j| place(j).powi((a + b) as i32)).sum::<f64>();
    let inverse = Mat::from_fn(degree + 1, degree + 1, moment).partial_piv_lu().inverse();
    let weight = |j: usize| (0..=degree).map(|a| inverse[(0, a)] * place(j).powi(a as i32)).sum::<f64>();
    let weights: Vec<f64> = (0..width).map(weight).collect();
    let last = samples.len() - 1;
    let at = |n: usize, j: usize| samples[(n + j).saturating_sub(half).min(last)];
    (0..samples.len()).map(|n| weights.iter().enumerate().map(|(j, w)| w * at(n, j)).sum()).collect()
}

fn hearts(arguments: &Arguments, path: &Path) -> Result<()> {
    let array = read_array(path)?;
    if array.shape.first() != Some(&LEADS) {
        return Err(Error::input("there should be 8 leads", path.display(), "give 8 x samples"));
    }
    let leads: Vec<Vec<f64>> =
        array.values.chunks_exact(array.values.len() / LEADS).map(|lead| without_drift(lead, 50)).collect();
    let samples = leads[0].len();
    let points: Vec<f64> = (0..samples * LEADS).map(|e| leads[e % LEADS][e / LEADS]).collect();
    let mother = beats(&leads[LEADS - 1], MOTHER);
    let ica = unmixed(&points, &fast_ica(&points, LEADS, 10, seed(110, 0))?, LEADS);
    let model = latents(&points, arguments.threads())?;
    let (interval, unsteady) = rhythm(&mother);
    println!(
        "mother: {} beats, {:.0} a minute, intervals {:.3}\n",
        mother.len(),
        60.0 * RATE / interval,
        unsteady
    );
    let of_ica = fetal(&ica, interval).unwrap_or(0);
    let of_model = fetal(&model, interval).unwrap_or(0);
    let fetus = beats(&model[of_model], FETUS);
    let lead = (0..ABDOMEN).fold(0, |best, k| {
        let contrast = |k: usize| contrast_db(&leads[k], &fetus, &mother);
        if contrast(k) > contrast(best) { k } else { best }
    });
    let table = Table::new(&["signal           ", "beats", "a minute", "intervals", "fetus / mother, dB"]);
    let rows =
        [("best abdominal lead", &leads[lead]), ("FastICA", &ica[of_ica]), ("spikelet", &model[of_model])];
    for (name, signal) in rows {
        let found = beats(signal, FETUS);
        let (interval, unsteady) = rhythm(&found);
        table.row(&[
            name.to_owned(),
            found.len().to_string(),
            format!("{:.0}", 60.0 * RATE / interval),
            format!("{unsteady:.3}"),
            format!("{:.1}", contrast_db(signal, &fetus, &mother)),
        ]);
    }
    if let Some(path) = &arguments.picture {
        let part = |signal: &Vec<f64>| signal[..samples.min(1250)].to_vec();
        let drawn = [&leads[LEADS - 1], rows[0].1, rows[1].1, rows[2].1].map(part);
        std::fs::write(path, svg::long_curves(&drawn)).map_err(|cause| Error::writing(path, &cause))?;
    }
    Ok(())
}

/// Posterior means of eight latents, learned from these samples.
fn latents(points: &[f64], threads: usize) -> Result<Vec<Vec<f64>>> {
    let settings =
        Settings { slab: SlabForm::Unit, whiten: true, restarts: 4, ..gsc::exact(LEADS, 100, seed(111, 0)) };
    let mut data = Points::new(points.to_vec(), LEADS);
    let mut state = State::new(settings, &mut data)?;
    state.run(&mut data, threads, |_| Ok(Next::Continue))?;
    let prepared = Prepared::<f32>::new(&state.model(), &state.settings.options())?;
    let refused = |error| Error::input(error, "the data", "check its range");
    let mut memory = vec![0.0; prepared.model()?.arena_len()];
    let mut inference =
        Inference::with_detail(prepared.model()?, &mut memory, Detail::Marginals).map_err(refused)?;
    let mut signals = vec![Vec::new(); LEADS];
    for point in points.chunks_exact(LEADS) {
        let sample: Vec<f32> = point.iter().map(|&y| y as f32).collect();
        let means = inference.infer(&sample).map_err(refused)?.mean;
        signals.iter_mut().zip(means).for_each(|(signal, &x)| signal.push(f64::from(x)));
    }
    Ok(signals)
}

/// The most regular of the signals that beat faster than the mother.
fn fetal(signals: &[Vec<f64>], mother: f64) -> Option<usize> {
    let rhythms: Vec<(f64, f64)> = signals.iter().map(|signal| rhythm(&beats(signal, FETUS))).collect();
    let fast = (0..signals.len()).filter(|&k| rhythms[k].0 * 1.25 <= mother);
    fast.min_by(|&a, &b| rhythms[a].1.total_cmp(&rhythms[b].1))
}
