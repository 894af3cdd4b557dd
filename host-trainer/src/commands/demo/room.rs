//! `spikelet demo --room`: sounds in a room with echoes, on two microphones.

use super::sounds::{NAMES, RATE, SECONDS, sources};
use super::{comparison, step, write};
use crate::Result;
use crate::commands::output::{Folder, print};
use crate::commands::separate::Truth;
use crate::spatial::simulate::Shoebox;
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
    print(&comparison(folder, &mixture, &truths, &MODELS)?)?;
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
    write(folder, mixture.as_ref(), MICROPHONES, &heard.mixture, &NAMES[1..=SOUNDS], heard.images)
}
