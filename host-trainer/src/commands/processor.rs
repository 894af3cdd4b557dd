//! What a model takes of a processor: predictions for every core, and the share of one that a stream takes.
//!
//! share = points a second x instructions x cycles per instruction / clock. Instructions are predicted from measured
//! ones ([`crate::predict`]), of a stream with its transform or windows; cycles per instruction are an assumption, which `--cpi`
//! replaces.

use super::model_file::{warn_of_rate, warn_unless_at};
use crate::data::Source;
use crate::predict::channels::Hop;
use crate::predict::{CORES, Core, Prediction, Predictor, rooms};
use crate::{Error, Result};
use serde::Serialize;
use spikelet::frame::Form;
use spikelet::{Blob, Engine, SpatialModel, SpectralModel};
use std::path::{Path, PathBuf};

#[derive(Debug, Default, clap::Args)]
pub(super) struct Processor {
    /// Show one core only: m0, m4f, m7, m33 or rv32
    #[arg(long, value_name = "CORE", value_parser = core)]
    core: Option<Core>,
    /// Its clock, such as 168MHz: says how much of the processor a stream takes
    #[arg(long, value_name = "HERTZ", requires = "core", value_parser = clock)]
    clock: Option<f64>,
    /// Samples a second of the stream, such as 16000 or 16kHz [default: what the model says]
    #[arg(long, value_name = "HERTZ", requires = "clock", value_parser = rate)]
    rate: Option<f64>,
    /// Cycles of an average instruction [default: 1.0 for m7, 1.6 for m0, else 1.5, which assumes memory that does not
    /// make the core wait]
    #[arg(long, value_name = "CYCLES", requires = "clock", value_parser = cycles)]
    cpi: Option<f64>,
    /// Predict for these points, as `spikelet infer` takes them, or the blocks of this recording instead of those that the model draws
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
}

/// In JSON: what the cores take.
#[derive(Debug, Serialize)]
pub(super) struct OnCore {
    pub core: &'static str,
    /// Of an average sample.
    pub instructions: u64,
    pub instructions_by_stage: [u64; 3],
    /// Of the worst case, however loud: a margin above all samples that were tried, not a bound.
    pub instructions_worst: u64,
    /// Of a stream for each point, with its transform or windows; none where points are samples.
    pub instructions_streamed: Option<u64>,
    /// The same in the worst block, with the margin of the worst sample.
    pub instructions_worst_block: Option<u64>,
    pub flash_bytes: usize,
    pub text_bytes: u32,
    pub arena_bytes: usize,
    pub stack_bytes: u32,
    /// Whether shapes like this were measured.
    pub within_fit: bool,
    /// What is not like them.
    pub beyond: Option<String>,
}

/// In JSON: what a stream takes of one core.
#[derive(Debug, Serialize)]
pub(super) struct Load {
    core: &'static str,
    clock: f64,
    points_per_second: f64,
    cycles_per_instruction: f64,
    /// Of the processor, on average.
    share: f64,
    /// In the worst block of a stream, the time of a block being the time in which its samples come.
    share_worst_block: Option<f64>,
    /// If every sample were the worst.
    share_worst: f64,
    /// What instructions are counted of.
    #[serde(skip)]
    unit: Unit,
}

/// What instructions are counted of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Point,
    Hop,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Hop => "hop",
        }
    }
}

/// What there is to say about cores.
#[derive(Debug)]
pub(super) struct Cores {
    pub on_core: Vec<OnCore>,
    /// Why there are none.
    pub unknown: Option<String>,
    pub load: Option<Load>,
    /// The share of loud samples among those the model draws.
    pub loud: Option<f64>,
}

impl Processor {
    /// One core, for this data or for what the model draws.
    pub fn of(core: Core, data: Option<&Path>) -> Self {
        Self { core: Some(core), data: data.map(Path::to_path_buf), ..Self::default() }
    }

    /// Predictions for the cores asked for. A model that nothing is known of is an error only if a core was named.
    pub fn predict(&self, blob: &Blob<'_>, engine: Engine) -> Result<Cores> {
        let predictor = match &self.data {
            Some(path) => Predictor::of_samples(&blob.model(), engine, points(path, blob)?.into_iter()),
            None => Predictor::new(&blob.model(), engine),
        };
        let predictor = predictor.and_then(|predictor| predictor.with_stream(blob, engine));
        let predictor = predictor.and_then(|predictor| match &self.data {
            Some(path) => predictor.with_blocks_of(blob, engine, &recording(path, blob)?),
            None => Ok(predictor),
        });
        let predictor = match predictor {
            Ok(predictor) => predictor,
            Err(error) if self.core.is_some() => return Err(error),
            Err(error) => {
                return Ok(Cores {
                    on_core: Vec::new(),
                    unknown: Some(error.to_string()),
                    load: None,
                    loud: None,
                });
            }
        };
        let predictions: Vec<Prediction> = self.chosen().filter_map(|core| predictor.on(core)).collect();
        let load = match (self.clock, predictions.first()) {
            (Some(clock), Some(prediction)) => Some(self.load(blob, clock, prediction)?),
            _ => None,
        };
        let on_core = predictions.iter().map(|on| OnCore::new(blob.byte_len(), on)).collect();
        Ok(Cores { on_core, unknown: None, load, loud: Some(predictor.loud()) })
    }

    fn chosen(&self) -> impl Iterator<Item = Core> {
        let chosen = self.core;
        CORES.into_iter().filter(move |core| chosen.is_none_or(|chosen| chosen == *core))
    }

    /// The same for a spatial stream, hop by hop.
    pub fn predict_room(&self, model: &SpatialModel<'_>) -> Result<Cores> {
        if self.data.is_some() {
            let what = "a hop of a spatial model takes the same work whatever is heard";
            return Err(Error::input(what, "--data", "leave it out"));
        }
        let predictions =
            self.chosen().map(|core| rooms::predict(core, model)).collect::<Result<Vec<_>>>()?;
        self.hop_by_hop(
            model.byte_len(),
            model.hop(),
            model.rate(),
            predictions.into_iter().flatten().collect(),
        )
    }

    /// And for one of sources in one channel.
    pub fn predict_channel(&self, model: &SpectralModel<'_>) -> Result<Cores> {
        let hop = match &self.data {
            Some(path) => Hop::of_recording(model, &only_channel(path, model)?)?,
            None => Hop::new(model)?,
        };
        let predictions = self.chosen().filter_map(|core| hop.on(core)).collect();
        self.hop_by_hop(model.byte_len(), model.hop(), model.rate(), predictions)
    }

    fn hop_by_hop(&self, bytes: usize, hop: usize, rate: u32, predictions: Vec<Prediction>) -> Result<Cores> {
        let load = match (self.clock, predictions.first()) {
            (Some(clock), Some(prediction)) => {
                let known = Some(f64::from(rate)).filter(|&rate| rate > 0.0);
                Some(self.share(clock, Unit::Hop, self.rate_or(known)? / hop as f64, prediction))
            }
            _ => None,
        };
        let on_core = predictions.iter().map(|on| OnCore::new(bytes, on)).collect();
        Ok(Cores { on_core, unknown: None, load, loud: None })
    }

    /// Samples a second, from the command line or from the model.
    fn rate_or(&self, known: Option<f64>) -> Result<f64> {
        self.rate.or(known).ok_or_else(|| {
            let what = "the model does not know how many samples there are a second";
            Error::input(what, "--clock", "add --rate, such as --rate 16000")
        })
    }

    fn load(&self, blob: &Blob<'_>, clock: f64, prediction: &Prediction) -> Result<Load> {
        let frame = blob.frame();
        let rate = self.rate_or(frame.map(|frame| f64::from(frame.rate)).filter(|&rate| rate > 0.0))?;
        let points_per_second = match frame.map(|frame| frame.form) {
            Some(Form::Windows { hop, .. }) => rate / f64::from(hop),
            Some(Form::Patches { .. }) => {
                let advice = "leave --clock away: patches of pictures have no rate";
                return Err(Error::input("the points of this model are patches", "--clock", advice));
            }
            _ => rate,
        };
        Ok(self.share(clock, Unit::Point, points_per_second, prediction))
    }

    fn share(&self, clock: f64, unit: Unit, points_per_second: f64, prediction: &Prediction) -> Load {
        let cycles_per_instruction = self.cpi.unwrap_or(prediction.core.cycles_per_instruction);
        let instructions = prediction.instructions();
        // What a stream takes beside inference is the same for all samples.
        let streamed = prediction.streamed.unwrap_or(instructions);
        let share = |instructions: f64| points_per_second * instructions * cycles_per_instruction / clock;
        Load {
            core: prediction.core.name,
            clock,
            points_per_second,
            cycles_per_instruction,
            share: share(streamed),
            share_worst_block: prediction.worst_block.map(share),
            share_worst: share(prediction.worst + (streamed - instructions).max(0.0)),
            unit,
        }
    }
}

/// What a recording takes of a core at a clock, by a model that knows its rate: on average, and in the worst block.
pub(super) fn share(blob: &Blob<'_>, recording: &Path, core: &str, clock: f64) -> Result<[f64; 2]> {
    let unknown = || Error::run("there is no such core", core, "report this as a bug");
    let chosen = Core::find(core).ok_or_else(unknown)?;
    let processor = Processor { clock: Some(clock), ..Processor::of(chosen, Some(recording)) };
    let load = processor.predict(blob, Engine::of_kind(blob.kind()))?.load;
    let nothing = || Error::run("nothing is known about this model", core, "choose another core");
    load.map(|load| [load.share, load.share_worst_block.unwrap_or(load.share_worst)]).ok_or_else(nothing)
}

impl OnCore {
    fn new(blob_bytes: usize, prediction: &Prediction) -> Self {
        let round = |instructions: f64| instructions.round() as u64;
        Self {
            core: prediction.core.name,
            instructions: round(prediction.instructions()),
            instructions_by_stage: prediction.stages.map(round),
            instructions_worst: round(prediction.worst),
            instructions_streamed: prediction.streamed.map(round),
            instructions_worst_block: prediction.worst_block.map(round),
            flash_bytes: prediction.text_bytes as usize + blob_bytes,
            text_bytes: prediction.text_bytes,
            arena_bytes: prediction.arena_bytes,
            stack_bytes: prediction.stack_bytes,
            within_fit: prediction.beyond.is_none(),
            beyond: prediction.beyond.clone(),
        }
    }
}

impl Cores {
    /// Rows of the table.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows: Vec<_> = self
            .on_core
            .iter()
            .map(|on| {
                let beyond = on.beyond.as_ref().map_or(String::new(), |why| format!(" (a guess: {why})"));
                let bytes = format!("flash {}, stack {} bytes", on.flash_bytes, on.stack_bytes);
                let streamed = on.instructions_streamed;
                let in_a_block = on.instructions_worst_block.unwrap_or_default();
                let streamed = streamed.map_or(String::new(), |n| {
                    format!(" (for each point of a stream {n}, {in_a_block} in the worst block)")
                });
                let text = format!(
                    "{} instructions{streamed}, at worst {}; {bytes}{beyond}",
                    on.instructions, on.instructions_worst
                );
                (on.core, text)
            })
            .collect();
        rows.extend(self.unknown.as_ref().map(|reason| ("on a core", reason.clone())));
        rows.extend(
            self.loud.map(|loud| ("loud draws", format!("{:.0} % of the samples are refined", 100.0 * loud))),
        );
        if let Some(load) = &self.load {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            let block = load
                .share_worst_block
                .map_or(String::new(), |share| format!(", {} in the worst block", percent(share)));
            let too_much = match (load.share > 1.0, load.share_worst_block.unwrap_or(load.share_worst) > 1.0)
            {
                (true, _) => ": too slow",
                (_, true) if load.share_worst_block.is_some() => ": the worst block is too slow",
                (_, true) => ": the worst case is too slow",
                _ => "",
            };
            let unit = load.unit.name();
            rows.push((
                "processor",
                format!(
                    "{} of {} MHz{block}, {} if every {unit} were the worst{too_much} ({} {unit}s a second, {} cycles an \
                     instruction assumed)",
                    percent(load.share),
                    load.clock / 1e6,
                    percent(load.share_worst),
                    load.points_per_second,
                    load.cycles_per_instruction
                ),
            ));
        }
        rows
    }
}

/// Points spread evenly over a file.
fn points(path: &Path, blob: &Blob<'_>) -> Result<Vec<Vec<f32>>> {
    let mut source = Source::for_model(path, blob, 1)?;
    let (all, dims) = (source.points(), blob.model().shape.dims);
    if source.dims() != dims || all == 0 {
        let what =
            format!("{all} points of {} dimensions do not fit the model, which has {dims}", source.dims());
        return Err(Error::input(what, path.display(), "choose data that the model was made for"));
    }
    warn_of_rate(&source, blob);
    let taken = all.min(POINTS);
    let mut point = Vec::new();
    let read = (0..taken).map(|n| {
        source.read_chunk((n as u128 * all as u128 / taken as u128) as usize, 1, &mut point)?;
        Ok(point.iter().map(|&y| y as f32).collect())
    });
    read.collect()
}

/// The beginning of a recording of one channel.
fn only_channel(path: &Path, model: &SpectralModel<'_>) -> Result<Vec<f32>> {
    let mut source = Source::open(path)?;
    if source.rate().is_none() || source.dims() != 1 {
        let advice = "give a .wav file of one channel";
        return Err(Error::input("this is no recording of one channel", path.display(), advice));
    }
    warn_unless_at(&source, model.rate());
    let mut values = Vec::new();
    source.read_chunk(0, source.points().min(SAMPLES), &mut values)?;
    Ok(values.into_iter().map(|y| y as f32).collect())
}

/// Points of a file that are looked at.
const POINTS: usize = 500;
/// Samples of a recording whose blocks are counted.
const SAMPLES: usize = 500_000;

/// The beginning of a recording, all channels interleaved; only the first where a model takes one; nothing of other files.
fn recording(path: &Path, blob: &Blob<'_>) -> Result<Vec<f32>> {
    let mut source = Source::open(path)?;
    if source.rate().is_none() {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    source.read_chunk(0, source.points().min(SAMPLES), &mut values)?;
    let one_by_one = matches!(blob.frame().map(|frame| frame.form), Some(Form::Windows { .. }));
    Ok(values.into_iter().step_by(if one_by_one { source.dims() } else { 1 }).map(|y| y as f32).collect())
}

pub(super) fn core(name: &str) -> Result<Core, String> {
    let names = CORES.map(|core| core.short).join(", ");
    Core::find(name).ok_or_else(|| format!("no such core was measured; choose one of {names}"))
}

/// Slowest clock of a processor that is believed: less is a slip of the unit.
const SLOWEST: f64 = 1e4;

/// The clock of a processor, with its unit: of 168 nobody can tell whether it is Hz or MHz.
pub(super) fn clock(text: &str) -> Result<f64, String> {
    let hertz = frequency(text)?;
    if !text.trim().to_ascii_lowercase().ends_with("hz") {
        // 168 are megahertz, 168000000 are hertz.
        let unit = if hertz < SLOWEST { "MHz" } else { "Hz" };
        return Err(format!("a clock needs its unit: write {}{unit}", text.trim()));
    }
    if hertz < SLOWEST {
        return Err(format!("{hertz} Hz is too slow for a processor: give 10 kHz or more, such as 168MHz"));
    }
    Ok(hertz)
}

/// Samples a second, with or without a unit.
fn rate(text: &str) -> Result<f64, String> {
    frequency(text).map_err(|_| "give samples a second, 1 or more, such as 16000 or 16kHz".into())
}

/// Hertz, with or without a unit.
fn frequency(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let units = [("khz", 1e3), ("mhz", 1e6), ("ghz", 1e9), ("hz", 1.0), ("", 1.0)];
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, factor)))
        .unwrap_or((&lower, &1.0));
    match digits.trim().parse::<f64>().map(|number| number * factor) {
        Ok(hertz) if (1.0..=1e12).contains(&hertz) => Ok(hertz),
        _ => Err("give 1 Hz to 1000 GHz as a number with Hz, kHz, MHz or GHz, such as 168MHz".into()),
    }
}

fn cycles(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(cycles) if (0.1..=1000.0).contains(&cycles) => Ok(cycles),
        _ => Err("choose 0.1 to 1000 cycles".into()),
    }
}
