//! The EM loop: starts, iterations, history, and where an interrupted run goes on.
//!
//! All there is to a run is its [`State`]: settings, which start, which iteration, the parameters, and what
//! the starts before have come to. It is plain data, so a checkpoint is this state as a file, and a resumed run ends
//! in the same bits as one that was never interrupted.

use super::choose::{Candidate, Prefer, choose};
use super::e_step::{Poor, Sets, Task};
use super::ending::{Best, is_stale, margin, still_climbs};
use super::factored;
use super::gp_select::Selector;
use super::init::{Scene, init, raise};
use super::m_step::{Guard, Update, Warning, m_step};
use super::points::Points;
use super::schedule::threshold;
use super::settings::{self, Settings};
use super::statistics::Statistics;
use super::stepwise;
use super::weak::{Weak, give_to_sources};
use super::whiten::Whitening;
use crate::parameters::Parameters;
use crate::prepare::Options;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use spikelet::Engine;
use std::collections::BTreeSet;
use std::time::Instant;

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Counted from 0: how many M-steps the parameters have seen.
    pub iteration: usize,
    /// F of these parameters, summed over points (of the raw data where they were whitened). In stepwise EM, all but
    /// the last: F of every batch under the parameters it met, summed.
    pub free_energy: f64,
    /// Time since the start began.
    pub seconds: f64,
    /// T, where it is not 1: F is then that of p(y, s)^(1/T).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub temperature: f64,
    /// ln p of the points that are held out under these parameters, summed over them, where there are any and T is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
}

fn one() -> f64 {
    1.0
}

fn is_one(temperature: &f64) -> bool {
    *temperature == 1.0
}

/// One start, as far as it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Which one it is, counted from 0.
    pub number: usize,
    /// Parameters after the last M-step.
    pub parameters: Parameters,
    /// F of every iteration.
    pub history: Vec<Step>,
    /// The best iterate before the last; once finished, only if it is better than that, and then it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// What was guarded, in words, each once.
    pub warnings: BTreeSet<String>,
    /// What is to be said of the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether its first passes anneal: see `search`.
    #[serde(default)]
    pub anneals: bool,
    /// Whether the last step of stepwise EM was one of all points, the last of all.
    #[serde(default)]
    pub is_whole: bool,
    /// The decayed statistics of stepwise EM, once begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<Statistics>,
    /// Posterior means of all points, from which the factored E-step goes on. (N x H)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub means: Vec<f64>,
    /// Components that every point of a mixture kept last, from which the next E-step goes on, where it keeps some of all. (N x C')
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u16>,
    /// What learned selection goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// F per point (of held-out points where there are any) of what is kept, of the points that count: those that are left out
    /// would decide alone, being explained by no start, and the worse the less noise it has left.
    pub merit: Option<f64>,
    /// Whether nothing more is to be done.
    pub finished: bool,
}

/// A whole run, as far as it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What it shall do.
    pub settings: Settings,
    /// N and D of the data it was begun on, without the points that are held out.
    pub data: (usize, usize),
    /// How many points are held out.
    #[serde(default)]
    pub held_out: usize,
    /// What made the data white, where they were to be.
    pub whitening: Option<Whitening>,
    /// The start at work.
    pub current: Start,
    /// Finished starts that may still be the result: the best one, or all where that shows only at the end.
    pub done: Vec<Start>,
}

/// What the caller does between iterations.
pub enum Next {
    /// Go on.
    Continue,
    /// Stop here; the state can be resumed.
    Stop,
}

/// The data at a glance, and what follows for a run.
struct Data {
    scene: Scene,
    update: Update,
}

impl Data {
    fn new(settings: &Settings, points: &mut Points) -> Result<Self> {
        if points.is_empty() {
            return Err(Error::input("there are no points", "the data", "give at least one"));
        }
        let d = points.dims();
        let (mean, covariance) = points.covariance()?;
        let variance = (0..d).map(|i| covariance[i * d + i]).sum::<f64>() / d as f64;
        if covariance.iter().any(|c| !c.is_finite()) {
            let what = "the numbers are so large that their squares overflow";
            return Err(Error::input(what, "the data", "rescale it"));
        }
        // Constant data has no variance to take a fraction of; any scale will do.
        let variance = if variance > 0.0 { variance } else { 1.0 };
        let guard = Guard {
            noise_floor: settings.noise_floor * variance,
            prior_margin: settings.prior_margin(points.len()),
            slab_floor: 1e-6,
        };
        let has_slab = settings.model.kind().has_slab();
        let scene = Scene { mean, covariance, variance, has_slab };
        Ok(Self { scene, update: settings.update(guard) })
    }
}

impl State {
    /// A run that has not begun. Holds points out and whitens them, where the settings say so.
    pub fn new(settings: Settings, points: &mut Points) -> Result<Self> {
        Self::from(settings, points, None)
    }

    /// The same from these parameters instead of random ones. They must have the forms that the settings say.
    pub fn from(settings: Settings, points: &mut Points, first: Option<Parameters>) -> Result<Self> {
        points.hold_out(settings.holdout, settings.seed)?;
        let mut data = Data::new(&settings, points)?;
        let mut whitening = None;
        if settings.whiten {
            let found = Whitening::new(&data.scene.covariance, points.dims());
            points.whiten(&found);
            data = Data::new(&settings, points)?;
            whitening = Some(found);
        }
        let current = match first {
            Some(parameters) => begin(parameters, &data, 0, false),
            None => start(&settings, &data, points, 0)?,
        };
        let shape = (points.len(), points.dims());
        let held_out = points.held_out().map_or(0, |others| others.len());
        Ok(Self { settings, data: shape, held_out, whitening, current, done: Vec::new() })
    }

    /// Runs until all starts are finished or `between` says stop; true when finished. `between` sees the
    /// state after every iteration. Holds points out and whitens them, where that has not been done.
    pub fn run(
        &mut self,
        points: &mut Points,
        threads: usize,
        mut between: impl FnMut(&State) -> Result<Next>,
    ) -> Result<bool> {
        points.hold_out(self.settings.holdout, self.settings.seed)?;
        if let Some(whitening) = &self.whitening {
            points.whiten(whitening);
        }
        let data = Data::new(&self.settings, points)?;
        loop {
            let begun = Instant::now();
            let before = self.current.history.last().map_or(0.0, |step| step.seconds);
            while !self.current.finished {
                self.iterate(points, threads, &data, before, begun)?;
                if let Next::Stop = between(self)? {
                    return Ok(false);
                }
            }
            let number = self.starts().map(|start| start.number + 1).max().unwrap_or(0);
            if number >= self.settings.restarts {
                return Ok(true);
            }
            let next = start(&self.settings, &data, points, number)?;
            self.done.push(std::mem::replace(&mut self.current, next));
            if self.settings.prefer == Prefer::FreeEnergy {
                let best = choose(Prefer::FreeEnergy, &candidates(self.done.iter())).unwrap_or(0);
                self.done = vec![self.done.swap_remove(best)];
            }
        }
    }

    /// Allows more iterations than the run was begun with. Where all starts are finished the preferred one goes on, if it
    /// ran out of iterations; a schedule stays at its end.
    pub fn extend(&mut self, iterations: usize) {
        let before = self.settings.iterations;
        if iterations <= before {
            return;
        }
        if self.settings.is_scheduled() || self.settings.batch > 0 {
            self.settings.schedule.get_or_insert(before);
        }
        self.settings.iterations = iterations;
        let begun = self.starts().map(|start| start.number + 1).max().unwrap_or(0);
        if self.current.finished && begun >= self.settings.restarts {
            let preferred = choose(self.settings.prefer, &candidates(self.starts()));
            if let Some(other) = preferred.and_then(|chosen| self.done.get_mut(chosen)) {
                std::mem::swap(other, &mut self.current);
            }
        }
        if self.current.finished && self.current.history.len() > before {
            self.current.reopen();
        }
    }

    /// The start that is preferred, once all are finished.
    pub fn result(&self) -> &Start {
        choose(self.settings.prefer, &candidates(self.starts()))
            .and_then(|chosen| self.starts().nth(chosen))
            .unwrap_or(&self.current)
    }

    /// The model of the raw data that the preferred start has come to.
    pub fn model(&self) -> Parameters {
        let parameters = self.result().kept();
        let raw = |whitening: &Whitening| whitening.undo(parameters);
        let mut model = self.whitening.as_ref().map_or_else(|| parameters.clone(), raw);
        if self.settings.weak == Weak::Sources {
            give_to_sources(&mut model);
        }
        model
    }

    /// Scores that selection learned with a linear kernel, of the raw data. (D x H)
    pub fn learned_scores(&self) -> Option<&[f64]> {
        // Whitened points have other ones.
        self.result().selector.as_ref().filter(|_| self.whitening.is_none())?.scores()
    }

    /// All starts that are kept, the one at work last.
    pub fn starts(&self) -> impl Iterator<Item = &Start> {
        self.done.iter().chain(std::iter::once(&self.current))
    }

    /// E-step, bookkeeping, M-step; or a pass of stepwise EM. The last E-step only tells F of the final parameters.
    fn iterate(
        &mut self,
        points: &mut Points,
        threads: usize,
        data: &Data,
        before: f64,
        begun: Instant,
    ) -> Result<()> {
        let settings = &self.settings;
        let now = &mut self.current;
        let iteration = now.history.len();
        // ln p(y) = ln p(V y) + ln |det V| for every point.
        let log_det = self.whitening.as_ref().map_or(0.0, |w| w.log_det);
        let offset = log_det * points.len() as f64;
        // The last E-step tells what the parameters are worth, not how warm they are.
        let least =
            if settings.batch == 0 { 0 } else { settings.passes_to_settle(now.anneals, points.len()) };
        let enough = !settings.wavers() && iteration >= least;
        let settled = |history: &[Step]| {
            (enough && converged(history, settings.tolerance)) || is_stale(settings, history)
        };
        // Of a pass F is known only roughly, so it takes an E-step over all points to end.
        let is_last = settings.batch > 0 && (now.is_whole || settled(&now.history));
        let ends = iteration >= settings.iterations || is_last;
        // After the batches of a search comes one step of all points, with all states that the model will have.
        let is_whole = settings.batch > 0
            && settings.is_adaptive()
            && !now.is_whole
            && (is_last || iteration + 1 == settings.iterations);
        let ends = ends && !is_whole;
        let temperature = if ends { 1.0 } else { settings.temperature_at(iteration) };
        let held_out = match temperature == 1.0 {
            true => held_out(settings, now, points, threads, log_det)?,
            false => None,
        };
        let push = |history: &mut Vec<Step>, free_energy: f64| {
            let seconds = before + begun.elapsed().as_secs_f64();
            history.push(Step {
                iteration,
                free_energy: free_energy + offset,
                seconds,
                temperature,
                held_out: held_out.map(|held| held.sum),
            });
        };
        if settings.batch > 0 && !ends && !is_whole {
            let met = held_out.map(|held| (held, now.parameters.clone()));
            let (free_energy, warnings) =
                stepwise::pass(settings, now, points, threads, &settings.cooling(data.update, iteration))?;
            push(&mut now.history, free_energy);
            now.warnings.extend(warnings.iter().map(Warning::words));
            let free_energy = free_energy + offset;
            // Without points held out only the pass as a whole has a figure, which is that of where it led to, nearly.
            let (iteration, value, merit) = match &met {
                Some((held, _)) => (iteration, held.sum, held.each()),
                None => (iteration + 1, free_energy, free_energy / points.len() as f64),
            };
            let stage = settings.stage(now.anneals, now.history.len() as f64 - 1.0);
            if temperature == 1.0 && stage.noise == 1.0 && now.is_best(value) {
                let parameters = met.map_or_else(|| now.parameters.clone(), |(_, parameters)| parameters);
                now.best = Some(Best { iteration, value, free_energy, merit, parameters });
            }
        } else {
            let kept = settings.kept_at(iteration, &now.parameters.prior);
            let engine = settings.engine_at(now.number, iteration);
            let options = settings.options();
            let how = How { engine, temperature, kept, options, names_worst: false };
            let statistics = match settings.engine {
                settings::Engine::Factored => {
                    factored::e_step(&now.parameters, &mut now.means, points, threads)?
                }
                _ if settings.gp.is_some() && settings.is_adaptive() && ends => {
                    let task = Task { engine, temperature, ..Task::new(&now.parameters, &how.options) };
                    let (statistics, activities) =
                        task.run_with_activities(points, threads, settings.precision)?;
                    now.selector = Selector::of_search(settings, &activities, points)?;
                    statistics
                }
                _ if settings.gp.is_some() && !settings.is_adaptive() => {
                    let begin = || Selector::new(settings, now.number, points.len());
                    let place = (now.number, iteration);
                    let selector = now.selector.get_or_insert_with(begin);
                    selector.e_step(settings, &now.parameters, &how, place, points, threads)?
                }
                // The last E-step looks at all components.
                _ if settings.keeps_some_components() && temperature == 1.0 && kept == 1.0 && !ends => {
                    let around = Some(Sets { latents: &now.kept, each: settings.selected });
                    let task = Task { engine, around, ..Task::new(&now.parameters, &how.options) };
                    let (statistics, found) = task.run_with_kept(points, threads, settings.precision)?;
                    now.kept = found;
                    statistics
                }
                _ => e_step(settings, &now.parameters, &how, points, threads)?.0,
            };
            push(&mut now.history, statistics.free_energy);
            let free_energy = statistics.free_energy + offset;
            let comparable = temperature == 1.0 && (kept == 1.0 || held_out.is_some());
            let own = statistics.counted / statistics.points as f64;
            let (value, count, merit) = match held_out {
                Some(held) => (held.sum, held.points, held.each()),
                None => (free_energy, points.len(), own),
            };
            if ends || (settings.batch == 0 && settled(&now.history)) {
                if settings.batch > 0 && comparable {
                    value_best(settings, now, value, count, points, threads, offset)?;
                }
                now.finish(settings, comparable.then_some(value), count, merit);
                now.notes.extend(still_climbs(settings, &now.history, points.len()));
                return Ok(());
            }
            let update = settings.cooling(data.update, iteration);
            let (new, warnings) = m_step(&now.parameters, &statistics, &update)?;
            let parameters = std::mem::replace(&mut now.parameters, new);
            now.is_whole = is_whole;
            if comparable && now.is_best(value) {
                now.best = Some(Best { iteration, value, free_energy, merit, parameters });
            }
            now.warnings.extend(warnings.iter().map(Warning::words));
        }
        settings.disturb(&mut now.parameters, data.scene.variance.sqrt(), now.number, iteration);
        Ok(())
    }
}

/// The evidence of the points that are held out.
#[derive(Clone, Copy)]
struct HeldOut {
    sum: f64,
    points: usize,
}

impl HeldOut {
    fn each(self) -> f64 {
        self.sum / self.points as f64
    }
}

/// Under the parameters of a start, if any are held out. Draws are the same in all iterations.
fn held_out(
    settings: &Settings,
    now: &Start,
    points: &mut Points,
    threads: usize,
    log_det: f64,
) -> Result<Option<HeldOut>> {
    let Some(points) = points.held_out() else { return Ok(None) };
    let options = settings.options();
    let engine = settings.engine_at(now.number, 0);
    let task = Task { engine, ..Task::new(&now.parameters, &options) };
    let sum: f64 = match settings.engine {
        settings::Engine::Factored => factored::free_energy(&now.parameters, points, threads)?,
        _ => task.evidence(points, threads, settings.precision)?,
    };
    Ok(Some(HeldOut { sum: sum + log_det * points.len() as f64, points: points.len() }))
}

/// What the best iterate of stepwise EM is worth, as long as it looks better than the last one: so far only the figure of a
/// pass is known.
fn value_best(
    settings: &Settings,
    now: &mut Start,
    last: f64,
    count: usize,
    points: &mut Points,
    threads: usize,
    offset: f64,
) -> Result<()> {
    let margin = margin(settings, &now.history, count);
    let engine = settings.engine_at(now.number, now.history.len() - 1);
    let Some(best) = now.best.as_mut().filter(|best| best.value > last + margin) else { return Ok(()) };
    let options = settings.options();
    let how = How { engine, temperature: 1.0, kept: 1.0, options, names_worst: false };
    let (statistics, _) = e_step(settings, &best.parameters, &how, points, threads)?;
    best.free_energy = statistics.free_energy + offset;
    if settings.holdout == 0.0 {
        best.value = best.free_energy;
        best.merit = statistics.counted / statistics.points as f64;
    }
    Ok(())
}

/// Whether the last iteration changed next to nothing.
fn converged(history: &[Step], tolerance: f64) -> bool {
    match history {
        [.., before, last] => {
            (last.free_energy - before.free_energy).abs() <= tolerance * last.free_energy.abs()
        }
        _ => false,
    }
}

/// How an E-step differs from others.
pub(super) struct How {
    pub engine: Engine,
    pub temperature: f64,
    /// Part of the points that counts, the best explained ones.
    pub kept: f64,
    pub options: Options,
    /// Whether the points that are explained worst are told.
    pub names_worst: bool,
}

/// The E-step, as the settings want it.
pub(super) fn e_step(
    settings: &Settings,
    parameters: &Parameters,
    how: &How,
    points: &mut Points,
    threads: usize,
) -> Result<(Statistics, Vec<Poor>)> {
    let How { engine, temperature, kept, options, names_worst } = how;
    let (engine, temperature, kept) = (*engine, *temperature, *kept);
    let mut task = Task { engine, temperature, names_worst: *names_worst, ..Task::new(parameters, options) };
    if kept < 1.0 {
        let evidences = task.evidences(points, threads, settings.precision)?;
        task.least_evidence = threshold(evidences, kept, points.cluster());
    }
    task.run(points, threads, settings.precision)
}

fn candidates<'a>(starts: impl Iterator<Item = &'a Start>) -> Vec<Candidate<'a>> {
    let merit = |start: &Start| start.merit.unwrap_or(f64::NEG_INFINITY);
    starts.map(|start| Candidate { parameters: start.kept(), free_energy: merit(start) }).collect()
}

fn start(settings: &Settings, data: &Data, points: &mut Points, number: usize) -> Result<Start> {
    let anneals = settings.anneals(&data.scene);
    Ok(begin(init(settings, &data.scene, points, number)?, data, number, anneals))
}

fn begin(mut parameters: Parameters, data: &Data, number: usize, anneals: bool) -> Start {
    // Constant data: a dictionary of zeros would never move.
    if parameters.dictionary.iter().all(|&w| w == 0.0) {
        parameters.dictionary.fill(1.0);
    }
    raise(&mut parameters, data.update.guard.noise_floor);
    Start {
        number,
        parameters,
        history: Vec::new(),
        best: None,
        warnings: BTreeSet::new(),
        notes: Vec::new(),
        anneals,
        is_whole: false,
        sums: None,
        means: Vec::new(),
        kept: Vec::new(),
        selector: None,
        merit: None,
        finished: false,
    }
}
