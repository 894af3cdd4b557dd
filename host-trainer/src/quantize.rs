//! A dictionary as integers, and what that does to the noise.
//!
//! **Scales.** Column h becomes q_dh = W_dh / c_h, rounded. With 8 bits c_h = max_d |W_dh| / 127; of up to 8 dimensions, such
//! as the channels of a recording, the step up to twice as large that leaves the least error, since few entries may all be
//! near multiples of one step (the error of 4 dimensions is 9 dB smaller on average, of 8 still 4, of 16 only 2). With 16 bits the sums
//! sum_d q_dh v_d with a sample of integers v must fit 32 bits ([`spikelet::model::Dictionary`]): sum_d |q_dh| times the
//! peak of v stays below 2^31. With r the largest sum_d |W_dh| / max_d |W_dh| of any column, a peak of sqrt(2^31 / r) gives
//! q and v about as many digits, and columns with a smaller sum use more of the 16 bits.
//!
//! **Noise.** What inference uses is W' = c q = W + E, with E known. A sample of the true model is then
//! y = W x + n = W' x + (n - E x): to W', the rounding error is noise with the second moment E C E^T, where C = <x x^T>
//! under the prior: C_hh = pi_h (Psi_hh + mu_h^2), C_hj = pi_h pi_j (Psi_hj + mu_h mu_j), with Psi = 0 and mu = 1 for latents
//! without a slab. That is added to Sigma: all of it where Sigma is full, its diagonal where that is diagonal, the
//! mean of its diagonal where one variance serves all. (It is taken as Gaussian and independent of x, which rounding
//! errors of many entries nearly are. Where the strongest latent counts and not the sum, it is more than there is.)
//!
//! Rounding the sample is noise as well: u = Sigma^-1 y is rounded to multiples of t, an error of variance t^2 / 12 in each
//! u_d, that is t^2 / 12 Sigma^2 for y. t is a power of two between 1 and 2 times max_d |u_d| / peak, equally likely on a
//! logarithmic scale: <t^2> = 3 / (2 ln 2) max |u|^2 / peak^2, and the largest of D numbers has a square of about
//! 2 ln(2 D) times the largest variance, that of u being Sigma^-1 (Sigma + W C W^T) Sigma^-1.
//!
//! Everything else (Gram matrix, tables, scores) is computed from W' and the new Sigma, in `f64`, and stored as `f32`:
//! log joints are differences of products b x and x^T G x that reach hundreds of nats, so G with 16 bits would be wrong by
//! 0.01 nats a pair, and G of nearly parallel latents no longer positive definite.

use crate::linalg::cholesky_inverse;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::prepare::not_definite;
use crate::{Error, Result};
use spikelet::math::Real;
use spikelet::model::{QUAD, Width};

/// With more dimensions no step is much better than others.
const FEW_DIMS: usize = 8;

/// Steps to choose from: enough that an entry of 127 moves by less than one from one to the next.
const TRIED: u32 = 256;

/// What the dictionary of a model has in flash.
#[derive(Clone, Debug)]
pub(crate) struct Quantized<T> {
    pub width: Width,
    pub words: Vec<u32>,
    pub scales: Vec<T>,
}

/// The integers, and the parameters that inference is to use: W' and the noise that W needs with it.
pub(crate) fn quantize<T: Real>(parameters: &Parameters, width: Width) -> Result<(Quantized<T>, Parameters)> {
    let (d, h) = (parameters.dims, parameters.latents);
    if d < 2 {
        let advice = "keep it in f32: there is nothing to gain";
        return Err(Error::input("a dictionary with one dimension cannot have integers", "W", advice));
    }
    let column = |k: usize| (0..d).map(move |i| parameters.dictionary[i * h + k]);
    let sizes: Vec<(f64, f64)> = (0..h)
        .map(|k| column(k).fold((0.0, 0.0), |(sum, most), w: f64| (sum + w.abs(), f64::max(most, w.abs()))))
        .collect();
    let mut steps = steps(&sizes, d, width);
    if width == Width::I8 && d <= FEW_DIMS {
        for (k, step) in steps.iter_mut().enumerate() {
            *step = best_step(&column(k).collect::<Vec<f64>>(), *step);
        }
    }
    let mut scales = Vec::with_capacity(h);
    let mut integers = vec![0; d * h];
    let mut rounded = parameters.clone();
    for (k, step) in steps.into_iter().enumerate() {
        let scale = T::from_f64(step);
        if !(scale.is_finite() && (scale.to_f64() > 0.0 || step == 0.0)) {
            let what = format!("{step:e}, a step of its column, does not fit a 32-bit number");
            return Err(Error::input(what, format_args!("W[0, {k}]"), "rescale data and dictionary"));
        }
        for i in 0..d {
            let w = parameters.dictionary[i * h + k];
            let q = if step > 0.0 { (w / scale.to_f64()).round_ties_even() as i32 } else { 0 };
            integers[i * h + k] = q;
            rounded.dictionary[i * h + k] = (T::from_i32(q) * scale).to_f64();
        }
        scales.push(scale);
    }
    let sum = |k: usize| (0..d).map(|i| u64::from(integers[i * h + k].unsigned_abs())).sum::<u64>();
    let largest = (0..h).map(sum).max().unwrap_or(0).max(1);
    let peak = (i32::MAX as u64 / largest).min(i16::MAX as u64);
    rounded.noise = noise(parameters, &rounded.dictionary, peak as f64)?;
    Ok((Quantized { width, words: pack(&integers, d, h, width), scales }, rounded))
}

/// c_h, from sum and maximum of |W_dh|; zero for a column of zeros.
fn steps(sizes: &[(f64, f64)], d: usize, width: Width) -> Vec<f64> {
    let bound = f64::from(i32::MAX);
    match width {
        Width::I8 => sizes.iter().map(|(_, most)| most / 127.0).collect(),
        Width::I16 => {
            let ratio = |&(sum, most): &(f64, f64)| if most > 0.0 { sum / most } else { 1.0 };
            let r = sizes.iter().map(ratio).fold(1.0, f64::max);
            // Rounding may add a half for each dimension, which must stay a small part of the sum.
            let peak = (bound / r).sqrt().min(32767.0).min(bound / (2.0 * d as f64)).max(1.0);
            let room = bound / peak - 0.5 * d as f64;
            // Scales are rounded too: a bit of room for that.
            sizes.iter().map(|(sum, most)| (most / 32767.0).max(sum / room) * (1.0 + 1e-6)).collect()
        }
    }
}

/// The step from `least` to twice that with the smallest error.
fn best_step(column: &[f64], least: f64) -> f64 {
    let round = |w: f64, step: f64| (w / step).round_ties_even();
    let error = |step: f64| column.iter().map(|&w| (w - step * round(w, step)).powi(2)).sum::<f64>();
    // For the integers of a step, the one that suits them best.
    let fitted = |step: f64| {
        let (product, square) = column.iter().fold((0.0, 0.0), |(product, square), &w| {
            let q = round(w, step);
            (product + w * q, square + q * q)
        });
        (product / square).max(least)
    };
    let mut best = (error(least), least);
    // No step where it is zero, or as small as no number can be.
    let tried = (0..=TRIED).map(|at| least * (1.0 + f64::from(at) / f64::from(TRIED)));
    for step in tried.filter(|step| step.is_normal()).map(fitted) {
        let error = error(step);
        if error < best.0 {
            best = (error, step);
        }
    }
    best.1
}

/// Sigma, and what rounding adds to it.
fn noise(parameters: &Parameters, rounded: &[f64], peak: f64) -> Result<NoiseCov> {
    let d = parameters.dims;
    let errors: Vec<f64> = rounded.iter().zip(&parameters.dictionary).map(|(new, old)| new - old).collect();
    let moments = Moments::new(parameters);
    let variances = parameters.noise_variances();
    // t^2 / 12 over the largest variance of u
    let rounding = 3.0 / (2.0 * std::f64::consts::LN_2) * 2.0 * (2.0 * d as f64).ln() / (peak * peak) / 12.0;
    let independent = || {
        let signal = moments.diagonal(&parameters.dictionary);
        let of_u = signal.iter().zip(&variances).map(|(signal, v)| (signal + v) / (v * v));
        let step = rounding * of_u.fold(0.0, f64::max);
        let added = moments.diagonal(&errors).into_iter().zip(&variances);
        added.map(|(error, v)| error + step * v * v).collect::<Vec<f64>>()
    };
    Ok(match &parameters.noise {
        NoiseCov::Shared(sigma2) => NoiseCov::Shared(sigma2 + independent().iter().sum::<f64>() / d as f64),
        NoiseCov::Diagonal(sigma2) => {
            NoiseCov::Diagonal(sigma2.iter().zip(independent()).map(|(v, added)| v + added).collect())
        }
        // A component's mean is off by what it was rounded by.
        NoiseCov::Components(sigma2) => {
            NoiseCov::Components(sigma2.iter().zip(&errors).map(|(v, error)| v + error * error).collect())
        }
        NoiseCov::Full(sigma) => {
            let factor = cholesky_inverse(sigma, d).ok_or_else(|| not_definite("sigma2"))?;
            let entry = |i: usize, j: usize| if j <= i { factor[i * (i + 1) / 2 + j] } else { 0.0 };
            // Sigma^-1 W, whose moments are those of the signal in u; and the diagonal of Sigma^-1.
            let inverse = |i: usize, j: usize| -> f64 { (0..d).map(|k| entry(k, i) * entry(k, j)).sum() };
            let inverse: Vec<f64> = (0..d * d).map(|at| inverse(at / d, at % d)).collect();
            let of_u = moments.diagonal(&product(&inverse, &parameters.dictionary, d));
            let most = (0..d).map(|i| of_u[i] + inverse[i * d + i]).fold(0.0, f64::max);
            let (errors, square) = (moments.full(&errors, d), product(sigma, sigma, d));
            let added = errors.iter().zip(square).map(|(error, square)| error + rounding * most * square);
            NoiseCov::Full(sigma.iter().zip(added).map(|(v, added)| v + added).collect())
        }
    })
}

/// A product with a matrix of d columns, both row-major.
fn product(left: &[f64], right: &[f64], d: usize) -> Vec<f64> {
    let columns = right.len() / d;
    let entry = |i: usize, j: usize| (0..d).map(|k| left[i * d + k] * right[k * columns + j]).sum();
    (0..left.len() / d * columns).map(|at| entry(at / columns, at % columns)).collect()
}

/// C = <x x^T>: a diagonal, the product of the means, and what a full slab has beside that.
struct Moments<'a> {
    parameters: &'a Parameters,
    /// C_hh less the square of the mean.
    variance: Vec<f64>,
    mean: Vec<f64>,
}

impl<'a> Moments<'a> {
    fn new(parameters: &'a Parameters) -> Self {
        let (h, prior) = (parameters.latents, &parameters.prior);
        if parameters.kind.kind().is_mixture() {
            // Never two at once: nothing is between two latents, their means included.
            return Self { parameters, variance: prior.clone(), mean: vec![0.0; h] };
        }
        let (psi2, mu) = match parameters.kind.kind().has_slab() {
            true => (parameters.slab_variances(), parameters.slab_mean.clone()),
            false => (vec![0.0; h], vec![1.0; h]),
        };
        let mean: Vec<f64> = (0..h).map(|k| prior[k] * mu[k]).collect();
        let variance = (0..h).map(|k| prior[k] * (psi2[k] + mu[k] * mu[k]) - mean[k] * mean[k]).collect();
        Self { parameters, variance, mean }
    }

    /// (A C B^T) for two rows a, b of D x H matrices.
    fn between(&self, a: &[f64], b: &[f64]) -> f64 {
        let each = a.iter().zip(b).zip(&self.variance).map(|((a, b), v)| a * b * v).sum::<f64>();
        let of_mean = |row: &[f64]| row.iter().zip(&self.mean).map(|(a, m)| a * m).sum::<f64>();
        let mut sum = each + of_mean(a) * of_mean(b);
        if let (SlabCov::Full(psi), true) =
            (&self.parameters.slab_cov, self.parameters.kind.kind().has_slab())
        {
            let (h, prior) = (self.parameters.latents, &self.parameters.prior);
            for i in 0..h {
                for j in (0..h).filter(|&j| j != i) {
                    sum += a[i] * b[j] * prior[i] * prior[j] * psi[i * h + j];
                }
            }
        }
        sum
    }

    /// The diagonal of A C A^T. (A is D x H)
    fn diagonal(&self, matrix: &[f64]) -> Vec<f64> {
        matrix.chunks_exact(self.parameters.latents).map(|row| self.between(row, row)).collect()
    }

    /// All of it.
    fn full(&self, matrix: &[f64], d: usize) -> Vec<f64> {
        let rows: Vec<&[f64]> = matrix.chunks_exact(self.parameters.latents).collect();
        (0..d * d).map(|at| self.between(rows[at / d], rows[at % d])).collect()
    }
}

/// D x H row-major to words: see [`spikelet::model::Dictionary`].
fn pack(integers: &[i32], d: usize, h: usize, width: Width) -> Vec<u32> {
    let at = |i: usize, k: usize| if i < d && k < h { integers[i * h + k] } else { 0 };
    let mut words = Vec::new();
    for quad in (0..h).step_by(QUAD) {
        for group in (0..d).step_by(QUAD) {
            let each = |f: &dyn Fn(usize) -> u32| (quad..quad + QUAD).map(f).collect::<Vec<u32>>();
            let half = |i: usize, k: usize| u32::from(at(group + i, k) as u16);
            let byte = |i: usize, k: usize| at(group + i, k) as u8;
            match width {
                Width::I16 => {
                    words.extend(each(&|k| half(0, k) | half(1, k) << 16));
                    words.extend(each(&|k| half(2, k) | half(3, k) << 16));
                }
                Width::I8 => {
                    words.extend(each(&|k| u32::from_le_bytes([0, 2, 1, 3].map(|i| byte(i, k)))));
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::rng::Rng;

    #[test]
    fn steps_for_few_dimensions_are_better_than_the_least() {
        let mut rng = Rng::new(5);
        for (d, gain_db) in [(2, 12.0), (3, 9.0), (4, 7.0), (8, 3.0)] {
            let mut errors = [0.0; 2];
            for _ in 0..200 {
                let column: Vec<f64> = (0..d).map(|_| rng.normal::<f64>()).collect();
                let least = column.iter().fold(0.0, |most, w: &f64| w.abs().max(most)) / 127.0;
                let best = best_step(&column, least);
                assert!((least..=2.01 * least).contains(&best), "{column:?}: {best} {least}");
                for (sum, step) in errors.iter_mut().zip([least, best]) {
                    let error = |w: &f64| (w - step * (w / step).round_ties_even()).powi(2);
                    *sum += column.iter().map(error).sum::<f64>();
                }
            }
            let gain = 10.0 * (errors[0] / errors[1]).log10();
            assert!(gain > gain_db, "{d} dimensions: {gain} dB");
        }
    }

    #[test]
    fn steps_of_columns_that_have_none() {
        assert_eq!(best_step(&[0.0; 4], 0.0), 0.0);
        assert_eq!(best_step(&[f64::MIN_POSITIVE; 2], f64::MIN_POSITIVE / 127.0), f64::MIN_POSITIVE / 127.0);
        // One entry alone is a multiple of any step.
        let step = best_step(&[0.0, 3.0], 3.0 / 127.0);
        assert!((3.0 / step).round_ties_even() <= 127.0);
    }
}
