//! The sums over points that an M-step needs. H, D as everywhere; matrices row-major.

use super::kinds::{self, Sums};
use crate::cluster::Cluster;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use serde::{Deserialize, Serialize};

/// Expected sufficient statistics, x = s.z; x = s where there is no slab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Points summed over: those that count.
    pub points: usize,
    /// Sum of p(y, s) over the kept states, logarithm of that summed over all points: F.
    pub free_energy: f64,
    /// The same over the points that count.
    pub counted: f64,
    /// `sum <s>`. (H)
    pub activity: Vec<f64>,
    /// `sum <x>`. (H)
    pub mean: Vec<f64>,
    /// `sum <x^2>`. (H)
    pub square: Vec<f64>,
    /// `sum <x x^T>`, lower triangle by rows: see [`Statistics::place`]. (H (H + 1) / 2; empty for maximal causes and
    /// mixtures)
    pub second: Vec<f64>,
    /// `sum y <x>^T`; of maximal causes `sum y_d <A_dh>`, or `sum y_d <x_h>*`. (D x H)
    pub cross: Vec<f64>,
    /// `sum <A>` or `sum <x^2>*`, how much of each latent is seen in each dimension; `sum y_d^2 <s_h>` of components with variances
    /// of their own. (D x H; these only)
    pub share: Vec<f64>,
    /// sum of y y^T (D x D) for full noise, of y^2 per dimension (D) otherwise; of maximal causes `sum <(y - max W s)^2>`. (D)
    pub power: Vec<f64>,
    /// `sum <z>`, also where s is 0, with a full slab; else empty. (H)
    pub slab: Vec<f64>,
    /// `sum <z z^T>`, likewise. (H x H)
    pub slab_second: Vec<f64>,
}

impl Statistics {
    /// Nothing summed yet, of the sums that learning parameters like these needs.
    pub fn new(parameters: &Parameters) -> Self {
        let (d, h) = (parameters.dims, parameters.latents);
        let power = if matches!(parameters.noise, NoiseCov::Full(_)) { d * d } else { d };
        let slab = if matches!(parameters.slab_cov, SlabCov::Full(_)) { h } else { 0 };
        let sums = kinds::of(parameters.kind).sums;
        let own = matches!(parameters.noise, NoiseCov::Components(_));
        let shares = matches!(sums, Sums::Shares | Sums::Draws) || own;
        Self {
            points: 0,
            free_energy: 0.0,
            counted: 0.0,
            activity: vec![0.0; h],
            mean: vec![0.0; h],
            square: vec![0.0; h],
            second: vec![0.0; if sums == Sums::Moments { h * (h + 1) / 2 } else { 0 }],
            cross: vec![0.0; d * h],
            share: vec![0.0; if shares { d * h } else { 0 }],
            power: vec![0.0; power],
            slab: vec![0.0; slab],
            slab_second: vec![0.0; slab * slab],
        }
    }

    /// Adds those of other points. The order of merging is part of the result's last bits.
    pub fn merge(&mut self, other: &Self) {
        self.points += other.points;
        self.free_energy += other.free_energy;
        self.counted += other.counted;
        self.combine(other, |sum, value| sum + value);
    }

    /// Moves from these towards those of a batch, taken for as many points as these are of:
    /// (1 - eta) s + eta N / |batch| s_batch. The free energy stays; it belongs to parameters.
    pub fn blend(&mut self, batch: &Self, eta: f64) {
        let scale = eta * self.points as f64 / batch.points.max(1) as f64;
        self.combine(batch, |sum, value| (1.0 - eta) * sum + scale * value);
    }

    /// Adds up all of `lanes` sums that are kept apart, in their order, of which `own` are those of this rank.
    pub fn add_up(mut own: Vec<Self>, lanes: usize, parameters: &Parameters, cluster: &Cluster) -> Self {
        let mut total = if own.is_empty() { Self::new(parameters) } else { own.remove(0) };
        // Counts of points are exact as numbers.
        let scalars = |sums: &Self| [sums.points as f64, sums.free_energy, sums.counted];
        let (mut first, others) = (scalars(&total), own.iter().map(scalars).collect::<Vec<_>>());
        cluster.fold(lanes, &mut first, &others.iter().map(|other| &other[..]).collect::<Vec<_>>());
        (total.points, total.free_energy, total.counted) = (first[0] as usize, first[1], first[2]);
        for (number, array) in total.arrays_mut().into_iter().enumerate() {
            let others: Vec<&[f64]> = own.iter().map(|other| other.arrays()[number]).collect();
            cluster.fold(lanes, array, &others);
        }
        total
    }

    fn arrays(&self) -> [&[f64]; 9] {
        let Self { activity, mean, square, second, cross, share, power, slab, slab_second, .. } = self;
        [activity, mean, square, second, cross, share, power, slab, slab_second]
    }

    fn arrays_mut(&mut self) -> [&mut [f64]; 9] {
        let Self { activity, mean, square, second, cross, share, power, slab, slab_second, .. } = self;
        [activity, mean, square, second, cross, share, power, slab, slab_second]
    }

    fn combine(&mut self, other: &Self, with: impl Fn(f64, f64) -> f64) {
        for (mine, others) in self.arrays_mut().into_iter().zip(other.arrays()) {
            mine.iter_mut().zip(others).for_each(|(sum, &value)| *sum = with(*sum, value));
        }
    }

    /// `sum <x_i x_j>`.
    pub fn second_moment(&self, i: usize, j: usize) -> f64 {
        self.second[Self::place(i, j)]
    }

    /// Where `second` has the entry of two latents.
    pub fn place(i: usize, j: usize) -> usize {
        let (high, low) = (i.max(j), i.min(j));
        high * (high + 1) / 2 + low
    }
}
