//! Data of known origin: sources, mixing matrices, noise. Points are rows of N x D, matrices D x H, row-major.

use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use spikelet::rng::Rng;
use spikelet_trainer::train::whiten::Whitening;

/// Distribution of a source.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Zero, but standard normal with this probability.
    SpikeAndSlab(f64),
    /// Standard Cauchy, density 1 / (pi (1 + x^2)).
    Cauchy,
    /// Standard Laplace, density exp(-|x|) / 2.
    Laplace,
}

impl Source {
    /// One value.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        let uniform: f64 = rng.uniform();
        match self {
            Self::SpikeAndSlab(prior) if uniform < prior => rng.normal(),
            Self::SpikeAndSlab(_) => 0.0,
            Self::Cauchy => (std::f64::consts::PI * (uniform - 0.5)).tan(),
            Self::Laplace => (1.0 - 2.0 * (uniform - 0.5).abs()).ln().copysign(uniform - 0.5),
        }
    }

    /// N points of H independent sources.
    pub fn points(self, rng: &mut Rng, points: usize, sources: usize) -> Vec<f64> {
        (0..points * sources).map(|_| self.draw(rng)).collect()
    }
}

/// Independent standard normal entries.
pub fn normal_matrix(rng: &mut Rng, rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|_| rng.normal()).collect()
}

/// A random rotation, with or without a reflection. Normal matrices prefer no direction, so neither does this.
pub fn orthogonal_matrix(rng: &mut Rng, size: usize) -> Vec<f64> {
    nearest_rotation(&normal_matrix(rng, size, size), size)
}

/// (A A^T)^(-1/2) A, the orthogonal matrix nearest to `matrix`.
pub fn nearest_rotation(matrix: &[f64], size: usize) -> Vec<f64> {
    let square = product(matrix, &transposed(matrix, size), size);
    product(&Whitening::new(&square, size).matrix, matrix, size)
}

/// The same matrix (D x H) with columns of length 1.
pub fn unit_columns(matrix: &[f64], latents: usize) -> Vec<f64> {
    let length = |k: usize| matrix.iter().skip(k).step_by(latents).map(|w| w * w).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..latents).map(length).collect();
    matrix.iter().enumerate().map(|(at, w)| w / lengths[at % latents]).collect()
}

/// Random directions (D x H) of length 1, no two of which have a cosine above 0.8.
pub fn directions(rng: &mut Rng, dims: usize, latents: usize) -> Vec<f64> {
    loop {
        let drawn = unit_columns(&normal_matrix(rng, dims, latents), latents);
        let product = |i: usize, a: usize, b: usize| drawn[i * latents + a] * drawn[i * latents + b];
        let cosine = |a: usize, b: usize| (0..dims).map(|i| product(i, a, b)).sum::<f64>().abs();
        if (0..latents).flat_map(|a| (0..a).map(move |b| (a, b))).all(|(a, b)| cosine(a, b) < 0.8) {
            return drawn;
        }
    }
}

/// Sources (N x H) through a mixing matrix (D x H): N x D.
pub fn mix(sources: &[f64], mixing: &[f64], latents: usize) -> Vec<f64> {
    let sensor = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum();
    let sensors = |x| mixing.chunks_exact(latents).map(move |row| sensor(row, x));
    sources.chunks_exact(latents).flat_map(sensors).collect()
}

/// What the inverse of a mixing matrix makes of samples.
pub fn unmixed(heard: &[f64], mixing: &[f64], d: usize) -> Vec<Vec<f64>> {
    let inverse = Mat::from_fn(d, d, |i, j| mixing[i * d + j]).partial_piv_lu().inverse();
    let source =
        |k: usize| heard.chunks_exact(d).map(|y| (0..d).map(|i| inverse[(k, i)] * y[i]).sum()).collect();
    (0..d).map(source).collect()
}

/// Adds normal noise of this standard deviation.
pub fn add_noise(rng: &mut Rng, points: &mut [f64], deviation: f64) {
    points.iter_mut().for_each(|y| *y += deviation * rng.normal::<f64>());
}

/// Mean square of all entries.
pub fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64
}

/// A B with B of `size` x `size` and A of as many rows as it has.
pub fn product(a: &[f64], b: &[f64], size: usize) -> Vec<f64> {
    let entry =
        |row: &[f64], j: usize| row.iter().zip(b.iter().skip(j).step_by(size)).map(|(a, b)| a * b).sum();
    a.chunks_exact(size).flat_map(|row| (0..size).map(move |j| entry(row, j))).collect()
}

/// A^T of a square matrix.
pub fn transposed(a: &[f64], size: usize) -> Vec<f64> {
    (0..size * size).map(|at| a[at % size * size + at / size]).collect()
}
