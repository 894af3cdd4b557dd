//! One 64-bit number over everything an inference returns, to compare machines bit for bit.
//!
//! FNV-1a, the same as `examples/firmware-c/digest.h`.

use spikelet::Estimate;

/// FNV-1a over little-endian bytes; a float counts with its bits.
#[derive(Clone, Copy)]
pub struct Digest(pub u64);

impl Digest {
    /// Of nothing.
    pub const EMPTY: Self = Digest(0xcbf2_9ce4_8422_2325);

    /// Adds indices.
    pub fn indices(&mut self, values: &[u16]) {
        values.iter().for_each(|value| self.bytes(value.to_le_bytes()));
    }

    /// Adds floats.
    pub fn floats(&mut self, values: &[f32]) {
        values.iter().for_each(|value| self.bytes(value.to_le_bytes()));
    }

    /// Adds an estimate. The reconstruction is not part of it: add it with [`Digest::floats`] after each call.
    pub fn estimate(&mut self, estimate: &Estimate<f32>) {
        self.indices(estimate.selected);
        self.floats(estimate.activity);
        self.floats(estimate.mean);
        self.floats(estimate.variance);
        self.indices(estimate.map_latents);
        self.floats(estimate.map_values);
        self.floats(&[estimate.evidence]);
    }

    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
