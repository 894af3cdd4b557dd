//! `spikelet infer`: the posterior of every point of a file, as a device would compute it.
//!
//! Data is read and results are written a piece at a time, so neither has to fit in memory.

use super::engine::{self, sampled, truncated};
use super::model_file::ModelFile;
use super::output::{Folder, Progress, print, refuse_overwriting};
use super::results::RESULTS;
use super::sampling::Sampling;
use crate::data::Source;
use crate::files::Writer;
use crate::{Error, Result};
use spikelet::{Engine, Model, Shape};
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
    /// Points: .npy (N x D), .csv (a row each) or .wav (a sample of all channels each)
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
        let model = file.blob()?.model();
        let model = match self.sampling.is_chosen(&model) {
            // The states that chains look at before they start are those of the model.
            true if self.sampling.lists_states() => truncated(model, self.selected, None)?,
            true => sampled(model, self.selected)?,
            false => truncated(model, self.selected, self.max_active)?,
        };
        let engine = self.sampling.engine(&model, self.max_active)?;
        let mut source = Source::open(&self.data)?;
        if source.dims() != model.shape.dims {
            let what =
                format!("the points have {} dimensions, the model {}", source.dims(), model.shape.dims);
            let place = format!("{} and {}", self.data.display(), self.model.display());
            let advice = "give N points as N x D, and a model made for such data";
            return Err(Error::input(what, place, advice));
        }
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
        let Shape { dims, latents, .. } = model.shape;
        let (points, name) = (source.points(), self.data.display().to_string());
        let fail = |cause: io::Error| Error::writing(&self.out_dir, &cause);
        let threads = self.threads.map_or_else(engine::all_cores, usize::from);
        let by_work = (PIECE_OPERATIONS / engine::operations(&model, engine).max(1)) as usize;
        let by_memory = PIECE_NUMBERS / (dims + 5 * latents);
        let piece = threads * by_work.min(by_memory / threads).max(1);
        for (writer, result) in writers.iter_mut().zip(&RESULTS) {
            result.start(writer, points, model.shape).map_err(fail)?;
        }
        let mut progress = Progress::new("infer", points);
        let mut chunk = Vec::new();
        let mut first = 0;
        while first < points {
            let count = source.read_chunk(first, piece, &mut chunk)?;
            for posteriors in engine::infer(model, engine, &chunk, threads, first, &name)? {
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
