//! Figures of merit: how well a model, or what was inferred with it, agrees with the truth.
//!
//! Pure functions of numbers. Ratios in dB take energies (sums of squares), which can be added up piece by piece, so
//! that data of any length fits. They are limited to [`MAX_DB`] either way, so that a perfect match and a complete
//! miss are numbers too, and are `None` where there is nothing to compare with, such as a silent source.

use faer::MatRef;
use faer::linalg::solvers::SolveLstsq;

/// No ratio is larger than this, or smaller than its negative.
pub const MAX_DB: f64 = 300.0;

/// Amari index of an estimated dictionary against the true one (both D x H, row-major), columns in any order, of any
/// length and sign: 0 where they span the same directions, about 0.3 to 0.5 where they have nothing in common.
///
/// With O = W^-1 W_true [000 eq. 27, 001 eq. 18],
///
/// A = 1/(2H(H-1)) sum_hk (|O_hk| / max_j |O_hj| + |O_hk| / max_j |O_jk|) - 1/(H-1).
///
/// The papers only have D = H. With more dimensions than latents W^-1 is the pseudo-inverse (W^T W)^-1 W^T. `None`
/// where there is no such O: D < H, columns that depend on each other, a column of zeros in either matrix, H = 1.
///
/// ```
/// use spikelet_trainer::metrics::amari;
/// let truth = [1.0, 2.0, 3.0, 4.0];
/// let swapped = [-4.0, 1.0, -8.0, 3.0];
/// assert!(amari(&swapped, &truth, 2, 2).unwrap() < 1e-12);
/// ```
///
/// # Panics
/// When one of the matrices is not of size `dims` x `latents`.
pub fn amari(w: &[f64], truth: &[f64], dims: usize, latents: usize) -> Option<f64> {
    let h = latents;
    assert!(w.len() == dims * h && truth.len() == dims * h, "two matrices of the same size");
    if h < 2 || dims < h {
        return None;
    }
    let ratios = overlaps(w, truth, dims, h)?;
    let o = |i: usize, k: usize| ratios[i * h + k];
    let rows: Vec<f64> = (0..h).map(|i| (0..h).map(|k| o(i, k)).fold(0.0, f64::max)).collect();
    let columns: Vec<f64> = (0..h).map(|k| (0..h).map(|i| o(i, k)).fold(0.0, f64::max)).collect();
    let entry = |(at, o): (usize, &f64)| o / rows[at / h] + o / columns[at % h];
    let sum: f64 = ratios.iter().enumerate().map(entry).sum();
    let n = h as f64;
    // Rounding may leave a perfect match just below 0.
    let index = (sum / (2.0 * n * (n - 1.0)) - 1.0 / (n - 1.0)).max(0.0);
    sum.is_finite().then_some(index)
}

/// |O| with O = W^-1 W_true. (H x H)
fn overlaps(w: &[f64], truth: &[f64], dims: usize, h: usize) -> Option<Vec<f64>> {
    // Columns of length 1, so that what depends on what shows whatever the scales.
    let norm = |k: usize| w.iter().skip(k).step_by(h).fold(0.0f64, |sum, w| sum.hypot(*w));
    let norms: Vec<f64> = (0..h).map(norm).collect();
    if norms.iter().any(|&norm| !(norm.is_normal() && norm.recip().is_finite())) {
        return None;
    }
    let unit: Vec<f64> = w.iter().enumerate().map(|(at, w)| w / norms[at % h]).collect();
    let factors = MatRef::from_row_major_slice(&unit, dims, h).col_piv_qr();
    let smallest = (0..h).map(|k| factors.thin_R()[(k, k)].abs()).fold(f64::MAX, f64::min);
    if smallest <= dims as f64 * f64::EPSILON {
        return None;
    }
    let solved = factors.solve_lstsq(MatRef::from_row_major_slice(truth, dims, h));
    Some((0..h * h).map(|at| (solved[(at / h, at % h)] / norms[at / h]).abs()).collect())
}

/// Q: the part of the posterior that the kept states hold, from ln p(y) over these and over all states. At most 1.
///
/// ```
/// # use spikelet_trainer::metrics::quality;
/// assert!((quality(-3.0 + 0.5f64.ln(), -3.0) - 0.5).abs() < 1e-15);
/// ```
pub fn quality(kept: f64, all: f64) -> f64 {
    (kept - all).min(0.0).exp()
}

/// Signal-to-noise ratio in dB: the energy of what should have come out over that of the difference to it.
///
/// ```
/// # use spikelet_trainer::metrics::snr_db;
/// assert_eq!(snr_db(100.0, 1.0), Some(20.0));
/// assert_eq!(snr_db(0.0, 1.0), None);
/// ```
pub fn snr_db(signal: f64, error: f64) -> Option<f64> {
    if signal > 0.0 { ratio_db(signal, error) } else { None }
}

/// Peak signal-to-noise ratio in dB: the square of the largest possible value, or range of values, over the mean square
/// of the error.
pub fn psnr_db(peak: f64, mean_square_error: f64) -> Option<f64> {
    snr_db(peak * peak, mean_square_error)
}

/// Scale-invariant signal-to-distortion ratio in dB: the part of `estimate` along `truth` over the rest of it. The sign
/// does not matter, and no mean is taken out. -[`MAX_DB`] for an estimate of zeros.
///
/// ```
/// # use spikelet_trainer::metrics::si_sdr_db;
/// // The truth, and a tenth of something orthogonal to it: 20 dB, at any scale.
/// let estimate = [1.1, 0.9, 1.1, 0.9].map(|x| -7.0 * x);
/// assert!((si_sdr_db(&estimate, &[1.0; 4]).unwrap() - 20.0).abs() < 1e-9);
/// ```
pub fn si_sdr_db(estimate: &[f64], truth: &[f64]) -> Option<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    si_sdr_db_of_sums(dot(estimate, estimate), dot(truth, truth), dot(estimate, truth))
}

/// [`si_sdr_db`] from the energies of both and the sum of their products. Above 150 dB only rounding speaks.
pub fn si_sdr_db_of_sums(estimate: f64, truth: f64, product: f64) -> Option<f64> {
    let target = product * product / truth;
    match target {
        _ if truth == 0.0 => None,
        0.0 => Some(-MAX_DB),
        _ => ratio_db(target, (estimate - target).max(0.0)),
    }
}

/// A column for each row, greedily: the pair with the largest of all scores first, then the largest of the rows and
/// columns left; of equal ones the first. `scores` has `columns` numbers per row. NaN never matches; a row that has no
/// other score, or no column left, gets `None`.
///
/// ```
/// # use spikelet_trainer::metrics::assign;
/// assert_eq!(assign(&[1.0, 9.0, 8.0, 2.0, 7.0, 3.0], 3), [Some(1), Some(2)]);
/// ```
pub fn assign(scores: &[f64], columns: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|&at| !scores[at].is_nan()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a])); // stable: the first of equal ones
    let mut assigned = vec![None; scores.len().checked_div(columns).unwrap_or(0)];
    let mut taken = vec![false; columns];
    for at in order {
        let (row, column) = (at / columns, at % columns);
        if assigned[row].is_none() && !taken[column] {
            assigned[row] = Some(column);
            taken[column] = true;
        }
    }
    assigned
}

fn ratio_db(signal: f64, error: f64) -> Option<f64> {
    let ratio = 10.0 * (signal / error).log10();
    (!ratio.is_nan()).then(|| ratio.clamp(-MAX_DB, MAX_DB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::rng::Rng;

    fn random(rng: &mut Rng, n: usize) -> Vec<f64> {
        (0..n).map(|_| rng.normal::<f64>()).collect()
    }

    /// Columns in another order, scaled and negated.
    fn shuffled(w: &[f64], h: usize) -> Vec<f64> {
        (0..w.len()).map(|at| w[at / h * h + (at % h + 1) % h] * [-3.0, 0.01, 200.0][at % h % 3]).collect()
    }

    #[test]
    fn the_same_directions_have_index_0_also_with_more_dimensions() {
        let mut rng = Rng::new(3);
        for (d, h) in [(2, 2), (5, 5), (8, 5), (40, 7), (30, 2)] {
            let truth = random(&mut rng, d * h);
            let index = amari(&shuffled(&truth, h), &truth, d, h).unwrap();
            assert!(index < 1e-12, "{d} x {h}: {index:e}");
            let other = amari(&random(&mut rng, d * h), &truth, d, h).unwrap();
            assert!((0.02..=1.0).contains(&other), "{d} x {h}: {other}");
        }
    }

    #[test]
    fn dimensions_that_say_nothing_change_nothing() {
        let mut rng = Rng::new(4);
        let (w, truth) = (random(&mut rng, 16), random(&mut rng, 16));
        let padded = |w: &[f64]| [w, &[0.0; 8]].concat();
        let [square, tall] =
            [amari(&w, &truth, 4, 4), amari(&padded(&w), &padded(&truth), 6, 4)].map(Option::unwrap);
        assert!((square - tall).abs() < 1e-12);
    }

    #[test]
    fn the_index_by_hand() {
        // O = [[1, 0.5], [0, 1]]: rows 1.5 + 1, columns 1 + 1.5, 5 / 4 - 1.
        assert!((amari(&[1.0, 0.0, 0.0, 1.0], &[1.0, 0.5, 0.0, 1.0], 2, 2).unwrap() - 0.25).abs() < 1e-15);
    }

    #[test]
    fn no_index_where_there_is_no_inverse() {
        let truth = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(amari(&[1.0, 0.0, 2.0, 0.0], &truth, 2, 2), None);
        assert_eq!(amari(&[1e-9, 3.0, 2e-9, 6.0], &truth, 2, 2), None);
        assert_eq!(amari(&truth, &[1.0, 0.0, 2.0, 0.0], 2, 2), None);
        assert_eq!(amari(&truth, &truth, 1, 4), None);
        assert_eq!(amari(&truth, &truth, 4, 1), None);
        assert_eq!(amari(&[f64::NAN; 4], &truth, 2, 2), None);
    }

    #[test]
    fn ratios_have_limits() {
        assert_eq!(snr_db(1.0, 0.0), Some(MAX_DB));
        assert_eq!(snr_db(1.0, f64::INFINITY), Some(-MAX_DB));
        assert_eq!(snr_db(0.0, 0.0), None);
        assert_eq!(snr_db(1.0, f64::NAN), None);
        assert_eq!(psnr_db(255.0, 255.0 * 255.0 / 1000.0).map(f64::round), Some(30.0));
        assert_eq!(psnr_db(0.0, 1.0), None);
        assert_eq!(si_sdr_db(&[2.0, 0.0], &[1.0, 0.0]), Some(MAX_DB));
        assert_eq!(si_sdr_db(&[0.0, 3.0], &[1.0, 0.0]), Some(-MAX_DB));
        assert_eq!(si_sdr_db(&[0.0; 2], &[1.0, 0.0]), Some(-MAX_DB));
        assert_eq!(si_sdr_db(&[1.0; 2], &[0.0; 2]), None);
    }

    #[test]
    fn quality_is_a_part_of_one() {
        assert_eq!(quality(-10.0, -10.0), 1.0);
        assert_eq!(quality(-10.0 + 1e-6, -10.0), 1.0);
        assert_eq!(quality(-1e6, -10.0), 0.0);
    }

    #[test]
    fn every_column_is_given_once() {
        assert_eq!(assign(&[5.0, 5.0, 5.0, 5.0], 2), [Some(0), Some(1)]);
        assert_eq!(assign(&[1.0, 9.0, f64::NAN, f64::NAN], 2), [Some(1), None]);
        assert_eq!(assign(&[1.0, 2.0], 1), [None, Some(0)]);
        assert_eq!(assign(&[], 3), []);
    }
}
