//! `spikelet denoise`: data as the model explains it, without the noise.
//!
//! Every point becomes its posterior mean, W <s.z>, computed by the core in `f32`. Where points are pieces of a picture or
//! recording, every pixel is the mean over the pieces it lies in, each with the inverse of its posterior variance as weight. Of
//! patches of pictures that overlap each loses a little less than its noise: see [`crate::pictures`].

mod masked;

use super::engine::{self, Extra};
use super::inferring::Inferring;
use super::model_file::{ModelFile, same_dims, warn_of_rate};
use super::output::{Progress, counted, print, refuse_overwriting};
use super::recover::{learned_scores, recover_as};
use super::separate::decibels;
use super::streaming;
use crate::data::{Mosaic, Points, Sheet, Source, write_npy_f32, write_wav};
use crate::files;
use crate::metrics::{psnr_db, si_sdr_db, snr_db};
use crate::pictures::for_overlapping;
use crate::prepare::Prepared;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use spikelet::{Engine, Kind, Model, SpectralModel};
use std::path::{Path, PathBuf};

/// The largest number a pixel has.
const PEAK: f64 = 255.0;

/// Remove the noise from a picture, a recording or points
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The model says how data becomes points: patches of pictures, `train --frame 256` for windows of a recording;
else every sample of all channels, or every row of an array, is a point. A picture may be its own training data.

With a model of spectra (`train --transform spectrum`, `merge`) one source of a recording stays, by default the first, and the others are
its noise; `spikelet separate` writes all of them.

Example:
  spikelet train noisy.png --out patches.spk
  spikelet denoise patches.spk noisy.png clean.png
  spikelet denoise patches.spk noisy.png clean.png --engine gibbs --selected 40 --sweeps 100

A picture with scratches, which are not 0 in another picture:
  spikelet train scratched.png --mask scratches.png --out patches.spk
  spikelet denoise patches.spk scratched.png whole.png --mask scratches.png --fill-only

A voice from the noise of a fan, which was recorded by itself:
  spikelet train --model mca --latents 128 --transform spectrum voices/ --out voice.spk
  spikelet train --model mca --latents 64 --transform spectrum fan.wav --out fan.spk
  spikelet merge voice.spk fan.spk --names voice,fan --encoding i8 --out both.spk
  spikelet denoise both.spk noisy.wav clean.wav --reduction 15")]
pub(super) struct Denoise {
    /// The model, made by `spikelet train`, `import`, `merge` or `quantize`
    #[arg(value_name = "MODEL.spk")]
    model: PathBuf,
    /// What to remove noise from: .png, .wav or .npy
    #[arg(value_name = "IN")]
    data: PathBuf,
    /// The result, in the format of its ending
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The truth, to print how far data and result are from it
    #[arg(long, value_name = "CLEAN")]
    reference: Option<PathBuf>,
    /// Pixels from one patch to the next; 1 is best, more is faster
    #[arg(long, value_name = "PIXELS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    step: u32,
    /// Which pixels of the picture are missing, those that are not 0 in this .png or .npy
    #[arg(long, value_name = "MASK")]
    mask: Option<PathBuf>,
    /// Leave the pixels that are not missing as they are, for a picture that has no noise
    #[arg(long)]
    fill_only: bool,
    /// The source that stays, with models of spectra [default: the first]
    #[arg(long, value_name = "NAME")]
    keep: Option<String>,
    /// By how many dB the others are reduced, at most, with models of spectra; 10 to 15 sound most natural [default: all that is found of
    /// them]
    #[arg(long, value_name = "DB", value_parser = decibels)]
    reduction: Option<f32>,
    #[command(flatten)]
    inferring: Inferring,
}

impl Denoise {
    pub fn run(self) -> Result<()> {
        let file = ModelFile::read(&self.model)?;
        if let Some(model) = file.spectral()? {
            if self.mask.is_some() || self.fill_only {
                let advice = "leave it out, or use a model of pictures";
                return Err(Error::input("recordings have no mask", "--mask", advice));
            }
            return self.channel(model);
        }
        if self.keep.is_some() || self.reduction.is_some() {
            let advice = "leave them out, or use a model of --transform spectrum";
            return Err(Error::input("this model has no sources by name", "--keep and --reduction", advice));
        }
        let blob = file.blob()?;
        let frame = blob.frame();
        let (model, engine) = self.inferring.of(blob.model())?;
        files::check_target(&self.out)?;
        let inputs = [Some(&self.model), Some(&self.data), self.reference.as_ref(), self.mask.as_ref()];
        refuse_overwriting(&self.out, &inputs.into_iter().flatten().collect::<Vec<_>>())?;
        if let Some(Frame { form: Form::Patches { width, height, .. }, .. }) = frame
            && self.step > width.min(height)
        {
            let what = format!("every {} pixels a patch of {width} x {height} leaves some out", self.step);
            let advice = format!("choose {} or less", width.min(height));
            return Err(Error::input(what, "--step", advice));
        }
        if let Some(Frame { form: Form::Transform { .. }, .. }) = frame {
            let what = "the model takes sound apart into sources";
            return Err(Error::input(what, self.model.display(), "use spikelet separate"));
        }
        let sides = match frame.map(|frame| frame.form) {
            Some(Form::Patches { width, height, .. }) => width.min(height),
            _ => 0,
        };
        // Of patches that hardly overlap each is taken as it is best by itself.
        let overlap = 2 * self.step <= sides
            && self.mask.is_none()
            && model.fixed.is_none()
            && (model.shape.kind, engine) == (Kind::Gsc, Engine::Truncated)
            && !model.has_full_slab()
            && learned_scores(&model).is_none();
        let less = match recover_as(&blob, model).filter(|_| overlap) {
            Some((parameters, options)) => {
                let (parameters, options) = for_overlapping(parameters, options);
                Some(Prepared::<f32>::new(&parameters, &options)?)
            }
            None => None,
        };
        let model = less.as_ref().map_or(Ok(model), Prepared::model)?;
        if let Some(mask) = &self.mask {
            let (text, points) = self.masked((model, engine), frame.as_ref(), mask)?;
            return print(&format!("{}: {}{text}\n", self.out.display(), counted(points, "point")));
        }
        if self.fill_only {
            let advice = "add --mask, or leave it out";
            return Err(Error::input("nothing says which pixels are missing", "--fill-only", advice));
        }
        let source = Source::for_model(&self.data, &blob, self.step as usize)?;
        same_dims(&source, &model, &self.model)?;
        warn_of_rate(&source, &blob);
        let (text, points) = match source.pieces().is_some() {
            true => {
                let extra = if less.is_some() { Extra::Overlapping } else { Extra::Reconstruction };
                self.sheet((model, engine, extra), frame.as_ref(), source)?
            }
            false => self.points(model, engine, source)?,
        };
        print(&format!("{}: {}{text}\n", self.out.display(), counted(points, "point")))
    }

    /// One source of several in one channel stays.
    fn channel(&self, model: SpectralModel<'_>) -> Result<()> {
        if !matches!(files::ending(&self.out).as_deref(), Some("wav" | "wave")) {
            let what = "the result is a recording, which does not fit this kind of file";
            return Err(Error::input(what, self.out.display(), "give the name of a .wav"));
        }
        files::check_target(&self.out)?;
        let inputs = [Some(&self.model), Some(&self.data), self.reference.as_ref()];
        refuse_overwriting(&self.out, &inputs.into_iter().flatten().collect::<Vec<_>>())?;
        let groups = model.groups();
        let names: Vec<&str> = (0..groups.len()).map(|group| groups.name(group)).collect();
        let kept = match &self.keep {
            None => 0,
            Some(name) => names.iter().position(|other| other == name).ok_or_else(|| {
                let what = format!("the model has no source of this name, but {}", names.join(", "));
                Error::input(what, format_args!("--keep {name}"), "choose one of these")
            })?,
        };
        let truth = self.reference.as_ref().map(Points::read).transpose()?;
        let separated = streaming::channels(model, &self.model, &self.data, self.reduction)?;
        let signal = &separated.signals[kept];
        let mut text = String::new();
        if let Some(truth) = truth {
            if truth.values.len() != signal.len() {
                return Err(self.other_size(vec![truth.values.len()], vec![signal.len()]));
            }
            let data = Points::read(&self.data)?.values;
            let result: Vec<f64> = signal.iter().map(|&x| f64::from(x)).collect();
            text = gain("SI-SDR", si_sdr_db(&data, &truth.values), si_sdr_db(&result, &truth.values));
        }
        write_wav(&self.out, separated.rate, separated.channels, signal)?;
        print(&format!("{}: {}{text}\n", self.out.display(), names[kept]))
    }

    /// A picture or recording in pieces.
    fn sheet(
        &self,
        how: (Model<'_, f32>, Engine, Extra),
        frame: Option<&Frame>,
        mut source: Source,
    ) -> Result<(String, usize)> {
        let truth = match (&self.reference, frame) {
            (Some(path), Some(frame)) => Some(Sheet::read(path, frame.form)?),
            _ => None,
        };
        let whole = source.pieces().expect("a source of pieces").clone();
        let data = whole.sheet();
        data.check_writable(&self.out)?;
        if let Some(truth) = truth.as_ref().filter(|truth| truth.size() != data.size()) {
            return Err(self.other_size(truth.size(), data.size()));
        }
        let mut mosaic = Mosaic::new(&whole);
        self.each(how, &mut source, |first, values, weights| mosaic.add(first, values, weights))?;
        let result = mosaic.finish();
        result.write(&self.out)?;
        let text = truth.map_or_else(String::new, |truth| {
            let [before, after] = [data, &result].map(|sheet| sheet.mean_square_error(&truth));
            match source.rate() {
                Some(_) => {
                    let snr = |error| snr_db(truth.mean_square(), error);
                    gain("SNR", snr(before), snr(after))
                }
                None => gain("PSNR", psnr_db(PEAK, before), psnr_db(PEAK, after)),
            }
        });
        Ok((text, source.points()))
    }

    /// Points one by one.
    fn points(&self, model: Model<'_, f32>, engine: Engine, mut source: Source) -> Result<(String, usize)> {
        let (points, dims) = (source.points(), source.dims());
        let truth = self.reference.as_ref().map(Points::read).transpose()?;
        if let Some(truth) = truth.as_ref().filter(|truth| (truth.points, truth.dims) != (points, dims)) {
            return Err(self.other_size(vec![truth.points, truth.dims], vec![points, dims]));
        }
        let rate = match (files::ending(&self.out).as_deref(), source.rate()) {
            (Some("npy"), _) => None,
            (Some("wav" | "wave"), Some(rate)) => Some(rate),
            _ => {
                let what = "the result does not fit this kind of file";
                let advice = "give the name of a .npy, or of a .wav for a recording";
                return Err(Error::input(what, self.out.display(), advice));
            }
        };
        let mut result = Vec::new();
        let how = (model, engine, Extra::Reconstruction);
        self.each(how, &mut source, |_, values, _| result.extend_from_slice(values))?;
        match rate {
            Some(rate) => write_wav(&self.out, rate, dims, &result)?,
            None => write_npy_f32(&self.out, &[points, dims], &result)?,
        }
        let Some(truth) = truth else { return Ok((String::new(), points)) };
        let energy = |difference: &dyn Fn(usize) -> f64| {
            (0..truth.values.len()).map(|at| difference(at).powi(2)).sum::<f64>()
        };
        let signal = energy(&|at| truth.values[at]);
        let data = Points::read(&self.data)?.values;
        let before = snr_db(signal, energy(&|at| truth.values[at] - data[at]));
        let after = snr_db(signal, energy(&|at| truth.values[at] - f64::from(result[at])));
        Ok((gain("SNR", before, after), points))
    }

    /// Calls `put` with the number of the first, the reconstructions and the weights of consecutive points, in order.
    fn each(
        &self,
        (model, engine, extra): (Model<'_, f32>, Engine, Extra),
        source: &mut Source,
        mut put: impl FnMut(usize, &[f32], &[f32]),
    ) -> Result<()> {
        let name = self.data.display().to_string();
        let threads = self.inferring.threads();
        let piece = engine::piece_points(&model, engine, threads, extra);
        let mut progress = Progress::new("denoise", source.points());
        let (mut chunk, mut first) = (Vec::new(), 0);
        while first < source.points() {
            let count = source.read_chunk(first, piece, &mut chunk)?;
            let mut at = first;
            for posteriors in engine::infer(model, engine, &chunk, threads, first, &name, extra)? {
                put(at, &posteriors.reconstruction, &posteriors.weight);
                at += posteriors.evidence.len();
            }
            first += count;
            progress.advance(count);
        }
        Ok(())
    }

    fn other_size(&self, truth: Vec<usize>, data: Vec<usize>) -> Error {
        let text = |size: Vec<usize>| size.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        let what = format!("the reference has {} numbers, the data {}", text(truth), text(data));
        let reference: &Path = self.reference.as_deref().unwrap_or(Path::new("--reference"));
        let place = format!("{} and {}", reference.display(), self.data.display());
        Error::input(what, place, "give the truth of exactly these data")
    }
}

fn gain(name: &str, before: Option<f64>, after: Option<f64>) -> String {
    let db = |value: Option<f64>| value.map_or("unknown".into(), |value| format!("{value:.2} dB"));
    format!("; {name} {}, before {}", db(after), db(before))
}
