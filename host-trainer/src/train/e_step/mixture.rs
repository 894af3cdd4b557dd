//! Chunks of points of a mixture: the log joints of all components by one matrix product, instead of one point after the other
//! through the core.
//!
//! With x = y - c, c the mean of the means, so that little cancels in what follows:
//!
//! ```text
//! variances of their own:  ln p(y, k) = a_k + sum_d x_d m_dk / v_dk - 1/2 sum_d x_d^2 / v_dk             [x, x^2] times a 2 D x C matrix
//! one Sigma = L L^T:       ln p(y, k) = a_k + (L^-1 x) . (L^-1 m_k) - 1/2 |L^-1 x|^2                     L^-1 x times a D x C matrix
//! ```
//!
//! with m_k = mu_k - c and a_k what does not depend on the point. Only components within [`NEGLIGIBLE`] of the best are looked at
//! further: what is left out of a sum is below its last bit. Components that are not kept
//! ([`Shape::singletons`](spikelet::model::Shape) off) are those with the smallest log joints, as in the core; while such a
//! mixture is learned, [`nearby`] finds the kept ones without looking at all.

mod nearby;

use super::Sets;
use super::job::{Job, Scalar, Wanted};
use super::lane::{ADVICE, Desk, Lane, note};
use crate::linalg::{cholesky_inverse, dot, pack, product};
use crate::parameters::{NoiseCov, Parameters};
use crate::{Error, Result};
use nearby::Nearby;

/// Stands for a component where a point keeps fewer than it may.
const NONE: u16 = u16::MAX;

/// Nats below the best from which on a component adds nothing: e^-40 is 4e-18.
const NEGLIGIBLE: f64 = 40.0;

/// A mixture, as the products want it.
pub(in super::super) struct Mixture<T> {
    /// c. (D)
    centre: Vec<f64>,
    /// L^-1 where components share a covariance, packed by rows.
    factor: Option<Vec<f64>>,
    /// Columns of the product, in panels.
    panels: Vec<T>,
    /// a. (C)
    offsets: Vec<f64>,
    /// How many components a point keeps.
    kept: usize,
    /// Where only components near those that a point kept last are looked at.
    nearby: Option<Nearby<T>>,
}

/// Memory for a chunk.
#[derive(Default)]
pub(super) struct Sheet<T> {
    rows: Vec<T>,
    joints: Vec<T>,
    sorted: Vec<T>,
    /// Components of a point that count, and their responsibilities.
    some: Vec<(usize, f64)>,
    /// Of a search: those that were looked at, with their log joints, and in which search each component was seen last. (C)
    seen: Vec<(f64, u16)>,
    searches: Vec<u32>,
    search: u32,
}

impl<T: Scalar> Mixture<T> {
    /// With a search for the kept components from those of `sets`, unless it is empty.
    pub fn new(parameters: &Parameters, kept: usize, sets: Option<Sets<'_>>) -> Result<Self> {
        let (d, h) = (parameters.dims, parameters.latents);
        let mu = |i: usize, k: usize| parameters.dictionary[i * h + k];
        let centre: Vec<f64> =
            parameters.dictionary.chunks_exact(h).map(|row| row.iter().sum::<f64>() / h as f64).collect();
        let total: f64 = parameters.prior.iter().sum();
        let constant = -0.5 * d as f64 * std::f64::consts::TAU.ln();
        let mut offsets: Vec<f64> = parameters.prior.iter().map(|pi| (pi / total).ln() + constant).collect();
        let own = match &parameters.noise {
            NoiseCov::Components(variances) => Some(variances),
            _ => None,
        };
        let mut columns = vec![0.0; if own.is_some() { 2 * d * h } else { d * h }];
        let factor = match own {
            Some(_) => None,
            None => {
                let sigma: Vec<f64> = (0..d * d).map(|e| parameters.noise_covariance(e / d, e % d)).collect();
                Some(cholesky_inverse(&sigma, d).ok_or_else(|| crate::prepare::not_definite("sigma2"))?)
            }
        };
        for (k, offset) in offsets.iter_mut().enumerate() {
            let m: Vec<f64> = (0..d).map(|i| mu(i, k) - centre[i]).collect();
            if let Some(variances) = own {
                for (i, m) in m.iter().enumerate() {
                    let v = variances[i * h + k];
                    columns[i * h + k] = m / v;
                    columns[(d + i) * h + k] = -0.5 / v;
                    *offset -= 0.5 * (v.ln() + m * m / v);
                }
            }
            if let Some(factor) = &factor {
                for i in 0..d {
                    let row = &factor[i * (i + 1) / 2..][..=i];
                    let white = dot(row, &m[..=i]);
                    columns[i * h + k] = white;
                    *offset += row[i].ln() - 0.5 * white * white;
                }
            }
        }
        let rows = columns.len() / h;
        let mut mixture =
            Self { centre, factor, panels: pack(&columns, rows, h), offsets, kept, nearby: None };
        if sets.is_some_and(|sets| !sets.latents.is_empty()) {
            mixture.nearby = Some(Nearby::new(&mixture, parameters, &columns));
        }
        Ok(mixture)
    }

    /// What the columns are multiplied with, of all points of a chunk, and what all log joints of a point have in common.
    fn rows(&self, chunk: &[f64], sheet: &mut Sheet<T>) -> Vec<f64> {
        let d = self.centre.len();
        let n = chunk.len() / d;
        let mut common = vec![0.0; n];
        sheet.rows.clear();
        for (y, common) in chunk.chunks_exact(d).zip(&mut common) {
            let x: Vec<f64> = y.iter().zip(&self.centre).map(|(y, c)| y - c).collect();
            match &self.factor {
                None => {
                    sheet.rows.extend(x.iter().map(|x| T::from_f64(*x)));
                    sheet.rows.extend(x.iter().map(|x| T::from_f64(x * x)));
                }
                Some(factor) => {
                    for i in 0..d {
                        let white = dot(&factor[i * (i + 1) / 2..][..=i], &x[..=i]);
                        *common -= 0.5 * white * white;
                        sheet.rows.push(T::from_f64(white));
                    }
                }
            }
        }
        common
    }

    /// ln p(y, k) of all points of a chunk and all components, less what all components of a point have in common. (points x C)
    fn joints(&self, points: usize, sheet: &mut Sheet<T>) {
        let h = self.offsets.len();
        sheet.joints.resize(points * h, T::from_f64(0.0));
        product(&sheet.rows, &self.panels, sheet.rows.len() / points, h, &mut sheet.joints);
    }

    /// ln p(y) of a point less `common`; its components that count go to `sheet.some`.
    fn infer(&self, point: usize, sheet: &mut Sheet<T>) -> f64 {
        let h = self.offsets.len();
        let joints = &mut sheet.joints[point * h..][..h];
        let mut most = f64::NEG_INFINITY;
        for (joint, offset) in joints.iter_mut().zip(&self.offsets) {
            let value = joint.to_f64() + offset;
            *joint = T::from_f64(value);
            most = most.max(value);
        }
        let mut least = most - NEGLIGIBLE;
        if self.kept < h {
            sheet.sorted.clear();
            sheet.sorted.extend_from_slice(joints);
            let order = |a: &T, b: &T| b.to_f64().total_cmp(&a.to_f64());
            let (_, last, _) = sheet.sorted.select_nth_unstable_by(self.kept - 1, order);
            least = least.max(last.to_f64());
        }
        sheet.some.clear();
        let mut sum = 0.0;
        for (k, joint) in joints.iter().map(|joint| joint.to_f64()).enumerate() {
            // Of equals at the end of the list the first are kept.
            if joint >= least && sheet.some.len() < self.kept {
                let q = (joint - most).exp();
                sum += q;
                sheet.some.push((k, q));
            }
        }
        sheet.some.iter_mut().for_each(|(_, q)| *q /= sum);
        most + sum.ln()
    }
}

impl Lane {
    /// Adds a chunk of points of a mixture, the first of which is number `first`.
    pub(super) fn run_mixture<T: Scalar>(
        &mut self,
        job: &Job<'_, T>,
        mixture: &Mixture<T>,
        desk: &mut Desk<T>,
        chunk: &[f64],
        first: usize,
    ) -> Result<()> {
        let (d, h) = (job.parameters.dims, job.parameters.latents);
        let common = mixture.rows(chunk, &mut desk.sheet);
        if mixture.nearby.is_none() {
            mixture.joints(common.len(), &mut desk.sheet);
        }
        let mut kept = Vec::new();
        let (mut activities, mut dense) = (Vec::new(), vec![T::from_f64(0.0); h]);
        desk.worst.clear();
        desk.counted.clear();
        for (i, (y, common)) in chunk.chunks_exact(d).zip(common).enumerate() {
            let evidence = common
                + match (&mixture.nearby, job.around) {
                    (Some(nearby), Some(sets)) => {
                        nearby.infer(mixture, sets.of(first + i), i, &mut desk.sheet)
                    }
                    _ => mixture.infer(i, &mut desk.sheet),
                };
            if !evidence.is_finite() {
                let what = "the numbers of a point are so large that its posterior overflows";
                return Err(Error::input(what, format_args!("point {}", first + i), ADVICE));
            }
            let some = &desk.sheet.some;
            match job.wanted {
                Wanted::Evidences => {
                    self.evidences.push(evidence);
                    continue;
                }
                Wanted::Activities => {
                    let start = activities.len();
                    activities.resize(start + h, 0.0);
                    some.iter().for_each(|(k, q)| activities[start + k] = *q);
                }
                Wanted::Kept => {
                    let (start, found) = (kept.len(), some.iter().map(|(k, _)| *k as u16));
                    kept.extend(found);
                    kept.resize(start + mixture.kept, NONE);
                }
                Wanted::Statistics => {}
            }
            self.sums.free_energy += evidence;
            if evidence < job.least_evidence {
                continue;
            }
            self.sums.counted += evidence;
            self.sums.points += 1;
            for &(k, q) in some {
                self.sums.activity[k] += q;
                self.sums.mean[k] += q;
                self.sums.square[k] += q;
                let row = &mut self.cross.seen[k * d..][..d];
                row.iter_mut().zip(y).for_each(|(sum, y)| *sum += q * y);
                if !self.cross.share.is_empty() {
                    let row = &mut self.cross.share[k * d..][..d];
                    row.iter_mut().zip(y).for_each(|(sum, y)| *sum += q * y * y);
                }
            }
            if job.names_worst && desk.worst.first().is_none_or(|worst| evidence < worst.0) {
                some.iter().for_each(|(k, q)| dense[*k] = T::from_f64(*q));
                note(&mut desk.worst, 1, evidence, i, &dense);
                some.iter().for_each(|(k, _)| dense[*k] = T::from_f64(0.0));
            }
            desk.counted.extend_from_slice(y);
        }
        if job.wanted == Wanted::Kept {
            self.kept.push((first, kept));
        }
        self.finish_chunk(job, desk, chunk, (first, activities));
        Ok(())
    }
}
