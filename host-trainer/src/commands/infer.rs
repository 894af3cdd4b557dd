//! `spikelet infer`: the posterior of every point of a file, as a device would compute it.
//!
//! Data is read and results are written a piece at a time, so neither has to fit in memory.

use super::engine::{self, chosen};
use super::model_file::{ModelFile, same_dims};
use super::output::{Folder, Progress, print, refuse_overwriting};
use super::results::RESULTS;
use super::sampling::Sampling;
use crate::data::Source;
use crate::files::Writer;
use crate::{Error, Result};
use spikelet::{Engine, Model};
use std::io::{self, Write};
use std::path::PathBuf;

/// Work between two steps of the progress bar and two writes, in multiply-adds: a fraction of a second.
const PIECE_OPERATIONS: u64 = 300_000_000;

/// Numbers of data or results held at once, at most.
const PIECE_NUMBERS: usize = 4_000_000;

/// Infer which sources are on, and how strong, for every point of a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes to the folder, one row per point, as NumPy arrays:
  activity.npy   N x H   probability that each latent is on
  mean.npy       N x H   posterior mean of each source
  variance.npy   N x H   posterior variance of each source
  map.npy        N x H   1 for the latents of the most probable state
  selected.npy   N x H'  the latents kept for the point, best first
  evidence.npy   N       logarithm of the probability of the point, summed over the states kept
With --engine gibbs map.npy is the best state that was drawn, and evidence.npy a lower bound: that state's part alone.

Example:
  spikelet infer model.spk recording.wav --out-dir results
  spikelet infer model.spk recording.wav --out-dir results --engine gibbs --selected 40 --sweeps 200 --seed 1")]
pub(super) struct Infer {
    /// The model, made by `spikelet import`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// Points: .npy (N x D), .csv (a row each), .wav (a sample of all channels each); windows of .wav and patches of .png as
    /// the model was made for
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Folder for the results; created when it does not exist
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// H', latents kept per point [default: the model's]
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: the model's; with gibbs as many as this build allows]
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// Threads to compute on; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    sampling: Sampling,
}

impl Infer {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        let blob = file.blob()?;
        let model = blob.model();
        let model = chosen(model, &self.sampling, self.selected, self.max_active)?;
        let engine = self.sampling.engine(&model, self.max_active)?;
        let mut source = Source::open_framed(&self.data, blob.frame().as_ref(), 1)?;
        same_dims(&source, &model, &self.model)?;
        let folder = Folder::create(&self.out_dir)?;
        let names = RESULTS.map(|result| result.name);
        for name in names {
            refuse_overwriting(&folder.file(name), &[&self.model, &self.data])?;
        }
        folder.write_together(&names, |writers| self.fill(model, engine, &mut source, writers))?;
        print(&format!(
            "{}: {} points, {} latents: {}\n",
            self.out_dir.display(),
            source.points(),
            model.shape.latents,
            names.join(", ")
        ))
    }

    fn fill(
        &self,
        model: Model<'_, f32>,
        engine: Engine,
        source: &mut Source,
        writers: &mut [&mut Writer],
    ) -> Result<()> {
        let (points, name) = (source.points(), self.data.display().to_string());
        let fail = |cause: io::Error| Error::writing(&self.out_dir, &cause);
        let threads = self.threads.map_or_else(engine::all_cores, usize::from);
        let piece = piece_points(&model, engine, threads);
        for (writer, result) in writers.iter_mut().zip(&RESULTS) {
            result.start(writer, points, model.shape).map_err(fail)?;
        }
        let mut progress = Progress::new("infer", points);
        let mut chunk = Vec::new();
        let mut first = 0;
        while first < points {
            let count = source.read_chunk(first, piece, &mut chunk)?;
            for posteriors in engine::infer(model, engine, &chunk, threads, first, &name, false)? {
                for (writer, result) in writers.iter_mut().zip(&RESULTS) {
                    writer.write_all(&(result.rows)(&posteriors)).map_err(fail)?;
                }
            }
            first += count;
            progress.advance(count);
        }
        Ok(())
    }
}

/// Points that are worked on between two steps of the progress bar.
pub(super) fn piece_points(model: &Model<'_, f32>, engine: Engine, threads: usize) -> usize {
    let by_work = (PIECE_OPERATIONS / engine::operations(model, engine).max(1)) as usize;
    let by_memory = PIECE_NUMBERS / (2 * model.shape.dims + 5 * model.shape.latents);
    threads * by_work.min(by_memory / threads).max(1)
}
