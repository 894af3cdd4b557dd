//! Pictures with missing pixels: each patch is inferred from the pixels of it that are known, and the model tells the others.

use super::{Denoise, PEAK};
use crate::commands::output::Progress;
use crate::data::{Mosaic, Pieces, Sheet};
use crate::metrics::psnr_db;
use crate::pictures::Mask;
use crate::prepare::{Masked, Prepared};
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use spikelet::{Detail, Engine, Inference, Model};
use std::path::Path;

/// Patches between two steps of the progress bar, for every thread.
const AT_ONCE: usize = 1024;

/// Some patches: numbers, and which of them are missing, of so many planes without their means.
type Patches<'a> = (&'a [f64], &'a [bool], usize);

/// What becomes of patches, and how much each counts.
type Found = (Vec<f32>, Vec<f32>);

impl Denoise {
    /// The picture without its noise and its holes; what is to be said of it, and the number of patches.
    pub(super) fn masked(
        &self,
        (model, engine): (Model<'_, f32>, Engine),
        frame: Option<&Frame>,
        mask: &Path,
    ) -> Result<(String, usize)> {
        let Some(frame) = frame.filter(|frame| matches!(frame.form, Form::Patches { .. })) else {
            let advice = "leave it out, or use a model of `train --patch`";
            return Err(Error::input("the model has no patches of pictures", "--mask", advice));
        };
        if !Prepared::can_mask(&model) || engine != Engine::Truncated {
            let advice = "use a gsc model with a diagonal slab and no full noise, and no --engine";
            return Err(Error::input("missing pixels do not go with it", self.model.display(), advice));
        }
        let picture = Sheet::read(&self.data, frame.form)?;
        picture.check_writable(&self.out)?;
        let mask = Mask::read(mask, &picture, &self.data)?;
        let truth = self.reference.as_ref().map(|path| Sheet::read(path, frame.form)).transpose()?;
        if let Some(truth) = truth.as_ref().filter(|truth| truth.size() != picture.size()) {
            return Err(self.other_size(truth.size(), picture.size()));
        }
        let filled = mask.filled(&picture);
        let step = self.step as usize;
        let unfit =
            |what: String| Error::input(what, self.data.display(), "give a picture that fits the model");
        let pieces = Pieces::new(filled.clone(), frame, step).map_err(unfit)?;
        let result = self.put_together((model, engine), &pieces, &mask, frame)?;
        let result = if self.fill_only { mask.kept(&result, &picture) } else { result };
        result.write(&self.out)?;
        let (missing, all) = mask.count();
        let mut text = format!("; {:.1} % of the pixels were missing", 100.0 * missing as f64 / all as f64);
        if let Some(truth) = truth {
            let db = |sheet: &Sheet| match psnr_db(PEAK, sheet.mean_square_error(&truth)) {
                Some(value) => format!("{value:.2} dB"),
                None => "unknown".into(),
            };
            text += &format!(
                "; PSNR {}, with the mean of neighbours in their place {}",
                db(&result),
                db(&filled)
            );
        }
        Ok((text, pieces.len()))
    }

    fn put_together(
        &self,
        (model, engine): (Model<'_, f32>, Engine),
        pieces: &Pieces,
        mask: &Mask,
        frame: &Frame,
    ) -> Result<Sheet> {
        let (d, h) = (model.shape.dims, model.shape.latents);
        let unfit =
            |what: String| Error::input(what, self.data.display(), "give a picture that fits the model");
        if pieces.dims() != d {
            return Err(unfit(format!("patches have {} numbers, the model {d}", pieces.dims())));
        }
        let holes = mask.holes(frame, self.step as usize).map_err(unfit)?;
        let weights: Vec<f64> = (0..d * h).map(|e| f64::from(model.entry(e / h, e % h))).collect();
        let threads = self.inferring.threads();
        let mut mosaic = Mosaic::new(pieces);
        let mut progress = Progress::new("denoise", pieces.len());
        let mut values = Vec::new();
        for start in (0..pieces.len()).step_by(threads * AT_ONCE) {
            let count = (threads * AT_ONCE).min(pieces.len() - start);
            values.clear();
            pieces.read(start, count, &mut values);
            let missing = &holes.missing[start * d..][..count * d];
            let part = count.div_ceil(threads) * d;
            let one = |(first, (y, missing)): (usize, (&[f64], &[bool]))| {
                let place = format!("{}, point {}", self.data.display(), start + first * part / d);
                infer(model, engine, &weights, (y, missing, holes.planes), &place)
            };
            let parts = values.chunks(part).zip(missing.chunks(part)).enumerate();
            let found: Result<Vec<Found>> = std::thread::scope(|scope| {
                let running: Vec<_> = parts.map(|part| scope.spawn(move || one(part))).collect();
                running.into_iter().map(|thread| thread.join().expect("inference does not panic")).collect()
            });
            let mut first = start;
            for (reconstruction, weight) in found? {
                mosaic.add(first, &reconstruction, &weight);
                first += weight.len();
            }
            progress.advance(count);
        }
        Ok(mosaic.finish())
    }
}

/// Patches without their noise and holes. A patch of which nothing is known does not count.
fn infer(
    model: Model<'_, f32>,
    engine: Engine,
    weights: &[f64],
    (values, missing, planes): Patches<'_>,
    place: &str,
) -> Result<Found> {
    let (d, h) = (model.shape.dims, model.shape.latents);
    let (mut masked, mut memory) = (Masked::<f32>::default(), Vec::new());
    let (mut reconstruction, mut weight) = (vec![0.0; values.len()], Vec::new());
    let mut whole = vec![0.0; d];
    let patches = values.chunks_exact(d).zip(missing.chunks_exact(d));
    for ((y, missing), out) in patches.zip(reconstruction.chunks_exact_mut(d)) {
        let refused = |error| Error::input(error, place, "remove the point, or rescale data and model");
        if !masked.set(&model, weights, (y, missing, planes)) {
            weight.push(0.0);
            continue;
        }
        let own = masked.model(&model)?;
        memory.resize(engine.arena_len(own.shape, Detail::Marginals), 0.0);
        let mut inference =
            Inference::with_engine(own, &mut memory, Detail::Marginals, engine).map_err(refused)?;
        let estimate = inference.infer(&masked.sample).map_err(refused)?;
        let on = estimate.mean.iter().enumerate().filter(|(_, mean)| **mean != 0.0);
        let on: Vec<(usize, f64)> = on.map(|(k, &mean)| (k, f64::from(mean))).collect();
        masked.reconstruct(weights, h, &on, &mut whole);
        out.iter_mut().zip(&whole).for_each(|(out, value)| *out = *value as f32);
        // As `Mosaic::weight`, with a mean that fewer pixels tell.
        let spread = estimate.variance.iter().zip(model.gram_diagonal).map(|(v, g)| v * g).sum::<f32>();
        let of_mean = if planes > 0 { d as f32 / masked.known.len() as f32 } else { 0.0 };
        weight.push(1.0 / (of_mean + spread).max(1e-6));
    }
    Ok((reconstruction, weight))
}
