//! `spikelet train`: data to a model, by expectation maximisation.

mod checkpoint;
mod report;

use super::import::build;
use super::output::{Progress, print, refuse_overwriting};
use crate::files::{self, Staged};
use crate::prepare::{GramName, Options, check_truncation};
use crate::train::settings::{Engine, InitForm, NoiseForm, Precision, SlabForm};
use crate::train::{Next, Points, Prefer, Settings, State};
use crate::{Error, Result};
use checkpoint::Checkpoint;
use spikelet::capacity::MAX_ACTIVE;
use spikelet::{Kind, Shape};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Up to this many latents all states are looked at unless --engine says otherwise.
const EXACT_UP_TO: usize = 10;

/// Up to this many latents, and on fewer points than this, plain EM gets there as fast.
const PLAIN_UP_TO: usize = 32;
const PLAIN_BELOW: usize = 1000;

/// Learn a model from data
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Learns the dictionary, how often and how strongly each latent is on, and the noise. Writes MODEL.spk for
`spikelet infer` and `export`, and MODEL.json with all parameters, settings and the free energy of every iteration.
The same data, settings and seed give the same bits, whatever the number of threads.

Interrupted? Ctrl-C finishes the iteration and writes a checkpoint; the same command with --resume goes on, and ends in
the same bits. With --checkpoint FILE one is also written every few iterations.

Plain EM sees all points before every step and never lowers the likelihood. For large dictionaries stepwise EM is the
default: it takes a step after every batch of points, finds its dictionary in a fraction of the passes, and gives
latents that do nothing a new direction. Its free energies are sums over batches as they were met; only the
last is that of the final model. --batch 0 asks for plain EM.

Example, four sources from a recording with four channels:
  spikelet train --model gsc --latents 4 recording.wav --out model.spk")]
pub(super) struct Train {
    /// Kind of model; this version trains gsc, Gaussian sparse coding
    #[arg(long, value_name = "KIND")]
    model: String,
    /// H, how many latents (sources, dictionary elements) to learn
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    latents: u16,
    /// Points: .npy (N x D), .csv (a row each) or .wav (a sample of all channels each); several are joined
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// Model to write
    #[arg(long, value_name = "MODEL.spk")]
    out: PathBuf,
    /// Which states are looked at [default: exact up to 10 latents, else truncated]
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// H', latents kept per point [default: 10, at most --latents]
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: 4, at most --selected]
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// Do not keep the states with one latent on for latents that were not selected
    #[arg(long)]
    no_singletons: bool,
    /// Form of the noise covariance
    #[arg(long, value_enum, default_value = "shared")]
    noise: NoiseForm,
    /// Form of the slab
    #[arg(long, value_enum, default_value = "diagonal")]
    slab: SlabForm,
    /// Train on whitened data, best for mixtures; the model is for raw data, with full noise covariance
    #[arg(long)]
    whiten: bool,
    /// Numbers that inference computes in while training
    #[arg(long, value_enum, default_value = "f64")]
    precision: Precision,
    /// Points per M-step: stepwise EM, many small steps per pass over the data; 0 for plain EM, one step per pass
    /// [default: 0 for up to 32 latents or few points, else a 50th of the points, 100 to 4000]
    #[arg(long, value_name = "COUNT")]
    batch: Option<usize>,
    /// Where the columns of a first dictionary come from [default: random in plain EM, data in stepwise EM]
    #[arg(long, value_enum)]
    init: Option<InitForm>,
    /// Most iterations (passes over the data) per start
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    iterations: usize,
    /// Starts from different random parameters, of which one is kept [default: 4 in plain EM, which may end in a poor
    /// local optimum, 1 in stepwise EM]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    restarts: Option<u32>,
    /// Which start is kept
    #[arg(long, value_enum, default_value = "free-energy")]
    prefer: Prefer,
    /// A start ends when an iteration changes the free energy by less than this fraction [default: 1e-7, in stepwise
    /// EM 1e-3]
    #[arg(long, value_name = "FRACTION")]
    tolerance: Option<f64>,
    /// Smallest noise variance, as a fraction of the data's mean variance
    #[arg(long, value_name = "FRACTION", default_value_t = 1e-5)]
    noise_floor: f64,
    /// Seed of the random starts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Threads to compute on; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// File for checkpoints [default: MODEL.spk.checkpoint, written on Ctrl-C only]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Iterations between checkpoints
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint_every: u32,
    /// Go on from the checkpoint if there is one
    #[arg(long)]
    resume: bool,
}

impl Train {
    pub fn run(self) -> Result<()> {
        let json = self.out.with_extension("json");
        files::check_target(&self.out)?;
        files::check_target(&json)?;
        refuse_overwriting(&self.out, &self.data)?;
        // What is wrong with the flags shows before the data is read; only then it is known how many points there are.
        self.settings(0)?;
        let mut points = Points::open(&self.data)?;
        let settings = self.settings(points.len())?;
        self.check_angles(points.dims())?;
        let checkpoint = Checkpoint::new(self.checkpoint.as_deref(), &self.out);
        let mut state = match self.resume.then(|| checkpoint.read()).transpose()?.flatten() {
            Some(state) => checkpoint.accept(state, &settings, &points)?,
            None => State::new(settings, &mut points)?,
        };
        // Better now than after hours: data may be beyond the numbers that a model can hold.
        self.blob(&state, "")?;
        if self.train(&mut state, &mut points, &checkpoint)? {
            self.write(&state, &json)
        } else {
            let place = format!("start {}, iteration {}", state.current.number, state.current.history.len());
            let advice = format!("the same command with --resume goes on from {}", checkpoint.path.display());
            Err(Error::run("stopped before the end", place, advice))
        }
    }

    fn settings(&self, points: usize) -> Result<Settings> {
        if self.model != "gsc" {
            let what = format!("'{}' is not a kind of model that this version can train", self.model);
            return Err(Error::input(what, "--model", "it knows gsc"));
        }
        let positive = |value: f64, flag: &str| match value {
            v if v.is_finite() && v > 0.0 => Ok(v),
            v => Err(Error::input(format_args!("{v} is not a positive number"), flag, "give one")),
        };
        let latents = usize::from(self.latents);
        let engine = self.engine.unwrap_or(match latents {
            ..=EXACT_UP_TO if self.selected.is_none() && self.max_active.is_none() => Engine::Exact,
            _ => Engine::Truncated,
        });
        let (selected, max_active) = match engine {
            Engine::Truncated => {
                let selected = self.selected.unwrap_or(latents.min(10));
                (selected, self.max_active.unwrap_or(selected.min(4)))
            }
            Engine::Exact if self.selected.is_some() || self.max_active.is_some() => {
                let advice = "leave them away, or use --engine truncated";
                return Err(Error::input("all states are looked at", "--selected and --max-active", advice));
            }
            Engine::Exact if latents > MAX_ACTIVE.min(24) => {
                let what = format!("2^{latents} states for every point are too many");
                return Err(Error::input(what, "--engine exact", "use --engine truncated"));
            }
            Engine::Exact => (latents, latents),
        };
        let batch = self.batch.unwrap_or_else(|| automatic_batch(engine, latents, points));
        let settings = Settings {
            model: self.model.clone(),
            latents,
            selected,
            max_active,
            singletons: !self.no_singletons,
            engine,
            noise: self.noise,
            slab: self.slab,
            whiten: self.whiten,
            precision: self.precision,
            batch,
            init: self.init.unwrap_or(if batch > 0 { InitForm::Data } else { InitForm::Random }),
            iterations: self.iterations,
            restarts: self.restarts.map_or(if batch > 0 { 1 } else { 4 }, |starts| starts as usize),
            prefer: self.prefer,
            tolerance: match self.tolerance {
                Some(0.0) => 0.0,
                Some(tolerance) => positive(tolerance, "--tolerance")?,
                // A pass sees every batch under other parameters, so its free energy wavers.
                None if batch > 0 => 1e-3,
                None => 1e-7,
            },
            noise_floor: positive(self.noise_floor, "--noise-floor")?,
            seed: self.seed,
        };
        let singletons = settings.singletons;
        // D does not matter here.
        check_truncation(Shape { kind: Kind::Gsc, dims: 1, latents, selected, max_active, singletons })?;
        Ok(settings)
    }

    /// Only starts that differ can be compared, and no more than D columns can be at right angles.
    fn check_angles(&self, dims: usize) -> Result<()> {
        let place = "--prefer orthogonal";
        let (what, advice) = match self.prefer {
            Prefer::Orthogonal if self.restarts.unwrap_or(1) == 1 => {
                ("there is one start only".into(), "ask for more, such as --restarts 20".to_owned())
            }
            Prefer::Orthogonal if self.latents == 1 => {
                ("one latent has no angles".into(), "leave it away".to_owned())
            }
            Prefer::Orthogonal if usize::from(self.latents) > dims => {
                let what = format!("{} columns of {dims} numbers cannot be orthogonal", self.latents);
                (what, format!("ask for {dims} latents or fewer, or leave it away"))
            }
            _ => return Ok(()),
        };
        Err(Error::input(what, place, advice))
    }

    /// True when finished, false when the user stopped it.
    fn train(&self, state: &mut State, points: &mut Points, checkpoint: &Checkpoint) -> Result<bool> {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = self.threads.map_or_else(cores, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        // A second Ctrl-C ends the process as usual.
        let _ = ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        let starts = state.settings.restarts;
        let mut progress = Progress::new("training", starts * (state.settings.iterations + 1));
        progress
            .advance(state.current.number * (state.settings.iterations + 1) + state.current.history.len());
        let every = self.checkpoint_every as usize;
        state.run(points, threads, |state| {
            let done = state.current.history.len();
            let skipped = if state.current.finished { state.settings.iterations + 1 - done } else { 0 };
            progress.note(&report::line(state));
            progress.advance(1 + skipped);
            let asked = stop.load(Ordering::SeqCst);
            if asked || (self.checkpoint.is_some() && (done.is_multiple_of(every) || state.current.finished))
            {
                checkpoint.write(state)?;
            }
            Ok(if asked { Next::Stop } else { Next::Continue })
        })
    }

    fn blob(&self, state: &State, provenance: &str) -> Result<Vec<u8>> {
        let options = Options { gram: GramName::Auto, ..state.settings.options() };
        build(&state.model(), &options, provenance)
    }

    fn write(&self, state: &State, json: &std::path::Path) -> Result<()> {
        let (settings, result) = (&state.settings, state.result());
        let (points, dims) = state.data;
        let provenance = format!(
            "spikelet {} train on {points} points of {dims} dimensions, seed {}, free energy {:.6} per point",
            env!("CARGO_PKG_VERSION"),
            settings.seed,
            result.free_energy() / points as f64,
        );
        let blob = self.blob(state, &provenance)?;
        let text = report::json(state)?;
        let blob = Staged::write(&self.out, |writer| writer.write_all(&blob))?;
        let text = Staged::write(json, |writer| writer.write_all(text.as_bytes()))?;
        blob.commit()?;
        text.commit()?;
        print(&report::summary(state, &self.out, json))
    }
}

/// Points per step of stepwise EM where the user leaves it open, 0 for plain EM: 50 steps per pass, each of enough
/// points that the M-step, H^2 (H + D) operations, does not cost more than they do; 5 steps at least.
fn automatic_batch(engine: Engine, latents: usize, points: usize) -> usize {
    if engine == Engine::Exact || latents <= PLAIN_UP_TO || points < PLAIN_BELOW {
        return 0;
    }
    let least = (latents * latents / 600).max(100);
    (points / 50).min(4000).max(least).min(points / 5)
}
