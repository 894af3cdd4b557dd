//! What changes from iteration to iteration (paper 002): temperature, noise on the dictionary, which points count.
//!
//! ```text
//! temperature      T_first for a tenth of the iterations, then linearly down to T_last, constant for the last fifth
//! noise on W       after every M-step until T_last is reached
//! points that count   all for two thirds of the iterations, then fewer, down to 0.9 p(|s| <= gamma) of them: those that
//!                  the model explains best. The others have more latents on than the truncated model knows.
//! ```
//!
//! A run with a schedule goes through all of it; it does not end before because little changed.

use super::init::stream;
use super::m_step::{Learned, Update, at_most};
use super::settings::{Engine, Settings};
use crate::cluster::Cluster;
use crate::parameters::Parameters;
use spikelet::rng::Rng;

/// Part of the points that have few enough latents on that is kept in the end.
const KEPT: f64 = 0.9;

impl Settings {
    /// Whether iterations differ, by a schedule or by chance, so that a small change of the free energy says nothing.
    pub fn wavers(&self) -> bool {
        self.is_scheduled() || self.engine == Engine::Gibbs || self.gp.is_some()
    }

    /// Whether iterations differ by a schedule, which must be gone through to its end.
    pub fn is_scheduled(&self) -> bool {
        self.temperature != (1.0, 1.0) || self.cut
    }

    /// T of an iteration.
    pub fn temperature_at(&self, iteration: usize) -> f64 {
        let (first, last) = self.temperature;
        let done = self.progress(iteration);
        first + (last - first) * ((done - 0.1) / 0.7).clamp(0.0, 1.0)
    }

    /// What an M-step does in an iteration: while it is cooling, posteriors are too flat to learn more than the dictionary.
    pub(super) fn cooling(&self, mut update: Update, iteration: usize) -> Update {
        if self.temperature_at(iteration) > self.temperature.1 {
            update.learned = Learned { dictionary: update.learned.dictionary, ..Learned::NOTHING };
        }
        update
    }

    /// The part of the points that count.
    pub fn kept_at(&self, iteration: usize, prior: &[f64]) -> f64 {
        let fewer = (3.0 * self.progress(iteration) - 2.0).clamp(0.0, 1.0);
        // Draws may have any number of latents on.
        let is_truncated = self.max_active < self.latents && self.engine != Engine::Gibbs;
        match self.cut && is_truncated && fewer > 0.0 {
            true => 1.0 - fewer * (1.0 - KEPT * at_most(prior, None, self.max_active)),
            false => 1.0,
        }
    }

    /// Puts noise on W, as long as it is cooling; `deviation` is that of the data.
    pub fn disturb(&self, parameters: &mut Parameters, deviation: f64, start: usize, iteration: usize) {
        if self.parameter_noise == 0.0 || self.progress(iteration) >= 0.8 {
            return;
        }
        let step = (iteration as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
        let mut rng = Rng::new(stream(self.seed, start).wrapping_add(step));
        let least = if parameters.kind.kind().is_non_negative() { 0.0 } else { f64::NEG_INFINITY };
        for w in &mut parameters.dictionary {
            *w = (*w + self.parameter_noise * deviation * rng.normal::<f64>()).max(least);
        }
    }

    /// From 0 in the first iteration to 1 in the last.
    fn progress(&self, iteration: usize) -> f64 {
        match self.schedule.unwrap_or(self.iterations) {
            0 | 1 => 1.0,
            all => (iteration as f64 / (all - 1) as f64).min(1.0),
        }
    }
}

/// The evidence that this part of all points reaches; `own` are those of this rank.
pub(super) fn threshold(mut own: Vec<f64>, kept: f64, cluster: &Cluster) -> f64 {
    let all = cluster.total(own.len() as u64);
    let count = (kept * all as f64).floor().max(1.0) as u64;
    let Some(place) = all.checked_sub(count).filter(|&place| place < all) else { return f64::NEG_INFINITY };
    own.sort_unstable_by(f64::total_cmp);
    // The largest number that no more than `place` evidences are below, bit by bit from the first.
    let below = |key: u64| cluster.total(own.partition_point(|&evidence| order(evidence) < key) as u64);
    let key = (0..u64::BITS).rev().fold(0, |key, bit| {
        let next = key | 1 << bit;
        if below(next) <= place { next } else { key }
    });
    number(key)
}

/// A key that grows with its number, as [`f64::total_cmp`] has it, and the number of a key.
fn order(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
}

fn number(key: u64) -> f64 {
    f64::from_bits(key ^ if key >> 63 == 1 { 1 << 63 } else { u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_an_evidence_that_the_best_points_reach() {
        let mut rng = Rng::new(8);
        for count in [1, 2, 7, 500] {
            let mut values: Vec<f64> = (0..count).map(|_| (rng.normal::<f64>() * 3.0).round()).collect();
            for kept in [0.01, 0.3, 0.5, 0.99, 1.0] {
                let found = threshold(values.clone(), kept, &Cluster::alone());
                values.sort_by(f64::total_cmp);
                let place = count - ((kept * count as f64).floor().max(1.0) as usize);
                assert_eq!(found.to_bits(), values[place].to_bits(), "{count} {kept}");
            }
        }
        assert_eq!(threshold(Vec::new(), 0.5, &Cluster::alone()), f64::NEG_INFINITY);
    }
}
