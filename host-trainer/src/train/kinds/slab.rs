//! The slab: how strong a latent is where it is on.
//!
//! ```text
//! diagonal: mu_h = sum <x_h> / sum <s_h>      psi_h^2 = sum <x_h^2> / sum <s_h> - mu_h^2     with the new mu
//! full:     mu = mean <z>                     Psi = mean <z z^T> - mu mu^T
//! ```
//!
//! A full slab is learned from all of z, also where s is 0: 000 eq. 8-9 hold for a diagonal one only.

use super::super::statistics::Statistics;
use super::linear::lift_eigenvalues;
use crate::parameters::{Parameters, SlabCov};

/// Puts the slab that fits statistics best into `new`; latents that are `dead` keep theirs.
pub fn learn(new: &mut Parameters, sums: &Statistics, dead: &[bool], floor: f64) {
    let (h, n) = (new.latents, sums.points as f64);
    if let SlabCov::Full(_) = new.slab_cov {
        new.slab_mean = sums.slab.iter().map(|sum| sum / n).collect();
        let (mu, second) = (&new.slab_mean, &sums.slab_second);
        let psi: Vec<f64> = (0..h * h).map(|e| second[e] / n - mu[e / h] * mu[e % h]).collect();
        new.slab_cov = SlabCov::Full(lift_eigenvalues(&psi, h, floor).0);
        return;
    }
    let mut variances = new.slab_variances();
    for h in (0..h).filter(|&h| !dead[h]) {
        let on = sums.activity[h];
        let mean = sums.mean[h] / on;
        new.slab_mean[h] = mean;
        variances[h] = (sums.square[h] / on - mean * mean).max(floor);
    }
    new.slab_cov = SlabCov::Diagonal(variances);
}
