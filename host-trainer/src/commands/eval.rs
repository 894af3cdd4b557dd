//! `spikelet eval`: how well a model explains data, and how close it comes to a truth that is known.
//!
//! The posteriors are those of the core in `f32`, exactly as a device would compute them; their sums are in `f64`. Data
//! is read a piece at a time, and the figures do not depend on the number of threads.

mod calibrate;
mod facts;
mod reference;
mod tally;

use super::engine;
use super::given::matrix;
use super::inferring::Inferring;
use super::model_file::{ModelFile, same_dims, warn_of_rate};
use super::output::{Progress, print};
use super::sanity::Survey;
use crate::data::{Mosaic, Source};
use crate::linalg::covariance_of;
use crate::metrics::{amari, psnr_db};
use crate::{Error, Result};
use facts::{Facts, Noises};
pub(super) use reference::{Reference, ReferenceIs};
use spikelet::model::{Model, Noise, States};
use spikelet::{Engine, Shape};
use std::path::PathBuf;
pub(super) use tally::{SourceTally, source_tally};
use tally::{Tally, Task};

/// Largest number of a pixel.
pub(super) const PIXEL_PEAK: f64 = 255.0;

/// All states are looked at for up to this many latents.
const MOST_LATENTS_FOR_QUALITY: usize = 12;

/// Work of a thread between two steps of the progress bar, in multiply-adds: a fraction of a second.
const BLOCK_OPERATIONS: u64 = 300_000_000;

/// Numbers of data or results a thread holds at once, at most.
const BLOCK_NUMBERS: usize = 2_000_000;

/// Points a thread works on at once, at most.
const BLOCK_POINTS: usize = 4096;

/// Say how well a model explains data, and how close it comes to a known truth
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures (the names are those of --json, where one that does not apply is absent and `notes` says why):
  free_energy       mean over the points of ln p(y), summed over the states kept (with gibbs: the best state drawn)
  quality           mean part of p(y) in the states kept, of all 2^H (up to 12 latents; 1: inference is exact)
  sparsity, usage   mean number of latents on, and how much of the time each one is
  noise             variance of the noise: one number, or one per dimension
  snr_db            data over what W<s.z> leaves of it (mca: the mean of the maximum, here and below)
  amari             --truth: 0 when W has the true columns, in any order, scaled or negated. O = W^-1 W_true; with
                    more dimensions than latents, the pseudo-inverse; absent with fewer
  reference_snr_db  --reference with D columns, the data without noise: this over what W<s.z> leaves of it;
                    noisy_snr_db is the same for the data as they came
  psnr_db           ... and the peak (--peak) over it; not for recordings. Of a picture the one that the patches make;
                    denoise makes a better one of patches that overlap
  si_sdr_db         --reference with H columns, the true sources: of each the SI-SDR of its latent. The pair with the
                    highest is matched first, then the best of what is left; the sign does not matter.
                    si_sdr_latents has the latents. A source that is silent has null
With D = H a reference is taken both ways, unless --reference-is says which.

With --calibrate the scores of a model of spectra on recordings of usual sound are measured, and written into the model: a device then says whether
a score is above the threshold for a chosen rate of false alarms. Thresholds are bounds: with a probability of 0.95 sound like that of the recordings exceeds them no more
often than promised. Sound that is not in them, another speaker or another load, may do so. DATA are other recordings of usual sound, which were held back: on these the promised
rates are compared with the observed ones.

Example:
  spikelet eval model.spk recording.wav
  spikelet eval pump.spk held-back.wav --calibrate normal.wav --out pump-alarm.spk
  spikelet eval model.spk held_out.npy --truth W.npy --json")]
pub(super) struct Eval {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// Points: .npy (N x D), .npz (or FILE.npz:NAME), .csv (a row each), .wav (a sample of all channels each); windows of .wav
    /// and patches of .png as the model was made for
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// The true dictionary (D x H)
    #[arg(long, value_name = "W.npy")]
    truth: Option<PathBuf>,
    /// The same points without noise (N x D), or the true sources (N x H)
    #[arg(long, value_name = "CLEAN")]
    reference: Option<PathBuf>,
    /// What the columns of the reference are; sources may be fewer than latents [default: by their number]
    #[arg(long, value_name = "NAME", requires = "reference")]
    reference_is: Option<ReferenceIs>,
    /// Peak for psnr_db, such as 1 [default: 255 for pictures, else largest minus smallest value of the reference]
    #[arg(long, value_name = "NUMBER", requires = "reference")]
    peak: Option<f64>,
    /// Recordings of usual sound, to learn which scores are usual, with models of spectra
    #[arg(long, value_name = "NORMAL.wav", num_args = 1.., requires = "out")]
    calibrate: Vec<PathBuf>,
    /// The model to write that knows which scores are usual
    #[arg(long, value_name = "MODEL.spk", requires = "calibrate")]
    out: Option<PathBuf>,
    #[command(flatten)]
    inferring: Inferring,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        if let Some(model) = file.spectral()? {
            return self.spectral(model);
        }
        if self.out.is_some() {
            let advice = "leave it out, or use a model of --transform spectrum";
            return Err(Error::input("this model has no scores of frames", "--calibrate", advice));
        }
        if let Some(peak) = self.peak.filter(|peak| !(peak.is_normal() && *peak > 0.0)) {
            let advice = "give the largest value a point can have, such as 1 or 255";
            return Err(Error::input(format_args!("{peak} cannot be a peak"), "--peak", advice));
        }
        let blob = file.blob()?;
        let (model, engine) = self.inferring.of(blob.model())?;
        let mut notes = Vec::new();
        // Small files first: what is wrong with them shows before the long work.
        let amari = self.amari(&model, &mut notes)?;
        let frame = blob.frame();
        let mut source = Source::for_model(&self.data, &blob, 1)?;
        same_dims(&source, &model, &self.model)?;
        warn_of_rate(&source, &blob);
        let mut reference = match &self.reference {
            Some(path) => Some(Reference::open(
                path,
                self.reference_is,
                &source,
                frame.as_ref(),
                model.shape,
                &mut notes,
            )?),
            None => None,
        };
        let exact = match engine {
            Engine::Truncated => over_all_states(model),
            Engine::Gibbs(_) => Err("the states that were drawn are not all that were kept"),
        };
        if let Err(why) = exact {
            notes.push(format!("no quality: {why}"));
        }
        let name = self.data.display().to_string();
        // Of pieces that overlap, what counts is the whole that they make.
        let pieces = reference.as_ref().filter(|kind| kind.clean).and(source.pieces()).cloned();
        let mut mosaic = pieces.as_ref().map(Mosaic::new);
        let exact_model = exact.ok().flatten();
        let task = Task { model, engine, exact: exact_model, name: &name, keep: mosaic.is_some() };
        let mut survey = Survey::default();
        let tally = self.tally(&task, &mut source, reference.as_mut(), mosaic.as_mut(), &mut survey)?;
        survey.warn(&blob, &self.data);
        notes.extend(survey.compare(&blob));

        let mut facts = Facts::new(&tally, source.points(), model.shape);
        facts.quality = match exact {
            Ok(None) => Some(1.0),
            Ok(Some(_)) => Some(tally.quality / source.points() as f64),
            Err(_) => None,
        };
        facts.amari = amari;
        facts.noise = noise(&model);
        if let Some(reference) = &reference {
            // Of recordings nobody tells the peak ratio, unless asked to.
            let wanted = self.peak.is_some() || source.rate().is_none();
            facts.compare(&tally, reference, wanted.then_some(self.peak), &mut notes);
            if let (Some(mosaic), Some(truth), true) = (mosaic, reference.source.pieces(), wanted) {
                let (whole, truth) = (mosaic.finish(), truth.sheet());
                facts.psnr_db = psnr_db(self.peak.unwrap_or(PIXEL_PEAK), whole.mean_square_error(truth));
            }
        }
        facts.notes = notes;
        if self.json {
            let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
                Error::run(format_args!("no JSON ({cause})"), self.model.display(), "report this as a bug")
            })?;
            return print(&format!("{text}\n"));
        }
        print(&facts.table(&self.model.display().to_string(), &model))
    }

    /// The index, if a truth was given; a note when it has none.
    fn amari(&self, model: &Model<'_, f32>, notes: &mut Vec<String>) -> Result<Option<f64>> {
        let Some(path) = &self.truth else { return Ok(None) };
        let (d, h) = (model.shape.dims, model.shape.latents);
        let (rows, columns, truth) = matrix(path)?;
        if (rows, columns) != (d, h) {
            let what = format!("the true dictionary is {rows} x {columns}, that of the model {d} x {h}");
            let place = format!("{} and {}", path.display(), self.model.display());
            return Err(Error::input(what, place, "save it as dimensions x latents, one column per latent"));
        }
        let columns: Vec<Vec<f64>> = (0..h).map(|k| model.column(k).map(f64::from).collect()).collect();
        let w: Vec<f64> = (0..d * h).map(|at| columns[at % h][at / h]).collect();
        let index = amari(&w, &truth, d, h);
        if index.is_none() {
            notes.push(match () {
                () if h == 1 => "no amari: it compares the directions of at least two latents".into(),
                () if d < h => format!("no amari: W has no inverse, with {d} dimensions for {h} latents"),
                () => {
                    "no amari: columns of W depend on each other, or one of W or of the truth is zero".into()
                }
            });
        }
        Ok(index)
    }

    fn tally(
        &self,
        task: &Task<'_>,
        source: &mut Source,
        mut reference: Option<&mut Reference>,
        mut mosaic: Option<&mut Mosaic<'_>>,
        survey: &mut Survey,
    ) -> Result<Tally> {
        let Shape { dims, latents, .. } = task.model.shape;
        let (points, threads) = (source.points(), self.inferring.threads());
        let exact = task.exact.as_ref().map_or(0, |model| model.operations().total());
        let operations = engine::operations(&task.model, task.engine) + exact;
        let by_work = (BLOCK_OPERATIONS / operations.max(1)) as usize;
        let by_memory = BLOCK_NUMBERS / (2 * dims + 10 * latents);
        // The same whatever the number of threads: sums over blocks, and then over these, are the same too.
        let block = by_work.min(by_memory).clamp(1, BLOCK_POINTS);

        let mut progress = Progress::new("eval", points);
        let (mut chunk, mut truth) = (Vec::new(), Vec::new());
        let mut total = Tally::default();
        let mut first = 0;
        while first < points {
            let count = source.read_chunk(first, threads * block, &mut chunk)?;
            survey.add(&chunk);
            if let Some(reference) = reference.as_deref_mut() {
                reference.source.read_chunk(first, count, &mut truth)?;
            }
            let parts =
                task.blocks(&chunk, reference.as_deref().map(|kind| (kind, &truth[..])), block, first);
            let mut at = first;
            for tally in tally::all(task, parts, threads)? {
                total.add(&tally);
                if let Some(mosaic) = mosaic.as_deref_mut() {
                    mosaic.add(at, &tally.reconstruction, &tally.weight);
                    at += tally.reconstruction.len() / dims;
                }
            }
            first += count;
            progress.advance(count);
        }
        Ok(total)
    }
}

/// The same model over all of its states; `None` when it looks at all of them anyhow. Fails with the reason.
fn over_all_states(model: Model<'_, f32>) -> Result<Option<Model<'_, f32>>, &'static str> {
    let h = model.shape.latents;
    if model.shape.kind.is_sampled() {
        return Err("states of this kind have no closed form");
    }
    if model.shape.kind.is_mixture() {
        let shape = Shape { singletons: true, ..model.shape };
        let all = Model::new(Model { shape, ..model }).map_err(|_| "the model has no other states")?;
        return Ok((!model.shape.singletons).then_some(all));
    }
    if model.shape.max_active == h && !matches!(model.shape.states, States::Adaptive { .. }) {
        return Ok(None);
    }
    if h > MOST_LATENTS_FOR_QUALITY {
        return Err("it needs all 2^H states, which are too many beyond 12 latents");
    }
    // Only a full slab needs the table.
    if model.has_full_slab() {
        let lacking = "it needs all 2^H states, and the table in the model has not all of them";
        return model.with_states(h, h, States::Table).map(Some).map_err(|_| lacking);
    }
    let lacking = "it needs all 2^H states, for which this build has no room";
    Model { table: None, ..model }.with_states(h, h, States::Subsets).map(Some).map_err(|_| lacking)
}

/// The variances of the noise.
fn noise(model: &Model<'_, f32>) -> Noises {
    match model.noise {
        Noise::Shared(precision) => Noises::Shared(1.0 / f64::from(precision)),
        Noise::Diagonal(precisions) => Noises::Each(precisions.iter().map(|&p| 1.0 / f64::from(p)).collect()),
        Noise::Full(factor) => {
            let (d, factor) = (model.shape.dims, factor.iter().map(|&f| f64::from(f)).collect::<Vec<_>>());
            Noises::Each(covariance_of(&factor, d).into_iter().step_by(d + 1).collect())
        }
    }
}
