//! What a frame says beside its parts: which sources are to be heard, and how usual it is.

use super::model::{MOST_FILTERS, SpectralModel};
use crate::numeric::slices::{at, set, span};

/// Latents whose power is below this part of the mean of their source are pauses of it.
const PAUSE: f32 = 0.1;
/// Weight of the last frame in the score.
const NEWEST: f32 = 1.0 / 8.0;

/// Kept from frame to frame.
#[derive(Debug)]
pub(super) struct Watch<'m> {
    score: &'m mut f32,
    /// Of the frame. (G)
    activities: &'m mut [f32],
    /// 1 for latents that are to be heard, 0 for pauses. (H)
    heard: &'m mut [f32],
}

impl Watch<'_> {
    pub const fn len(groups: usize, latents: usize) -> usize {
        1 + groups + latents
    }
}

impl<'m> Watch<'m> {
    pub fn cut(memory: &'m mut [f32], groups: usize) -> Option<Self> {
        let (score, rest) = memory.split_first_mut()?;
        let (activities, heard) = rest.split_at_mut_checked(groups)?;
        Some(Self { score, activities, heard })
    }

    /// Finds out which latents are pauses; `powers` are those of bytes of `MASK`.
    pub fn prepare(&mut self, model: &SpectralModel<'_>, powers: &[f32]) {
        let single = model.single();
        let power = |latent: usize| {
            let mut sum = 0.0;
            for (m, &code) in model.mask(latent).iter().enumerate() {
                sum += at(powers, code.into()) * if m < single { 1.0 } else { 2.0 };
            }
            sum
        };
        for source in model.sources() {
            let (mut mean, latents) = (0.0, source.first..source.first + source.latents);
            for latent in latents.clone() {
                let power = power(latent);
                set(self.heard, latent, power);
                mean += model.prior(latent) * power;
            }
            for latent in latents {
                let is_heard = at(self.heard, latent) > PAUSE * mean;
                set(self.heard, latent, if is_heard { 1.0 } else { 0.0 });
            }
        }
    }

    pub fn reset(&mut self) {
        *self.score = 0.0;
        self.activities.fill(0.0);
    }

    pub fn see(
        &mut self,
        model: &SpectralModel<'_>,
        evidences: &[f32],
        weights: &[f32; MOST_FILTERS],
        posteriors: &[f32],
    ) {
        let (mut evidence, latents) = (0.0, model.latents());
        self.activities.fill(0.0);
        for (filter, (&found, &weight)) in
            evidences.iter().zip(weights).enumerate().filter(|of| *of.1.1 > 0.0)
        {
            evidence += weight * found;
            let posterior = span(posteriors, filter * latents, latents);
            for (activity, source) in self.activities.iter_mut().zip(model.sources()) {
                let heard = span(self.heard, source.first, source.latents);
                for (q, heard) in span(posterior, source.first, source.latents).iter().zip(heard) {
                    *activity += weight * (q * heard);
                }
            }
        }
        // The first frame counts as those before it.
        let newest = if *self.score == 0.0 { 1.0 } else { NEWEST };
        *self.score += newest * (-evidence - *self.score);
    }

    pub fn activity(&self, group: usize) -> f32 {
        at(self.activities, group)
    }

    pub fn score(&self) -> f32 {
        *self.score
    }
}
