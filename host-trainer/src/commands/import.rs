//! `spikelet import`: a blob from parameters that came from elsewhere.

use super::framing::Framing;
use super::given::{Covariance, Given, matrix};
use super::model_file::{ModelFile, arena_bytes, warn_of_digits};
use super::output::{counted, print, refuse_description, refuse_overwriting};
use crate::blob::About;
use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use crate::prepare::{GramName, Options, Prepared, SelectionName, StatesName};
use crate::{Error, Result, blob, files};
use clap::ValueEnum;
use spikelet::Gibbs;
use spikelet::capacity::MAX_ACTIVE;
use spikelet::frame::{Form, Frame};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Up to this many latents every state is looked at unless flags say otherwise: 256 states.
const SMALL: usize = 8;

/// Build a model from parameters that came from elsewhere
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without flags, the states of a sample are found by search: among 20 candidates at most, up to 12 of them on at once. With --states
subsets, inference is exact for up to 8 latents; beyond that the 8 best latents of a sample are kept, up to 3 of them on at once.

Example:
  spikelet import --model gsc --w W.npy --pi 0.1 --sigma2 0.01 --out model.spk
  spikelet import --model mca --w W.npy --pi 0.1 --sigma2 0.01 --selected 10 --out masks.spk

where W.npy was saved in Python by numpy.save('W.npy', W), W having one row per sensor and one column per source.")]
pub(super) struct Import {
    /// Kind of model: gsc (sources that are off, or on with any strength, added up by W), bsc or linca (sources that are
    /// off or on, added up), nmf (the same, W >= 0), mca (off or on, the strongest counts, W >= 0) or ssmca (off, or on with
    /// any strength, the strongest counts, W >= 0; sampled)
    #[arg(long, value_name = "KIND")]
    model: String,
    /// Dictionary W, an array of dimensions x latents (D x H)
    #[arg(long, value_name = "W.npy")]
    w: PathBuf,
    /// Probability that a latent is on: a number or H numbers [default: 2/H, at most 0.5]
    #[arg(long, value_name = "NUMBER|pi.npy", allow_negative_numbers = true)]
    pi: Option<Given>,
    /// Mean of a latent that is on: a number or H numbers (gsc, ssmca) [default: 0]
    #[arg(long, value_name = "NUMBER|mu.npy", allow_negative_numbers = true)]
    mu: Option<Given>,
    /// Variance of a latent that is on: a number, H numbers (gsc, ssmca) or an H x H covariance (gsc) [default: 1]
    #[arg(long, value_name = "NUMBER|psi2.npy", allow_negative_numbers = true)]
    psi2: Option<Given>,
    /// Variance of the observation noise: a number, D numbers or a D x D covariance (not for mca, ssmca); always needed
    #[arg(long, value_name = "NUMBER|sigma2.npy", allow_negative_numbers = true)]
    sigma2: Option<Given>,
    /// H', latents kept per sample; with adaptive states candidates at most [default: H, at most 20; with other states at most 8]
    #[arg(long, value_name = "COUNT")]
    selected: Option<usize>,
    /// Most latents on at once [default: H', at most 12; with other states H' when H is at most 8, else 3]; samplers do not
    /// care
    #[arg(long, value_name = "COUNT")]
    max_active: Option<usize>,
    /// Leave out the states with one latent on that is not among the H'
    #[arg(long)]
    no_singletons: bool,
    /// How latents are scored for the H' [default: singleton for gsc, cosine for bsc and ssmca, bound
    /// for nmf and mca]
    #[arg(long, value_enum)]
    selection: Option<SelectionName>,
    /// Which states of a sample are looked at [default: adaptive; table for a full --psi2; subsets with --selection or
    /// --no-singletons, which are about them]
    #[arg(long, value_enum)]
    states: Option<StatesName>,
    /// States of a search whose neighbours are looked at, with adaptive states [default: 4]
    #[arg(long, value_name = "COUNT")]
    expansions: Option<usize>,
    /// Whether the H x H matrix W^T Sigma^-1 W is part of the model: more flash, fewer operations
    #[arg(long, value_enum, default_value = "auto")]
    gram: GramName,
    #[command(flatten)]
    framing: Framing,
    /// Where the model came from; kept in it as text [default: the version of spikelet and the name of W]
    #[arg(long, value_name = "TEXT")]
    provenance: Option<String>,
    /// The model to write
    #[arg(long, value_name = "MODEL.spk")]
    out: PathBuf,
}

impl Import {
    pub fn run(mut self) -> Result<()> {
        let Ok(kind) = ModelKind::from_str(&self.model, false) else {
            let what = format!("'{}' is not a kind of model that this version can import", self.model);
            return Err(Error::input(
                what,
                "--model",
                "it knows gsc, bsc (also called linca), nmf, mca, ssmca and gmm",
            ));
        };
        self.check_flags(kind)?;
        refuse_description(&self.out, "spk")?;
        files::check_target(&self.out)?;
        refuse_overwriting(&self.out, &self.inputs())?;
        let parameters = self.parameters(kind)?;
        let options = self.options(&parameters);
        let provenance = match &self.provenance {
            Some(text) => text.clone(),
            None => {
                let file = self.w.file_name().unwrap_or_default().to_string_lossy();
                format!("spikelet {} import of {file}", env!("CARGO_PKG_VERSION"))
            }
        };
        self.framing.set_dims(parameters.dims);
        let frame = self.framing.frame(kind, 256, || Ok(parameters.dims))?;
        frame.iter().try_for_each(|frame| frame_fits(frame, parameters.dims, &self.w))?;
        let about = About { provenance: &provenance, frame, ..About::default() };
        let bytes = build(&parameters, &options, about)?;
        files::write_atomically(&self.out, |writer| writer.write_all(&bytes))?;

        let file = ModelFile::new(self.out.display().to_string(), &bytes);
        let model = file.blob()?.model();
        warn_of_digits(&model);
        let shape = model.shape;
        print(&format!(
            "{}: {}, {} ({} selected, up to {} on), {}\n\
             per sample {} multiply-adds; flash {} bytes, RAM {} bytes per stream\n",
            self.out.display(),
            counted(shape.dims, "dimension"),
            counted(shape.latents, "latent"),
            shape.selected,
            shape.max_active,
            match shape.kind.is_sampled() {
                true => format!("{} sweeps", Gibbs::SWEEPS),
                false => format!("{} states", shape.states()),
            },
            model.operations().total(),
            bytes.len(),
            arena_bytes(shape),
        ))
    }

    fn inputs(&self) -> Vec<&PathBuf> {
        let given = [self.pi.as_ref(), self.mu.as_ref(), self.psi2.as_ref(), self.sigma2.as_ref()];
        let files = given.into_iter().flatten().filter_map(|given| match given {
            Given::File(path) => Some(path),
            Given::Number(_) => None,
        });
        [&self.w].into_iter().chain(files).collect()
    }

    /// Flags that say nothing about this kind of model are mistakes.
    fn check_flags(&self, kind: ModelKind) -> Result<()> {
        let name = kind.name();
        if !kind.kind().has_slab() {
            for (flag, is_given) in [("--mu", self.mu.is_some()), ("--psi2", self.psi2.is_some())] {
                if is_given {
                    let what = format!("a latent of a model of kind {name} is off or on, without a strength");
                    return Err(Error::input(what, flag, "leave the flag out, or use --model gsc"));
                }
            }
        }
        if kind.kind().is_maximal() && self.gram != GramName::Auto {
            let what = format!("a model of kind {name} has no Gram matrix");
            return Err(Error::input(what, "--gram", "leave the flag out"));
        }
        Ok(())
    }

    fn parameters(&self, kind: ModelKind) -> Result<Parameters> {
        let Some(sigma2) = &self.sigma2 else {
            let advice = "give the variance of the noise in each dimension, in the units of the data squared";
            return Err(Error::input("the noise is not known", "--sigma2", advice));
        };
        let (dims, latents, dictionary) = matrix(&self.w)?;
        let vector = |given: &Option<Given>, default: f64| {
            given.as_ref().map_or_else(|| Ok(vec![default; latents]), |given| given.vector(latents))
        };
        Ok(Parameters {
            kind,
            dims,
            latents,
            dictionary,
            prior: vector(&self.pi, (2.0 / latents as f64).min(0.5))?,
            slab_mean: if kind.kind().has_slab() { vector(&self.mu, 0.0)? } else { Vec::new() },
            slab_cov: match &self.psi2 {
                None => SlabCov::Unit,
                Some(given) => match given.covariance(latents, "latent")? {
                    Covariance::Shared(psi2) => SlabCov::Diagonal(vec![psi2; latents]),
                    Covariance::Diagonal(psi2) => SlabCov::Diagonal(psi2),
                    Covariance::Full(psi) => SlabCov::Full(psi),
                },
            },
            noise: match sigma2.components(dims, latents).filter(|_| kind == ModelKind::Gmm) {
                Some(sigma2) => NoiseCov::Components(sigma2),
                None => match sigma2.covariance(dims, "dimension")? {
                    Covariance::Shared(sigma2) => NoiseCov::Shared(sigma2),
                    Covariance::Diagonal(sigma2) => NoiseCov::Diagonal(sigma2),
                    Covariance::Full(sigma) => NoiseCov::Full(sigma),
                },
            },
        })
    }

    /// Which states, as asked for or as fits.
    fn states(&self, kind: ModelKind, has_full_slab: bool) -> StatesName {
        match self.states {
            Some(states) => states,
            None if has_full_slab => StatesName::Table,
            None if self.selection.is_some()
                || self.no_singletons
                || kind.kind().is_sampled()
                || kind.kind().is_mixture() =>
            {
                StatesName::Subsets
            }
            None => StatesName::Adaptive,
        }
    }

    fn options(&self, parameters: &Parameters) -> Options {
        let (kind, latents) = (parameters.kind, parameters.latents);
        let states = self.states(kind, matches!(parameters.slab_cov, SlabCov::Full(_)));
        let is_adaptive = states == StatesName::Adaptive;
        let selected =
            self.selected.unwrap_or(latents.min(if is_adaptive { Options::CANDIDATES } else { SMALL }));
        let most = match kind.kind().is_sampled() {
            _ if kind.kind().is_mixture() => 1,
            true => selected.min(MAX_ACTIVE),
            false if is_adaptive => selected.min(Options::ACTIVE),
            false if latents <= SMALL => selected,
            false => selected.min(3),
        };
        // Of a mixture the selected components are all that count, where fewer than all are asked for.
        let is_part = kind.kind().is_mixture() && self.selected.is_some_and(|selected| selected < latents);
        Options {
            selected,
            max_active: self.max_active.unwrap_or(most),
            singletons: !self.no_singletons && !is_part,
            selection: self.selection.unwrap_or_else(|| SelectionName::of_kind(kind)),
            states: Some(states),
            expansions: self.expansions.unwrap_or(Options::EXPANSIONS),
            gram: self.gram,
        }
    }
}

/// Refuses patches or windows that are no columns of the dictionary.
fn frame_fits(frame: &Frame, dims: usize, w: &Path) -> Result<()> {
    let (flag, size) = match frame.form {
        Form::Windows { length, .. } => ("--frame", length as usize),
        Form::Patches { width, height, colours } => {
            ("--patch", width as usize * height as usize * usize::from(colours))
        }
        _ => return Ok(()),
    };
    if size == dims {
        return Ok(());
    }
    let what = format!("{size} numbers in a point, and {dims} rows of the dictionary");
    Err(Error::input(what, format_args!("{flag} and {}", w.display()), "make them equal"))
}

/// Parameters to the bytes of a blob.
pub(super) fn build<'a>(
    parameters: &Parameters,
    options: &Options,
    about: impl Into<About<'a>>,
) -> Result<Vec<u8>> {
    let prepared = Prepared::<f32>::new(parameters, options)?;
    blob::write(&prepared, &parameters.slab_cov, about)
}
