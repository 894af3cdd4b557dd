//! `spikelet demo --room`: sounds in a room with echoes, on two microphones.

use super::sounds::{NAMES, RATE, SECONDS, sources};
use super::step;
use crate::commands::model_file::ModelFile;
use crate::commands::output::{Folder, print};
use crate::commands::separate::{Matched, Truth};
use crate::commands::streaming;
use crate::data::{Points, WavForm, wav, write_wav};
use crate::metrics::MAX_DB;
use crate::spatial::simulate::Shoebox;
use crate::{Error, Result, files};
use spikelet::rng::Rng;

/// Sounds that are taken: one more than microphones.
const SOUNDS: usize = 3;
const MICROPHONES: usize = 2;
/// Metres between microphones.
const SPACING: f64 = 0.08;
/// Seconds in which echoes fade by 60 dB.
const RT60: f64 = 0.15;
/// Of noise, in dB below the sounds.
const SNR_DB: f64 = 30.0;

/// The encodings that are compared, and their files.
const MODELS: [(&str, &str); 2] = [("f32", "room.spk"), ("i16", "room-i16.spk")];

pub(super) fn run(folder: &Folder, seed: u64) -> Result<()> {
    let file = |name: &str| folder.file(name).display().to_string();
    let (mixture, model, small) = (file("mixture.wav"), file("room.spk"), file("room-i16.spk"));
    let truths = record(folder, &mixture, seed)?;
    #[rustfmt::skip]
    let steps: [&[&str]; 5] = [
        &["train", "--model", "spatial", "--latents", "3", &mixture, "--out", &model],
        &["quantize", &model, "--encoding", "i16", "--out", &small],
        &["separate", &small, &mixture, "--out-dir", &file("separated")],
        &["export", &small, "--format", "c", "--out", &file("model.h")],
        &["inspect", &small],
    ];
    steps.iter().try_for_each(|words| step(words))?;
    print(&comparison(folder, &mixture, &truths)?)?;
    let listen =
        format!("Listen to {mixture}, then to {}/*.wav, beside {}.\n", file("separated"), file("true-*.wav"));
    print(&format!(
        "\n{listen}\
         Limits: up to four sources on two to four microphones, but not four on two; long echoes cost most;\n\
         sources and microphones must stay where they were in training, else train again.\n"
    ))
}

/// Makes the room and what is heard in it.
fn record(folder: &Folder, mixture: &str, seed: u64) -> Result<Vec<Truth>> {
    let mut rng = Rng::new(seed);
    let sounds = sources(&mut rng);
    let mut room = Shoebox::random(MICROPHONES, SOUNDS, SPACING, RT60, &mut rng);
    room.noise = Some(SNR_DB);
    let chosen: Vec<&[f64]> = sounds[1..=SOUNDS].iter().map(Vec::as_slice).collect();
    let mut heard = room.record(&chosen, RATE, &mut rng);
    // A level that players do not clip.
    let level = 0.8 / heard.mixture.iter().fold(f32::MIN_POSITIVE, |peak, x| peak.max(x.abs()));
    heard.mixture.iter_mut().for_each(|x| *x *= level);
    heard.images.iter_mut().flatten().for_each(|x| *x *= f64::from(level));
    print(&format!(
        "{SOUNDS} sounds ({}) in a room whose echoes fade in {RT60} s, on {MICROPHONES} microphones {} cm apart,\n\
         {SECONDS} s at {RATE} Hz, noise {SNR_DB} dB below the sounds:\n  {mixture}\n",
        NAMES[1..=SOUNDS].join(", "),
        100.0 * SPACING,
    ))?;
    files::write_atomically(mixture, |writer| wav(writer, RATE, MICROPHONES, &heard.mixture, WavForm::I16))?;
    let mut truths = Vec::new();
    for (name, samples) in NAMES[1..=SOUNDS].iter().zip(heard.images) {
        let samples32: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        write_wav(folder.file(&format!("true-{name}.wav")), RATE, 1, &samples32)?;
        truths.push(Truth { name: (*name).into(), samples });
    }
    Ok(truths)
}

/// How close both models come to every sound.
fn comparison(folder: &Folder, mixture: &str, truths: &[Truth]) -> Result<String> {
    let heard = Points::read(mixture)?;
    let mut columns = vec![truths.iter().map(|truth| truth.closest_channel_db(&heard)).collect::<Vec<f64>>()];
    let mut sizes = Vec::new();
    for (_, name) in MODELS {
        let path = folder.file(name);
        let file = ModelFile::read(&path)?;
        let Some(model) = file.room()? else {
            return Err(Error::run("this is no spatial model", path.display(), "report this as a bug"));
        };
        sizes.push(model.byte_len());
        let separated = streaming::room(model, &path, mixture.as_ref())?;
        let matched = Matched::new(truths, &separated.signals, separated.channels);
        let score = |k: usize| matched.of[k].map_or(-MAX_DB, |signal| matched.score(k, signal));
        columns.push((0..truths.len()).map(score).collect());
    }
    let mut text = format!(
        "\nSeparation in dB (SI-SDR, higher is better):\n{:<12}{:>14}{:>8}{:>8}\n",
        "sound", "best single", MODELS[0].0, MODELS[1].0
    );
    let row = |name: &str, values: [f64; 3]| {
        format!("{name:<12}{:>14.1}{:>8.1}{:>8.1}\n", values[0], values[1], values[2])
    };
    for (k, truth) in truths.iter().enumerate() {
        text += &row(&truth.name, [0, 1, 2].map(|column: usize| columns[column][k]));
    }
    let mean = |column: usize| columns[column].iter().sum::<f64>() / truths.len() as f64;
    text += &row("mean", [0, 1, 2].map(mean));
    text += &format!("{:<12}{:>14}{:>8}{:>8}\n", "model bytes", "", sizes[0], sizes[1]);
    Ok(text + "Best single: the microphone that comes closest.\n")
}
