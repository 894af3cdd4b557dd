//! Maximal causes with slabs: y_d = max_h x_h W_dh + noise, learned from draws.
//!
//! ```text
//! W_dh = sum <x_h y_d>* / sum <x_h^2>*        <.>* over the draws in which h is the strongest in dimension d    004 eq. 3.37
//! ```
//!
//! This is the M-step of [`mca`](super::mca) with draws in place of shares, and so is the noise. W and the slab share a scale, which
//! is settled by columns of mean 1; x, mu and psi take the rest. Where the slab is not learned, neither is its scale.

use super::mca::Shares;
use crate::parameters::{Parameters, SlabCov};
use spikelet::gibbs::Draw;
use spikelet::math::Real;

/// Draws of one point, as far as its dimensions tell of latents.
#[derive(Default)]
pub(crate) struct Drawn {
    /// For each draw and dimension that a latent is strongest in: where, its x, and y.
    seen: Vec<(usize, f64, f64)>,
    /// (y - max W x)^2, summed over draws. (D)
    left: Vec<f64>,
    draws: usize,
}

impl Drawn {
    /// Forgets the last point.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.left.clear();
        self.draws = 0;
    }

    /// Takes a draw of the point y. `by_latents` is W. (H x D)
    pub fn add<T: Real>(&mut self, by_latents: &[f64], draw: &Draw<'_, T>, y: &[f64]) {
        let d = y.len();
        let on = || draw.order.iter().zip(draw.values).filter(|(_, x)| x.to_f64() != 0.0);
        // Whatever is off contributes 0.
        let nothing = if on().count() * d == by_latents.len() { f64::NEG_INFINITY } else { 0.0 };
        self.left.resize(d, 0.0);
        self.draws += 1;
        for (i, (&y, left)) in y.iter().zip(&mut self.left).enumerate() {
            let mut strongest = (nothing, None);
            for (&latent, x) in on() {
                let (e, x) = (usize::from(latent) * d + i, x.to_f64());
                if x * by_latents[e] > strongest.0 {
                    strongest = (x * by_latents[e], Some((e, x, y)));
                }
            }
            *left += (y - strongest.0) * (y - strongest.0);
            self.seen.extend(strongest.1);
        }
    }

    /// Adds the means over all draws to sums, and to `left` (D) what they leave of the point.
    pub fn add_to(&self, sums: &mut Shares, left: &mut [f64]) {
        let weight = 1.0 / self.draws.max(1) as f64;
        for &(e, x, y) in &self.seen {
            sums.seen[e] += weight * x * y;
            sums.share[e] += weight * x * x;
        }
        left.iter_mut().zip(&self.left).for_each(|(sum, left)| *sum += weight * left);
    }
}

/// Columns of mean 1, the slab in proportion.
pub fn rescale(new: &mut Parameters) {
    let (d, h) = (new.dims, new.latents);
    let mut variances = new.slab_variances();
    for (k, variance) in variances.iter_mut().enumerate() {
        let mean = (0..d).map(|i| new.dictionary[i * h + k]).sum::<f64>() / d as f64;
        if mean > 0.0 && mean.is_finite() {
            (0..d).for_each(|i| new.dictionary[i * h + k] /= mean);
            new.slab_mean[k] *= mean;
            *variance *= mean * mean;
        }
    }
    new.slab_cov = SlabCov::Diagonal(variances);
}
