//! Weights minimise squared errors relative to a model's mean; none is negative, since no work takes time off another.

use spikelet_trainer::predict::dot;

/// Counts, instructions, weight of the error.
pub type Row = (Vec<f64>, f64, f64);

/// Scaled so that nothing measured lies above, but lies below by this factor.
pub fn above(weights: Vec<f64>, rows: &[Row], margin: f64) -> Vec<f64> {
    let factor =
        margin * rows.iter().map(|(counts, found, _)| found / dot(&weights, counts)).fold(0.0, f64::max);
    weights.iter().map(|weight| weight * factor).collect()
}

/// Least squares with weights that are not negative, one after the other until nothing moves.
pub fn non_negative(rows: &[Row]) -> Vec<f64> {
    let n = rows.first().map_or(0, |row| row.0.len());
    // Counts are scaled to a mean square of one: then all have the same say.
    let column = |i: usize| rows.iter().map(move |(counts, _, weight)| counts[i] * weight);
    let norms: Vec<f64> = (0..n).map(|i| column(i).map(|c| c * c).sum::<f64>().sqrt()).collect();
    let inverse = |i: usize| if norms[i] > 0.0 { 1.0 / norms[i] } else { 0.0 };
    let product = |i: usize, j: usize| column(i).zip(column(j)).map(|(a, b)| a * b).sum::<f64>();
    let matrix: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| product(i, j) * inverse(i) * inverse(j)).collect()).collect();
    let target = |i: usize| column(i).zip(rows).map(|(c, (_, y, w))| c * y * w).sum::<f64>() * inverse(i);
    let targets: Vec<f64> = (0..n).map(target).collect();
    let mut x = vec![0.0; n];
    for _ in 0..100_000 {
        for i in 0..n {
            if norms[i] > 0.0 {
                x[i] = f64::max(0.0, targets[i] - dot(&matrix[i], &x) + x[i]);
            }
        }
    }
    (0..n).map(|i| x[i] * inverse(i)).collect()
}

/// Zero of nothing.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|value| (sum, count) = (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}
