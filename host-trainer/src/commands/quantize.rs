//! `spikelet quantize`: the same model with a dictionary of integers, and what that costs in accuracy.

use super::chosen_states::ChosenStates;
use super::eval::{PIXEL_PEAK, Reference, ReferenceIs, SourceTally, source_tally};
use super::model_file::{ModelFile, same_dims, warn_of_rate};
use super::output::{Progress, note, print, refuse_description, refuse_overwriting};
use super::recover::{learned_scores, recover_as};
use crate::blob::About;
use crate::compare::Comparison;
use crate::data::{Mosaic, Source};
use crate::groups::Grouping;
use crate::metrics::{assign, psnr_db};
use crate::prepare::{Options, Prepared, StatesName};
use crate::spatial::Room;
use crate::spectral::{self, Parts};
use crate::{Error, Result, blob, files};
use serde::Serialize;
use spikelet::model::{Dictionary, Model, States, Width};
use spikelet::{Blob, Kind, SpatialModel, SpectralModel};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A loss in dB that is worth a note.
const LARGE_LOSS: f64 = 0.5;

/// Points between two steps of the progress bar.
const PIECE: usize = 1000;

/// Write a model with a smaller dictionary, and say what that costs in accuracy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The dictionary is three quarters (i8) or half (i16) smaller (of a model with few dimensions that is a small part), and a
sample costs less: on a Cortex-M4 the products with the dictionary take 0.95 (i16) instead of 1.14 instructions each, on a
Cortex-M0 11 instead of 220. The rounding error becomes part of the model's noise, so that probabilities stay what they
say.

With --fixed-point everything else is integers, too, for processors without a float unit (Cortex-M0, RISC-V without F): a
sample takes about a fifth of the instructions there, and twice as many on a Cortex-M4F. Results are off by less than 0.001
(probabilities); samples that are far too loud for the model are inferred in floats.

A model of few latents that was trained with all of their states looks at all of them on the device, too. --states adaptive searches
for those that matter, which takes a fraction of the instructions and loses little: --data says how much.

Figures with --data (the names are those of --json):
  kl             mean KL divergence of the posteriors, in nats per point, from those of the model as it was
  map_agreement  part of the points whose most probable state is the same
  snr_db         data over what W<s.z> leaves of it, of the model as it was and of the new one; with --reference the data
                 without noise instead
  loss_db        the difference of the two
  free_energy    mean of ln p(y), of both
  psnr_db        --reference, a picture: of the denoised picture, by both models
  si_sdr_db      --reference with H columns, the true sources: the mean over them, by both models; each is matched with
                 the latent that is closest to it by the model as it was. What each loses is in si_sdr_loss_db, null
                 where it is silent
With D = H a reference is taken both ways, unless --reference-is says which. Of a model of a transform the sounds
count: use spikelet separate --reference with both models.

Example:
  spikelet quantize model.spk --encoding i8 --out small.spk
  spikelet quantize model.spk --encoding i16 --out small.spk --data recording.wav --json
  spikelet quantize model.spk --encoding f32 --states adaptive --out faster.spk --data recording.wav
  spikelet quantize model.spk --encoding i16 --fixed-point --out m0.spk
  spikelet quantize patches.spk --encoding i8 --out small.spk --data noisy.png --reference clean.png")]
pub(super) struct Quantize {
    /// The model, in f32, made by `spikelet train` or `spikelet import`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// How the dictionary is stored
    #[arg(long, value_enum)]
    encoding: Encoding,
    /// Infer samples in integers from end to end, for processors without a float unit (gsc with a diagonal slab); states
    /// are adaptive then
    #[arg(long)]
    fixed_point: bool,
    #[command(flatten)]
    states: ChosenStates,
    /// The model to write
    #[arg(long, value_name = "SMALL.spk")]
    out: PathBuf,
    /// Points to compare both models on: .npy (N x D), .csv (a row each), .wav (a sample of all channels each); windows of
    /// .wav and patches of .png as the model was made for
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
    /// The same points without noise (N x D), or the true sources (N x H)
    #[arg(long, value_name = "CLEAN", requires = "data")]
    reference: Option<PathBuf>,
    /// What the columns of the reference are; sources may be fewer than latents [default: by their number]
    #[arg(long, value_name = "NAME", requires = "reference")]
    reference_is: Option<ReferenceIs>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Encoding {
    /// 32-bit floats: the model as it is
    F32,
    /// 16-bit integers, a scale for each latent
    I16,
    /// 8-bit integers, a scale for each latent
    I8,
}

impl Encoding {
    fn width(self) -> Option<Width> {
        match self {
            Self::F32 => None,
            Self::I16 => Some(Width::I16),
            Self::I8 => Some(Width::I8),
        }
    }
}

/// The blob with integers of this width, or as it is. `name` is that of the file.
pub(super) fn encode(
    file: &ModelFile,
    name: &Path,
    width: Option<Width>,
    fixed_point: bool,
    states: &ChosenStates,
) -> Result<Vec<u8>> {
    let blob = file.blob()?;
    if matches!(blob.model().dictionary, Dictionary::Integer(_)) {
        let advice = "give the model in f32 that it was made from";
        return Err(Error::input("the model has integers already", name.display(), advice));
    }
    if width.is_none() && fixed_point {
        let what = "inference in integers needs a dictionary of integers";
        return Err(Error::input(what, "--fixed-point", "use --encoding i16 or i8"));
    }
    let own_states = *states == ChosenStates::default();
    if width.is_none() && own_states {
        return Ok(file.bytes(&blob).to_vec());
    }
    let Some((parameters, mut options)) = recover_as(&blob, states.adapt(blob.model())?) else {
        let what = "this version of spikelet cannot make models of this kind";
        return Err(Error::input(what, name.display(), "use a newer one"));
    };
    if own_states && fixed_point && searches_instead(&blob.model()) {
        options = Options {
            selected: parameters.latents.min(Options::CANDIDATES),
            max_active: parameters.latents.min(Options::ACTIVE),
            singletons: false,
            states: Some(StatesName::Adaptive),
            expansions: Options::EXPANSIONS,
            ..options
        };
    }
    let mut prepared = match width {
        Some(width) => Prepared::<f32>::quantized(&parameters, &options, width)?,
        None => Prepared::new(&parameters, &options)?,
    };
    if let Some(scores) = learned_scores(&blob.model()) {
        prepared = prepared.with_scores(&scores)?;
    }
    if fixed_point {
        prepared = prepared.in_fixed_point()?;
    }
    let groups = Grouping::of(&blob.groups(), parameters.latents);
    let about = About {
        provenance: blob.provenance(),
        frame: blob.frame(),
        gains: blob.gains(),
        groups: groups.as_ref(),
    };
    blob::write(&prepared, &parameters.slab_cov, about)
}

/// The JSON object; names are part of the interface.
#[derive(Debug, Serialize)]
struct Facts {
    encoding: &'static str,
    fixed_point: bool,
    blob_bytes: usize,
    /// Of the model as it was.
    blob_bytes_before: usize,
    #[serde(flatten)]
    cost: Option<Cost>,
}

#[derive(Debug, Serialize)]
struct Cost {
    points: usize,
    kl: f64,
    map_agreement: f64,
    snr_db: [Option<f64>; 2],
    loss_db: Option<f64>,
    free_energy: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    psnr_db: Option<[Option<f64>; 2]>,
    #[serde(flatten)]
    sources: Option<SourceCost>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// With true sources.
#[derive(Debug, Serialize)]
struct SourceCost {
    si_sdr_db: [f64; 2],
    /// One per source.
    si_sdr_loss_db: Vec<Option<f64>>,
}

impl SourceCost {
    /// From the sums of both models; `None` when all sources are silent.
    fn new(tallies: &[SourceTally; 2]) -> Option<Self> {
        let h = tallies[0].estimates.len();
        let scores = tallies.each_ref().map(SourceTally::si_sdr_db);
        let latents = assign(&scores[0], h);
        let of = |scores: &[f64]| -> Vec<Option<f64>> {
            let rows = scores.chunks_exact(h).zip(&latents);
            rows.map(|(row, latent)| latent.map(|latent| row[latent])).collect()
        };
        let each = scores.each_ref().map(|scores| of(scores));
        let mean = |values: &Vec<Option<f64>>| {
            let heard: Vec<f64> = values.iter().flatten().copied().collect();
            (!heard.is_empty()).then(|| heard.iter().sum::<f64>() / heard.len() as f64)
        };
        let loss = |(before, after): (&Option<f64>, &Option<f64>)| Some((*before)? - (*after)?);
        let si_sdr_loss_db = each[0].iter().zip(&each[1]).map(loss).collect();
        Some(Self { si_sdr_db: [mean(&each[0])?, mean(&each[1])?], si_sdr_loss_db })
    }

    /// The source that loses most, and how much.
    fn most(&self) -> Option<(usize, f64)> {
        let losses = self.si_sdr_loss_db.iter().enumerate().filter_map(|(k, loss)| Some((k, (*loss)?)));
        losses.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

impl Cost {
    /// The largest loss of all figures, in dB.
    fn most(&self) -> f64 {
        let psnr = self.psnr_db.and_then(|[before, after]| Some(before? - after?));
        let source = self.sources.as_ref().and_then(SourceCost::most).map(|(_, loss)| loss);
        [self.loss_db, psnr, source].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Integers search for states: whether that replaces the papers' set of a model, which `train` gives to small ones.
fn searches_instead(model: &Model<'_, f32>) -> bool {
    model.shape.kind == Kind::Gsc && model.shape.states == States::Subsets
}

impl Quantize {
    pub fn run(self) -> Result<()> {
        refuse_description(&self.out, "spk")?;
        files::check_target(&self.out)?;
        let file = ModelFile::read(&self.model)?;
        let inputs: Vec<&PathBuf> =
            [Some(&self.model), self.data.as_ref(), self.reference.as_ref()].into_iter().flatten().collect();
        refuse_overwriting(&self.out, &inputs)?;
        if let Some(model) = file.room()? {
            return self.room(&model, &file);
        }
        if let Some(model) = file.spectral()? {
            return self.spectral(&model, &file);
        }
        let bytes = encode(&file, &self.model, self.encoding.width(), self.fixed_point, &self.states)?;
        let small = ModelFile::new(self.out.display().to_string(), &bytes);
        let models = [file.blob()?.model(), small.blob()?.model()];
        if self.fixed_point && self.states == ChosenStates::default() && searches_instead(&models[0]) {
            note(format_args!(
                "integers search for states: adaptive ones replace the papers' set of the model"
            ));
        }
        let cost = match &self.data {
            Some(path) => Some(self.compare(models, &file.blob()?, path)?),
            None => None,
        };
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;
        let facts = Facts {
            encoding: super::model_file::names::encoding(&models[1]),
            fixed_point: self.fixed_point,
            blob_bytes: bytes.len(),
            blob_bytes_before: file.blob()?.byte_len(),
            cost,
        };
        if self.json {
            let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
                Error::run(format_args!("no JSON ({cause})"), self.out.display(), "report this as a bug")
            })?;
            return print(&format!("{text}\n"));
        }
        print(&facts.table(&self.out))
    }

    /// A spatial model: Cholesky factors of covariances as integers.
    fn room(&self, model: &SpatialModel<'_>, file: &ModelFile) -> Result<()> {
        self.check_signals("a spatial model", model.is_integer())?;
        let before = file.first(model.byte_len());
        match self.encoding {
            Encoding::F32 => self.write_signals("f32", before.to_vec(), before.len()),
            Encoding::I16 => self.write_signals("i16", Room::of(model).integers(), before.len()),
            Encoding::I8 => {
                let what = "8 bits are too few for the factors of a spatial model";
                Err(Error::input(what, "--encoding i8", "use --encoding i16"))
            }
        }
    }

    /// Sources in one channel.
    fn spectral(&self, model: &SpectralModel<'_>, file: &ModelFile) -> Result<()> {
        self.check_signals("a model of spectra", model.is_integer())?;
        let before = file.first(model.byte_len());
        match self.encoding {
            Encoding::F32 => self.write_signals("f32", before.to_vec(), before.len()),
            Encoding::I16 => {
                let what = "spectra are floats or bytes";
                Err(Error::input(
                    what,
                    "--encoding i16",
                    "use --encoding i8, which loses nothing that one hears",
                ))
            }
            Encoding::I8 => {
                let bytes = Parts::read(model).bytes(spectral::Encoding::I8, model.provenance())?;
                self.write_signals("i8", bytes, before.len())
            }
        }
    }

    /// What models that only run as streams have nothing to do with.
    fn check_signals(&self, what: &str, is_integer: bool) -> Result<()> {
        if self.data.is_some() {
            let what = format!("{what} has no points to compare on");
            let advice = "use `spikelet separate --reference` with both models";
            return Err(Error::input(what, "--data", advice));
        }
        if self.fixed_point {
            let what = format!("{what} is always inferred in floats");
            return Err(Error::input(what, "--fixed-point", "leave the flag out"));
        }
        if self.states != ChosenStates::default() {
            let what = format!("{what} has no choice of states");
            return Err(Error::input(what, "--states", "leave the flag out"));
        }
        if is_integer {
            let (place, advice) = (self.model.display(), "give the model in f32 that it was made from");
            return Err(Error::input("the model has integers already", place, advice));
        }
        Ok(())
    }

    fn write_signals(&self, encoding: &'static str, bytes: Vec<u8>, before: usize) -> Result<()> {
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;
        let now = bytes.len();
        if self.json {
            let facts = Facts {
                encoding,
                fixed_point: false,
                blob_bytes: now,
                blob_bytes_before: before,
                cost: None,
            };
            let text = serde_json::to_string_pretty(&facts).map_err(|cause| {
                Error::run(format_args!("no JSON ({cause})"), self.out.display(), "report this as a bug")
            })?;
            return print(&format!("{text}\n"));
        }
        print(&format!("{}: {encoding}, {now} bytes instead of {before}\n", self.out.display()))
    }

    fn compare(&self, models: [Model<'_, f32>; 2], blob: &Blob<'_>, path: &Path) -> Result<Cost> {
        let latents = models[0].shape.latents;
        let mut source = Source::for_model(path, blob, 1)?;
        same_dims(&source, &models[0], &self.model)?;
        warn_of_rate(&source, blob);
        if source.points() == 0 {
            return Err(Error::input("there are no points", path.display(), "give at least one"));
        }
        let mut notes = Vec::new();
        let frame = blob.frame();
        let open = |path: &PathBuf| {
            Reference::open(path, self.reference_is, &source, frame.as_ref(), models[0].shape, &mut notes)
        };
        let mut reference = self.reference.as_ref().map(open).transpose()?;
        // Of pictures what counts is the whole that the patches make.
        let is_picture = source.rate().is_none() && reference.as_ref().is_some_and(|kind| kind.clean);
        let pieces = source.pieces().filter(|_| is_picture).cloned();
        let mut mosaics = pieces.as_ref().map(|pieces| [Mosaic::new(pieces), Mosaic::new(pieces)]);
        let mut tallies: [SourceTally; 2] = Default::default();
        let mut comparison = Comparison::default();
        let mut progress = Progress::new("compare", source.points());
        let (mut chunk, mut truth, mut first) = (Vec::new(), Vec::new(), 0);
        while first < source.points() {
            let count = source.read_chunk(first, PIECE, &mut chunk)?;
            if let Some(reference) = &mut reference {
                reference.source.read_chunk(first, count, &mut truth)?;
            }
            let clean = reference.as_ref().is_some_and(|kind| kind.clean).then_some(&truth[..]);
            let outputs = comparison.add(models, &chunk, clean, &path.display().to_string(), first)?;
            for (mosaic, output) in mosaics.iter_mut().flatten().zip(&outputs) {
                mosaic.add(first, &output.reconstruction, &output.weight);
            }
            if let Some(kind) = reference.as_ref().filter(|kind| kind.sources) {
                for (tally, output) in tallies.iter_mut().zip(&outputs) {
                    tally.add(&source_tally(&truth, kind.source.dims(), &output.means, latents));
                }
            }
            first += count;
            progress.advance(count);
        }
        let whole = reference.as_ref().and_then(|kind| kind.source.pieces());
        let psnr_db = mosaics.zip(whole).map(|(mosaics, truth)| {
            mosaics.map(|mosaic| psnr_db(PIXEL_PEAK, mosaic.finish().mean_square_error(truth.sheet())))
        });
        let sources = reference.filter(|kind| kind.sources).and_then(|_| SourceCost::new(&tallies));
        let mut cost = Cost {
            points: source.points(),
            kl: comparison.kl(),
            map_agreement: comparison.map_agreement(),
            snr_db: comparison.snr_db(),
            loss_db: comparison.loss_db(),
            free_energy: comparison.free_energy(),
            psnr_db,
            sources,
            notes,
        };
        let keep = if self.encoding == Encoding::I8 { "i16 or f32" } else { "f32" };
        if cost.most() > LARGE_LOSS {
            cost.notes.push(format!("more than {LARGE_LOSS} dB are lost: better keep {keep}"));
        }
        Ok(cost)
    }
}

impl Facts {
    fn table(&self, out: &Path) -> String {
        let db = |value: Option<f64>| value.map_or("none".into(), |db| format!("{db:.2} dB"));
        let mut rows = vec![
            (
                "encoding",
                format!("{}{}", self.encoding, if self.fixed_point { ", inferred in integers" } else { "" }),
            ),
            ("flash", format!("{} bytes, {} before", self.blob_bytes, self.blob_bytes_before)),
        ];
        if let Some(cost) = &self.cost {
            let [before, after] = cost.snr_db;
            rows.extend([
                ("points", cost.points.to_string()),
                ("KL", format!("{:.2e} nats per point", cost.kl)),
                ("same best state", format!("{:.2} % of the points", 100.0 * cost.map_agreement)),
                ("signal over error", format!("{}, {} before", db(after), db(before))),
                ("loss", cost.loss_db.map_or("none".into(), |loss| format!("{loss:.4} dB"))),
                ("free energy", format!("{:.4}, {:.4} before", cost.free_energy[1], cost.free_energy[0])),
            ]);
            if let Some([before, after]) = cost.psnr_db {
                let loss = before.zip(after).map_or("none".into(), |(a, b)| format!("{:.4} dB", a - b));
                rows.push(("PSNR", format!("{}, {} before, loss {loss}", db(after), db(before))));
            }
            if let Some(sources) = &cost.sources {
                let [before, after] = sources.si_sdr_db;
                let loss = before - after;
                rows.push((
                    "SI-SDR",
                    format!("{}, {} before, loss {loss:.4} dB", db(Some(after)), db(Some(before))),
                ));
                rows.extend(
                    sources.most().map(|(k, loss)| ("largest loss", format!("{loss:.4} dB (source {k})"))),
                );
            }
        }
        let rows: String = rows.iter().map(|(key, value)| format!("{key:<18} {value}\n")).collect();
        let notes = self.cost.iter().flat_map(|cost| &cost.notes).map(|note| format!("note: {note}\n"));
        format!("{}\n{rows}{}", out.display(), notes.collect::<String>())
    }
}
