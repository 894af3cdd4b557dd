//! A model over the dimensions of a sample that are known: the others carry no information, as if their noise were infinite.
//!
//! With M the known dimensions of a sample, G = W_M^T Sigma_M^-1 W_M and b = W_M^T Sigma_M^-1 y_M are those of a model of fewer
//! dimensions, which is made anew for every sample: D H operations, as many as a projection. Where the mean of a sample was taken
//! off (of each of its planes), the mean of what is missing was not known. It is then a latent c of its own with a flat prior, y
//! = c + W x + noise, and without c
//!
//! ```text
//! y_M - mean(y_M) = (W_M - 1 w^T) x + noise,    w = mean of the rows of W_M        c = mean(y_M) - w . x
//! ```
//!
//! for each plane. With nothing missing the mean of all rows is 0, and both are what they are without any of this.

use super::Prepared;
use crate::{Error, Result};
use spikelet::math::Real;
use spikelet::model::{Dictionary, Model, Noise, PANEL, Selection, Shape};
use std::f64::consts::TAU;

/// Which numbers of points are missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holes {
    /// (N x D)
    pub missing: Vec<bool>,
    /// Planes of a point whose means were taken off; 0 where none were.
    pub planes: usize,
}

/// Room for the model of one sample after the other.
#[derive(Clone, Debug)]
pub struct Masked<T> {
    /// The dimensions that are known.
    pub known: Vec<usize>,
    /// What was taken off y in every plane.
    pub mean: Vec<f64>,
    /// What was taken off the rows of W in every plane. (planes x H)
    pub rows: Vec<f64>,
    /// y of the known dimensions, without its mean.
    pub sample: Vec<T>,
    dictionary: Vec<T>,
    noise: Vec<T>,
    gram_diagonal: Vec<T>,
    score_offset: Vec<T>,
    log_norm: f64,
}

impl<T> Default for Masked<T> {
    fn default() -> Self {
        let [sample, dictionary, noise, gram_diagonal, score_offset] = [(); 5].map(|()| Vec::new());
        let (known, mean, rows) = (Vec::new(), Vec::new(), Vec::new());
        let log_norm = 0.0;
        Self { known, mean, rows, sample, dictionary, noise, gram_diagonal, score_offset, log_norm }
    }
}

impl<T: Real> Masked<T> {
    /// Takes what is known of `y`, and of a model that has a slab and no full noise; false where nothing is. `weights` is its W,
    /// not packed. (D x H)
    pub fn set(
        &mut self,
        model: &Model<'_, T>,
        weights: &[f64],
        (y, missing, planes): (&[f64], &[bool], usize),
    ) -> bool {
        let Shape { dims, latents: h, .. } = model.shape;
        let zero = T::from_f64(0.0);
        self.known.clear();
        self.known.extend((0..dims).filter(|&d| !missing[d]));
        let plane = |d: usize| d * planes / dims;
        self.take_off_means(y, weights, h, (dims, planes));
        let count = self.known.len();
        let precision = |d: usize| match model.noise {
            Noise::Shared(precision) => precision,
            Noise::Diagonal(precisions) => precisions[d],
            Noise::Full(_) => zero,
        };
        self.sample.clear();
        self.noise.clear();
        self.dictionary.clear();
        self.dictionary.resize(count * h.next_multiple_of(PANEL), zero);
        let mut diagonal = vec![0.0; h];
        for (at, &d) in self.known.iter().enumerate() {
            let (mean, rows) = match planes {
                0 => (0.0, &[][..]),
                _ => (self.mean[plane(d)], &self.rows[plane(d) * h..][..h]),
            };
            self.sample.push(T::from_f64(y[d] - mean));
            self.noise.push(precision(d));
            let factor = precision(d).to_f64();
            for (k, w) in weights[d * h..][..h].iter().enumerate() {
                let w = w - rows.get(k).copied().unwrap_or(0.0);
                diagonal[k] += factor * w * w;
                self.dictionary[(k / PANEL * count + at) * PANEL + k % PANEL] = T::from_f64(w);
            }
        }
        let lost = (0..dims).filter(|&d| missing[d]).map(|d| TAU / precision(d).to_f64());
        self.log_norm = model.log_norm.to_f64() + 0.5 * lost.map(f64::ln).sum::<f64>();
        self.gram_diagonal.clear();
        self.score_offset.clear();
        for (g, k) in diagonal.iter().zip(model.slab_precision) {
            self.gram_diagonal.push(T::from_f64(*g));
            self.score_offset.push(T::from_f64(-0.5 * (g / k.to_f64()).ln_1p()));
        }
        count > 0
    }

    /// The model of what was taken.
    pub fn model<'a>(&'a self, model: &Model<'a, T>) -> Result<Model<'a, T>> {
        let shape = Shape { dims: self.known.len(), ..model.shape };
        let masked = Model {
            shape,
            dictionary: Dictionary::Float(&self.dictionary),
            noise: match model.noise {
                Noise::Shared(precision) => Noise::Shared(precision),
                _ => Noise::Diagonal(&self.noise),
            },
            gram_diagonal: &self.gram_diagonal,
            score_offset: &self.score_offset,
            gram: None,
            selection: Selection::Singleton,
            table: None,
            fixed: None,
            log_norm: T::from_f64(self.log_norm),
            ..*model
        };
        let unfit =
            |error| Error::input(error, "--mask", "use a gsc model with the same noise in all pixels");
        Model::new(masked).map_err(unfit)
    }

    /// Means over what is known of every plane, 0 where nothing is.
    fn take_off_means(&mut self, y: &[f64], weights: &[f64], h: usize, (dims, planes): (usize, usize)) {
        self.mean.clear();
        self.mean.resize(planes, 0.0);
        self.rows.clear();
        self.rows.resize(planes * h, 0.0);
        let mut counts = vec![0usize; planes];
        if planes == 0 {
            return;
        }
        for &d in &self.known {
            let plane = d * planes / dims;
            counts[plane] += 1;
            self.mean[plane] += y[d];
            let rows = &mut self.rows[plane * h..][..h];
            rows.iter_mut().zip(&weights[d * h..][..h]).for_each(|(sum, w)| *sum += w);
        }
        for (plane, &count) in counts.iter().enumerate() {
            let part = 1.0 / count.max(1) as f64;
            self.mean[plane] *= part;
            self.rows[plane * h..][..h].iter_mut().for_each(|sum| *sum *= part);
        }
    }

    /// The whole of a sample without its noise: c + W x, c of its plane. `x` are means of latents that are not 0.
    pub fn reconstruct(&self, weights: &[f64], h: usize, x: &[(usize, f64)], out: &mut [f64]) {
        let (dims, planes) = (out.len(), self.mean.len());
        for (d, out) in out.iter_mut().enumerate() {
            *out = x.iter().map(|&(k, x)| weights[d * h + k] * x).sum();
            if planes > 0 {
                let plane = d * planes / dims;
                *out += self.mean[plane] - x.iter().map(|&(k, x)| self.rows[plane * h + k] * x).sum::<f64>();
            }
        }
    }
}

impl<T: Real> Prepared<T> {
    /// Whether such a model can do without some dimensions.
    pub(crate) fn can_mask(model: &Model<'_, T>) -> bool {
        model.shape.kind.has_slab()
            && !model.shape.kind.is_maximal()
            && !matches!(model.noise, Noise::Full(_))
            && model.table.is_none()
    }
}
