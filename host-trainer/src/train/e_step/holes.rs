//! Points of which some numbers are missing.
//!
//! Latents are inferred from what is known ([`Masked`]). Missing numbers are hidden variables like the latents: given x,
//! y_d = c + W_d x + noise, c being the mean that was taken off a plane. With mean(y), w as there, over what is known, the sums of
//! the M-step get
//!
//! ```text
//! sum y x^T:   known    (y_d - mean(y)) <x>^T + w^T <x x^T>                         missing   W_d <x x^T>
//! sum y^2:     known    (y_d - mean(y))^2 + 2 (y_d - mean(y)) w . <x> + w^T <x x^T> w     missing   W_d <x x^T> W_d^T + sigma_d^2
//! ```
//!
//! in place of `y_d <x>^T` and y_d^2, and the M-step is the one without holes: exact EM. A part of what is imputed is what W was
//! before, so the more is missing the more steps it takes.

use super::super::kinds::mca::Shares;
use super::super::statistics::Statistics;
use super::job::{Job, Scalar};
use super::lane::ADVICE;
use crate::prepare::Masked;
use crate::{Error, Result};
use spikelet::{Detail, Inference, Model};

/// Latents with less than this do not show.
const LEAST: f64 = 1e-7;

/// Room for one point after the other.
pub(super) struct Hollow<T> {
    masked: Masked<T>,
    memory: Vec<T>,
    /// W_I <x x^T> of a row.
    row: Vec<f64>,
}

impl<T> Default for Hollow<T> {
    fn default() -> Self {
        Self { masked: Masked::default(), memory: Vec::new(), row: Vec::new() }
    }
}

impl<T: Scalar> Hollow<T> {
    /// Adds a point to the sums; its evidence, of what is known.
    pub fn add(
        &mut self,
        job: &Job<'_, T>,
        model: &Model<'_, T>,
        (number, y, missing, planes): (usize, &[f64], &[bool], usize),
        sums: &mut Statistics,
        cross: &mut Shares,
    ) -> Result<f64> {
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let w = &job.parameters.dictionary;
        let detail = job.detail();
        let refused = |error| Error::input(error, format_args!("point {number}"), ADVICE);
        if !self.masked.set(model, w, (y, missing, planes)) {
            // The point says nothing, and is no point.
            return Ok(0.0);
        }
        let own = self.masked.model(model)?;
        self.memory.resize(job.engine.arena_len(own.shape, detail), T::from_f64(0.0));
        let mut inference =
            Inference::with_engine(own, &mut self.memory, detail, job.engine).map_err(refused)?;
        let estimate = inference.infer(&self.masked.sample).map_err(refused)?;
        let evidence = estimate.evidence.to_f64();
        if detail == Detail::Marginals {
            return Ok(evidence);
        }
        sums.add_selected(&estimate);
        // The latents that show, with their places among the selected.
        let s = estimate.selected.len();
        let all = estimate.selected.iter().map(|&k| usize::from(k)).enumerate();
        let shown: Vec<(usize, usize)> =
            all.filter(|&(_, k)| estimate.activity[k].to_f64() > LEAST).collect();
        let mean = |k: usize| estimate.mean[k].to_f64();
        let second = |p: usize, q: usize| estimate.second[p.max(q) * s + p.min(q)].to_f64();
        let sigma2 = job.parameters.noise_variances();
        // v^T <x x^T>, for a row v of W or of means of such rows.
        let times = |v: &[f64], out: &mut Vec<f64>| {
            out.clear();
            out.extend(
                shown.iter().map(|&(p, _)| shown.iter().map(|&(q, k)| v[k] * second(q, p)).sum::<f64>()),
            );
        };
        let along = |v: &[f64], with: &dyn Fn(usize) -> f64| {
            shown.iter().enumerate().map(|(at, &(_, k))| v[k] * with(at)).sum::<f64>()
        };
        let mut of_planes = vec![(Vec::new(), 0.0, 0.0); planes];
        for (plane, (row, of_mean, of_second)) in of_planes.iter_mut().enumerate() {
            let rows = &self.masked.rows[plane * h..][..h];
            times(rows, row);
            *of_mean = along(rows, &|at| mean(shown[at].1));
            *of_second = along(rows, &|at| row[at]);
        }
        for i in 0..d {
            let of_plane = of_planes.get(i * planes / d);
            if missing[i] {
                times(&w[i * h..][..h], &mut self.row);
                for (&(_, k), value) in shown.iter().zip(&self.row) {
                    cross.seen[k * d + i] += value;
                }
                sums.power[i] += along(&w[i * h..][..h], &|at| self.row[at]) + sigma2[i];
                continue;
            }
            let taken = self.masked.mean.get(i * planes / d).copied().unwrap_or(0.0);
            let left = y[i] - taken;
            for (at, &(_, k)) in shown.iter().enumerate() {
                cross.seen[k * d + i] += left * mean(k) + of_plane.map_or(0.0, |(row, ..)| row[at]);
            }
            sums.power[i] += left * left
                + of_plane.map_or(0.0, |(_, of_mean, of_second)| 2.0 * left * of_mean + of_second);
        }
        Ok(evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Points, Settings, State, run::Next, settings};
    use super::super::Task;
    use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
    use crate::prepare::{Holes, Options, StatesName};
    use crate::train::settings::Precision;
    use spikelet::rng::Rng;

    const D: usize = 6;
    const H: usize = 3;

    fn model(rng: &mut Rng) -> Parameters {
        Parameters {
            kind: ModelKind::Gsc,
            dims: D,
            latents: H,
            dictionary: (0..D * H).map(|_| rng.normal()).collect(),
            prior: vec![0.3, 0.5, 0.2],
            slab_mean: vec![0.5, -0.2, 0.0],
            slab_cov: SlabCov::Diagonal(vec![1.0, 2.0, 0.5]),
            noise: NoiseCov::Diagonal((0..D).map(|i| 0.1 + 0.05 * i as f64).collect()),
        }
    }

    /// All states.
    fn options() -> Options {
        let mut settings = Settings::new(ModelKind::Gsc, H);
        settings.engine = settings::Engine::Truncated;
        settings.states = settings::StatesForm::Adaptive;
        Options { states: Some(StatesName::Adaptive), expansions: 8, ..settings.options() }
    }

    fn draw(rng: &mut Rng, model: &Parameters, count: usize) -> Vec<f64> {
        let mut points = Vec::new();
        for _ in 0..count {
            let x: Vec<f64> = (0..H)
                .map(|k| match rng.uniform::<f64>() < model.prior[k] {
                    true => model.slab_mean[k] + model.slab_variances()[k].sqrt() * rng.normal::<f64>(),
                    false => 0.0,
                })
                .collect();
            let sigma2 = model.noise_variances();
            let clean = |i: usize| (0..H).map(|k| model.dictionary[i * H + k] * x[k]).sum::<f64>();
            points.extend((0..D).map(|i| clean(i) + sigma2[i].sqrt() * rng.normal::<f64>()));
        }
        points
    }

    /// Evidence is that of a model without the rows of what is missing.
    #[test]
    fn what_is_missing_does_not_count() {
        let mut rng = Rng::new(4);
        let model = model(&mut rng);
        let points = draw(&mut rng, &model, 20);
        let is_missing = |i: usize| i == 1 || i == 4;
        let missing: Vec<bool> = (0..points.len()).map(|e| is_missing(e % D)).collect();
        let rows = |values: &[f64], width: usize| -> Vec<f64> {
            let row = |(i, row): (usize, &[f64])| if is_missing(i % D) { Vec::new() } else { row.to_vec() };
            values.chunks_exact(width).enumerate().flat_map(row).collect()
        };
        let fewer = Parameters {
            dims: D - 2,
            dictionary: rows(&model.dictionary, H),
            noise: NoiseCov::Diagonal(rows(&model.noise_variances(), 1)),
            ..model.clone()
        };
        let evidence = |model: &Parameters, mut points: Points| {
            Task::new(model, &options()).evidence(&mut points, 1, Precision::F64).unwrap()
        };
        let whole = evidence(&fewer, Points::new(rows(&points, 1), D - 2));
        let holes = Holes { missing, planes: 0 };
        let found = evidence(&model, Points::with_holes(points, D, holes));
        assert!((whole - found).abs() < 1e-9 * whole.abs(), "{whole} {found}");
    }

    /// EM with all states and random holes never lowers the likelihood, and finds the noise.
    #[test]
    fn the_likelihood_never_falls() {
        let mut rng = Rng::new(8);
        let truth = Parameters { noise: NoiseCov::Shared(0.05), ..model(&mut rng) };
        let points = draw(&mut rng, &truth, 600);
        let missing = (0..points.len()).map(|_| rng.uniform::<f64>() < 0.4).collect();
        let mut points = Points::with_holes(points, D, Holes { missing, planes: 0 });
        let settings = Settings {
            engine: settings::Engine::Truncated,
            states: settings::StatesForm::Adaptive,
            expansions: 8,
            iterations: 60,
            restarts: 1,
            ..Settings::new(ModelKind::Gsc, H)
        };
        let near = Parameters {
            dictionary: truth.dictionary.iter().map(|w| w + 0.3 * rng.normal::<f64>()).collect(),
            noise: NoiseCov::Shared(0.5),
            ..truth
        };
        let mut state = State::from(settings, &mut points, Some(near)).unwrap();
        state.run(&mut points, 2, |_| Ok(Next::Continue)).unwrap();
        let energies: Vec<f64> = state.current.history.iter().map(|step| step.free_energy).collect();
        for pair in energies.windows(2) {
            assert!(pair[1] > pair[0] - 1e-7 * pair[0].abs(), "{energies:?}");
        }
        let sigma2 = state.model().noise_variances()[0];
        assert!((sigma2 / 0.05 - 1.0).abs() < 0.2, "{sigma2}");
    }
}
