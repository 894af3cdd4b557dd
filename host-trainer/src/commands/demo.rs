//! `spikelet demo`: the whole way, from a mixture to a model for firmware, by the commands that a user would type.

mod room;
mod sounds;

use super::model_file::ModelFile;
use super::output::{Folder, print};
use super::processor::share;
use super::separate::{Matched, Truth};
use super::{Cli, streaming};
use crate::data::{Points, Source, WavForm, wav, write_wav};
use crate::metrics::MAX_DB;
use crate::{Error, Result, files};
use clap::Parser;
use sounds::{NAMES, RATE, SECONDS, Scene};
use std::path::{Path, PathBuf};

/// Gains of sounds (columns) at microphones (rows): three sounds near one microphone each, the last in the middle.
const MIXING: [[f64; NAMES.len()]; 3] = [[1.0, 0.3, 0.2, 0.6], [0.2, 1.0, 0.3, 0.6], [0.3, 0.2, 1.0, 0.6]];

/// The encodings that are compared, and their files.
const MODELS: [(&str, &str); 3] = [("f32", "model.spk"), ("i16", "model-i16.spk"), ("i8", "model-i8.spk")];

/// Learn to separate four sounds recorded by three microphones, and write every file of the way
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes four sounds, mixes them on three microphones and adds noise; then runs the commands that it prints: train on the mixture
alone, quantize, separate with the bytes a device would use, export for firmware, and report. Nothing needs to be prepared.
With --wav the mixture is yours.

With --room three of the sounds are in a room with echoes, on two microphones 8 cm apart: delays take the place of strengths, and the model is
spatial. Four sounds on two microphones are too many, and sounds and microphones must stay where they are.

Examples:
  spikelet demo --out-dir spikelet-demo
  spikelet demo --room
  spikelet demo --wav mixture.wav --sources 3")]
pub(super) struct Demo {
    /// Folder for the files; created when it does not exist
    #[arg(long, value_name = "DIR", default_value = "spikelet-demo")]
    out_dir: PathBuf,
    /// Other sounds and noise for every seed, the same for the same seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Sounds in a room, on two microphones: delays and echoes
    #[arg(long, conflicts_with = "wav")]
    room: bool,
    /// A mixture of yours instead, of two or more channels
    #[arg(long, value_name = "MIX.wav", requires = "sources", conflicts_with = "seed")]
    wav: Option<PathBuf>,
    /// How many sources are in it
    #[arg(long, value_name = "COUNT", requires = "wav", value_parser = clap::value_parser!(u16).range(1..=10))]
    sources: Option<u16>,
}

impl Demo {
    pub fn run(self) -> Result<()> {
        if let Some(path) = &self.wav {
            check(path)?;
        }
        let folder = Folder::create(&self.out_dir)?;
        if self.room {
            return room::run(&folder, self.seed);
        }
        let (mixture, sources) = match (&self.wav, self.sources) {
            (Some(path), Some(sources)) => (path.clone(), usize::from(sources)),
            _ => (folder.file("mixture.wav"), NAMES.len()),
        };
        let truths = match &self.wav {
            Some(_) => Vec::new(),
            None => self.record(&folder, &mixture)?,
        };
        let file = |name: &str| folder.file(name).display().to_string();
        let (mixture, model) = (mixture.display().to_string(), file("model.spk"));
        let latents = sources.to_string();
        #[rustfmt::skip]
        let steps: [&[&str]; 6] = [
            &["train", "--model", "gsc", "--latents", &latents, "--transform", "mdct", "--bins", "128", "--iterations", "30",
              "--restarts", "2", &mixture, "--out", &model],
            &["quantize", &model, "--encoding", "i16", "--out", &file("model-i16.spk")],
            &["quantize", &model, "--encoding", "i8", "--out", &file("model-i8.spk")],
            &["separate", &file("model-i16.spk"), &mixture, "--out-dir", &file("separated")],
            &["export", &file("model-i16.spk"), "--format", "c", "--out", &file("model.h")],
            &["report", &file("model.json"), "--data", &mixture, "--out", &file("report.html")],
        ];
        steps.iter().try_for_each(|words| step(words))?;
        if !truths.is_empty() {
            print(&comparison(&folder, &mixture, &truths)?)?;
        }
        let target = Target::of(&folder.file("model-i16.spk"))?;
        print(&self.next_steps(&mixture, !truths.is_empty(), &target))
    }

    /// Makes sounds and mixture, and writes them.
    fn record(&self, folder: &Folder, mixture: &Path) -> Result<Vec<Truth>> {
        let scene = Scene::new(&MIXING, self.seed);
        print(&format!(
            "{} sounds ({}) on {} microphones, {SECONDS} s at {RATE} Hz, noise {} dB below the sounds:\n  {}\n",
            NAMES.len(),
            NAMES.join(", "),
            MIXING.len(),
            sounds::SNR_DB,
            mixture.display(),
        ))?;
        // As a converter gives it, and as `make realtime` of the firmware examples takes it.
        let samples = &scene.mixture;
        files::write_atomically(mixture, |writer| wav(writer, RATE, MIXING.len(), samples, WavForm::I16))?;
        let mut truths = Vec::new();
        for (name, samples) in NAMES.iter().zip(scene.sources) {
            let samples32: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
            write_wav(folder.file(&format!("true-{name}.wav")), RATE, 1, &samples32)?;
            truths.push(Truth { name: (*name).into(), samples });
        }
        Ok(truths)
    }

    fn next_steps(&self, mixture: &str, has_truth: bool, target: &Target) -> String {
        let Target { core, mcpu, load } = target;
        let folder = self.out_dir.display();
        let beside = if has_truth { format!(", beside {folder}/true-*.wav") } else { String::new() };
        format!(
            "
Listen to {mixture}, then to {folder}/separated/*.wav{beside}. Look at {folder}/report.html.

{load}

On the device: build the library for your core (here a {core}), and link it with your program:
  rustup target add thumbv7em-none-eabihf
  cargo rustc -p spikelet-ffi --profile firmware --target thumbv7em-none-eabihf --crate-type staticlib
  arm-none-eabi-gcc -mcpu={mcpu} -mfloat-abi=hard -Iinclude -I{folder} main.c \\
      target/thumbv7em-none-eabihf/firmware/libspikelet_ffi.a
In main.c:
  #include \"spikelet.h\"
  #include \"model.h\"
  static MODEL_ALIGNED unsigned char memory[MODEL_STREAM_SIZE];
  spk_stream_init(memory, sizeof memory, model_blob, sizeof model_blob, &stream); /* once */
  spk_stream_process_i16(stream, microphones, sources, samples);                  /* every block */
"
        )
    }
}

/// Processors that the demo is for, the slower first: the first that runs the model in real time is advised.
const TARGETS: [(&str, &str, &str, f64); 2] =
    [("m4f", "Cortex-M4F", "cortex-m4", 168e6), ("m7", "Cortex-M7", "cortex-m7", 480e6)];

/// The processor that the model is for.
struct Target {
    core: &'static str,
    mcpu: &'static str,
    /// What it takes of it, in words.
    load: String,
}

impl Target {
    fn of(path: &Path) -> Result<Self> {
        let file = ModelFile::read(path)?;
        let blob = file.blob()?;
        let mut text = String::new();
        for (number, (short, core, mcpu, clock)) in TARGETS.into_iter().enumerate() {
            let [share, worst] = share(&blob, short, clock)?;
            text += &format!(
                "{}{core} at {} MHz: {:.0} % of the processor, {:.0} % if every sample were the worst{}.",
                if number == 0 { "" } else { " " },
                clock / 1e6,
                100.0 * share,
                100.0 * worst,
                if worst > 1.0 { ", so not in real time" } else { "" }
            );
            if worst <= 1.0 || number + 1 == TARGETS.len() {
                return Ok(Self { core, mcpu, load: text });
            }
        }
        Err(Error::run("there is no processor to advise", "the demo", "report this as a bug"))
    }
}

/// Refuses what the commands could not go through with, before any of them runs.
fn check(path: &Path) -> Result<()> {
    let source = Source::open(path)?;
    if source.rate().is_none() {
        return Err(Error::input("this is not a recording", path.display(), "give a WAV file"));
    }
    if source.dims() < 2 {
        let what =
            "the recording has one channel, and sources are told apart by how they differ between channels";
        let advice = "give a recording of two or more microphones";
        return Err(Error::input(what, path.display(), advice));
    }
    Ok(())
}

/// Runs a command as if it had been typed, and shows it.
pub(super) fn step(words: &[&str]) -> Result<()> {
    print(&format!("\n$ spikelet {}\n", line(words)))?;
    let cli = Cli::try_parse_from(["spikelet"].iter().chain(words))
        .map_err(|error| Error::run(error, "a command of ours", "report this as a bug"))?;
    cli.command.run()
}

/// Words as a line for the shell.
pub(super) fn line(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-:".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// How close every model comes to every sound.
fn comparison(folder: &Folder, mixture: &str, truths: &[Truth]) -> Result<String> {
    let heard = Points::read(mixture)?;
    let mut columns = vec![truths.iter().map(|truth| truth.closest_channel_db(&heard)).collect::<Vec<f64>>()];
    let mut sizes = Vec::new();
    for (_, name) in MODELS {
        let path = folder.file(name);
        let file = ModelFile::read(&path)?;
        let blob = file.blob()?;
        sizes.push(blob.byte_len());
        let separated = streaming::separate(blob, &path, mixture.as_ref())?;
        let matched = Matched::new(truths, &separated.signals, separated.channels);
        let score = |k: usize| matched.of[k].map_or(-MAX_DB, |signal| matched.score(k, signal));
        columns.push((0..truths.len()).map(score).collect());
    }
    let mut text = format!(
        "\nSeparation in dB (SI-SDR, higher is better):\n{:<12}{:>14}{:>8}{:>8}{:>8}\n",
        "sound", "best single", MODELS[0].0, MODELS[1].0, MODELS[2].0
    );
    let row = |name: &str, values: &[f64]| {
        let figures: String = values.iter().skip(1).map(|value| format!("{value:>8.1}")).collect();
        format!("{name:<12}{:>14.1}{figures}\n", values[0])
    };
    for (k, truth) in truths.iter().enumerate() {
        text += &row(&truth.name, &columns.iter().map(|column| column[k]).collect::<Vec<f64>>());
    }
    let mean = |column: &Vec<f64>| column.iter().sum::<f64>() / column.len() as f64;
    text += &row("mean", &columns.iter().map(mean).collect::<Vec<f64>>());
    text += &format!("{:<12}{:>14}{:>8}{:>8}{:>8}\n", "model bytes", "", sizes[0], sizes[1], sizes[2]);
    Ok(text + "Best single: the microphone that comes closest.\n")
}
