//! `spikelet infer`: the posterior of every point of a file, as a device would compute it.
//!
//! Data is read and results are written a piece at a time, so neither has to fit in memory.

mod events;

pub(super) use events::of_recording;

use super::engine::{self, Extra};
use super::inferring::Inferring;
use super::model_file::{ModelFile, same_dims, warn_of_rate};
use super::output::{Folder, Progress, counted, print, refuse_overwriting};
use super::results::{self, STATES};
use super::sanity::Survey;
use crate::data::Source;
use crate::files::Writer;
use crate::{Error, Result};
use spikelet::{Engine, Model};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Infer which sources are on, and how strong, for every point of a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes to the folder, one row per point, as NumPy arrays:
  activity.npy   N x H   probability that each latent is on
  mean.npy       N x H   posterior mean of each source
  variance.npy   N x H   posterior variance of each source
  map.npy        N x H   1 for the latents of the most probable state
  selected.npy   N x H'  the latents kept for the point, best first; -1 where a point has fewer
  evidence.npy   N       logarithm of the probability of the point, summed over the states kept
With --engine gibbs map.npy is the best state that was drawn, and evidence.npy a lower bound: that state's part alone.
With --write-states also
  states.npy     M x 2   a row for every state kept: the number of its point, counted from 0, and the latents that are on,
                         bit i of the number for the i-th of the point's row in selected.npy

Of a model of spectra (`train --transform spectrum`) a table of one row per frame, events.csv: the time in seconds of its middle, the probability that each
source is to be heard (above a tenth of its mean power), the score (how badly the model explains the last frames, in nats), and, where the model knows what is usual (`eval
--calibrate`), the rate at which usual sound has such a score or a higher one.

Example:
  spikelet infer model.spk recording.wav --out-dir results
  spikelet infer model.spk recording.wav --out-dir results --engine gibbs --selected 40 --sweeps 200 --seed 1
  spikelet infer model.spk points.npy --out-dir results --states adaptive --expansions 8 --write-states")]
pub(super) struct Infer {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// Points: .npy (N x D), .npz (or FILE.npz:NAME), .csv (a row each), .wav (a sample of all channels each); windows of .wav
    /// and patches of .png as the model was made for
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Folder for the results; created when it does not exist
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// Write the states that the posterior is over, too: anyone can check it then
    #[arg(long)]
    write_states: bool,
    #[command(flatten)]
    inferring: Inferring,
}

impl Infer {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        if let Some(model) = file.spectral()? {
            return events::write(model, &self.model, &self.data, &self.out_dir);
        }
        let blob = file.blob()?;
        let (model, engine) = self.inferring.of(blob.model())?;
        if self.write_states {
            engine::check_states(&model, engine)?;
        }
        let mut source = Source::for_model(&self.data, &blob, 1)?;
        same_dims(&source, &model, &self.model)?;
        warn_of_rate(&source, &blob);
        let folder = Folder::create(&self.out_dir)?;
        let mut names: Vec<_> = results::of_shape(model.shape).iter().map(|result| result.name).collect();
        if self.write_states {
            names.push(STATES.name);
        }
        for name in &names {
            refuse_overwriting(&folder.file(name), &[&self.model, &self.data])?;
        }
        let mut survey = Survey::default();
        folder
            .write_together(&names, |writers| self.fill(model, engine, &mut source, &mut survey, writers))?;
        survey.warn(&blob, &self.data);
        print(&format!(
            "{}: {}, {}: {}\n",
            self.out_dir.display(),
            counted(source.points(), "point"),
            counted(model.shape.latents, "latent"),
            names.join(", ")
        ))
    }

    fn fill(
        &self,
        model: Model<'_, f32>,
        engine: Engine,
        source: &mut Source,
        survey: &mut Survey,
        writers: &mut [&mut Writer],
    ) -> Result<()> {
        let (points, name) = (source.points(), self.data.display().to_string());
        let fail = |cause: io::Error| Error::writing(&self.out_dir, &cause);
        let threads = self.inferring.threads();
        let extra = if self.write_states { Extra::States } else { Extra::Nothing };
        let piece = engine::piece_points(&model, engine, threads, extra);
        let results = results::of_shape(model.shape);
        let (writers, states) = writers.split_at_mut(results.len());
        for writer in &mut *states {
            STATES.start(writer, 0, model.shape).map_err(fail)?;
        }
        for (writer, result) in writers.iter_mut().zip(&results) {
            result.start(writer, points, model.shape).map_err(fail)?;
        }
        let mut progress = Progress::new("infer", points);
        let mut chunk = Vec::new();
        let (mut first, mut kept) = (0, 0);
        while first < points {
            let count = source.read_chunk(first, piece, &mut chunk)?;
            survey.add(&chunk);
            for posteriors in engine::infer(model, engine, &chunk, threads, first, &name, extra)? {
                for (writer, result) in writers.iter_mut().zip(&results) {
                    writer.write_all(&(result.rows)(&posteriors)).map_err(fail)?;
                }
                for writer in &mut *states {
                    writer.write_all(&(STATES.rows)(&posteriors)).map_err(fail)?;
                }
                kept += posteriors.states.len() / 2;
            }
            first += count;
            progress.advance(count);
        }
        for writer in states {
            writer.seek(SeekFrom::Start(0)).map_err(fail)?;
            STATES.start(writer, kept, model.shape).map_err(fail)?;
        }
        Ok(())
    }
}
