//! Maximal causes: y_d = max_h s_h W_dh + noise.
//!
//! ```text
//! W_dh = sum <A_dh> y_d / sum <A_dh>      A_dh = s_h W_dh^(rho-1) (sum_j (s_j W_dj)^rho)^((1-rho)/rho)      002 eq. 30-31
//! ```
//!
//! A_dh is the share of latent h in dimension d: with rho large, 1 for the strongest latent that is on and 0 for the
//! others. rho = T / (T - 1) follows the temperature, so that all latents learn at first. Strengths are divided by the
//! strongest of their state, which changes nothing but that no power overflows.
//!
//! The noise is what is left of the data under the *old* dictionary: the new one does not tell without another walk. Both
//! steps raise the free energy, whichever comes first.

use super::super::m_step::{Update, Warning, floored};
use super::super::statistics::Statistics;
use crate::parameters::{NoiseCov, Parameters};
use spikelet::Inference;
use spikelet::capacity::MAX_ACTIVE;
use spikelet::math::Real;

/// rho is that of this temperature at lower ones: at 1 it is infinite.
const COLDEST: f64 = 1.05;

/// States less probable than this teach nothing.
const NEGLIGIBLE: f64 = 1e-20;

/// What the shares of a model follow from.
pub(crate) struct Strengths {
    dims: usize,
    /// W by latents. (H x D)
    w: Vec<f64>,
    /// ln W.
    log_w: Vec<f64>,
    rho: f64,
}

impl Strengths {
    pub fn new(parameters: &Parameters, temperature: f64) -> Self {
        let (d, h) = (parameters.dims, parameters.latents);
        let w: Vec<f64> = (0..h * d).map(|e| parameters.dictionary[e % d * h + e / d]).collect();
        let log_w = w.iter().map(|w| w.ln()).collect();
        let temperature = temperature.max(COLDEST);
        Self { dims: d, w, log_w, rho: temperature / (temperature - 1.0) }
    }
}

/// Sums that grow by whole rows, one per latent. (H x D)
#[derive(Default)]
pub(crate) struct Shares {
    /// `sum <A> y`.
    pub seen: Vec<f64>,
    /// `sum <A>`.
    pub share: Vec<f64>,
}

impl Shares {
    /// Adds the shares of the point y that `inference` has just seen, and to `left` (D) its `<(y - max W s)^2>`.
    pub fn add<T: Real>(
        &mut self,
        strengths: &Strengths,
        inference: &mut Inference<'_, T>,
        y: &[f64],
        left: &mut [f64],
    ) {
        inference.for_each_state(|latents, probability| {
            let probability = probability.to_f64();
            if probability > NEGLIGIBLE {
                self.add_state(strengths, latents, probability, y, left);
            }
        });
    }

    fn add_state(&mut self, strengths: &Strengths, on: &[u16], q: f64, y: &[f64], left: &mut [f64]) {
        let Strengths { dims, w, log_w, rho } = strengths;
        for (d, (&y, left)) in y.iter().zip(left).enumerate() {
            let entry = |latent: &u16| usize::from(*latent) * dims + d;
            let strongest = on.iter().map(|latent| w[entry(latent)]).fold(0.0, f64::max);
            *left += q * (y - strongest) * (y - strongest);
            if let [latent] = on {
                self.seen[entry(latent)] += q * y;
                self.share[entry(latent)] += q;
                continue;
            }
            // (W_dj / max)^(rho - 1), or 1 where all are zero
            let log_strongest = strongest.ln();
            let (mut powers, mut total) = ([0.0; MAX_ACTIVE], 0.0);
            for (power, e) in powers.iter_mut().zip(on.iter().map(entry)) {
                *power = 1.0;
                if w[e] < strongest {
                    *power = ((rho - 1.0) * (log_w[e] - log_strongest)).exp();
                    total += *power * w[e] / strongest;
                } else {
                    total += 1.0;
                }
            }
            let scale = q * total.powf((1.0 - rho) / rho);
            for (power, e) in powers.iter().zip(on.iter().map(entry)) {
                self.seen[e] += scale * power * y;
                self.share[e] += scale * power;
            }
        }
    }
}

/// W from shares. Negative data cannot be explained, so their mean is cut off at 0.
pub fn dictionary(
    parameters: &Parameters,
    sums: &Statistics,
    dead: &[bool],
    _: &Update,
    _: &mut Vec<Warning>,
) -> Vec<f64> {
    let h = parameters.latents;
    let entry = |e: usize| match sums.share[e] {
        share if share > 0.0 && !dead[e % h] => (sums.cross[e] / share).max(0.0),
        _ => parameters.dictionary[e],
    };
    (0..parameters.dictionary.len()).map(entry).collect()
}

/// What the old dictionary leaves of the data.
pub fn noise(new: &Parameters, sums: &Statistics, floor: f64, warnings: &mut Vec<Warning>) -> NoiseCov {
    let n = sums.points as f64;
    let mut floored = |variance| floored(variance, floor, warnings);
    match &new.noise {
        NoiseCov::Diagonal(_) => NoiseCov::Diagonal(sums.power.iter().map(|sum| floored(sum / n)).collect()),
        _ => NoiseCov::Shared(floored(sums.power.iter().sum::<f64>() / (n * new.dims as f64))),
    }
}
