//! Windows of one channel, each a point; their reconstructions are added up by weight.
//!
//! Window j counts for its sample n with v_n / sum of v over all windows there, v_n = sin^2(pi (n + 1/2) / L): least at its
//! ends, where it knows least, and never 0. A window begins every K samples, so the sum is one over n + i K and has period
//! K, whether K divides L or not.

use crate::blob::groups::Groups;
use crate::counts::Count;
use crate::inference::Inference;
use crate::model::with_column;
use crate::numeric::slices::{copy, span_mut};
use crate::stream::fourier::quarter_sine;

#[derive(Debug)]
pub(super) struct Windows<'m> {
    /// (L)
    pub weights: &'m mut [f32],
    /// The window, oldest sample first. (L)
    pub frame: &'m mut [f32],
    /// Its reconstruction. (L)
    pub part: &'m mut [f32],
    /// Whether its mean is taken off.
    pub centred: bool,
}

impl Windows<'_> {
    pub fn prepare(&mut self, hop: usize) {
        let length = self.weights.len();
        for (n, v) in self.part.iter_mut().enumerate() {
            // From either end: both halves have the same bits.
            let sine = quarter_sine((2 * n.min(length - 1 - n) + 1) as f32 / length as f32);
            *v = sine * sine;
        }
        for (n, weight) in self.weights.iter_mut().enumerate() {
            let first = n.checked_rem(hop).unwrap_or_default();
            let there = self.part.get(first..).unwrap_or(&[]).iter().step_by(hop.max(1));
            let mut sum = 0.0;
            there.for_each(|v| sum += v);
            *weight = self.part.get(n).map_or(0.0, |v| v / sum);
        }
    }

    /// Infers the window whose first sample is at `oldest` in the ring; false where it cannot be.
    pub fn infer(
        &mut self,
        inference: &mut Inference<'_, f32>,
        ring: &[f32],
        oldest: usize,
        groups: &Groups<'_>,
        out: &mut [f32],
    ) -> bool {
        let length = self.frame.len();
        let (newer, older) = ring.split_at_checked(oldest).unwrap_or_default();
        copy(self.frame, older);
        copy(span_mut(self.frame, older.len(), newer.len()), newer);
        Count::Streamed.add(2 * length);
        let mut mean = 0.0;
        if self.centred {
            self.frame.iter().for_each(|y| mean += y);
            mean /= length as f32;
            self.frame.iter_mut().for_each(|y| *y -= mean);
        }
        if inference.infer(self.frame).is_err() {
            return false;
        }
        if groups.len() == 1 {
            let is_done = inference.reconstruct(self.part).is_ok();
            self.add(out, 0, oldest, mean);
            return is_done;
        }
        if self.centred {
            self.part.fill(0.0);
            let share = mean / groups.len() as f32;
            (0..groups.len()).for_each(|group| self.add(out, group, oldest, share));
        }
        let model = inference.model();
        for (latent, &x) in inference.estimate().mean.iter().enumerate() {
            if x != 0.0 {
                with_column!(model, latent, |column| {
                    self.part.iter_mut().zip(column).for_each(|(part, w)| *part = w * x);
                });
                self.add(out, groups.of(latent), oldest, 0.0);
            }
        }
        true
    }

    /// Adds `part` and an offset to a group's ring, by weight.
    #[inline(never)]
    fn add(&self, out: &mut [f32], group: usize, oldest: usize, offset: f32) {
        Count::Windowed.add(self.weights.len());
        let ring = span_mut(out, group * self.weights.len(), self.weights.len());
        let Some((newer, older)) = ring.split_at_mut_checked(oldest) else { return };
        let (weights, later) = self.weights.split_at_checked(older.len()).unwrap_or_default();
        let (part, rest) = self.part.split_at_checked(older.len()).unwrap_or_default();
        for (ring, weights, part) in [(older, weights, part), (newer, later, rest)] {
            for ((out, weight), part) in ring.iter_mut().zip(weights).zip(part) {
                *out += weight * (part + offset);
            }
        }
    }
}
