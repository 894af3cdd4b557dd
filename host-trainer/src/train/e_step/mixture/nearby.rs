//! Components near those that a point kept last: truncated variational EM [004 sec. 4.5.2], whose cost per point hardly grows with C.
//!
//! A point keeps C' components. The next time these are looked at again, together with the neighbours of the best of them, and
//! with the neighbours of whatever is better than that, until nothing is; the C' best of all these are kept. What was kept is
//! among them, so the free energy over kept components never falls.
//!
//! Neighbours of component k are those with the largest log joints under its own points on average, which is what the columns
//! give for the row \[m_k, m_k^2 + v_k\] (or L^-1 m_k where components share a covariance): C rows instead of N. Work per
//! iteration: 2 D C^2 for neighbours, and for each point 2 D multiply-adds for each of C' + [`NEIGHBOURS`] components, nearly
//! always.

use super::{Mixture, NEGLIGIBLE, NONE, Scalar, Sheet};
use crate::linalg::{product, transposed};
use crate::parameters::{NoiseCov, Parameters};

/// Neighbours of a component.
const NEIGHBOURS: usize = 16;
/// Components whose neighbours are found at once.
const AT_ONCE: usize = 64;
/// Components whose neighbours are looked at for one point, at most.
const MOST_STEPS: usize = 16;

/// Columns of the product one after the other, and who is near whom.
pub(super) struct Nearby<T> {
    /// (C x 2 D, or C x D where components share a covariance)
    columns: Vec<T>,
    /// (C x neighbours)
    neighbours: Vec<u16>,
    each: usize,
}

impl<T: Scalar> Nearby<T> {
    pub fn new(mixture: &Mixture<T>, parameters: &Parameters, columns: &[f64]) -> Self {
        let h = mixture.offsets.len();
        let rows = columns.len() / h;
        let columns = transposed(columns, h);
        let numbers = |values: &[f64]| -> Vec<T> { values.iter().map(|v| T::from_f64(*v)).collect() };
        let own = match &parameters.noise {
            NoiseCov::Components(variances) => {
                let (d, mut own) = (rows / 2, vec![T::from_f64(0.0); rows * h]);
                for (k, own) in own.chunks_exact_mut(rows).enumerate() {
                    for i in 0..d {
                        let (m, v) =
                            (parameters.dictionary[i * h + k] - mixture.centre[i], variances[i * h + k]);
                        (own[i], own[d + i]) = (T::from_f64(m), T::from_f64(m * m + v));
                    }
                }
                own
            }
            _ => numbers(&columns),
        };
        let each = NEIGHBOURS.min(h);
        let mut neighbours = Vec::with_capacity(h * each);
        let (mut joints, mut order) = (vec![T::from_f64(0.0); AT_ONCE * h], Vec::with_capacity(h));
        for own in own.chunks(AT_ONCE * rows) {
            let joints = &mut joints[..own.len() / rows * h];
            product(own, &mixture.panels, rows, h, joints);
            for joints in joints.chunks_exact(h) {
                order.clear();
                let values = joints.iter().zip(&mixture.offsets).zip(0..);
                order.extend(values.map(|((joint, offset), k)| (joint.to_f64() + offset, k)));
                order.select_nth_unstable_by(each - 1, better);
                neighbours.extend(order[..each].iter().map(|(_, k)| *k));
            }
        }
        Self { columns: numbers(&columns), neighbours, each }
    }

    /// As [`Mixture::infer`], from the components that the point kept last.
    pub fn infer(&self, mixture: &Mixture<T>, kept: &[u16], point: usize, sheet: &mut Sheet<T>) -> f64 {
        let rows = self.columns.len() / mixture.offsets.len();
        let row = &sheet.rows[point * rows..][..rows];
        sheet.searches.resize(mixture.offsets.len(), 0);
        sheet.search = sheet.search.wrapping_add(1);
        sheet.seen.clear();
        let (seen, searches, search) = (&mut sheet.seen, &mut sheet.searches, sheet.search);
        let mut best = (f64::NEG_INFINITY, 0);
        let mut look = |k: u16, best: &mut (f64, u16)| {
            let at = usize::from(k);
            if std::mem::replace(&mut searches[at], search) != search {
                let joint = dot(row, &self.columns[at * rows..][..rows]).to_f64() + mixture.offsets[at];
                seen.push((joint, k));
                if joint > best.0 {
                    *best = (joint, k);
                }
            }
        };
        kept.iter().take_while(|k| **k != NONE).for_each(|k| look(*k, &mut best));
        for _ in 0..MOST_STEPS {
            let from = best.1;
            let neighbours = &self.neighbours[usize::from(from) * self.each..][..self.each];
            neighbours.iter().for_each(|k| look(*k, &mut best));
            if best.1 == from {
                break;
            }
        }
        if seen.len() > mixture.kept {
            seen.select_nth_unstable_by(mixture.kept - 1, better);
            seen.truncate(mixture.kept);
        }
        sheet.some.clear();
        let mut sum = 0.0;
        for &(joint, k) in seen.iter() {
            let q = if joint >= best.0 - NEGLIGIBLE { (joint - best.0).exp() } else { 0.0 };
            sum += q;
            sheet.some.push((usize::from(k), q));
        }
        sheet.some.iter_mut().for_each(|(_, q)| *q /= sum);
        best.0 + sum.ln()
    }
}

/// The larger log joint first; of equals the lower component.
fn better(a: &(f64, u16), b: &(f64, u16)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Sums kept apart, so that a processor can add several at once.
const SUMS: usize = 8;

/// sum a_i b_i, in a fixed order.
fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::from_f64(0.0); SUMS];
    let (mut left, mut right) = (a.chunks_exact(SUMS), b.chunks_exact(SUMS));
    for (a, b) in left.by_ref().zip(right.by_ref()) {
        sums.iter_mut().zip(a).zip(b).for_each(|((sum, &a), &b)| *sum += a * b);
    }
    let rest = left.remainder().iter().zip(right.remainder());
    sums.iter_mut().zip(rest).for_each(|(sum, (&a, &b))| *sum += a * b);
    sums.into_iter().fold(T::from_f64(0.0), |total, sum| total + sum)
}
