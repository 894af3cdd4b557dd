//! `spikelet advise`: which model to train on some data for some device, what it will cost, and the commands.

mod choose;
mod clusters;
mod fit;
mod look;
mod rooms;
mod sketch;
mod spectra;
mod whole;
mod words;

use super::demo::step;
use super::output::{print, refuse_description};
use super::processor::{clock, core};
use crate::parameters::ModelKind;
use crate::predict::Core;
use crate::prepare::StatesName;
use crate::{Error, Result};
use choose::{Choice, best, choices};
use fit::Limits;
use look::{Content, Look};
use sketch::Sketch;
use spikelet::frame::Form;
use spikelet::spatial::{MOST_MICROPHONES, MOST_SOURCES};
use std::path::{Path, PathBuf};

/// Say which model to train on some data for some device, and what it will cost there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks at the data (channels, rate, band, delays between microphones, sign, directions and clusters that stand out) and at the target, and says
which model, front end, number of latents, states and encoding to use, and why. Cost is predicted from measurements, as by
`spikelet inspect`, for a model of the same shape, of recordings after a short training; quality is that of the experiments on data of this kind. Where nothing fits the
target, what comes closest is shown. The commands are printed; --train runs them.

Examples:
  spikelet advise mixture.wav
  spikelet advise mixture.wav --core m4f --clock 168MHz --ram 64K --flash 256K --latency 20ms
  spikelet advise mixture.wav --sources 3 --core m7 --clock 480MHz --train --out voices.spk
  spikelet advise points.npy --model gmm --sources 8 --core m0")]
pub(super) struct Advise {
    /// .wav, .npy, .npz, .csv or .png
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// The core: m0, m4f, m7, m33 or rv32
    #[arg(long, value_name = "CORE", value_parser = core, default_value = "m4f")]
    core: Core,
    /// Its clock, such as 168MHz
    #[arg(long, value_name = "HERTZ", value_parser = clock)]
    clock: Option<f64>,
    /// RAM for memory and stack of the model, such as 64K
    #[arg(long, value_name = "BYTES", value_parser = size)]
    ram: Option<u64>,
    /// Flash for library and model, such as 256K
    #[arg(long, value_name = "BYTES", value_parser = size)]
    flash: Option<u64>,
    /// How late sources may come, such as 20ms
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    latency: Option<f64>,
    /// How many sources there are [default: as many as directions stand out in the data]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    sources: Option<u16>,
    /// The kind of model, for tables and arrays, if you know it: gsc, bsc, nmf, mca or gmm [default: what the data look like]
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    model: Option<ModelKind>,
    /// Run the commands
    #[arg(long)]
    train: bool,
    /// The model that the commands write
    #[arg(long, value_name = "MODEL.spk", default_value = "model.spk")]
    out: PathBuf,
}

impl Advise {
    pub fn run(self) -> Result<()> {
        refuse_description(&self.out, "spk")?;
        let look = Look::at(&self.data)?;
        self.check_model(&look)?;
        let limits = Limits { clock: self.clock, ram: self.ram, flash: self.flash, latency: self.latency };
        let sources = self.sources.map(usize::from);
        let mut text = words::data(&look, &self.data, sources) + &words::target(self.core, &limits);
        match look.content {
            Content::Channels { apart: true, channels, rate, .. } => {
                let found = look.directions.unwrap_or(channels).clamp(2, channels.min(MOST_SOURCES));
                let latents = sources.unwrap_or(found);
                check_room(channels, latents, &self.data)?;
                let (choice, cost) = rooms::best([channels, latents], rate, self.core, &limits)?;
                text += &whole::spatial(&choice, self.sources.is_some());
                text += &match cost {
                    Some(cost) => words::cost(&cost, self.core, &limits, ""),
                    None => whole::unknown_cost(self.core),
                };
                return self.finish(text + &whole::spatial_quality(&choice), self.spatial_commands(&choice));
            }
            Content::Mono { .. } => {
                let advised = spectra::best(&self.data, self.core, &limits);
                text += &whole::one_channel(&advised, self.core, &limits);
                return self
                    .finish(text, self.one_channel_commands(advised.ok().map(|advice| advice.choice)));
            }
            _ => {}
        }
        let choices = choices(&look, self.model, sources, &limits, self.has_float_unit());
        // The first is what `train` does by itself; others have its parameters.
        let sketch = choices.first().map(|choice| Sketch::of(&self.data, choice)).transpose()?.flatten();
        let (choice, cost) = best(&choices, self.core, &limits, sketch.as_ref())?;
        text += &words::choice(&look, &choice, self.sources.is_some(), self.has_float_unit());
        text += &words::cost(&cost, self.core, &limits, "");
        text += &words::quality(&look, &choice);
        self.finish(text, self.commands(&look, &choice))
    }

    /// Refuses a kind that the data or this command have no use for.
    fn check_model(&self, look: &Look) -> Result<()> {
        let Some(kind) = self.model else { return Ok(()) };
        let place = format!("--model {}", kind.name());
        match look.content {
            Content::Points { .. } if kind == ModelKind::Ssmca => {
                let what = "what a sampled model takes depends on how it is sampled";
                Err(Error::input(what, place, "train one, and see `spikelet inspect --sweeps`"))
            }
            Content::Points { negative: true, .. } if kind.kind().is_non_negative() => {
                let what = format!("{} has no negative numbers, and the data has", kind.name());
                Err(Error::input(what, place, "give magnitudes, or choose gsc, bsc or gmm"))
            }
            Content::Points { .. } => Ok(()),
            _ => {
                let what = "recordings and pictures say themselves which kind of model they need";
                Err(Error::input(what, place, "leave it out"))
            }
        }
    }

    fn has_float_unit(&self) -> bool {
        !matches!(self.core.short, "m0" | "rv32")
    }

    /// Prints the advice and the commands, and runs them where that is asked for.
    fn finish(&self, mut text: String, commands: Vec<Vec<String>>) -> Result<()> {
        if !self.train {
            text += "\nCommands (--train runs them):\n";
            for words in &commands {
                text += &format!("  spikelet {}\n", super::demo::line(words));
            }
            return print(&text);
        }
        print(&text)?;
        commands.iter().try_for_each(|words| step(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn path(&self, ending: &str) -> String {
        self.out.with_extension(ending).display().to_string()
    }

    /// To be run with a recording of every source, and what comes then.
    fn one_channel_commands(&self, choice: Option<spectra::Choice>) -> Vec<Vec<String>> {
        let latents = choice.map_or(spectra::LATENTS, |choice| choice.latents);
        let mut train = words_of(&format!("train --model mca --latents {latents} --transform spectrum"));
        if let Some(choice) = choice.filter(|choice| choice.is_half) {
            train.extend(words_of(&format!("--hop {}", choice.hop)));
        }
        train.extend([self.data.display().to_string(), "--out".into(), self.out.display().to_string()]);
        vec![train]
    }

    fn commands(&self, look: &Look, choice: &Choice) -> Vec<Vec<String>> {
        let (data, out) = (self.data.display().to_string(), self.out.display().to_string());
        let mut train =
            words_of(&format!("train --model {} --latents {}", choice.kind.name(), choice.latents));
        match choice.form {
            Form::Transform { bins, .. } => {
                train.extend(words_of(&format!("--transform mdct --bins {bins}")))
            }
            Form::Windows { length, hop } => train.extend(words_of(&format!("--frame {length} --hop {hop}"))),
            Form::Patches { width, height, .. } => {
                train.extend(words_of(&format!("--patch {width}x{height}")))
            }
            _ => {}
        }
        if choice.states == StatesName::Subsets && !choice.is_as_trained() {
            let flags = format!(
                "--engine truncated --selected {} --max-active {}",
                choice.selected, choice.max_active
            );
            train.extend(words_of(&flags));
        }
        if choice.latents > 32 {
            train.extend(words_of("--iterations 10"));
        }
        train.extend([data.clone(), "--out".into(), out.clone()]);
        let mut all = vec![train];
        let mut model = out;
        if choice.fixed || (choice.states == StatesName::Adaptive && !choice.is_as_trained()) {
            let encoding = if choice.fixed { "i16 --fixed-point" } else { "f32" };
            let small = self.path(if choice.fixed { "i16.spk" } else { "small.spk" });
            let mut quantize = vec!["quantize".into(), model];
            quantize.extend(words_of(&format!(
                "--encoding {encoding} --states adaptive --expansions {} --max-active {}",
                choice.expansions, choice.max_active
            )));
            quantize.extend(["--out".into(), small.clone()]);
            all.push(quantize);
            model = small;
        }
        let mut inspect = self.inspect(&model, choice.rate);
        if matches!(look.content, Content::Channels { .. }) {
            inspect.extend(["--data".into(), data.clone()]);
        }
        all.push(inspect);
        match look.content {
            Content::Channels { .. } => {
                all.push(vec![
                    "separate".into(),
                    model.clone(),
                    data,
                    "--out-dir".into(),
                    self.path("sources"),
                ]);
            }
            Content::Picture { .. } => {
                all.push(vec!["denoise".into(), model.clone(), data, self.path("clean.png")])
            }
            // Has commands of its own.
            Content::Mono { .. } => {}
            Content::Points { .. } => {
                all.push(vec!["infer".into(), model.clone(), data, "--out-dir".into(), self.path("results")]);
            }
        }
        all.push(vec!["export".into(), model, "--format".into(), "c".into(), "--out".into(), self.path("h")]);
        all
    }

    fn spatial_commands(&self, choice: &rooms::Choice) -> Vec<Vec<String>> {
        let (data, out) = (self.data.display().to_string(), self.out.display().to_string());
        let mut train = words_of(&format!("train --model spatial --latents {}", choice.sources));
        if !choice.is_usual() {
            train.extend(words_of(&format!("--frame {}", choice.length)));
        }
        train.extend([data.clone(), "--out".into(), out.clone()]);
        let mut all = vec![train];
        let mut model = out.clone();
        if choice.integers {
            model = self.path("i16.spk");
            all.push(
                [vec!["quantize".into(), out], words_of("--encoding i16 --out"), vec![model.clone()]]
                    .concat(),
            );
        }
        all.extend([
            self.inspect(&model, choice.rate),
            vec!["separate".into(), model.clone(), data, "--out-dir".into(), self.path("sources")],
            vec!["export".into(), model, "--format".into(), "c".into(), "--out".into(), self.path("h")],
        ]);
        all
    }

    fn inspect(&self, model: &str, rate: u32) -> Vec<String> {
        let mut inspect = vec!["inspect".into(), model.into(), "--core".into(), self.core.short.into()];
        if let (Some(clock), true) = (self.clock, rate > 0) {
            inspect.extend(["--clock".into(), format!("{}MHz", clock / 1e6)]);
        }
        inspect
    }
}

/// Refuses what a spatial model cannot be.
fn check_room(channels: usize, sources: usize, data: &Path) -> Result<()> {
    if channels > MOST_MICROPHONES {
        let what = format!("{channels} microphones that are apart are more than a spatial model can have");
        let advice = format!("give {MOST_MICROPHONES} of the channels");
        return Err(Error::input(what, data.display(), advice));
    }
    if sources > MOST_SOURCES {
        let what = format!("{sources} sources are more than a spatial model can have");
        return Err(Error::input(what, "--sources", format_args!("ask for 1 to {MOST_SOURCES}")));
    }
    Ok(())
}

fn words_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Bytes, with or without K or M (of 1024).
fn size(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, factor) = match number.strip_suffix('k') {
        Some(digits) => (digits, 1024.0),
        None => number.strip_suffix('m').map_or((number, 1.0), |digits| (digits, 1024.0 * 1024.0)),
    };
    match digits.trim().parse::<f64>().map(|number| number * factor) {
        Ok(bytes) if (256.0..=1e12).contains(&bytes) => Ok(bytes as u64),
        Ok(_) => Err("give 256 bytes or more, such as 64K".into()),
        Err(_) => Err("give a number of bytes, such as 65536, 64K or 1M".into()),
    }
}

/// Seconds, with a unit.
fn seconds(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, factor)));
    match found.map(|(digits, factor)| digits.trim().parse::<f64>().map(|number| number * factor)) {
        Some(Ok(seconds)) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        Some(_) => Err("give a time above 0, such as 20ms".into()),
        None => Err(format!("a time needs its unit: write {0}ms or {0}s", text.trim())),
    }
}

/// The name of a file, for a line of text.
fn name(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("1 MiB"), Ok(1 << 20));
        assert_eq!(size("4096"), Ok(4096));
        for wrong in ["64", "K", "", "-3K", "1e30", "64G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!((seconds("20ms").unwrap() - 0.02).abs() < 1e-12);
        assert_eq!(seconds("1s"), Ok(1.0));
        for wrong in ["20", "ms", "0ms", "-1s", "2h"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
