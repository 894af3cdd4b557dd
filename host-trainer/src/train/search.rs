//! How adaptive states are searched while a dictionary takes shape.
//!
//! From a random dictionary greedy codes are dense and wrong, and EM keeps them so. The passes of stepwise EM therefore
//! begin where little can be explained, and codes are short:
//!
//! ```text
//! noise of the E-step   times 5 at first, falling to 1 over the first three passes
//! latents on            at most 2 in these passes, then as many as the model has
//! pi                    as it was at first in these passes, then learned
//! candidates            2 beside the reference, which alone is expanded
//! ```
//!
//! The last E-step looks at all that the exported model looks at. On dictionaries without structure this finds nearly all
//! directions, and the noise comes out right (experiment `dictionary-recovery`). Patches of pictures and other data with most of
//! their variance in few directions need none of it: there a first code is roughly right, and the passes begin with all latents.
//! There are twice the candidates beside the reference, and nothing is revived: a latent that is on in a handful of patches has
//! the one corner of the picture that looks so, and denoises it (experiment `pictures`). It needs a prior that a handful of
//! points can keep alive: pi stays above that of half a point.

use super::init::Scene;
use super::settings::Settings;
use super::whiten::Spectrum;
use crate::prepare::Options;

/// What the noise is multiplied with at first, passes in which that falls to 1, and latents on meanwhile.
const NOISE: f64 = 5.0;
const PASSES: f64 = 3.0;
const ON: usize = 2;

/// Candidates beside the reference while the dictionary is learned, from nothing and where a first code is roughly right, and states
/// that are expanded.
const BESIDE: [usize; 2] = [2, 4];
const EXPANDED: [usize; 2] = [1, 2];

/// Data whose variance is spread over more than this part of its dimensions has no first dictionary that is roughly right.
const SPREAD: f64 = 0.25;

/// How an E-step searches.
pub(super) struct Stage {
    /// What the noise is multiplied with.
    pub noise: f64,
    pub options: Options,
    /// Whether pi stays as it is.
    pub holds_prior: bool,
}

impl Settings {
    /// The search after so many passes of stepwise EM, of a start that anneals or not.
    pub(super) fn stage(&self, anneals: bool, passes: f64) -> Stage {
        let mut options = self.options();
        if !self.is_adaptive() {
            return Stage { noise: 1.0, options, holds_prior: false };
        }
        let is_early = anneals && passes < PASSES;
        if is_early {
            options.max_active = options.max_active.min(ON);
        }
        let is_rough = usize::from(!anneals);
        options.selected = options.selected.min(options.max_active + BESIDE[is_rough]);
        options.expansions = options.expansions.min(EXPANDED[is_rough]);
        let noise = if is_early { NOISE + (1.0 - NOISE) * passes / PASSES } else { 1.0 };
        Stage { noise, options, holds_prior: is_early }
    }

    /// Whether a start from a random dictionary anneals on data like these.
    pub(super) fn anneals(&self, scene: &Scene) -> bool {
        self.is_adaptive() && self.batch > 0 && scene.spread() > SPREAD
    }

    /// How far pi stays away from 0 and 1.
    pub(super) fn prior_margin(&self, points: usize) -> f64 {
        if self.is_adaptive() && self.batch > 0 { 0.5 / points as f64 } else { 1e-9 }
    }
}

impl Scene {
    /// (sum v)^2 / (D sum v^2) of what the variances v of the principal directions have above that of the weak ones, which noise has in all
    /// directions: 1 where all directions have the same variance, 1 / D where one has all of it.
    fn spread(&self) -> f64 {
        let d = self.mean.len();
        let mut variances = Spectrum::new(&self.covariance, d).values;
        variances.sort_by(f64::total_cmp);
        // Not the weakest: along the mean that was taken off a patch there is nothing.
        let noise = variances[d / 10];
        let above = || variances.iter().map(|v| (v - noise).max(0.0));
        let (sum, square): (f64, f64) = (above().sum(), above().map(|v| v * v).sum());
        if square > 0.0 { sum * sum / (d as f64 * square) } else { 0.0 }
    }
}
