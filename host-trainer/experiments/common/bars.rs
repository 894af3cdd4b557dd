//! Bars: points made of horizontal and vertical bars of value 10 on a square of pixels.

use spikelet::rng::Rng;
use spikelet_trainer::parameters::{ModelKind, Parameters};
use spikelet_trainer::train::{Points, Settings};

/// Value of a bar's pixels.
pub const VALUE: f64 = 10.0;
/// A column that is off by more on average does not show the bar (002, appendix E).
const OFF: f64 = 1.0;

/// Which bars are negative.
#[derive(Clone, Copy)]
pub enum Signs {
    /// None.
    Positive,
    /// Every other one.
    Alternating,
    /// Those whose bit is 1.
    Given(u64),
}

impl Signs {
    fn is_negative(self, bar: usize) -> bool {
        match self {
            Self::Positive => false,
            Self::Alternating => bar % 2 == 1,
            Self::Given(bits) => bits >> bar & 1 == 1,
        }
    }
}

/// A bars test.
#[derive(Clone, Copy)]
pub struct Test {
    /// Decides how bars come together.
    pub kind: ModelKind,
    /// Pixels along a side.
    pub side: usize,
    /// Pixels across a bar; neighbours of the same direction overlap in all but one.
    pub width: usize,
    pub signs: Signs,
    pub points: usize,
    /// Standard deviation of the noise.
    pub noise: f64,
}

impl Test {
    /// Bars, in both directions.
    pub fn bars(&self) -> usize {
        2 * (self.side + 1 - self.width)
    }

    /// The bars as columns. (D x bars)
    pub fn dictionary(&self) -> Vec<f64> {
        let (side, bars) = (self.side, self.bars());
        let mut dictionary = vec![0.0; side * side * bars];
        for (e, w) in dictionary.iter_mut().enumerate() {
            let (pixel, bar) = (e / bars, e % bars);
            let (along, first) =
                if bar < bars / 2 { (pixel / side, bar) } else { (pixel % side, bar - bars / 2) };
            if (first..first + self.width).contains(&along) {
                *w = if self.signs.is_negative(bar) { -VALUE } else { VALUE };
            }
        }
        dictionary
    }

    /// Points with two bars on average.
    pub fn data(&self, rng: &mut Rng) -> Points {
        let (dims, bars) = (self.side * self.side, self.bars());
        let dictionary = self.dictionary();
        let mut data = Vec::with_capacity(self.points * dims);
        for _ in 0..self.points {
            let on: Vec<bool> = (0..bars).map(|_| rng.uniform::<f64>() < 2.0 / bars as f64).collect();
            for row in dictionary.chunks_exact(bars) {
                let seen = row.iter().zip(&on).filter(|(_, on)| **on).map(|(w, _)| *w);
                let clean = if self.kind == ModelKind::Mca { seen.fold(0.0, f64::max) } else { seen.sum() };
                data.push(clean + self.noise * rng.normal::<f64>());
            }
        }
        Points::new(data, dims)
    }

    /// Truncated EM with H' = 5 and gamma = 3, the papers' choice, and what this kind of model has by default.
    pub fn settings(&self, latents: usize, seed: u64) -> Settings {
        Settings { seed, selected: 5, max_active: 3, ..Settings::new(self.kind, latents) }
    }

    /// How many bars a model shows, and by how much its columns for them are off on average.
    ///
    /// A bar is shown by the latent that explains it best alone, unless that one shows another bar better.
    pub fn found(&self, model: &Parameters) -> (usize, f64) {
        let (bars, h, truth) = (self.bars(), model.latents, self.dictionary());
        let distance = |bar: usize, latent: usize, power: i32| -> f64 {
            let entries = truth.chunks_exact(bars).zip(model.dictionary.chunks_exact(h));
            entries.map(|(t, w)| (t[bar] - w[latent]).abs().powi(power)).sum()
        };
        let mut shown: Vec<Option<f64>> = vec![None; h];
        for bar in 0..bars {
            let closer = |a: &usize, b: &usize| distance(bar, *a, 2).total_cmp(&distance(bar, *b, 2));
            let Some(latent) = (0..h).min_by(closer) else { continue };
            let off = distance(bar, latent, 1) / (self.side * self.side) as f64;
            if off < OFF && shown[latent].is_none_or(|other| off < other) {
                shown[latent] = Some(off);
            }
        }
        let errors: Vec<f64> = shown.into_iter().flatten().collect();
        (errors.len(), errors.iter().sum::<f64>() / errors.len() as f64)
    }
}
