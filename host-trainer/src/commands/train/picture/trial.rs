//! Which of several sizes of patches and numbers of latents suits a picture best, found by trying.
//!
//! The noise of a picture can be divided. With y = x + noise of variance sigma^2, and n drawn anew with the same variance,
//!
//! ```text
//! y1 = y + a n        y2 = y - n / a
//! ```
//!
//! have independent noise, of variance (1 + a^2) sigma^2 and (1 + 1 / a^2) sigma^2. So a model is learned from y1 and takes the
//! noise out of it, f(y1), and
//!
//! ```text
//! mean |f(y1) - y2|^2 - (1 + 1 / a^2) sigma^2
//! ```
//!
//! is an estimate of its mean square error without bias, whatever it learned: a dictionary that learned the noise of y1 does
//! badly on y2. (Of the same y it would do well.) By itself the estimate is off by what the noise of y2 happens to be, but that
//! is the same for all candidates. Between two of them it is off by 2 sqrt((1 + 1 / a^2) / N) sigma times the mean difference of
//! their results, N being the pixels: on a picture of 256 x 256, a tenth of a decibel, about. On cameraman and peppers with noise
//! of 25 and 50 small patches are 0.2 to 0.35 dB better than those half as large again, and were found so.

use crate::commands::engine::{self, Extra};
use crate::data::{Mosaic, Pieces, Sheet};
use crate::parameters::ModelKind;
use crate::pictures::{Sizes, for_overlapping};
use crate::prepare::{Options, Prepared};
use crate::train::settings::{Engine, InitForm, Precision, StatesForm};
use crate::train::{Next, Points, Settings, State};
use crate::{Error, Result};
use spikelet::frame::Frame;
use spikelet::rng::Rng;

/// a: little more noise in what is learned from, not too much in what it is compared with. With 0.7 patches came out larger than
/// is best for cameraman.
const SHARE: f64 = 0.5;

/// Passes of a trial, and latents at most: enough to tell, in a fraction of the time of training.
const PASSES: usize = 2;
const LATENTS: u16 = 512;

/// Pixels from one patch to the next where noise is taken out in a trial.
const STEP: usize = 2;

/// Pictures with their noise divided.
pub(super) struct Divided {
    learned: Vec<Sheet>,
    compared: Vec<Sheet>,
    /// Standard deviation of the noise of `compared`.
    noise: f64,
}

impl Divided {
    /// Of pictures with noise of this standard deviation.
    pub fn new(pictures: &[Sheet], noise: f64, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (mut learned, mut compared) = (pictures.to_vec(), pictures.to_vec());
        for (one, other) in learned.iter_mut().zip(&mut compared) {
            let planes = one.planes.iter_mut().zip(&mut other.planes);
            for (a, b) in planes.flat_map(|(one, other)| one.iter_mut().zip(other)) {
                let drawn = noise * rng.normal::<f64>();
                *a += SHARE * drawn;
                *b -= drawn / SHARE;
            }
        }
        Self { learned, compared, noise: noise * (1.0 + 1.0 / (SHARE * SHARE)).sqrt() }
    }

    /// The mean square error of a pixel that a model of these sizes is estimated to have, up to a constant that is the same for all sizes.
    pub fn risk(&self, sizes: &Sizes, frame: &Frame, threads: usize, seed: u64) -> Result<f64> {
        let cut = |step: usize| -> Result<Vec<Pieces>> {
            let one = |picture: &Sheet| Pieces::new(picture.clone(), frame, step);
            let too_small = |what| Error::input(what, "--patch auto", "give a larger picture");
            self.learned.iter().map(one).collect::<Result<_, _>>().map_err(too_small)
        };
        let (mut values, mut dims) = (Vec::new(), 1);
        for pieces in cut(sizes.step as usize)? {
            dims = pieces.dims();
            pieces.read(0, pieces.len(), &mut values);
        }
        let mut points = Points::new(values, dims);
        let mut state = State::new(settings(sizes, dims, seed), &mut points)?;
        state.run(&mut points, threads, |_| Ok(Next::Continue))?;
        drop(points);
        let (parameters, options) = for_overlapping(state.model(), state.settings.options());
        let prepared = Prepared::<f32>::new(&parameters, &options)?;
        let (mut sum, mut count) = (0.0, 0);
        for (pieces, other) in cut(STEP.max(sizes.step as usize))?.iter().zip(&self.compared) {
            let result = denoised(&prepared, pieces, threads)?;
            let pixels = result.planes.iter().map(Vec::len).sum::<usize>();
            sum += result.mean_square_error(other) * pixels as f64;
            count += pixels;
        }
        Ok(sum / count.max(1) as f64 - self.noise * self.noise)
    }
}

/// What a run would do, with few passes.
fn settings(sizes: &Sizes, dims: usize, seed: u64) -> Settings {
    let latents = usize::from(sizes.latents.min(LATENTS));
    let planes = dims / (sizes.side * sizes.side) as usize;
    Settings {
        selected: latents.min(Options::CANDIDATES),
        max_active: latents.min(Options::ACTIVE),
        engine: Engine::Truncated,
        states: StatesForm::Adaptive,
        means_off: planes,
        precision: Precision::F32,
        batch: sizes.batch,
        init: InitForm::Data,
        iterations: PASSES,
        tolerance: 1e-3,
        // The noise that is learned from has a little more.
        first_noise: (sizes.noise > 0.0).then_some(sizes.noise * sizes.noise * (1.0 + SHARE * SHARE)),
        seed,
        ..Settings::new(ModelKind::Gsc, latents)
    }
}

fn denoised(prepared: &Prepared<f32>, pieces: &Pieces, threads: usize) -> Result<Sheet> {
    let model = prepared.model()?;
    let engine = spikelet::Engine::Truncated;
    let at_once = engine::piece_points(&model, engine, threads, Extra::Overlapping);
    let mut mosaic = Mosaic::new(pieces);
    let mut chunk = Vec::new();
    for start in (0..pieces.len()).step_by(at_once) {
        chunk.clear();
        pieces.read(start, at_once.min(pieces.len() - start), &mut chunk);
        let mut first = start;
        for part in engine::infer(model, engine, &chunk, threads, first, "the picture", Extra::Overlapping)? {
            mosaic.add(first, &part.reconstruction, &part.weight);
            first += part.evidence.len();
        }
    }
    Ok(mosaic.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SheetKind;
    use spikelet::frame::Form;

    /// A picture of two greys with one long edge asks for large patches.
    #[test]
    fn a_smooth_picture_asks_for_large_patches() {
        let size = 64;
        let mut rng = Rng::new(2);
        let value = |i: usize| if i % size + i / size < size { 80.0 } else { 150.0 };
        let plane = (0..size * size).map(|i| value(i) + 40.0 * rng.normal::<f64>()).collect();
        let kind = SheetKind::Array { colours: false };
        let picture = Sheet { kind, width: size, height: size, planes: vec![plane] };
        let divided = Divided::new(&[picture], 40.0, 1);
        let risk = |side: u32| {
            let sizes = Sizes { noise: 40.0, contrast: 35.0, side, step: 1, latents: 40, batch: 400 };
            let form = Form::Patches { width: side, height: side, colours: 1 };
            divided.risk(&sizes, &Frame { form, rate: 0, centred: true }, 1, 1).unwrap()
        };
        let (small, large) = (risk(3), risk(8));
        assert!(large < small - 50.0, "{small} {large}");
    }
}
