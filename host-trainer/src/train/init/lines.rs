//! First columns where strong points lie along few lines: mixtures of sources that are seldom on together.
//!
//! A point to which one source gives most lies near that source's line through the origin. The strongest tenth of
//! (a sample of) the points is cut into H clusters around lines c_h, |c_h| = 1, by turns
//!
//! ```text
//! y belongs to the h with the largest (c_h y)^2 / y^2 =: cos^2        c_h <- first eigenvector of sum cos^16 y y^T / y^2
//! ```
//!
//! from lines drawn among the points, each the likelier the farther it is from those drawn before. The high power leaves
//! points between two lines nearly no weight. With several voices on few microphones (experiment `voices`)
//! random columns often end in poorer optima: `train --init random` shows it.

use super::super::points::Points;
use super::super::whiten::Spectrum;
use crate::Result;
use crate::linalg::{dot, unit};
use spikelet::rng::Rng;

/// Points that are looked at, and the part of them that is clustered.
const LOOKED_AT: usize = 50_000;
const STRONGEST: f64 = 0.1;

/// Turns of clustering.
const TURNS: usize = 30;

/// Half the power of the cosine.
const POWER: i32 = 8;

/// How far the lines of later starts are turned, as a part of their length in random directions: 20 degrees or so.
const TURNED: f64 = 0.35;

/// Lines as columns of this length. (D x H) Clustering finds nearly the same lines from wherever it begins, so all starts but
/// the first turn what it finds.
pub(super) fn lines(
    points: &mut Points,
    h: usize,
    norm: f64,
    is_first: bool,
    rng: &mut Rng,
) -> Result<Vec<f64>> {
    let d = points.dims();
    let strong = strongest(points, h)?;
    let mut lines: Vec<Vec<f64>> = Vec::new();
    for _ in 0..h {
        let far = |y: &[f64]| 1.0 - lines.iter().map(|c| dot(c, y).powi(2)).fold(0.0, f64::max);
        let weights: Vec<f64> = strong.iter().map(|y| far(y).max(0.0)).collect();
        let mut left = rng.uniform::<f64>() * weights.iter().sum::<f64>();
        let drawn = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // No point has a direction that is not taken: any will do.
        let random: Vec<f64> = (0..d).map(|_| rng.normal::<f64>()).collect();
        let first = drawn.map_or(random, |i| strong[i].clone());
        lines.push(unit(&first).unwrap_or_else(|| axis(d)));
    }
    for _ in 0..TURNS {
        let mut scatters = vec![vec![0.0; d * d]; h];
        for y in &strong {
            let cosine = |c: &Vec<f64>| dot(c, y).powi(2);
            let (best, square) = lines
                .iter()
                .map(cosine)
                .enumerate()
                .fold((0, -1.0), |best, (h, square)| if square > best.1 { (h, square) } else { best });
            let weight = square.powi(POWER);
            for (e, sum) in scatters[best].iter_mut().enumerate() {
                *sum += weight * y[e / d] * y[e % d];
            }
        }
        for (line, scatter) in lines.iter_mut().zip(&scatters) {
            if scatter.iter().any(|&sum| sum != 0.0) {
                *line = Spectrum::new(scatter, d).first();
            }
        }
    }
    if !is_first {
        for line in &mut lines {
            let along = TURNED / (d as f64).sqrt();
            let turned: Vec<f64> = line.iter().map(|c| c + along * rng.normal::<f64>()).collect();
            *line = unit(&turned).unwrap_or_else(|| line.clone());
        }
    }
    Ok((0..d * h).map(|e| norm * lines[e % h][e / h]).collect())
}

/// The strongest of a sample of the points, of length 1; without those that have no direction.
fn strongest(points: &mut Points, least: usize) -> Result<Vec<Vec<f64>>> {
    let (n, d) = (points.len(), points.dims());
    let every = points.runs().div_ceil(LOOKED_AT.div_ceil(points.run_len())).max(1);
    let runs: Vec<usize> = (0..points.runs()).step_by(every).collect();
    let mut sample = Vec::new();
    let mut some = points.batch(&runs);
    some.read(0, some.len(), &mut sample)?;
    let mut sample: Vec<&[f64]> = sample.chunks_exact(d).collect();
    sample.sort_by(|a, b| dot(b, b).total_cmp(&dot(a, a)));
    let count = ((STRONGEST * sample.len() as f64) as usize).max(4 * least).min(n);
    Ok(sample.into_iter().take(count).filter_map(unit).collect())
}

fn axis(d: usize) -> Vec<f64> {
    (0..d).map(|i| f64::from(u8::from(i == 0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found() {
        let truth = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]];
        let mut rng = Rng::new(5);
        let mut values = Vec::new();
        for n in 0..3000 {
            let strength = rng.normal::<f64>();
            values.extend(truth[n % 3].map(|w| strength * w + 0.05 * rng.normal::<f64>()));
        }
        let found = lines(&mut Points::new(values, 2), 3, 2.0, true, &mut rng).unwrap();
        for [x, y] in truth {
            let cosine = |h: usize| (found[h] * x + found[3 + h] * y).abs() / 2.0;
            assert!((0..3).any(|h| cosine(h) > 0.999), "{found:?}");
        }
    }

    /// Starts that begin in one place end in one place, and three of four were a waste of time.
    #[test]
    fn starts_differ() {
        let mut rng = Rng::new(5);
        let values: Vec<f64> = (0..3000)
            .flat_map(|n| {
                let strength = rng.normal::<f64>();
                [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]][n % 3].map(|w| strength * w)
            })
            .collect();
        let mut points = Points::new(values, 2);
        let mut start = |number: u64| lines(&mut points, 3, 1.0, number == 0, &mut Rng::new(number)).unwrap();
        let starts = [start(0), start(1), start(2)];
        // The farthest column from all columns of another start, as a cosine.
        let likeness = |a: &[f64], b: &[f64]| {
            let cosine = |i: usize, j: usize| (a[i] * b[j] + a[3 + i] * b[3 + j]).abs();
            (0..3).map(|i| (0..3).map(|j| cosine(i, j)).fold(0.0, f64::max)).fold(1.0, f64::min)
        };
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let cosine = likeness(&starts[a], &starts[b]);
            assert!((0.5..0.999).contains(&cosine), "{a} {b}: {cosine}");
        }
    }

    #[test]
    fn silence_and_few_points_have_lines_too() {
        let mut rng = Rng::new(5);
        for values in [vec![0.0; 20], vec![0.0, 1.0], vec![1.0; 6]] {
            let found = lines(&mut Points::new(values, 2), 3, 1.0, false, &mut rng).unwrap();
            assert!(found.len() == 6 && found.iter().all(|w| w.is_finite()), "{found:?}");
        }
    }
}
