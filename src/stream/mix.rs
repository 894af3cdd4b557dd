//! The parts of groups in a point that is one number of each channel.
//!
//! part_g = sum_{h in g} W_dh x_h with d the channel where the group is loudest: H multiply-adds a point. d is
//! found once and the W_dh are stored.

use crate::blob::groups::Groups;
use crate::counts::Count;
use crate::inference::Inference;
use crate::model::Model;
use crate::numeric::slices::{dot, set};

#[derive(Debug)]
pub(super) struct Mix<'m> {
    /// W_dh for each latent; for maximal causes 1 for the channel that is put out, else 0.
    pub weights: &'m mut [f32],
    /// Of maximal causes: the reconstruction. (D)
    pub clean: &'m mut [f32],
}

impl Mix<'_> {
    pub fn prepare(&mut self, model: &Model<'_, f32>, groups: &Groups<'_>) {
        self.weights.fill(0.0);
        for group in 0..groups.len() {
            let among = if groups.are_latents() { group..group + 1 } else { 0..model.shape.latents };
            let members = among.filter(|&latent| groups.of(latent) == group);
            let (mut loudest, mut most) = (0, -1.0);
            for dim in 0..model.shape.dims {
                let mut energy = 0.0;
                for latent in members.clone() {
                    let w = model.entry(dim, latent);
                    energy += w * w;
                }
                if energy > most {
                    (loudest, most) = (dim, energy);
                }
            }
            if model.shape.kind.is_maximal() {
                set(self.weights, loudest, 1.0);
                continue;
            }
            for latent in members {
                set(self.weights, latent, model.entry(loudest, latent));
            }
        }
    }

    /// Infers a point and adds the part of group g to number g `stride` + `offset` of `out`; false where it cannot be
    /// inferred.
    pub fn infer(
        &mut self,
        inference: &mut Inference<'_, f32>,
        point: &[f32],
        groups: &Groups<'_>,
        out: &mut [f32],
        stride: usize,
        offset: usize,
    ) -> bool {
        Count::Mixed.add(self.weights.len());
        if inference.infer(point).is_err() {
            return false;
        }
        if inference.model().shape.kind.is_maximal() {
            let is_done = inference.reconstruct(self.clean).is_ok();
            if let Some(out) = out.get_mut(offset) {
                *out += dot(self.weights, self.clean);
            }
            return is_done;
        }
        for (latent, (&w, &x)) in self.weights.iter().zip(inference.estimate().mean).enumerate() {
            if let Some(out) = out.get_mut(groups.of(latent) * stride + offset) {
                *out += w * x;
            }
        }
        true
    }
}
