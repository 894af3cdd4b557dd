//! How far a frame is from a latent beside what else is on: sum_d (v_d - max(w_d, b_d))^2 for several backgrounds b at once.
//!
//! Spectra stay as they lie in flash: gains are divided out of v and b instead, once for all latents of a group. Quads of bands
//! of v and of what backgrounds leave of it, v - b, lie side by side, so that one load of w serves all of them: v - max(w, b) is
//! the smaller of v - w and v - b.
//!
//! Spectra in bytes are compared in integers, exactly, so that the order of sums does not matter; differences are -128 to 127,
//! for others are out of the question anyway; and a latent that is too far after some bands is not compared in the others.
//! Cortex-M's DSP extension takes four bands at a time (`dsp`).

#[cfg(not(spikelet_dsp))]
use self::bytes as kernel;
#[cfg(spikelet_dsp)]
use super::dsp as kernel;
use crate::blob::framed::Numbers;
use crate::counts::Count;
use crate::numeric::slices::{set, span};
use crate::numeric::words::{words, words_mut};

/// Bands that are compared at a time; the number of bands is a multiple of it.
pub(super) const QUAD: usize = 4;
/// Backgrounds beside each other.
pub(super) const BACKGROUNDS: usize = 3;
/// v, and v - b of its backgrounds.
const PARTS: usize = 1 + BACKGROUNDS;
/// Bytes of v and of latents are compared with a sign, less 128.
pub(super) const SIGNS: u32 = 0x8080_8080;

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
    /// Floats: quads of [`PARTS`] rows of [`QUAD`]. Bytes: the same, packed in words; v without a sign, what backgrounds leave with one.
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
        if self.is_integer { Count::ChannelBesideBytes } else { Count::ChannelBesideFloats }.add(quads.len());
        if self.is_integer {
            for ([v, ..], quad) in self.words().iter_mut().zip(quads) {
                *v = u32::from_le_bytes(quad.map(|v| byte(v * unit.inverse))) ^ SIGNS;
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
        if self.is_integer {
            kernel::clear(self.words(), 1 + i, u32::from_le_bytes([byte(floor); QUAD]));
        } else {
            self.rows().iter_mut().for_each(|record| {
                let left = record[0].map(|v| v - floor);
                set(record, 1 + i, left);
            });
        }
    }

    /// Raises background `i` to a latent of another group, whose gain is `ratio` times that of this one.
    pub fn raise(&mut self, i: usize, rows: Numbers<'_>, dims: usize, latent: usize, ratio: f32) {
        match rows {
            Numbers::Float(rows) => {
                Count::ChannelBesideFloats.add(dims / QUAD);
                let row = span(rows, latent * dims, dims).as_chunks::<QUAD>().0;
                for (record, w) in self.rows().iter_mut().zip(row) {
                    let v = record[0];
                    if let Some(left) = record.get_mut(1 + i) {
                        for j in 0..QUAD {
                            let off = v[j] - w[j] * ratio;
                            left[j] = if off < left[j] { off } else { left[j] };
                        }
                    }
                }
            }
            Numbers::Integer(rows) => {
                Count::ChannelRaisedBytes.add(dims / QUAD);
                // More than 256 times as much is the loudest, unless it is nothing.
                let ratio = ((ratio * 4096.0 + 0.5) as u32).min(1 << 20);
                kernel::raise(span(rows, latent * dims, dims).as_chunks().0, self.words(), 1 + i, ratio);
            }
        }
    }

    fn words(&mut self) -> &mut [[u32; PARTS]] {
        words_mut(self.memory).as_chunks_mut().0
    }

    fn rows(&mut self) -> &mut [[[f32; QUAD]; PARTS]] {
        self.memory.as_chunks_mut().0.as_chunks_mut().0
    }

    /// Squared distances of row `latent` beside all backgrounds, in the unit's own scale; nothing where all of them are above
    /// their limits, for integers.
    #[inline]
    pub fn distances(
        &self,
        rows: Numbers<'_>,
        dims: usize,
        latent: usize,
        limits: [f32; BACKGROUNDS],
    ) -> Option<[f32; BACKGROUNDS]> {
        Count::ChannelCompared.add(1);
        match rows {
            Numbers::Float(rows) => {
                Count::ChannelFloats.add(dims / QUAD);
                Some(floats(span(rows, latent * dims, dims), self.memory))
            }
            Numbers::Integer(rows) => {
                let row = span(rows, latent * dims, dims).as_chunks().0;
                // Sums begin below 0 by their limits, and not lower than they can rise. (Loops over three would stay loops in flash.)
                let start = |limit: f32| !(limit as i32).max(0);
                let [a, b, c] = limits;
                let [a, b, c] = [start(a), start(b), start(c)];
                let mut sums = [a, b, c];
                if kernel::add(row, words(self.memory).as_chunks().0, &mut sums) {
                    return None;
                }
                // At most 256 x 128^2: exact.
                let off = |sum: i32, start: i32| sum.wrapping_sub(start) as f32;
                Some([off(sums[0], a), off(sums[1], b), off(sums[2], c)])
            }
        }
    }
}

/// To the nearest; louder than all spectra is the loudest.
fn byte(v: f32) -> u8 {
    (v + 0.5) as u8
}

/// In four interleaved sums.
#[inline(never)]
fn floats(row: &[f32], memory: &[f32]) -> [f32; BACKGROUNDS] {
    let records = memory.as_chunks::<QUAD>().0.as_chunks::<PARTS>().0;
    let mut sums = [[0.0; QUAD]; BACKGROUNDS];
    for (w, [v, backgrounds @ ..]) in row.as_chunks::<QUAD>().0.iter().zip(records) {
        for (sum, left) in sums.iter_mut().zip(backgrounds) {
            for i in 0..QUAD {
                let off = v[i] - w[i];
                let off = if off < left[i] { off } else { left[i] };
                sum[i] += off * off;
            }
        }
    }
    sums.map(|sum| (sum[0] + sum[1]) + (sum[2] + sum[3]))
}

/// Four bands of bytes in a word each, in integers: the reference of `dsp`, whose functions are called alike.
#[cfg_attr(spikelet_dsp, allow(dead_code))]
mod bytes {
    use super::{BACKGROUNDS, PARTS, QUAD, SIGNS};
    use crate::counts::Count;
    use crate::numeric::slices::set;

    /// Differences of four bytes, as far as they are bytes with a sign.
    #[inline(always)]
    fn off(v: u32, w: u32) -> u32 {
        each(v, w ^ SIGNS, i8::saturating_sub)
    }

    #[inline(always)]
    fn each(a: u32, b: u32, of: impl Fn(i8, i8) -> i8) -> u32 {
        let mut bytes = a.to_le_bytes();
        for (a, b) in bytes.iter_mut().zip(b.to_le_bytes()) {
            *a = of(*a as i8, b as i8) as u8;
        }
        u32::from_le_bytes(bytes)
    }

    /// Writes v - b to a place of all records, for the same b.
    pub fn clear(records: &mut [[u32; PARTS]], place: usize, floor: u32) {
        for record in records {
            let left = off(record[0], floor);
            set(record, place, left);
        }
    }

    /// Lowers v - b to what a latent leaves that is louder than b; the ratio is 4096 where it counts as it is.
    pub fn raise(row: &[[u8; QUAD]], records: &mut [[u32; PARTS]], place: usize, ratio: u32) {
        for (w, record) in row.iter().zip(records) {
            let raised = w.map(|w| ((u32::from(w) * ratio + 2048) >> 12).min(255) as u8);
            let all = off(record[0], u32::from_le_bytes(raised));
            if let Some(left) = record.get_mut(place) {
                *left = each(*left, all, |a, b| if b < a { b } else { a });
            }
        }
    }

    /// Adds squared distances, until none of the sums is below 0; says whether that happened.
    #[inline(never)]
    pub fn add(row: &[[u8; QUAD]], records: &[[u32; PARTS]], sums: &mut [i32; BACKGROUNDS]) -> bool {
        for (w, [v, backgrounds @ ..]) in row.iter().zip(records) {
            let offs = off(*v, u32::from_le_bytes(*w)).to_le_bytes().map(|off| off as i8);
            let mut signs = 0;
            for (sum, left) in sums.iter_mut().zip(backgrounds) {
                for (off, left) in offs.into_iter().zip(left.to_le_bytes()) {
                    let off = i32::from(if off < left as i8 { off } else { left as i8 });
                    *sum += off * off;
                }
                signs |= *sum;
            }
            Count::ChannelBytes.add(1);
            if signs >= 0 {
                return true;
            }
        }
        false
    }
}
