//! How a start ends: which of its iterates is kept, and whether it stopped too early.
//!
//! EM over all states never lowers the free energy, but truncated, sampled and stepwise EM may, and so may the evidence of
//! points that are held out. So the best iterate is remembered beside the last one. Only iterates at temperature 1 that
//! count all points are compared: the figures of the others are those of other models.

use super::run::{Start, Step};
use super::settings::{Engine, Settings};
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// Iterations without a better held-out evidence after which a start ends; a pass of stepwise EM counts for several.
const PATIENCE: usize = 10;
const PATIENCE_IN_PASSES: usize = 3;

/// Differences below this many nats per point are rounding.
const ROUNDING: f64 = 1e-6;

/// A curve still climbs where its last part gains more than this fraction of all it has gained.
const CLIMBS: f64 = 0.01;

/// ... and more than this many nats per point, in as many iterations again as there were.
const WORTHWHILE: f64 = 0.01;

/// An iterate that was better than all before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// How many M-steps (or passes) its parameters have seen.
    pub iteration: usize,
    /// What it was chosen by: the evidence of held-out points where there are any, else F. Summed over points.
    pub value: f64,
    /// F, summed over points. In stepwise EM that of the pass that led to it, until the start ends.
    pub free_energy: f64,
    /// F per point of the points that count.
    pub merit: f64,
    /// Its parameters.
    pub parameters: Parameters,
}

impl Start {
    /// Whether an iterate with this value is better than all before it.
    pub(super) fn is_best(&self, value: f64) -> bool {
        self.best.as_ref().is_none_or(|best| value > best.value)
    }

    /// Ends it. `value` is that of the last iterate, a sum over `points`, if it can be compared with the best one, which is
    /// dropped unless it is better.
    pub(super) fn finish(&mut self, settings: &Settings, value: Option<f64>, points: usize, merit: f64) {
        let margin = margin(settings, &self.history, points);
        self.best.take_if(|best| value.is_none_or(|value| best.value <= value + margin));
        self.finished = true;
        self.merit = Some(merit);
        self.sums = None;
        self.means = Vec::new();
        if let (Some(best), Some(value)) = (&self.best, value) {
            let each = |value: f64| value / points.max(1) as f64;
            let what = if settings.holdout > 0.0 { "held-out evidence" } else { "free energy" };
            self.notes.push(format!(
                "{what} was best after iteration {0} ({1:.6} per point) and lower after the last ({2:.6}): the model is that \
                 of iteration {0}",
                best.iteration,
                each(best.value),
                each(value),
            ));
            self.merit = Some(best.merit);
        }
    }

    /// Takes back the end of a start that ran out of iterations: its last E-step is done again, and an M-step follows.
    pub(super) fn reopen(&mut self) {
        self.history.pop();
        self.notes.clear();
        (self.finished, self.merit, self.is_whole) = (false, None, false);
    }

    /// The parameters that came of it.
    pub fn kept(&self) -> &Parameters {
        match &self.best {
            Some(best) if self.finished => &best.parameters,
            _ => &self.parameters,
        }
    }

    /// The iteration that they are from.
    pub fn kept_iteration(&self) -> usize {
        match &self.best {
            Some(best) if self.finished => best.iteration,
            _ => self.history.last().map_or(0, |step| step.iteration),
        }
    }

    /// F of the parameters that are kept.
    pub fn free_energy(&self) -> f64 {
        match &self.best {
            Some(best) if self.finished => best.free_energy,
            _ => self.history.last().map_or(f64::NEG_INFINITY, |step| step.free_energy),
        }
    }

    /// What was guarded on the way, and what is to be said of the end.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().chain(&self.warnings)
    }
}

/// By how much a value must be better than the last one to count as better.
pub(super) fn margin(settings: &Settings, history: &[Step], points: usize) -> f64 {
    let rounding = ROUNDING * points as f64;
    if settings.engine != Engine::Gibbs {
        return rounding;
    }
    // Draws differ from iteration to iteration, and so does what they say of the same parameters.
    let last = &history[history.len() - history.len().div_ceil(4)..];
    let steps = last.windows(2).map(|pair| (pair[1].free_energy - pair[0].free_energy).abs());
    rounding + 3.0 * steps.sum::<f64>() / last.len().saturating_sub(1).max(1) as f64
}

/// Whether the evidence of held-out points has not risen for so long that it will not.
pub(super) fn is_stale(settings: &Settings, history: &[Step]) -> bool {
    // The first passes of stepwise EM still move latents to other directions.
    let least = if settings.batch > 0 { settings.least_passes() } else { 0 };
    if settings.holdout == 0.0 || settings.is_scheduled() || history.len() < least {
        return false;
    }
    let patience = if settings.batch > 0 { PATIENCE_IN_PASSES } else { PATIENCE };
    let value = |at: usize| history[at].held_out.unwrap_or(f64::NEG_INFINITY);
    let best = (0..history.len()).reduce(|best, at| if value(at) > value(best) { at } else { best });
    best.is_some_and(|best| history.len() - 1 - best >= patience)
}

/// What to say of a start that ran out of iterations while its free energy was rising.
pub(super) fn still_climbs(settings: &Settings, history: &[Step], points: usize) -> Option<String> {
    if history.len() <= settings.iterations || settings.cut {
        return None;
    }
    let cold = history.iter().rposition(|step| step.temperature != 1.0).map_or(0, |at| at + 1);
    let figures: Vec<f64> = history[cold..].iter().map(|step| step.free_energy / points as f64).collect();
    // Of single draws nothing can be told; the mean of a few is steadier.
    let width = if settings.engine == Engine::Gibbs { 3 } else { 1 }.max(figures.len() / 10);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (last, before) = match figures.len() {
        few if few <= 2 * width => return None,
        all if settings.engine == Engine::Gibbs => {
            (mean(&figures[all - width..]), mean(&figures[all - 2 * width..all - width]))
        }
        all => (figures[all - 1], figures[all - 1 - width]),
    };
    let gain = last - before;
    let again = gain / width as f64 * figures.len() as f64;
    if gain <= CLIMBS * (last - figures[0]).abs() || again <= WORTHWHILE {
        return None;
    }
    let iterations = if width == 1 { "iteration".into() } else { format!("{width} iterations") };
    Some(format!(
        "free energy was still rising when the iterations ran out (by {gain:.2e} per point in the last {iterations}): \
         raise --iterations above {}",
        settings.iterations
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::ModelKind;

    fn history(figures: &[f64]) -> Vec<Step> {
        let step = |(iteration, &free_energy): (usize, &f64)| Step {
            iteration,
            free_energy,
            seconds: 0.0,
            temperature: 1.0,
            held_out: Some(free_energy),
        };
        figures.iter().enumerate().map(step).collect()
    }

    #[test]
    fn a_rising_curve_is_told_from_one_at_rest() {
        let settings = Settings { iterations: 9, ..Settings::new(ModelKind::Gsc, 2) };
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        let said = still_climbs(&settings, &history(&rising), 1).unwrap();
        assert!(said.contains("raise --iterations above 9"), "{said}");
        // It ended by itself, or gains next to nothing.
        assert_eq!(still_climbs(&settings, &history(&rising[..9]), 1), None);
        let resting: Vec<f64> = (0..10).map(|i| -f64::from(-3 * i).exp()).collect();
        assert_eq!(still_climbs(&settings, &history(&resting), 1), None);
        let falling: Vec<f64> = (0..10).map(|i| -f64::from(i)).collect();
        assert_eq!(still_climbs(&settings, &history(&falling), 1), None);
        // A hundredth of a nat for a million points is not worth more iterations.
        assert_eq!(still_climbs(&settings, &history(&rising), 1_000_000), None);
    }

    #[test]
    fn held_out_evidence_that_falls_for_long_ends_a_start() {
        let settings = Settings { holdout: 0.2, ..Settings::new(ModelKind::Gsc, 2) };
        let mut figures = vec![1.0, 2.0, 3.0];
        figures.extend([2.5; PATIENCE - 1]);
        assert!(!is_stale(&settings, &history(&figures)));
        figures.push(2.9);
        assert!(is_stale(&settings, &history(&figures)));
        figures.push(3.1);
        assert!(!is_stale(&settings, &history(&figures)));
        let batches = Settings { batch: 10, ..settings.clone() };
        assert!(!is_stale(&batches, &history(&[3.0; PATIENCE_IN_PASSES + 1])));
        assert!(is_stale(&batches, &history(&vec![3.0; batches.least_passes()])));
        assert!(!is_stale(&Settings { holdout: 0.0, ..settings }, &history(&[3.0; 40])));
    }
}
