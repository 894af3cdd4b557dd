//! `spikelet quantize`: the same model with a dictionary of integers, and what that costs in accuracy.

use super::model_file::{ModelFile, same_dims};
use super::output::{Progress, print, refuse_overwriting};
use super::recover::recover;
use crate::blob::About;
use crate::compare::Comparison;
use crate::data::Source;
use crate::groups::Grouping;
use crate::prepare::Prepared;
use crate::{Error, Result, blob, files};
use serde::Serialize;
use spikelet::Blob;
use spikelet::model::{Dictionary, Model, Width};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Points between two steps of the progress bar.
const PIECE: usize = 1000;

/// Write a model with a smaller dictionary, and say what that costs in accuracy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The dictionary is three quarters (i8) or half (i16) smaller, and a sample costs less: on a Cortex-M4 the products with
the dictionary take 0.95 (i16) instead of 1.14 instructions each, on a Cortex-M0 11 instead of 220. The rounding error
becomes part of the model's noise, so that probabilities stay what they say.

Figures with --data (the names are those of --json):
  kl             mean KL divergence of the posteriors, in nats per point, from those of the model as it was
  map_agreement  part of the points whose most probable state is the same
  snr_db         data over what W<s.z> leaves of it, of the model as it was and of the new one; with --reference the data
                 without noise instead
  loss_db        the difference of the two
  free_energy    mean of ln p(y), of both

Example:
  spikelet quantize model.spk --encoding i8 --out small.spk
  spikelet quantize model.spk --encoding i16 --out small.spk --data recording.wav --json")]
pub(super) struct Quantize {
    /// The model, in f32, made by `spikelet train` or `spikelet import`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// How the dictionary is stored
    #[arg(long, value_enum)]
    encoding: Encoding,
    /// The model to write
    #[arg(long, value_name = "SMALL.spk")]
    out: PathBuf,
    /// Points to compare both models on: .npy (N x D), .csv (a row each) or .wav (a sample of all channels each)
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
    /// The same points without noise (N x D)
    #[arg(long, value_name = "CLEAN", requires = "data")]
    reference: Option<PathBuf>,
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
pub(super) fn encode(file: &ModelFile, name: &Path, width: Option<Width>) -> Result<Vec<u8>> {
    let blob = file.blob()?;
    if matches!(blob.model().dictionary, Dictionary::Integer(_)) {
        let advice = "give the model in f32 that it was made from";
        return Err(Error::input("the model has integers already", name.display(), advice));
    }
    let Some(width) = width else { return Ok(file.bytes(&blob).to_vec()) };
    let Some((parameters, options)) = recover(&blob) else {
        let what = "this version of spikelet cannot make models of this kind";
        return Err(Error::input(what, name.display(), "use a newer one"));
    };
    let prepared = Prepared::<f32>::quantized(&parameters, &options, width)?;
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
}

impl Quantize {
    pub fn run(self) -> Result<()> {
        files::check_target(&self.out)?;
        let file = ModelFile::read(&self.model)?;
        let inputs: Vec<&PathBuf> =
            [Some(&self.model), self.data.as_ref(), self.reference.as_ref()].into_iter().flatten().collect();
        refuse_overwriting(&self.out, &inputs)?;
        let bytes = encode(&file, &self.model, self.encoding.width())?;
        let small = ModelFile::new(self.out.display().to_string(), &bytes);
        let models = [file.blob()?.model(), small.blob()?.model()];
        let cost = match &self.data {
            Some(path) => Some(self.compare(models, &file.blob()?, path)?),
            None => None,
        };
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;
        let facts = Facts {
            encoding: super::model_file::names::encoding(&models[1]),
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

    fn compare(&self, models: [Model<'_, f32>; 2], blob: &Blob<'_>, path: &Path) -> Result<Cost> {
        let dims = models[0].shape.dims;
        let open = |path: &Path| Source::for_model(path, blob, 1);
        let mut source = open(path)?;
        let mut clean = self.reference.as_deref().map(open).transpose()?;
        same_dims(&source, &models[0], &self.model)?;
        if let Some(clean) = &clean
            && (clean.points(), clean.dims()) != (source.points(), dims)
        {
            let what = format!(
                "{} x {} numbers where {} x {dims} are needed",
                clean.points(),
                clean.dims(),
                source.points()
            );
            return Err(Error::input(what, clean.path().display(), "give the same points without noise"));
        }
        if source.points() == 0 {
            return Err(Error::input("there are no points", path.display(), "give at least one"));
        }
        let mut comparison = Comparison::default();
        let mut progress = Progress::new("compare", source.points());
        let (mut chunk, mut truth, mut first) = (Vec::new(), Vec::new(), 0);
        while first < source.points() {
            let count = source.read_chunk(first, PIECE, &mut chunk)?;
            if let Some(clean) = &mut clean {
                clean.read_chunk(first, count, &mut truth)?;
            }
            let truth = clean.is_some().then_some(&truth[..]);
            comparison.add(models, &chunk, truth, &path.display().to_string(), first)?;
            first += count;
            progress.advance(count);
        }
        Ok(Cost {
            points: source.points(),
            kl: comparison.kl(),
            map_agreement: comparison.map_agreement(),
            snr_db: comparison.snr_db(),
            loss_db: comparison.loss_db(),
            free_energy: comparison.free_energy(),
        })
    }
}

impl Facts {
    fn table(&self, out: &Path) -> String {
        let db = |value: Option<f64>| value.map_or("none".into(), |db| format!("{db:.2} dB"));
        let mut rows = vec![
            ("encoding", self.encoding.to_string()),
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
        }
        let rows: String = rows.iter().map(|(key, value)| format!("{key:<18} {value}\n")).collect();
        format!("{}\n{rows}", out.display())
    }
}
