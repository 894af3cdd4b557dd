//! `train --model spatial`: sources on spaced microphones, from a recording of the mixture alone.

use super::Train;
use super::checkpoint::Checkpoint;
use super::front_end::clipped;
use super::interrupt;
use super::outputs::Outputs;
use crate::cluster::Cluster;
use crate::commands::output::{Progress, counted, print, warn};
use crate::data::Source;
use crate::files::Staged;
use crate::spatial::{Settings, Spectra, Stage, Suggestion, Training};
use crate::{Error, Result};
use serde_json::json;
use spikelet::frame::Form;
use spikelet::spatial::MOST_MICROPHONES;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Seconds below which there is too little to learn from.
const SHORTEST: f64 = 1.0;
/// Seconds below which figures of separation fall.
const SHORT: f64 = 5.0;

/// Decibels by which a microphone that works is below the loudest one at most.
const DEAD: f64 = 60.0;
/// What two microphones differ by at least, as a part of their power: less than their own noise.
const ALIKE: f64 = 1e-6;
/// Beyond any scale of samples; powers of spectra stay numbers in single precision.
const LOUDEST: f32 = 1e9;

/// A recording, checked.
struct Mixture {
    samples: Vec<f32>,
    microphones: usize,
    rate: u32,
}

impl Train {
    /// The whole command.
    pub(super) fn room(self) -> Result<()> {
        let (latents, iterations) = self.plan.spatial()?;
        let spacing = self.spatial.checked_spacing()?;
        let frame = self.framing.fourier()?;
        let outputs = Outputs::new(&self.out, self.checkpoint.as_deref(), &self.data)?;
        let checkpoint = Checkpoint::open(outputs.checkpoint.clone())?;
        let mixture = Mixture::read(&self.data)?;
        let mut settings = Settings::new(latents.unwrap_or(1), mixture.rate);
        (settings.length, settings.hop) = lengths(frame, settings.length)?;
        settings.iterations = iterations.unwrap_or(settings.iterations);
        settings.spacing = spacing;
        settings.seed = self.plan.seed;
        let microphone = self.spatial.microphone.unwrap_or(1);
        settings.microphone = microphone.wrapping_sub(1);
        if settings.microphone >= mixture.microphones {
            let what = format!("there is no microphone {microphone}");
            let advice = format!("choose 1 to {}", mixture.microphones);
            return Err(Error::input(what, "--microphone", advice));
        }
        if self.spatial.following() > 0.0 && mixture.microphones != 2 {
            let what = format!("on {} microphones no source is followed", mixture.microphones);
            return Err(Error::input(what, "--follow", "leave it out, or keep two channels"));
        }
        let mut warnings = mixture.check(&self.data[0], settings.length)?;
        let spectra = Spectra::new(&mixture.samples, mixture.microphones, settings.length, settings.hop);
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = self.threads.map_or_else(cores, usize::from);
        let suggestion = Suggestion::new(&settings, &spectra, mixture.rate, threads);
        settings.latents = latents.unwrap_or(suggestion.sources);
        warnings.extend(suggestion.objection(settings.latents, mixture.microphones));
        warnings.iter().for_each(warn);
        let mut training = match self.resume.then(|| checkpoint.read_any::<Training>()).transpose()?.flatten()
        {
            Some(training) => accepted(training, &settings, &spectra, &checkpoint)?,
            None => {
                if self.resume {
                    let place = checkpoint.path.display();
                    warn(format_args!("there is no checkpoint {place}: the run starts over"));
                }
                Training::new(settings, &spectra, mixture.rate, threads)
            }
        };
        self.run_room(&mut training, &spectra, threads, &checkpoint)?;
        let seconds = mixture.samples.len() as f64 / mixture.microphones as f64 / f64::from(mixture.rate);
        self.write_room(&training, &suggestion, seconds, &outputs.json, &warnings)
    }

    fn run_room(
        &self,
        training: &mut Training,
        spectra: &Spectra,
        threads: usize,
        checkpoint: &Checkpoint,
    ) -> Result<()> {
        let mut progress = Progress::new("training", training.iterations());
        progress.advance(training.history.len());
        let stop = interrupt::flag(progress.announcer(), &checkpoint.path, &Cluster::alone());
        let points = (spectra.bins * spectra.frames) as f64;
        while !training.is_finished() {
            training.step(spectra, threads);
            if let Some(step) = training.history.last() {
                let stage = match step.stage {
                    Stage::Alignment => "one source per point",
                    Stage::States => "all states",
                };
                let value = step.objective / points;
                let line = format!("iteration {}, {stage}, ln p {value:.5} per point", step.iteration);
                progress.note(format!("iteration {}, {stage}", step.iteration), line);
            }
            progress.advance(1);
            let asked = stop.load(Ordering::SeqCst) && !training.is_finished();
            let done = training.history.len();
            let due = done.is_multiple_of(self.checkpoint_every as usize) || training.is_finished();
            if asked || (self.checkpoint.is_some() && due) {
                checkpoint.write(training)?;
            }
            if asked {
                let advice =
                    format!("the same command with --resume goes on from {}", checkpoint.path.display());
                let place = format!("iteration {done}");
                return Err(Error::interrupted("stopped before the end", place, advice));
            }
        }
        Ok(())
    }

    fn write_room(
        &self,
        training: &Training,
        suggestion: &Suggestion,
        seconds: f64,
        json: &Path,
        warnings: &[String],
    ) -> Result<()> {
        let (settings, d) = (&training.settings, training.data.1);
        let objective = training.history.last().map_or(0.0, |step| step.objective);
        let provenance = format!(
            "spikelet {} train --model spatial on {seconds:.1} s of {} at {} Hz, seed {}",
            env!("CARGO_PKG_VERSION"),
            counted(d, "microphone"),
            training.rate,
            settings.seed,
        );
        let mut room = training.room(&provenance);
        room.following = self.spatial.following();
        let blob = room.floats();
        let mut described = serde_json::to_value(settings).unwrap_or_default();
        described["model"] = json!("spatial");
        described["following"] = json!(room.following);
        let history: Vec<_> = training
            .history
            .iter()
            .map(|step| {
                json!({ "iteration": step.iteration, "stage": step.stage, "free_energy": step.objective, "seconds": step.seconds })
            })
            .collect();
        let value = json!({
            "settings": described,
            "points": training.data.0 * (settings.length / 2 + 1),
            "frame": { "form": "fourier", "length": settings.length, "hop": settings.hop, "channels": d, "rate": training.rate },
            "parameters": training.parameters(),
            "delays": training.delays(),
            "suggested_latents": suggestion.sources,
            "history": history,
            "warnings": warnings,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let text =
            serde_json::to_string(&value).map_err(|cause| Error::run(cause, "MODEL.json", "report this"))?;
        let blob = Staged::write(&self.out, |writer| writer.write_all(&blob))?;
        let text = Staged::write(json, |writer| writeln!(writer, "{text}"))?;
        blob.commit()?;
        text.commit()?;
        let points = (training.data.0 * (settings.length / 2 + 1)) as f64;
        print(&format!(
            "{}: {} on {}, frames of {} samples every {}\n\
             ln p {:.5} per point after {}; the data suggest {}\n\
             all parameters and the history are in {}\n",
            self.out.display(),
            counted(settings.latents, "source"),
            counted(d, "microphone"),
            settings.length,
            settings.hop,
            objective / points,
            counted(training.history.len(), "iteration"),
            counted(suggestion.sources, "source"),
            json.display(),
        ))
    }
}

impl Mixture {
    /// One recording or several of the same microphones, joined.
    fn read(paths: &[std::path::PathBuf]) -> Result<Self> {
        let (mut samples, mut shape) = (Vec::new(), None);
        for path in paths {
            let mut source = Source::open(path)?;
            let Some(rate) = source.rate() else {
                let what = "spatial models are learned from recordings";
                return Err(Error::input(
                    what,
                    path.display(),
                    "give a .wav with a channel for each microphone",
                ));
            };
            let channels = source.dims();
            if channels < 2 {
                let what =
                    "the recording has one channel, and sources are told apart by delays between microphones";
                return Err(Error::input(
                    what,
                    path.display(),
                    "give a recording of two to four microphones",
                ));
            }
            if channels > MOST_MICROPHONES {
                let what = format!("{channels} microphones are more than a spatial model can have");
                let advice = format!("keep {MOST_MICROPHONES} channels or fewer");
                return Err(Error::input(what, path.display(), advice));
            }
            match *shape.get_or_insert((channels, rate)) {
                (first, _) if first != channels => {
                    let what = format!("{channels} channels where the first recording has {first}");
                    let advice = "give recordings of the same microphones";
                    return Err(Error::input(what, path.display(), advice));
                }
                (_, first) if first != rate => {
                    let what = format!("{rate} samples per second where the first recording has {first}");
                    return Err(Error::input(what, path.display(), "resample it"));
                }
                _ => {}
            }
            let mut values = Vec::new();
            source.read_chunk(0, source.points(), &mut values)?;
            samples.extend(values.iter().map(|&x| x as f32));
        }
        // At least one file is required.
        let (microphones, rate) = shape.unwrap_or((2, 0));
        Ok(Self { samples, microphones, rate })
    }

    /// Refuses what nothing can be learned from; warnings about what little can be.
    fn check(&self, path: &Path, length: usize) -> Result<Vec<String>> {
        let place = path.display();
        let count = self.samples.len() / self.microphones;
        let seconds = count as f64 / f64::from(self.rate.max(1));
        if seconds < SHORTEST || count < 4 * length {
            let what = format!("{seconds:.2} s are too short to learn a room from");
            return Err(Error::input(what, place, "give 5 s or more in which every source is heard"));
        }
        let channel = |c: usize| self.samples.iter().skip(c).step_by(self.microphones).map(|&x| f64::from(x));
        if let Some(n) = self.samples.iter().position(|x| x.abs() > LOUDEST) {
            let what = format!("sample {} is {:.0e}, full scale is 1", n / self.microphones, self.samples[n]);
            return Err(Error::input(what, place, "scale the recording down"));
        }
        let product = |a: usize, b: usize| channel(a).zip(channel(b)).map(|(x, y)| x * y).sum::<f64>();
        let powers: Vec<f64> = (0..self.microphones).map(|c| product(c, c)).collect();
        let loudest = powers.iter().fold(0.0f64, |a, b| a.max(*b));
        if loudest == 0.0 {
            return Err(Error::input("the recording is silent", place, "check the microphones"));
        }
        for (c, power) in powers.iter().enumerate() {
            let below = -10.0 * (power / loudest).log10();
            if below > DEAD {
                let number = c + 1;
                let what = match *power > 0.0 {
                    true => format!("channel {number} is {below:.0} dB below the loudest one"),
                    false => format!("channel {number} is silent"),
                };
                return Err(Error::input(what, place, "check that microphone, or leave its channel out"));
            }
            if let Some(b) = (0..c).find(|&b| product(b, c).powi(2) > (1.0 - ALIKE) * powers[b] * power) {
                let what = format!("channel {} is a copy of channel {}, as loud or scaled", c + 1, b + 1);
                return Err(Error::input(what, place, "give a recording of different microphones"));
            }
        }
        let mut warnings = Vec::new();
        if seconds < SHORT {
            warnings.push(format!("{seconds:.1} s are little: 8 s or more give better models"));
        }
        let samples: Vec<f64> = self.samples.iter().map(|&x| f64::from(x)).collect();
        warnings.extend(clipped(&samples).map(|what| format!("{place}: {what}")));
        Ok(warnings)
    }
}

/// L and K from flags.
fn lengths((frame, hop): (Option<u32>, Option<u32>), usual: usize) -> Result<(usize, usize)> {
    let length = frame.unwrap_or(usual as u32);
    if !length.is_power_of_two() || !Form::FOURIER_LENGTHS.contains(&length) {
        let (least, most) = (Form::FOURIER_LENGTHS.start(), Form::FOURIER_LENGTHS.end());
        let what = format!("frames cannot have {length} samples");
        return Err(Error::input(
            what,
            "--frame",
            format_args!("choose a power of two from {least} to {most}"),
        ));
    }
    let hop = hop.unwrap_or(length / 4);
    if hop != length / 4 && hop != length / 8 {
        let what = format!("frames of {length} samples cannot follow each other every {hop}");
        let advice = format!("choose {} or {}", length / 4, length / 8);
        return Err(Error::input(what, "--hop", advice));
    }
    Ok((length as usize, hop as usize))
}

/// A checkpoint, if it belongs to this command.
fn accepted(
    mut training: Training,
    settings: &Settings,
    spectra: &Spectra,
    checkpoint: &Checkpoint,
) -> Result<Training> {
    let place = checkpoint.path.display();
    let same = Settings { iterations: settings.iterations, ..training.settings.clone() };
    if same != *settings || !training.fits(spectra) {
        let what = "the checkpoint was written for other data or settings";
        return Err(Error::input(what, place, "repeat them, or omit --resume to start over"));
    }
    if settings.iterations < training.settings.iterations {
        let before = training.settings.iterations;
        let what = format!(
            "the checkpoint was written with --iterations {before}, more than {}",
            settings.iterations
        );
        let advice = format!("ask for {before} or more, or leave --resume out");
        return Err(Error::input(what, place, advice));
    }
    training.settings.iterations = settings.iterations;
    Ok(training)
}
