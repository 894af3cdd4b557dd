//! `spikelet separate`: a mixture in, one recording per source out.

mod earlier;

use super::model_file::{ModelFile, Separator};
use super::output::{Folder, counted, print, refuse_overwriting, warn};
use super::streaming::{self, Separated};
use crate::data::{Points, Source, WavForm, check_wav, wav};
use crate::metrics::{MAX_DB, assign, si_sdr_db};
use crate::spatial::FOLLOWING;
use crate::{Error, Result};
use earlier::Earlier;
use spikelet::groups::Groups;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Take a recording apart into its sources
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the recording through the model block by block, exactly as a device would, and writes one WAV per source: per group of
latents where the model has groups (spikelet merge), else per latent. A source of a model of several microphones comes as
the microphone nearest to it has it; one of a spatial model as the microphone of `train --microphone` hears it, echoes included. Recordings that an earlier run left in the folder and this one does not write are removed,
if nobody changed them since.

Examples: three voices on two microphones; two in a room
  spikelet train --model gsc --latents 3 --transform mdct mixture.wav --out model.spk
  spikelet separate model.spk mixture.wav --out-dir voices

  spikelet train --model spatial --latents 2 mixture.wav --out room.spk
  spikelet separate room.spk mixture.wav --out-dir voices")]
pub(super) struct Separate {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// The mixture
    #[arg(value_name = "MIX.wav")]
    mixture: PathBuf,
    /// Folder for the sources; created when it does not exist
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// How samples are stored; integers are cut at full scale, which is told
    #[arg(long, value_enum, value_name = "NAME", default_value = "f32")]
    format: WavForm,
    /// By how many dB other sources are reduced, at most, with models of spectra [default: all that is found of them]
    #[arg(long, value_name = "DB", value_parser = decibels)]
    reduction: Option<f32>,
    /// Follow sources that move slowly, with models of two microphones in a room, as `train --follow` does; how fast, 0 to 0.5
    /// [default: 0.15]
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, value_parser = following)]
    follow: Option<Option<f32>>,
    /// The true sources, every channel of every file one, to print how close the result comes
    #[arg(long, value_name = "WAV", num_args = 1..)]
    reference: Vec<PathBuf>,
}

impl Separate {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        let model = file.separator()?;
        if self.reduction.is_some() && !matches!(model, Separator::Spectral(_)) {
            let advice = "leave it out, or use a model of --transform spectrum";
            return Err(Error::input("this model has no masks", "--reduction", advice));
        }
        let model = self.following(model)?;
        let truths = truths(&self.reference)?;
        self.check(&truths)?;
        let separated = streaming::separate(model, &self.model, &self.mixture, self.reduction)?;
        let names = file_names(&model.groups());
        let folder = Folder::create(&self.out_dir)?;
        let inputs: Vec<&PathBuf> = [&self.mixture, &self.model].into_iter().chain(&self.reference).collect();
        for name in &names {
            refuse_overwriting(&folder.file(name), &inputs)?;
        }
        let earlier = Earlier::read(&self.out_dir);
        write(&folder, &names, &separated, self.format)?;
        earlier.clear(&names, &inputs);
        Earlier::record(&self.out_dir, &names)?;
        if separated.signals.iter().flatten().all(|&x| x == 0.0) {
            warn(format_args!(
                "{}: all sources are silent, as if the recording were",
                self.mixture.display()
            ));
        }
        for (name, signal) in names.iter().zip(&separated.signals) {
            let clipped = self.format.clipped(signal);
            if clipped > 0 {
                let what = counted(clipped, "sample");
                warn(format_args!("{name}: {what} beyond full scale cut; --format f32 keeps them"));
            }
        }
        let mut text = format!("{}: {}\n", self.out_dir.display(), names.join(" "));
        if !truths.is_empty() {
            text += &self.comparison(&separated, &names, &truths)?;
        }
        print(&text)
    }

    /// The model with what `--follow` asks for.
    fn following<'a>(&self, model: Separator<'a>) -> Result<Separator<'a>> {
        let Some(rate) = self.follow else { return Ok(model) };
        let rate = rate.unwrap_or(FOLLOWING);
        let room = match model {
            Separator::Room(room) => room.with_following(Some(rate)),
            _ => None,
        };
        room.map(Separator::Room).ok_or_else(|| {
            let what = "only sources of a room on two microphones are followed";
            Error::input(
                what,
                "--follow",
                "leave it out, or use a model of `train --model spatial` of two channels",
            )
        })
    }

    /// Refuses sources that are not of this mixture, before the long work.
    fn check(&self, truths: &[Truth]) -> Result<()> {
        if truths.is_empty() {
            return Ok(());
        }
        let mixture = Source::open(&self.mixture)?;
        check_truths(truths, mixture.points(), mixture.rate())
    }

    /// SI-SDR of the mixture's best channel and of the result, for each true source.
    fn comparison(&self, separated: &Separated, names: &[String], truths: &[Truth]) -> Result<String> {
        let mixture = Points::read(&self.mixture)?;
        let matched = Matched::new(truths, &separated.signals, separated.channels);
        let mut text = format!("\n{:<24}{:<24}{:>12}{:>12}\n", "source", "file", "mixture", "separated");
        for (k, truth) in truths.iter().enumerate() {
            let before = truth.closest_channel_db(&mixture);
            let (file, after) = match matched.of[k] {
                Some(signal) => (names[signal].as_str(), format!("{:.1}", matched.score(k, signal))),
                None => ("none", "-".into()),
            };
            let _ = writeln!(text, "{:<24}{file:<24}{before:>12.1}{after:>12}", truth.name);
        }
        Ok(text + "SI-SDR in dB; of the mixture that of the channel that comes closest.\n")
    }
}

pub(super) fn decibels(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|db| (0.0..=100.0).contains(db));
    number.ok_or_else(|| "give a number of dB from 0 to 100".into())
}

/// A rate of `--follow`.
pub(super) fn following(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|rate| (0.0..=0.5).contains(rate));
    number.ok_or_else(|| "give a number from 0 to 0.5, or --follow alone".into())
}

/// A source as it really was.
#[derive(Debug)]
pub(super) struct Truth {
    pub name: String,
    pub rate: Option<u32>,
    pub samples: Vec<f64>,
}

impl Truth {
    /// SI-SDR of the channel that comes closest.
    pub fn closest_channel_db(&self, mixture: &Points) -> f64 {
        let channel =
            |d: usize| mixture.values.iter().skip(d).step_by(mixture.dims).copied().collect::<Vec<f64>>();
        (0..mixture.dims).filter_map(|d| si_sdr_db(&channel(d), &self.samples)).fold(-MAX_DB, f64::max)
    }
}

/// Refuses sources that are not of a recording of so many samples.
pub(super) fn check_truths(truths: &[Truth], samples: usize, rate: Option<u32>) -> Result<()> {
    for truth in truths {
        let what = match (truth.rate, rate) {
            (Some(own), Some(rate)) if own != rate => {
                format!("{own} samples per second where the mixture has {rate}")
            }
            _ if truth.samples.len() != samples => {
                format!("{} samples where the mixture has {samples}", truth.samples.len())
            }
            _ => continue,
        };
        return Err(Error::input(what, &truth.name, "give the sources of exactly this mixture"));
    }
    Ok(())
}

/// All channels of all files.
pub(super) fn truths(paths: &[PathBuf]) -> Result<Vec<Truth>> {
    let mut truths = Vec::new();
    for path in paths {
        let points = Points::read(path)?;
        for channel in 0..points.dims {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name =
                if points.dims == 1 { stem.into() } else { format!("{stem}, channel {}", channel + 1) };
            let samples = points.values.iter().skip(channel).step_by(points.dims).copied().collect();
            truths.push(Truth { name, rate: points.rate, samples });
        }
    }
    Ok(truths)
}

/// Which signal is which source: the pairs with the largest sum of SI-SDR.
#[derive(Debug)]
pub(super) struct Matched {
    /// For each source the number of a signal, if there is one left for it.
    pub of: Vec<Option<usize>>,
    /// dB, sources x signals.
    scores: Vec<f64>,
    signals: usize,
}

impl Matched {
    pub fn new(truths: &[Truth], signals: &[Vec<f32>], channels: usize) -> Self {
        let first = |signal: &Vec<f32>| signal.iter().step_by(channels).map(|&x| f64::from(x)).collect();
        let signals: Vec<Vec<f64>> = signals.iter().map(first).collect();
        let score = |truth: &Truth, signal: &[f64]| si_sdr_db(signal, &truth.samples).unwrap_or(-MAX_DB);
        let pairs = truths.iter().flat_map(|truth| signals.iter().map(move |signal| (truth, signal)));
        let scores: Vec<f64> = pairs.map(|(truth, signal)| score(truth, signal)).collect();
        Self { of: assign(&scores, signals.len()), scores, signals: signals.len() }
    }

    pub fn score(&self, source: usize, signal: usize) -> f64 {
        self.scores[source * self.signals + signal]
    }
}

/// A file for each group, named like it as far as file systems go.
pub(super) fn file_names(groups: &Groups<'_>) -> Vec<String> {
    let safe = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let mut names: Vec<String> = Vec::new();
    for group in 0..groups.len() {
        let name: String = groups.name(group).chars().map(safe).collect();
        let plain = if name.is_empty() { format!("source_{group}.wav") } else { format!("{name}.wav") };
        let is_taken = names.iter().any(|other| other.eq_ignore_ascii_case(&plain));
        names.push(if is_taken { format!("{name}_{group}.wav") } else { plain });
    }
    names
}

/// All files or none.
pub(super) fn write(folder: &Folder, names: &[String], separated: &Separated, form: WavForm) -> Result<()> {
    let Separated { signals, channels, rate } = separated;
    for (name, signal) in names.iter().zip(signals) {
        check_wav(&folder.file(name), *rate, *channels, signal.len())?;
    }
    let refs: Vec<&str> = names.iter().map(String::as_str).collect();
    folder.write_together(&refs, |writers| {
        for ((writer, signal), name) in writers.iter_mut().zip(signals).zip(names) {
            let fail = |cause| Error::writing(&folder.file(name), &cause);
            wav(writer, *rate, *channels, signal, form).map_err(fail)?;
        }
        Ok(())
    })
}
