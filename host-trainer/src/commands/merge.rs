//! `spikelet merge`: dictionaries of single sources as one model of their mixture.

use super::import::build;
use super::model_file::ModelFile;
use super::output::{counted, print, printable, refuse_description, refuse_overwriting};
use super::recover::recover;
use crate::blob::About;
use crate::files;
use crate::groups::Grouping;
use crate::merge::join;
use crate::parameters::{Parameters, SlabCov};
use crate::prepare::{GramName, Options, check_truncation, states_of};
use crate::spectral::{Encoding, Parts};
use crate::{Error, Result};
use spikelet::frame::Frame;
use spikelet::groups::LONGEST_NAME;
use spikelet::{Shape, SpectralModel};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Put models of single sources together as a model of their mixture
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every model becomes a group of latents with a name; `spikelet separate` writes one recording per group. The models must be of
the same kind, and be learned from points of the same form (the same --frame and --hop).

Example: voice and engine noise in one channel
  spikelet train --model gsc --latents 128 --frame 64 --hop 16 voice.wav --out voice.spk
  spikelet train --model gsc --latents 128 --frame 64 --hop 16 engine.wav --out engine.spk
  spikelet merge voice.spk engine.spk --names voice,engine --out both.spk
  spikelet separate both.spk mixture.wav --out-dir parts

The same by spectra, which is better where sources are known by their sound:
  spikelet train --model mca --latents 64 --transform spectrum voice.wav --out voice.spk
  spikelet train --model mca --latents 64 --transform spectrum engine.wav --out engine.spk
  spikelet merge voice.spk engine.spk --names voice,engine --encoding i8 --out both.spk")]
pub(super) struct Merge {
    /// Two or more models
    #[arg(value_name = "MODEL.spk", num_args = 2.., required = true)]
    models: Vec<PathBuf>,
    /// A name for each, with commas between [default: the names of the files]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    names: Vec<String>,
    /// H', latents kept per point [default: the largest of the models']
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: the largest of the models']
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// How spectra are stored, for sources of spectra
    #[arg(long, value_enum, value_name = "NAME", default_value = "f32")]
    encoding: Stored,
    /// Model to write
    #[arg(long, value_name = "BOTH.spk")]
    out: PathBuf,
}

/// Of the spectra of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Stored {
    /// Single precision
    F32,
    /// Bytes, a quarter of the flash
    I8,
}

impl From<Stored> for Encoding {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::F32 => Self::F32,
            Stored::I8 => Self::I8,
        }
    }
}

/// One of the models, read.
struct Part {
    parameters: Parameters,
    options: Options,
    frame: Option<Frame>,
    gains: Vec<f32>,
}

impl Merge {
    pub fn run(self) -> Result<()> {
        refuse_description(&self.out, "spk")?;
        files::check_target(&self.out)?;
        refuse_overwriting(&self.out, &self.models)?;
        let files = self.models.iter().map(|path| ModelFile::read(path)).collect::<Result<Vec<_>>>()?;
        for (file, path) in files.iter().zip(&self.models) {
            if file.room()?.is_some() {
                let what = "a spatial model has all sources of its room already";
                return Err(Error::input(
                    what,
                    path.display(),
                    "train one on a recording in which all are heard",
                ));
            }
        }
        let names = self.names()?;
        if files.iter().any(|file| SpectralModel::is_one(file.raw())) {
            return self.merge_spectral(&files, names);
        }
        if self.encoding == Stored::I8 {
            let advice = "leave it out, and use `spikelet quantize` on the model that is written";
            return Err(Error::input("these are no sources of spectra", "--encoding", advice));
        }
        let parts = self.models.iter().map(|path| read(path)).collect::<Result<Vec<Part>>>()?;
        for (part, path) in parts.iter().zip(&self.models).skip(1) {
            self.check(&parts[0], part, path)?;
        }
        let numbers = (0..).zip(&parts).flat_map(|(k, part)| vec![k; part.parameters.latents]).collect();
        let groups = Grouping { names, numbers };
        let parameters = join(&parts.iter().map(|part| &part.parameters).collect::<Vec<_>>());
        let options = self.options(&parts, &parameters)?;
        let provenance =
            format!("spikelet {} merge of {}", env!("CARGO_PKG_VERSION"), groups.names.join(", "));
        let Part { frame, gains, .. } = &parts[0];
        let about = About { provenance: &provenance, frame: *frame, gains, groups: Some(&groups) };
        let bytes = build(&parameters, &options, about)?;
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;
        let sizes = parts.iter().zip(&groups.names);
        let text: Vec<String> =
            sizes.map(|(part, name)| format!("{name} {}", part.parameters.latents)).collect();
        print(&format!("{}: {} latents ({})\n", self.out.display(), parameters.latents, text.join(", ")))
    }

    /// Sources in one channel.
    fn merge_spectral(&self, files: &[ModelFile], names: Vec<String>) -> Result<()> {
        if self.selected.is_some() || self.max_active.is_some() {
            let what = "exactly one latent of each source is on: there is nothing to choose";
            return Err(Error::input(what, "--selected and --max-active", "leave them out"));
        }
        let mut parts: Vec<Parts> = Vec::new();
        for (file, path) in files.iter().zip(&self.models) {
            let Some(model) = file.spectral()? else {
                let what = "this is no source of spectra, others are";
                return Err(Error::input(what, path.display(), "train all with --transform spectrum"));
            };
            let part = Parts::read(&model);
            if part.sources.len() != 1 {
                let what = "these are several sources already";
                return Err(Error::input(what, path.display(), "merge single sources, all at once"));
            }
            if parts.first().is_some_and(|first| !part.is_like(first)) {
                let what =
                    "its recordings had another rate, or its frames another --hop, than those of the first";
                return Err(Error::input(what, path.display(), "train both in the same way"));
            }
            parts.push(part);
        }
        let sizes: Vec<String> = parts
            .iter()
            .zip(&names)
            .map(|(part, name)| format!("{name} ({})", counted(part.prior.len(), "latent")))
            .collect();
        let provenance = format!("spikelet {} merge of {}", env!("CARGO_PKG_VERSION"), names.join(", "));
        let merged = Parts::merge(&parts, names)?;
        let bytes = merged.bytes(self.encoding.into(), &provenance)?;
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;
        print(&format!("{}: {}, by spectra\n", self.out.display(), sizes.join(", ")))
    }

    fn names(&self) -> Result<Vec<String>> {
        let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let names = match self.names.is_empty() {
            true => self.models.iter().map(stem).collect(),
            false => self.names.clone(),
        };
        if names.len() != self.models.len() {
            let what = format!("{} for {} models", counted(names.len(), "name"), self.models.len());
            return Err(Error::input(what, "--names", "give one for each, with commas between"));
        }
        if let Some(wrong) = names.iter().find(|name| name.is_empty() || name.len() > LONGEST_NAME) {
            let what = format!("a source cannot be called '{}'", printable(wrong));
            let advice =
                format!("give names of 1 to {LONGEST_NAME} letters, with commas between and none at the end");
            return Err(Error::input(what, "--names", advice));
        }
        if let Some(twice) =
            names.iter().enumerate().find_map(|(n, name)| names[..n].contains(name).then_some(name))
        {
            let what = format!("two sources are called {}", printable(twice));
            return Err(Error::input(what, "--names", "give each another name, with commas between"));
        }
        Ok(names)
    }

    /// Whether a model goes with the first.
    fn check(&self, first: &Part, part: &Part, path: &Path) -> Result<()> {
        let what = if part.parameters.kind != first.parameters.kind {
            format!(
                "this is a {} model, the first a {} one",
                part.parameters.kind.name(),
                first.parameters.kind.name()
            )
        } else if part.parameters.dims != first.parameters.dims {
            let here = counted(part.parameters.dims, "dimension");
            format!("{here} here, {} in the first", first.parameters.dims)
        } else if part.frame.map(|frame| Frame { rate: 0, ..frame })
            != first.frame.map(|frame| Frame { rate: 0, ..frame })
        {
            "its points are made in another way than those of the first".into()
        } else if part.frame.map(|frame| frame.rate) != first.frame.map(|frame| frame.rate) {
            "its recordings had another rate than those of the first".into()
        } else if part.gains != first.gains {
            "its bins were evened out with other gains than those of the first".into()
        } else if first.parameters.kind.kind().is_maximal() {
            format!("the sources of {} models do not add up", first.parameters.kind.name())
        } else {
            return Ok(());
        };
        Err(Error::input(what, path.display(), "train both in the same way"))
    }

    fn options(&self, parts: &[Part], parameters: &Parameters) -> Result<Options> {
        let largest =
            |of: fn(&Options) -> usize| parts.iter().map(|part| of(&part.options)).max().unwrap_or(1);
        let selected = self.selected.unwrap_or(largest(|options| options.selected));
        let max_active = self.max_active.unwrap_or(largest(|options| options.max_active).min(selected));
        let first = &parts[0].options;
        let shape = Shape {
            kind: parameters.kind.kind(),
            dims: parameters.dims,
            latents: parameters.latents,
            selected,
            max_active,
            singletons: first.singletons,
            states: states_of(
                first,
                parameters.kind.kind(),
                matches!(parameters.slab_cov, SlabCov::Full(_)),
            )?,
        };
        check_truncation(shape)?;
        Ok(Options { selected, max_active, gram: GramName::Auto, ..*first })
    }
}

fn read(path: &Path) -> Result<Part> {
    let file = ModelFile::read(path)?;
    let blob = file.blob()?;
    let Some((parameters, options)) = recover(&blob) else {
        let what = "this version of spikelet cannot make models of this kind";
        return Err(Error::input(what, path.display(), "use a newer one"));
    };
    Ok(Part { parameters, options, frame: blob.frame(), gains: blob.gains().to_vec() })
}
