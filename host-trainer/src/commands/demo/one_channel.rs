//! `spikelet demo --one-channel`: a voice and its noise on one microphone.

use super::sounds::{RATE, voice};
use super::step;
use crate::commands::output::{Folder, print};
use crate::data::{WavForm, wav, write_wav};
use crate::{Error, Result, files};
use spikelet::rng::Rng;
use std::f64::consts::TAU;

/// Seconds of the noise alone, of each voice alone, and of the mixture.
const NOISE: usize = 20;
const VOICE: usize = 12;
const MIXTURE: usize = 8;
/// Voices that are learned from; one more is in the mixture.
const VOICES: usize = 4;

pub(super) fn run(folder: &Folder, seed: u64) -> Result<()> {
    let file = |name: &str| folder.file(name).display().to_string();
    record(folder, seed)?;
    let (voice, noise, both) = (file("voice.spk"), file("noise.spk"), file("both.spk"));
    #[rustfmt::skip]
    let steps: [&[&str]; 6] = [
        &["train", "--model", "mca", "--transform", "spectrum", "--hop", "256", "--latents", "64", &file("voices"), "--out", &voice],
        &["train", "--model", "mca", "--transform", "spectrum", "--hop", "256", "--latents", "32", &file("noise.wav"), "--out", &noise],
        &["merge", &voice, &noise, "--names", "voice,noise", "--encoding", "i8", "--out", &both],
        &["denoise", &both, &file("noisy.wav"), &file("clean.wav"), "--reference", &file("true-voice.wav")],
        &["export", &both, "--format", "c", "--name", "model", "--out", &file("model.h")],
        &["inspect", &both],
    ];
    steps.iter().try_for_each(|words| step(words))?;
    print(&format!(
        "\nListen to {}, then to {}, beside {}.\nThe next step, a program in C: examples/denoise-c/README.md\n",
        file("noisy.wav"),
        file("clean.wav"),
        file("true-voice.wav")
    ))
}

/// Writes the noise, voices and a mixture of others of both.
fn record(folder: &Folder, seed: u64) -> Result<()> {
    let mut rng = Rng::new(seed);
    let voices = folder.file("voices");
    std::fs::create_dir_all(&voices).map_err(|cause| Error::writing(&voices, &cause))?;
    let single = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    for number in 0..VOICES {
        let pitch = 95.0 + 35.0 * number as f64;
        let samples = single(voice(VOICE * RATE as usize, pitch, &mut rng));
        write_wav(voices.join(format!("voice-{number}.wav")), RATE, 1, &samples)?;
    }
    write_wav(folder.file("noise.wav"), RATE, 1, &single(fan(NOISE * RATE as usize, &mut rng)))?;
    let truth = single(voice(MIXTURE * RATE as usize, 120.0, &mut rng));
    let noise = single(fan(MIXTURE * RATE as usize, &mut rng));
    write_wav(folder.file("true-voice.wav"), RATE, 1, &truth)?;
    let noisy: Vec<f32> = truth.iter().zip(&noise).map(|(voice, noise)| voice + noise).collect();
    let path = folder.file("noisy.wav");
    files::write_atomically(&path, |writer| wav(writer, RATE, 1, &noisy, WavForm::I16))?;
    print(&format!(
        "A voice and a fan as loud as it, {MIXTURE} s at {RATE} Hz, the fan alone, and {VOICES} other voices:\n  {} {} {}\n",
        path.display(),
        folder.file("noise.wav").display(),
        voices.display()
    ))
}

/// Blades and rushing air: tones that waver, and coloured noise.
fn fan(len: usize, rng: &mut Rng) -> Vec<f64> {
    let (mut phase, mut slow, mut low, mut lower) = (0.0f64, 0.0, 0.0, 0.0);
    (0..len)
        .map(|_| {
            slow = 0.999 * slow + 0.04 * rng.normal::<f64>();
            phase += TAU * 92.0 * (1.0 + 0.005 * slow) / f64::from(RATE);
            low = 0.7 * low + 0.3 * rng.normal::<f64>();
            lower = 0.97 * lower + 0.1 * low;
            let blades: f64 = (1..8).map(|k| (f64::from(k) * phase).cos() / f64::from(k)).sum();
            0.06 * blades + 0.1 * (low + lower)
        })
        .collect()
}
