//! Maximal causes: y_d = max_h s_h W_dh + noise.
//!
//! ```text
//! W_dh = sum <A_dh> y_d / sum <A_dh>      A_dh = s_h W_dh^(rho-1) (sum_j (s_j W_dj)^rho)^((1-rho)/rho)      002 eq. 30-31
//! ```
//!
//! A_dh is the share of latent h in dimension d: with rho large, 1 for the strongest latent that is on and 0 for the
//! others. rho = T / (T - 1) follows the temperature, so that all latents learn at first. A_dh does not change with the scale of
//! W_dj, j = 1 ... H, so that powers are taken once per E-step, of numbers between 0 and 1.
//!
//! The noise is what is left of the data under the *old* dictionary, which is the best there is for that one: the new one does not
//! tell without another walk.

use super::super::m_step::{Update, Warning, floored};
use super::super::statistics::Statistics;
use crate::linalg::transposed;
use crate::parameters::{NoiseCov, Parameters};
use spikelet::Inference;
use spikelet::math::Real;

/// rho is that of this temperature at lower ones: at 1 it is infinite.
const COLDEST: f64 = 1.05;

/// States less probable than this teach nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// Powers are taken of strengths over the largest W_dh of the dimension; sums of them below this have lost precision.
const TOO_SMALL: f64 = 1e-280;

/// What the shares of a model follow from, by latents. (H x D)
pub(crate) struct Strengths {
    dims: usize,
    w: Vec<f64>,
    /// W_dh^(rho-1) and W_dh^rho over the largest W_dh of the dimension.
    below: Vec<f64>,
    power: Vec<f64>,
    rho: f64,
}

impl Strengths {
    pub fn new(parameters: &Parameters, temperature: f64) -> Self {
        let (d, h) = (parameters.dims, parameters.latents);
        let temperature = temperature.max(COLDEST);
        let rho = temperature / (temperature - 1.0);
        let largest: Vec<f64> = parameters.dictionary.chunks_exact(h).map(strongest).collect();
        let w = transposed(&parameters.dictionary, h);
        let relative = |e: usize| if largest[e % d] > 0.0 { w[e] / largest[e % d] } else { 0.0 };
        let below: Vec<f64> = (0..h * d).map(|e| relative(e).powf(rho - 1.0)).collect();
        let power = (0..h * d).map(|e| below[e] * relative(e)).collect();
        Self { dims: d, w, below, power, rho }
    }
}

fn strongest(strengths: &[f64]) -> f64 {
    strengths.iter().fold(0.0, |most, &w| most.max(w))
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
        let Strengths { dims, w, below, power, rho } = strengths;
        for (d, (&y, left)) in y.iter().zip(left).enumerate() {
            let entry = |latent: &u16| usize::from(*latent) * dims + d;
            let strongest = on.iter().map(|latent| w[entry(latent)]).fold(0.0, f64::max);
            *left += q * (y - strongest) * (y - strongest);
            let mut add = |e: usize, share: f64| {
                self.seen[e] += share * y;
                self.share[e] += share;
            };
            if let [latent] = on {
                add(entry(latent), q);
                continue;
            }
            let total: f64 = on.iter().map(|latent| power[entry(latent)]).sum();
            if total > TOO_SMALL {
                let scale = q * total.powf((1.0 - rho) / rho);
                on.iter().map(entry).for_each(|e| add(e, scale * below[e]));
                continue;
            }
            // All are next to nothing in this dimension: they are compared with each other only.
            let relative = |e: usize| if strongest > 0.0 { w[e] / strongest } else { 1.0 };
            let total: f64 = on.iter().map(entry).map(|e| relative(e).powf(*rho)).sum();
            let scale = q * total.powf((1.0 - rho) / rho);
            on.iter().map(entry).for_each(|e| add(e, scale * relative(e).powf(rho - 1.0)));
        }
    }
}

/// W from shares, or from draws. Negative data cannot be explained, so their mean is cut off at 0.
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
