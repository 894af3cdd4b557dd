//! `spikelet report`: what a trained model is, on one page.
//!
//! In comes MODEL.json with MODEL.spk beside it, and data if there is any; out goes one HTML file with plots inside, which needs
//! nothing else. The parts, in the order of the page: `origin` (head and how it was made), `training`, `dictionary`, `sparsity`,
//! `strength`, `sounds`, `examples`, `device` (integers, cost). Below them `description` (MODEL.json), `cell` and `plot` (SVG), `page`
//! (HTML) and `digits` (numbers as text). Models of rooms and of one channel have a page of their own: `streams`.

mod cell;
mod description;
mod device;
mod dictionary;
mod digits;
mod examples;
mod origin;
mod page;
mod plot;
mod sounds;
mod sparsity;
mod spectrum;
mod streams;
mod strength;
mod training;

use super::inspect::Facts;
use super::model_file::{ModelFile, Separator};
use super::output::{print, refuse_overwriting};
use super::processor::Processor;
use super::separate::truths;
use crate::{Error, Result, files};
pub(super) use description::Description;
use description::Streamed;
use examples::Sample;
use page::{escaped, hint, note, section};
use sounds::Heard;
use spikelet::Engine;
use spikelet::blob::Blob;
use spikelet::model::Dictionary;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write one page about a trained model, with plots
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The page has everything in it, needs no network, and follows the light or dark scheme of the browser: free energy by
iteration, the dictionary (as waveforms, pictures or mixing directions), how many latents are on, their strength and the
noise, flash, RAM and operations on a device, settings and warnings. With --data also examples with posterior
certainty, and what dictionaries of 16 and 8 bits lose on that data; for a recording players of the mixture and its sources,
and with --reference how close they come to the true ones.

MODEL.spk is read where `train` put it, beside MODEL.json; without it the page has no figures of the device. Of models of a room and of one
channel the page has where sources are or their typical spectra, and with --data players, levels and what is heard when.

Example:
  spikelet train --model gsc --latents 64 --patch 8x8 picture.png --out patches.spk
  spikelet report patches.json --out report.html
  spikelet report patches.json --data picture.png --out report.html
  spikelet report voices.json --data mixture.wav --reference voice1.wav voice2.wav --out report.html
  spikelet report both.spk --data voice-and-fan.wav --out report.html")]
pub(super) struct Report {
    /// A model or its description, as `spikelet train` wrote them side by side; models of rooms and of one channel also by themselves
    #[arg(value_name = "MODEL.json|MODEL.spk")]
    description: PathBuf,
    /// The page to write
    #[arg(long, value_name = "REPORT.html")]
    out: PathBuf,
    /// Points to take examples from: .npy (N x D), .csv (a row each), .wav (a sample of all channels each); windows of .wav
    /// and patches of .png as the model was made for
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
    /// The true sources of a recording, every channel of every file one, for figures of quality
    #[arg(long, value_name = "WAV", num_args = 1.., requires = "data")]
    reference: Vec<PathBuf>,
    /// Draw points and dictionary as pictures of width x height, where the model does not know that rows of its data are some
    #[arg(long, value_name = "WxH", value_parser = super::framing::size)]
    patch: Option<(u32, u32)>,
}

impl Report {
    pub fn run(self) -> Result<()> {
        if !matches!(files::ending(&self.description).as_deref(), Some("json" | "spk")) {
            let what = "this is neither a model nor its description";
            return Err(Error::input(what, self.description.display(), "give MODEL.json or MODEL.spk"));
        }
        let [json_path, model_path] = ["json", "spk"].map(|ending| self.description.with_extension(ending));
        files::check_target(&self.out)?;
        let inputs = [Some(&json_path), Some(&model_path), self.data.as_ref()].into_iter().flatten();
        refuse_overwriting(&self.out, &inputs.chain(&self.reference).collect::<Vec<_>>())?;
        let file = if model_path.exists() { Some(ModelFile::read(&model_path)?) } else { None };
        let html = match file.as_ref().map(ModelFile::streamer).transpose()?.flatten() {
            Some(model) => {
                if self.patch.is_some() {
                    let what = "models of whole recordings have no patches";
                    return Err(Error::input(what, "--patch", "leave it out"));
                }
                let told = json_path.exists().then(|| Streamed::read(&json_path)).transpose()?;
                self.streamed(model, told.as_ref(), &model_path)?
            }
            None => self.of_points(&json_path, file.as_ref(), &model_path)?,
        };
        files::write_atomically(&self.out, |writer| writer.write_all(html.as_bytes()))?;
        let without = match (&file, &self.data) {
            (None, _) => format!(", without figures of the device: there is no {}", model_path.display()),
            (_, None) => ", without examples: --data gives some".into(),
            _ => String::new(),
        };
        print(&format!("{}: {} bytes{without}\n", self.out.display(), html.len()))
    }

    /// The page of a model that infers points.
    fn of_points(&self, json_path: &Path, file: Option<&ModelFile>, model_path: &Path) -> Result<String> {
        if file.is_some() && !json_path.exists() {
            let what = "a page about this model needs its description too";
            let advice = "give the MODEL.json that `spikelet train` wrote, or see `spikelet inspect`";
            return Err(Error::input(what, json_path.display(), advice));
        }
        let mut told = Description::read(json_path)?;
        if let Some((width, height)) = self.patch {
            told = told.with_picture(width, height, json_path)?;
        }
        self.page(&told, file, model_path)
    }

    fn page(&self, told: &Description, file: Option<&ModelFile>, model_path: &Path) -> Result<String> {
        let blob = file.map(ModelFile::blob).transpose()?;
        if let Some(blob) = &blob {
            self.check_same(told, blob, model_path)?;
        }
        let facts = blob.as_ref().map(|blob| {
            let engine = Engine::of_kind(blob.kind());
            Ok(Facts::new(blob, engine, Processor::default().predict(blob, engine)?))
        });
        let facts = facts.transpose()?;
        let stem = self.description.file_stem().unwrap_or_default().to_string_lossy();
        let mut body = origin::head(told, &stem, facts.as_ref()) + "<main>\n";
        body += &training::html(&told.run);
        body += &dictionary::html(told);
        body += &blob.as_ref().map(spectrum::html).unwrap_or_default();
        body += &sparsity::html(told);
        body += &strength::html(told);
        body += &match (file, &blob, &facts) {
            (Some(file), Some(blob), Some(facts)) => self.with_blob(told, file, blob, facts, model_path)?,
            _ => self.without_blob(model_path)?,
        };
        body += &origin::html(told, &self.description, facts.as_ref());
        Ok(page::whole(&stem, &body))
    }

    /// Examples, integers, cost.
    fn with_blob(
        &self,
        told: &Description,
        file: &ModelFile,
        blob: &Blob<'_>,
        facts: &Facts<'_>,
        model_path: &Path,
    ) -> Result<String> {
        let sample = match &self.data {
            Some(data) => Some(Sample::read(data, blob, model_path)?),
            None => None,
        };
        let examples = match &sample {
            Some(sample) => examples::html(sample, blob.model(), dictionary::cells(told))?,
            None => {
                let how = hint(format_args!(
                    "To see what the model makes of single points, and how sure it is, name a file of data: \
                     <code>spikelet report {} --data DATA --out {}</code>",
                    escaped(&self.description.display().to_string()),
                    escaped(&self.out.display().to_string())
                ));
                section("examples", "Examples", &how)
            }
        };
        Ok(self.sounds(blob, model_path)?
            + &examples
            + &device::encodings(file, model_path, sample.as_ref())?
            + &device::cost(facts))
    }

    /// Players, where the data is a recording that the model takes apart.
    fn sounds(&self, blob: &Blob<'_>, model_path: &Path) -> Result<String> {
        match self.data.as_ref().filter(|data| sounds::apply(blob, data)) {
            Some(data) => {
                let truths = truths(&self.reference)?;
                Ok(Heard::new(Separator::Points(*blob), model_path, data, &truths)?.html(data, &truths))
            }
            None if self.reference.is_empty() => Ok(String::new()),
            None => {
                let advice = "use `spikelet eval --reference` for other data";
                Err(Error::input("only recordings have sources to compare with", "--reference", advice))
            }
        }
    }

    /// What is missing without the model itself.
    fn without_blob(&self, model_path: &Path) -> Result<String> {
        let place = model_path.display();
        if self.data.is_some() {
            let advice = "put the model beside its description, or leave --data away";
            return Err(Error::input("there is no model to infer with", place, advice));
        }
        let text = note(format_args!(
            "The model itself, {}, does not lie beside its description. So this page has no examples, no losses of integers and no \
             figures of flash, RAM and operations. Put it there and write the page anew.",
            escaped(&place.to_string())
        ));
        Ok(section("cost", "Cost on a device", &text))
    }

    /// Refuses a blob of another model: kind, sizes, and W where that is in floats.
    fn check_same(&self, told: &Description, blob: &Blob<'_>, model_path: &Path) -> Result<()> {
        let (parameters, model) = (&told.parameters, blob.model());
        let other = |what: String| {
            let place = format!("{} and {}", self.description.display(), model_path.display());
            let advice = "keep together what one run of `spikelet train` wrote";
            Err(Error::input(what, place, advice))
        };
        let (dims, latents) = (model.shape.dims, model.shape.latents);
        if (parameters.dims, parameters.latents) != (dims, latents) {
            return other(format!(
                "the description has {} dimensions and {} latents, the model {dims} and {latents}",
                parameters.dims, parameters.latents
            ));
        }
        if parameters.kind.kind() != model.shape.kind {
            let kinds = [parameters.kind.name(), super::model_file::names::kind(model.shape.kind)];
            return other(format!("the description is of kind {}, the model {}", kinds[0], kinds[1]));
        }
        if matches!(model.dictionary, Dictionary::Float(_)) {
            for latent in 0..latents {
                let pairs = model.column(latent).zip(told.column(latent));
                if let Some(at) = pairs.into_iter().position(|(stored, w)| stored != w as f32) {
                    return other(format!("W[{at}, {latent}] of the description is not that of the model"));
                }
            }
        }
        Ok(())
    }
}
