//! `spikelet advise`: which model to train on some data for some device, what it will cost, and the commands.

mod fit;
mod look;
mod words;

use super::demo::step;
use super::output::print;
use super::processor::{clock, core};
use crate::parameters::ModelKind;
use crate::predict::Core;
use crate::{Error, Result};
use fit::{Choice, Cost, Limits};
use look::{Content, Look};
use spikelet::frame::Form;
use std::path::{Path, PathBuf};

/// Up to so many latents all states are looked at, as `train` does it.
const EXACT_UP_TO: usize = 10;

/// Say which model to train on some data for some device, and what it will cost there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks at the data (channels, rate, band, delays between microphones, sign, directions that stand out) and at the target, and says
which model, front end, number of latents, states and encoding to use, and why. Cost is predicted from measurements, as by
`spikelet inspect`, for a model of the same shape; quality is that of the experiments on data of this kind. Where nothing fits the
target, what comes closest is shown. The commands are printed; --train runs them.

Examples:
  spikelet advise mixture.wav
  spikelet advise mixture.wav --core m4f --clock 168MHz --ram 64K --flash 256K --latency 20ms
  spikelet advise mixture.wav --sources 3 --core m7 --clock 480MHz --train --out voices.spk")]
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
    /// Run the commands
    #[arg(long)]
    train: bool,
    /// The model that the commands write
    #[arg(long, value_name = "MODEL.spk", default_value = "model.spk")]
    out: PathBuf,
}

impl Advise {
    pub fn run(self) -> Result<()> {
        let look = Look::at(&self.data)?;
        let limits = Limits { clock: self.clock, ram: self.ram, flash: self.flash, latency: self.latency };
        let mut text = words::data(&look, &self.data) + &words::target(self.core, &limits);
        let sources = self.sources.map(usize::from);
        if let Content::Channels { apart: true, channels, .. } = look.content {
            let latents = sources.unwrap_or(look.directions.unwrap_or(channels).clamp(2, channels.max(2)));
            text += &words::spatial(latents);
            return self.finish(text, self.spatial_commands(latents));
        }
        let choices = choices(&look, sources, &limits, self.has_float_unit());
        let (choice, cost) = best(&choices, self.core, &limits)?;
        text += &words::choice(&look, &choice, self.sources.is_some());
        text += &words::cost(&cost, self.core, &limits);
        text += &words::quality(&look, &choice);
        self.finish(text, self.commands(&look, &choice))
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

    fn commands(&self, look: &Look, choice: &Choice) -> Vec<Vec<String>> {
        let (data, out) = (self.data.display().to_string(), self.out.display().to_string());
        let mut train =
            words_of(&format!("train --model {} --latents {}", choice.kind.name(), choice.latents));
        match choice.form {
            Form::Transform { bins, .. } => {
                train.extend(words_of(&format!("--transform mdct --bins {bins}")))
            }
            Form::Windows { length, hop } => train.extend(words_of(&format!("--frame {length} --hop {hop}"))),
            Form::Patches { width, height } => train.extend(words_of(&format!("--patch {width}x{height}"))),
            _ => {}
        }
        let by_default = default_states(choice.kind, choice.latents);
        if (choice.selected, choice.max_active) != by_default {
            let flags = format!("--selected {} --max-active {}", choice.selected, choice.max_active);
            train.extend(words_of(&flags));
        }
        if choice.latents > 32 {
            train.extend(words_of("--iterations 10"));
        }
        train.extend([data.clone(), "--out".into(), out.clone()]);
        let mut all = vec![train];
        let mut model = out;
        if choice.fixed {
            let small = self.path("i16.spk");
            all.push(vec![
                "quantize".into(),
                model,
                "--encoding".into(),
                "i16".into(),
                "--fixed-point".into(),
                "--out".into(),
                small.clone(),
            ]);
            model = small;
        }
        let mut inspect = vec!["inspect".into(), model.clone(), "--core".into(), self.core.short.into()];
        if let (Some(clock), true) = (self.clock, choice.rate > 0) {
            inspect.extend(["--clock".into(), format!("{}MHz", clock / 1e6)]);
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
            Content::Mono { .. } => {}
            Content::Points { .. } => {
                all.push(vec!["infer".into(), model.clone(), data, "--out-dir".into(), self.path("results")]);
            }
        }
        all.push(vec!["export".into(), model, "--format".into(), "c".into(), "--out".into(), self.path("h")]);
        all
    }

    fn spatial_commands(&self, latents: usize) -> Vec<Vec<String>> {
        let (data, out) = (self.data.display().to_string(), self.out.display().to_string());
        let mut train = words_of(&format!("train --model spatial --latents {latents}"));
        train.extend([data.clone(), "--out".into(), out.clone()]);
        vec![
            train,
            vec!["inspect".into(), out.clone(), "--core".into(), self.core.short.into()],
            vec!["separate".into(), out.clone(), data, "--out-dir".into(), self.path("sources")],
            vec!["export".into(), out, "--format".into(), "c".into(), "--out".into(), self.path("h")],
        ]
    }
}

/// H' and gamma that `train` takes by itself.
fn default_states(kind: ModelKind, latents: usize) -> (usize, usize) {
    let few = if kind == ModelKind::Mca { 6 } else { EXACT_UP_TO };
    if latents <= few { (latents, latents) } else { (few, if kind == ModelKind::Mca { 3 } else { 4 }) }
}

fn words_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// What could be used on this data, the best first and the cheapest last.
fn choices(look: &Look, sources: Option<usize>, limits: &Limits, floats: bool) -> Vec<Choice> {
    let found = look.directions.unwrap_or(0);
    let choice = |kind, dims, latents, form, rate| {
        let (selected, max_active) = default_states(kind, latents);
        Choice { kind, dims, latents, selected, max_active, form, rate, fixed: false }
    };
    let mut all = Vec::new();
    match look.content {
        Content::Channels { channels, rate, .. } => {
            let latents = sources.unwrap_or(found.clamp(channels, 2 * channels));
            let longest = limits.latency.map_or(2048.0, |seconds| (seconds * f64::from(rate) + 1.0) / 2.0);
            let most = super::train::bins(rate);
            let fits = |bins: &u32| f64::from(*bins) <= longest;
            let first =
                std::iter::successors(Some(most), |bins| Some(bins / 2)).take_while(|bins| *bins >= 16);
            // Nothing shorter fits: the shortest comes closest.
            let bins = first.into_iter().find(fits).unwrap_or(16);
            let form = Form::Transform { bins, channels: channels as u32 };
            all.push(choice(ModelKind::Gsc, channels, latents, form, rate));
        }
        Content::Mono { rate, .. } => {
            let (length, hop) = ((rate / 125).max(8), (rate / 500).max(2));
            for (latents, times) in [(40, 1), (40, 2), (20, 2)] {
                let form = Form::Windows { length, hop: hop * times };
                all.push(choice(ModelKind::Gsc, length as usize, sources.unwrap_or(latents), form, rate));
            }
        }
        Content::Picture { .. } => {
            for (side, latents) in [(8, 256), (8, 64), (6, 64)] {
                let form = Form::Patches { width: side, height: side };
                let dims = (side * side) as usize;
                all.push(choice(ModelKind::Gsc, dims, sources.unwrap_or(latents), form, 0));
            }
        }
        Content::Points { dims, negative, .. } => {
            let kind = if negative { ModelKind::Gsc } else { ModelKind::Nmf };
            let few = if found > 0 { found.clamp(dims.min(2), 2 * dims) } else { dims.min(64) };
            all.push(choice(kind, dims, sources.unwrap_or(few), Form::Samples, 0));
            // Fewer elements, where there is no number of sources to find.
            let fewer =
                [few / 2, few / 4].into_iter().filter(|&few| sources.is_none() && found == 0 && few >= 8);
            all.extend(fewer.map(|few| choice(kind, dims, few, Form::Samples, 0)));
        }
    }
    let mut with_states = Vec::new();
    for choice in all {
        // Fewer states for the same latents, then the next.
        for max_active in [choice.max_active, 3, 2, 1] {
            let cheaper = Choice {
                max_active: max_active.min(choice.max_active),
                fixed: !floats && max_active <= 3,
                ..choice.clone()
            };
            if !with_states.contains(&cheaper) {
                with_states.push(cheaper);
            }
        }
    }
    with_states
}

/// The first that fits, else the one that comes closest.
fn best(choices: &[Choice], core: Core, limits: &Limits) -> Result<(Choice, Cost)> {
    let mut closest: Option<(Choice, Cost)> = None;
    for choice in choices {
        let Some(cost) = choice.cost(core)? else {
            let what = format!("nothing is known about the cost of {} on {}", choice.kind.name(), core.name);
            return Err(Error::input(what, "--core", "choose another core"));
        };
        let tightest = cost.tightest(limits);
        if tightest <= 1.0 {
            return Ok((choice.clone(), cost));
        }
        if closest.as_ref().is_none_or(|(_, other)| tightest < other.tightest(limits)) {
            closest = Some((choice.clone(), cost));
        }
    }
    closest.ok_or_else(|| Error::run("there is nothing to choose from", "advise", "report this as a bug"))
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
