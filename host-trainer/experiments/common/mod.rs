//! What the experiments share: arguments, trials on several cores, tables, and the modules below.
//!
//! | module | has |
//! |---|---|
//! | [`bars`] | points made of bars, and which of them a model shows |
//! | [`fields`] | what fields of pixels look like |
//! | [`lapped`] | a lapped transform and filters in it |
//! | [`mixtures`] | random mixing matrices, sources of known distributions |
//! | [`beats`] | heart beats: where, how regular, how strong |
//! | [`gsc`] | one start of EM, from the library's initial parameters or from those of the papers |
//! | [`fast_ica`] | symmetric FastICA, the method to compare with |
//! | [`lasso`] | linear sparse coding with an L1 penalty, another one |
//! | [`jade`] | JADE, by which the samples of the papers are found again |
//! | [`natural`] | patches of natural pictures, prepared as the papers do |
//! | [`nmf`] | KL-NMF of magnitude spectra, for two sources in one channel |
//! | [`noises`] | a fan, knocks of a machine, people who talk at once |
//! | [`overlaps`] | spike-and-slab models whose latents overlap, and what a Cortex-M4F makes of them |
//! | [`pieces`] | pieces of pictures and recordings without noise |
//! | [`recordings`] | recorded sounds, and the stream of a device |
//! | [`rooms`] | voices in rooms, and what a spatial model takes apart of them |
//! | [`reconstruct`] | what a model leaves of points: error, latents on |
//! | [`scenes`] | images of objects that hide each other |
//! | [`strokes`] | patches of strokes that cover each other, and what looks like one |
//! | [`svg`] | many small curves or images as a picture |
//! | [`switches`] | parts that are on or off, fitted by exhaustive search |
//! | [`table`] | figures as a Markdown table, and the few statistics that go into one |
#![allow(dead_code)] // each experiment uses its own part

pub mod bars;
pub mod beats;
pub mod fast_ica;
pub mod fields;
pub mod gsc;
pub mod jade;
pub mod lapped;
pub mod lasso;
pub mod mixtures;
pub mod natural;
pub mod nmf;
pub mod noises;
pub mod overlaps;
pub mod pieces;
pub mod reconstruct;
pub mod recordings;
pub mod rooms;
pub mod scenes;
pub mod strokes;
pub mod svg;
pub mod switches;
pub mod table;

use clap::Parser;
use spikelet_trainer::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What every experiment understands.
#[derive(Parser)]
#[command(about = None, long_about = None)]
pub struct Arguments {
    /// Fewer trials, at most a minute
    #[arg(long)]
    pub quick: bool,
    /// Trials at a time; the figures do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Rows of the table to leave out at its beginning, to go on where a run was stopped
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub skip: usize,
    /// Rows to run after these, for the experiments inveca and factored [default: all]
    #[arg(long, value_name = "COUNT", default_value_t = usize::MAX, hide_default_value = true)]
    pub rows: usize,
    /// Picture to write, for the experiments that draw one
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Which figure of the paper, for the experiments that have several
    #[arg(long, value_name = "FIGURE")]
    pub figure: Option<String>,
    /// H, for the experiment natural-images
    #[arg(long, value_name = "COUNT")]
    pub latents: Option<u16>,
    /// Patches that are learned from, for the experiment natural-images
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(100..))]
    pub patches: Option<u32>,
    /// Iterations or passes, for the experiment natural-images
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// Array to write the prepared patches to (.npy), for the experiment natural-images: `spikelet train` takes it
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// What is done to pictures first, for the experiment natural-images: pseudo, dog, whiten or none
    #[arg(long, value_name = "NAME")]
    pub preprocessing: Option<String>,
    /// Models in fixed point, at most three latents on, for the experiment quantization
    #[arg(long)]
    pub fixed_point: bool,
    /// Draws of the noise, for the experiment pictures [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub draws: Option<u16>,
    /// Also run other methods: by Python, with pip packages, for the experiments rooms and pictures; KL-NMF for one-channel
    #[arg(long)]
    pub peers: bool,
    /// Samples of a frame, for the experiment rooms [default: those of `train`]
    #[arg(long, value_name = "SAMPLES")]
    pub frame: Option<usize>,
    /// Data, for the experiments that need some
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

impl Arguments {
    /// The file or folder that was given; `advice` says which one is wanted.
    pub fn path(&self, advice: &str) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| Error::input("no data was given", "PATH", advice))
    }

    /// The same where the experiment can do without.
    pub fn given_path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// How many threads to compute on.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        self.threads.map_or_else(cores, usize::from)
    }

    /// Runs trials 0, 1, ... `count` - 1 and returns what they return, in this order.
    pub fn trials<T: Send>(&self, count: usize, trial: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        let threads = self.threads().min(count);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return;
                }
                let result = trial(at);
                done.lock().unwrap_or_else(|broken| broken.into_inner()).push((at, result));
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let mut results = done.into_inner().unwrap_or_else(|broken| broken.into_inner());
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// Runs an experiment; what goes wrong is one line on stderr and the exit status of the `spikelet` command.
pub fn main(experiment: impl FnOnce(&Arguments) -> Result<()>) -> ExitCode {
    match experiment(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// CPU time of this thread, from any beginning; where the system does not tell it, time that has passed.
pub fn cpu_seconds() -> f64 {
    static BEGUN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    let passed = || BEGUN.get_or_init(std::time::Instant::now).elapsed().as_secs_f64();
    nanoseconds.map_or_else(passed, |nanoseconds| nanoseconds * 1e-9)
}

/// A seed for each of several independent streams of one experiment.
pub fn seed(experiment: u64, trial: usize) -> u64 {
    (experiment << 32) + trial as u64
}
