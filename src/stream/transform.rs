//! The lapped transform of all channels: N points, one for each bin, and one model for all of them.
//!
//! Sound is dense in time and sparse in frequency. In one bin of one block few sources are heard, so that of a mixture on D
//! microphones more than D can be told apart, by the directions W_h they come from. Every coefficient is multiplied with the
//! gain of its bin before inference and its parts are divided by it after it, so that bins are alike.

use super::mix::Mix;
use crate::blob::groups::Groups;
use crate::counts::Count;
use crate::inference::Inference;
use crate::model::Model;
use crate::numeric::slices::{at, span, span_mut};
use crate::stream::mdct::Mdct;

#[derive(Debug)]
pub(super) struct Transform<'m> {
    pub mix: Mix<'m>,
    /// Of the transform.
    pub table: &'m mut [f32],
    /// Coefficients of each channel, one after the other. (C N)
    pub spectra: &'m mut [f32],
    /// Those of each group. (G N)
    pub parts: &'m mut [f32],
    /// One point. (C)
    pub point: &'m mut [f32],
    /// Empty for 1.
    pub gains: &'m [f32],
}

impl Transform<'_> {
    pub fn prepare(&mut self, model: &Model<'_, f32>, groups: &Groups<'_>) {
        self.mix.prepare(model, groups);
        Mdct::prepare(self.table);
    }

    /// Infers the block that ends here, with the one before it, which is at `oldest` in the rings; false where some of it
    /// cannot be.
    pub fn infer(
        &mut self,
        inference: &mut Inference<'_, f32>,
        ring: &[f32],
        oldest: usize,
        groups: &Groups<'_>,
        out: &mut [f32],
    ) -> bool {
        let Self { mix, table, spectra, parts, point, gains } = self;
        let mdct = Mdct::over(table);
        let bins = mdct.bins();
        let newest = if oldest == 0 { bins } else { 0 };
        for channel in 0..point.len() {
            let block = |start: usize| span(ring, 2 * channel * bins + start, bins);
            mdct.forward(block(oldest), block(newest), span_mut(spectra, channel * bins, bins));
        }
        parts.fill(0.0);
        let mut is_whole = true;
        for bin in 0..bins {
            Count::Streamed.add(point.len() + groups.len());
            let gain = gains.get(bin).copied().unwrap_or(1.0);
            for (channel, y) in point.iter_mut().enumerate() {
                *y = at(spectra, channel * bins + bin) * gain;
            }
            is_whole &= mix.infer(inference, point, groups, parts, bins, bin);
            for group in 0..groups.len() {
                if let Some(part) = parts.get_mut(group * bins + bin) {
                    *part /= gain;
                }
            }
        }
        for group in 0..groups.len() {
            let ring = span_mut(out, 2 * group * bins, 2 * bins);
            let Some((first, second)) = ring.split_at_mut_checked(bins) else { return false };
            let (older, newer) = if oldest == 0 { (first, second) } else { (second, first) };
            mdct.inverse(span_mut(parts, group * bins, bins), older, newer);
        }
        is_whole
    }
}
