//! `spikelet demo`: the whole way, from a mixture to a model for firmware, by the commands that a user would type.

mod comparison;
mod one_channel;
mod room;
mod sounds;

use super::Cli;
use super::model_file::ModelFile;
use super::output::{Folder, print};
use super::processor::share;
use super::separate::Truth;
use super::train::long_enough;
use crate::data::{Source, WavForm, wav, write_wav};
use crate::{Error, Result, files};
use clap::Parser;
use comparison::comparison;
use sounds::{NAMES, RATE, SECONDS, Scene};
use std::path::{Path, PathBuf};

/// Gains of sounds (columns) at microphones (rows): three sounds near one microphone each, the last in the middle.
const MIXING: [[f64; NAMES.len()]; 3] = [[1.0, 0.3, 0.2, 0.6], [0.2, 1.0, 0.3, 0.6], [0.3, 0.2, 1.0, 0.6]];

/// The encodings that are compared, and their files.
const MODELS: [(&str, &str); 3] = [("f32", "model.spk"), ("i16", "model-i16.spk"), ("i8", "model-i8.spk")];

/// Bins of the transform: blocks of 16 ms.
const BINS: u32 = 128;

/// Of the search for states on the device: as many as a Cortex-M4F of 168 MHz has time for. Four lose 1.3 dB, six 0.3.
const EXPANSIONS: &str = "6";

/// Learn to separate four sounds recorded by three microphones, and write every file of the way
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes four sounds, mixes them on three microphones and adds noise; then runs the commands that it prints: train on the mixture
alone, quantize, separate with the bytes a device would use, export for firmware, and report. Nothing needs to be prepared.
With --wav the mixture is yours.

With --room three of the sounds are in a room with echoes, on two microphones 8 cm apart: delays take the place of strengths, and the model is
spatial. Four sounds on two microphones are too many, and sounds and microphones must stay where they are.

With --one-channel a voice is taken from the noise of a fan, on one microphone: the fan is learned from a recording of it alone, the voice from other voices.

Examples:
  spikelet demo --out-dir spikelet-demo
  spikelet demo --room
  spikelet demo --one-channel
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
    /// A voice and a fan on one microphone, told apart by their spectra
    #[arg(long, conflicts_with_all = ["wav", "room"])]
    one_channel: bool,
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
        if self.one_channel {
            return one_channel::run(&folder, self.seed);
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
        let (latents, bins) = (sources.to_string(), BINS.to_string());
        #[rustfmt::skip]
        let steps: [&[&str]; 6] = [
            &["train", "--model", "gsc", "--latents", &latents, "--transform", "mdct", "--bins", &bins, "--iterations", "30",
              "--restarts", "2", &mixture, "--out", &model],
            &["quantize", &model, "--encoding", "i16", "--states", "adaptive", "--expansions", EXPANSIONS, "--out",
              &file("model-i16.spk")],
            &["quantize", &model, "--encoding", "i8", "--states", "adaptive", "--expansions", EXPANSIONS, "--out",
              &file("model-i8.spk")],
            &["separate", &file("model-i16.spk"), &mixture, "--out-dir", &file("separated")],
            &["export", &file("model-i16.spk"), "--format", "c", "--out", &file("model.h")],
            &["report", &file("model.json"), "--data", &mixture, "--out", &file("report.html")],
        ];
        steps.iter().try_for_each(|words| step(words))?;
        if !truths.is_empty() {
            print(&comparison(&folder, &mixture, &truths, &MODELS)?)?;
            print(
                "f32 looks at all 16 states of a point; i16 and i8 search for those that matter, for a third of the work.\n",
            )?;
        }
        let (target, load) = Target::of(&folder.file("model-i16.spk"), mixture.as_ref())?;
        print(&self.next_steps(&mixture, !truths.is_empty(), &target, &load))
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
        write(folder, mixture, MIXING.len(), &scene.mixture, &NAMES, scene.sources)
    }

    fn next_steps(&self, mixture: &str, has_truth: bool, target: &Target, load: &str) -> String {
        let Target { core, mcpu, board, clock, .. } = target;
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
  static spk_stream *stream;
  spk_stream_init(memory, sizeof memory, model_blob, sizeof model_blob, &stream); /* once */
  spk_stream_process_i16(stream, microphones, sources, samples);                  /* every block */
Is it fast enough? The same under QEMU, block by block:
  make -C examples/firmware-c BOARD={board} CLOCK_HZ={clock} BLOCK={BINS} realtime \\
      BLOB=$PWD/{folder}/model-i16.spk SAMPLES=$PWD/{mixture}
"
        )
    }
}

/// Processors that the demo is for, the slower first: the first that runs the model in real time is advised.
const TARGETS: [Target; 2] = [
    Target { short: "m4f", core: "Cortex-M4F", mcpu: "cortex-m4", board: "mps2-an386", clock: 168e6 },
    Target { short: "m7", core: "Cortex-M7", mcpu: "cortex-m7", board: "mps2-an500", clock: 480e6 },
];

/// A processor.
struct Target {
    short: &'static str,
    core: &'static str,
    mcpu: &'static str,
    /// That QEMU emulates.
    board: &'static str,
    clock: f64,
}

impl Target {
    /// The one that a model is for, and what a recording takes of it, in words.
    fn of(path: &Path, mixture: &Path) -> Result<(Self, String)> {
        let file = ModelFile::read(path)?;
        let blob = file.blob()?;
        let mut text = String::new();
        let mut advised = None;
        for target in TARGETS {
            let [mean, worst] = share(&blob, mixture, target.short, target.clock)?.map(|share| 100.0 * share);
            let is_late = worst > 100.0;
            text += &format!(
                "{}{} at {} MHz: {mean:.0} % of the processor, {worst:.0} % in the worst block{}.",
                if text.is_empty() { "" } else { " " },
                target.core,
                target.clock / 1e6,
                if is_late { ", so not in real time" } else { "" }
            );
            advised = Some(target);
            if !is_late {
                break;
            }
        }
        let none = || Error::run("there is no processor to advise", "the demo", "report this as a bug");
        Ok((advised.ok_or_else(none)?, text))
    }
}

/// The mixture, as a converter gives it and `make realtime` of the firmware examples takes it; and the truth.
fn write(
    folder: &Folder,
    mixture: &Path,
    channels: usize,
    samples: &[f32],
    names: &[&str],
    sources: Vec<Vec<f64>>,
) -> Result<Vec<Truth>> {
    files::write_atomically(mixture, |writer| wav(writer, RATE, channels, samples, WavForm::I16))?;
    let mut truths = Vec::new();
    for (name, samples) in names.iter().zip(sources) {
        let samples32: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        write_wav(folder.file(&format!("true-{name}.wav")), RATE, 1, &samples32)?;
        truths.push(Truth { name: (*name).into(), rate: Some(RATE), samples });
    }
    Ok(truths)
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
    long_enough(&source, BINS)
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
