//! How far a frame is from a latent beside what else is on: sum_d (v_d - max(w_d, b_d))^2 for several backgrounds b at once.
//!
//! Spectra stay as they lie in flash: gains are divided out of v and b instead, once for all latents of a group. Quads of bands of v and of the
//! backgrounds lie side by side, so that one load of w serves all of them. Spectra in bytes are compared in integers, exactly, so that
//! the order of sums does not matter; Cortex-M's DSP extension takes four bands at a time (`dsp`).

use crate::blob::framed::Numbers;
use crate::counts::Count;
use crate::numeric::slices::{set, span};
use crate::numeric::words::{words, words_mut};

/// Bands that are compared at a time; the number of bands is a multiple of it.
pub(super) const QUAD: usize = 4;
/// Backgrounds beside each other.
pub(super) const BACKGROUNDS: usize = 3;
/// v and its backgrounds.
const PARTS: usize = 1 + BACKGROUNDS;

/// What turns the model's numbers into those of a group's spectra, and squared distances of those into nats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// 1 / (g^p scale).
    pub inverse: f32,
    /// (g^p scale)^2 / (2 sigma^2).
    pub precision: f32,
}

/// v and backgrounds in the unit of one group.
#[derive(Debug)]
pub(super) struct Beside<'m> {
    /// Floats: quads of [`PARTS`] rows of [`QUAD`]. Bytes: the same, packed in words.
    memory: &'m mut [f32],
    is_integer: bool,
}

impl<'m> Beside<'m> {
    /// Numbers of memory.
    pub const fn len(dims: usize, is_integer: bool) -> usize {
        PARTS * dims / if is_integer { QUAD } else { 1 }
    }

    pub fn over(memory: &'m mut [f32], is_integer: bool) -> Self {
        Self { memory, is_integer }
    }

    /// Writes v.
    pub fn set_frame(&mut self, bands: &[f32], unit: Unit) {
        let quads = bands.as_chunks::<QUAD>().0.iter();
        self.count(quads.len());
        if self.is_integer {
            for ([v, ..], quad) in self.words().iter_mut().zip(quads) {
                let [a, b, c, d] = quad.map(|v| byte(v * unit.inverse));
                *v = a | b << 8 | c << 16 | d << 24;
            }
        } else {
            for ([v, ..], quad) in self.rows().iter_mut().zip(quads) {
                *v = quad.map(|v| v * unit.inverse);
            }
        }
    }

    /// Makes background `i` the floor.
    pub fn clear(&mut self, i: usize, floor: f32, unit: Unit) {
        let floor = floor * unit.inverse;
        self.count(self.quads());
        if self.is_integer {
            let word = byte(floor) * 0x0101_0101;
            self.words().iter_mut().for_each(|record| set(record, 1 + i, word));
        } else {
            self.rows().iter_mut().for_each(|record| set(record, 1 + i, [floor; QUAD]));
        }
    }

    /// Raises background `i` to a latent of another group, whose gain is `ratio` times that of this one.
    pub fn raise(&mut self, i: usize, rows: Numbers<'_>, dims: usize, latent: usize, ratio: f32) {
        self.count(dims / QUAD);
        match rows {
            Numbers::Float(rows) => {
                let row = span(rows, latent * dims, dims).as_chunks::<QUAD>().0;
                for (record, w) in self.rows().iter_mut().zip(row) {
                    if let Some(b) = record.get_mut(1 + i) {
                        for j in 0..QUAD {
                            let w = w[j] * ratio;
                            b[j] = if w > b[j] { w } else { b[j] };
                        }
                    }
                }
            }
            Numbers::Integer(rows) => {
                let row = span(rows, latent * dims, dims).as_chunks::<QUAD>().0;
                // More than 256 times as much is the loudest, unless it is nothing.
                let ratio = ((ratio * 4096.0 + 0.5) as u32).min(1 << 20);
                for (record, w) in self.words().iter_mut().zip(row) {
                    if let Some(b) = record.get_mut(1 + i) {
                        let old = *b;
                        let raised = |w: u8, shift: u32| {
                            let w = ((u32::from(w) * ratio + 2048) >> 12).min(255);
                            w.max(old >> shift & 0xff) << shift
                        };
                        *b = raised(w[0], 0) | raised(w[1], 8) | raised(w[2], 16) | raised(w[3], 24);
                    }
                }
            }
        }
    }

    /// Quads of bands that memory is for.
    fn quads(&self) -> usize {
        self.memory.len() / if self.is_integer { PARTS } else { PARTS * QUAD }
    }

    /// Counts quads that are written.
    fn count(&self, quads: usize) {
        if self.is_integer { Count::ChannelBesideBytes } else { Count::ChannelBesideFloats }.add(quads);
    }

    fn words(&mut self) -> &mut [[u32; PARTS]] {
        words_mut(self.memory).as_chunks_mut().0
    }

    fn rows(&mut self) -> &mut [[[f32; QUAD]; PARTS]] {
        self.memory.as_chunks_mut().0.as_chunks_mut().0
    }

    /// Squared distances of row `latent` beside all backgrounds, in the unit's own scale.
    #[inline(never)]
    pub fn distances(&self, rows: Numbers<'_>, dims: usize, latent: usize) -> [f32; BACKGROUNDS] {
        if self.is_integer { Count::ChannelBytes } else { Count::ChannelFloats }.add(dims / QUAD);
        match rows {
            Numbers::Float(rows) => floats(span(rows, latent * dims, dims), self.memory),
            Numbers::Integer(rows) => {
                let (row, records) = (span(rows, latent * dims, dims), words(self.memory));
                #[cfg(spikelet_dsp)]
                let sums = super::dsp::bytes(row, records);
                #[cfg(not(spikelet_dsp))]
                let sums = bytes(row, records);
                // At most 256 x 255^2: exact.
                sums.map(|sum| sum as f32)
            }
        }
    }
}

/// To the nearest; louder than all spectra is the loudest.
fn byte(v: f32) -> u32 {
    ((v + 0.5) as u32).min(255)
}

/// In four interleaved sums.
fn floats(row: &[f32], memory: &[f32]) -> [f32; BACKGROUNDS] {
    let records = memory.as_chunks::<QUAD>().0.as_chunks::<PARTS>().0;
    let mut sums = [[0.0; QUAD]; BACKGROUNDS];
    for (w, [v, backgrounds @ ..]) in row.as_chunks::<QUAD>().0.iter().zip(records) {
        for (sum, b) in sums.iter_mut().zip(backgrounds) {
            for i in 0..QUAD {
                let off = v[i] - if w[i] > b[i] { w[i] } else { b[i] };
                sum[i] += off * off;
            }
        }
    }
    sums.map(|sum| (sum[0] + sum[1]) + (sum[2] + sum[3]))
}

/// In integers: the reference of `dsp`.
#[cfg_attr(spikelet_dsp, allow(dead_code))]
pub(super) fn bytes(row: &[u8], records: &[u32]) -> [u32; BACKGROUNDS] {
    let mut sums = [0; BACKGROUNDS];
    for (w, [v, backgrounds @ ..]) in row.as_chunks::<QUAD>().0.iter().zip(records.as_chunks::<PARTS>().0) {
        let v = v.to_le_bytes();
        for (sum, b) in sums.iter_mut().zip(backgrounds) {
            let b = b.to_le_bytes();
            for i in 0..QUAD {
                let off = i32::from(v[i]) - i32::from(if w[i] > b[i] { w[i] } else { b[i] });
                *sum += (off * off) as u32;
            }
        }
    }
    sums
}
