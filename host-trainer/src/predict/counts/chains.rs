//! Counts of sampling: what chains do, seen from the state at the end of each of their sweeps.
//!
//! How a chain starts cannot be seen. A greedy start switches latents on one by one, so it is taken to have switched as many as
//! are on in the best state, and to have looked at all latents before each. Nor can the odds of a draw be seen, of which the
//! extreme ones take no exponential: those of the last state stand for all.

use super::{Facts, segments};
use spikelet::gibbs::Draw;
use spikelet::{Error, Gibbs, Inference, Start};

/// Latents that a greedy start switches, at most.
const CLIMBS: f64 = 16.0;
/// Log odds beyond this are certain, without an exponential.
const CERTAIN: f32 = 87.0;

/// Sums over all sweeps of a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    sweeps: f64,
    /// Latents on, their squares and cubes.
    on: [f64; 3],
    /// Values that change.
    changes: f64,
    before: Vec<bool>,
    /// Latents on at the start of a chain.
    started: f64,
    /// Segments with mass of a conditional, where it has any.
    segments: f64,
    /// The share of latents that are neither certainly on nor certainly off.
    open: f64,
}

impl Chains {
    /// Of a sample that was projected, and its latents selected.
    pub fn of_sample(
        facts: &Facts,
        settings: &Gibbs,
        inference: &mut Inference<'_, f32>,
        sample: &[f32],
        is_loud: bool,
    ) -> Result<Vec<f64>, Error> {
        let (mut chains, model) = (Self::default(), *inference.model());
        let has_segments = model.shape.kind.is_maximal() && model.shape.kind.has_slab();
        let last = f64::from(settings.sweeps) * f64::from(settings.chains) - 1.0;
        let (mut order, mut values) = (Vec::new(), vec![0.0; model.shape.latents]);
        let estimate = inference.draw(|draw| {
            if chains.sweeps == last {
                order = draw.order.to_vec();
                draw.order.iter().zip(draw.values).for_each(|(&h, &value)| values[usize::from(h)] = value);
                if has_segments {
                    chains.segments = segments::of_state(&model, sample, &draw);
                }
            }
            chains.see(facts, settings, &draw);
        })?;
        chains.started = estimate.map_latents.len() as f64;
        for &latent in &order {
            let given = inference.conditional(sample, &values, latent, &[], &mut [])?;
            chains.open += f64::from(u8::from(given.log_odds.abs() < CERTAIN)) / order.len() as f64;
        }
        Ok(chains.counts(facts, settings, is_loud))
    }

    /// With as many latents on as can be, all the time.
    pub fn most(facts: &Facts, settings: &Gibbs) -> Vec<f64> {
        let [d, _, s, _] = facts.sizes();
        let a = s.min(f64::from(settings.max_active));
        let sweeps = f64::from(settings.chains) * f64::from(settings.sweeps);
        let most = Self {
            sweeps,
            on: [a, a * a, a * a * a].map(|on| sweeps * on),
            changes: sweeps * s,
            before: Vec::new(),
            started: a.min(CLIMBS),
            segments: d + 2.0,
            open: 1.0,
        };
        most.counts(facts, settings, !facts.shape.kind.is_maximal())
    }

    fn see(&mut self, facts: &Facts, settings: &Gibbs, draw: &Draw<'_, f32>) {
        let now: Vec<bool> = draw.values.iter().map(|&value| value != 0.0).collect();
        let is_first = self.sweeps % f64::from(settings.sweeps) == 0.0;
        if is_first {
            self.before.clone_from(&now);
        }
        let has_slab = facts.shape.kind.has_slab();
        // With a slab a latent that is on has another value in every sweep.
        let changed = |(&before, &now): (&bool, &bool)| before != now || has_slab && now;
        self.changes += self.before.iter().zip(&now).filter(|&pair| changed(pair)).count() as f64;
        let on = now.iter().filter(|&&on| on).count() as f64;
        for (sum, on) in self.on.iter_mut().zip([on, on * on, on * on * on]) {
            *sum += on;
        }
        self.sweeps += 1.0;
        self.before = now;
    }

    fn counts(&self, facts: &Facts, settings: &Gibbs, is_loud: bool) -> Vec<f64> {
        let [d, h, s, _] = facts.sizes();
        let (chains, m) = (f64::from(settings.chains), self.started);
        let climbs = if settings.start == Start::Greedy { chains } else { 0.0 };
        // Before each switch and after the last, all latents are looked at, and those that are on moved.
        let looks = climbs * (m + 1.0) * (s + 0.5 * m);
        let moves = climbs * 0.5 * m * (m + 1.0);
        let scattered = if settings.start == Start::Random { chains * s } else { 0.0 };
        let loud = |count: f64| if is_loud { count } else { 0.0 };
        // The reference of a loud sample is climbed to as well.
        let conditionals = self.sweeps * s + looks + loud((m + 1.0) * (s + 0.5 * m));
        let kept = settings.draws() as f64;
        let [on, squares, cubes] = self.on;
        let mut counts = vec![
            1.0,
            h,
            s * s,
            conditionals,
            self.sweeps,
            self.sweeps * s,
            self.open * self.sweeps * s,
            kept * s,
            on,
            scattered,
        ];
        if facts.shape.kind.is_maximal() {
            // Every conditional makes the maxima of the others anew, and so does the joint of a state.
            let maxima = s * on + looks * 0.5 * m;
            counts.extend([d * conditionals, d * maxima, d * self.sweeps, d * on, kept * d]);
            if facts.shape.kind.has_slab() {
                counts.extend([d * d.log2() * conditionals, self.segments * conditionals]);
            }
        } else {
            counts.extend([facts.gram[0], facts.gram[1], s * (self.changes + moves), moves]);
            if facts.shape.kind.has_slab() {
                counts.extend([squares, cubes]);
            }
            // The reference is searched, subtracted and projected.
            counts.extend([1.0, d * m, d * s, m * s * (m + 8.0)].map(loud));
        }
        counts
    }
}
